//! The name of a function among those that records give it.

use std::collections::BTreeSet;

/// Maximum total length of all names.
const LONGEST_TOTAL: usize = 1 << 24;

/// A name of a function in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate<'a> {
    pub(super) start: u64,
    pub(super) source: Source,
    /// The class; empty if it is unknown or if there is none.
    pub(super) class: &'a str,
    pub(super) name: &'a str,
    /// The method of an attribute.
    pub(super) suffix: &'static str,
}

/// The kind of a record, most specific first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Method,
    Attribute,
    Slot,
    Traceback,
}

/// The name of each function, by address. A function has no name if its records disagree.
pub(super) fn choose(mut candidates: Vec<Candidate<'_>>) -> Vec<(u64, String)> {
    // Records of the same kind keep their order.
    candidates.sort_by_key(|candidate| (candidate.start, candidate.source));
    let mut left = LONGEST_TOTAL;
    let functions = candidates.chunk_by(|a, b| a.start == b.start);
    let names = functions.filter_map(|all| Some((all.first()?.start, choose_one(all)?)));
    names
        .take_while(|(_, name)| {
            left = left.saturating_sub(name.len());
            left > 0
        })
        .collect()
}

fn choose_one(all: &[Candidate<'_>]) -> Option<String> {
    let first = all.first()?;
    let best = all.iter().take_while(|candidate| candidate.source == first.source);
    let has_class = best.clone().any(|candidate| !candidate.class.is_empty());
    // Cython has a second record without a class for some methods.
    let best: Vec<_> = best.filter(|found| !has_class || !found.class.is_empty()).collect();
    let first = best.first()?;
    if !has_class && let Some(named) = traceback_of(all, first.name) {
        return Some(join([named.class, named.name, ""]));
    }
    let classes: BTreeSet<&str> = best.iter().map(|candidate| candidate.class).collect();
    let names: BTreeSet<(&str, &str)> = best.iter().map(|c| (c.name, c.suffix)).collect();
    match (classes.len(), names.len()) {
        (1, 1) => Some(join([first.class, plain(first.name), first.suffix])),
        // Several classes share the function.
        (_, 1) => Some(join(["", plain(first.name), first.suffix])),
        (1, _) if first.source != Source::Attribute => {
            let is_special = |name: &str| name.starts_with("__");
            let named = best.iter().find(|c| !is_special(c.name)).unwrap_or(first);
            Some(join([first.class, plain(named.name), ""]))
        }
        // An accessor that serves several attributes, or a function for unrelated purposes.
        _ => None,
    }
}

/// The traceback of a method, which has its class.
fn traceback_of<'a, 'b>(all: &'b [Candidate<'a>], name: &str) -> Option<&'b Candidate<'a>> {
    let last = all.last().filter(|last| last.source == Source::Traceback)?;
    (last.name == plain(name)).then_some(last)
}

fn join(parts: [&str; 3]) -> String {
    let mut name = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(part);
    }
    name
}

/// The name without the prefix by which Cython distinguishes the specializations of a function.
fn plain(name: &str) -> &str {
    let Some(mut rest) = name.strip_prefix("__pyx_fuse_") else { return name };
    loop {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.is_empty() || after.len() == rest.len() {
            return name;
        }
        match after.strip_prefix('_').filter(|next| next.starts_with(|c: char| c.is_ascii_digit()))
        {
            Some(next) => rest = next,
            None => return after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(candidates: &[(Source, &str, &str, &'static str)], expected: Option<&str>) {
        let candidates = candidates.iter();
        let candidates = candidates.map(|&(source, class, name, suffix)| Candidate {
            start: 1,
            source,
            class,
            name,
            suffix,
        });
        let chosen = choose(candidates.collect());
        assert_eq!(chosen.first().map(|(_, name)| &**name), expected);
    }

    #[test]
    fn function_has_one_name_and_no_misleading_class() {
        use Source::{Attribute, Method, Slot, Traceback};
        check(&[], None);
        check(&[(Method, "", "count", "")], Some("count"));
        check(&[(Method, "Table", "get", "")], Some("Table.get"));
        check(&[(Slot, "Table", "__len__", ""), (Method, "Table", "size", "")], Some("Table.size"));
        check(&[(Method, "", "get", ""), (Method, "Table", "get", "")], Some("Table.get"));
        check(&[(Method, "A", "get", ""), (Method, "B", "get", "")], Some("get"));
        check(&[(Method, "A", "__copy__", ""), (Method, "A", "copy", "")], Some("A.copy"));
        check(&[(Slot, "A", "__call__", ""), (Slot, "B", "__repr__", "")], None);
        check(&[(Method, "", "get", ""), (Traceback, "A", "get", "")], Some("A.get"));
        check(&[(Method, "", "get", ""), (Traceback, "A", "set", "")], Some("get"));
        check(&[(Traceback, "", "helper", "")], Some("helper"));
        check(&[(Attribute, "A", "x", "__get__")], Some("A.x.__get__"));
        check(&[(Attribute, "A", "x", "__get__"), (Attribute, "A", "y", "__get__")], None);
    }

    #[test]
    fn specializations_have_the_name_of_their_function() {
        for (name, expected) in [
            ("__pyx_fuse_0group_any", "group_any"),
            ("__pyx_fuse_12_3group_any", "group_any"),
            ("__pyx_fuse_0_group_any", "_group_any"),
            ("__pyx_fuse_0", "__pyx_fuse_0"),
            ("__pyx_fuse_x", "__pyx_fuse_x"),
            ("group_any", "group_any"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
