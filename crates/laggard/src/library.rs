//! The API of the Python package: evidence in memory, and the output of verbs for it.
//!
//! Options are passed as command-line arguments, so that they mean the same as for the verbs.

use crate::calls;
use crate::cli::{self, Cli, Color, Format, Talk, Verb};
use crate::commands::{bench, compare, report, view, why};
use crate::evidence::{Evidence, TraceFrom};
use crate::failure;
use crate::output::Places;
use crate::printer::Printer;
use crate::profile;
use crate::trace::{Loader, Need, Reading, Trace};
use anyhow::Context;
use clap::Parser;
use laggard_core::model::calls::Calls;
use laggard_core::model::counters::Counters;
use laggard_core::model::ffi::Ffi;
use laggard_core::model::profile::Profile;
use laggard_core::model::timings::Timings;
use laggard_core::trace::phase::Phases;
use laggard_formats::tables::{self, Table};
use laggard_probe::bench::Progress;
use laggard_report::Style;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

pub use crate::bench::SEED;
pub use crate::cli::Format as Form;

/// Parses a time as options do: `10`, `500ms`, `2m`.
pub fn time(text: &str) -> Result<Duration, String> {
    cli::duration(text)
}

/// Parses a percentage as options do, as a fraction: `5%` is 0.05.
pub fn share(text: &str) -> Result<f64, String> {
    cli::percent(text)
}

/// Evidence in memory.
pub struct Loaded {
    /// The file; new measurements have a name in brackets.
    pub path: PathBuf,
    held: Held,
}

enum Held {
    Trace(Arc<tables::Trace>),
    Profile(Arc<Profile>, Vec<String>),
    Calls(Arc<Calls>, Vec<String>),
    Bench(Arc<Timings>),
    Counters(Arc<Counters>),
    Ffi(Arc<Ffi>),
    Why(Box<why::Found>),
}

/// How to load a trace.
#[derive(Clone, Debug)]
pub struct Loading {
    /// Whether to use and write an index.
    pub index: bool,
    /// Number of threads; `None` uses all CPUs.
    pub threads: Option<u16>,
    /// A file of rules that classify kernels.
    pub rules: Option<PathBuf>,
}

/// Loads a file of any kind.
pub fn load(path: &Path, loading: &Loading) -> anyhow::Result<Loaded> {
    let printer = quiet();
    if path.is_dir() {
        return Err(failure::with_hint(
            format!("{} is a directory", path.display()),
            "load its files one at a time, or report on all ranks: laggard report DIRECTORY".into(),
        ));
    }
    let held = match Evidence::load(path, &printer)? {
        Evidence::Profile(found) => Held::Profile(Arc::new(found.profile), found.losses),
        Evidence::Calls(found) => Held::Calls(Arc::new(found.calls), found.losses),
        Evidence::Bench(found) => Held::Bench(Arc::from(found)),
        Evidence::Counters(found) => Held::Counters(Arc::from(found)),
        Evidence::Ffi(found) => Held::Ffi(Arc::from(found)),
        Evidence::Why(source) => Held::Why(Box::new(why::kept(*source)?)),
        Evidence::Trace(from) => Held::Trace(Arc::new(trace(path, from, loading, &printer)?)),
    };
    Ok(Loaded { path: path.to_owned(), held })
}

fn trace(
    path: &Path,
    from: TraceFrom,
    loading: &Loading,
    printer: &Printer,
) -> anyhow::Result<tables::Trace> {
    let reading = Reading::new(&crate::cli::TraceArgs {
        no_index: !loading.index,
        threads: loading.threads,
        rules: loading.rules.clone(),
        ..Default::default()
    })?;
    let loader = reading.loader(printer);
    let mut loaded = loader.take(path, from, Need::Tables)?;
    // Only an index needs the summary, and computing it takes a good part of the loading time.
    let is_needed = loaded.summary.is_some() || loaded.is_unsaved();
    let summary = is_needed.then(|| loader.summary(&loaded));
    loaded.ensure_whole()?;
    if let Some(summary) = &summary {
        loader.save(path, &loaded, summary);
    }
    let timeline = loaded.timeline.take().context("the trace has no tables")?;
    let rules = loading.rules.is_some().then(|| loader.rules.clone());
    Ok(tables::Trace::new(timeline, rules, Phases::default(), summary))
}

impl Loaded {
    /// The kind of evidence.
    pub fn kind(&self) -> &'static str {
        match &self.held {
            Held::Trace(_) => "trace",
            Held::Profile(..) => "profile",
            Held::Calls(..) => "calls",
            Held::Bench(_) => "bench",
            Held::Counters(_) => "counters",
            Held::Ffi(_) => "ffi",
            Held::Why(_) => "verdict",
        }
    }

    /// Its tables.
    pub fn tables(&self) -> Vec<Table> {
        match &self.held {
            Held::Trace(trace) => tables::of_trace(trace),
            Held::Profile(profile, _) => tables::of_profile(profile),
            Held::Calls(calls, _) => tables::of_calls(calls),
            Held::Bench(timings) => tables::of_timings(timings),
            Held::Counters(counters) => tables::of_counters(counters),
            Held::Why(found) => tables::of_timings(&Arc::new(found.timings.clone())),
            Held::Ffi(_) => vec![],
        }
    }

    /// Lost, skipped or repaired parts of the file, and warnings.
    pub fn losses(&self) -> Vec<String> {
        match &self.held {
            Held::Trace(trace) => {
                let losses = trace.timeline.losses.iter();
                losses.map(|loss| format!("{} × {}", loss.count, loss.reason.explain())).collect()
            }
            Held::Profile(_, losses) | Held::Calls(_, losses) => losses.clone(),
            Held::Bench(timings) => timings.warning_texts(),
            Held::Counters(counters) => counters.warnings.clone(),
            Held::Ffi(ffi) => ffi.warnings.clone(),
            Held::Why(found) => found.timings.warning_texts(),
        }
    }

    /// The output of `laggard report` with these flags.
    pub fn report(&self, form: Form, flags: &[String]) -> anyhow::Result<String> {
        if let Held::Why(found) = &self.held {
            anyhow::ensure!(
                flags.is_empty(),
                "{} does not apply to a result of laggard why",
                flags[0]
            );
            return Ok(found.render(form, &Style::default()));
        }
        let Verb::Report(args) = parsed("report", flags, [&self.path])? else {
            anyhow::bail!("expected the verb report");
        };
        let printer = quiet();
        let reading = Reading::new(&args.trace)?;
        let loader = Loader { index: false, ..reading.loader(&printer) };
        captured(form, |places| {
            report::show_one(&args, places, &loader, &self.path, self.evidence()?)
        })
    }

    /// The output of `laggard compare` with these flags, and whether `--fail-above` tripped.
    pub fn compare(
        &self,
        other: &Loaded,
        form: Form,
        flags: &[String],
    ) -> anyhow::Result<(String, bool)> {
        let Verb::Compare(args) = parsed("compare", flags, [&self.path, &other.path])? else {
            anyhow::bail!("expected the verb compare");
        };
        let side = |side: &Loaded| -> anyhow::Result<_> {
            Ok(vec![(side.path.display().to_string(), side.evidence()?)])
        };
        let sides = [side(self)?, side(other)?];
        let mut tripped = false;
        let text = captured(form, |places| {
            let code = compare::show(&args, places, &quiet(), sides)?;
            tripped = code != ExitCode::SUCCESS;
            Ok(())
        })?;
        Ok((text, tripped))
    }

    /// The HTML page of `laggard view`.
    pub fn page(&self) -> anyhow::Result<String> {
        if let Held::Why(found) = &self.held {
            return Ok(found.page());
        }
        let Verb::View(args) = parsed("view", &[], [&self.path])? else {
            anyhow::bail!("expected the verb view");
        };
        view::page_of(&self.path, self.evidence()?, &args, &quiet())
    }

    /// The HTML page of `laggard view` that compares `other` with this evidence.
    pub fn page_against(&self, other: &Loaded) -> anyhow::Result<String> {
        let Verb::View(args) = parsed("view", &[], [&self.path, &other.path])? else {
            anyhow::bail!("expected the verb view");
        };
        let evidence = [self.evidence()?, other.evidence()?];
        view::page_of_two([&self.path, &other.path], evidence, &args, &quiet())
    }

    /// Converts to the type that verbs use.
    fn evidence(&self) -> anyhow::Result<Evidence> {
        Ok(match &self.held {
            Held::Trace(trace) => {
                let timeline = trace.timeline.clone();
                let loaded = Trace::in_memory(timeline, trace.summary().clone());
                Evidence::Trace(TraceFrom::Memory(Box::new(loaded)))
            }
            Held::Profile(found, losses) => Evidence::Profile(Box::new(profile::Loaded {
                profile: Profile::clone(found),
                losses: losses.clone(),
            })),
            Held::Calls(found, losses) => Evidence::Calls(Box::new(calls::Loaded {
                calls: Calls::clone(found),
                losses: losses.clone(),
            })),
            Held::Bench(timings) => Evidence::Bench(Box::new(Timings::clone(timings))),
            Held::Counters(counters) => Evidence::Counters(Box::new(Counters::clone(counters))),
            Held::Ffi(ffi) => Evidence::Ffi(Box::new(Ffi::clone(ffi))),
            Held::Why(_) => {
                anyhow::bail!(
                    "cannot compare {}: it is a result of laggard why",
                    self.path.display()
                )
            }
        })
    }
}

/// Runs `laggard bench` with these arguments.
pub fn measure(words: &[String], progress: &mut dyn FnMut(&Progress)) -> anyhow::Result<Loaded> {
    let Verb::Bench(args) = parsed("bench", words, [])? else {
        anyhow::bail!("expected the verb bench");
    };
    let measured = laggard_probe::bench::measure(&bench::planned(&args)?, progress);
    let timings = measured.map_err(bench::explain)?;
    Ok(of_timings(timings))
}

/// Wraps timings as evidence.
pub fn of_timings(timings: Timings) -> Loaded {
    Loaded { path: "[bench]".into(), held: Held::Bench(Arc::new(timings)) }
}

/// Runs `laggard why` with these arguments.
pub fn judge(words: &[String]) -> anyhow::Result<Loaded> {
    let Verb::Why(args) = parsed("why", words, [])? else { anyhow::bail!("expected the verb why") };
    let found = why::found(&args, &quiet())?;
    Ok(Loaded { path: "[why]".into(), held: Held::Why(Box::new(found)) })
}

/// Explains why the second of two sides in this process is slower, from the timings of both and a
/// recording of each: its file and the number of recorded calls.
pub fn judge_here(timed: &Loaded, sampled: &[(PathBuf, u64); 2]) -> anyhow::Result<Loaded> {
    let Held::Bench(timings) = &timed.held else { anyhow::bail!("expected benchmark timings") };
    let found = why::sampled(Timings::clone(timings), sampled, &quiet())?;
    Ok(Loaded { path: "[why]".into(), held: Held::Why(Box::new(found)) })
}

/// The probe error in the chain, if there is one.
pub fn of_probe(error: &anyhow::Error) -> Option<&laggard_probe::Error> {
    failure::of_probe(error)
}

/// The hint for an error, if one is known.
pub fn hint(error: &anyhow::Error) -> Option<String> {
    failure::hint(error)
}

/// Parses a verb with flags and files.
fn parsed<const N: usize>(
    verb: &str,
    flags: &[String],
    files: [&PathBuf; N],
) -> Result<Verb, clap::Error> {
    let words = ["laggard", verb].into_iter().map(Into::into);
    let flags = flags.iter().map(Into::into);
    let files = files.into_iter().map(|file| file.clone().into_os_string());
    let dashes = (N > 0).then(|| "--".into());
    let all: Vec<std::ffi::OsString> = words.chain(flags).chain(dashes).chain(files).collect();
    Ok(Cli::try_parse_from(all)?.verb)
}

/// A printer without output: a library does not write to the terminal.
fn quiet() -> Printer {
    Printer::new(Talk { color: Color::Never, quiet: true, verbose: false, no_progress: true })
}

/// Captures the output of a verb in one format.
fn captured(
    form: Form,
    write: impl FnOnce(&Places) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let text = RefCell::new(String::new());
    write(&Places::kept(form, &text))?;
    Ok(text.into_inner())
}

impl Format {
    /// The format with this name.
    pub fn named(name: &str) -> Option<Format> {
        Some(match name {
            "text" => Format::Text,
            "json" => Format::Json,
            "csv" => Format::Csv,
            "markdown" | "md" => Format::Md,
            "html" => Format::Html,
            _ => return None,
        })
    }
}
