//! JSON of several ranks, schema `laggard.report.ranks/1`.
//!
//! Times are in nanoseconds and shares from 0 to 1. The requested number of rows limits `ranks` and
//! `collectives`.

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

/// The top-level object.
#[derive(Serialize)]
struct Ranks<'a> {
    /// Schema name and version.
    schema: &'static str,
    /// Number of ranks before truncation.
    distinct: u64,
    /// Rows sorted by rank.
    ranks: Vec<Rank<'a>>,
    /// Share of collectives in which each rank would arrive last if all ranks were equal; null
    /// without matched collectives.
    even_share: Option<f64>,
    /// Ranks that arrive last significantly more often than the even share.
    stragglers: Vec<Straggler<'a>>,
    /// Collectives matched across ranks, by operation.
    collectives: Vec<Collective<'a>>,
}

/// One rank, summed over its devices.
#[derive(Serialize)]
struct Rank<'a> {
    /// Null if the trace has no rank.
    rank: Option<i64>,
    file: &'a str,
    /// Number of kernels.
    kernels: u64,
    /// From the first start to the last end of device operations.
    span_ns: i64,
    /// Time with at least one operation running.
    busy_ns: i64,
    /// Time with compute running.
    compute_ns: i64,
    /// Communication time not overlapped by compute.
    exposed_communication_ns: i64,
    /// Time without any operation running.
    idle_ns: i64,
    /// Idle time spent waiting for the host.
    host_bound_ns: i64,
    /// Step duration on the host; null without steps.
    step_ns: Option<Spread>,
    /// Matched collectives in which this rank arrived last.
    last_in: u64,
    /// Collectives matched with other ranks.
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

/// A rank that other ranks wait for.
#[derive(Serialize)]
struct Straggler<'a> {
    /// Null if the trace has no rank.
    rank: Option<i64>,
    file: &'a str,
    /// Matched collectives in which it arrived last.
    last_in: u64,
    /// Collectives matched with other ranks.
    matched: u64,
    /// `last_in` over `matched`.
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

/// Arrival skew of the collectives of one operation.
#[derive(Serialize)]
struct Collective<'a> {
    operation: &'a str,
    /// Matched collectives.
    count: u64,
    /// From the first to the last start; depends on synchronized host clocks.
    start_skew_ns: Spread,
    /// Longest minus shortest duration: how long the first rank waits for the last.
    wait_ns: Spread,
    /// The rank that arrived last most often; null if its trace has no rank.
    last_rank: Option<i64>,
    /// File of that rank.
    last_file: Option<&'a str>,
    /// Collectives in which that rank arrived last.
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
