//! Writes collapsed stacks: one line per stack, with frames joined by `;` and a count. Readable by
//! `flamegraph.pl`, inferno and most viewers.

use super::{joined, plain_labels};
use laggard_core::model::profile::Unit;
use laggard_core::profile::View;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes collapsed stacks. The count is the number of samples for time events, and the weight for
/// other events (bytes, page faults, instructions). Samples without frames are `[no stack]`.
pub fn collapsed(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let labels = plain_labels(view);
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for &(stack, cost) in &view.stacks {
        let line = joined(view, &labels, stack);
        let line = if line.is_empty() { "[no stack]".to_owned() } else { line };
        *lines.entry(line).or_default() += match view.unit() {
            Unit::Nanos => cost.samples,
            Unit::Bytes | Unit::Count => cost.weight,
        };
    }
    for (stack, count) in lines {
        writeln!(out, "{stack} {count}")?;
    }
    Ok(())
}
