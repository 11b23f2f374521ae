//! Parses a line of `perf stat -x`.
//!
//! Its fields, depending on the options, are: end of the interval (`-I`), scope of the counter
//! (`-A`, `--per-…`) and its number of CPUs, value, unit, event, cgroup, spread (`-r`), nanoseconds
//! during which it was active, the share of time that it was active, and a derived metric with its
//! unit. The fields that are present are recognized by their content.

use super::Line;
use super::event::{event, is_event, nanoseconds, number, reading, share};
use laggard_core::model::counters::{Counter, Metric};

/// Maximum number of fields before the value: time, scope, number of CPUs, and a name that contains
/// a separator.
const MOST_BEFORE: usize = 6;
/// Common separators, the most common first.
const USUAL: [char; 6] = [',', ';', '\t', '|', ':', ' '];
/// Maximum number of fields.
const MOST_FIELDS: usize = 64;

/// The separator of a line with a counter.
pub(super) fn separator(line: &str) -> Option<char> {
    let is_row = |separator: &char| matches!(row(line, *separator), Some(Line::Row(_)));
    let odd = line.chars().filter(|c| !c.is_alphanumeric() && !"._-<>/%+ \"'{}()=".contains(*c));
    USUAL.into_iter().chain(odd.take(MOST_FIELDS)).find(is_row)
}

/// Parses a line. `None` if it is not recognized.
pub(super) fn row(line: &str, separator: char) -> Option<Line> {
    let fields: Vec<&str> = line.splitn(MOST_FIELDS + 1, separator).collect();
    if fields.len() > MOST_FIELDS {
        return None;
    }
    let counter = (0..fields.len().min(MOST_BEFORE)).find_map(|at| counter(&fields, at, separator));
    if let Some(counter) = counter {
        return Some(Line::Row(Box::new(counter)));
    }
    // An additional derived metric is on a line of its own, after empty fields.
    let [.., before, value, text] = fields[..] else { return None };
    let is_alone = fields.len() >= 6 && before.trim().is_empty() && !text.trim().is_empty();
    let value = number(value).filter(|_| is_alone)?;
    Some(Line::Metric(Metric { value: Some(value), text: text.trim().to_owned() }))
}

/// Parses the counter whose value is field number `at`.
fn counter(fields: &[&str], at: usize, separator: char) -> Option<Counter> {
    let (before, rest) = fields.split_at(at);
    let [value, unit, rest @ ..] = rest else { return None };
    let reading = reading(value)?;
    let unit = unit.trim();
    if unit.starts_with(|c: char| c.is_ascii_digit() || c == '<') || unit.len() > 32 {
        return None;
    }
    let (name, mut rest) = name(rest, separator)?;
    let mut cgroup = "";
    if let [field, others @ ..] = rest
        && number(field.trim_end_matches('%')).is_none()
        && !field.trim().is_empty()
    {
        (cgroup, rest) = (field.trim(), others);
    }
    let mut spread = None;
    if let [field, others @ ..] = rest
        && let Some(percent) = field.trim().strip_suffix('%')
    {
        (spread, rest) = (Some(share(percent)?), others);
    }
    let [run, counted, metrics @ ..] = rest else { return None };
    let run_ns: u64 = run.trim().parse().ok()?;
    let counted = share(counted).filter(|share| *share <= 1.5)?.min(1.0);
    let (time_ns, of) = whom(before, separator)?;
    let of = [of.as_str(), cgroup].into_iter().filter(|of| !of.is_empty());
    let event = event(&name);
    Some(Counter {
        name: event.name,
        modifiers: event.modifiers,
        pmu: event.pmu,
        // A counter without a value has no spread.
        spread: spread.filter(|_| reading.value().is_some()),
        reading,
        unit: unit.to_owned(),
        run_ns: Some(run_ns),
        counted: Some(counted),
        metrics: metrics
            .chunks(2)
            .filter_map(|pair| match pair {
                [value, text] if !text.trim().is_empty() => {
                    Some(Metric { value: number(value), text: text.trim().to_owned() })
                }
                _ => None,
            })
            .collect(),
        of: of.collect::<Vec<_>>().join(" "),
        time_ns,
        parts: vec![],
    })
}

/// The event, which can contain the separator: `cpu/event=0x3c,umask=0x0/`.
fn name<'a, 'b>(fields: &'a [&'b str], separator: char) -> Option<(String, &'a [&'b str])> {
    let (first, rest) = fields.split_first()?;
    if !is_event(first) {
        return None;
    }
    let slashes = |text: &str| text.matches('/').count();
    if slashes(first) != 1 {
        // With colons as separator, the `u` of `cycles:u` is a separate field.
        return Some(((*first).to_owned(), rest));
    }
    let mut name = (*first).to_owned();
    for (at, field) in rest.iter().enumerate() {
        name.push(separator);
        name.push_str(field);
        if slashes(field) > 0 {
            return Some((name, &rest[at + 1..]));
        }
    }
    Some(((*first).to_owned(), rest))
}

/// Interval and scope of a counter, from the fields before its value.
fn whom(fields: &[&str], separator: char) -> Option<(Option<u64>, String)> {
    let mut rest = fields;
    let mut time = None;
    if let [first, others @ ..] = rest {
        match first.trim() {
            "summary" => rest = others,
            text if text.contains('.') && number(text).is_some() => {
                time = Some(nanoseconds(number(text)?)?);
                rest = others;
            }
            _ => {}
        }
    }
    // The number of CPUs that the value is summed over.
    if let [others @ .., last] = rest
        && !others.is_empty()
        && last.trim().parse::<u32>().is_ok()
    {
        rest = others;
    }
    let of = rest.join(&separator.to_string()).trim().to_owned();
    // The scope is a name: a plain number would be the value of another counter.
    (rest.is_empty() || number(&of).is_none()).then_some((time, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_core::model::counters::Reading;

    fn read(line: &str) -> Counter {
        let separator = separator(line).unwrap_or_else(|| panic!("{line}"));
        match row(line, separator) {
            Some(Line::Row(row)) => *row,
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn recognizes_fields_by_content() {
        let check = |line: &str, expected: &str| {
            let row = read(line);
            let time = row.time_ns.map_or_else(String::new, |ns| format!("{ns} "));
            let shown =
                format!("{time}[{}] {} {:?} {}", row.of, row.label(), row.reading, row.unit);
            assert_eq!(shown.trim_end(), expected, "{line}");
        };
        check("76,,page-faults,889623,100.00,85.429,K/sec", "[] page-faults Value(76.0)");
        check("76;;page-faults;889623;100.00;85.429;K/sec", "[] page-faults Value(76.0)");
        check("76\t\tpage-faults\t889623\t100.00\t\t", "[] page-faults Value(76.0)");
        check("76~~page-faults~889623~100.00~~", "[] page-faults Value(76.0)");
        check(
            "0.89,msec,task-clock,889623,100.00,0.004,CPUs utilized",
            "[] task-clock Value(0.89) msec",
        );
        check("<not supported>,,cycles:u,0,100.00,,", "[] cycles:u NotSupported");
        check(
            "     0.200618530,<not counted>,msec,task-clock,0,100.00,,",
            "200618530 [] task-clock NotCounted msec",
        );
        check(
            "CPU0,75,,page-faults,251575236,100.00,298.122,/sec",
            "[CPU0] page-faults Value(75.0)",
        );
        check(
            "S0-D0-C0,1,79,,page-faults,251869513,100.00,,",
            "[S0-D0-C0] page-faults Value(79.0)",
        );
        check(
            "     0.1,CPU1,1,,page-faults,100412266,100.00,9.959,/sec",
            "100000000 [CPU1] page-faults Value(1.0)",
        );
        check("my,thread-12,7,,cycles,100,50.00,,", "[my,thread-12] cycles Value(7.0)");
        check(
            "         summary,75,,page-faults,995460,100.00,75.342,K/sec",
            "[] page-faults Value(75.0)",
        );
        check("9,,cpu/event=0x3c,umask=0x0/,100,100.00,,", "[] event=0x3c,umask=0x0 Value(9.0)");
        check("9,,cycles,user.slice,100,100.00,,", "[user.slice] cycles Value(9.0)");
    }

    #[test]
    fn parses_spread_share_and_metrics() {
        let row = read("75,,cpu_core/cycles/u,0.27%,783416,54.21,93.154,K/sec,2,GHz");
        assert_eq!((row.pmu.as_str(), row.run_ns), ("cpu_core", Some(783_416)));
        assert!((row.spread.unwrap_or(0.0) - 0.0027).abs() < 1e-12);
        assert!((row.counted.unwrap_or(0.0) - 0.5421).abs() < 1e-12);
        assert_eq!(row.reading, Reading::Value(75.0));
        assert_eq!(row.metrics.len(), 2);
        assert_eq!((row.metrics[1].value, row.metrics[1].text.as_str()), (Some(2.0), "GHz"));
        assert!(matches!(
            super::row(",,,,,0.25,stalled cycles per insn", ','),
            Some(Line::Metric(_))
        ));
    }

    #[test]
    fn rejects_other_tables() {
        for line in [
            "a,b,c,d,e,f,g",
            "name,count,total_ns,self_ns",
            "gemm,12,100.5,3,4,5,6",
            "1,2,3,4,5,6,7",
            "void f<int>(),1,,x,2,200.00",
            ",,,,,,",
            "",
        ] {
            assert!(separator(line).is_none(), "{line}");
        }
    }
}
