//! Short forms of function and kernel names for columns of limited width.
//!
//! A name that fits is unchanged. Otherwise the parts that a reader needs least are dropped: return
//! type, parameters, namespaces, template arguments. Kernels of known libraries are described by
//! operation, type and tile: `elementwise mul bf16`, `cutlass gemm 128x128x32 bf16 tn`.
//!
//! A wider column shows more details.
//!
//! The forms of a set are distinct: equal forms get the details that differ, or a hash of the name if
//! no readable detail differs.

mod cpp;
mod kernels;
mod meaning;
#[cfg(test)]
mod tests;

use crate::escape;
use meaning::Meaning;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// Minimum number of hexadecimal digits of a hash.
const HASH_DIGITS: usize = 4;
/// Maximum number of details that are tried to distinguish two names.
const MOST_ADDED: usize = 12;

/// The names of a report.
#[derive(Default)]
pub(crate) struct Names {
    entries: Vec<Entry>,
    /// Forms for each width that was used.
    forms: RefCell<FxHashMap<usize, Rc<FxHashMap<String, String>>>>,
}

struct Entry {
    name: String,
    /// The name without hidden characters.
    visible: String,
    columns: usize,
    /// Parsed only if the name does not fit.
    meaning: OnceCell<Meaning>,
}

impl Entry {
    fn new(name: &str) -> Entry {
        let visible = escape::visible(name);
        let columns = escape::columns(&visible);
        Entry { name: name.to_owned(), visible, columns, meaning: OnceCell::new() }
    }

    fn meaning(&self, width: usize) -> &Meaning {
        self.meaning.get_or_init(|| Meaning::parse(&self.visible)).at(width)
    }

    fn form(&self, width: usize) -> String {
        if self.columns <= width { self.visible.clone() } else { self.meaning(width).fit(width) }
    }

    /// The form with a hash of the name.
    fn marked(&self, width: usize, digits: usize) -> String {
        let hash = format!("{:016x}", fnv(&self.name));
        let mark = format!("#{}", &hash[..digits.min(hash.len())]);
        match width.checked_sub(mark.len() + 1) {
            Some(rest) if rest >= 4 => format!("{} {mark}", self.meaning(rest).fit(rest)),
            _ => mark,
        }
    }
}

impl Names {
    /// The set of `names`. Repeated names count once.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
        let mut known = FxHashSet::default();
        let entries =
            names.into_iter().filter(|name| known.insert(*name)).map(Entry::new).collect();
        Names { entries, forms: RefCell::default() }
    }

    /// The form of `name` with at most `width` columns. A name outside of the set is shortened alone.
    pub(crate) fn short(&self, name: &str, width: usize) -> String {
        let forms = self.forms_at(width);
        forms.get(name).cloned().unwrap_or_else(|| Entry::new(name).form(width))
    }

    fn forms_at(&self, width: usize) -> Rc<FxHashMap<String, String>> {
        let mut cached = self.forms.borrow_mut();
        Rc::clone(cached.entry(width).or_insert_with(|| {
            let names = self.entries.iter().map(|entry| entry.name.clone());
            Rc::new(names.zip(self.distinct(width)).collect())
        }))
    }

    /// Adds details to equal forms until they differ.
    fn add_details(&self, group: &[usize], width: usize, forms: &mut [String]) {
        let meaning = |i: usize| self.entries[i].meaning(width);
        let group: Vec<usize> =
            group.iter().copied().filter(|&i| self.entries[i].columns > width).collect();
        let different = different_details(&group.iter().map(|&i| meaning(i)).collect::<Vec<_>>());
        let mut needed: Vec<Vec<usize>> = vec![vec![]; group.len()];
        for round in 0..MOST_ADDED {
            let forms_of: Vec<String> = group.iter().map(|&i| forms[i].clone()).collect();
            let equal = equal(&forms_of);
            if equal.is_empty() {
                return;
            }
            for member in equal.into_iter().flatten() {
                let Some(&detail) = different[member].get(round) else { continue };
                needed[member].push(detail);
                match meaning(group[member]).fit_with(&needed[member], width) {
                    Some(form) => forms[group[member]] = form,
                    None => {
                        needed[member].pop();
                    }
                }
            }
        }
    }

    /// A form for each entry, all different.
    fn distinct(&self, width: usize) -> Vec<String> {
        let mut forms: Vec<String> = self.entries.iter().map(|entry| entry.form(width)).collect();
        // Details can make a form equal to one of another group.
        for _ in 0..2 {
            for group in equal(&forms) {
                self.add_details(&group, width, &mut forms);
            }
        }
        // A hash may equal another form, so it grows until all forms differ.
        for digits in HASH_DIGITS..=16 {
            for group in equal(&forms) {
                for i in group {
                    // A name that fits keeps its form; only one of the equal forms is such a name.
                    if self.entries[i].visible != forms[i] {
                        forms[i] = self.entries[i].marked(width, digits);
                    }
                }
            }
        }
        forms
    }
}

/// FNV-1a.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// The form of one name, without regard to other names.
pub(crate) fn short(name: &str, width: usize) -> String {
    Entry::new(name).form(width)
}

/// Positions of equal forms: one list for each form that occurs more than once.
fn equal(forms: &[String]) -> Vec<Vec<usize>> {
    let mut groups: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (i, form) in forms.iter().enumerate() {
        groups.entry(form).or_default().push(i);
    }
    let mut groups: Vec<Vec<usize>> =
        groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    groups
}

/// For each name, the positions of its details that not all names have.
fn different_details(group: &[&Meaning]) -> Vec<Vec<usize>> {
    let mut names_with: FxHashMap<&str, usize> = FxHashMap::default();
    for meaning in group {
        let details: FxHashSet<&str> = meaning.details().iter().map(String::as_str).collect();
        for detail in details {
            *names_with.entry(detail).or_default() += 1;
        }
    }
    let differs = |detail: &str| names_with.get(detail).is_none_or(|&with| with < group.len());
    let different = |meaning: &&Meaning| {
        let details = meaning.details().iter().enumerate();
        details.filter(|(_, detail)| differs(detail)).map(|(i, _)| i).collect()
    };
    group.iter().map(different).collect()
}
