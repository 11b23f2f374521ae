//! `laggard calls`: counts and times calls into libraries.

use super::record::{default_output, ensure_writable};
use crate::cli::{CallsArgs, InsideArg, ProfileForm};
use crate::failure;
use crate::printer::Printer;
use crate::profile::{ensure_replaceable, form_of};
use crate::script::with_interpreter;
use crate::suite::Alone;
use anyhow::Context;
use laggard_core::calls::{By, Measure, View, totals};
use laggard_core::model::calls::Calls;
use laggard_core::profile::file_name;
use laggard_formats::lag;
use laggard_probe::bench::Repeat;
use laggard_probe::calls::{Options, trace};
use laggard_probe::{Ended, Error, host, inside, syscalls};
use laggard_report::number::{Quantity, count, duration, instructions, plural};
use laggard_symbols::FileSystem;
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb.
pub(crate) fn run(args: CallsArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    let Some(side) = Alone::of(&args.side, Repeat::Times(args.iterations))? else {
        let args = CallsArgs { command: with_interpreter(args.command), ..args };
        return calls(&args, None, printer);
    };
    // The side may be started through `env`, so valgrind must follow children.
    let no_children = args.no_children && args.inside.is_none();
    let args = CallsArgs { command: side.words.clone(), no_children, ..args };
    calls(&args, Some(&side), printer)
}

fn calls(args: &CallsArgs, side: Option<&Alone>, printer: &Printer) -> anyhow::Result<ExitCode> {
    if let Some(pid) = args.pid {
        return Err(failure::with_hint(
            format!(
                "cannot trace the calls of process {pid}: laggard calls cannot attach to a running process"
            ),
            format!(
                "restart it with `laggard calls -- COMMAND`, or sample it with `laggard record --pid {pid}`"
            ),
        ));
    }
    let output = args.output.clone().unwrap_or_else(|| match side {
        Some(side) => default_output(&side.file_name()),
        None => default_output(&args.command[0]),
    });
    if form_of(&output) != Some(ProfileForm::Lag) {
        return Err(failure::with_hint(
            format!(
                "cannot write a call trace to {}: only .lag files are supported",
                output.display()
            ),
            "write -o FILE.lag, then export it: laggard report FILE.lag -o calls.json".into(),
        ));
    }
    ensure_writable(&output)?;
    ensure_replaceable(&output, ProfileForm::Lag, args.force)?;
    let (mut calls, ended) = traced(args).map_err(explain)?;
    complete(&mut calls, args, side);
    lag::write_calls(&output, &calls).context("cannot write the call trace")?;
    say(&calls, args, &output, printer);
    Ok(ExitCode::from(ended.code().clamp(0, 255) as u8))
}

/// Traces the calls with the requested method.
fn traced(args: &CallsArgs) -> Result<(Calls, Ended), Error> {
    let cpus = args.cpus.clone().map_or(vec![], |cpus| cpus.0);
    let (libraries, from, functions) = (args.lib.clone(), args.from.clone(), args.function.clone());
    let children = !args.no_children;
    if args.syscalls {
        let options =
            syscalls::Options { functions, from, children, cpus, ..syscalls::Options::default() };
        return syscalls::trace(&args.command, &options);
    }
    if let Some(how) = args.inside {
        let way = match how {
            InsideArg::Auto => None,
            InsideArg::Callgrind => Some(inside::Way::Callgrind),
            InsideArg::Uprobes => Some(inside::Way::Uprobes),
        };
        let options = inside::Options {
            libraries,
            from,
            functions,
            way,
            children,
            cpus,
            ..inside::Options::default()
        };
        return inside::count(&args.command, &options);
    }
    let options = Options {
        libraries,
        from,
        functions,
        arguments: usize::from(args.args),
        stack_every: args.stacks,
        children,
        cpus,
        ..Options::default()
    };
    trace(&args.command, &options)
}

/// Symbolizes callers, and adds facts about the host and the options.
fn complete(calls: &mut Calls, args: &CallsArgs, side: Option<&Alone>) {
    let resolution = laggard_symbols::resolve_calls(calls, &FileSystem);
    let profile = &mut calls.profile;
    for (module, addresses, why) in resolution.missing {
        let path = profile.modules.get(module as usize).map_or("", |m| profile.texts.get(m.path));
        if path.starts_with('/') {
            profile.quality.warnings.push(format!(
                "cannot symbolize {} of {path}: {why}",
                plural(addresses as u64, "call site")
            ));
        }
    }
    let mut facts = host::facts();
    // Facts of the tracer come after those of the host.
    facts.append(&mut profile.about.facts);
    profile.about.facts = facts;
    let named = |flag: &str, all: &[String]| -> Vec<String> {
        all.iter().map(|value| format!("{flag} {value}")).collect()
    };
    let mut flags = named("--lib", &args.lib);
    flags.extend(named("--from", &args.from));
    flags.extend(named("--fn", &args.function));
    flags.extend((args.args > 0).then(|| format!("--args {}", args.args)));
    flags.extend(args.no_children.then(|| "--no-children".to_owned()));
    flags.extend(args.cpus.as_ref().map(|cpus| format!("--cpus {:?}", cpus.0)));
    if !flags.is_empty() {
        profile.about.facts.push(("flags".into(), flags.join(" ")));
    }
    if let Some(side) = side {
        side.tell(&mut profile.about);
        let times = args.iterations.to_string();
        profile.about.facts.push(("calls of the statement".into(), times));
    }
}

/// Prints a summary to standard error.
fn say(calls: &Calls, args: &CallsArgs, output: &Path, printer: &Printer) {
    let view = View::whole(calls);
    let about = &calls.profile.about;
    let quality = &calls.quality;
    let threads = totals(&view, By::Thread).rows.len() as u64;
    let cost = match quality.cost_ns > 0.0 {
        true => format!(", overhead {} per call", Quantity::Time.show(quality.cost_ns)),
        false => String::new(),
    };
    let own = view.whole.own_instructions.filter(|_| view.measure == Measure::Instructions);
    let own = own.map_or_else(String::new, |own| format!(", {}", instructions(own)));
    printer.note(&format!(
        "{} to {} in {} ({} CPU) on {}{own}{cost}",
        plural(view.whole.count, "call"),
        plural(totals(&view, By::Function).rows.len() as u64, "function"),
        duration(about.duration_ns as i64),
        duration((about.user_ns + about.system_ns) as i64),
        plural(threads, "thread"),
    ));
    let losses = [
        (view.whole.unfinished, "unfinished"),
        (quality.too_deep, "too deeply nested to time"),
        (quality.table_full, "without a call site (table full)"),
    ];
    let losses: Vec<String> = losses
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", count(n)))
        .collect();
    if !losses.is_empty() {
        printer.note(&format!("calls: {}", losses.join(", ")));
    }
    if !quality.not_wrapped.is_empty() {
        let n = quality.not_wrapped.len() as u64;
        printer.note(&format!("skipped {} that cannot be traced", plural(n, "function")));
        for (name, why) in &quality.not_wrapped {
            printer.detail(&format!("  {name}: {why}"));
        }
    }
    for warning in &calls.profile.quality.warnings {
        printer.warning(warning);
    }
    if view.whole.count == 0 {
        nothing(calls, args, printer);
    }
    printer.note(&format!(
        "wrote {}; show it with `laggard report {}`",
        output.display(),
        output.display()
    ));
}

/// Explains why no calls were traced, if the names show it.
fn nothing(calls: &Calls, args: &CallsArgs, printer: &Printer) {
    const MOST: usize = 20;
    let profile = &calls.profile;
    let mut loaded: Vec<&str> = profile
        .modules
        .iter()
        .map(|module| file_name(profile.texts.get(module.path)))
        .filter(|name| !name.is_empty() && !name.starts_with('['))
        .collect();
    loaded.sort_unstable();
    loaded.dedup();
    let fits = |pattern: &&String| {
        // Patterns and paths are not checked here.
        pattern.contains(['*', '?', '/']) || loaded.iter().any(|name| name.contains(&***pattern))
    };
    let strange: Vec<String> = [("--lib", &args.lib), ("--from", &args.from)]
        .into_iter()
        .flat_map(|(flag, all)| {
            all.iter().filter(|pattern| !fits(pattern)).map(move |name| format!("{flag} {name}"))
        })
        .collect();
    if !strange.is_empty() {
        printer.warning(&format!(
            "no call was traced: no loaded library matches {}",
            strange.join(", ")
        ));
    } else if calls.functions.is_empty() {
        printer.warning("no call was traced: no loaded library imports a matching function");
    } else {
        let n = calls.functions.len() as u64;
        printer.warning(&format!(
            "no call was traced: {} matched, but no call was made",
            plural(n, "function")
        ));
    }
    let mut names: Vec<&str> = loaded.iter().take(MOST).copied().collect();
    if loaded.len() > MOST {
        names.push("…");
    }
    if !names.is_empty() {
        printer.note(&format!("loaded libraries: {}", names.join(", ")));
    }
    if args.lib.is_empty() && args.function.is_empty() {
        printer.note("trace all calls into a library with --lib NAME");
    }
}

/// Adds a hint to errors if one is known.
fn explain(error: laggard_probe::Error) -> anyhow::Error {
    use laggard_probe::{Error, Refusal};
    let hint = match &error {
        Error::Refused(Refusal::Static(_) | Refusal::OtherMachine(..)) => {
            "sample it instead: laggard record --backend perf -- COMMAND"
        }
        Error::Refused(Refusal::Privileged(..)) => {
            "run it as the user or group that owns the program file"
        }
        Error::NotLoaded { .. } => {
            "a program that clears its environment, or is started by such a program, cannot be traced: give the program itself as COMMAND"
        }
        _ => return error.into(),
    };
    failure::with_hint(error.to_string(), hint.to_owned())
}
