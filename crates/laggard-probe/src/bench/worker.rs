//! A side that is a Python statement: its process and the requests to it. Several statements may
//! share a process.
//!
//! The process is started once and stays alive. It waits for requests, so it is idle while another
//! side is measured. A process with several threads is also stopped meanwhile, because its threads
//! may spin.

use super::changes::Change;
use super::pin::Cpus;
use super::plan::{CasePlan, Plan, SidePlan};
use super::process::Process;
use super::runner::{About, Runner};
use super::said::Said;
use super::side;
use super::spawn::Launch;
use super::trouble::Trouble;
use super::value::Value;
use super::wire::{Silence, Taken, Wire, Written};
use laggard_core::model::timings::Batch;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(super) const SCRIPT: &str = concat!(include_str!("changes.py"), include_str!("worker.py"));
/// File descriptor of the connection in the worker: the first one after the standard streams.
const SOCKET: &str = "3";

pub(super) const SETUP: &str = "its set-up";
const CALL: &str = "a call";

/// A worker process.
pub(super) struct Worker {
    process: Option<Process>,
    wire: Wire,
    said: Said,
    timeout: Duration,
    is_stopped: bool,
    has_threads: bool,
    /// Index of the selected statement.
    current: usize,
    /// For each statement, whether code runs before every call.
    are_prepared: Vec<bool>,
}

/// A statement with its set-up code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statement<'a> {
    pub(super) code: &'a str,
    pub(super) setup: &'a str,
    /// Untimed code that runs before every call; may be empty.
    pub(super) prepare: &'a str,
    /// Expression whose value is compared; if empty, the value of the statement is compared.
    pub(super) check: &'a str,
}

impl Worker {
    /// Starts the interpreter, prefixed with the words `under`, and waits until it is ready. No
    /// user code has run by then.
    pub(super) fn start(
        plan: &Plan,
        side: &SidePlan,
        cpus: Option<Cpus>,
        under: &[OsString],
    ) -> Result<Worker, Trouble> {
        let mut words = under.to_vec();
        let worker = ["-c".into(), SCRIPT.into(), SOCKET.into()];
        words.extend([side::interpreter(side)?.into()].into_iter().chain(worker));
        let program = PathBuf::from(words.remove(0));
        let env = side::environment(plan, side);
        let start = |step, source| Trouble::Start { program: program.clone(), step, source };
        let launch = Launch::new(&program, &words, &env, side.directory.as_deref(), cpus)
            .map_err(|source| start("passing its arguments", source))?;
        let (wire, theirs) = Wire::pair().map_err(Trouble::Wire)?;
        let said = Said::new().map_err(Trouble::Wire)?;
        let nowhere = side::nowhere().map_err(Trouble::Wire)?;
        let stderr = io::stderr();
        let (out, error) = if plan.show_output {
            (stderr.as_fd(), stderr.as_fd())
        } else {
            (nowhere.as_fd(), said.fd())
        };
        let process = launch
            .start(&[nowhere.as_fd(), out, error, theirs.as_fd()])
            .map_err(|(step, source)| start(step, source))?;
        drop(theirs);
        let mut worker = Worker {
            process: Some(process),
            wire,
            said,
            timeout: plan.limits.timeout,
            is_stopped: false,
            has_threads: false,
            current: 0,
            are_prepared: vec![],
        };
        worker.hear(None, "before it was ready")?;
        Ok(worker)
    }

    /// Runs the set-up code of its only statement.
    pub(super) fn set_up(
        &mut self,
        plan: &Plan,
        statement: &Statement,
        case: &CasePlan,
    ) -> Result<(), Trouble> {
        self.add(statement, &case.parameters, plan.collect_garbage).map(|_| ())
    }

    /// Runs the set-up code of another statement, selects the statement and returns its index.
    pub(super) fn add(
        &mut self,
        statement: &Statement,
        parameters: &[(String, String)],
        collect_garbage: bool,
    ) -> Result<usize, Trouble> {
        let mut message = Written::new(b'S')
            .text(statement.code)
            .text(statement.setup)
            .text(statement.prepare)
            .text(if collect_garbage { "1" } else { "0" })
            .text(statement.check)
            .text(&parameters.len().to_string());
        for (name, value) in parameters {
            message = message.text(name).text(value);
        }
        self.hear(Some((&message.0, SETUP)), "in its set-up")?;
        self.current = self.are_prepared.len();
        self.are_prepared.push(!statement.prepare.is_empty());
        Ok(self.current)
    }

    /// Selects the statement that later calls run.
    pub(super) fn choose(&mut self, statement: usize) {
        self.current = statement;
    }

    /// Resets the peak of the memory use: copies that were sent or compared do not belong to the
    /// statement. If the system does not allow this, they stay included.
    fn reset_peak(&self) {
        if let Some(process) = &self.process {
            let _ = std::fs::write(format!("/proc/{}/clear_refs", process.pid()), "5");
        }
    }

    /// Removes all statements.
    pub(super) fn clear(&mut self) -> Result<(), Trouble> {
        self.hear(Some((b"D", CALL)), "between statements")?;
        self.current = 0;
        self.are_prepared.clear();
        Ok(())
    }

    /// Whether the process can still receive requests.
    pub(super) fn is_alive(&self) -> bool {
        self.process.is_some()
    }

    /// Runs some calls, then some whose instructions callgrind counts, if the worker runs under it.
    pub(super) fn count(&mut self, calls: u64, lead: u64) -> Result<(), Trouble> {
        let message = Written::new(b'C').number(self.current as u64).number(calls).number(lead);
        self.hear(Some((&message.0, CALL)), "before a call was counted").map(|_| ())
    }

    /// Counts the calls of functions during at most `most` calls, in JSON, after `lead` calls. Stops
    /// counting after `limit`.
    pub(super) fn count_calls(
        &mut self,
        [lead, most]: [u64; 2],
        limit: Duration,
    ) -> Result<String, Trouble> {
        let message = Written::new(b'P').number(self.current as u64).number(lead).number(most);
        let message = message.number(limit.as_nanos() as u64);
        let answer = self.hear(Some((&message.0, CALL)), "while its calls were counted")?;
        Taken(&answer[1..]).text().ok_or_else(nonsense)
    }

    /// The memory mappings of the process.
    pub(super) fn maps(&self) -> Option<Vec<u8>> {
        std::fs::read(format!("/proc/{}/maps", self.pid()?)).ok()
    }

    /// Sends a request, if any, and waits for the response.
    fn hear(
        &mut self,
        request: Option<(&[u8], &'static str)>,
        when: &'static str,
    ) -> Result<Vec<u8>, Trouble> {
        let Some(process) = &self.process else {
            return Err(Trouble::Plan("has already ended".into()));
        };
        if self.is_stopped {
            process.signal(libc::SIGCONT);
            self.is_stopped = false;
        }
        let deadline = Instant::now() + self.timeout;
        let (answer, what) = match request {
            Some((message, what)) => (self.wire.ask(message, process, deadline), what),
            None => (self.wire.hear(process, deadline), "its start-up"),
        };
        match answer {
            Ok(answer) => understood(&answer, what).map(|()| answer),
            Err(silence) => Err(self.ended(silence, what, when)),
        }
    }

    /// Explains why there is no response, and ends the process.
    fn ended(&mut self, silence: Silence, what: &'static str, when: &'static str) -> Trouble {
        let Some(process) = self.process.take() else {
            return Trouble::Plan("has already ended".into());
        };
        match silence {
            Silence::Late => Trouble::Timeout { what, limit: self.timeout },
            Silence::Failed(error) => Trouble::Wire(error),
            Silence::Ended => {
                // A process that closed the connection may still be running.
                if !process.has_ended_by(Instant::now() + Duration::from_secs(1)) {
                    return Trouble::Plan("closed its connection to laggard".into());
                }
                Trouble::of(process.end().status, when, self.said.tail())
            }
        }
    }

    /// Whether the address space of the process is randomized.
    fn addresses(&self) -> Option<&'static str> {
        let pid = self.process.as_ref()?.pid();
        let personality = std::fs::read_to_string(format!("/proc/{pid}/personality")).ok()?;
        let flags = i32::from_str_radix(personality.trim(), 16).ok()?;
        Some(if flags & libc::ADDR_NO_RANDOMIZE != 0 { "not randomized" } else { "randomized" })
    }

    /// A number from `/proc/PID/status`.
    fn status(&self, name: &str) -> Option<u64> {
        let pid = self.process.as_ref()?.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

impl Runner for Worker {
    fn value(&mut self) -> Result<Value, Trouble> {
        let answer = self.hear(
            Some((&Written::new(b'V').number(self.current as u64).0, CALL)),
            "in its first call",
        )?;
        self.reset_peak();
        Value::read(&answer[1..]).ok_or_else(nonsense)
    }

    fn watch(&mut self) -> Result<(), Trouble> {
        // A preparation undoes changes.
        if self.is_batched() {
            let message = Written::new(b'W').number(self.current as u64);
            self.hear(Some((&message.0, CALL)), "before its first call")?;
        }
        Ok(())
    }

    fn changes(&mut self) -> Result<Vec<Change>, Trouble> {
        if !self.is_batched() {
            return Ok(vec![]);
        }
        let message = Written::new(b'I').number(self.current as u64);
        let answer = self.hear(Some((&message.0, CALL)), "in one of its first calls")?;
        self.reset_peak();
        let mut taken = Taken(&answer[1..]);
        Ok(std::iter::from_fn(|| Change::read(|| taken.text())).collect())
    }

    fn run(&mut self, calls: u64, lead: u64) -> Result<Batch, Trouble> {
        let message = Written::new(b'R').number(self.current as u64).number(calls).number(lead);
        let answer = self.hear(Some((&message.0, CALL)), "before a call finished")?;
        let mut taken = Taken(&answer[1..]);
        let mut next = || taken.number().ok_or_else(nonsense);
        Ok(Batch {
            calls,
            wall_ns: next()?,
            user_ns: next()?,
            system_ns: next()?,
            minor_faults: next()?,
            major_faults: next()?,
            waits: next()?,
            preemptions: next()?,
            queued_ns: next()?,
            ..Batch::default()
        })
    }

    fn rest(&mut self) {
        if self.has_threads
            && !self.is_stopped
            && let Some(process) = &self.process
        {
            process.signal(libc::SIGSTOP);
            self.is_stopped = true;
        }
    }

    fn look(&mut self) {
        self.has_threads = self.status("Threads").is_some_and(|threads| threads > 1);
        self.said.keep_small();
    }

    fn bind(&mut self, cpus: Cpus) {
        let Some(pid) = self.pid() else { return };
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
        for thread in threads.flatten() {
            if let Some(thread) = thread.file_name().to_str().and_then(|name| name.parse().ok()) {
                cpus.apply_to(thread);
            }
        }
    }

    fn about(&mut self) -> Result<About, Trouble> {
        let answer = self.hear(Some((b"F", CALL)), "after its calls")?;
        let mut taken = Taken(&answer[1..]);
        let mut facts = vec![];
        while let (Some(name), Some(value)) = (taken.text(), taken.text()) {
            facts.push((name, value));
        }
        if let Some(addresses) = self.addresses() {
            facts.push(("addresses".into(), addresses.into()));
        }
        Ok(About {
            facts,
            threads: self.status("Threads").unwrap_or(0) as u32,
            peak_memory: self.status("VmHWM").unwrap_or(0) * 1024,
        })
    }

    fn is_batched(&self) -> bool {
        // Other calls would run on the variables that this call may have changed.
        !self.are_prepared.get(self.current).copied().unwrap_or(false)
    }

    fn runs_empty(&self) -> bool {
        true
    }

    fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(Process::pid)
    }
}

/// Checks whether the response is valid or reports a Python error.
fn understood(answer: &[u8], what: &'static str) -> Result<(), Trouble> {
    let mut taken = Taken(answer);
    let kind = taken.byte();
    let place = match kind {
        Some(b'p') => "its preparation",
        _ if what == SETUP => SETUP,
        _ => "its statement",
    };
    match kind {
        Some(b'S') => Err(Trouble::Syntax(taken.text().unwrap_or_default())),
        Some(b'E' | b'p') => Err(Trouble::Raised {
            place,
            last: taken.text().unwrap_or_default(),
            traceback: taken.text().unwrap_or_default(),
        }),
        Some(_) => Ok(()),
        None => Err(nonsense()),
    }
}

fn nonsense() -> Trouble {
    Trouble::Wire(io::Error::other("invalid response"))
}
