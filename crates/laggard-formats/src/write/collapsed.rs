//! Collapsed stacks: a line a stack, its frames joined by `;`, then the number of samples. What
//! `flamegraph.pl`, inferno and most viewers read.

use super::{joined, plain_labels};
use laggard_core::profile::View;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes collapsed stacks. Samples without any frame are `[no stack]`.
pub fn collapsed(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let labels = plain_labels(view);
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for &(stack, cost) in &view.stacks {
        let line = joined(view, &labels, stack);
        let line = if line.is_empty() { "[no stack]".to_owned() } else { line };
        *lines.entry(line).or_default() += cost.samples;
    }
    for (stack, samples) in lines {
        writeln!(out, "{stack} {samples}")?;
    }
    Ok(())
}
