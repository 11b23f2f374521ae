//! Comparison of a program with two different BLAS libraries.

use super::{CompareCalls, Given, csv, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::calls::{View, compare};
use laggard_core::model::calls::Calls;
use laggard_samples::calls::{inside, products, products_elsewhere};

#[test]
fn all_formats() {
    let (a, b) = (products(), products_elsewhere());
    let comparison = compare(&View::whole(&a), &View::whole(&b));
    let report = CompareCalls {
        a: Given { path: "a.lag", about: &a.profile.about, losses: &[] },
        b: Given {
            path: "b.lag",
            about: &b.profile.about,
            losses: &["the file is damaged".to_owned()],
        },
        comparison: &comparison,
        top: Some(10),
    };
    assert_snapshot!("text", text(&report, &Style::default()));
    assert_snapshot!("markdown", markdown(&report));
    assert_snapshot!("json", json(&report));
    assert_snapshot!("csv", csv(&report));
}

#[test]
fn identical_traces_have_no_difference() {
    let a = products();
    let comparison = compare(&View::whole(&a), &View::whole(&a));
    let given = Given { path: "a.lag", about: &a.profile.about, losses: &[] };
    let report = CompareCalls { a: given, b: given, comparison: &comparison, top: None };
    let text = text(&report, &Style::default());
    assert!(text.contains("no difference") && !text.contains("Only"), "{text}");
}

fn with(a: &Calls, b: &Calls, show: impl Fn(&CompareCalls) -> String) -> String {
    let comparison = compare(&View::whole(a), &View::whole(b));
    show(&CompareCalls {
        a: Given { path: "a.lag", about: &a.profile.about, losses: &[] },
        b: Given { path: "b.lag", about: &b.profile.about, losses: &[] },
        comparison: &comparison,
        top: None,
    })
}

#[test]
fn instructions_are_compared_without_times() {
    let (a, b) = (inside(10_000), inside(20_000));
    assert_snapshot!("instructions_text", with(&a, &b, |all| text(all, &Style::default())));
    assert_snapshot!("instructions_json", with(&a, &b, json));
    assert_snapshot!("instructions_csv", with(&a, &b, csv));
}

#[test]
fn different_measures_are_compared_by_calls() {
    let (a, b) = (products(), inside(10_000));
    assert_snapshot!("mixed_text", with(&a, &b, |all| text(all, &Style::default())));
    assert_snapshot!("mixed_csv", with(&a, &b, csv));
}
