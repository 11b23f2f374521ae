//! Reports of a hand-written profile that contains a hostile name.

use super::{ProfileReport, Shown, ShownTree, TreeKind, csv, json, markdown, text};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::model::profile::Profile;
use laggard_core::profile::{
    By, Filter, View, join_workers, library_tree, quality, top_down, totals,
};
use laggard_samples::profile::matrix_product;

fn with(
    profile: &Profile,
    filter: &Filter,
    shown: &Shown,
    show: impl Fn(&ProfileReport) -> String,
) -> String {
    let view = View::new(profile, filter).expect("filter matches");
    let quality = quality(profile);
    let losses = ["the recording was not finished".to_owned()];
    show(&ProfileReport {
        path: "run.lag",
        view: &view,
        filter,
        quality: &quality,
        losses: &losses,
        shown,
        top: Some(6),
    })
}

fn joined() -> Profile {
    let mut profile = matrix_product();
    join_workers(&mut profile);
    profile
}

#[test]
fn the_whole_report() {
    let profile = joined();
    let view = View::whole(&profile);
    let shown = Shown::Whole(
        [By::Library, By::Function, By::PythonLine].map(|by| totals(&view, by)).into(),
    );
    let filter = Filter::default();
    let show = |form: fn(&ProfileReport) -> String| with(&profile, &filter, &shown, form);
    assert_snapshot!("text", show(|report| text(report, &Style::default())));
    assert_snapshot!("markdown", show(markdown));
    assert_snapshot!("json", show(json));
    assert_snapshot!("csv", show(csv));
}

#[test]
fn other_tables() {
    let profile = joined();
    let view = View::whole(&profile);
    let all: Vec<String> = [By::Line, By::Thread, By::Process, By::Event]
        .map(|by| {
            with(&profile, &Filter::default(), &Shown::Table(totals(&view, by)), |report| {
                text(report, &Style::default())
            })
        })
        .into();
    assert_snapshot!("tables", all.join("\n"));
}

#[test]
fn trees() {
    let profile = joined();
    let filter = Filter { library: Some("openblas".into()), ..Filter::default() };
    let view = View::new(&profile, &filter).expect("library exists");
    let shown = Shown::Tree(ShownTree {
        kind: TreeKind::Library("openblas".into()),
        tree: library_tree(&view),
        least: 0.01,
    });
    let library = with(&profile, &filter, &shown, |report| {
        text(&ProfileReport { top: None, ..*report }, &Style::default())
    });
    assert_snapshot!("tree_of_a_library", library);
    let view = View::whole(&profile);
    let shown =
        Shown::Tree(ShownTree { kind: TreeKind::TopDown, tree: top_down(&view), least: 0.05 });
    let whole = |top: Option<usize>| {
        with(&profile, &Filter::default(), &shown, |report| {
            text(&ProfileReport { top, ..*report }, &Style::default())
        })
    };
    assert_snapshot!("tree", whole(None));
    assert!(whole(Some(3)).contains("more nodes"));
    assert_snapshot!("tree_csv", with(&profile, &Filter::default(), &shown, csv));
    assert_snapshot!("tree_json", with(&profile, &Filter::default(), &shown, json));
}

#[test]
fn hostile_names_are_escaped() {
    let profile = joined();
    let view = View::whole(&profile);
    let shown = Shown::Table(totals(&view, By::Function));
    for form in [
        |r: &ProfileReport| text(&ProfileReport { top: None, ..*r }, &Style::default()),
        |r: &ProfileReport| markdown(&ProfileReport { top: None, ..*r }),
    ] {
        let text = with(&profile, &Filter::default(), &shown, form);
        assert!(text.contains("shown"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn empty_profiles_report_no_samples() {
    let profile = Profile::default();
    let view = View::whole(&profile);
    let shown = Shown::Whole(By::ALL.map(|by| totals(&view, by)).into());
    let text = with(&profile, &Filter::default(), &shown, |report| text(report, &Style::default()));
    assert!(text.contains("no samples"), "{text}");
}
