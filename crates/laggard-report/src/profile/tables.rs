//! Tables and trees of a profile.

use super::{ProfileReport, ShownTree, TreeKind, quantity, whole};
use crate::document::Document;
use crate::number::{count, percent, plural};
use crate::rows::kept;
use crate::table::{Column, Table};
use laggard_core::model::profile::{FrameKind, Unit};
use laggard_core::profile::{By, Totals, Tree};

/// A table with the base of its shares.
pub(super) fn table(totals: &Totals, report: &ProfileReport, document: &mut Document) {
    document.heading(title(totals.by, report.view.unit()));
    let rows = kept(&totals.rows, report.top);
    if rows.is_empty() {
        document.line("no samples");
        return;
    }
    // Events have different units, and plain counts equal the number of samples.
    let has_weight = totals.by != By::Event
        && (report.view.unit() != Unit::Count || totals.whole.weight != totals.whole.samples);
    let quantity = quantity(report.view.unit());
    let unit = quantity.unit(rows.iter().map(|row| row.own.weight as f64));
    let nested = !matches!(totals.by, By::Thread | By::Process | By::Event);
    let (noun, of) = nouns(totals.by);
    let mut table = Table::new([
        Column::number("total", "%"),
        Column::number(if nested { "self" } else { "share" }, "%"),
        Column::number(
            if nested { "self" } else { "time" },
            if has_weight { unit.name } else { "" },
        ),
        Column::number("samples", "n"),
        Column::text("command"),
        if totals.by == By::Function { Column::text(of) } else { Column::names(of) },
        Column::names(noun),
    ]);
    for row in rows {
        let blank = String::new;
        table.push([
            if nested { percent(row.total.share_of(totals.whole)) } else { blank() },
            if totals.by == By::Event { blank() } else { percent(row.own.share_of(totals.whole)) },
            if has_weight { unit.number(row.own.weight as f64) } else { blank() },
            count(row.total.samples),
            row.command.clone(),
            row.of.clone(),
            row.name.clone(),
        ]);
    }
    document.table(table);
    let hidden = totals.rows.len() - rows.len();
    if hidden > 0 {
        let rest = totals.rows[rows.len()..]
            .iter()
            .fold(0.0, |sum, row| sum + row.own.share_of(totals.whole));
        document.minor(format!(
            "({}: {} % self)",
            plural(hidden as u64, "more row"),
            percent(rest)
        ));
    }
    if totals.by != By::Event {
        let samples = if nested { "; samples: stacks that contain the row" } else { "" };
        document.minor(format!("% of {}{samples}", whole(report.view, totals.whole)));
    }
    if totals.by == By::PythonLine {
        document.minor("self: innermost Python line, including native callees");
    }
}

/// A tree with one node per line. The indentation increases only at branches.
pub(super) fn tree(shown: &ShownTree, report: &ProfileReport, document: &mut Document) {
    document.heading(tree_title(&shown.kind));
    let lines = lines(&shown.tree, shown.least);
    if lines.is_empty() {
        document.line("no samples");
        return;
    }
    let mut table = Table::new([
        Column::number("total", "%"),
        Column::number("self", "%"),
        Column::number("samples", "n"),
        Column::names("function"),
        Column::text("library"),
    ]);
    let rows = kept(&lines, report.top);
    // The self time of callers is not part of a callers tree.
    let has_self = !matches!(shown.kind, TreeKind::Callers(_));
    for &(indent, node) in rows {
        let node = &shown.tree.nodes[node as usize];
        let name = match node.kind {
            FrameKind::Mark => format!("-- {} --", node.name),
            _ => node.name.clone(),
        };
        let is_python = node.kind == FrameKind::Python;
        table.push([
            percent(node.total.share_of(shown.tree.whole)),
            if has_self { percent(node.own.share_of(shown.tree.whole)) } else { String::new() },
            count(node.total.samples),
            "· ".repeat(indent) + &name,
            if is_python { String::new() } else { node.library.clone() },
        ]);
    }
    document.table(table);
    let all = shown.tree.nodes.len() - 1;
    if all > rows.len() {
        let least = if lines.len() < all {
            format!(" below {} %", percent(shown.least))
        } else {
            String::new()
        };
        document.minor(format!(
            "({}{least}; --all shows all)",
            plural((all - rows.len()) as u64, "more node")
        ));
    }
    document.minor(format!("% of {}", whole(report.view, shown.tree.whole)));
}

/// Visible nodes with their indentation.
pub(super) fn lines(tree: &Tree, least: f64) -> Vec<(usize, u32)> {
    let mut lines = vec![];
    let push = |open: &mut Vec<(usize, u32)>, node: u32, indent: usize| {
        let (children, hidden) = tree.children(node, least);
        let parts = children.len() > 1 || hidden.nodes > 0 && !children.is_empty();
        let own = tree.nodes[node as usize].own.samples > 0;
        let indent = indent + usize::from(node != 0 && (parts || own));
        open.extend(children.into_iter().rev().map(|child| (indent, child)));
    };
    let mut open = vec![];
    push(&mut open, 0, 0);
    while let Some((indent, node)) = open.pop() {
        lines.push((indent, node));
        push(&mut open, node, indent);
    }
    lines
}

/// A table as CSV.
pub(super) fn csv(totals: Option<&Totals>, top: Option<usize>) -> String {
    let columns = [
        "name",
        "of",
        "command",
        "self_samples",
        "self_weight",
        "self_share",
        "total_samples",
        "total_weight",
        "total_share",
    ];
    let mut table = Table::new(columns.map(Column::text));
    for (row, totals) in
        totals.into_iter().flat_map(|t| kept(&t.rows, top).iter().map(move |row| (row, t)))
    {
        table.push([
            row.name.clone(),
            row.of.clone(),
            row.command.clone(),
            row.own.samples.to_string(),
            row.own.weight.to_string(),
            format!("{:.6}", row.own.share_of(totals.whole)),
            row.total.samples.to_string(),
            row.total.weight.to_string(),
            format!("{:.6}", row.total.share_of(totals.whole)),
        ]);
    }
    table.csv()
}

/// A tree as CSV, in depth-first order.
pub(super) fn tree_csv(shown: &ShownTree, top: Option<usize>) -> String {
    let columns = [
        "depth",
        "name",
        "library",
        "self_samples",
        "self_weight",
        "total_samples",
        "total_weight",
        "total_share",
    ];
    let mut table = Table::new(columns.map(Column::text));
    for &(depth, node) in kept(&shown.tree.walk(shown.least), top) {
        let node = &shown.tree.nodes[node as usize];
        table.push([
            depth.to_string(),
            node.name.clone(),
            node.library.clone(),
            node.own.samples.to_string(),
            node.own.weight.to_string(),
            node.total.samples.to_string(),
            node.total.weight.to_string(),
            format!("{:.6}", node.total.share_of(shown.tree.whole)),
        ]);
    }
    table.csv()
}

fn title(by: By, unit: Unit) -> String {
    let cost = if unit == Unit::Nanos { "time" } else { "cost" };
    match by {
        By::Library => format!("Self {cost} by library"),
        By::Function => format!("Self {cost} by function"),
        By::Line => format!("Self {cost} by line"),
        By::PythonLine => format!("Self {cost} by Python line"),
        By::Thread => "Samples by thread".to_owned(),
        By::Process => "Samples by process".to_owned(),
        By::Event => "Samples by event".to_owned(),
        By::Border => "Calls between libraries".to_owned(),
    }
}

pub(super) fn tree_title(kind: &TreeKind) -> String {
    match kind {
        TreeKind::TopDown => "Call tree".to_owned(),
        TreeKind::Callers(function) => format!("Callers of {function}"),
        TreeKind::Callees(function) => format!("Callees of {function}"),
        TreeKind::Library(name) => format!("Calls into {name}"),
    }
}

/// Column titles of the name and of its parent.
fn nouns(by: By) -> (&'static str, &'static str) {
    match by {
        By::Library => ("library", ""),
        By::Border => ("into", "from"),
        By::Function => ("function", "library"),
        By::Line => ("line", "function"),
        By::PythonLine => ("Python line", "function"),
        By::Thread => ("thread", "process"),
        By::Process => ("process", ""),
        By::Event => ("event", ""),
    }
}
