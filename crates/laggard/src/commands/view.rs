//! `laggard view`: writes an HTML page of any file and opens it in a browser.

use crate::cli::{ProfileForm, TraceArgs, ViewArgs};
use crate::commands::{compare, why};
use crate::evidence::{Evidence, TraceFrom};
use crate::failure;
use crate::output::put;
use crate::page::{self, ROWS};
use crate::printer::Printer;
use crate::profile::{Loaded, ensure_replaceable, ensure_some, form_of, missing, name_of};
use crate::trace::{Need, Reading};
use crate::{bench, calls, compare_profile, compare_trace, counters, ffi};
use anyhow::{Context, bail};
use laggard_core::profile::View;
use laggard_core::trace::Analysis;
use laggard_formats::lag::user_cache;
use laggard_report::page::{MOST_FRAMES, Page, html, of_trace};
use laggard_report::trace::{self, TraceReport};
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the verb.
pub(crate) fn run(args: &ViewArgs, printer: &Printer) -> anyhow::Result<()> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => kept_at(&args.files)?,
    };
    let to_stdout = output == Path::new("-");
    if let Some(other) = form_of(&output).filter(|form| *form != ProfileForm::Html) {
        let verb = if other == ProfileForm::Svg { "flame" } else { "convert" };
        return Err(failure::with_hint(
            format!("laggard view writes HTML, but {} has another suffix", output.display()),
            format!("use the suffix .html, or laggard {verb}"),
        ));
    }
    if !to_stdout {
        ensure_replaceable(&output, ProfileForm::Html, args.force || args.output.is_none())?;
    }
    let page = match &args.files[..] {
        [file] => one(file, args, printer)?,
        [a, b] => two([a, b], args, printer)?,
        _ => bail!("give one file, or two files to compare B with A"),
    };
    if to_stdout {
        return printer.data(&page);
    }
    put(&output, page.as_bytes()).with_context(|| format!("cannot write {}", output.display()))?;
    // Without -o the page is in the cache directory, so it is opened by default.
    let opens = args.open || (args.output.is_none() && !args.no_open && has_screen());
    if opens && open(&output).is_err() {
        printer.warning("cannot start a browser");
    }
    printer.note(&format!("wrote {}", output.display()));
    Ok(())
}

fn one(file: &Path, args: &ViewArgs, printer: &Printer) -> anyhow::Result<String> {
    page_of(file, Evidence::load(file, printer)?, args, printer)
}

/// The page of one file.
pub(crate) fn page_of(
    file: &Path,
    evidence: Evidence,
    args: &ViewArgs,
    printer: &Printer,
) -> anyhow::Result<String> {
    let title = file.display().to_string();
    if !matches!(evidence, Evidence::Profile(_))
        && let Some(flag) = args.narrow.given().chain(args.time.given()).next()
    {
        bail!("{flag} applies to profiles; {} is {}", file.display(), evidence.words());
    }
    Ok(match evidence {
        Evidence::Profile(mut loaded) => {
            let title = name_of(&loaded.profile, file);
            page::of_profile(&mut loaded, (&args.narrow, &args.time), &title)?
        }
        Evidence::Bench(timings) => page::of_bench(&timings, &title),
        Evidence::Calls(loaded) => {
            html(&Page { title: &title, report: calls::section(&loaded, file), ..Page::default() })
        }
        Evidence::Counters(found) => {
            html(&Page { title: &title, report: counters::section(&found), ..Page::default() })
        }
        Evidence::Ffi(found) => ffi::page(&found),
        Evidence::Why(source) => why::page_of(*source)?,
        Evidence::Trace(from) => of_trace_file(file, from, printer)?,
    })
}

/// The page of two files.
fn two(files: [&PathBuf; 2], args: &ViewArgs, printer: &Printer) -> anyhow::Result<String> {
    // A directory holds the ranks of a job.
    if files.iter().any(|file| file.is_dir()) {
        let from = [TraceFrom::File, TraceFrom::File];
        return compare_trace::page([files[0], files[1]], from, printer, &title_of(files));
    }
    let evidence = [Evidence::load(files[0], printer)?, Evidence::load(files[1], printer)?];
    page_of_two(files, evidence, args, printer)
}

fn title_of(files: [&PathBuf; 2]) -> String {
    format!("{} compared with {}", files[1].display(), files[0].display())
}

/// The page that compares B with A.
pub(crate) fn page_of_two(
    files: [&PathBuf; 2],
    evidence: [Evidence; 2],
    args: &ViewArgs,
    printer: &Printer,
) -> anyhow::Result<String> {
    let names = files.map(|file| file.display().to_string());
    let title = title_of(files);
    if !matches!(evidence, [Evidence::Profile(_), Evidence::Profile(_)])
        && let Some(flag) = args.narrow.given().chain(args.time.given()).next()
    {
        bail!("{flag} applies to profiles; {} is {}", files[0].display(), evidence[0].words());
    }
    let report = match evidence {
        [Evidence::Profile(a), Evidence::Profile(b)] => {
            return of_profiles([*a, *b], [&names[0], &names[1]], args, &title);
        }
        [Evidence::Calls(a), Evidence::Calls(b)] => {
            compare::section_of_calls(&a, &b, [&names[0], &names[1]])
        }
        [Evidence::Bench(a), Evidence::Bench(b)] => {
            bench::section_of_two((&names[0], &a), (&names[1], &b))
        }
        [Evidence::Counters(a), Evidence::Counters(b)] => {
            counters::section_of_two((&names[0], &a), (&names[1], &b))
        }
        [Evidence::Trace(a), Evidence::Trace(b)] => {
            return compare_trace::page([files[0], files[1]], [a, b], printer, &title);
        }
        [a, b] => {
            return Err(failure::with_hint(
                format!(
                    "cannot compare these files: {} is {}, {} is {}",
                    names[0],
                    a.words(),
                    names[1],
                    b.words()
                ),
                "give two profiles, traces, call traces, benchmarks or files of counters".into(),
            ));
        }
    };
    Ok(html(&Page { title: &title, report, ..Page::default() }))
}

fn of_profiles(
    mut loaded: [Loaded; 2],
    names: [&str; 2],
    args: &ViewArgs,
    title: &str,
) -> anyhow::Result<String> {
    loaded.iter_mut().for_each(|loaded| args.narrow.fold(&mut loaded.profile, true));
    let filter = args.time.of(args.narrow.filter());
    let view =
        |side: usize| View::new(&loaded[side].profile, &filter).map_err(|found| missing(&found));
    let (a, b) = (view(0)?, view(1)?);
    ensure_some(&a)?;
    ensure_some(&b)?;
    compare_profile::ensure_alike(&a, &b)?;
    let pair = compare_profile::pair(&a, &b, names, None);
    let files = [(names[0], &loaded[0]), (names[1], &loaded[1])];
    let report = compare_profile::section(&pair, files, [&a, &b]);
    let (graph, _) = pair.graph.pruned(0.0, MOST_FRAMES);
    Ok(html(&Page { title, report, graph: Some(&graph), ..Page::default() }))
}

/// The page of a trace: the tables of the report and a timeline of streams.
fn of_trace_file(file: &Path, from: TraceFrom, printer: &Printer) -> anyhow::Result<String> {
    let reading = Reading::new(&TraceArgs::default())?;
    let loader = reading.loader(printer);
    let loaded = loader.take(file, from, Need::Tables)?;
    let summary = loader.summary(&loaded);
    let title = file.display().to_string();
    let report = TraceReport {
        path: &title,
        summary: &summary,
        breakdown: None,
        phase: None,
        unclassified: None,
        stacks: None,
        top: Some(ROWS),
    };
    let timeline = loaded
        .timeline
        .as_ref()
        .and_then(|timeline| of_trace(&Analysis::new(timeline, loader.rules, loader.phases, None)));
    let page =
        html(&Page { title: &title, report: trace::html(&report), timeline, ..Page::default() });
    loaded.ensure_whole()?;
    loader.save(file, &loaded, &summary);
    Ok(page)
}

/// The path of a page without -o: in the cache directory of the user, with the same name for the same
/// files.
fn kept_at(files: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let name = |file: &PathBuf| {
        let name = file.file_name().unwrap_or(OsStr::new("page")).to_string_lossy().into_owned();
        name.replace(|c: char| !c.is_alphanumeric() && c != '.', "-")
    };
    let names: Vec<String> = files.iter().map(name).collect();
    let mut hasher = DefaultHasher::new();
    for file in files {
        // Files with the same name in different directories get different pages.
        std::fs::canonicalize(file).unwrap_or_else(|_| file.clone()).hash(&mut hasher);
    }
    let cache = user_cache().context("no cache directory for the page: give -o FILE.html")?;
    let pages = cache.join("pages");
    std::fs::create_dir_all(&pages)
        .with_context(|| format!("cannot create {}", pages.display()))?;
    Ok(pages.join(format!("{}-{:08x}.html", names.join("-"), hasher.finish() as u32)))
}

/// Whether a graphical session is available.
fn has_screen() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_display = !cfg!(target_os = "linux") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    std::io::stderr().is_terminal() && has_display && !is_set("SSH_CONNECTION")
}

/// Opens a file with the default application.
fn open(path: &Path) -> anyhow::Result<()> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let ended = Command::new(program)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !ended.success() {
        return Err(failure::with_hint(
            format!("{program} failed"),
            format!("open {} in a browser", path.display()),
        ));
    }
    Ok(())
}
