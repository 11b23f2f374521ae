//! Parses the text output of `perf stat` in any locale: thousands and decimal separators differ,
//! words do not.

use super::Line;
use super::event::{Event, event, is_event, nanoseconds, number, share};
use laggard_core::model::counters::{Counter, Counters, Metric, Reading, Seconds};

const HEADING: &str = "Performance counter stats for ";
const ELAPSED: &str = " seconds time elapsed";

/// Whether a line starts perf's output.
pub(super) fn is_heading(line: &str) -> bool {
    let line = line.trim();
    (line.starts_with(HEADING) && line.ends_with(':'))
        || (line.starts_with('#') && line.ends_with("counts unit events"))
}

/// Parses line by line.
#[derive(Default)]
pub(super) struct Reader {
    /// Whether there was a heading. Without one, lines start with the time of an interval.
    has_heading: bool,
}

impl Reader {
    /// Parses a line. Data of the whole run is stored in `counters`.
    pub(super) fn row(&mut self, line: &str, counters: &mut Counters) -> Option<Line> {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix(HEADING) {
            self.has_heading = true;
            heading(rest, counters);
            return Some(Line::Nothing);
        }
        if time(line, counters) {
            return Some(Line::Nothing);
        }
        if let Some(metric) = line.strip_prefix('#') {
            return Some(Line::Metric(metric_of(metric)));
        }
        // Program output can look like anything, but only counters have these notes.
        let (line, notes) = split_notes(line);
        let (head, metric) = match line.split_once(" #") {
            Some((head, metric)) => (head, Some(metric_of(metric))),
            None => (line, None),
        };
        let mut row = counter(head, !self.has_heading)?;
        row.metrics.extend(metric.filter(|metric| !metric.text.is_empty()));
        row.spread = notes.spread.filter(|_| row.value().is_some());
        row.counted = Some(notes.counted.unwrap_or(1.0));
        Some(Line::Row(Box::new(row)))
    }
}

/// Parses `'sleep 1' (3 runs):`.
fn heading(rest: &str, counters: &mut Counters) {
    let rest = rest.trim_end_matches(':').trim_end();
    let (command, runs) = match rest.strip_suffix(" runs)").and_then(|of| of.rsplit_once(" (")) {
        Some((command, runs)) => (command, runs.trim().parse().ok()),
        None => (rest, None),
    };
    let command = command.trim();
    let inner = command.strip_prefix('\'').and_then(|command| command.strip_suffix('\''));
    inner.unwrap_or(command).clone_into(&mut counters.command);
    counters.runs = runs;
}

/// Parses lines such as `0.2515728 +- 0.0000888 seconds time elapsed  ( +-  0.04% )`. Returns
/// whether the line is one.
fn time(line: &str, counters: &mut Counters) -> bool {
    let seconds = |text: &str| text.split_ascii_whitespace().next().and_then(decimal);
    if let Some((before, rest)) = line.split_once(ELAPSED) {
        let spread = split_notes(rest).1.spread;
        counters.elapsed = seconds(before).map(|value| Seconds { value, spread });
        return counters.elapsed.is_some();
    }
    for (end, of) in
        [(" seconds user", &mut counters.user_s), (" seconds sys", &mut counters.system_s)]
    {
        if let Some((before, "")) = line.split_once(end) {
            *of = seconds(before);
            return of.is_some();
        }
    }
    // `--table` lists every run. The mean is also in the output.
    line == "# Table of individual measurements:"
}

/// The notes in parentheses after a counter.
#[derive(Default)]
struct Notes {
    spread: Option<f64>,
    counted: Option<f64>,
}

/// Removes `( +-  7.11% )` and `(54.21%)` from the end.
fn split_notes(line: &str) -> (&str, Notes) {
    let mut notes = Notes::default();
    let mut rest = line.trim_end();
    while let Some((before, note)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        let Some(percent) = note.trim().strip_suffix('%') else { break };
        let percent = percent.replace(',', ".");
        match percent.trim().strip_prefix("+-") {
            Some(spread) => notes.spread = share(spread),
            None => notes.counted = share(&percent).map(|share| share.min(1.0)),
        }
        rest = before.trim_end();
    }
    (rest, notes)
}

/// Parses a metric after `#`: `0.52  insn per cycle`.
fn metric_of(text: &str) -> Metric {
    let text = text.trim();
    let (first, rest) = text.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((text, ""));
    match decimal(first.trim_end_matches('%')) {
        Some(value) => {
            let sign = if first.ends_with('%') { "% " } else { "" };
            Metric { value: Some(value), text: format!("{sign}{}", rest.trim()).trim().to_owned() }
        }
        None => Metric { value: None, text: text.to_owned() },
    }
}

/// Parses `[time] [scope [CPUs]] value [unit] event`.
fn counter(head: &str, has_time: bool) -> Option<Counter> {
    let head = head.replace("<not counted>", "<not-counted>");
    let head = head.replace("<not supported>", "<not-supported>");
    let words: Vec<&str> = head.split_ascii_whitespace().collect();
    let [.., _, name] = words[..] else { return None };
    let Event { name, modifiers, pmu } = Some(name).filter(|n| is_event(n)).map(event)?;
    let last = words.len() - 2;
    let (reading, unit, mut before) = match reading(words[last], "") {
        Some(reading) => (reading, "", &words[..last]),
        None => {
            let unit = words[last];
            let value = words.get(last.checked_sub(1)?)?;
            (reading(value, unit)?, unit, &words[..last - 1])
        }
    };
    let mut time_ns = None;
    if has_time {
        let (first, rest) = before.split_first()?;
        time_ns = Some(nanoseconds(decimal(first)?)?);
        before = rest;
    }
    if let [others @ .., processors] = before
        && !others.is_empty()
        && processors.parse::<u32>().is_ok()
    {
        before = others;
    }
    // Sentences also contain numbers: the scope must be one word with the number of a CPU or
    // thread.
    let of = match before {
        [] => "",
        [of] if decimal(of).is_none() && of.ends_with(|c: char| c.is_ascii_digit()) => of,
        _ => return None,
    };
    let (unit, of) = (unit.to_owned(), of.to_owned());
    Some(Counter { name, modifiers, pmu, reading, unit, of, time_ns, ..Counter::default() })
}

fn reading(text: &str, unit: &str) -> Option<Reading> {
    match text {
        "<not-counted>" => return Some(Reading::NotCounted),
        "<not-supported>" => return Some(Reading::NotSupported),
        _ => {}
    }
    if unit.is_empty() {
        // In a count, any separator between digits is a thousands separator.
        let is_sign = |c: char| matches!(c, ',' | '.' | '\'' | '\u{a0}' | '\u{202f}');
        let is_count = text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || is_sign(c));
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        return is_count.then(|| number(&digits)).flatten().map(Reading::Value);
    }
    decimal(text).map(Reading::Value)
}

/// Parses a number with decimals: the last separator is the decimal one.
fn decimal(text: &str) -> Option<f64> {
    let Some(at) = text.rfind(['.', ',']) else { return number(text) };
    let whole: String = text[..at].chars().filter(|c| !",.'\u{a0}\u{202f}".contains(*c)).collect();
    number(&format!("{whole}.{}", &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, has_heading: bool) -> Option<Counter> {
        match (Reader { has_heading }).row(line, &mut Counters::default()) {
            Some(Line::Row(row)) => Some(*row),
            _ => None,
        }
    }

    #[test]
    fn parses_counters_in_any_locale() {
        let check = |line: &str, expected: Option<(&str, f64, &str)>| {
            let row = read(line, true);
            let shown = row
                .as_ref()
                .map(|row| (row.name.as_str(), row.value().unwrap_or(-1.0), row.of.as_str()));
            assert_eq!(shown, expected, "{line}");
        };
        check("0.94 msec task-clock   #    0.004 CPUs utilized", Some(("task-clock", 0.94, "")));
        check(
            "32,148.85 msec cpu-clock  #   32.000 CPUs utilized",
            Some(("cpu-clock", 32148.85, "")),
        );
        check(
            "32.148,85 msec cpu-clock  #   32,000 CPUs utilized",
            Some(("cpu-clock", 32148.85, "")),
        );
        check("18.979.960      cpu_core/cycles/", Some(("cycles", 18_979_960.0, "")));
        check("1\u{202f}234 cycles", Some(("cycles", 1234.0, "")));
        check("<not supported>      cycles:u   ", Some(("cycles", -1.0, "")));
        check(
            "CPU0     79      page-faults    #  313.843 /sec  ",
            Some(("page-faults", 79.0, "CPU0")),
        );
        check("S0-D0  2    82      page-faults", Some(("page-faults", 82.0, "S0-D0")));
        check("read 5 files", None);
        check("it took 5 seconds", None);
        check("hello", None);
    }

    #[test]
    fn parses_notes_and_intervals() {
        let row = read("261,230  cycles  #  8.126 M/sec  ( +-  7.11% )  (54.21%)", true);
        let row = row.unwrap_or_default();
        assert!((row.spread.unwrap_or(0.0) - 0.0711).abs() < 1e-12);
        assert!((row.counted.unwrap_or(0.0) - 0.5421).abs() < 1e-12);
        assert_eq!(row.metrics, [Metric { value: Some(8.126), text: "M/sec".into() }]);
        let row = read("     0.100245430               0.65 msec task-clock", false);
        assert_eq!(row.and_then(|row| row.time_ns), Some(100_245_430));
    }
}
