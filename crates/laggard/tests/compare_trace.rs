//! `laggard compare` of traces: all formats, `--fail-above`, labels, phases, ranks and errors.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::Place;
use laggard_samples::pairs::{Planted, pair};
use serde_json::Value;

fn place(planted: Planted, steps: u64) -> Place {
    let place = Place::with(&[]);
    let made = pair(planted, steps, 1);
    std::fs::write(place.path("a.json"), made.a).unwrap();
    std::fs::write(place.path("b.json"), made.b).unwrap();
    place
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.data(args)).unwrap()
}

/// Asserts that all numbers are finite, and counts them.
fn numbers(value: &Value, seen: &mut usize) {
    match value {
        Value::Number(number) => {
            *seen += 1;
            assert!(number.as_f64().unwrap().is_finite());
        }
        Value::Array(all) => all.iter().for_each(|one| numbers(one, seen)),
        Value::Object(all) => all.values().for_each(|one| numbers(one, seen)),
        _ => {}
    }
}

#[test]
fn prints_the_verdict_first_in_every_format() {
    let place = place(Planted::SlowClass, 8);
    let text = place.data(&["compare", "a.json", "b.json"]);
    assert!(text.starts_with("B lags A: "), "{text}");
    let why = text.find("same-kernel-slower  Attention (Backward)").unwrap();
    assert!(why < text.find("Operations by class").unwrap());
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains("→")), "{text}");
    let found = json(&place, &["compare", "--json", "a.json", "b.json"]);
    assert_eq!(found["schema"], "laggard.compare-trace/1");
    assert_eq!(found["culprits"][0]["kind"], "same-kernel-slower");
    let mut seen = 0;
    numbers(&found, &mut seen);
    assert!(seen > 1000);
    let csv = place.data(&["compare", "--format", "csv", "a.json", "b.json"]);
    assert!(csv.starts_with("by,name,class,"), "{csv}");
    assert!(csv.contains("class,Attention (Backward),"), "{csv}");
    for (flag, header) in [("--layers", "layer_a,layer_b,name,"), ("--fusion", "fused_by,fused,")] {
        let csv = place.data(&["compare", flag, "--format", "csv", "a.json", "b.json"]);
        assert!(csv.starts_with(header), "{csv}");
    }
    let csv = place.data(&["compare", "--by", "kernel", "--format", "csv", "a.json", "b.json"]);
    assert!(csv.contains("kernel,\"void flash"), "{csv}");
    let markdown = place.data(&["compare", "--format", "md", "a.json", "b.json"]);
    assert!(markdown.contains("## Why") && markdown.contains("| diff."), "{markdown}");
    // The result is the same with the indexes written by the first run.
    assert!(place.names().contains(&"a.json.lagi".to_owned()));
    assert_eq!(json(&place, &["compare", "--json", "--no-index", "a.json", "b.json"]), found);
}

#[test]
fn fail_above_trips_on_detectable_regressions() {
    let slow = place(Planted::SlowClass, 8);
    // The step lags by 3 %.
    assert_eq!(slow.run(&["compare", "--fail-above", "1%", "a.json", "b.json"]).code, Some(1));
    assert_eq!(slow.run(&["compare", "--fail-above", "10%", "a.json", "b.json"]).code, Some(0));
    assert_eq!(slow.run(&["compare", "--fail-above", "0%", "b.json", "a.json"]).code, Some(0));
    let noise = place(Planted::Noise, 8);
    assert_eq!(noise.run(&["compare", "--fail-above", "0%", "a.json", "b.json"]).code, Some(0));
}

#[test]
fn names_sides_by_label_or_device() {
    let place = place(Planted::Vendors, 6);
    let text = place.data(&["compare", "a.json", "b.json"]);
    assert!(text.contains("AMD Instinct MI300X") && text.contains("NVIDIA H100"), "{text}");
    let text = place.data(&["compare", "--label", "old", "--label", "new", "a.json", "b.json"]);
    let first = text.lines().next().unwrap();
    assert!(first.contains("old") && first.contains("new"), "{text}");
    let one = place.run(&["compare", "--label", "old", "a.json", "b.json"]);
    assert_eq!(one.code, Some(2));
    assert!(one.stderr.contains("give --label twice"), "{}", one.stderr);
}

#[test]
fn compares_a_single_phase() {
    let place = place(Planted::PhaseMix, 20);
    let found = json(&place, &["compare", "--json", "--phase", "decode", "a.json", "b.json"]);
    assert_eq!(found["phase"], "decode");
    let classes: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["by"] == "class")
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert!(classes.contains(&"Attention (Decode)"), "{classes:?}");
    assert!(!classes.contains(&"Attention (Prefill)"), "{classes:?}");
    let none = place.run(&["compare", "--phase", "backward", "a.json", "b.json"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("no device operations in phase backward"));
    assert!(none.stderr.contains("prefill") && none.stderr.contains("decode"), "{}", none.stderr);
}

#[test]
fn compares_ranks_of_two_jobs() {
    let place = Place::with(&[]);
    for side in ["before", "after"] {
        std::fs::create_dir(place.path(side)).unwrap();
        for rank in 0..3u64 {
            let made = pair(Planted::SlowClass, 6, 10 + rank);
            // Only the last rank of the second job is slower.
            let text = if side == "after" && rank == 2 { made.b } else { made.a };
            let text = text.replacen(
                "\"schemaVersion\": 1,",
                &format!("\"schemaVersion\": 1, \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": 3}},"),
                1,
            );
            std::fs::write(place.path(side).join(format!("rank{rank}.json")), text).unwrap();
        }
    }
    let found = json(&place, &["compare", "--json", "before", "after"]);
    let ranks = found["ranks"].as_array().unwrap();
    let verdicts: Vec<&str> =
        ranks.iter().map(|rank| rank["whole"]["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["no detectable difference", "no detectable difference", "slower"]);
    assert_eq!(found["a"]["laps"], 18);
    let text = place.data(&["compare", "before", "after"]);
    assert!(text.contains("Ranks"), "{text}");
}

#[test]
fn rejects_inputs_that_cannot_be_compared() {
    let place = place(Planted::Nothing, 1);
    let cut = std::fs::read_to_string(place.path("a.json")).unwrap();
    std::fs::write(place.path("cut.json"), &cut[..cut.len() / 2]).unwrap();
    let text = place.data(&["compare", "a.json", "cut.json"]);
    assert!(text.contains("warning: B: cut.json: "), "{text}");
    std::fs::write(place.path("other.json"), "{\"a\": 1}").unwrap();
    for (args, expected) in [
        (&["compare", "a.json", "other.json"][..], "other.json is not a format laggard reads"),
        (&["compare", "--scale", "time", "a.json", "b.json"], "--scale applies to profiles"),
        (&["compare", "--fn", "x", "a.json", "b.json"], "--fn applies to profiles"),
        (&["compare", "--by", "library", "a.json", "b.json"], "--by library applies to profiles"),
        (&["compare", "--phase", "lunch", "a.json", "b.json"], "unknown phase lunch"),
        (&["compare", "--layers", "--fusion", "a.json", "b.json"], "cannot be used with"),
        (&["compare", "a.json", "missing.json"], "missing.json"),
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn writes_an_html_page_of_two_traces() {
    let place = place(Planted::Fused, 6);
    place.data(&["view", "-o", "two.html", "a.json", "b.json"]);
    let page = std::fs::read_to_string(place.path("two.html")).unwrap();
    assert!(page.contains("unfused") && page.contains("Operations by class"));
    assert!(page.contains("Content-Security-Policy"));
}
