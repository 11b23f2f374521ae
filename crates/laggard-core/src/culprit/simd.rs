//! The judges of vector code: `scalar-loop` and `narrow-simd`.

use super::partition::{last, stem};
use super::{Finding, Kind, Missing, Pair, Slice, Unit, Verdict, Work};
use crate::model::code::{Class, Mix};

/// Shares of packed arithmetic further apart than this are not chance.
const SHARE_THAT_MATTERS: f64 = 0.35;
/// Vectors this many times as long matter.
const WIDTH_THAT_MATTERS: f64 = 1.5;

/// B works on one element at a time where A works on several.
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
            format!("{library} has {names} for this: look at why it chose another")
        }
        None => {
            let bits = a.mix.widest_vector();
            let words = bits.map_or_else(String::new, |bits| format!(" of {bits} bits"));
            format!("let it work on vectors{words}, as A does: look at why the compiler did not")
        }
    };
    Finding::new(Kind::ScalarLoop, at, advice)
        .fact("packed instructions", [of_a, of_b], Unit::Share, b.samples)
        .guilty()
}

/// B works on shorter vectors than A.
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
        "build or dispatch it for the processor's longer vectors, as A does".to_owned(),
    )
    .fact("bits of a vector, on average", [of_a, of_b], Unit::Bits, b.samples)
    .guilty()
}

/// Variants for other processors of the function that takes the most, in its own library.
fn variants(slice: &Slice<'_>, pair: &Pair<'_>) -> Option<(String, String)> {
    const MOST: usize = 3;
    let worst = slice.worst()?;
    let own = last(&worst.name).to_owned();
    let mut names: Vec<String> = vec![];
    for (library, name) in &pair.b.available {
        let other = last(name).to_owned();
        if *library == worst.library
            && other != own
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

/// Instructions of the work itself on one side, weighed by time.
struct Executed {
    mix: Mix,
    samples: u64,
}

/// What the work of both sides consists of. A's may stand in other functions than this slice's:
/// where B works on its own, all work of A is what it is held against.
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

/// The share of work on several elements at once: of arithmetic on floats where there is some, of
/// all instructions where there is not.
fn packed(mix: &Mix) -> f64 {
    use crate::model::code::Mark::{PackedMath, ScalarMath};
    let math = mix.with(PackedMath) + mix.with(ScalarMath);
    // A few floats in a loop over integers say nothing.
    if math * 50 < mix.working() {
        return mix.packed_share().unwrap_or(0.0);
    }
    mix.packed_math_share().unwrap_or(0.0)
}

/// Bits of a vector instruction, on average; none when there are hardly any.
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
