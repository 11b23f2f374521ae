//! Derived metrics of counters, and the events that are missing for them.

use crate::model::counters::{Counter, Counters};

/// A metric derived from counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// Name: `instructions per cycle`.
    pub name: &'static str,
    /// Kind of value.
    pub figure: Figure,
    /// The value; `None` if an event is missing.
    pub value: Option<f64>,
    /// Standard error over runs as a share of the value, if the file has it.
    pub spread: Option<f64>,
    /// Whether all its events were counted all the time. Otherwise they were counted at different
    /// times, and the value is an estimate.
    pub is_whole: bool,
    /// Missing events with the reason: `cycles (not supported)`.
    pub missing: Vec<String>,
}

/// Kind of a derived value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// A ratio of two events.
    Ratio,
    /// A part of a whole: 0.1 is 10 %.
    Share,
    /// A rate per second.
    PerSecond,
}

/// Rate of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Events per second.
    pub per_second: f64,
    /// Whether seconds are CPU time; otherwise wall time.
    pub of_cpu: bool,
}

/// A ratio of two events, each with its possible names.
struct Rule {
    name: &'static str,
    figure: Figure,
    over: &'static [&'static str],
    under: &'static [&'static str],
    /// Whether it is reported even if the file has neither event.
    always: bool,
}

const CYCLES: &[&str] = &["cycles", "cpu-cycles"];
const CPU_TIME: &[&str] = &["task-clock", "cpu-clock"];

const RULES: [Rule; 9] = [
    rule("instructions per cycle", Figure::Ratio, &["instructions"], CYCLES, true),
    rule("cache misses", Figure::Share, &["cache-misses"], &["cache-references"], true),
    rule(
        "branch misses",
        Figure::Share,
        &["branch-misses"],
        &["branches", "branch-instructions"],
        true,
    ),
    rule(
        "L1 data cache load misses",
        Figure::Share,
        &["L1-dcache-load-misses"],
        &["L1-dcache-loads"],
        false,
    ),
    rule(
        "last-level cache load misses",
        Figure::Share,
        &["LLC-load-misses"],
        &["LLC-loads"],
        false,
    ),
    rule("data TLB load misses", Figure::Share, &["dTLB-load-misses"], &["dTLB-loads"], false),
    rule("stalled cycles, frontend", Figure::Share, &["stalled-cycles-frontend"], CYCLES, false),
    rule("stalled cycles, backend", Figure::Share, &["stalled-cycles-backend"], CYCLES, false),
    rule("clock rate", Figure::PerSecond, CYCLES, CPU_TIME, false),
];

const fn rule(
    name: &'static str,
    figure: Figure,
    over: &'static [&'static str],
    under: &'static [&'static str],
    always: bool,
) -> Rule {
    Rule { name, figure, over, under, always }
}

/// Derived metrics of a file from its [`super::totals`].
pub fn derive(counters: &Counters, totals: &[Counter]) -> Vec<Derived> {
    let mut all: Vec<Derived> = RULES.iter().filter_map(|rule| apply(rule, totals)).collect();
    let cpu = find(totals, CPU_TIME);
    let elapsed = elapsed(counters, totals);
    if let (Some((cpu, seconds)), Some((elapsed, spread))) =
        (cpu.and_then(|cpu| Some((cpu, cpu.seconds()?))), elapsed)
        && elapsed > 0.0
    {
        all.push(Derived {
            name: "processors used",
            figure: Figure::Ratio,
            value: Some(seconds / elapsed),
            spread: cpu.spread.zip(spread).map(|(a, b)| a.hypot(b)),
            is_whole: is_whole(cpu),
            missing: vec![],
        });
    }
    all
}

fn apply(rule: &Rule, totals: &[Counter]) -> Option<Derived> {
    let over = find(totals, rule.over);
    let under = match over {
        Some(over) if rule.figure != Figure::PerSecond => find_like(totals, rule.under, over),
        _ => find(totals, rule.under),
    };
    let of_rule = |names: &[&str]| totals.iter().any(|row| names.contains(&row.name.as_str()));
    // Metrics that were not requested are not missing: task-clock alone does not imply a clock rate.
    let is_wanted = rule.always || of_rule(rule.over);
    if !is_wanted {
        return None;
    }
    let missing = |found: Option<&Counter>, names: &[&str]| match found {
        None => {
            // Use the modifiers of the other event, which may count user code only.
            let modifiers = over.filter(|_| names == rule.under).map_or("", |of| &of.modifiers);
            let colon = if modifiers.is_empty() { "" } else { ":" };
            Some(format!("{}{colon}{modifiers} (not measured)", names.first()?))
        }
        Some(row) if row.value().is_none() => {
            Some(format!("{} ({})", row.label(), row.reading.word()))
        }
        Some(row) if rule.figure == Figure::PerSecond && names == rule.under => {
            row.seconds().is_none().then(|| format!("{} (of an unknown unit)", row.label()))
        }
        Some(_) => None,
    };
    let mut missing: Vec<String> =
        [missing(over, rule.over), missing(under, rule.under)].into_iter().flatten().collect();
    let value = over.zip(under).and_then(|(over, under)| {
        let whole = match rule.figure {
            Figure::PerSecond => under.seconds()?,
            Figure::Ratio | Figure::Share => under.value()?,
        };
        (whole > 0.0).then_some(over.value()? / whole)
    });
    if value.is_none() && missing.is_empty() {
        missing.extend(under.map(|row| format!("{} (it is 0)", row.label())));
    }
    let spread = over.zip(under).and_then(|(a, b)| Some(a.spread?.hypot(b.spread?)));
    let whole = [over, under].into_iter().flatten().all(is_whole);
    let Rule { name, figure, .. } = *rule;
    Some(Derived { name, figure, value, spread, is_whole: whole, missing })
}

/// Rate of each total; `None` for times and for events that were not counted.
pub fn rates(counters: &Counters, totals: &[Counter]) -> Vec<Option<Rate>> {
    let cpu = find(totals, CPU_TIME).and_then(Counter::seconds).filter(|&seconds| seconds > 0.0);
    let wall = elapsed(counters, totals).map(|of| of.0).filter(|&seconds| seconds > 0.0);
    let rate = |row: &Counter| {
        let seconds = cpu.or(wall).filter(|_| row.unit.is_empty())?;
        Some(Rate { per_second: row.value()? / seconds, of_cpu: cpu.is_some() })
    };
    totals.iter().map(rate).collect()
}

/// Wall time in seconds with its standard error, from the file's header or from `duration_time`.
fn elapsed(counters: &Counters, totals: &[Counter]) -> Option<(f64, Option<f64>)> {
    let counted = || {
        let row = find(totals, &["duration_time"])?;
        Some((row.seconds()?, row.spread))
    };
    counters.elapsed.map(|of| (of.value, of.spread)).or_else(counted)
}

/// The first counter with one of these names, preferably one with a value.
fn find<'a>(totals: &'a [Counter], names: &[&str]) -> Option<&'a Counter> {
    let mut all = totals.iter().filter(|row| names.contains(&row.name.as_str()));
    let first = all.clone().next();
    all.find(|row| row.value().is_some()).or(first)
}

/// Like [`find`], but only counters with the same modifiers: a ratio of user instructions to all cycles
/// is meaningless.
fn find_like<'a>(totals: &'a [Counter], names: &[&str], like: &Counter) -> Option<&'a Counter> {
    let mut all = totals
        .iter()
        .filter(|row| names.contains(&row.name.as_str()) && row.modifiers == like.modifiers);
    let first = all.clone().next();
    all.find(|row| row.value().is_some()).or(first)
}

/// Whether it was counted all the time, except for rounding.
fn is_whole(row: &Counter) -> bool {
    row.counted.is_none_or(|counted| counted > 0.995)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::{Reading, Seconds};

    fn row(name: &str, value: f64, unit: &str) -> Counter {
        let reading = Reading::Value(value);
        Counter { name: name.into(), reading, unit: unit.into(), ..Counter::default() }
    }

    #[test]
    fn ratios_need_the_same_modifiers() {
        let user = Counter { modifiers: "u".into(), ..row("instructions", 300.0, "") };
        let all = |rows: &[Counter]| derive(&Counters::default(), rows)[0].clone();
        let mixed = all(&[user.clone(), row("cycles", 200.0, "")]);
        assert_eq!(
            (mixed.value, mixed.missing),
            (None, vec!["cycles:u (not measured)".to_owned()])
        );
        let cycles = Counter { modifiers: "u".into(), ..row("cycles", 100.0, "") };
        assert_eq!(all(&[user, row("cycles", 200.0, ""), cycles]).value, Some(3.0));
    }

    #[test]
    fn metrics_list_missing_events() {
        let rows = vec![
            row("instructions", 300.0, ""),
            row("cycles", 200.0, ""),
            row("task-clock", 0.25, "msec"),
            row("branches", 0.0, ""),
            row("branch-misses", 0.0, ""),
            Counter { reading: Reading::NotSupported, ..row("cache-misses", 0.0, "") },
        ];
        let counters = Counters {
            elapsed: Some(Seconds { value: 5e-4, spread: None }),
            rows,
            ..Counters::default()
        };
        let all = derive(&counters, &counters.rows);
        let shown: Vec<String> =
            all.iter().map(|of| format!("{} {:?} {:?}", of.name, of.value, of.missing)).collect();
        assert_eq!(
            shown,
            [
                "instructions per cycle Some(1.5) []",
                r#"cache misses None ["cache-misses (not supported)", "cache-references (not measured)"]"#,
                r#"branch misses None ["branches (it is 0)"]"#,
                "clock rate Some(800000.0) []",
                "processors used Some(0.5) []",
            ]
        );
        let rates = rates(&counters, &counters.rows);
        assert_eq!(rates[0], Some(Rate { per_second: 1.2e6, of_cpu: true }));
        assert_eq!(rates[2], None);
    }
}
