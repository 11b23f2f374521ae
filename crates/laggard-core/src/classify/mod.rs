//! Kernel names to operation classes, by rules in TOML, and peak rates of devices.
//!
//! You give a kernel's name, you get the class of the first rule that holds; a name no rule knows
//! is [`Rules::other`]. The rules of `rules.toml` are built in. A user's file of the same form is
//! tried before them, so it can both add classes and overrule.

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

/// Number of a class within its [`Rules`]. Built-in classes keep their numbers when a user's
/// rules are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u16);

/// A kind of operation that kernels of different vendors have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, "Attention (Decode)".
    pub name: String,
    /// The coarse type it counts to, "Attention".
    pub group: String,
}

/// The rules in force, in the order they are tried.
#[derive(Clone, Debug)]
pub struct Rules {
    classes: Vec<Class>,
    rules: Vec<Rule>,
    devices: Vec<DevicePeak>,
    fingerprint: u64,
}

/// Why a rules file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// Not TOML, or a key that rules do not have.
    #[error("line {line} of the rules file cannot be read: {message}")]
    Syntax {
        /// Where, from 1.
        line: usize,
        /// What the TOML reader says.
        message: String,
    },
    /// A rule that holds for everything.
    #[error(
        "rule {number} (class \"{class}\") has no condition, so it would catch every kernel; give it `any`, `all`, `prefix`, `head` or `activity`"
    )]
    NoCondition {
        /// Place in the file, from 1.
        number: usize,
        /// The rule's class.
        class: String,
    },
    /// A text that is in every name.
    #[error(
        "rule {number} (class \"{class}\") has an empty text in `{key}`, which is part of every name"
    )]
    EmptyText {
        /// Place in the file, from 1.
        number: usize,
        /// The rule's class.
        class: String,
        /// The list it stands in.
        key: &'static str,
    },
    /// A rule without a class name.
    #[error("rule {number} has an empty `class`; name the class it gives")]
    NoClass {
        /// Place in the file, from 1.
        number: usize,
    },
    /// A word that the key does not know.
    #[error(
        "rule {number} (class \"{class}\") has `{key} = \"{value}\"`, where only {allowed} are known"
    )]
    UnknownWord {
        /// Place in the file, from 1.
        number: usize,
        /// The rule's class.
        class: String,
        /// The key.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What may.
        allowed: &'static str,
    },
    /// Two groups for one class.
    #[error(
        "rule {number} puts class \"{class}\" into group \"{group}\", but the class already belongs to \"{known}\""
    )]
    TwoGroups {
        /// Place in the file, from 1.
        number: usize,
        /// The rule's class.
        class: String,
        /// The group it asks for.
        group: String,
        /// The group it has.
        known: String,
    },
    /// More classes than can be numbered.
    #[error("rule {number} (class \"{class}\") is one class too many; there can be {limit}", limit = u16::MAX)]
    TooManyClasses {
        /// Place in the file, from 1.
        number: usize,
        /// The rule's class.
        class: String,
    },
    /// A device entry that matches nothing or says nothing.
    #[error("device {number} (\"{name}\") {problem}")]
    Device {
        /// Place in the file, from 1.
        number: usize,
        /// The device's name.
        name: String,
        /// What is wrong with it.
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
    /// The rules that come with laggard.
    pub fn builtin() -> &'static Rules {
        static RULES: OnceLock<Rules> = OnceLock::new();
        RULES.get_or_init(|| {
            let mut rules = Rules::empty();
            let added = rules.add(BUILTIN);
            debug_assert!(added.is_ok(), "{added:?}");
            rules
        })
    }

    /// The built-in rules with a user's before them.
    pub fn with_user(toml: &str) -> Result<Rules, RulesError> {
        let mut rules = Rules::builtin().clone();
        rules.add(toml)?;
        Ok(rules)
    }

    /// The class of a kernel or other device activity.
    pub fn classify(&self, name: &str, activity: Activity) -> ClassId {
        let name = Name::new(name);
        let found = self.rules.iter().find(|rule| rule.holds(&name, activity));
        found.map_or(self.other(), |rule| rule.class)
    }

    /// What a number stands for; an unknown number is [`Rules::other`].
    pub fn class(&self, id: ClassId) -> &Class {
        self.classes.get(usize::from(id.0)).unwrap_or(&self.classes[0])
    }

    /// All classes, in order of their numbers.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The number of the class with this name.
    pub fn find(&self, name: &str) -> Option<ClassId> {
        self.classes.iter().position(|class| class.name == name).map(|n| ClassId(n as u16))
    }

    /// The class of what no rule caught.
    pub fn other(&self) -> ClassId {
        ClassId(0)
    }

    /// Whether a class moves data between devices, so that it can overlap with computation.
    pub fn is_communication(&self, id: ClassId) -> bool {
        self.class(id).group == "Communication"
    }

    /// Changes whenever the text of the rules does; stored results of other rules are stale.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Peak rates of a device, by its name, or by its size when the driver left the name open.
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

    /// Puts the rules of a text before those already there.
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

    /// The number of a rule's class, new or known. A new class without a group is its own group.
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

/// A hash that stays the same on every machine and with every compiler, as stored results need.
fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
