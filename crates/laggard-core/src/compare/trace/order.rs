//! Alignment of kernel sequences by operation: in a typical layer, outside layers, or in a typical
//! step.

use super::amounts::{Counted, Mix};
use super::found::{Fusion, KernelPair, Relation, Segment};
use super::layers::{is_marker, typical};
use super::run::{Kernel, Run};
use super::sequence::{Match, align};
use super::words::{absorbs, words};
use crate::model::NONE;
use crate::trace::By;
use crate::trace::devices::Role;
use rustc_hash::FxHashMap;

/// A recurring kernel sequence with the mean time of each kernel.
#[derive(Clone, Debug, Default)]
struct Stretch<'a> {
    kernels: Vec<&'a Kernel>,
    /// The operator with its input shapes that launched each kernel; empty if unknown.
    shapes: Vec<&'a str>,
    mean_ns: Vec<f64>,
    /// Occurrences of exactly this sequence.
    seen: u64,
    /// Occurrences of all sequences at the same position.
    of: u64,
    /// Occurrences per step.
    repeats: f64,
}

/// Maximum number of distinct layer sequences considered.
const MOST_KINDS: usize = 4;

/// Aligns the sequences of the first trace of each side. Only steps of the most frequent kind are
/// used, because steps of other kinds run different kernels.
pub(super) fn segments(both: [&Counted; 2], mix: &Mix) -> Vec<Segment> {
    let [Some(&a), Some(&b)] = both.map(|side| side.runs.first()) else { return vec![] };
    let Some(&(kind, weight)) = mix.0.iter().max_by(|x, y| x.1.total_cmp(&y.1)) else {
        return vec![];
    };
    let (of_a, of_b) = (by_lap(both[0], kind), by_lap(both[1], kind));
    if a.layers.of.is_empty() || b.layers.of.is_empty() {
        return segment("lap", &lap(a, &of_a, weight), &lap(b, &of_b, weight))
            .into_iter()
            .collect();
    }
    let kinds = (layers(a, &of_a, weight), layers(b, &of_b, weight));
    let mut found: Vec<Segment> = pair_up(&kinds.0, &kinds.1)
        .into_iter()
        .filter_map(|(one, other)| segment("layer", one, other))
        .collect();
    let outside = |run: &'_ Run, laps: &[Vec<u32>]| -> Vec<Vec<u32>> {
        let is_outside = |at: &u32| run.layers.of[*at as usize] == NONE;
        laps.iter().map(|lap| lap.iter().copied().filter(is_outside).collect()).collect()
    };
    let (rest_a, rest_b) = (outside(a, &of_a), outside(b, &of_b));
    found.extend(segment("outside of layers", &lap(a, &rest_a, weight), &lap(b, &rest_b, weight)));
    found
}

/// Compute kernels of every measured step of one kind, in the first trace.
fn by_lap(side: &Counted, kind: u8) -> Vec<Vec<u32>> {
    let (run, slots) = (side.runs[0], &side.slots[0]);
    let is_wanted = |lap: usize| {
        let slot = slots.get(lap).copied().unwrap_or(NONE);
        side.kinds.get(slot as usize) == Some(&kind)
    };
    let mut laps = run.by_lap();
    for (lap, pieces) in laps.iter_mut().enumerate() {
        match is_wanted(lap) {
            true => pieces.retain(|&at| run.pieces[at as usize].role == Role::Compute),
            false => pieces.clear(),
        }
    }
    laps
}

/// The sequence of the typical step, averaged over all steps with exactly this sequence.
fn lap<'a>(run: &'a Run, laps: &[Vec<u32>], weight: f64) -> Stretch<'a> {
    let Some(middle) = typical(laps) else { return Stretch::default() };
    let kernel = |at: &u32| run.pieces[*at as usize].kernel;
    let is_same = |lap: &&Vec<u32>| lap.iter().map(kernel).eq(middle.iter().map(kernel));
    let same: Vec<&[u32]> = laps.iter().filter(is_same).map(Vec::as_slice).collect();
    let all = laps.iter().filter(|lap| !lap.is_empty()).count() as u64;
    let repeats = weight * same.len() as f64 / all.max(1) as f64;
    Stretch { of: all, repeats, ..average(run, &same) }
}

/// Averages the occurrences of one sequence.
fn average<'a>(run: &'a Run, occurrences: &[&[u32]]) -> Stretch<'a> {
    let Some(first) = occurrences.first() else { return Stretch::default() };
    let mut mean_ns = vec![0.0; first.len()];
    for occurrence in occurrences {
        for (sum, &at) in mean_ns.iter_mut().zip(*occurrence) {
            *sum += run.pieces[at as usize].dur as f64 / occurrences.len() as f64;
        }
    }
    let shapes = run.labels(By::Shape);
    let shape = |at: &u32| {
        shapes.map_or("", |labels| labels.names[labels.of[*at as usize] as usize].as_str())
    };
    Stretch {
        kernels: first.iter().map(|&at| run.kernel(at)).collect(),
        shapes: first.iter().map(shape).collect(),
        mean_ns,
        seen: occurrences.len() as u64,
        ..Stretch::default()
    }
}

/// Distinct layer sequences, most frequent first.
fn layers<'a>(run: &'a Run, laps: &[Vec<u32>], weight: f64) -> Vec<Stretch<'a>> {
    let mut occurrences: Vec<Vec<u32>> = vec![];
    for lap in laps {
        let mut of_layer: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for &at in lap {
            let layer = run.layers.of[at as usize];
            if layer != NONE {
                of_layer.entry(layer).or_default().push(at);
            }
        }
        let mut of_layer: Vec<_> = of_layer.into_iter().collect();
        of_layer.sort_unstable();
        occurrences.extend(of_layer.into_iter().map(|(_, pieces)| pieces));
    }
    let mut kinds: FxHashMap<Vec<u32>, Vec<&[u32]>> = FxHashMap::default();
    for pieces in &occurrences {
        let key = pieces.iter().map(|&at| run.pieces[at as usize].kernel).collect();
        kinds.entry(key).or_default().push(pieces);
    }
    let laps = laps.iter().filter(|lap| !lap.is_empty()).count().max(1) as f64;
    let all = occurrences.len() as u64;
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by(|(key, x), (other, y)| y.len().cmp(&x.len()).then_with(|| key.cmp(other)));
    kinds
        .into_iter()
        .take(MOST_KINDS)
        .map(|(_, same)| Stretch {
            of: all,
            repeats: weight * same.len() as f64 / laps,
            ..average(run, &same)
        })
        .collect()
}

/// Pairs the most similar layer sequences, starting with the most frequent of A. Each is used once.
fn pair_up<'s, 'a>(
    a: &'s [Stretch<'a>],
    b: &'s [Stretch<'a>],
) -> Vec<(&'s Stretch<'a>, &'s Stretch<'a>)> {
    let mut free: Vec<&Stretch> = b.iter().collect();
    let mut pairs = vec![];
    for one in a {
        let alike = |other: &&Stretch| {
            let found = aligned(one, other);
            let both = found.iter().filter(|place| place.a.is_some() && place.b.is_some()).count();
            let share = both as f64 / found.len().max(1) as f64;
            // Prefer the more frequent of equally similar layers.
            share + 1e-6 * other.seen as f64 / other.of.max(1) as f64
        };
        let shares: Vec<f64> = free.iter().map(alike).collect();
        let best = shares.iter().enumerate().max_by(|x, y| x.1.total_cmp(y.1));
        if let Some((place, _)) = best {
            pairs.push((one, free.remove(place)));
        }
    }
    pairs
}

/// Score of pairing two kernels.
fn score(a: &Kernel, b: &Kernel) -> Option<f32> {
    match () {
        () if a.name == b.name => Some(4.0),
        () if a.class == b.class && a.class != "Other" => Some(3.0),
        () if a.group == b.group && a.group != "Other" => Some(1.0),
        () if a.class == b.class => Some(0.5),
        () => None,
    }
}

/// Score of a kernel without a counterpart.
const ALONE: f32 = -1.0;

fn aligned(a: &Stretch, b: &Stretch) -> Vec<Match> {
    let score = |i: usize, j: usize| score(a.kernels[i], b.kernels[j]);
    align(a.kernels.len(), b.kernels.len(), ALONE, score)
}

fn segment(place: &str, a: &Stretch, b: &Stretch) -> Option<Segment> {
    /// Minimum share of occurrences with the same sequence. Below it, the sequence is not
    /// representative.
    const TYPICAL: f64 = 0.3;
    let is_typical = |of: &Stretch| of.seen as f64 >= TYPICAL * of.of as f64;
    if a.kernels.is_empty() && b.kernels.is_empty() || !is_typical(a) || !is_typical(b) {
        return None;
    }
    let groups = grouped(aligned(a, b), a, b);
    let is_layer = place == "layer";
    let projections = [a, b].map(|stretch| match is_layer {
        true => projections(stretch),
        false => vec![""; stretch.kernels.len()],
    });
    let pairs = groups.iter().map(|group| pair(group, a, b, &projections)).collect();
    Some(Segment {
        place: place.to_owned(),
        repeats: [a.repeats, b.repeats],
        typical: [(a.seen, a.of), (b.seen, b.of)],
        pairs,
    })
}

/// Indexes of kernels in A and B that perform the same operation.
#[derive(Clone, Debug, Default)]
struct Group {
    a: Vec<usize>,
    b: Vec<usize>,
}

/// Above this number of groups, unpaired kernels are not merged into their neighbours: it would
/// take too long, and a sequence this long is not a layer.
const MOST_GROUPED: usize = 8_000;

/// Groups unpaired kernels: with unpaired kernels of the other side at the same position, or with a
/// neighbour whose name includes their operation.
fn grouped(matches: Vec<Match>, a: &Stretch, b: &Stretch) -> Vec<Group> {
    let mut groups: Vec<Group> = vec![];
    let mut alone = Group::default();
    for one in matches {
        match (one.a, one.b) {
            (Some(i), Some(j)) => {
                groups.extend(settle(std::mem::take(&mut alone), a, b));
                groups.push(Group { a: vec![i], b: vec![j] });
            }
            (i, j) => {
                alone.a.extend(i);
                alone.b.extend(j);
            }
        }
    }
    groups.extend(settle(alone, a, b));
    if groups.len() > MOST_GROUPED { groups } else { absorbed(groups, a, b) }
}

/// Maximum number of kernels that are treated as one fused sequence.
const MOST_FUSED: usize = 8;

/// Pairs unpaired kernels of both sides at one position if all of them can be fused. Otherwise each
/// kernel stays unpaired.
fn settle(alone: Group, a: &Stretch, b: &Stretch) -> Vec<Group> {
    let is_fusable = |places: &[usize], of: &Stretch| {
        places.len() <= MOST_FUSED && places.iter().all(|&place| can_be_fused(of.kernels[place]))
    };
    let is_pair = !alone.a.is_empty() && !alone.b.is_empty();
    if is_pair && is_fusable(&alone.a, a) && is_fusable(&alone.b, b) {
        return vec![alone];
    }
    let of_a = alone.a.into_iter().map(|i| Group { a: vec![i], b: vec![] });
    let of_b = alone.b.into_iter().map(|j| Group { a: vec![], b: vec![j] });
    of_a.chain(of_b).collect()
}

/// Whether a kernel belongs to a light group that compilers and libraries fuse. Heavy kernels are
/// only paired by class.
fn can_be_fused(kernel: &Kernel) -> bool {
    const LIGHT: [&str; 12] = [
        "Elementwise",
        "Activation",
        "Norm",
        "Fused",
        "Reduce",
        "Softmax",
        "Copy",
        "Fill",
        "Random",
        "Rotary",
        "Quantization",
        "Loss",
    ];
    LIGHT.contains(&kernel.group.as_str())
}

/// Merges unpaired kernels of one side into a neighbouring group whose kernel on the other side
/// names their operation.
fn absorbed(groups: Vec<Group>, a: &Stretch, b: &Stretch) -> Vec<Group> {
    let mut groups: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    for place in 0..groups.len() {
        let Some(lonely) = groups[place].clone().filter(|g| g.a.is_empty() != g.b.is_empty())
        else {
            continue;
        };
        let takes = |other: &Group| match lonely.b.is_empty() {
            true => takes_in((&other.b, b), (&other.a, a), &lonely.a),
            false => takes_in((&other.a, a), (&other.b, b), &lonely.b),
        };
        // The nearest remaining neighbours with kernels of both sides.
        let is_whole = |g: &Group| !g.a.is_empty() && !g.b.is_empty();
        let before = (0..place).rev().find(|&at| groups[at].is_some());
        let after = (place + 1..groups.len()).find(|&at| groups[at].as_ref().is_some_and(is_whole));
        let taker = [before, after]
            .into_iter()
            .flatten()
            .find(|&at| groups[at].as_ref().is_some_and(|g| is_whole(g) && takes(g)));
        if let Some(at) = taker
            && let Some(group) = &mut groups[at]
        {
            group.a.extend(&lonely.a);
            group.b.extend(&lonely.b);
            group.a.sort_unstable();
            group.b.sort_unstable();
            groups[place] = None;
        }
    }
    enclosed(groups.into_iter().flatten().collect())
}

/// Merges unpaired kernels that lie between the kernels of a group into that group.
fn enclosed(mut groups: Vec<Group>) -> Vec<Group> {
    let encloses = |all: &[usize], place: usize| {
        all.first().is_some_and(|&first| first < place)
            && all.last().is_some_and(|&last| last > place)
    };
    let mut at = 0;
    while at < groups.len() {
        let home = match (&groups[at].a[..], &groups[at].b[..]) {
            (&[place], []) => groups.iter().position(|group| encloses(&group.a, place)),
            ([], &[place]) => groups.iter().position(|group| encloses(&group.b, place)),
            _ => None,
        };
        let Some(home) = home else {
            at += 1;
            continue;
        };
        let lonely = groups.remove(at);
        let home = &mut groups[if home > at { home - 1 } else { home }];
        home.a.extend(lonely.a);
        home.b.extend(lonely.b);
        home.a.sort_unstable();
        home.b.sort_unstable();
    }
    groups
}

/// Whether the name of one of the takers includes the operations of all `lonely` kernels. Takers
/// that the other side runs as well are ignored, because they do no additional work.
fn takes_in(
    (takers, of): (&[usize], &Stretch),
    (counterparts, other): (&[usize], &Stretch),
    lonely: &[usize],
) -> bool {
    let is_on_both =
        |taker: &Kernel| counterparts.iter().any(|&place| other.kernels[place].name == taker.name);
    takers.iter().map(|&place| of.kernels[place]).any(|taker| {
        let absorbs = |&place: &usize| absorbs(taker, other.kernels[place], other.shapes[place]);
        !is_on_both(taker) && lonely.iter().all(absorbs)
    })
}

fn pair(
    group: &Group,
    a: &Stretch,
    b: &Stretch,
    projections: &[Vec<&'static str>; 2],
) -> KernelPair {
    let names = |of: &[usize], stretch: &Stretch| -> Vec<String> {
        of.iter().map(|&place| stretch.kernels[place].name.clone()).collect()
    };
    let time =
        |of: &[usize], stretch: &Stretch| of.iter().map(|&place| stretch.mean_ns[place]).sum();
    let kernels = [names(&group.a, a), names(&group.b, b)];
    let relation = match (group.a.len(), group.b.len()) {
        (_, 0) => Relation::OnlyInA,
        (0, _) => Relation::OnlyInB,
        (1, 1) if kernels[0] == kernels[1] => Relation::Same,
        (x, y) if x == y => Relation::Other,
        (x, y) if x > y => Relation::Merged,
        _ => Relation::Split,
    };
    let first = group.a.first().map(|&i| a.kernels[i]).or(group.b.first().map(|&j| b.kernels[j]));
    let projection = |of: &[usize], side: usize| {
        of.iter().map(|&place| projections[side][place]).find(|word| !word.is_empty())
    };
    KernelPair {
        relation,
        class: first.map_or_else(String::new, |kernel| kernel.class.clone()),
        projection: projection(&group.a, 0)
            .or(projection(&group.b, 1))
            .unwrap_or_default()
            .to_owned(),
        kernels,
        mean_ns: [time(&group.a, a), time(&group.b, b)],
        n: [a.seen, b.seen],
    }
}

/// The transformer projection of each matrix product, inferred from its name, its position relative
/// to attention, and its shape. Empty if unknown.
fn projections(stretch: &Stretch) -> Vec<&'static str> {
    let attention = stretch.kernels.iter().position(|kernel| is_marker(kernel));
    let products: Vec<usize> = (0..stretch.kernels.len())
        .filter(|&place| stretch.kernels[place].group == "GEMM")
        .collect();
    let mut words = vec![""; stretch.kernels.len()];
    for (order, &place) in products.iter().enumerate() {
        let by_name = named_projection(&stretch.kernels[place].name);
        words[place] = by_name.unwrap_or_else(|| match attention {
            // A layer that starts with attention ends with the input projection of the next layer.
            None | Some(0) => "",
            Some(attention) if place < attention => "QKV",
            Some(attention) => {
                let is_first = order == 0 || products[order - 1] < attention;
                match (is_first, widens(stretch.shapes[place])) {
                    (true, _) => "output",
                    (false, Some(true)) => "FFN up",
                    (false, Some(false)) => "FFN down",
                    (false, None) => "",
                }
            }
        });
    }
    words
}

fn named_projection(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let touches = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let has_word = |word: &&str| {
        name.match_indices(word).any(|(at, _)| {
            !touches(name[..at].chars().next_back())
                && !touches(name[at + word.len()..].chars().next())
        })
    };
    let has = |words: &[&str]| words.iter().any(has_word);
    match () {
        () if has(&["qkv", "q_proj", "k_proj", "v_proj"]) => Some("QKV"),
        () if has(&["o_proj", "out_proj"]) => Some("output"),
        () if has(&["gate_up", "up_proj", "gate_proj", "ffn_up", "fc1"]) => Some("FFN up"),
        () if has(&["down_proj", "ffn_down", "fc2"]) => Some("FFN down"),
        () => None,
    }
}

/// Whether a matrix product has N > K, as in `aten::mm [[8944, 1024], [1024, 2816]]`.
fn widens(shape: &str) -> Option<bool> {
    let at = shape.find('[')?;
    let dims: Vec<serde_json::Value> = serde_json::from_str(&shape[at..]).ok()?;
    let matrices: Vec<Vec<u64>> = dims
        .iter()
        .filter_map(|dims| dims.as_array())
        .map(|dims| dims.iter().filter_map(serde_json::Value::as_u64).collect::<Vec<u64>>())
        .filter(|dims| dims.len() >= 2)
        .collect();
    let [.., left, right] = &matrices[..] else { return None };
    let k = *left.last()?;
    let [rows, columns] = right[right.len() - 2..] else { return None };
    // The weight may be stored transposed.
    let n = if rows == k { columns } else { rows };
    (n != k).then_some(n > k)
}

/// Finds kernel sequences that one side fuses into fewer kernels.
pub(super) fn fusions(segments: &[Segment], both: [&Counted; 2]) -> Vec<Fusion> {
    let kernels = both.map(|side| {
        let all = side.runs.first().map_or(&[][..], |run| &run.kernels);
        all.iter().map(|kernel| (kernel.name.as_str(), kernel)).collect::<ByName>()
    });
    let mut found: Vec<Fusion> = vec![];
    for segment in segments {
        for pair in &segment.pairs {
            let fused_by = match pair.relation {
                Relation::Merged => 1,
                Relation::Split => 0,
                _ => continue,
            };
            found.push(fusion(segment, pair, fused_by, &kernels));
        }
    }
    // The same sequence at several positions is one row.
    let mut places: FxHashMap<(usize, Vec<String>, Vec<String>), usize> = FxHashMap::default();
    let mut joined: Vec<Fusion> = vec![];
    for one in found {
        let key = (one.fused_by, one.fused.clone(), one.unfused.clone());
        match places.get(&key) {
            Some(&place) => {
                let other = &mut joined[place];
                other.lap_count += one.lap_count;
                other.seen += one.seen;
                other.saved_ns += one.saved_ns;
            }
            None => {
                places.insert(key, joined.len());
                joined.push(one);
            }
        }
    }
    joined.sort_by(|x, y| y.saved_ns.abs().total_cmp(&x.saved_ns.abs()));
    joined
}

/// Kernels of a trace by name.
type ByName<'a> = FxHashMap<&'a str, &'a Kernel>;

fn fusion(segment: &Segment, pair: &KernelPair, fused_by: usize, known: &[ByName; 2]) -> Fusion {
    let unfused_by = 1 - fused_by;
    let (fused, unfused) = (pair.kernels[fused_by].clone(), pair.kernels[unfused_by].clone());
    let nothing = Kernel::default();
    let kernel = |side: usize, name: &str| known[side].get(name).copied().unwrap_or(&nothing);
    let classes = [fused_by, unfused_by].map(|side| {
        pair.kernels[side].iter().map(|name| kernel(side, name).class.clone()).collect::<Vec<_>>()
    });
    let says = fused.iter().find(|name| {
        let taker = kernel(fused_by, name);
        unfused.iter().any(|part| absorbs(taker, kernel(unfused_by, part), ""))
    });
    let (seen, of) = segment.typical[unfused_by];
    let typical = seen as f64 / of.max(1) as f64;
    let (sure, evidence) = match (says, fused.len()) {
        (Some(name), _) => {
            let parts = words(name).join(", ");
            (0.9, format!("the fused kernel's name lists {parts}"))
        }
        (None, 1) => (0.7, "same position between kernels that both sides run".into()),
        (None, _) => (0.5, "one side runs fewer kernels at this position".to_owned()),
    };
    let lap_count = segment.repeats[unfused_by];
    let mean_ns = [pair.mean_ns[fused_by], pair.mean_ns[unfused_by]];
    Fusion {
        fused_by,
        fused,
        unfused,
        classes,
        lap_count,
        seen,
        mean_ns,
        saved_ns: (mean_ns[1] - mean_ns[0]) * lap_count,
        confidence: sure * typical.clamp(0.5, 1.0),
        evidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projections_by_name_and_shape() {
        assert_eq!(named_projection("gemm_qkv_bf16"), Some("QKV"));
        assert_eq!(named_projection("layers.3.mlp.down_proj"), Some("FFN down"));
        assert_eq!(named_projection("Cijk_Alik_Bljk_BBS_AFC1_AFEM1"), None);
        assert_eq!(widens("aten::mm [[8944,1024],[1024,2816]]"), Some(true));
        assert_eq!(widens("aten::linear [[4,16,4096],[1024,4096],[1024]]"), Some(false));
        assert_eq!(widens("aten::mm [[8,8],[8,8]]"), None);
        assert_eq!(widens("aten::mm"), None);
        assert_eq!(widens("aten::mm [[broken"), None);
    }
}
