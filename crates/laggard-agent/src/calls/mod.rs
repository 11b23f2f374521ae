//! The call tracer: implements the auditing interface of the dynamic linker (`rtld-audit(7)`).
//!
//! The linker reports every object it loads and every symbol it binds. For a function that is to be
//! traced, the auditor returns a stub, which counts and times the call and then runs the function.
//! Nothing is traced unless the environment names a shared file ([`crate::calls_wire`]).

mod arguments;
mod maps;
mod objects;
pub(crate) mod policy;
mod signatures;
mod stacks;
mod symbols;
mod tables;
mod thread;
mod trampoline;

use crate::calls_wire::{Header, OBJECTS, OWN, PROCESSES, SYMBOLS, THREADS, options};
use crate::sys;
use core::ffi::{CStr, c_char, c_long, c_uint};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};
use objects::{LinkMap, Symbol};

/// Bits of the result of `la_objopen`: report symbols bound to and from the object.
const BIND_TO: c_uint = 1;
const BIND_FROM: c_uint = 2;
/// Flag of `la_symbind64`: the symbol is looked up by `dlsym`.
const BY_DLSYM: c_uint = 8;
/// A cookie without an object.
const NO_OBJECT: usize = usize::MAX;

/// Whether the initially linked objects are relocated.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Whether the tables have no room for another program. A quarter is reserved for libraries that
/// traced programs load later.
fn is_nearly_full(header: &Header) -> bool {
    let is_used = |rows: &AtomicU32, most: usize| rows.load(Relaxed) as usize >= most / 4 * 3;
    is_used(&header.images, PROCESSES)
        || is_used(&header.objects, OBJECTS)
        || is_used(&header.symbols, SYMBOLS)
        || is_used(&header.threads, THREADS)
}

/// Registers the auditor. A result of 0 makes the linker ignore this library: nothing is traced, or
/// not in this process.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) extern "C" fn la_version(offered: c_uint) -> c_uint {
    let Some(tables) = tables::open() else { return 0 };
    let header = &tables.header;
    let pid = sys::getpid();
    let root =
        header.root_pid.compare_exchange(0, pid, AcqRel, Acquire).unwrap_or_else(|root| root);
    let is_wanted =
        root == 0 || root == pid || header.options.load(Relaxed) & options::CHILDREN != 0;
    let is_first = root == 0 || root == pid;
    if is_wanted && !is_first && is_nearly_full(header) {
        header.untraced.fetch_add(1, Relaxed);
        return 0;
    }
    if !is_wanted || symbols::write_stubs(trampoline::entry()).is_none() {
        return 0;
    }
    thread::FIRST_STACK.store(&raw const header as u64, Relaxed);
    thread::say_hello(tables);
    stacks::open();
    // The functions used here are the same in all versions of the interface.
    offered
}

/// Registers an object.
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
    // SAFETY: the linker passes a valid map.
    match unsafe { objects::opened(tables, map) } {
        Some(number) => {
            *cookie = number as usize;
            // All objects, because any lookup by `dlsym` is an opportunity to patch objects loaded
            // earlier.
            BIND_TO | BIND_FROM
        }
        None => 0,
    }
}

/// Marks an object as unloaded.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) extern "C" fn la_objclose(cookie: &usize) -> c_uint {
    if let Some(tables) = tables::tables() {
        objects::closed(tables, *cookie as u64);
    }
    0
}

/// Called when all initially linked objects are loaded and relocated.
///
/// # Safety
/// Only for the dynamic linker.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn la_preinit(_cookie: *const usize) {
    let Some(tables) = tables::tables() else { return };
    // SAFETY: no other thread runs yet, and the objects are relocated.
    unsafe { objects::patch_all(tables) };
    stacks::find_python();
    STARTED.store(true, Relaxed);
    if tables.header.cost.load(Relaxed) == 0 {
        measure_cost();
    }
}

/// Called before objects are loaded: those loaded earlier are relocated by now.
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
        // SAFETY: the linker holds its lock, and the objects are relocated.
        unsafe { objects::patch_all(tables) };
        stacks::find_python();
    }
}

/// Called when a symbol is bound. Returns the address that the caller gets.
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
        // SAFETY: the linker holds its lock, and has relocated the objects that a program can look
        // up.
        unsafe { objects::patch_all(tables) };
    }
    // A slot of the lazy binding table is for calls; `dlsym` may look up data.
    let is_function = symbol.is_function() && (symbol.has_type() || !by_dlsym);
    let (caller, callee) = (objects::object(*caller as u64), objects::object(*callee as u64));
    let (Some(caller), Some(callee)) = (caller, callee) else { return target };
    if !is_function || name.is_null() {
        return target;
    }
    // SAFETY: the linker's names are null-terminated.
    let name = unsafe { CStr::from_ptr(name) };
    objects::bind(tables, caller, callee, name.to_bytes(), target)
}

/// Measures the overhead of a traced call, with an empty function.
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
        // SAFETY: both addresses are those of functions without arguments or results.
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
    // SAFETY: the state belongs to this thread, which made the calls above.
    if let Some(thread) = unsafe { trampoline::thread().as_mut() } {
        thread.restart_stacks();
    }
    header.cost.store((traced.saturating_sub(plain) / CALLS).max(1), Relaxed);
}
