//! `laggard calls`: count and time calls into libraries, and keep them.

use super::record::{default_output, ensure_writable};
use crate::cli::{CallsArgs, InsideArg, ProfileForm};
use crate::failure;
use crate::printer::Printer;
use crate::profile::{ensure_replaceable, form_of};
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
        return calls(&args, None, printer);
    };
    // Where `env` gives the side its environment, valgrind has to follow.
    let children = args.children || args.inside.is_some();
    let args = CallsArgs { command: side.words.clone(), children, ..args };
    calls(&args, Some(&side), printer)
}

fn calls(args: &CallsArgs, side: Option<&Alone>, printer: &Printer) -> anyhow::Result<ExitCode> {
    if let Some(pid) = args.pid {
        return Err(failure::with_hint(
            format!(
                "cannot trace the calls of process {pid}: what a running program has bound cannot be changed from outside"
            ),
            format!(
                "start it again under `laggard calls -- COMMAND`, or sample it: laggard record --pid {pid}"
            ),
        ));
    }
    let output = args.output.clone().unwrap_or_else(|| match side {
        Some(side) => default_output(&side.file_name()),
        None => default_output(&args.command[0]),
    });
    if form_of(&output) != Some(ProfileForm::Lag) {
        return Err(failure::with_hint(
            format!("cannot write calls to {}: they are kept in a .lag file", output.display()),
            "give -o FILE.lag, then other forms: laggard report FILE.lag -o calls.json".into(),
        ));
    }
    ensure_writable(&output)?;
    ensure_replaceable(&output, ProfileForm::Lag, args.force)?;
    let (mut calls, ended) = traced(args).map_err(explain)?;
    complete(&mut calls, args, side);
    lag::write_calls(&output, &calls).context("cannot keep the calls")?;
    say(&calls, args, &output, printer);
    Ok(ExitCode::from(ended.code().clamp(0, 255) as u8))
}

/// Traces in the way that is asked for.
fn traced(args: &CallsArgs) -> Result<(Calls, Ended), Error> {
    let cpus = args.cpus.clone().map_or(vec![], |cpus| cpus.0);
    let (libraries, from, functions) = (args.lib.clone(), args.from.clone(), args.function.clone());
    let children = args.children;
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

/// Gives names to callers, and says where and how they were traced.
fn complete(calls: &mut Calls, args: &CallsArgs, side: Option<&Alone>) {
    let resolution = laggard_symbols::resolve_calls(calls, &FileSystem);
    let profile = &mut calls.profile;
    for (module, addresses, why) in resolution.missing {
        let path = profile.modules.get(module as usize).map_or("", |m| profile.texts.get(m.path));
        if path.starts_with('/') {
            let warning =
                format!("{} in {path} have no names: {why}", plural(addresses as u64, "place"));
            profile.quality.warnings.push(warning);
        }
    }
    let mut facts = host::facts();
    // How it was traced, which the tracer knows best.
    facts.append(&mut profile.about.facts);
    profile.about.facts = facts;
    let named = |flag: &str, all: &[String]| -> Vec<String> {
        all.iter().map(|value| format!("{flag} {value}")).collect()
    };
    let mut flags = named("--lib", &args.lib);
    flags.extend(named("--from", &args.from));
    flags.extend(named("--fn", &args.function));
    flags.extend((args.args > 0).then(|| format!("--args {}", args.args)));
    flags.extend(args.children.then(|| "--children".to_owned()));
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

/// What came of it, on standard error.
fn say(calls: &Calls, args: &CallsArgs, output: &Path, printer: &Printer) {
    let view = View::whole(calls);
    let about = &calls.profile.about;
    let quality = &calls.quality;
    let threads = totals(&view, By::Thread).rows.len() as u64;
    let cost = match quality.cost_ns > 0.0 {
        true => format!(", at {} each", Quantity::Time.show(quality.cost_ns)),
        false => String::new(),
    };
    let own = view.whole.own_instructions.filter(|_| view.measure == Measure::Instructions);
    let own = own.map_or_else(String::new, |own| format!(", {}", instructions(own)));
    printer.note(&format!(
        "{} of {} in {} ({} CPU) on {}{own}{cost}",
        plural(view.whole.count, "call"),
        plural(totals(&view, By::Function).rows.len() as u64, "function"),
        duration(about.duration_ns as i64),
        duration((about.user_ns + about.system_ns) as i64),
        plural(threads, "thread"),
    ));
    let losses = [
        (view.whole.unfinished, "unfinished"),
        (quality.too_deep, "too deep to be timed"),
        (quality.table_full, "without a place"),
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
        printer.note(&format!("{} left alone, which cannot be traced", plural(n, "function")));
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
        "wrote {}; see it with `laggard report {}`",
        output.display(),
        output.display()
    ));
}

/// Why nothing was called, as far as names tell.
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
        // Where only a pattern tells, it is not judged here.
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
            "no call was traced: nothing that was loaded matches {}",
            strange.join(", ")
        ));
    } else if calls.functions.is_empty() {
        printer.warning("no call was traced: no function that fits was bound");
    } else {
        let n = calls.functions.len() as u64;
        printer
            .warning(&format!("no call was traced: {} bound, none called", plural(n, "function")));
    }
    let mut names: Vec<&str> = loaded.iter().take(MOST).copied().collect();
    if loaded.len() > MOST {
        names.push("…");
    }
    if !names.is_empty() {
        printer.note(&format!("loaded: {}", names.join(", ")));
    }
    if args.lib.is_empty() && args.function.is_empty() {
        printer.note("name a library to trace all calls into it: --lib NAME");
    }
}

/// Says what helps where something is known to.
fn explain(error: laggard_probe::Error) -> anyhow::Error {
    use laggard_probe::{Error, Refusal};
    let hint = match &error {
        Error::Refused(Refusal::Static(_) | Refusal::OtherMachine(..)) => {
            "only programs that bind libraries when they start can be traced; use perf: perf record --call-graph dwarf,32768 -- COMMAND"
        }
        Error::Refused(Refusal::Privileged(..)) => "run it as the user whose rights it takes",
        Error::NotLoaded { .. } => {
            "a program that clears its environment, or is started by one that does, cannot be traced: give the program itself as the command"
        }
        _ => return error.into(),
    };
    failure::with_hint(error.to_string(), hint.to_owned())
}
