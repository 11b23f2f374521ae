//! Labels of threads and processes. A shell script can start thousands of short processes of one
//! program; they share one label.

use crate::model::profile::{Profile, Thread};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of processes of one program with labels of their own.
const MOST: usize = 20;

/// The labels of a profile.
#[derive(Clone, Debug)]
pub struct ProcessLabels<'a> {
    profile: &'a Profile,
    /// Number of processes of the programs that have too many, by the text of the program.
    merged: FxHashMap<u32, usize>,
}

impl<'a> ProcessLabels<'a> {
    /// The labels of the processes of a profile.
    pub fn new(profile: &'a Profile) -> ProcessLabels<'a> {
        let mut pids: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
        for thread in &profile.threads {
            pids.entry(thread.process).or_default().insert(thread.pid);
        }
        let merged = pids.into_iter().map(|(process, pids)| (process, pids.len()));
        ProcessLabels { profile, merged: merged.filter(|(_, count)| *count > MOST).collect() }
    }

    /// `python3 train.py (4242)`, or `true (57 processes)`.
    pub fn process(&self, thread: &Thread) -> String {
        let name = self.profile.texts.get(thread.process);
        match self.merged.get(&thread.process) {
            Some(count) => format!("{name} ({count} processes)"),
            None => format!("{name} ({})", thread.pid),
        }
    }

    /// `worker (4243)`, or `worker` if its process shares a label.
    pub fn thread(&self, thread: &Thread) -> String {
        let name = self.profile.texts.get(thread.name);
        match self.merged.contains_key(&thread.process) {
            true => name.to_owned(),
            false => format!("{name} ({})", thread.tid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_of_one_program_share_a_label() {
        let mut profile = Profile::default();
        let [sh, tool] = ["sh", "tool"].map(|name| profile.texts.add(name));
        let thread = |pid, name| Thread { pid, tid: pid, name, process: name, cpu_ns: 0 };
        profile.threads.push(thread(1, sh));
        profile.threads.extend((2..2 + MOST as u32).map(|pid| thread(pid, tool)));
        let labels = ProcessLabels::new(&profile);
        assert_eq!(labels.process(&profile.threads[1]), "tool (2)");
        assert_eq!(labels.thread(&profile.threads[1]), "tool (2)");
        profile.threads.push(thread(100, tool));
        let labels = ProcessLabels::new(&profile);
        assert_eq!(labels.process(&profile.threads[0]), "sh (1)");
        assert_eq!(labels.process(&profile.threads[1]), "tool (21 processes)");
        assert_eq!(labels.thread(&profile.threads[1]), "tool");
    }
}
