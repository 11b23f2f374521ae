//! Devices, launches, and links from device operations to the host.

use crate::rows::kept;
use crate::shape::Spread;
use laggard_core::trace::summary;
use serde::Serialize;

/// Busy and idle time of one device.
#[derive(Serialize)]
pub(super) struct Device<'a> {
    /// Device number in the trace.
    device: &'a str,
    /// Empty if unknown.
    name: &'a str,
    /// From the first start to the last end of its operations.
    span_ns: i64,
    /// Time with at least one operation running.
    busy_ns: i64,
    /// Time without any operation running.
    idle_ns: i64,
    /// Time with kernels other than communication running.
    compute_ns: i64,
    /// Time with communication running.
    communication_ns: i64,
    /// Communication time not overlapped by compute.
    exposed_communication_ns: i64,
    /// Time with copies or fills running.
    copy_ns: i64,
    /// Copy and fill time not overlapped by kernels.
    exposed_copy_ns: i64,
    /// Idle time by cause.
    idle: Idle,
    /// Streams, busiest first.
    streams: Vec<Stream<'a>>,
}

/// Idle time by cause.
#[derive(Serialize)]
struct Idle {
    /// Number of idle gaps.
    gaps: u64,
    /// The next operation was launched after the device went idle.
    host_bound_ns: i64,
    /// The next operation was launched after the device went idle, because the host waited for the
    /// device.
    synchronisation_ns: i64,
    /// The next operation was launched before the device went idle, or is unlinked.
    other_ns: i64,
}

/// Operations of one stream.
#[derive(Serialize)]
struct Stream<'a> {
    /// Stream number in the trace.
    stream: &'a str,
    /// Device operations.
    count: u64,
    /// Time with at least one operation running.
    busy_ns: i64,
}

impl<'a> Device<'a> {
    pub(super) fn new(device: &'a summary::Device, top: Option<usize>) -> Device<'a> {
        let stream = |stream: &'a summary::Stream| Stream {
            stream: &stream.stream,
            count: stream.count,
            busy_ns: stream.busy_ns,
        };
        Device {
            device: &device.device,
            name: &device.name,
            span_ns: device.span_ns,
            busy_ns: device.busy_ns,
            idle_ns: device.idle_ns,
            compute_ns: device.compute_ns,
            communication_ns: device.communication_ns,
            exposed_communication_ns: device.exposed_communication_ns,
            copy_ns: device.copy_ns,
            exposed_copy_ns: device.exposed_copy_ns,
            idle: Idle {
                gaps: device.idle.gaps,
                host_bound_ns: device.idle.host_bound_ns,
                synchronisation_ns: device.idle.synchronisation_ns,
                other_ns: device.idle.other_ns,
            },
            streams: kept(&device.streams, top).iter().map(stream).collect(),
        }
    }
}

/// Launch statistics.
#[derive(Serialize)]
pub(super) struct Launches {
    /// From the start of the launch call to the start of the operation, one value per launch.
    latency_ns: Spread,
    /// Latency of launches to an idle stream.
    idle_latency_ns: Spread,
    /// Duration of launch calls on the host.
    call_ns: Spread,
    /// Launches to a busy stream.
    queued: u64,
    /// Mean number of operations launched but not started, over the span.
    mean_queue: f64,
}

impl From<&summary::Launches> for Launches {
    fn from(launches: &summary::Launches) -> Launches {
        Launches {
            latency_ns: (&launches.latency_ns).into(),
            idle_latency_ns: (&launches.idle_latency_ns).into(),
            call_ns: (&launches.call_ns).into(),
            queued: launches.queued,
            mean_queue: launches.mean_queue,
        }
    }
}

/// Counts of linked device operations.
#[derive(Serialize)]
pub(super) struct Links {
    /// Device operations.
    rows: u64,
    /// Linked to a runtime call by correlation id.
    launched: u64,
    /// Linked to an operator, by the launch or by the external id.
    with_op: u64,
    /// Linked to a Python function around the launch.
    with_python: u64,
    /// Graph replays.
    graph_launches: u64,
    /// Device operations of graph replays.
    graph_rows: u64,
    /// Most device operations of one graph replay.
    largest_graph: u64,
}

impl From<&summary::Links> for Links {
    fn from(links: &summary::Links) -> Links {
        Links {
            rows: links.rows,
            launched: links.launched,
            with_op: links.with_op,
            with_python: links.with_python,
            graph_launches: links.graph_launches,
            graph_rows: links.graph_rows,
            largest_graph: links.largest_graph,
        }
    }
}
