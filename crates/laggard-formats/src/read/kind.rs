//! What a file is, by its content: every verb takes any file and asks here.

use super::{
    bench, callgrind, collapsed, dtrace, dtruss, ffi, firefox, massif, perf_script, perf_stat,
    pprof, speedscope, why,
};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A run file of ours: a recording, traced calls, or the index of a trace.
    Lag,
    /// A profile of another program.
    Profile(ProfileKind),
    /// Results of a benchmark.
    Bench,
    /// Counters of `perf stat`.
    Counters,
    /// System calls that dtruss saw.
    Dtruss,
    /// A verdict of `laggard why`.
    Why,
    /// A run of `laggard ffi`.
    Ffi,
    /// A PyTorch trace, or something that its reader names when it refuses it.
    Trace,
}

/// Who wrote a profile, and in which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileKind {
    /// `perf record`.
    PerfData,
    /// `perf script`.
    PerfScript,
    /// A line a stack: `flamegraph.pl`, inferno, `py-spy record -f raw`.
    Collapsed,
    /// speedscope, and py-spy for it.
    Speedscope,
    /// pprof.
    Pprof,
    /// The Firefox Profiler, and samply for it.
    Firefox,
    /// callgrind: a graph of calls.
    Callgrind,
    /// massif: what the heap holds.
    Massif,
    /// Sums of dtrace, by stack or by function.
    Dtrace,
}

/// The profile that a file has; none when it is of another kind. What can be told by less comes last.
fn profile_kind(head: &[u8]) -> Option<ProfileKind> {
    const MAGIC: &[&[u8]] = &[b"PERFILE2", b"2ELIFREP"];
    /// Whether a file begins like that of some program.
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

/// What a file is that begins with `head`, of which 64 KiB are enough.
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
    /// What it is called in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Lag => "a run file of laggard",
            Kind::Profile(kind) => kind.words(),
            Kind::Bench => "a bench",
            Kind::Counters => "a file of counters",
            Kind::Dtruss => "a record of system calls",
            Kind::Why => "a verdict",
            Kind::Ffi => "a run of laggard ffi",
            Kind::Trace => "a trace",
        }
    }
}

impl ProfileKind {
    /// What it is called in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            ProfileKind::PerfData => "a recording of perf",
            ProfileKind::PerfScript => "a text of perf script",
            ProfileKind::Collapsed => "a file of collapsed stacks",
            ProfileKind::Speedscope => "a speedscope profile",
            ProfileKind::Pprof => "a profile of pprof",
            ProfileKind::Firefox => "a Firefox Profiler profile",
            ProfileKind::Callgrind => "a file of callgrind",
            ProfileKind::Massif => "a file of massif",
            ProfileKind::Dtrace => "a text of dtrace",
        }
    }
}
