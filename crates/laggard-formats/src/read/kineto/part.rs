//! The output of one thread: columns with their own ids, names and tracks.

use super::event::{Form, RawId, Slot, Values};
use super::intern::Interner;
use laggard_core::model::NONE;
use laggard_core::model::timeline::{Collective, FIRST_WIDE_ID, Kind, Loss, LossReason, Table};
use rustc_hash::FxHashMap;

/// The columns common to all tables, and `N` more.
pub(super) struct Columns<const N: usize> {
    pub(super) ts: Vec<i64>,
    pub(super) dur: Vec<i64>,
    pub(super) name: Vec<u32>,
    pub(super) track: Vec<u32>,
    pub(super) kind: Vec<u8>,
    pub(super) more: [Vec<u32>; N],
}

impl<const N: usize> Default for Columns<N> {
    fn default() -> Self {
        Columns {
            ts: vec![],
            dur: vec![],
            name: vec![],
            track: vec![],
            kind: vec![],
            more: std::array::from_fn(|_| vec![]),
        }
    }
}

/// Formats of the additional columns of each table.
pub(super) const GPU: [Form; 9] = [ID, ID, ID, ID, JSON, JSON, ID, ID, ID];
pub(super) const RUNTIME: [Form; 2] = [ID, ID];
pub(super) const OPS: [Form; 5] = [ID, JSON, JSON, JSON, Form::Text];
pub(super) const PYTHON: [Form; 2] = [ID, ID];
pub(super) const ANNOTATIONS: [Form; 1] = [ID];
pub(super) const FLOWS: [Form; 1] = [ID];
pub(super) const INSTANTS: [Form; 5] = [ID, ID, ID, ID, ID];
pub(super) const COUNTERS: [Form; 1] = [JSON];
pub(super) const OTHERS: [Form; 3] = [ID, ID, ID];
const ID: Form = Form::Id;
const JSON: Form = Form::Json;

/// Kind, table and track of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp {
    pub(super) kind: u8,
    pub(super) table: Table,
    pub(super) track: u32,
}

impl<const N: usize> Columns<N> {
    #[inline(always)]
    fn push(&mut self, stamp: Stamp, name: u32, ts: i64, dur: i64, more: [u32; N]) {
        self.ts.push(ts);
        self.dur.push(dur);
        self.name.push(name);
        self.track.push(stamp.track);
        self.kind.push(stamp.kind);
        for (column, value) in self.more.iter_mut().zip(more) {
            column.push(value);
        }
    }
}

/// A name of a process or thread.
#[derive(Clone, Copy)]
pub(super) struct MetaRow {
    pub(super) name: u32,
    pub(super) track: u32,
    pub(super) text: u32,
}

/// An id that is not a small number. Texts are stored by their number in `Part::names`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wide {
    Number(i64),
    Text(u32),
}

/// Ids that are not small numbers.
#[derive(Default)]
pub(super) struct WideIds {
    pub(super) values: Vec<Wide>,
    codes: FxHashMap<Wide, u32>,
}

impl WideIds {
    pub(super) fn code(&mut self, id: Wide) -> u32 {
        if let Wide::Number(n @ 0..) = id
            && n < i64::from(FIRST_WIDE_ID)
        {
            return n as u32;
        }
        *self.codes.entry(id).or_insert_with(|| {
            // Codes must stay below NONE: with more than 268 million wide ids, the last ones share
            // a code.
            let code = (FIRST_WIDE_ID as usize + self.values.len()).min(NONE as usize - 1) as u32;
            self.values.push(id);
            code
        })
    }
}

/// Counts by reason, each with the position of its first occurrence.
#[derive(Default)]
pub(super) struct Losses([(u64, u64); LossReason::ALL.len()]);

impl Losses {
    #[cold]
    pub(super) fn add(&mut self, reason: LossReason, offset: u64) {
        self.add_many(reason, 1, offset);
    }

    pub(super) fn add_many(&mut self, reason: LossReason, count: u64, offset: u64) {
        let (n, first) = &mut self.0[reason as usize];
        *first = if *n == 0 { offset } else { offset.min(*first) };
        *n += count;
    }

    pub(super) fn join(&mut self, other: &Losses) {
        for loss in other.list() {
            self.add_many(loss.reason, loss.count, loss.first_offset);
        }
    }

    pub(super) fn has(&self, reason: LossReason) -> bool {
        self.0[reason as usize].0 > 0
    }

    pub(super) fn list(&self) -> Vec<Loss> {
        let all = LossReason::ALL.iter().zip(self.0);
        all.filter(|(_, (count, _))| *count > 0)
            .map(|(&reason, (count, first_offset))| Loss { reason, count, first_offset })
            .collect()
    }
}

/// Maximum number of kinds. Further kinds share a number, except span kinds that some table needs,
/// of which there are few.
const MAX_ODD_KINDS: usize = 200;
/// Category of the kinds that share a number.
const SHARED_KIND: &str = "?";

/// All data read by one thread.
pub(super) struct Part {
    pub(super) names: Interner,
    /// Arrays and objects, as in the file.
    pub(super) jsons: Interner,
    pub(super) ids: WideIds,
    pub(super) kinds: Vec<Kind>,
    pub(super) tables: Vec<Table>,
    pub(super) tracks: Vec<(u32, u32)>,
    track_numbers: FxHashMap<(u32, u32), u32>,
    pub(super) gpu: Columns<9>,
    pub(super) runtime: Columns<2>,
    pub(super) ops: Columns<5>,
    pub(super) python: Columns<2>,
    pub(super) annotations: Columns<1>,
    pub(super) flows: Columns<1>,
    pub(super) instants: Columns<5>,
    pub(super) counters: Columns<1>,
    pub(super) others: Columns<3>,
    pub(super) metas: Vec<MetaRow>,
    pub(super) collectives: Vec<Collective>,
    pub(super) losses: Losses,
    /// Number of objects in the event array.
    pub(super) events: u64,
    /// Number of these objects with a `ph`.
    pub(super) with_phase: u64,
}

impl Part {
    pub(super) fn new() -> Part {
        Part {
            names: Interner::new(),
            jsons: Interner::new(),
            ids: WideIds::default(),
            kinds: vec![],
            tables: vec![],
            tracks: vec![],
            track_numbers: FxHashMap::default(),
            gpu: Columns::default(),
            runtime: Columns::default(),
            ops: Columns::default(),
            python: Columns::default(),
            annotations: Columns::default(),
            flows: Columns::default(),
            instants: Columns::default(),
            counters: Columns::default(),
            others: Columns::default(),
            metas: vec![],
            collectives: vec![],
            losses: Losses::default(),
            events: 0,
            with_phase: 0,
        }
    }

    /// The number and table of a kind, and whether the number is its own. Span kinds that some
    /// table needs always have their own number. Beyond [`MAX_ODD_KINDS`], the other kinds of a
    /// table share one.
    pub(super) fn kind(&mut self, phase: &[u8], category: &[u8]) -> (u8, Table, bool) {
        let (phase, category) = (String::from_utf8_lossy(phase), String::from_utf8_lossy(category));
        let find = |kinds: &[Kind], phase: &str, category: &str| {
            kinds.iter().position(|k| k.phase == phase && k.category == category)
        };
        if let Some(number) = find(&self.kinds, &phase, &category) {
            return (number as u8, self.tables[number], true);
        }
        let mut kind = Kind { phase: phase.into_owned(), category: category.into_owned() };
        let table = kind.table();
        let shared = matches!(
            table,
            Table::Flow | Table::Instant | Table::Counter | Table::Meta | Table::Other
        ) && self.kinds.len() >= MAX_ODD_KINDS;
        if shared {
            let letter = match table {
                Table::Flow => "s",
                Table::Instant => "i",
                Table::Counter => "C",
                Table::Meta => "M",
                _ => "X",
            };
            if let Some(number) = find(&self.kinds, letter, SHARED_KIND) {
                return (number as u8, table, false);
            }
            kind = Kind { phase: letter.into(), category: SHARED_KIND.into() };
        }
        self.kinds.push(kind);
        self.tables.push(table);
        (self.kinds.len() as u8 - 1, table, !shared)
    }

    /// The track with these process and thread codes.
    #[inline]
    pub(super) fn track(&mut self, pid: u32, tid: u32) -> u32 {
        if let Some(&(p, t)) = self.tracks.last()
            && (p, t) == (pid, tid)
        {
            return self.tracks.len() as u32 - 1;
        }
        *self.track_numbers.entry((pid, tid)).or_insert_with(|| {
            self.tracks.push((pid, tid));
            self.tracks.len() as u32 - 1
        })
    }

    /// The track of an event with these values.
    #[inline]
    pub(super) fn track_of(&mut self, values: &Values) -> u32 {
        let pid = self.id(values, Slot::Pid);
        let tid = self.id(values, Slot::Tid);
        self.track(pid, tid)
    }

    #[inline(always)]
    fn id(&mut self, values: &Values, slot: Slot) -> u32 {
        match values.get(slot) {
            None => NONE,
            Some(n) if (n as u64) < u64::from(FIRST_WIDE_ID) => n as u32,
            Some(_) => self.wide_id(values, slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn wide_id(&mut self, values: &Values, slot: Slot) -> u32 {
        match values.raw_id(slot) {
            None => NONE,
            Some(RawId::Number(n)) => self.ids.code(Wide::Number(n)),
            Some(RawId::Text(text)) => self.ids.code(Wide::Text(text)),
        }
    }

    /// Appends the event to its table. `at` is its position in the text.
    #[inline(always)]
    pub(super) fn push(&mut self, stamp: Stamp, name: u32, values: &Values, at: u64) {
        self.events += 1;
        self.with_phase += 1;
        let text = |slot| values.get(slot).map_or(NONE, |n| n as u32);
        let ts = values.get(Slot::Ts).unwrap_or(0);
        let dur = values.get(Slot::Dur).unwrap_or(0);
        if dur < 0 {
            self.losses.add(LossReason::NegativeDuration, at);
        }
        macro_rules! ids {
            ($($slot:ident),*) => { [$(self.id(values, Slot::$slot)),*] };
        }
        match stamp.table {
            Table::Gpu => {
                let [correlation, external, stream, device, registers, shared_memory, bytes] =
                    ids!(Correlation, External, Stream, Device, Registers, SharedMemory, Bytes);
                let [grid, block] = [text(Slot::Grid), text(Slot::Block)];
                let more = [
                    correlation,
                    external,
                    stream,
                    device,
                    grid,
                    block,
                    registers,
                    shared_memory,
                    bytes,
                ];
                if values.has(Slot::Collective) {
                    self.collective(true, self.gpu.ts.len(), values);
                }
                self.gpu.push(stamp, name, ts, dur, more);
            }
            Table::Runtime => {
                let more = ids!(Correlation, External);
                self.runtime.push(stamp, name, ts, dur, more);
            }
            Table::Op => {
                let [external] = ids!(External);
                let more = [
                    external,
                    text(Slot::Dims),
                    text(Slot::Types),
                    text(Slot::Concrete),
                    text(Slot::CallStack),
                ];
                if values.has(Slot::Collective) {
                    self.collective(false, self.ops.ts.len(), values);
                }
                self.ops.push(stamp, name, ts, dur, more);
            }
            Table::Python => {
                let more = ids!(PythonId, PythonParent);
                self.python.push(stamp, name, ts, dur, more);
            }
            Table::Annotation => {
                let more = ids!(External);
                self.annotations.push(stamp, name, ts, dur, more);
            }
            Table::Flow => {
                let more = ids!(FlowId);
                self.flows.push(stamp, name, ts, 0, more);
            }
            Table::Instant => {
                let more = ids!(Bytes, TotalAllocated, TotalReserved, Device, DeviceType);
                self.instants.push(stamp, name, ts, 0, more);
            }
            Table::Counter => self.counters.push(stamp, name, ts, 0, [text(Slot::CounterArgs)]),
            Table::Meta => {
                self.metas.push(MetaRow { name, track: stamp.track, text: text(Slot::MetaText) })
            }
            Table::Other => {
                let more = ids!(Correlation, External, Stream);
                self.others.push(stamp, name, ts, dur, more);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn collective(&mut self, on_gpu: bool, row: usize, values: &Values) {
        let text = |slot| values.get(slot).map_or(NONE, |n| n as u32);
        let collective = Collective {
            on_gpu,
            row: row as u32,
            operation: text(Slot::Collective),
            dtype: text(Slot::Dtype),
            group: text(Slot::Group),
            ranks: text(Slot::Ranks),
            elements_in: self.id(values, Slot::ElementsIn),
            elements_out: self.id(values, Slot::ElementsOut),
            group_size: self.id(values, Slot::GroupSize),
        };
        self.collectives.push(collective);
    }
}
