//! The values of one event, and the keys they come from.

use laggard_core::model::timeline::Table;

/// A value of an event that some table keeps. The discriminants are bits of [`Values::seen`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Slot {
    Ts,
    Dur,
    Pid,
    Tid,
    FlowId,
    Correlation,
    External,
    Stream,
    Device,
    Grid,
    Block,
    Registers,
    SharedMemory,
    Bytes,
    Dims,
    Types,
    Concrete,
    CallStack,
    PythonId,
    PythonParent,
    Collective,
    Dtype,
    Group,
    Ranks,
    ElementsIn,
    ElementsOut,
    GroupSize,
    TotalAllocated,
    TotalReserved,
    DeviceType,
    MetaText,
    CounterArgs,
}
use Slot::*;

pub(super) const SLOTS: usize = 32;

/// The storage format of a slot's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Microseconds, stored as nanoseconds.
    Time,
    /// An id: a number or a text.
    Id,
    /// A text.
    Text,
    /// An array or object, stored as its text.
    Json,
}

impl Slot {
    pub(super) fn form(self) -> Form {
        match self {
            Ts | Dur => Form::Time,
            CallStack | Collective | Dtype | Group | Ranks | MetaText => Form::Text,
            Grid | Block | Dims | Types | Concrete | CounterArgs => Form::Json,
            _ => Form::Id,
        }
    }

    /// The slot of a key of the event itself.
    #[inline]
    pub(super) fn of_key(key: &[u8]) -> Option<Slot> {
        Some(match key {
            b"ts" => Ts,
            b"dur" => Dur,
            b"pid" => Pid,
            b"tid" => Tid,
            b"id" => FlowId,
            _ => return None,
        })
    }

    /// The slot of a key in the event's `args`.
    #[inline]
    pub(super) fn of_arg(key: &[u8]) -> Option<Slot> {
        Some(match key {
            b"correlation" => Correlation,
            b"External id" | b"external id" | b"External Id" => External,
            b"stream" => Stream,
            b"device" | b"Device Id" => Device,
            b"grid" => Grid,
            b"block" => Block,
            b"registers per thread" => Registers,
            b"shared memory" => SharedMemory,
            b"bytes" | b"Bytes" => Bytes,
            b"Input Dims" => Dims,
            b"Input type" => Types,
            b"Concrete Inputs" => Concrete,
            b"Call stack" => CallStack,
            b"Python id" => PythonId,
            b"Python parent id" => PythonParent,
            b"Collective name" => Collective,
            b"dtype" => Dtype,
            b"Process Group Name" => Group,
            b"Process Group Ranks" => Ranks,
            b"In msg nelems" => ElementsIn,
            b"Out msg nelems" => ElementsOut,
            b"Group size" => GroupSize,
            b"Total Allocated" => TotalAllocated,
            b"Total Reserved" => TotalReserved,
            b"Device Type" => DeviceType,
            b"name" | b"labels" => MetaText,
            _ => return None,
        })
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The slots that can occur in the args of this table's events. All three paths skip the rest of
/// the args once all of these have been read.
pub(super) fn wanted_args(table: Table) -> u32 {
    let collective = Collective.bit()
        | Dtype.bit()
        | Group.bit()
        | Ranks.bit()
        | ElementsIn.bit()
        | ElementsOut.bit()
        | GroupSize.bit();
    match table {
        Table::Gpu => {
            let launch =
                Grid.bit() | Block.bit() | Registers.bit() | SharedMemory.bit() | Bytes.bit();
            Correlation.bit() | External.bit() | Stream.bit() | Device.bit() | launch | collective
        }
        Table::Runtime => Correlation.bit() | External.bit(),
        Table::Op => {
            External.bit()
                | Dims.bit()
                | Types.bit()
                | Concrete.bit()
                | CallStack.bit()
                | collective
        }
        Table::Python => PythonId.bit() | PythonParent.bit(),
        Table::Annotation => External.bit(),
        Table::Flow => 0,
        Table::Instant => {
            Bytes.bit()
                | TotalAllocated.bit()
                | TotalReserved.bit()
                | Device.bit()
                | DeviceType.bit()
        }
        Table::Counter => CounterArgs.bit(),
        Table::Meta => MetaText.bit(),
        Table::Other => Correlation.bit() | External.bit() | Stream.bit(),
    }
}

/// Marks an id that is a text. The low bits are the number of the text.
const TEXT_ID: i64 = 1 << 62;

/// An id as read from the file.
pub(super) enum RawId {
    Number(i64),
    /// Number of a text.
    Text(u32),
}

/// The values of one event. Unseen slots keep stale values, so that nothing has to be cleared
/// between events.
pub(super) struct Values {
    values: [i64; SLOTS],
    seen: u32,
}

impl Values {
    pub(super) fn new() -> Values {
        Values { values: [0; SLOTS], seen: 0 }
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.seen = 0;
    }

    pub(super) fn forget(&mut self, slots: u32) {
        self.seen &= !slots;
    }

    #[inline(always)]
    pub(super) fn set(&mut self, slot: Slot, value: i64) {
        self.values[slot as usize & (SLOTS - 1)] = value;
        self.seen |= slot.bit();
    }

    pub(super) fn set_text_id(&mut self, slot: Slot, text: u32) {
        self.set(slot, TEXT_ID | i64::from(text));
    }

    #[inline(always)]
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.seen & slot.bit() != 0
    }

    /// Whether all of these slots have been seen.
    #[inline(always)]
    pub(super) fn has_all(&self, slots: u32) -> bool {
        self.seen & slots == slots
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: Slot) -> Option<i64> {
        self.has(slot).then(|| self.values[slot as usize])
    }

    pub(super) fn raw_id(&self, slot: Slot) -> Option<RawId> {
        let value = self.get(slot)?;
        if value > 0 && value & TEXT_ID != 0 {
            return Some(RawId::Text(value as u32));
        }
        Some(RawId::Number(value))
    }
}
