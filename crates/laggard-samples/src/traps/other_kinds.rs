//! Files that are not traces, some of which start like one.

use super::Sample;
use crate::json::Json;
use crate::{Rng, Style};

/// Files of other kinds, which must be rejected by their kind.
pub fn not_traces() -> Vec<Sample> {
    let sample = |name: &str, about: &str, bytes: Vec<u8>| Sample {
        name: name.into(),
        about: about.into(),
        bytes,
        found: None,
    };
    vec![
        sample(
            "chakra.json",
            "execution graph of PyTorch's graph observer: nodes, no events",
            chakra(),
        ),
        sample(
            "rocprof.json",
            "JSON of a ROCm profiler: buffer records, no `traceEvents`",
            rocprof(),
        ),
        sample("speedscope.json", "speedscope profile", speedscope()),
        sample("numbers.json", "list of numbers", numbers()),
        sample("empty.json", "empty file", Vec::new()),
        sample(
            "text.json",
            "plain text",
            b"Step 1 of 20: loss 4.31, 1021 tokens/s\nStep 2 of 20: loss 4.29\n".to_vec(),
        ),
        sample(
            "image.json",
            "header of a PNG image",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x02\0\0\0".to_vec(),
        ),
        sample("object.json", "empty object", b"{}".to_vec()),
        sample(
            "events-is-number.json",
            "`traceEvents` is not an array",
            b"{\"schemaVersion\": 1, \"traceEvents\": 12}\n".to_vec(),
        ),
    ]
}

fn chakra() -> Vec<u8> {
    let attribute = |name: &str, value: Json| {
        Json::map([("name", Json::text(name)), ("type", Json::text("uint64")), ("value", value)])
    };
    let node = |id: i128| {
        Json::map([
            ("id", Json::Int(id)),
            (
                "name",
                Json::text(if id == 1 {
                    "[pytorch|profiler|execution_trace|process]"
                } else {
                    "aten::add"
                }),
            ),
            ("ctrl_deps", Json::Int(id - 1)),
            (
                "inputs",
                Json::map([
                    ("values", Json::list([])),
                    ("shapes", Json::list([])),
                    ("types", Json::list([])),
                ]),
            ),
            (
                "outputs",
                Json::map([
                    ("values", Json::list([])),
                    ("shapes", Json::list([])),
                    ("types", Json::list([])),
                ]),
            ),
            (
                "attrs",
                Json::list([attribute("rf_id", Json::Int(id)), attribute("tid", Json::Int(1))]),
            ),
        ])
    };
    Json::map([
        ("schema", Json::text("1.1.1-chakra.0.0.4")),
        ("pid", Json::Int(4021)),
        ("time", Json::text("2025-08-01 12:00:00")),
        ("start_ts", Json::Int(118_421)),
        ("nodes", Json::list((1..6).map(node))),
    ])
    .write(Style::Indent2, 0)
    .into_bytes()
}

fn rocprof() -> Vec<u8> {
    let dispatch = |id: i128| {
        Json::map([
            ("size", Json::Int(160)),
            ("kind", Json::Int(11)),
            (
                "correlation_id",
                Json::map([("internal", Json::Int(id)), ("external", Json::Int(0))]),
            ),
            ("start_timestamp", Json::Int(1_184_213_000_000_000 + 5_000 * id)),
            ("end_timestamp", Json::Int(1_184_213_000_003_000 + 5_000 * id)),
        ])
    };
    let buffers = Json::map([
        ("kernel_dispatch", Json::list((1..4).map(dispatch))),
        ("hip_api", Json::list([])),
    ]);
    let tool = Json::map([
        (
            "metadata",
            Json::map([("pid", Json::Int(4021)), ("command", Json::list([Json::text("./app")]))]),
        ),
        (
            "kernel_symbols",
            Json::list([Json::map([
                ("kernel_id", Json::Int(1)),
                ("formatted_kernel_name", Json::text("scale(float*)")),
            ])]),
        ),
        ("buffer_records", buffers),
    ]);
    Json::map([("rocprofiler-sdk-tool", Json::list([tool]))]).write(Style::Spaced, 0).into_bytes()
}

fn speedscope() -> Vec<u8> {
    let frame = |name: &str| Json::map([("name", Json::text(name))]);
    let profile = Json::map([
        ("type", Json::text("sampled")),
        ("name", Json::text("main")),
        ("unit", Json::text("milliseconds")),
        ("startValue", Json::Int(0)),
        ("endValue", Json::Int(20)),
        (
            "samples",
            Json::list([Json::list([Json::Int(0)]), Json::list([Json::Int(0), Json::Int(1)])]),
        ),
        ("weights", Json::list([Json::Int(10), Json::Int(10)])),
    ]);
    Json::map([
        ("$schema", Json::text("https://www.speedscope.app/file-format-schema.json")),
        ("shared", Json::map([("frames", Json::list([frame("main"), frame("work")]))])),
        ("profiles", Json::list([profile])),
    ])
    .write(Style::Compact, 0)
    .into_bytes()
}

fn numbers() -> Vec<u8> {
    let mut rng = Rng::new(3);
    Json::list((0..200).map(|_| Json::Int(i128::from(rng.below(100_000)))))
        .write(Style::Spaced, 0)
        .into_bytes()
}
