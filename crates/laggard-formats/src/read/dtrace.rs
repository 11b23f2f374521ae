//! Reads text output of `dtrace`: counts by stack (`@[ustack()] = count()`) and by name
//! (`@[probefunc] = count()`).
//!
//! You give a [`Source`], you get a [`Profile`] of the event `calls`: stacks with counts, or names
//! as stacks of one frame. A file with both has two events, `calls` and `calls by name`, because
//! the same calls can be in each. Other lines, such as messages of dtrace and distributions, are
//! counted in the warnings.
//!
//! Filtered output (`dtrace … | grep vDSP`) has frames without counts. If no stack in the file has
//! a count, these frames become the event `lines with a frame`. It shows which functions ran, but
//! not how often.

use crate::error::Error;
use crate::source::Source;
use laggard_core::model::NONE;
use laggard_core::model::profile::{
    Event, Frame, FrameKind, Interner, Module, Profile, Sample, Thread, Unit,
};

/// Maximum size of a file.
const LARGEST: u64 = 1 << 30;
/// Lines used for format detection.
const LINES_FOR_DETECTION: usize = 200;
/// Minimum column of the last digit of a count: dtrace aligns counts to the right.
const LEAST_COLUMN: usize = 40;
/// Maximum depth. Deeper stacks are truncated.
const DEEPEST: usize = 4096;

/// The kind of a line.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Blank,
    /// A frame: module and function.
    Frame(&'a str, &'a str),
    /// A number: the count of the preceding stack.
    Count(u64),
    /// A name and its count.
    Named(&'a str, u64),
    /// A message of dtrace.
    Message,
    Other(&'a str),
}

/// Whether a file with this head is dtrace output with stacks or counts by name.
pub fn is_dtrace(head: &[u8]) -> bool {
    let is_cut = head.len() >= super::HEAD_FOR_DETECTION;
    let Some(lines) = lines_of(head, is_cut) else { return false };
    let (mut frames, mut named, mut counts, mut other) = (0, 0, 0, 0);
    for line in lines.iter().take(LINES_FOR_DETECTION) {
        match line_of(line) {
            // Frames are indented, unlike lines of a shell script with a backtick.
            Line::Frame(..) if line.starts_with([' ', '\t']) => frames += 1,
            Line::Named(..) if line.starts_with("  ") && line.len() >= LEAST_COLUMN => named += 1,
            Line::Count(_) if line.starts_with([' ', '\t']) => counts += 1,
            Line::Blank | Line::Message => {}
            _ => other += 1,
        }
    }
    let known = frames + named;
    let is_stacks = frames > 0 && (counts > 0 || named > 0 || other == 0);
    (is_stacks || named > 0) && known + counts > 4 * other
}

/// Complete lines of a head. `None` if it is not text.
fn lines_of(head: &[u8], is_cut: bool) -> Option<Vec<String>> {
    if head.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(head);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if is_cut {
        lines.pop();
    }
    Some(lines)
}

/// Reads a file. `progress` receives the number of bytes read, once.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let (path, text) = source.whole(LARGEST)?;
    let Some(profile) = parse(&text) else {
        let head = &text[..text.len().min(super::HEAD_FOR_DETECTION)];
        let looks_like = super::looks_like(head, &[]);
        let what = format!("no dtrace counts found; it looks like {looks_like}");
        return Err(Error::NotARecording { path, what });
    };
    progress(text.len() as u64);
    Ok(profile)
}

/// Parses a file. `None` if it has no counts.
pub fn parse(bytes: &[u8]) -> Option<Profile> {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(&line_of(line), number);
    }
    reader.finish()
}

fn line_of(line: &str) -> Line<'_> {
    let text = line.trim();
    if text.is_empty() || text == "^C" {
        return Line::Blank;
    }
    if text.starts_with("dtrace: ") || (text.starts_with("CPU ") && text.contains("FUNCTION:NAME"))
    {
        return Line::Message;
    }
    if let Some(count) = count_of(text) {
        return Line::Count(count);
    }
    // At least two spaces, because a C++ name can end in a number.
    let named = text.rsplit_once([' ', '\t']).and_then(|(name, count)| {
        let is_apart = name.ends_with([' ', '\t']) || !name.contains(' ') && !name.contains('`');
        Some((name.trim_end(), count_of(count)?)).filter(|(name, _)| is_apart && !name.is_empty())
    });
    if let Some((name, count)) = named {
        return Line::Named(name, count);
    }
    match frame_of(text) {
        Some((module, function)) => Line::Frame(module, function),
        None => Line::Other(text),
    }
}

fn count_of(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Module and function of ``libfoo.dylib`bar+0x1a``, or of an address without a symbol.
fn frame_of(text: &str) -> Option<(&str, &str)> {
    let is_address = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if is_address(text) {
        return Some(("", text));
    }
    let (module, function) = text.split_once('`')?;
    let is_module = !module.is_empty() && !module.contains([' ', '\t', '"', '\'', '$', '(', '=']);
    let is_function = !function.is_empty() && !function.contains('`');
    let function = match function.rsplit_once("+0x") {
        Some((name, offset))
            if !name.is_empty() && offset.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            name
        }
        _ => function,
    };
    (is_module && is_function).then_some((module, function))
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    interner: Interner,
    /// Frames of the current stack, innermost first.
    frames: Vec<u32>,
    /// Lines before a stack: other keys of the aggregation, such as the program name.
    keys: Vec<String>,
    /// A name with a number: a count, unless a stack follows.
    named: Option<(String, u64)>,
    stacks: Vec<(u32, u64)>,
    names: Vec<(u32, u64)>,
    /// Frames of stacks without a count.
    uncounted: Vec<u32>,
    lost: u64,
    first_lost: u64,
}

impl Reader {
    fn line(&mut self, line: &Line, number: u64) {
        match *line {
            Line::Frame(module, function) => {
                if let Some((name, value)) = self.named.take() {
                    // A line directly before a stack is a key, as in `@[execname, pid, ustack()]`.
                    self.keys.push(format!("{name} {value}"));
                }
                if self.frames.len() < DEEPEST {
                    let frame = self.frame(module, function);
                    self.frames.push(frame);
                }
            }
            Line::Count(count) if !self.frames.is_empty() => {
                let keys = std::mem::take(&mut self.keys);
                let marks: Vec<u32> = keys.iter().map(|key| self.mark(key)).collect();
                let frames = std::mem::take(&mut self.frames);
                let all = marks.into_iter().chain(frames.into_iter().rev());
                let stack = self.interner.stack(&mut self.profile, all);
                self.stacks.push((stack, count));
            }
            Line::Named(name, count) => {
                self.end();
                self.named = Some((name.to_owned(), count));
            }
            Line::Blank | Line::Message => self.end(),
            // A key without a number, if a stack follows.
            Line::Other(text) if self.frames.is_empty() && !text.contains(" |") => {
                self.end();
                self.keys.push(text.to_owned());
            }
            Line::Other(_) | Line::Count(_) => {
                self.end();
                self.lost += 1;
            }
        }
        if self.first_lost == 0 && self.lost > 0 {
            self.first_lost = number;
        }
    }

    /// Ends the current stack or name without a count.
    fn end(&mut self) {
        if let Some((name, count)) = self.named.take() {
            let (module, function) = frame_of(&name).unwrap_or(("", &name));
            let frame = self.frame(module, function);
            let stack = self.interner.node(&mut self.profile, NONE, frame);
            self.names.push((stack, count));
        }
        self.uncounted.append(&mut self.frames);
        self.lost += std::mem::take(&mut self.keys).len() as u64;
    }

    fn frame(&mut self, module: &str, function: &str) -> u32 {
        let texts = &mut self.profile.texts;
        let function = texts.add(function);
        let module = match module {
            "" => NONE,
            path => {
                let module = Module { path: texts.add(path), id: 0 };
                self.interner.module(&mut self.profile, module)
            }
        };
        let kind = FrameKind::Native;
        let frame = Frame { kind, module, address: 0, function, file: 0, line: 0 };
        self.interner.frame(&mut self.profile, frame)
    }

    fn mark(&mut self, text: &str) -> u32 {
        let function = self.profile.texts.add(text);
        let kind = FrameKind::Mark;
        let frame = Frame { kind, module: NONE, address: 0, function, file: 0, line: 0 };
        self.interner.frame(&mut self.profile, frame)
    }

    fn finish(mut self) -> Option<Profile> {
        self.end();
        let mut warnings = vec![];
        let mut lines: Vec<(u32, u64)> = vec![];
        match (self.uncounted.len(), self.stacks.is_empty()) {
            (0, _) => {}
            (n, false) => {
                warnings.push(format!("frames skipped because their stack has no count: {n}"));
            }
            (_, true) => {
                for frame in std::mem::take(&mut self.uncounted) {
                    lines.push((self.interner.node(&mut self.profile, NONE, frame), 1));
                }
                warnings.push(
                    "no stack has a count (the output may be filtered): lines with a frame are counted \
                     instead of calls"
                        .to_owned(),
                );
            }
        }
        let both = !self.stacks.is_empty() && !self.names.is_empty();
        let by_name = if both { "calls by name" } else { "calls" };
        let all = [("calls", self.stacks), (by_name, self.names), ("lines with a frame", lines)];
        if self.lost > 0 {
            let (n, first) = (self.lost, self.first_lost);
            warnings.push(format!("unrecognized lines: {n}, first at line {first}"));
        }
        let profile = &mut self.profile;
        for (name, rows) in all.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            let event = profile.events.len() as u32;
            profile.events.push(Event { name: name.to_owned(), unit: Unit::Count });
            profile.samples.extend(rows.into_iter().map(|(stack, count)| Sample {
                time_ns: 0,
                thread: 0,
                stack,
                event,
                count,
                weight: count,
                state: 0,
            }));
        }
        profile.threads.push(Thread::default());
        profile.about.tool = "dtrace".into();
        profile.about.method = "dtrace, probe counts".into();
        profile.quality.warnings = warnings;
        (!profile.samples.is_empty()).then_some(self.profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_lines() {
        let check = |line: &str, expected: Line| assert_eq!(line_of(line), expected, "{line}");
        check("   libvDSP.dylib`vDSP_vsmul+0x1a4", Line::Frame("libvDSP.dylib", "vDSP_vsmul"));
        check(
            "  a.out`std::map<int, char>::at(int const&) const+0x1f",
            Line::Frame("a.out", "std::map<int, char>::at(int const&) const"),
        );
        check("   0x7fff2043ab12", Line::Frame("", "0x7fff2043ab12"));
        check("   a.out`0x100003f10", Line::Frame("a.out", "0x100003f10"));
        check("        17", Line::Count(17));
        check("  vDSP_vsmul              17", Line::Named("vDSP_vsmul", 17));
        check(
            "  libvDSP.dylib`vDSP_vsmul              17",
            Line::Named("libvDSP.dylib`vDSP_vsmul", 17),
        );
        check("^C", Line::Blank);
        check("dtrace: script 'x.d' matched 12 probes", Line::Message);
        check("`", Line::Other("`"));
        check("x=`date`", Line::Other("x=`date`"));
    }
}
