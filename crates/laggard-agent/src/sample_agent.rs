//! Root of the injected library *sample*. lib.rs describes it and how it is built.

#![no_std]

mod children;
mod elf;
mod late;
mod memory;
mod python;
mod records;
mod ring;
mod sample;
mod sys;
mod tasks;
mod thread_name;
mod wire;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        // SAFETY: ends the process, so nothing runs afterwards.
        unsafe { sys::syscall!(sys::nr::EXIT_GROUP, 125) };
    }
}
