//! Records with perf.

use crate::cli::{ProfileForm, RecordArgs, UnwindArg};
use crate::failure;
use crate::printer::Printer;
use crate::suite::Alone;
use anyhow::Context;
use laggard_core::model::profile::Profile;
use laggard_formats::Source;
use laggard_formats::read::perf as reader;
use laggard_probe::host::{self, Places, Root};
use laggard_probe::perf::{self, CallGraph, LARGEST_COPY, Options, Target};
use laggard_probe::{Ended, Error};
use laggard_report::doctor::diagnose;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Exit statuses of a process ended by SIGINT or SIGTERM.
const ENDED_BY_US: [i32; 2] = [130, 143];

/// Runs perf and converts perf.data to the requested format.
pub(super) fn run(
    args: &RecordArgs,
    side: Option<&Alone>,
    (output, form): (&Path, ProfileForm),
    printer: &Printer,
) -> anyhow::Result<ExitCode> {
    let options = options(args);
    let data = temporary(output);
    let started_unix = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64());
    if args.pid.is_some() && args.duration.is_none() {
        printer.note("recording until Ctrl-C or until the process exits");
    }
    // Read now, because the process may end during the recording.
    let target = args.pid.map(|pid| (pid, command_line(pid), name_in_brackets(pid)));
    let recorded = perf::record(&options, &data);
    let perf::Recorded { ended, pid } = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            let _ = std::fs::remove_file(&data);
            return Err(explain(error));
        }
    };
    let kept = || format!("cannot process the perf recording, which is kept in {}", data.display());
    let source = Source::open(&data).with_context(kept)?;
    let mut profile = reader::read(source, &|_| ()).with_context(kept)?;
    profile.about.started_unix = started_unix;
    if let Some((pid, command, name)) = target {
        profile.about.command = command.or_else(|| command_line(pid)).unwrap_or(name);
    }
    if let Some(pid) = pid.filter(|_| args.no_children) {
        narrow(&mut profile, pid);
    }
    tell_apart(&mut profile, args);
    let code = exit_code(args, &ended);
    profile.about.exit_code = args.pid.is_none().then_some(ended.code());
    super::complete(&mut profile);
    super::tell_flags(&mut profile, args, side);
    super::keep(&mut profile, output, form).with_context(kept)?;
    let _ = std::fs::remove_file(&data);
    super::say(&profile, output, form, printer);
    Ok(ExitCode::from(code))
}

fn options(args: &RecordArgs) -> Options {
    let call_graph = match args.unwind {
        UnwindArg::Fp => CallGraph::FramePointers,
        UnwindArg::Lbr => CallGraph::BranchRecords,
        _ => CallGraph::Copies(args.stack_size.min(LARGEST_COPY)),
    };
    let mut events = args.event.clone();
    if events.is_empty() {
        // LBR call stacks need a hardware event.
        let is_hardware = call_graph == CallGraph::BranchRecords;
        events.push(if is_hardware { "cycles" } else { "cpu-clock" }.to_owned());
    }
    Options {
        target: match args.pid {
            Some(pid) => Target::Pid(pid),
            None => Target::Command(args.command.clone()),
        },
        events,
        rate: args.rate,
        call_graph,
        cpus: args.cpus.clone().map_or(vec![], |cpus| cpus.0),
        duration: args.duration,
    }
}

/// The command line of a running process; `None` if it has none, like a kernel thread or a process
/// that is just being started.
fn command_line(pid: u32) -> Option<Vec<String>> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = words.strip_suffix(b"\0").filter(|words| !words.is_empty())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(words.split(|&byte| byte == 0).map(text).collect())
}

/// The name of a process without a command line, in brackets as in `ps`.
fn name_in_brackets(pid: u32) -> Vec<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    vec![format!("[{}]", name.trim_end())]
}

/// The path of perf.data, in the directory of the output, because both files have a similar size.
fn temporary(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!(".{name}.{}.perf.data", std::process::id()))
}

/// Removes samples of other processes. perf's `--no-inherit` would also exclude new threads.
fn narrow(profile: &mut Profile, pid: u32) {
    let mut numbers = vec![None; profile.threads.len()];
    let mut own = vec![];
    for (old, thread) in profile.threads.drain(..).enumerate() {
        if thread.pid == pid {
            numbers[old] = Some(own.len() as u32);
            own.push(thread);
        }
    }
    profile.threads = own;
    profile.samples.retain_mut(|sample| {
        let number = numbers.get(sample.thread as usize).copied().flatten();
        sample.thread = number.unwrap_or(sample.thread);
        number.is_some()
    });
}

/// Adds warnings about deviations from the request.
fn tell_apart(profile: &mut Profile, args: &RecordArgs) {
    let got: Vec<&str> = profile.events.iter().map(|event| event.name.as_str()).collect();
    let is_cycles = |name: &String| name.split([':', '/']).any(|part| part == "cycles");
    let warnings = &mut profile.quality.warnings;
    if args.event.iter().any(is_cycles) && !got.contains(&"cycles") {
        warnings.push(format!(
            "cycles are not available on this machine: perf counted {} instead; see `laggard doctor`",
            got.join(", ")
        ));
    }
    let has_python = profile.modules.iter().any(|module| {
        let path = Path::new(profile.texts.get(module.path));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libpython") || name.starts_with("python")
    });
    if has_python {
        warnings.push(
            "perf does not record Python frames: start the program with `laggard record -- …` to \
             record them, or print them once with `laggard dump --pid`"
                .into(),
        );
    }
}

/// The exit status of the program. With `--pid`, ending the recording is not a failure.
fn exit_code(args: &RecordArgs, ended: &Ended) -> u8 {
    let code = ended.code();
    match args.pid.is_some() && (code == 0 || ENDED_BY_US.contains(&code)) {
        true => 0,
        false => code.clamp(0, 255) as u8,
    }
}

/// Adds a hint to errors, partly from `laggard doctor`.
fn explain(error: Error) -> anyhow::Error {
    let hint = match &error {
        Error::NoPerf => doctors_fix("perf").unwrap_or("install perf".into()),
        Error::PerfRefused { .. } => {
            "run `sudo sysctl kernel.perf_event_paranoid=1`, or record without perf: --backend agent"
                .into()
        }
        Error::UnknownEvent { .. } => "list the events of this machine: perf list".into(),
        Error::NoBranchRecords { .. } => {
            "use --unwind dwarf, or --unwind fp for programs built with frame pointers".into()
        }
        Error::NotOurs { pid } => format!("run as root: sudo laggard record --pid {pid}"),
        _ => return super::explain(error),
    };
    failure::with_hint(error.to_string(), hint)
}

/// The fix that `laggard doctor` suggests for a check.
fn doctors_fix(id: &str) -> Option<String> {
    let host = host::read(&Root::real(), &Places::from_env());
    let diagnosis = diagnose(&host);
    let check = diagnosis.checks.iter().find(|check| check.id == id)?;
    let fix = check.fix.as_ref()?;
    fix.commands.first().cloned().or_else(|| Some(fix.effect.clone()))
}
