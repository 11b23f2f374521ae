//! Compares the operations on every layout with loops over single elements.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use proptest::prelude::*;
use raptors_core::ops::{self, Axis};
use raptors_core::{Element, Out, View};

/// Memory layout of a matrix.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Contiguous,
    Turned,
    RowGaps,
    AllGaps,
    Backwards,
}

const LAYOUTS: [Layout; 5] =
    [Layout::Contiguous, Layout::Turned, Layout::RowGaps, Layout::AllGaps, Layout::Backwards];

/// A matrix whose element at (row, col) is a small integer that depends on both.
struct Matrix {
    memory: Vec<f64>,
    rows: usize,
    cols: usize,
    layout: Layout,
}

fn number(row: usize, col: usize) -> f64 {
    ((row * 31 + col * 7) % 23) as f64 - 11.0
}

impl Matrix {
    fn new(rows: usize, cols: usize, layout: Layout) -> Self {
        let mut matrix =
            Self { memory: vec![f64::NAN; (rows + 1) * (cols + 1) * 6 + 1], rows, cols, layout };
        let (start, row_stride, col_stride) = matrix.geometry();
        for row in 0..rows {
            for col in 0..cols {
                let at = start + row as isize * row_stride + col as isize * col_stride;
                matrix.memory[at as usize] = number(row, col);
            }
        }
        matrix
    }

    /// Offset of the first element, and strides of rows and columns.
    fn geometry(&self) -> (isize, isize, isize) {
        let (rows, cols) = (self.rows as isize, self.cols as isize);
        match self.layout {
            Layout::Contiguous => (0, cols, 1),
            Layout::Turned => (0, 1, rows),
            Layout::RowGaps => (0, cols + 3, 1),
            Layout::AllGaps => (0, 3 * cols, 3),
            Layout::Backwards => ((rows * cols - 1).max(0), -cols, -1),
        }
    }

    fn view(&self) -> View<f64> {
        let (start, row_stride, col_stride) = self.geometry();
        let at = self.memory[start as usize..].as_ptr();
        // SAFETY: the memory contains every element of every layout.
        unsafe { View::new(at, (self.rows, self.cols), (row_stride, col_stride)) }
    }
}

/// The elements of a result, row by row.
fn elements(out: &Out) -> Vec<f64> {
    let (rows, cols) = out.shape;
    let at =
        |row: usize, col: usize| if out.is_turned { col * rows + row } else { row * cols + col };
    let places = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
    // SAFETY: a result has an element for every index.
    places.map(|(row, col)| unsafe { *out.block.as_ptr::<f64>().add(at(row, col)) }).collect()
}

fn map(rows: usize, cols: usize, of: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let of = &of;
    (0..rows).flat_map(|row| (0..cols).map(move |col| of(row, col))).collect()
}

fn check(rows: usize, cols: usize, layout: Layout, other: Layout) {
    let matrix = Matrix::new(rows, cols, layout);
    let view = matrix.view();
    let case = format!("{rows}x{cols} {layout:?} {other:?}");
    let all = map(rows, cols, number);
    let total: f64 = all.iter().sum();
    assert_eq!(ops::sum(view), total, "sum {case}");
    let mean = ops::mean(view);
    assert!(mean == total / all.len() as f64 || all.is_empty() && mean.is_nan(), "mean {case}");

    let scaled = ops::scale(view, 3.0).unwrap();
    assert_eq!(elements(&scaled), map(rows, cols, |row, col| number(row, col) * 3.0), "{case}");

    let same = Matrix::new(rows, cols, other);
    let doubled = ops::add(view, same.view()).unwrap();
    assert_eq!(elements(&doubled), map(rows, cols, |row, col| number(row, col) * 2.0), "{case}");

    let row = Matrix::new(1, cols, other);
    let expected = map(rows, cols, |row, col| number(row, col) + number(0, col));
    assert_eq!(elements(&ops::add(view, row.view()).unwrap()), expected, "row {case}");
    assert_eq!(elements(&ops::add(row.view(), view).unwrap()), expected, "row first {case}");

    let col = Matrix::new(rows, 1, other);
    let expected = map(rows, cols, |row, col| number(row, col) + number(row, 0));
    assert_eq!(elements(&ops::add(view, col.view()).unwrap()), expected, "column {case}");
    let expected = map(rows, cols, |r, c| number(0, c) + number(r, 0));
    assert_eq!(elements(&ops::add(row.view(), col.view()).unwrap()), expected, "outer {case}");

    for (axis, len, over) in [(Axis::Rows, cols, rows), (Axis::Columns, rows, cols)] {
        let at = |i, k| if axis == Axis::Rows { number(k, i) } else { number(i, k) };
        let sums: Vec<f64> = (0..len).map(|i| (0..over).map(|k| at(i, k)).sum()).collect();
        let got = ops::sum_axis(view, axis).unwrap();
        // SAFETY: there is a sum for every remaining index.
        let got: Vec<f64> = (0..len).map(|i| unsafe { *got.as_ptr::<f64>().add(i) }).collect();
        assert_eq!(got, sums, "sums along {axis:?} {case}");
        let got = ops::mean_axis(view, axis).unwrap();
        for (i, sum) in sums.iter().enumerate() {
            // SAFETY: there is a mean for every remaining index.
            let mean = unsafe { *got.as_ptr::<f64>().add(i) };
            assert!(mean == sum / over as f64 || over == 0 && mean.is_nan(), "{axis:?} {case}");
        }
    }
}

#[test]
fn every_layout_with_every_other() {
    for layout in LAYOUTS {
        for other in LAYOUTS {
            for (rows, cols) in
                [(0, 0), (0, 5), (5, 0), (1, 1), (1, 9), (9, 1), (3, 4), (17, 33), (64, 64)]
            {
                check(rows, cols, layout, other);
            }
        }
    }
}

/// Longer than one wider sum and one band.
#[test]
fn long_and_deep() {
    for layout in LAYOUTS {
        check(3000, 7, layout, Layout::Contiguous);
        check(3, 40_000, layout, Layout::AllGaps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_shape(rows in 0usize..80, cols in 0usize..80, layout in 0usize..5, other in 0usize..5) {
        check(rows, cols, LAYOUTS[layout], LAYOUTS[other]);
    }
}

/// Naive sums of float32 would have errors of several percent.
#[test]
fn float32_is_accurate_however_long() {
    let numbers = vec![0.1f32; 1 << 22];
    let exact = f64::from(0.1f32) * numbers.len() as f64;
    let view = View::of_slice(&numbers, 1, numbers.len()).unwrap();
    assert!((ops::sum(view) / exact - 1.0).abs() < 1e-5);
    let tall = View::of_slice(&numbers, numbers.len() / 4, 4).unwrap();
    for axis in [Axis::Rows, Axis::Columns] {
        let means = ops::mean_axis(tall, axis).unwrap();
        // SAFETY: there are at least four means.
        let mean = unsafe { *means.as_ptr::<f32>() };
        assert!((mean / 0.1 - 1.0).abs() < 1e-5, "{axis:?}: {mean}");
    }
}

#[test]
fn integers_become_wider() {
    let numbers = vec![i32::MAX; 600];
    let view = View::of_slice(&numbers, 20, 30).unwrap();
    assert_eq!(ops::sum(view), i64::from(i32::MAX) * 600);
    let means = ops::mean_axis(view, Axis::Rows).unwrap();
    // SAFETY: means of int32 are float64, one per column.
    assert_eq!(unsafe { *means.as_ptr::<<i32 as Element>::Mean>().add(29) }, f64::from(i32::MAX));
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let numbers = [0.0f64; 12];
    let a = View::of_slice(&numbers, 3, 4).unwrap();
    let b = View::of_slice(&numbers, 2, 4).unwrap();
    let said = ops::add(a, b).unwrap_err().to_string();
    assert_eq!(said, "shapes (3, 4) and (2, 4) do not fit together");
}
