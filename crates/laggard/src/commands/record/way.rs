//! Selects the recording backend: the agent or perf.

use crate::cli::{BackendArg, ClockArg, RecordArgs, UnwindArg};
use crate::failure;
use laggard_probe::sample::PerfEvent;
use laggard_probe::{Refusal, can_carry_agent};

/// The backend, with the reason for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    Agent(String),
    Perf(String),
}

/// Selects the backend by the options. Fails if options exclude each other.
pub(super) fn choose(args: &RecordArgs) -> anyhow::Result<Way> {
    let for_perf = needs_perf(args);
    let for_agent = needs_agent(args);
    if let (Some(perf), Some(agent)) = (&for_perf, &for_agent) {
        return Err(failure::with_hint(
            format!("{perf}, but {agent}"),
            "remove one of these options: they cannot be combined".into(),
        ));
    }
    if let Some(why) = for_perf {
        return Ok(Way::Perf(why));
    }
    if let Some(why) = for_agent {
        return Ok(Way::Agent(why));
    }
    match can_carry_agent(&args.command) {
        Ok(()) => Ok(Way::Agent("it records Python frames and needs no privileges".into())),
        Err(
            why @ (Refusal::Static(_)
            | Refusal::OtherMachine(..)
            | Refusal::Go(_)
            | Refusal::Privileged(..)),
        ) if laggard_probe::perf::find().is_some() => Ok(Way::Perf(why.to_string())),
        Err(_) => Ok(Way::Agent("no other method is available".into())),
    }
}

/// The reason why an option requires perf, if one does.
fn needs_perf(args: &RecordArgs) -> Option<String> {
    if args.backend == BackendArg::Perf {
        return Some("--backend perf was given".into());
    }
    if args.pid.is_some() {
        return Some("the agent cannot be loaded into a running process".into());
    }
    match args.unwind {
        UnwindArg::Lbr => return Some("--unwind lbr requires perf".into()),
        UnwindArg::Fp => return Some("--unwind fp requires perf".into()),
        UnwindArg::Dwarf => return Some("--unwind dwarf requires perf".into()),
        UnwindArg::Auto | UnwindArg::Agent => {}
    }
    match &args.event[..] {
        [_, _, ..] => Some(format!("recording {} events requires perf", args.event.len())),
        [event] if PerfEvent::named(event).is_none() && args.backend == BackendArg::Auto => {
            Some(format!("the agent does not support the event {event}"))
        }
        _ => None,
    }
}

/// The reason why an option requires the agent, if one does.
fn needs_agent(args: &RecordArgs) -> Option<String> {
    let wishes = [
        (args.backend == BackendArg::Agent, "--backend agent was given"),
        (args.unwind == UnwindArg::Agent, "--unwind agent was given"),
        (args.clock == ClockArg::Wall, "--clock wall requires the agent"),
        (args.gil, "--gil requires the agent"),
        (args.overhead.is_some(), "--overhead requires the agent"),
    ];
    wishes.iter().find(|(asked, _)| *asked).map(|(_, why)| (*why).to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    fn way(words: &str) -> anyhow::Result<Way> {
        let cli = Cli::try_parse_from(["laggard", "record"].into_iter().chain(words.split(' ')));
        let Verb::Record(args) = cli.unwrap().verb else { panic!("not record") };
        choose(&args)
    }

    #[test]
    fn options_select_agent_or_perf() {
        for words in ["-- sh", "--event cycles -- sh", "--clock wall -- sh", "--gil -- sh"] {
            assert!(matches!(way(words), Ok(Way::Agent(_))), "{words}");
        }
        for words in [
            "--pid 1",
            "--backend perf -- sh",
            "--unwind lbr -- sh",
            "--unwind fp -- sh",
            "--event cycles --event instructions -- sh",
            "--event sched:sched_switch -- sh",
        ] {
            assert!(matches!(way(words), Ok(Way::Perf(_))), "{words}");
        }
        for words in
            ["--pid 1 --gil", "--backend perf --clock wall -- sh", "--unwind lbr --gil -- sh"]
        {
            assert!(way(words).is_err(), "{words}");
        }
    }
}
