//! Offsets of the lists of interpreters and threads. The offsets of 3.9 to 3.12 come from the
//! headers of these versions (x86-64, release builds); since 3.13 the interpreter contains a table
//! of them.

use laggard_agent::python::Memory;

/// Offsets of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lists {
    /// `_PyRuntime.interpreters.head`.
    pub(super) first: u16,
    /// `interp->next`, and the head of its thread list.
    pub(super) next: u16,
    pub(super) threads: u16,
    /// `tstate->next`, `->thread_id` and, from 3.11 on, `->native_thread_id`.
    pub(super) thread_next: u16,
    pub(super) thread_id: u16,
    pub(super) native_id: Option<u16>,
    pub(super) gil: Gil,
}

/// Where to find the holder of the GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gil {
    /// `_PyRuntime.gilstate.tstate_current`.
    Current(u16),
    /// `interp->ceval.gil`, and in it the last holder and whether it is locked.
    Lock { at: u16, holder: u16, locked: u16 },
}

impl Lists {
    pub(super) fn of(minor: u32, runtime: u64, memory: impl Memory) -> Option<Lists> {
        let old = |first, threads, thread_id, native_id, gil| Lists {
            first,
            next: 0,
            threads,
            thread_next: 8,
            thread_id,
            native_id,
            gil,
        };
        match minor {
            9 | 10 => Some(old(32, 8, 176, None, Gil::Current(568))),
            11 => Some(old(40, 16, 152, Some(160), Gil::Current(576))),
            12 => Some(old(40, 72, 136, Some(144), Gil::Lock { at: 384, holder: 8, locked: 16 })),
            _ => Lists::own(minor, runtime, memory),
        }
    }

    /// Reads the interpreter's own table.
    fn own(minor: u32, runtime: u64, memory: impl Memory) -> Option<Lists> {
        let word = |index: u16| {
            let offset = memory.field(runtime, index * 8)?;
            u16::try_from(offset).ok()
        };
        // Indices of the first words of the sections about the GIL and about threads.
        let (lock, thread) = match minor {
            13 => (14, 19),
            14 => (15, 22),
            _ => return None,
        };
        let in_lock = |index: u16| word(index)?.checked_sub(word(lock + 1)?);
        Some(Lists {
            first: word(5)?,
            next: word(8)?,
            threads: word(9)?,
            thread_next: word(thread + 2)?,
            thread_id: word(thread + 5)?,
            native_id: Some(word(thread + 6)?),
            gil: Gil::Lock {
                at: word(lock)?,
                holder: in_lock(lock + 4)?,
                locked: in_lock(lock + 3)?,
            },
        })
    }
}
