//! Recordings: what kind of file is one, loading it, and writing it in any format.

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

/// A recording, and what of it could not be read.
pub(crate) struct Loaded {
    pub(crate) profile: Profile,
    pub(crate) losses: Vec<String>,
}

/// Whether a file is a recording, or was one before it was damaged. An index is an error that
/// says what to give instead.
pub(crate) fn is_run(path: &Path) -> anyhow::Result<bool> {
    match lag::format_of(path) {
        Some(format) if format.starts_with("laggard.index/") => Err(failure::with_hint(
            format!("{} is the index of a trace, not a trace or a recording", path.display()),
            format!("give the trace: laggard report {}", path.with_extension("").display()),
        )),
        Some(_) => Ok(true),
        None => Ok(is_damaged_run(path)),
    }
}

/// Whether a file starts like ours without a manifest that holds.
fn is_damaged_run(path: &Path) -> bool {
    let mut head = vec![];
    let read = |file: File| file.take(1024).read_to_end(&mut head);
    path.is_file()
        && File::open(path).and_then(read).is_ok()
        && head.starts_with(&[0xff; 4])
        && head.windows(RUN_SCHEMA.len()).any(|text| text == RUN_SCHEMA.as_bytes())
}

/// Loads a run of either kind, with what of it could not be read.
pub(crate) fn load_run(path: &Path) -> anyhow::Result<(Run, Vec<String>)> {
    if !path.exists() {
        // The operating system says it best.
        File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    }
    if !is_run(path)? {
        return Err(failure::with_hint(
            format!("{} is not a recording", path.display()),
            "give a .lag file that laggard record or laggard calls wrote".into(),
        ));
    }
    let (run, losses) = lag::read_run(path)?;
    Ok((run, losses.iter().map(ToString::to_string).collect()))
}

impl Loaded {
    /// A recording to look at: worker threads stand under the calls they work for.
    pub(crate) fn new(mut profile: Profile, losses: Vec<String>) -> Loaded {
        join_workers(&mut profile);
        Loaded { profile, losses }
    }
}

/// The tables that a report begins with.
pub(crate) fn usual_tables(view: &View) -> Vec<Totals> {
    let usual = [By::Library, By::Function, By::PythonLine];
    let mut tables: Vec<Totals> = usual.into_iter().map(|by| totals(view, by)).collect();
    // A program without Python has nothing to say by line of it.
    let has_python = |table: &Totals| table.rows.iter().any(|row| !row.of.is_empty());
    tables.retain(|table| table.by != By::PythonLine || has_python(table));
    tables
}

/// Fails where a filter keeps nothing, which no picture and no file can show.
pub(crate) fn ensure_some(view: &View) -> anyhow::Result<()> {
    anyhow::ensure!(view.whole.samples > 0, "no samples are left: widen what is kept");
    Ok(())
}

/// What a profile is called: the command that was recorded, or the file.
pub(crate) fn name_of(profile: &Profile, file: &Path) -> String {
    match profile.about.command.join(" ") {
        command if command.is_empty() => file.display().to_string(),
        command => command,
    }
}

/// What was asked for and is not there, with what is.
pub(crate) fn missing(missing: &Missing) -> anyhow::Error {
    const MOST: usize = 20;
    let visible = |name: &String| laggard_report::escape::visible(name);
    let mut there: Vec<String> = missing.there.iter().take(MOST).map(visible).collect();
    if missing.there.len() > MOST {
        there.push("…".into());
    }
    let there = if there.is_empty() { "there are none".to_owned() } else { there.join(", ") };
    failure::with_hint(missing.to_string(), format!("what there is: {there}"))
}

/// The format that a file's name asks for.
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

/// Writes a profile in a format, whole or not at all.
pub fn write_profile(profile: &Profile, path: &Path, form: ProfileForm) -> anyhow::Result<()> {
    write_view(&View::whole(profile), path, form)
}

/// The same of what a view keeps; a recording is always written whole.
pub(crate) fn write_view(view: &View, path: &Path, form: ProfileForm) -> anyhow::Result<()> {
    if form == ProfileForm::Lag {
        return Ok(lag::write_profile(path, view.profile)?);
    }
    let is_gz = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("gz"));
    let content = content(view, form, is_gz)?;
    output::put(path, &content).with_context(|| format!("cannot write {}", path.display()))
}

/// The content of a file of this format, compressed where that is asked for or always done.
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
        ProfileForm::Lag => bail!("a recording can only be written to a file"),
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

/// Fails where a file is in the place that is not of this format, so that nothing is lost by
/// accident.
pub fn ensure_replaceable(path: &Path, form: ProfileForm, force: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!path.is_dir(), "cannot write {}: it is a directory", path.display());
    if force || !path.is_file() || is_of_form(path, form) {
        return Ok(());
    }
    bail!("{} exists and is not of this format: give --force to overwrite it", path.display())
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
            // What could be unpacked before any damage is enough to tell.
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
            // Not just any trace: others have theirs in the same format.
            ProfileForm::Chrome => starts("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"event\":"),
            ProfileForm::Csv => starts("time_ns,pid,tid,process,thread,event,"),
        }
}

/// Whether the first line is a stack and a number.
fn is_collapsed(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    line.rsplit_once(' ').is_some_and(|(_, number)| number.parse::<u64>().is_ok())
}
