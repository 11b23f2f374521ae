//! Where results go: standard output, or a file that is not to be lost by accident.

use crate::cli::{Format, Output};
use crate::printer::Printer;
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::Read;
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
            return printer.data(text);
        };
        anyhow::ensure!(!path.is_dir(), "cannot write {}: it is a directory", path.display());
        if !self.force && is_of_another_kind(path, self.form()?) {
            bail!(
                "{} exists and is not a report of this form: give --force to overwrite it",
                path.display()
            );
        }
        put(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        printer.note(&format!("wrote {}", path.display()));
        Ok(())
    }
}

/// Writes a file: a device or a pipe is written to, anything else is replaced once the text is
/// whole, behind a link too.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    if path.exists() && !path.is_file() {
        return fs::write(path, text);
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    laggard_formats::lag::place(&target, text.as_bytes())
}

/// Whether a file is there that a report of this form would not replace but destroy.
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
    // The head may end in the middle of a character.
    let whole = match std::str::from_utf8(&head) {
        Err(error) if error.error_len().is_some() => return true,
        Err(error) => error.valid_up_to(),
        Ok(text) => text.len(),
    };
    let text = String::from_utf8_lossy(&head[..whole]);
    !text.is_empty() && !looks_like(&text, form)
}

/// Whether a text starts as a report of this form does.
fn looks_like(text: &str, form: Format) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let json = text.trim_start().starts_with(['{', '[']);
    match form {
        Format::Json => json && text.contains("\"schema\": \"laggard."),
        Format::Csv => first.starts_with("name,class,count,") || first.starts_with("rank,file,"),
        Format::Md => first.starts_with("## "),
        Format::Text => !json && !first.starts_with("## "),
    }
}
