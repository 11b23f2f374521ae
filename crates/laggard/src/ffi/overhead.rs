//! Measures the overhead and stack quality of profiling, for each build profile and method.

use super::build::Built;
use super::interpreter::Interpreter;
use super::suite::Suite;
use super::{Binding, Stock, Wanted, script};
use crate::printer::Printer;
use laggard_core::model::ffi::Overhead;
use laggard_core::model::profile::Profile as Samples;
use laggard_core::profile::quality;
use laggard_core::stats::ratio::Interval;
use laggard_core::stats::repeats::Repeated;
use laggard_core::stats::summary::Summary;
use laggard_formats::Source;
use laggard_formats::read::perf as reader;
use laggard_probe::perf::{self, CallGraph, LARGEST_COPY, Target};
use laggard_probe::{Ended, Error, sample};
use std::ffi::OsString;
use std::path::Path;

/// Calls per run, which takes about a second.
const ITERATIONS: u32 = 200_000;
/// Pairs of runs with and without recording.
const ROUNDS: usize = 4;
/// Sampling rate in Hz.
const RATE: f64 = 999.0;

/// A profiling method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Agent,
    Perf(CallGraph),
}

const METHODS: [(&str, Method); 4] = [
    ("agent", Method::Agent),
    ("fp", Method::Perf(CallGraph::FramePointers)),
    ("dwarf", Method::Perf(CallGraph::Copies(LARGEST_COPY))),
    ("lbr", Method::Perf(CallGraph::BranchRecords)),
];

/// CPU times of a run.
struct Took {
    /// CPU time per call, measured by the program itself.
    call_ns: f64,
    /// CPU time of the program and of its recorder.
    whole_ns: f64,
}

/// A recording.
struct Recorded {
    took: Took,
    samples: u64,
    complete: Option<f64>,
    bytes: Option<u64>,
}

/// Runs one binding with and without each method in turn. Returns `None` if interrupted.
pub(super) fn measure(
    wanted: &Wanted,
    suite: &Suite,
    interpreter: &Interpreter,
    stock: &Stock,
    printer: &Printer,
) -> Option<Vec<Overhead>> {
    let bar = printer.steps();
    let mut found = vec![];
    // The C API binding has the deepest stacks for its run time: C calls Python that C called.
    let binding = stock.bindings.first().copied().unwrap_or(Binding::Capi);
    for (number, &profile) in wanted.profiles.iter().enumerate() {
        let Some(built) = stock.get(0, profile, binding) else { continue };
        let workload =
            format!("{} through {}, {ITERATIONS} calls", suite.overhead.category, binding.name());
        let program = Program::new(interpreter, built, &suite.overhead.category);
        for (name, method) in METHODS {
            bar.set_message(format!("profiling the {} build: {name}", profile.name()));
            let blank = Overhead {
                profile: number,
                method: name.to_owned(),
                workload: workload.clone(),
                ..Overhead::default()
            };
            let measured = match &program {
                Ok(program) => one(program, method, wanted),
                Err(error) => Err(failed(error)),
            };
            found.push(match measured {
                Ok(measured) => measured.into(blank),
                Err(Error::Interrupted) => return None,
                Err(error) => Overhead { why_not: error.to_string(), ..blank },
            });
        }
    }
    bar.finish_and_clear();
    Some(found)
}

/// The measured program, which writes its timings to a file.
struct Program {
    words: Vec<OsString>,
    room: tempfile::TempDir,
}

impl Program {
    fn new(interpreter: &Interpreter, built: &Built, category: &str) -> Result<Program, Error> {
        let room = tempfile::tempdir().map_err(|error| failed(&error))?;
        let script = built.directory.join(script::name(built.binding));
        let mut words: Vec<OsString> = vec![interpreter.path.clone().into(), script.into()];
        let iterations = ITERATIONS.to_string();
        let flags = ["--iterations", &iterations, "--categories", category, "--result"];
        words.extend(flags.map(OsString::from));
        words.push(room.path().join(RESULT).into());
        Ok(Program { words, room })
    }

    /// Reads the CPU times of the run that just ended.
    fn took(&self, ended: &Ended) -> Result<Took, Error> {
        // Ctrl-C ends the program, but not its recorder, which writes the samples.
        const BY_CTRL_C: i32 = 130;
        if ended.code() == BY_CTRL_C {
            return Err(Error::Interrupted);
        }
        let path = self.room.path().join(RESULT);
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let _ = std::fs::remove_file(path);
        let last = text.split_whitespace().next_back().and_then(|number| number.parse().ok());
        let call_ns: f64 = last.ok_or_else(|| failed(&"the program wrote no timing"))?;
        Ok(Took { call_ns, whole_ns: (ended.user_ns + ended.system_ns).max(1) as f64 })
    }
}

const RESULT: &str = "result";

fn failed(why: &dyn std::fmt::Display) -> Error {
    Error::Nothing(why.to_string())
}

/// The results of all rounds.
struct Measured {
    ratios: Vec<f64>,
    wholes: Vec<f64>,
    last: Recorded,
}

impl Measured {
    fn into(self, blank: Overhead) -> Overhead {
        let logs: Vec<f64> = self.ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = Repeated::of(&logs).and_then(|found| found.interval());
        let exp = |of: Interval| Interval {
            middle: of.middle.exp(),
            low: of.low.exp(),
            high: of.high.exp(),
        };
        Overhead {
            ratio: interval.map(exp),
            whole: Summary::of(&self.wholes).median,
            n: self.ratios.len(),
            samples: self.last.samples,
            complete: self.last.complete,
            bytes: self.last.bytes,
            ..blank
        }
    }
}

fn one(program: &Program, method: Method, wanted: &Wanted) -> Result<Measured, Error> {
    let (mut ratios, mut wholes) = (vec![], vec![]);
    let mut last = None;
    for round in 0..ROUNDS {
        // The order alternates, so that drift affects both equally.
        let (bare, recorded) = if round % 2 == 0 {
            let bare = bare(program, wanted)?;
            (bare, record(program, method, wanted)?)
        } else {
            let recorded = record(program, method, wanted)?;
            (bare(program, wanted)?, recorded)
        };
        ratios.push(recorded.took.call_ns / bare.call_ns);
        wholes.push(recorded.took.whole_ns / bare.whole_ns);
        last = Some(recorded);
    }
    let last = last.ok_or_else(|| failed(&"nothing was recorded"))?;
    Ok(Measured { ratios, wholes, last })
}

fn options(wanted: &Wanted) -> sample::Options {
    sample::Options {
        rate: RATE,
        quiet: true,
        cpus: wanted.cpus.clone(),
        ..sample::Options::default()
    }
}

fn bare(program: &Program, wanted: &Wanted) -> Result<Took, Error> {
    sample::bare(&program.words, &options(wanted)).and_then(|ended| program.took(&ended))
}

fn record(program: &Program, method: Method, wanted: &Wanted) -> Result<Recorded, Error> {
    let call_graph = match method {
        Method::Agent => {
            let (profile, ended) = sample::record(&program.words, &options(wanted), &mut |_| ())?;
            return Ok(recorded(&profile, program.took(&ended)?, None));
        }
        Method::Perf(call_graph) => call_graph,
    };
    // LBR call stacks need a hardware event.
    let event = if call_graph == CallGraph::BranchRecords { "cycles" } else { "cpu-clock" };
    let options = perf::Options {
        target: Target::Command(program.words.clone()),
        events: vec![event.into()],
        rate: RATE,
        call_graph,
        cpus: wanted.cpus.clone(),
        duration: None,
    };
    let data = program.room.path().join("perf.data");
    let ended = perf::record(&options, &data)?.ended;
    let profile = read(&data).map_err(|error| failed(&error))?;
    let bytes = data.metadata().ok().map(|file| file.len());
    Ok(recorded(&profile, program.took(&ended)?, bytes))
}

fn read(data: &Path) -> Result<Samples, laggard_formats::Error> {
    reader::read(Source::open(data)?, &|_| ())
}

fn recorded(profile: &Samples, took: Took, bytes: Option<u64>) -> Recorded {
    let sum = quality(profile);
    let complete = (sum.samples > 0).then(|| sum.complete as f64 / sum.samples as f64);
    Recorded { took, samples: sum.samples, complete, bytes }
}
