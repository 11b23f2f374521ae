//! SVG charts of a run: bars by category, and lines of call overhead by array size. The colours of
//! the page apply; every mark has a tooltip with its value.

use super::{FfiReport, name_of, of, tables};
use crate::escape::xml;
use laggard_core::ffi::{Crossed, SMALL};
use laggard_core::model::ffi::{Cell, Who};
use std::fmt::Write as _;

/// Colours of bindings in their order. The palette is safe for colour-blind readers.
const COLOURS: [&str; 10] = [
    "#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#994455", "#997700",
    "#777777", "#004488",
];
const WIDTH: f64 = 900.0;

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// All charts, as sections of a page.
pub(super) fn html(report: &FfiReport) -> String {
    let mut text = String::from("<div class=\"ffi\">\n");
    for python in 0..report.ffi.pythons.len() {
        text += &bars(report, python);
        text += &lines(report, python);
    }
    text + "</div>\n"
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Spans the values, rounded outwards to powers of ten.
    fn of(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Axis> {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        (high > 0.0).then(|| {
            let (low, high) = (low.log10().floor(), high.log10().ceil());
            Axis { low, high: high.max(low + 1.0), from, to }
        })
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.max(1e-12).log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Powers of ten and their positions.
    fn ticks(&self) -> Vec<(f64, f64)> {
        let powers = self.low as i32..=self.high as i32;
        powers.map(|power| 10f64.powi(power)).map(|value| (value, self.at(value))).collect()
    }
}

/// The title of an axis, centred.
fn axis_title(x: f64, y: f64, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", xml(text))
}

/// `12.3 ns`, `1 µs`.
fn time(ns: f64) -> String {
    tables::time(ns)
}

/// One bar per binding and category.
fn bars(report: &FfiReport, python: usize) -> String {
    let ffi = report.ffi;
    let is_shown = |cell: &Cell| {
        matches!(cell.who, Who::Binding(_))
            && (cell.python, cell.profile) == (python, 0)
            && ffi.categories[cell.category].size.is_none()
    };
    let cells: Vec<_> =
        of(report, is_shown).filter_map(|(cell, of)| Some((cell, of.net?, of))).collect();
    const LEFT: f64 = 120.0;
    const ROW: f64 = 9.0;
    const GAP: f64 = 12.0;
    let all =
        cells.iter().flat_map(|(_, net, _)| [net.middle, net.range.map_or(net.middle, |r| r.1)]);
    let Some(axis) = Axis::of(all, LEFT, WIDTH - 60.0) else { return String::new() };
    let mut body = String::new();
    let mut y = 24.0;
    let categories = (0..ffi.categories.len()).filter(|at| ffi.categories[*at].size.is_none());
    for category in categories {
        let rows: Vec<_> = cells.iter().filter(|(cell, ..)| cell.category == category).collect();
        if rows.is_empty() {
            continue;
        }
        let middle = y + rows.len() as f64 * ROW / 2.0 + 4.0;
        let name = xml(&ffi.categories[category].name);
        let about = xml(&ffi.categories[category].about);
        let _ = write!(
            body,
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{name}<title>{about}</title></text>",
            LEFT - 8.0
        );
        for (cell, net, figure) in rows {
            let Who::Binding(binding) = cell.who else { continue };
            let end = axis.at(net.middle);
            let ratio = figure.ratio.map_or_else(String::new, |of| {
                format!(", {}x the floor", tables::ratio(of.middle))
            });
            let said = xml(&format!(
                "{}, {}: {}{ratio}",
                name_of(ffi, cell.who),
                ffi.categories[category].name,
                time(net.middle)
            ));
            let _ = write!(
                body,
                "<g><title>{said}</title><rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>",
                (end - LEFT).max(1.0),
                ROW - 1.5,
                colour(binding)
            );
            if let Some((low, high)) = net.range {
                let (low, high, at) = (axis.at(low), axis.at(high), y + (ROW - 1.5) / 2.0);
                let _ = write!(
                    body,
                    "<line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"range\"/>"
                );
            }
            body += "</g>";
            y += ROW;
        }
        y += GAP;
    }
    let height = y + 34.0;
    let mut grid = String::new();
    for (value, x) in axis.ticks() {
        let _ = write!(
            grid,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"18\" y2=\"{:.1}\" class=\"grid\"/><text x=\"{x:.1}\" y=\"12\" text-anchor=\"middle\">{}</text>",
            height - 32.0,
            xml(&time(value))
        );
    }
    grid += &axis_title((LEFT + WIDTH - 60.0) / 2.0, height - 10.0, "time per call, logarithmic");
    let _ = write!(grid, "<text x=\"{}\" y=\"12\" text-anchor=\"end\">category</text>", LEFT - 8.0);
    let bindings: Vec<usize> = (0..ffi.bindings.len())
        .filter(|at| cells.iter().any(|(cell, ..)| cell.who == Who::Binding(*at)))
        .collect();
    format!(
        "<h2>Time per call{}</h2>\n{}<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"time per call by category and binding\">{grid}{body}</svg>\n<p class=\"minor\">medians over process launches with 95 % confidence intervals, loop overhead subtracted; logarithmic axis</p>\n",
        of_python(report, python),
        legend(report, &bindings)
    )
}

fn of_python(report: &FfiReport, python: usize) -> String {
    let ffi = report.ffi;
    let python = if ffi.pythons.len() > 1 {
        format!(", Python {}", ffi.pythons[python].name)
    } else {
        String::new()
    };
    let build = if ffi.profiles.len() > 1 {
        format!(", {} builds", ffi.profiles[0].name)
    } else {
        String::new()
    };
    xml(&format!("{build}{python}"))
}

fn legend(report: &FfiReport, bindings: &[usize]) -> String {
    let entry = |at: &usize| {
        format!(
            "<span class=\"key\" title=\"{}\"><i style=\"background:{}\"></i>{}</span>",
            xml(&report.ffi.bindings[*at].about),
            colour(*at),
            xml(&report.ffi.bindings[*at].name)
        )
    };
    format!("<p class=\"legend\">{}</p>\n", bindings.iter().map(entry).collect::<String>())
}

/// Call overhead as a share of the work, by array size.
fn lines(report: &FfiReport, python: usize) -> String {
    const HEIGHT: f64 = 380.0;
    const BELOW: f64 = HEIGHT - 44.0;
    /// Smaller shares are drawn here: they are too small to measure.
    const LEAST: f64 = 1e-3;
    let of: Vec<&Crossed> =
        report.figures.crossed.iter().filter(|of| of.python == python).collect();
    let sizes = of.iter().flat_map(|of| of.points.iter().map(|point| point.size as f64));
    let shares = of.iter().flat_map(|of| of.points.iter().map(|point| point.share().max(LEAST)));
    let (Some(x), Some(y)) =
        (Axis::of(sizes, 70.0, WIDTH - 130.0), Axis::of(shares.chain([SMALL]), BELOW, 14.0))
    else {
        return String::new();
    };
    let mut body = String::new();
    for (value, at) in x.ticks() {
        let _ = write!(
            body,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"14\" y2=\"{BELOW}\" class=\"grid\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            BELOW + 16.0,
            crate::number::count(value as u64)
        );
    }
    for (value, at) in y.ticks() {
        let _ = write!(
            body,
            "<line x1=\"70\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/><text x=\"64\" y=\"{:.1}\" text-anchor=\"end\">{} %</text>",
            WIDTH - 130.0,
            at + 4.0,
            crate::number::significant(value * 100.0)
        );
    }
    let middle = (70.0 + WIDTH - 130.0) / 2.0;
    body += &axis_title(middle, HEIGHT - 6.0, "elements of the array, logarithmic");
    // Reads upwards, beside the vertical axis.
    let _ = write!(
        body,
        "<g transform=\"rotate(-90 14 {0:.1})\">{1}</g>",
        BELOW / 2.0,
        axis_title(14.0, BELOW / 2.0, "overhead as a share of the work")
    );
    let tenth = y.at(SMALL);
    let _ = write!(
        body,
        "<line x1=\"70\" x2=\"{}\" y1=\"{tenth:.1}\" y2=\"{tenth:.1}\" class=\"mark\"/><text x=\"{}\" y=\"{:.1}\">10 % of the work</text>",
        WIDTH - 130.0,
        WIDTH - 124.0,
        tenth + 4.0
    );
    for of in &of {
        let place = |point: &laggard_core::ffi::Point| {
            format!("{:.1},{:.1}", x.at(point.size as f64), y.at(point.share().max(LEAST)))
        };
        let name = &report.ffi.bindings[of.binding].name;
        let path: Vec<String> = of.points.iter().map(place).collect();
        let said =
            format!("{name}: overhead below 10 % at {} elements", tables::crossing(of.crossing));
        let _ = write!(
            body,
            "<g><title>{}</title><polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
            xml(&said),
            path.join(" "),
            colour(of.binding)
        );
        for point in &of.points {
            let at = place(point);
            let (px, py) = at.split_once(',').unwrap_or(("0", "0"));
            let said = format!(
                "{name}, {} elements: {} per call, {} of it work",
                crate::number::count(point.size),
                time(point.call_ns),
                time(point.work_ns)
            );
            let _ = write!(
                body,
                "<circle cx=\"{px}\" cy=\"{py}\" r=\"3.5\" fill=\"{}\"><title>{}</title></circle>",
                colour(of.binding),
                xml(&said)
            );
        }
        body += "</g>";
    }
    let bindings: Vec<usize> = of.iter().map(|of| of.binding).collect();
    format!(
        "<h2>Call overhead by number of elements{}</h2>\n{}<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"call overhead by number of elements\">{body}</svg>\n<p class=\"minor\">overhead as a share of the work (time of the same function called in a C loop); values below 0.1 % are drawn at 0.1 %</p>\n",
        of_python(report, python),
        legend(report, &bindings)
    )
}
