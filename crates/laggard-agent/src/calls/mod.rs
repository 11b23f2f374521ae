//! The call tracer: what the dynamic linker asks of an auditor, and what it is answered.
//!
//! The linker tells it of every object it loads and every symbol it binds. For a function that is
//! to be traced it answers with a stub, which counts and times the call and then runs the function.
//! Nothing is traced unless the environment names a shared file ([`crate::calls_wire`]).

mod arguments;
mod maps;
mod objects;
pub(crate) mod policy;
mod stacks;
mod symbols;
mod tables;
mod thread;
mod trampoline;

use crate::calls_wire::{OWN, options};
use crate::sys;
use core::ffi::{CStr, c_char, c_long, c_uint};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use objects::{LinkMap, Symbol};

/// Bits of the answer to `la_objopen`: tell of symbols bound to and from it.
const BIND_TO: c_uint = 1;
const BIND_FROM: c_uint = 2;
/// Bit of `la_symbind64`: the symbol is asked for by `dlsym`.
const BY_DLSYM: c_uint = 8;
/// A cookie that stands for no object.
const NO_OBJECT: usize = usize::MAX;

/// Whether what the program links is relocated.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Says hello. 0 makes the linker forget this library: nothing is asked for, or not of this
/// process.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) extern "C" fn la_version(offered: c_uint) -> c_uint {
    let Some(tables) = tables::open() else { return 0 };
    let header = &tables.header;
    let pid = sys::getpid();
    let root =
        header.root_pid.compare_exchange(0, pid, AcqRel, Acquire).unwrap_or_else(|root| root);
    let is_wanted =
        root == 0 || root == pid || header.options.load(Relaxed) & options::CHILDREN != 0;
    if !is_wanted || symbols::write_stubs(trampoline::entry()).is_none() {
        return 0;
    }
    thread::FIRST_STACK.store(&raw const header as u64, Relaxed);
    thread::say_hello(tables);
    stacks::open();
    // What is used here is the same in all versions of the interface.
    offered
}

/// Notes an object.
///
/// # Safety
/// Only for the dynamic linker.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn la_objopen(
    map: &LinkMap,
    namespace: c_long,
    cookie: &mut usize,
) -> c_uint {
    *cookie = NO_OBJECT;
    let Some(tables) = tables::tables().filter(|_| namespace == 0) else { return 0 };
    // SAFETY: the linker's map.
    match unsafe { objects::opened(tables, map) } {
        Some(number) => {
            *cookie = number as usize;
            // All of them, as any lookup by `dlsym` is a chance to patch what was loaded before.
            BIND_TO | BIND_FROM
        }
        None => 0,
    }
}

/// Forgets an object.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) extern "C" fn la_objclose(cookie: &usize) -> c_uint {
    if let Some(tables) = tables::tables() {
        objects::closed(tables, *cookie as u64);
    }
    0
}

/// Everything that the program links is loaded and relocated.
///
/// # Safety
/// Only for the dynamic linker.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn la_preinit(_cookie: *const usize) {
    let Some(tables) = tables::tables() else { return };
    // SAFETY: before any other thread.
    unsafe { objects::patch_all(tables) };
    stacks::find_python();
    STARTED.store(true, Relaxed);
    if tables.header.cost.load(Relaxed) == 0 {
        measure_cost();
    }
}

/// Objects are about to be loaded: those loaded before are relocated by now.
///
/// # Safety
/// Only for the dynamic linker.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn la_activity(_cookie: *const usize, what: c_uint) {
    const ADD: c_uint = 1;
    if what == ADD
        && STARTED.load(Relaxed)
        && let Some(tables) = tables::tables()
    {
        // SAFETY: the linker holds its lock.
        unsafe { objects::patch_all(tables) };
        stacks::find_python();
    }
}

/// A symbol is bound. Answers what the caller gets.
///
/// # Safety
/// Only for the dynamic linker.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn la_symbind64(
    symbol: &Symbol,
    _number: c_uint,
    caller: &usize,
    callee: &usize,
    flags: &c_uint,
    name: *const c_char,
) -> u64 {
    let by_dlsym = *flags & BY_DLSYM != 0;
    let target = symbol.value;
    let Some(tables) = tables::tables() else { return target };
    if by_dlsym && STARTED.load(Relaxed) {
        // SAFETY: the linker holds its lock, and has relocated what a program can ask about.
        unsafe { objects::patch_all(tables) };
    }
    // A slot of the lazy table is for calls; a name asked for may be one of data.
    let is_function = symbol.is_function() && (symbol.has_type() || !by_dlsym);
    let (caller, callee) = (objects::object(*caller as u64), objects::object(*callee as u64));
    let (Some(caller), Some(callee)) = (caller, callee) else { return target };
    if !is_function || name.is_null() {
        return target;
    }
    // SAFETY: the linker's names end with a zero.
    let name = unsafe { CStr::from_ptr(name) };
    objects::bind(tables, caller, callee, name.to_bytes(), target)
}

/// Measures what a traced call costs, with a function that does nothing.
fn measure_cost() {
    const ROUNDS: usize = 7;
    const CALLS: u64 = 256;
    let Some(tables) = tables::tables() else { return };
    let header = &tables.header;
    let target = trampoline::nothing();
    let Some(stub) = symbols::stub(tables, target, b"laggard", u32::MAX) else { return };
    let first = tables.symbols.iter().find(|symbol| symbol.object.load(Relaxed) == u32::MAX);
    if let Some(symbol) = first {
        symbol.reason.store(OWN, Release);
    }
    if target == 0 {
        return;
    }
    let time = |address: u64| {
        // SAFETY: both are functions without arguments or results.
        let function: extern "C" fn() = unsafe { core::mem::transmute(address) };
        let mut best = u64::MAX;
        for _ in 0..ROUNDS {
            let start = thread::ticks();
            for _ in 0..CALLS {
                function();
            }
            best = best.min(thread::ticks() - start);
        }
        best
    };
    let (traced, plain) = (time(stub), time(target));
    // SAFETY: the state of this thread, which made the calls above.
    if let Some(thread) = unsafe { trampoline::thread().as_mut() } {
        thread.restart_stacks();
    }
    header.cost.store((traced.saturating_sub(plain) / CALLS).max(1), Relaxed);
}
