//! `Attr`: the attributes of an event, which define the layout of its samples.

use super::bytes::{Rest, u64_at};
use laggard_core::model::profile::Unit;

/// `PERF_SAMPLE_*`: the fields of a sample.
pub(super) mod has {
    pub(in super::super) const IP: u64 = 1 << 0;
    pub(in super::super) const TID: u64 = 1 << 1;
    pub(in super::super) const TIME: u64 = 1 << 2;
    pub(in super::super) const ADDR: u64 = 1 << 3;
    pub(in super::super) const READ: u64 = 1 << 4;
    pub(in super::super) const CALLCHAIN: u64 = 1 << 5;
    pub(in super::super) const ID: u64 = 1 << 6;
    pub(in super::super) const CPU: u64 = 1 << 7;
    pub(in super::super) const PERIOD: u64 = 1 << 8;
    pub(in super::super) const STREAM_ID: u64 = 1 << 9;
    pub(in super::super) const RAW: u64 = 1 << 10;
    pub(in super::super) const BRANCH_STACK: u64 = 1 << 11;
    pub(in super::super) const REGS_USER: u64 = 1 << 12;
    pub(in super::super) const STACK_USER: u64 = 1 << 13;
    pub(in super::super) const IDENTIFIER: u64 = 1 << 16;
}

const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// `PERF_SAMPLE_BRANCH_CALL_STACK`: branch records form a call stack.
const BRANCH_CALL_STACK: u64 = 1 << 11;
/// Size of the first version of `perf_event_attr`.
const SMALLEST: usize = 64;

/// The attributes of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attr {
    /// Kernel type and config.
    pub(super) kind: u32,
    pub(super) config: u64,
    /// Samples per second, or events per sample.
    rate_or_period: u64,
    /// See [`has`].
    pub(super) sample: u64,
    pub(super) read_format: u64,
    flags: u64,
    pub(super) branches: u64,
    pub(super) registers: u64,
    pub(super) stack_size: u32,
    /// Name from perf; empty if not in the file.
    pub(super) name: String,
    /// Ids in the records of this event.
    pub(super) ids: Vec<u64>,
}

impl Attr {
    /// Parses a `perf_event_attr`. Old kernels wrote only its first fields.
    pub(super) fn read(bytes: &[u8]) -> Option<Attr> {
        if bytes.len() < SMALLEST {
            return None;
        }
        let word = |at: usize| u64_at(bytes, at).unwrap_or(0);
        Some(Attr {
            kind: Rest(bytes).u32()?,
            config: word(8),
            rate_or_period: word(16),
            sample: word(24),
            read_format: word(32),
            flags: word(40),
            branches: word(72),
            registers: word(80),
            stack_size: word(88) as u32,
            name: String::new(),
            ids: vec![],
        })
    }

    pub(super) fn samples(&self, what: u64) -> bool {
        self.sample & what != 0
    }

    /// Samples per second, if the event has a frequency.
    pub(super) fn rate(&self) -> Option<u64> {
        (self.flags & FREQUENCY != 0).then_some(self.rate_or_period)
    }

    /// Events per sample, if the event has a period.
    pub(super) fn period(&self) -> Option<u64> {
        (self.flags & FREQUENCY == 0 && self.rate_or_period > 0).then_some(self.rate_or_period)
    }

    pub(super) fn excludes_kernel(&self) -> bool {
        self.flags & EXCLUDE_KERNEL != 0
    }

    /// Whether branch records form a call stack.
    pub(super) fn is_call_stack(&self) -> bool {
        self.samples(has::BRANCH_STACK) && self.branches & BRANCH_CALL_STACK != 0
    }

    /// Whether samples have registers and a copy of the stack.
    pub(super) fn copies_stack(&self) -> bool {
        self.samples(has::REGS_USER) && self.samples(has::STACK_USER)
    }

    /// The unit of weights: nanoseconds for the two clocks of the kernel.
    pub(super) fn unit(&self) -> Unit {
        if self.kind == 1 && self.config < 2 { Unit::Nanos } else { Unit::Count }
    }

    /// The time of a sample.
    pub(super) fn time_of_sample(&self, body: &[u8]) -> Option<u64> {
        let before = has::IDENTIFIER | has::IP | has::TID;
        self.samples(has::TIME).then(|| u64_at(body, self.words_of(before)))?
    }

    /// The time of another record, whose position is relative to its end.
    pub(super) fn time_of_other(&self, body: &[u8]) -> Option<u64> {
        let after = has::TIME | has::ID | has::STREAM_ID | has::CPU | has::IDENTIFIER;
        let is_there = self.flags & SAMPLE_ID_ALL != 0 && self.samples(has::TIME);
        is_there.then(|| u64_at(body, body.len().checked_sub(self.words_of(after))?))?
    }

    /// The event id of a sample.
    pub(super) fn id_of_sample(&self, body: &[u8]) -> Option<u64> {
        if self.samples(has::IDENTIFIER) {
            return u64_at(body, 0);
        }
        let before = has::IP | has::TID | has::TIME | has::ADDR;
        self.samples(has::ID).then(|| u64_at(body, self.words_of(before)))?
    }

    /// Size of the present fields among these, eight bytes each.
    fn words_of(&self, fields: u64) -> usize {
        (self.sample & fields).count_ones() as usize * 8
    }

    /// The common name of the event, without modifiers and without the core type.
    pub(super) fn plain_name(&self) -> String {
        let name = match self.name.rsplit_once(':') {
            Some((name, flags)) if is_modifier(flags) => name,
            _ => &self.name,
        };
        let name = ["cpu_core/", "cpu_atom/", "cpu/"].iter().find_map(|unit| {
            let (inner, flags) = name.strip_prefix(unit)?.rsplit_once('/')?;
            is_modifier(flags).then_some(inner)
        });
        let name = name.unwrap_or(match self.name.rsplit_once(':') {
            Some((name, flags)) if is_modifier(flags) => name,
            _ => &self.name,
        });
        if !name.is_empty() {
            return name.to_owned();
        }
        match (self.kind, self.config) {
            (0, 0) => "cycles".into(),
            (0, 1) => "instructions".into(),
            (0, 2) => "cache-references".into(),
            (0, 3) => "cache-misses".into(),
            (0, 4) => "branches".into(),
            (0, 5) => "branch-misses".into(),
            (1, 0) => "cpu-clock".into(),
            (1, 1) => "task-clock".into(),
            (1, 2) => "page-faults".into(),
            (1, 3) => "context-switches".into(),
            (1, 4) => "cpu-migrations".into(),
            (1, 5) => "minor-faults".into(),
            (1, 6) => "major-faults".into(),
            (kind, config) => format!("event {kind}:{config:#x}"),
        }
    }
}

/// Whether these letters are event modifiers (privilege level, precision).
fn is_modifier(flags: &str) -> bool {
    flags.bytes().all(|flag| b"ukhGHpPSDWIeb".contains(&flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_common_names() {
        let check = |name: &str, expected: &str| {
            let attr = Attr { name: name.into(), kind: 1, ..Attr::default() };
            assert_eq!(attr.plain_name(), expected, "{name}");
        };
        check("cycles:u", "cycles");
        check("cycles:uppp", "cycles");
        check("cpu_core/cycles/", "cycles");
        check("cpu_atom/cycles/u", "cycles");
        check("cpu/cache-misses/:u", "cache-misses");
        check("sched:sched_switch", "sched:sched_switch");
        check("r01c2", "r01c2");
        check("", "cpu-clock");
    }
}
