//! Tables of a profile.

use super::array::{FLAG, NUMBER, coded, flags, maybe_numbers, numbers, word, words};
use super::{Maker, Table};
use arrow_array::ArrayRef;
use laggard_core::model::profile::{Frame, FrameKind, Profile, Sample, state};
use laggard_core::profile::{By, Functions, Row, View, frame_label, totals};
use std::sync::{Arc, OnceLock};

/// Returns all tables.
pub(super) fn tables(profile: &Arc<Profile>) -> Vec<Table> {
    vec![samples(profile), functions(profile), threads(profile), modules(profile), run(profile)]
}

fn samples(profile: &Arc<Profile>) -> Table {
    /// A column with a property of each sample's thread.
    fn of_thread(
        get: fn(&Profile, &laggard_core::model::profile::Thread) -> Option<String>,
    ) -> impl Fn(&Profile) -> ArrayRef {
        move |p| {
            let texts: Vec<Option<String>> = p.threads.iter().map(|t| get(p, t)).collect();
            words(p.samples.iter().map(|s| texts.get(s.thread as usize).cloned().flatten()))
        }
    }
    /// A column that tests a bit of the sample state.
    fn is(bit: u32) -> impl Fn(&Profile) -> ArrayRef {
        move |p| flags(p.samples.iter().map(|sample| sample.state & bit != 0))
    }
    let each = |get: fn(&Sample) -> i64| move |p: &Profile| numbers(p.samples.iter().map(get));
    let number = |get: fn(&Profile, &Sample) -> Option<i64>| {
        move |p: &Profile| maybe_numbers(p.samples.iter().map(|sample| get(p, sample)))
    };
    /// A text column of the innermost frame of each sample.
    fn leaf(get: fn(&Profile, &Functions, u32, &Frame) -> String) -> impl Fn(&Profile) -> ArrayRef {
        move |p| {
            let functions = Functions::new(p);
            let texts: Vec<String> =
                (0..).zip(&p.frames).map(|(n, frame)| get(p, &functions, n, frame)).collect();
            coded(p.samples.iter().map(|sample| leaf_of(p, sample)), &texts)
        }
    }
    let about = "one sample of one thread, or `count` identical samples";
    Maker::new(profile, "samples", about, |p| p.samples.len())
        .column(
            "time_ns",
            NUMBER,
            "time since the start of the recording",
            each(|s| s.time_ns as i64),
        )
        .column("weight", NUMBER, "weight, in `unit`", each(|s| s.weight as i64))
        .column("count", NUMBER, "number of samples in this row", each(|s| s.count as i64))
        .column("event", word(), "sampled event: `task-clock`, `cycles`, …", |p| {
            let texts: Vec<String> = p.events.iter().map(|event| event.name.clone()).collect();
            coded(p.samples.iter().map(|sample| sample.event as usize), &texts)
        })
        .column("unit", word(), "unit of `weight`: `ns`, `count` or `bytes`", |p| {
            let texts: Vec<String> =
                p.events.iter().map(|event| event.unit.word().to_owned()).collect();
            coded(p.samples.iter().map(|sample| sample.event as usize), &texts)
        })
        .column(
            "pid",
            NUMBER,
            "process id",
            number(|p, s| Some(i64::from(p.threads.get(s.thread as usize)?.pid))),
        )
        .column(
            "tid",
            NUMBER,
            "thread id",
            number(|p, s| Some(i64::from(p.threads.get(s.thread as usize)?.tid))),
        )
        .column(
            "thread",
            word(),
            "thread name",
            of_thread(|p, thread| Some(p.texts.get(thread.name).to_owned())),
        )
        .column(
            "process",
            word(),
            "program name",
            of_thread(|p, thread| Some(p.texts.get(thread.process).to_owned())),
        )
        .column(
            "function",
            word(),
            "innermost function",
            leaf(|p, functions, n, _| functions.label(p, functions.of(n))),
        )
        .column(
            "library",
            word(),
            "library of that function",
            leaf(|_, functions, _, frame| functions.library(frame).to_owned()),
        )
        .column(
            "source_file",
            word(),
            "source file of the innermost frame, if known",
            leaf(|p, _, _, frame| p.texts.get(frame.file).to_owned()),
        )
        .column(
            "line",
            NUMBER,
            "source line of the innermost frame, if known",
            number(|p, sample| {
                let line = p.frames.get(leaf_of(p, sample))?.line;
                (line != 0).then_some(i64::from(line))
            }),
        )
        .column("python", word(), "innermost Python function and its line", |p| {
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
        .column("stack", word(), "all frames, outermost first, separated by `;`", |p| {
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
        .column("is_cut", FLAG, "the stack is truncated: outer callers are missing", is(state::CUT))
        .column("is_waiting", FLAG, "the thread was waiting", is(state::WAITING))
        .column("holds_gil", FLAG, "the thread held the GIL", is(state::GIL))
        .table()
}

/// Index of the innermost frame of a sample.
fn leaf_of(profile: &Profile, sample: &Sample) -> usize {
    profile.stacks.get(sample.stack as usize).map_or(usize::MAX, |node| node.frame as usize)
}

fn functions(profile: &Arc<Profile>) -> Table {
    let about = "one function, with its self and total weight";
    let of = Arc::new(ByFunction { profile: profile.clone(), made: OnceLock::new() });
    Maker::new(&of, "functions", about, |t| t.rows().len())
        .column("function", word(), "function", |t| {
            words(t.rows().iter().map(|row| Some(&row.name)))
        })
        .column("library", word(), "library or source file of the function", |t| {
            words(t.rows().iter().map(|row| Some(&row.of).filter(|of| !of.is_empty())))
        })
        .column("self_weight", NUMBER, "weight of samples in the function itself", |t| {
            numbers(t.rows().iter().map(|row| row.own.weight as i64))
        })
        .column("total_weight", NUMBER, "weight of samples in the function and its callees", |t| {
            numbers(t.rows().iter().map(|row| row.total.weight as i64))
        })
        .column("self_samples", NUMBER, "samples in the function itself", |t| {
            numbers(t.rows().iter().map(|row| row.own.samples as i64))
        })
        .column("total_samples", NUMBER, "samples in the function and its callees", |t| {
            numbers(t.rows().iter().map(|row| row.total.samples as i64))
        })
        .table()
}

/// Samples aggregated by function on first access.
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
    Maker::new(profile, "threads", "one thread", |p| p.threads.len())
        .column("pid", NUMBER, "process id", |p| {
            numbers(p.threads.iter().map(|thread| i64::from(thread.pid)))
        })
        .column("tid", NUMBER, "thread id", |p| {
            numbers(p.threads.iter().map(|thread| i64::from(thread.tid)))
        })
        .column("thread", word(), "thread name", |p| {
            words(p.threads.iter().map(|thread| Some(p.texts.get(thread.name))))
        })
        .column("process", word(), "program name", |p| {
            words(p.threads.iter().map(|thread| Some(p.texts.get(thread.process))))
        })
        .column("cpu_ns", NUMBER, "CPU time of the thread, if known", |p| {
            let known = |&cpu_ns: &u64| cpu_ns != 0;
            let cpu = |thread: &laggard_core::model::profile::Thread| {
                Some(thread.cpu_ns).filter(known).map(|ns| ns as i64)
            };
            maybe_numbers(p.threads.iter().map(cpu))
        })
        .table()
}

fn modules(profile: &Arc<Profile>) -> Table {
    Maker::new(profile, "modules", "one executable or library", |p| p.modules.len())
        .column("path", word(), "path of the file", |p| {
            words(p.modules.iter().map(|module| Some(p.texts.get(module.path))))
        })
        .column("build_id", word(), "build ID, or a hash of the content", |p| {
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
    Maker::new(profile, "run", "the whole recording (one row)", |_| 1)
        .column("command", word(), "command that was recorded", text(|p| p.about.command.join(" ")))
        .column(
            "exit_code",
            NUMBER,
            "exit status of the command",
            one(|p| p.about.exit_code.map(i64::from)),
        )
        .column(
            "duration_ns",
            NUMBER,
            "wall time of the recording",
            one(|p| Some(p.about.duration_ns as i64)),
        )
        .column("user_ns", NUMBER, "CPU time in user mode", one(|p| Some(p.about.user_ns as i64)))
        .column(
            "system_ns",
            NUMBER,
            "CPU time in kernel mode",
            one(|p| Some(p.about.system_ns as i64)),
        )
        .column("method", word(), "recording method", text(|p| p.about.method.clone()))
        .column("tool", word(), "tool that wrote the file", text(|p| p.about.tool.clone()))
        .column("lost", NUMBER, "lost samples", one(|p| Some(p.quality.lost as i64)))
        .table()
}
