//! The only place that writes to the terminal. Standard output is data, standard error is talk.

use crate::cli::{Color, Talk};
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};

/// Writes results, warnings and progress as the user asked for them.
#[derive(Clone, Copy)]
pub(crate) struct Printer {
    talk: Talk,
    stdout_color: bool,
    stderr_color: bool,
}

impl Printer {
    /// A printer for these flags.
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

    /// Whether standard output may have colours.
    pub(crate) fn colors_stdout(&self) -> bool {
        self.stdout_color
    }

    /// Columns of the terminal, if standard output is one.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = io::stdout().is_terminal().then(terminal_size::terminal_size)??;
        Some(usize::from(width.0))
    }

    /// Whether more is to be said.
    pub(crate) fn is_verbose(&self) -> bool {
        self.talk.verbose
    }

    /// Writes data to standard output.
    pub(crate) fn data(&self, text: &str) -> anyhow::Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Writes data to standard output that need not be text.
    pub(crate) fn bytes(&self, data: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let written = out.write_all(data).and_then(|()| out.flush());
        written.context("cannot write to standard output")
    }

    /// Something the user should know; not an error.
    pub(crate) fn warning(&self, text: &str) {
        if !self.talk.quiet {
            self.line("warning", AnsiColor::Yellow, text);
        }
    }

    /// Something the user may want to know.
    pub(crate) fn note(&self, text: &str) {
        if !self.talk.quiet {
            say(format_args!("{text}"));
        }
    }

    /// Something for those who ask for more.
    pub(crate) fn detail(&self, text: &str) {
        if self.talk.verbose {
            say(format_args!("{text}"));
        }
    }

    /// What failed and why, and what helps.
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

    /// The same printer without progress bars, for work that runs side by side.
    pub(crate) fn without_progress(mut self) -> Printer {
        self.talk.no_progress = true;
        self
    }

    /// A line that says what is being done; drawn when it is told something and at no other time,
    /// so that nothing is measured but what is measured.
    pub(crate) fn steps(&self) -> ProgressBar {
        let bar = self.progress("", None);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        bar
    }

    /// A bar for reading this many bytes; hidden unless standard error is a terminal.
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
        let template = if bytes.is_some() {
            "{msg} {wide_bar} {bytes}/{total_bytes}"
        } else {
            "{msg} {spinner} {bytes}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar
    }
}

/// Writes a line to standard error. Nobody listening there is no reason to fail, nor to panic as
/// `eprintln` does.
fn say(line: std::fmt::Arguments) {
    let _ = io::stderr().lock().write_fmt(format_args!("{line}\n"));
}
