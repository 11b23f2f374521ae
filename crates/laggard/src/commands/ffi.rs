//! `laggard ffi`: measures the overhead of calls from Python through each binding and build profile.

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
use laggard_probe::bench::{Plan, ResultCheck, Runs, SidePlan};
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
    // The C API binding is the reference and always measured.
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
        // The build profile does not affect the user's function.
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
    // A failure of the user's function is an error, not a warning.
    let lost = ffi.cells.iter().find(|cell| wanted.own.is_some() && cell.trouble.is_some());
    if let Some(trouble) = lost.and_then(|cell| cell.trouble.as_ref()) {
        let name = wanted.own.as_ref().map(Own::name).unwrap_or_default();
        return Err(failure::with_hint(
            format!("{name} {trouble}"),
            match trouble.contains("ModuleNotFoundError") {
                true => {
                    "set PYTHONPATH, or select the interpreter that has the module with --python"
                        .into()
                }
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

/// Returns the build profile, or fails if both are selected.
fn one_profile(asked: ProfileArg) -> anyhow::Result<Profile> {
    match profiles(asked)[..] {
        [profile] => Ok(profile),
        _ => anyhow::bail!("give one profile: --profile fast or --profile instrumented"),
    }
}

/// Builds bindings for one interpreter. Fails if one of them cannot be built.
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
            failure::with_hint(format!("cannot build {}: {}", binding.name(), not.why), not.hint)
        })?);
    }
    Ok(all)
}

/// Runs `laggard why` for two bindings.
fn why(args: &FfiWhyArgs, printer: &Printer) -> anyhow::Result<()> {
    let bindings = [Binding::named(&args.a)?, Binding::named(&args.b)?];
    ensure!(bindings[0] != bindings[1], "A and B are the same binding");
    let suite = Suite::load()?;
    let chosen = suite.chosen(std::slice::from_ref(&args.category))?;
    ensure!(chosen.len() == 1, "{} matches several categories: give one", args.category);
    let interpreter = Interpreter::find(&args.python)?;
    let profile = one_profile(args.profile)?;
    let built = built(&bindings, &interpreter, profile, printer)?;
    let mut sides = vec![];
    for built in &built {
        let load = loaded(profile.name(), built.binding.module(), &built.module);
        let statement = chosen[0].of(built.binding, &load).map_err(|why| {
            anyhow::anyhow!("{} does not support {}: {why}", built.binding.name(), chosen[0].name)
        })?;
        let runs = Runs::Statement {
            code: statement.code.trim().into(),
            setup: statement.setup,
            prepare: String::new(),
        };
        let name = built.binding.name();
        sides
            .push(SidePlan { python: Some(interpreter.path.clone()), ..SidePlan::new(name, runs) });
    }
    // No check: the suite checks results, and a statement may return an object specific to its
    // binding.
    let plan = Plan { sides, check: ResultCheck::Skip, ..Plan::default() };
    why::of_sides(plan, (args.time, args.timeout), &args.output, printer)
}

/// Replaces this process by a program that calls functions through one binding.
fn run_alone(args: &FfiRunArgs, printer: &Printer) -> anyhow::Result<()> {
    let binding = Binding::named(&args.binding)?;
    // Checks the categories before building.
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
            anyhow::bail!("{} does not support {}: {why}", binding.name(), categories[0].name);
        }
        command.args(["--categories", &names.join(",")]);
    }
    // Replaces this process, so that a profiler sees only that program.
    Err(command.exec()).with_context(|| format!("cannot run {}", interpreter.path.display()))
}

/// Builds the bindings and prints the commands and directories.
fn build_only(args: &FfiBuildArgs, printer: &Printer) -> anyhow::Result<()> {
    let bindings = Binding::chosen(&args.bindings)?;
    let interpreters = interpreters(&or_usual(&args.python))?;
    let profiles = profiles(args.profile);
    if args.to.is_some() {
        ensure!(
            interpreters.len() == 1 && profiles.len() == 1,
            "--to requires one profile and one interpreter: give --profile fast or --profile instrumented"
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
                let how = if built.is_cached { "cached" } else { "built" };
                text += &format!("  {how}: {}\n", directory.display());
            }
            Err(not) => {
                text += &format!("  skipped: {}\n", not.why);
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
