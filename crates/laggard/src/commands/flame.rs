//! `laggard flame`: draws a profile as a flame graph (SVG).

use crate::cli::{FlameArgs, ProfileForm};
use crate::compare_profile::{ensure_alike, pair};
use crate::evidence::Evidence;
use crate::failure;
use crate::output::put;
use crate::printer::Printer;
use crate::profile::{Loaded, ensure_replaceable, ensure_some, form_of, missing, name_of};
use anyhow::{Context, bail};
use laggard_core::profile::View;
use laggard_report::flame::{Graph, svg};
use std::path::{Path, PathBuf};

/// Runs the verb.
pub(crate) fn run(args: &FlameArgs, printer: &Printer) -> anyhow::Result<()> {
    let output = args.output.clone().unwrap_or_else(|| beside(&args.files));
    let to_stdout = output == Path::new("-");
    let form = form_of(&output);
    if output.extension().is_some() && form != Some(ProfileForm::Svg) {
        let verb = if form == Some(ProfileForm::Html) { "view" } else { "convert" };
        return Err(failure::with_hint(
            format!("laggard flame writes SVG, but {} has another suffix", output.display()),
            format!("use the suffix .svg, or write another format with laggard {verb}"),
        ));
    }
    if !to_stdout {
        ensure_replaceable(&output, ProfileForm::Svg, args.force)?;
    }
    let (graph, title) = match &args.files[..] {
        [file] => one(file, args, printer)?,
        [a, b] => two([a, b], args, printer)?,
        _ => bail!("give one file, or two files to compare B with A"),
    };
    let picture = svg(&graph, args.title.as_deref().unwrap_or(&title));
    if to_stdout {
        return printer.data(&picture);
    }
    put(&output, picture.as_bytes())
        .with_context(|| format!("cannot write {}", output.display()))?;
    printer.note(&format!("wrote {}", output.display()));
    Ok(())
}

/// Loads a profile.
fn load(file: &Path, args: &FlameArgs, printer: &Printer) -> anyhow::Result<Box<Loaded>> {
    let evidence = Evidence::load(file, printer)?;
    let Evidence::Profile(mut loaded) = evidence else {
        return Err(failure::with_hint(
            format!(
                "cannot draw a flame graph of {}: it is {}, not a profile",
                file.display(),
                evidence.words()
            ),
            format!("show it in a browser: laggard view {}", file.display()),
        ));
    };
    for loss in loaded.losses.iter().chain(&loaded.profile.quality.warnings) {
        printer.warning(loss);
    }
    args.narrow.fold(&mut loaded.profile, true);
    Ok(loaded)
}

/// The differential flame graph of two profiles, with its title.
fn two(
    files: [&PathBuf; 2],
    args: &FlameArgs,
    printer: &Printer,
) -> anyhow::Result<(Graph, String)> {
    let loaded = [load(files[0], args, printer)?, load(files[1], args, printer)?];
    let filter = args.time.of(args.narrow.filter());
    let view =
        |side: usize| View::new(&loaded[side].profile, &filter).map_err(|found| missing(&found));
    let names = files.map(|file| file.display().to_string());
    let (a, b) = (view(0)?, view(1)?);
    ensure_some(&a)?;
    ensure_some(&b)?;
    ensure_alike(&a, &b)?;
    let pair = pair(&a, &b, [&names[0], &names[1]], None);
    Ok((pair.graph, format!("{} compared with {}", names[1], names[0])))
}

/// The flame graph of one profile, with its title.
fn one(file: &Path, args: &FlameArgs, printer: &Printer) -> anyhow::Result<(Graph, String)> {
    let loaded = load(file, args, printer)?;
    let filter = args.time.of(args.narrow.filter());
    let view = View::new(&loaded.profile, &filter).map_err(|found| missing(&found))?;
    ensure_some(&view)?;
    let title = name_of(&loaded.profile, file);
    Ok((Graph::of_view(&view, &title).0, title))
}

/// The default output: `run.svg` for `run.lag`, in the current directory. Only known suffixes are
/// removed.
fn beside(files: &[PathBuf]) -> PathBuf {
    const SUFFIXES: [&str; 14] = [
        ".gz",
        ".zst",
        ".pb",
        ".json",
        ".speedscope",
        ".profile",
        ".lag",
        ".data",
        ".folded",
        ".collapsed",
        ".txt",
        ".raw",
        ".massif",
        ".callgrind",
    ];
    let stem = |file: &PathBuf| {
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        let mut stem = name.as_str();
        while let Some(shorter) = SUFFIXES.iter().find_map(|suffix| stem.strip_suffix(suffix)) {
            stem = shorter;
        }
        if stem.is_empty() || stem == "-" { "flame".to_owned() } else { stem.to_owned() }
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    PathBuf::from(format!("{}.svg", stems.join("-")))
}
