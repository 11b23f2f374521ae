//! Loads traces, from a valid index if there is one, otherwise from the JSON text.

use crate::cli::TraceArgs;
use crate::evidence::TraceFrom;
use crate::printer::Printer;
use anyhow::Context;
use laggard_core::classify::Rules;
use laggard_core::model::timeline::Timeline;
use laggard_core::trace::link::link;
use laggard_core::trace::phase::Phases;
use laggard_core::trace::summary::Summary;
use laggard_core::trace::{Analysis, summarise};
use laggard_formats::lag::{self, Binding, Index, RunFile};
use laggard_formats::read::kineto;
use laggard_formats::{Error, Source};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Loads traces.
pub(crate) struct Loader<'a> {
    /// Whether to use and write indexes.
    pub(crate) index: bool,
    /// Options of the text reader.
    pub(crate) options: kineto::Options,
    /// Rules that classify kernels.
    pub(crate) rules: &'a Rules,
    /// Phases to detect.
    pub(crate) phases: &'a Phases,
    /// For messages and progress.
    pub(crate) printer: Printer,
    /// Whether a message about an unusable index was printed.
    pub(crate) has_warned: &'a AtomicBool,
}

/// Environment variable with the loading time from which an index is written.
const INDEX_AFTER: &str = "LAGGARD_INDEX_AFTER";

/// Loading time from which an index is written. Traces that load faster than this do not need one.
fn index_after() -> Duration {
    const DEFAULT: Duration = Duration::from_millis(300);
    let value = std::env::var(INDEX_AFTER).ok();
    value.and_then(|text| crate::cli::duration(&text).ok()).unwrap_or(DEFAULT)
}

/// Options for loading traces, from the command line.
pub(crate) struct Reading {
    index: bool,
    options: kineto::Options,
    rules: Option<Rules>,
    phases: Phases,
    has_warned: AtomicBool,
}

impl Reading {
    /// Reads the options, and the rules file if one is given.
    pub(crate) fn new(args: &TraceArgs) -> anyhow::Result<Reading> {
        let rules = |path: &PathBuf| {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Rules::with_user(&text)
                .with_context(|| format!("cannot use the rules in {}", path.display()))
        };
        let mut options = kineto::Options::default();
        if let Some(threads) = args.threads {
            options.threads = usize::from(threads);
        }
        Ok(Reading {
            index: !args.no_index,
            options,
            rules: args.rules.as_ref().map(rules).transpose()?,
            phases: Phases { user: args.phase_pattern.clone() },
            has_warned: AtomicBool::new(false),
        })
    }

    /// Creates a loader with these options.
    pub(crate) fn loader(&self, printer: &Printer) -> Loader<'_> {
        Loader {
            index: self.index,
            options: self.options,
            rules: self.rules.as_ref().unwrap_or(Rules::builtin()),
            phases: &self.phases,
            printer: *printer,
            has_warned: &self.has_warned,
        }
    }
}

/// The parts of a trace that a report needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Only the summary.
    Summary,
    /// The summary and the tables.
    Tables,
}

/// A loaded trace.
pub(crate) struct Trace {
    /// Summary with the built-in rules and phases; `None` if it must be computed from the tables.
    pub(crate) summary: Option<Summary>,
    /// `None` if only the summary was needed and the index had it.
    pub(crate) timeline: Option<Timeline>,
    /// Identity of the trace, if an index is to be written.
    unsaved: Option<Binding>,
    /// The index from which the tables are mapped.
    index: Option<Box<RunFile>>,
}

impl Trace {
    /// Wraps a trace in memory, with a summary by the built-in rules and phases.
    pub(crate) fn in_memory(timeline: Timeline, summary: Summary) -> Trace {
        Trace { summary: Some(summary), timeline: Some(timeline), unsaved: None, index: None }
    }

    /// Whether [`Loader::save`] writes an index.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.unsaved.is_some()
    }

    /// Fails if the mapped index was truncated meanwhile, which makes all results invalid.
    pub(crate) fn ensure_whole(&self) -> Result<(), Error> {
        self.index.as_ref().map_or(Ok(()), |index| index.ensure_whole())
    }
}

impl Loader<'_> {
    /// Loads a trace.
    pub(crate) fn load(&self, path: &Path, need: Need) -> anyhow::Result<Trace> {
        let binding = if self.index && path != Path::new("-") && path.is_file() {
            Some(Binding::of(path)?)
        } else {
            None
        };
        let mut is_replaced = false;
        if let Some(binding) = &binding {
            match lag::find(path, binding) {
                Index::Missing => {}
                Index::Unusable(place, why) => {
                    self.warn(&format!("ignoring index {}: {why}", place.display()));
                    is_replaced = true;
                }
                Index::Fresh(file) => match self.by_index(file, need, binding) {
                    Ok(trace) => {
                        self.printer.detail("loaded from the index");
                        return Ok(trace);
                    }
                    Err(error) => {
                        self.warn(&format!("ignoring the index: {error:#}"));
                        is_replaced = true;
                    }
                },
            }
        }
        let start = Instant::now();
        let timeline = self.read(Source::open(path)?)?;
        let unsaved = binding.filter(|_| is_replaced || start.elapsed() >= index_after());
        Ok(Trace { summary: None, timeline: Some(timeline), unsaved, index: None })
    }

    /// Prints a message about an unusable index. A directory of copied traces has many of them, so
    /// only the first is printed.
    fn warn(&self, message: &str) {
        if self.has_warned.swap(true, Ordering::Relaxed) {
            self.printer.detail(message);
        } else {
            self.printer.note(&format!("{message}; -v lists further unusable indexes"));
        }
    }

    /// Loads a trace from any source.
    pub(crate) fn take(&self, path: &Path, from: TraceFrom, need: Need) -> anyhow::Result<Trace> {
        match from {
            TraceFrom::File => self.load(path, need),
            TraceFrom::Stream(source) => self.of_stream(source),
            TraceFrom::Memory(trace) => Ok(*trace),
        }
    }

    /// Loads a trace from a stream, without an index.
    pub(crate) fn of_stream(&self, source: Source) -> anyhow::Result<Trace> {
        let timeline = self.read(source)?;
        Ok(Trace { summary: None, timeline: Some(timeline), unsaved: None, index: None })
    }

    fn by_index(&self, file: Box<RunFile>, need: Need, binding: &Binding) -> anyhow::Result<Trace> {
        let summary =
            if self.is_usual() { lag::load(&file, self.rules.fingerprint())? } else { None };
        if need == Need::Summary && summary.is_some() {
            return Ok(Trace { summary, timeline: None, unsaved: None, index: None });
        }
        let mut timeline = file.timeline()?;
        if !self.phases.user.is_empty() {
            link(&mut timeline, self.phases);
        }
        // Another version of laggard may have other built-in rules, so the summary is recomputed.
        let unsaved = summary.is_none().then(|| binding.clone());
        Ok(Trace { summary, timeline: Some(timeline), unsaved, index: Some(file) })
    }

    /// Whether rules and phases are the built-in ones.
    fn is_usual(&self) -> bool {
        self.phases.user.is_empty() && self.rules.fingerprint() == Rules::builtin().fingerprint()
    }

    fn read(&self, source: Source) -> anyhow::Result<Timeline> {
        let bar = self.printer.progress("reading", source.size());
        let mut timeline = kineto::read(source, &self.options, &|bytes| bar.inc(bytes))?;
        bar.finish_and_clear();
        link(&mut timeline, self.phases);
        Ok(timeline)
    }

    /// Writes the index of a trace that was read from text. A failure is only a warning.
    pub(crate) fn save(&self, path: &Path, trace: &Trace, summary: &Summary) {
        let (Some(binding), Some(timeline), true) =
            (&trace.unsaved, &trace.timeline, self.is_usual())
        else {
            return;
        };
        let saved = Binding::of(path).context("the trace no longer exists").and_then(|now| {
            anyhow::ensure!(now == *binding, "the trace changed while it was read");
            Ok(lag::save(path, timeline, summary, self.rules.fingerprint(), binding)?)
        });
        match saved {
            Ok(place) => self.printer.note(&format!("wrote index {}", place.display())),
            Err(error) => self.printer.warning(&format!("no index was written: {error:#}")),
        }
    }

    /// The summary of a whole trace.
    pub(crate) fn summary(&self, trace: &Trace) -> Summary {
        match (&trace.summary, &trace.timeline) {
            (Some(summary), _) => summary.clone(),
            (None, Some(timeline)) => {
                summarise(&Analysis::new(timeline, self.rules, self.phases, None))
            }
            (None, None) => Summary::default(),
        }
    }
}
