//! Reads processed profiles of the Firefox Profiler, also written by samply and laggard. Tables are
//! stored by column, per thread or shared by all threads.
//!
//! You give a [`Source`], you get a [`Profile`]. samply writes addresses without symbols. Such
//! frames keep their module and address, so that `laggard_symbols::resolve` can symbolize them if
//! the module still exists. Raw profiles recorded by Firefox are a different format and not
//! supported.

mod file;
mod tables;

use super::json;
use crate::error::Error;
use crate::source::Source;
use file::{File, Meta, Samples};
use laggard_core::model::NONE;
use laggard_core::model::profile::{Event, Interner, Module, Profile, Sample, Thread, Unit, state};
use tables::Tables;

/// Oldest supported version. Earlier versions have different tables.
const OLDEST: f64 = 20.0;

/// Whether a file with this head is a processed profile of the Firefox Profiler.
pub fn is_firefox(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    head.first() == Some(&b'{')
        && !has(b"\"traceEvents\"")
        && (has(b"\"preprocessedProfileVersion\"")
            || has(b"\"breakpadId\"") && has(b"\"debugName\"")
            || has(b"\"stackTable\"") && has(b"\"frameTable\""))
}

/// Reads a file. `progress` is called when the file is in memory.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let (path, file): (_, File) = json::read(source, progress)?;
    let mut reader = Reader::default();
    let categories: Vec<&str> =
        file.meta.categories.iter().map(|category| category.name.as_str()).collect();
    let libraries = reader.modules(&file.libs);
    let shared = file.shared.as_ref().filter(|shared| shared.stacks.is_some());
    let shared_stacks = shared.map(|shared| {
        let tables = Tables { own: shared, shared: None, categories: &categories };
        tables.stacks(&libraries, &mut reader.profile, &mut reader.interner)
    });
    let is_ours = file.meta.imported_from.starts_with("laggard ");
    for thread in &file.threads {
        let own;
        let stacks = match &shared_stacks {
            Some(shared) if thread.tables.stacks.is_none() => shared,
            _ => {
                // Before version 41, each thread had its own libraries.
                let libraries = match thread.libs.is_empty() {
                    true => libraries.clone(),
                    false => reader.modules(&thread.libs),
                };
                let tables = Tables {
                    own: &thread.tables,
                    shared: file.shared.as_ref(),
                    categories: &categories,
                };
                own = tables.stacks(&libraries, &mut reader.profile, &mut reader.interner);
                reader.lost += own.lost;
                &own
            }
        };
        reader.thread(thread, &stacks.nodes, is_ours);
    }
    reader.lost += shared_stacks.map_or(0, |stacks| stacks.lost);
    let mut profile = reader.finish();
    if profile.samples.is_empty() {
        let what = "no samples in the processed profile format found".to_owned();
        return Err(Error::NotARecording { path, what });
    }
    about(&mut profile, &file.meta);
    Ok(profile)
}

fn about(profile: &mut Profile, meta: &Meta) {
    let version = meta.version.0;
    if version < OLDEST {
        let text = format!("format version {version} is older than the supported versions");
        profile.quality.warnings.push(text);
    }
    let about = &mut profile.about;
    about.method = "Firefox Profiler profile".to_owned();
    about.tool.clone_from(&meta.imported_from);
    if meta.interval.0 > 0.0 {
        about.rate = 1e3 / meta.interval.0;
    }
    if meta.start_time.0 > 0.0 {
        about.started_unix = meta.start_time.0 / 1e3;
    }
    for (what, text) in
        [("program", &meta.product), ("kernel", &meta.oscpu), ("processor", &meta.cpu)]
    {
        if !text.is_empty() {
            about.facts.push((what.to_owned(), text.clone()));
        }
    }
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    interner: Interner,
    /// Number of invalid references.
    lost: u64,
    /// Number of negative weights, such as freed memory.
    negative: u64,
}

impl Reader {
    /// Module number of each library.
    fn modules(&mut self, libs: &[file::Lib]) -> Vec<u32> {
        let profile = &mut self.profile;
        libs.iter()
            .map(|lib| {
                let path = [&lib.path, &lib.debug_path, &lib.name, &lib.debug_name];
                let path = path.into_iter().flatten().find(|path| !path.is_empty());
                let Some(path) = path else { return NONE };
                let path = profile.texts.add(path);
                let id = profile.texts.add(lib.code_id.as_deref().unwrap_or_default());
                self.interner.module(profile, Module { path, id })
            })
            .collect()
    }

    fn thread(&mut self, of: &file::OneThread, stacks: &[u32], is_ours: bool) {
        let number = |number: f64| if number > 0.0 { number as u32 } else { 0 };
        let texts = &mut self.profile.texts;
        let thread = self.profile.threads.len() as u32;
        self.profile.threads.push(Thread {
            pid: number(of.pid.0),
            tid: number(of.tid.0),
            name: texts.add(&of.name),
            process: texts.add(of.process_name.as_deref().unwrap_or_default()),
            cpu_ns: 0,
        });
        let samples = &of.samples;
        let (unit, name, scale) = match samples.weight_type.as_deref() {
            Some("tracing-ms") => (Unit::Nanos, "time", 1e6),
            Some("bytes") => (Unit::Bytes, "bytes", 1.0),
            _ => (Unit::Count, "samples", 1.0),
        };
        let events = &mut self.profile.events;
        let event = events.iter().position(|event| event.unit == unit).unwrap_or_else(|| {
            events.push(Event { name: name.to_owned(), unit });
            events.len() - 1
        });
        let times = times(samples);
        for (at, row) in samples.stack.iter().enumerate() {
            let weight = samples.weight.as_ref().map_or(1.0, |all| {
                all.get(at).map_or(1.0, |weight| if weight.0.is_finite() { weight.0 } else { 1.0 })
            });
            if weight < 0.0 {
                self.negative += 1;
                continue;
            }
            let stack = match row.0 {
                NONE => NONE,
                row => stacks.get(row as usize).copied().unwrap_or_else(|| {
                    self.lost += 1;
                    NONE
                }),
            };
            let weight = (weight * scale).round() as u64;
            let ms = times.get(at).copied().unwrap_or(0.0);
            self.profile.samples.push(Sample {
                time_ns: (ms * 1e6).round().max(0.0) as u64,
                thread,
                stack,
                event: event as u32,
                // In our files, weights can count other things than samples.
                count: if unit == Unit::Count && !is_ours { weight.max(1) } else { 1 },
                weight,
                state: if stack == NONE { state::CUT } else { 0 },
            });
        }
    }

    fn finish(self) -> Profile {
        let mut profile = self.profile;
        profile.samples.sort_by_key(|sample| sample.time_ns);
        let time = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.time_ns);
        let (first, last) = (time(profile.samples.first()), time(profile.samples.last()));
        // samply counts from the boot of the machine, other tools from the start of the run.
        let origin = if first > last - first { first } else { 0 };
        profile.samples.iter_mut().for_each(|sample| sample.time_ns -= origin);
        profile.about.duration_ns = last - origin;
        for (lost, what) in [
            (self.lost, "references to missing rows"),
            (self.negative, "samples skipped because of a negative weight"),
        ] {
            if lost > 0 {
                profile.quality.warnings.push(format!("{what}: {lost}"));
            }
        }
        profile
    }
}

/// Sample times in milliseconds. Newer files store differences.
fn times(samples: &Samples) -> Vec<f64> {
    if let Some(times) = &samples.time {
        return times.iter().map(|time| time.0).collect();
    }
    let mut sum = 0.0;
    let deltas = samples.time_deltas.as_deref().unwrap_or_default();
    let add = |delta: &json::Number| {
        sum += if delta.0.is_finite() { delta.0 } else { 0.0 };
        sum
    };
    deltas.iter().map(add).collect()
}
