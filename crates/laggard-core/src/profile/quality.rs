//! Quality of a recording.

use super::{file_name, has_name};
use crate::model::NONE;
use crate::model::profile::{Children, FrameKind, Profile, state};

/// Statistics about lost samples, truncated stacks, symbolization and overhead.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QualitySummary {
    /// Number of samples.
    pub samples: u64,
    /// Number of lost samples.
    pub lost: u64,
    /// Number of delayed samples.
    pub late: u64,
    /// Threads that could not be sampled.
    pub unsampled_threads: u64,
    /// Samples with a complete stack.
    pub complete: u64,
    /// Truncated stacks by library and reason, by decreasing count.
    pub cut: Vec<Cut>,
    /// Samples with Python frames to merge into the native stack.
    pub with_python: u64,
    /// Of these, samples whose Python and native frames did not match.
    pub mismatched: u64,
    /// Worker thread samples attributed to a caller by time.
    pub joined: u64,
    /// Samples whose innermost native frame has a symbol, and samples with native frames.
    pub named: (u64, u64),
    /// CPU time of the program; `None` if unknown.
    pub cpu_ns: Option<u64>,
    /// CPU time represented by samples; `None` if they do not measure time.
    pub sampled_ns: Option<u64>,
    /// Share of CPU time without samples: in the kernel, if only user code was sampled, and in
    /// processes that were not sampled.
    pub kernel_share: Option<f64>,
    /// CPU time without samples by place; `None` if unknown.
    pub unsampled: Option<Unsampled>,
    /// Processes that the program started; `None` if unknown.
    pub children: Option<ChildrenSummary>,
    /// See [`Quality`](crate::model::profile::Quality).
    pub handler_ns: u64,
    /// See [`Quality`](crate::model::profile::Quality).
    pub overhead: Option<[f64; 3]>,
    /// Whether the file does not report truncated stacks and lost samples.
    pub is_unknown: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// CPU time without samples, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsampled {
    /// In the kernel, in sampled processes.
    pub kernel_ns: u64,
    /// In processes that were not sampled.
    pub children_ns: u64,
    /// In user code of sampled processes: between samples, or lost.
    pub other_ns: u64,
}

/// Processes that the program started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildrenSummary {
    /// Whether they were to be sampled.
    pub are_followed: bool,
    /// Number of processes that could be sampled, without the program itself.
    pub followed: u64,
    /// Programs that could not be sampled, by decreasing number of starts.
    pub excluded: Vec<Excluded>,
}

/// A program that could not be sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// File name of the program.
    pub program: String,
    /// Reason.
    pub reason: String,
    /// Number of starts.
    pub count: u64,
}

/// Stacks truncated in one library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The library.
    pub library: String,
    /// Reason.
    pub reason: String,
    /// Number of stacks.
    pub count: u64,
}

/// Summarizes the quality of a recording.
pub fn quality(profile: &Profile) -> QualitySummary {
    let q = &profile.quality;
    let cut = |&(module, count, reason): &(u32, u64, u32)| Cut {
        library: file_name(profile.texts.get(module)).to_owned(),
        reason: profile.texts.get(reason).to_owned(),
        count,
    };
    let mut cut: Vec<Cut> = q.cut.iter().map(cut).collect();
    cut.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.library.cmp(&b.library)));
    let count = |is_such: &dyn Fn(u32, u32) -> bool| -> u64 {
        profile
            .samples
            .iter()
            .filter(|s| is_such(s.state, s.stack))
            .fold(0u64, |sum, s| sum.saturating_add(s.count))
    };
    let cpu_ns = cpu_ns(profile);
    let sampled_ns = sampled_ns(profile);
    QualitySummary {
        samples: count(&|_, _| true),
        lost: q.lost,
        late: q.late,
        unsampled_threads: q.unsampled_threads,
        complete: count(&|state, stack| state & state::CUT == 0 && stack != NONE),
        cut,
        with_python: q.with_python,
        mismatched: q.mismatched,
        joined: count(&|state, _| state & state::JOINED != 0),
        named: named(profile),
        cpu_ns,
        sampled_ns,
        kernel_share: cpu_ns
            .zip(sampled_ns)
            .map(|(cpu, sampled)| cpu.saturating_sub(sampled) as f64 / cpu as f64),
        unsampled: unsampled(profile, sampled_ns),
        children: q.children.as_ref().map(|children| summarize(profile, children)),
        handler_ns: q.handler_ns,
        overhead: q.overhead,
        is_unknown: q.is_unknown,
        warnings: q.warnings.clone(),
    }
}

fn summarize(profile: &Profile, children: &Children) -> ChildrenSummary {
    let excluded = |&(program, reason, count): &(u32, u32, u64)| Excluded {
        program: file_name(profile.texts.get(program)).to_owned(),
        reason: profile.texts.get(reason).to_owned(),
        count,
    };
    let mut excluded: Vec<Excluded> = children.excluded.iter().map(excluded).collect();
    excluded.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.program.cmp(&b.program)));
    ChildrenSummary { are_followed: children.are_followed, followed: children.followed, excluded }
}

/// Splits the CPU time without samples. Processes that are not sampled are part of the CPU time of
/// the run, but not of that of the sampled processes.
fn unsampled(profile: &Profile, sampled_ns: Option<u64>) -> Option<Unsampled> {
    let children = profile.quality.children.as_ref()?;
    let about = &profile.about;
    let whole = about.user_ns.saturating_add(about.system_ns);
    let missing = whole.saturating_sub(sampled_ns?);
    let known = children.user_ns.saturating_add(children.system_ns);
    // Processes also use time after they reported it, so that a difference alone proves nothing.
    // A script that executes a program in its place reports nothing.
    let has_others = !children.excluded.is_empty() || !children.are_followed && known > 0;
    let children_ns = if has_others { whole.saturating_sub(known).min(missing) } else { 0 };
    let kernel_ns = if has_others { children.system_ns } else { about.system_ns };
    let kernel_ns = kernel_ns.min(missing - children_ns);
    Some(Unsampled { kernel_ns, children_ns, other_ns: missing - children_ns - kernel_ns })
}

fn cpu_ns(profile: &Profile) -> Option<u64> {
    let about = &profile.about;
    let of_run = about.user_ns.saturating_add(about.system_ns);
    let of_threads = profile.threads.iter().fold(0u64, |sum, t| sum.saturating_add(t.cpu_ns));
    [of_run, of_threads].into_iter().find(|&ns| ns > 0)
}

/// CPU time represented by samples: the weights of a CPU time event.
fn sampled_ns(profile: &Profile) -> Option<u64> {
    let is_cpu_time = |name: &str| !name.contains("wall");
    let event = profile.events.iter().position(|e| e.is_time() && is_cpu_time(&e.name))? as u32;
    let of_event = profile.samples.iter().filter(|s| s.event == event);
    Some(of_event.fold(0u64, |sum, s| sum.saturating_add(s.weight)))
}

fn named(profile: &Profile) -> (u64, u64) {
    let innermost = |stack: u32| {
        let mut frames = profile.frames_of(stack).filter_map(|f| profile.frames.get(f as usize));
        frames.find(|f| matches!(f.kind, FrameKind::Native | FrameKind::Inlined))
    };
    let mut counts = (0, 0);
    for (frame, count) in
        profile.samples.iter().filter_map(|sample| Some((innermost(sample.stack)?, sample.count)))
    {
        if has_name(profile, frame) {
            counts.0 = u64::saturating_add(counts.0, count);
        }
        counts.1 = u64::saturating_add(counts.1, count);
    }
    counts
}
