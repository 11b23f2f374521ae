//! Parses single lines of `perf script`.

/// A header line: `comm pid/tid [cpu] time: period event: code`. Most fields are optional.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Head<'a> {
    pub(super) comm: &'a [u8],
    pub(super) pid: Option<u32>,
    pub(super) tid: u32,
    pub(super) time_ns: Option<u64>,
    pub(super) period: Option<u64>,
    pub(super) event: &'a [u8],
    /// The instruction, if stacks are not printed.
    pub(super) code: Option<Code<'a>>,
    /// Whether it is a sample, and not a mapping, a fork or another record.
    pub(super) is_sample: bool,
}

/// A location in code: `address name+0xoffset (module)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Code<'a> {
    pub(super) address: u64,
    pub(super) name: &'a [u8],
    pub(super) module: &'a [u8],
    pub(super) is_inlined: bool,
}

/// Start of the kernel half of the address space.
const KERNEL: u64 = 0xffff_8000_0000_0000;

impl Code<'_> {
    pub(super) fn is_kernel(&self) -> bool {
        self.address >= KERNEL || self.module.starts_with(b"[bpf") || self.module == b"bpf_prog"
    }
}

/// Parses a header line. `None` if it is not one.
pub(super) fn head_of(line: &[u8]) -> Option<Head<'_>> {
    let words = words_of(line);
    let text = |at: usize| words.get(at).map(|(start, end)| &line[*start..*end]);
    let time = |at: usize| text(at).and_then(|word| nanos(word.strip_suffix(b":")?));
    let ids = |at: usize| text(at).and_then(ids);
    let is_cpu = |at: usize| text(at).is_some_and(is_cpu);
    let is_event = |at: usize| text(at).is_some_and(is_event);
    // A thread name can contain spaces and numbers. It is followed by the thread id, an optional
    // CPU, and the time or an event.
    let (at, next) = (1..words.len()).find_map(|at| {
        ids(at)?;
        let next = at + 1 + usize::from(is_cpu(at + 1));
        let period = usize::from(text(next).is_some_and(|word| number(word).is_some()));
        (time(next).is_some() || is_event(next + period)).then_some((at, next))
    })?;
    let mut head = Head { is_sample: true, ..Head::default() };
    head.comm = line[..words[at].0].trim_ascii();
    (head.pid, head.tid) = ids(at)?;
    let mut next = next;
    if let Some(time) = time(next) {
        head.time_ns = Some(time);
        next += 1;
    }
    if let Some(period) = text(next).and_then(number) {
        head.period = Some(period);
        next += 1;
    }
    if is_event(next) {
        head.event = text(next)?.strip_suffix(b":")?;
        next += 1;
    }
    if let Some((start, _)) = words.get(next) {
        let rest = &line[*start..];
        head.code = code_of(rest).filter(|code| !code.module.is_empty());
        let is_said = !head.event.is_empty() || head.code.is_some();
        head.is_sample = is_said && !rest.starts_with(b"PERF_RECORD_");
    }
    Some(head)
}

/// Start and end of the words in a line, up to the maximum that a header line needs.
fn words_of(line: &[u8]) -> Vec<(usize, usize)> {
    const MOST: usize = 32;
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut words = vec![];
    let mut at = 0;
    while words.len() < MOST
        && let Some(start) = line[at..].iter().position(|byte| !is_space(byte))
    {
        let start = at + start;
        at = line[start..].iter().position(is_space).map_or(line.len(), |length| start + length);
        words.push((start, at));
    }
    words
}

/// Parses a frame line. `None` if it is not one.
pub(super) fn code_of(line: &[u8]) -> Option<Code<'_>> {
    let line = line.trim_ascii();
    let space = line.iter().position(|byte| *byte == b' ')?;
    let address = hexadecimal(&line[..space])?;
    let rest = line[space..].trim_ascii_start();
    let (name, module) = match rest.strip_suffix(b")") {
        Some(inner) => {
            let named = inner.strip_suffix(b" (deleted)").unwrap_or(inner);
            let open = memchr::memmem::rfind(named, b" (");
            match open {
                Some(open) => (&rest[..open], &inner[open + 2..]),
                None if named.first() == Some(&b'(') => (&b""[..], &inner[1..]),
                None => (rest, &b""[..]),
            }
        }
        None => (rest, &b""[..]),
    };
    let is_inlined = module == b"inlined";
    let module = if is_inlined { b"" } else { module };
    Some(Code { address, name: without_offset(name), module, is_inlined })
}

/// A name without the offset in the function.
fn without_offset(name: &[u8]) -> &[u8] {
    let Some(plus) = memchr::memmem::rfind(name, b"+0x") else { return name };
    match hexadecimal(&name[plus + 3..]) {
        Some(_) => &name[..plus],
        None => name,
    }
}

/// Parses `  file.c:12`.
pub(super) fn place_of(line: &[u8]) -> Option<(&[u8], u32)> {
    let line = line.strip_prefix(b"  ")?;
    if matches!(line.first(), None | Some(b' ' | b'\t')) {
        return None;
    }
    let colon = line.iter().rposition(|byte| *byte == b':')?;
    let digits = line[colon + 1..].split(|byte| *byte == b' ').next()?;
    let number = u32::try_from(number(digits)?).ok()?;
    let file = &line[..colon];
    (!file.is_empty() && !file.ends_with(b":")).then_some((file, number))
}

/// Parses `pid/tid`, or only the latter.
fn ids(word: &[u8]) -> Option<(Option<u32>, u32)> {
    // perf prints -1 if an id is unknown.
    let id = |digits: &[u8]| match digits {
        b"-1" => Some(0),
        _ => number(digits).and_then(|id| u32::try_from(id).ok()),
    };
    match word.iter().position(|byte| *byte == b'/') {
        Some(slash) => Some((Some(id(&word[..slash])?), id(&word[slash + 1..])?)),
        None => Some((None, id(word)?)),
    }
}

/// Whether a word is a CPU: `[001]`.
fn is_cpu(word: &[u8]) -> bool {
    let inner = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]"));
    inner.and_then(number).is_some()
}

/// Whether a word is an event: `cycles:`, `cpu-clock:u:`, `sched:sched_switch:`.
fn is_event(word: &[u8]) -> bool {
    let name = word.strip_suffix(b":").unwrap_or_default();
    name.first().is_some_and(u8::is_ascii_alphabetic)
}

/// Parses seconds with a fraction as nanoseconds.
fn nanos(word: &[u8]) -> Option<u64> {
    let dot = word.iter().position(|byte| *byte == b'.')?;
    let (seconds, fraction) = (number(&word[..dot])?, &word[dot + 1..]);
    if !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    seconds.checked_mul(1_000_000_000)?.checked_add(number(fraction)? * scale)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if !(1..=16).contains(&digits.len()) {
        return None;
    }
    digits
        .iter()
        .try_fold(0u64, |sum, byte| Some(sum << 4 | u64::from(char::from(*byte).to_digit(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: (&str, Option<u32>, u32, Option<u64>, Option<u64>, &str)) {
        let head = head_of(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or("?");
        let (comm, event) = (text(head.comm), text(head.event));
        assert_eq!((comm, head.pid, head.tid, head.time_ns, head.period, event), expected);
        assert!(head.is_sample, "{line}");
    }

    #[test]
    fn parses_header_lines() {
        let time = Some(1_612_922_866_000);
        check("burn  1505  1612.922866:    5000000 cpu-clock: ", {
            ("burn", None, 1505, time, Some(5_000_000), "cpu-clock")
        });
        check("burn  1505/1507 [001]  1612.922866: cpu-clock:u: ", {
            ("burn", Some(1505), 1507, time, None, "cpu-clock:u")
        });
        check("opt cgu.0 12  2249 [000]  1612.922866:    1 cycles: ", {
            ("opt cgu.0 12", None, 2249, time, Some(1), "cycles")
        });
        check("burn  1505  1612.922866: ", ("burn", None, 1505, time, None, ""));
        check("burn  1505 5 cycles: ", ("burn", None, 1505, None, Some(5), "cycles"));
        check("sh  7 [000] 1612.922866: sched:sched_switch: prev_comm=a 3 ==> b", {
            ("sh", None, 7, time, None, "sched:sched_switch")
        });
        check(":-1    -1 [000] 1612.922866: 1 cycles:", {
            (":-1", None, 0, time, Some(1), "cycles")
        });
    }

    #[test]
    fn parses_code_in_header_line() {
        let line = b"            burn  1505  1612.922866:    5000000 cpu-clock:      55fcc570114d leaf+0x14 (/tmp/stk/burn)";
        let code = head_of(line).and_then(|head| head.code).unwrap_or_default();
        assert_eq!((code.name, code.module), (&b"leaf"[..], &b"/tmp/stk/burn"[..]));
    }

    #[test]
    fn rejects_other_records() {
        let line = b"burn  1505  1612.917902: PERF_RECORD_MMAP2 1505/1505: [0x55fcc5701000(0x1000) @ 0x1000 fe:00 10027046 3684725408]: r-xp /tmp/stk/burn";
        assert_eq!(head_of(line).map(|head| head.is_sample), Some(false));
        for line in ["", "plain text", "a 12", "12 13", "a;b 12", "time: 12"] {
            assert_eq!(head_of(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn parses_frames() {
        let check = |line: &str, address: u64, name: &str, module: &str, is_inlined: bool| {
            let expected =
                Code { address, name: name.as_bytes(), module: module.as_bytes(), is_inlined };
            assert_eq!(code_of(line.as_bytes()), Some(expected), "{line}");
        };
        check("\t            114d leaf+0x14 (/tmp/burn)", 0x114d, "leaf", "/tmp/burn", false);
        check("\t  1175 middle+0x10 (inlined)", 0x1175, "middle", "", true);
        check("\t  7f [unknown] ([unknown])", 0x7f, "[unknown]", "[unknown]", false);
        check(
            "\t  7f f(int, char (*)(int))+0x3 (/a b.so)",
            0x7f,
            "f(int, char (*)(int))",
            "/a b.so",
            false,
        );
        check(
            "\t  7f [unknown] (/memfd:x (deleted))",
            0x7f,
            "[unknown]",
            "/memfd:x (deleted)",
            false,
        );
        check(
            "\t  7f py::run:/a/app.py+0xb (/tmp/perf-1.map)",
            0x7f,
            "py::run:/a/app.py",
            "/tmp/perf-1.map",
            false,
        );
        check("\t 114d leaf", 0x114d, "leaf", "", false);
        assert_eq!(place_of(b"  burn.c:4"), Some((&b"burn.c"[..], 4)));
        assert_eq!(place_of(b"  a.c:4 (discriminator 2)"), Some((&b"a.c"[..], 4)));
        assert_eq!(place_of(b"  burn.c"), None);
    }
}
