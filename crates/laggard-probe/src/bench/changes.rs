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

    /// A warning for the side with this name.
    pub(super) fn warning(&self, side: &str) -> String {
        let Change { kind, variable, type_name, ratio } = self;
        let input = format!("{variable} ({type_name})");
        let ratio = if *ratio < 10.0 { format!("{ratio:.1}x") } else { format!("{ratio:.0}x") };
        let what = match kind.as_str() {
            "consumed" => format!(
                "side {side} consumes its input: {input} is at another position after the first call"
            ),
            "resized" => format!(
                "side {side} changes its input: the length of {input} changes with every call"
            ),
            "cache" => format!(
                "the first call of side {side} took {ratio} as long as the second and changed {input}, \
                 which may be a cache"
            ),
            _ => format!(
                "side {side} changes its input: a call with the original content of {input} takes \
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
            change.warning("B"),
            "side B changes its input: a call with the original content of x (list) takes 31x as \
             long as a call with the changed content; use --prepare to set x before every call"
        );
        assert_eq!(Change::read(|| texts.next()), None);
    }
}
