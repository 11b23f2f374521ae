//! Inserts Python frames at their places among the native frames.
//!
//! Since 3.11, the entry record of an evaluation loop lies inside the C frame of that loop, so its
//! address determines the native frame of its Python frames. In earlier versions every Python frame
//! has its own loop, and they are matched in order.

use laggard_agent::wire::PythonFrame;

/// The properties of a native frame that merging needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// Its stack pointer.
    pub(crate) sp: u64,
    /// Its canonical frame address; `u64::MAX` if unknown.
    pub(crate) cfa: u64,
    /// Whether it is an evaluation loop.
    pub(crate) is_loop: bool,
}

/// One frame of a merged stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The native frame with this index.
    Native(usize),
    /// A Python frame: address of its code object, and byte offset of its instruction.
    Python(u64, i32),
}

/// How well the two chains match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Every evaluation loop has frames.
    Whole,
    /// All loops except the innermost one, which had just been entered, have frames.
    Entering,
    /// Some loops have no frames, or some frames have no loop.
    Mismatch,
}

/// The Python frames of one evaluation loop, innermost first.
struct Segment<'a> {
    frames: &'a [PythonFrame],
    /// An address inside the loop's C frame; 0 if unknown.
    position: u64,
}

/// Merges the chains. Both chains and the result start at the innermost frame. `is_complete` is set
/// if the native chain reaches the first frame of the thread.
pub(crate) fn merge(
    native: &[Native],
    chain: &[PythonFrame],
    minor: u32,
    is_complete: bool,
) -> (Vec<Piece>, Fit) {
    let segments = segments(chain);
    let loops: Vec<usize> = (0..native.len()).filter(|&at| native[at].is_loop).collect();
    let mut owner: Vec<Option<usize>> = vec![None; native.len()];
    let mut homeless = vec![];
    if minor >= 11 {
        let mut outward = 0;
        for (number, segment) in segments.iter().enumerate() {
            let holds = |at: &usize| {
                native[*at].sp <= segment.position && segment.position < native[*at].cfa
            };
            let found = match segment.position {
                // The chain was truncated inside this segment: it belongs to the next outer loop.
                0 => loops.iter().copied().find(|&at| at >= outward && owner[at].is_none()),
                _ => (outward..native.len()).find(|at| native[*at].cfa != u64::MAX && holds(at)),
            };
            match found {
                Some(at) => {
                    owner[at] = Some(number);
                    outward = at + 1;
                }
                None => homeless.push(number),
            }
        }
    } else {
        let entering = usize::from(loops.len() == segments.len() + 1);
        for (number, _) in segments.iter().enumerate() {
            match loops.get(number + entering) {
                Some(&at) => owner[at] = Some(number),
                None => homeless.push(number),
            }
        }
    }
    let mut pieces = vec![];
    for (at, owner) in owner.iter().enumerate() {
        match *owner {
            None => pieces.push(Piece::Native(at)),
            Some(number) => {
                // Keep the loop as a leaf frame, because the sample was taken in its own code.
                if at == 0 {
                    pieces.push(Piece::Native(0));
                }
                pieces.extend(python(segments[number].frames));
            }
        }
    }
    // Callers beyond the end of the native chain.
    for number in &homeless {
        pieces.extend(python(segments[*number].frames));
    }
    let without: Vec<usize> = loops.iter().copied().filter(|&at| owner[at].is_none()).collect();
    let fit = match (&without[..], homeless.is_empty() || !is_complete) {
        (_, false) => Fit::Mismatch,
        ([], true) => Fit::Whole,
        (&[only], true) if Some(&only) == loops.first() => Fit::Entering,
        (_, true) => Fit::Mismatch,
    };
    (pieces, fit)
}

fn python(frames: &[PythonFrame]) -> impl Iterator<Item = Piece> {
    frames.iter().map(|frame| Piece::Python(frame.code, frame.lasti))
}

fn segments(chain: &[PythonFrame]) -> Vec<Segment<'_>> {
    let mut segments = vec![];
    let mut start = 0;
    for (at, frame) in chain.iter().enumerate() {
        if frame.border != 0 {
            segments.push(Segment { frames: &chain[start..at], position: frame.position });
            start = at + 1;
        }
    }
    if start < chain.len() {
        segments.push(Segment { frames: &chain[start..], position: 0 });
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use Piece::{Native as N, Python as P};

    fn frame(code: u64) -> PythonFrame {
        PythonFrame { code, border: 0, lasti: 0, position: 0 }
    }

    fn border(position: u64) -> PythonFrame {
        PythonFrame { code: 0, border: 1, lasti: 0, position }
    }

    /// Frames of 100 bytes each, from address 1000 upwards; `L` is an evaluation loop.
    fn native(shape: &str) -> Vec<Native> {
        let frame = |(at, c): (usize, char)| {
            let sp = 1000 + 100 * at as u64;
            Native { sp, cfa: sp + 100, is_loop: c == 'L' }
        };
        shape.chars().enumerate().map(frame).collect()
    }

    #[test]
    fn frames_belong_to_the_loop_that_contains_their_record() {
        // kernel, loop of f called by g, C function, loop of module, main
        let chain = [frame(1), frame(2), border(1150), frame(3), border(1350)];
        let (pieces, fit) = merge(&native("xLxLx"), &chain, 12, true);
        assert_eq!(pieces, [N(0), P(1, 0), P(2, 0), N(2), P(3, 0), N(4)]);
        assert_eq!(fit, Fit::Whole);
    }

    #[test]
    fn a_loop_that_was_just_entered_has_no_frames() {
        let chain = [frame(3), border(1250)];
        let (pieces, fit) = merge(&native("LxLx"), &chain, 13, true);
        assert_eq!(pieces, [N(0), N(1), P(3, 0), N(3)]);
        assert_eq!(fit, Fit::Entering);
        let chain = [frame(3), border(0)];
        assert_eq!(
            merge(&native("LxLx"), &chain, 9, true).0,
            pieces,
            "before 3.11, matched in order"
        );
    }

    #[test]
    fn an_innermost_loop_is_kept_as_a_leaf() {
        let chain = [frame(1), border(1050)];
        assert_eq!(merge(&native("Lx"), &chain, 11, true).0, [N(0), P(1, 0), N(1)]);
    }

    #[test]
    fn callers_beyond_a_truncated_stack_are_kept() {
        let chain = [frame(1), border(1150), frame(2), border(9999)];
        let (pieces, fit) = merge(&native("xL"), &chain, 12, false);
        assert_eq!((pieces.as_slice(), fit), (&[N(0), P(1, 0), P(2, 0)][..], Fit::Whole));
        let (_, fit) = merge(&native("xL"), &chain, 12, true);
        assert_eq!(fit, Fit::Mismatch, "a complete stack contains all loops");
        let chain = [frame(1), border(0), frame(2), border(0)];
        assert_eq!(merge(&native("xL"), &chain, 10, false).0, [N(0), P(1, 0), P(2, 0)]);
    }

    #[test]
    fn a_chain_truncated_inside_a_loop_belongs_to_the_next_loop() {
        let chain = [frame(1), border(1050), frame(2)];
        assert_eq!(
            merge(&native("LxLx"), &chain, 13, true).0,
            [N(0), P(1, 0), N(1), P(2, 0), N(3)]
        );
    }

    #[test]
    fn a_middle_loop_without_frames_is_a_mismatch() {
        let chain = [frame(1), border(1050)];
        assert_eq!(merge(&native("LxLx"), &chain, 13, true).1, Fit::Mismatch);
    }
}
