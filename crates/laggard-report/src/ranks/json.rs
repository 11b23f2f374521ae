//! JSON of several ranks, schema `laggard.report.ranks/1`.
//!
//! Times are in nanoseconds, shares from 0 to 1; `ranks` and `collectives` are bounded by the rows
//! asked for.

use super::{RanksReport, straggler};
use crate::number::share;
use crate::rows::kept;
use crate::shape::{self, Spread};
use laggard_core::trace::ranks;
use serde::Serialize;

pub(super) fn json(report: &RanksReport) -> String {
    let rows = &report.ranks.rows;
    shape::pretty(&Ranks {
        schema: "laggard.report.ranks/1",
        distinct: rows.len() as u64,
        ranks: kept(rows, report.top).iter().map(Into::into).collect(),
        even_share: straggler::even_share(rows),
        stragglers: straggler::stragglers(rows).iter().map(|&i| (&rows[i]).into()).collect(),
        collectives: kept(&report.ranks.collectives, report.top)
            .iter()
            .map(|collective| Collective::new(collective, rows))
            .collect(),
    })
}

/// The whole of it.
#[derive(Serialize)]
struct Ranks<'a> {
    /// Name and version of this shape.
    schema: &'static str,
    /// Ranks there are in all.
    distinct: u64,
    /// One a rank, by rank.
    ranks: Vec<Rank<'a>>,
    /// Share of collectives in which a rank would come last if all were alike; null without any.
    even_share: Option<f64>,
    /// Ranks that come last in clearly more than that, beyond chance.
    stragglers: Vec<Straggler<'a>>,
    /// Collectives that several ranks took part in, by operation.
    collectives: Vec<Collective<'a>>,
}

/// One rank; sums over its devices.
#[derive(Serialize)]
struct Rank<'a> {
    /// The rank; null if the trace does not say.
    rank: Option<i64>,
    /// The file.
    file: &'a str,
    /// Kernels.
    kernels: u64,
    /// From the first to the last device work.
    span_ns: i64,
    /// Something ran.
    busy_ns: i64,
    /// Compute ran.
    compute_ns: i64,
    /// Communication ran and no compute.
    exposed_communication_ns: i64,
    /// Nothing ran.
    idle_ns: i64,
    /// Of that, waiting for the host.
    host_bound_ns: i64,
    /// Step on the host; null without steps.
    step_ns: Option<Spread>,
    /// Collectives in which this rank came last, of those matched.
    last_in: u64,
    /// Collectives matched.
    matched: u64,
}

impl<'a> From<&'a ranks::RankRow> for Rank<'a> {
    fn from(row: &'a ranks::RankRow) -> Rank<'a> {
        Rank {
            rank: row.rank,
            file: &row.path,
            kernels: row.kernels,
            span_ns: row.span_ns,
            busy_ns: row.busy_ns,
            compute_ns: row.compute_ns,
            exposed_communication_ns: row.exposed_communication_ns,
            idle_ns: row.idle_ns,
            host_bound_ns: row.host_bound_ns,
            step_ns: row.step_ns.as_ref().map(Into::into),
            last_in: row.last_in,
            matched: row.matched,
        }
    }
}

/// A rank that keeps the others waiting.
#[derive(Serialize)]
struct Straggler<'a> {
    /// The rank; null if the trace does not say.
    rank: Option<i64>,
    /// The file.
    file: &'a str,
    /// Collectives in which it came last.
    last_in: u64,
    /// Collectives matched.
    matched: u64,
    /// The one over the other.
    share: f64,
}

impl<'a> From<&'a ranks::RankRow> for Straggler<'a> {
    fn from(row: &'a ranks::RankRow) -> Straggler<'a> {
        Straggler {
            rank: row.rank,
            file: &row.path,
            last_in: row.last_in,
            matched: row.matched,
            share: share(row.last_in as f64, row.matched as f64),
        }
    }
}

/// How far apart ranks come to collectives of one operation.
#[derive(Serialize)]
struct Collective<'a> {
    /// Operation.
    operation: &'a str,
    /// Collectives matched.
    count: u64,
    /// From the first rank's start to the last one's; only as good as the hosts' clocks agree.
    start_skew_ns: Spread,
    /// From the shortest to the longest duration: the wait of the first for the last.
    wait_ns: Spread,
    /// The rank that came last most often; null if its trace does not say its rank.
    last_rank: Option<i64>,
    /// That rank's file.
    last_file: Option<&'a str>,
    /// In how many it came last.
    last_in: u64,
}

impl<'a> Collective<'a> {
    fn new(skew: &'a ranks::CollectiveSkew, rows: &'a [ranks::RankRow]) -> Collective<'a> {
        let (last, last_in) = skew.straggler;
        let last = rows.get(last);
        Collective {
            operation: &skew.operation,
            count: skew.count,
            start_skew_ns: (&skew.start_skew_ns).into(),
            wait_ns: (&skew.wait_ns).into(),
            last_rank: last.and_then(|row| row.rank),
            last_file: last.map(|row| row.path.as_str()),
            last_in,
        }
    }
}
