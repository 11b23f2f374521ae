//! Checks whether laggard works on a machine, which settings make its timings noisy, and which
//! commands fix that.
//!
//! [`diagnose`] evaluates a [`Host`]; the other functions render the result. Each group of checks
//! is one file. Checks only interpret the values of the [`Host`] and do no I/O.

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

/// Severity of a finding, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// A laggard command does not work on this machine.
    Blocks,
    /// laggard works with less detail or more noise.
    Costs,
    /// The check could not be made.
    Unknown,
    /// No problem found.
    Fine,
}

impl Verdict {
    /// The word used in reports and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Blocks => "blocks",
            Verdict::Costs => "costs",
            Verdict::Unknown => "unknown",
            Verdict::Fine => "fine",
        }
    }
}

/// Topic of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Sampling of programs.
    Sampling,
    /// Python interpreters and the C compiler.
    Python,
    /// Hardware counters and counting tools.
    Counters,
    /// Settings and load that make timings vary between runs.
    Noise,
    /// Memory, disk space and limits.
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
            Group::Room => "Resources",
        }
    }

    /// The name in JSON and CSV.
    fn key(self) -> &'static str {
        match self {
            Group::Sampling => "sampling",
            Group::Python => "python",
            Group::Counters => "counters",
            Group::Noise => "noise",
            Group::Room => "room",
        }
    }
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Identifier for programs.
    pub id: &'static str,
    /// Its topic.
    pub group: Group,
    /// Name shown in reports.
    pub title: String,
    /// The value found, or why it could not be read.
    pub found: String,
    /// Its severity.
    pub verdict: Verdict,
    /// Consequence for the user; empty if there is none.
    pub cost: String,
    /// The fix, if one exists.
    pub fix: Option<Fix>,
}

/// Results of all checks of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// One-line summary.
    pub verdict: String,
    /// Grouped by topic, worst first within each group.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// The worst verdict. `Unknown` counts as `Fine`.
    pub fn worst(&self) -> Verdict {
        let bad = self.checks.iter().map(|check| check.verdict).min();
        bad.filter(|&verdict| verdict <= Verdict::Costs).unwrap_or(Verdict::Fine)
    }

    fn count(&self, verdict: Verdict) -> u64 {
        self.checks.iter().filter(|check| check.verdict == verdict).count() as u64
    }
}

/// Runs all checks.
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

/// Collects the findings of one group.
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

    /// Adds a finding with a consequence.
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

    /// The value if it is known. Otherwise adds an `Unknown` finding with the reason.
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
