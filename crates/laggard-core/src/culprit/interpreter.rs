//! The judges of Python's side: `interpreter`, `call-overhead` and `start-up`.

use super::{Finding, Kind, Pair, Part, Role, Slice, Unit, Verdict};

/// Calls across the border, for one call of the side, from which on crossing is the matter.
const MANY_CALLS: f64 = 50.0;

/// B imports or loads inside what is timed.
pub(super) fn judge_start_up(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is(Role::StartUp) {
        return Verdict::Innocent;
    }
    let worst = slice.worst();
    Finding::new(
        Kind::StartUp,
        worst.map(|work| work.caller.clone()).unwrap_or_default(),
        "import, load and set up before the part that is repeated",
    )
    .fact(
        "time importing and loading",
        [pair.a.ns_of(Role::StartUp), pair.b.ns_of(Role::StartUp)],
        Unit::Nanos,
        slice.b.iter().map(|work| work.samples).sum(),
    )
    .guilty()
}

/// B crosses between Python and native code again and again.
pub(super) fn judge_call_overhead(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !matches!(slice.part, Part::Functions(Role::Binding | Role::Interpreter)) {
        return Verdict::Innocent;
    }
    let crossings = |side: &super::Seen| {
        let calls = side.calls.as_ref()?;
        Some(calls.iter().filter(|call| call.is_crossing()).map(|call| call.count).sum::<f64>())
    };
    let binding = [pair.a, pair.b].map(|side| side.ns_of(Role::Binding));
    let many = match (crossings(pair.a), crossings(pair.b)) {
        (Some(a), Some(b)) => (b > MANY_CALLS && b > a * 10.0).then_some([a, b]),
        _ => None,
    };
    // Glue is glue; the interpreter's time is only if it is spent for calls.
    if many.is_none() && (slice.is(Role::Interpreter) || binding[1] < binding[0] * 1.5) {
        return Verdict::Innocent;
    }
    let glue = pair.b.work.iter().filter(|work| work.role == Role::Binding);
    let hottest = glue.max_by(|x, y| x.ns.total_cmp(&y.ns)).or(slice.worst());
    let mut finding = Finding::new(
        Kind::CallOverhead,
        hottest.map(|work| format!("{}, from {}", work.name, work.caller)).unwrap_or_default(),
        "pass the whole array in one call in place of one call for each element",
    )
    .fact(
        "time in glue between Python and native code",
        binding,
        Unit::Nanos,
        pair.b.samples(),
    );
    if let Some(counts) = many {
        finding = finding.fact("calls into native functions", counts, Unit::Count, 1);
    }
    finding.guilty()
}

/// B's time goes into Python's evaluation loop and objects.
pub(super) fn judge_interpreter(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is(Role::Interpreter) {
        return Verdict::Innocent;
    }
    let caller = pair.b.work.iter().filter(|work| work.role == Role::Interpreter);
    let caller = caller.max_by(|x, y| x.ns.total_cmp(&y.ns));
    Finding::new(
        Kind::Interpreter,
        caller.map(|work| work.caller.clone()).unwrap_or_default(),
        "move the loop into native code: one call on whole arrays",
    )
    .fact(
        "time in Python's interpreter",
        [pair.a.ns_of(Role::Interpreter), pair.b.ns_of(Role::Interpreter)],
        Unit::Nanos,
        slice.b.iter().map(|work| work.samples).sum(),
    )
    .guilty()
}
