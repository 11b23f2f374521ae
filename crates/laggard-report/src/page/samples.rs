//! The timeline of a profile: samples by thread.

use super::data::short_names;
use super::{Timeline, Track};
use crate::number::count;
use laggard_core::model::profile::Thread;
use laggard_core::profile::{ProcessLabels, View};
use rustc_hash::FxHashMap;

/// Maximum number of samples in a page.
const MOST: usize = 200_000;

/// Samples by thread; `None` if the profile has no timestamps. `nodes` maps stacks of the profile
/// to nodes of the page's flame graph.
pub fn of_samples(view: &View, nodes: &[u32]) -> Option<Timeline> {
    let end = view.samples.iter().map(|sample| sample.time_ns).max().filter(|&end| end > 0)?;
    let every = view.samples.len().div_ceil(MOST).max(1);
    let mut strings = Numbers::default();
    let mut classes = Numbers::default();
    let labels = ProcessLabels::new(view.profile);
    // Threads of processes that share a label also share a track.
    let mut numbers_by_label: FxHashMap<(String, String), u32> = FxHashMap::default();
    let shared: Vec<u32> = (0u32..)
        .zip(&view.profile.threads)
        .map(|(number, thread)| {
            let label = (labels.process(thread), labels.thread(thread));
            *numbers_by_label.entry(label).or_insert(number)
        })
        .collect();
    let mut tracks: FxHashMap<u32, Track> = FxHashMap::default();
    let mut samples: Vec<_> = view.samples.iter().step_by(every).collect();
    samples.sort_by_key(|sample| sample.time_ns);
    let mut functions: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
    for sample in samples {
        let (label, class) = *functions.entry(sample.stack).or_insert_with(|| {
            let (name, library) = innermost(view, sample.stack);
            (strings.of(name), classes.of(library))
        });
        let Some(&number) = shared.get(sample.thread as usize) else { continue };
        let track = tracks.entry(number).or_default();
        track.start.push(sample.time_ns);
        track.duration.push(if view.is_time() { sample.weight } else { 0 });
        track.label.push(label);
        track.class.push(class);
        track.node.push(nodes.get(sample.stack as usize).copied().unwrap_or(0));
        track.weight.push(sample.weight.saturating_mul(every as u64));
    }
    let threads = &view.profile.threads;
    // Threads of a process are adjacent, and processes are in the order of their first thread.
    let mut first: FxHashMap<(u32, Option<u32>), u32> = FxHashMap::default();
    // A program that replaces itself changes the name of its process. Unknown processes have number 0.
    let key = |thread: &Thread| (thread.pid, (thread.pid == 0).then_some(thread.process));
    for (number, thread) in (0..).zip(threads) {
        first.entry(key(thread)).or_insert(number);
    }
    let process = |number: u32| first.get(&key(threads.get(number as usize)?)).copied();
    let mut numbers: Vec<u32> = tracks.keys().copied().collect();
    numbers.sort_unstable_by_key(|&number| (process(number), number));
    let tracks = numbers.into_iter().filter_map(|number| {
        let thread = threads.get(number as usize)?;
        let of_process = threads.get(process(number)? as usize)?;
        Some(Track {
            name: labels.thread(thread),
            group: labels.process(of_process),
            ..tracks.remove(&number)?
        })
    });
    let tracks = tracks.collect();
    let classes = classes.texts.into_iter().map(|class| strings.of(class)).collect();
    Some(Timeline {
        end,
        unit: "ns",
        short: short_names(&strings.texts),
        strings: strings.texts,
        classes,
        phases: vec![],
        tracks,
        note: match every {
            1 => String::new(),
            _ => {
                format!(
                    "1 of every {every} samples shown, {} in total",
                    count(view.samples.len() as u64)
                )
            }
        },
    })
}

/// Name and library of the innermost frame.
fn innermost(view: &View, stack: u32) -> (String, String) {
    let Some(number) = view.profile.frames_of(stack).next() else {
        return ("[no stack]".to_owned(), String::new());
    };
    let name = view.functions.label(view.profile, view.functions.of(number));
    let frame = view.profile.frames.get(number as usize);
    let library = frame.map_or("", |frame| view.functions.library(frame));
    (name, library.to_owned())
}

/// A string table without duplicates.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) texts: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl Numbers {
    pub(super) fn of(&mut self, text: String) -> u32 {
        *self.known.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() as u32 - 1
        })
    }
}
