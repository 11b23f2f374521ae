//! Loads the ranks of a job in parallel, limited by available memory.

use crate::trace::{Loader, Need};
use anyhow::{Context, bail};
use laggard_core::trace::Analysis;
use laggard_core::trace::ranks::{Rank, Ranks, arrivals, side_by_side};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::thread;

/// Estimates the memory for loading a trace from its file size. Compressed traces are about 15 times
/// larger when decompressed, and the tables take a fifth of the text.
fn estimate(path: &Path) -> u64 {
    let size = path.metadata().map_or(0, |meta| meta.len());
    let compressed = path.extension().is_some_and(|suffix| suffix == "gz" || suffix == "zst");
    if compressed { size * 3 } else { size / 5 }
}

/// Half of the available memory, or 2 GB if unknown.
fn budget() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = |line: &str| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    info.lines().find_map(kilobytes).map_or(2 << 30, |available| available * 1024 / 2)
}

/// A file to load.
pub(crate) struct Given {
    pub(crate) path: PathBuf,
    /// Whether the user named the file itself. It must then be a trace; other files of a directory
    /// are skipped with a warning.
    pub(crate) by_name: bool,
}

/// Expands the given paths. A directory stands for the traces in it.
pub(crate) fn files(given: &[PathBuf]) -> anyhow::Result<Vec<Given>> {
    let mut files = vec![];
    for path in given {
        if !path.is_dir() {
            files.push(Given { path: path.clone(), by_name: true });
            continue;
        }
        let mut inside = vec![];
        for entry in path.read_dir().with_context(|| format!("cannot read {}", path.display()))? {
            let entry = entry?.path();
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if entry.is_file()
                && [".json", ".json.gz", ".json.zst"].iter().any(|suffix| name.ends_with(suffix))
            {
                inside.push(entry);
            }
        }
        anyhow::ensure!(
            !inside.is_empty(),
            "no trace (*.json, *.json.gz, *.json.zst) in {}",
            path.display()
        );
        inside.sort();
        files.extend(inside.into_iter().map(|path| Given { path, by_name: false }));
    }
    Ok(files)
}

/// State shared by the workers.
struct Shared<T> {
    next: usize,
    running: usize,
    memory: u64,
    /// Results with the position of their file.
    loaded: Vec<(usize, T)>,
    failure: Option<anyhow::Error>,
}

/// Loads all ranks for a report. Only a summary of each is kept.
pub(crate) fn load(files: &[Given], loader: &Loader) -> anyhow::Result<Ranks> {
    Ok(side_by_side(load_each(files, loader, rank)?))
}

/// Calls `of` for each file and returns the results in the order of files. Files that are not traces
/// are skipped, unless the user named them.
pub(crate) fn load_each<T: Send>(
    files: &[Given],
    loader: &Loader,
    of: impl Fn(&Path, &Loader) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let start = Shared { next: 0, running: 0, memory: 0, loaded: vec![], failure: None };
    let (shared, changed) = (Mutex::new(start), Condvar::new());
    let budget = budget();
    let workers = loader.options.threads.min(files.len()).max(1);
    // Ranks are loaded in parallel, so each worker gets only its share of the threads.
    let alone = Loader {
        options: laggard_formats::read::kineto::Options {
            threads: (loader.options.threads / workers).max(1),
            ..loader.options
        },
        printer: loader.printer.without_progress(),
        ..*loader
    };
    let lock = || shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let work = || {
        loop {
            let mut state = lock();
            let (file, memory) = loop {
                let Some(file) = files.get(state.next).filter(|_| state.failure.is_none()) else {
                    return;
                };
                let memory = estimate(&file.path);
                if state.running == 0 || state.memory + memory <= budget {
                    break (file, memory);
                }
                state = changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            };
            let place = state.next;
            state.next += 1;
            state.running += 1;
            state.memory += memory;
            drop(state);
            let loaded = of(&file.path, &alone);
            let mut state = lock();
            state.running -= 1;
            state.memory -= memory;
            match loaded {
                Ok(loaded) => state.loaded.push((place, loaded)),
                Err(error) if !file.by_name && is_no_trace(&error) => {
                    loader.printer.warning(&format!("skipped: {error}"));
                }
                Err(error) => {
                    let what = format!("cannot load {}", file.path.display());
                    state.failure = Some(error.context(what));
                }
            }
            changed.notify_all();
        }
    };
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let mut state = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    state.loaded.sort_by_key(|(place, _)| *place);
    match state.failure {
        Some(error) => Err(error),
        None if state.loaded.is_empty() => bail!("none of the {} files is a trace", files.len()),
        None => Ok(state.loaded.into_iter().map(|(_, loaded)| loaded).collect()),
    }
}

fn is_no_trace(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(laggard_formats::Error::UnknownFormat { .. }))
}

fn rank(file: &Path, loader: &Loader) -> anyhow::Result<Rank> {
    let trace = loader.load(file, Need::Tables)?;
    let timeline = trace.timeline.as_ref().context("the trace has no tables")?;
    let summary = loader.summary(&trace);
    let arrivals = arrivals(&Analysis::new(timeline, loader.rules, loader.phases, None));
    trace.ensure_whole()?;
    for loss in &summary.losses {
        let what = format!("{}: {} × {}", file.display(), loss.count, loss.explanation);
        loader.printer.warning(&what);
    }
    loader.save(file, &trace, &summary);
    Ok(Rank { path: file.display().to_string(), rank: summary.about.rank, summary, arrivals })
}
