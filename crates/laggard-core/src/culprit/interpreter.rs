//! Python judges: `interpreter`, `call-overhead` and `start-up`.

use super::python::{PythonPart, is_object, objects_ns, python_part};
use super::{Finding, Kind, Pair, Part, Role, Slice, Unit, Verdict};

/// Minimum number of calls from Python into native code, per call of the side, for `call-overhead`.
const MANY_CALLS: f64 = 50.0;

/// B imports or loads libraries inside the timed code.
pub(super) fn judge_start_up(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is(Role::StartUp) {
        return Verdict::Innocent;
    }
    let worst = slice.worst();
    Finding::new(
        Kind::StartUp,
        worst.map(|work| work.caller.clone()).unwrap_or_default(),
        "move imports, library loading and set-up out of the timed code",
    )
    .fact(
        "time importing and loading",
        [pair.a.ns_of(Role::StartUp), pair.b.ns_of(Role::StartUp)],
        Unit::Nanos,
        slice.b.iter().map(|work| work.samples).sum(),
    )
    .guilty()
}

/// B makes many calls between Python and native code.
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
    // Interpreter time counts as call overhead only if B makes many native calls.
    if many.is_none() && (slice.is(Role::Interpreter) || binding[1] < binding[0] * 1.5) {
        return Verdict::Innocent;
    }
    let glue = pair.b.work.iter().filter(|work| work.role == Role::Binding);
    let hottest = glue.max_by(|x, y| x.ns.total_cmp(&y.ns)).or(slice.worst());
    let mut finding = Finding::new(
        Kind::CallOverhead,
        hottest
            .map(|work| format!("{}, called from {}", work.name, work.caller))
            .unwrap_or_default(),
        "pass the whole array in one call instead of making one call per element",
    )
    .fact(
        "time in binding code between Python and native code",
        binding,
        Unit::Nanos,
        pair.b.samples(),
    );
    if let Some(counts) = many {
        finding = finding.fact("calls into native functions", counts, Unit::Count, 1);
    }
    finding.guilty()
}

/// Whether B spends more time on objects, but hardly more on running Python code.
fn allocates_mostly(pair: &Pair<'_>) -> bool {
    const HARDLY: f64 = 0.25;
    let more = |is_part: fn(PythonPart) -> bool| {
        let [a, b] = [pair.a, pair.b].map(|side| {
            let works = side.work.iter().filter(|work| work.role == Role::Interpreter);
            let of_part = works.filter(|work| is_part(python_part(&work.name, &work.place)));
            of_part.map(|work| work.ns).sum::<f64>()
        });
        b - a
    };
    let running = more(|part| !matches!(part, PythonPart::Objects | PythonPart::Builtin));
    running <= HARDLY * more(|part| part == PythonPart::Objects)
}

/// B spends its time in Python's evaluation loop and object handling.
pub(super) fn judge_interpreter(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is(Role::Interpreter) {
        return Verdict::Innocent;
    }
    let objects = [objects_ns(&slice.a), objects_ns(&slice.b)];
    let gap = slice.b_ns - slice.a_ns;
    // Code that runs Python functions also creates objects; this is not a cause of its own.
    if objects[1] - objects[0] >= gap / 2.0 && allocates_mostly(pair) {
        let worst = slice.b.iter().filter(|work| is_object(work));
        let worst = worst.max_by(|x, y| x.ns.total_cmp(&y.ns));
        let advice = "create fewer objects in the loop, or check which allocator Python uses";
        return Finding::new(
            Kind::Allocation,
            worst.map(|work| work.at()).unwrap_or_default(),
            advice,
        )
        .fact("time in Python's allocator", objects, Unit::Nanos, pair.b.samples())
        .guilty();
    }
    let caller = pair.b.work.iter().filter(|work| work.role == Role::Interpreter);
    let caller = caller.max_by(|x, y| x.ns.total_cmp(&y.ns));
    Finding::new(
        Kind::Interpreter,
        caller.map(|work| work.caller.clone()).unwrap_or_default(),
        "move the loop into native code: a built-in function, or one call on whole arrays",
    )
    .fact(
        "time in the Python interpreter",
        [pair.a.ns_of(Role::Interpreter), pair.b.ns_of(Role::Interpreter)],
        Unit::Nanos,
        slice.b.iter().map(|work| work.samples).sum(),
    )
    .guilty()
}
