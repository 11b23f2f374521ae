//! JSON values with ordered keys that can be written in any layout, including invalid JSON.

use crate::Style;

/// A JSON value. [`Json::Raw`] is written verbatim and may be invalid JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer; may exceed 64 bits.
    Int(i128),
    /// A string, escaped when written.
    Text(String),
    /// Any text, written verbatim.
    Raw(String),
    /// An array.
    List(Vec<Json>),
    /// An object; keys may repeat.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// A string.
    pub fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    /// Verbatim text.
    pub fn raw(text: impl Into<String>) -> Json {
        Json::Raw(text.into())
    }

    /// An object.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Json)>) -> Json {
        Json::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// An array.
    pub fn list(items: impl IntoIterator<Item = Json>) -> Json {
        Json::List(items.into_iter().collect())
    }

    /// Formats the value. `depth` is its nesting depth, for layouts that indent.
    pub fn write(&self, style: Style, depth: usize) -> String {
        let mut out = String::new();
        Layout::of(style).write(self, depth, &mut out);
        out
    }
}

impl From<i128> for Json {
    fn from(number: i128) -> Json {
        Json::Int(number)
    }
}

/// Separators and indentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) comma: &'static str,
    pub(crate) colon: &'static str,
    /// Spaces per level, for layouts with one value per line.
    pub(crate) indent: Option<usize>,
    /// Write characters beyond ASCII as `\u` escapes.
    pub(crate) ascii: bool,
}

impl Layout {
    pub(crate) fn of(style: Style) -> Layout {
        match style {
            Style::Native | Style::Spaced => {
                Layout { comma: ", ", colon: ": ", indent: None, ascii: true }
            }
            Style::Compact => Layout { comma: ",", colon: ":", indent: None, ascii: true },
            Style::Indent2 => Layout { comma: ",", colon: ": ", indent: Some(2), ascii: true },
        }
    }

    pub(crate) fn write(&self, value: &Json, depth: usize, out: &mut String) {
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
            Json::Int(number) => out.push_str(&number.to_string()),
            Json::Text(text) => self.quote(text, out),
            Json::Raw(text) => out.push_str(text),
            Json::List(items) => self.enclose(['[', ']'], items, depth, out, |item, out| {
                self.write(item, depth + 1, out);
            }),
            Json::Map(entries) => {
                self.enclose(['{', '}'], entries, depth, out, |(key, value), out| {
                    self.quote(key, out);
                    out.push_str(self.colon);
                    self.write(value, depth + 1, out);
                });
            }
        }
    }

    fn enclose<T>(
        &self,
        [open, close]: [char; 2],
        items: &[T],
        depth: usize,
        out: &mut String,
        each: impl Fn(&T, &mut String),
    ) {
        out.push(open);
        for (nth, item) in items.iter().enumerate() {
            if nth > 0 {
                out.push_str(self.comma);
            }
            self.line(depth + 1, out);
            each(item, out);
        }
        if !items.is_empty() {
            self.line(depth, out);
        }
        out.push(close);
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }

    fn quote(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if c < ' ' || (self.ascii && !c.is_ascii()) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let value =
            Json::map([("a", Json::list([Json::Int(1), Json::list([])])), ("é\n", Json::Null)]);
        let check = |style, expected| assert_eq!(value.write(style, 0), expected);
        check(Style::Compact, r#"{"a":[1,[]],"\u00e9\n":null}"#);
        check(Style::Spaced, r#"{"a": [1, []], "\u00e9\n": null}"#);
        check(Style::Indent2, "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"\\u00e9\\n\": null\n}");
    }
}
