//! What a machine allows, what makes its timings noisy, and the exact fix.
//!
//! [`diagnose`] judges a [`Host`]; the rest shows the result. Each group of checks is one file that
//! turns values into findings and reads nothing.

mod counters;
mod fix;
mod json;
mod noise;
mod python;
mod room;
mod sampling;
mod show;
#[cfg(test)]
mod tests;
mod verdict;

pub use fix::Fix;
pub use json::json;
pub use show::{csv, markdown, text};

use fix::Site;
use laggard_core::model::host::{Host, Known};

/// How much a finding matters, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Something that laggard does cannot be done here.
    Blocks,
    /// It can be done, with less in it or more noise.
    Costs,
    /// It could not be found out.
    Unknown,
    /// As it should be.
    Fine,
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Blocks => "blocks",
            Verdict::Costs => "costs",
            Verdict::Unknown => "unknown",
            Verdict::Fine => "fine",
        }
    }
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// How programs can be sampled.
    Sampling,
    /// Interpreters and what builds their extensions.
    Python,
    /// What can be counted.
    Counters,
    /// What makes timings differ from run to run.
    Noise,
    /// What laggard needs space of.
    Room,
}

impl Group {
    const ALL: [Group; 5] =
        [Group::Sampling, Group::Python, Group::Counters, Group::Noise, Group::Room];

    fn title(self) -> &'static str {
        match self {
            Group::Sampling => "Sampling",
            Group::Python => "Python",
            Group::Counters => "Counters",
            Group::Noise => "Noise",
            Group::Room => "Room",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name for programs.
    pub id: &'static str,
    /// What it is about.
    pub group: Group,
    /// Its name for people.
    pub title: String,
    /// What was found, or why nothing was.
    pub found: String,
    /// How much it matters.
    pub verdict: Verdict,
    /// What it costs the user, empty when nothing.
    pub cost: String,
    /// What helps, where something does.
    pub fix: Option<Fix>,
}

/// All findings about a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The most important in one line.
    pub verdict: String,
    /// By group, and the worst first in each.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// The worst that was found. What is not known is not bad.
    pub fn worst(&self) -> Verdict {
        let bad = self.checks.iter().map(|check| check.verdict).min();
        bad.filter(|&verdict| verdict <= Verdict::Costs).unwrap_or(Verdict::Fine)
    }

    fn count(&self, verdict: Verdict) -> u64 {
        self.checks.iter().filter(|check| check.verdict == verdict).count() as u64
    }
}

/// Judges a machine.
pub fn diagnose(host: &Host) -> Diagnosis {
    let site = Site::of(host);
    let mut checks = vec![];
    checks.extend(sampling::checks(&site));
    checks.extend(python::checks(&site));
    checks.extend(counters::checks(&site));
    checks.extend(noise::checks(&site));
    checks.extend(room::checks(&site));
    checks.sort_by_key(|check| {
        (Group::ALL.iter().position(|group| *group == check.group), check.verdict)
    });
    Diagnosis { verdict: verdict::line(&site, &checks), checks }
}

/// Findings of one group, made one after the other.
struct Findings {
    group: Group,
    checks: Vec<Check>,
}

impl Findings {
    fn new(group: Group) -> Findings {
        Findings { group, checks: vec![] }
    }

    fn push(&mut self, id: &'static str, title: &str, verdict: Verdict, found: impl Into<String>) {
        self.checks.push(Check {
            id,
            group: self.group,
            title: title.to_owned(),
            found: found.into(),
            verdict,
            cost: String::new(),
            fix: None,
        });
    }

    fn fine(&mut self, id: &'static str, title: &str, found: impl Into<String>) {
        self.push(id, title, Verdict::Fine, found);
    }

    fn unknown(&mut self, id: &'static str, title: &str, why: &str) {
        self.push(id, title, Verdict::Unknown, why);
    }

    /// Something that costs or blocks, and what it does.
    fn bad(
        &mut self,
        id: &'static str,
        title: &str,
        verdict: Verdict,
        found: impl Into<String>,
        cost: impl Into<String>,
        fix: Option<Fix>,
    ) {
        self.push(id, title, verdict, found);
        if let Some(check) = self.checks.last_mut() {
            check.cost = cost.into();
            check.fix = fix;
        }
    }

    fn costs(
        &mut self,
        id: &'static str,
        title: &str,
        found: impl Into<String>,
        cost: impl Into<String>,
        fix: Option<Fix>,
    ) {
        self.bad(id, title, Verdict::Costs, found, cost, fix);
    }

    /// The value, where it is known; else the reason is a finding.
    fn value<'a, T>(
        &mut self,
        id: &'static str,
        title: &str,
        known: &'a Known<T>,
    ) -> Option<&'a T> {
        if let Some(why) = known.why() {
            self.unknown(id, title, why);
        }
        known.get()
    }
}
