//! Flame graphs of synthetic profiles.

use super::{Graph, Node, Side, svg};
use crate::escape::xml;
use laggard_core::model::NONE;
use laggard_core::model::profile::{FrameKind, Profile, Unit};
use laggard_core::profile::{View, join_workers};
use laggard_samples::profile::{Sketch, matrix_product};

fn of(view: &View, title: &str) -> String {
    svg(&Graph::of_view(view, "").0, title)
}

fn frames(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("<g data-x=")).collect()
}

#[test]
fn svg_has_every_frame_and_escapes_names() {
    let mut profile = matrix_product();
    join_workers(&mut profile);
    let view = View::whole(&profile);
    {
        let text = of(&view, "run & <script>alert(1)</script>");
        assert_eq!(frames(&text).len(), laggard_core::profile::top_down(&view).nodes.len());
        assert!(text.contains("dgemm_kernel_HASWELL in libopenblas64_p.so\n45.8 %, 38 samples of task-clock, 38.0 ms; self 45.8 %"), "{text}");
        assert!(text.contains("shown &lt;b&gt;&amp;&quot;it&#39;s&quot;\\u{1b}[31m"));
        assert!(
            !text.contains("<b>") && !text.contains("<script>alert") && !text.contains('\u{1b}')
        );
        assert!(
            !text.contains("http://") || text.matches("http://").count() == 1,
            "only the namespace"
        );
        assert!(!text.contains("https://"));
    }
}

#[test]
fn narrow_and_deep_frames_are_omitted_with_a_remark() {
    let mut sketch = Sketch::default();
    sketch.samples(5_000, "app!main;app!a");
    sketch.samples(1, "app!main;app!b");
    sketch.samples(50, &vec!["app!f"; 700].join(";"));
    let profile = sketch.done();
    let text = of(&View::whole(&profile), "deep");
    assert!(!text.contains("data-n=\"b\""));
    assert!(text.contains("1 frame below 0.05 % not drawn"), "{}", &text[text.len() - 400..]);
    assert!(text.contains("frames deeper than 500 levels not drawn"));
}

#[test]
fn empty_profile_makes_an_empty_graph() {
    let profile = Profile::default();
    let text = of(&View::whole(&profile), "");
    assert_eq!(frames(&text).len(), 1);
    assert!(!text.contains("NaN"));
}

#[test]
fn parents_show_their_own_change_and_both_sides_are_visible() {
    let function = |name: &str| super::Function {
        name: name.into(),
        library: "app".into(),
        kind: FrameKind::Native,
        file: String::new(),
        line: 0,
    };
    let node = |parent, function, own| Node { parent, function, own };
    let graph = Graph {
        event: "task-clock".into(),
        unit: Unit::Nanos,
        sides: [("a", 3e6), ("b", 6e6)]
            .map(|(name, whole)| Side { name: name.into(), whole, samples: 3 })
            .into(),
        functions: ["main", "grew", "gone", "new"].map(function).into(),
        nodes: vec![
            node(NONE, NONE, [0.0; 2]),
            node(0, 0, [1e6, 1e6]),
            node(1, 1, [1e6, 2e6]),
            node(1, 2, [1e6, 0.0]),
            node(2, 3, [0.0, 3e6]),
        ],
        ..Graph::default()
    };
    let text = svg(&graph, "two");
    for expected in [
        "main +3.00 ms",
        "A 3.00 ms (100.0 %), B 6.00 ms (100.0 %): +3.00 ms, 2.00x; self +0 ns",
        "grew +4.00 ms",
        "gone -1.00 ms",
        "only in A",
        "only in B",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // Frames are inside their callers.
    let number = |line: &str, key: &str| -> f64 {
        line.split_once(key).unwrap().1.split('"').next().unwrap().parse().unwrap()
    };
    let place = |name: &str| {
        let line = frames(&text)
            .into_iter()
            .find(|line| line.contains(&format!("data-n=\"{name} ")))
            .unwrap();
        let left = number(line, "data-x=\"");
        (left, left + number(line, "data-w=\""))
    };
    for (inner, outer) in [("grew", "main"), ("gone", "main"), ("new", "grew")] {
        let (inner, outer) = (place(inner), place(outer));
        assert!(inner.0 >= outer.0 - 1e-6 && inner.1 <= outer.1 + 1e-6);
    }
}

#[test]
fn xml_is_escaped() {
    assert_eq!(xml("a<b>&\"'\u{0}\n"), "a&lt;b&gt;&amp;&quot;&#39;\\u{0}\\n");
}
