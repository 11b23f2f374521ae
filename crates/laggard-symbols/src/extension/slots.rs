//! Slots of Python types: their C functions, and the names of these functions.

/// A slot of a type that contains a function.
pub(super) struct Slot {
    /// Its number in CPython's `typeslots.h`.
    pub(super) id: u8,
    /// The table that contains it in a static type.
    pub(super) table: Table,
    /// Its offset in the table.
    pub(super) offset: u16,
    /// The name of the special method, or of the slot if no method corresponds to it.
    pub(super) name: &'static str,
}

/// A table of slots in a static type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Type,
    Async,
    Number,
    Sequence,
    Mapping,
    Buffer,
}

/// Offsets of the pointers to the other tables in a `PyTypeObject`.
pub(super) const TABLES: [(u64, Table); 5] = [
    (80, Table::Async),
    (96, Table::Number),
    (104, Table::Sequence),
    (112, Table::Mapping),
    (160, Table::Buffer),
];

const fn slot(id: u8, table: Table, offset: u16, name: &'static str) -> Slot {
    Slot { id, table, offset, name }
}

/// All slots, by id.
pub(super) const SLOTS: [Slot; 76] = {
    use Table::{Async, Buffer, Mapping, Number, Sequence, Type};
    [
        slot(1, Buffer, 0, "__buffer__"),
        slot(2, Buffer, 8, "__release_buffer__"),
        slot(3, Mapping, 16, "__setitem__"),
        slot(4, Mapping, 0, "__len__"),
        slot(5, Mapping, 8, "__getitem__"),
        slot(6, Number, 64, "__abs__"),
        slot(7, Number, 0, "__add__"),
        slot(8, Number, 104, "__and__"),
        slot(9, Number, 72, "__bool__"),
        slot(10, Number, 32, "__divmod__"),
        slot(11, Number, 144, "__float__"),
        slot(12, Number, 232, "__floordiv__"),
        slot(13, Number, 264, "__index__"),
        slot(14, Number, 152, "__iadd__"),
        slot(15, Number, 208, "__iand__"),
        slot(16, Number, 248, "__ifloordiv__"),
        slot(17, Number, 192, "__ilshift__"),
        slot(18, Number, 168, "__imul__"),
        slot(19, Number, 224, "__ior__"),
        slot(20, Number, 184, "__ipow__"),
        slot(21, Number, 176, "__imod__"),
        slot(22, Number, 200, "__irshift__"),
        slot(23, Number, 160, "__isub__"),
        slot(24, Number, 256, "__itruediv__"),
        slot(25, Number, 216, "__ixor__"),
        slot(26, Number, 128, "__int__"),
        slot(27, Number, 80, "__invert__"),
        slot(28, Number, 88, "__lshift__"),
        slot(29, Number, 16, "__mul__"),
        slot(30, Number, 48, "__neg__"),
        slot(31, Number, 120, "__or__"),
        slot(32, Number, 56, "__pos__"),
        slot(33, Number, 40, "__pow__"),
        slot(34, Number, 24, "__mod__"),
        slot(35, Number, 96, "__rshift__"),
        slot(36, Number, 8, "__sub__"),
        slot(37, Number, 240, "__truediv__"),
        slot(38, Number, 112, "__xor__"),
        slot(39, Sequence, 40, "__setitem__"),
        slot(40, Sequence, 8, "__add__"),
        slot(41, Sequence, 56, "__contains__"),
        slot(42, Sequence, 64, "__iadd__"),
        slot(43, Sequence, 72, "__imul__"),
        slot(44, Sequence, 24, "__getitem__"),
        slot(45, Sequence, 0, "__len__"),
        slot(46, Sequence, 16, "__mul__"),
        slot(47, Type, 304, "tp_alloc"),
        slot(50, Type, 128, "__call__"),
        slot(51, Type, 192, "tp_clear"),
        slot(52, Type, 48, "__dealloc__"),
        slot(53, Type, 376, "__del__"),
        slot(54, Type, 272, "__get__"),
        slot(55, Type, 280, "__set__"),
        slot(57, Type, 64, "__getattr__"),
        slot(58, Type, 144, "__getattribute__"),
        slot(59, Type, 120, "__hash__"),
        slot(60, Type, 296, "__init__"),
        slot(61, Type, 328, "tp_is_gc"),
        slot(62, Type, 216, "__iter__"),
        slot(63, Type, 224, "__next__"),
        slot(65, Type, 312, "__new__"),
        slot(66, Type, 88, "__repr__"),
        slot(67, Type, 200, "__richcmp__"),
        slot(68, Type, 72, "__setattr__"),
        slot(69, Type, 152, "__setattr__"),
        slot(70, Type, 136, "__str__"),
        slot(71, Type, 184, "tp_traverse"),
        slot(74, Type, 320, "tp_free"),
        slot(75, Number, 272, "__matmul__"),
        slot(76, Number, 280, "__imatmul__"),
        slot(77, Async, 0, "__await__"),
        slot(78, Async, 8, "__aiter__"),
        slot(79, Async, 16, "__anext__"),
        slot(80, Type, 392, "__del__"),
        slot(81, Async, 24, "am_send"),
        slot(82, Type, 400, "tp_vectorcall"),
    ]
};

/// The slot with an id of `typeslots.h`.
pub(super) fn slot_of(id: u64) -> Option<&'static Slot> {
    SLOTS.binary_search_by_key(&id, |slot| u64::from(slot.id)).ok().map(|at| &SLOTS[at])
}
