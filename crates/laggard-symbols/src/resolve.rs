//! Symbolizes the native frames of a profile.

use crate::{Elf, Files, Lines, Location, demangle};
use laggard_core::model::NONE;
use laggard_core::model::calls::Calls;
use laggard_core::model::profile::{Frame, FrameKind, Interner, Node, Profile};
use laggard_core::profile::frame_label;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The result of symbolization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Number of symbolized addresses.
    pub named: usize,
    /// Number of addresses without a symbol in their file.
    pub nameless: usize,
    /// Number of addresses outside any readable file.
    pub unread: usize,
    /// Modules whose file is unreadable or has changed: their number in the profile, the number of
    /// addresses, and the reason.
    pub missing: Vec<(u32, usize, String)>,
}

/// Symbolizes all native frames without a function, and inserts inlined functions between a frame
/// and its callees. The function stays empty if it is unknown. An unnamed function of an extension
/// module is labelled with its start: `[lib.cpython-311-x86_64-linux-gnu.so+0x1a40]`.
///
/// Frames and stacks are renumbered, and samples are updated.
pub fn resolve(profile: &mut Profile, files: &dyn Files) -> Resolution {
    let mut resolution = Resolution::default();
    let names = look_up(profile, files, &mut resolution);
    // Skip renumbering, which is expensive for a million stacks, if nothing changes.
    if !names.is_empty() {
        rebuild(profile, &names, std::iter::empty());
    }
    resolution
}

/// Same as [`resolve`] for call traces, whose rows also refer to frames. A caller is the function
/// that contains the code, with its line there. Functions inlined into it are omitted.
pub fn resolve_calls(calls: &mut Calls, files: &dyn Files) -> Resolution {
    let mut resolution = Resolution::default();
    let names = look_up(&mut calls.profile, files, &mut resolution);
    let callers = calls.rows.iter_mut().map(|row| &mut row.caller);
    rebuild(&mut calls.profile, &names, callers);
    resolution
}

/// Functions at an address, outermost first.
type Names = FxHashMap<(u32, u64), Vec<Frame>>;

/// Addresses of one file that a thread symbolizes at once. Every thread has to read the same tables
/// of the file, so smaller pieces would cost more than they save.
const PIECE: usize = 4096;

/// Some addresses of a file.
struct Piece<'a> {
    elf: &'a Elf,
    module: u32,
    places: &'a [(u32, u64)],
}

/// Names of an address.
struct Named {
    symbol: Option<String>,
    /// Start of the function, if it has no name.
    unnamed: Option<u64>,
    /// Innermost first.
    locations: Vec<Location>,
}

impl Named {
    fn has_name(&self) -> bool {
        let outermost = self.locations.last();
        self.symbol.is_some() || outermost.is_some_and(|location| !location.function.is_empty())
    }
}

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
    // Largest first, so that no thread starts a large piece when the others are done.
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.places.len()));
    let mut names = Names::default();
    for (piece, named) in pieces.iter().zip(name_all(&pieces)) {
        for (&(module, address), named) in piece.places.iter().zip(named) {
            match named.has_name() {
                true => resolution.named += 1,
                false => resolution.nameless += 1,
            }
            names.insert((piece.module, address), frames(profile, named, module, address));
        }
    }
    names
}

/// Symbolizes pieces in parallel. Each thread takes the next piece when it is idle.
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
    let symbol = piece.elf.symbol(address).map(|symbol| demangle(&symbol.name).into_owned());
    let locations = lines.map(|lines| lines.locations(address)).unwrap_or_default();
    let mut named = Named { symbol, unnamed: None, locations };
    if !named.has_name() {
        named.unnamed = piece.elf.unnamed_function(address);
    }
    named
}

fn is_nameless(frame: &Frame) -> bool {
    frame.kind == FrameKind::Native && frame.function == 0 && frame.module != NONE
}

/// The frames of an address, outermost first.
fn frames(profile: &mut Profile, named: Named, module: u32, address: u64) -> Vec<Frame> {
    let unknown = Frame { kind: FrameKind::Native, module, address, function: 0, file: 0, line: 0 };
    // All addresses of an unnamed function have the label of its start.
    let label = |start| frame_label(profile, &Frame { address: start, ..unknown });
    let symbol = named.symbol.or_else(|| named.unnamed.map(label));
    let texts = &mut profile.texts;
    let mut frames: Vec<Frame> = named
        .locations
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
        // Only the symbol distinguishes clones of a function (`.cold`, `.constprop.0`).
        if let Some(symbol) = symbol {
            outermost.function = texts.add(&symbol);
        }
    }
    frames
}

/// Replaces each symbolized frame by its functions, and renumbers frames and stacks. `others` are
/// frame numbers outside the stacks.
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
