//! Warnings and notes of a trace comparison, each with a hint.

use super::amounts::{Counted, Mix};
use super::found::{Architecture, Marker, TraceComparison, Warning};
use crate::model::NONE;

/// Share of unclassified device time above which classes mean little.
const MUCH_UNKNOWN: f64 = 0.2;
/// Number of device operations above which layers should be found.
const SHOULD_HAVE_LAYERS: usize = 100;
/// Allowed deviation of a layer's kernel count from the mean.
const LAYERS_VARY: f64 = 0.3;
/// Share of device operations outside steps above which a note is added.
const MUCH_OUTSIDE: f64 = 0.05;

/// Code of the note that no steps were found.
pub(super) const NO_LAPS: &str = "NO_LAPS";
/// Share of time in operators and shapes of only one side above which the workloads differ.
const OTHER_WORK: f64 = 0.5;

/// Collects all warnings and notes.
pub(super) fn warnings(found: &TraceComparison, both: [&Counted; 2], mix: &Mix) -> Vec<Warning> {
    let mut said = vec![];
    let mut say = |code, severity, side, message: String, hint: &str| {
        said.push(Warning { code, severity, side, message, hint: hint.to_owned() });
    };
    for (side, counted) in both.into_iter().enumerate() {
        let about = &found.sides[side];
        let runs = &counted.runs;
        let pieces: usize = runs.iter().map(|run| run.pieces.len()).sum();
        for run in runs {
            for loss in &run.summary.losses {
                say(
                    "LOSSES",
                    "warning",
                    Some(side),
                    format!("{}: {} × {}", run.path, loss.count, loss.explanation),
                    "`laggard report` shows the byte offsets",
                );
            }
        }
        if pieces == 0 {
            say(
                "NO_DEVICE_WORK",
                "warning",
                Some(side),
                "no device operations recorded".to_owned(),
                "record device activity: ProfilerActivity.CUDA",
            );
            continue;
        }
        if runs
            .iter()
            .all(|run| run.laps.all.iter().all(|lap| lap.kind == 0) && is_without_phase(run))
        {
            say(
                "NO_PHASE_ANNOTATIONS",
                "info",
                Some(side),
                "no phase annotations: prefill, decode, forward and other phases cannot be distinguished"
                    .to_owned(),
                "annotate phases with torch.profiler.record_function and name them with --phase-pattern",
            );
        }
        if runs.iter().all(|run| !run.summary.about.stacks) {
            say(
                "NO_PYTHON_STACKS",
                "info",
                Some(side),
                "no Python stacks: the Python lines of launches are unknown".to_owned(),
                "record with with_stack=True",
            );
        }
        let unknown = runs.iter().map(|run| run.summary.unclassified_share).fold(0.0, f64::max);
        if unknown > MUCH_UNKNOWN {
            say(
                "HIGH_UNKNOWN_KERNELS",
                "warning",
                Some(side),
                format!("{:.0} % of device time is in unclassified kernels", unknown * 100.0),
                "list them with `laggard report --unclassified` and add rules with --rules",
            );
        }
        if found.layers.counts[side] == 0 && pieces > SHOULD_HAVE_LAYERS {
            let code = match about.architecture {
                Architecture::Unknown => "NO_LAYER_MARKERS",
                _ => "LAYER_DETECTION_FAILED",
            };
            say(
                code,
                "info",
                Some(side),
                "no layers found: no nn.Module calls and no repeating kernel sequence".to_owned(),
                "record with with_modules=True or with_stack=True",
            );
        }
        match about.architecture {
            Architecture::Hybrid => say(
                "HYBRID_ARCHITECTURE",
                "info",
                Some(side),
                "the model has attention and state-space kernels: its layers are of several kinds"
                    .to_owned(),
                "list them with --layers",
            ),
            Architecture::Unknown => say(
                "UNKNOWN_ARCHITECTURE",
                "info",
                Some(side),
                "no attention or state-space kernels: the architecture is unknown".to_owned(),
                "classify unknown kernels with --rules",
            ),
            _ => {}
        }
        if let Some(run) = runs.first() {
            let sizes = sizes_of_layers(run);
            let mean = sizes.iter().sum::<f64>() / sizes.len().max(1) as f64;
            let vary =
                sizes.iter().filter(|size| (**size - mean).abs() > LAYERS_VARY * mean).count();
            if vary > 0 {
                say(
                    "LAYER_SIZE_VARIANCE",
                    "info",
                    Some(side),
                    format!(
                        "kernel counts differ from the mean of {mean:.0} by more than 30 % in {vary} of {} layers",
                        sizes.len()
                    ),
                    "layers may be of several kinds: list them with --layers",
                );
            }
        }
        let outside = about.outside.0;
        if outside as f64 > MUCH_OUTSIDE * pieces as f64 {
            say(
                "WORK_OUTSIDE_LAPS",
                "info",
                Some(side),
                format!(
                    "{outside} of {pieces} device operations are outside any {}: they count in the totals only",
                    about.marker.word()
                ),
                "record complete steps: torch.profiler.schedule with a warmup",
            );
        }
    }
    if found.sides[0].marker == Marker::Whole {
        say(
            NO_LAPS,
            "info",
            None,
            "no step markers and no repeating kernel sequence: the traces are compared as a whole"
                .to_owned(),
            "mark steps with prof.step()",
        );
    }
    if mix.0.len() > 1 || found.sides[0].kinds != found.sides[1].kinds {
        let words = found.sides.each_ref().map(|side| {
            let kinds: Vec<String> = side
                .kinds
                .iter()
                .map(|(kind, n)| format!("{n} {}", if kind.is_empty() { "other" } else { kind }))
                .collect();
            kinds.join(", ")
        });
        if words[0] != words[1] && found.sides.iter().any(|side| side.kinds.len() > 1) {
            say(
                "PHASES_DIFFER",
                "info",
                None,
                format!(
                    "A has {}, B has {}: each kind is compared separately and weighted as in A",
                    words[0], words[1]
                ),
                "compare a single phase with --phase",
            );
        }
    }
    if both[0].runs.len() != both[1].runs.len() {
        say(
            "RANKS_DIFFER",
            "warning",
            None,
            format!("A has {} traces, B has {}", both[0].runs.len(), both[1].runs.len()),
            "compare jobs with the same number of ranks, or single ranks",
        );
    }
    let own = own_shapes(found);
    if own.iter().all(|share| *share > OTHER_WORK) {
        say(
            "OTHER_WORK",
            "warning",
            None,
            format!(
                "{:.0} % of A's time and {:.0} % of B's time are in operators and shapes that the other side lacks: the workloads may differ",
                own[0] * 100.0,
                own[1] * 100.0
            ),
            "list them with --by shape",
        );
    }
    // A message that applies to both sides is shown once.
    let mut once: Vec<Warning> = vec![];
    for warning in said {
        let same =
            |other: &&mut Warning| other.code == warning.code && other.message == warning.message;
        match once.iter_mut().find(same) {
            Some(other) => other.side = None,
            None => once.push(warning),
        }
    }
    once
}

/// Of each side's time in known operators and shapes, the share in those that the other side lacks.
fn own_shapes(found: &TraceComparison) -> [f64; 2] {
    let table = found.tables.iter().find(|table| table.by == crate::trace::By::Shape);
    let rows = || table.iter().flat_map(|table| &table.rows).filter(|row| row.name.contains('['));
    [0, 1].map(|side| {
        let time = |is_own: bool| -> i64 {
            let rows = rows().filter(|row| !is_own || row.sides[1 - side].count == 0);
            rows.map(|row| row.sides[side].total_ns).fold(0, i64::saturating_add)
        };
        time(true) as f64 / time(false).max(1) as f64
    })
}

/// The warning that the sides have no unit of work in common.
pub(super) fn laps_differ(markers: [Vec<Marker>; 2]) -> Warning {
    let words = markers.map(|mut markers| {
        markers.dedup();
        markers.into_iter().map(Marker::word).collect::<Vec<_>>().join(", ")
    });
    Warning {
        code: "LAPS_DIFFER",
        severity: "warning",
        side: None,
        message: format!(
            "the units of work differ (A: {}; B: {}): the traces are compared as a whole, and the workloads may differ",
            words[0], words[1]
        ),
        hint:
            "mark steps the same way on both sides: prof.step() or torch.profiler.record_function"
                .into(),
    }
}

fn is_without_phase(run: &super::Run) -> bool {
    run.labels(crate::trace::By::Phase)
        .is_none_or(|labels| labels.names.iter().all(|name| name == "none"))
}

fn sizes_of_layers(run: &super::Run) -> Vec<f64> {
    let mut sizes = vec![0.0; run.layers.names.len()];
    for &layer in run.layers.of.iter().filter(|layer| **layer != NONE) {
        sizes[layer as usize] += 1.0;
    }
    sizes
}
