//! Writes call traces as collapsed stacks: one line per stack with a count.

use super::plain;
use laggard_core::calls::{Measure, View};
use laggard_core::model::calls::Calls;
use laggard_core::profile::frame_label;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes calls as collapsed stacks, with the same labels as stacks of samples. If the trace has
/// whole stacks, each is written with its number of calls. Otherwise each line is a caller and its
/// callee, with the total time in nanoseconds, the instructions or the number of calls, in this
/// order of preference.
pub fn collapsed_calls(calls: &Calls, out: &mut dyn Write) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |stack: &[String], amount: u64| {
        let sum = lines.entry(stack.join(";")).or_default();
        *sum = sum.saturating_add(amount);
    };
    let view = View::whole(calls);
    let profile = &calls.profile;
    for sample in &profile.samples {
        let mut stack: Vec<String> = profile
            .frames_of(sample.stack)
            .filter_map(|number| profile.frames.get(number as usize))
            .map(|frame| plain(&frame_label(profile, frame)))
            .collect();
        stack.reverse();
        // The event of a stack is the called function. The stack usually ends with it, but its
        // library can be mapped under a different name than it was bound with.
        let called = plain(view.name(sample.event).0);
        if stack.last() != Some(&called) {
            stack.push(called);
        }
        add(&stack, sample.weight);
    }
    if profile.samples.is_empty() {
        for row in &calls.rows {
            let amount = match view.measure {
                Measure::Time => row.total_ns,
                Measure::Instructions => row.instructions.unwrap_or(0),
                Measure::Calls => row.count,
            };
            add(&[plain(&view.caller(row).function), plain(view.function(row).0)], amount);
        }
    }
    for (stack, amount) in lines.into_iter().filter(|(_, amount)| *amount > 0) {
        writeln!(out, "{stack} {amount}")?;
    }
    Ok(())
}
