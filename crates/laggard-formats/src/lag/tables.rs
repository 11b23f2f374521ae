//! Converts the tables of a timeline to Arrow record batches and back, without copying columns.

use super::STREAM_KEY;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, LargeStringArray, PrimitiveArray, RecordBatch,
    StringArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use laggard_core::model::Column;
use laggard_core::model::timeline::{
    About, AnnotationTable, Collective, CounterTable, Device, FlowTable, GpuTable, Ids,
    InstantTable, Kind, Loss, LossReason, OpTable, OtherTable, PythonTable, RuntimeTable, Spans,
    Strings, Timeline, Track, WideId,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// A named stream of one batch.
pub(super) fn batch(
    stream: &str,
    columns: Vec<(&str, ArrayRef)>,
) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), array.null_count() > 0))
        .collect();
    let metadata = HashMap::from([(STREAM_KEY.to_owned(), stream.to_owned())]);
    let schema = Schema::new(fields).with_metadata(metadata);
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect())
}

fn column<T: ArrowPrimitiveType>(values: &Column<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.clone(), None))
}

pub(super) fn numbers<T: ArrowPrimitiveType>(values: Vec<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), None))
}

pub(super) fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// A stream that contains one text.
pub(super) fn json_batch(stream: &str, text: &str) -> Result<RecordBatch, ArrowError> {
    batch(stream, vec![("json", texts(std::iter::once(text)))])
}

/// The text of such a stream.
pub(super) fn json_of(batch: &RecordBatch) -> Option<&str> {
    let texts = batch.column_by_name("json")?.as_string_opt::<i32>()?;
    (texts.len() == 1).then(|| texts.value(0))
}

macro_rules! spans {
    ($spans:expr $(, $name:ident: $column:expr)*) => {
        vec![
            ("ts", column::<Int64Type>(&$spans.ts)),
            ("dur", column::<Int64Type>(&$spans.dur)),
            ("name", column::<UInt32Type>(&$spans.name)),
            ("track", column::<UInt32Type>(&$spans.track)),
            ("kind", column::<UInt8Type>(&$spans.kind)),
            $((stringify!($name), column::<UInt32Type>(&$column)),)*
        ]
    };
}

/// Streams of all tables of a timeline.
pub(super) fn batches(t: &Timeline) -> Result<Vec<RecordBatch>, ArrowError> {
    let (gpu, ops, instants) = (&t.gpu, &t.ops, &t.instants);
    let mut gpu_columns = spans!(gpu.spans, correlation: gpu.correlation, external: gpu.external, stream: gpu.stream, device: gpu.device,
        grid: gpu.grid, block: gpu.block, registers: gpu.registers, shared_memory: gpu.shared_memory, bytes: gpu.bytes,
        launch: gpu.launch, op: gpu.op, python: gpu.python, module: gpu.module);
    gpu_columns.push(("phase", column::<UInt8Type>(&gpu.phase)));
    Ok(vec![
        batch("strings", vec![("text", strings(&t.strings))])?,
        batch(
            "kinds",
            vec![
                ("phase", texts(t.kinds.iter().map(|k| k.phase.as_str()))),
                ("category", texts(t.kinds.iter().map(|k| k.category.as_str()))),
            ],
        )?,
        batch("ids", ids(&t.ids))?,
        batch("tracks", tracks(&t.tracks))?,
        json_batch("about", &about(t).to_string())?,
        batch("gpu", gpu_columns)?,
        batch(
            "runtime",
            spans!(t.runtime.spans, correlation: t.runtime.correlation, external: t.runtime.external),
        )?,
        batch(
            "ops",
            spans!(ops.spans, external: ops.external, dims: ops.dims, types: ops.types, concrete: ops.concrete, call_stack: ops.call_stack),
        )?,
        batch("python", spans!(t.python.spans, id: t.python.id, parent: t.python.parent))?,
        batch("annotations", spans!(t.annotations.spans, external: t.annotations.external))?,
        batch("flows", spans!(t.flows.spans, id: t.flows.id))?,
        batch(
            "instants",
            spans!(instants.spans, bytes: instants.bytes, total_allocated: instants.total_allocated, total_reserved: instants.total_reserved,
                device: instants.device, device_type: instants.device_type),
        )?,
        batch("counters", spans!(t.counters.spans, values: t.counters.values))?,
        batch(
            "others",
            spans!(t.others.spans, correlation: t.others.correlation, external: t.others.external, stream: t.others.stream),
        )?,
        batch("collectives", collectives(&t.collectives))?,
    ])
}

fn strings(strings: &Strings) -> ArrayRef {
    let offsets = OffsetBuffer::new(strings.offsets.clone());
    Arc::new(LargeStringArray::new(offsets, strings.bytes.clone(), None))
}

fn ids(ids: &Ids) -> Vec<(&'static str, ArrayRef)> {
    let number = |id: &WideId| if let WideId::Number(n) = id { Some(*n) } else { None };
    let text = |id: &WideId| if let WideId::Text(text) = id { Some(text.clone()) } else { None };
    vec![
        ("number", Arc::new(ids.wide.iter().map(number).collect::<Int64Array>())),
        ("text", Arc::new(ids.wide.iter().map(text).collect::<StringArray>())),
    ]
}

fn tracks(tracks: &[Track]) -> Vec<(&'static str, ArrayRef)> {
    let of = |f: fn(&Track) -> u32| numbers::<UInt32Type>(tracks.iter().map(f).collect());
    vec![
        ("pid", of(|t| t.pid)),
        ("tid", of(|t| t.tid)),
        ("process", of(|t| t.process)),
        ("labels", of(|t| t.labels)),
        ("thread", of(|t| t.thread)),
    ]
}

fn collectives(all: &[Collective]) -> Vec<(&'static str, ArrayRef)> {
    let of = |f: fn(&Collective) -> u32| numbers::<UInt32Type>(all.iter().map(f).collect());
    let on_gpu: BooleanArray = all.iter().map(|c| Some(c.on_gpu)).collect();
    vec![
        ("on_gpu", Arc::new(on_gpu)),
        ("row", of(|c| c.row)),
        ("operation", of(|c| c.operation)),
        ("dtype", of(|c| c.dtype)),
        ("group", of(|c| c.group)),
        ("ranks", of(|c| c.ranks)),
        ("elements_in", of(|c| c.elements_in)),
        ("elements_out", of(|c| c.elements_out)),
        ("group_size", of(|c| c.group_size)),
    ]
}

fn about(t: &Timeline) -> Value {
    let device = |d: &Device| json!({"id": d.id, "name": d.name, "sms": d.sms, "warp_size": d.warp_size, "memory": d.memory, "compute": d.compute});
    let loss = |l: &Loss| json!({"reason": l.reason.key(), "count": l.count, "first_offset": l.first_offset});
    json!({
        "base_time_ns": t.about.base_time_ns,
        "devices": t.about.devices.iter().map(device).collect::<Vec<_>>(),
        "rank": t.about.rank,
        "world_size": t.about.world_size,
        "backend": t.about.backend,
        "properties": t.about.properties,
        "events": t.events,
        "bytes": t.bytes,
        "losses": t.losses.iter().map(loss).collect::<Vec<_>>(),
    })
}

/// The reason why a stream cannot be read.
pub(super) type Wrong = String;

/// Access to the columns of a stream by name.
pub(super) struct Columns<'a> {
    pub(super) stream: &'a str,
    pub(super) batch: &'a RecordBatch,
}

impl Columns<'_> {
    pub(super) fn array(&self, name: &str) -> Result<&ArrayRef, Wrong> {
        self.batch
            .column_by_name(name)
            .ok_or_else(|| format!("stream {} has no column {name}", self.stream))
    }

    pub(super) fn get<T: ArrowPrimitiveType>(
        &self,
        name: &str,
    ) -> Result<Column<T::Native>, Wrong> {
        let array = self
            .array(name)?
            .as_primitive_opt::<T>()
            .ok_or_else(|| format!("column {name} of stream {} has the wrong type", self.stream))?;
        Ok(array.values().clone())
    }

    pub(super) fn texts(&self, name: &str) -> Result<&StringArray, Wrong> {
        self.array(name)?
            .as_string_opt::<i32>()
            .ok_or_else(|| format!("column {name} of stream {} is not text", self.stream))
    }

    fn spans(&self) -> Result<Spans, Wrong> {
        Ok(Spans {
            ts: self.get::<Int64Type>("ts")?,
            dur: self.get::<Int64Type>("dur")?,
            name: self.get::<UInt32Type>("name")?,
            track: self.get::<UInt32Type>("track")?,
            kind: self.get::<UInt8Type>("kind")?,
        })
    }

    fn id(&self, name: &str) -> Result<Column<u32>, Wrong> {
        self.get::<UInt32Type>(name)
    }
}

/// Reads a timeline. `stream` returns a table by name.
pub(super) fn timeline(
    stream: impl Fn(&str) -> Result<RecordBatch, Wrong>,
) -> Result<Timeline, Wrong> {
    let mut t = Timeline::default();
    macro_rules! table {
        ($name:literal, |$c:ident| $body:expr) => {{
            let batch = stream($name)?;
            let $c = Columns { stream: $name, batch: &batch };
            $body
        }};
    }
    t.strings = table!("strings", |c| {
        let texts = c
            .array("text")?
            .as_string_opt::<i64>()
            .ok_or("column text of stream strings is not text")?;
        let (offsets, bytes, _) = texts.clone().into_parts();
        Strings { offsets: offsets.into_inner(), bytes }
    });
    t.kinds = table!("kinds", |c| {
        let (phases, categories) = (c.texts("phase")?, c.texts("category")?);
        (0..phases.len())
            .map(|i| Kind {
                phase: phases.value(i).to_owned(),
                category: categories.value(i).to_owned(),
            })
            .collect()
    });
    t.ids = table!("ids", |c| {
        let numbers = c
            .array("number")?
            .as_primitive_opt::<Int64Type>()
            .ok_or("column number of stream ids is not numeric")?;
        let texts = c.texts("text")?;
        let id = |i: usize| {
            if numbers.is_null(i) {
                WideId::Text(texts.value(i).to_owned())
            } else {
                WideId::Number(numbers.value(i))
            }
        };
        Ids { wide: (0..numbers.len()).map(id).collect() }
    });
    t.tracks = table!("tracks", |c| {
        let [pid, tid, process, labels, thread] =
            [c.id("pid")?, c.id("tid")?, c.id("process")?, c.id("labels")?, c.id("thread")?];
        (0..pid.len())
            .map(|i| Track {
                pid: pid[i],
                tid: tid[i],
                process: process[i],
                labels: labels[i],
                thread: thread[i],
            })
            .collect()
    });
    t.gpu = table!("gpu", |c| GpuTable {
        spans: c.spans()?,
        correlation: c.id("correlation")?,
        external: c.id("external")?,
        stream: c.id("stream")?,
        device: c.id("device")?,
        grid: c.id("grid")?,
        block: c.id("block")?,
        registers: c.id("registers")?,
        shared_memory: c.id("shared_memory")?,
        bytes: c.id("bytes")?,
        launch: c.id("launch")?,
        op: c.id("op")?,
        python: c.id("python")?,
        module: c.id("module")?,
        phase: c.get::<UInt8Type>("phase")?,
    });
    t.runtime = table!("runtime", |c| RuntimeTable {
        spans: c.spans()?,
        correlation: c.id("correlation")?,
        external: c.id("external")?
    });
    t.ops = table!("ops", |c| OpTable {
        spans: c.spans()?,
        external: c.id("external")?,
        dims: c.id("dims")?,
        types: c.id("types")?,
        concrete: c.id("concrete")?,
        call_stack: c.id("call_stack")?,
    });
    t.python = table!("python", |c| PythonTable {
        spans: c.spans()?,
        id: c.id("id")?,
        parent: c.id("parent")?
    });
    t.annotations = table!("annotations", |c| AnnotationTable {
        spans: c.spans()?,
        external: c.id("external")?
    });
    t.flows = table!("flows", |c| FlowTable { spans: c.spans()?, id: c.id("id")? });
    t.instants = table!("instants", |c| InstantTable {
        spans: c.spans()?,
        bytes: c.id("bytes")?,
        total_allocated: c.id("total_allocated")?,
        total_reserved: c.id("total_reserved")?,
        device: c.id("device")?,
        device_type: c.id("device_type")?,
    });
    t.counters =
        table!("counters", |c| CounterTable { spans: c.spans()?, values: c.id("values")? });
    t.others = table!("others", |c| OtherTable {
        spans: c.spans()?,
        correlation: c.id("correlation")?,
        external: c.id("external")?,
        stream: c.id("stream")?
    });
    t.collectives = table!("collectives", |c| {
        let on_gpu = c.array("on_gpu")?.as_boolean_opt().ok_or("on_gpu is not boolean")?.clone();
        let [row, operation, dtype, group, ranks] =
            [c.id("row")?, c.id("operation")?, c.id("dtype")?, c.id("group")?, c.id("ranks")?];
        let [elements_in, elements_out, group_size] =
            [c.id("elements_in")?, c.id("elements_out")?, c.id("group_size")?];
        let one = |i: usize| Collective {
            on_gpu: on_gpu.value(i),
            row: row[i],
            operation: operation[i],
            dtype: dtype[i],
            group: group[i],
            ranks: ranks[i],
            elements_in: elements_in[i],
            elements_out: elements_out[i],
            group_size: group_size[i],
        };
        (0..row.len()).map(one).collect()
    });
    let batch = stream("about")?;
    let about: Value = serde_json::from_str(json_of(&batch).ok_or("stream about is empty")?)
        .map_err(|e| e.to_string())?;
    read_about(&mut t, &about);
    Ok(t)
}

fn read_about(t: &mut Timeline, about: &Value) {
    let list = |key: &str| about[key].as_array().cloned().unwrap_or_default();
    let device = |d: &Value| Device {
        id: d["id"].as_i64().unwrap_or(0),
        name: d["name"].as_str().unwrap_or("").to_owned(),
        sms: d["sms"].as_i64().unwrap_or(0),
        warp_size: d["warp_size"].as_i64().unwrap_or(0),
        memory: d["memory"].as_i64().unwrap_or(0),
        compute: (d["compute"][0].as_i64().unwrap_or(0), d["compute"][1].as_i64().unwrap_or(0)),
    };
    let loss = |l: &Value| {
        let reason = LossReason::ALL
            .into_iter()
            .find(|reason| Some(reason.key()) == l["reason"].as_str())?;
        Some(Loss {
            reason,
            count: l["count"].as_u64()?,
            first_offset: l["first_offset"].as_u64()?,
        })
    };
    let property = |p: &Value| Some((p[0].as_str()?.to_owned(), p[1].as_str()?.to_owned()));
    t.about = About {
        base_time_ns: about["base_time_ns"].as_i64().unwrap_or(0),
        devices: list("devices").iter().map(device).collect(),
        rank: about["rank"].as_i64(),
        world_size: about["world_size"].as_i64(),
        backend: about["backend"].as_str().map(str::to_owned),
        properties: list("properties").iter().filter_map(property).collect(),
    };
    t.events = about["events"].as_u64().unwrap_or(0);
    t.bytes = about["bytes"].as_u64().unwrap_or(0);
    t.losses = list("losses").iter().filter_map(loss).collect();
}

/// A stream of one text and its checksum: a manifest or the header of a part.
pub(super) fn sealed_batch(
    stream: &str,
    text: &str,
    checksum: u64,
) -> Result<RecordBatch, ArrowError> {
    batch(
        stream,
        vec![
            ("json", texts(std::iter::once(text))),
            ("xxh3", numbers::<UInt64Type>(vec![checksum])),
        ],
    )
}

/// A buffer that keeps its owner alive.
pub(super) fn buffer(owner: impl AsRef<[u8]> + Send + 'static) -> Buffer {
    Buffer::from(bytes::Bytes::from_owner(owner))
}
