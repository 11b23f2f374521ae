//! Malformed traces, one problem per file, small enough to read.

#![allow(clippy::needless_pass_by_value, reason = "events are made where they are passed")]

use super::{Found, Sample};
use crate::json::Json;
use crate::kineto::{self, Gpu, Recipe};
use crate::{Style, compress};

/// All malformed traces.
pub fn traps() -> Vec<Sample> {
    let mut samples = vec![
        truncated(),
        truncated_gz(),
        invalid_utf8(),
        control_characters(),
        unescaped_quotes(),
        not_numbers(),
        huge_ids(),
        duplicate_keys(),
        odd_tracks(),
        odd_durations(),
        unsorted(),
        cpu_only(),
        several_gpus(),
        empty(),
        capitalised(),
        nameless(),
        escapes(),
        deep(),
        decoy_array(),
        not_objects(),
        unknown_keys(),
        structure_in_texts(),
        begin_end(),
        counters(),
    ];
    samples.push(
        Draft::new()
            .ordinary(3)
            .sample("no-device-properties.json", "no `deviceProperties` and no other metadata"),
    );
    samples.push(
        Draft::new()
            .add(kernel(&"k".repeat(5 * 1024), 1_000, 250))
            .found_kernel(250)
            .ordinary(1)
            .sample("long-name.json", "kernel name of 5 KB"),
    );
    samples
}

/// Builder of a file with one event per line, and of its expected counts.
#[derive(Default)]
struct Draft {
    head: String,
    events: Vec<Vec<u8>>,
    tail: String,
    found: Found,
}

impl Draft {
    fn new() -> Draft {
        Draft {
            head: "{\"schemaVersion\": 1, \"traceEvents\": [".into(),
            tail: "]}".into(),
            ..Draft::default()
        }
    }

    fn add(self, event: Json) -> Draft {
        self.add_raw(event.write(Style::Spaced, 0).into_bytes())
    }

    fn add_raw(mut self, event: impl Into<Vec<u8>>) -> Draft {
        self.events.push(event.into());
        self.found.events += 1;
        self
    }

    /// Marks the last event as a kernel with this duration.
    fn found_kernel(mut self, nanos: u64) -> Draft {
        self.found.kernels += 1;
        self.found.kernel_ns += nanos;
        self
    }

    /// Marks the last element as not an event.
    fn found_nothing(mut self) -> Draft {
        self.found.events -= 1;
        self
    }

    /// Ordinary events: an operator with a launch in it, and its kernel.
    fn ordinary(mut self, times: i64) -> Draft {
        for nth in 0..times {
            let at = 1_000_000 + 20_000 * nth;
            self = self.add(span(
                "cpu_op",
                "aten::mul",
                at,
                9_000,
                HOST,
                [("External id", Json::Int(i128::from(nth) + 1))],
            ));
            self = self.add(span(
                "cuda_runtime",
                "cudaLaunchKernel",
                at + 1_000,
                5_000,
                HOST,
                [("correlation", Json::Int(i128::from(nth) + 501))],
            ));
            self = self
                .add(span(
                    "kernel",
                    "scale(float*)",
                    at + 8_000,
                    3_217,
                    DEVICE,
                    device_args(i128::from(nth) + 501),
                ))
                .found_kernel(3_217);
        }
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone().into_bytes();
        bytes.push(b'\n');
        bytes.extend(self.events.join(&b",\n"[..]));
        bytes.push(b'\n');
        bytes.extend(self.tail.as_bytes());
        bytes.push(b'\n');
        bytes
    }

    fn sample(self, name: &str, about: &str) -> Sample {
        Sample {
            name: name.into(),
            about: about.into(),
            bytes: self.bytes(),
            found: Some(self.found),
        }
    }
}

/// Process and thread of host events and of device events.
const HOST: [i128; 2] = [4021, 4021];
const DEVICE: [i128; 2] = [0, 7];

fn span<'a>(
    cat: &str,
    name: &str,
    start: i64,
    dur: i64,
    [pid, tid]: [i128; 2],
    args: impl IntoIterator<Item = (&'a str, Json)>,
) -> Json {
    Json::map([
        ("ph", Json::text("X")),
        ("cat", Json::text(cat)),
        ("name", Json::text(name)),
        ("pid", Json::Int(pid)),
        ("tid", Json::Int(tid)),
        ("ts", micros(start)),
        ("dur", micros(dur)),
        ("args", Json::map(args)),
    ])
}

fn kernel(name: &str, start: i64, dur: i64) -> Json {
    span("kernel", name, start, dur, DEVICE, device_args(7))
}

fn device_args(correlation: i128) -> [(&'static str, Json); 3] {
    [("device", Json::Int(0)), ("stream", Json::Int(7)), ("correlation", Json::Int(correlation))]
}

fn micros(nanos: i64) -> Json {
    let sign = if nanos < 0 { "-" } else { "" };
    Json::raw(format!("{sign}{}.{:03}", nanos.unsigned_abs() / 1000, nanos.unsigned_abs() % 1000))
}

/// The event with another value for a key.
fn with(event: Json, key: &str, value: Json) -> Json {
    match event {
        Json::Map(entries) => Json::Map(
            entries
                .into_iter()
                .map(|(k, v)| if k == key { (k, value.clone()) } else { (k, v) })
                .collect(),
        ),
        other => other,
    }
}

fn truncated() -> Sample {
    let draft = Draft::new().ordinary(4);
    let found = draft.found;
    let mut bytes = draft.add(kernel("this event is cut", 9_000_000, 100)).bytes();
    bytes.truncate(bytes.len() - 40);
    Sample {
        name: "truncated.json".into(),
        about: "ends in the middle of the last event".into(),
        bytes,
        found: Some(found),
    }
}

fn truncated_gz() -> Sample {
    let (text, _) = kineto::text(&Recipe::new(50_000, Gpu::Nvidia));
    // Compressing to memory cannot fail. If it did, tests would fail on the empty file.
    let mut bytes = compress::gz(text.as_bytes(), 1).unwrap_or_default();
    bytes.truncate(bytes.len() * 6 / 10);
    Sample {
        name: "truncated.json.gz".into(),
        about: "compressed trace without its last two fifths".into(),
        bytes,
        found: None,
    }
}

fn invalid_utf8() -> Sample {
    let mut bad = kernel("NAME", 1_000, 250).write(Style::Spaced, 0).into_bytes();
    if let Some(at) = bad.windows(4).position(|window| window == b"NAME") {
        bad.splice(at..at + 4, *b"caf\xe9 \xf0\x28\x8c\xbc \xff");
    }
    Draft::new()
        .add_raw(bad)
        .found_kernel(250)
        .ordinary(2)
        .sample("invalid-utf8.json", "name that is not valid UTF-8")
}

fn control_characters() -> Sample {
    let raw = |name: &str| with(kernel("", 1_000, 250), "name", Json::raw(format!("\"{name}\"")));
    Draft::new()
        .add(raw("two\nlines"))
        .found_kernel(250)
        .add(raw("\u{1}start of heading"))
        .found_kernel(250)
        .add(raw("a\ttab, a return\r and a \u{1b}[31mcolour"))
        .found_kernel(250)
        .ordinary(2)
        .sample("control-characters.json", "raw newlines, tabs and escape characters in names")
}

fn unescaped_quotes() -> Sample {
    let raw = |name: &str| with(kernel("", 1_000, 250), "name", Json::raw(format!("\"{name}\"")));
    Draft::new()
        .add(raw("launch<\"fast\">(int)"))
        .found_kernel(250)
        .ordinary(1)
        .add(raw("ends with a quote\""))
        .found_kernel(250)
        .ordinary(1)
        .sample("unescaped-quotes.json", "unescaped quotes in names")
}

fn not_numbers() -> Sample {
    let mut draft = Draft::new();
    for word in ["NaN", "Infinity", "-Infinity"] {
        draft = draft.add(with(kernel("no time", 1_000, 250), "ts", Json::raw(word)));
        draft = draft
            .add(with(kernel("no duration", 1_000, 250), "dur", Json::raw(word)))
            .found_kernel(0);
    }
    draft.ordinary(2).sample("not-numbers.json", "NaN, Infinity and -Infinity as `ts` and as `dur`")
}

fn huge_ids() -> Sample {
    let ids = [
        i128::from(i64::MAX),
        i128::from(i64::MAX) + 1,
        i128::from(u64::MAX),
        i128::from(u64::MAX) + 1,
        i128::from(i64::MIN),
        i128::from(i64::MIN) - 1,
        1 << 100,
    ];
    let mut draft = Draft::new();
    for (nth, id) in (0..).zip(ids) {
        let args = [
            ("External id", Json::Int(id)),
            ("correlation", Json::Int(id)),
            ("Comms Id", Json::Int(id)),
        ];
        draft = draft.add(span(
            "cuda_runtime",
            "cudaLaunchKernel",
            1_000 + 100 * nth,
            50,
            HOST,
            args.clone(),
        ));
        draft = draft
            .add(span("kernel", "scale(float*)", 5_000 + 300 * nth, 250, DEVICE, args))
            .found_kernel(250);
    }
    draft.sample("huge-ids.json", "IDs beyond 64 bits, signed and unsigned")
}

fn duplicate_keys() -> Sample {
    let Json::Map(mut entries) = kernel("the first name", 1_000, 250) else {
        unreachable!("an event is an object")
    };
    entries.push(("name".into(), Json::text("the last name")));
    entries.push(("dur".into(), micros(750)));
    Draft::new()
        .add(Json::Map(entries))
        .found_kernel(750)
        .ordinary(1)
        .sample("duplicate-keys.json", "repeated keys: the last one counts, as in other parsers")
}

fn odd_tracks() -> Sample {
    let ids = [
        Json::text("stream 7"),
        Json::text("0x0"),
        Json::Int(-1),
        Json::Int(4_294_967_295),
        Json::text("25738"),
        Json::text(""),
        Json::Null,
    ];
    let mut draft = Draft::new();
    for (nth, id) in (0..).zip(ids) {
        let args = [
            ("device", Json::Int(9)),
            ("stream", id.clone()),
            ("correlation", Json::Int(i128::from(nth))),
        ];
        draft = draft
            .add(with(
                span("kernel", "scale(float*)", 5_000 + 300 * nth, 250, DEVICE, args),
                "tid",
                id,
            ))
            .found_kernel(250);
    }
    draft
        .sample("odd-tracks.json", "thread and stream IDs that are strings, negative, huge or null")
}

fn odd_durations() -> Sample {
    Draft::new()
        .add(kernel("zero", 1_000, 0))
        .found_kernel(0)
        .add(kernel("negative", 2_000, -5_000))
        .found_kernel(0)
        .add(with(kernel("whole", 3_000, 0), "dur", Json::Int(12)))
        .found_kernel(12_000)
        .add(with(kernel("one decimal", 50_000, 0), "dur", Json::raw("0.5")))
        .found_kernel(500)
        .add(with(kernel("exponent", 60_000, 0), "dur", Json::raw("1.25e1")))
        .found_kernel(12_500)
        .add(with(kernel("text", 90_000, 0), "dur", Json::text("long")))
        .found_kernel(0)
        .sample(
            "odd-durations.json",
            "durations that are zero, negative, integers, strings, or have an exponent",
        )
}

fn unsorted() -> Sample {
    let mut draft = Draft::new();
    for start in [9_000, 1_000, 5_000, 5_100, 4_900, 1_000] {
        draft = draft.add(kernel("overlaps", start, 2_000)).found_kernel(2_000);
        draft = draft.add(span("cpu_op", "aten::mul", start - 900, 1_500, HOST, []));
    }
    draft.sample("unsorted.json", "unsorted events that overlap on one stream and one thread")
}

fn cpu_only() -> Sample {
    let mut draft = Draft::new();
    for nth in 0..5 {
        draft = draft.add(span(
            "cpu_op",
            "aten::mul",
            1_000 + 3_000 * nth,
            2_000,
            HOST,
            [("External id", Json::Int(1))],
        ));
    }
    draft.sample("cpu-only.json", "trace without device operations")
}

fn several_gpus() -> Sample {
    let mut draft = Draft::new();
    draft.head = "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100\"}, {\"id\": 1, \"name\": \"\"}, {\"id\": 2}], \"traceEvents\": [".into();
    for device in 0..4 {
        let args = [
            ("device", Json::Int(device)),
            ("stream", Json::Int(7)),
            ("correlation", Json::Int(device)),
        ];
        draft = draft
            .add(span("kernel", "scale(float*)", 1_000, 250, [device, 7], args))
            .found_kernel(250);
    }
    draft.sample(
        "several-gpus.json",
        "one process with four devices, one of them without properties",
    )
}

fn empty() -> Sample {
    let mut draft = Draft::new();
    draft.tail = "], \"traceName\": \"empty\"}".into();
    draft.sample("empty-events.json", "trace without events")
}

fn capitalised() -> Sample {
    let text = |text: &str| Json::text(text);
    let event = |cat: &str, name: &str, tid: &str, at: i64, id: i128| {
        let args = [
            ("external id", Json::Int(id)),
            ("correlation", Json::Int(id)),
            ("stream", Json::Int(7)),
            ("device", Json::Int(0)),
        ];
        with(
            with(span(cat, name, at, 3_000, DEVICE, args), "tid", text(tid)),
            "ts",
            Json::Int(i128::from(1_621_401_187_000_000 + at / 1000)),
        )
    };
    Draft::new()
        .add(event("Operator", "aten::mul", "25738", 1_000, 1))
        .add(event("Runtime", "cudaLaunchKernel", "25738", 2_000, 2))
        .add(event("Kernel", "scale(float*)", "stream 7", 9_000, 2))
        .found_kernel(3_000)
        .add(event("Memcpy", "Memcpy HtoD (Pageable -> Device)", "stream 7", 13_000, 3))
        .add(event("Memset", "Memset (Device)", "stream 7", 17_000, 4))
        .sample("capitalised.json", "categories and IDs as written in traces of 2021")
}

fn nameless() -> Sample {
    let without = |event: Json, key: &str| match event {
        Json::Map(entries) => Json::Map(entries.into_iter().filter(|(k, _)| k != key).collect()),
        other => other,
    };
    Draft::new()
        .add(without(kernel("", 1_000, 250), "name"))
        .found_kernel(250)
        .add(with(kernel("", 2_000, 250), "name", Json::Null))
        .found_kernel(250)
        .add(without(kernel("no arguments", 3_000, 250), "args"))
        .found_kernel(250)
        .add(without(kernel("no category", 4_000, 250), "cat"))
        .add(without(kernel("no phase", 5_000, 250), "ph"))
        .add(Json::map::<&str>([]))
        .ordinary(1)
        .sample(
            "missing-keys.json",
            "events without name, arguments, category or phase; an empty event",
        )
}

fn escapes() -> Sample {
    let escaped = r#"{"\u0070h": "X", "c\u0061t": "k\u0065rnel", "name": "caf\u00e9 \ud83d\ude00 \/ \"quoted\" \\ \b\f\n\r\t \ud800", "pid": 0, "tid": 7, "\u0074s": 1.000, "d\u0075r": 0.250, "args": {"corr\u0065lation": 7}}"#;
    Draft::new()
        .add_raw(escaped)
        .found_kernel(250)
        .ordinary(1)
        .sample("escapes.json", "\\u escapes in names, values and keys, and an unpaired surrogate")
}

fn deep() -> Sample {
    const LEVELS: usize = 10_000;
    let nested = |open: &str, close: &str| {
        Json::raw(format!("{}{}", open.repeat(LEVELS), close.repeat(LEVELS)))
    };
    Draft::new()
        .add(span("kernel", "arrays", 1_000, 250, DEVICE, [("deep", nested("[", "]"))]))
        .found_kernel(250)
        .add(span(
            "kernel",
            "objects",
            2_000,
            250,
            DEVICE,
            [("deep", nested("{\"a\":", "}").tie())],
        ))
        .found_kernel(250)
        .ordinary(1)
        .sample("deep.json", "10,000 nested arrays and objects in the arguments of an event")
}

impl Json {
    /// Sets the value of the innermost nested object.
    fn tie(self) -> Json {
        match self {
            Json::Raw(text) => Json::Raw(text.replacen(":}", ":0}", 1)),
            other => other,
        }
    }
}

fn decoy_array() -> Sample {
    let mut draft = Draft::new().ordinary(2);
    draft.head = "{\"note\": \"\\\"traceEvents\\\": [{\\\"ph\\\": \\\"X\\\"}]\", \"inner\": {\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"decoy\", \"ts\": 1, \"dur\": 1}]}, \"list\": [\"traceEvents\", [{\"traceEvents\": []}]], \"traceEvents\": [".into();
    draft.sample(
        "decoy-array.json",
        "`traceEvents` inside a string and inside another object, before the real one",
    )
}

fn not_objects() -> Sample {
    let mut draft = Draft::new().ordinary(1);
    for element in
        ["null", "3", "\"x\"", "[]", "true", "[{\"ph\": \"X\", \"cat\": \"kernel\"}]", "-0.5e-3"]
    {
        draft = draft.add_raw(element).found_nothing();
    }
    draft.ordinary(1).sample("not-objects.json", "elements of the event array that are not objects")
}

fn unknown_keys() -> Sample {
    let mut draft = Draft::new().ordinary(2);
    draft.head = "{\"metadata\": {\"errors\": {}, \"system\": {\"libc\": [\"glibc\", \"2.35\"], \"args\": {\"deep\": [[1, {\"a\": null}]]}}}, \"INFO\": [\"INFO:2025 [x] \\\"quoted\\\"\", \"}\"], \"tw_job\": \"a/b\", \"rate\": 1.5e-3, \"nothing\": null, \"traceEvents\": [".into();
    draft.tail = "], \"mast_version\": 3, \"more\": {\"traceEvents\": []}, \"ERROR\": []}".into();
    draft.sample(
        "unknown-keys.json",
        "unknown top-level keys with nested values, before and after the events",
    )
}

fn structure_in_texts() -> Sample {
    let texts = [
        "},{\"ph\":\"X\",\"cat\":\"kernel\"",
        "]}",
        "{[",
        "ends with \\",
        "\\\\\"",
        "\n  },\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\"",
        "\"dur\": 99",
    ];
    let mut draft = Draft::new();
    for (nth, text) in (0..).zip(texts) {
        let args = [
            ("note", Json::text(text)),
            ("list", Json::list([Json::text(text), Json::map([(text, Json::text(text))])])),
            ("correlation", Json::Int(7)),
        ];
        draft =
            draft.add(span("kernel", text, 1_000 + 300 * nth, 250, DEVICE, args)).found_kernel(250);
    }
    draft.sample(
        "structure-in-texts.json",
        "braces, quotes, backslashes and whole events inside strings",
    )
}

fn begin_end() -> Sample {
    let mark = |phase: &str, at: i64| {
        Json::map([
            ("ph", Json::text(phase)),
            ("cat", Json::text("kernel")),
            ("name", Json::text("scale(float*)")),
            ("pid", Json::Int(0)),
            ("tid", Json::Int(7)),
            ("ts", micros(at)),
        ])
    };
    Draft::new()
        .add(mark("B", 1_000))
        .add(mark("E", 3_000))
        .add(mark("b", 4_000))
        .add(mark("e", 5_000))
        .ordinary(1)
        .sample("begin-end.json", "begin and end events, which PyTorch does not write")
}

fn counters() -> Sample {
    let counter = |at: i64, value: i128| {
        Json::map([
            ("ph", Json::text("C")),
            ("name", Json::text("GPU 0 memory")),
            ("pid", Json::Int(0)),
            ("tid", Json::Null),
            ("ts", micros(at)),
            (
                "args",
                Json::map([("allocated", Json::Int(value)), ("reserved", Json::Int(2 * value))]),
            ),
        ])
    };
    Draft::new()
        .add(counter(1_000, 512))
        .add(counter(2_000, 1024))
        .ordinary(1)
        .sample("counters.json", "counter events")
}
