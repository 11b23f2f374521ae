//! Comparison of hand-written profiles with different OpenBLAS builds and a hostile name.

use super::{CompareProfile, Given, Recording, Shown, csv, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::compare::profile::{Scale, compare};
use laggard_core::model::profile::{Profile, Unit};
use laggard_core::profile::View;
use laggard_samples::profile::{matrix_product, older_kernel};

fn show(
    sides: [&[Profile]; 2],
    scale: Option<Scale>,
    shown: Shown,
    form: impl Fn(&CompareProfile) -> String,
) -> String {
    let views = sides.map(|side| side.iter().map(View::whole).collect::<Vec<_>>());
    let scale = scale.unwrap_or_else(|| Scale::of(&views[0], &views[1]));
    let comparison = compare(&views[0], &views[1], scale);
    let losses = ["the file is damaged".to_owned()];
    let paths = [["a1.lag", "a2.lag", "a3.lag"], ["b1.lag", "b2.lag", "b3.lag"]];
    let recordings = [0, 1].map(|side| {
        let recording =
            |(profile, path): (&'_ Profile, &'static str)| (path, profile.about.clone());
        sides[side].iter().zip(paths[side]).map(recording).collect::<Vec<_>>()
    });
    let given = [0, 1].map(|side| {
        let recording =
            |(path, about)| Recording { path, about, losses: &losses[side..], whole_stacks: 1.0 };
        recordings[side].iter().map(|(path, about)| recording((*path, about))).collect::<Vec<_>>()
    });
    let given = [0, 1].map(|side| Given {
        recordings: &given[side],
        event: views[side].first().map_or("", View::event_name),
        unit: views[side].first().map_or(Unit::Count, View::unit),
    });
    form(&CompareProfile {
        divergence: None,
        a: given[0],
        b: given[1],
        comparison: &comparison,
        narrowed: "",
        shown,
        top: Some(6),
    })
}

fn plain(report: &CompareProfile) -> String {
    text(report, &Style::default())
}

#[test]
fn all_formats() {
    let (a, b) = ([matrix_product()], [older_kernel(0)]);
    let sides: [&[Profile]; 2] = [&a, &b];
    assert_snapshot!("text", show(sides, None, Shown::Whole, plain));
    assert_snapshot!("markdown", show(sides, None, Shown::Whole, markdown));
    assert_snapshot!(
        "json",
        show(sides, None, Shown::Whole, |report| {
            json(&CompareProfile { top: Some(2), ..*report })
        })
    );
    assert_snapshot!("csv", show(sides, None, Shown::Whole, csv));
}

#[test]
fn parts() {
    let (a, b) = ([matrix_product()], [older_kernel(0)]);
    let sides: [&[Profile]; 2] = [&a, &b];
    assert_snapshot!("libraries", show(sides, None, Shown::Libraries, plain));
    assert_snapshot!("libraries_csv", show(sides, None, Shown::Libraries, csv));
    assert_snapshot!(
        "only_in_b",
        show(sides, None, Shown::OnlyIn(1), |report| {
            plain(&CompareProfile { top: None, ..*report })
        })
    );
    let narrow = |report: &CompareProfile| text(report, &Style { color: false, width: Some(80) });
    assert_snapshot!("narrow", show(sides, None, Shown::Functions, narrow));
}

#[test]
fn other_scales() {
    let (a, b) = ([matrix_product()], [older_kernel(0)]);
    let sides: [&[Profile]; 2] = [&a, &b];
    let with = |scale| show(sides, Some(scale), Shown::Libraries, plain);
    let all = [Scale::Share, Scale::Samples, Scale::PerCall([100.0, 50.0])].map(with);
    assert_snapshot!("scales", all.join("\n"));
}

#[test]
fn several_recordings_have_verdicts() {
    let a = [older_kernel(0), older_kernel(3), older_kernel(6)];
    let b = [older_kernel(80), older_kernel(86), older_kernel(83)];
    assert_snapshot!("recordings", show([&a, &b], None, Shown::Whole, plain));
    let same = show([&a, &a], None, Shown::Whole, plain);
    assert!(
        same.starts_with("B takes the same CPU time") || same.contains("no detectable"),
        "{same}"
    );
    assert!(!same.contains("slower") && !same.contains("Only in"), "{same}");
}

#[test]
fn hostile_names_are_escaped() {
    let (a, b) = ([matrix_product()], [older_kernel(0)]);
    for form in [plain, markdown as fn(&CompareProfile) -> String] {
        let shown = show([&a, &b], None, Shown::Whole, |report| {
            form(&CompareProfile { top: None, ..*report })
        });
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    }
}
