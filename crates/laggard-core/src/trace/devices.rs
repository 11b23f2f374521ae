//! Busy time, idle time by cause, and launch latencies of devices.

use super::intervals::{length, length_outside, union};
use super::link::NameMemo;
use super::summary::{Analysis, Device, Idle, Launches, Spread, Stream};
use crate::classify::ClassId;
use crate::model::NONE;
use crate::model::timeline::{Activity, Timeline};
use rustc_hash::FxHashMap;

/// Busy and idle time of every device with operations. With a selected phase, a device is idle only
/// while no operation of any phase runs.
pub(super) fn devices(analysis: &Analysis) -> Vec<Device> {
    busy_and_idle(analysis).0
}

/// Busy and idle time of every device, and the gaps of all devices, sorted by end.
pub fn busy_and_idle(analysis: &Analysis) -> (Vec<Device>, Vec<Gap>) {
    let waits = Waits::new(analysis.timeline);
    let (mut devices, mut all_gaps) = (vec![], vec![]);
    for (code, rows) in by_device(analysis.timeline) {
        let gap = |(next, dur_ns, cause)| Gap { next, dur_ns, cause };
        let gaps: Vec<Gap> = gaps(analysis, &waits, &rows).map(gap).collect();
        devices.extend(device(analysis, &gaps, code, &rows));
        all_gaps.extend(gaps);
    }
    devices.sort_by_key(|device: &Device| {
        (device.device.parse().unwrap_or(i64::MAX), device.device.clone())
    });
    all_gaps.sort_by_key(|gap| (analysis.timeline.gpu.spans.ts[gap.next as usize], gap.next));
    (devices, all_gaps)
}

/// Rows of the device table by device, sorted by start.
pub(crate) fn by_device(timeline: &Timeline) -> FxHashMap<u32, Vec<u32>> {
    let gpu = &timeline.gpu;
    // Accelerators without a device number have a separate process each.
    let code_of = |row: u32| match gpu.device[row as usize] {
        NONE => timeline.tracks[gpu.spans.track[row as usize] as usize].pid,
        code => code,
    };
    let mut devices: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let rows: Vec<u32> = (0..gpu.spans.len() as u32).collect();
    // Most rows belong to the same device as the previous row.
    for run in rows.chunk_by(|&a, &b| code_of(a) == code_of(b)) {
        devices.entry(code_of(run[0])).or_default().extend_from_slice(run);
    }
    for rows in devices.values_mut() {
        let start = |row: &u32| gpu.spans.ts[*row as usize];
        if !rows.is_sorted_by_key(start) {
            rows.sort_by_key(start);
        }
    }
    devices
}

fn device(analysis: &Analysis, gaps: &[Gap], code: u32, all: &[u32]) -> Option<Device> {
    let timeline = analysis.timeline;
    let spans = &timeline.gpu.spans;
    let rows: Vec<u32> = all.iter().copied().filter(|&row| analysis.keeps(row)).collect();
    let role = roles(analysis);
    let work: Vec<(Role, (i64, i64))> = rows
        .iter()
        .map(|&row| (role(row), (spans.ts[row as usize], spans.end(row as usize))))
        .collect();
    let of = |wanted: fn(Role) -> bool| {
        union(work.iter().filter(|(role, _)| wanted(*role)).map(|(_, span)| *span))
    };
    let busy = of(|_| true);
    let (start, end) = (busy.first()?.0, busy.last()?.1);
    let compute = of(|role| role == Role::Compute);
    let communication = of(|role| role == Role::Communication);
    let kernels = of(|role| role != Role::Copy);
    let copy = of(|role| role == Role::Copy);
    let idle = idle(analysis, gaps, start);
    Some(Device {
        device: timeline.ids.text(code),
        name: device_name(analysis, code),
        span_ns: end.saturating_sub(start),
        busy_ns: length(&busy),
        idle_ns: idle
            .host_bound_ns
            .saturating_add(idle.synchronisation_ns)
            .saturating_add(idle.other_ns),
        compute_ns: length(&compute),
        communication_ns: length(&communication),
        exposed_communication_ns: length_outside(&communication, &compute),
        copy_ns: length(&copy),
        exposed_copy_ns: length_outside(&copy, &kernels),
        idle,
        streams: streams(analysis, &rows),
    })
}

fn device_name(analysis: &Analysis, code: u32) -> String {
    let timeline = analysis.timeline;
    let number = timeline.ids.number(code);
    let devices = &timeline.about.devices;
    // On AMD, the device numbers of kernels differ from those in the properties. If all devices
    // have the same name, the first one is used.
    let found = devices.iter().find(|device| Some(device.id) == number);
    let alike =
        || devices.first().filter(|first| devices.iter().all(|device| device.name == first.name));
    let Some(device) = found.or_else(alike) else { return String::new() };
    if !device.name.is_empty() {
        return device.name.clone();
    }
    analysis
        .rules
        .device("", device.sms, device.memory)
        .map_or_else(String::new, |peak| peak.name.clone())
}

/// Role of a device operation, in order of precedence for exposed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    Compute,
    Communication,
    Copy,
}

pub(crate) fn role(analysis: &Analysis, row: u32) -> Role {
    role_of(analysis.activity(row), analysis.rules.is_communication(analysis.class(row)))
}

/// Like [`role`], for many rows: classes are looked up once.
fn roles<'a>(analysis: &'a Analysis) -> impl Fn(u32) -> Role + 'a {
    let classes = 0..analysis.rules.classes().len() as u16;
    let communicates: Vec<bool> =
        classes.map(|class| analysis.rules.is_communication(ClassId(class))).collect();
    move |row| {
        let class = usize::from(analysis.class(row).0);
        role_of(analysis.activity(row), communicates.get(class).copied().unwrap_or(false))
    }
}

fn role_of(activity: Activity, communicates: bool) -> Role {
    match activity {
        Activity::Copy | Activity::Fill => Role::Copy,
        _ if communicates => Role::Communication,
        _ => Role::Compute,
    }
}

fn streams(analysis: &Analysis, rows: &[u32]) -> Vec<Stream> {
    let gpu = &analysis.timeline.gpu;
    let mut by_stream: FxHashMap<u32, Vec<(i64, i64)>> = FxHashMap::default();
    let stream = |row: u32| gpu.stream[row as usize];
    for run in rows.chunk_by(|&a, &b| stream(a) == stream(b)) {
        let spans = by_stream.entry(stream(run[0])).or_default();
        spans.extend(
            run.iter().map(|&row| (gpu.spans.ts[row as usize], gpu.spans.end(row as usize))),
        );
    }
    let stream = |(code, spans): (u32, Vec<(i64, i64)>)| Stream {
        stream: analysis.timeline.ids.text(code),
        count: spans.len() as u64,
        busy_ns: length(&union(spans.into_iter())),
    };
    let mut streams: Vec<Stream> = by_stream.into_iter().map(stream).collect();
    streams.sort_by(|a, b| b.busy_ns.cmp(&a.busy_ns).then_with(|| a.stream.cmp(&b.stream)));
    streams
}

/// Runtime calls in which the host waits for a device, by track.
pub(crate) struct Waits(FxHashMap<u32, Vec<(i64, i64)>>);

impl Waits {
    pub(crate) fn new(timeline: &Timeline) -> Waits {
        let runtime = &timeline.runtime;
        let is_wait = NameMemo::new(timeline, |name| u8::from(waits(name)));
        let mut by_track: FxHashMap<u32, Vec<(i64, i64)>> = FxHashMap::default();
        for row in 0..runtime.spans.len() {
            if is_wait.get(timeline, runtime.spans.name[row]) == 1 {
                by_track
                    .entry(runtime.spans.track[row])
                    .or_default()
                    .push((runtime.spans.ts[row], runtime.spans.end(row)));
            }
        }
        for calls in by_track.values_mut() {
            calls.sort_unstable();
        }
        Waits(by_track)
    }

    /// Whether the last wait on the track that began before `before` ended after `after`.
    fn ended_between(&self, track: u32, after: i64, before: i64) -> bool {
        let Some(calls) = self.0.get(&track) else { return false };
        let next = calls.partition_point(|&(start, _)| start < before);
        next > 0 && calls[next - 1].1 > after
    }
}

fn waits(name: &str) -> bool {
    let copy = name.contains("Memcpy") && !name.contains("Async");
    copy || name.contains("Synchronize")
        || name.contains("synchronize")
        || name == "hipMemcpyWithStream"
}

/// Cause of an idle gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The next operation was launched after the device went idle.
    HostBound,
    /// The next operation was launched after the device went idle, because the host waited for the
    /// device.
    Synchronisation,
    /// The next operation was launched before the device went idle, or is unlinked.
    Other,
}

impl Cause {
    /// All causes, by number.
    pub const ALL: [Cause; 3] = [Cause::HostBound, Cause::Synchronisation, Cause::Other];

    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Cause::HostBound => "host-bound",
            Cause::Synchronisation => "synchronisation",
            Cause::Other => "other",
        }
    }
}

/// An idle gap of a device between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The row of the device table that ended it.
    pub next: u32,
    /// Its duration.
    pub dur_ns: i64,
    /// Its cause.
    pub cause: Cause,
}

/// Idle gaps of a device, each with the row that ended it. The launch of that row determines the
/// cause.
pub(crate) fn gaps<'a>(
    analysis: &'a Analysis,
    waits: &'a Waits,
    all: &'a [u32],
) -> impl Iterator<Item = (u32, i64, Cause)> + 'a {
    let timeline = analysis.timeline;
    let (gpu, calls) = (&timeline.gpu, &timeline.runtime.spans);
    let mut busy_until = None;
    all.iter().filter_map(move |&row| {
        let to = gpu.spans.ts[row as usize];
        let from = busy_until.unwrap_or(to);
        busy_until = busy_until.max(Some(gpu.spans.end(row as usize)));
        if to <= from || !analysis.keeps(row) {
            return None;
        }
        let launch = gpu.launch[row as usize] as usize;
        let cause = match calls.ts.get(launch) {
            Some(&launched) if launched >= from => {
                match waits.ended_between(calls.track[launch], from, launched) {
                    true => Cause::Synchronisation,
                    false => Cause::HostBound,
                }
            }
            _ => Cause::Other,
        };
        Some((row, to.saturating_sub(from), cause))
    })
}

/// Sums the idle gaps of a device from `start` on by cause.
fn idle(analysis: &Analysis, gaps: &[Gap], start: i64) -> Idle {
    let mut idle = Idle::default();
    let ts = &analysis.timeline.gpu.spans.ts;
    for gap in gaps {
        if ts[gap.next as usize].saturating_sub(gap.dur_ns) < start {
            continue;
        }
        idle.gaps += 1;
        let cause = match gap.cause {
            Cause::HostBound => &mut idle.host_bound_ns,
            Cause::Synchronisation => &mut idle.synchronisation_ns,
            Cause::Other => &mut idle.other_ns,
        };
        *cause = cause.saturating_add(gap.dur_ns);
    }
    idle
}

/// Launch latencies. A graph replay counts once, by its first operation.
pub(super) fn launches(analysis: &Analysis) -> Launches {
    let timeline = analysis.timeline;
    let (gpu, calls) = (&timeline.gpu, &timeline.runtime.spans);
    let mut first: Vec<u32> = vec![NONE; calls.len()];
    for &row in &analysis.rows {
        if let Some(known) = first.get_mut(gpu.launch[row as usize] as usize)
            && (*known == NONE || gpu.spans.ts[row as usize] < gpu.spans.ts[*known as usize])
        {
            *known = row;
        }
    }
    let stream_end = ends_before(analysis);
    let (mut latency, mut idle_latency, mut call) = (vec![], vec![], vec![]);
    let (mut queued, mut waited) = (0, 0i64);
    for (launch, &row) in first.iter().enumerate().filter(|(_, row)| **row != NONE) {
        let start = gpu.spans.ts[row as usize];
        let wait = start.saturating_sub(calls.ts[launch]);
        if wait < 0 {
            continue; // The clocks of host and device disagree.
        }
        latency.push(wait);
        call.push(calls.dur[launch].max(0));
        waited = waited.saturating_add(start.saturating_sub(calls.end(launch)).max(0));
        if stream_end[row as usize] > calls.ts[launch] {
            queued += 1;
        } else {
            idle_latency.push(wait);
        }
    }
    let span = timeline.extent().map_or(0, |(start, end)| end.saturating_sub(start));
    Launches {
        latency_ns: Spread::of(&mut latency),
        idle_latency_ns: Spread::of(&mut idle_latency),
        call_ns: Spread::of(&mut call),
        queued,
        mean_queue: if span > 0 { waited as f64 / span as f64 } else { 0.0 },
    }
}

/// For every row of the device table, the latest end of earlier operations on its stream.
fn ends_before(analysis: &Analysis) -> Vec<i64> {
    let gpu = &analysis.timeline.gpu;
    let mut before = vec![i64::MIN; gpu.spans.len()];
    for rows in by_device(analysis.timeline).into_values() {
        let mut stream_end: FxHashMap<u32, i64> = FxHashMap::default();
        for row in rows {
            let end = stream_end.entry(gpu.stream[row as usize]).or_insert(i64::MIN);
            before[row as usize] = *end;
            *end = (*end).max(gpu.spans.end(row as usize));
        }
    }
    before
}
