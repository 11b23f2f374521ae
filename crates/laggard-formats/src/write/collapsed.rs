//! Collapsed stacks: a line a stack, its frames joined by `;`, then the number of samples. What
//! `flamegraph.pl`, inferno and most viewers read.

use super::{joined, plain_labels};
use laggard_core::model::profile::Unit;
use laggard_core::profile::View;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes collapsed stacks, with the number of samples of time and the weight of what else is counted:
/// bytes, page faults, instructions. Samples without any frame are `[no stack]`.
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
