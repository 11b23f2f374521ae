//! Classification of kernels by name, with rules in TOML, and peak rates of devices.
//!
//! A kernel gets the class of the first rule that matches its name, or [`Rules::other`] if none
//! does. The rules in `rules.toml` are built in. A user's rules file has the same format and is
//! tried first, so it can add classes and override built-in rules.

mod device;
mod rule;

#[cfg(test)]
mod tests;

pub use device::DevicePeak;

use crate::model::timeline::Activity;
use device::DeviceEntry;
use rule::{Name, Rule, RuleEntry};
use serde::Deserialize;
use std::sync::OnceLock;

const BUILTIN: &str = include_str!("rules.toml");

/// Index of a class in its [`Rules`]. User rules do not change the indexes of built-in classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u16);

/// A vendor-independent class of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, such as "Attention (Decode)".
    pub name: String,
    /// The group it belongs to, such as "Attention".
    pub group: String,
}

/// The active rules, in order of precedence.
#[derive(Clone, Debug)]
pub struct Rules {
    classes: Vec<Class>,
    rules: Vec<Rule>,
    devices: Vec<DevicePeak>,
    fingerprint: u64,
}

/// Error in a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// Invalid TOML or an unknown key.
    #[error("cannot parse line {line} of the rules file: {message}")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// Message of the TOML parser.
        message: String,
    },
    /// A rule without conditions.
    #[error(
        "rule {number} (class \"{class}\") has no condition and would match every kernel; add `any`, `all`, `prefix`, `head` or `activity`"
    )]
    NoCondition {
        /// Number of the entry in the file, from 1.
        number: usize,
        /// Class of the rule.
        class: String,
    },
    /// An empty string, which matches every name.
    #[error(
        "rule {number} (class \"{class}\") has an empty string in `{key}`, which matches every name"
    )]
    EmptyText {
        /// Number of the entry in the file, from 1.
        number: usize,
        /// Class of the rule.
        class: String,
        /// Key of the list.
        key: &'static str,
    },
    /// A rule without a class name.
    #[error("rule {number} has an empty `class`; set a class name")]
    NoClass {
        /// Number of the entry in the file, from 1.
        number: usize,
    },
    /// An invalid value.
    #[error(
        "rule {number} (class \"{class}\") has an invalid `{key} = \"{value}\"`; valid values are {allowed}"
    )]
    UnknownWord {
        /// Number of the entry in the file, from 1.
        number: usize,
        /// Class of the rule.
        class: String,
        /// The key.
        key: &'static str,
        /// The invalid value.
        value: String,
        /// The valid values.
        allowed: &'static str,
    },
    /// A class with two different groups.
    #[error(
        "rule {number} puts class \"{class}\" into group \"{group}\", but the class already belongs to group \"{known}\""
    )]
    TwoGroups {
        /// Number of the entry in the file, from 1.
        number: usize,
        /// Class of the rule.
        class: String,
        /// Group in the rule.
        group: String,
        /// Group of the existing class.
        known: String,
    },
    /// Too many classes.
    #[error("rule {number} (class \"{class}\") exceeds the limit of {limit} classes", limit = u16::MAX)]
    TooManyClasses {
        /// Number of the entry in the file, from 1.
        number: usize,
        /// Class of the rule.
        class: String,
    },
    /// An invalid device entry.
    #[error("device {number} (\"{name}\") {problem}")]
    Device {
        /// Number of the entry in the file, from 1.
        number: usize,
        /// Name of the device.
        name: String,
        /// Description of the problem.
        problem: &'static str,
    },
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "rule")]
    rules: Vec<RuleEntry>,
    #[serde(default, rename = "device")]
    devices: Vec<DeviceEntry>,
}

impl Rules {
    /// The built-in rules.
    pub fn builtin() -> &'static Rules {
        static RULES: OnceLock<Rules> = OnceLock::new();
        RULES.get_or_init(|| {
            let mut rules = Rules::empty();
            let added = rules.add(BUILTIN);
            debug_assert!(added.is_ok(), "{added:?}");
            rules
        })
    }

    /// The built-in rules with user rules in front.
    pub fn with_user(toml: &str) -> Result<Rules, RulesError> {
        let mut rules = Rules::builtin().clone();
        rules.add(toml)?;
        Ok(rules)
    }

    /// The class of a device operation.
    pub fn classify(&self, name: &str, activity: Activity) -> ClassId {
        let name = Name::new(name);
        let found = self.rules.iter().find(|rule| rule.holds(&name, activity));
        found.map_or(self.other(), |rule| rule.class)
    }

    /// The class with this index; [`Rules::other`] if the index is unknown.
    pub fn class(&self, id: ClassId) -> &Class {
        self.classes.get(usize::from(id.0)).unwrap_or(&self.classes[0])
    }

    /// All classes by index.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The class with this name.
    pub fn find(&self, name: &str) -> Option<ClassId> {
        self.classes.iter().position(|class| class.name == name).map(|n| ClassId(n as u16))
    }

    /// The class of kernels that no rule matches.
    pub fn other(&self) -> ClassId {
        ClassId(0)
    }

    /// Whether a class is communication between devices.
    pub fn is_communication(&self, id: ClassId) -> bool {
        self.class(id).group == "Communication"
    }

    /// Hash of the text of the rules. Stored results with another fingerprint are stale.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Peak rates of a device, by its name, or by its size if the driver reports no name.
    pub fn device(&self, name: &str, sms: i64, memory_bytes: i64) -> Option<&DevicePeak> {
        device::find(&self.devices, name, sms, memory_bytes)
    }

    fn empty() -> Rules {
        let other = Class { name: "Other".into(), group: "Other".into() };
        Rules {
            classes: vec![other],
            rules: Vec::new(),
            devices: Vec::new(),
            fingerprint: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Parses rules and puts them in front of the existing ones.
    fn add(&mut self, text: &str) -> Result<(), RulesError> {
        let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        let mut rules = Vec::with_capacity(file.rules.len() + self.rules.len());
        for (number, entry) in (1..).zip(file.rules) {
            let class = self.class_for(number, &entry)?;
            rules.push(entry.rule(number, class)?);
        }
        let mut devices = Vec::with_capacity(file.devices.len() + self.devices.len());
        for (number, entry) in (1..).zip(file.devices) {
            devices.push(entry.peak(number)?);
        }
        rules.append(&mut self.rules);
        devices.append(&mut self.devices);
        self.rules = rules;
        self.devices = devices;

        self.fingerprint = fnv1a(self.fingerprint, text.as_bytes());
        Ok(())
    }

    /// The class of a rule, added if it is new. A new class without a group forms its own group.
    fn class_for(&mut self, number: usize, entry: &RuleEntry) -> Result<ClassId, RulesError> {
        let name = entry.class.trim();
        if name.is_empty() {
            return Err(RulesError::NoClass { number });
        }
        if let Some(id) = self.find(name) {
            let known = &self.class(id).group;
            return match &entry.group {
                Some(group) if group != known => Err(RulesError::TwoGroups {
                    number,
                    class: name.into(),
                    group: group.clone(),
                    known: known.clone(),
                }),
                _ => Ok(id),
            };
        }
        let id = u16::try_from(self.classes.len())
            .ok()
            .filter(|id| *id < u16::MAX)
            .ok_or_else(|| RulesError::TooManyClasses { number, class: name.into() })?;
        let group = entry.group.clone().unwrap_or_else(|| name.into());
        self.classes.push(Class { name: name.into(), group });
        Ok(ClassId(id))
    }
}

fn syntax(text: &str, error: &toml::de::Error) -> RulesError {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
    RulesError::Syntax { line, message: error.message().replace('\n', " ") }
}

/// FNV-1a. Stored results need a hash that does not depend on machine or compiler.
fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
