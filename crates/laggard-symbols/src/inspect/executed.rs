//! Executed instructions, weighted by the samples of a profile.
//!
//! The address of a sample is that of the next instruction to run, usually the one after a slow
//! instruction. In a loop of five instructions, all samples can be at one that takes no time. The
//! samples of a basic block are therefore distributed evenly among its instructions, which run
//! equally often.

use super::class::Classifier;
use super::functions::decode;
use crate::Elf;
use iced_x86::{FlowControl, Instruction};
use laggard_core::model::code::{CodeFile, Executed, Function, Hot, Mix};
use laggard_core::model::profile::{FrameKind, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Samples in one file by address of the innermost frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Samples of the whole profile for the selected event.
    pub all: u64,
    /// Samples at each address.
    pub at: BTreeMap<u64, u64>,
}

impl Samples {
    /// Number of samples in an address range.
    pub fn within(&self, range: Range<u64>) -> u64 {
        if range.is_empty() { 0 } else { self.at.range(range).map(|(_, count)| count).sum() }
    }
}

/// The samples of a profile in a file, matched by its id, or by its name if the profile has no id.
/// Of several events one is used, preferably a time event.
pub fn samples_in(profile: &Profile, file: &CodeFile) -> Samples {
    let own_name = Path::new(&file.path).file_name();
    let is_here: Vec<bool> = profile
        .modules
        .iter()
        .map(|module| match profile.texts.get(module.id) {
            "" => Path::new(profile.texts.get(module.path)).file_name() == own_name,
            id => id == file.id,
        })
        .collect();
    let event = profile.events.iter().position(|event| event.is_time()).unwrap_or(0) as u32;
    let mut samples = Samples::default();
    let mut stacks: FxHashMap<u32, u64> = FxHashMap::default();
    for sample in profile.samples.iter().filter(|sample| sample.event == event) {
        samples.all += sample.count;
        *stacks.entry(sample.stack).or_default() += sample.count;
    }
    for (stack, count) in stacks {
        let frame = profile.frames_of(stack).next().and_then(|at| profile.frames.get(at as usize));
        let Some(frame) = frame else { continue };
        let is_code = matches!(frame.kind, FrameKind::Native | FrameKind::Inlined);
        if is_code && is_here.get(frame.module as usize) == Some(&true) {
            *samples.at.entry(frame.address).or_default() += count;
        }
    }
    samples
}

/// Sums the samples of each function.
pub fn executed(elf: &Elf, file: &CodeFile, samples: &Samples) -> Executed {
    let mut classifier = Classifier::new();
    let mut executed =
        Executed { samples: samples.all, here: samples.at.values().sum(), ..Executed::default() };
    let mut found = 0;
    let mut counted_to = 0;
    for (number, function) in file.functions.iter().enumerate() {
        let end = function.address.saturating_add(function.size);
        // Where functions overlap, a sample belongs to the first.
        let range = function.address.max(counted_to)..end;
        let here = samples.within(range.clone());
        if here == 0 {
            continue;
        }
        counted_to = end;
        let mut on_instructions = 0;
        let mut mix = Mix::default();
        if elf.is_x86_64() {
            for block in blocks(elf, function, &mut classifier) {
                let inside = block.addresses.iter().filter(|address| range.contains(address));
                let here: u64 = inside.filter_map(|address| samples.at.get(address)).sum();
                let scaled = here.saturating_mul(Hot::SCALE);
                mix.add_part(&block.mix, scaled, block.mix.instructions());
                on_instructions += here;
            }
        }
        found += on_instructions;
        executed.hot.push(Hot { function: number as u32, samples: here, mix });
    }
    executed.astray = executed.here.saturating_sub(found);
    executed.hot.sort_by_key(|hot| std::cmp::Reverse(hot.samples));
    executed
}

/// A basic block: instructions up to a jump or a jump target.
#[derive(Default)]
struct Block {
    addresses: Vec<u64>,
    mix: Mix,
}

fn blocks(elf: &Elf, function: &Function, classifier: &mut Classifier) -> Vec<Block> {
    let Some((decoder, _)) = decode(elf, function.address, function.size) else { return vec![] };
    let mut decoder = decoder;
    let is_jump = |instruction: &Instruction| {
        !matches!(
            instruction.flow_control(),
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall
        )
    };
    let jumps = decoder.iter().filter(is_jump);
    let targets: FxHashSet<u64> = jumps.filter_map(|jump| super::listing::target(&jump)).collect();
    let Some((decoder, _)) = decode(elf, function.address, function.size) else { return vec![] };
    let mut blocks = vec![Block::default()];
    for instruction in decoder {
        if targets.contains(&instruction.ip()) {
            blocks.push(Block::default());
        }
        let (class, marks) = classifier.classify(&instruction);
        if let Some(block) = blocks.last_mut() {
            block.addresses.push(instruction.ip());
            block.mix.count(class, marks, 1);
        }
        if is_jump(&instruction) {
            blocks.push(Block::default());
        }
    }
    blocks
}
