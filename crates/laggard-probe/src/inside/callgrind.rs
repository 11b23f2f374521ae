//! Counts calls inside a library with valgrind's callgrind: every call, its location and its
//! instructions.

use super::{Options, kernels};
use crate::child::{Child, Ended};
use crate::error::Error;
use crate::program;
use crate::started::{self, Started};
use laggard_core::model::calls::Calls;
use laggard_formats::Source;
use laggard_formats::read::callgrind::{self, Graph};
use laggard_symbols::Elf;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOL: &str = "callgrind";
/// Maximum number of bytes read from the log.
const LONGEST_LOG: u64 = 1 << 20;

/// Whether valgrind is installed; if not, the reason.
pub fn is_available() -> Result<(), String> {
    match valgrind() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn valgrind() -> Result<PathBuf, Error> {
    let missing = Error::NoTool { tool: "valgrind", package: "valgrind" };
    program::find(OsStr::new("valgrind")).ok_or(missing)
}

/// Runs a command to its end on callgrind's simulated CPU.
///
/// Processes that the program forks are counted; programs that it starts are counted only with
/// `children`. There are no times. Callers have names, files and lines as far as valgrind knows
/// them.
pub fn count(command: &[OsString], options: &Options) -> Result<(Calls, Ended), Error> {
    let program = program::runnable(command)?;
    let valgrind = valgrind()?;
    let room = tempfile::tempdir().map_err(Error::Shared)?;
    // A script usually executes the actual program (`exec`), which then has to be followed.
    let is_script = is_script(&program);
    let mut run = Command::new(&valgrind);
    run.arg("--tool=callgrind").args(["--dump-instr=yes", "--demangle=no"]);
    run.arg(option("--callgrind-out-file=", room.path(), "counts.%p"));
    run.arg(option("--log-file=", room.path(), "log.%p"));
    let follow = if options.children || is_script { "yes" } else { "no" };
    run.arg(format!("--trace-children={follow}"));
    run.arg("--").arg(&program).args(&command[1..]);
    started::silence(&mut run, options.quiet);
    let started = Started::now(command);
    let child = Child::start(run, &options.cpus, || ())
        .map_err(|source| Error::Start { program: valgrind, source })?;
    let root = child.pid();
    let ended = child.wait();
    let duration = started.elapsed();

    let log = text(&room.path().join(format!("log.{root}")));
    if let Some(bytes) = unknown_instruction(&log) {
        return Err(Error::Instruction { program, bytes });
    }
    let all = options.children || !is_script;
    let graphs = graphs(room.path(), root, all)?;
    if graphs.is_empty() {
        return Err(Error::NoResult { tool: TOOL, program, why: reason(&log, &ended) });
    }
    let mut is_wanted = |caller: &str, module: &str, function: &str| {
        options.wants_module(module)
            && options.wants_function(function)
            && options.wants_caller(caller)
    };
    let mut calls = callgrind::calls(&graphs, &mut is_wanted);
    let seen = kernels_seen(&graphs, options);
    let creator = graphs.first().map_or("", |graph| &graph.creator);
    let mut facts = vec![
        ("simulated by".to_owned(), creator.to_owned()),
        ("unit".to_owned(), "instructions, not time".to_owned()),
        ("threads".to_owned(), "all threads of a process are counted together".to_owned()),
    ];
    if !seen.names.is_empty() {
        facts.push(("kernel variants that ran".to_owned(), seen.names.join(", ")));
    }
    calls.profile.quality.warnings.extend(warnings(&seen, kernels::is_wide_here()));
    calls.profile.about = started.about(&ended, duration, "callgrind, simulated CPU");
    calls.profile.about.facts = facts;
    Ok((calls, ended))
}

fn option(name: &str, room: &Path, file: &str) -> OsString {
    // Valgrind expands `%` in file names.
    let room = room.to_string_lossy().replace('%', "%%");
    format!("{name}{room}/{file}").into()
}

fn is_script(program: &Path) -> bool {
    let mut head = [0; 2];
    std::fs::File::open(program).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && head == *b"#!"
}

fn text(path: &Path) -> String {
    let mut bytes = vec![];
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(LONGEST_LOG).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the counts of every process. A process that was killed, or that executed a program that is
/// not followed, leaves an empty file.
fn graphs(room: &Path, root: u32, all: bool) -> Result<Vec<Graph>, Error> {
    let mut pids: Vec<u32> = std::fs::read_dir(room)
        .map_err(Error::Shared)?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("counts.")?.parse().ok())
        .filter(|pid| all || *pid == root)
        .collect();
    // The main program first.
    pids.sort_unstable_by_key(|pid| (*pid != root, *pid));
    let mut graphs = vec![];
    for pid in pids {
        let path = room.join(format!("counts.{pid}"));
        if path.metadata().is_ok_and(|data| data.len() > 0) {
            let read = Source::open(&path).and_then(callgrind::read);
            graphs.push(read.map_err(|source| Error::Result { tool: TOOL, source })?);
        }
    }
    Ok(graphs)
}

/// Bytes of an instruction that valgrind cannot decode, if that ended the program.
fn unknown_instruction(log: &str) -> Option<String> {
    let (_, rest) = log.split_once("unhandled instruction bytes:")?;
    log.contains("SIGILL").then(|| rest.lines().next().unwrap_or_default().trim().to_owned())
}

/// The reason why there are no counts.
fn reason(log: &str, ended: &Ended) -> String {
    if ended.code() == 128 + libc::SIGKILL {
        return "the program was killed".into();
    }
    let said = log
        .lines()
        .map(|line| line.trim_start_matches(|c: char| c == '=' || c == '-' || c.is_ascii_digit()))
        .map(str::trim)
        .rfind(|line| !line.is_empty());
    match said {
        Some(line) if line.starts_with("For interactive control") => {
            "the program executed another program, which was not traced because of --no-children"
                .into()
        }
        Some(line) => line.to_owned(),
        None => format!("valgrind exited with status {}", ended.code()),
    }
}

/// CPUs whose kernels ran, and AVX-512 CPUs for which the same libraries also have kernels.
#[derive(Default)]
struct Seen {
    names: Vec<&'static str>,
    has_wide: bool,
    others: Vec<&'static str>,
}

fn kernels_seen(graphs: &[Graph], options: &Options) -> Seen {
    let mut names = BTreeSet::new();
    let mut modules = BTreeSet::new();
    let mut has_wide = false;
    for graph in graphs {
        for call in &graph.calls {
            let function = graph.functions[call.callee as usize];
            let module = graph.texts.get(function.object);
            if let Some((name, is_wide)) = kernels::ending(graph.texts.get(function.name))
                && options.wants_module(module)
            {
                names.insert(name);
                modules.insert(module);
                has_wide |= is_wide;
            }
        }
    }
    let mut others = BTreeSet::new();
    for module in modules {
        if let Ok(elf) = Elf::open(module) {
            others.append(&mut kernels::wide_in(&elf));
        }
    }
    let others = others.difference(&names).copied().collect();
    Seen { names: names.into_iter().collect(), has_wide, others }
}

fn warnings(seen: &Seen, is_wide_here: bool) -> Vec<String> {
    let mut all = vec![
        "the program ran on a simulated CPU, 50 to 300 times slower; instruction counts are exact, \
         but do not reflect waiting, caches or frequency"
            .to_owned(),
    ];
    if is_wide_here && !seen.has_wide {
        let hidden = "valgrind hides the AVX-512 support of this CPU";
        all.push(match (seen.names.is_empty(), seen.others.is_empty()) {
            (true, _) => format!("{hidden}: other functions may run natively"),
            (false, true) => format!("{hidden}: the kernels for {} ran", seen.names.join(", ")),
            (false, false) => format!(
                "{hidden}: the kernels for {} ran instead of those for {}, which the library also has",
                seen.names.join(", "),
                seen.others.join(", ")
            ),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undecodable_instruction_is_found_in_the_log() {
        let log = "==1== Callgrind\nvex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C\n\
                   vex amd64->IR:   REX=0\n==1== Process terminating with default action of signal 4 (SIGILL)\n";
        assert_eq!(unknown_instruction(log).as_deref(), Some("0x62 0xF1 0x7C"));
        assert_eq!(unknown_instruction("==1== all is well"), None);
    }

    #[test]
    fn avx512_kernels_that_did_not_run_are_reported() {
        let seen = Seen { names: vec!["HASWELL"], has_wide: false, others: vec!["SKYLAKEX"] };
        assert_eq!(
            warnings(&seen, true)[1],
            "valgrind hides the AVX-512 support of this CPU: the kernels for HASWELL ran instead \
             of those for SKYLAKEX, which the library also has"
        );
        assert_eq!(warnings(&seen, false).len(), 1);
    }
}
