//! Detects the kind of a file from its content.

use super::{
    bench, callgrind, collapsed, dtrace, dtruss, ffi, firefox, massif, perf_script, perf_stat,
    pprof, speedscope, why,
};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A laggard run file: a recording, a call trace or the index of a trace.
    Lag,
    /// A profile of another program.
    Profile(ProfileKind),
    /// Benchmark results.
    Bench,
    /// Counters of `perf stat`.
    Counters,
    /// System calls traced by dtruss.
    Dtruss,
    /// A verdict of `laggard why`.
    Why,
    /// A result of `laggard ffi`.
    Ffi,
    /// A PyTorch trace, or an unknown format, which [`super::describe_unknown`] or the trace reader
    /// rejects by name.
    Trace,
}

/// The format of a profile of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileKind {
    /// `perf record`.
    PerfData,
    /// `perf script`.
    PerfScript,
    /// Collapsed stacks: `flamegraph.pl`, inferno, `py-spy record -f raw`.
    Collapsed,
    /// speedscope, also written by py-spy.
    Speedscope,
    /// pprof.
    Pprof,
    /// The Firefox Profiler, also written by samply.
    Firefox,
    /// callgrind: a call graph.
    Callgrind,
    /// massif: heap snapshots.
    Massif,
    /// dtrace aggregations by stack or by function.
    Dtrace,
}

/// The format of a profile; `None` if the file is not a profile. Formats with the weakest signature
/// come last.
fn profile_kind(head: &[u8]) -> Option<ProfileKind> {
    const MAGIC: &[&[u8]] = &[b"PERFILE2", b"2ELIFREP"];
    /// Whether a file starts like one of a format.
    type Looks = fn(&[u8]) -> bool;
    let kinds: [(ProfileKind, Looks); 9] = [
        (ProfileKind::PerfData, |head| MAGIC.iter().any(|magic| head.starts_with(magic))),
        (ProfileKind::Speedscope, speedscope::is_speedscope),
        (ProfileKind::Firefox, firefox::is_firefox),
        (ProfileKind::Pprof, pprof::is_pprof),
        (ProfileKind::Callgrind, callgrind::is_callgrind),
        (ProfileKind::Massif, massif::is_massif),
        (ProfileKind::PerfScript, perf_script::is_perf_script),
        (ProfileKind::Dtrace, dtrace::is_dtrace),
        (ProfileKind::Collapsed, collapsed::is_collapsed),
    ];
    kinds.into_iter().find(|(_, is)| is(head)).map(|(kind, _)| kind)
}

/// The kind of a file that starts with `head`. 64 KiB are sufficient.
pub fn kind_of(head: &[u8]) -> Kind {
    match () {
        () if head.starts_with(&[0xff; 4]) => Kind::Lag,
        () if bench::kind_of(head).is_some() => Kind::Bench,
        () if why::is_why(head) => Kind::Why,
        () if ffi::is_ffi(head) => Kind::Ffi,
        () if perf_stat::is_perf_stat(head) => Kind::Counters,
        () if dtruss::is_dtruss(head) => Kind::Dtruss,
        () => profile_kind(head).map_or(Kind::Trace, Kind::Profile),
    }
}

impl Kind {
    /// A noun phrase for messages.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Lag => "a .lag file",
            Kind::Profile(kind) => kind.words(),
            Kind::Bench => "a benchmark",
            Kind::Counters => "a file of perf stat counters",
            Kind::Dtruss => "a dtruss file",
            Kind::Why => "a result of laggard why",
            Kind::Ffi => "a result of laggard ffi",
            Kind::Trace => "a trace",
        }
    }
}

impl ProfileKind {
    /// A noun phrase for messages.
    pub fn words(self) -> &'static str {
        match self {
            ProfileKind::PerfData => "a perf.data file",
            ProfileKind::PerfScript => "perf script output",
            ProfileKind::Collapsed => "a file of collapsed stacks",
            ProfileKind::Speedscope => "a speedscope profile",
            ProfileKind::Pprof => "a pprof profile",
            ProfileKind::Firefox => "a Firefox Profiler profile",
            ProfileKind::Callgrind => "a callgrind file",
            ProfileKind::Massif => "a massif file",
            ProfileKind::Dtrace => "dtrace output",
        }
    }
}
