//! Which way a recording is made, and why.

use crate::cli::{BackendArg, ClockArg, RecordArgs, UnwindArg};
use crate::failure;
use laggard_probe::sample::PerfEvent;
use laggard_probe::{Refusal, can_carry_agent};

/// What takes the samples, and why that.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    Agent(String),
    Perf(String),
}

/// Chooses by what was asked for; an error when two wishes exclude each other.
pub(super) fn choose(args: &RecordArgs) -> anyhow::Result<Way> {
    let for_perf = needs_perf(args);
    let for_agent = needs_agent(args);
    if let (Some(perf), Some(agent)) = (&for_perf, &for_agent) {
        return Err(failure::with_hint(
            format!("{perf}, and {agent}"),
            "leave one of them out: they cannot be had together".into(),
        ));
    }
    if let Some(why) = for_perf {
        return Ok(Way::Perf(why));
    }
    if let Some(why) = for_agent {
        return Ok(Way::Agent(why));
    }
    match can_carry_agent(&args.command) {
        Ok(()) => Ok(Way::Agent("it sees Python frames and needs no rights".into())),
        Err(
            why @ (Refusal::Static(_)
            | Refusal::OtherMachine(..)
            | Refusal::Go(_)
            | Refusal::Privileged(..)),
        ) if laggard_probe::perf::find().is_some() => Ok(Way::Perf(why.to_string())),
        Err(_) => Ok(Way::Agent("there is no other way".into())),
    }
}

/// What only perf can do.
fn needs_perf(args: &RecordArgs) -> Option<String> {
    if args.backend == BackendArg::Perf {
        return Some("--backend perf was asked for".into());
    }
    if args.pid.is_some() {
        return Some("a process that runs already takes no agent".into());
    }
    match args.unwind {
        UnwindArg::Lbr => return Some("branch records are perf's".into()),
        UnwindArg::Fp => return Some("frame pointers are followed by perf".into()),
        UnwindArg::Dwarf => return Some("--unwind dwarf was asked for".into()),
        UnwindArg::Auto | UnwindArg::Agent => {}
    }
    match &args.event[..] {
        [_, _, ..] => Some(format!("{} events at once are perf's", args.event.len())),
        [event] if PerfEvent::named(event).is_none() && args.backend == BackendArg::Auto => {
            Some(format!("the agent does not know the event {event}"))
        }
        _ => None,
    }
}

/// What only the agent can do.
fn needs_agent(args: &RecordArgs) -> Option<String> {
    let wishes = [
        (args.backend == BackendArg::Agent, "--backend agent was asked for"),
        (args.unwind == UnwindArg::Agent, "--unwind agent was asked for"),
        (args.clock == ClockArg::Wall, "--clock wall is the agent's"),
        (args.gil, "--gil is the agent's"),
        (args.overhead.is_some(), "--overhead is the agent's"),
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
    fn the_agent_is_taken_where_it_can() {
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
