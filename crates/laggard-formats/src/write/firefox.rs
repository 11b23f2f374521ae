//! Writes the processed profile format of the Firefox Profiler (profiler.firefox.com), version 47.
//! Each thread has its own string, function, frame and stack tables, stored by column.

use laggard_core::model::NONE;
use laggard_core::model::profile::{FrameKind, Profile, Sample, Unit};
use laggard_core::profile::{View, file_name, frame_label};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Version of the format. The profiler upgrades older versions.
const VERSION: u32 = 47;
/// Version of the raw format that corresponds to it.
const RAW_VERSION: u32 = 27;
/// Categories of frames. Frames refer to them by index.
const CATEGORIES: [(&str, &str); 4] =
    [("Other", "grey"), ("Native", "blue"), ("Python", "yellow"), ("Kernel", "orange")];
/// Resource type of a library.
const LIBRARY: u32 = 1;

/// Writes a profile for the Firefox Profiler.
pub fn firefox(view: &View, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let profile = view.profile;
    let about = &profile.about;
    let mut by_thread: Vec<Vec<Sample>> = vec![vec![]; profile.threads.len()];
    for sample in &view.samples {
        if let Some(samples) = by_thread.get_mut(sample.thread as usize) {
            samples.push(*sample);
        }
    }
    let threads: Vec<Value> = by_thread
        .iter()
        .enumerate()
        .filter(|(_, samples)| !samples.is_empty())
        .map(|(number, samples)| thread(view, number, samples))
        .collect();
    let categories: Vec<Value> = CATEGORIES
        .iter()
        .map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}))
        .collect();
    let interval_ms = if about.rate > 0.0 { 1e3 / about.rate } else { 1.0 };
    let file = json!({
        "meta": {
            "version": RAW_VERSION,
            "preprocessedProfileVersion": VERSION,
            "interval": interval_ms,
            "startTime": about.started_unix * 1e3,
            "processType": 0,
            "product": name,
            "stackwalk": 1,
            "debug": false,
            "symbolicated": true,
            "importedFrom": concat!("laggard ", env!("CARGO_PKG_VERSION")),
            "categories": categories,
            "markerSchema": [],
            "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
            "usesOnlyOneStackType": true,
            "doesNotUseFrameImplementation": true,
            "sourceCodeIsNotOnSearchfox": true,
        },
        "libs": libs(profile),
        "pages": [],
        "counters": [],
        "profilerOverhead": [],
        "threads": threads,
    });
    Ok(serde_json::to_writer(out, &file)?)
}

fn libs(profile: &Profile) -> Vec<Value> {
    let lib = |module: &laggard_core::model::profile::Module| {
        let path = profile.texts.get(module.path);
        json!({
            "name": file_name(path), "path": path, "debugName": file_name(path), "debugPath": path,
            "breakpadId": "", "codeId": profile.texts.get(module.id), "arch": "",
        })
    };
    profile.modules.iter().map(lib).collect()
}

/// String table of a thread.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    numbers: FxHashMap<String, usize>,
}

impl Strings {
    fn add(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.numbers.insert(text.to_owned(), self.all.len());
        self.all.push(text.to_owned());
        self.all.len() - 1
    }
}

/// Tables of a thread, with only the rows that its samples need.
#[derive(Default)]
struct Tables {
    strings: Strings,
    resources: FxHashMap<u32, usize>,
    resource_rows: Vec<(u32, usize)>,
    functions: FxHashMap<(usize, i64), usize>,
    /// Name, resource, file.
    function_rows: Vec<(usize, i64, Option<usize>)>,
    frames: FxHashMap<u32, usize>,
    /// Address, category, function, line.
    frame_rows: Vec<(i64, usize, usize, Option<u32>)>,
    stacks: FxHashMap<u32, usize>,
    /// Frame, caller, category.
    stack_rows: Vec<(usize, Option<usize>, usize)>,
}

impl Tables {
    /// Returns the row of a stack. Adds it and its callers if needed.
    fn stack(&mut self, profile: &Profile, stack: u32) -> Option<usize> {
        let mut missing = vec![];
        let mut at = stack;
        while let Some(node) = profile.stacks.get(at as usize)
            && !self.stacks.contains_key(&at)
        {
            missing.push(at);
            at = node.parent;
        }
        let mut row = self.stacks.get(&at).copied();
        for node in missing.into_iter().rev() {
            let frame = self.frame(profile, profile.stacks[node as usize].frame)?;
            let category = self.frame_rows[frame].1;
            self.stack_rows.push((frame, row, category));
            row = Some(self.stack_rows.len() - 1);
            self.stacks.insert(node, self.stack_rows.len() - 1);
        }
        row
    }

    fn frame(&mut self, profile: &Profile, number: u32) -> Option<usize> {
        if let Some(&row) = self.frames.get(&number) {
            return Some(row);
        }
        let frame = profile.frames.get(number as usize)?;
        let is_python = frame.kind == FrameKind::Python;
        let label = match is_python {
            true => profile.texts.get(frame.function).to_owned(),
            false => frame_label(profile, frame),
        };
        let name = self.strings.add(&label);
        let file = profile.texts.get(frame.file);
        let file = if file.is_empty() { None } else { Some(self.strings.add(file)) };
        let resource = self.resource(profile, frame.module);
        // Python functions with equal names are distinguished by their file.
        let place = if is_python { file.map_or(-1, |file| -2 - file as i64) } else { resource };
        let next = self.function_rows.len();
        let function = *self.functions.entry((name, place)).or_insert(next);
        if function == next {
            self.function_rows.push((name, resource, file));
        }
        let category = match frame.kind {
            FrameKind::Native | FrameKind::Inlined => 1,
            FrameKind::Python => 2,
            FrameKind::Kernel => 3,
            FrameKind::Mark => 0,
        };
        // Addresses are omitted: all names are already known.
        let line = (frame.line > 0).then_some(frame.line);
        self.frame_rows.push((-1, category, function, line));
        self.frames.insert(number, self.frame_rows.len() - 1);
        Some(self.frame_rows.len() - 1)
    }

    fn resource(&mut self, profile: &Profile, module: u32) -> i64 {
        let Some(found) = profile.modules.get(module as usize).filter(|_| module != NONE) else {
            return -1;
        };
        if let Some(&row) = self.resources.get(&module) {
            return row as i64;
        }
        let name = self.strings.add(file_name(profile.texts.get(found.path)));
        self.resource_rows.push((module, name));
        self.resources.insert(module, self.resource_rows.len() - 1);
        self.resource_rows.len() as i64 - 1
    }
}

fn thread(view: &View, number: usize, samples: &[Sample]) -> Value {
    let profile = view.profile;
    let thread = &profile.threads[number];
    let mut tables = Tables::default();
    let stacks: Vec<Option<usize>> =
        samples.iter().map(|sample| tables.stack(profile, sample.stack)).collect();
    let ms = |ns: u64| ns as f64 / 1e6;
    let weights: Vec<Value> = samples
        .iter()
        .map(|sample| if view.is_time() { json!(ms(sample.weight)) } else { json!(sample.weight) })
        .collect();
    let Tables { strings, resource_rows, function_rows, frame_rows, stack_rows, .. } = tables;
    fn column<T, V: serde::Serialize>(rows: &[T], of: impl Fn(&T) -> V) -> Vec<V> {
        rows.iter().map(of).collect()
    }
    let nulls = |n: usize| vec![Value::Null; n];
    let (functions, frames) = (function_rows.len(), frame_rows.len());
    json!({
        "name": profile.texts.get(thread.name),
        "processName": profile.texts.get(thread.process),
        "processType": "default",
        "isMainThread": thread.pid == thread.tid,
        "pid": thread.pid.to_string(),
        "tid": thread.tid,
        "processStartupTime": 0.0,
        "processShutdownTime": ms(profile.about.duration_ns),
        "registerTime": 0.0,
        "unregisterTime": null,
        "pausedRanges": [],
        "markers": {"length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": []},
        "samples": {
            "length": samples.len(),
            "stack": stacks,
            "time": column(samples, |sample| ms(sample.time_ns)),
            "weight": weights,
            "weightType": match view.unit() {
                Unit::Nanos => "tracing-ms",
                Unit::Bytes => "bytes",
                Unit::Count => "samples",
            },
        },
        "stackTable": {
            "length": stack_rows.len(),
            "frame": column(&stack_rows, |row| row.0),
            "prefix": column(&stack_rows, |row| row.1),
            "category": column(&stack_rows, |row| row.2),
            "subcategory": column(&stack_rows, |_| 0),
        },
        "frameTable": {
            "length": frames,
            "address": column(&frame_rows, |row| row.0),
            "inlineDepth": column(&frame_rows, |_| 0),
            "category": column(&frame_rows, |row| row.1),
            "subcategory": column(&frame_rows, |_| 0),
            "func": column(&frame_rows, |row| row.2),
            "nativeSymbol": nulls(frames),
            "innerWindowID": column(&frame_rows, |_| 0),
            "implementation": nulls(frames),
            "line": column(&frame_rows, |row| row.3),
            "column": nulls(frames),
        },
        "funcTable": {
            "length": functions,
            "name": column(&function_rows, |row| row.0),
            "isJS": column(&function_rows, |_| false),
            "relevantForJS": column(&function_rows, |_| false),
            "resource": column(&function_rows, |row| row.1),
            "fileName": column(&function_rows, |row| row.2),
            "lineNumber": nulls(functions),
            "columnNumber": nulls(functions),
        },
        "resourceTable": {
            "length": resource_rows.len(),
            "lib": column(&resource_rows, |row| row.0),
            "name": column(&resource_rows, |row| row.1),
            "host": nulls(resource_rows.len()),
            "type": column(&resource_rows, |_| LIBRARY),
        },
        "nativeSymbols": {"length": 0, "address": [], "functionSize": [], "libIndex": [], "name": []},
        "stringArray": strings.all,
    })
}
