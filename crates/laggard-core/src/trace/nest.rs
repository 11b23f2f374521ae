//! Finds the spans of a track that enclose a point in time.

use crate::model::timeline::Spans;

/// A moment on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) track: u32,
    pub(crate) ts: i64,
    /// Identifier chosen by the caller.
    pub(crate) asker: u32,
}

/// Maximum number of overlapping rows examined.
const DEEPEST: usize = 4096;

/// Calls `visit` for every moment with the rows of `spans` that are open on its track, outermost
/// first. Moments must be sorted. Rows that outlast their enclosing row are visited until they end.
pub(crate) fn visit(
    spans: &Spans,
    tracks: usize,
    moments: &[Moment],
    mut visit: impl FnMut(u32, &[u32]),
) {
    let mut open: Vec<u32> = vec![];
    let mut last = vec![];
    let by_track = RowsByTrack::new(spans, tracks, moments);
    for moments in moments.chunk_by(|a, b| a.track == b.track) {
        let mut rows = by_track.rows(moments[0].track).iter().copied().peekable();
        open.clear();
        // Whether a row may outlast its enclosing row, so that closed rows lie below open ones.
        let mut overlapping = false;
        for moment in moments {
            while let Some(row) = rows.next_if(|&row| spans.ts[row as usize] <= moment.ts) {
                close(&mut open, spans, spans.ts[row as usize]);
                let end = |row: u32| spans.end(row as usize);
                overlapping |= open.last().is_some_and(|&around| end(around) < end(row));
                open.push(row);
            }
            close(&mut open, spans, moment.ts);
            if !overlapping {
                visit(moment.asker, &open);
            } else {
                let still_open = |row: &u32| spans.end(*row as usize) >= moment.ts;
                last.clear();
                last.extend(open.iter().rev().take(DEEPEST).copied().filter(still_open));
                last.reverse();
                visit(moment.asker, &last);
            }
        }
    }
}

/// Pops rows that ended before `ts`.
fn close(open: &mut Vec<u32>, spans: &Spans, ts: i64) {
    while open.last().is_some_and(|&row| spans.end(row as usize) < ts) {
        open.pop();
    }
}

/// Rows of a table grouped by track, sorted by start, then longest first.
struct RowsByTrack {
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl RowsByTrack {
    /// Skips tracks without moments.
    fn new(spans: &Spans, tracks: usize, moments: &[Moment]) -> RowsByTrack {
        let mut wanted = vec![false; tracks];
        for moment in moments {
            wanted[moment.track as usize] = true;
        }
        let mut counts = vec![0usize; tracks + 1];
        for &track in spans.track.iter() {
            if wanted[track as usize] {
                counts[track as usize + 1] += 1;
            }
        }
        for i in 1..counts.len() {
            counts[i] += counts[i - 1];
        }
        let starts = counts.clone();
        let mut rows = vec![0u32; *counts.last().unwrap_or(&0)];
        for (row, &track) in spans.track.iter().enumerate() {
            if wanted[track as usize] {
                rows[counts[track as usize]] = row as u32;
                counts[track as usize] += 1;
            }
        }
        let key = |row: u32| (spans.ts[row as usize], std::cmp::Reverse(spans.dur[row as usize]));
        for bounds in starts.windows(2) {
            let rows = &mut rows[bounds[0]..bounds[1]];
            if !rows.is_sorted_by_key(|&row| key(row)) {
                rows.sort_by_key(|&row| key(row));
            }
        }
        RowsByTrack { rows, starts }
    }

    fn rows(&self, track: u32) -> &[u32] {
        &self.rows[self.starts[track as usize]..self.starts[track as usize + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(rows: &[(u32, i64, i64)]) -> Spans {
        Spans {
            ts: rows.iter().map(|r| r.1).collect::<Vec<_>>().into(),
            dur: rows.iter().map(|r| r.2).collect::<Vec<_>>().into(),
            name: vec![0; rows.len()].into(),
            track: rows.iter().map(|r| r.0).collect::<Vec<_>>().into(),
            kind: vec![0; rows.len()].into(),
        }
    }

    #[test]
    fn only_open_rows_of_the_same_track_are_found() {
        // Unsorted, nested and on two tracks; row 3 outlasts its enclosing row.
        let spans = spans(&[(0, 10, 5), (0, 0, 100), (1, 0, 100), (0, 20, 200), (0, 30, 10)]);
        let mut moments: Vec<Moment> = [(0, 12), (0, 16), (0, 35), (0, 150), (1, 35), (0, 300)]
            .iter()
            .enumerate()
            .map(|(i, &(track, ts))| Moment { track, ts, asker: i as u32 })
            .collect();
        moments.sort();
        let mut found = vec![vec![]; 6];
        visit(&spans, 2, &moments, |asker, open| found[asker as usize] = open.to_vec());
        assert_eq!(found, [vec![1, 0], vec![1], vec![1, 3, 4], vec![3], vec![2], vec![]]);
    }
}
