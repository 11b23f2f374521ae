//! Extends stacks of branch records with the callers of the previous sample.
//!
//! The CPU keeps the last 16 or 32 calls. The outer calls of a deeper stack are missing, but an
//! earlier sample of the thread may have recorded them. If the oldest calls of a full stack appear
//! consecutively in the previous stack, the callers beyond them are the same.

use super::chain::Link;
use rustc_hash::FxHashMap;

/// Number of calls that must match.
const AGREEING: usize = 4;
/// Minimum number of calls that a CPU keeps.
const SHALLOWEST: usize = 8;
/// Maximum number of frames kept per stack.
const DEEPEST: usize = 2000;

/// The last stack of each thread.
#[derive(Default)]
pub(super) struct Stitches {
    last: FxHashMap<u32, Last>,
    /// Maximum number of calls in any stack. Stacks of this size are full.
    most: usize,
    /// Number of extended stacks.
    pub(super) count: u64,
}

#[derive(Default)]
struct Last {
    calls: Vec<Link>,
    is_whole: bool,
}

impl Stitches {
    /// Extends a stack, innermost frame first. Returns whether it is complete.
    pub(super) fn add(&mut self, thread: u32, links: &mut Vec<Link>, is_whole: bool) -> bool {
        let calls = links.iter().filter(|link| matches!(link, Link::Native { .. })).count();
        self.most = self.most.max(calls);
        let is_full = calls == self.most && calls >= SHALLOWEST;
        let last = self.last.entry(thread).or_default();
        let mut is_whole = is_whole;
        if !is_whole
            && is_full
            && let Some(beyond) = beyond(links, &last.calls)
        {
            links.extend_from_slice(beyond);
            links.truncate(DEEPEST);
            is_whole = last.is_whole;
            self.count += 1;
        }
        *last = Last { calls: links.clone(), is_whole };
        is_whole
    }
}

/// The frames of the previous stack beyond the oldest calls of this one. `None` if they do not
/// match.
fn beyond<'a>(links: &[Link], before: &'a [Link]) -> Option<&'a [Link]> {
    let oldest = &links[links.len().checked_sub(AGREEING)?..];
    let mut places = before.windows(AGREEING).enumerate().filter(|(_, calls)| *calls == oldest);
    let (at, _) = places.next()?;
    // With repeated calls, as in recursion, the match is ambiguous.
    if places.next().is_some() {
        return None;
    }
    Some(&before[at + AGREEING..]).filter(|beyond| !beyond.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(addresses: impl Iterator<Item = u64>) -> Vec<Link> {
        addresses.map(|pc| Link::Native { module: None, svma: pc, pc }).collect()
    }

    #[test]
    fn extends_full_stack_with_previous_callers() {
        let mut stitches = Stitches::default();
        let mut shallow = stack(10..18);
        assert!(stitches.add(1, &mut shallow, true));
        // Two calls deeper: the two outermost calls are missing.
        let mut deep = stack(8..16);
        assert!(stitches.add(1, &mut deep, false));
        assert_eq!(deep, stack(8..18));
        let mut deeper = stack(6..14);
        assert!(stitches.add(1, &mut deeper, false));
        assert_eq!(deeper, stack(6..18));
        assert_eq!(stitches.count, 2);
    }

    #[test]
    fn keeps_other_stacks() {
        let mut stitches = Stitches::default();
        stitches.add(1, &mut stack(10..18), true);
        let unchanged = |stitches: &mut Stitches, thread: u32, links: Vec<Link>| {
            let mut now = links.clone();
            assert!(!stitches.add(thread, &mut now, false));
            assert_eq!(now, links);
        };
        unchanged(&mut stitches, 2, stack(8..16));
        unchanged(&mut stitches, 1, stack(9..14));
        stitches.add(1, &mut stack(10..18), true);
        unchanged(&mut stitches, 1, stack(100..108));
        assert_eq!(stitches.count, 0);
    }

    #[test]
    fn does_not_extend_recursion() {
        let mut stitches = Stitches::default();
        let same = || stack(std::iter::repeat_n(7, 32));
        for _ in 0..10 {
            let mut links = same();
            stitches.add(1, &mut links, false);
            assert_eq!(links, same());
        }
    }
}
