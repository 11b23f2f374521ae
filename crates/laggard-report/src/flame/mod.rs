//! Flame graphs: a whole tree of calls as one picture that needs nothing but a browser.
//!
//! The outermost function is at the top; a frame is as wide as its share. Hovering names a frame,
//! a click fills the picture with it, a search marks all frames of a name. Names are text by
//! strangers: they are escaped, and the script puts them back only as text.

mod draw;
#[cfg(test)]
mod tests;

use crate::escape;
use crate::number::{count, duration, percent, plural};
use laggard_core::profile::{By, Cost, View, top_down, totals};

const SCRIPT: &str = include_str!("flame.js");
const STYLE: &str = include_str!("flame.css");
const PAGE_STYLE: &str = include_str!("page.css");
/// Functions that a page lists.
const LISTED: usize = 20;

/// A picture that stands by itself.
pub fn svg(view: &View, title: &str) -> String {
    let drawing = draw::draw(view, &top_down(view), title);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- flame graph by laggard -->\n{}",
        drawing.with_heading(
            &format!("<style>{STYLE}</style>"),
            &format!("<script><![CDATA[\n{SCRIPT}\nflame(document.documentElement);\n]]></script>")
        )
    )
}

/// A page with the picture, a box to search in, and the functions with the most time.
pub fn html(view: &View, title: &str) -> String {
    let drawing = draw::draw(view, &top_down(view), title);
    let name = escape::xml(title);
    format!(
        "<!doctype html>
<!-- flame graph by laggard -->
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>{name}</title>
<style>{PAGE_STYLE}{STYLE}</style>
</head>
<body>
<h1>{name}</h1>
<p>{}</p>
<p class=\"bar\"><input type=\"search\" id=\"search\" placeholder=\"search a function\" aria-label=\"search a function\"> <button id=\"reset\">whole picture</button> <span id=\"found\"></span></p>
{}
{}
<script>
{SCRIPT}
flame(document.querySelector(\"svg\"), document);
</script>
</body>
</html>
",
        escape::xml(&whole(view, view.whole)),
        drawing.without_heading(),
        list(view)
    )
}

/// The functions with the most time of their own.
fn list(view: &View) -> String {
    let table = totals(view, By::Function);
    let cell = |text: &str| format!("<td>{}</td>", escape::xml(text));
    let number = |text: &str| format!("<td class=\"n\">{}</td>", escape::xml(text));
    let row = |row: &laggard_core::profile::Row| {
        let cells = [
            number(&percent(row.total.share_of(table.whole))),
            number(&percent(row.own.share_of(table.whole))),
            number(&count(row.total.samples)),
            cell(&row.of),
            cell(&row.name),
        ];
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let rows: String = table.rows.iter().take(LISTED).map(row).collect();
    format!(
        "<table>\n<thead><tr><th>total %</th><th>self %</th><th>samples</th><th>library</th><th>function</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>"
    )
}

/// What a cost is, with its unit.
fn whole(view: &View, cost: Cost) -> String {
    let samples = format!("{} of {}", plural(cost.samples, "sample"), view.event_name());
    if view.is_time() {
        format!("{samples}, {}", duration(i64::try_from(cost.weight).unwrap_or(i64::MAX)))
    } else {
        samples
    }
}
