//! Selects the method of counting calls inside a library, with the reason.

use super::{Options, Way, callgrind, uprobes};
use crate::error::Error;
use std::ffi::OsString;

/// The conditions that decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Whether valgrind is installed; if not, the reason.
    pub callgrind: Result<(), String>,
    /// Whether the kernel allows uprobes; if not, the reason.
    pub uprobes: Result<(), String>,
    /// Numbers of matching functions that are fast and slow to probe; an error gives the reason why
    /// they are not known before the program runs.
    pub functions: Result<(usize, usize), String>,
}

/// A method, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The method.
    pub way: Way,
    /// The reason.
    pub why: String,
}

impl Situation {
    /// Inspects this machine and the files of the program. Runs only the dynamic linker, to list
    /// libraries.
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

/// Selects a method: the requested one; otherwise uprobes, which leave the program unchanged, if
/// they provide what is requested; otherwise callgrind.
pub fn choose(options: &Options, situation: &Situation) -> Result<Choice, Error> {
    let chosen = |way, why: String| Ok(Choice { way, why });
    let obstacle = against_uprobes(options, situation);
    match (options.way, obstacle, &situation.callgrind) {
        (Some(Way::Callgrind), _, Ok(())) => {
            chosen(Way::Callgrind, "callgrind, as requested".into())
        }
        (Some(Way::Callgrind), _, Err(_)) => {
            Err(Error::NoTool { tool: "valgrind", package: "valgrind" })
        }
        (Some(Way::Uprobes), _, _) => match &situation.uprobes {
            Ok(()) => chosen(Way::Uprobes, "uprobes, as requested".into()),
            Err(why) => Err(Error::Unavailable { what: "uprobes", why: why.clone() }),
        },
        (None, None, _) => chosen(
            Way::Uprobes,
            "uprobes: the program runs at full speed, and callers were not requested".into(),
        ),
        (None, Some(obstacle), Ok(())) => {
            chosen(Way::Callgrind, format!("callgrind, because {obstacle}"))
        }
        (None, Some(obstacle), Err(why)) => Err(Error::Unavailable {
            what: "callgrind or uprobes",
            why: format!("{why}, and {obstacle}"),
        }),
    }
}

/// The reason not to use uprobes, if any.
fn against_uprobes(options: &Options, situation: &Situation) -> Option<String> {
    if let Err(why) = &situation.uprobes {
        return Some(format!("uprobes are not available: {why}"));
    }
    if options.callers || !options.from.is_empty() {
        return Some("uprobes do not report callers".into());
    }
    let most = options.most_probes;
    match &situation.functions {
        Err(why) => Some(format!("no function to probe was found: {why}")),
        Ok((0, 0)) => Some("no function matches".into()),
        Ok((fast, slow)) if fast + slow > most => Some(format!(
            "{} functions match, more than the {most} that can be probed",
            fast + slow
        )),
        Ok((_, slow)) if *slow > 0 && !options.slow_probes => Some(format!(
            "the kernel must single-step the first instruction of {slow} of the functions, at about \
             20 µs per call"
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
    fn the_choice_includes_its_reason() {
        let counts = Options { callers: false, ..Options::default() };
        let check = |options: &Options, situation: &Situation, way, part: &str| {
            let choice = choose(options, situation).unwrap();
            assert_eq!(choice.way, way, "{}", choice.why);
            assert!(choice.why.contains(part), "{}", choice.why);
        };
        let all = situation(true, true, (3, 0));
        check(&counts, &all, Way::Uprobes, "full speed");
        check(&Options::default(), &all, Way::Callgrind, "do not report callers");
        let from = Options { from: vec!["numpy".into()], ..counts.clone() };
        check(&from, &all, Way::Callgrind, "do not report callers");
        check(&counts, &situation(true, false, (3, 0)), Way::Callgrind, "no rights");
        check(&counts, &situation(true, true, (3, 1)), Way::Callgrind, "1 of the functions");
        check(&counts, &situation(true, true, (201, 0)), Way::Callgrind, "201 functions");
        check(&counts, &situation(true, true, (0, 0)), Way::Callgrind, "no function matches");
        let slow = Options { slow_probes: true, ..counts };
        check(&slow, &situation(true, true, (3, 1)), Way::Uprobes, "");
        let asked = Options { way: Some(Way::Uprobes), ..Options::default() };
        check(&asked, &situation(true, true, (0, 900)), Way::Uprobes, "requested");
    }

    #[test]
    fn missing_requirements_are_reported() {
        let message = |options: &Options, situation: &Situation| {
            choose(options, situation).unwrap_err().to_string()
        };
        let none = situation(false, false, (1, 0));
        assert_eq!(
            message(&Options::default(), &none),
            "cannot use callgrind or uprobes: no valgrind, and uprobes are not available: no rights"
        );
        let asked = |way| Options { way: Some(way), ..Options::default() };
        assert_eq!(
            message(&asked(Way::Callgrind), &none),
            "valgrind is not installed: install the package valgrind"
        );
        assert_eq!(message(&asked(Way::Uprobes), &none), "cannot use uprobes: no rights");
    }
}
