//! Comparison of two traces of the same workload.
//!
//! The input is a [`Run`] per trace, the result a [`TraceComparison`]. All quantities are per step,
//! the unit of work that a trace repeats. The time of a step is device time. Each moment is
//! attributed to the operations that occupy the device, or to a cause of idle time, so that the
//! parts add up. Traces of different workloads cannot be compared: only the number of steps and the
//! mix of their kinds are normalized.

mod amounts;
mod counted;
mod cycle;
pub mod found;
mod laps;
mod layers;
mod order;
mod run;
mod sequence;
mod warnings;
mod why;
mod words;

pub use run::Run;

use crate::model::NONE;
use crate::stats::mixed::{Kind, Middle, estimate_mixed};
use crate::trace::By;
use crate::trace::devices::{Cause, Role};
use amounts::{Counted, Mix, Question, Value, findings, of_range, widened};
use counted::{count, mix};
use found::{
    Finding, HostFinding, HostUnit, KernelUse, LayerRow, Layers, RankPair, Side, Table,
    TraceComparison, TraceFacts, TypeCount, Verdict,
};
use rustc_hash::FxHashMap;
use sequence::align;
use std::thread;

/// One side: a trace or the ranks of a job.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Label given by the user.
    pub label: &'a str,
    /// Its traces.
    pub runs: &'a [Run],
}

/// Compares two sides. A is the reference; `extra` adds one more table.
pub fn compare(a: Given, b: Given, extra: Option<By>) -> TraceComparison {
    let markers = |given: Given| given.runs.iter().map(|run| run.laps.marker).collect::<Vec<_>>();
    let mut all = [markers(a), markers(b)].concat();
    all.dedup();
    if all.len() > 1 {
        // Different units of work cannot be compared, so the traces are compared as a whole.
        let whole = |given: Given| given.runs.iter().map(Run::as_a_whole).collect::<Vec<Run>>();
        let (of_a, of_b) = (whole(a), whole(b));
        let mut found = compare(Given { runs: &of_a, ..a }, Given { runs: &of_b, ..b }, extra);
        found.warnings.retain(|warning| warning.code != warnings::NO_LAPS);
        found.warnings.push(warnings::laps_differ([a, b].map(markers)));
        return found;
    }
    let (mix, sides) = &counted(a, b);
    let both = [&sides[0], &sides[1]];
    let whole = whole(both, mix);
    let mut time = time(both, mix);
    let usual = [By::Class, By::Phase, By::Shape, By::Kernel, By::Op, By::Python];
    let wanted = usual.into_iter().chain(extra.filter(|by| !usual.contains(by)));
    let mut tables: Vec<Table> = thread::scope(|scope| {
        let making: Vec<_> = wanted.map(|by| scope.spawn(move || table(both, mix, by))).collect();
        let made = |made: thread::ScopedJoinHandle<Table>| {
            made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        making.into_iter().map(made).collect()
    });
    let mut layers = layers(both, mix);
    let rows = time
        .iter_mut()
        .chain(tables.iter_mut().flat_map(|table| &mut table.rows))
        .chain(layers.rows.iter_mut().map(|row| &mut row.finding));
    for row in rows {
        row.share = match whole.gap_ns.middle {
            0.0 => 0.0,
            gap => row.gap_ns.middle / gap,
        };
    }
    let aligned = order::segments(both, mix);
    let fusions = order::fusions(&aligned, both);
    let host = host(both, mix);
    let mut found = TraceComparison {
        types: types(both, mix),
        ranks: ranks(a, b),
        sides: [side(a, &sides[0]), side(b, &sides[1])],
        laps_ns: both.map(laps_ns),
        whole,
        time,
        tables,
        host,
        layers,
        aligned,
        fusions,
        ..TraceComparison::default()
    };
    found.judgement = why::judge(&found, both, mix);
    found.warnings = warnings::warnings(&found, both, mix);
    found
}

fn counted<'a>(a: Given<'a>, b: Given<'a>) -> (Mix, [Counted<'a>; 2]) {
    let (mut of_a, mut of_b) = (count(a.runs), count(b.runs));
    let mix = mix(&mut of_a, &mut of_b);
    (mix, [of_a, of_b])
}

/// Device time of every measured step.
fn laps_ns(side: &Counted) -> Vec<f64> {
    let mut laps = vec![0.0; side.laps()];
    for (number, run) in side.runs.iter().enumerate() {
        for (at, piece) in run.pieces.iter().enumerate() {
            if let Some(slot) = side.slot(number, at) {
                laps[slot] += piece.own_time() as f64;
            }
        }
    }
    laps
}

/// Device time per step.
fn whole(both: [&Counted; 2], mix: &Mix) -> Finding {
    let all =
        Question { names: vec!["time".to_owned()], of: Box::new(|_, _, _| 0), value: Value::Whole };
    let found = findings(both, mix, &all).into_iter().next();
    found.map_or_else(Finding::default, |whole| Finding { share: 1.0, ..whole })
}

/// Device time per step by activity and cause of idle time.
fn time(both: [&Counted; 2], mix: &Mix) -> Vec<Finding> {
    let names = ["compute", "communication that nothing hides", "copies that nothing hides"];
    let works = Question {
        names: names.map(str::to_owned).to_vec(),
        of: Box::new(|side, run, at| match both[side].runs[run].pieces[at].role {
            Role::Compute => 0,
            Role::Communication => 1,
            Role::Copy => 2,
        }),
        value: Value::Exposed,
    };
    let mut rows = findings(both, mix, &works);
    rows.extend(findings(both, mix, &idle(both)));
    rows.sort_by(|x, y| y.gap_ns.middle.abs().total_cmp(&x.gap_ns.middle.abs()));
    rows
}

/// Idle time by cause.
fn idle<'a>(both: [&'a Counted<'a>; 2]) -> Question<'a> {
    let names = [why::IDLE_FOR_HOST, why::IDLE_AFTER_WAIT, why::IDLE_OTHERWISE];
    Question {
        names: names.map(str::to_owned).to_vec(),
        of: Box::new(move |side, run, at| {
            let piece = &both[side].runs[run].pieces[at];
            match piece.cause {
                _ if piece.gap == 0 => NONE,
                Cause::HostBound => 0,
                Cause::Synchronisation => 1,
                Cause::Other => 2,
            }
        }),
        value: Value::Idle,
    }
}

/// Names shared by both sides, and the mapping from side, run and its own index to a shared index.
struct Shared {
    names: Vec<String>,
    of: [Vec<Vec<u32>>; 2],
}

impl Shared {
    fn new(both: [&Counted; 2], names_of: impl Fn(&Run) -> Vec<&str>) -> Shared {
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let mut names = vec![];
        let of = both.map(|side| {
            let translate = |run: &&Run| {
                let number = |name: &str| match numbers.get(name) {
                    Some(&number) => number,
                    None => {
                        let number = names.len() as u32;
                        numbers.insert(name.to_owned(), number);
                        names.push(name.to_owned());
                        number
                    }
                };
                names_of(run).into_iter().map(number).collect::<Vec<u32>>()
            };
            side.runs.iter().map(translate).collect::<Vec<_>>()
        });
        Shared { names, of }
    }
}

/// Device time by one key.
fn table(both: [&Counted; 2], mix: &Mix, by: By) -> Table {
    let shared = Shared::new(both, |run| {
        run.labels(by)
            .map_or_else(Vec::new, |labels| labels.names.iter().map(String::as_str).collect())
    });
    let of = |side: usize, run: usize, at: usize| {
        let Some(labels) = both[side].runs[run].labels(by) else { return NONE };
        shared.of[side][run][labels.of[at] as usize]
    };
    let question = Question { names: shared.names.clone(), of: Box::new(of), value: Value::Time };
    let mut rows = findings(both, mix, &question);
    let places: FxHashMap<String, usize> =
        rows.iter().enumerate().map(|(place, row)| (row.name.clone(), place)).collect();
    for (side, counted) in both.iter().enumerate() {
        for (number, run) in counted.runs.iter().enumerate() {
            let Some(labels) = run.labels(by) else { continue };
            let place_of: Vec<Option<usize>> =
                labels.names.iter().map(|name| places.get(name).copied()).collect();
            for (place, rate) in place_of.iter().zip(&labels.rates) {
                if let (Some(place), Some(rate), 0) = (place, rate, number) {
                    rows[*place].rate[side] = Some(*rate);
                }
            }
            details(run, side, by, labels, &place_of, &mut rows);
        }
    }
    Table { by, rows }
}

/// Maximum number of kernels per row.
const MOST_KERNELS: usize = 10;

/// Fills in the kernels of each row, and the operator and line that launched most of its time.
fn details(
    run: &Run,
    side: usize,
    by: By,
    labels: &run::Labels,
    places: &[Option<usize>],
    rows: &mut [Finding],
) {
    let most = |other: By| {
        let Some(of) = run.labels(other) else { return vec![] };
        let mut sums: FxHashMap<(u32, u32), (u64, i64)> = FxHashMap::default();
        for (piece, key) in run.pieces.iter().zip(labels.of.iter().zip(&of.of)) {
            let sum = sums.entry((*key.0, *key.1)).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(piece.dur));
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|&(key, (count, time))| (std::cmp::Reverse((time, count)), key));
        sums.into_iter()
            .filter_map(|((row, other), sum)| {
                Some((places[row as usize]?, of.names[other as usize].clone(), sum))
            })
            .collect::<Vec<_>>()
    };
    match by {
        By::Class | By::Shape => {
            for (place, name, (count, total_ns)) in most(By::Kernel) {
                let kernels = &mut rows[place].kernels[side];
                if let Some(known) = kernels.iter_mut().find(|known| known.name == name) {
                    known.count += count;
                    known.total_ns = known.total_ns.saturating_add(total_ns);
                } else if kernels.len() < MOST_KERNELS {
                    kernels.push(KernelUse { name, count, total_ns });
                }
            }
        }
        By::Kernel => {
            for (place, name, _) in most(By::Geometry) {
                let known = &mut rows[place].geometry[side];
                if known.is_empty() && !name.contains('?') {
                    *known = name;
                }
            }
        }
        _ => {}
    }
    if matches!(by, By::Class | By::Kernel) {
        for (place, name, _) in most(By::Op) {
            let known = &mut rows[place].ops[side];
            if known.is_empty() && !name.starts_with('(') {
                *known = name;
            }
        }
        for (place, name, _) in most(By::Python) {
            let known = &mut rows[place].lines[side];
            if known.is_empty() && !name.starts_with('(') {
                *known = name;
            }
        }
    }
    if matches!(by, By::Kernel | By::Shape | By::Op | By::Python) {
        for (place, name, _) in most(By::Class) {
            if rows[place].class.is_empty() {
                rows[place].class = name;
            }
        }
    }
}

/// Layers of both sides, aligned by similarity in model order.
fn layers(both: [&Counted; 2], mix: &Mix) -> Layers {
    let [Some(a), Some(b)] = [both[0].runs.first(), both[1].runs.first()] else {
        return Layers::default();
    };
    let sides = [a, b];
    let counts = sides.map(|run| run.layers.names.len());
    let profiles = sides.map(|run| classes_of_layers(run));
    let alike = |i: usize, j: usize| {
        let similarity = cosine(&profiles[0][i], &profiles[1][j]);
        // Prefer layers near the diagonal among equally similar ones.
        let apart = (i as f32 - j as f32).abs() / (counts[0] + counts[1]) as f32;
        (similarity >= 0.5).then_some(similarity - 0.01 * apart)
    };
    let matches = match counts.contains(&0) {
        true => align(counts[0], counts[1], -0.25, |_, _| None),
        false => align(counts[0], counts[1], -0.25, alike),
    };
    let mut row_of = counts.map(|count| vec![NONE; count]);
    let mut names = vec![];
    for (row, found) in matches.iter().enumerate() {
        let places = [found.a, found.b];
        for (side, place) in places.into_iter().enumerate() {
            if let Some(place) = place {
                row_of[side][place] = row as u32;
            }
        }
        let name = |side: usize| places[side].map(|place| sides[side].layers.names[place].clone());
        names.push(name(0).or(name(1)).unwrap_or_default());
    }
    // Rows are identified by number because module names may repeat.
    let question = Question {
        names: (0..names.len()).map(|row| row.to_string()).collect(),
        of: Box::new(|side, run, at| {
            let layer = both[side].runs[run].layers.of.get(at).copied().unwrap_or(NONE);
            row_of[side].get(layer as usize).copied().unwrap_or(NONE)
        }),
        value: Value::Time,
    };
    let mut rows: Vec<(usize, LayerRow)> = findings(both, mix, &question)
        .into_iter()
        .filter_map(|mut finding| {
            let row: usize = finding.name.parse().ok()?;
            finding.name.clone_from(&names[row]);
            let numbers = [matches[row].a, matches[row].b].map(|place| place.map(|n| n as u32));
            Some((row, LayerRow { numbers, finding }))
        })
        .collect();
    rows.sort_by_key(|(row, _)| *row);
    Layers {
        found_by: sides.map(|run| run.layers.by.clone()),
        counts: counts.map(|count| count as u64),
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    }
}

/// Number of device operations by class, for each layer.
fn classes_of_layers(run: &Run) -> Vec<FxHashMap<&str, f32>> {
    let mut layers = vec![FxHashMap::default(); run.layers.names.len()];
    for (at, &layer) in run.layers.of.iter().enumerate() {
        if let Some(classes) = layers.get_mut(layer as usize) {
            *classes.entry(run.kernel(at as u32).class.as_str()).or_default() += 1.0;
        }
    }
    layers
}

fn cosine(a: &FxHashMap<&str, f32>, b: &FxHashMap<&str, f32>) -> f32 {
    let length = |of: &FxHashMap<&str, f32>| of.values().map(|n| n * n).sum::<f32>().sqrt();
    let product: f32 = a.iter().map(|(class, n)| n * b.get(class).copied().unwrap_or(0.0)).sum();
    product / (length(a) * length(b)).max(f32::MIN_POSITIVE)
}

/// Metrics of the host per step.
fn host(both: [&Counted; 2], mix: &Mix) -> Vec<HostFinding> {
    // By side and measured step; empty if a trace lacks the data.
    let per_lap = |of: fn(&Run, usize) -> Option<f64>| {
        both.map(|side| {
            let laps = side.runs.iter().zip(&side.slots).flat_map(|(run, slots)| {
                let counted = slots.iter().enumerate().filter(|(_, slot)| **slot != NONE);
                counted.map(|(lap, _)| of(run, lap)).collect::<Vec<_>>()
            });
            laps.collect::<Option<Vec<f64>>>().unwrap_or_default()
        })
    };
    let row = |name, unit, of| host_row(name, unit, both, mix, per_lap(of));
    let mut rows = vec![
        row("on the host", HostUnit::Nanos, |run, lap| {
            run.laps.all[lap].host_ns.map(|ns| ns as f64)
        }),
        row("launches", HostUnit::Count, |run, lap| {
            run.host.get(lap).filter(|lap| lap.launches > 0).map(|lap| lap.launches as f64)
        }),
        row("in launch calls", HostUnit::Nanos, |run, lap| {
            run.host.get(lap).filter(|lap| lap.launches > 0).map(|lap| lap.call_ns as f64)
        }),
    ];
    let of_summary = |name: &str, unit, of: fn(&Run) -> (u64, f64)| {
        let values = both.map(|side| {
            let found = side.runs.iter().map(|run| of(run)).filter(|(n, _)| *n > 0);
            let (n, sum) = found
                .fold((0, 0.0), |(n, sum), (more, value)| (n + more, sum + value * more as f64));
            (n, (n > 0).then(|| sum / n as f64))
        });
        let ratio = values[0].1.zip(values[1].1).filter(|(a, b)| *a > 0.0 && *b > 0.0);
        HostFinding {
            name: name.to_owned(),
            unit,
            values: values.map(|(_, value)| value),
            n: values.map(|(n, _)| n),
            ratio: ratio.map(|(a, b)| b / a),
            ..HostFinding::default()
        }
    };
    rows.push(of_summary("a launch call, median", HostUnit::Nanos, |run| {
        (run.summary.launches.call_ns.n, run.summary.launches.call_ns.median as f64)
    }));
    rows.push(of_summary("from call to start on an idle stream, median", HostUnit::Nanos, |run| {
        let latency = &run.summary.launches.idle_latency_ns;
        (latency.n, latency.median as f64)
    }));
    rows.push(of_summary("launches that queue behind other work", HostUnit::Share, |run| {
        let launches = &run.summary.launches;
        let n = launches.latency_ns.n;
        (n, launches.queued as f64 / n.max(1) as f64)
    }));
    rows.retain(|row| row.values.iter().any(Option::is_some));
    rows
}

fn host_row(
    name: &str,
    unit: HostUnit,
    sides: [&Counted; 2],
    mix: &Mix,
    [a, b]: [Vec<f64>; 2],
) -> HostFinding {
    let split = |side: usize, values: &[f64]| match values.is_empty() {
        true => vec![],
        false => mix.split(sides[side], values),
    };
    let by_kind = [split(0, &a), split(1, &b)];
    let kinds = by_kind.each_ref().map(|kinds| {
        kinds.iter().map(|(weight, samples)| Kind { weight: *weight, samples }).collect::<Vec<_>>()
    });
    let values =
        kinds.each_ref().map(|kinds| (!kinds.is_empty()).then(|| Middle::Median.of(kinds)));
    let estimate = estimate_mixed(&kinds[0], &kinds[1], Middle::Median, 1000, 1);
    let range = estimate.map(|found| widened(found.ratio));
    let both = values[0].zip(values[1]).filter(|(a, b)| *a > 0.0 && *b > 0.0);
    HostFinding {
        name: name.to_owned(),
        unit,
        values,
        n: [a.len() as u64, b.len() as u64],
        ratio: both.map(|(a, b)| b / a),
        ratio_range: range,
        verdict: match (range, estimate) {
            (Some(range), Some(estimate)) => of_range(range, estimate.p),
            _ => Verdict::SingleSample,
        },
    }
}

/// Launches and time by kernel type.
fn types(both: [&Counted; 2], mix: &Mix) -> Vec<TypeCount> {
    let mut types: FxHashMap<&str, TypeCount> = FxHashMap::default();
    for (side, counted) in both.iter().enumerate() {
        let weights = mix.weights(counted);
        for (number, run) in counted.runs.iter().enumerate() {
            for (at, piece) in run.pieces.iter().enumerate() {
                let Some(slot) = counted.slot(number, at) else { continue };
                let kind = types.entry(&run.kernels[piece.kernel as usize].group).or_default();
                kind.lap_count[side] += weights[slot];
                kind.lap_ns[side] += piece.dur as f64 * weights[slot];
            }
        }
    }
    let mut types: Vec<TypeCount> =
        types.into_iter().map(|(name, kind)| TypeCount { name: name.to_owned(), ..kind }).collect();
    types.sort_by(|x, y| {
        let most = |of: &TypeCount| of.lap_ns[0].max(of.lap_ns[1]);
        most(y).total_cmp(&most(x)).then_with(|| x.name.cmp(&y.name))
    });
    types
}

/// Compares each rank separately.
fn ranks(a: Given, b: Given) -> Vec<RankPair> {
    if a.runs.len() < 2 && b.runs.len() < 2 {
        return vec![];
    }
    let number = |runs: &[Run], at: usize| runs[at].summary.about.rank.unwrap_or(at as i64);
    let numbers = |runs: &[Run]| (0..runs.len()).map(|at| number(runs, at)).collect::<Vec<i64>>();
    let (of_a, of_b) = (numbers(a.runs), numbers(b.runs));
    let mut all: Vec<i64> = of_a.iter().chain(&of_b).copied().collect();
    all.sort_unstable();
    all.dedup();
    let one = |rank: i64| {
        let find = |of: &[i64]| of.iter().position(|own| *own == rank).map(|at| at..at + 1);
        let (in_a, in_b) = (find(&of_a), find(&of_b));
        let path = |at: &Option<std::ops::Range<usize>>, runs: &[Run]| {
            at.clone().map_or_else(String::new, |at| runs[at.start].path.clone())
        };
        let paths = [path(&in_a, a.runs), path(&in_b, b.runs)];
        let (Some(in_a), Some(in_b)) = (in_a, in_b) else {
            let verdict = match paths[0].is_empty() {
                true => Verdict::OnlyInB,
                false => Verdict::OnlyInA,
            };
            let whole = Finding { verdict, ..Finding::default() };
            return RankPair { rank, paths, whole, ..RankPair::default() };
        };
        let (mix, sides) =
            counted(Given { runs: &a.runs[in_a], ..a }, Given { runs: &b.runs[in_b], ..b });
        let both = [&sides[0], &sides[1]];
        let whole = whole(both, &mix);
        let largest = time(both, &mix).first().map(|row| (row.name.clone(), row.gap_ns.middle));
        RankPair { rank, paths, whole, largest }
    };
    all.into_iter().map(one).collect()
}

fn side(given: Given, counted: &Counted) -> Side {
    let first = given.runs.first();
    let sum = |of: fn(&Run) -> i64| given.runs.iter().map(of).fold(0i64, i64::saturating_add);
    let mut kinds: Vec<(String, u64)> = vec![];
    for kind in &counted.kinds {
        let name = match kind {
            0 => String::new(),
            kind => first.map_or_else(String::new, |run| run.phases.label(*kind).to_owned()),
        };
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((name, 1)),
        }
    }
    let outside = |run: &Run| {
        let rows = run.pieces.iter().zip(&run.laps.of_row).filter(|(_, lap)| **lap == NONE);
        rows.fold((0u64, 0i64), |(n, time), (piece, _)| (n + 1, time.saturating_add(piece.dur)))
    };
    Side {
        label: given.label.to_owned(),
        traces: given
            .runs
            .iter()
            .map(|run| TraceFacts { path: run.path.clone(), summary: run.summary.clone() })
            .collect(),
        marker: first.map_or_else(Default::default, |run| run.laps.marker),
        kinds,
        laps: counted.laps() as u64,
        warm_up: counted.warm_up,
        partial: counted.partial,
        outside: given
            .runs
            .iter()
            .map(outside)
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1.saturating_add(one.1))),
        span_ns: sum(|run| {
            let spans = run.summary.devices.iter().map(|device| device.span_ns);
            spans.fold(0, i64::saturating_add)
        }),
        architecture: first.map_or_else(Default::default, |run| run.architecture),
    }
}
