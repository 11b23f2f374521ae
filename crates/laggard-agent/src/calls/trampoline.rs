//! Entry and exit of a traced call, in assembly.
//!
//! The fast path uses only general-purpose registers, so that arguments and results in vector
//! registers of any width are preserved. Before it calls Rust code, which is compiled for SSE2, it
//! saves xmm0 to xmm15: legacy SSE instructions do not change the upper parts. A real `call` enters
//! the function and a real `ret` leaves the trampoline, so that the CPU's return prediction stays
//! correct. rax (number of vector arguments of variadic functions) and r10 (static chain) are
//! preserved; the ABI allows procedure linkage code to clobber r11.
//!
//! While the function runs, rbx points to the [`Frame`](super::thread::Frame), and the unwind
//! information describes that. The frame is the canonical frame address (the unwinder requires it
//! to differ from that of the callee), the return address and rbx are stored in it, and the
//! caller's stack pointer is its value after the return.

use super::thread::Thread;

#[cfg(laggard_agent)]
mod code {
    use super::super::symbols::TARGETS;
    use super::super::thread::{self, FACTOR, Frame, IMAGE, INDEX, KEY_SHIFT, Slot, Thread};
    use crate::calls_wire::{CLASSES, Entry};
    use core::arch::global_asm;
    use core::mem::offset_of;

    global_asm!(
        // The state of the thread; null before its first traced call.
        ".section .tbss.laggard_thread,\"awT\",@nobits",
        ".p2align 3",
        ".type laggard_thread,@object",
        ".size laggard_thread,8",
        ".hidden laggard_thread",
        ".globl laggard_thread",
        "laggard_thread: .zero 8",
        ".section .rodata.laggard_factor,\"a\",@progbits",
        ".p2align 3",
        "laggard_factor: .quad {FACTOR}",
        ".text",
        ".p2align 5",
        ".hidden laggard_enter",
        ".globl laggard_enter",
        ".type laggard_enter,@function",
        // r11 is the index of the function, [rsp] the return address.
        "laggard_enter:",
        ".cfi_startproc",
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "push rcx",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "mov rsi, qword ptr [rip + laggard_thread@GOTTPOFF]",
        "mov rsi, qword ptr fs:[rsi]",
        "test rsi, rsi",
        "jz 7f",
        "mov ecx, dword ptr [rip + {image}]",
        "cmp ecx, dword ptr [rsi + {FAST_IMAGE}]",
        "jne 7f",
        "sub dword ptr [rsi + {COUNTDOWN}], 1",
        "jz 7f",
        "mov rdi, qword ptr [rsi + {TOP}]",
        "lea rax, [rsp + 40]",
        "mov rdx, qword ptr [rax]",
        "cmp qword ptr [rdi - {FRAME} + {SLOT}], rax",
        "jbe 5f",
        "2:",
        "cmp rdi, qword ptr [rsi + {LIMIT}]",
        "jae 7f",
        // Find the entry; rdx is the call site.
        "mov rcx, r11",
        "shl rcx, {KEY_SHIFT}",
        "xor rcx, rdx",
        "imul rcx, qword ptr [rip + laggard_factor]",
        "shr rcx, 48",
        "shl ecx, 4",
        "lea rcx, [rsi + rcx + {INDEX}]",
        "3:",
        "cmp qword ptr [rcx], rdx",
        "jne 4f",
        "cmp dword ptr [rcx + {SLOT_SYMBOL}], r11d",
        "jne 4f",
        "mov ecx, dword ptr [rcx + {SLOT_ENTRY}]",
        "shl rcx, 6",
        "jz 7f",
        "add rcx, qword ptr [rsi + {BASE}]",
        "add qword ptr [rcx + {BEGUN}], 1",
        // Take the frame. The slot is written before and after the frame is taken, because a
        // signal handler may use the frame in between.
        "mov qword ptr [rdi + {SLOT}], rax",
        "add qword ptr [rsi + {TOP}], {FRAME}",
        "mov qword ptr [rdi + {SLOT}], rax",
        "mov qword ptr [rdi + {ENTRY}], rcx",
        "mov rdx, qword ptr [rax]",
        "mov qword ptr [rdi + {BACK}], rdx",
        "mov qword ptr [rdi + {BELOW}], 0",
        "mov qword ptr [rdi + {RBX}], rbx",
        "lea rcx, [rip + {targets}]",
        "mov r11, qword ptr [rcx + 8*r11]",
        "mov rbx, rdi",
        ".cfi_escape 0x10, 3, 2, 0x73, {RBX}",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "mov qword ptr [rbx + {BEGAN}], rax",
        "6:",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rcx",
        ".cfi_adjust_cfa_offset -8",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "add rsp, 8",
        ".cfi_remember_state",
        ".cfi_def_cfa rbx, 0",
        ".cfi_offset rip, {BACK}",
        ".cfi_offset rbx, {RBX}",
        ".cfi_escape 0x16, 7, 2, 0x77, 0",
        "call r11",
        ".hidden laggard_after",
        ".globl laggard_after",
        "laggard_after:",
        "mov r8, rax",
        "mov r9, rdx",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "mov rdi, qword ptr [rip + laggard_thread@GOTTPOFF]",
        "mov rdi, qword ptr fs:[rdi]",
        "mov ecx, dword ptr [rip + {image}]",
        "cmp ecx, dword ptr [rdi + {FAST_IMAGE}]",
        "jne 12f",
        "lea rcx, [rbx + {FRAME}]",
        "cmp rcx, qword ptr [rdi + {TOP}]",
        "jne 12f",
        "mov rsi, qword ptr [rbx + {ENTRY}]",
        "xor ecx, ecx",
        "sub rax, qword ptr [rbx + {BEGAN}]",
        "cmovb rax, rcx",
        "mov rdx, rax",
        "sub rdx, qword ptr [rbx + {BELOW}]",
        "cmovb rdx, rcx",
        "add qword ptr [rbx - {FRAME} + {BELOW}], rax",
        "mov r10, qword ptr [rbx + {BACK}]",
        "mov r11, qword ptr [rbx + {RBX}]",
        // From here on the frame may be reused.
        "mov qword ptr [rdi + {TOP}], rbx",
        "add qword ptr [rsi + {FINISHED}], 1",
        "add qword ptr [rsi + {TOTAL}], rax",
        "add qword ptr [rsi + {OWN}], rdx",
        "cmp rax, qword ptr [rsi + {MIN}]",
        "jae 9f",
        "mov qword ptr [rsi + {MIN}], rax",
        "9:",
        "cmp rax, qword ptr [rsi + {MAX}]",
        "jbe 10f",
        "mov qword ptr [rsi + {MAX}], rax",
        "10:",
        // The class of the duration, as in `class_of`.
        "add rax, 32",
        "bsr rcx, rax",
        "lea edx, [rcx*8 - 40]",
        "sub ecx, 3",
        "shr rax, cl",
        "and eax, 7",
        "add eax, edx",
        "mov ecx, {LAST_CLASS}",
        "cmp eax, ecx",
        "cmova eax, ecx",
        "add qword ptr [rsi + 8*rax + {CLASS_COUNTS}], 1",
        "11:",
        "mov rax, r8",
        "mov rdx, r9",
        "mov rbx, r11",
        "push r10",
        ".cfi_restore_state",
        ".cfi_remember_state",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbx",
        "ret",
        // The slow path of the entry: save all registers, then call Rust.
        "5:",
        ".cfi_restore_state",
        ".cfi_def_cfa_offset 48",
        ".cfi_restore rbx",
        "jne 7f",
        // The same slot on the stack: a tail call if the return address is the trampoline's.
        "lea rcx, [rip + laggard_after]",
        "cmp rdx, rcx",
        "jne 7f",
        "mov rcx, qword ptr [rdi - {FRAME} + {ENTRY}]",
        "mov ecx, dword ptr [rcx + {ENTRY_SYMBOL}]",
        "lea rdx, [rip + {targets}]",
        "mov rdx, qword ptr [rdx + 8*rcx]",
        "inc rdx",
        "jmp 2b",
        "4:",
        // Not this slot of the index; an empty slot ends the search.
        "cmp dword ptr [rcx + {SLOT_ENTRY}], 0",
        "je 7f",
        "add rcx, 16",
        "jmp 3b",
        "7:",
        "push r8",
        ".cfi_adjust_cfa_offset 8",
        "push r9",
        ".cfi_adjust_cfa_offset 8",
        "push r10",
        ".cfi_adjust_cfa_offset 8",
        "push r11",
        ".cfi_adjust_cfa_offset 8",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        // Callee-saved registers, which unwinding from here needs.
        "sub rsp, 304",
        "and rsp, -16",
        "mov qword ptr [rbp - 8], rbx",
        "mov qword ptr [rbp - 16], r12",
        "mov qword ptr [rbp - 24], r13",
        "mov qword ptr [rbp - 32], r14",
        "mov qword ptr [rbp - 40], r15",
        "movaps xmmword ptr [rsp], xmm0",
        "movaps xmmword ptr [rsp + 16], xmm1",
        "movaps xmmword ptr [rsp + 32], xmm2",
        "movaps xmmword ptr [rsp + 48], xmm3",
        "movaps xmmword ptr [rsp + 64], xmm4",
        "movaps xmmword ptr [rsp + 80], xmm5",
        "movaps xmmword ptr [rsp + 96], xmm6",
        "movaps xmmword ptr [rsp + 112], xmm7",
        "movaps xmmword ptr [rsp + 128], xmm8",
        "movaps xmmword ptr [rsp + 144], xmm9",
        "movaps xmmword ptr [rsp + 160], xmm10",
        "movaps xmmword ptr [rsp + 176], xmm11",
        "movaps xmmword ptr [rsp + 192], xmm12",
        "movaps xmmword ptr [rsp + 208], xmm13",
        "movaps xmmword ptr [rsp + 224], xmm14",
        "movaps xmmword ptr [rsp + 240], xmm15",
        "mov rdi, rbp",
        "mov rsi, r11",
        "cld",
        "call {enter}",
        "movaps xmm0, xmmword ptr [rsp]",
        "movaps xmm1, xmmword ptr [rsp + 16]",
        "movaps xmm2, xmmword ptr [rsp + 32]",
        "movaps xmm3, xmmword ptr [rsp + 48]",
        "movaps xmm4, xmmword ptr [rsp + 64]",
        "movaps xmm5, xmmword ptr [rsp + 80]",
        "movaps xmm6, xmmword ptr [rsp + 96]",
        "movaps xmm7, xmmword ptr [rsp + 112]",
        "movaps xmm8, xmmword ptr [rsp + 128]",
        "movaps xmm9, xmmword ptr [rsp + 144]",
        "movaps xmm10, xmmword ptr [rsp + 160]",
        "movaps xmm11, xmmword ptr [rsp + 176]",
        "movaps xmm12, xmmword ptr [rsp + 192]",
        "movaps xmm13, xmmword ptr [rsp + 208]",
        "movaps xmm14, xmmword ptr [rsp + 224]",
        "movaps xmm15, xmmword ptr [rsp + 240]",
        "mov rsp, rbp",
        ".cfi_def_cfa_register rsp",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbp",
        "pop r11",
        ".cfi_adjust_cfa_offset -8",
        "pop r10",
        ".cfi_adjust_cfa_offset -8",
        "pop r9",
        ".cfi_adjust_cfa_offset -8",
        "pop r8",
        ".cfi_adjust_cfa_offset -8",
        "mov r11, rdx",
        "test rax, rax",
        "jz 8f",
        "mov qword ptr [rax + {RBX}], rbx",
        "mov rbx, rax",
        ".cfi_remember_state",
        ".cfi_escape 0x10, 3, 2, 0x73, {RBX}",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "mov qword ptr [rbx + {BEGAN}], rax",
        "jmp 6b",
        // Without a frame: the function returns directly to its caller.
        "8:",
        ".cfi_restore_state",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rcx",
        ".cfi_adjust_cfa_offset -8",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "jmp r11",
        // The slow path of the exit: save the results, then call Rust. rax is the time.
        "12:",
        ".cfi_def_cfa rbx, 0",
        ".cfi_offset rip, {BACK}",
        ".cfi_offset rbx, {RBX}",
        ".cfi_escape 0x16, 7, 2, 0x77, 0",
        "push rbp",
        "mov rbp, rsp",
        ".cfi_escape 0x16, 7, 2, 0x76, 8",
        ".cfi_escape 0x10, 6, 2, 0x76, 0",
        "sub rsp, 48",
        "and rsp, -16",
        "movaps xmmword ptr [rsp], xmm0",
        "movaps xmmword ptr [rsp + 16], xmm1",
        "mov qword ptr [rsp + 32], r8",
        "mov qword ptr [rsp + 40], r9",
        "mov rdi, rbx",
        "mov rsi, rax",
        "cld",
        "call {leave}",
        "movaps xmm0, xmmword ptr [rsp]",
        "movaps xmm1, xmmword ptr [rsp + 16]",
        "mov r8, qword ptr [rsp + 32]",
        "mov r9, qword ptr [rsp + 40]",
        "mov r10, rax",
        "mov r11, rdx",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_restore rbp",
        ".cfi_escape 0x16, 7, 2, 0x77, 0",
        "jmp 11b",
        ".cfi_endproc",
        ".size laggard_enter, . - laggard_enter",
        // The empty function with which the agent measures its overhead.
        ".hidden laggard_nothing",
        ".globl laggard_nothing",
        ".type laggard_nothing,@function",
        "laggard_nothing:",
        ".cfi_startproc",
        "ret",
        ".cfi_endproc",
        ".size laggard_nothing, . - laggard_nothing",
        FACTOR = const FACTOR as i64,
        KEY_SHIFT = const KEY_SHIFT,
        FAST_IMAGE = const offset_of!(Thread, fast_image),
        COUNTDOWN = const offset_of!(Thread, countdown),
        TOP = const offset_of!(Thread, top),
        LIMIT = const offset_of!(Thread, limit),
        BASE = const offset_of!(Thread, base),
        INDEX = const INDEX,
        FRAME = const size_of::<Frame>(),
        BACK = const offset_of!(Frame, back),
        RBX = const offset_of!(Frame, rbx),
        SLOT = const offset_of!(Frame, slot),
        ENTRY = const offset_of!(Frame, entry),
        BEGAN = const offset_of!(Frame, began),
        BELOW = const offset_of!(Frame, below),
        SLOT_SYMBOL = const offset_of!(Slot, symbol),
        SLOT_ENTRY = const offset_of!(Slot, entry),
        BEGUN = const offset_of!(Entry, begun),
        FINISHED = const offset_of!(Entry, finished),
        TOTAL = const offset_of!(Entry, total),
        OWN = const offset_of!(Entry, own),
        MIN = const offset_of!(Entry, min),
        MAX = const offset_of!(Entry, max),
        ENTRY_SYMBOL = const offset_of!(Entry, symbol),
        CLASS_COUNTS = const offset_of!(Entry, classes),
        LAST_CLASS = const CLASSES - 1,
        image = sym IMAGE,
        targets = sym TARGETS,
        enter = sym thread::enter,
        leave = sym thread::leave,
    );

    unsafe extern "C" {
        pub(super) fn laggard_enter();
        pub(super) fn laggard_after();
        pub(super) fn laggard_nothing();
    }
}

/// Where stubs jump to.
#[cfg(laggard_agent)]
pub(crate) fn entry() -> u64 {
    code::laggard_enter as *const () as u64
}

/// Where traced functions return to.
#[cfg(laggard_agent)]
pub(crate) fn after() -> u64 {
    code::laggard_after as *const () as u64
}

/// An empty function.
#[cfg(laggard_agent)]
pub(crate) fn nothing() -> u64 {
    code::laggard_nothing as *const () as u64
}

/// The state of this thread, or null.
#[cfg(laggard_agent)]
pub(crate) fn thread() -> *mut Thread {
    let thread;
    // SAFETY: reads a word of the thread's own TLS.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + laggard_thread@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) thread,
            options(nostack, preserves_flags),
        );
    }
    thread
}

/// Sets the state of this thread.
#[cfg(laggard_agent)]
pub(crate) fn set_thread(thread: *mut Thread) {
    // SAFETY: writes a word of the thread's own TLS.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + laggard_thread@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) thread,
            options(nostack, preserves_flags),
        );
    }
}

/// Stand-ins outside of the injected library, where the trampoline must not take effect.
#[cfg(not(laggard_agent))]
mod absent {
    use super::Thread;

    pub(crate) fn entry() -> u64 {
        0
    }
    pub(crate) fn after() -> u64 {
        0
    }
    pub(crate) fn nothing() -> u64 {
        0
    }
    pub(crate) fn thread() -> *mut Thread {
        core::ptr::null_mut()
    }
    pub(crate) fn set_thread(_: *mut Thread) {}
}
#[cfg(not(laggard_agent))]
pub(crate) use absent::{after, entry, nothing, set_thread, thread};
