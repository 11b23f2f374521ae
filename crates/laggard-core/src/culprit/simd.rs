//! SIMD judges: `scalar-loop` and `narrow-simd`.

use super::partition::{generation, last, stem};
use super::{Finding, Kind, Missing, Pair, Slice, Unit, Verdict, Work};
use crate::model::code::{Class, Mix};

/// Minimum difference in the share of packed arithmetic.
const SHARE_THAT_MATTERS: f64 = 0.35;
/// Minimum ratio of mean vector widths.
const WIDTH_THAT_MATTERS: f64 = 1.5;

/// B runs scalar code where A runs vector code.
pub(super) fn judge_scalar_loop(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is_work() {
        return Verdict::Innocent;
    }
    let (a, b) = match mixes(slice, pair) {
        Ok(mixes) => mixes,
        Err(verdict) => return verdict,
    };
    let [of_a, of_b] = [packed(&a.mix), packed(&b.mix)];
    if of_a - of_b < SHARE_THAT_MATTERS || of_b > 0.5 {
        return Verdict::Innocent;
    }
    let at = slice.worst().map(Work::at).unwrap_or_default();
    let advice = match variants(slice, pair) {
        Some((library, names)) => {
            format!("{library} also contains {names}: check why no such variant is selected")
        }
        None => {
            let bits = a.mix.widest_vector();
            let width = bits.map_or_else(String::new, |bits| format!(" with {bits}-bit vectors"));
            format!(
                "vectorize the loop{width}, as A does: check the compiler's vectorization report"
            )
        }
    };
    Finding::new(Kind::ScalarLoop, at, advice)
        .fact("packed instructions", [of_a, of_b], Unit::Share, b.samples)
        .guilty()
}

/// B uses narrower vectors than A.
pub(super) fn judge_narrow_simd(slice: &Slice<'_>, pair: &Pair<'_>) -> Verdict {
    if !slice.is_work() {
        return Verdict::Innocent;
    }
    let (a, b) = match mixes(slice, pair) {
        Ok(mixes) => mixes,
        Err(verdict) => return verdict,
    };
    let (Some(of_a), Some(of_b)) = (width(&a.mix), width(&b.mix)) else {
        return Verdict::Innocent;
    };
    if of_a < of_b * WIDTH_THAT_MATTERS {
        return Verdict::Innocent;
    }
    let at = slice.worst().map(Work::at).unwrap_or_default();
    Finding::new(
        Kind::NarrowSimd,
        at,
        "compile or dispatch the function for the wider vectors that A uses".to_owned(),
    )
    .fact("mean vector width in bits", [of_a, of_b], Unit::Bits, b.samples)
    .guilty()
}

/// Variants of B's hottest function for newer CPUs, in the same library.
fn variants(slice: &Slice<'_>, pair: &Pair<'_>) -> Option<(String, String)> {
    const MOST: usize = 3;
    let worst = slice.worst()?;
    let own = last(&worst.name).to_owned();
    let mut names: Vec<String> = vec![];
    for (library, name) in &pair.b.available {
        let other = last(name).to_owned();
        if *library == worst.library
            && other != own
            && is_newer(&other, &own)
            && stem(&other) == stem(&own)
            && !names.contains(&other)
        {
            names.push(other);
        }
    }
    names.sort();
    names.truncate(MOST);
    (!names.is_empty()).then(|| (worst.library.clone(), names.join(", ")))
}

/// Whether a variant needs a newer instruction set than another one. If a name does not tell, a variant
/// is assumed to be newer than scalar code.
fn is_newer(other: &str, own: &str) -> bool {
    match (generation(other), generation(own)) {
        (Some(other), Some(own)) => other > own,
        (Some(other), None) => other > 0,
        (None, own) => own.is_none_or(|own| own == 0),
    }
}

/// Instructions of the computation on one side, weighted by samples.
struct Executed {
    mix: Mix,
    samples: u64,
}

/// Instruction mixes of both sides. If the slice has no function of A, all computation of A is used.
fn mixes(slice: &Slice<'_>, pair: &Pair<'_>) -> Result<(Executed, Executed), Verdict> {
    let all: Vec<&Work>;
    let of_a = if slice.a.is_empty() {
        let is_work =
            |role| Slice { part: super::Part::Functions(role), ..slice.clone() }.is_work();
        all = pair.a.work.iter().filter(|work| is_work(work.role)).collect();
        &all
    } else {
        &slice.a
    };
    if of_a.is_empty() {
        return Err(Verdict::Innocent);
    }
    match (executed(of_a), executed(&slice.b)) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(Verdict::Unknown(Missing::Disassembly)),
    }
}

fn executed(work: &[&Work]) -> Option<Executed> {
    let mut sum = Executed { mix: Mix::default(), samples: 0 };
    let mut seen = 0.0;
    for work in work {
        if let Some(mix) = &work.mix {
            sum.mix.add(mix);
            sum.samples += work.samples;
            seen += work.ns;
        }
    }
    let all: f64 = work.iter().map(|work| work.ns).sum();
    (seen * 2.0 > all).then_some(sum)
}

/// Share of packed instructions: among floating-point arithmetic if the code has any, otherwise among
/// all instructions.
fn packed(mix: &Mix) -> f64 {
    use crate::model::code::Mark::{PackedMath, ScalarMath};
    let math = mix.with(PackedMath) + mix.with(ScalarMath);
    // A few floating-point instructions in an integer loop are not significant.
    if math * 50 < mix.working() {
        return mix.packed_share().unwrap_or(0.0);
    }
    mix.packed_math_share().unwrap_or(0.0)
}

/// Mean width of vector instructions in bits; `None` if there are too few.
fn width(mix: &Mix) -> Option<f64> {
    let bits = [
        (Class::Sse, 128.0),
        (Class::Avx128, 128.0),
        (Class::Avx256, 256.0),
        (Class::Evex, 256.0),
        (Class::Avx512, 512.0),
    ];
    let packed = mix.packed();
    if packed * 20 < mix.working() {
        return None;
    }
    Some(bits.iter().map(|&(class, bits)| bits * mix.of(class) as f64).sum::<f64>() / packed as f64)
}
