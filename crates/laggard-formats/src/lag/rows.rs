//! Converts profiles to Arrow streams and back. Invalid references are dropped and counted.

use super::tables::{Columns, Wrong, batch, json_batch, json_of, numbers, texts};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, BooleanArray, LargeStringArray, RecordBatch};
use arrow_schema::ArrowError;
use laggard_core::model::NONE;
use laggard_core::model::profile::{
    About, Children, Event, Frame, FrameKind, Module, Node, Profile, Quality, Sample, Thread, Unit,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Number of rows of each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    texts: usize,
    modules: usize,
    frames: usize,
    stacks: usize,
    threads: usize,
    events: usize,
    samples: usize,
}

impl Counts {
    pub(super) fn of(profile: &Profile) -> Counts {
        Counts {
            texts: profile.texts.iter().len(),
            modules: profile.modules.len(),
            frames: profile.frames.len(),
            stacks: profile.stacks.len(),
            threads: profile.threads.len(),
            events: profile.events.len(),
            samples: profile.samples.len(),
        }
    }

    /// The maximum of both, table by table.
    pub(super) fn max(self, other: Counts) -> Counts {
        Counts {
            texts: self.texts.max(other.texts),
            modules: self.modules.max(other.modules),
            frames: self.frames.max(other.frames),
            stacks: self.stacks.max(other.stacks),
            threads: self.threads.max(other.threads),
            events: self.events.max(other.events),
            samples: self.samples.max(other.samples),
        }
    }
}

/// Streams of all rows after `since`. Tables without such rows are omitted.
pub(super) fn batches(profile: &Profile, since: Counts) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut all = vec![];
    let mut add = |batch: RecordBatch| {
        if batch.num_rows() > 0 {
            all.push(batch);
        }
    };
    let new = LargeStringArray::from_iter_values(profile.texts.iter().skip(since.texts));
    add(batch("texts", vec![("text", Arc::new(new))])?);
    macro_rules! table {
        ($name:ident, $($column:ident: $kind:ty = $of:expr),*) => {{
            let rows = profile.$name.get(since.$name..).unwrap_or_default();
            add(batch(stringify!($name), vec![
                $((stringify!($column), numbers::<$kind>(rows.iter().map($of).collect())),)*
            ])?);
        }};
    }
    table!(modules, path: UInt32Type = |m| m.path, id: UInt32Type = |m| m.id);
    table!(frames, kind: UInt8Type = |f| f.kind as u8, module: UInt32Type = |f| f.module,
        address: UInt64Type = |f| f.address, function: UInt32Type = |f| f.function,
        file: UInt32Type = |f| f.file, line: UInt32Type = |f| f.line);
    table!(stacks, parent: UInt32Type = |n| n.parent, frame: UInt32Type = |n| n.frame);
    table!(threads, pid: UInt32Type = |t| t.pid, tid: UInt32Type = |t| t.tid,
        name: UInt32Type = |t| t.name, process: UInt32Type = |t| t.process,
        cpu_ns: UInt64Type = |t| t.cpu_ns);
    let events = profile.events.get(since.events..).unwrap_or_default();
    let is_time: BooleanArray = events.iter().map(|event| Some(event.is_time())).collect();
    let unit = numbers::<UInt8Type>(events.iter().map(|event| event.unit as u8).collect());
    add(batch(
        "events",
        vec![
            ("name", texts(events.iter().map(|event| event.name.as_str()))),
            ("is_time", Arc::new(is_time)),
            ("unit", unit),
        ],
    )?);
    table!(samples, time_ns: UInt64Type = |s| s.time_ns, thread: UInt32Type = |s| s.thread,
        stack: UInt32Type = |s| s.stack, event: UInt32Type = |s| s.event,
        count: UInt64Type = |s| s.count, weight: UInt64Type = |s| s.weight,
        state: UInt32Type = |s| s.state);
    add(json_batch("about", &about(&profile.about).to_string())?);
    add(json_batch("quality", &quality(&profile.quality).to_string())?);
    Ok(all)
}

/// A profile that is being read, part by part.
#[derive(Default)]
pub(super) struct Rows {
    profile: Profile,
    /// Text number in the profile, by text number in the file.
    texts: Vec<u32>,
    /// Number of invalid references.
    pub(super) astray: u64,
}

impl Rows {
    /// Adds the rows of a stream. Returns `false` if the stream does not belong to a profile.
    pub(super) fn take(&mut self, stream: &str, batch: &RecordBatch) -> Result<bool, Wrong> {
        let c = Columns { stream, batch };
        let n = batch.num_rows();
        let Rows { profile: p, texts, astray } = self;
        let mut text = |number: u32| {
            texts.get(number as usize).copied().unwrap_or_else(|| {
                *astray += 1;
                0
            })
        };
        let small = |name: &str| c.get::<UInt32Type>(name);
        let large = |name: &str| c.get::<UInt64Type>(name);
        match stream {
            "texts" => {
                let new = c
                    .array("text")?
                    .as_string_opt::<i64>()
                    .ok_or("column text of stream texts is not text")?;
                texts.extend((0..new.len()).map(|i| p.texts.add(new.value(i))));
            }
            "modules" => {
                let (path, id) = (small("path")?, small("id")?);
                p.modules.extend((0..n).map(|i| Module { path: text(path[i]), id: text(id[i]) }));
            }
            "frames" => {
                let (kind, address) = (c.get::<UInt8Type>("kind")?, large("address")?);
                let (module, line) = (small("module")?, small("line")?);
                let (function, file) = (small("function")?, small("file")?);
                for i in 0..n {
                    let kind = FrameKind::from_number(kind[i])
                        .ok_or_else(|| format!("unknown frame kind {}", kind[i]))?;
                    let (function, file) = (text(function[i]), text(file[i]));
                    let (module, address, line) = (module[i], address[i], line[i]);
                    p.frames.push(Frame { kind, module, address, function, file, line });
                }
            }
            "stacks" => {
                let (parent, frame) = (small("parent")?, small("frame")?);
                p.stacks.extend((0..n).map(|i| Node { parent: parent[i], frame: frame[i] }));
            }
            "threads" => {
                let (pid, tid, cpu_ns) = (small("pid")?, small("tid")?, large("cpu_ns")?);
                let (name, process) = (small("name")?, small("process")?);
                p.threads.extend((0..n).map(|i| Thread {
                    pid: pid[i],
                    tid: tid[i],
                    name: text(name[i]),
                    process: text(process[i]),
                    cpu_ns: cpu_ns[i],
                }));
            }
            "events" => {
                let name = c.texts("name")?;
                let is_time =
                    c.array("is_time")?.as_boolean_opt().ok_or("is_time is not boolean")?;
                // Not present in files of the first version.
                let unit = c.get::<UInt8Type>("unit").ok();
                p.events.extend((0..n).map(|i| {
                    let known = unit.as_ref().and_then(|unit| Unit::from_number(unit[i]));
                    let older = if is_time.value(i) { Unit::Nanos } else { Unit::Count };
                    Event { name: name.value(i).to_owned(), unit: known.unwrap_or(older) }
                }));
            }
            "samples" => {
                let (time_ns, weight) = (large("time_ns")?, large("weight")?);
                let (thread, stack) = (small("thread")?, small("stack")?);
                let (event, state) = (small("event")?, small("state")?);
                // Not present in files of the first version.
                let count = large("count").ok();
                p.samples.extend((0..n).map(|i| Sample {
                    time_ns: time_ns[i],
                    thread: thread[i],
                    stack: stack[i],
                    event: event[i],
                    count: count.as_ref().map_or(1, |count| count[i]),
                    weight: weight[i],
                    state: state[i],
                }));
            }
            "about" => p.about = read_about(&parsed(batch)?),
            "quality" => p.quality = read_quality(&parsed(batch)?, text),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Converts a text number of the file to one of the profile.
    pub(super) fn text(&mut self, number: u32) -> u32 {
        self.texts.get(number as usize).copied().unwrap_or_else(|| {
            self.astray += 1;
            0
        })
    }

    /// Returns the profile. Samples with invalid references are skipped; invalid parents end the
    /// stack.
    pub(super) fn finish(mut self) -> Result<(Profile, u64), Wrong> {
        let p = &mut self.profile;
        for frame in &mut p.frames {
            if frame.module != NONE && frame.module as usize >= p.modules.len() {
                frame.module = NONE;
                self.astray += 1;
            }
        }
        for (number, node) in p.stacks.iter_mut().enumerate() {
            if node.frame as usize >= p.frames.len() {
                return Err("a stack refers to a missing frame".into());
            }
            if node.parent != NONE && node.parent as usize >= number {
                node.parent = NONE;
                self.astray += 1;
            }
        }
        let (threads, events, stacks) = (p.threads.len(), p.events.len(), p.stacks.len());
        let before = p.samples.len();
        p.samples.retain(|s| {
            (s.thread as usize) < threads
                && (s.event as usize) < events
                && (s.stack == NONE || (s.stack as usize) < stacks)
        });
        self.astray += (before - p.samples.len()) as u64;
        Ok((self.profile, self.astray))
    }
}

/// Parses the JSON of a stream that contains one text.
pub(super) fn parsed(batch: &RecordBatch) -> Result<Value, Wrong> {
    serde_json::from_str(json_of(batch).ok_or("a stream has no text")?)
        .map_err(|error| error.to_string())
}

fn about(a: &About) -> Value {
    json!({
        "command": a.command, "exit_code": a.exit_code, "started_unix": a.started_unix,
        "duration_ns": a.duration_ns, "user_ns": a.user_ns, "system_ns": a.system_ns,
        "rate": a.rate, "method": a.method, "tool": a.tool, "facts": a.facts,
    })
}

fn read_about(v: &Value) -> About {
    let text = |key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| v[key].as_u64().unwrap_or(0);
    let pair = |p: &Value| Some((p[0].as_str()?.to_owned(), p[1].as_str()?.to_owned()));
    About {
        command: words(&v["command"]),
        exit_code: v["exit_code"].as_i64().and_then(|code| i32::try_from(code).ok()),
        started_unix: v["started_unix"].as_f64().unwrap_or(0.0),
        duration_ns: number("duration_ns"),
        user_ns: number("user_ns"),
        system_ns: number("system_ns"),
        rate: v["rate"].as_f64().unwrap_or(0.0),
        method: text("method"),
        tool: text("tool"),
        facts: list(&v["facts"]).filter_map(pair).collect(),
    }
}

fn quality(q: &Quality) -> Value {
    let mut value = json!({
        "lost": q.lost, "late": q.late, "unsampled_threads": q.unsampled_threads,
        "mismatched": q.mismatched, "with_python": q.with_python, "handler_ns": q.handler_ns,
        "overhead": q.overhead, "cut": q.cut, "is_unknown": q.is_unknown, "warnings": q.warnings,
    });
    if let Some(known) = &q.children {
        value["children"] = children(known);
    }
    value
}

fn children(c: &Children) -> Value {
    json!({
        "are_followed": c.are_followed, "followed": c.followed, "excluded": c.excluded,
        "user_ns": c.user_ns, "system_ns": c.system_ns,
    })
}

fn read_children(v: &Value, mut text: impl FnMut(u32) -> u32) -> Option<Children> {
    let number = |key: &str| v[key].as_u64().unwrap_or(0);
    let small = |v: &Value| u32::try_from(v.as_u64()?).ok();
    let excluded = |row: &Value| Some((small(&row[0])?, small(&row[1])?, row[2].as_u64()?));
    v.as_object()?;
    Some(Children {
        are_followed: v["are_followed"].as_bool().unwrap_or(false),
        followed: number("followed"),
        excluded: list(&v["excluded"])
            .filter_map(excluded)
            .map(|(program, reason, count)| (text(program), text(reason), count))
            .collect(),
        user_ns: number("user_ns"),
        system_ns: number("system_ns"),
    })
}

fn read_quality(v: &Value, mut text: impl FnMut(u32) -> u32) -> Quality {
    let number = |key: &str| v[key].as_u64().unwrap_or(0);
    let small = |v: &Value| u32::try_from(v.as_u64()?).ok();
    let overhead = &v["overhead"];
    let overhead = || Some([overhead[0].as_f64()?, overhead[1].as_f64()?, overhead[2].as_f64()?]);
    let cut = |row: &Value| Some((small(&row[0])?, row[1].as_u64()?, small(&row[2])?));
    Quality {
        lost: number("lost"),
        late: number("late"),
        unsampled_threads: number("unsampled_threads"),
        mismatched: number("mismatched"),
        with_python: number("with_python"),
        handler_ns: number("handler_ns"),
        overhead: overhead(),
        is_unknown: v["is_unknown"].as_bool().unwrap_or(false),
        cut: list(&v["cut"])
            .filter_map(cut)
            .map(|(module, count, reason)| (text(module), count, text(reason)))
            .collect(),
        children: read_children(&v["children"], text),
        warnings: words(&v["warnings"]),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn words(value: &Value) -> Vec<String> {
    list(value).filter_map(|word| word.as_str().map(str::to_owned)).collect()
}
