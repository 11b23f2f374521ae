//! Reports results of the FFI suite.

use crate::cli::{Format, ReportArgs};
use crate::output::{Destination, Places};
use crate::printer::Printer;
use anyhow::bail;
use laggard_core::ffi::figures;
use laggard_core::model::ffi::Ffi;
use laggard_report::Style;
use laggard_report::ffi::{self as show, FfiReport};
use std::path::Path;

/// Writes a report in all requested formats, including HTML.
pub(crate) fn show(
    ffi: &Ffi,
    is_whole: bool,
    destination: &Destination,
    printer: &Printer,
) -> anyhow::Result<()> {
    let figures = figures(ffi);
    let report = FfiReport { ffi, figures: &figures, is_whole };
    let page = || show::page(&report);
    destination.write(printer, page, |form, style| render(&report, form, style))
}

/// Reports on a saved result.
pub(crate) fn report(
    args: &ReportArgs,
    places: &Places,
    printer: &Printer,
    path: &Path,
    ffi: &Ffi,
) -> anyhow::Result<()> {
    let of_others = args.samples.given().chain(args.calls.given()).next();
    let by = args.by.is_some().then_some("--by");
    if let Some(flag) = of_others.or(by) {
        bail!(
            "{flag} applies to profiles and traces; {} is a result of laggard ffi",
            path.display()
        );
    }
    let figures = figures(ffi);
    let report = FfiReport { ffi, figures: &figures, is_whole: args.all };
    places.write(printer, |form, style| render(&report, form, style))
}

/// The HTML page of a saved result.
pub(crate) fn page(ffi: &Ffi) -> String {
    show::page(&FfiReport { ffi, figures: &figures(ffi), is_whole: true })
}

fn render(report: &FfiReport, form: Format, style: &Style) -> String {
    match form {
        Format::Text => show::text(report, style),
        Format::Json => show::json(report),
        Format::Csv => show::csv(report),
        Format::Md => show::markdown(report),
        Format::Html => show::html(report),
    }
}
