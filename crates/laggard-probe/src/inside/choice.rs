//! Which means counts calls inside a library here, and why.

use super::{Options, Way, callgrind, uprobes};
use crate::error::Error;
use std::ffi::OsString;

/// What decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Whether valgrind is there; if not, why.
    pub callgrind: Result<(), String>,
    /// Whether the kernel lets us set probes; if not, why.
    pub uprobes: Result<(), String>,
    /// Functions that fit the patterns and can be probed fast, and those that are slow; none when
    /// that cannot be known before the program runs, with the reason.
    pub functions: Result<(usize, usize), String>,
}

/// A means, and the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The means.
    pub way: Way,
    /// Why this one.
    pub why: String,
}

impl Situation {
    /// Looks at this machine and the program's files. Starts nothing but the dynamic linker, to
    /// list libraries.
    pub fn look(command: &[OsString], options: &Options) -> Situation {
        let uprobes = uprobes::is_available();
        let functions = match &uprobes {
            Ok(()) => uprobes::targets(command, options)
                .map(|targets| {
                    let slow = targets.iter().filter(|target| !target.is_fast).count();
                    (targets.len() - slow, slow)
                })
                .map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        Situation { callgrind: callgrind::is_available(), uprobes, functions }
    }
}

/// Picks a means: what was asked for; else uprobes, which keep the program as it is, where they
/// can say what is wanted; else callgrind.
pub fn choose(options: &Options, situation: &Situation) -> Result<Choice, Error> {
    let chosen = |way, why: String| Ok(Choice { way, why });
    let obstacle = against_uprobes(options, situation);
    match (options.way, obstacle, &situation.callgrind) {
        (Some(Way::Callgrind), _, Ok(())) => {
            chosen(Way::Callgrind, "callgrind, as was asked for".into())
        }
        (Some(Way::Callgrind), _, Err(_)) => {
            Err(Error::NoTool { tool: "valgrind", package: "valgrind" })
        }
        (Some(Way::Uprobes), _, _) => match &situation.uprobes {
            Ok(()) => chosen(Way::Uprobes, "uprobes, as was asked for".into()),
            Err(why) => Err(Error::Unavailable { what: "uprobes", why: why.clone() }),
        },
        (None, None, _) => chosen(
            Way::Uprobes,
            "uprobes: the program runs as it is, and nobody asked who calls".into(),
        ),
        (None, Some(obstacle), Ok(())) => {
            chosen(Way::Callgrind, format!("callgrind, because {obstacle}"))
        }
        (None, Some(obstacle), Err(why)) => Err(Error::Unavailable {
            what: "counting inside a library",
            why: format!("{why}, and {obstacle}"),
        }),
    }
}

/// What speaks against uprobes, if anything.
fn against_uprobes(options: &Options, situation: &Situation) -> Option<String> {
    if let Err(why) = &situation.uprobes {
        return Some(format!("uprobes cannot be used here: {why}"));
    }
    if options.callers || !options.from.is_empty() {
        return Some("uprobes do not say who calls".into());
    }
    let most = options.most_probes;
    match &situation.functions {
        Err(why) => Some(format!("functions to probe were not found: {why}")),
        Ok((0, 0)) => Some("no function fits".into()),
        Ok((fast, slow)) if fast + slow > most => {
            Some(format!("{} functions fit, more than the {most} that may be probed", fast + slow))
        }
        Ok((_, slow)) if *slow > 0 && !options.slow_probes => Some(format!(
            "{slow} of the functions start with an instruction that the kernel must step over, at \
             about 20 µs a call"
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn situation(callgrind: bool, uprobes: bool, functions: (usize, usize)) -> Situation {
        Situation {
            callgrind: callgrind.then_some(()).ok_or_else(|| "no valgrind".into()),
            uprobes: uprobes.then_some(()).ok_or_else(|| "no rights".into()),
            functions: Ok(functions),
        }
    }

    #[test]
    fn the_reason_is_said() {
        let counts = Options { callers: false, ..Options::default() };
        let check = |options: &Options, situation: &Situation, way, part: &str| {
            let choice = choose(options, situation).unwrap();
            assert_eq!(choice.way, way, "{}", choice.why);
            assert!(choice.why.contains(part), "{}", choice.why);
        };
        let all = situation(true, true, (3, 0));
        check(&counts, &all, Way::Uprobes, "runs as it is");
        check(&Options::default(), &all, Way::Callgrind, "who calls");
        let from = Options { from: vec!["numpy".into()], ..counts.clone() };
        check(&from, &all, Way::Callgrind, "who calls");
        check(&counts, &situation(true, false, (3, 0)), Way::Callgrind, "no rights");
        check(&counts, &situation(true, true, (3, 1)), Way::Callgrind, "1 of the functions");
        check(&counts, &situation(true, true, (201, 0)), Way::Callgrind, "201 functions");
        check(&counts, &situation(true, true, (0, 0)), Way::Callgrind, "no function fits");
        let slow = Options { slow_probes: true, ..counts };
        check(&slow, &situation(true, true, (3, 1)), Way::Uprobes, "");
        let asked = Options { way: Some(Way::Uprobes), ..Options::default() };
        check(&asked, &situation(true, true, (0, 900)), Way::Uprobes, "asked");
    }

    #[test]
    fn what_is_missing_is_said() {
        let message = |options: &Options, situation: &Situation| {
            choose(options, situation).unwrap_err().to_string()
        };
        let none = situation(false, false, (1, 0));
        assert_eq!(
            message(&Options::default(), &none),
            "counting inside a library cannot be used here: no valgrind, and uprobes cannot be \
             used here: no rights"
        );
        let asked = |way| Options { way: Some(way), ..Options::default() };
        assert_eq!(
            message(&asked(Way::Callgrind), &none),
            "there is no valgrind here: install the package valgrind"
        );
        assert_eq!(message(&asked(Way::Uprobes), &none), "uprobes cannot be used here: no rights");
    }
}
