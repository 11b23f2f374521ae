//! Writes the speedscope format: frames shared by all threads, and one sampled profile per thread.

use laggard_core::model::profile::{Frame, FrameKind, Unit};
use laggard_core::profile::{View, file_name, frame_label, short_path};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'static str,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared,
    profiles: Vec<Sampled>,
    /// Wall time of the recording. The format has no place for it: the end of a profile is the sum of
    /// its weights. Other programs ignore the key.
    #[serde(rename = "laggardDurationNs")]
    duration_ns: u64,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<SharedFrame>,
}

#[derive(Serialize, Clone, PartialEq, Eq, Hash)]
struct SharedFrame {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Writes a speedscope file. Only Python frames have line numbers: with a line number, speedscope
/// would show every line of a native function as a separate function.
pub fn speedscope(view: &View, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let profile = view.profile;
    let mut numbers: FxHashMap<SharedFrame, u32> = FxHashMap::default();
    let mut frames = vec![];
    let shared: Vec<u32> = profile
        .frames
        .iter()
        .map(|frame| {
            *numbers.entry(shared_frame(view, frame)).or_insert_with_key(|frame| {
                frames.push(frame.clone());
                frames.len() as u32 - 1
            })
        })
        .collect();
    let unit = match view.unit() {
        Unit::Nanos => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "none",
    };
    let mut threads: Vec<Sampled> = profile
        .threads
        .iter()
        .map(|thread| Sampled {
            kind: "sampled",
            name: format!(
                "{} {} (process {} {})",
                profile.texts.get(thread.name),
                thread.tid,
                profile.texts.get(thread.process),
                thread.pid
            ),
            unit,
            start: 0,
            end: 0,
            samples: vec![],
            weights: vec![],
        })
        .collect();
    for sample in &view.samples {
        let Some(thread) = threads.get_mut(sample.thread as usize) else { continue };
        let mut stack: Vec<u32> = profile
            .frames_of(sample.stack)
            .filter_map(|frame| shared.get(frame as usize).copied())
            .collect();
        stack.reverse();
        thread.samples.push(stack);
        thread.weights.push(sample.weight);
        thread.end = thread.end.saturating_add(sample.weight);
    }
    threads.retain(|thread| !thread.samples.is_empty());
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.end));
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name,
        exporter: concat!("laggard ", env!("CARGO_PKG_VERSION")),
        active: 0,
        shared: Shared { frames },
        profiles: threads,
        duration_ns: profile.about.duration_ns,
    };
    Ok(serde_json::to_writer(out, &file)?)
}

fn shared_frame(view: &View, frame: &Frame) -> SharedFrame {
    let texts = &view.profile.texts;
    if frame.kind == FrameKind::Python {
        return SharedFrame {
            name: texts.get(frame.function).to_owned(),
            file: short_path(texts.get(frame.file)).to_owned(),
            line: (frame.line > 0).then_some(frame.line),
        };
    }
    let source = texts.get(frame.file);
    let file = if source.is_empty() { file_name(view.profile.module_path(frame)) } else { source };
    SharedFrame { name: frame_label(view.profile, frame), file: file.to_owned(), line: None }
}
