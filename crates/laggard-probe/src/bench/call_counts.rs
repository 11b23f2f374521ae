//! Counts the calls of Python functions, and of C functions by Python code, during calls of a side.
//!
//! The worker counts them itself, in a separate run: `sys.monitoring` or `sys.setprofile` makes calls
//! several times slower.

use super::Group;
use super::case::named;
use super::plan::{CasePlan, Plan, Runs};
use super::trouble::Trouble;
use super::worker::Worker;
use crate::error::Error;
use laggard_core::model::call_counts::CallCounts;
use laggard_symbols::{AddressSpace, Modules, demangle};
use rustc_hash::FxHashMap;
use std::time::Duration;

/// Maximum number of calls of the side.
const MOST_CALLS: u64 = 10;
/// A call that was not counted completely finishes without counting, so the timeout is longer than the
/// limit.
const SPARE: u32 = 3;

/// Counts calls of functions during up to ten calls of a statement. Counting stops after `limit`.
pub fn count_calls(
    plan: &Plan,
    side: usize,
    case: &CasePlan,
    limit: Duration,
) -> Result<CallCounts, Error> {
    let _group = Group::reserve();
    let own = &plan.sides[side];
    let unavailable = |why: String| Error::Unavailable { what: "call counts", why };
    let Runs::Statement { code, setup } = &own.runs else {
        return Err(unavailable("calls are counted for Python statements only".into()));
    };
    let mut plan = plan.clone();
    plan.limits.timeout = plan.limits.timeout.max(limit * SPARE);
    let counted = super::side::cpus(own).and_then(|cpus| {
        let mut worker = Worker::start(&plan, own, cpus, &[])?;
        worker.set_up(&plan, code, setup, case)?;
        let text = worker.count_calls(MOST_CALLS, limit)?;
        let mut counts: CallCounts = serde_json::from_str(&text)
            .map_err(|error| Trouble::Plan(format!("sent invalid call counts: {error}")))?;
        add_symbols(&mut counts, &worker);
        Ok(counts)
    });
    let counts = counted.map_err(|trouble| named(&plan, side, trouble))?;
    if counts.calls == 0 {
        return Err(unavailable(format!(
            "one call of side {} takes longer than {:.1} s while calls are counted",
            own.name,
            limit.as_secs_f64()
        )));
    }
    Ok(counts)
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
