//! Attributes the lag of a step to causes.
//!
//! The lag is split once, by device activity and by cause of idle time, and each slice has one
//! cause. Fused sequences are subtracted first. The remaining kernels of a class are split into
//! kernels that both sides run and kernels that only one side runs. The difference of each part is
//! due to the number of launches or to their durations. The remainder of the split and
//! insignificant slices are not explained.

use super::amounts::{Counted, Mix, Question, Value, findings};
use super::found::{Finding, Fusion, Marker, TraceComparison, Verdict, row_label};
use crate::culprit::{self, Culprit, Judgement, Kind, SMALLEST_SHARE, Unit};
use crate::model::NONE;
use crate::trace::By;
use crate::trace::devices::{Cause, Role};
use rustc_hash::{FxHashMap, FxHashSet};

/// Row names of idle time, as in JSON; see [`row_label`] for their labels.
pub(super) const IDLE_FOR_HOST: &str = "idle, for the host's launch";
pub(super) const IDLE_AFTER_WAIT: &str = "idle, after the host waited";
pub(super) const IDLE_OTHERWISE: &str = "idle otherwise";

/// A slice of the lag with its cause.
struct Slice {
    cause: culprit::Finding,
    /// Slices with the same cause and subject are merged into one culprit.
    subject: String,
    gap_ns: f64,
}

/// Finds the culprits of the lag, if there is one.
pub(super) fn judge(found: &TraceComparison, both: [&Counted; 2], mix: &Mix) -> Judgement {
    let is_single = match found.whole.verdict {
        Verdict::Slower => false,
        Verdict::SingleSample if found.whole.gap_ns.middle > 0.0 => true,
        _ => return Judgement::default(),
    };
    let amounts = Amounts::new(both, mix);
    let is_sure = |row: &Finding| match row.verdict {
        Verdict::Slower | Verdict::Faster | Verdict::OnlyInA | Verdict::OnlyInB => true,
        Verdict::SingleSample => is_single || row.sides.iter().any(|side| side.count < 5),
        Verdict::NoDetectableDifference(_) => false,
    };
    let rows = amounts.rows(both, mix);
    let mut slices: Vec<Slice> = vec![];
    // The differences of all slices, with or without a known cause.
    let mut gaps: Vec<f64> = vec![];
    let mut taken: FxHashMap<(bool, String), f64> = FxHashMap::default();
    // Fusing kernels that run concurrently saves less than the sum of their durations.
    let compute = found.time.iter().find(|row| row.name == "compute");
    let mut left = compute.map_or(0.0, |row| row.gap_ns.middle.max(0.0) + faster_parts(&rows));
    for fusion in found.fusions.iter().filter(|fusion| is_worth(fusion)) {
        let gap = fusion.saved_ns.min(left);
        left -= gap;
        gaps.push(gap);
        let share = gap / fusion.saved_ns;
        for (group, part) in amounts.parts(fusion) {
            *taken.entry(group).or_default() += part * share;
        }
        slices.push(Slice { gap_ns: gap, ..unfused(fusion) });
    }
    for (group, row) in rows {
        let gap = row.gap_ns.middle - taken.get(&group).copied().unwrap_or(0.0);
        gaps.push(gap);
        if is_sure(&row) && gap > 0.0 {
            slices.extend(of_class(found, &amounts, &group, &row, gap));
        }
    }
    for row in found.time.iter().filter(|row| row.name != "compute") {
        gaps.push(row.gap_ns.middle);
        if is_sure(row) && row.gap_ns.middle > 0.0 {
            slices.push(of_time(found, both, row));
        }
    }
    // The remainder, because medians over steps are not exactly additive.
    gaps.push(found.whole.gap_ns.middle - gaps.iter().sum::<f64>());
    judgement(slices, &gaps)
}

/// Time that B saves on kernels that it runs faster or not at all.
fn faster_parts(rows: &[((bool, String), Finding)]) -> f64 {
    rows.iter().map(|(_, row)| (-row.gap_ns.middle).max(0.0)).sum()
}

fn judgement(slices: Vec<Slice>, gaps: &[f64]) -> Judgement {
    let lost: f64 = gaps.iter().map(|gap| gap.max(0.0)).sum();
    let mut judgement = Judgement {
        saved_ns: gaps.iter().map(|gap| (-gap).max(0.0)).sum(),
        ..Judgement::default()
    };
    if lost <= 0.0 {
        return judgement;
    }
    let mut merged: Vec<Slice> = vec![];
    for slice in slices.into_iter().filter(|slice| slice.gap_ns > 0.0) {
        let is_small = slice.gap_ns < SMALLEST_SHARE * lost;
        let same = |known: &&mut Slice| {
            known.cause.kind == slice.cause.kind && (is_small || known.subject == slice.subject)
        };
        match merged.iter_mut().find(same) {
            Some(known) => {
                if slice.gap_ns > known.gap_ns {
                    (known.cause, known.subject) = (slice.cause, slice.subject);
                }
                known.gap_ns += slice.gap_ns;
            }
            None => merged.push(slice),
        }
    }
    let mut named: f64 = 0.0;
    for slice in merged {
        let explains = slice.gap_ns / lost;
        if explains >= SMALLEST_SHARE {
            // Because of medians over steps, the causes can add up to more than the lag.
            let explains = explains.min(1.0 - named);
            named += explains;
            judgement.culprits.push(Culprit::new(slice.cause, explains, slice.gap_ns));
        }
    }
    judgement.culprits.sort_by(|x, y| y.gap_ns.total_cmp(&x.gap_ns));
    judgement.not_explained = (1.0 - named).max(0.0);
    judgement
}

/// Whether A fuses the sequence, saves time by it, and the confidence is high enough.
fn is_worth(fusion: &Fusion) -> bool {
    const SURE: f64 = 0.4;
    fusion.fused_by == 0 && fusion.saved_ns > 0.0 && fusion.confidence >= SURE
}

fn unfused(fusion: &Fusion) -> Slice {
    let [fused, unfused] = fusion.mean_ns;
    let first = fusion.fused.first().map_or("", String::as_str);
    let cause = culprit::Finding::new(
        Kind::Unfused,
        short(
            &fusion.unfused.iter().map(|name| short_kernel(name)).collect::<Vec<_>>().join(" + "),
        ),
        format!(
            "A runs {} instead: fuse these kernels with torch.compile or call the fused kernel",
            short_kernel(first)
        ),
    )
    .fact(
        "kernels",
        [fusion.fused.len() as f64, fusion.unfused.len() as f64],
        Unit::Count,
        fusion.seen,
    )
    .fact("time per occurrence", [fused, unfused], Unit::Nanos, fusion.seen);
    Slice { cause, subject: fusion.unfused.join("\n"), gap_ns: fusion.saved_ns }
}

/// The name of a quantity per step.
fn of_one(found: &TraceComparison, what: &str) -> String {
    match found.sides.each_ref().map(|side| side.marker) {
        [Marker::Whole, Marker::Whole] => format!("{what} in total"),
        [a, b] if a == b => format!("{what} per {}", a.word()),
        _ => format!("{what} per step"),
    }
}

/// Maximum length of a name inside a sentence.
const LONGEST: usize = 48;

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The name of a kernel without return type, parameters and template arguments.
fn short_kernel(name: &str) -> String {
    if name.starts_with("Memcpy") || name.starts_with("Memset") {
        return short(name);
    }
    let name = name.replace("(anonymous namespace)::", "");
    let name = name.strip_prefix("void ").unwrap_or(&name);
    let end = name
        .char_indices()
        .find(|&(at, c)| at > 0 && (c == '<' || c == '('))
        .map_or(name.len(), |(at, _)| at);
    let plain = name[..end].trim_end_matches("::");
    short(if plain.is_empty() { name } else { plain })
}

/// Count and time of a kernel per step on one side, weighted by the mix.
#[derive(Clone, Copy, Default)]
struct Amount {
    count: f64,
    ns: f64,
    seen: u64,
}

/// Counts and times of compute kernels per step, for both sides.
struct Amounts {
    /// Amounts of A and B and the class, by kernel name.
    kernels: FxHashMap<String, ([Amount; 2], String)>,
}

impl Amounts {
    fn new(both: [&Counted; 2], mix: &Mix) -> Amounts {
        let mut kernels: FxHashMap<String, ([Amount; 2], String)> = FxHashMap::default();
        for (side, counted) in both.iter().enumerate() {
            let weights = mix.weights(counted);
            for (number, run) in counted.runs.iter().enumerate() {
                let mut sums = vec![Amount::default(); run.kernels.len()];
                for (at, piece) in run.pieces.iter().enumerate() {
                    if piece.role != Role::Compute {
                        continue;
                    }
                    if let Some(slot) = counted.slot(number, at) {
                        let sum = &mut sums[piece.kernel as usize];
                        sum.count += weights[slot];
                        sum.ns += piece.exposed as f64 * weights[slot];
                        sum.seen += 1;
                    }
                }
                for (kernel, sum) in run.kernels.iter().zip(sums).filter(|(_, sum)| sum.seen > 0) {
                    let known = kernels
                        .entry(kernel.name.clone())
                        .or_insert_with(|| (Default::default(), kernel.class.clone()));
                    let own = &mut known.0[side];
                    own.count += sum.count;
                    own.ns += sum.ns;
                    own.seen += sum.seen;
                }
            }
        }
        Amounts { kernels }
    }

    fn is_shared(&self, name: &str) -> bool {
        self.kernels.get(name).is_some_and(|(sides, _)| sides.iter().all(|side| side.seen > 0))
    }

    fn group(&self, name: &str) -> Option<(bool, String)> {
        let (_, class) = self.kernels.get(name)?;
        Some((self.is_shared(name), class.clone()))
    }

    /// The part of each group's difference that a fusion accounts for.
    fn parts(&self, fusion: &Fusion) -> Vec<((bool, String), f64)> {
        let [fused, unfused] = fusion.mean_ns;
        let share = |names: &[String], time: f64, sign: f64| -> Vec<((bool, String), f64)> {
            let mean = |name: &String| {
                let side = usize::from(sign > 0.0);
                self.kernels.get(name).map_or(0.0, |(sides, _)| {
                    sides[side].ns / sides[side].count.max(f64::MIN_POSITIVE)
                })
            };
            let all: f64 = names.iter().map(mean).sum();
            let part = |name: &String| {
                let share = if all > 0.0 { mean(name) / all } else { 0.0 };
                Some((self.group(name)?, sign * time * share * fusion.lap_count))
            };
            names.iter().filter_map(part).collect()
        };
        let mut parts = share(&fusion.unfused, unfused, 1.0);
        parts.extend(share(&fusion.fused, fused, -1.0));
        parts
    }

    /// Findings of compute kernels, grouped by whether both sides run them and by class.
    fn rows(&self, both: [&Counted; 2], mix: &Mix) -> Vec<((bool, String), Finding)> {
        let mut numbers: FxHashMap<(bool, String), u32> = FxHashMap::default();
        let mut groups: Vec<(bool, String)> = vec![];
        let of_kernel = both.map(|side| {
            let of_run = |run: &&super::Run| {
                let number = |kernel: &super::run::Kernel| {
                    let Some(group) = self.group(&kernel.name) else { return NONE };
                    *numbers.entry(group.clone()).or_insert_with(|| {
                        groups.push(group);
                        groups.len() as u32 - 1
                    })
                };
                run.kernels.iter().map(number).collect::<Vec<u32>>()
            };
            side.runs.iter().map(of_run).collect::<Vec<_>>()
        });
        let question = Question {
            names: (0..groups.len()).map(|group| group.to_string()).collect(),
            of: Box::new(|side, run, at| {
                let piece = &both[side].runs[run].pieces[at];
                match piece.role {
                    Role::Compute => of_kernel[side][run][piece.kernel as usize],
                    _ => NONE,
                }
            }),
            value: Value::Exposed,
        };
        let named = |row: Finding| Some((groups[row.name.parse::<usize>().ok()?].clone(), row));
        findings(both, mix, &question).into_iter().filter_map(named).collect()
    }

    /// Kernels of a group with their amounts, largest difference first.
    fn of(&self, (shared, class): &(bool, String)) -> Vec<(&str, [Amount; 2])> {
        let mut all: Vec<(&str, [Amount; 2])> = self
            .kernels
            .iter()
            .filter(|(name, (_, own))| own == class && self.is_shared(name) == *shared)
            .map(|(name, (sides, _))| (name.as_str(), *sides))
            .collect();
        let gap = |sides: &[Amount; 2]| (sides[1].ns - sides[0].ns).abs();
        all.sort_by(|x, y| gap(&y.1).total_cmp(&gap(&x.1)).then_with(|| x.0.cmp(y.0)));
        all
    }
}

/// Splits the gap of a group of kernels into number of launches and duration per launch.
fn of_class(
    found: &TraceComparison,
    amounts: &Amounts,
    group: &(bool, String),
    row: &Finding,
    gap: f64,
) -> Vec<Slice> {
    let kernels = amounts.of(group);
    let (shared, class) = group;
    let mut sums = [Amount::default(); 2];
    for (_, sides) in &kernels {
        for (sum, side) in sums.iter_mut().zip(sides) {
            sum.count += side.count;
            sum.ns += side.ns;
            sum.seen += side.seen;
        }
    }
    let by_count = |[a, b]: &[Amount; 2]| match a.count {
        0.0 => b.ns,
        count => (b.count - count) * (a.ns / count),
    };
    // The part due to more launches; the rest is due to longer launches.
    let more: f64 = match shared {
        true => kernels.iter().map(|(_, sides)| by_count(sides)).sum(),
        false => by_count(&sums),
    };
    let total = (sums[1].ns - sums[0].ns).max(f64::MIN_POSITIVE);
    let more = gap * (more / total).clamp(0.0, 1.0);
    let mut slices = vec![];
    if more > 0.0 {
        slices.push(more_calls(found, class, row, sums, more));
    }
    if gap - more > 0.0 {
        slices.push(match shared {
            true => same_kernel(found, class, &kernels, sums, gap - more),
            false => other_kernel(found, class, &kernels, sums, gap - more),
        });
    }
    slices
}

fn more_calls(
    found: &TraceComparison,
    class: &str,
    row: &Finding,
    sums: [Amount; 2],
    gap_ns: f64,
) -> Slice {
    let n = sums.iter().map(|sum| sum.seen).sum();
    let counts = sums.map(|sum| sum.count);
    let [of_a, of_b] = found.layers.counts;
    if of_a != of_b && of_a > 0 && of_b > of_a {
        let only: Vec<&str> = found
            .layers
            .rows
            .iter()
            .filter(|row| row.numbers[0].is_none())
            .map(|row| row.finding.name.as_str())
            .collect();
        let cause = culprit::Finding::new(
            Kind::MoreCalls,
            format!("{} only in B", short(&only.join(", "))),
            "B's model has more layers: the traces are of different models".to_owned(),
        )
        .fact("layers", [of_a as f64, of_b as f64], Unit::Count, n)
        .fact(&of_one(found, "launches"), counts, Unit::Count, n);
        return Slice { cause, subject: "layers".into(), gap_ns };
    }
    let line = row.lines[1].as_str();
    let at = if line.is_empty() { class.to_owned() } else { format!("{class}, {line}") };
    let advice = match counts[0] {
        0.0 => "A launches no kernel of this class: find out why B does (--stacks)",
        _ => "B launches more kernels of this class: find the callers (--stacks)",
    };
    let cause = culprit::Finding::new(Kind::MoreCalls, at, advice)
        .fact(&of_one(found, "launches"), counts, Unit::Count, n)
        .fact(&of_one(found, "time"), sums.map(|sum| sum.ns), Unit::Nanos, n);
    Slice { cause, subject: class.to_owned(), gap_ns }
}

/// The row of a class in the table by class.
fn class_row<'a>(found: &'a TraceComparison, class: &str) -> Option<&'a Finding> {
    let table = found.tables.iter().find(|table| table.by == By::Class)?;
    table.rows.iter().find(|row| row.name == class)
}

/// Adds each side's share of the peak rate, if known.
fn with_peak(cause: culprit::Finding, found: &TraceComparison, class: &str) -> culprit::Finding {
    let rates = class_row(found, class).map(|row| row.rate);
    match rates {
        Some([Some(a), Some(b)]) => match (a.peak_share, b.peak_share) {
            (Some(of_a), Some(of_b)) => {
                cause.fact("share of peak", [of_a, of_b], Unit::Share, a.n + b.n)
            }
            _ => cause,
        },
        _ => cause,
    }
}

fn devices(found: &TraceComparison) -> [String; 2] {
    found.sides.each_ref().map(|side| {
        let gpus = side.traces.first().map(|trace| &trace.summary.about.gpus);
        gpus.and_then(|gpus| gpus.first()).map_or_else(String::new, |(name, _)| name.clone())
    })
}

fn same_kernel(
    found: &TraceComparison,
    class: &str,
    kernels: &[(&str, [Amount; 2])],
    sums: [Amount; 2],
    gap_ns: f64,
) -> Slice {
    let slower = |[a, b]: &[Amount; 2]| b.ns - b.count * (a.ns / a.count.max(f64::MIN_POSITIVE));
    let worst = kernels.iter().max_by(|x, y| slower(&x.1).total_cmp(&slower(&y.1)));
    let name = worst.map_or(class, |(name, _)| name);
    let advice = match devices(found) {
        [a, b] if a != b && !a.is_empty() && !b.is_empty() => {
            format!("this kernel is slower on {b} than on {a}: compare the shares of peak")
        }
        _ => "the kernel and the device model are the same: compare grid and block (--by geometry), input shapes (--by shape), clock rates and other load".to_owned(),
    };
    let mut cause = culprit::Finding::new(
        Kind::SameKernelSlower,
        format!("{class}, {}", short_kernel(name)),
        advice,
    );
    if let Some((_, sides)) = worst {
        let mean = sides.map(|side| side.ns / side.count.max(f64::MIN_POSITIVE));
        cause = cause.fact("time per launch", mean, Unit::Nanos, sides[0].seen + sides[1].seen);
    }
    let n = sums.iter().map(|sum| sum.seen).sum();
    cause = cause.fact(&of_one(found, "launches"), sums.map(|sum| sum.count), Unit::Count, n);
    Slice { cause: with_peak(cause, found, class), subject: class.to_owned(), gap_ns }
}

fn other_kernel(
    found: &TraceComparison,
    class: &str,
    kernels: &[(&str, [Amount; 2])],
    sums: [Amount; 2],
    gap_ns: f64,
) -> Slice {
    let longest = |side: usize| {
        let of = kernels.iter().max_by(|x, y| x.1[side].ns.total_cmp(&y.1[side].ns));
        of.map_or_else(String::new, |(name, _)| short_kernel(name))
    };
    let mean = sums.map(|sum| sum.ns / sum.count.max(f64::MIN_POSITIVE));
    let n = sums.iter().map(|sum| sum.seen).sum();
    let advice = match [longest(0), longest(1)] {
        [a, b] if a == b => {
            "A runs another instance of the same template: compare the template arguments (--by kernel)".to_owned()
        }
        [a, _] => format!("A runs {a} instead: find out which library or backend selects B's kernel"),
    };
    let cause =
        culprit::Finding::new(Kind::OtherKernel, format!("{class}, {}", longest(1)), advice)
            .fact("time per launch", mean, Unit::Nanos, n)
            .fact(&of_one(found, "launches"), sums.map(|sum| sum.count), Unit::Count, n);
    Slice { cause: with_peak(cause, found, class), subject: class.to_owned(), gap_ns }
}

/// The cause of a slice of communication, copies or idle time.
fn of_time(found: &TraceComparison, both: [&Counted; 2], row: &Finding) -> Slice {
    let spent = row.sides.map(|side| side.lap_ns);
    let n = row.sides[0].count + row.sides[1].count;
    let host = |name: &str| found.host.iter().find(|row| row.name == name);
    let with_host = |cause: culprit::Finding, name: &str, what: &str, unit: Unit| match host(name) {
        Some(row) => match row.values {
            [Some(a), Some(b)] => cause.fact(what, [a, b], unit, row.n[0] + row.n[1]),
            _ => cause,
        },
        None => cause,
    };
    let (kind, at, advice) = match row.name.as_str() {
        IDLE_FOR_HOST => (
            Kind::LaunchBound,
            waiting_line(both[1], Cause::HostBound),
            "reduce launches (graphs, fusion) or host work between launches",
        ),
        IDLE_AFTER_WAIT => (
            Kind::Idle,
            waiting_line(both[1], Cause::Synchronisation),
            "the host waits for the device before it launches again: read results later or less often",
        ),
        IDLE_OTHERWISE => (
            Kind::Idle,
            waiting_line(both[1], Cause::Other),
            "operations start late although they were launched in time: check dependencies between streams and dispatch latency",
        ),
        "communication that nothing hides" => (
            Kind::ExposedCommunication,
            longest_of(found, "Communication"),
            "start communication earlier or overlap it with compute",
        ),
        _ => {
            let longest = longest_of(found, "Copy/Memory");
            let advice = match longest.contains("DtoD") {
                true => {
                    "write results in place and in the required layout: --by op lists the operators that copy"
                }
                false => {
                    "copy less or overlap copies with compute: pinned memory, non_blocking=True, a separate stream"
                }
            };
            (Kind::ExposedCopy, longest, advice)
        }
    };
    let label = row_label(&row.name);
    let cause = culprit::Finding::new(kind, at, advice).fact(label, spent, Unit::Nanos, n);
    let cause = match kind {
        Kind::LaunchBound => {
            let cause = with_host(cause, "launches", &of_one(found, "launches"), Unit::Count);
            let cause = with_host(
                cause,
                "in launch calls",
                &of_one(found, "time in launch calls"),
                Unit::Nanos,
            );
            with_host(cause, "on the host", &of_one(found, "host time"), Unit::Nanos)
        }
        Kind::ExposedCommunication => match class_row(found, "Communication") {
            Some(all) => cause.fact(
                "total communication",
                all.sides.map(|side| side.lap_ns),
                Unit::Nanos,
                all.sides[0].count + all.sides[1].count,
            ),
            None => cause,
        },
        _ => cause,
    };
    Slice { cause, subject: row.name.clone(), gap_ns: row.gap_ns.middle }
}

/// The Python line, else the operator, whose launches the device waited for the longest.
fn waiting_line(side: &Counted, cause: Cause) -> String {
    let most = |by: By| {
        let mut sums: FxHashMap<&str, i64> = FxHashMap::default();
        for run in &side.runs {
            let Some(labels) = run.labels(by) else { continue };
            for (piece, &label) in run.pieces.iter().zip(&labels.of) {
                if piece.cause == cause && piece.gap > 0 {
                    let sum = sums.entry(&labels.names[label as usize]).or_default();
                    *sum = sum.saturating_add(piece.gap);
                }
            }
        }
        let known: FxHashSet<_> =
            sums.into_iter().filter(|(name, _)| !name.starts_with('(')).collect();
        known.into_iter().max_by_key(|&(name, time)| (time, name)).map(|(name, _)| short(name))
    };
    let before = |name: String| format!("before launches from {name}");
    most(By::Python).or_else(|| most(By::Op)).map_or_else(String::new, before)
}

/// The kernel of a class with the most time in B.
fn longest_of(found: &TraceComparison, class: &str) -> String {
    let kernels = class_row(found, class).map(|row| &row.kernels[1]);
    kernels
        .and_then(|kernels| kernels.first())
        .map_or_else(String::new, |kernel| short_kernel(&kernel.name))
}
