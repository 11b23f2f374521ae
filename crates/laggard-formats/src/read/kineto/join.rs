//! Merges the parts of several threads into one [`Timeline`].

use super::event::Form;
use super::intern::Interner;
use super::json;
use super::part::{
    ANNOTATIONS, COUNTERS, Columns, FLOWS, GPU, INSTANTS, Losses, MetaRow, OPS, OTHERS, PYTHON,
    Part, RUNTIME, Wide,
};
use arrow_buffer::Buffer;
use laggard_core::model::timeline::{
    About, AnnotationTable, Collective, CounterTable, FIRST_WIDE_ID, FlowTable, GpuTable, Ids,
    InstantTable, Kind, LossReason, OpTable, OtherTable, PythonTable, RuntimeTable, Spans, Strings,
    Timeline, Track, WideId,
};
use laggard_core::model::{Column, NONE};
use rustc_hash::FxHashMap;
use std::thread;

/// Merges parts, which are in file order.
pub(super) fn timeline(parts: Vec<Part>, about: About, losses: &Losses, bytes: u64) -> Timeline {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_else(Part::new);
    for part in parts {
        append(&mut all, part);
    }
    all.losses.join(losses);
    let texts = compact_jsons(&mut all);
    for column in json_columns(&mut all) {
        for number in column {
            *number = texts.get(*number);
        }
    }
    let tracks = tracks(&all);
    let ids = Ids { wide: all.ids.values.iter().map(|wide| wide_id(*wide, &all.names)).collect() };
    let Part {
        names,
        kinds,
        gpu,
        runtime,
        ops,
        python,
        annotations,
        flows,
        instants,
        counters,
        others,
        collectives,
        mut losses,
        events,
        ..
    } = all;
    let strings = strings(&names, &mut losses);
    drop(names);
    let (
        gpu,
        [correlation, external, stream, device, grid, block, registers, shared_memory, gpu_bytes],
    ) = table(gpu);
    let gpu = GpuTable {
        spans: gpu,
        correlation,
        external,
        stream,
        device,
        grid,
        block,
        registers,
        shared_memory,
        bytes: gpu_bytes,
        ..GpuTable::default()
    };
    let (spans, [correlation, external]) = table(runtime);
    let runtime = RuntimeTable { spans, correlation, external };
    let (spans, [external, dims, types, concrete, call_stack]) = table(ops);
    let ops = OpTable { spans, external, dims, types, concrete, call_stack };
    let (spans, [id, parent]) = table(python);
    let python = PythonTable { spans, id, parent };
    let (spans, [external]) = table(annotations);
    let annotations = AnnotationTable { spans, external };
    let (spans, [id]) = table(flows);
    let flows = FlowTable { spans, id };
    let (spans, [bytes_moved, total_allocated, total_reserved, device, device_type]) =
        table(instants);
    let instants = InstantTable {
        spans,
        bytes: bytes_moved,
        total_allocated,
        total_reserved,
        device,
        device_type,
    };
    let (spans, [values]) = table(counters);
    let counters = CounterTable { spans, values };
    let (spans, [correlation, external, stream]) = table(others);
    let others = OtherTable { spans, correlation, external, stream };
    let losses = losses.list();
    Timeline {
        strings,
        ids,
        kinds,
        tracks,
        gpu,
        runtime,
        ops,
        python,
        annotations,
        flows,
        instants,
        counters,
        others,
        collectives,
        about,
        events,
        bytes,
        losses,
    }
}

fn table<const N: usize>(columns: Columns<N>) -> (Spans, [Column<u32>; N]) {
    let Columns { ts, dur, name, track, kind, more } = columns;
    let spans = Spans {
        ts: column(ts),
        dur: column(dur),
        name: column(name),
        track: column(track),
        kind: column(kind),
    };
    (spans, more.map(column))
}

fn column<T: arrow_buffer::ArrowNativeType>(mut values: Vec<T>) -> Column<T> {
    values.shrink_to_fit();
    values.into()
}

/// Maps numbers of one part to numbers of another. The identity if nothing changes.
struct Map(Option<Vec<u32>>);

impl Map {
    fn new(numbers: impl Iterator<Item = u32>) -> Map {
        let map: Vec<u32> = numbers.collect();
        let moved = map.iter().enumerate().any(|(i, &to)| i as u32 != to);
        Map(moved.then_some(map))
    }

    fn get(&self, number: u32) -> u32 {
        match &self.0 {
            Some(map) => map.get(number as usize).copied().unwrap_or(number),
            None => number,
        }
    }
}

/// Maps from the numbers of a part to those of the whole.
struct Maps {
    names: Map,
    jsons: Map,
    tracks: Map,
    kinds: Vec<u8>,
    wide: Vec<u32>,
}

impl Maps {
    /// Adds the names, ids, tracks and kinds of the part to the whole.
    fn new(all: &mut Part, part: &Part) -> Maps {
        let texts = |to: &mut Interner, from: &Interner| {
            to.joined(from);
            Map::new((0..from.len() as u32).map(|id| to.intern(from.get(id), u64::MAX)))
        };
        let names = texts(&mut all.names, &part.names);
        let jsons = texts(&mut all.jsons, &part.jsons);
        let wide = part.ids.values.iter().map(|&wide| match wide {
            Wide::Text(name) => all.ids.code(Wide::Text(names.get(name))),
            Wide::Number(_) => all.ids.code(wide),
        });
        let wide = wide.collect();
        let mut maps = Maps { names, jsons, tracks: Map(None), kinds: vec![], wide };
        let tracks = part.tracks.iter().map(|&(pid, tid)| all.track(maps.id(pid), maps.id(tid)));
        let tracks = Map::new(tracks);
        let kind = |kind: &Kind| all.kind(kind.phase.as_bytes(), kind.category.as_bytes()).0;
        maps.kinds = part.kinds.iter().map(kind).collect();
        maps.tracks = tracks;
        maps
    }

    fn id(&self, code: u32) -> u32 {
        if (FIRST_WIDE_ID..NONE).contains(&code) {
            self.wide[(code - FIRST_WIDE_ID) as usize]
        } else {
            code
        }
    }
}

fn append(all: &mut Part, part: Part) {
    let maps = &Maps::new(all, &part);
    let (gpu_rows, op_rows) = (all.gpu.ts.len() as u32, all.ops.ts.len() as u32);
    all.collectives.extend(part.collectives.into_iter().map(|c| Collective {
        on_gpu: c.on_gpu,
        row: c.row + if c.on_gpu { gpu_rows } else { op_rows },
        operation: maps.names.get(c.operation),
        dtype: maps.names.get(c.dtype),
        group: maps.names.get(c.group),
        ranks: maps.names.get(c.ranks),
        elements_in: maps.id(c.elements_in),
        elements_out: maps.id(c.elements_out),
        group_size: maps.id(c.group_size),
    }));
    all.metas.extend(part.metas.iter().map(|meta| MetaRow {
        name: maps.names.get(meta.name),
        track: maps.tracks.get(meta.track),
        text: maps.names.get(meta.text),
    }));
    all.losses.join(&part.losses);
    all.events += part.events;
    all.with_phase += part.with_phase;
    // Python functions are about as numerous as all other events together.
    thread::scope(|scope| {
        scope.spawn(|| extend(&mut all.python, part.python, PYTHON, maps));
        extend(&mut all.gpu, part.gpu, GPU, maps);
        extend(&mut all.runtime, part.runtime, RUNTIME, maps);
        extend(&mut all.ops, part.ops, OPS, maps);
        extend(&mut all.annotations, part.annotations, ANNOTATIONS, maps);
        extend(&mut all.flows, part.flows, FLOWS, maps);
        extend(&mut all.instants, part.instants, INSTANTS, maps);
        extend(&mut all.counters, part.counters, COUNTERS, maps);
        extend(&mut all.others, part.others, OTHERS, maps);
    });
}

/// Moves the rows column by column, to limit peak memory.
fn extend<const N: usize>(to: &mut Columns<N>, from: Columns<N>, forms: [Form; N], maps: &Maps) {
    fn one<T: Copy>(to: &mut Vec<T>, from: Vec<T>, map: impl Fn(T) -> T) {
        to.reserve_exact(from.len());
        to.extend(from.into_iter().map(map));
    }
    let mapped = |to: &mut Vec<u32>, from: Vec<u32>, map: &Map| match &map.0 {
        None => one(to, from, |number| number),
        Some(map) => one(to, from, |number| map.get(number as usize).copied().unwrap_or(number)),
    };
    one(&mut to.ts, from.ts, |ts| ts);
    one(&mut to.dur, from.dur, |dur| dur);
    mapped(&mut to.name, from.name, &maps.names);
    mapped(&mut to.track, from.track, &maps.tracks);
    one(&mut to.kind, from.kind, |kind| maps.kinds[kind as usize]);
    for ((to, from), form) in to.more.iter_mut().zip(from.more).zip(forms) {
        match form {
            Form::Text => mapped(to, from, &maps.names),
            Form::Json => mapped(to, from, &maps.jsons),
            Form::Id if !maps.wide.is_empty() => one(to, from, |code| maps.id(code)),
            Form::Id | Form::Time => one(to, from, |code| code),
        }
    }
}

/// The columns that refer to `Part::jsons`.
fn json_columns(part: &mut Part) -> impl Iterator<Item = &mut [u32]> {
    let [_, _, _, _, grid, block, ..] = &mut part.gpu.more;
    let [_, dims, types, concrete, _] = &mut part.ops.more;
    [grid, block, dims, types, concrete, &mut part.counters.more[0]]
        .into_iter()
        .map(Vec::as_mut_slice)
}

/// Moves the JSON texts to the names, without insignificant white space.
fn compact_jsons(all: &mut Part) -> Map {
    let mut jsons = std::mem::replace(&mut all.jsons, Interner::new());
    let texts: Vec<Vec<u8>> =
        (0..jsons.len() as u32).map(|id| json::compact(jsons.get(id))).collect();
    if !texts.iter().flatten().any(u8::is_ascii_control) {
        jsons.forget_controls();
    }
    all.names.joined(&jsons);
    Map(Some(texts.iter().map(|text| all.names.intern(text, u64::MAX)).collect()))
}

/// Tracks with their names from metadata events.
fn tracks(all: &Part) -> Vec<Track> {
    let (mut processes, mut labels, mut threads) =
        (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
    for meta in all.metas.iter().filter(|meta| meta.text != NONE) {
        let (pid, tid) = all.tracks[meta.track as usize];
        match all.names.get(meta.name) {
            b"process_name" => _ = processes.insert(pid, meta.text),
            b"process_labels" => _ = labels.insert(pid, meta.text),
            b"thread_name" => _ = threads.insert((pid, tid), meta.text),
            _ => {}
        }
    }
    let find = |map: &FxHashMap<u32, u32>, pid| map.get(&pid).copied().unwrap_or(NONE);
    let track = |&(pid, tid): &(u32, u32)| Track {
        pid,
        tid,
        process: find(&processes, pid),
        labels: find(&labels, pid),
        thread: threads.get(&(pid, tid)).copied().unwrap_or(NONE),
    };
    all.tracks.iter().map(track).collect()
}

fn wide_id(wide: Wide, names: &Interner) -> WideId {
    match wide {
        Wide::Number(n) => WideId::Number(n),
        Wide::Text(name) => WideId::Text(String::from_utf8_lossy(names.get(name)).into_owned()),
    }
}

/// The names as UTF-8. Invalid UTF-8 and control characters are replaced and counted.
fn strings(names: &Interner, losses: &mut Losses) -> Strings {
    let mut offsets = Vec::with_capacity(names.len() + 1);
    let mut bytes = Vec::new();
    offsets.push(0i64);
    for id in 0..names.len() as u32 {
        let text = String::from_utf8_lossy(names.get(id));
        if matches!(text, std::borrow::Cow::Owned(_)) {
            losses.add(LossReason::InvalidUtf8, names.first_invalid);
        }
        if text.bytes().any(|b| b.is_ascii_control()) {
            losses.add(LossReason::ControlCharacters, names.first_control);
        }
        bytes.extend_from_slice(text.as_bytes());
        offsets.push(bytes.len() as i64);
    }
    Strings { offsets: offsets.into(), bytes: Buffer::from_vec(bytes) }
}
