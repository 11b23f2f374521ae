//! Sections about the program, the recording and its quality.

use super::{ProfileReport, whole};
use crate::document::Document;
use crate::escape;
use crate::number::{count, duration, percent, plural, share, significant};
use laggard_core::profile::{ChildrenSummary, Excluded, QualitySummary, View, kernel_families};
use std::collections::BTreeSet;

/// Maximum width of a command line.
pub(crate) const LONGEST_COMMAND: usize = 300;
/// Maximum number of libraries listed for truncated stacks.
const MOST_CUTS: usize = 5;
/// Maximum number of programs listed that could not be sampled.
const MOST_EXCLUDED: usize = 5;

pub(super) fn about(report: &ProfileReport, document: &mut Document) {
    let about = &report.view.profile.about;
    document.facts([
        ("command", escape::fit(&command(&about.command), LONGEST_COMMAND)),
        (
            "exit status",
            about
                .exit_code
                .filter(|&code| code != 0)
                .map_or_else(String::new, |code| code.to_string()),
        ),
        ("duration", durations(report)),
        ("samples", samples(report.view)),
        ("recorded by", recorded(report.view)),
        ("filter", filter(report).unwrap_or_default()),
    ]);
}

/// Adds the filter, if there is one.
pub(super) fn shown(report: &ProfileReport, document: &mut Document) {
    if let Some(filter) = filter(report) {
        document.facts([("filter", filter), ("kernels", kernels(report))]);
    }
}

/// A command line with shell quoting.
pub(crate) fn command(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn durations(report: &ProfileReport) -> String {
    let about = &report.view.profile.about;
    let mut parts = vec![];
    if about.duration_ns > 0 {
        parts.push(format!("{} wall time", time(about.duration_ns)));
    }
    if let Some(cpu) = report.quality.cpu_ns {
        let of = if about.user_ns + about.system_ns > 0 {
            format!(" ({} user, {} system)", time(about.user_ns), time(about.system_ns))
        } else {
            String::new()
        };
        parts.push(format!("{} CPU time{of}", time(cpu)));
    }
    parts.join(", ")
}

fn time(ns: u64) -> String {
    duration(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn samples(view: &View) -> String {
    let profile = view.profile;
    let of_event: Vec<_> =
        profile.samples.iter().filter(|sample| sample.event == view.event).collect();
    let threads: BTreeSet<u32> = of_event.iter().map(|sample| sample.thread).collect();
    let pids: BTreeSet<u32> = threads
        .iter()
        .filter_map(|&thread| Some(profile.threads.get(thread as usize)?.pid))
        .collect();
    let rate = profile.about.rate;
    let rate = if rate > 0.0 {
        format!(", sampling rate {} Hz per thread", significant(rate))
    } else {
        String::new()
    };
    let processes = if pids.len() == 1 {
        "1 process".to_owned()
    } else {
        format!("{} processes", count(pids.len() as u64))
    };
    let others = profile.samples.iter().filter(|sample| sample.event != view.event);
    let others: u64 = others.map(|sample| sample.count).sum();
    let others = if others > 0 {
        format!("; {} of other events (--by event)", plural(others, "sample"))
    } else {
        String::new()
    };
    format!(
        "{}{}{rate}; {} in {processes}{others}",
        count(of_event.iter().map(|sample| sample.count).sum()),
        match view.event_name() {
            "samples" => String::new(),
            event => format!(" of {event}"),
        },
        plural(threads.len() as u64, "thread"),
    )
}

fn recorded(view: &View) -> String {
    let about = &view.profile.about;
    let by = [about.method.as_str(), about.tool.as_str()];
    let by: Vec<&str> = by.into_iter().filter(|word| !word.is_empty()).collect();
    by.join(", ")
}

/// `for SKYLAKEX (93.1 %)`: CPU families of the kernels of a library.
fn kernels(report: &ProfileReport) -> String {
    if report.filter.library.is_none() {
        return String::new();
    }
    let families = kernel_families(report.view);
    let families: Vec<String> = families
        .iter()
        .map(|(name, cost)| format!("{name} ({} %)", percent(cost.share_of(report.view.whole))))
        .collect();
    if families.is_empty() { String::new() } else { format!("for {}", families.join(", ")) }
}

/// Description of the filter with the cost of the matching samples.
fn filter(report: &ProfileReport) -> Option<String> {
    let (view, filter) = (report.view, report.filter);
    let named = [
        ("library", &filter.library),
        ("thread", &filter.thread),
        ("process", &filter.process),
        ("event", &filter.event),
    ];
    let mut parts: Vec<String> = named
        .into_iter()
        .filter_map(|(what, asked)| Some(format!("{what} {}", asked.as_deref()?)))
        .collect();
    parts.extend(filter.pid.map(|pid| format!("process {pid}")));
    parts.extend(filter.from_ns.map(|from| format!("from {}", time(from))));
    parts.extend(filter.to_ns.map(|to| format!("to {}", time(to))));
    if parts.is_empty() {
        return None;
    }
    let start_up = match view.start_up.samples {
        0 => String::new(),
        hidden => {
            format!("; excludes {} (--start-up includes them)", plural(hidden, "start-up sample"))
        }
    };
    let of_event = view.profile.samples.iter().filter(|sample| sample.event == view.event);
    let all: u64 = of_event.map(|sample| sample.count).sum();
    Some(format!(
        "{}: {}, {} % of all samples of this event{start_up}",
        parts.join(", "),
        whole(view, view.whole),
        percent(share(view.whole.samples as f64, all as f64))
    ))
}

pub(super) fn quality(report: &ProfileReport, document: &mut Document) {
    let q = report.quality;
    // Without samples, it only matters where the CPU time was spent.
    if q.samples == 0 {
        if q.children.is_some() {
            document.heading("Quality");
            document.facts([
                ("children", children(report)),
                ("not sampled", unsampled(q).unwrap_or_default()),
            ]);
        }
        return;
    }
    document.heading("Quality");
    document.facts([
        ("complete stacks", if q.is_unknown { "not recorded".into() } else { stacks(q) }),
        ("symbols", symbols(q)),
        ("Python", python(q)),
        ("workers", workers(q)),
        ("lost", if q.is_unknown { String::new() } else { lost(q) }),
        ("children", children(report)),
        ("not sampled", unsampled(q).unwrap_or_default()),
        ("overhead", overhead(report)),
    ]);
    for warning in &q.warnings {
        document.minor(format!("note: {warning}"));
    }
}

fn stacks(q: &QualitySummary) -> String {
    let cut = |cut: &laggard_core::profile::Cut| {
        let reason =
            if cut.reason.is_empty() { String::new() } else { format!(" ({})", cut.reason) };
        let library = if cut.library.is_empty() { "unknown code" } else { &cut.library };
        format!("{} in {}{reason}", count(cut.count), escape::fit(library, 60))
    };
    let mut ends: Vec<String> = q.cut.iter().take(MOST_CUTS).map(cut).collect();
    if q.cut.len() > MOST_CUTS {
        ends.push(format!("{} more", q.cut.len() - MOST_CUTS));
    }
    let ends =
        if ends.is_empty() { String::new() } else { format!("; truncated: {}", ends.join(", ")) };
    let part = percent(share(q.complete as f64, q.samples as f64));
    format!("{part} % of {}{ends}", plural(q.samples, "sample"))
}

fn symbols(q: &QualitySummary) -> String {
    let (named, all) = q.named;
    if all == 0 || named == all {
        return String::new();
    }
    let part = percent(share(named as f64, all as f64));
    format!("found for the innermost native frame in {part} % of {}", plural(all, "sample"))
}

fn python(q: &QualitySummary) -> String {
    if q.with_python == 0 {
        return String::new();
    }
    let fit = q.with_python.saturating_sub(q.mismatched);
    let part = percent(share(fit as f64, q.with_python as f64));
    format!("Python and native frames match in {part} % of {}", plural(q.with_python, "sample"))
}

fn workers(q: &QualitySummary) -> String {
    if q.joined == 0 {
        return String::new();
    }
    format!(
        "{} of worker threads attributed to their callers by matching sample times",
        plural(q.joined, "sample")
    )
}

fn lost(q: &QualitySummary) -> String {
    let mut parts = vec![];
    if q.lost > 0 {
        let all = q.lost.saturating_add(q.samples);
        parts.push(format!(
            "{} ({} % of all samples)",
            plural(q.lost, "sample"),
            percent(share(q.lost as f64, all as f64))
        ));
    }
    if q.late > 0 {
        parts.push(format!("{} delayed by blocked signals", plural(q.late, "sample")));
    }
    if q.unsampled_threads > 0 {
        parts.push(format!("{} could not be sampled", plural(q.unsampled_threads, "thread")));
    }
    if parts.is_empty() { "none".to_owned() } else { parts.join("; ") }
}

/// `followed 2,000 processes, 17 of them with samples; not followed: 3 of busybox (statically linked)`.
fn children(report: &ProfileReport) -> String {
    let Some(children) = &report.quality.children else { return String::new() };
    let mut parts = vec![];
    if children.followed > 0 {
        let pids: BTreeSet<u32> = report.view.profile.threads.iter().map(|t| t.pid).collect();
        parts.push(format!(
            "{} followed, {} with samples",
            match children.followed {
                1 => "1 child process".to_owned(),
                n => format!("{} child processes", count(n)),
            },
            count((pids.len() as u64).saturating_sub(1).min(children.followed))
        ));
    }
    if !children.excluded.is_empty() {
        parts.push(format!("not followed: {}", excluded(children)));
    }
    if children.excluded.is_empty()
        && !children.are_followed
        && has_unsampled_children(report.quality)
    {
        parts.push("not followed: --no-children".into());
    }
    parts.join("; ")
}

/// Programs that could not be sampled, with their number and reason.
fn excluded(children: &ChildrenSummary) -> String {
    let one = |one: &Excluded| {
        format!("{} of {} ({})", count(one.count), escape::fit(&one.program, 40), one.reason)
    };
    let mut parts: Vec<String> = children.excluded.iter().take(MOST_EXCLUDED).map(one).collect();
    if children.excluded.len() > MOST_EXCLUDED {
        parts.push(format!("{} more programs", children.excluded.len() - MOST_EXCLUDED));
    }
    parts.join(", ")
}

/// Whether processes that were not sampled used CPU time. Smaller amounts are rounding errors of
/// the accounting.
fn has_unsampled_children(q: &QualitySummary) -> bool {
    let (Some(unsampled), Some(cpu)) = (q.unsampled, q.cpu_ns) else { return false };
    is_relevant(unsampled.children_ns, cpu)
}

/// Whether a time is at least 1 % of the CPU time of the run, and more than a clock tick.
fn is_relevant(ns: u64, cpu_ns: u64) -> bool {
    const TICK_NS: u64 = 10_000_000;
    ns > TICK_NS && ns >= cpu_ns / 100
}

/// CPU time without samples, with its places and the option that samples them.
pub fn unsampled(q: &QualitySummary) -> Option<String> {
    let (share, cpu, sampled) = (q.kernel_share?, q.cpu_ns?, q.sampled_ns?);
    let whole = format!(
        "{} % of {} CPU time was not sampled (sampled: {})",
        percent(share),
        time(cpu),
        time(sampled)
    );
    let Some(parts) = q.unsampled else {
        return Some(format!("{whole}: time in the kernel, or lost samples"));
    };
    let mut places = vec![];
    if has_unsampled_children(q) {
        let are_followed = q.children.as_ref().is_some_and(|children| children.are_followed);
        let how = if are_followed {
            "in processes that could not be followed (--backend perf samples them)"
        } else {
            "in child processes (not followed because of --no-children)"
        };
        places.push((parts.children_ns, how));
    }
    if is_relevant(parts.kernel_ns, cpu) {
        places.push((parts.kernel_ns, "in the kernel (--backend perf samples it)"));
    }
    if is_relevant(parts.other_ns, cpu) {
        let has_children = q.children.as_ref().is_some_and(|children| children.followed > 0);
        let how = match (q.lost > 0, has_children) {
            (true, _) => "in lost samples",
            (false, true) => "at the start and the end of processes (--backend perf samples them)",
            (false, false) => "between samples, or at the start and the end of the program",
        };
        places.push((parts.other_ns, how));
    }
    places.sort_by_key(|&(ns, _)| std::cmp::Reverse(ns));
    let places: Vec<String> =
        places.into_iter().map(|(ns, how)| format!("{} {how}", time(ns))).collect();
    Some(if places.is_empty() { whole } else { format!("{whole}: {}", places.join(", ")) })
}

fn overhead(report: &ProfileReport) -> String {
    let q = report.quality;
    if let Some([ratio, low, high]) = q.overhead {
        return format!(
            "{}x the time without recording (95 % CI {} to {})",
            significant(ratio),
            significant(low),
            significant(high)
        );
    }
    match (q.handler_ns, q.cpu_ns) {
        (0, _) | (_, None) => String::new(),
        (handler, Some(cpu)) => format!(
            "{} spent sampling, {} % of CPU time",
            time(handler),
            percent(share(handler as f64, cpu as f64))
        ),
    }
}
