//! Pages of synthetic profiles.

use super::{MOST_FRAMES, Page, html, of_samples};
use crate::flame::Graph;
use laggard_core::profile::View;
use laggard_samples::profile::{Sketch, matrix_product};
use serde_json::Value;

/// The data of a page, as its scripts read it.
fn data(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = page.split_once(start).expect("data");
    let (text, _) = rest.split_once("</script>").expect("an end");
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn page_has_all_weight_and_escapes_names() {
    let mut sketch = Sketch::default();
    sketch.samples(3, "app!main;app!</script><img src=x onerror=alert(1)>");
    sketch.samples(2, "app!main;app!b");
    let profile = sketch.done();
    let view = View::whole(&profile);
    let (graph, stacks) = Graph::of_view(&view, "run");
    let text = html(&Page {
        title: "</title><script>alert(2)</script>",
        graph: Some(&graph),
        timeline: of_samples(&view, &stacks),
        ..Page::default()
    });
    assert!(!text.contains("<img") && !text.contains("alert(2)</script>"));
    assert!(text.contains("default-src 'none'"));
    let data = data(&text);
    let sum: f64 = data["flame"]["nodes"]["self"][0]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .sum();
    assert_eq!(sum, view.whole.weight as f64);
    assert_eq!(data["flame"]["wholes"][0].as_f64(), Some(sum));
    let strings = data["flame"]["strings"].as_array().unwrap();
    assert!(strings.iter().any(|s| s == "</script><img src=x onerror=alert(1)>"));
    assert_eq!(data["timeline"]["tracks"][0]["start"].as_array().unwrap().len(), 5);
}

#[test]
fn timeline_lists_each_process_once() {
    let mut sketch = Sketch::default();
    for (pid, tid, process) in
        [(100, 100, "sh"), (200, 200, "work"), (100, 101, "python"), (200, 201, "work")]
    {
        sketch.thread(pid, tid, process, "thread").samples(1, "app!main");
    }
    let profile = sketch.done();
    let view = View::whole(&profile);
    let (_, stacks) = Graph::of_view(&view, "run");
    let timeline = of_samples(&view, &stacks).expect("timestamps");
    let groups: Vec<&str> = timeline.tracks.iter().map(|track| track.group.as_str()).collect();
    // The first thread of the sketch has no samples.
    assert_eq!(groups, ["python3 (100)", "python3 (100)", "work (200)", "work (200)"]);
}

#[test]
fn pruning_keeps_all_weight_and_counts_merged_frames() {
    let mut sketch = Sketch::default();
    for i in 0..500 {
        sketch.samples(1 + i % 3, &format!("app!main;app!f{};app!g{i};app!h{i}", i % 10));
    }
    let profile = sketch.done();
    let view = View::whole(&profile);
    let (graph, _) = Graph::of_view(&view, "run");
    assert_eq!(graph.pruned(0.0, MOST_FRAMES).0.nodes.len(), graph.nodes.len());
    for most in [1, 2, 5, 12, 100, 600] {
        let (pruned, numbers) = graph.pruned(0.0, most);
        let sum = |graph: &Graph| graph.nodes.iter().map(|node| node.own[0]).sum::<f64>();
        assert_eq!(sum(&pruned), sum(&graph), "{most}");
        // Only nodes for merged frames may exceed the limit.
        let kept = graph.nodes.len() as u64 - pruned.hidden.nodes;
        assert!(kept as usize <= most + most / 10 + 1, "{most}: {kept}");
        assert_eq!(numbers.len(), graph.nodes.len());
        let is_ordered =
            |(at, node): (usize, &crate::flame::Node)| at == 0 || (node.parent as usize) < at;
        assert!(pruned.nodes.iter().enumerate().all(is_ordered));
        let folded: u64 = pruned
            .nodes
            .iter()
            .filter_map(|node| {
                let name = &pruned.function(node)?.name;
                name.strip_prefix('(')?.strip_suffix(" smaller)")?.parse::<u64>().ok()
            })
            .sum();
        assert_eq!(folded, pruned.hidden.nodes, "{most}");
    }
}

#[test]
fn large_data_is_compressed() {
    let mut sketch = Sketch::default();
    for i in 0..30_000 {
        sketch.samples(1, &format!("app!main;app!function_with_a_long_name_{i}"));
    }
    let profile = sketch.done();
    let (graph, _) = Graph::of_view(&View::whole(&profile), "run");
    let text = html(&Page { graph: Some(&graph), ..Page::default() });
    assert!(text.contains("data-encoding=\"gzip-base64\">H4sI"));
    assert!(!text.contains("function_with_a_long_name_17"));
}

#[test]
fn every_part_is_optional() {
    let profile = matrix_product();
    let (graph, _) = Graph::of_view(&View::whole(&profile), "x");
    for page in [Page::default(), Page { graph: Some(&graph), ..Page::default() }] {
        let text = html(&page);
        assert_eq!(text.contains("data-panel=\"flame\""), page.graph.is_some());
        assert!(!text.contains("data-panel=\"timeline\""));
    }
}
