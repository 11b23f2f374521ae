//! Converts a sample to frames, innermost first.

use super::attr::Attr;
use super::bytes::words;
use super::sample::Sample;
use laggard_symbols::{
    AddressSpace, Ending, ModuleIndex, Modules, NativeFrame, StackCopy, Unwinder,
};

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// User code: module, address in the module, and address in the process.
    Native { module: Option<ModuleIndex>, svma: u64, pc: u64 },
    /// Kernel code.
    Kernel(u64),
}

/// How a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At the outermost frame; for copied stacks, with its stack address.
    Complete(Option<u64>),
    /// Truncated: the last module and the reason.
    Cut(Option<ModuleIndex>, &'static str),
    /// Truncated because the stack copy is too short.
    Short(Option<ModuleIndex>),
}

/// Markers in a chain: kernel code, user code or an unknown context follows.
const MARKS: u64 = -4095i64 as u64;
const IN_KERNEL: u64 = -128i64 as u64;
const IN_USER: u64 = -512i64 as u64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Kernel,
    User,
    Other,
}

impl Context {
    fn of_misc(misc: u16) -> Context {
        match misc & 7 {
            1 => Context::Kernel,
            2 => Context::User,
            _ => Context::Other,
        }
    }
}

/// Scratch buffers, reused between samples. One per thread.
#[derive(Default)]
pub(super) struct Chains {
    user: Vec<u64>,
    native: Vec<NativeFrame>,
    unwinder: Unwinder,
}

impl Chains {
    /// Writes the frames of a sample to `links`, which is cleared first.
    pub(super) fn read(
        &mut self,
        sample: &Sample<'_>,
        attr: &Attr,
        misc: u16,
        (space, modules): (&AddressSpace, &Modules),
        links: &mut Vec<Link>,
    ) -> End {
        links.clear();
        self.user.clear();
        let mut context = Context::of_misc(misc);
        let mut is_first = true;
        let alone = if sample.chain.is_empty() { sample.ip } else { None };
        for word in words(sample.chain).chain(alone) {
            if word >= MARKS {
                context = match word {
                    IN_KERNEL => Context::Kernel,
                    IN_USER => Context::User,
                    _ => Context::Other,
                };
                is_first = true;
                continue;
            }
            match context {
                // A return address can already belong to the next function.
                Context::Kernel => {
                    links.push(Link::Kernel(word.wrapping_sub(u64::from(!is_first))))
                }
                Context::User => self.user.push(word),
                Context::Other => {}
            }
            is_first = false;
        }
        if attr.copies_stack() {
            if let Some(registers) = &sample.registers {
                let stack = StackCopy { start: registers.sp(), bytes: sample.stack };
                let ending =
                    self.unwinder.unwind(registers, stack, space, modules, &mut self.native);
                links.extend(self.native.iter().map(|frame| Link::Native {
                    module: frame.module,
                    svma: frame.svma,
                    pc: frame.pc,
                }));
                return self.end(ending);
            }
            // A kernel thread has no user frames.
            return match self.user.is_empty() {
                true => End::Complete(None),
                false => self.follow(space, modules, links, "not a 64-bit program"),
            };
        }
        if attr.is_call_stack() {
            let has_user = !self.user.is_empty() || Context::of_misc(misc) == Context::User;
            if has_user || words(sample.chain).any(|word| word == IN_USER) {
                let mut branches = sample.branch_chain().peekable();
                if branches.peek().is_some() {
                    self.user.clear();
                    self.user.extend(branches);
                }
            }
            return self.follow(space, modules, links, "end of the branch records");
        }
        let why = match sample.chain.is_empty() {
            true => "recorded without call graph",
            false => "end of the frame pointer chain",
        };
        self.follow(space, modules, links, why)
    }

    fn end(&self, ending: Ending) -> End {
        match ending {
            Ending::Complete => {
                let last = self.native.last();
                End::Complete(last.map(|f| if f.cfa == u64::MAX { f.sp } else { f.cfa }))
            }
            Ending::Truncated(module) => End::Short(module),
            other => End::Cut(other.module(), other.reason()),
        }
    }

    /// Adds addresses up to the first one outside known code.
    fn follow(
        &self,
        space: &AddressSpace,
        modules: &Modules,
        links: &mut Vec<Link>,
        why: &'static str,
    ) -> End {
        let mut last = None;
        let start = links.len();
        for (number, &pc) in self.user.iter().enumerate() {
            let at = pc.wrapping_sub(u64::from(number > 0));
            match space.find(at) {
                Some(place) => {
                    last = place.module;
                    links.push(Link::Native { module: place.module, svma: place.svma, pc });
                }
                None if number == 0 => links.push(Link::Native { module: None, svma: pc, pc }),
                None => return End::Cut(last, "address outside known code"),
            }
        }
        // Callers of `main` are often missing in libraries without frame pointers. They are not
        // needed.
        let ends = links[start..].iter().rev().take(2);
        let is_whole = self.user.is_empty() || ends.into_iter().any(|link| is_start(link, modules));
        if is_whole { End::Complete(None) } else { End::Cut(last, why) }
    }
}

/// Whether a frame is the start of a program or thread.
fn is_start(link: &Link, modules: &Modules) -> bool {
    const STARTS: [&str; 10] = [
        "_start",
        "main",
        "__libc_start_main",
        "__libc_start_call_main",
        "start_thread",
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "_dl_start_user",
    ];
    let &Link::Native { module, svma, .. } = link else { return false };
    let elf = module.and_then(|module| modules.get(module)?.elf.as_ref());
    let symbol = elf.and_then(|elf| elf.symbol(svma));
    symbol.is_some_and(|symbol| STARTS.contains(&&*symbol.name))
}
