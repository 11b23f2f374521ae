//! Collapsed stacks of any size, as a long recording of Python with C++ below it gives them.

use crate::Rng;
use std::io::{self, BufWriter, Write};

/// In which order stacks stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stacks with the same callers stand together, as the scripts that sort them leave it.
    Sorted,
    /// As they came out of a hash table, such as that of py-spy.
    Mixed,
}

/// Functions that there are.
const FUNCTIONS: usize = 3000;
/// Different functions that one calls.
const CALLEES: u64 = 7;
const DEEPEST: usize = 60;
const SHALLOWEST: usize = 10;
/// Stacks that the lines of a mixed file go on from.
const SORTED_RUNS: usize = 4096;

/// Writes collapsed stacks of about so many bytes: 10 to 60 frames deep, of 3,000 functions, about
/// a thousand bytes a line and hardly two lines alike. Returns how many samples they stand for.
pub fn collapsed(bytes: u64, seed: u64, order: Order, out: &mut dyn Write) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let mut rng = Rng::new(seed);
    let names: Vec<String> = (0..FUNCTIONS).map(|number| name(number, &mut rng)).collect();
    // Stacks of a program differ from some other one in their innermost frames only; sorted, that
    // is the one before.
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
