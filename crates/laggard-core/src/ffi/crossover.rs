//! Array size from which call overhead is small compared with the work of the call.

use super::{beside, nets};
use crate::model::ffi::{Ffi, Who};
use crate::stats::summary::Summary;

/// Call overhead below this share of the work is small.
pub const SMALL: f64 = 0.1;

/// Call overhead of a binding by array size.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossed {
    /// Place in [`Ffi::bindings`].
    pub binding: usize,
    /// Place in [`Ffi::pythons`].
    pub python: usize,
    /// Measurements by number of elements, ascending.
    pub points: Vec<Point>,
    /// Number of elements from which the overhead is small.
    pub crossing: Crossing,
}

/// Times of a call for one number of elements, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Elements.
    pub size: u64,
    /// Through the binding.
    pub call_ns: f64,
    /// The same work in a C loop.
    pub work_ns: f64,
}

impl Point {
    /// Call overhead as a share of the work.
    pub fn share(&self) -> f64 {
        (self.call_ns - self.work_ns) / self.work_ns
    }
}

/// Number of elements from which call overhead is small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    /// About this number.
    At(f64),
    /// At most this number, the smallest measured.
    Before(u64),
    /// More than this number, the largest measured.
    After(u64),
    /// The work alone was not measured.
    Unknown,
}

pub(super) fn crossed(ffi: &Ffi) -> Vec<Crossed> {
    let mut found: Vec<Crossed> = vec![];
    for cell in ffi.cells.iter().filter(|cell| cell.profile == 0) {
        let (Some(size), Who::Binding(binding)) = (ffi.categories[cell.category].size, cell.who)
        else {
            continue;
        };
        let work = beside(ffi, cell, Who::C).filter(|work| !work.launches.is_empty());
        let (Some(work), false) = (work, cell.launches.is_empty()) else { continue };
        let [call_ns, work_ns] = [cell, work].map(|cell| Summary::of(&nets(ffi, cell)).median);
        let point = Point { size, call_ns, work_ns };
        let is_same = |of: &&mut Crossed| (of.binding, of.python) == (binding, cell.python);
        match found.iter_mut().find(is_same) {
            Some(of) => of.points.push(point),
            None => found.push(Crossed {
                binding,
                python: cell.python,
                points: vec![point],
                crossing: Crossing::Unknown,
            }),
        }
    }
    for of in &mut found {
        of.points.sort_by_key(|point| point.size);
        of.crossing = crossing(&of.points);
    }
    found
}

/// The last size at which the share falls below [`SMALL`], interpolated on a log-log scale.
fn crossing(points: &[Point]) -> Crossing {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Crossing::Unknown;
    };
    if last.share() >= SMALL {
        return Crossing::After(last.size);
    }
    let Some(before) = points.iter().rposition(|point| point.share() >= SMALL) else {
        return Crossing::Before(first.size);
    };
    let (low, high) = (&points[before], &points[before + 1]);
    // The logarithm needs a positive share, and noise may make it negative.
    let [from, to] = [low, high].map(|point| point.share().max(SMALL / 100.0).ln());
    let along = (from - SMALL.ln()) / (from - to);
    let [from, to] = [low, high].map(|point| (point.size as f64).ln());
    Crossing::At((from + along * (to - from)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(cost: f64, each: f64, sizes: &[u64]) -> Vec<Point> {
        let point = |&size: &u64| {
            let work_ns = each * size as f64;
            Point { size, call_ns: work_ns + cost, work_ns }
        };
        sizes.iter().map(point).collect()
    }

    #[test]
    fn overhead_is_a_tenth_at_the_crossing() {
        // 50 ns of overhead and 0.5 ns of work per element: 10 % at 1,000 elements.
        let Crossing::At(size) = crossing(&points(50.0, 0.5, &[1, 8, 64, 512, 4096, 32768])) else {
            panic!("none");
        };
        assert!((size - 1000.0).abs() < 1e-6, "{size}");
        assert_eq!(crossing(&points(50.0, 0.5, &[1, 8])), Crossing::After(8));
        assert_eq!(crossing(&points(0.01, 0.5, &[1, 8])), Crossing::Before(1));
        assert_eq!(crossing(&[]), Crossing::Unknown);
        // Noise may make the call look faster than the work.
        let mut noisy = points(50.0, 0.5, &[1, 1 << 20]);
        noisy[1].call_ns = noisy[1].work_ns * 0.99;
        assert!(matches!(crossing(&noisy), Crossing::At(_)));
    }
}
