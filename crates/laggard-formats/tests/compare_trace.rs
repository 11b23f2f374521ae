//! Pairs of synthetic traces with a planted lag: the cause is named first with the correct size,
//! and nothing is reported without a planted cause.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::classify::Rules;
use laggard_core::compare::trace::found::{
    Finding, LayersBy, Marker, Relation, Spread, TraceComparison, Verdict,
};
use laggard_core::compare::trace::{Given, Run, compare};
use laggard_core::culprit::Kind;
use laggard_core::trace::link::link;
use laggard_core::trace::phase::Phases;
use laggard_core::trace::{Analysis, By, summarise};
use laggard_formats::read::kineto;
use laggard_formats::{Bytes, Source};
use laggard_samples::pairs::{Pair, Planted, pair, pair_without_python};

fn run(text: &str, name: &str) -> Run {
    let phases = Phases::default();
    let bytes = Bytes::Stream(Box::new(std::io::Cursor::new(text.as_bytes().to_vec())));
    let source = Source { path: name.into(), bytes };
    let mut timeline = kineto::read(source, &kineto::Options::default(), &|_| ()).unwrap();
    link(&mut timeline, &phases);
    let analysis = Analysis::new(&timeline, Rules::builtin(), &phases, None);
    let summary = summarise(&analysis);
    Run::new(&analysis, name, summary, None)
}

fn compared(pair: &Pair) -> TraceComparison {
    let (a, b) = (run(&pair.a, "a"), run(&pair.b, "b"));
    compare(
        Given { label: "A", runs: std::slice::from_ref(&a) },
        Given { label: "B", runs: std::slice::from_ref(&b) },
        None,
    )
}

fn kinds(found: &TraceComparison) -> Vec<Kind> {
    found.judgement.culprits.iter().map(|culprit| culprit.finding.kind).collect()
}

fn row<'a>(found: &'a TraceComparison, by: By, name: &str) -> &'a Finding {
    let table = found.tables.iter().find(|table| table.by == by).unwrap();
    table.rows.iter().find(|row| row.name == name).unwrap()
}

/// Whether a difference was attributed to its planted cause.
fn holds(found: &Finding, truth: f64) -> bool {
    let (low, high) = found.gap_ns.range.unwrap();
    (low..=high).contains(&truth)
}

/// Parts of the time add up to the whole, and shares of culprits to one.
fn check_sums(found: &TraceComparison) {
    let sum: f64 = found.time.iter().map(|row| row.gap_ns.middle).sum();
    let whole = found.whole.gap_ns.middle;
    let scale = found.whole.sides[0].lap_ns;
    // Medians of parts only approximately add up to the median of the whole.
    assert!((sum - whole).abs() < 0.02 * scale, "{sum} is not {whole}");
    let explained: f64 = found.judgement.culprits.iter().map(|one| one.explains).sum();
    if !found.judgement.culprits.is_empty() {
        assert!((explained + found.judgement.not_explained - 1.0).abs() < 1e-9);
    }
    for side in 0..2 {
        let table = found.tables.iter().find(|table| table.by == By::Class).unwrap();
        let total: i64 = table.rows.iter().map(|row| row.sides[side].total_ns).sum();
        let summary = &found.sides[side].traces[0].summary;
        let by_class = summary.breakdowns.iter().find(|found| found.by == By::Class).unwrap();
        assert_eq!(total, by_class.total.time_ns);
    }
}

#[test]
fn names_slower_class() {
    let pair = pair(Planted::SlowClass, 10, 1);
    let found = compared(&pair);
    check_sums(&found);
    assert_eq!((found.whole.verdict, found.whole.spread), (Verdict::Slower, Spread::Laps));
    assert!(holds(&found.whole, pair.gap_ns), "{:?} {}", found.whole.gap_ns, pair.gap_ns);
    assert_eq!(kinds(&found)[0], Kind::SameKernelSlower, "{:?}", found.judgement);
    let first = &found.judgement.culprits[0];
    assert!(first.finding.at.starts_with(pair.class), "{}", first.finding.at);
    assert!(first.explains > 0.8, "{:?}", found.judgement);
    let class = row(&found, By::Class, pair.class);
    assert_eq!(class.verdict, Verdict::Slower);
    assert!(holds(class, pair.class_gap_ns), "{:?} {}", class.gap_ns, pair.class_gap_ns);
    assert!((class.ratio.unwrap() - 1.2).abs() < 0.02);
    // Nothing else differs.
    for table in &found.tables {
        for row in table.rows.iter().filter(|row| table.by == By::Class && row.name != pair.class) {
            assert!(matches!(row.verdict, Verdict::NoDetectableDifference(_)), "{row:?}");
        }
    }
}

#[test]
fn names_sequence_that_only_a_fuses() {
    for (pair, what) in [
        (pair(Planted::Fused, 10, 2), "with modules"),
        (pair_without_python(Planted::Fused, 10, 3), "without Python"),
    ] {
        let found = compared(&pair);
        check_sums(&found);
        assert!(holds(&found.whole, pair.gap_ns), "{what}");
        let at_first = &found.fusions.first();
        assert_eq!(kinds(&found)[0], Kind::Unfused, "{what}: {at_first:#?} {:#?}", found.aligned);
        let fusion = &found.fusions[0];
        assert_eq!(
            (fusion.fused_by, fusion.fused.len(), fusion.unfused.len()),
            (0, 1, 3),
            "{what}"
        );
        assert_eq!(fusion.fused[0], pair.only[0][0]);
        assert!(fusion.confidence > 0.6, "{what}: {fusion:?}");
        let merged = |segment: &laggard_core::compare::trace::found::Segment| {
            segment.pairs.iter().any(|pair| pair.relation == Relation::Split)
        };
        assert!(found.aligned.iter().any(merged), "{what}");
    }
}

#[test]
fn names_additional_layer() {
    for (pair, what) in [
        (pair(Planted::LayerMore, 10, 4), "modules"),
        (pair_without_python(Planted::LayerMore, 10, 5), "kernels"),
    ] {
        let found = compared(&pair);
        check_sums(&found);
        assert!(holds(&found.whole, pair.gap_ns), "{what}: {:?} {}", found.whole, pair.gap_ns);
        let [a, b] = found.layers.counts;
        assert_eq!(b, a + 1, "{what}: {:?}", found.layers.found_by);
        assert_eq!(a, 8, "{what}");
        let by_modules =
            matches!(&found.layers.found_by[0], LayersBy::Modules(class) if class == "Block");
        assert_eq!(by_modules, what == "modules", "{:?}", found.layers.found_by);
        assert_eq!(kinds(&found)[0], Kind::MoreCalls, "{what}: {:#?}", found.judgement);
        let at = &found.judgement.culprits[0].finding.at;
        assert!(at.contains("only in B"), "{what}: {at}");
        let alone = found.layers.rows.iter().filter(|row| row.numbers[0].is_none()).count();
        assert_eq!((alone, found.layers.rows.len()), (1, 9), "{what}");
    }
}

#[test]
fn names_late_launches() {
    let pair = pair(Planted::LateLaunches, 10, 6);
    let found = compared(&pair);
    check_sums(&found);
    assert_eq!(kinds(&found)[0], Kind::LaunchBound, "{:#?}", found.judgement);
    assert!(found.judgement.culprits[0].explains > 0.8, "{:#?}", found.judgement);
    let near = (found.whole.gap_ns.middle / pair.gap_ns - 1.0).abs();
    assert!(near < 0.05, "{} {}", found.whole.gap_ns.middle, pair.gap_ns);
}

#[test]
fn names_pause_of_the_host() {
    let pair = pair(Planted::SlowHostGap, 10, 7);
    let found = compared(&pair);
    check_sums(&found);
    // The thread that launches afterwards (of the backward pass) is not the one that waited.
    assert_eq!(kinds(&found)[0], Kind::LaunchBound, "{:#?}", found.judgement);
    assert!(holds(&found.whole, pair.gap_ns), "{:?} {}", found.whole.gap_ns, pair.gap_ns);
}

#[test]
fn names_exposed_communication() {
    let pair = pair(Planted::ExposedCommunication, 10, 8);
    let found = compared(&pair);
    check_sums(&found);
    assert_eq!(kinds(&found)[0], Kind::ExposedCommunication, "{:#?}", found.judgement);
    assert!(holds(&found.whole, pair.gap_ns), "{:?} {}", found.whole.gap_ns, pair.gap_ns);
    // The amount of communication is unchanged.
    let all = row(&found, By::Class, "Communication");
    assert!(matches!(all.verdict, Verdict::NoDetectableDifference(_)), "{all:?}");
}

#[test]
fn names_different_kernel() {
    let pair = pair(Planted::OtherKernel, 10, 9);
    let found = compared(&pair);
    check_sums(&found);
    assert_eq!(kinds(&found)[0], Kind::OtherKernel, "{:#?}", found.judgement);
    let class = row(&found, By::Class, pair.class);
    assert!(holds(class, pair.class_gap_ns), "{:?} {}", class.gap_ns, pair.class_gap_ns);
}

#[test]
fn different_mix_of_phases_is_not_a_lag() {
    let pair = pair(Planted::PhaseMix, 40, 10);
    let found = compared(&pair);
    assert_eq!(found.sides[0].marker, Marker::Iteration);
    assert!(found.judgement.culprits.is_empty(), "{:#?}", found.judgement);
    assert!(matches!(found.whole.verdict, Verdict::NoDetectableDifference(_)), "{:?}", found.whole);
    assert!(found.warnings.iter().any(|warning| warning.code == "PHASES_DIFFER"));
}

/// Twenty pairs without a difference. False accusations must be rare enough that none occurs here.
#[test]
fn noise_and_equal_traces_give_no_culprit() {
    for seed in 1..=10 {
        for (planted, steps) in [(Planted::Noise, 10), (Planted::Noise, 1), (Planted::Nothing, 5)] {
            let found = compared(&pair(planted, steps, seed));
            let what = format!("{} seed {seed} steps {steps}", planted.word());
            assert!(found.judgement.culprits.is_empty(), "{what}: {:#?}", found.judgement);
            assert!(
                matches!(found.whole.verdict, Verdict::NoDetectableDifference(_)),
                "{what}: {:?}",
                found.whole
            );
            let layers = found.layers.rows.iter().map(|row| &row.finding);
            let tables = found.tables.iter().flat_map(|table| &table.rows);
            for row in tables.chain(layers).chain(&found.time) {
                let host = found.host.iter().map(|row| row.verdict);
                for verdict in host.chain([row.verdict]) {
                    let is_quiet = matches!(
                        verdict,
                        Verdict::NoDetectableDifference(_) | Verdict::SingleSample
                    );
                    assert!(is_quiet, "{what}: {row:?} {:?}", found.host);
                }
            }
        }
    }
}

#[test]
fn single_step_is_judged_by_its_repetitions() {
    let pair = pair(Planted::SlowClass, 1, 11);
    let found = compared(&pair);
    check_sums(&found);
    assert_eq!(found.sides[0].laps, 1);
    let class = row(&found, By::Class, pair.class);
    assert_eq!((class.verdict, class.spread), (Verdict::Slower, Spread::WithinOneLap));
    assert!(holds(class, pair.class_gap_ns));
    assert_eq!(kinds(&found)[0], Kind::SameKernelSlower, "{:#?}", found.judgement);
}

#[test]
fn single_step_with_exposed_communication_is_judged() {
    for seed in 1..=3 {
        let pair = pair(Planted::ExposedCommunication, 1, seed);
        let found = compared(&pair);
        assert_eq!(
            kinds(&found).first(),
            Some(&Kind::ExposedCommunication),
            "{seed}: {:?}",
            found.time
        );
    }
}

/// Iterations of prefill and of decode have layers with different kernels.
#[test]
fn compares_layers_within_each_phase() {
    let found = compared(&pair_without_python(Planted::PhaseMix, 40, 3));
    assert_eq!(found.layers.counts, [8, 8]);
    for row in &found.layers.rows {
        assert!(matches!(row.finding.verdict, Verdict::NoDetectableDifference(_)), "{row:?}");
    }
    let quiet = |verdict: Verdict| {
        matches!(verdict, Verdict::NoDetectableDifference(_) | Verdict::SingleSample)
    };
    assert!(found.host.iter().all(|row| quiet(row.verdict)), "{:?}", found.host);
}

#[test]
fn compares_devices_of_two_vendors() {
    let found = compared(&pair(Planted::Vendors, 8, 12));
    check_sums(&found);
    assert_eq!(found.layers.counts, [8, 8]);
    let others = found.aligned.iter().flat_map(|segment| &segment.pairs);
    assert!(others.filter(|pair| pair.relation == Relation::Other).count() > 3);
}
