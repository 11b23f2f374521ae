//! Data movement judges: `copy`, `conversion`, `layout`, `allocation` and `page-faults`.

use super::role::is_inside_allocator;
use super::{Finding, Kind, Missing, Pair, Part, Role, Slice, Spot, Unit, Verdict, Work};

/// B copies, converts or rearranges values that A uses in place, or allocates memory that A does not
/// allocate.
pub(super) fn judge_moving(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    let Part::Functions(role) = slice.part else { return Verdict::Innocent };
    let (kind, what, advice) = match role {
        Role::Copy => (
            Kind::Copy,
            "time in copies",
            "avoid the copy: work on the data in place, or write the result directly to its \
             destination",
        ),
        Role::Conversion => (
            Kind::Conversion,
            "time in type conversions",
            "use one type for operands and result, or convert once before the timed code",
        ),
        // If A rearranges too, rearranging is part of the computation.
        Role::Rearrangement if slice.a_ns <= slice.b_ns * 0.02 => (
            Kind::Layout,
            "time rearranging data",
            "use the same memory order for all operands, or make one contiguous copy",
        ),
        Role::Allocation => {
            (Kind::Allocation, "time in the allocator", "allocate a buffer once and reuse it")
        }
        _ => return Verdict::Innocent,
    };
    let finding = of_role(Finding::new(kind, at(slice), advice), slice, pair, role, what);
    match role {
        Role::Allocation => {
            finding.fact("page faults", [pair.a.faults, pair.b.faults], Unit::Count, pair.b.rounds)
        }
        _ => finding,
    }
    .guilty()
}

/// B touches fresh memory: page faults account for its time in the kernel.
pub(super) fn judge_page_faults(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    /// Upper bound for the cost of a page fault, including clearing and freeing the page. Measured
    /// in a virtual machine: 2 to 3 µs.
    const DEAREST_FAULT_NS: f64 = 5000.0;
    if slice.part != Part::Kernel {
        return Verdict::Innocent;
    }
    let more = pair.b.faults - pair.a.faults;
    if more * DEAREST_FAULT_NS < slice.gap_ns() {
        return Verdict::Unknown(Missing::SystemCalls);
    }
    Finding::new(
        Kind::PageFaults,
        pair.b.fault_spots.first().map(Spot::at).unwrap_or_default(),
        "reuse memory instead of touching new pages: keep a buffer, or write into an existing \
         array",
    )
    .fact("page faults", [pair.a.faults, pair.b.faults], Unit::Count, pair.b.rounds)
    .fact("time in the kernel", [pair.a.system_ns, pair.b.system_ns], Unit::Nanos, pair.b.rounds)
    .guilty()
}

/// The function and its caller. Internal functions of libc's allocator are reported
/// as malloc and free.
fn at(slice: &Slice<'_>) -> String {
    let is_internal =
        |work: &Work| work.library.starts_with("libc.so") && is_inside_allocator(&work.name);
    match slice.worst() {
        Some(work) if slice.is(Role::Allocation) && is_internal(work) => {
            let caller = match work.caller.as_str() {
                "" => String::new(),
                caller => format!(", called from {caller}"),
            };
            format!("malloc and free ({}), mostly {}{caller}", work.library, work.name)
        }
        Some(work) if !work.caller.is_empty() => {
            format!("{}, called from {}", work.name, work.caller)
        }
        Some(work) => work.at(),
        None => String::new(),
    }
}

fn of_role(
    finding: Finding,
    slice: &Slice<'_>,
    pair: &Pair<'_>,
    role: Role,
    what: &str,
) -> Finding {
    let samples = slice.b.iter().map(|work| work.samples).sum();
    let finding =
        finding.fact(what, [pair.a.ns_of(role), pair.b.ns_of(role)], Unit::Nanos, samples);
    let names: Vec<&str> = slice.b.iter().map(|work: &&Work| work.name.as_str()).collect();
    let count = |side: &super::Seen| {
        let calls = side.calls.as_ref()?;
        // libc implements these with the same code.
        const COPIES: [&str; 3] = ["memcpy", "memmove", "mempcpy"];
        let of_these = |call: &&super::Called| match role {
            Role::Copy => COPIES.contains(&call.name.as_str()),
            _ => names.iter().any(|name| name.contains(&call.name)),
        };
        Some(calls.iter().filter(of_these).map(|call| call.count).sum::<f64>())
    };
    match (count(pair.a), count(pair.b)) {
        (Some(a), Some(b)) if b > 0.0 => finding.fact("calls", [a, b], Unit::Count, 1),
        _ => finding,
    }
}
