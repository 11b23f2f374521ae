//! `Timeline`: the events of a trace, one table per kind of event.
//!
//! Times are integer nanoseconds. Names are `u32` into [`Strings`]; IDs (correlations, streams,
//! devices, byte counts) are `u32` codes into [`Ids`]. `NONE` means absent in both.

use super::{Column, NONE};
use arrow_buffer::Buffer;
use rustc_hash::FxHashMap;

/// The content of a trace.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// All strings.
    pub strings: Strings,
    /// IDs that are not small numbers.
    pub ids: Ids,
    /// Referenced by the `kind` columns: phase letter and category.
    pub kinds: Vec<Kind>,
    /// Referenced by the `track` columns: a process and a thread, or a device and a stream.
    pub tracks: Vec<Track>,
    /// Device operations: kernels, copies, fills.
    pub gpu: GpuTable,
    /// Calls of the CUDA, HIP or MTIA runtime and driver.
    pub runtime: RuntimeTable,
    /// Operators of the framework, on the host.
    pub ops: OpTable,
    /// Python functions and `nn.Module` calls.
    pub python: PythonTable,
    /// Ranges marked by the user or by libraries, on the host and on the device.
    pub annotations: AnnotationTable,
    /// Flow arrows between events.
    pub flows: FlowTable,
    /// Events without a duration: memory events and marks.
    pub instants: InstantTable,
    /// Counter values.
    pub counters: CounterTable,
    /// Spans of any other category.
    pub others: OtherTable,
    /// Details of collective operations, for rows of `gpu` and `ops` that have them.
    pub collectives: Vec<Collective>,
    /// Metadata of the file.
    pub about: About,
    /// Objects in the event array, including skipped ones.
    pub events: u64,
    /// Size of the uncompressed file.
    pub bytes: u64,
    /// Lost or repaired events, by reason.
    pub losses: Vec<Loss>,
}

/// String table.
#[derive(Clone, Debug)]
pub struct Strings {
    /// Start offsets of the strings, plus the end of the last one.
    pub offsets: Column<i64>,
    /// All strings, concatenated, UTF-8.
    pub bytes: Buffer,
}

impl Default for Strings {
    fn default() -> Self {
        Strings { offsets: vec![0i64].into(), bytes: Buffer::from_vec(Vec::<u8>::new()) }
    }
}

impl Strings {
    /// Builds the table from strings in order of their numbers.
    pub fn from_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Strings {
        let (mut offsets, mut bytes) = (vec![0i64], Vec::new());
        for text in texts {
            bytes.extend_from_slice(text.as_bytes());
            offsets.push(bytes.len() as i64);
        }
        Strings { offsets: offsets.into(), bytes: Buffer::from_vec(bytes) }
    }

    /// The string with this number; empty for `NONE` or a number out of range.
    pub fn get(&self, id: u32) -> &str {
        let span = || {
            let from = usize::try_from(*self.offsets.get(id as usize)?).ok()?;
            let to = usize::try_from(*self.offsets.get(id as usize + 1)?).ok()?;
            std::str::from_utf8(self.bytes.as_slice().get(from..to)?).ok()
        };
        if id == NONE { "" } else { span().unwrap_or("") }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All strings with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..self.len() as u32).map(|id| (id, self.get(id)))
    }
}

/// Codes from here on are entries of [`Ids::wide`]; below, a code is the number itself.
pub const FIRST_WIDE_ID: u32 = 0xf000_0000;

/// IDs that are not small numbers: negative, huge, or text ("stream 7", "0x0").
/// Equal IDs have equal codes, so that codes can be compared and joined on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ids {
    /// The values behind the codes from [`FIRST_WIDE_ID`] on.
    pub wide: Vec<WideId>,
}

/// An ID that is not a small number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WideId {
    /// A negative or large number.
    Number(i64),
    /// Anything else, as in the file.
    Text(String),
}

impl Ids {
    /// The number of a code, if it is a number. Texts that contain a number ("25738", "stream 7",
    /// "0x1f") count as that number.
    pub fn number(&self, code: u32) -> Option<i64> {
        if code < FIRST_WIDE_ID {
            return Some(i64::from(code));
        }
        match self.wide.get((code - FIRST_WIDE_ID) as usize)? {
            WideId::Number(n) => Some(*n),
            WideId::Text(text) => {
                let text = text.strip_prefix("stream ").unwrap_or(text).trim();
                match text.strip_prefix("0x") {
                    Some(hex) => i64::from_str_radix(hex, 16).ok(),
                    None => text.parse().ok(),
                }
            }
        }
    }

    /// The ID as text; empty for `NONE`.
    pub fn text(&self, code: u32) -> String {
        if code < FIRST_WIDE_ID {
            return code.to_string();
        }
        match self.wide.get(code.wrapping_sub(FIRST_WIDE_ID) as usize) {
            Some(WideId::Number(n)) => n.to_string(),
            Some(WideId::Text(text)) => text.clone(),
            None => String::new(),
        }
    }
}

/// Phase letter (`X`, `i`, `s`, …) and category of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The event's `ph`.
    pub phase: String,
    /// The event's `cat`; empty if it has none.
    pub category: String,
}

/// The table of a kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Table {
    /// Device operations.
    Gpu,
    /// Runtime and driver calls.
    Runtime,
    /// Host operators.
    Op,
    /// Python functions.
    Python,
    /// User and GPU annotations.
    Annotation,
    /// Flow arrows.
    Flow,
    /// Instant events.
    Instant,
    /// Counters.
    Counter,
    /// Names of processes and threads.
    Meta,
    /// Everything else.
    Other,
}

/// Kind of device operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// A compute kernel.
    Kernel,
    /// A copy to, from or within a device.
    Copy,
    /// A fill of device memory.
    Fill,
    /// Another operation of an accelerator (MTIA).
    Device,
}

impl Kind {
    /// The table for this kind.
    pub fn table(&self) -> Table {
        match self.phase.as_str() {
            "M" => return Table::Meta,
            "s" | "t" | "f" => return Table::Flow,
            "i" | "I" | "R" | "n" => return Table::Instant,
            "C" => return Table::Counter,
            "X" => {}
            _ => return Table::Other,
        }
        match self.category.as_str() {
            _ if self.activity().is_some() => Table::Gpu,
            "cuda_runtime" | "cuda_driver" | "hip_runtime" | "hip_driver" | "xpu_runtime"
            | "mtia_runtime" | "Runtime" => Table::Runtime,
            "cpu_op" | "Operator" => Table::Op,
            "python_function" => Table::Python,
            "user_annotation" | "gpu_user_annotation" => Table::Annotation,
            _ => Table::Other,
        }
    }

    /// The kind of device operation, if it is one.
    pub fn activity(&self) -> Option<Activity> {
        match self.category.as_str() {
            "kernel" | "Kernel" => Some(Activity::Kernel),
            "gpu_memcpy" | "Memcpy" => Some(Activity::Copy),
            "gpu_memset" | "Memset" => Some(Activity::Fill),
            "mtia_ccp_events" | "mtia_insight" => Some(Activity::Device),
            _ => None,
        }
    }
}

/// A process and thread, or a device and stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// Code of the `pid`.
    pub pid: u32,
    /// Code of the `tid`.
    pub tid: u32,
    /// Name of the process, or `NONE`.
    pub process: u32,
    /// Labels of the process ("GPU 0", "CPU"), or `NONE`.
    pub labels: u32,
    /// Name of the thread, or `NONE`.
    pub thread: u32,
}

/// The columns common to all tables.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// Start, nanoseconds from the trace's base time.
    pub ts: Column<i64>,
    /// Duration, nanoseconds; may be zero or, in damaged traces, negative.
    pub dur: Column<i64>,
    /// Name.
    pub name: Column<u32>,
    /// Row of [`Timeline::tracks`].
    pub track: Column<u32>,
    /// Row of [`Timeline::kinds`].
    pub kind: Column<u8>,
}

impl Spans {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ts.len()
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }

    /// End of a row; never before its start.
    pub fn end(&self, row: usize) -> i64 {
        self.ts[row].saturating_add(self.dur[row].max(0))
    }
}

/// Device operations.
#[derive(Clone, Debug, Default)]
pub struct GpuTable {
    /// Time, name, track, kind.
    pub spans: Spans,
    /// Joins to [`RuntimeTable::correlation`].
    pub correlation: Column<u32>,
    /// The framework's external ID: a hint only.
    pub external: Column<u32>,
    /// Stream.
    pub stream: Column<u32>,
    /// Device.
    pub device: Column<u32>,
    /// Grid of the launch as JSON, `[65536,1,1]`.
    pub grid: Column<u32>,
    /// Block of the launch as JSON.
    pub block: Column<u32>,
    /// Registers per thread.
    pub registers: Column<u32>,
    /// Shared memory, bytes.
    pub shared_memory: Column<u32>,
    /// Bytes moved by copies and fills.
    pub bytes: Column<u32>,
    /// Row of `runtime` with the launch, found by correlation.
    pub launch: Column<u32>,
    /// Row of `ops` around the launch.
    pub op: Column<u32>,
    /// Row of `python`: the innermost function around the launch that is neither built in nor part
    /// of the framework. If there is none, the innermost function.
    pub python: Column<u32>,
    /// Row of `python`: the innermost `nn.Module` around the launch.
    pub module: Column<u32>,
    /// Number of the phase of the launch, see [`crate::trace::phase`].
    pub phase: Column<u8>,
}

/// Runtime and driver calls.
#[derive(Clone, Debug, Default)]
pub struct RuntimeTable {
    /// Time, name, track, kind.
    pub spans: Spans,
    /// Joins to [`GpuTable::correlation`].
    pub correlation: Column<u32>,
    /// The framework's external id.
    pub external: Column<u32>,
}

/// Host operators.
#[derive(Clone, Debug, Default)]
pub struct OpTable {
    /// Time, name, track, kind.
    pub spans: Spans,
    /// The framework's external id.
    pub external: Column<u32>,
    /// Shapes of the inputs, as JSON.
    pub dims: Column<u32>,
    /// Types of the inputs, as JSON.
    pub types: Column<u32>,
    /// Values of the scalar inputs, as JSON.
    pub concrete: Column<u32>,
    /// Call stack of old traces: frames joined by `;`, innermost first.
    pub call_stack: Column<u32>,
}

/// Python functions and `nn.Module` calls.
#[derive(Clone, Debug, Default)]
pub struct PythonTable {
    /// Time, name, track, kind.
    pub spans: Spans,
    /// ID of the call.
    pub id: Column<u32>,
    /// ID of the enclosing call.
    pub parent: Column<u32>,
}

/// Annotations.
#[derive(Clone, Debug, Default)]
pub struct AnnotationTable {
    /// Time, name, track, kind.
    pub spans: Spans,
    /// The framework's external id.
    pub external: Column<u32>,
}

/// Flow arrows.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    /// Time, name, track, kind; durations are zero.
    pub spans: Spans,
    /// Joins the two ends of an arrow.
    pub id: Column<u32>,
}

/// Instant events.
#[derive(Clone, Debug, Default)]
pub struct InstantTable {
    /// Time, name, track, kind; durations are zero.
    pub spans: Spans,
    /// Bytes allocated, negative when freed.
    pub bytes: Column<u32>,
    /// Bytes in use by tensors afterwards.
    pub total_allocated: Column<u32>,
    /// Bytes reserved by the allocator afterwards.
    pub total_reserved: Column<u32>,
    /// Device number.
    pub device: Column<u32>,
    /// Device type (0 host, 1 CUDA, 6 HIP, …).
    pub device_type: Column<u32>,
}

/// Counter values.
#[derive(Clone, Debug, Default)]
pub struct CounterTable {
    /// Time, name, track, kind; durations are zero.
    pub spans: Spans,
    /// The values, as JSON.
    pub values: Column<u32>,
}

/// Spans of any other category.
#[derive(Clone, Debug, Default)]
pub struct OtherTable {
    /// Time, name, track, kind.
    pub spans: Spans,
    /// Correlation, or `NONE`.
    pub correlation: Column<u32>,
    /// The framework's external ID, or `NONE`.
    pub external: Column<u32>,
    /// Stream, for synchronisation events.
    pub stream: Column<u32>,
}

/// Details of a collective operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// Whether `row` refers to `gpu` instead of `ops`.
    pub on_gpu: bool,
    /// Row of the operation.
    pub row: u32,
    /// Name of the operation ("allreduce").
    pub operation: u32,
    /// Name of the element type.
    pub dtype: u32,
    /// Name of the process group.
    pub group: u32,
    /// Ranks of the group, as text.
    pub ranks: u32,
    /// Elements sent, an ID code.
    pub elements_in: u32,
    /// Elements received, an ID code.
    pub elements_out: u32,
    /// Size of the group, an ID code.
    pub group_size: u32,
}

/// Metadata of a trace outside the events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Base of all times, in nanoseconds since the epoch; 0 if times are absolute.
    pub base_time_ns: i64,
    /// Devices of the machine.
    pub devices: Vec<Device>,
    /// Rank in a distributed job, if any.
    pub rank: Option<i64>,
    /// Number of ranks in the job, if any.
    pub world_size: Option<i64>,
    /// Communication backend ("nccl").
    pub backend: Option<String>,
    /// All other top-level values that are numbers, booleans or short texts, in file order.
    pub properties: Vec<(String, String)>,
}

/// One device of `deviceProperties`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Number.
    pub id: i64,
    /// Product name; empty in some traces.
    pub name: String,
    /// Number of compute units.
    pub sms: i64,
    /// Lanes per warp.
    pub warp_size: i64,
    /// Memory, bytes.
    pub memory: i64,
    /// Compute capability, major and minor.
    pub compute: (i64, i64),
}

/// Lost, skipped or repaired events or parts of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The reason.
    pub reason: LossReason,
    /// Number of occurrences.
    pub count: u64,
    /// Offset of the first one in the uncompressed file.
    pub first_offset: u64,
}

/// Why a part of a trace was lost or repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum LossReason {
    /// The file is truncated.
    Truncated,
    /// The compressed stream is damaged; everything before the damage is kept.
    DamagedCompression,
    /// An element of the event array is not a JSON object.
    NotAnObject,
    /// An event is not valid JSON; it was skipped.
    NotJson,
    /// A string has unescaped quotes; the event was kept.
    UnescapedQuotes,
    /// A timed event has no usable `ts`; it was skipped.
    NoTimestamp,
    /// An event's `dur` is not a number; it counts as 0.
    BadDuration,
    /// An event's duration is negative; it counts as 0 in sums of time.
    NegativeDuration,
    /// A begin or end event (`B`, `E`, `b`, `e`), which PyTorch does not write.
    BeginEnd,
    /// A distinct string is not valid UTF-8; invalid bytes were replaced.
    InvalidUtf8,
    /// A distinct string has control characters; it is shown escaped.
    ControlCharacters,
    /// A metadata value is not valid JSON; it was skipped.
    BadMetadata,
    /// Too many kinds of events; the rest are kept as one kind per table.
    TooManyKinds,
}

impl LossReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [LossReason; 13] = [
        LossReason::Truncated,
        LossReason::DamagedCompression,
        LossReason::NotAnObject,
        LossReason::NotJson,
        LossReason::UnescapedQuotes,
        LossReason::NoTimestamp,
        LossReason::BadDuration,
        LossReason::NegativeDuration,
        LossReason::BeginEnd,
        LossReason::InvalidUtf8,
        LossReason::ControlCharacters,
        LossReason::BadMetadata,
        LossReason::TooManyKinds,
    ];

    /// The word used in JSON and in the index.
    pub fn key(self) -> &'static str {
        match self {
            LossReason::Truncated => "truncated",
            LossReason::DamagedCompression => "damaged-compression",
            LossReason::NotAnObject => "not-an-object",
            LossReason::NotJson => "not-json",
            LossReason::UnescapedQuotes => "unescaped-quotes",
            LossReason::NoTimestamp => "no-timestamp",
            LossReason::BadDuration => "bad-duration",
            LossReason::NegativeDuration => "negative-duration",
            LossReason::BeginEnd => "begin-end",
            LossReason::InvalidUtf8 => "invalid-utf8",
            LossReason::ControlCharacters => "control-characters",
            LossReason::BadMetadata => "bad-metadata",
            LossReason::TooManyKinds => "too-many-kinds",
        }
    }

    /// Description of the loss and its handling.
    pub fn explain(self) -> &'static str {
        match self {
            LossReason::Truncated => "the file is truncated; all complete events were kept",
            LossReason::DamagedCompression => {
                "the compressed stream is damaged; events before the damage were kept"
            }
            LossReason::NotAnObject => "elements of the event array that are not objects, skipped",
            LossReason::NotJson => "events that are not valid JSON, skipped",
            LossReason::UnescapedQuotes => "events with unescaped quotes in a string, kept",
            LossReason::NoTimestamp => "timed events without a usable timestamp, skipped",
            LossReason::BadDuration => {
                "events whose duration is not a number, kept with duration 0"
            }
            LossReason::NegativeDuration => "events with a negative duration, counted as 0 in sums",
            LossReason::BeginEnd => "begin and end events, kept without pairing",
            LossReason::InvalidUtf8 => {
                "distinct strings that are not valid UTF-8, invalid bytes replaced"
            }
            LossReason::ControlCharacters => {
                "distinct strings with control characters, shown escaped"
            }
            LossReason::BadMetadata => "metadata values that are not valid JSON, skipped",
            LossReason::TooManyKinds => {
                "events of further kinds after the first 200, grouped as one kind per table"
            }
        }
    }
}

impl Timeline {
    /// Returns a lookup of collective details by row of `gpu`. The details are attached to the
    /// device operation or, in older traces, to the operator that launched it.
    pub fn collective_details<'a>(&'a self) -> impl Fn(u32) -> Option<&'a Collective> {
        let rows = |on_gpu: bool| -> FxHashMap<u32, &Collective> {
            self.collectives.iter().filter(|c| c.on_gpu == on_gpu).map(|c| (c.row, c)).collect()
        };
        let (of_gpu, of_op) = (rows(true), rows(false));
        move |row| of_gpu.get(&row).or_else(|| of_op.get(&self.gpu.op[row as usize])).copied()
    }

    /// The common columns of all tables.
    pub fn all_spans(&self) -> [&Spans; 9] {
        [
            &self.gpu.spans,
            &self.runtime.spans,
            &self.ops.spans,
            &self.python.spans,
            &self.annotations.spans,
            &self.flows.spans,
            &self.instants.spans,
            &self.counters.spans,
            &self.others.spans,
        ]
    }

    /// Start and end of all device operations, calls, operators, Python functions and annotations.
    pub fn extent(&self) -> Option<(i64, i64)> {
        let tables = [
            &self.gpu.spans,
            &self.runtime.spans,
            &self.ops.spans,
            &self.python.spans,
            &self.annotations.spans,
        ];
        let start = tables.iter().filter_map(|spans| spans.ts.iter().copied().min()).min()?;
        let end =
            tables.iter().flat_map(|spans| (0..spans.len()).map(|row| spans.end(row))).max()?;
        Some((start, end))
    }
}
