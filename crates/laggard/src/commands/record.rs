//! `laggard record`: samples a program and writes a recording.

mod through_perf;
mod way;

use crate::cli::{ClockArg, ProfileForm, RecordArgs};
use crate::failure;
use crate::printer::Printer;
use crate::profile::{ensure_replaceable, form_of, write_profile};
use crate::script::with_interpreter;
use crate::suite::Alone;
use anyhow::{Context, bail};
use laggard_core::model::profile::{Profile, state};
use laggard_core::profile::{fold_interpreter, quality};
use laggard_core::stats::summary::{bootstrap_median_interval, quantile};
use laggard_formats::lag::Recorder;
use laggard_probe::bench::{Repeat, drop_preparation};
use laggard_probe::host;
use laggard_probe::sample::{self, Clock, Options, PerfEvent};
use laggard_report::number::{count, duration, percent, plural};
use laggard_report::profile::unsampled;
use laggard_symbols::FileSystem;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use way::Way;

/// Default duration for recording a side of a case.
const TIME_FOR_SIDE: Duration = Duration::from_secs(3);

/// Share of CPU time without samples from which the summary tells where it was spent.
const MUCH_UNSAMPLED: f64 = 0.1;

/// Runs the verb.
pub(crate) fn run(args: RecordArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    let time = args.duration.unwrap_or(TIME_FOR_SIDE);
    let Some(side) = Alone::of(&args.side, Repeat::For(time))? else {
        let args = RecordArgs { command: with_interpreter(args.command), ..args };
        return record(&args, None, printer);
    };
    // No time limit for the process: it ends by itself, and its set-up takes additional time.
    let args = RecordArgs { command: side.words.clone(), duration: None, ..args };
    record(&args, Some(&side), printer)
}

fn record(args: &RecordArgs, side: Option<&Alone>, printer: &Printer) -> anyhow::Result<ExitCode> {
    let output = args.output.clone().unwrap_or_else(|| match (args.pid, side) {
        (Some(pid), _) => format!("laggard-{pid}.lag").into(),
        (None, Some(side)) => default_output(&side.file_name()),
        (None, None) => default_output(&args.command[0]),
    });
    let form = pick_form(&output)?;
    ensure_writable(&output)?;
    ensure_replaceable(&output, form, args.force)?;
    match way::choose(args)? {
        Way::Agent(why) => printer.detail(&format!("recording with the agent: {why}")),
        Way::Perf(why) => {
            printer.note(&format!("recording with perf: {why}"));
            return through_perf::run(args, side, (&output, form), printer);
        }
    }
    let options = options(args)?;
    let overhead = match args.overhead {
        Some(rounds) => Some(overhead(args, &options, rounds, printer)?),
        None => None,
    };
    // Only `.lag` files are written incrementally.
    let growing = (form == ProfileForm::Lag).then_some(&*output);
    let mut file = Growing::new(growing);
    let (mut profile, ended) =
        sample::record(&args.command, &options, &mut |profile| file.append(profile))
            .map_err(explain)?;
    if args.gil {
        profile.samples.retain(|sample| sample.state & state::GIL != 0);
    }
    profile.quality.overhead = overhead;
    complete(&mut profile);
    tell_flags(&mut profile, args, side);
    // On failure, the samples appended so far remain in the file.
    keep(&mut profile, &output, form)?;
    say(&profile, &output, form, printer);
    Ok(ExitCode::from(ended.code().clamp(0, 255) as u8))
}

/// The format selected by the suffix of a file.
pub(super) fn pick_form(output: &Path) -> anyhow::Result<ProfileForm> {
    form_of(output).ok_or_else(|| {
        failure::with_hint(
            format!("cannot infer a format from the suffix of {}", output.display()),
            "use .lag (recording), .svg or .html (flame graph), .folded, .speedscope.json, .profile.json or .csv".into(),
        )
    })
}

/// Writes the finished profile. Formats other than `.lag` have interpreter frames folded.
pub(super) fn keep(profile: &mut Profile, output: &Path, form: ProfileForm) -> anyhow::Result<()> {
    if form != ProfileForm::Lag {
        fold_interpreter(profile);
    }
    write_profile(profile, output, form).context("cannot write the recording")
}

fn options(args: &RecordArgs) -> anyhow::Result<Options> {
    let event = match args.event.first() {
        None => None,
        Some(name) => Some(PerfEvent::named(name).ok_or_else(|| {
            failure::with_hint(
                format!("unknown event {name:?}"),
                format!("supported events: {}", PerfEvent::NAMES.join(", ")),
            )
        })?),
    };
    Ok(Options {
        rate: args.rate,
        clock: match args.clock {
            ClockArg::Cpu => Clock::Cpu,
            ClockArg::Wall => Clock::Wall,
        },
        stack_size: args.stack_size,
        children: !args.no_children,
        cpus: args.cpus.clone().map_or(vec![], |cpus| cpus.0),
        duration: args.duration,
        event,
        ..Options::default()
    })
}

pub(super) fn default_output(program: &OsStr) -> PathBuf {
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    format!("laggard-{name}-{}.lag", std::process::id()).into()
}

/// Fails if the file cannot be written, before the program runs.
pub(crate) fn ensure_writable(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("cannot write {}: it is a directory", path.display());
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if !directory.is_dir() {
        bail!("cannot write {}: no such directory: {}", path.display(), directory.display());
    }
    tempfile::tempfile_in(directory)
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    Ok(())
}

/// A file to which samples are appended during the recording. Write errors do not stop the recording.
pub(super) struct Growing<'a> {
    path: Option<&'a Path>,
    recorder: Option<Recorder>,
    /// The first write error. The final write may still succeed.
    failed: Option<laggard_formats::Error>,
}

impl<'a> Growing<'a> {
    /// Creates a file with this path; `None` disables it.
    pub(super) fn new(path: Option<&'a Path>) -> Growing<'a> {
        Growing { path, recorder: None, failed: None }
    }

    /// Appends the new samples.
    pub(super) fn append(&mut self, profile: &Profile) {
        let Some(path) = self.path.filter(|_| self.failed.is_none()) else { return };
        let appended = match &mut self.recorder {
            Some(recorder) => recorder.append(profile),
            None => start(path, profile).map(|recorder| self.recorder = Some(recorder)),
        };
        self.failed = appended.err();
    }
}

/// Creates the file with the first samples. An older recording is replaced only after they are on
/// disk.
fn start(path: &Path, profile: &Profile) -> Result<Recorder, laggard_formats::Error> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let beside = target.with_extension(format!("{}.tmp", std::process::id()));
    let started = Recorder::create(&beside, &profile.about).and_then(|mut recorder| {
        recorder.append(profile)?;
        std::fs::rename(&beside, &target).map_err(|source| laggard_formats::Error::Io {
            action: "write",
            path: target,
            source,
        })?;
        Ok(recorder)
    });
    if started.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    started
}

/// Symbolizes addresses and adds facts about the host.
pub(super) fn complete(profile: &mut Profile) {
    let resolution = laggard_symbols::resolve(profile, &FileSystem);
    for (module, addresses, why) in resolution.missing {
        let path = profile.modules.get(module as usize).map_or("", |m| profile.texts.get(m.path));
        if path.starts_with('/') {
            profile.quality.warnings.push(format!(
                "cannot symbolize {} of {path}: {why}",
                if addresses == 1 {
                    "1 address".to_owned()
                } else {
                    format!("{} addresses", count(addresses as u64))
                }
            ));
        }
    }
    profile.about.tool = concat!("laggard ", env!("CARGO_PKG_VERSION")).into();
    profile.about.facts = host::facts();
}

/// Adds the options to the facts.
fn tell_flags(profile: &mut Profile, args: &RecordArgs, side: Option<&Alone>) {
    let flags: Vec<String> = [
        args.no_children.then(|| "--no-children".to_owned()),
        args.gil.then(|| "--gil".to_owned()),
        (!args.event.is_empty()).then(|| format!("--event {}", args.event.join(" --event "))),
        args.cpus.as_ref().map(|cpus| format!("--cpus {:?}", cpus.0)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !flags.is_empty() {
        profile.about.facts.push(("flags".into(), flags.join(" ")));
    }
    if let Some(side) = side {
        side.tell(&mut profile.about);
        drop_preparation(profile);
    }
}

/// Median and confidence interval of the ratio of CPU times with and without recording.
fn overhead(
    args: &RecordArgs,
    options: &Options,
    rounds: u16,
    printer: &Printer,
) -> anyhow::Result<[f64; 3]> {
    printer.note(&format!(
        "running the command {rounds} times without and {rounds} times with recording"
    ));
    let quiet = Options { quiet: true, ..options.clone() };
    let mut ratios = vec![];
    let cpu = |ended: laggard_probe::Ended| (ended.user_ns + ended.system_ns).max(1) as f64;
    for round in 0..rounds {
        let bare = || sample::bare(&args.command, &quiet).map(cpu).map_err(explain);
        let recorded = || {
            let recorded = sample::record(&args.command, &quiet, &mut |_| ());
            recorded.map(|(_, ended)| cpu(ended)).map_err(explain)
        };
        // The order alternates, so that drift affects both equally.
        ratios.push(if round % 2 == 0 {
            let bare = bare()?;
            recorded()? / bare
        } else {
            let recorded = recorded()?;
            recorded / bare()?
        });
    }
    ratios.sort_by(f64::total_cmp);
    let (low, high) = bootstrap_median_interval(&ratios, 2000, 1);
    let middle = quantile(&ratios, 0.5);
    Ok([middle, low, high])
}

/// Prints a summary to standard error.
fn say(profile: &Profile, output: &Path, form: ProfileForm, printer: &Printer) {
    let sum = quality(profile);
    let about = &profile.about;
    let cpu = (about.user_ns + about.system_ns) as i64;
    let cpu = if cpu > 0 { format!(" ({} CPU)", duration(cpu)) } else { String::new() };
    printer.note(&format!(
        "{} in {}{cpu}, {}; {}",
        plural(sum.samples, "sample"),
        duration(about.duration_ns as i64),
        plural(profile.threads.len() as u64, "thread"),
        about.method,
    ));
    if sum.samples > 0 {
        let share =
            |part: u64, whole: u64| format!("{} %", percent(part as f64 / whole.max(1) as f64));
        let mut parts = vec![format!("{} complete", share(sum.complete, sum.samples))];
        if sum.with_python > 0 {
            parts.push(format!(
                "Python frames match in {} of {} samples",
                share(sum.with_python - sum.mismatched, sum.with_python),
                count(sum.with_python)
            ));
        }
        parts.push(format!("{} lost", plural(sum.lost, "sample")));
        printer.note(&format!("stacks: {}", parts.join(", ")));
    }
    // Smaller shares are usual: reports show them.
    if sum.kernel_share.is_some_and(|share| share >= MUCH_UNSAMPLED)
        && let Some(text) = unsampled(&sum)
    {
        printer.note(&text);
    }
    if let Some([middle, low, high]) = sum.overhead {
        printer.note(&format!(
            "recording overhead: {:+.1} % CPU time (95 % CI {:+.1} to {:+.1} %)",
            100.0 * (middle - 1.0),
            100.0 * (low - 1.0),
            100.0 * (high - 1.0)
        ));
    }
    for warning in &sum.warnings {
        printer.warning(warning);
    }
    if sum.samples == 0 {
        let is_elsewhere = sum.unsampled.is_some_and(|places| places.children_ns > 0);
        let why = if is_elsewhere { "" } else { ": the program may have exited too early" };
        printer.warning(&format!("no samples were taken{why}"));
    }
    let seen = if form == ProfileForm::Lag {
        format!("; show it with `laggard report {}`", output.display())
    } else {
        String::new()
    };
    printer.note(&format!("wrote {}{seen}", output.display()));
}

/// Adds a hint to errors if one is known.
pub(super) fn explain(error: laggard_probe::Error) -> anyhow::Error {
    use laggard_probe::{Error, Refusal};
    let hint = match &error {
        Error::Refused(Refusal::Static(_) | Refusal::OtherMachine(..) | Refusal::Go(_)) => {
            Some("use --backend perf, which does not need the agent")
        }
        Error::Refused(Refusal::Privileged(..)) => Some(
            "run it as the user or group that owns the program file, or record with --backend perf as root",
        ),
        Error::NotLoaded { .. } => Some(
            "programs that clear their environment or are statically linked cannot load the agent; check this machine with `laggard doctor`",
        ),
        _ => None,
    };
    match hint {
        Some(hint) => failure::with_hint(error.to_string(), hint.to_owned()),
        None => error.into(),
    }
}
