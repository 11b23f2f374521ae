//! Parts of several threads to one [`Timeline`].

use super::intern::Interner;
use super::json;
use super::part::{Columns, Losses, MetaRow, Part, Wide};
use arrow_buffer::Buffer;
use laggard_core::model::timeline::{
    About, AnnotationTable, CounterTable, FIRST_WIDE_ID, FlowTable, GpuTable, Ids, InstantTable,
    Kind, LossReason, OpTable, OtherTable, PythonTable, RuntimeTable, Spans, Strings, Timeline,
    Track, WideId,
};
use laggard_core::model::{Column, NONE};
use rustc_hash::FxHashMap;

/// Joins the parts, which are in file order.
pub(super) fn timeline(parts: Vec<Part>, about: About, losses: &Losses, bytes: u64) -> Timeline {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_else(Part::new);
    for part in parts {
        append(&mut all, part);
    }
    all.losses.join(losses);
    let texts = compact_jsons(&mut all);
    for column in json_columns(&mut all) {
        remap(column, &texts);
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

/// Numbers of one part to numbers of another; the identity when nothing moves.
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

fn remap(column: &mut [u32], map: &Map) {
    if let Some(map) = &map.0 {
        for value in column {
            if let Some(&to) = map.get(*value as usize) {
                *value = to;
            }
        }
    }
}

fn append(all: &mut Part, mut part: Part) {
    let names = Map::new(
        (0..part.names.len() as u32).map(|id| all.names.intern(part.names.get(id), u64::MAX)),
    );
    let jsons = Map::new(
        (0..part.jsons.len() as u32).map(|id| all.jsons.intern(part.jsons.get(id), u64::MAX)),
    );
    all.names.joined(&part.names);
    all.jsons.joined(&part.jsons);
    let wide: Vec<u32> = part
        .ids
        .values
        .iter()
        .map(|&wide| {
            all.ids.code(if let Wide::Text(name) = wide {
                Wide::Text(names.get(name))
            } else {
                wide
            })
        })
        .collect();
    let id = |code: u32| {
        if (FIRST_WIDE_ID..NONE).contains(&code) {
            wide[(code - FIRST_WIDE_ID) as usize]
        } else {
            code
        }
    };
    let tracks = Map::new(part.tracks.iter().map(|&(pid, tid)| all.track(id(pid), id(tid))));
    let kinds: Vec<u8> = part
        .kinds
        .iter()
        .map(|Kind { phase, category }| all.kind(phase.as_bytes(), category.as_bytes(), 0).0)
        .collect();

    for column in json_columns(&mut part) {
        remap(column, &jsons);
    }
    remap(&mut part.ops.more[4], &names);
    macro_rules! tables {
        ($($table:ident: $ids:expr),*) => {$({
            let columns = &mut part.$table;
            remap(&mut columns.name, &names);
            remap(&mut columns.track, &tracks);
            for kind in &mut columns.kind {
                *kind = kinds[*kind as usize];
            }
            if !wide.is_empty() {
                for i in $ids {
                    for code in &mut columns.more[i] {
                        *code = id(*code);
                    }
                }
            }
        })*};
    }
    let no_ids: [usize; 0] = [];
    let gpu_ids: [usize; 7] = [0, 1, 2, 3, 6, 7, 8];
    tables!(gpu: gpu_ids, runtime: 0..2, ops: 0..1, python: 0..2, annotations: 0..1, flows: 0..1, instants: 0..5, counters: no_ids, others: 0..3);
    all.metas.extend(part.metas.iter().map(|meta| MetaRow {
        name: names.get(meta.name),
        track: tracks.get(meta.track),
        text: names.get(meta.text),
    }));
    for mut collective in part.collectives {
        let rows = if collective.on_gpu { all.gpu.ts.len() } else { all.ops.ts.len() };
        collective.row += rows as u32;
        for text in [
            &mut collective.operation,
            &mut collective.dtype,
            &mut collective.group,
            &mut collective.ranks,
        ] {
            *text = names.get(*text);
        }
        for code in
            [&mut collective.elements_in, &mut collective.elements_out, &mut collective.group_size]
        {
            *code = id(*code);
        }
        all.collectives.push(collective);
    }
    extend(&mut all.gpu, part.gpu);
    extend(&mut all.runtime, part.runtime);
    extend(&mut all.ops, part.ops);
    extend(&mut all.python, part.python);
    extend(&mut all.annotations, part.annotations);
    extend(&mut all.flows, part.flows);
    extend(&mut all.instants, part.instants);
    extend(&mut all.counters, part.counters);
    extend(&mut all.others, part.others);
    all.losses.join(&part.losses);
    all.events += part.events;
    all.with_phase += part.with_phase;
}

/// Moves the rows over, column by column, so that little is held twice.
fn extend<const N: usize>(to: &mut Columns<N>, from: Columns<N>) {
    fn one<T: Copy>(to: &mut Vec<T>, from: Vec<T>) {
        to.reserve_exact(from.len());
        to.extend(from);
    }
    one(&mut to.ts, from.ts);
    one(&mut to.dur, from.dur);
    one(&mut to.name, from.name);
    one(&mut to.track, from.track);
    one(&mut to.kind, from.kind);
    for (to, from) in to.more.iter_mut().zip(from.more) {
        one(to, from);
    }
}

/// The columns whose numbers are of `Part::jsons`.
fn json_columns(part: &mut Part) -> impl Iterator<Item = &mut [u32]> {
    let [_, _, _, _, grid, block, ..] = &mut part.gpu.more;
    let [_, dims, types, concrete, _] = &mut part.ops.more;
    [grid, block, dims, types, concrete, &mut part.counters.more[0]]
        .into_iter()
        .map(Vec::as_mut_slice)
}

/// Moves the JSON texts to the names, without the white space that depends on the layout.
fn compact_jsons(all: &mut Part) -> Map {
    let mut map = Vec::with_capacity(all.jsons.len());
    for id in 0..all.jsons.len() as u32 {
        map.push(all.names.intern(&json::compact(all.jsons.get(id)), u64::MAX));
    }
    all.names.joined(&all.jsons);
    all.jsons = Interner::new();
    Map(Some(map))
}

/// Tracks with the names that metadata events give them.
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

/// The names as UTF-8; what is not is replaced and counted, and so are control characters.
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
