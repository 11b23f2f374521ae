//! Counts the calls of Python functions, and of C functions by Python code, during calls of a side.
//!
//! The worker counts them itself, in a separate run: `sys.monitoring` or `sys.setprofile` makes calls
//! several times slower.

use super::Group;
use super::case::named;
use super::command::prepare_once;
use super::plan::{CasePlan, Plan, Runs, SidePlan};
use super::script::Script;
use super::side;
use super::trouble::Trouble;
use super::watch::Period;
use super::worker::{Statement, Worker};
use crate::error::Error;
use laggard_core::model::call_counts::CallCounts;
use laggard_symbols::{AddressSpace, Modules, demangle};
use rustc_hash::FxHashMap;

/// Maximum number of calls of the side.
const MOST_CALLS: u64 = 10;
/// A call that was not counted completely finishes without counting, so the timeout is longer than the
/// limit.
const SPARE: u32 = 3;

/// What the worker runs to count calls.
struct Counted {
    side: SidePlan,
    code: String,
    setup: String,
    prepare: String,
    /// Number of calls before counting, and maximum number of counted calls.
    calls: [u64; 2],
}

/// Counts calls of functions during up to ten calls of a statement, or one run of a Python program.
/// Counting stops after a period. Calls that take longer are not run.
pub fn count_calls(
    plan: &Plan,
    number: usize,
    case: &CasePlan,
    Period { time: limit, call_ns }: Period,
) -> Result<CallCounts, Error> {
    let _group = Group::reserve();
    let own = &plan.sides[number];
    let unavailable = |why: String| Error::Unavailable { what: "call counts", why };
    let too_slow = || {
        unavailable(format!(
            "one call of side {} takes longer than {:.1} s while calls are counted",
            own.name,
            limit.as_secs_f64()
        ))
    };
    if call_ns > limit.as_nanos() as f64 {
        return Err(too_slow());
    }
    let mut what = counted(own, case).map_err(unavailable)?;
    if 2.0 * call_ns > limit.as_nanos() as f64 {
        what.calls[0] = 0;
    }
    let mut plan = plan.clone();
    plan.limits.timeout = plan.limits.timeout.max(limit * SPARE);
    let counted = side::cpus(own).and_then(|cpus| {
        prepare_once(&plan, own, case)?;
        let mut worker = Worker::start(&plan, &what.side, cpus, &[])?;
        let Counted { code, setup, prepare, .. } = &what;
        worker.set_up(&plan, &Statement { code, setup, prepare, check: "" }, case)?;
        let text = worker.count_calls(what.calls, limit)?;
        let mut counts: CallCounts = serde_json::from_str(&text)
            .map_err(|error| Trouble::Plan(format!("sent invalid call counts: {error}")))?;
        add_symbols(&mut counts, &worker);
        Ok(counts)
    });
    let counts = counted.map_err(|trouble| named(&plan, number, trouble))?;
    if counts.calls == 0 {
        return Err(too_slow());
    }
    Ok(counts)
}

/// What the worker runs for a side, or why it cannot.
fn counted(own: &SidePlan, case: &CasePlan) -> Result<Counted, String> {
    Ok(match &own.runs {
        Runs::Statement { code, setup, prepare } => Counted {
            side: own.clone(),
            code: code.clone(),
            setup: setup.clone(),
            prepare: prepare.clone(),
            calls: [1, MOST_CALLS],
        },
        Runs::Command { words, .. } => {
            let Script { python, setup, code } = Script::of(&side::fill(words, case))?;
            let side = SidePlan { python: Some(python), ..own.clone() };
            // Imports belong to the command, so it does not run before.
            Counted { side, code: code.to_owned(), setup, prepare: String::new(), calls: [0, 1] }
        }
    })
}

/// Finds the symbols of C functions by their addresses.
fn add_symbols(counts: &mut CallCounts, worker: &Worker) {
    let Some(maps) = worker.maps() else { return };
    let (mut space, mut modules) = (AddressSpace::default(), Modules::default());
    space.refresh(&maps, &mut modules);
    let mut uses: FxHashMap<u64, u32> = FxHashMap::default();
    for function in &counts.functions {
        *uses.entry(function.address).or_default() += 1;
    }
    // Generated bindings share one dispatcher, which does not identify a function.
    for function in counts.functions.iter_mut().filter(|function| uses[&function.address] > 1) {
        function.address = 0;
    }
    for function in counts.functions.iter_mut().filter(|function| function.address != 0) {
        let Some(place) = space.find(function.address) else { continue };
        let Some(module) = place.module.and_then(|module| modules.get(module)) else { continue };
        let library = module.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let symbol = module.elf.as_ref().and_then(|elf| elf.symbol(place.svma));
        let symbol = symbol.map(|symbol| demangle(&symbol.name).into_owned());
        function.symbol = (library.unwrap_or_default(), symbol.unwrap_or_default());
    }
}
