//! The timeline of a trace: device operations by stream, with class and phase.

use super::data::short_names;
use super::samples::Numbers;
use super::{Timeline, Track};
use crate::number::count;
use laggard_core::trace::Analysis;
use std::collections::BTreeMap;

/// Maximum number of operations in a page; the longest are kept.
const MOST: usize = 200_000;

/// Device operations by device and stream; `None` without device operations.
pub fn of_trace(analysis: &Analysis) -> Option<Timeline> {
    let timeline = analysis.timeline;
    let gpu = &timeline.gpu;
    let (starts, durations) = (&gpu.spans.ts, &gpu.spans.dur);
    let mut rows = analysis.rows.clone();
    let all = rows.len();
    if all > MOST {
        rows.select_nth_unstable_by_key(MOST, |&row| std::cmp::Reverse(durations[row as usize]));
        rows.truncate(MOST);
    }
    rows.sort_unstable_by_key(|&row| (starts[row as usize], row));
    let base = starts[*rows.first()? as usize];
    let (mut strings, mut classes, mut phases) =
        (Numbers::default(), Numbers::default(), Numbers::default());
    let mut tracks: BTreeMap<(Option<i64>, String, Option<i64>, String), Track> = BTreeMap::new();
    let mut end = 0;
    for row in rows {
        let at = row as usize;
        let start = starts[at].saturating_sub(base).max(0) as u64;
        let duration = durations[at].max(0) as u64;
        end = end.max(start.saturating_add(duration));
        let [device, stream] = [gpu.device[at], gpu.stream[at]];
        let ids = &timeline.ids;
        let key = (ids.number(device), ids.text(device), ids.number(stream), ids.text(stream));
        let track = tracks.entry(key).or_default();
        track.start.push(start);
        track.duration.push(duration);
        track.label.push(strings.of(timeline.strings.get(gpu.spans.name[at]).to_owned()));
        track.class.push(classes.of(analysis.rules.class(analysis.class(row)).name.to_string()));
        let phase = analysis.phases.label(gpu.phase.get(at).copied().unwrap_or(0));
        track.phase.push(phases.of(phase.to_owned()) as i32);
    }
    let mut named = |numbers: Numbers| {
        numbers.texts.into_iter().map(|text| strings.of(text)).collect::<Vec<u32>>()
    };
    let (classes, phases) = (named(classes), named(phases));
    let tracks = tracks.into_iter().map(|((_, device, _, stream), track)| Track {
        name: format!("stream {stream}"),
        group: format!("device {device}"),
        ..track
    });
    Some(Timeline {
        end,
        unit: "ns",
        short: short_names(&strings.texts),
        strings: strings.texts,
        classes,
        phases,
        tracks: tracks.collect(),
        note: match all > MOST {
            true => format!("{} shorter operations not shown", count((all - MOST) as u64)),
            false => String::new(),
        },
    })
}
