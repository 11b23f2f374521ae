//! Where a side takes page faults, and where it waits.

use super::look::{frames, is_harness};
use crate::model::profile::{Frame, FrameKind, Profile, Sample, state};
use crate::profile::{file_name, frame_label};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A function in which an event happens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spot {
    /// The innermost function, with its library.
    pub function: String,
    /// The nearest caller in another library; empty if it is Python code.
    pub caller: String,
    /// The innermost Python function with its line; empty if there is none.
    pub python: String,
    /// Share of all events of the side.
    pub share: f64,
    /// Number of samples.
    pub samples: u64,
}

impl Spot {
    /// `clock_nanosleep (libc.so.6), called from time_sleep, in work (app.py:7)`.
    pub(super) fn at(&self) -> String {
        let caller = match self.caller.as_str() {
            "" => String::new(),
            caller => format!(", called from {caller}"),
        };
        match self.python.as_str() {
            "" => format!("{}{caller}", self.function),
            python => format!("{}{caller}, in {python}", self.function),
        }
    }
}

/// Where samples of the event `page-faults` were taken.
pub fn fault_spots(profile: &Profile) -> Vec<Spot> {
    spots(profile, |_| true)
}

/// Where threads waited, from samples by wall time.
pub fn wait_spots(profile: &Profile) -> Vec<Spot> {
    spots(profile, |sample| sample.state & state::WAITING != 0)
}

/// The functions with most of the samples, the first one with most.
fn spots(profile: &Profile, is_event: impl Fn(&Sample) -> bool) -> Vec<Spot> {
    /// Rarer functions are omitted.
    const LEAST: f64 = 0.1;
    let mut sums: FxHashMap<Spot3, (u64, u64)> = FxHashMap::default();
    let mut whole = 0;
    let mut stack: Vec<&Frame> = vec![];
    for sample in profile.samples.iter().filter(|sample| is_event(sample)) {
        frames(profile, sample.stack, &mut stack);
        if stack.is_empty() || is_harness(profile, &stack) || is_idle(profile, &stack) {
            continue;
        }
        whole += sample.weight;
        let sum = sums.entry(names(profile, &stack)).or_default();
        *sum = (sum.0 + sample.weight, sum.1 + 1);
    }
    let mut found: Vec<Spot> = sums
        .into_iter()
        .map(|((function, caller, python), (weight, samples))| {
            let share = weight as f64 / (whole as f64).max(1.0);
            Spot { function, caller, python, share, samples }
        })
        .filter(|spot| spot.share >= LEAST)
        .collect();
    found.sort_by(|x, y| y.share.total_cmp(&x.share).then_with(|| x.function.cmp(&y.function)));
    found
}

/// Innermost function, caller and Python function.
type Spot3 = (String, String, String);

fn names(profile: &Profile, stack: &[&Frame]) -> Spot3 {
    let own: Vec<&Frame> =
        stack.iter().copied().filter(|frame| frame.kind != FrameKind::Inlined).collect();
    let library = |frame: &Frame| file_name(profile.module_path(frame)).to_owned();
    let name = |frame: &Frame| match profile.texts.get(frame.function) {
        "" => frame_label(profile, frame),
        name => name.to_owned(),
    };
    let Some(leaf) = own.first() else { return Spot3::default() };
    let python = own.iter().find(|frame| frame.kind == FrameKind::Python);
    let python = python.map_or_else(String::new, |frame| frame_label(profile, frame));
    if leaf.kind == FrameKind::Python {
        return (python, String::new(), String::new());
    }
    let other = own.iter().find(|frame| library(frame) != library(leaf));
    let caller = other.filter(|frame| frame.kind == FrameKind::Native);
    let caller = caller.map_or_else(String::new, |frame| name(frame));
    (format!("{} ({})", name(leaf), library(leaf)), caller, python)
}

/// Whether a thread outside the statement waits for work: the statement does not wait there.
fn is_idle(profile: &Profile, stack: &[&Frame]) -> bool {
    let is_thread_start = |frame: &&Frame| {
        matches!(profile.texts.get(frame.function), "start_thread" | "clone" | "clone3")
    };
    let has_python = stack.iter().any(|frame| frame.kind == FrameKind::Python);
    !has_python && stack.iter().any(is_thread_start)
}
