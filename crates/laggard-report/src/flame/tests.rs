//! Pictures of a sketched profile.

use super::{html, svg};
use crate::escape::xml;
use laggard_core::model::profile::Profile;
use laggard_core::profile::{View, join_workers};
use laggard_samples::profile::{Sketch, matrix_product};

fn frames(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("<g data-x=")).collect()
}

#[test]
fn a_picture_has_every_frame_and_no_markup_by_strangers() {
    let mut profile = matrix_product();
    join_workers(&mut profile);
    let view = View::whole(&profile);
    for text in [
        svg(&view, "run & <script>alert(1)</script>"),
        html(&view, "run & <script>alert(1)</script>"),
    ] {
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
fn narrow_and_deep_frames_are_left_out_and_said_to_be() {
    let mut sketch = Sketch::default();
    sketch.samples(5_000, "app!main;app!a");
    sketch.samples(1, "app!main;app!b");
    sketch.samples(50, &vec!["app!f"; 700].join(";"));
    let profile = sketch.done();
    let text = svg(&View::whole(&profile), "deep");
    assert!(!text.contains("data-n=\"b\""));
    assert!(text.contains("1 frames of less than 0.05 %"), "{}", &text[text.len() - 400..]);
    assert!(text.contains("calls deeper than 500 are not drawn"));
}

#[test]
fn nothing_makes_an_empty_picture() {
    let profile = Profile::default();
    let text = svg(&View::whole(&profile), "");
    assert_eq!(frames(&text).len(), 1);
    assert!(!text.contains("NaN"));
}

#[test]
fn text_for_xml() {
    assert_eq!(xml("a<b>&\"'\u{0}\n"), "a&lt;b&gt;&amp;&quot;&#39;\\u{0}\\n");
}
