//! Reports of a handwritten comparison with data for every section and hostile names.

use super::{CompareTrace, Shown, csv, html, json, markdown, text, words};
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::compare::trace::found::{
    Architecture, Finding, Fusion, Gap, HostFinding, HostUnit, KernelPair, KernelUse, LayerRow,
    Layers, LayersBy, Marker, RankPair, Rate, Relation, Segment, Side, Spent, Spread, Table,
    TraceComparison, TraceFacts, TypeCount, Verdict, Warning,
};
use laggard_core::culprit::{self, Culprit, Fact, Judgement, Kind, Unit};
use laggard_core::stats::ratio::Interval;
use laggard_core::trace::By;
use laggard_core::trace::summary::{About, CountTime, Device, Summary, Totals};

const LAPS: [u64; 2] = [10, 12];
const HOSTILE: &str = "<script>alert(1)</script>|`x`,\"q\"\n\u{1b}[31mred\u{202e}";
const GEMM_A: &str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas";
const GEMM_B: &str = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn";
const NORM: &str = "void rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, float)";

/// A finding from the count and the nanoseconds per step of each side.
fn finding(name: &str, [a, b]: [(f64, f64); 2], verdict: Verdict) -> Finding {
    let spent = |(lap_count, lap_ns): (f64, f64), laps: u64| Spent {
        count: (lap_count * laps as f64) as u64,
        total_ns: (lap_ns * laps as f64) as i64,
        lap_count,
        lap_ns,
        mean_ns: if lap_count > 0.0 { lap_ns / lap_count } else { 0.0 },
        n: laps,
    };
    let (gap, width) = (b.1 - a.1, (a.1 + b.1) / 200.0);
    let ratio = (a.1 > 0.0 && b.1 > 0.0).then(|| b.1 / a.1);
    Finding {
        name: name.into(),
        sides: [spent(a, LAPS[0]), spent(b, LAPS[1])],
        gap_ns: Gap { middle: gap, range: Some((gap - width, gap + width)) },
        ratio,
        ratio_range: ratio.map(|r| Interval { middle: r, low: 0.99 * r, high: 1.01 * r }),
        share: gap / 20e6,
        verdict,
        spread: Spread::Laps,
        p: 0.004,
        ..Finding::default()
    }
}

fn side(label: &str, gpu: &str, laps: u64) -> Side {
    let trace = |rank: i64| TraceFacts {
        path: format!("runs/{label}/rank{rank}.json.gz"),
        summary: Summary {
            about: About {
                gpus: vec![(gpu.into(), 1)],
                rank: Some(rank),
                world_size: Some(8),
                ..About::default()
            },
            totals: Totals {
                kernels: CountTime { count: 6_400, time_ns: 1_200_000_000 },
                span_ns: 1_500_000_000,
                ..Totals::default()
            },
            ..Summary::default()
        },
    };
    Side {
        label: label.into(),
        traces: vec![trace(0), trace(1)],
        marker: Marker::Step,
        kinds: vec![(String::new(), laps)],
        laps,
        warm_up: 1,
        partial: 2,
        outside: (42, 1_300_000),
        span_ns: 1_400_000_000,
        architecture: Architecture::Transformer,
    }
}

fn classes() -> Vec<Finding> {
    let used = |name: &str, total_ns: i64| KernelUse { name: name.into(), count: 640, total_ns };
    let rate =
        |tera: f64| Some(Rate { flops_per_s: tera * 1e12, peak_share: Some(tera / 989.0), n: 640 });
    let gemm = Finding {
        kernels: [
            vec![used(GEMM_A, 600_000_000)],
            vec![used(GEMM_B, 800_000_000), used(HOSTILE, 1_000)],
        ],
        ops: ["aten::mm".into(), HOSTILE.into()],
        lines: ["model.py(120): forward".into(), String::new()],
        rate: [rate(612.0), rate(480.0)],
        ..finding("gemm", [(64.0, 60e6), (64.0, 76e6)], Verdict::Slower)
    };
    let silu = finding("elementwise", [(32.0, 4e6), (96.0, 9e6)], Verdict::Slower);
    let norm =
        finding("norm", [(65.0, 6e6), (65.0, 6.02e6)], Verdict::NoDetectableDifference(0.012));
    let copy = finding(HOSTILE, [(0.0, 0.0), (2.5, 0.4e6)], Verdict::OnlyInB);
    let softmax = finding("softmax", [(32.0, 1.4e6), (0.0, 0.0)], Verdict::OnlyInA);
    vec![gemm, silu, softmax, copy, norm]
}

fn kernels() -> Vec<Finding> {
    let norm = Finding {
        class: "norm".into(),
        geometry: ["[64,1,1] [256,1,1]".into(), "[128,1,1] [128,1,1]".into()],
        ..finding(NORM, [(65.0, 6e6), (65.0, 6.02e6)], Verdict::NoDetectableDifference(0.012))
    };
    let of_class = |finding: Finding| Finding { class: "gemm".into(), ..finding };
    vec![
        of_class(finding(GEMM_B, [(0.0, 0.0), (64.0, 76e6)], Verdict::OnlyInB)),
        of_class(finding(GEMM_A, [(64.0, 60e6), (0.0, 0.0)], Verdict::OnlyInA)),
        finding(HOSTILE, [(3.0, 1e6), (3.0, 1.5e6)], Verdict::Slower),
        norm,
    ]
}

fn layers() -> Layers {
    let layer = |a: Option<u32>, b: Option<u32>, ns: f64, verdict: Verdict| LayerRow {
        numbers: [a, b],
        finding: finding(
            &format!("layer {}", a.or(b).unwrap_or(0)),
            [(6.0, 2e6), (8.0, ns)],
            verdict,
        ),
    };
    Layers {
        found_by: [LayersBy::Modules("DecoderLayer".into()), LayersBy::Markers("attention".into())],
        counts: [32, 32],
        rows: vec![
            layer(Some(0), Some(0), 2.01e6, Verdict::NoDetectableDifference(0.02)),
            layer(Some(1), Some(2), 2.6e6, Verdict::Slower),
        ],
    }
}

fn aligned() -> Segment {
    let pair = |relation, class: &str, a: &[&str], b: &[&str], mean_ns| KernelPair {
        relation,
        class: class.into(),
        projection: if class == "gemm" { "qkv".into() } else { String::new() },
        kernels: [a, b].map(|names| names.iter().map(|&name| name.into()).collect()),
        mean_ns,
        n: [320, 384],
    };
    Segment {
        place: "layer".into(),
        repeats: [32.0, 32.0],
        typical: [(31, 32), (32, 32)],
        pairs: vec![
            pair(Relation::Same, "norm", &[NORM], &[NORM], [92e3, 92.6e3]),
            pair(Relation::Other, "gemm", &[GEMM_A], &[GEMM_B], [900e3, 1_200e3]),
            pair(
                Relation::Split,
                "elementwise",
                &["fused_silu_mul"],
                &["silu", "mul"],
                [40e3, 95e3],
            ),
            pair(Relation::OnlyInB, "copy", &[], &[HOSTILE], [0.0, 5e3]),
        ],
    }
}

fn fusion() -> Fusion {
    Fusion {
        fused_by: 0,
        fused: vec!["fused_silu_mul".into()],
        unfused: vec!["silu".into(), HOSTILE.into()],
        classes: [vec!["elementwise".into()], vec!["elementwise".into(), "elementwise".into()]],
        lap_count: 32.0,
        seen: 384,
        mean_ns: [40e3, 95e3],
        saved_ns: 1.76e6,
        confidence: 0.93,
        evidence: "in the same place of every layer, between the same products".into(),
    }
}

fn judgement() -> Judgement {
    let fact =
        |what: &str, unit, a, b| Fact { what: what.into(), a, b, unit, n: 640, is_inferred: false };
    Judgement {
        culprits: vec![Culprit::new(
            culprit::Finding {
                kind: Kind::OldKernel,
                facts: vec![
                    fact("time in products", Unit::Nanos, 60e6, 76e6),
                    fact("share of peak", Unit::Share, 0.62, 0.49),
                ],
                at: format!("{GEMM_B}, from {HOSTILE}"),
                advice: "build for this device".into(),
            },
            0.76,
            16e6,
        )],
        not_explained: 0.24,
        missing: vec![],
        faster: vec![],
        saved_ns: 1.4e6,
    }
}

fn comparison() -> TraceComparison {
    let host = |name: &str, unit, values, ratio: Option<f64>, verdict| HostFinding {
        name: name.into(),
        unit,
        values,
        n: [640, 768],
        ratio,
        ratio_range: ratio.map(|r| Interval { middle: r, low: 0.98 * r, high: 1.02 * r }),
        verdict,
    };
    let shape = Finding {
        class: "gemm".into(),
        rate: [Some(Rate { flops_per_s: 6.1e14, peak_share: None, n: 320 }), None],
        ..finding(
            "aten::mm [[4096, 4096], [4096, 12288]]",
            [(32.0, 50e6), (32.0, 64e6)],
            Verdict::Slower,
        )
    };
    let rank = |rank, paths: [&str; 2]| RankPair {
        rank,
        paths: paths.map(Into::into),
        whole: match paths[1] {
            "" => finding("", [(1.0, 98e6), (0.0, 0.0)], Verdict::OnlyInA),
            _ => finding("", [(1.0, 98e6), (1.0, 119e6)], Verdict::Slower),
        },
        largest: Some(("compute".into(), 19e6)).filter(|_| !paths[1].is_empty()),
    };
    TraceComparison {
        laps_ns: [vec![], vec![]],
        sides: [side("main", "NVIDIA H100 80GB HBM3", LAPS[0]), side("branch", "NVIDIA A100-SXM4-80GB", LAPS[1])],
        whole: finding("device time", [(200.0, 100e6), (260.0, 120e6)], Verdict::Slower),
        time: vec![
            finding("compute", [(190.0, 80e6), (250.0, 98e6)], Verdict::Slower),
            finding("exposed communication", [(10.0, 12e6), (10.0, 12.1e6)], Verdict::NoDetectableDifference(0.02)),
            finding("idle, waiting for the host", [(0.0, 8e6), (0.0, 9.9e6)], Verdict::Slower),
        ],
        tables: vec![
            Table { by: By::Class, rows: classes() },
            Table { by: By::Phase, rows: vec![finding("none", [(200.0, 92e6), (260.0, 110e6)], Verdict::Slower)] },
            Table { by: By::Shape, rows: vec![shape] },
            Table { by: By::Kernel, rows: kernels() },
        ],
        host: vec![
            host("launch call", HostUnit::Nanos, [Some(5_200.0), Some(6_900.0)], Some(1.327), Verdict::Slower),
            host("launches", HostUnit::Count, [Some(200.0), Some(260.5)], Some(1.3), Verdict::Slower),
            host("synchronising", HostUnit::Share, [Some(0.31), None], None, Verdict::SingleSample),
        ],
        layers: layers(),
        aligned: vec![aligned()],
        fusions: vec![fusion()],
        types: vec![
            TypeCount { name: "gemm".into(), lap_count: [64.0, 64.0], lap_ns: [60e6, 76e6] },
            TypeCount { name: "elementwise".into(), lap_count: [97.0, 161.5], lap_ns: [10e6, 15e6] },
        ],
        judgement: judgement(),
        warnings: vec![
            Warning {
                code: "other-device",
                severity: "warning",
                side: None,
                message: "the sides ran on different devices: NVIDIA H100 80GB HBM3 and NVIDIA A100-SXM4-80GB".into(),
                hint: "compare shares of peak rather than times".into(),
            },
            Warning {
                code: "no-stacks",
                severity: "info",
                side: Some(1),
                message: HOSTILE.into(),
                hint: String::new(),
            },
        ],
        ranks: vec![rank(0, ["a0.json", "b0.json"]), rank(1, ["a1.json", ""])],
    }
}

fn shown(shown: Shown, form: impl Fn(&CompareTrace) -> String) -> String {
    form(&CompareTrace { comparison: &comparison(), shown, top: Some(4), phase: "" })
}

fn at(width: usize) -> impl Fn(&CompareTrace) -> String {
    move |report| text(report, &Style { color: false, width: Some(width) })
}

/// The first line of the report of a modified comparison.
fn lead(change: impl Fn(&mut TraceComparison)) -> String {
    let mut comparison = comparison();
    change(&mut comparison);
    let report =
        CompareTrace { comparison: &comparison, shown: Shown::Whole, top: None, phase: "" };
    at(400)(&report).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn all_formats() {
    assert_snapshot!("text_80", shown(Shown::Whole, at(80)));
    assert_snapshot!("text_120", shown(Shown::Whole, at(120)));
    assert_snapshot!("markdown", shown(Shown::Whole, markdown));
    assert_snapshot!("csv", shown(Shown::Whole, csv));
    assert_snapshot!(
        "json",
        shown(Shown::Whole, |report| { json(&CompareTrace { top: Some(1), ..*report }) })
    );
}

#[test]
fn parts() {
    let of = [Shown::Layers, Shown::Fusion, Shown::Stacks, Shown::Table(By::Kernel)];
    assert_snapshot!("parts", of.map(|part| shown(part, at(100))).join("\n----\n"));
    let of = [Shown::Layers, Shown::Fusion, Shown::Table(By::Kernel), Shown::Table(By::Module)];
    assert_snapshot!("parts_csv", of.map(|part| shown(part, csv)).join("\n"));
}

#[test]
fn verdict_sentences() {
    let verdicts = [
        lead(|_| ()),
        lead(|it| it.sides[1].label = "a label that is far too long for a sentence".into()),
        lead(|it| it.sides.iter_mut().for_each(|side| side.marker = Marker::Forward)),
        lead(|it| it.sides[1].marker = Marker::Cycle),
        lead(|it| it.whole = finding("", [(1.0, 130e6), (1.0, 100e6)], Verdict::Faster)),
        lead(|it| {
            it.whole =
                finding("", [(1.0, 100e6), (1.0, 99.8e6)], Verdict::NoDetectableDifference(0.012));
        }),
        lead(|it| it.whole.spread = Spread::WithinOneLap),
        lead(|it| {
            (it.whole.verdict, it.whole.spread) = (Verdict::SingleSample, Spread::None);
        }),
        lead(|it| it.whole = finding("", [(1.0, 1e6), (0.0, 0.0)], Verdict::OnlyInA)),
    ];
    assert_snapshot!("verdicts", verdicts.join("\n"));
}

#[test]
fn json_is_valid() {
    let mut odd = comparison();
    odd.whole.share = f64::NAN;
    odd.time[0].gap_ns.range = Some((f64::NEG_INFINITY, f64::INFINITY));
    odd.judgement = Judgement::default();
    odd.whole.verdict = Verdict::NoDetectableDifference(f64::INFINITY);
    for comparison in [&odd, &comparison(), &TraceComparison::default()] {
        let text = json(&CompareTrace { comparison, shown: Shown::Whole, top: None, phase: "" });
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["schema"], "laggard.compare-trace/1");
        assert!(value["culprits"].is_array());
        assert!(!text.contains("NaN") && !text.contains(": inf"), "{text}");
    }
    let all = json(&CompareTrace { comparison: &odd, shown: Shown::Whole, top: None, phase: "x" });
    let value: serde_json::Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(value["findings"].as_array().map(Vec::len), Some(11));
    assert_eq!(value["findings"][3]["name"], HOSTILE);
    assert!(value["whole"]["share"].is_null() && value["not_explained"].is_null());
    assert_eq!(value["phase"], "x");
}

#[test]
fn nothing_to_compare_is_reported_in_every_format() {
    let comparison = TraceComparison::default();
    for shown in
        [Shown::Whole, Shown::Layers, Shown::Fusion, Shown::Stacks, Shown::Table(By::Kernel)]
    {
        let report = CompareTrace { comparison: &comparison, shown, top: None, phase: "" };
        for form in [at(80)(&report), markdown(&report), html(&report)] {
            assert!(
                form.contains("nothing to compare: neither side has device operations"),
                "{form}"
            );
        }
        assert_eq!(csv(&report).lines().count(), 1);
        assert!(json(&report).contains("\"culprits\": []"));
    }
}

#[test]
fn hostile_names_are_escaped() {
    for part in
        [Shown::Whole, Shown::Layers, Shown::Fusion, Shown::Stacks, Shown::Table(By::Kernel)]
    {
        for form in [shown(part, at(100)), shown(part, markdown), shown(part, html)] {
            assert!(!form.contains(['\u{1b}', '\u{202e}']), "{form}");
        }
        // Text inside code fences is not markup.
        let markdown = shown(part, markdown);
        assert!(markdown.split("```").step_by(2).all(|open| !open.contains("<script>")));
        assert!(!shown(part, html).contains("<script>"));
        // Lines of culprits are not wrapped.
        for line in shown(part, at(80)).lines().filter(|line| !line.contains("old-kernel")) {
            assert!(crate::escape::columns(line) <= 80, "{line}");
        }
    }
}

/// A trace lists all devices of its host, also those that other ranks use.
#[test]
fn only_devices_with_operations_are_counted() {
    let mut side = side("a", "V100", 9);
    for facts in &mut side.traces {
        facts.summary.about.gpus = vec![("V100".into(), 8)];
        facts.summary.devices = vec![Device::default()];
    }
    let text = words::side(&side);
    assert!(text.contains("V100 ×2;"), "{text}");
}
