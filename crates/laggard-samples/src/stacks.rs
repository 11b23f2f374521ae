//! Synthetic collapsed stacks of any size, like a long recording of Python and C++.

use crate::Rng;
use std::io::{self, BufWriter, Write};

/// Order of stacks in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sorted: stacks with the same callers are adjacent.
    Sorted,
    /// In the order of a hash table, as in py-spy's output.
    Mixed,
}

/// Number of functions.
const FUNCTIONS: usize = 3000;
/// Distinct callees per function.
const CALLEES: u64 = 7;
const DEEPEST: usize = 60;
const SHALLOWEST: usize = 10;
/// Number of stacks from which the stacks of a mixed file are derived.
const SORTED_RUNS: usize = 4096;

/// Writes about this many bytes of collapsed stacks: 10 to 60 frames deep, of 3,000 functions, about
/// a thousand bytes per line, nearly all distinct. Returns the number of samples.
pub fn collapsed(bytes: u64, seed: u64, order: Order, out: &mut dyn Write) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let mut rng = Rng::new(seed);
    let names: Vec<String> = (0..FUNCTIONS).map(|number| name(number, &mut rng)).collect();
    // Each stack differs from another one only in its innermost frames. In a sorted file, that is
    // the previous one.
    let others = match order {
        Order::Sorted => 1,
        Order::Mixed => SORTED_RUNS,
    };
    let mut stacks: Vec<Vec<usize>> = vec![vec![0]; others];
    let (mut written, mut samples) = (0, 0);
    let mut line = String::new();
    while written < bytes {
        let stack = &mut stacks[rng.below(others as u64) as usize];
        let left = match rng.percent(95) {
            true => rng.below(8) as usize,
            false => rng.below(stack.len() as u64) as usize,
        };
        stack.truncate(stack.len().saturating_sub(left).max(1));
        let depth = (stack.len() + 1 + rng.below(8) as usize).clamp(SHALLOWEST, DEEPEST);
        while stack.len() < depth {
            let caller = stack.last().copied().unwrap_or(0);
            stack.push((caller * 7 + 1 + rng.below(CALLEES) as usize) % FUNCTIONS);
        }
        line.clear();
        for function in &*stack {
            line.push_str(&names[*function]);
            line.push(';');
        }
        line.pop();
        let count = 1 + rng.below(1 + rng.clone().below(200));
        line.push_str(&format!(" {count}\n"));
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
        samples += count;
    }
    out.flush()?;
    Ok(samples)
}

fn name(number: usize, rng: &mut Rng) -> String {
    let noun = rng.pick(&["tensor", "batch", "frame", "index", "buffer", "session", "graph"]);
    let verb = rng.pick(&["apply", "load", "update", "resolve", "dispatch", "copy", "step"]);
    match number % 4 {
        0 => format!("{verb}_{noun}_{number} (engine/{noun}/{verb}.py:{})", 10 + rng.below(900)),
        1 => format!("engine::{noun}::Worker<float, {number}>::{verb}(engine::Span<float const>)"),
        2 => format!("{noun}_{verb}_{number}"),
        _ => format!("_ZN6engine{}{noun}{}{verb}{number}Ev", noun.len(), verb.len()),
    }
}
