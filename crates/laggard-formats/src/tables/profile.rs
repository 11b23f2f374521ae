//! The tables of a profile.

use super::array::{FLAG, NUMBER, coded, flags, maybe_numbers, numbers, word, words};
use super::{Maker, Table};
use arrow_array::ArrayRef;
use laggard_core::model::profile::{Frame, FrameKind, Profile, Sample, state};
use laggard_core::profile::{By, Functions, Row, View, frame_label, totals};
use std::sync::{Arc, OnceLock};

/// All tables.
pub(super) fn tables(profile: &Arc<Profile>) -> Vec<Table> {
    vec![samples(profile), functions(profile), threads(profile), modules(profile), run(profile)]
}

fn samples(profile: &Arc<Profile>) -> Table {
    /// A column of the thread of each sample.
    fn of_thread(
        get: fn(&Profile, &laggard_core::model::profile::Thread) -> Option<String>,
    ) -> impl Fn(&Profile) -> ArrayRef {
        move |p| {
            let texts: Vec<Option<String>> = p.threads.iter().map(|t| get(p, t)).collect();
            words(p.samples.iter().map(|s| texts.get(s.thread as usize).cloned().flatten()))
        }
    }
    /// Whether a bit of the state is set.
    fn is(bit: u32) -> impl Fn(&Profile) -> ArrayRef {
        move |p| flags(p.samples.iter().map(|sample| sample.state & bit != 0))
    }
    let each = |get: fn(&Sample) -> i64| move |p: &Profile| numbers(p.samples.iter().map(get));
    let number = |get: fn(&Profile, &Sample) -> Option<i64>| {
        move |p: &Profile| maybe_numbers(p.samples.iter().map(|sample| get(p, sample)))
    };
    /// A text of the innermost frame of each sample.
    fn leaf(get: fn(&Profile, &Functions, u32, &Frame) -> String) -> impl Fn(&Profile) -> ArrayRef {
        move |p| {
            let functions = Functions::new(p);
            let texts: Vec<String> =
                (0..).zip(&p.frames).map(|(n, frame)| get(p, &functions, n, frame)).collect();
            coded(p.samples.iter().map(|sample| leaf_of(p, sample)), &texts)
        }
    }
    let about = "one look at one thread, or as many looks as `count` says that saw the same";
    Maker::new(profile, "samples", about, |p| p.samples.len())
        .column("time_ns", NUMBER, "since the start of the run", each(|s| s.time_ns as i64))
        .column("weight", NUMBER, "what it stands for, in `unit`", each(|s| s.weight as i64))
        .column("count", NUMBER, "looks that it stands for", each(|s| s.count as i64))
        .column("event", word(), "what is counted: `task-clock`, `cycles`, …", |p| {
            let texts: Vec<String> = p.events.iter().map(|event| event.name.clone()).collect();
            coded(p.samples.iter().map(|sample| sample.event as usize), &texts)
        })
        .column("unit", word(), "`ns`, `count` or `bytes`", |p| {
            let texts: Vec<String> =
                p.events.iter().map(|event| event.unit.word().to_owned()).collect();
            coded(p.samples.iter().map(|sample| sample.event as usize), &texts)
        })
        .column(
            "pid",
            NUMBER,
            "process",
            number(|p, s| Some(i64::from(p.threads.get(s.thread as usize)?.pid))),
        )
        .column(
            "tid",
            NUMBER,
            "thread",
            number(|p, s| Some(i64::from(p.threads.get(s.thread as usize)?.tid))),
        )
        .column(
            "thread",
            word(),
            "the thread's name",
            of_thread(|p, thread| Some(p.texts.get(thread.name).to_owned())),
        )
        .column(
            "process",
            word(),
            "the program's name",
            of_thread(|p, thread| Some(p.texts.get(thread.process).to_owned())),
        )
        .column(
            "function",
            word(),
            "the function that ran",
            leaf(|p, functions, n, _| functions.label(p, functions.of(n))),
        )
        .column(
            "library",
            word(),
            "the library it is in",
            leaf(|_, functions, _, frame| functions.library(frame).to_owned()),
        )
        .column(
            "source_file",
            word(),
            "its source file, where known",
            leaf(|p, _, _, frame| p.texts.get(frame.file).to_owned()),
        )
        .column(
            "line",
            NUMBER,
            "its source line, where known",
            number(|p, sample| {
                let line = p.frames.get(leaf_of(p, sample))?.line;
                (line != 0).then_some(i64::from(line))
            }),
        )
        .column("python", word(), "the innermost Python function and its line", |p| {
            let python = |frame: &Frame| match frame.kind {
                FrameKind::Python => frame_label(p, frame),
                _ => String::new(),
            };
            let texts: Vec<String> = p.frames.iter().map(python).collect();
            let innermost = |sample: &Sample| {
                let is_python = |&frame: &u32| {
                    p.frames.get(frame as usize).is_some_and(|f| f.kind == FrameKind::Python)
                };
                p.frames_of(sample.stack).find(is_python).map_or(usize::MAX, |frame| frame as usize)
            };
            coded(p.samples.iter().map(innermost), &texts)
        })
        .column("stack", word(), "all frames, outermost first, parted by `;`", |p| {
            let mut texts = vec![String::new(); p.stacks.len()];
            let labels: Vec<String> =
                p.frames.iter().map(|frame| frame_label(p, frame).replace(';', ":")).collect();
            for sample in &p.samples {
                let Some(text) = texts.get_mut(sample.stack as usize) else { continue };
                if text.is_empty() {
                    let frames: Vec<u32> = p.frames_of(sample.stack).collect();
                    let label = |&frame: &u32| labels.get(frame as usize).map_or("", |l| &**l);
                    *text = frames.iter().rev().map(label).collect::<Vec<_>>().join(";");
                }
            }
            coded(p.samples.iter().map(|sample| sample.stack as usize), &texts)
        })
        .column("is_cut", FLAG, "the stack ends before the first frame", is(state::CUT))
        .column("is_waiting", FLAG, "the thread was waiting", is(state::WAITING))
        .column("holds_gil", FLAG, "the thread held the GIL", is(state::GIL))
        .table()
}

/// The innermost frame of a sample.
fn leaf_of(profile: &Profile, sample: &Sample) -> usize {
    profile.stacks.get(sample.stack as usize).map_or(usize::MAX, |node| node.frame as usize)
}

fn functions(profile: &Arc<Profile>) -> Table {
    let about = "one function: what it took itself, and with what it called";
    let of = Arc::new(ByFunction { profile: profile.clone(), made: OnceLock::new() });
    Maker::new(&of, "functions", about, |t| t.rows().len())
        .column("function", word(), "the function", |t| {
            words(t.rows().iter().map(|row| Some(&row.name)))
        })
        .column("library", word(), "the library or file it is in", |t| {
            words(t.rows().iter().map(|row| Some(&row.of).filter(|of| !of.is_empty())))
        })
        .column("self_weight", NUMBER, "weight of samples in it", |t| {
            numbers(t.rows().iter().map(|row| row.own.weight as i64))
        })
        .column("total_weight", NUMBER, "weight of samples in it and what it called", |t| {
            numbers(t.rows().iter().map(|row| row.total.weight as i64))
        })
        .column("self_samples", NUMBER, "samples in it", |t| {
            numbers(t.rows().iter().map(|row| row.own.samples as i64))
        })
        .column("total_samples", NUMBER, "samples in it and what it called", |t| {
            numbers(t.rows().iter().map(|row| row.total.samples as i64))
        })
        .table()
}

/// Samples by function, added up when that is asked for.
struct ByFunction {
    profile: Arc<Profile>,
    made: OnceLock<Vec<Row>>,
}

impl ByFunction {
    fn rows(&self) -> &[Row] {
        self.made.get_or_init(|| totals(&View::whole(&self.profile), By::Function).rows)
    }
}

fn threads(profile: &Arc<Profile>) -> Table {
    Maker::new(profile, "threads", "one thread that was seen", |p| p.threads.len())
        .column("pid", NUMBER, "process", |p| {
            numbers(p.threads.iter().map(|thread| i64::from(thread.pid)))
        })
        .column("tid", NUMBER, "thread", |p| {
            numbers(p.threads.iter().map(|thread| i64::from(thread.tid)))
        })
        .column("thread", word(), "its name", |p| {
            words(p.threads.iter().map(|thread| Some(p.texts.get(thread.name))))
        })
        .column("process", word(), "the program's name", |p| {
            words(p.threads.iter().map(|thread| Some(p.texts.get(thread.process))))
        })
        .column("cpu_ns", NUMBER, "CPU time it used, where known", |p| {
            let known = |&cpu_ns: &u64| cpu_ns != 0;
            let cpu = |thread: &laggard_core::model::profile::Thread| {
                Some(thread.cpu_ns).filter(known).map(|ns| ns as i64)
            };
            maybe_numbers(p.threads.iter().map(cpu))
        })
        .table()
}

fn modules(profile: &Arc<Profile>) -> Table {
    Maker::new(profile, "modules", "one program or library", |p| p.modules.len())
        .column("path", word(), "its path", |p| {
            words(p.modules.iter().map(|module| Some(p.texts.get(module.path))))
        })
        .column("build_id", word(), "its build-id, or a hash of its content", |p| {
            words(p.modules.iter().map(|module| Some(p.texts.get(module.id))))
        })
        .table()
}

fn run(profile: &Arc<Profile>) -> Table {
    let text = |get: fn(&Profile) -> String| {
        move |p: &Profile| words(std::iter::once(Some(get(p)).filter(|text| !text.is_empty())))
    };
    let one = |get: fn(&Profile) -> Option<i64>| {
        move |p: &Profile| maybe_numbers(std::iter::once(get(p)))
    };
    Maker::new(profile, "run", "the whole recording, in one row", |_| 1)
        .column("command", word(), "what was run", text(|p| p.about.command.join(" ")))
        .column("exit_code", NUMBER, "its exit code", one(|p| p.about.exit_code.map(i64::from)))
        .column(
            "duration_ns",
            NUMBER,
            "wall time of the run",
            one(|p| Some(p.about.duration_ns as i64)),
        )
        .column(
            "user_ns",
            NUMBER,
            "CPU time outside the kernel",
            one(|p| Some(p.about.user_ns as i64)),
        )
        .column(
            "system_ns",
            NUMBER,
            "CPU time in the kernel",
            one(|p| Some(p.about.system_ns as i64)),
        )
        .column("method", word(), "how it was recorded", text(|p| p.about.method.clone()))
        .column("tool", word(), "what wrote it", text(|p| p.about.tool.clone()))
        .column("lost", NUMBER, "samples lost", one(|p| Some(p.quality.lost as i64)))
        .table()
}
