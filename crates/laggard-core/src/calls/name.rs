//! Name patterns of filters.

/// A name pattern. If an exact name exists, only it matches. Otherwise a pattern with `*` or `?` must
/// match the whole name, and other text matches as a substring, ignoring case.
pub(crate) struct Asked<'a> {
    text: &'a str,
    is_exact: bool,
}

impl<'a> Asked<'a> {
    pub(crate) fn new<'n>(text: &'a str, names: impl IntoIterator<Item = &'n str>) -> Asked<'a> {
        Asked { text, is_exact: names.into_iter().any(|name| name == text) }
    }

    pub(crate) fn fits(&self, name: &str) -> bool {
        if self.is_exact {
            name == self.text
        } else if self.text.contains(['*', '?']) {
            glob(self.text, name)
        } else {
            contains(name, self.text)
        }
    }
}

/// Whether a name contains a substring, ignoring case.
pub(super) fn contains(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

/// Whether a pattern matches a whole text. `*` matches any text, `?` any character.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                // Backtrack: the last star consumes one more character.
                Some((at, from)) => {
                    (p, t) = (at + 1, from + 1);
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_name_matches_only_itself() {
        let names = ["dgemm_", "dgemm_thread"];
        let check = |asked: &str, expected: &[&str]| {
            let asked = Asked::new(asked, names);
            let found: Vec<&str> = names.into_iter().filter(|name| asked.fits(name)).collect();
            assert_eq!(found, expected);
        };
        check("dgemm_", &["dgemm_"]);
        check("DGEMM", &names);
        check("d*m_", &["dgemm_"]);
        check("?gemm_*", &names);
        check("*x", &[]);
    }
}
