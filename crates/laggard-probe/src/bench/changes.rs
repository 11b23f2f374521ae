//! Statements that change their own input: texts for what the worker detects (`changes.py`).

/// A variable that a call changes so that later calls do other work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    kind: String,
    variable: String,
    type_name: String,
    /// Time of a call with the original content, relative to a call with the changed content.
    ratio: f64,
}

impl Change {
    /// Reads the next change from texts of the worker.
    pub(super) fn read(mut text: impl FnMut() -> Option<String>) -> Option<Change> {
        let (kind, variable, type_name) = (text()?, text()?, text()?);
        Some(Change { kind, variable, type_name, ratio: text()?.parse().ok()? })
    }

    /// A remark, worded to follow the name of the side.
    pub(super) fn text(&self) -> String {
        let Change { kind, variable, type_name, ratio } = self;
        let input = format!("{variable} ({type_name})");
        let ratio = if *ratio < 10.0 { format!("{ratio:.1}x") } else { format!("{ratio:.0}x") };
        let what = match kind.as_str() {
            "consumed" => {
                format!("consumes its input: {input} is at another position after the first call")
            }
            "resized" => {
                format!("changes its input: the length of {input} changes with every call")
            }
            "cache" => format!(
                "took {ratio} as long in its first call as in its second and changed {input}, which may \
                 be a cache"
            ),
            _ => format!(
                "changes its input: a call with the original content of {input} takes \
                 {ratio} as long as a call with the changed content"
            ),
        };
        format!("{what}; use --prepare to set {variable} before every call")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_the_variable_and_the_remedy() {
        let texts = ["changed", "x", "list", "31.42"].map(str::to_owned);
        let mut texts = texts.into_iter();
        let change = Change::read(|| texts.next()).expect("four texts");
        assert_eq!(
            change.text(),
            "changes its input: a call with the original content of x (list) takes 31x as \
             long as a call with the changed content; use --prepare to set x before every call"
        );
        assert_eq!(Change::read(|| texts.next()), None);
    }
}
