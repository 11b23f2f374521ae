//! Writes the Chrome trace format, which Perfetto also reads: samples of a thread as nested slices.

use laggard_core::model::profile::{Profile, Sample, Unit};
use laggard_core::profile::{View, file_name, frame_label};
use serde_json::json;
use std::io::{self, Write};

/// Writes a trace. Consecutive samples of a thread share the slices of their common frames. A slice
/// ends after the time that its last sample represents, or at the next sample if weights are not
/// times. Gaps shorter than half of that time are treated as clock jitter. The samples of a profile
/// without times are placed one after the other.
pub fn chrome(view: &View, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let profile = view.profile;
    let other = json!({"name": name, "event": view.event_name()});
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":[")?;
    let mut events = Events { out, is_first: true };
    let mut by_thread: Vec<Vec<Sample>> = vec![vec![]; profile.threads.len()];
    for sample in &view.samples {
        if let Some(samples) = by_thread.get_mut(sample.thread as usize) {
            samples.push(*sample);
        }
    }
    let labels: Vec<String> =
        profile.frames.iter().map(|frame| frame_label(profile, frame)).collect();
    for (thread, samples) in profile.threads.iter().zip(&mut by_thread) {
        if samples.is_empty() {
            continue;
        }
        let (pid, tid) = (thread.pid, thread.tid);
        for (what, text) in [("process_name", thread.process), ("thread_name", thread.name)] {
            let args = json!({"name": profile.texts.get(text)});
            events
                .write(&json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}))?;
        }
        lay_out(samples, view.unit());
        let mut slices = Slices { profile, labels: &labels, pid, tid, open: vec![] };
        slices.write(samples, &mut events)?;
    }
    events.out.write_all(b"]}")
}

/// Sets `weight` of each sample to its duration in nanoseconds.
fn lay_out(samples: &mut [Sample], unit: Unit) {
    samples.sort_by_key(|sample| sample.time_ns);
    let has_times = samples.first().map(|s| s.time_ns) != samples.last().map(|s| s.time_ns);
    if !has_times && samples.len() > 1 {
        /// Duration shown per unit if weights are not times.
        const NANOS_EACH: u64 = 1000;
        let mut at = 0u64;
        for sample in samples {
            let nanos = match unit {
                Unit::Nanos => sample.weight,
                _ => sample.count.saturating_mul(NANOS_EACH),
            };
            (sample.time_ns, sample.weight) = (at, nanos);
            at = at.saturating_add(nanos);
        }
        return;
    }
    /// Duration of the last sample, which has no successor.
    const LAST_NANOS: u64 = 1_000_000;
    for at in 0..samples.len() {
        let next = samples.get(at + 1).map(|next| next.time_ns - samples[at].time_ns);
        let sample = &mut samples[at];
        sample.weight = match (unit, next) {
            (Unit::Nanos, Some(next)) if next <= sample.weight.saturating_mul(3) / 2 => next,
            (Unit::Nanos, _) => sample.weight,
            (_, Some(next)) => next,
            (_, None) => LAST_NANOS,
        };
    }
}

/// The slices of one thread.
struct Slices<'a> {
    profile: &'a Profile,
    labels: &'a [String],
    pid: u32,
    tid: u32,
    /// Frames of the open slices, outermost first.
    open: Vec<u32>,
}

impl Slices<'_> {
    fn write(&mut self, samples: &[Sample], events: &mut Events) -> io::Result<()> {
        let mut end = 0;
        for sample in samples {
            if sample.time_ns > end {
                self.close(0, end, events)?;
            }
            let mut stack: Vec<u32> = self.profile.frames_of(sample.stack).collect();
            stack.reverse();
            let shared = self.open.iter().zip(&stack).take_while(|(a, b)| a == b).count();
            self.close(shared, sample.time_ns, events)?;
            for frame in stack.into_iter().skip(shared) {
                let mut event = self.event("B", sample.time_ns);
                let label = self.labels.get(frame as usize).map_or("", String::as_str);
                event["name"] = label.into();
                if let Some(frame) = self.profile.frames.get(frame as usize) {
                    event["cat"] = file_name(self.profile.module_path(frame)).into();
                }
                events.write(&event)?;
                self.open.push(frame);
            }
            end = sample.time_ns.saturating_add(sample.weight);
        }
        self.close(0, end, events)
    }

    /// Closes slices until `left` remain.
    fn close(&mut self, left: usize, at_ns: u64, events: &mut Events) -> io::Result<()> {
        while self.open.len() > left {
            self.open.pop();
            events.write(&self.event("E", at_ns))?;
        }
        Ok(())
    }

    fn event(&self, phase: &str, at_ns: u64) -> serde_json::Value {
        json!({"ph": phase, "ts": at_ns as f64 / 1e3, "pid": self.pid, "tid": self.tid})
    }
}

/// Events of the trace, one per line.
struct Events<'a> {
    out: &'a mut dyn Write,
    is_first: bool,
}

impl Events<'_> {
    fn write(&mut self, event: &serde_json::Value) -> io::Result<()> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }
}
