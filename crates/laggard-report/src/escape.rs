//! Escaping of untrusted names.
//!
//! A name in a trace may contain line breaks that fake a table row, escape sequences that control the
//! terminal, or bidirectional overrides that change the reading order. [`visible`] escapes all of
//! them, and the other functions except [`csv`] use it. Backslashes are kept because paths contain
//! them.

use std::fmt::Write;

/// Escapes characters that are invisible or control the terminal, as `\n` or `\u{1b}`.
pub fn visible(text: &str) -> String {
    text.chars().map(piece).collect()
}

/// Like [`visible`], shortened in the middle to at most `width` display columns.
pub fn fit(text: &str, width: usize) -> String {
    // Stops at `width` columns, so that huge names are cheap.
    let fits = || {
        text.chars()
            .map(|c| columns(&piece(c)))
            .try_fold(0, |sum: usize, w| Some(sum + w).filter(|&sum| sum <= width))
    };
    if fits().is_some() {
        return visible(text);
    }
    let kept = width.saturating_sub(1);
    let head = taken(text.chars(), kept.div_ceil(2));
    let tail = taken(text.chars().rev(), kept - kept.div_ceil(2));
    let mut short: String = head.concat();
    short.push('…');
    short.extend(tail.into_iter().rev());
    short
}

/// Like [`visible`], with Markdown markup escaped.
pub fn markdown(text: &str) -> String {
    let shown = visible(text);
    let mut escaped = String::with_capacity(shown.len());
    let mut before = ' ';
    let mut rest = shown.chars().peekable();
    while let Some(c) = rest.next() {
        let markup = match c {
            '\\' | '|' | '`' | '<' | '>' | '[' | ']' | '*' | '~' | '&' | '$' | '#' => true,
            // List marker at the start.
            '-' | '+' => escaped.is_empty() && rest.peek() == Some(&' '),
            // An underscore within a word is not markup.
            '_' => !before.is_alphanumeric() || !rest.peek().is_some_and(|c| c.is_alphanumeric()),
            _ => false,
        };
        if markup {
            escaped.push('\\');
        }
        escaped.push(c);
        before = c;
    }
    escaped
}

/// Escapes text for XML and HTML elements and attributes. Control characters, which XML does not
/// allow, are escaped as in [`visible`].
pub(crate) fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// A CSV field (RFC 4180), quoted if needed and otherwise unchanged.
pub fn csv(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Display width in columns. Approximate: terminals differ for some characters.
pub fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    match u32::from(c) {
        0x20..=0x7e => 1,
        0x0300..=0x036f | 0x1ab0..=0x1aff | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f => {
            0
        }
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Escaped characters from the front of `chars` that fit into `width`.
fn taken(chars: impl Iterator<Item = char>, width: usize) -> Vec<String> {
    let mut used = 0;
    chars
        .map(piece)
        .take_while(|piece| {
            used += columns(piece);
            used <= width
        })
        .collect()
}

/// One character, escaped if needed.
fn piece(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        _ if is_hidden(c) => {
            let mut code = String::new();
            // Writing to a String cannot fail.
            let _ = write!(code, "\\u{{{:x}}}", u32::from(c));
            code
        }
        _ => c.to_string(),
    }
}

/// Control characters, bidirectional controls and invisible characters.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
            | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe007f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        for (text, expected) in [
            ("plain <int>", "plain <int>"),
            ("C:\\dir\\new.py", "C:\\dir\\new.py"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("x\u{202e}txt.\u{2066}", "x\\u{202e}txt.\\u{2066}"),
            ("a\u{200b}b\u{2028}c\u{feff}", "a\\u{200b}b\\u{2028}c\\u{feff}"),
            ("核 é", "核 é"),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(visible(&visible(text)), expected, "escaping twice changes nothing");
        }
    }

    #[test]
    fn long_names_are_shortened_in_the_middle() {
        for (text, width, expected) in [
            ("short", 5, "short"),
            ("abcdefghij", 5, "ab…ij"),
            ("abcdefghij", 6, "abc…ij"),
            // Wide characters take two columns and are not split.
            ("核核核核核", 6, "核…核"),
            // An escape sequence is not split.
            ("ab\u{1b}cdefgh", 8, "ab…fgh"),
            ("abc", 1, "…"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(fit(text, width), expected, "{text:?} in {width}");
        }
    }

    #[test]
    fn markdown_markup_is_escaped() {
        for (text, expected) in [
            ("a|b", "a\\|b"),
            ("`x` <b> [l](u)", "\\`x\\` \\<b\\> \\[l\\](u)"),
            ("a\\|b\n", "a\\\\\\|b\\\\n"),
            ("my_kernel __init__", "my_kernel \\_\\_init\\_\\_"),
            ("# no heading", "\\# no heading"),
            ("- no list -", "\\- no list -"),
            ("float* &amp;", "float\\* \\&amp;"),
        ] {
            assert_eq!(markdown(text), expected);
        }
    }

    #[test]
    fn csv_fields_are_quoted_if_needed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("a\nb", "\"a\nb\""),
            ("\u{1b}[0m", "\u{1b}[0m"),
        ] {
            assert_eq!(csv(text), expected);
        }
    }
}
