//! `docs/benchmarks.md`: generated sections between markers, and hand-written text around them.

use crate::project;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Replaces a section of docs/benchmarks.md, or appends it if it does not exist.
pub(super) fn replace_section(name: &str, text: &str) -> Result<PathBuf> {
    let path = project::root().join("docs/benchmarks.md");
    let page = std::fs::read_to_string(&path).unwrap_or_else(|_| "# Benchmarks\n".into());
    let written = std::fs::create_dir_all(project::root().join("docs"))
        .and_then(|()| std::fs::write(&path, with_section(&page, name, text)));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn with_section(page: &str, name: &str, text: &str) -> String {
    let (open, close) = (
        format!("<!-- {name}: written by cargo xtask bench -->"),
        format!("<!-- end of {name} -->"),
    );
    let section = format!("{open}\n{}\n{close}", text.trim());
    match (page.find(&open), page.find(&close)) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{section}{}", &page[..from], &page[to + close.len()..])
        }
        _ => format!("{}\n\n{section}\n", page.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::with_section;

    #[test]
    fn replacing_a_section_keeps_the_text_around_it() {
        let first = with_section("# Page\n", "traces", "one");
        let around = format!("{first}\nMore text.\n");
        let second = with_section(&around, "traces", "two");
        assert_eq!(second, around.replace("one", "two"));
    }
}
