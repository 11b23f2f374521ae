//! Loading the ranks of a job: in parallel, as many at a time as memory allows.

use crate::trace::{Loader, Need};
use anyhow::{Context, bail};
use laggard_core::trace::Analysis;
use laggard_core::trace::ranks::{Rank, Ranks, arrivals, side_by_side};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::thread;

/// Memory that a trace takes while it is loaded, by its size on disk: a compressed one is about
/// 15 times as large when unpacked, and tables take a fifth of that.
fn estimate(path: &Path) -> u64 {
    let size = path.metadata().map_or(0, |meta| meta.len());
    let compressed = path.extension().is_some_and(|suffix| suffix == "gz" || suffix == "zst");
    if compressed { size * 3 } else { size / 5 }
}

/// Half of the memory that is free, or 2 GB where that is not known.
fn budget() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = |line: &str| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    info.lines().find_map(kilobytes).map_or(2 << 30, |available| available * 1024 / 2)
}

/// A file to load.
pub(crate) struct Given {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whether the user named it, and not just its directory: then it must be a trace.
    pub(crate) by_name: bool,
}

/// The files that were given; a directory stands for the traces in it.
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
            "there is no trace (*.json, *.json.gz, *.json.zst) in {}",
            path.display()
        );
        inside.sort();
        files.extend(inside.into_iter().map(|path| Given { path, by_name: false }));
    }
    Ok(files)
}

/// What is under way.
struct Shared<T> {
    next: usize,
    running: usize,
    memory: u64,
    /// By the file's place.
    loaded: Vec<(usize, T)>,
    failure: Option<anyhow::Error>,
}

/// Loads all ranks and puts them side by side. Only a summary is kept of each.
pub(crate) fn load(files: &[Given], loader: &Loader) -> anyhow::Result<Ranks> {
    Ok(side_by_side(load_each(files, loader, rank)?))
}

/// Makes something of each file, in the order of files; what is no trace is left out, unless it was
/// named.
pub(crate) fn load_each<T: Send>(
    files: &[Given],
    loader: &Loader,
    of: impl Fn(&Path, &Loader) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let start = Shared { next: 0, running: 0, memory: 0, loaded: vec![], failure: None };
    let (shared, changed) = (Mutex::new(start), Condvar::new());
    let budget = budget();
    let workers = loader.options.threads.min(files.len()).max(1);
    // Each worker reads with one thread: ranks are many, and side by side they need no joining.
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
                    loader.printer.warning(&format!("left out: {error}"));
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
    matches!(error.downcast_ref(), Some(laggard_formats::Error::NotATrace { .. }))
}

fn rank(file: &Path, loader: &Loader) -> anyhow::Result<Rank> {
    let trace = loader.load(file, Need::Tables)?;
    let timeline = trace.timeline.as_ref().context("the tables are missing")?;
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
