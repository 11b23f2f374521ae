//! Comparison of the ranks of one job, and detection of stragglers.
//!
//! Collectives are matched by operation, group and order. The rank that arrives last has the
//! shortest duration, because all others wait inside the collective. This needs no common clock.
//! The start skew depends on synchronized host clocks.

use super::summary::{Analysis, Spread, Summary};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Input of the comparison for one rank.
#[derive(Clone, Debug, Default)]
pub struct Rank {
    /// The file.
    pub path: String,
    /// The rank, if the trace has it.
    pub rank: Option<i64>,
    /// Summary of the trace.
    pub summary: Summary,
    /// Its collectives, sorted by start.
    pub arrivals: Vec<Arrival>,
}

/// Participation of one rank in one collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// Operation, or the kernel name if the trace has no details.
    pub operation: String,
    /// Name and ranks of the process group; empty if unknown.
    pub group: String,
    /// Start, in nanoseconds since the epoch.
    pub start_ns: i64,
    /// Duration.
    pub dur_ns: i64,
}

/// Comparison of ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// One row per rank, sorted by rank.
    pub rows: Vec<RankRow>,
    /// Collectives matched across ranks, by operation.
    pub collectives: Vec<CollectiveSkew>,
}

/// One rank, summed over its devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankRow {
    /// The file.
    pub path: String,
    /// The rank, if the trace has it.
    pub rank: Option<i64>,
    /// Number of kernels.
    pub kernels: u64,
    /// From the first start to the last end of device operations.
    pub span_ns: i64,
    /// Time with at least one operation running.
    pub busy_ns: i64,
    /// Time with compute running.
    pub compute_ns: i64,
    /// Communication time not overlapped by compute.
    pub exposed_communication_ns: i64,
    /// Time without any operation running.
    pub idle_ns: i64,
    /// Idle time spent waiting for the host.
    pub host_bound_ns: i64,
    /// Step duration on the host, if there are steps.
    pub step_ns: Option<Spread>,
    /// Matched collectives in which this rank arrived last.
    pub last_in: u64,
    /// Collectives matched with other ranks.
    pub matched: u64,
}

/// Arrival skew of the collectives of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveSkew {
    /// Operation.
    pub operation: String,
    /// Number of matched collectives.
    pub count: u64,
    /// From the first to the last start.
    pub start_skew_ns: Spread,
    /// Longest minus shortest duration: how long the first rank waits for the last.
    pub wait_ns: Spread,
    /// Row of the rank that arrived last most often, and how often it did.
    pub straggler: (usize, u64),
}

/// The collectives of one rank.
pub fn arrivals(analysis: &Analysis) -> Vec<Arrival> {
    let timeline = analysis.timeline;
    let gpu = &timeline.gpu;
    let details = timeline.collective_details();
    let mut arrivals: Vec<Arrival> = analysis
        .rows
        .iter()
        .filter(|&&row| analysis.rules.is_communication(analysis.class(row)))
        .map(|&row| {
            let details = details(row);
            let text = |id: u32| timeline.strings.get(id).to_owned();
            Arrival {
                operation: details
                    .map_or_else(|| text(gpu.spans.name[row as usize]), |c| text(c.operation)),
                group: details.map_or_else(String::new, |c| text(c.group) + " " + &text(c.ranks)),
                start_ns: timeline.about.base_time_ns.saturating_add(gpu.spans.ts[row as usize]),
                dur_ns: gpu.spans.dur[row as usize].max(0),
            }
        })
        .collect();
    arrivals.sort_by_key(|arrival| arrival.start_ns);
    arrivals
}

/// Participation of one rank in a matched collective.
struct Part {
    row: usize,
    start_ns: i64,
    dur_ns: i64,
}

/// Compares ranks.
pub fn side_by_side(mut ranks: Vec<Rank>) -> Ranks {
    ranks.sort_by(|a, b| {
        (a.rank.unwrap_or(i64::MAX), &a.path).cmp(&(b.rank.unwrap_or(i64::MAX), &b.path))
    });
    let mut rows: Vec<RankRow> = ranks.iter().map(row).collect();
    // The n-th collective of an operation and group is matched across ranks.
    let mut matches: FxHashMap<(&str, &str, usize), Vec<Part>> = FxHashMap::default();
    for (i, rank) in ranks.iter().enumerate() {
        let mut seen: FxHashMap<(&str, &str), usize> = FxHashMap::default();
        for arrival in &rank.arrivals {
            let n = seen.entry((&arrival.operation, &arrival.group)).or_default();
            matches.entry((&arrival.operation, &arrival.group, *n)).or_default().push(Part {
                row: i,
                start_ns: arrival.start_ns,
                dur_ns: arrival.dur_ns,
            });
            *n += 1;
        }
    }
    struct Skews {
        start: Vec<i64>,
        wait: Vec<i64>,
        last: Vec<u64>,
    }
    let mut by_operation: FxHashMap<&str, Skews> = FxHashMap::default();
    for ((operation, _, _), parts) in matches.into_iter().filter(|(_, parts)| parts.len() > 1) {
        let skews = by_operation.entry(operation).or_insert_with(|| Skews {
            start: vec![],
            wait: vec![],
            last: vec![0; rows.len()],
        });
        let spread = |of: fn(&Part) -> i64| {
            parts
                .iter()
                .map(of)
                .max()
                .unwrap_or(0)
                .saturating_sub(parts.iter().map(of).min().unwrap_or(0))
        };
        skews.start.push(spread(|part| part.start_ns));
        skews.wait.push(spread(|part| part.dur_ns));
        if let Some(last) = parts.iter().min_by_key(|part| part.dur_ns) {
            skews.last[last.row] += 1;
            rows[last.row].last_in += 1;
        }
        for part in parts {
            rows[part.row].matched += 1;
        }
    }
    let mut collectives: Vec<CollectiveSkew> = by_operation
        .into_iter()
        .map(|(operation, mut skews)| {
            let straggler = skews
                .last
                .iter()
                .copied()
                .enumerate()
                .max_by_key(|&(i, n)| (n, std::cmp::Reverse(i)))
                .unwrap_or((0, 0));
            CollectiveSkew {
                operation: operation.to_owned(),
                count: skews.wait.len() as u64,
                start_skew_ns: Spread::of(&mut skews.start),
                wait_ns: Spread::of(&mut skews.wait),
                straggler,
            }
        })
        .collect();
    collectives.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.operation.cmp(&b.operation)));
    Ranks { rows, collectives }
}

fn row(rank: &Rank) -> RankRow {
    let sum = |of: fn(&super::summary::Device) -> i64| {
        rank.summary.devices.iter().map(of).fold(0i64, i64::saturating_add)
    };
    RankRow {
        path: rank.path.clone(),
        rank: rank.rank,
        kernels: rank.summary.totals.kernels.count,
        span_ns: sum(|d| d.span_ns),
        busy_ns: sum(|d| d.busy_ns),
        compute_ns: sum(|d| d.compute_ns),
        exposed_communication_ns: sum(|d| d.exposed_communication_ns),
        idle_ns: sum(|d| d.idle_ns),
        host_bound_ns: sum(|d| d.idle.host_bound_ns),
        step_ns: rank.summary.steps.as_ref().map(|steps| steps.duration_ns),
        ..RankRow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(number: i64, parts: &[(i64, i64)]) -> Rank {
        let arrival = |&(start_ns, dur_ns): &(i64, i64)| Arrival {
            operation: "allreduce".into(),
            group: "0".into(),
            start_ns,
            dur_ns,
        };
        Rank {
            path: format!("r{number}"),
            rank: Some(number),
            arrivals: parts.iter().map(arrival).collect(),
            ..Rank::default()
        }
    }

    #[test]
    fn last_rank_has_the_shortest_collective() {
        // Rank 1 is 50 late twice, rank 0 is 5 late once. Rank 0 has one more unmatched collective.
        let ranks = side_by_side(vec![
            rank(1, &[(150, 10), (250, 10), (300, 15)]),
            rank(0, &[(100, 60), (200, 60), (305, 10), (400, 1)]),
        ]);
        assert_eq!(
            ranks.rows.iter().map(|r| (r.rank, r.last_in, r.matched)).collect::<Vec<_>>(),
            [(Some(0), 1, 3), (Some(1), 2, 3)]
        );
        let skew = &ranks.collectives[0];
        assert_eq!(
            (skew.count, skew.start_skew_ns.median, skew.wait_ns.max, skew.straggler),
            (3, 50, 50, (1, 2))
        );
    }
}
