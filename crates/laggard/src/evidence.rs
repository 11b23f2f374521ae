//! Loads files of any supported kind. All verbs use it.

use crate::bench;
use crate::calls;
use crate::failure;
use crate::printer::Printer;
use crate::profile;
use crate::trace::Trace;
use laggard_core::model::counters::Counters;
use laggard_core::model::ffi::Ffi;
use laggard_core::model::timings::Timings;
use laggard_formats::lag::{self, Run};
use laggard_formats::read::{Kind, ProfileKind, describe_unknown, kind_of, read_profile};
use laggard_formats::read::{dtruss, ffi, perf_stat};
use laggard_formats::{Error, Source};
use laggard_symbols::FileSystem;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A loaded file, by kind.
pub(crate) enum Evidence {
    /// Samples.
    Profile(Box<profile::Loaded>),
    /// A call trace.
    Calls(Box<calls::Loaded>),
    /// Benchmark results.
    Bench(Box<Timings>),
    /// `perf stat` counters.
    Counters(Box<Counters>),
    /// A result of `laggard ffi`.
    Ffi(Box<Ffi>),
    /// A verdict of `laggard why`, not parsed yet.
    Why(Box<Source>),
    /// A trace, or JSON of unknown format, which the trace reader rejects.
    Trace(TraceFrom),
}

/// The source of a trace.
pub(crate) enum TraceFrom {
    /// Its file.
    File,
    /// An open stream, which can be read only once.
    Stream(Source),
    /// A trace in memory.
    Memory(Box<Trace>),
}

impl Evidence {
    /// Loads a file. Traces are only detected; `trace::Loader` loads them.
    pub(crate) fn load(path: &Path, printer: &Printer) -> anyhow::Result<Evidence> {
        let is_stream = path == Path::new("-");
        if path.is_dir() {
            let path = path.display();
            return Err(failure::with_hint(
                format!("{path} is a directory, not a file"),
                format!("report on the traces of all ranks in it: laggard report {path}"),
            ));
        }
        if !is_stream && path.is_file() && profile::is_run(path)? {
            return Evidence::of_run(path);
        }
        let mut source = Source::open(path)?;
        let head = source.head();
        if head.starts_with(b"\x7fELF") {
            return Err(failure::with_hint(
                format!("{} is an executable or library", path.display()),
                format!("show how it was built: laggard inspect {}", path.display()),
            ));
        }
        Ok(match kind_of(&head) {
            Kind::Lag if is_stream => {
                return Err(failure::with_hint(
                    "cannot read a .lag file from standard input".into(),
                    "give the file instead: laggard report FILE.lag".into(),
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
            Kind::Trace if describe_unknown(&head).is_some() => {
                let looks_like = describe_unknown(&head).unwrap_or_default() + outside(path);
                return Err(Error::UnknownFormat { path: path.to_owned(), looks_like }.into());
            }
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

    /// The kind, for messages.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Evidence::Profile(_) => "a profile",
            Evidence::Calls(_) => "a call trace",
            Evidence::Bench(_) => "a benchmark",
            Evidence::Counters(_) => "a file of perf stat counters",
            Evidence::Ffi(_) => "a result of laggard ffi",
            Evidence::Why(_) => "a result of laggard why",
            Evidence::Trace(_) => "a PyTorch trace",
        }
    }
}

/// What the name and the compression of a file add to the description of its content.
fn outside(path: &Path) -> &'static str {
    let mut magic = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("nsys-rep" | "qdrep") => ", named like a report of Nsight Systems",
        Some("ncu-rep") => ", named like a report of Nsight Compute",
        _ if read.is_ok() && magic == [0x1f, 0x8b] => ", compressed with gzip",
        _ => "",
    }
}

/// Reads and symbolizes a profile of another tool.
fn foreign(
    kind: ProfileKind,
    source: Source,
    printer: &Printer,
) -> anyhow::Result<profile::Loaded> {
    let bar = printer.progress("reading", source.size());
    let mut found = read_profile(kind, source, &|bytes| bar.inc(bytes))?;
    bar.set_message("symbolizing");
    laggard_symbols::resolve(&mut found, &FileSystem);
    bar.finish_and_clear();
    Ok(profile::Loaded::new(found, vec![]))
}
