//! Training steps and serving iterations.

use super::phase::{is_iteration, step_number};
use super::summary::{Analysis, Spread, Step, Steps};
use crate::model::NONE;
use crate::model::timeline::{Spans, Timeline};
use std::cmp::Reverse;

/// All steps annotated on the host, with the device time launched in each.
pub fn steps(analysis: &Analysis) -> Option<Steps> {
    Some(stepped(analysis)?.0)
}

/// The steps, and the step in which each row of the analysis was launched; `NONE` outside steps.
pub fn stepped(analysis: &Analysis) -> Option<(Steps, Vec<u32>)> {
    let timeline = analysis.timeline;
    let (marker, spans, marks) = marks(timeline)?;
    let start = timeline.extent().map_or(0, |(start, _)| start);
    let step = |&row: &u32| Step {
        name: timeline.strings.get(spans.name[row as usize]).to_owned(),
        start_ns: spans.ts[row as usize].saturating_sub(start),
        duration_ns: spans.dur[row as usize].max(0),
        ..Step::default()
    };
    let mut rows: Vec<Step> = marks.iter().map(step).collect();
    let bounds: Vec<(i64, i64)> =
        marks.iter().map(|&row| (spans.ts[row as usize], spans.end(row as usize))).collect();
    let of_rows = launched_in(analysis, &bounds);
    for (&row, &step) in analysis.rows.iter().zip(&of_rows) {
        if let Some(step) = rows.get_mut(step as usize) {
            let dur = timeline.gpu.spans.dur[row as usize].max(0);
            step.gpu_ns = step.gpu_ns.saturating_add(dur);
            step.gpu_count += 1;
        }
    }
    let spread = |of: fn(&Step) -> i64| Spread::of(&mut rows.iter().map(of).collect::<Vec<_>>());
    let (duration_ns, gpu_ns) = (spread(|step| step.duration_ns), spread(|step| step.gpu_ns));
    Some((Steps { marker: marker.to_owned(), duration_ns, gpu_ns, rows }, of_rows))
}

/// Index of the host time range in which each row of the analysis was launched; `NONE` outside all
/// ranges and for unlinked rows. Ranges are sorted and do not overlap.
pub(crate) fn launched_in(analysis: &Analysis, bounds: &[(i64, i64)]) -> Vec<u32> {
    let timeline = analysis.timeline;
    let mut latest = 0;
    let of_row = |&row: &u32| {
        let launch = timeline.gpu.launch[row as usize] as usize;
        let Some(&launched) = timeline.runtime.spans.ts.get(launch) else { return NONE };
        // Usually the same range as for the previous row.
        let is_latest = |&(start, end): &(i64, i64)| start <= launched && launched < end;
        if bounds.get(latest).is_some_and(is_latest) {
            return latest as u32;
        }
        let next = bounds.partition_point(|&(start, _)| start <= launched);
        if next == 0 || bounds[next - 1].1 < launched {
            return NONE;
        }
        latest = next - 1;
        latest as u32
    };
    analysis.rows.iter().map(of_row).collect()
}

/// The kind of step marker, and its rows sorted by time.
pub(crate) fn marks(timeline: &Timeline) -> Option<(&'static str, &Spans, Vec<u32>)> {
    let is_step: fn(&str) -> bool = |name| step_number(name).is_some();
    let candidates = [
        ("ProfilerStep", &timeline.annotations.spans, is_step),
        // Traces from 2021 record steps as operators.
        ("ProfilerStep", &timeline.ops.spans, is_step),
        ("iteration", &timeline.annotations.spans, is_iteration),
    ];
    let marked = candidates
        .into_iter()
        .map(|(marker, spans, is)| (marker, spans, outermost(timeline, spans, is)));
    marked.into_iter().find(|(_, _, marks)| !marks.is_empty())
}

/// Host rows whose names satisfy `is`, sorted by time, without nested ones.
fn outermost(timeline: &Timeline, spans: &Spans, is: fn(&str) -> bool) -> Vec<u32> {
    let category = |row: u32| &timeline.kinds[spans.kind[row as usize] as usize].category;
    let mut rows: Vec<u32> = (0..spans.len() as u32)
        .filter(|&row| is(timeline.strings.get(spans.name[row as usize])))
        .filter(|&row| category(row) != "gpu_user_annotation")
        .collect();
    rows.sort_by_key(|&row| (spans.ts[row as usize], Reverse(spans.dur[row as usize])));
    let mut end = i64::MIN;
    rows.retain(|&row| {
        let outer = spans.ts[row as usize] >= end;
        if outer {
            end = spans.end(row as usize);
        }
        outer
    });
    rows
}
