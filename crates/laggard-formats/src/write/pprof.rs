//! Writes uncompressed pprof profiles: a view aggregated by thread and stack.

use laggard_core::model::profile::{Frame, FrameKind, Profile, Unit};
use laggard_core::profile::{Cost, View, frame_label};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Writes a pprof profile: one row per thread and stack, with the number of samples and the weight
/// in the unit of the event. pprof files are usually gzipped, but pprof also reads uncompressed
/// ones.
pub fn pprof(view: &View, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let profile = view.profile;
    let mut texts = Texts::default();
    let mut file = Message::default();
    let event = match view.event_name() {
        // Value types must have distinct names.
        "" | "samples" => "weight",
        name => name,
    };
    let unit = match view.unit() {
        Unit::Nanos => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    };
    file.message(1, &value_type(texts.number("samples"), texts.number("count")));
    file.message(1, &value_type(texts.number(event), texts.number(unit)));
    let mut rows: Vec<((u32, u32), Cost)> = vec![];
    let mut known: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    for sample in &view.samples {
        let row = *known.entry((sample.thread, sample.stack)).or_insert(rows.len());
        if row == rows.len() {
            rows.push(((sample.thread, sample.stack), Cost::default()));
        }
        rows[row].1.add(Cost::of(sample));
    }
    let mut places = Places::default();
    for ((thread, stack), cost) in rows {
        let mut row = Message::default();
        row.packed(1, places.of_stack(profile, stack).into_iter());
        row.packed(2, [cost.samples, cost.weight].into_iter());
        if let Some(thread) = profile.threads.get(thread as usize) {
            let name = texts.number(profile.texts.get(thread.name));
            row.label(texts.number("thread_name"), name, 0);
            row.label(texts.number("tid"), 0, thread.tid);
            row.label(texts.number("pid"), 0, thread.pid);
            let process = texts.number(profile.texts.get(thread.process));
            row.label(texts.number("process_name"), process, 0);
        }
        file.message(2, &row);
    }
    for (id, module) in (1u64..).zip(&profile.modules) {
        let mut mapping = Message::default();
        mapping.number(1, id);
        mapping.number(5, texts.number(profile.texts.get(module.path)));
        mapping.number(6, texts.number(profile.texts.get(module.id)));
        // Mark the mapping as symbolized, so that pprof does not search for symbols.
        (7..=10).for_each(|has| mapping.number(has, 1));
        file.message(3, &mapping);
    }
    let mut functions = Functions::default();
    for (id, frames) in (1u64..).zip(&places.all) {
        file.message(4, &location(profile, id, frames, &mut functions, &mut texts));
    }
    for (id, (name, source)) in (1u64..).zip(&functions.all) {
        let mut function = Message::default();
        function.number(1, id);
        // The system name stays empty: if it equals the name, pprof treats it as mangled and shows
        // an empty label for `<module>`.
        function.number(2, *name);
        function.number(4, *source);
        file.message(5, &function);
    }
    let about = &profile.about;
    file.number(9, (about.started_unix * 1e9).max(0.0) as u64);
    file.number(10, about.duration_ns);
    if about.rate > 0.0 && view.is_time() {
        file.message(11, &value_type(texts.number(event), texts.number(unit)));
        file.number(12, (1e9 / about.rate) as u64);
    }
    file.packed(13, [texts.number(name)].into_iter());
    file.number(14, texts.number(event));
    for text in &texts.all {
        file.bytes(6, text.as_bytes());
    }
    out.write_all(&file.0)
}

/// Locations: a frame and the frames inlined into it share one.
#[derive(Default)]
struct Places {
    all: Vec<Vec<u32>>,
    numbers: FxHashMap<Vec<u32>, u64>,
}

impl Places {
    /// The locations of a stack, innermost first.
    fn of_stack(&mut self, profile: &Profile, stack: u32) -> Vec<u64> {
        let mut places = vec![];
        let mut inlined: Vec<u32> = vec![];
        let frames = profile.frames_of(stack);
        let frames = frames.filter(|number| (*number as usize) < profile.frames.len());
        let mut frames = frames.peekable();
        while let Some(number) = frames.next() {
            inlined.push(number);
            let frame = profile.frames[number as usize];
            let is_within = frame.kind == FrameKind::Inlined
                && frames.peek().is_some_and(|outer| {
                    let outer = profile.frames[*outer as usize];
                    matches!(outer.kind, FrameKind::Native | FrameKind::Inlined)
                        && outer.module == frame.module
                });
            if !is_within {
                places.push(self.number(std::mem::take(&mut inlined)));
            }
        }
        places
    }

    fn number(&mut self, frames: Vec<u32>) -> u64 {
        *self.numbers.entry(frames).or_insert_with_key(|frames| {
            self.all.push(frames.clone());
            self.all.len() as u64
        })
    }
}

/// Functions by name and file, numbered from 1.
#[derive(Default)]
struct Functions {
    all: Vec<(u64, u64)>,
    numbers: FxHashMap<(u64, u64), u64>,
}

fn location(
    profile: &Profile,
    id: u64,
    frames: &[u32],
    functions: &mut Functions,
    texts: &mut Texts,
) -> Message {
    let mut location = Message::default();
    location.number(1, id);
    let Some(outer) = frames.last().and_then(|frame| profile.frames.get(*frame as usize)) else {
        return location;
    };
    if (outer.module as usize) < profile.modules.len() {
        location.number(2, u64::from(outer.module) + 1);
    }
    location.number(3, outer.address);
    for frame in frames {
        let Some(frame) = profile.frames.get(*frame as usize) else { continue };
        let name = function_name(profile, frame);
        let function = (texts.number(&name), texts.number(profile.texts.get(frame.file)));
        let function = *functions.numbers.entry(function).or_insert_with(|| {
            functions.all.push(function);
            functions.all.len() as u64
        });
        let mut line = Message::default();
        line.number(1, function);
        line.number(2, u64::from(frame.line));
        location.message(4, &line);
    }
    location
}

/// pprof shows only an address for a location without a function, so it gets our label.
fn function_name(profile: &Profile, frame: &Frame) -> String {
    match profile.texts.get(frame.function) {
        "" => frame_label(profile, frame),
        name => name.to_owned(),
    }
}

fn value_type(kind: u64, unit: u64) -> Message {
    let mut message = Message::default();
    message.number(1, kind);
    message.number(2, unit);
    message
}

/// String table. The first string is empty.
struct Texts {
    all: Vec<String>,
    numbers: FxHashMap<String, u64>,
}

impl Default for Texts {
    fn default() -> Texts {
        let numbers = FxHashMap::from_iter([(String::new(), 0)]);
        Texts { all: vec![String::new()], numbers }
    }
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Builds a Protocol Buffers message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Writes a number. 0 is the default and is omitted.
    fn number(&mut self, field: u64, number: u64) {
        if number != 0 {
            self.varint(field << 3);
            self.varint(number);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn packed(&mut self, field: u64, numbers: impl Iterator<Item = u64>) {
        let mut block = Message::default();
        numbers.for_each(|number| block.varint(number));
        self.message(field, &block);
    }

    fn label(&mut self, key: u64, text: u64, number: u32) {
        let mut label = Message::default();
        label.number(1, key);
        label.number(2, text);
        label.number(3, u64::from(number));
        self.message(3, &label);
    }
}
