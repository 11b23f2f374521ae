//! Collapsed stacks of traced calls: a line a stack, then what its calls amount to.

use super::plain;
use laggard_core::calls::{Measure, View};
use laggard_core::model::calls::Calls;
use laggard_core::profile::frame_label;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes calls as stacks, with the labels that stacks of samples have. Where whole stacks were
/// kept, those, with the number of calls that they stand for; else the caller and the function with
/// the nanoseconds of all calls, or their instructions, or their number, whichever is known.
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
        // The event of a stack is the function that was called there. The stack ends with it as a
        // rule, though its library may be mapped by another name than it was bound by.
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
