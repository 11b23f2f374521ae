//! What a file holds, whatever wrote it: the one way by which verbs load one.

use crate::bench;
use crate::calls;
use crate::failure;
use crate::printer::Printer;
use crate::profile;
use crate::trace::Trace;
use laggard_core::model::counters::Counters;
use laggard_core::model::ffi::Ffi;
use laggard_core::model::timings::Timings;
use laggard_formats::Source;
use laggard_formats::lag::{self, Run};
use laggard_formats::read::{Kind, ProfileKind, kind_of, read_profile};
use laggard_formats::read::{dtruss, ffi, perf_stat};
use laggard_symbols::FileSystem;
use std::path::Path;

/// A file, by what it holds.
pub(crate) enum Evidence {
    /// Samples.
    Profile(Box<profile::Loaded>),
    /// Traced calls.
    Calls(Box<calls::Loaded>),
    /// Results of a benchmark.
    Bench(Box<Timings>),
    /// Counters of a run.
    Counters(Box<Counters>),
    /// What calls across a language border cost.
    Ffi(Box<Ffi>),
    /// A verdict, to be read.
    Why(Box<Source>),
    /// A trace, or what its reader will say that it is.
    Trace(TraceFrom),
}

/// Where a trace is to be had.
pub(crate) enum TraceFrom {
    /// In its file.
    File,
    /// Here: what is no file can be opened only once.
    Stream(Source),
    /// In memory already.
    Memory(Box<Trace>),
}

impl Evidence {
    /// Loads a file; only a trace is left to its own reader.
    pub(crate) fn load(path: &Path, printer: &Printer) -> anyhow::Result<Evidence> {
        let is_stream = path == Path::new("-");
        if !is_stream && path.is_file() && profile::is_run(path)? {
            return Evidence::of_run(path);
        }
        let mut source = Source::open(path)?;
        let head = source.head();
        if head.starts_with(b"\x7fELF") {
            return Err(failure::with_hint(
                format!("{} is a program or library", path.display()),
                format!("see how it is built: laggard inspect {}", path.display()),
            ));
        }
        Ok(match kind_of(&head) {
            Kind::Lag if is_stream => {
                return Err(failure::with_hint(
                    "a recording of laggard cannot be read from standard input".into(),
                    "give the file: laggard report FILE.lag".into(),
                ));
            }
            Kind::Profile(kind) => Evidence::Profile(Box::new(foreign(kind, source, printer)?)),
            Kind::Bench => Evidence::Bench(Box::new(bench::read(source)?)),
            Kind::Counters => Evidence::Counters(Box::new(perf_stat::read(source, &|_| ())?)),
            Kind::Dtruss => {
                let found = dtruss::read(source, &|_| ())?;
                Evidence::Calls(Box::new(calls::Loaded::new(found, vec![])))
            }
            Kind::Ffi => Evidence::Ffi(Box::new(ffi::read(source)?)),
            Kind::Why => Evidence::Why(Box::new(source)),
            Kind::Lag | Kind::Trace if path.is_file() => Evidence::Trace(TraceFrom::File),
            Kind::Lag | Kind::Trace => Evidence::Trace(TraceFrom::Stream(source)),
        })
    }

    fn of_run(path: &Path) -> anyhow::Result<Evidence> {
        let (run, losses) = lag::read_run(path)?;
        let losses = losses.iter().map(ToString::to_string).collect();
        Ok(match run {
            Run::Profile(found) => Evidence::Profile(Box::new(profile::Loaded::new(found, losses))),
            Run::Calls(found) => Evidence::Calls(Box::new(calls::Loaded::new(found, losses))),
        })
    }

    /// What it is, in a sentence.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Evidence::Profile(_) => "a recording",
            Evidence::Calls(_) => "a record of calls",
            Evidence::Bench(_) => "a bench",
            Evidence::Counters(_) => "a file of counters",
            Evidence::Ffi(_) => "a run of laggard ffi",
            Evidence::Why(_) => "a verdict",
            Evidence::Trace(_) => "a trace, or nothing that laggard knows",
        }
    }
}

/// A profile of another program, with names for what it has only addresses of.
fn foreign(
    kind: ProfileKind,
    source: Source,
    printer: &Printer,
) -> anyhow::Result<profile::Loaded> {
    let bar = printer.progress("reading", source.size());
    let mut found = read_profile(kind, source, &|bytes| bar.inc(bytes))?;
    bar.set_message("naming");
    laggard_symbols::resolve(&mut found, &FileSystem);
    bar.finish_and_clear();
    Ok(profile::Loaded::new(found, vec![]))
}
