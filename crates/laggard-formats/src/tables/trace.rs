//! Tables of a trace.

use super::array::{
    FLAG, NUMBER, REAL, coded, flags, ids, maybe_numbers, name, names, names_of, numbers, reals,
    strings, times, word, words,
};
use super::{Maker, Table};
use arrow_array::{ArrayRef, LargeStringArray};
use laggard_core::classify::{ClassId, Rules};
use laggard_core::model::timeline::{Activity, Collective, Spans, Timeline, Track};
use laggard_core::model::{Column, NONE};
use laggard_core::trace::phase::Phases;
use laggard_core::trace::summary::{Device, Step, Summary, gpus};
use laggard_core::trace::work::dtype_bytes;
use laggard_core::trace::{Analysis, Cause, Gap, busy_and_idle, stepped, summarise};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// A trace with its kernel classification rules and phases.
#[derive(Default)]
pub struct Trace {
    /// The linked timeline.
    pub timeline: Timeline,
    /// Kernel classification rules. `None` selects the built-in rules.
    pub rules: Option<Rules>,
    /// Phases to detect.
    pub phases: Phases,
    /// Taken from the index if there is one.
    summary: OnceLock<Summary>,
    strings: OnceLock<Arc<LargeStringArray>>,
    extent: OnceLock<Option<(i64, i64)>>,
    classes: OnceLock<Vec<ClassId>>,
    collectives: OnceLock<Vec<Part>>,
    /// Steps, and the step of the launch of each row in the device table.
    steps: OnceLock<(Vec<Step>, Vec<u32>)>,
    /// Devices, and their idle gaps.
    devices: OnceLock<(Vec<Device>, Vec<Gap>)>,
}

/// A collective operation on this rank: a row of the device table.
struct Part {
    row: u32,
    /// Number of earlier collectives with the same operation and group.
    ordinal: i64,
    details: Option<Collective>,
}

impl Trace {
    /// Creates a trace from a linked timeline and, if known, its summary.
    pub fn new(
        timeline: Timeline,
        rules: Option<Rules>,
        phases: Phases,
        known: Option<Summary>,
    ) -> Trace {
        let trace = Trace { timeline, rules, phases, ..Trace::default() };
        if let Some(summary) = known {
            let _ = trace.summary.set(summary);
        }
        trace
    }

    /// The timeline with the rules applied.
    pub fn analysis(&self) -> Analysis<'_> {
        Analysis::new(&self.timeline, self.rules(), &self.phases, None)
    }

    /// The kernel classification rules.
    pub fn rules(&self) -> &Rules {
        self.rules.as_ref().unwrap_or(Rules::builtin())
    }

    /// The summary of the trace.
    pub fn summary(&self) -> &Summary {
        self.summary.get_or_init(|| summarise(&self.analysis()))
    }

    fn strings(&self) -> &Arc<LargeStringArray> {
        self.strings.get_or_init(|| strings(&self.timeline.strings))
    }

    /// First and last timestamp. The first call scans all rows.
    fn extent(&self) -> Option<(i64, i64)> {
        *self.extent.get_or_init(|| self.timeline.extent())
    }

    fn names(&self, codes: &Column<u32>) -> ArrayRef {
        names(codes, self.strings())
    }

    fn ids(&self, codes: &Column<u32>) -> ArrayRef {
        ids(codes.iter().copied(), &self.timeline.ids)
    }

    fn number(&self, code: u32) -> Option<i64> {
        self.timeline.ids.number(code)
    }

    /// Converts timestamps to nanoseconds since the Unix epoch.
    fn starts(&self, ts: impl Iterator<Item = i64>) -> ArrayRef {
        let base = self.timeline.about.base_time_ns;
        numbers(ts.map(|ts| base.saturating_add(ts)))
    }

    /// Class of each row in the device table.
    fn classes(&self) -> &[ClassId] {
        self.classes.get_or_init(|| {
            let analysis = self.analysis();
            analysis.rows.iter().map(|&row| analysis.class(row)).collect()
        })
    }

    fn collectives(&self) -> &[Part] {
        self.collectives.get_or_init(|| parts(self))
    }

    fn gaps(&self) -> &[Gap] {
        &self.busy_and_idle().1
    }

    fn busy_and_idle(&self) -> &(Vec<Device>, Vec<Gap>) {
        self.devices.get_or_init(|| busy_and_idle(&self.analysis()))
    }

    fn stepped(&self) -> &(Vec<Step>, Vec<u32>) {
        self.steps.get_or_init(|| match stepped(&self.analysis()) {
            Some((steps, of_rows)) => (steps.rows, of_rows),
            None => (vec![], vec![NONE; self.timeline.gpu.spans.len()]),
        })
    }

    fn steps(&self) -> &[Step] {
        &self.stepped().0
    }

    fn devices(&self) -> &[Device] {
        match self.summary.get() {
            Some(summary) => &summary.devices,
            None => &self.busy_and_idle().0,
        }
    }

    /// Device of a row in the device table.
    fn device(&self, row: u32) -> Option<i64> {
        let gpu = &self.timeline.gpu;
        match gpu.device[row as usize] {
            // Accelerators without a device number use one process per device.
            NONE => self.number(self.timeline.tracks[gpu.spans.track[row as usize] as usize].pid),
            code => self.number(code),
        }
    }
}

/// Collectives ordered by time and numbered within their operation and group. Equal numbers on
/// different ranks mean the same collective.
fn parts(trace: &Trace) -> Vec<Part> {
    let timeline = &trace.timeline;
    let spans = &timeline.gpu.spans;
    let details = timeline.collective_details();
    let rules = trace.rules();
    let classes = trace.classes();
    let is_part = |row: &u32| rules.is_communication(classes[*row as usize]);
    let mut rows: Vec<u32> = (0..spans.len() as u32).filter(is_part).collect();
    rows.sort_by_key(|&row| spans.ts[row as usize]);
    let mut seen: FxHashMap<(u32, u32, u32), i64> = FxHashMap::default();
    let part = |row: u32| {
        let details = details(row).cloned();
        let key = details.as_ref().map_or((spans.name[row as usize], NONE, NONE), |details| {
            (details.operation, details.group, details.ranks)
        });
        let count = seen.entry(key).or_default();
        *count += 1;
        Part { row, ordinal: *count - 1, details }
    };
    rows.into_iter().map(part).collect()
}

/// Returns all tables.
pub(super) fn tables(trace: &Arc<Trace>) -> Vec<Table> {
    vec![
        kernels(trace),
        launches(trace),
        ops(trace),
        python(trace),
        annotations(trace),
        collectives(trace),
        of_steps(trace),
        of_gaps(trace),
        devices(trace),
        memory(trace),
        counters(trace),
        flows(trace),
        others(trace),
        run(trace),
    ]
}

type OfTrace = Maker<Trace>;
type OfSpans = fn(&Trace) -> &Spans;

/// A table with start, duration and name columns.
fn spanned(trace: &Arc<Trace>, name_: &'static str, about: &'static str, of: OfSpans) -> OfTrace {
    Maker::new(trace, name_, about, move |t| of(t).len())
        .column("ts_ns", NUMBER, "start, since the base time of the trace", move |t| {
            times(&of(t).ts)
        })
        .column("dur_ns", NUMBER, "duration, as in the file (can be negative)", move |t| {
            times(&of(t).dur)
        })
        .column("start_ns", NUMBER, "start, since the Unix epoch", move |t| {
            t.starts(of(t).ts.iter().copied())
        })
        .column("name", name(), "name in the trace", move |t| t.names(&of(t).name))
}

impl OfTrace {
    /// Adds process and thread columns.
    fn placed(self, of: OfSpans) -> OfTrace {
        let column =
            |this: OfTrace, name, data_type, about, make: fn(&Trace, &Track) -> ArrayOf| {
                this.column(name, data_type, about, move |t: &Trace| by_track(t, of(t), make))
            };
        let this = column(self, "pid", NUMBER, "process id", |t, track| {
            ArrayOf::Number(t.number(track.pid))
        });
        let this = column(this, "tid", NUMBER, "thread id in the trace", |t, track| {
            ArrayOf::Number(t.number(track.tid))
        });
        column(this, "thread", word(), "thread name, if the trace has one", |t, track| {
            ArrayOf::Text(t.timeline.strings.get(track.thread).to_owned())
        })
    }
}

/// A property of a track.
enum ArrayOf {
    Number(Option<i64>),
    Text(String),
}

/// A column with a property of each event's track.
fn by_track(trace: &Trace, spans: &Spans, of: fn(&Trace, &Track) -> ArrayOf) -> ArrayRef {
    let values: Vec<ArrayOf> = trace.timeline.tracks.iter().map(|track| of(trace, track)).collect();
    let is_text = matches!(of(trace, &Track::default()), ArrayOf::Text(_));
    if is_text {
        let text = |value: &ArrayOf| match value {
            ArrayOf::Text(text) => text.clone(),
            ArrayOf::Number(_) => String::new(),
        };
        let texts: Vec<String> = values.iter().map(text).collect();
        return coded(spans.track.iter().map(|&track| track as usize), &texts);
    }
    let number = |&track: &u32| match values.get(track as usize) {
        Some(ArrayOf::Number(number)) => *number,
        _ => None,
    };
    maybe_numbers(spans.track.iter().map(number))
}

fn kernels(trace: &Arc<Trace>) -> Table {
    spanned(trace, "kernels", "one device operation (kernel, copy or fill) with its launch", |t| {
        &t.timeline.gpu.spans
    })
    .column("class", word(), "kernel class: `Dense GEMM`, `Communication`, …", |t| {
        let texts: Vec<String> = t.rules().classes().iter().map(|c| c.name.clone()).collect();
        coded(t.classes().iter().map(|class| usize::from(class.0)), &texts)
    })
    .column("class_group", word(), "group of the kernel class", |t| {
        let texts: Vec<String> = t.rules().classes().iter().map(|c| c.group.clone()).collect();
        coded(t.classes().iter().map(|class| usize::from(class.0)), &texts)
    })
    .column("activity", word(), "`kernel`, `copy`, `fill` or `device` (other)", |t| {
        let activity = |kind: &laggard_core::model::timeline::Kind| match kind.activity() {
            Some(Activity::Kernel) => "kernel".to_owned(),
            Some(Activity::Copy) => "copy".to_owned(),
            Some(Activity::Fill) => "fill".to_owned(),
            _ => "device".to_owned(),
        };
        let texts: Vec<String> = t.timeline.kinds.iter().map(activity).collect();
        coded(t.timeline.gpu.spans.kind.iter().map(|&kind| usize::from(kind)), &texts)
    })
    .column("phase", word(), "phase of the program at the launch: `decode`, …", |t| {
        let texts: Vec<String> = (0..=u8::MAX).map(|n| t.phases.label(n).to_owned()).collect();
        coded(t.timeline.gpu.phase.iter().map(|&phase| usize::from(phase)), &texts)
    })
    .column("step", NUMBER, "row of `steps` that contains the launch", |t| {
        let of_rows = t.stepped().1.iter();
        maybe_numbers(of_rows.map(|&step| (step != NONE).then_some(i64::from(step))))
    })
    .column("device", NUMBER, "device", |t| {
        maybe_numbers((0..t.timeline.gpu.spans.len() as u32).map(|row| t.device(row)))
    })
    .column("stream", NUMBER, "stream", |t| t.ids(&t.timeline.gpu.stream))
    .column("op", name(), "CPU operator that contains the launch", |t| {
        names_of(&t.timeline.gpu.op, &t.timeline.ops.spans.name, t.strings())
    })
    .column("python", name(), "Python function that contains the launch: file(line): name", |t| {
        names_of(&t.timeline.gpu.python, &t.timeline.python.spans.name, t.strings())
    })
    .column("module", name(), "`nn.Module` that contains the launch", |t| {
        names_of(&t.timeline.gpu.module, &t.timeline.python.spans.name, t.strings())
    })
    .column("launch", name(), "runtime call that launched the operation", |t| {
        names_of(&t.timeline.gpu.launch, &t.timeline.runtime.spans.name, t.strings())
    })
    .column("launch_ts_ns", NUMBER, "start of that call, since the base time of the trace", |t| {
        let ts = &t.timeline.runtime.spans.ts;
        maybe_numbers(t.timeline.gpu.launch.iter().map(|&row| ts.get(row as usize).copied()))
    })
    .column("correlation", NUMBER, "correlation id shared with the launch", |t| {
        t.ids(&t.timeline.gpu.correlation)
    })
    .column("bytes", NUMBER, "bytes moved by a copy or fill", |t| t.ids(&t.timeline.gpu.bytes))
    .column("grid", name(), "grid size, as JSON", |t| t.names(&t.timeline.gpu.grid))
    .column("block", name(), "block size, as JSON", |t| t.names(&t.timeline.gpu.block))
    .column("registers", NUMBER, "registers per thread", |t| t.ids(&t.timeline.gpu.registers))
    .column("shared_memory", NUMBER, "shared memory in bytes", |t| {
        t.ids(&t.timeline.gpu.shared_memory)
    })
    .table()
}

fn launches(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.runtime.spans;
    spanned(trace, "launches", "one call to the CUDA, HIP or MTIA runtime or driver", of)
        .placed(of)
        .column("correlation", NUMBER, "correlation id shared with the device operation", |t| {
            t.ids(&t.timeline.runtime.correlation)
        })
        .table()
}

fn ops(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.ops.spans;
    spanned(trace, "ops", "one call of a framework operator on the host", of)
        .placed(of)
        .column("shapes", name(), "input shapes, as JSON", |t| t.names(&t.timeline.ops.dims))
        .column("types", name(), "input types, as JSON", |t| t.names(&t.timeline.ops.types))
        .column("scalars", name(), "scalar input values, as JSON", |t| {
            t.names(&t.timeline.ops.concrete)
        })
        .column("call_stack", name(), "call stack (old traces only), innermost first", |t| {
            t.names(&t.timeline.ops.call_stack)
        })
        .column("external_id", NUMBER, "id of the call in the framework", |t| {
            t.ids(&t.timeline.ops.external)
        })
        .table()
}

fn python(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.python.spans;
    spanned(trace, "python", "one call of a Python function or `nn.Module`", of)
        .placed(of)
        .column("python_id", NUMBER, "id of the call", |t| t.ids(&t.timeline.python.id))
        .column("parent_id", NUMBER, "id of the calling frame", |t| {
            t.ids(&t.timeline.python.parent)
        })
        .table()
}

fn annotations(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.annotations.spans;
    spanned(trace, "annotations", "one range annotated by the user or a library", of)
        .placed(of)
        .column("category", word(), "`user_annotation` or `gpu_user_annotation`", move |t| {
            category(t, of(t))
        })
        .table()
}

fn category(trace: &Trace, spans: &Spans) -> ArrayRef {
    let texts: Vec<String> = trace.timeline.kinds.iter().map(|k| k.category.clone()).collect();
    coded(spans.kind.iter().map(|&kind| usize::from(kind)), &texts)
}

fn collectives(trace: &Arc<Trace>) -> Table {
    let about = "one collective operation on this rank, ordered by time";
    let details = |of: fn(&Trace, &Collective) -> Option<i64>| {
        move |t: &Trace| {
            let detail = |part: &Part| of(t, part.details.as_ref()?);
            maybe_numbers(t.collectives().iter().map(detail))
        }
    };
    let text = |of: fn(&Collective) -> u32| {
        move |t: &Trace| {
            let detail = |part: &Part| part.details.as_ref().map(of).filter(|&code| code != NONE);
            words(t.collectives().iter().map(|part| Some(t.timeline.strings.get(detail(part)?))))
        }
    };
    Maker::new(trace, "collectives", about, |t| t.collectives().len())
        .column("start_ns", NUMBER, "start, since the Unix epoch", |t| {
            let ts = &t.timeline.gpu.spans.ts;
            t.starts(t.collectives().iter().map(|part| ts[part.row as usize]))
        })
        .column(
            "dur_ns",
            NUMBER,
            "duration on the device, including the wait for other ranks",
            |t| {
                let dur = &t.timeline.gpu.spans.dur;
                numbers(t.collectives().iter().map(|part| dur[part.row as usize].max(0)))
            },
        )
        .column("operation", word(), "`allreduce`, …; kernel name if unknown", |t| {
            words(t.collectives().iter().map(|part| {
                let code = part.details.as_ref().map_or_else(
                    || t.timeline.gpu.spans.name[part.row as usize],
                    |details| details.operation,
                );
                Some(t.timeline.strings.get(code))
            }))
        })
        .column("ordinal", NUMBER, "sequence number within its operation and group", |t| {
            numbers(t.collectives().iter().map(|part| part.ordinal))
        })
        .column("process_group", word(), "process group name", text(|c| c.group))
        .column("group_ranks", word(), "ranks in the group", text(|c| c.ranks))
        .column("group_size", NUMBER, "group size", details(|t, c| t.number(c.group_size)))
        .column("dtype", word(), "element type", text(|c| c.dtype))
        .column("elements_in", NUMBER, "elements sent", details(|t, c| t.number(c.elements_in)))
        .column(
            "elements_out",
            NUMBER,
            "elements received",
            details(|t, c| t.number(c.elements_out)),
        )
        .column(
            "bytes",
            NUMBER,
            "bytes sent or received, whichever is larger",
            details(|t, c| {
                let size = dtype_bytes(t.timeline.strings.get(c.dtype))?;
                let elements = t.number(c.elements_in).max(t.number(c.elements_out))?;
                Some(elements.saturating_mul(i64::from(size)))
            }),
        )
        .column("device", NUMBER, "device", |t| {
            maybe_numbers(t.collectives().iter().map(|part| t.device(part.row)))
        })
        .table()
}

fn of_steps(trace: &Arc<Trace>) -> Table {
    let about = "one training step or serving iteration, annotated on the host";
    Maker::new(trace, "steps", about, |t| t.steps().len())
        .column("step", NUMBER, "row number", |t| numbers((0..t.steps().len()).map(|n| n as i64)))
        .column("name", word(), "annotation that marks the step", |t| {
            words(t.steps().iter().map(|s| Some(&s.name)))
        })
        .column("start_ns", NUMBER, "start, since the Unix epoch", |t| {
            let first = t.extent().map_or(0, |(start, _)| start);
            t.starts(t.steps().iter().map(|step| first.saturating_add(step.start_ns)))
        })
        .column("dur_ns", NUMBER, "duration on the host", |t| {
            numbers(t.steps().iter().map(|step| step.duration_ns))
        })
        .column(
            "device_ns",
            NUMBER,
            "total time of the device operations launched in the step",
            |t| numbers(t.steps().iter().map(|step| step.gpu_ns)),
        )
        .column("device_count", NUMBER, "number of these operations", |t| {
            numbers(t.steps().iter().map(|step| step.gpu_count as i64))
        })
        .table()
}

fn of_gaps(trace: &Arc<Trace>) -> Table {
    let about = "one idle gap between two device operations";
    Maker::new(trace, "gaps", about, |t| t.gaps().len())
        .column("start_ns", NUMBER, "start, since the Unix epoch", |t| {
            let ts = &t.timeline.gpu.spans.ts;
            let start = |gap: &Gap| ts[gap.next as usize].saturating_sub(gap.dur_ns);
            t.starts(t.gaps().iter().map(start))
        })
        .column("dur_ns", NUMBER, "duration", |t| numbers(t.gaps().iter().map(|g| g.dur_ns)))
        .column("device", NUMBER, "device", |t| {
            maybe_numbers(t.gaps().iter().map(|gap| t.device(gap.next)))
        })
        .column("cause", word(), "`host-bound`, `synchronisation` or `other`", |t| {
            let texts = Cause::ALL.map(|cause| cause.word().to_owned());
            coded(t.gaps().iter().map(|gap| gap.cause as usize), &texts)
        })
        .column("next", name(), "operation that ended the gap", |t| {
            let names = &t.timeline.gpu.spans.name;
            t.names(&t.gaps().iter().map(|gap| names[gap.next as usize]).collect())
        })
        .column("next_op", name(), "CPU operator that launched that operation", |t| {
            let rows: Column<u32> =
                t.gaps().iter().map(|gap| t.timeline.gpu.op[gap.next as usize]).collect();
            names_of(&rows, &t.timeline.ops.spans.name, t.strings())
        })
        .table()
}

fn devices(trace: &Arc<Trace>) -> Table {
    /// A column with a number of each device.
    fn of(get: fn(&Device) -> i64) -> impl Fn(&Trace) -> ArrayRef {
        move |t| numbers(t.devices().iter().map(get))
    }
    Maker::new(trace, "devices", "one device, with its busy, idle and exposed time", |t| {
        t.devices().len()
    })
    .column("device", NUMBER, "device", |t| {
        maybe_numbers(t.devices().iter().map(|device| device.device.parse().ok()))
    })
    .column("name", word(), "model, if known", |t| {
        words(t.devices().iter().map(|d| Some(&d.name).filter(|n| !n.is_empty())))
    })
    .column("span_ns", NUMBER, "time from the first to the last operation", of(|d| d.span_ns))
    .column("busy_ns", NUMBER, "time in which any operation ran", of(|d| d.busy_ns))
    .column("idle_ns", NUMBER, "time in which no operation ran", of(|d| d.idle_ns))
    .column("compute_ns", NUMBER, "time in which compute ran", of(|d| d.compute_ns))
    .column(
        "communication_ns",
        NUMBER,
        "time in which communication ran",
        of(|d| d.communication_ns),
    )
    .column(
        "exposed_communication_ns",
        NUMBER,
        "time in which communication ran without compute",
        of(|d| d.exposed_communication_ns),
    )
    .column("copy_ns", NUMBER, "time in which copies ran", of(|d| d.copy_ns))
    .column(
        "exposed_copy_ns",
        NUMBER,
        "time in which copies ran without a kernel",
        of(|d| d.exposed_copy_ns),
    )
    .column(
        "host_bound_ns",
        NUMBER,
        "idle time because the next operation was launched late",
        of(|d| d.idle.host_bound_ns),
    )
    .column(
        "synchronisation_ns",
        NUMBER,
        "idle time because the host waited for the device before the next launch",
        of(|d| d.idle.synchronisation_ns),
    )
    .column("gap_count", NUMBER, "number of idle gaps", of(|d| d.idle.gaps as i64))
    .table()
}

fn memory(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.instants.spans;
    Maker::new(trace, "memory", "one instant event: an allocation, a free or a marker", move |t| {
        of(t).len()
    })
    .column("ts_ns", NUMBER, "time, since the base time of the trace", move |t| times(&of(t).ts))
    .column("name", name(), "name in the trace", move |t| t.names(&of(t).name))
    .placed(of)
    .column("bytes", NUMBER, "bytes allocated; negative if freed", |t| {
        t.ids(&t.timeline.instants.bytes)
    })
    .column("allocated", NUMBER, "bytes used by tensors afterwards", |t| {
        t.ids(&t.timeline.instants.total_allocated)
    })
    .column("reserved", NUMBER, "bytes held by the allocator afterwards", |t| {
        t.ids(&t.timeline.instants.total_reserved)
    })
    .column("device", NUMBER, "device", |t| t.ids(&t.timeline.instants.device))
    .column("device_type", NUMBER, "0 host, 1 CUDA, 6 HIP, …", |t| {
        t.ids(&t.timeline.instants.device_type)
    })
    .table()
}

fn counters(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.counters.spans;
    Maker::new(trace, "trace_counters", "one value of a counter in the trace", move |t| of(t).len())
        .column("ts_ns", NUMBER, "time, since the base time of the trace", move |t| {
            times(&of(t).ts)
        })
        .column("name", name(), "name in the trace", move |t| t.names(&of(t).name))
        .column("values", name(), "values, as JSON", |t| t.names(&t.timeline.counters.values))
        .table()
}

fn flows(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.flows.spans;
    Maker::new(trace, "flows", "one end of a flow arrow between two events", move |t| of(t).len())
        .column("ts_ns", NUMBER, "time, since the base time of the trace", move |t| {
            times(&of(t).ts)
        })
        .column("name", name(), "name in the trace", move |t| t.names(&of(t).name))
        .column("end", word(), "`s` for the start, `f` for the end", move |t| {
            let texts: Vec<String> = t.timeline.kinds.iter().map(|k| k.phase.clone()).collect();
            coded(of(t).kind.iter().map(|&kind| usize::from(kind)), &texts)
        })
        .placed(of)
        .column("flow_id", NUMBER, "id shared by both ends of the arrow", |t| {
            t.ids(&t.timeline.flows.id)
        })
        .table()
}

fn others(trace: &Arc<Trace>) -> Table {
    let of: OfSpans = |t| &t.timeline.others.spans;
    spanned(trace, "others", "one span of any other category", of)
        .placed(of)
        .column("category", word(), "category in the trace", move |t| category(t, of(t)))
        .table()
}

fn run(trace: &Arc<Trace>) -> Table {
    let one =
        |of: fn(&Trace) -> Option<i64>| move |t: &Trace| maybe_numbers(std::iter::once(of(t)));
    let text = |of: fn(&Trace) -> Option<String>| move |t: &Trace| words(std::iter::once(of(t)));
    Maker::new(trace, "run", "the whole trace (one row)", |_| 1)
        .column("rank", NUMBER, "rank in a distributed job", one(|t| t.timeline.about.rank))
        .column(
            "world_size",
            NUMBER,
            "number of ranks in the job",
            one(|t| t.timeline.about.world_size),
        )
        .column(
            "backend",
            word(),
            "communication backend",
            text(|t| t.timeline.about.backend.clone()),
        )
        .column(
            "gpu",
            word(),
            "device models, separated by commas",
            text(|t| {
                let names: Vec<String> =
                    gpus(&t.timeline, t.rules()).into_iter().map(|(name, _)| name).collect();
                Some(names.join(", ")).filter(|names| !names.is_empty())
            }),
        )
        .column(
            "gpus",
            NUMBER,
            "number of devices in the machine",
            one(|t| Some(t.timeline.about.devices.len() as i64)),
        )
        .column(
            "base_time_ns",
            NUMBER,
            "base time of the trace, since the Unix epoch",
            one(|t| Some(t.timeline.about.base_time_ns)),
        )
        .column(
            "first_ns",
            NUMBER,
            "first event, since the Unix epoch",
            one(|t| {
                let (first, _) = t.extent()?;
                Some(t.timeline.about.base_time_ns.saturating_add(first))
            }),
        )
        .column(
            "span_ns",
            NUMBER,
            "time from the first to the last event",
            one(|t| {
                let (first, last) = t.extent()?;
                Some(last.saturating_sub(first))
            }),
        )
        .column(
            "events",
            NUMBER,
            "number of events in the file",
            one(|t| Some(t.timeline.events as i64)),
        )
        .column(
            "text_bytes",
            NUMBER,
            "uncompressed size of the trace",
            one(|t| Some(t.timeline.bytes as i64)),
        )
        .column(
            "lost",
            NUMBER,
            "lost or repaired events",
            one(|t| Some(t.timeline.losses.iter().map(|loss| loss.count).sum::<u64>() as i64)),
        )
        .column("unclassified_share", REAL, "share of device time that no rule classifies", |t| {
            reals(std::iter::once(Some(t.summary().unclassified_share)))
        })
        .column("has_shapes", FLAG, "whether operators have shapes", |t| {
            flags(std::iter::once(t.timeline.ops.dims.iter().any(|&dims| dims != NONE)))
        })
        .column("has_stacks", FLAG, "whether the trace has Python frames", |t| {
            flags(std::iter::once(!t.timeline.python.spans.is_empty()))
        })
        .table()
}
