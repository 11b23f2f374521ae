//! The only module that writes to the terminal: data to standard output, messages to standard error.

use crate::cli::{Color, Talk};
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal, Write};

/// Writes results, messages and progress according to the global flags.
#[derive(Clone, Copy)]
pub(crate) struct Printer {
    talk: Talk,
    stdout_color: bool,
    stderr_color: bool,
}

impl Printer {
    /// Creates a printer for these flags.
    pub(crate) fn new(talk: Talk) -> Printer {
        let wanted = |terminal: bool| match talk.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                terminal
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
                    && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
            }
        };
        Printer {
            talk,
            stdout_color: wanted(io::stdout().is_terminal()),
            stderr_color: wanted(io::stderr().is_terminal()),
        }
    }

    /// Whether to use colours on standard output.
    pub(crate) fn colors_stdout(&self) -> bool {
        self.stdout_color
    }

    /// The width of the terminal, if standard output is one.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = io::stdout().is_terminal().then(terminal_size::terminal_size)??;
        Some(usize::from(width.0))
    }

    /// Whether `--verbose` was given.
    pub(crate) fn is_verbose(&self) -> bool {
        self.talk.verbose
    }

    /// Writes data to standard output.
    pub(crate) fn data(&self, text: &str) -> anyhow::Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Writes binary data to standard output.
    pub(crate) fn bytes(&self, data: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let written = out.write_all(data).and_then(|()| out.flush());
        written.context("cannot write to standard output")
    }

    /// Prints a warning, unless `--quiet` was given.
    pub(crate) fn warning(&self, text: &str) {
        if !self.talk.quiet {
            self.line("warning", AnsiColor::Yellow, text);
        }
    }

    /// Prints a notice, unless `--quiet` was given.
    pub(crate) fn note(&self, text: &str) {
        if !self.talk.quiet {
            say(format_args!("{text}"));
        }
    }

    /// Prints a notice if `--verbose` was given.
    pub(crate) fn detail(&self, text: &str) {
        if self.talk.verbose {
            say(format_args!("{text}"));
        }
    }

    /// Prints an error with its causes and a hint.
    pub(crate) fn error(&self, error: &anyhow::Error, hint: Option<&str>) {
        self.line("error", AnsiColor::Red, &error.to_string());
        for cause in error.chain().skip(1) {
            say(format_args!("  caused by: {cause}"));
        }
        if let Some(hint) = hint {
            say(format_args!(""));
            self.line("hint", AnsiColor::Cyan, hint);
        }
    }

    fn line(&self, word: &str, color: AnsiColor, text: &str) {
        let style = if self.stderr_color {
            Style::new().bold().fg_color(Some(color.into()))
        } else {
            Style::new()
        };
        say(format_args!("{style}{word}:{style:#} {text}"));
    }

    /// A printer without progress bars, for parallel work.
    pub(crate) fn without_progress(mut self) -> Printer {
        self.talk.no_progress = true;
        self
    }

    /// A progress line that is redrawn only when its message changes, so that drawing does not
    /// disturb measurements.
    pub(crate) fn steps(&self) -> ProgressBar {
        let bar = self.progress("", None);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        bar
    }

    /// A progress bar for reading this many bytes. Hidden unless standard error is a terminal.
    pub(crate) fn progress(&self, what: &str, bytes: Option<u64>) -> ProgressBar {
        let shown = io::stderr().is_terminal() && !self.talk.no_progress && !self.talk.quiet;
        let bar = ProgressBar::with_draw_target(
            bytes,
            if shown {
                ProgressDrawTarget::stderr_with_hz(10)
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        let template =
            if bytes.is_some() { "{msg} {wide_bar} {amount}" } else { "{msg} {spinner} {amount}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key(
                "amount",
                |state: &ProgressState, out: &mut dyn fmt::Write| {
                    let _ = out.write_str(&amount(state.pos(), state.len()));
                },
            ));
        }
        bar.set_message(what.to_owned());
        bar
    }
}

/// How much was read: `1.00 MiB of 5.00 MiB`. Nothing before the first byte, because readers that
/// work on the whole file report it at the end.
fn amount(read: u64, all: Option<u64>) -> String {
    match (read, all) {
        (0, None) => String::new(),
        (0, Some(all)) => HumanBytes(all).to_string(),
        (read, None) => HumanBytes(read).to_string(),
        (read, Some(all)) => format!("{} of {}", HumanBytes(read), HumanBytes(all)),
    }
}

/// Writes a line to standard error. Ignores errors, such as a closed pipe, where `eprintln` would
/// panic.
fn say(line: std::fmt::Arguments) {
    let _ = io::stderr().lock().write_fmt(format_args!("{line}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "0 B" looks like a program that hangs.
    #[test]
    fn progress_does_not_start_with_zero_bytes() {
        assert_eq!(amount(0, None), "");
        assert_eq!(amount(0, Some(5 << 20)), "5.00 MiB");
        assert_eq!(amount(1 << 20, None), "1.00 MiB");
        assert_eq!(amount(1 << 20, Some(5 << 20)), "1.00 MiB of 5.00 MiB");
    }
}
