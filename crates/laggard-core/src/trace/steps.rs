//! Steps of a training loop, or iterations of a serving loop.

use super::phase::{is_iteration, step_number};
use super::summary::{Analysis, ROWS_KEPT, Spread, Step, Steps};
use crate::model::timeline::Timeline;

/// The steps that annotations mark on the host, with the device work launched in each.
pub(super) fn steps(analysis: &Analysis) -> Option<Steps> {
    let timeline = analysis.timeline;
    let (marker, mut marks) = marks(timeline)?;
    let spans = &timeline.annotations.spans;
    marks.sort_by_key(|&row| spans.ts[row as usize]);
    let start = timeline.extent().map_or(0, |(start, _)| start);
    let mut rows: Vec<Step> = marks
        .iter()
        .map(|&row| Step {
            name: timeline.strings.get(spans.name[row as usize]).to_owned(),
            start_ns: spans.ts[row as usize].saturating_sub(start),
            duration_ns: spans.dur[row as usize].max(0),
            ..Step::default()
        })
        .collect();
    let gpu = &timeline.gpu;
    for &row in &analysis.rows {
        let row = row as usize;
        let Some(&launched) = timeline.runtime.spans.ts.get(gpu.launch[row] as usize) else {
            continue;
        };
        let next = marks.partition_point(|&mark| spans.ts[mark as usize] <= launched);
        if next > 0 && spans.end(marks[next - 1] as usize) >= launched {
            let step = &mut rows[next - 1];
            step.gpu_ns = step.gpu_ns.saturating_add(gpu.spans.dur[row].max(0));
            step.gpu_count += 1;
        }
    }
    let spread = |of: fn(&Step) -> i64| Spread::of(&mut rows.iter().map(of).collect::<Vec<_>>());
    let (duration_ns, gpu_ns) = (spread(|step| step.duration_ns), spread(|step| step.gpu_ns));
    rows.truncate(ROWS_KEPT);
    Some(Steps { marker: marker.to_owned(), duration_ns, gpu_ns, rows })
}

fn marks(timeline: &Timeline) -> Option<(&'static str, Vec<u32>)> {
    let spans = &timeline.annotations.spans;
    let on_host = |row: &u32| {
        timeline.kinds[spans.kind[*row as usize] as usize].category == "user_annotation"
    };
    let named = |is: fn(&str) -> bool| -> Vec<u32> {
        let rows = (0..spans.len() as u32).filter(on_host);
        rows.filter(|&row| is(timeline.strings.get(spans.name[row as usize]))).collect()
    };
    let profiler = named(|name| step_number(name).is_some());
    if !profiler.is_empty() {
        return Some(("ProfilerStep", profiler));
    }
    let iterations = named(is_iteration);
    (!iterations.is_empty()).then_some(("iteration", iterations))
}
