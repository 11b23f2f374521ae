//! Classifies perf's error messages.

use super::{CallGraph, Options};
use crate::error::Error;

/// The text that perf wrote to standard error.
pub(super) struct Said(pub(super) String);

impl Said {
    /// The error that the text stands for.
    pub(super) fn failure(&self, options: &Options) -> Error {
        let has = |words: &str| self.0.contains(words);
        let said = self.short();
        if has("event syntax error") || has("unknown tracepoint") || has("Cannot find PMU") {
            return Error::UnknownEvent { events: options.events.join(", "), said };
        }
        if has("Access to performance monitoring")
            || has("not have permission")
            || has("Permission denied")
            || has("Operation not permitted")
        {
            return Error::PerfRefused { said, paranoid: paranoid() };
        }
        let is_unsupported = has("not support") || has("branch stack");
        if options.call_graph == CallGraph::BranchRecords && is_unsupported {
            return Error::NoBranchRecords { said };
        }
        if is_unsupported {
            return Error::UnknownEvent { events: options.events.join(", "), said };
        }
        Error::PerfFailed { said }
    }

    /// The first relevant lines, joined into one.
    fn short(&self) -> String {
        let lines = self.0.lines().map(str::trim);
        let lines = lines.filter(|line| {
            !line.is_empty() && *line != "Error:" && !line.starts_with("[ perf record")
        });
        let first: Vec<&str> =
            lines.take_while(|line| !line.starts_with("Usage:")).take(2).collect();
        match first.is_empty() {
            true => "perf printed no error message".into(),
            false => first.join(" "),
        }
    }
}

fn paranoid() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    text.map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;

    fn failure(call_graph: CallGraph, text: &str) -> Error {
        let options = Options {
            target: Target::Pid(1),
            events: vec!["nosuch".into()],
            rate: 99.0,
            call_graph,
            cpus: vec![],
            duration: None,
        };
        Said(text.to_owned()).failure(&options)
    }

    #[test]
    fn perf_messages_map_to_distinct_errors() {
        let pointers = CallGraph::FramePointers;
        let syntax = "event syntax error: 'nosuch'\n      \\___ parser error\nRun 'perf list'\n";
        assert!(matches!(failure(pointers, syntax), Error::UnknownEvent { .. }));
        let limited = "Error:\nAccess to performance monitoring and observability operations is \
                       limited.\nConsider adjusting\n";
        assert!(matches!(failure(pointers, limited), Error::PerfRefused { .. }));
        let branches = "Error:\ncpu-clock: PMU Hardware or event type doesn't support branch stack sampling.\n";
        let lbr = failure(CallGraph::BranchRecords, branches);
        assert!(matches!(&lbr, Error::NoBranchRecords { said } if said.starts_with("cpu-clock")));
        assert!(matches!(failure(pointers, ""), Error::PerfFailed { .. }));
    }
}
