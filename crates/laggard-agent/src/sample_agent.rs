//! Root of the injected library *sample*: see lib.rs for what it is and how it is built.

#![no_std]

mod elf;
mod late;
mod memory;
mod python;
mod records;
mod ring;
mod sample;
mod sys;
mod tasks;
mod wire;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        // SAFETY: ends the process; there is nothing to return to.
        unsafe { sys::syscall!(sys::nr::EXIT_GROUP, 125) };
    }
}
