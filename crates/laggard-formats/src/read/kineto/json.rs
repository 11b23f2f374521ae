//! A plain, bounds-checked JSON walk. It is the reference for tests of the fast paths, handles
//! input that they reject, and produces the tokens from which layouts are learned. It does not
//! recurse, so nesting is unlimited.
//!
//! It accepts more than JSON, because real traces need it: any bytes in strings, and words such as
//! `NaN` as values.

/// Why a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text is truncated.
    Incomplete,
    /// The text is not JSON from this position on.
    Bad(usize),
}

/// Limits the number of bytes scanned to recover from damage, so that the total time stays linear
/// in the length of the text.
pub(super) struct Budget {
    text: usize,
    left: usize,
}

impl Budget {
    /// A budget for a search from `at`.
    pub(super) fn new(b: &[u8], at: usize) -> Budget {
        Budget { text: b.len(), left: 8 * (b.len() - at) + (64 << 10) }
    }

    pub(super) fn is_left(&self) -> bool {
        self.left > 0
    }

    /// Subtracts the bytes read from `at`.
    pub(super) fn spend(&mut self, at: usize, read: Result<usize, Stop>) {
        let end = match read {
            Ok(end) | Err(Stop::Bad(end)) => end,
            Err(Stop::Incomplete) => self.text,
        };
        self.left = self.left.saturating_sub(end.saturating_sub(at) + 1);
    }
}

/// How the end of a string is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// At the first unescaped quote.
    Strict,
    /// At the first quote after which JSON can continue. Repairs unescaped quotes in names.
    Lenient,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    String,
    Number,
    Object,
    Array,
    /// `true`, `false`, `null`, `NaN`, …
    Word,
}

/// One key and value of an event or of its `args`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) in_args: bool,
    /// Without the quotes.
    pub(super) key: (usize, usize),
    /// With the quotes, for strings.
    pub(super) value: (usize, usize),
    pub(super) shape: Shape,
}

pub(super) fn skip_space(b: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = b.get(at) {
        at += 1;
    }
    at
}

/// Position after the string whose opening quote is at `at`.
pub(super) fn string(b: &[u8], at: usize, quotes: Quotes) -> Result<usize, Stop> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', b.get(at..).unwrap_or_default())
            .ok_or(Stop::Incomplete)?;
        if b[at] == b'\\' {
            at += 2;
        } else if quotes == Quotes::Strict || json_goes_on(b, at + 1) {
            return Ok(at + 1);
        } else {
            at += 1;
        }
    }
}

/// Whether the text at `at` can follow a string.
fn json_goes_on(b: &[u8], at: usize) -> bool {
    let at = skip_space(b, at);
    match b.get(at) {
        None | Some(b':' | b'}' | b']') => true,
        Some(b',') => matches!(
            b.get(skip_space(b, at + 1)),
            None | Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9')
        ),
        _ => false,
    }
}

fn scalar(b: &[u8], at: usize) -> Result<(usize, Shape), Stop> {
    let len = b[at..]
        .iter()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.'))
        .count();
    if len == 0 {
        return Err(Stop::Bad(at));
    }
    if at + len == b.len() {
        return Err(Stop::Incomplete);
    }
    let number = b[at].is_ascii_digit() || (b[at] == b'-' && len > 1 && b[at + 1].is_ascii_digit());
    Ok((at + len, if number { Shape::Number } else { Shape::Word }))
}

/// Position after the value at `at`, and its type.
pub(super) fn value(b: &[u8], at: usize, quotes: Quotes) -> Result<(usize, Shape), Stop> {
    match b.get(at).ok_or(Stop::Incomplete)? {
        b'"' => Ok((string(b, at, quotes)?, Shape::String)),
        b'{' => Ok((nested(b, at, quotes)?, Shape::Object)),
        b'[' => Ok((nested(b, at, quotes)?, Shape::Array)),
        _ => scalar(b, at),
    }
}

/// Position after the array or object at `at`.
fn nested(b: &[u8], mut at: usize, quotes: Quotes) -> Result<usize, Stop> {
    let mut open: Vec<u8> = Vec::new();
    loop {
        // at a value
        at = skip_space(b, at);
        match *b.get(at).ok_or(Stop::Incomplete)? {
            bracket @ (b'{' | b'[') => {
                let close = if bracket == b'{' { b'}' } else { b']' };
                at = skip_space(b, at + 1);
                if *b.get(at).ok_or(Stop::Incomplete)? != close {
                    open.push(close);
                    if bracket == b'{' {
                        at = key(b, at, quotes)?.1;
                    }
                    continue;
                }
                at += 1;
            }
            b'"' => at = string(b, at, quotes)?,
            _ => at = scalar(b, at)?.0,
        }
        // after a value
        loop {
            let Some(&close) = open.last() else { return Ok(at) };
            at = skip_space(b, at);
            match *b.get(at).ok_or(Stop::Incomplete)? {
                b',' => {
                    at = skip_space(b, at + 1);
                    if close == b'}' {
                        at = key(b, at, quotes)?.1;
                    }
                    break;
                }
                c if c == close => {
                    open.pop();
                    at += 1;
                }
                _ => return Err(Stop::Bad(at)),
            }
        }
    }
}

/// The key at `at`, without its quotes, and the position of its value.
pub(super) fn key(b: &[u8], at: usize, quotes: Quotes) -> Result<((usize, usize), usize), Stop> {
    if *b.get(at).ok_or(Stop::Incomplete)? != b'"' {
        return Err(Stop::Bad(at));
    }
    let end = string(b, at, quotes)?;
    let colon = skip_space(b, end);
    if *b.get(colon).ok_or(Stop::Incomplete)? != b':' {
        return Err(Stop::Bad(colon));
    }
    Ok(((at + 1, end - 1), skip_space(b, colon + 1)))
}

/// Fills `tokens` with the event at `at`. Returns the position after its `}`.
pub(super) fn event(
    b: &[u8],
    at: usize,
    quotes: Quotes,
    tokens: &mut Vec<Token>,
) -> Result<usize, Stop> {
    tokens.clear();
    object(b, at, quotes, false, tokens)
}

fn object(
    b: &[u8],
    at: usize,
    quotes: Quotes,
    in_args: bool,
    tokens: &mut Vec<Token>,
) -> Result<usize, Stop> {
    if *b.get(at).ok_or(Stop::Incomplete)? != b'{' {
        return Err(Stop::Bad(at));
    }
    let mut at = skip_space(b, at + 1);
    if b.get(at) == Some(&b'}') {
        return Ok(at + 1);
    }
    loop {
        let (key, from) = key(b, at, quotes)?;
        if !in_args && &b[key.0..key.1] == b"args" && b.get(from) == Some(&b'{') {
            let args = tokens.len();
            tokens.push(Token { in_args, key, value: (from, from), shape: Shape::Object });
            at = object(b, from, quotes, true, tokens)?;
            tokens[args].value.1 = at;
        } else {
            let (end, shape) = value(b, from, quotes)?;
            tokens.push(Token { in_args, key, value: (from, end), shape });
            at = end;
        }
        at = skip_space(b, at);
        match *b.get(at).ok_or(Stop::Incomplete)? {
            b'}' => return Ok(at + 1),
            b',' => at = skip_space(b, at + 1),
            _ => return Err(Stop::Bad(at)),
        }
    }
}

/// Decodes a JSON string without its quotes. Invalid escapes are kept.
pub(super) fn unescape(s: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(s.len());
    let mut i = 0;
    while i < s.len() {
        if s[i] != b'\\' {
            out.push(s[i]);
            i += 1;
            continue;
        }
        let plain = match s.get(i + 1) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(&c @ (b'"' | b'\\' | b'/')) => c,
            Some(b'u') => {
                let (c, len) = unicode(&s[i..]);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                i += len;
                continue;
            }
            _ => {
                out.push(b'\\');
                i += 1;
                continue;
            }
        };
        out.push(plain);
        i += 2;
    }
    out
}

/// Decodes a `\uXXXX` escape or a surrogate pair. Returns the character and the length of the
/// escape.
fn unicode(s: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(s.get(at..at + 4)?).ok()?;
        digits
            .bytes()
            .all(|b| b.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let Some(first) = unit(2) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if let (0xd800..0xdc00, Some(b"\\u"), Some(second @ 0xdc00..0xe000)) =
        (first, s.get(6..8), unit(8))
    {
        let c = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// The JSON text without white space between tokens.
pub(super) fn compact(b: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(b.len()), 0);
    while at < b.len() {
        match b[at] {
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            b'"' => {
                let end = string(b, at, Quotes::Strict).unwrap_or(b.len()).min(b.len());
                out.extend_from_slice(&b[at..end]);
                at = end;
            }
            c => {
                out.push(c);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Option<Stop> = Some(Stop::Bad(0));
    const CUT: Option<Stop> = Some(Stop::Incomplete);

    /// Checks where an event ends, or why parsing it stops.
    fn check(text: &str, end: usize, why: Option<Stop>) {
        let found = event(text.as_bytes(), 0, Quotes::Strict, &mut Vec::new());
        let (found_end, found_why) = match found {
            Ok(end) => (end, None),
            Err(Stop::Bad(at)) => (at, BAD),
            Err(Stop::Incomplete) => (0, CUT),
        };
        assert_eq!((found_end, found_why), (end, why), "{text}");
    }

    #[test]
    fn finds_end_of_events() {
        check("{} ", 2, None);
        check(r#"{"a": 1, "args": {"b": [{"c": "}"}, []], "d": NaN}} "#, 51, None);
        check(r#"{"a": "x\"y"}"#, 13, None);
        check(r#"{"a": 1"#, 0, CUT);
        check(r#"{"a": 1,}"#, 8, BAD);
        check(r#"{"a": [1 2]}"#, 9, BAD);
        check(r#"{"a": {"b"}}"#, 10, BAD);
        check(r#"{"a": "x"y"}"#, 9, BAD);
        check("[", 0, BAD);
        check("", 0, CUT);
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let text = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        check(&text, text.len(), None);
    }

    #[test]
    fn repairs_unescaped_quotes() {
        let text = br#"{"name": "op "quoted", end", "pid": 1}"#;
        let mut tokens = Vec::new();
        assert_eq!(event(text, 0, Quotes::Lenient, &mut tokens), Ok(text.len()));
        assert_eq!(&text[tokens[0].value.0..tokens[0].value.1], br#""op "quoted", end""#);
    }

    #[test]
    fn decodes_escapes() {
        assert_eq!(
            unescape(br#"a\n\"\\\/\u00e9\ud83d\ude00\q\ud800"#),
            "a\n\"\\/é😀\\q\u{fffd}".as_bytes()
        );
        assert_eq!(compact(b"[ 1,\n \"a b\\\" \" , {} ]"), b"[1,\"a b\\\" \",{}]");
    }
}
