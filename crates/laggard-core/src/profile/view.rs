//! A profile narrowed to what is asked for.

use super::{Cost, Functions};
use crate::model::NONE;
use crate::model::profile::{Event, FrameKind, Profile, Sample, Unit};
use rustc_hash::FxHashMap;

/// Which samples to keep; those that fit all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Part of the name of a library that the stack enters, in any case.
    pub library: Option<String>,
    /// Part of a thread's name, or its number.
    pub thread: Option<String>,
    /// Part of the name of a thread's program, or the number of its process.
    pub process: Option<String>,
    /// Number of a process.
    pub pid: Option<u32>,
    /// Name of the event; the one with most samples when not given.
    pub event: Option<String>,
    /// From this time of the run on.
    pub from_ns: Option<u64>,
    /// Before this time of the run.
    pub to_ns: Option<u64>,
    /// Keep what happens once: imports and what libraries do when they are loaded.
    pub start_up: bool,
}

/// Something was asked for that the profile does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} like {asked:?} in the samples")]
pub struct Missing {
    /// What kind of thing: `library`, `thread`, `event`, `process`, `pid`, `function`.
    pub what: &'static str,
    /// What was asked for.
    pub asked: String,
    /// What there is, most important first.
    pub there: Vec<String>,
}

/// The samples of one event that a filter keeps.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// All there is.
    pub profile: &'a Profile,
    /// Its functions.
    pub functions: Functions,
    /// Number of the event.
    pub event: u32,
    /// Samples that were kept.
    pub samples: Vec<Sample>,
    /// The same by stack.
    pub stacks: Vec<(u32, Cost)>,
    /// All that was kept.
    pub whole: Cost,
    /// What is left out because it happens once.
    pub start_up: Cost,
    /// Per node: whether it or a caller is in the library asked for.
    in_library: Vec<bool>,
}

/// Functions below which a program only gets ready: OpenBLAS choosing its kernels, the loader
/// running a library's constructors, Python importing a module.
const START_UP: [&str; 4] = ["gotoblas_init", "gotoblas_quit", "_dl_init", "_find_and_load"];

impl<'a> View<'a> {
    /// All samples of the event with the most.
    pub fn whole(profile: &'a Profile) -> View<'a> {
        View::build(profile, &Filter { start_up: true, ..Filter::default() })
    }

    /// The samples that a filter keeps.
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

    /// What was asked for and is nowhere in the profile.
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

    /// Whether a node or one of its callers is in the library asked for.
    pub(super) fn is_in_library(&self, node: u32) -> bool {
        self.in_library.get(node as usize).copied().unwrap_or(false)
    }

    /// Name of the event; empty when there is none.
    pub fn event_name(&self) -> &str {
        self.profile.events.get(self.event as usize).map_or("", |event| &event.name)
    }

    /// What weights are.
    pub fn unit(&self) -> Unit {
        self.profile.events.get(self.event as usize).map_or(Unit::Count, |event| event.unit)
    }

    /// Whether weights are nanoseconds.
    pub fn is_time(&self) -> bool {
        self.profile.events.get(self.event as usize).is_some_and(Event::is_time)
    }
}

/// The event to show: the one asked for, else that with the most samples; of equals one of time,
/// or the first. Where all events are sizes, it is the first.
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
        // Sizes are of moments, each an event, and rows of a tree are no looks that could be counted:
        // readers put the moment that matters, the peak, first.
        None if profile.events.iter().all(|event| event.unit == Unit::Bytes) => 0,
        // The last of the greatest is taken.
        None => all()
            .rev()
            .max_by_key(|&i| (counts[i as usize], profile.events[i as usize].is_time()))
            .unwrap_or(0),
    }
}

/// Per node, whether it or one of its callers has such a frame.
fn below(profile: &Profile, is_such: impl Fn(usize) -> bool) -> Vec<bool> {
    let frames: Vec<bool> = (0..profile.frames.len()).map(is_such).collect();
    let mut nodes: Vec<bool> = Vec::with_capacity(profile.stacks.len());
    for node in &profile.stacks {
        let above = nodes.get(node.parent as usize).copied().unwrap_or(false);
        nodes.push(above || frames.get(node.frame as usize).copied().unwrap_or(false));
    }
    nodes
}

/// Whether a name has a part, in any case.
pub(super) fn contains(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}
