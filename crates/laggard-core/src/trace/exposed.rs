//! Attribution of device time to operations, such that the parts add up even if operations overlap.
//!
//! Compute takes precedence over communication, and communication over copies. Concurrent
//! operations of the same role share the time equally.

use super::devices::{Role, role};
use super::summary::Analysis;

/// Maximum number of concurrent operations that share time. Beyond it, those that end last are
/// kept.
const MOST_AT_ONCE: usize = 64;

/// A running operation.
struct Running {
    row: u32,
    role: Role,
    end: i64,
}

/// Adds the exposed time of each operation to `of_row`. `rows` are the rows of one device in the
/// device table, sorted by start.
pub(crate) fn add_exposed(analysis: &Analysis, rows: &[u32], of_row: &mut [i64]) {
    let spans = &analysis.timeline.gpu.spans;
    let mut running: Vec<Running> = vec![];
    let mut now = i64::MIN;
    for &row in rows {
        let (start, end) = (spans.ts[row as usize], spans.end(row as usize));
        run(&mut running, &mut now, start, of_row);
        now = now.max(start);
        if end > start && analysis.keeps(row) {
            let piece = Running { row, role: role(analysis, row), end };
            match running.len() < MOST_AT_ONCE {
                true => running.push(piece),
                false => {
                    let first = running.iter_mut().min_by_key(|piece| piece.end);
                    if let Some(first) = first.filter(|first| first.end < end) {
                        *first = piece;
                    }
                }
            }
        }
    }
    run(&mut running, &mut now, i64::MAX, of_row);
}

/// Advances to `until`, or until no operation is running.
fn run(running: &mut Vec<Running>, now: &mut i64, until: i64, of_row: &mut [i64]) {
    while let Some(first_end) = running.iter().map(|piece| piece.end).min()
        && *now < until
    {
        let stop = first_end.min(until);
        share(running, stop.saturating_sub(*now), of_row);
        *now = stop;
        running.retain(|piece| piece.end > stop);
    }
}

fn share(running: &[Running], time: i64, of_row: &mut [i64]) {
    let Some(role) = running.iter().map(|piece| piece.role).min() else { return };
    let holders = || running.iter().filter(|piece| piece.role == role);
    let count = holders().count() as i64;
    // The first holder gets the remainder of the division.
    let mut rest = time % count;
    for piece in holders() {
        of_row[piece.row as usize] += time / count + std::mem::take(&mut rest);
    }
}
