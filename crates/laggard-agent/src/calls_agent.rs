//! Root of the injected library *calls*. lib.rs describes it and how it is built.

#![no_std]

mod calls;
mod calls_wire;
mod elf;
mod memory;
mod python;
mod records;
mod ring;
mod sys;
mod wire;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        // SAFETY: ends the process, so nothing runs afterwards.
        unsafe { sys::syscall!(sys::nr::EXIT_GROUP, 125) };
    }
}
