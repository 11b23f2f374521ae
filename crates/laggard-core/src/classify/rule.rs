//! A classification rule, and the variants of a kernel name that its conditions are matched
//! against.

use super::{ClassId, RulesError};
use crate::model::timeline::Activity;
use serde::Deserialize;

/// A rule as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleEntry {
    pub(super) class: String,
    pub(super) group: Option<String>,
    #[serde(default)]
    any: Vec<String>,
    #[serde(default)]
    all: Vec<String>,
    #[serde(default)]
    none: Vec<String>,
    #[serde(default)]
    prefix: Vec<String>,
    #[serde(default)]
    head: Vec<String>,
    case: Option<String>,
    activity: Option<String>,
}

/// A validated rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) class: ClassId,
    any: Vec<String>,
    all: Vec<String>,
    none: Vec<String>,
    prefix: Vec<String>,
    head: Vec<String>,
    sensitive: bool,
    /// Empty matches all activities.
    activities: Vec<Activity>,
}

impl RuleEntry {
    /// Validates the entry.
    pub(super) fn rule(self, number: usize, class: ClassId) -> Result<Rule, RulesError> {
        let name = self.class.trim().to_string();
        let unknown = |key, value: &str, allowed| RulesError::UnknownWord {
            number,
            class: name.clone(),
            key,
            value: value.into(),
            allowed,
        };
        let sensitive = match self.case.as_deref() {
            None | Some("insensitive") => false,
            Some("sensitive") => true,
            Some(other) => return Err(unknown("case", other, "\"sensitive\" and \"insensitive\"")),
        };
        let mut activities = Vec::new();
        for word in self.activity.iter().flat_map(|text| text.split('|')) {
            activities.push(match word.trim() {
                "kernel" => Activity::Kernel,
                "copy" => Activity::Copy,
                "fill" => Activity::Fill,
                "device" => Activity::Device,
                other => {
                    return Err(unknown(
                        "activity",
                        other,
                        "\"kernel\", \"copy\", \"fill\" and \"device\"",
                    ));
                }
            });
        }
        let lists = [
            ("any", &self.any),
            ("all", &self.all),
            ("prefix", &self.prefix),
            ("head", &self.head),
        ];
        if activities.is_empty() && lists.iter().all(|(_, list)| list.is_empty()) {
            return Err(RulesError::NoCondition { number, class: name });
        }
        for (key, list) in lists.into_iter().chain([("none", &self.none)]) {
            if list.iter().any(String::is_empty) {
                return Err(RulesError::EmptyText { number, class: name, key });
            }
        }
        let texts = |list: Vec<String>| -> Vec<String> {
            if sensitive { list } else { list.iter().map(|text| text.to_lowercase()).collect() }
        };
        Ok(Rule {
            class,
            any: texts(self.any),
            all: texts(self.all),
            none: texts(self.none),
            prefix: texts(self.prefix),
            head: texts(self.head),
            sensitive,
            activities,
        })
    }
}

impl Rule {
    /// Whether all conditions are met.
    pub(super) fn holds(&self, name: &Name<'_>, activity: Activity) -> bool {
        let (whole, head) = if self.sensitive {
            (name.whole, name.head.as_str())
        } else {
            (&*name.lower, &*name.lower_head)
        };
        (self.activities.is_empty() || self.activities.contains(&activity))
            && (self.any.is_empty() || self.any.iter().any(|text| whole.contains(text)))
            && (self.head.is_empty() || self.head.iter().any(|text| head.contains(text)))
            && (self.prefix.is_empty()
                || self.prefix.iter().any(|text| whole.starts_with(text) || head.starts_with(text)))
            && self.all.iter().all(|text| whole.contains(text))
            && !self.none.iter().any(|text| whole.contains(text))
    }
}

/// A kernel name in the variants that rules are matched against.
pub(super) struct Name<'a> {
    whole: &'a str,
    lower: String,
    head: String,
    lower_head: String,
}

impl<'a> Name<'a> {
    pub(super) fn new(whole: &'a str) -> Name<'a> {
        let head = head(whole);
        Name { whole, lower: whole.to_lowercase(), lower_head: head.to_lowercase(), head }
    }
}

/// The function name without return type, template arguments and parameters. Names that are not C++
/// signatures are returned unchanged.
fn head(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "");
    let mut head = String::new();
    let mut open = Vec::new();
    for c in name.chars() {
        match c {
            '(' if open.is_empty() && !head.is_empty() => break,
            '<' | '(' => open.push(c),
            '>' if open.last() == Some(&'<') => drop(open.pop()),
            ')' if open.last() == Some(&'(') => drop(open.pop()),
            ' ' if open.is_empty() => head.clear(),
            _ if open.is_empty() => head.push(c),
            _ => {}
        }
    }
    if head.is_empty() { name } else { head }
}

#[cfg(test)]
mod tests {
    use super::head;

    #[test]
    fn head_is_the_plain_function_name() {
        let check = |name, expected: &str| assert_eq!(head(name), expected, "{name}");
        check("triton_poi_fused_add_0", "triton_poi_fused_add_0");
        check("void foo<float, (Kind)2>(float const*, Bar<int>)", "foo");
        check("void at::native::(anonymous namespace)::cat<T>(T*)", "at::native::cat");
        check(
            "std::enable_if<(((8)>(0)))&&a::b<c>::exists, void>::type vllm::norm<c, 8>(c*, long)",
            "vllm::norm",
        );
        check("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)");
        check("", "");
    }
}
