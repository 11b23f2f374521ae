//! Compares two results.

use super::value::{Array, Number, Value};

/// Outcome of a comparison.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Equal, within the tolerance.
    Same,
    /// Different at a position, with these two values.
    Differ(Difference),
    /// Not comparable: the result of this side has an unsupported type or value.
    Unknown(Which, String),
}

/// One of two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Second,
}

/// Position and values of a difference.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// The position, such as `[3, 0]`; empty if the results differ as a whole.
    pub(super) at: String,
    pub(super) first: String,
    pub(super) second: String,
    /// Whether both results have the same type and shape.
    pub(super) is_alike: bool,
}

/// Compares two results. Non-integer numbers may differ by `tolerance`, or by the default of their
/// type; NaN equals NaN. Container types do not matter: an array equals a list of the same numbers.
pub(super) fn compare(first: &Value, second: &Value, tolerance: Option<f64>) -> Verdict {
    match (first, second) {
        (Value::Unknown(what), _) => Verdict::Unknown(Which::First, what.clone()),
        (_, Value::Unknown(what)) => Verdict::Unknown(Which::Second, what.clone()),
        (Value::Nothing, Value::Nothing) => Verdict::Same,
        // Not a difference: one function may work in place and the other not.
        (Value::Nothing, _) => Verdict::Unknown(Which::First, "None".into()),
        (_, Value::Nothing) => Verdict::Unknown(Which::Second, "None".into()),
        _ => match difference(first, second, tolerance, String::new()) {
            Some(difference) => {
                Verdict::Differ(Difference { is_alike: is_alike(first, second), ..difference })
            }
            None => Verdict::Same,
        },
    }
}

fn difference(a: &Value, b: &Value, tolerance: Option<f64>, at: String) -> Option<Difference> {
    if let (Some(a), Some(b)) = (Grid::of(a), Grid::of(b)) {
        return numbers_differ(&a, &b, tolerance, &at);
    }
    let differ = |at: String, first: String, second: String| {
        Some(Difference { at, first, second, is_alike: false })
    };
    match (a, b) {
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            (0..).zip(a.iter().zip(b)).find_map(|(place, (a, b)): (u64, _)| {
                difference(a, b, tolerance, format!("{at}[{place}]"))
            })
        }
        (Value::List(a), Value::List(b)) => {
            differ(at, format!("{} elements", a.len()), format!("{} elements", b.len()))
        }
        (Value::Map(a), Value::Map(b)) => {
            for ((key, x), (other, y)) in a.iter().zip(b) {
                if key != other {
                    return differ(
                        at,
                        format!("key {}", shown(key)),
                        format!("key {}", shown(other)),
                    );
                }
                let found = difference(x, y, tolerance, format!("{at}[{}]", shown(key)));
                if found.is_some() {
                    return found;
                }
            }
            if a.len() == b.len() {
                return None;
            }
            differ(at, format!("{} keys", a.len()), format!("{} keys", b.len()))
        }
        _ if a == b => None,
        _ => differ(at, shown(a), shown(b)),
    }
}

/// Whether two results have the same type and shape. Types of numbers do not matter.
fn is_alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Text(_), Value::Text(_)) | (Value::Bytes(_), Value::Bytes(_)) => true,
        (Value::Map(a), Value::Map(b)) => {
            let mut pairs = a.iter().zip(b);
            a.len() == b.len() && pairs.all(|((key, x), (other, y))| key == other && is_alike(x, y))
        }
        _ => match (Grid::of(a), Grid::of(b), a, b) {
            (Some(a), Some(b), ..) => a.shape() == b.shape(),
            (_, _, Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_alike(a, b))
            }
            _ => false,
        },
    }
}

/// Numbers with a shape, independent of the container type.
enum Grid<'a> {
    Array(&'a Array),
    Numbers { shape: Vec<u64>, numbers: Vec<&'a Number> },
}

impl<'a> Grid<'a> {
    fn of(value: &'a Value) -> Option<Grid<'a>> {
        if let Value::Array(array) = value {
            return Some(Grid::Array(array));
        }
        let (mut shape, mut numbers) = (vec![], vec![]);
        flatten(value, 0, &mut shape, &mut numbers)?;
        let is_even = shape.iter().product::<u64>() == numbers.len() as u64;
        is_even.then_some(Grid::Numbers { shape, numbers })
    }

    fn shape(&self) -> &[u64] {
        match self {
            Grid::Array(array) => &array.shape,
            Grid::Numbers { shape, .. } => shape,
        }
    }

    fn len(&self) -> usize {
        match self {
            Grid::Array(array) => array.len(),
            Grid::Numbers { numbers, .. } => numbers.len(),
        }
    }

    fn get(&self, at: usize) -> Number {
        match self {
            Grid::Array(array) => array.get(at),
            Grid::Numbers { numbers, .. } => numbers[at].clone(),
        }
    }

    /// The largest finite absolute value.
    fn largest(&self) -> f64 {
        let sizes = (0..self.len()).map(|at| size(&self.get(at)));
        sizes.filter(|size| size.is_finite()).fold(0.0, f64::max)
    }
}

/// Returns `None` if the value contains anything but numbers in lists, or lists of different
/// lengths.
fn flatten<'a>(
    value: &'a Value,
    depth: usize,
    shape: &mut Vec<u64>,
    numbers: &mut Vec<&'a Number>,
) -> Option<()> {
    match value {
        Value::Number(number) if depth == shape.len() => numbers.push(number),
        Value::List(items) => {
            match shape.get(depth) {
                Some(&length) if length != items.len() as u64 => return None,
                Some(_) => {}
                None if !numbers.is_empty() => return None,
                None => shape.push(items.len() as u64),
            }
            for item in items {
                flatten(item, depth + 1, shape, numbers)?;
            }
        }
        _ => return None,
    }
    Some(())
}

fn numbers_differ(a: &Grid, b: &Grid, tolerance: Option<f64>, at: &str) -> Option<Difference> {
    if a.shape() != b.shape() {
        let shape = |grid: &Grid| format!("shape {:?}", grid.shape());
        return Some(Difference {
            at: at.to_owned(),
            first: shape(a),
            second: shape(b),
            is_alike: false,
        });
    }
    if let (Grid::Array(a), Grid::Array(b)) = (a, b)
        && a.is_identical(b)
    {
        return None;
    }
    // Where terms cancel, a small number has the rounding error of the large numbers it came from.
    let scale = a.largest().max(b.largest()) * SHARE_OF_LARGEST;
    let place =
        (0..a.len()).find(|&place| !is_same(&a.get(place), &b.get(place), tolerance, scale))?;
    let text = |grid: &Grid| shown(&Value::Number(grid.get(place)));
    Some(Difference {
        at: format!("{at}{}", indices(place as u64, a.shape())),
        first: text(a),
        second: text(b),
        is_alike: true,
    })
}

/// Errors are also compared with this share of the largest number.
const SHARE_OF_LARGEST: f64 = 0.01;

fn is_same(a: &Number, b: &Number, tolerance: Option<f64>, scale: f64) -> bool {
    if let (Number::Whole(_) | Number::Long(..), Number::Whole(_) | Number::Long(..)) = (a, b) {
        return a == b;
    }
    let tolerance = tolerance.unwrap_or_else(|| usual(a).max(usual(b)));
    let ((a_re, a_im), (b_re, b_im)) = (parts(a), parts(b));
    let near = |a: f64, b: f64, size: f64| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * size.max(scale)
    };
    let size = size(a).max(size(b));
    near(a_re, b_re, size) && near(a_im, b_im, size)
}

/// Default tolerance of a type: a few thousand rounding errors.
fn usual(number: &Number) -> f64 {
    match number {
        Number::Float(_, 2) => 1e-2,
        Number::Float(_, 4) | Number::Complex(_, _, 4) => 1e-4,
        _ => 1e-9,
    }
}

fn parts(number: &Number) -> (f64, f64) {
    match number {
        Number::Whole(whole) => (*whole as f64, 0.0),
        Number::Long(is_negative, bytes) => {
            let size = bytes.iter().rev().fold(0.0, |size, &byte| size * 256.0 + f64::from(byte));
            (if *is_negative { -size } else { size }, 0.0)
        }
        Number::Float(float, _) => (*float, 0.0),
        Number::Complex(real, imaginary, _) => (*real, *imaginary),
    }
}

fn size(number: &Number) -> f64 {
    let (real, imaginary) = parts(number);
    // An infinite difference is never within the tolerance.
    let size = real.abs().max(imaginary.abs());
    if size.is_finite() { size } else { 0.0 }
}

/// Indices of an element in an array.
fn indices(place: u64, shape: &[u64]) -> String {
    if shape.is_empty() {
        return String::new();
    }
    let mut rest = place;
    let mut all: Vec<String> = vec![];
    for length in shape.iter().rev() {
        all.push((rest % length.max(&1)).to_string());
        rest /= length.max(&1);
    }
    all.reverse();
    format!("[{}]", all.join(", "))
}

/// A short text for a value.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 80;
    match value {
        Value::Nothing => "None".into(),
        Value::Number(Number::Whole(number)) => number.to_string(),
        Value::Number(Number::Long(is_negative, bytes)) => {
            let sign = if *is_negative { "negative " } else { "" };
            format!("a {sign}integer of {} bytes", bytes.len())
        }
        Value::Number(Number::Float(number, 4)) => format!("{:?}", *number as f32),
        Value::Number(Number::Float(number, _)) => format!("{number:?}"),
        Value::Number(Number::Complex(real, imaginary, _)) => format!("{real:?}{imaginary:+?}j"),
        Value::Text(text) => {
            let short: String = text.chars().take(LONGEST).collect();
            format!("{short:?}{}", if short.len() < text.len() { "…" } else { "" })
        }
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::List(items) => format!("a list of length {}", items.len()),
        Value::Map(items) => format!("a dictionary of length {}", items.len()),
        Value::Array(array) => format!("an array of shape {:?}", array.shape),
        Value::Unknown(what) => what.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(number: f64) -> Value {
        Value::Number(Number::Float(number, 8))
    }

    fn whole(number: i128) -> Value {
        Value::Number(Number::Whole(number))
    }

    fn check(a: &Value, b: &Value, tolerance: Option<f64>, expected: Option<(&str, &str, &str)>) {
        let found = match compare(a, b, tolerance) {
            Verdict::Same => None,
            Verdict::Differ(found) => Some((found.at, found.first, found.second)),
            unknown => panic!("{unknown:?}"),
        };
        let found = found.as_ref().map(|(at, a, b)| (at.as_str(), a.as_str(), b.as_str()));
        assert_eq!(found, expected, "{a:?} and {b:?}");
    }

    #[test]
    fn differences_are_reported_with_their_position() {
        check(&whole(3), &whole(3), None, None);
        check(&whole(3), &whole(4), Some(1.0), Some(("", "3", "4")));
        check(&whole(3), &float(3.0), None, None);
        check(&float(1.0), &float(1.0 + 1e-12), None, None);
        check(&float(1.0), &float(1.001), None, Some(("", "1.0", "1.001")));
        check(&float(1.0), &float(1.001), Some(0.01), None);
        check(&float(f64::NAN), &float(f64::NAN), None, None);
        check(&float(f64::INFINITY), &float(1.0), None, Some(("", "inf", "1.0")));
        check(&float(f64::NAN), &float(1.0), None, Some(("", "NaN", "1.0")));
        let list = |items: &[f64]| Value::List(items.iter().map(|&item| float(item)).collect());
        check(&list(&[1.0, 2.0]), &list(&[1.0, 2.5]), None, Some(("[1]", "2.0", "2.5")));
        check(&list(&[1.0]), &list(&[1.0, 2.0]), None, Some(("", "shape [1]", "shape [2]")));
        let text = |text: &str| Value::Text(text.into());
        check(&text("a"), &text("b"), None, Some(("", "\"a\"", "\"b\"")));
        let mixed = |last: f64| Value::List(vec![text("a"), list(&[1.0, last])]);
        check(&mixed(1.0), &mixed(2.0), None, Some(("[1][1]", "1.0", "2.0")));
        let map = |value: f64| Value::Map(vec![(text("k"), float(value))]);
        check(&map(1.0), &map(1.0), None, None);
        check(&map(1.0), &map(2.0), None, Some(("[\"k\"]", "1.0", "2.0")));
        // Cancellation: the error is small compared with the largest number.
        check(&list(&[1e6, 1e-9]), &list(&[1e6, 2e-9]), None, None);
        check(&list(&[]), &list(&[]), None, None);
        let uneven = Value::List(vec![float(1.0), list(&[2.0])]);
        let even = Value::List(vec![list(&[1.0]), list(&[2.0])]);
        check(&uneven, &even, None, Some(("[0]", "shape []", "shape [1]")));
    }

    #[test]
    fn types_and_shapes_are_compared() {
        let text = |text: &str| Value::Text(text.into());
        let list = |items: &[Value]| Value::List(items.to_vec());
        let map = |key: &str, value: Value| Value::Map(vec![(text(key), value)]);
        let check = |a: &Value, b: &Value, expected: bool| {
            let Verdict::Differ(found) = compare(a, b, None) else { panic!("{a:?} and {b:?}") };
            assert_eq!(found.is_alike, expected, "{a:?} and {b:?}");
        };
        check(&whole(3), &float(4.0), true);
        check(&text("a"), &text("bc"), true);
        check(&Value::Bytes(vec![1]), &Value::Bytes(vec![2, 3]), true);
        check(&whole(3), &text("3"), false);
        check(&list(&[whole(1)]), &list(&[float(2.0)]), true);
        check(&list(&[whole(1)]), &list(&[whole(1), whole(2)]), false);
        check(&list(&[text("a"), whole(1)]), &list(&[text("b"), whole(1)]), true);
        check(&list(&[text("a"), whole(1)]), &list(&[text("b"), text("1")]), false);
        check(&map("k", whole(1)), &map("k", whole(2)), true);
        check(&map("k", whole(1)), &map("l", whole(1)), false);
    }

    #[test]
    fn an_incomparable_result_is_reported_with_its_type() {
        let unknown = Value::Unknown("a value of type x.Y".into());
        assert_eq!(
            compare(&whole(1), &unknown, None),
            Verdict::Unknown(Which::Second, "a value of type x.Y".into())
        );
        assert_eq!(compare(&Value::Nothing, &Value::Nothing, None), Verdict::Same);
        assert_eq!(
            compare(&Value::Nothing, &whole(1), None),
            Verdict::Unknown(Which::First, "None".into())
        );
    }
}
