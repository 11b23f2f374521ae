//! Two traces from the command line: the verdict first, in every form; gates, labels, phases, ranks, and
//! what is refused.

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

/// A number anywhere in it must be one, or null: no NaN and no infinity is JSON.
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
fn the_verdict_comes_first_in_every_form() {
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
    assert!(markdown.contains("## Why") && markdown.contains("| gap"), "{markdown}");
    // From the indexes that the first run wrote, the answer is the same.
    assert!(place.names().contains(&"a.json.lag".to_owned()));
    assert_eq!(json(&place, &["compare", "--json", "--no-index", "a.json", "b.json"]), found);
}

#[test]
fn a_gate_trips_on_what_is_beyond_it_and_detectable() {
    let slow = place(Planted::SlowClass, 8);
    // The step lags by 3 %.
    assert_eq!(slow.run(&["compare", "--fail-above", "1%", "a.json", "b.json"]).code, Some(1));
    assert_eq!(slow.run(&["compare", "--fail-above", "10%", "a.json", "b.json"]).code, Some(0));
    assert_eq!(slow.run(&["compare", "--fail-above", "0%", "b.json", "a.json"]).code, Some(0));
    let noise = place(Planted::Noise, 8);
    assert_eq!(noise.run(&["compare", "--fail-above", "0%", "a.json", "b.json"]).code, Some(0));
}

#[test]
fn sides_are_called_by_their_labels_or_devices() {
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
fn one_phase_is_compared_by_itself() {
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
    assert!(none.stderr.contains("neither trace has device work of the phase backward"));
    assert!(none.stderr.contains("prefill") && none.stderr.contains("decode"), "{}", none.stderr);
}

#[test]
fn ranks_of_two_jobs_are_compared_one_by_one_and_as_a_whole() {
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
fn what_cannot_be_compared_is_said() {
    let place = place(Planted::Nothing, 1);
    let cut = std::fs::read_to_string(place.path("a.json")).unwrap();
    std::fs::write(place.path("cut.json"), &cut[..cut.len() / 2]).unwrap();
    let text = place.data(&["compare", "a.json", "cut.json"]);
    assert!(text.contains("warning: B: cut.json: "), "{text}");
    std::fs::write(place.path("other.json"), "{\"a\": 1}").unwrap();
    for (args, expected) in [
        (&["compare", "a.json", "other.json"][..], "other.json is not a PyTorch trace"),
        (&["compare", "--scale", "time", "a.json", "b.json"], "--scale is for recordings"),
        (&["compare", "--fn", "x", "a.json", "b.json"], "--fn is for recordings"),
        (&["compare", "--by", "library", "a.json", "b.json"], "--by library is for recordings"),
        (&["compare", "--phase", "lunch", "a.json", "b.json"], "there is no phase lunch"),
        (&["compare", "--layers", "--fusion", "a.json", "b.json"], "cannot be used with"),
        (&["compare", "a.json", "missing.json"], "missing.json"),
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_page_of_two_traces_is_written() {
    let place = place(Planted::Fused, 6);
    place.data(&["view", "-o", "two.html", "a.json", "b.json"]);
    let page = std::fs::read_to_string(place.path("two.html")).unwrap();
    assert!(page.contains("unfused") && page.contains("Operations by class"));
    assert!(page.contains("Content-Security-Policy"));
}
