//! Linear algebra judges: `old-kernel`, `library-not-used` and `other-library`.

use super::{Finding, Kind, Pair, Role, Slice, Unit, Verdict, Work};
use crate::profile::kernels::{FAMILIES, family};

/// B's BLAS runs kernels for an older CPU generation than A's.
pub(super) fn judge_old_kernel(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is(Role::Blas) {
        return Verdict::Innocent;
    }
    let newest = |work: &[Work]| work.iter().filter_map(|work| family(&work.name)).max();
    let (Some(a), Some(b)) = (newest(&pair.a.work), newest(&pair.b.work)) else {
        return Verdict::Innocent;
    };
    // Families of the same generation share kernels.
    let generation = |at: usize| match FAMILIES[at] {
        "HASWELL" | "ZEN" => FAMILIES.len(),
        "SKYLAKEX" | "COOPERLAKE" => FAMILIES.len() + 1,
        _ => at,
    };
    if generation(b) >= generation(a) {
        return Verdict::Innocent;
    }
    Finding::new(
        Kind::OldKernel,
        slice.worst().map(Work::at).unwrap_or_default(),
        format!(
            "use the {} kernels of the BLAS library: check OPENBLAS_CORETYPE and whether the \
             library was built for an older CPU",
            FAMILIES[a]
        ),
    )
    .fact(
        &format!("time in BLAS (A: {}, B: {})", FAMILIES[a], FAMILIES[b]),
        [pair.a.ns_of(Role::Blas), pair.b.ns_of(Role::Blas)],
        Unit::Nanos,
        slice.b.iter().map(|work| work.samples).sum(),
    )
    .guilty()
}

/// B uses a different BLAS library than A.
pub(super) fn judge_other_library(slice: &Slice<'_>, _: &Pair<'_>) -> Verdict {
    if !slice.is(Role::Blas) {
        return Verdict::Innocent;
    }
    let (Some(best), Some(worst)) = (slice.best(), slice.worst()) else { return Verdict::Innocent };
    // Python packages append a hash and a version to the library name.
    let stem = |library: &str| {
        let end = library.find(|c: char| c == '.' || c == '-' || c.is_ascii_digit());
        library[..end.unwrap_or(library.len())].to_owned()
    };
    if stem(&best.library) == stem(&worst.library) {
        return Verdict::Innocent;
    }
    Finding::new(
        Kind::OtherLibrary,
        worst.at(),
        format!("link B with {}, the library that A uses, or tune {}", best.library, worst.library),
    )
    .fact(
        &format!("time in BLAS (A: {}, B: {})", best.library, worst.library),
        [slice.a_ns, slice.b_ns],
        Unit::Nanos,
        worst.samples,
    )
    .guilty()
}

/// A calls a BLAS library where B runs its own code.
pub(super) fn judge_library_not_used(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    /// Minimum share of A's CPU time in BLAS.
    const SHARE_THAT_MATTERS: f64 = 0.3;
    if !matches!(slice.part, super::Part::Functions(Role::Compute | Role::Interpreter)) {
        return Verdict::Innocent;
    }
    let [of_a, of_b] = [pair.a, pair.b].map(|side| side.ns_of(Role::Blas) / side.user_ns.max(1.0));
    if of_a < SHARE_THAT_MATTERS || of_b > of_a / 10.0 {
        return Verdict::Innocent;
    }
    let library = pair.a.work.iter().find(|work| work.role == Role::Blas);
    Finding::new(
        Kind::LibraryNotUsed,
        slice.worst().map(Work::at).unwrap_or_default(),
        format!(
            "call a BLAS library, as A does{}",
            library
                .map_or_else(String::new, |work| format!(" ({} in {})", work.name, work.library))
        ),
    )
    .fact("share of CPU time in BLAS", [of_a, of_b], Unit::Share, pair.b.samples())
    .guilty()
}
