//! Writes results to standard output or to files, without overwriting other files by accident.

use crate::cli::{Format, Output, ProfileForm};
use crate::commands::record::ensure_writable;
use crate::printer::Printer;
use crate::profile::{self, ensure_replaceable};
use anyhow::{Context, bail};
use laggard_report::Style;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// The outputs of a result, each with its format.
pub(crate) struct Places<'a> {
    file: Option<(&'a Path, Format)>,
    stdout: Option<Format>,
    force: bool,
    /// Replaces standard output when used as a library.
    kept: Option<&'a RefCell<String>>,
}

impl<'a> Places<'a> {
    /// Collects the text instead of printing it.
    pub(crate) fn kept(form: Format, text: &'a RefCell<String>) -> Places<'a> {
        Places { file: None, stdout: Some(form), force: false, kept: Some(text) }
    }
}

impl Output {
    /// The suffix of a file selects its format, `--format` that of standard output. With a file,
    /// standard output is used only if `--format` is given too.
    pub(crate) fn places(&self) -> anyhow::Result<Places<'_>> {
        let asked = if self.json { Some(Format::Json) } else { self.format };
        let Some(path) = self.output.as_deref().filter(|path| *path != Path::new("-")) else {
            let stdout = Some(asked.unwrap_or(Format::Text));
            return Ok(Places { file: None, stdout, force: self.force, kept: None });
        };
        let (form, stdout) = match (form_of(path), asked) {
            (Some(form), asked) => (form, asked),
            (None, Some(asked)) => (asked, None),
            (None, None) => {
                bail!("cannot infer a format from the suffix of {}: give --format", path.display())
            }
        };
        Ok(Places { file: Some((path, form)), stdout, force: self.force, kept: None })
    }
}

/// The outputs of a result that may also be an HTML page. A page does not replace standard output.
pub(crate) struct Destination<'a> {
    page: Option<&'a Path>,
    rest: Output,
}

impl Destination<'_> {
    /// Fails if an output cannot be written, before any time is spent on measurements.
    pub(crate) fn of(output: &Output) -> anyhow::Result<Destination<'_>> {
        let is_page = |path: &&Path| profile::form_of(path) == Some(ProfileForm::Html);
        let page = output.output.as_deref().filter(is_page);
        if let Some(path) = page {
            ensure_replaceable(path, ProfileForm::Html, output.force)?;
        }
        let is_new = |path: &&Path| *path != Path::new("-") && (!path.exists() || path.is_file());
        if let Some(path) = output.output.as_deref().filter(is_new) {
            ensure_writable(path)?;
        }
        let file = output.output.clone().filter(|_| page.is_none());
        let rest = Output { output: file, ..output.clone() };
        rest.places()?;
        Ok(Destination { page, rest })
    }

    /// Writes the page, if requested, and all other requested formats.
    pub(crate) fn write(
        &self,
        printer: &Printer,
        page: impl FnOnce() -> String,
        render: impl Fn(Format, &Style) -> String,
    ) -> anyhow::Result<()> {
        if let Some(path) = self.page {
            put(path, page().as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.rest.places()?.write(printer, render)?;
        if let Some(path) = self.page {
            printer.note(&format!("wrote {}", path.display()));
        }
        Ok(())
    }
}

fn form_of(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "json" => Some(Format::Json),
        "csv" => Some(Format::Csv),
        "md" | "markdown" => Some(Format::Md),
        "txt" | "text" => Some(Format::Text),
        _ => None,
    }
}

impl Places<'_> {
    /// Writes the result, which `render` returns in any format. Only text on standard output is
    /// styled.
    pub(crate) fn write(
        &self,
        printer: &Printer,
        render: impl Fn(Format, &Style) -> String,
    ) -> anyhow::Result<()> {
        self.write_brief(printer, &render, |style| render(Format::Text, style))
    }

    /// Like `write`, but prints the text of `brief` on standard output. Files are complete.
    pub(crate) fn write_brief(
        &self,
        printer: &Printer,
        render: impl Fn(Format, &Style) -> String,
        brief: impl Fn(&Style) -> String,
    ) -> anyhow::Result<()> {
        if let Some((path, form)) = self.file {
            anyhow::ensure!(!path.is_dir(), "cannot write {}: it is a directory", path.display());
            if !self.force && is_of_another_kind(path, form) {
                bail!(
                    "{} exists and is not a report of this format: use --force to overwrite it",
                    path.display()
                );
            }
            put(path, render(form, &Style::default()).as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
            printer.note(&format!("wrote {}", path.display()));
        }
        if let Some(form) = self.stdout {
            if let Some(kept) = self.kept {
                *kept.borrow_mut() = render(form, &Style::default());
                return Ok(());
            }
            let style = Style { color: printer.colors_stdout(), width: printer.width() };
            let text = if form == Format::Text { brief(&style) } else { render(form, &style) };
            printer.data(&text)?;
        }
        Ok(())
    }
}

/// Writes a file. Devices and pipes are written in place. Regular files are replaced atomically, and
/// links are followed.
pub(crate) fn put(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if path.exists() && !path.is_file() {
        return fs::write(path, content);
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    laggard_formats::atomic::write(&target, |out| out.write_all(content))
}

/// Whether a file exists that is not a report of this format.
fn is_of_another_kind(path: &Path, form: Format) -> bool {
    const HEAD: u64 = 4096;
    if !path.exists() || !path.is_file() {
        return false;
    }
    let mut head = vec![];
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    if read.is_err() {
        return true;
    }
    // The last character may be cut.
    let whole = match std::str::from_utf8(&head) {
        Err(error) if error.error_len().is_some() => return true,
        Err(error) => error.valid_up_to(),
        Ok(text) => text.len(),
    };
    let text = String::from_utf8_lossy(&head[..whole]);
    !text.is_empty() && !looks_like(&text, form)
}

/// Whether the start of a text looks like a report of this format.
fn looks_like(text: &str, form: Format) -> bool {
    // Headings near the start of full reports and of single tables.
    const HEADINGS: &[&str] = &[
        "Totals",
        "Ranks",
        "Device time by ",
        "Unclassified kernels",
        "Quality",
        "Samples ",
        "Sampling",
        "Files",
        "Build of ",
        "Functions by ",
        "Disassembly of ",
        "Calls ",
        "Self time by ",
        "Self cost by ",
        "Total time by ",
        "Total cost by ",
        "Call tree",
        "Callers of ",
        "Callees of ",
        "Sides",
        "Time per call",
        "Changes",
        "Device time per ",
        "Operations by class",
        "Kernels, operators and Python lines by class",
        "Kernels only in ",
        "Bindings by cost",
        "Controls",
    ];
    // Too common as prefixes, so these must be whole lines.
    const WHOLE_LINES: &[&str] = &["Why", "Layers", "Fusion", "Kernels in A and B"];
    const TABLES: &[&str] = &[
        "name,class,count,",
        "rank,file,",
        "operator,count,time_ns,",
        "group,check,verdict,",
        "name,of,command,self_samples,",
        "depth,name,library,",
        "file,address,size,function,",
        "file,function,address,bytes,",
        "name,of,caller_library,",
        "depth,name,of,calls,",
        "function,library,values,",
        "low_ns,high_ns,calls",
        "function,library,only_in,",
        "case,parameters,side,",
        "by,name,class,count_a,",
        "layer_a,layer_b,name,class,",
        "fused_by,fused,unfused,",
        "category,group,size,binding,",
    ];
    let has_heading = |mark: &str| {
        let is_ours = |line: &str| {
            line.strip_prefix(mark).is_some_and(|title| {
                WHOLE_LINES.contains(&title) || HEADINGS.iter().any(|h| title.starts_with(h))
            })
        };
        text.lines().any(is_ours)
    };
    match form {
        Format::Json => {
            text.trim_start().starts_with('{') && text.contains("\"schema\": \"laggard.")
        }
        Format::Csv => TABLES.iter().any(|header| text.starts_with(header)),
        Format::Md => text.starts_with("## ") && has_heading("## "),
        Format::Text => has_heading(""),
        Format::Html => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_core::compare::trace::found::TraceComparison;
    use laggard_core::trace::By;
    use laggard_report::compare_trace::{CompareTrace, Shown, csv, json, markdown, text};

    #[test]
    fn trace_comparisons_may_be_overwritten() {
        let comparison = TraceComparison::default();
        let parts = [Shown::Layers, Shown::Fusion, Shown::Stacks];
        let tables = By::ALL.map(Shown::Table);
        for shown in [Shown::Whole].into_iter().chain(parts).chain(tables) {
            let report = CompareTrace { comparison: &comparison, shown, top: None, phase: "" };
            for (written, form) in [
                (text(&report, &Style::default()), Format::Text),
                (markdown(&report), Format::Md),
                (csv(&report), Format::Csv),
                (json(&report), Format::Json),
            ] {
                assert!(looks_like(&written, form), "{shown:?}: {written}");
            }
        }
        assert!(!looks_like("Dear diary\nWhy not?\n", Format::Text));
    }
}
