//! The data of a page, as an HTML element that its scripts read.

use super::{Distribution, LARGE, Page, Timeline};
use crate::flame::Graph;
use crate::names::Names;
use flate2::{Compression, write::GzEncoder};
use laggard_core::model::NONE;
use laggard_core::model::profile::FrameKind;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

#[derive(Serialize)]
struct Shape<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    flame: Option<Flame<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<&'a Timeline>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    distributions: &'a [Distribution],
}

#[derive(Serialize)]
struct Flame<'a> {
    event: &'a str,
    unit: &'static str,
    per: &'a str,
    sides: Vec<&'a str>,
    strings: Vec<&'a str>,
    short: BTreeMap<usize, String>,
    functions: Functions,
    nodes: Nodes,
    wholes: Vec<f64>,
    samples: Vec<u64>,
    hidden: Hidden,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    intervals: &'a BTreeMap<u32, [f64; 2]>,
}

#[derive(Serialize, Default)]
struct Functions {
    name: Vec<u32>,
    library: Vec<u32>,
    kind: Vec<u8>,
    file: Vec<u32>,
    line: Vec<u32>,
}

#[derive(Serialize)]
struct Nodes {
    parent: Vec<i64>,
    function: Vec<u32>,
    #[serde(rename = "self")]
    own: Vec<Vec<f64>>,
}

#[derive(Serialize)]
struct Hidden {
    nodes: u64,
    least: f64,
}

/// The element: plain JSON, or compressed if it is large.
pub(super) fn element(page: &Page) -> String {
    let shape = Shape {
        schema: "laggard.page/1",
        flame: page.graph.map(|graph| flame(graph, &page.intervals)),
        timeline: page.timeline.as_ref(),
        distributions: &page.distributions,
    };
    // Serialization of numbers and strings cannot fail.
    let text = serde_json::to_string(&shape).unwrap_or_default();
    if text.len() <= LARGE {
        // Escaped so that no text can end the element.
        let text = text.replace('<', "\\u003c");
        return format!("<script type=\"application/json\" id=\"data\">{text}</script>");
    }
    let packed = base64(&gzip(text.as_bytes()));
    format!(
        "<script type=\"text/plain\" id=\"data\" data-encoding=\"gzip-base64\">{packed}</script>"
    )
}

fn flame<'a>(graph: &'a Graph, intervals: &'a BTreeMap<u32, [f64; 2]>) -> Flame<'a> {
    let mut strings = vec![""];
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::from_iter([("", 0)]);
    let mut number = |text: &'a str| {
        *numbers.entry(text).or_insert_with(|| {
            strings.push(text);
            strings.len() as u32 - 1
        })
    };
    let mut functions = Functions::default();
    for function in &graph.functions {
        functions.name.push(number(&function.name));
        functions.library.push(number(&function.library));
        functions.kind.push(function.kind as u8);
        functions.file.push(number(&function.file));
        functions.line.push(function.line);
    }
    // The root is a frame named "all".
    let all = functions.name.len() as u32;
    functions.name.push(number("all"));
    functions.library.push(0);
    functions.kind.push(FrameKind::Mark as u8);
    functions.file.push(0);
    functions.line.push(0);
    let parent = |number: u32| if number == NONE { -1 } else { i64::from(number) };
    let own = |side: usize| graph.nodes.iter().map(|node| node.own[side]).collect();
    Flame {
        event: &graph.event,
        unit: if graph.is_of_shares() { "share" } else { graph.unit.word() },
        per: if graph.is_of_shares() { "" } else { &graph.per },
        sides: graph.sides.iter().map(|side| side.name.as_str()).collect(),
        short: short_names(&strings),
        strings,
        functions,
        nodes: Nodes {
            parent: graph.nodes.iter().map(|node| parent(node.parent)).collect(),
            function: graph.nodes.iter().map(|node| node.function.min(all)).collect(),
            own: (0..graph.sides.len().min(2)).map(own).collect(),
        },
        wholes: graph.sides.iter().map(|side| side.whole).collect(),
        samples: graph.sides.iter().map(|side| side.samples).collect(),
        hidden: Hidden { nodes: graph.hidden.nodes, least: graph.hidden.least },
        intervals,
    }
}

/// Short forms of long names, by their index. Frames without room for the name show them.
pub(super) fn short_names<S: AsRef<str>>(strings: &[S]) -> BTreeMap<usize, String> {
    /// Columns of a short form.
    const WIDTH: usize = 40;
    /// More names would delay the page, and most of them are too rare to be seen.
    const MOST: usize = 20_000;
    let is_long = |text: &&str| text.len() > WIDTH && text.contains([':', '<', '_', '.']);
    let long = || strings.iter().map(AsRef::as_ref).enumerate().filter(|(_, text)| is_long(text));
    let names = Names::new(long().take(MOST).map(|(_, text)| text));
    long().take(MOST).map(|(at, text)| (at, names.short(text, WIDTH))).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Base64 with padding, as in RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = word >> (18 - 6 * digit) & 63;
            text.push(match digit <= three.len() {
                true => char::from(DIGITS[value as usize]),
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base_64() {
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }
}
