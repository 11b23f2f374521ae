//! Number formatting: three significant digits and a unit.
//!
//! A single value has its own unit ([`duration`], [`bytes`], ...). The values of a column share one
//! unit ([`Quantity::unit`]), so that readers can compare them.

/// Placeholder for a missing value.
pub const NO_VALUE: &str = "-";

/// Quantities with prefixed units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Nanoseconds.
    Time,
    /// Bytes, in decimal units.
    Bytes,
    /// Bytes per second, in decimal units.
    ByteRate,
    /// Floating-point operations per second.
    FlopRate,
    /// Instructions.
    Instructions,
}

/// A unit with its size in base units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Symbol printed after a number.
    pub name: &'static str,
    size: f64,
}

const TIME: &[Unit] = &[unit("ns", 1.0), unit("µs", 1e3), unit("ms", 1e6), unit("s", 1e9)];
const BYTES: &[Unit] =
    &[unit("B", 1.0), unit("kB", 1e3), unit("MB", 1e6), unit("GB", 1e9), unit("TB", 1e12)];
const BYTE_RATE: &[Unit] = &[
    unit("B/s", 1.0),
    unit("kB/s", 1e3),
    unit("MB/s", 1e6),
    unit("GB/s", 1e9),
    unit("TB/s", 1e12),
];
const FLOP_RATE: &[Unit] = &[
    unit("FLOP/s", 1.0),
    unit("kFLOP/s", 1e3),
    unit("MFLOP/s", 1e6),
    unit("GFLOP/s", 1e9),
    unit("TFLOP/s", 1e12),
    unit("PFLOP/s", 1e15),
];
const INSTRUCTIONS: &[Unit] =
    &[unit("n", 1.0), unit("k", 1e3), unit("M", 1e6), unit("G", 1e9), unit("T", 1e12)];

const fn unit(name: &'static str, size: f64) -> Unit {
    Unit { name, size }
}

impl Quantity {
    /// Unit for a column: that of its largest value, or the next smaller one if most values would be
    /// below 1 and the largest remains readable.
    pub fn unit(self, values: impl IntoIterator<Item = f64>) -> Unit {
        let usable = values.into_iter().map(f64::abs).filter(|value| value.is_finite());
        let mut values: Vec<f64> = usable.filter(|&value| value > 0.0).collect();
        values.sort_by(f64::total_cmp);
        let Some(&largest) = values.last() else { return self.ladder()[0] };
        let median = values[(values.len() - 1) / 2];
        let rung = self.rung(largest);
        let unit = self.ladder()[rung];
        if rung > 0 && median < unit.size && largest < 10.0 * unit.size {
            return self.ladder()[rung - 1];
        }
        unit
    }

    /// A single value with its own unit.
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return NO_VALUE.to_owned();
        }
        let unit = self.ladder()[self.rung(value.abs())];
        format!("{} {}", unit.number(value), unit.name)
    }

    fn ladder(self) -> &'static [Unit] {
        match self {
            Quantity::Time => TIME,
            Quantity::Bytes => BYTES,
            Quantity::ByteRate => BYTE_RATE,
            Quantity::FlopRate => FLOP_RATE,
            Quantity::Instructions => INSTRUCTIONS,
        }
    }

    /// The largest unit in which the value does not round to less than 1.
    fn rung(self, value: f64) -> usize {
        self.ladder().iter().rposition(|unit| value >= 0.9995 * unit.size).unwrap_or(0)
    }
}

impl Unit {
    /// The value in this unit, without the symbol.
    pub fn number(self, value: f64) -> String {
        // Base units are indivisible: print whole numbers exactly.
        if self.size == 1.0 && value.fract() == 0.0 {
            return thousands(&format!("{value:.0}"));
        }
        significant(value / self.size)
    }

    /// Two values in this unit, separated by `between`.
    pub fn range(self, low: f64, between: &str, high: f64) -> String {
        format!("{}{between}{}", self.number(low), self.number(high))
    }
}

/// `1.23 s`, `456 ms`, `7.89 µs`, `12 ns`.
pub fn duration(ns: i64) -> String {
    Quantity::Time.show(ns as f64)
}

/// `1.23 GB`.
pub fn bytes(bytes: i64) -> String {
    Quantity::Bytes.show(bytes as f64)
}

/// `1.23 GB/s`.
pub fn byte_rate(bytes_per_s: f64) -> String {
    Quantity::ByteRate.show(bytes_per_s)
}

/// `1.23 TFLOP/s`.
pub fn flop_rate(flops_per_s: f64) -> String {
    Quantity::FlopRate.show(flops_per_s)
}

/// `1.23 M instructions`, `1 instruction`.
pub fn instructions(n: u64) -> String {
    if n < 1000 {
        return plural(n, "instruction");
    }
    Quantity::Instructions.show(n as f64) + " instructions"
}

/// `1,234,567`.
pub fn count(n: u64) -> String {
    thousands(&n.to_string())
}

/// `3 gaps`, `1 gap`, `0 gaps`. For regular plurals only.
pub fn plural(n: u64, word: &str) -> String {
    format!("{} {word}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A count or a mean of counts: whole numbers exactly, others with three significant digits.
pub fn mean_count(n: f64) -> String {
    let is_whole = n.fract() == 0.0 && n.abs() < 1e15;
    // Adding 0 turns -0 into 0.
    if is_whole { thousands(&format!("{:.0}", n + 0.0)) } else { significant(n) }
}

/// Adds the sign of `amount` to a formatted difference; zero has no sign.
pub fn with_sign(amount: f64, shown: String) -> String {
    let is_small = shown.starts_with('<');
    match amount {
        _ if amount > 0.0 => format!("+{shown}"),
        // `<0.001` does not contain the sign.
        _ if amount < 0.0 && is_small => format!("-{shown}"),
        _ => shown,
    }
}

/// A share as `12.3`, without the percent sign. Small shares other than zero are `<0.1`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        NO_VALUE.to_owned()
    } else if percent != 0.0 && percent.abs() < 0.05 {
        "<0.1".to_owned()
    } else {
        thousands(&format!("{percent:.1}"))
    }
}

/// `2026-11-16 13:09 UTC` from seconds since 1970; empty if unknown.
pub fn moment(unix: f64) -> String {
    // Up to the year 9999.
    if !(1.0..253_402_300_800.0).contains(&unix) {
        return String::new();
    }
    let minutes = unix as i64 / 60;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    // Years start in March, so that the leap day is the last day.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    format!("{:04}-{month:02}-{day:02} {:02}:{:02} UTC", era * 400 + year, minute / 60, minute % 60)
}

/// `part / whole`, or 0 if the whole is 0.
pub fn share(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// A number without a unit: three significant digits and at most three decimals. Digits before the
/// decimal point are never rounded.
pub fn significant(value: f64) -> String {
    // Adding 0 turns -0 into 0.
    let value = value + 0.0;
    if !value.is_finite() {
        return NO_VALUE.to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 => 0,
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.0005 => 3,
        _ => return "<0.001".to_owned(),
    };
    thousands(&format!("{value:.decimals$}"))
}

/// Adds thousands separators to the whole part of a decimal number.
fn thousands(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::with_capacity(number.len() + whole.len() / 3);
    grouped.push_str(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_a_suitable_unit() {
        for (ns, expected) in [
            (0, "0 ns"),
            (12, "12 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (7_894, "7.89 µs"),
            (9_996, "10.0 µs"),
            (99_960, "100 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (456_000_000, "456 ms"),
            (1_234_000_000, "1.23 s"),
            (5_432_100_000_000, "5,432 s"),
            (-7_894, "-7.89 µs"),
            (i64::MAX, "9,223,372,037 s"),
            (i64::MIN, "-9,223,372,037 s"),
        ] {
            assert_eq!(duration(ns), expected, "{ns}");
        }
    }

    #[test]
    fn other_quantities() {
        for (shown, expected) in [
            (bytes(1_234_567_890), "1.23 GB"),
            (bytes(512), "512 B"),
            (byte_rate(2.345e12), "2.35 TB/s"),
            (flop_rate(123.4e12), "123 TFLOP/s"),
            (flop_rate(f64::NAN), "-"),
            (flop_rate(f64::INFINITY), "-"),
            (instructions(1), "1 instruction"),
            (instructions(999), "999 instructions"),
            (instructions(1_234_567), "1.23 M instructions"),
            (count(0), "0"),
            (count(999), "999"),
            (count(1_234_567), "1,234,567"),
            (plural(1, "gap"), "1 gap"),
            (plural(1_200, "gap"), "1,200 gaps"),
            (mean_count(1_200.0), "1,200"),
            (mean_count(-3.0), "-3"),
            (mean_count(-0.0), "0"),
            (mean_count(2.5), "2.50"),
            (mean_count(f64::NAN), "-"),
            (significant(-0.0), "0"),
            (with_sign(2.5, significant(2.5)), "+2.50"),
            (with_sign(-2.5, significant(-2.5)), "-2.50"),
            (with_sign(-1e-9, significant(-1e-9)), "-<0.001"),
            (with_sign(0.0, significant(0.0)), "0"),
            (percent(0.3421), "34.2"),
            (percent(1.0), "100.0"),
            (percent(0.0), "0.0"),
            (percent(0.0001), "<0.1"),
            (percent(12.34), "1,234.0"),
            (percent(f64::NAN), "-"),
            (moment(0.0), ""),
            (moment(f64::NAN), ""),
            (moment(951_825_600.0), "2000-02-29 12:00 UTC"),
            (moment(1_794_834_552.5), "2026-11-16 13:09 UTC"),
        ] {
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn a_column_has_one_unit() {
        let check = |values: &[f64], name: &str, shown: &[&str]| {
            let unit = Quantity::Time.unit(values.iter().copied());
            let numbers: Vec<String> = values.iter().map(|&value| unit.number(value)).collect();
            assert_eq!((unit.name, numbers), (name, shown.iter().map(|&n| n.to_owned()).collect()));
        };
        check(&[], "ns", &[]);
        check(&[0.0, 0.0], "ns", &["0", "0"]);
        check(&[523e6, 12.3e6, 456e3, 12.0], "ms", &["523", "12.3", "0.456", "<0.001"]);
        check(&[2.5e6, 3e3, 4e3], "µs", &["2,500", "3.00", "4.00"]);
        check(&[500e6, 3e3, 4e3], "ms", &["500", "0.003", "0.004"]);
        check(&[f64::NAN, 5e3], "µs", &["-", "5.00"]);
    }
}
