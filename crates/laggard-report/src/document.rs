//! A report as a list of blocks, independent of the output format.
//!
//! Reports add raw values; the renderers in this file escape all of them.

use crate::escape;
use crate::names::Names;
use crate::table::{Style, Table};

const INDENT: usize = 2;

/// A report, from top to bottom.
#[derive(Default)]
pub(crate) struct Document {
    blocks: Vec<Block>,
}

enum Block {
    /// The main result, in one line.
    Lead(String),
    /// Starts a section.
    Heading(String),
    /// Labelled values.
    Facts(Vec<(&'static str, String)>),
    Table(Table),
    /// A sentence of the section.
    Line(String),
    /// A title and stack frames, outermost first.
    Stack(String, Vec<String>),
    /// Lines that are escaped but not wrapped.
    Verbatim(Vec<String>),
    /// An empty line.
    Blank,
    /// Secondary text: remarks, number of hidden rows.
    Minor(String),
    /// A notice or warning, separated by an empty line.
    Notice(String),
}

impl Document {
    pub(crate) fn lead(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Lead(text.into()));
    }

    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// Adds labelled values; empty values are skipped.
    pub(crate) fn facts(&mut self, facts: impl IntoIterator<Item = (&'static str, String)>) {
        let facts = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        self.blocks.push(Block::Facts(facts));
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    pub(crate) fn line(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Line(text.into()));
    }

    pub(crate) fn stack(&mut self, title: String, frames: &[String]) {
        self.blocks.push(Block::Stack(title, frames.to_vec()));
    }

    pub(crate) fn verbatim(&mut self, lines: Vec<String>) {
        self.blocks.push(Block::Verbatim(lines));
    }

    pub(crate) fn blank(&mut self) {
        self.blocks.push(Block::Blank);
    }

    pub(crate) fn minor(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Minor(text.into()));
    }

    pub(crate) fn notice(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Notice(text.into()));
    }

    /// Renders terminal text.
    pub(crate) fn text(&self, style: &Style) -> String {
        let names = self.names();
        let mut text = String::new();
        for block in &self.blocks {
            if matches!(block, Block::Heading(_) | Block::Notice(_)) && !text.is_empty() {
                text.push('\n');
            }
            text += &match block {
                Block::Lead(line) => wrapped(line, 0, style.columns(), |l| style.bold(l)),
                Block::Heading(heading) => {
                    style.heading(&escape::fit(heading, style.columns())) + "\n"
                }
                Block::Facts(facts) => facts_text(facts, style),
                Block::Table(table) => table.text(style, INDENT, &names),
                Block::Line(line) => wrapped(line, INDENT, style.columns(), str::to_owned),
                Block::Stack(title, frames) => stack_text(title, frames, style, &names),
                Block::Verbatim(lines) => {
                    let line = |line: &String| format!("{:INDENT$}{}\n", "", escape::visible(line));
                    lines.iter().map(line).collect()
                }
                Block::Blank => "\n".to_owned(),
                Block::Minor(line) => wrapped(line, INDENT, style.columns(), |l| style.minor(l)),
                Block::Notice(line) => wrapped(line, 0, style.columns(), |l| style.bold(l)),
            };
        }
        text
    }

    /// All names of functions and kernels: different names look different in the whole report.
    fn names(&self) -> Names {
        let of_block = |block: &'_ Block| -> Vec<String> {
            match block {
                Block::Table(table) => table.names().map(str::to_owned).collect(),
                Block::Stack(_, frames) => {
                    frames.iter().map(|frame| split_label(frame).1.to_owned()).collect()
                }
                _ => vec![],
            }
        };
        let names: Vec<String> = self.blocks.iter().flat_map(of_block).collect();
        Names::new(names.iter().map(String::as_str))
    }

    /// Renders HTML for laggard's own pages.
    pub(crate) fn html(&self) -> String {
        let names = self.names();
        let xml = |text: &str| escape::xml(text);
        let list = |class: &str, lines: &[String]| {
            let lines: String =
                lines.iter().map(|line| format!("<li>{}</li>", xml(line))).collect();
            format!("<ol class=\"{class}\">{lines}</ol>\n")
        };
        let block = |block: &Block| match block {
            Block::Lead(line) => format!("<p class=\"lead\">{}</p>\n", xml(line)),
            Block::Heading(heading) => format!("<h2>{}</h2>\n", xml(heading)),
            Block::Facts(facts) => {
                let fact = |(label, value): &(&str, String)| {
                    format!("<dt>{}</dt><dd>{}</dd>", xml(label), xml(value))
                };
                let facts: String = facts.iter().map(fact).collect();
                format!("<dl class=\"facts\">{facts}</dl>\n")
            }
            Block::Table(table) => table.html(&names),
            Block::Line(line) => format!("<p class=\"line\">{}</p>\n", xml(line)),
            Block::Stack(title, frames) => {
                format!("<p class=\"line\">{}</p>\n{}", xml(title), list("stack", frames))
            }
            Block::Verbatim(lines) => {
                format!(
                    "<pre class=\"verbatim\">{}</pre>\n",
                    lines.iter().map(|l| xml(l)).collect::<Vec<_>>().join("\n")
                )
            }
            Block::Blank => String::new(),
            Block::Minor(line) => format!("<p class=\"minor\">{}</p>\n", xml(line)),
            Block::Notice(line) => format!("<p class=\"notice\">{}</p>\n", xml(line)),
        };
        self.blocks.iter().map(block).collect()
    }

    /// Renders Markdown.
    pub(crate) fn markdown(&self) -> String {
        let blocks = self.blocks.iter().map(|block| match block {
            Block::Lead(heading) | Block::Heading(heading) => {
                format!("## {}\n", escape::markdown(heading))
            }
            Block::Facts(facts) => {
                let fact = |(label, value): &(&str, String)| {
                    format!("- {label}: {}\n", escape::markdown(value))
                };
                facts.iter().map(fact).collect()
            }
            Block::Table(table) => table.markdown(),
            Block::Line(line) | Block::Minor(line) => escape::markdown(line) + "\n",
            Block::Stack(title, frames) => {
                let frame = |frame: &String| format!("  - {}\n", escape::markdown(frame));
                let frames: String = frames.iter().map(frame).collect();
                format!("- {}\n{frames}", escape::markdown(title))
            }
            Block::Verbatim(lines) => {
                // Backquotes could close the fence.
                let line = |line: &String| escape::visible(line).replace('`', "'") + "\n";
                format!("```\n{}```\n", lines.iter().map(line).collect::<String>())
            }
            Block::Blank => String::new(),
            Block::Notice(line) => format!("> {}\n", escape::markdown(line)),
        });
        blocks.filter(|block| !block.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

fn facts_text(facts: &[(&str, String)], style: &Style) -> String {
    let widest = facts.iter().map(|(label, _)| escape::columns(label)).max().unwrap_or(0);
    let hang = INDENT + widest + 2;
    let fact = |(label, value): &(&str, String)| {
        let value = wrapped(value, hang, style.columns(), str::to_owned);
        let space = " ".repeat(widest - escape::columns(label));
        let label = style.minor(label);
        format!("{:INDENT$}{label}{space}  {}", "", value.trim_start())
    };
    facts.iter().map(fact).collect()
}

/// Splits the label in front of a stack frame, which two spaces separate from the frame.
fn split_label(line: &str) -> (&str, &str) {
    line.split_at(line.rfind("  ").map_or(0, |at| at + 2))
}

fn stack_text(title: &str, frames: &[String], style: &Style, names: &Names) -> String {
    let available = |indent: usize| style.columns().saturating_sub(indent);
    let title = escape::fit(title, available(INDENT));
    let frame = |frame: &String| {
        let (label, name) = split_label(frame);
        let indent = 2 * INDENT;
        let width = available(indent).saturating_sub(escape::columns(label));
        format!("{:indent$}{}{}\n", "", escape::visible(label), names.short(name, width))
    };
    format!("{:INDENT$}{title}\n", "") + &frames.iter().map(frame).collect::<String>()
}

/// Escapes, wraps at spaces and indents. A word longer than a line is shortened in the middle.
pub(crate) fn wrapped(
    text: &str,
    indent: usize,
    width: usize,
    paint: impl Fn(&str) -> String,
) -> String {
    let available = width.saturating_sub(indent).max(20);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let word = escape::fit(word, available);
        let fits = lines.last().is_none_or(|line| {
            line.is_empty() || escape::columns(line) + 1 + escape::columns(&word) <= available
        });
        if !fits {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines.iter().map(|line| format!("{:indent$}{}\n", "", paint(line))).collect()
}
