//! Where results go: standard output, or a file that is not to be lost by accident.

use crate::cli::{Format, Output};
use crate::printer::Printer;
use anyhow::{Context, bail};
use std::path::Path;

impl Output {
    /// The form of the output: as asked for, else by the file's suffix, else text.
    pub(crate) fn form(&self) -> anyhow::Result<Format> {
        if self.json {
            return Ok(Format::Json);
        }
        if let Some(format) = self.format {
            return Ok(format);
        }
        let Some(path) = self.file() else { return Ok(Format::Text) };
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("json") => Ok(Format::Json),
            Some("csv") => Ok(Format::Csv),
            Some("md" | "markdown") => Ok(Format::Md),
            Some("txt" | "text") => Ok(Format::Text),
            _ => bail!("cannot tell the form of {} by its suffix: give --format", path.display()),
        }
    }

    /// The file to write to; none for standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Writes the result.
    pub(crate) fn write(&self, text: &str, printer: &Printer) -> anyhow::Result<()> {
        let Some(path) = self.file() else {
            return Ok(printer.data(text)?);
        };
        if !self.force && is_of_another_kind(path, self.form()?) {
            bail!(
                "{} exists and is not a report of this form: give --force to overwrite it",
                path.display()
            );
        }
        laggard_formats::lag::place(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        printer.note(&format!("wrote {}", path.display()));
        Ok(())
    }
}

/// Whether a file is there that a report of this form would not replace but destroy.
fn is_of_another_kind(path: &Path, form: Format) -> bool {
    if !path.exists() {
        return false;
    }
    let Ok(bytes) = std::fs::read(path) else { return true };
    let Ok(text) = std::str::from_utf8(&bytes) else { return true };
    let json = text.trim_start().starts_with(['{', '[']);
    let ours = match form {
        Format::Json => text[..text.len().min(200)].contains("\"schema\": \"laggard."),
        _ => !json,
    };
    !(text.is_empty() || ours)
}
