//! Devices, launches onto them, and links from their work to the host.

use crate::rows::kept;
use crate::shape::Spread;
use laggard_core::trace::summary;
use serde::Serialize;

/// Busy and idle time of one device.
#[derive(Serialize)]
pub(super) struct Device<'a> {
    /// Device as the trace numbers it.
    device: &'a str,
    /// Its name, empty when not known.
    name: &'a str,
    /// From its first to its last work.
    span_ns: i64,
    /// Something ran.
    busy_ns: i64,
    /// Nothing ran.
    idle_ns: i64,
    /// Kernels other than communication ran.
    compute_ns: i64,
    /// Communication ran.
    communication_ns: i64,
    /// Communication ran and no compute.
    exposed_communication_ns: i64,
    /// Copies or fills ran.
    copy_ns: i64,
    /// Copies or fills ran and nothing else.
    exposed_copy_ns: i64,
    /// Why nothing ran.
    idle: Idle,
    /// Its streams, busiest first.
    streams: Vec<Stream<'a>>,
}

/// Idle time by cause.
#[derive(Serialize)]
struct Idle {
    /// Gaps between work.
    gaps: u64,
    /// The next work was launched after the device had run dry.
    host_bound_ns: i64,
    /// The same, and the host had been waiting for the device.
    synchronisation_ns: i64,
    /// The next work was launched before, or its launch is not known.
    other_ns: i64,
}

/// Work of one stream.
#[derive(Serialize)]
struct Stream<'a> {
    /// Stream as the trace numbers it.
    stream: &'a str,
    /// Pieces of work.
    count: u64,
    /// Something ran on it.
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

/// From the host's call to the device's start.
#[derive(Serialize)]
pub(super) struct Launches {
    /// From the start of the call to the start of the work, one a launch.
    latency_ns: Spread,
    /// The same for launches onto a stream that had run dry.
    idle_latency_ns: Spread,
    /// Time the host spent in launch calls.
    call_ns: Spread,
    /// Launches onto a stream that was still busy.
    queued: u64,
    /// Work launched but not started, on average over the span.
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

/// How much device work was traced to its launch.
#[derive(Serialize)]
pub(super) struct Links {
    /// Pieces of device work.
    rows: u64,
    /// With a runtime call by correlation.
    launched: u64,
    /// With an operator around the launch, or by its external id.
    with_op: u64,
    /// With a Python function around the launch.
    with_python: u64,
    /// Launches of a recorded graph.
    graph_launches: u64,
    /// Device work of those.
    graph_rows: u64,
    /// The most device work of one launch.
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
