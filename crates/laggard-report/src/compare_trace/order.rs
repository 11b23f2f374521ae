//! Sections that depend on the order of kernels: layers, aligned kernels and fusion.

use super::tables::{findings, pair, signed_in, unit};
use super::words::{Lap, signed, time};
use super::{CompareTrace, Shown};
use crate::document::Document;
use crate::number::{count, mean_count, plural, significant};
use crate::rows::{hidden, kept, more};
use crate::table::{BETWEEN_NAMES, Column, Table};
use laggard_core::compare::trace::found::{
    Architecture, Finding, Fusion, KernelPair, LayerRow, Layers, Relation, Segment, Side, Verdict,
};

/// Adds how layers were found and the layers that differ, or all layers if requested.
pub(super) fn layers(report: &CompareTrace, document: &mut Document) {
    let layers = &report.comparison.layers;
    let is_asked = report.shown == Shown::Layers;
    if layers.counts == [0, 0] && layers.rows.is_empty() {
        if is_asked {
            document.heading("Layers");
            document.line("no layers found on either side");
        }
        return;
    }
    document.heading("Layers");
    document.line(how_found(layers, &report.comparison.sides));
    let mut rows: Vec<(String, &Finding)> = layers
        .rows
        .iter()
        .filter(|row| is_asked || differs(&row.finding))
        .map(|row| (layer_name(row), &row.finding))
        .collect();
    if !is_asked {
        rows.sort_by(|(_, x), (_, y)| y.gap_ns.middle.abs().total_cmp(&x.gap_ns.middle.abs()));
    }
    match rows.is_empty() {
        true => document.line("no detectable difference in any layer"),
        false => findings(report, &rows, report.top, "layer", document),
    }
}

fn how_found(layers: &Layers, sides: &[Side; 2]) -> String {
    let side = |side: usize| {
        let model = match sides[side].architecture {
            Architecture::Unknown => String::new(),
            architecture => format!(", {}", architecture.word()),
        };
        let found = match layers.counts[side] {
            0 => "none found".to_owned(),
            n => format!("{} found by {}", plural(n, "layer"), layers.found_by[side].words()),
        };
        format!("{}: {found}{model}", ["A", "B"][side])
    };
    format!("{}; {}", side(0), side(1))
}

fn differs(finding: &Finding) -> bool {
    !matches!(finding.verdict, Verdict::NoDetectableDifference(_) | Verdict::SingleSample)
}

/// The name of a layer, with its number in B if that differs.
fn layer_name(row: &LayerRow) -> String {
    match row.numbers {
        [Some(a), Some(b)] if a != b => format!("{} (B: layer {b})", row.finding.name),
        _ => row.finding.name.clone(),
    }
}

/// Adds the aligned kernels of a layer or a step.
pub(super) fn aligned(report: &CompareTrace, document: &mut Document) {
    let segments = || report.comparison.aligned.iter().filter(|segment| !segment.pairs.is_empty());
    if segments().next().is_none() {
        return;
    }
    document.heading("Kernels in order");
    for (number, segment) in segments().enumerate() {
        if number > 0 {
            document.blank();
        }
        document.line(place(report, segment));
        pairs(report, segment, document);
    }
}

/// `layer: 32 times per step in A, 32 times in B; sequence identical in 31 of 32 (A) and 32 of
/// 32 (B)`.
fn place(report: &CompareTrace, segment: &Segment) -> String {
    let lap = Lap::common(report.comparison).one;
    let [a, b] = segment.repeats.map(|n| match mean_count(n).as_str() {
        "1" => "once".to_owned(),
        n => format!("{n} times"),
    });
    let typical = segment.typical.map(|(same, all)| format!("{} of {}", count(same), count(all)));
    let [of_a, of_b] = typical;
    let place = match &*segment.place {
        "lap" => lap,
        "outside of layers" => "outside layers",
        place => place,
    };
    format!(
        "{place}: {a} per {lap} in A, {b} in B; sequence identical in {of_a} (A) and {of_b} (B); \
         times are per occurrence"
    )
}

fn pairs(report: &CompareTrace, segment: &Segment, document: &mut Document) {
    let shown = most_different(segment, report.top);
    let rows = || shown.iter().map(|&at| (at, &segment.pairs[at]));
    let unit = unit(rows().flat_map(|(_, pair)| pair.mean_ns));
    let mut table = Table::new([
        Column::number("#", ""),
        Column::names("operation"),
        Column::text("relation").may_go(),
        Column::number("diff.", unit.name),
        Column::number("ratio", ""),
        Column::number("A", unit.name),
        Column::number("B", unit.name),
        Column::range("samples", "n, n").may_go(),
        Column::names("kernel in A"),
        Column::names("kernel in B"),
    ]);
    for (at, kernels) in rows() {
        let [a, b] = kernels.mean_ns;
        let is_there = |side: usize| !kernels.kernels[side].is_empty();
        let mean = |side: usize| {
            if is_there(side) { unit.number(kernels.mean_ns[side]) } else { String::new() }
        };
        let names = |side: usize| kernels.kernels[side].join(" + ");
        let of_b = if kernels.relation == Relation::Same { "same".to_owned() } else { names(1) };
        table.push([
            (at + 1).to_string(),
            operation(kernels),
            kernels.relation.word().to_owned(),
            signed_in(unit, gap(kernels)),
            if a > 0.0 && b > 0.0 { significant(b / a) } else { String::new() },
            mean(0),
            mean(1),
            pair(
                [0, 1].map(
                    |side| if is_there(side) { count(kernels.n[side]) } else { String::new() },
                ),
            ),
            names(0),
            of_b,
        ]);
    }
    document.table(table);
    hidden((segment.pairs.len() - shown.len()) as u64, document);
}

/// Indexes of the pairs with the largest differences, in sequence order. Ties prefer pairs of
/// different kernels.
fn most_different(segment: &Segment, top: Option<usize>) -> Vec<usize> {
    let mut places: Vec<usize> = (0..segment.pairs.len()).collect();
    places.sort_by(|&x, &y| {
        let (x, y) = (&segment.pairs[x], &segment.pairs[y]);
        let is_same = |pair: &KernelPair| pair.relation == Relation::Same;
        gap(y).abs().total_cmp(&gap(x).abs()).then(is_same(x).cmp(&is_same(y)))
    });
    let mut places = kept(&places, top).to_vec();
    places.sort_unstable();
    places
}

fn gap(pair: &KernelPair) -> f64 {
    pair.mean_ns[1] - pair.mean_ns[0]
}

fn operation(pair: &KernelPair) -> String {
    match pair.projection.as_str() {
        "" => pair.class.clone(),
        projection => format!("{} ({projection})", pair.class),
    }
}

/// Adds the kernel sequences that one side fuses, with details if requested.
pub(super) fn fusions(report: &CompareTrace, document: &mut Document) {
    let all = &report.comparison.fusions;
    let is_asked = report.shown == Shown::Fusion;
    if all.is_empty() {
        if is_asked {
            document.heading("Fusion");
            document.line("no fused kernel sequences found");
        }
        return;
    }
    document.heading("Fusion");
    let rows = kept(all, report.top);
    let saved = unit(rows.iter().map(|row| row.saved_ns));
    let mean = unit(rows.iter().flat_map(|row| row.mean_ns));
    let mut table = Table::new([
        Column::number("saved", saved.name),
        Column::number("fused", mean.name),
        Column::number("unfused", mean.name),
        Column::number("count", "n"),
        Column::number("seen", "n"),
        Column::number("conf.", "%").may_go(),
        Column::text("by"),
        Column::names("fused kernels"),
        Column::names("unfused kernels"),
    ]);
    for row in rows {
        table.push([
            saved.number(row.saved_ns),
            mean.number(row.mean_ns[0]),
            mean.number(row.mean_ns[1]),
            mean_count(row.lap_count),
            count(row.seen),
            format!("{:.0}", 100.0 * row.confidence),
            side_word(row).to_owned(),
            row.fused.join(BETWEEN_NAMES),
            row.unfused.join(BETWEEN_NAMES),
        ]);
    }
    document.table(table);
    more(all, report.top, document);
    let lap = Lap::common(report.comparison);
    document.minor(format!(
        "saved: per {}; fused, unfused: per occurrence; conf.: confidence",
        lap.one
    ));
    if is_asked {
        document.blank();
        for row in rows {
            document.stack(fusion_title(report, row), &fusion_lines(row));
        }
    }
}

/// The side that runs the fused kernels.
pub(super) fn side_word(fusion: &Fusion) -> &'static str {
    if fusion.fused_by == 0 { "A" } else { "B" }
}

fn fusion_title(report: &CompareTrace, row: &Fusion) -> String {
    let lap = Lap::common(report.comparison).one;
    let (word, ns) =
        if row.saved_ns < 0.0 { ("costs", -row.saved_ns) } else { ("saves", row.saved_ns) };
    format!(
        "{} runs {} instead of {}: {word} {} per {lap}",
        side_word(row),
        plural(row.fused.len() as u64, "kernel"),
        count(row.unfused.len() as u64),
        time(ns)
    )
}

fn fusion_lines(row: &Fusion) -> Vec<String> {
    let fused = row.fused.iter().map(|name| format!("fused     {name}"));
    let unfused = row.unfused.iter().map(|name| format!("unfused   {name}"));
    let evidence = Some(format!("evidence  {}", row.evidence)).filter(|_| !row.evidence.is_empty());
    fused.chain(unfused).chain(evidence).collect()
}

/// Adds launches by kernel type.
pub(super) fn types(report: &CompareTrace, document: &mut Document) {
    let rows = &report.comparison.types;
    if rows.is_empty() {
        return;
    }
    document.heading("Launches by type");
    let unit = unit(rows.iter().flat_map(|row| row.lap_ns));
    let mut table = Table::new([
        Column::text("type"),
        Column::number("launches A", "n"),
        Column::number("launches B", "n"),
        Column::number("time A", unit.name),
        Column::number("time B", unit.name),
        Column::number("diff.", unit.name),
    ]);
    for row in rows {
        table.push([
            row.name.clone(),
            mean_count(row.lap_count[0]),
            mean_count(row.lap_count[1]),
            unit.number(row.lap_ns[0]),
            unit.number(row.lap_ns[1]),
            signed_in(unit, row.lap_ns[1] - row.lap_ns[0]),
        ]);
    }
    document.table(table);
    let [a, b] = [0, 1].map(|side| rows.iter().map(|row| row.lap_count[side]).sum::<f64>());
    let [of_a, of_b] = [0, 1].map(|side| rows.iter().map(|row| row.lap_ns[side]).sum::<f64>());
    document.minor(format!(
        "total: {} and {} launches, {} and {}, difference {}",
        mean_count(a),
        mean_count(b),
        time(of_a),
        time(of_b),
        signed(of_b - of_a)
    ));
}
