//! The table of functions with their instruction mix.

use super::build::{REMARK, has_several};
use super::choose::{Row, Sort, choose};
use super::{CodeReport, function_name, short};
use crate::document::Document;
use crate::number::{count, percent};
use crate::rows::{kept, more};
use crate::table::{Column, Table};
use laggard_core::model::code::{Class, Hot, Mark, Mix};

/// Adds the table of selected functions.
pub(super) fn show(report: &CodeReport, document: &mut Document) {
    let CodeReport { code, choice, .. } = *report;
    let rows = choose(code, choice);
    if rows.is_empty() && choice.patterns.is_empty() && choice.sort != Sort::Samples {
        return;
    }
    document.heading(match choice.sort {
        Sort::Size => "Functions by size",
        Sort::Vector => "Functions by vector share",
        Sort::Samples => "Functions by samples",
        Sort::Name => "Functions by name",
        Sort::Address => "Functions by address",
    });
    if rows.is_empty() {
        document.line(match choice.sort {
            Sort::Samples => "the profile has no samples in these functions",
            _ => "no function name matches",
        });
        return;
    }
    let shown = kept(&rows, choice.top);
    let sampled = shown.iter().any(|row| row.samples.is_some());
    let mut columns = vec![Column::names("function"), Column::text("file")];
    if sampled {
        columns.extend([Column::number("samples", "n"), Column::number("", "%")]);
    }
    columns.extend([
        Column::number("size", "B"),
        Column::number("instr", "n"),
        Column::number("vector", "%"),
        Column::number("math", "% vector"),
        Column::number("widest", "bits"),
    ]);
    let counted = if sampled { "%" } else { "n" };
    columns.extend(SHOWN_MARKS.map(|mark| Column::number(mark.word(), counted)));
    let mut table = Table::new(columns);
    shown.iter().for_each(|row| table.push(cells(report, row, sampled)));
    document.table(table);
    more(&rows, choice.top, document);
    let executed = match sampled {
        true => {
            "; shares of executed instructions, with the samples of a block divided evenly among them"
        }
        false => "",
    };
    document.minor(format!("{REMARK}{executed}"));
}

const SHOWN_MARKS: [Mark; 3] = [Mark::Fma, Mark::Divide, Mark::Gather];

fn cells(report: &CodeReport, row: &Row, sampled: bool) -> Vec<String> {
    let code = report.code;
    let file = &code.files[row.file];
    let function = &file.functions[row.function];
    let mix = match sampled {
        true => row.executed.unwrap_or_default(),
        false => function.mix,
    };
    let nonzero = |n: u64| if n == 0 { String::new() } else { count(n) };
    let share = |share: Option<f64>| share.map_or_else(String::new, percent);
    let file_name = if has_several(code) { short(&file.path) } else { "" };
    let mut cells =
        vec![function_name(code, function.name, function.address), file_name.to_owned()];
    if sampled {
        let samples = row.samples.unwrap_or(0);
        let all = file.executed.as_ref().map_or(0, |executed| executed.samples);
        cells.extend([count(samples), percent(crate::number::share(samples as f64, all as f64))]);
    }
    cells.extend([
        if sampled { String::new() } else { count(function.size) },
        nonzero(function.mix.instructions()),
        share(mix.packed_share()),
        share(mix.packed_math_share()),
        mix.widest_vector().map_or_else(String::new, |bits| bits.to_string()),
    ]);
    cells.extend(SHOWN_MARKS.map(|mark| match (sampled, mix.with(mark)) {
        (_, 0) => String::new(),
        (true, n) => percent(n as f64 / mix.instructions() as f64),
        (false, n) => count(n),
    }));
    cells
}

/// One row per function with all counts, followed by counts of executed instructions.
pub(super) fn csv(report: &CodeReport) -> String {
    let CodeReport { code, choice, .. } = *report;
    let rows = choose(code, choice);
    let mut columns: Vec<String> =
        ["file", "address", "size", "function", "frame_pointer", "instructions"]
            .map(str::to_owned)
            .to_vec();
    let words = || {
        let classes = Class::ALL.iter().map(|class| class.word());
        classes.chain(Mark::ALL.iter().map(|mark| mark.word())).map(|word| word.replace('-', "_"))
    };
    columns.extend(words());
    columns.push("samples".to_owned());
    columns.extend(words().map(|word| format!("executed_{word}")));
    let columns: Vec<Column> = columns.iter().map(|name| Column::text(name)).collect();
    let mut table = Table::new(columns);
    for row in kept(&rows, choice.top) {
        let file = &code.files[row.file];
        let function = &file.functions[row.function];
        let mut cells = vec![
            file.path.clone(),
            format!("{:#x}", function.address),
            function.size.to_string(),
            code.texts.get(function.name).to_owned(),
            function.frame_pointer.to_string(),
            function.mix.instructions().to_string(),
        ];
        let mut counts = |mix: &Mix| {
            cells.extend(Class::ALL.iter().map(|class| mix.of(*class).to_string()));
            cells.extend(Mark::ALL.iter().map(|mark| mix.with(*mark).to_string()));
        };
        counts(&function.mix);
        if let Some(samples) = row.samples {
            let executed = row.executed.unwrap_or_default();
            cells.push(samples.to_string());
            let part = |n: u64| format!("{:.3}", n as f64 / Hot::SCALE as f64);
            cells.extend(Class::ALL.iter().map(|class| part(executed.of(*class))));
            cells.extend(Mark::ALL.iter().map(|mark| part(executed.with(*mark))));
        }
        table.push(cells);
    }
    table.csv()
}
