//! Names for the native frames of a profile.

use crate::{Elf, Files, Lines, demangle};
use laggard_core::model::NONE;
use laggard_core::model::calls::Calls;
use laggard_core::model::profile::{Frame, FrameKind, Interner, Node, Profile};
use rustc_hash::FxHashMap;
use std::path::Path;

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
    rebuild(profile, &names, std::iter::empty());
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

fn look_up(profile: &mut Profile, files: &dyn Files, resolution: &mut Resolution) -> Names {
    let mut wanted: Vec<(u32, u64)> =
        profile.frames.iter().filter(|f| is_nameless(f)).map(|f| (f.module, f.address)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut names = Names::default();
    for places in wanted.chunk_by(|a, b| a.0 == b.0) {
        let number = places[0].0;
        let Some(module) = profile.modules.get(number as usize) else {
            resolution.unread += places.len();
            continue;
        };
        let path = Path::new(profile.texts.get(module.path));
        let id = Some(profile.texts.get(module.id)).filter(|id| !id.is_empty());
        let elf = match files.find(path, id) {
            Ok(elf) => elf,
            Err(why) => {
                resolution.unread += places.len();
                resolution.missing.push((number, places.len(), why.to_string()));
                continue;
            }
        };
        let lines = elf.lines();
        for &(_, address) in places {
            let frames = frames_at(profile, &elf, lines.as_ref(), number, address);
            match frames.first().is_some_and(|frame| frame.function != 0) {
                true => resolution.named += 1,
                false => resolution.nameless += 1,
            }
            names.insert((number, address), frames);
        }
    }
    names
}

fn is_nameless(frame: &Frame) -> bool {
    frame.kind == FrameKind::Native && frame.function == 0 && frame.module != NONE
}

fn frames_at(
    profile: &mut Profile,
    elf: &Elf,
    lines: Option<&Lines<'_>>,
    module: u32,
    address: u64,
) -> Vec<Frame> {
    let symbol = elf.symbol(address);
    // Clones of a function (`.cold`, `.constprop.0`) are told apart by the symbol only.
    let symbol = symbol.map(|symbol| demangle(&symbol.name).into_owned());
    let mut frames: Vec<Frame> = lines
        .map(|lines| lines.locations(address))
        .unwrap_or_default()
        .iter()
        .rev()
        .map(|location| Frame {
            kind: FrameKind::Inlined,
            module,
            address,
            function: profile.texts.add(&location.function),
            file: profile.texts.add(&location.file),
            line: location.line,
        })
        .collect();
    if frames.is_empty() {
        frames.push(Frame {
            kind: FrameKind::Native,
            module,
            address,
            function: 0,
            file: 0,
            line: 0,
        });
    }
    if let Some(outermost) = frames.first_mut() {
        outermost.kind = FrameKind::Native;
        if let Some(symbol) = symbol {
            outermost.function = profile.texts.add(&symbol);
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
