//! `laggard ffi`: what a call from Python costs, through every binding, in both build profiles.

use super::why;
use crate::cli::{FfiArgs, FfiBuildArgs, FfiRunArgs, FfiVerb, FfiWhyArgs, ProfileArg};
use crate::failure;
use crate::ffi::binding::Binding;
use crate::ffi::build::{self, Built, Order, Profile, Workshop};
use crate::ffi::interpreter::Interpreter;
use crate::ffi::suite::Suite;
use crate::ffi::{self, Own, Wanted, interpreters, loaded, script};
use crate::output::Destination;
use crate::printer::Printer;
use anyhow::{Context, ensure};
use laggard_probe::bench::{Plan, Runs, SidePlan};
use laggard_report::ffi as show;
use laggard_report::number::{bytes, plural};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Runs the verb.
pub(crate) fn run(args: &FfiArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    match &args.verb {
        None => measure(args, printer)?,
        Some(FfiVerb::Why(args)) => why(args, printer)?,
        Some(FfiVerb::Run(args)) => run_alone(args, printer)?,
        Some(FfiVerb::Build(args)) => build_only(args, printer)?,
        Some(FfiVerb::Clear) => {
            let removed = build::clear()?;
            printer.note(&format!("removed {}", bytes(removed as i64)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &FfiArgs, printer: &Printer) -> anyhow::Result<()> {
    let destination = Destination::of(&args.output)?;
    let mut bindings = match args.function {
        Some(_) => vec![],
        None => Binding::chosen(&args.bindings)?,
    };
    // Without the floor there is nothing to compare with.
    if !bindings.contains(&Binding::Capi) {
        bindings.insert(0, Binding::Capi);
    }
    let pythons = or_usual(&args.python);
    let own = match &args.function {
        None => None,
        Some((module, function)) => Some(Own {
            module: module.clone(),
            function: function.clone(),
            count: Interpreter::find(&pythons[0])?.elements(&args.args)?,
            arguments: args.args.clone(),
            setup: args.setup.join("\n"),
        }),
    };
    let wanted = Wanted {
        bindings,
        categories: args.categories.clone(),
        // A function of the user's is built as it is.
        profiles: if own.is_some() {
            vec![profiles(args.profile)[0]]
        } else {
            profiles(args.profile)
        },
        pythons,
        is_quick: args.quick,
        iterations: args.iterations,
        launches: args.launches,
        cpus: args.cpus.clone().map_or(vec![], |cpus| cpus.0),
        timeout: args.timeout,
        own,
    };
    let ffi = ffi::run(&wanted, printer)?;
    // What was asked for and could not be measured is an error.
    let lost = ffi.cells.iter().find(|cell| wanted.own.is_some() && cell.trouble.is_some());
    if let Some(trouble) = lost.and_then(|cell| cell.trouble.as_ref()) {
        let name = wanted.own.as_ref().map(Own::name).unwrap_or_default();
        return Err(failure::with_hint(
            format!("{name} {trouble}"),
            match trouble.contains("ModuleNotFoundError") {
                true => "the module is looked for as Python does: set PYTHONPATH, or give its interpreter with --python".into(),
                false => String::new(),
            },
        ));
    }
    ffi::show(&ffi, args.all, &destination, printer)
}

fn or_usual(pythons: &[String]) -> Vec<String> {
    if pythons.is_empty() { vec!["python3".into()] } else { pythons.to_vec() }
}

fn profiles(asked: ProfileArg) -> Vec<Profile> {
    match asked {
        ProfileArg::Fast => vec![Profile::Fast],
        ProfileArg::Instrumented => vec![Profile::Instrumented],
        ProfileArg::Both => Profile::ALL.to_vec(),
    }
}

/// The profile where only one makes sense.
fn one_profile(asked: ProfileArg) -> anyhow::Result<Profile> {
    match profiles(asked)[..] {
        [profile] => Ok(profile),
        _ => anyhow::bail!("give one profile: --profile fast or --profile instrumented"),
    }
}

/// Builds these bindings for one interpreter, or says why one of them cannot be.
fn built(
    bindings: &[Binding],
    interpreter: &Interpreter,
    profile: Profile,
    printer: &Printer,
) -> anyhow::Result<Vec<Built>> {
    let workshop = Workshop::open()?;
    let order = |&binding: &Binding| Order { binding, interpreter, profile, is_simulated: false };
    let orders: Vec<Order> = bindings.iter().map(order).collect();
    let bar = printer.steps();
    let answers = workshop.build(&orders, &|what| bar.set_message(format!("building {what}")));
    bar.finish_and_clear();
    let mut all = vec![];
    for (binding, answer) in bindings.iter().zip(answers) {
        all.push(answer.map_err(|not| {
            failure::with_hint(format!("{} cannot be built: {}", binding.name(), not.why), not.hint)
        })?);
    }
    Ok(all)
}

/// Hands two bindings to `why`.
fn why(args: &FfiWhyArgs, printer: &Printer) -> anyhow::Result<()> {
    let bindings = [Binding::named(&args.a)?, Binding::named(&args.b)?];
    ensure!(bindings[0] != bindings[1], "A and B are the same binding");
    let suite = Suite::load()?;
    let chosen = suite.chosen(std::slice::from_ref(&args.category))?;
    ensure!(chosen.len() == 1, "{} is several categories: give one", args.category);
    let interpreter = Interpreter::find(&args.python)?;
    let profile = one_profile(args.profile)?;
    let built = built(&bindings, &interpreter, profile, printer)?;
    let mut sides = vec![];
    for built in &built {
        let load = loaded(profile.name(), built.binding.module(), &built.module);
        let statement = chosen[0].of(built.binding, &load).map_err(|why| {
            anyhow::anyhow!("{} cannot do {}: {why}", built.binding.name(), chosen[0].name)
        })?;
        let runs = Runs::Statement { code: statement.code.trim().into(), setup: statement.setup };
        let name = built.binding.name();
        sides
            .push(SidePlan { python: Some(interpreter.path.clone()), ..SidePlan::new(name, runs) });
    }
    // The suite has compared what they give; a statement alone may give an object of its binding's.
    let plan = Plan { sides, check: false, ..Plan::default() };
    why::of_sides(plan, (args.time, args.timeout), &args.output, printer)
}

/// Becomes the program that calls functions through one binding.
fn run_alone(args: &FfiRunArgs, printer: &Printer) -> anyhow::Result<()> {
    let binding = Binding::named(&args.binding)?;
    // Before anything is built for nothing.
    let suite = Suite::load()?;
    let categories = suite.chosen(&args.categories)?;
    let interpreter = Interpreter::find(&args.python)?;
    let built = built(&[binding], &interpreter, one_profile(args.profile)?, printer)?;
    let built = built.first().context("nothing was built")?;
    let script = built.directory.join(script::name(binding));
    let mut command = Command::new(&interpreter.path);
    command.arg(script).args(["--iterations", &args.iterations.to_string()]);
    if !args.categories.is_empty() {
        let able = categories.iter().filter(|category| category.of(binding, "").is_ok());
        let names: Vec<&str> = able.map(|category| category.name.as_str()).collect();
        if let (true, Some(Err(why))) =
            (names.is_empty(), categories.first().map(|of| of.of(binding, "")))
        {
            anyhow::bail!("{} cannot do {}: {why}", binding.name(), categories[0].name);
        }
        command.args(["--categories", &names.join(",")]);
    }
    // In place of this process, so that a profiler sees that program alone.
    Err(command.exec()).with_context(|| format!("cannot run {}", interpreter.path.display()))
}

/// Builds, and says how and where.
fn build_only(args: &FfiBuildArgs, printer: &Printer) -> anyhow::Result<()> {
    let bindings = Binding::chosen(&args.bindings)?;
    let interpreters = interpreters(&or_usual(&args.python))?;
    let profiles = profiles(args.profile);
    if args.to.is_some() {
        ensure!(
            interpreters.len() == 1 && profiles.len() == 1,
            "--to takes one profile and one interpreter: give --profile fast or --profile instrumented"
        );
    }
    let workshop = Workshop::open()?;
    let mut orders = vec![];
    for interpreter in &interpreters {
        for &profile in &profiles {
            orders.extend(bindings.iter().map(|&binding| Order {
                binding,
                interpreter,
                profile,
                is_simulated: false,
            }));
        }
    }
    let bar = printer.steps();
    let answers = workshop.build(&orders, &|what| bar.set_message(format!("building {what}")));
    bar.finish_and_clear();
    let mut text = String::new();
    let mut done = 0;
    for (order, answer) in orders.iter().zip(&answers) {
        let version = &order.interpreter.version;
        text += &format!("{}, {}, Python {version}\n", order.binding.name(), order.profile.name());
        match answer {
            Ok(built) => {
                done += 1;
                text += &show::build_text(&built.record.commands, &built.record.libraries());
                let directory = match &args.to {
                    Some(to) => ffi::copy_to(built, to)
                        .with_context(|| format!("cannot write to {}", to.display()))?,
                    None => built.directory.clone(),
                };
                let how = if built.is_cached { "was built before" } else { "built" };
                text += &format!("  {how}: {}\n", directory.display());
            }
            Err(not) => {
                text += &format!("  left out: {}\n", not.why);
                if !not.hint.is_empty() {
                    text += &format!("  hint: {}\n", not.hint);
                }
                if let Some(to) = &args.to {
                    ffi::clear_copy(order.binding, to)
                        .with_context(|| format!("cannot write to {}", to.display()))?;
                }
            }
        }
    }
    printer.data(&text)?;
    let of = plural(orders.len() as u64, "module");
    ensure!(done > 0, "none of {of} could be built");
    Ok(())
}
