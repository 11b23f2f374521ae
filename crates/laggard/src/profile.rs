//! Detects and loads recordings, and writes profiles in all formats.

use crate::cli::ProfileForm;
use crate::failure;
use crate::output;
use crate::page;
use anyhow::{Context, bail};
use laggard_core::model::profile::Profile;
use laggard_core::profile::{By, Missing, Totals, View, join_workers, totals};
use laggard_formats::lag::{self, RUN_SCHEMA, Run};
use laggard_formats::read::pprof::is_pprof;
use laggard_formats::{Bytes, Source, write};
use laggard_report::flame::{Graph, svg};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A loaded profile, with its losses.
pub(crate) struct Loaded {
    pub(crate) profile: Profile,
    pub(crate) losses: Vec<String>,
}

/// Whether a file is a recording, possibly damaged. Fails for an index of a trace.
pub(crate) fn is_run(path: &Path) -> anyhow::Result<bool> {
    match lag::format_of(path) {
        Some(format) if format.starts_with("laggard.index/") => Err(failure::with_hint(
            format!("{} is the index of a trace, not a trace or a recording", path.display()),
            format!("give the trace instead: laggard report {}", path.with_extension("").display()),
        )),
        Some(_) => Ok(true),
        None => Ok(is_damaged_run(path)),
    }
}

/// Whether a file starts like a recording but has no valid manifest.
fn is_damaged_run(path: &Path) -> bool {
    let mut head = vec![];
    let read = |file: File| file.take(1024).read_to_end(&mut head);
    path.is_file()
        && File::open(path).and_then(read).is_ok()
        && head.starts_with(&[0xff; 4])
        && head.windows(RUN_SCHEMA.len()).any(|text| text == RUN_SCHEMA.as_bytes())
}

/// Loads a recording or call trace, with its losses.
pub(crate) fn load_run(path: &Path) -> anyhow::Result<(Run, Vec<String>)> {
    if !path.exists() {
        // Returns the error of the operating system.
        File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    }
    if !is_run(path)? {
        return Err(failure::with_hint(
            format!("{} is not a recording", path.display()),
            "give a .lag file written by laggard record or laggard calls".into(),
        ));
    }
    let (run, losses) = lag::read_run(path)?;
    Ok((run, losses.iter().map(ToString::to_string).collect()))
}

impl Loaded {
    /// Prepares a profile for display: attaches worker threads to the calls they work for.
    pub(crate) fn new(mut profile: Profile, losses: Vec<String>) -> Loaded {
        join_workers(&mut profile);
        Loaded { profile, losses }
    }
}

/// The default tables of a report.
pub(crate) fn usual_tables(view: &View) -> Vec<Totals> {
    let usual = [By::Library, By::Function, By::PythonLine];
    let mut tables: Vec<Totals> = usual.into_iter().map(|by| totals(view, by)).collect();
    // Omitted for programs without Python.
    let has_python = |table: &Totals| table.rows.iter().any(|row| !row.of.is_empty());
    tables.retain(|table| table.by != By::PythonLine || has_python(table));
    tables
}

/// Fails if no samples match the filters.
pub(crate) fn ensure_some(view: &View) -> anyhow::Result<()> {
    anyhow::ensure!(view.whole.samples > 0, "no samples match the filters");
    Ok(())
}

/// The title of a profile: the recorded command, or the file.
pub(crate) fn name_of(profile: &Profile, file: &Path) -> String {
    match profile.about.command.join(" ") {
        command if command.is_empty() => file.display().to_string(),
        command => command,
    }
}

/// The error for a missing item, with the available ones as hint.
pub(crate) fn missing(missing: &Missing) -> anyhow::Error {
    const MOST: usize = 20;
    let visible = |name: &String| laggard_report::escape::visible(name);
    let mut there: Vec<String> = missing.there.iter().take(MOST).map(visible).collect();
    if missing.there.len() > MOST {
        there.push("…".into());
    }
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    failure::with_hint(missing.to_string(), format!("available: {there}"))
}

/// The format selected by the suffix of a file.
pub fn form_of(path: &Path) -> Option<ProfileForm> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let forms = [
        (".speedscope.json", ProfileForm::Speedscope),
        (".profile.json", ProfileForm::Firefox),
        (".profile.json.gz", ProfileForm::Firefox),
        (".lag", ProfileForm::Lag),
        (".svg", ProfileForm::Svg),
        (".html", ProfileForm::Html),
        (".htm", ProfileForm::Html),
        (".folded", ProfileForm::Collapsed),
        (".collapsed", ProfileForm::Collapsed),
        (".txt", ProfileForm::Collapsed),
        (".trace.json", ProfileForm::Chrome),
        (".trace.json.gz", ProfileForm::Chrome),
        (".pb.gz", ProfileForm::Pprof),
        (".pprof", ProfileForm::Pprof),
        (".csv", ProfileForm::Csv),
    ];
    forms.into_iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, form)| form)
}

/// Writes a profile atomically.
pub fn write_profile(profile: &Profile, path: &Path, form: ProfileForm) -> anyhow::Result<()> {
    write_view(&View::whole(profile), path, form)
}

/// Writes the samples of a view. A `.lag` recording is always written without filters.
pub(crate) fn write_view(view: &View, path: &Path, form: ProfileForm) -> anyhow::Result<()> {
    if form == ProfileForm::Lag {
        return Ok(lag::write_profile(path, view.profile)?);
    }
    let is_gz = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("gz"));
    let content = content(view, form, is_gz)?;
    output::put(path, &content).with_context(|| format!("cannot write {}", path.display()))
}

/// The content of a file of this format. pprof is always compressed.
pub(crate) fn content(view: &View, form: ProfileForm, is_gz: bool) -> anyhow::Result<Vec<u8>> {
    let content = render(view, form)?;
    let is_gz = is_gz || form == ProfileForm::Pprof;
    Ok(if is_gz { laggard_formats::gzip(&content) } else { content })
}

fn render(view: &View, form: ProfileForm) -> anyhow::Result<Vec<u8>> {
    let command = view.profile.about.command.join(" ");
    let title = if command.is_empty() { "profile" } else { &command };
    let mut out = vec![];
    match form {
        ProfileForm::Lag => bail!("cannot write a .lag recording to standard output"),
        ProfileForm::Svg => out = svg(&Graph::of_view(view, title).0, title).into_bytes(),
        ProfileForm::Html => out = page::of_view(view, title, String::new()).into_bytes(),
        ProfileForm::Collapsed => write::collapsed(view, &mut out)?,
        ProfileForm::Speedscope => write::speedscope(view, title, &mut out)?,
        ProfileForm::Firefox => write::firefox(view, title, &mut out)?,
        ProfileForm::Pprof => write::pprof(view, title, &mut out)?,
        ProfileForm::Chrome => write::chrome(view, title, &mut out)?,
        ProfileForm::Csv => write::csv(view, &mut out)?,
    }
    Ok(out)
}

/// Fails if the file exists and has another format, so that nothing is overwritten by accident.
pub fn ensure_replaceable(path: &Path, form: ProfileForm, force: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!path.is_dir(), "cannot write {}: it is a directory", path.display());
    if force || !path.is_file() || is_of_form(path, form) {
        return Ok(());
    }
    bail!("{} exists and has another format: use --force to overwrite it", path.display())
}

fn is_of_form(path: &Path, form: ProfileForm) -> bool {
    const HEAD: usize = 4096;
    if form == ProfileForm::Lag {
        let is_empty = path.metadata().is_ok_and(|meta| meta.len() == 0);
        return is_empty || lag::format_of(path).as_deref() == Some(RUN_SCHEMA);
    }
    let head = match Source::open(path).map(|source| source.bytes) {
        Ok(Bytes::Mapped(map)) => map[..map.len().min(HEAD)].to_vec(),
        Ok(Bytes::Stream(stream)) => {
            let mut head = vec![];
            // Ignores errors: the bytes decompressed so far are enough.
            let _ = stream.take(HEAD as u64).read_to_end(&mut head);
            head
        }
        Err(_) => return false,
    };
    let text = String::from_utf8_lossy(&head);
    let starts = |start: &str| text.starts_with(start);
    text.is_empty()
        || match form {
            ProfileForm::Lag => false,
            ProfileForm::Svg => text.contains("<!-- flame graph by laggard -->"),
            ProfileForm::Html => starts("<!doctype html>\n<!-- page by laggard -->"),
            ProfileForm::Collapsed => is_collapsed(&text),
            ProfileForm::Speedscope => {
                text.contains("https://www.speedscope.app/file-format-schema.json")
            }
            ProfileForm::Firefox => starts("{\"counters\":[],\"libs\":["),
            ProfileForm::Pprof => is_pprof(&head),
            // Other tools write Chrome traces too; these are the keys that laggard writes first.
            ProfileForm::Chrome => starts("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"event\":"),
            ProfileForm::Csv => starts("time_ns,pid,tid,process,thread,event,"),
        }
}

/// Whether the first line ends with a number, as in collapsed stacks.
fn is_collapsed(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    line.rsplit_once(' ').is_some_and(|(_, number)| number.parse::<u64>().is_ok())
}
