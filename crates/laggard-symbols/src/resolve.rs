//! Names for the native frames of a profile.

use crate::{Elf, Files, Lines, Location, demangle};
use laggard_core::model::NONE;
use laggard_core::model::calls::Calls;
use laggard_core::model::profile::{Frame, FrameKind, Interner, Node, Profile};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What naming the frames of a profile came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Addresses that got a name.
    pub named: usize,
    /// Addresses in files that have no name for them.
    pub nameless: usize,
    /// Addresses in no file that could be read.
    pub unread: usize,
    /// Modules whose file could not be read or has changed: their number in the profile, the
    /// addresses there, and why.
    pub missing: Vec<(u32, usize, String)>,
}

/// Names every native frame that has no function yet, and puts the functions that were inlined
/// there between it and its callees. Where nothing is known the function stays empty.
///
/// Numbers of frames and stacks change; those in the samples are put right.
pub fn resolve(profile: &mut Profile, files: &dyn Files) -> Resolution {
    let mut resolution = Resolution::default();
    let names = look_up(profile, files, &mut resolution);
    // A million stacks are not numbered anew for nothing.
    if !names.is_empty() {
        rebuild(profile, &names, std::iter::empty());
    }
    resolution
}

/// The same of traced calls, whose rows point to frames too. A caller is the function that the
/// machine code belongs to, with the line there; what was inlined into it is left out.
pub fn resolve_calls(calls: &mut Calls, files: &dyn Files) -> Resolution {
    let mut resolution = Resolution::default();
    let names = look_up(&mut calls.profile, files, &mut resolution);
    let callers = calls.rows.iter_mut().map(|row| &mut row.caller);
    rebuild(&mut calls.profile, &names, callers);
    resolution
}

/// Functions at a place, outermost first.
type Names = FxHashMap<(u32, u64), Vec<Frame>>;

/// Addresses of one file that a thread names in one go. Another thread has to read the same tables
/// of the file again, so that small pieces would cost more than they save.
const PIECE: usize = 4096;

/// Some addresses of a file.
struct Piece<'a> {
    elf: &'a Elf,
    module: u32,
    places: &'a [(u32, u64)],
}

/// What is known of an address: the symbol, and the locations, innermost first.
type Named = (Option<String>, Vec<Location>);

fn look_up(profile: &mut Profile, files: &dyn Files, resolution: &mut Resolution) -> Names {
    let mut wanted: Vec<(u32, u64)> =
        profile.frames.iter().filter(|f| is_nameless(f)).map(|f| (f.module, f.address)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut found = vec![];
    for places in wanted.chunk_by(|a, b| a.0 == b.0) {
        let number = places[0].0;
        let Some(module) = profile.modules.get(number as usize) else {
            resolution.unread += places.len();
            continue;
        };
        let path = Path::new(profile.texts.get(module.path));
        let id = Some(profile.texts.get(module.id)).filter(|id| !id.is_empty());
        match files.find(path, id) {
            Ok(elf) => found.push((elf, places)),
            Err(why) => {
                resolution.unread += places.len();
                resolution.missing.push((number, places.len(), why.to_string()));
            }
        }
    }
    let mut pieces: Vec<Piece<'_>> = found
        .iter()
        .flat_map(|(elf, places)| {
            places.chunks(PIECE).map(|places| Piece { elf, module: places[0].0, places })
        })
        .collect();
    // The largest first, so that no thread begins it when the others are done.
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.places.len()));
    let mut names = Names::default();
    for (piece, named) in pieces.iter().zip(name_all(&pieces)) {
        for (&(module, address), named) in piece.places.iter().zip(named) {
            let frames = frames(profile, named, module, address);
            match frames.first().is_some_and(|frame| frame.function != 0) {
                true => resolution.named += 1,
                false => resolution.nameless += 1,
            }
            names.insert((piece.module, address), frames);
        }
    }
    names
}

/// Names pieces in parallel: a thread takes the next one when it is done with its last.
fn name_all(pieces: &[Piece<'_>]) -> Vec<Vec<Named>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pieces.len());
    let next = AtomicUsize::new(0);
    let done: Vec<OnceLock<Vec<Named>>> = pieces.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while let Some((piece, done)) = {
            let at = next.fetch_add(1, Relaxed);
            pieces.get(at).zip(done.get(at))
        } {
            let lines = piece.elf.lines();
            let named =
                piece.places.iter().map(|&(_, address)| name(piece, lines.as_ref(), address));
            let _ = done.set(named.collect());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    done.into_iter().map(|done| done.into_inner().unwrap_or_default()).collect()
}

fn name(piece: &Piece<'_>, lines: Option<&Lines<'_>>, address: u64) -> Named {
    let symbol = piece.elf.symbol(address);
    let locations = lines.map(|lines| lines.locations(address)).unwrap_or_default();
    (symbol.map(|symbol| demangle(&symbol.name).into_owned()), locations)
}

fn is_nameless(frame: &Frame) -> bool {
    frame.kind == FrameKind::Native && frame.function == 0 && frame.module != NONE
}

/// The frames of an address, outermost first.
fn frames(
    profile: &mut Profile,
    (symbol, locations): Named,
    module: u32,
    address: u64,
) -> Vec<Frame> {
    let unknown = Frame { kind: FrameKind::Native, module, address, function: 0, file: 0, line: 0 };
    let texts = &mut profile.texts;
    let mut frames: Vec<Frame> = locations
        .iter()
        .rev()
        .map(|location| Frame {
            kind: FrameKind::Inlined,
            function: texts.add(&location.function),
            file: texts.add(&location.file),
            line: location.line,
            ..unknown
        })
        .collect();
    if frames.is_empty() {
        frames.push(unknown);
    }
    if let Some(outermost) = frames.first_mut() {
        outermost.kind = FrameKind::Native;
        // Clones of a function (`.cold`, `.constprop.0`) are told apart by the symbol only.
        if let Some(symbol) = symbol {
            outermost.function = texts.add(&symbol);
        }
    }
    frames
}

/// Replaces each named frame by its functions, and numbers frames and stacks anew. `others` are
/// numbers of frames from outside the stacks.
fn rebuild<'a>(profile: &mut Profile, names: &Names, others: impl Iterator<Item = &'a mut u32>) {
    let named = |frame: &Frame| {
        is_nameless(frame).then(|| names.get(&(frame.module, frame.address))).flatten()
    };
    let old_frames = std::mem::take(&mut profile.frames);
    let old_stacks = std::mem::take(&mut profile.stacks);
    let mut interner = Interner::default();
    let mut new_stacks: Vec<u32> = Vec::with_capacity(old_stacks.len());
    for Node { parent, frame } in old_stacks {
        let mut at = new_stacks.get(parent as usize).copied().unwrap_or(NONE);
        if let Some(frame) = old_frames.get(frame as usize) {
            for &frame in named(frame).map_or(std::slice::from_ref(frame), Vec::as_slice) {
                let number = interner.frame(profile, frame);
                at = interner.node(profile, at, number);
            }
        }
        new_stacks.push(at);
    }
    for sample in &mut profile.samples {
        sample.stack = new_stacks.get(sample.stack as usize).copied().unwrap_or(NONE);
    }
    for number in others {
        *number = match old_frames.get(*number as usize) {
            Some(old) => {
                let outermost = named(old).and_then(|frames| frames.first()).unwrap_or(old);
                interner.frame(profile, *outermost)
            }
            None => NONE,
        };
    }
}
