//! `laggard inspect`: shows how a library was built and what its code consists of.

use crate::cli::{Format, InspectArgs, InspectBy, InspectSort};
use crate::failure;
use crate::printer::Printer;
use anyhow::{Context, bail};
use laggard_core::model::code::{Code, CodeFile};
use laggard_core::model::profile::Profile;
use laggard_formats::lag::{Run, read_run};
use laggard_probe::host;
use laggard_report::code::{self as show, Choice, CodeReport, Shown, Sort, glob};
use laggard_symbols::{Elf, Samples};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Default number of rows per table.
const USUAL_ROWS: usize = 15;
/// Maximum number of functions listed by one `--asm` pattern.
const MOST_LISTINGS: usize = 8;
/// Minimum share of samples for inspecting a module of a profile by default.
const SHARE_THAT_MATTERS: f64 = 0.01;

/// Runs the verb.
pub(crate) fn run(args: &InspectArgs, printer: &Printer) -> anyhow::Result<()> {
    let places = args.output.places()?;
    let profile = match &args.profile {
        Some(path) => Some(read_profile(path, printer)?),
        None => None,
    };
    let paths = files(args, profile.as_ref())?;
    let (mut code, looked_at) = look_at(&paths, profile.as_ref(), printer)?;
    for wanted in &args.asm {
        list(wanted, &looked_at, &mut code)?;
    }
    let choice = choice(args);
    if !choice.patterns.is_empty()
        && show::choose(&code, &Choice { sort: Sort::Size, ..choice.clone() }).is_empty()
    {
        return Err(nothing_fits(&choice.patterns.join(" "), &code));
    }
    let report = CodeReport {
        code: &code,
        choice: &choice,
        shown: match args.by {
            Some(InspectBy::File) => Shown::Files,
            Some(InspectBy::Function) => Shown::Functions,
            None if !args.functions.is_empty() => Shown::Functions,
            None => Shown::All,
        },
        bytes: args.bytes,
    };
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&report, style),
        Format::Json => show::json(&report),
        Format::Csv => show::csv(&report),
        Format::Md | Format::Html => show::markdown(&report),
    })
}

/// A file with its samples.
type LookedAt = (Elf, Option<Samples>);

/// Inspects files, and assigns the samples of a profile to them.
pub(crate) fn look_at(
    paths: &[PathBuf],
    profile: Option<&Profile>,
    printer: &Printer,
) -> anyhow::Result<(Code, Vec<LookedAt>)> {
    let features = host::cpu_features();
    let mut code = Code::default();
    let mut looked_at: Vec<LookedAt> = vec![];
    for path in paths {
        let elf = Elf::open(path).map_err(explain)?;
        let mut file = laggard_symbols::inspect(&elf, &path.display().to_string(), &mut code.texts);
        if !features.is_empty() && is_for_this_machine(&file) {
            laggard_symbols::judge_targets(&mut file.targets, &features);
        }
        let samples = profile.map(|profile| {
            warn_if_changed(profile, &file, printer);
            laggard_symbols::samples_in(profile, &file)
        });
        if let Some(samples) = &samples {
            file.executed = Some(laggard_symbols::executed(&elf, &file, samples));
        }
        code.files.push(file);
        looked_at.push((elf, samples));
    }
    Ok((code, looked_at))
}

fn choice(args: &InspectArgs) -> Choice {
    let usual = if args.profile.is_some() { InspectSort::Samples } else { InspectSort::Size };
    Choice {
        patterns: args.functions.clone(),
        sort: match args.sort.unwrap_or(usual) {
            InspectSort::Size => Sort::Size,
            InspectSort::Vector => Sort::Vector,
            InspectSort::Samples => Sort::Samples,
            InspectSort::Name => Sort::Name,
            InspectSort::Address => Sort::Address,
        },
        top: (!args.all).then_some(args.top.unwrap_or(USUAL_ROWS)),
    }
}

fn read_profile(path: &Path, printer: &Printer) -> anyhow::Result<Profile> {
    let (run, losses) = read_run(path)?;
    losses.iter().for_each(|loss| printer.warning(&format!("{}: {loss}", path.display())));
    match run {
        Run::Profile(profile) => Ok(profile),
        _ => bail!("{} has no samples: give a file written by laggard record", path.display()),
    }
}

/// The files to inspect: given by path, library name or Python package; by default the hot modules of
/// the profile.
fn files(args: &InspectArgs, profile: Option<&Profile>) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = vec![];
    for given in &args.files {
        paths.push(find(given)?);
    }
    for package in &args.python {
        paths.extend(python_package(package)?);
    }
    if paths.is_empty() {
        let Some(profile) = profile else {
            return Err(failure::with_hint(
                "nothing to inspect".into(),
                "give a library or program, --python PACKAGE, or --profile RUN.lag".into(),
            ));
        };
        paths = hot_modules(profile);
        anyhow::ensure!(!paths.is_empty(), "the profile has no samples in files on this machine");
    }
    Ok(paths)
}

fn find(given: &Path) -> anyhow::Result<PathBuf> {
    if given.is_file() {
        return Ok(given.to_owned());
    }
    anyhow::ensure!(!given.is_dir(), "{} is a directory: give a file", given.display());
    let directories = |variable: &str| {
        let list = std::env::var_os(variable).unwrap_or_default();
        let all: Vec<PathBuf> = std::env::split_paths(&list).collect();
        all.into_iter().filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>()
    };
    let name = given.to_str().filter(|name| !name.contains('/'));
    let library =
        name.and_then(|name| laggard_symbols::locate(name, &directories("LD_LIBRARY_PATH")));
    let program = || {
        let candidates =
            directories("PATH").into_iter().filter_map(|place| Some(place.join(name?)));
        candidates.into_iter().find(|path| path.is_file())
    };
    library.or_else(program).ok_or_else(|| match name {
        None => anyhow::anyhow!("no such file: {}", given.display()),
        Some(name) => failure::with_hint(
            format!("no file, library or program named {name:?}"),
            "give its path, or --python PACKAGE for the libraries of a Python package".into(),
        ),
    })
}

/// Extension modules and bundled libraries of a package, found with the Python in PATH.
fn python_package(package: &str) -> anyhow::Result<Vec<PathBuf>> {
    const SCRIPT: &str = "import importlib.util, sys
spec = importlib.util.find_spec(sys.argv[1])
places = list(spec.submodule_search_locations or []) if spec else []
print('\\n'.join(places or ([spec.origin] if spec and spec.origin else [])))";
    let python = ["python3", "python"]
        .iter()
        .find_map(|python| Command::new(python).args(["-c", SCRIPT, package]).output().ok());
    let output = python.context("python3 is not in PATH")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found = vec![];
    for place in text.lines().filter(|line| !line.is_empty()) {
        let place = PathBuf::from(place);
        if place.is_file() {
            found.push(place);
            continue;
        }
        // Wheels store bundled libraries in a directory beside the package.
        let mut beside = place.clone().into_os_string();
        beside.push(".libs");
        libraries(&place, &mut found, 0);
        libraries(Path::new(&beside), &mut found, 0);
    }
    found.retain(|path| is_library(path));
    found.sort();
    if found.is_empty() {
        return Err(failure::with_hint(
            format!("the Python in PATH has no package {package:?} with native code"),
            "activate the environment in which it is installed".into(),
        ));
    }
    Ok(found)
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

fn libraries(place: &Path, found: &mut Vec<PathBuf>, depth: usize) {
    const DEEPEST: usize = 16;
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < DEEPEST {
            libraries(&entry.path(), found, depth + 1);
        } else if kind.is_file() && is_library(&entry.path()) {
            found.push(entry.path());
        }
    }
}

/// Files with a significant share of the samples, sorted by samples.
pub(crate) fn hot_modules(profile: &Profile) -> Vec<PathBuf> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in &profile.samples {
        let frame = profile.frames_of(sample.stack).next();
        if let Some(frame) = frame.and_then(|frame| profile.frames.get(frame as usize)) {
            *counts.entry(profile.module_path(frame)).or_default() += 1;
        }
    }
    let least = SHARE_THAT_MATTERS * profile.samples.len() as f64;
    let mut modules: Vec<(&str, u64)> = counts
        .into_iter()
        .filter(|(path, count)| *count as f64 >= least && Path::new(path).is_file())
        .collect();
    modules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    modules.into_iter().map(|(path, _)| path.into()).collect()
}

fn add_listing(code: &mut Code, files: &[LookedAt], number: usize, function: usize) {
    let (elf, samples) = &files[number];
    let file = &code.files[number];
    let mut listing =
        laggard_symbols::listing(elf, file, function, samples.as_ref(), &mut code.texts);
    listing.file = number as u32;
    code.listings.push(listing);
}

/// Adds a listing of the function with the most samples.
pub(crate) fn list_hottest(code: &mut Code, files: &[LookedAt]) {
    let mut hottest: Option<(u64, usize, usize)> = None;
    for (number, (file, (_, samples))) in code.files.iter().zip(files).enumerate() {
        let Some(samples) = samples else { continue };
        for (at, function) in file.functions.iter().enumerate() {
            let range = function.address..function.address.saturating_add(function.size);
            let here: u64 = samples.at.range(range).map(|(_, count)| count).sum();
            if here > hottest.map_or(0, |(most, ..)| most) {
                hottest = Some((here, number, at));
            }
        }
    }
    if let Some((_, number, at)) = hottest {
        add_listing(code, files, number, at);
    }
}

fn warn_if_changed(profile: &Profile, file: &CodeFile, printer: &Printer) {
    let own = std::fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone().into());
    let changed = profile.modules.iter().any(|module| {
        let id = profile.texts.get(module.id);
        let path = Path::new(profile.texts.get(module.path));
        !id.is_empty() && id != file.id && path == own
    });
    if changed {
        printer.warning(&format!(
            "{} has changed since the profile was recorded: its samples are skipped",
            file.path
        ));
    }
}

fn is_for_this_machine(file: &CodeFile) -> bool {
    matches!(
        (std::env::consts::ARCH, &*file.machine),
        ("x86_64", "x86-64") | ("aarch64", "AArch64")
    )
}

/// Adds listings of the functions selected by `--asm`: by name, pattern or address.
fn list(wanted: &str, files: &[LookedAt], code: &mut Code) -> anyhow::Result<()> {
    let address = wanted.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let mut found = vec![];
    for (number, file) in code.files.iter().enumerate() {
        for (at, function) in file.functions.iter().enumerate() {
            let name = code.texts.get(function.name);
            let is_meant = match address {
                Some(address) => address.wrapping_sub(function.address) < function.size,
                None => name == wanted || without_arguments(name) == wanted,
            };
            if is_meant {
                found.push((number, at));
            }
        }
    }
    if found.is_empty() && address.is_none() {
        let choice = Choice { patterns: vec![wanted.to_owned()], ..Choice::default() };
        found = show::choose(code, &choice).iter().map(|row| (row.file, row.function)).collect();
    }
    if found.is_empty() {
        return Err(nothing_fits(wanted, code));
    }
    if found.len() > MOST_LISTINGS {
        return Err(failure::with_hint(
            format!("{wanted:?} matches {} functions", found.len()),
            format!("list them with --fn '{wanted}', then give one name or address"),
        ));
    }
    for (number, at) in found {
        add_listing(code, files, number, at);
    }
    Ok(())
}

fn without_arguments(name: &str) -> &str {
    &name[..name.find('(').unwrap_or(name.len())]
}

/// The error for a missing function, with similar names as hint.
fn nothing_fits(wanted: &str, code: &Code) -> anyhow::Error {
    const MOST: usize = 5;
    let pattern = format!("*{}*", wanted.trim_matches('*').to_lowercase());
    let functions = code.files.iter().flat_map(|file| &file.functions);
    let mut names: Vec<&str> = functions
        .map(|function| code.texts.get(function.name))
        .filter(|name| !name.is_empty() && glob(&pattern, &name.to_lowercase()))
        .collect();
    names.sort_by_key(|name| name.len());
    names.dedup();
    names.truncate(MOST);
    let names: Vec<String> =
        names.iter().map(|name| laggard_report::escape::fit(name, 80)).collect();
    let hint = match names.is_empty() {
        true => "list all functions: laggard inspect LIB --by function --all".to_owned(),
        false => format!("similar names: {}", names.join(", ")),
    };
    failure::with_hint(format!("no function matches {wanted:?}"), hint)
}

fn explain(error: laggard_symbols::Error) -> anyhow::Error {
    match &error {
        laggard_symbols::Error::NotElf { .. } => failure::with_hint(
            error.to_string(),
            "give an executable, a shared library (.so) or an object file (.o), not a script"
                .into(),
        ),
        _ => error.into(),
    }
}
