//! Filtered profiles.

use super::{Cost, Functions};
use crate::model::NONE;
use crate::model::profile::{Event, FrameKind, Profile, Sample, Unit};
use rustc_hash::FxHashMap;

/// Filter for samples; all conditions must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Substring of a library name in the stack, ignoring case.
    pub library: Option<String>,
    /// Substring of a thread name, or a thread id.
    pub thread: Option<String>,
    /// Substring of a program name, or a process id.
    pub process: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Name of the event; by default the one with the most samples.
    pub event: Option<String>,
    /// Start time within the recording, inclusive.
    pub from_ns: Option<u64>,
    /// End time within the recording, exclusive.
    pub to_ns: Option<u64>,
    /// Whether to keep start-up: imports and library initialization.
    pub start_up: bool,
}

/// Error: a filter matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what} matches {asked:?} in the samples")]
pub struct Missing {
    /// Kind of filter: `library`, `thread`, `event`, `process`, `pid`, `function`.
    pub what: &'static str,
    /// Value of the filter.
    pub asked: String,
    /// Available values, most important first.
    pub there: Vec<String>,
}

/// Samples of one event that match a filter.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The unfiltered profile.
    pub profile: &'a Profile,
    /// Its functions.
    pub functions: Functions,
    /// Index of the event.
    pub event: u32,
    /// Matching samples.
    pub samples: Vec<Sample>,
    /// Their costs by stack.
    pub stacks: Vec<(u32, Cost)>,
    /// Total cost of the matching samples.
    pub whole: Cost,
    /// Cost of excluded start-up samples.
    pub start_up: Cost,
    /// For each node, whether it or a caller is in the filtered library.
    in_library: Vec<bool>,
}

/// Functions that mark start-up: OpenBLAS kernel selection, library constructors and Python imports.
const START_UP: [&str; 4] = ["gotoblas_init", "gotoblas_quit", "_dl_init", "_find_and_load"];

impl<'a> View<'a> {
    /// View of all samples of the default event.
    pub fn whole(profile: &'a Profile) -> View<'a> {
        View::build(profile, &Filter { start_up: true, ..Filter::default() })
    }

    /// View of the samples that match a filter.
    pub fn new(profile: &'a Profile, filter: &Filter) -> Result<View<'a>, Missing> {
        let view = View::build(profile, filter);
        view.missing(filter).map_or(Ok(view), Err)
    }

    fn build(profile: &'a Profile, filter: &Filter) -> View<'a> {
        let functions = Functions::new(profile);
        let event = event(profile, filter.event.as_deref());
        let fits = |asked: &Option<String>, name: u32, number: u32| match asked {
            None => true,
            Some(asked) => contains(profile.texts.get(name), asked) || *asked == number.to_string(),
        };
        let threads: Vec<bool> = profile
            .threads
            .iter()
            .map(|t| {
                fits(&filter.thread, t.name, t.tid)
                    && fits(&filter.process, t.process, t.pid)
                    && filter.pid.is_none_or(|pid| pid == t.pid)
            })
            .collect();
        let in_library = match &filter.library {
            None => vec![],
            Some(asked) => below(profile, |frame| {
                let frame = &profile.frames[frame];
                !matches!(frame.kind, FrameKind::Python | FrameKind::Mark)
                    && contains(functions.library(frame), asked)
            }),
        };
        let hides_start_up = filter.library.is_some() && !filter.start_up;
        let start_up = if hides_start_up {
            let names: Vec<u32> = START_UP.iter().filter_map(|f| profile.texts.find(f)).collect();
            below(profile, |frame| names.contains(&profile.frames[frame].function))
        } else {
            vec![]
        };
        let time = filter.from_ns.unwrap_or(0)..filter.to_ns.unwrap_or(u64::MAX);
        let is_at =
            |nodes: &[bool], stack: u32| nodes.get(stack as usize).copied().unwrap_or(false);
        let mut view = View {
            profile,
            functions,
            event,
            samples: vec![],
            stacks: vec![],
            whole: Cost::default(),
            start_up: Cost::default(),
            in_library,
        };
        let mut rows: FxHashMap<u32, usize> = FxHashMap::default();
        for sample in &profile.samples {
            let kept = sample.event == event
                && time.contains(&sample.time_ns)
                && threads.get(sample.thread as usize).copied().unwrap_or(false)
                && (filter.library.is_none() || is_at(&view.in_library, sample.stack));
            if !kept {
                continue;
            }
            let cost = Cost::of(sample);
            if is_at(&start_up, sample.stack) {
                view.start_up.add(cost);
                continue;
            }
            view.samples.push(*sample);
            view.whole.add(cost);
            let row = *rows.entry(sample.stack).or_insert_with(|| {
                view.stacks.push((sample.stack, Cost::default()));
                view.stacks.len() - 1
            });
            view.stacks[row].1.add(cost);
        }
        view
    }

    /// The first condition of the filter that matches nothing in the profile.
    fn missing(&self, filter: &Filter) -> Option<Missing> {
        let profile = self.profile;
        let texts = |numbers: &mut dyn Iterator<Item = u32>| {
            let mut names: Vec<String> =
                numbers.map(|number| profile.texts.get(number).to_owned()).collect();
            names.sort();
            names.dedup();
            names
        };
        let has = |asked: &str, name: u32, number: u32| {
            contains(profile.texts.get(name), asked) || asked == number.to_string()
        };
        let is_there = |what: &str, asked: &str| match what {
            "event" => profile.events.iter().any(|event| contains(&event.name, asked)),
            "thread" => profile.threads.iter().any(|t| has(asked, t.name, t.tid)),
            "process" => profile.threads.iter().any(|t| has(asked, t.process, t.pid)),
            "pid" => profile.threads.iter().any(|t| t.pid.to_string() == asked),
            _ => self.in_library.contains(&true),
        };
        let pid = filter.pid.map(|pid| pid.to_string());
        let asked = [
            ("event", &filter.event),
            ("thread", &filter.thread),
            ("process", &filter.process),
            ("pid", &pid),
            ("library", &filter.library),
        ];
        let (what, asked) = asked.into_iter().find_map(|(what, asked)| {
            let asked = asked.as_deref()?;
            (!is_there(what, asked)).then(|| (what, asked.to_owned()))
        })?;
        let there = match what {
            "event" => profile.events.iter().map(|event| event.name.clone()).collect(),
            "thread" => texts(&mut profile.threads.iter().map(|thread| thread.name)),
            "pid" => {
                let mut pids: Vec<u32> = profile.threads.iter().map(|thread| thread.pid).collect();
                pids.sort_unstable();
                pids.dedup();
                pids.iter().map(u32::to_string).collect()
            }
            "process" => texts(&mut profile.threads.iter().map(|thread| thread.process)),
            _ => self.functions.libraries().to_vec(),
        };
        Some(Missing { what, asked, there })
    }

    /// Whether a node or one of its callers is in the filtered library.
    pub(super) fn is_in_library(&self, node: u32) -> bool {
        self.in_library.get(node as usize).copied().unwrap_or(false)
    }

    /// Name of the event; empty if there is none.
    pub fn event_name(&self) -> &str {
        self.profile.events.get(self.event as usize).map_or("", |event| &event.name)
    }

    /// Unit of weights.
    pub fn unit(&self) -> Unit {
        self.profile.events.get(self.event as usize).map_or(Unit::Count, |event| event.unit)
    }

    /// Whether weights are nanoseconds.
    pub fn is_time(&self) -> bool {
        self.profile.events.get(self.event as usize).is_some_and(Event::is_time)
    }
}

/// The event to show: the requested one, otherwise the one with the most samples. Ties prefer time
/// events, then the first event. If all events are sizes, the first event.
fn event(profile: &Profile, asked: Option<&str>) -> u32 {
    let mut counts = vec![0u64; profile.events.len()];
    for sample in &profile.samples {
        if let Some(count) = counts.get_mut(sample.event as usize) {
            *count = count.saturating_add(sample.count);
        }
    }
    let name = |i: &u32| profile.events[*i as usize].name.as_str();
    let all = || 0..profile.events.len() as u32;
    match asked {
        Some(asked) => all()
            .find(|i| name(i) == asked)
            .or_else(|| all().find(|i| contains(name(i), asked)))
            .unwrap_or(NONE),
        // Each event is a heap snapshot, and its rows are not samples. Readers put the peak first.
        None if profile.events.iter().all(|event| event.unit == Unit::Bytes) => 0,
        // `max_by_key` returns the last maximum.
        None => all()
            .rev()
            .max_by_key(|&i| (counts[i as usize], profile.events[i as usize].is_time()))
            .unwrap_or(0),
    }
}

/// For each node, whether it or one of its callers has a matching frame.
fn below(profile: &Profile, is_such: impl Fn(usize) -> bool) -> Vec<bool> {
    let frames: Vec<bool> = (0..profile.frames.len()).map(is_such).collect();
    let mut nodes: Vec<bool> = Vec::with_capacity(profile.stacks.len());
    for node in &profile.stacks {
        let above = nodes.get(node.parent as usize).copied().unwrap_or(false);
        nodes.push(above || frames.get(node.frame as usize).copied().unwrap_or(false));
    }
    nodes
}

/// Whether a name contains a substring, ignoring case.
pub(super) fn contains(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}
