//! Random malformed files, for comparing a reader with a plain JSON parser.

use crate::Rng;
use crate::json::{Json, Layout};

/// A trace with `events` random events that is valid JSON but difficult to scan: brackets and quotes inside
/// strings, runs of backslashes, missing keys, keys in any order, IDs of every kind, nested junk, and a
/// layout that depends on the seed.
pub fn random_trap(seed: u64, events: usize) -> String {
    let mut rng = Rng::new(seed);
    let events: Vec<Json> = (0..events).map(|_| event(&mut rng)).collect();
    let mut keys = vec![
        ("schemaVersion".to_owned(), Json::Int(1)),
        ("traceEvents".to_owned(), Json::List(events)),
        ("z".to_owned(), Json::list([junk(&mut rng)])),
    ];
    if rng.percent(30) {
        rng.shuffle(&mut keys);
    }
    let layout = *rng.pick(&LAYOUTS);
    let mut text = String::new();
    layout.write(&Json::Map(keys), 0, &mut text);
    text
}

/// Truncates `bytes`, or changes, duplicates or removes a few of them.
pub fn damage(seed: u64, bytes: &mut Vec<u8>) {
    let mut rng = Rng::new(seed);
    for _ in 0..rng.between(1, 4) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(5) {
            0 => bytes.truncate(at),
            1 => bytes[at] = rng.bits() as u8,
            2 => bytes[at] = *rng.pick(b"\"\\{}[],:\n\x00\xff"),
            3 => drop(bytes.drain(at..(at + rng.below(40) as usize).min(bytes.len()))),
            _ => bytes.insert(at, *rng.pick(b"\"\\{}[],:\n\x00\xff")),
        }
    }
}

const LAYOUTS: [Layout; 5] = [
    Layout { comma: ",", colon: ":", indent: None, ascii: true },
    Layout { comma: ", ", colon: ": ", indent: None, ascii: true },
    Layout { comma: ",", colon: ": ", indent: Some(2), ascii: true },
    Layout { comma: ",", colon: ": ", indent: Some(1), ascii: false },
    Layout { comma: " ,\t", colon: " : ", indent: None, ascii: false },
];

fn event(rng: &mut Rng) -> Json {
    let categories = [
        "kernel",
        "cuda_runtime",
        "cpu_op",
        "python_function",
        "user_annotation",
        "ac2g",
        "gpu_memcpy",
        "odd",
    ];
    let mut entries = vec![
        ("ph".to_owned(), Json::text(*rng.pick(&["X", "X", "X", "X", "i"]))),
        ("cat".to_owned(), Json::text(*rng.pick(&categories))),
        ("name".to_owned(), Json::text(name(rng))),
        (
            "pid".to_owned(),
            rng.pick(&[
                Json::Int(1),
                Json::Int(2),
                Json::Int(-1),
                Json::text("Spans"),
                Json::Int(542),
            ])
            .clone(),
        ),
        ("tid".to_owned(), thread(rng)),
        ("ts".to_owned(), time(rng)),
        ("dur".to_owned(), duration(rng)),
    ];
    if rng.percent(80) {
        entries.push(("args".to_owned(), arguments(rng)));
    }
    if rng.percent(5) {
        entries.push(("id".to_owned(), Json::Int(i128::from(rng.below(10)))));
    }
    if rng.percent(5) {
        rng.shuffle(&mut entries);
    }
    if rng.percent(5) {
        entries.retain(|_| rng.percent(80));
    }
    Json::Map(entries)
}

fn arguments(rng: &mut Rng) -> Json {
    let mut entries = Vec::new();
    for key in [
        "External id",
        "correlation",
        "stream",
        "device",
        "Python id",
        "Python parent id",
        "bytes",
        "grid",
    ] {
        if rng.percent(60) {
            entries.push((key.to_owned(), id(rng)));
        }
    }
    for nth in 0..rng.below(4) {
        entries.push((format!("j{nth}"), junk(rng)));
    }
    if rng.percent(50) {
        rng.shuffle(&mut entries);
    }
    Json::Map(entries)
}

fn name(rng: &mut Rng) -> String {
    match rng.below(8) {
        0 => "aten::mm".into(),
        1 => format!("k<{}>", rng.below(30)),
        2 => format!("f.py({}): g", rng.below(50)),
        3 => "n".repeat(rng.below(200) as usize),
        4 => nasty(rng),
        5 => "k\"q".into(),
        6 => "k".into(),
        _ => "plain".into(),
    }
}

/// A string that looks like JSON structure to a scanner that has lost track of strings.
fn nasty(rng: &mut Rng) -> String {
    match rng.below(14) {
        0 => "},{\"ph\":\"X\"".into(),
        1 => "ends with \\".into(),
        2 => "\\".repeat(rng.below(70) as usize),
        3 => "q\"q".into(),
        4 => "\\\"".into(),
        5 => "\",\"name\":\"x".into(),
        6 => "é ü 漢 😀".into(),
        7 => "[{".into(),
        8 => "}]".into(),
        9 => "x".repeat(rng.below(150) as usize),
        10 => "{\"ph\": \"X\", \"cat\": \"kernel\"}, {\"ph\": \"X\"".into(),
        11 => "\n  },\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\"".into(),
        12 => "tab\there, bell\u{7}".into(),
        _ => "\"traceEvents\": [".into(),
    }
}

fn junk(rng: &mut Rng) -> Json {
    match rng.below(14) {
        0 => Json::Int(1),
        1 => Json::raw("-2.5"),
        2 => Json::raw("1e-09"),
        3 => Json::Null,
        4 => Json::Bool(rng.percent(50)),
        5 => Json::list([Json::text(nasty(rng)), Json::text(nasty(rng))]),
        6 => Json::list([
            Json::map([("a", Json::text(nasty(rng)))]),
            Json::map([("ph", Json::text("X")), ("name", Json::text(nasty(rng)))]),
            Json::map([(
                "b",
                Json::map([("c", Json::list([Json::Int(1), Json::map::<&str>([])]))]),
            )]),
        ]),
        7 => Json::map::<&str>([]),
        8 => Json::list([]),
        9 => Json::map([("correlation", Json::Int(99))]),
        10 => Json::Int(12_345_678_901_234_567_890),
        11 => Json::map([(nasty(rng), Json::text(nasty(rng)))]),
        _ => Json::text(nasty(rng)),
    }
}

fn thread(rng: &mut Rng) -> Json {
    match rng.below(7) {
        0 => Json::Int(4_294_967_295),
        1 => Json::Int(-3),
        2 => Json::text("stream 7"),
        3 => Json::text(""),
        4 => Json::Null,
        5 => Json::Int(542),
        _ => Json::Int(7),
    }
}

fn id(rng: &mut Rng) -> Json {
    if rng.percent(80) {
        return Json::Int(i128::from(rng.below(10_000_000)));
    }
    match rng.below(8) {
        0 => Json::Int(i128::from(rng.below(10))),
        1 => Json::Int(4_294_967_295),
        2 => Json::Int(4_294_967_294),
        3 => Json::Int((1 << 33) + 5),
        4 => Json::Int(-1),
        5 => Json::Null,
        6 => Json::text("0x0"),
        _ => Json::Int(i128::from(rng.below(1_000_000_000))),
    }
}

fn time(rng: &mut Rng) -> Json {
    match rng.below(3) {
        0 => Json::Int(i128::from(rng.below(2_000_000_000_000_000))),
        1 => Json::raw(format!("{}.{}", rng.below(10_000), rng.between(1, 9))),
        _ => Json::raw(format!("{}.{:03}", rng.below(2_000_000_000_000), rng.below(1000))),
    }
}

fn duration(rng: &mut Rng) -> Json {
    match rng.below(6) {
        0 => Json::Int(0),
        1 => Json::raw("0.03"),
        2 => Json::raw("5.5"),
        3 => Json::raw("12.345"),
        4 => Json::Int(i128::from(rng.below(1_000_000_000))),
        _ => Json::raw(format!("{}.{:03}", rng.below(9_000), rng.below(1000))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_malformed_traces_are_json() {
        for seed in 0..300 {
            let text = random_trap(seed, 40);
            let value: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
            assert_eq!(value["traceEvents"].as_array().map(Vec::len), Some(40));
        }
    }

    #[test]
    fn damage_changes_the_bytes() {
        let whole = random_trap(1, 5).into_bytes();
        let damaged = (0..500).filter(|seed| {
            let mut bytes = whole.clone();
            damage(*seed, &mut bytes);
            bytes != whole
        });
        assert!(damaged.count() > 450);
        damage(1, &mut Vec::new());
    }
}
