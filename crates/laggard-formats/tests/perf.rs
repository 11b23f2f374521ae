//! Recordings made by perf on this machine, read by laggard and by perf itself.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking and prints what it skips

use laggard_core::model::profile::{FrameKind, Profile, state};
use laggard_formats::Source;
use laggard_formats::read::perf;
use laggard_symbols::FileSystem;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "
#include <stdlib.h>
volatile double sink;
__attribute__((noinline)) double leaf(int n) {
  double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
__attribute__((noinline)) double middle(int n) { double s = leaf(n) * 2; return s + leaf(n / 2); }
__attribute__((noinline)) double outer(int n) { double s = middle(n); return s + 1; }
int main(int argc, char **argv) {
  for (volatile int i = 0; i < 400; i++) sink += outer(100000 + i); return 0; }
";

/// Whether a command can be run and succeeds.
fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Builds and records the program. Returns `None` and prints the reason if that is not possible.
fn recorded(directory: &Path, flags: &[&str]) -> Option<std::path::PathBuf> {
    let source = directory.join("p.c");
    let program = directory.join("program");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-g", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(&source);
    if !works(&mut compile) {
        eprintln!("skipped: no C compiler");
        return None;
    }
    let data = directory.join("perf.data");
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "cpu-clock", "-F", "999"]).args(flags).arg("-o");
    record.arg(&data).arg("--").arg(&program);
    if !works(&mut record) {
        eprintln!("skipped: perf cannot record here");
        return None;
    }
    Some(data)
}

fn read(path: &Path) -> Profile {
    let mut profile = perf::read(Source::open(path).unwrap(), &|_| ()).unwrap();
    laggard_symbols::resolve(&mut profile, &FileSystem);
    profile
}

/// Functions of each sample, innermost first, without inlined ones.
fn ours(profile: &Profile) -> Vec<Vec<String>> {
    let names = |stack: u32| {
        let frames = profile.frames_of(stack).map(|frame| &profile.frames[frame as usize]);
        let frames = frames.filter(|frame| frame.kind != FrameKind::Inlined);
        frames.map(|frame| profile.texts.get(frame.function).to_owned()).collect()
    };
    profile.samples.iter().map(|sample| names(sample.stack)).collect()
}

fn perfs(path: &Path) -> Vec<Vec<String>> {
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-F", "event,ip,sym", "-i"]).arg(path);
    let text = String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned();
    let mut all = vec![];
    for block in text.split("\n\n") {
        let lines = block.lines().filter(|line| line.starts_with(['\t', ' ']));
        let names: Vec<String> = lines
            .filter_map(|line| line.trim().split_once(' ').map(|(_, name)| name.trim().to_owned()))
            .collect();
        if !block.trim().is_empty() {
            all.push(names);
        }
    }
    all
}

/// Number of samples whose functions agree with perf's, as far as perf knows them, and of all
/// samples.
fn agreement(path: &Path) -> (usize, usize) {
    let profile = read(path);
    let (ours, perfs) = (ours(&profile), perfs(path));
    assert_eq!(ours.len(), perfs.len(), "samples of {}", path.display());
    let (mut frames, mut same_frames) = (0, 0);
    let (mut agreeing, mut further) = (0, 0);
    for (ours, perfs) in ours.iter().zip(&perfs) {
        // perf shows symbol versions, and only one of several names of a function.
        let plain = |name: &str| {
            let name = name.split('@').next().unwrap_or_default();
            name.trim_start_matches("__GI_")
                .trim_start_matches('_')
                .trim_end_matches("64")
                .to_owned()
        };
        let is_same =
            |(our, perf): (&String, &String)| perf == "[unknown]" || plain(our) == plain(perf);
        frames += ours.len().max(perfs.len());
        same_frames += ours.iter().zip(perfs).filter(|pair| is_same(*pair)).count();
        let same = ours.len() == perfs.len() && ours.iter().zip(perfs).all(is_same);
        agreeing += usize::from(same);
        further +=
            usize::from(!same && ours.len() > perfs.len() && ours.iter().zip(perfs).all(is_same));
        if !same && std::env::var_os("SHOW").is_some() {
            eprintln!("ours {ours:?}\nperf {perfs:?}\n");
        }
    }
    let cut = profile.samples.iter().filter(|sample| sample.state & state::CUT != 0).count();
    eprintln!(
        "{}: {agreeing} of {} stacks, {same_frames} of {frames} frames agree with perf; {further} are longer than perf's; {cut} truncated; {:?}",
        path.display(),
        ours.len(),
        profile.quality
    );
    (agreeing, ours.len())
}

#[test]
fn recordings_from_the_environment_agree_with_perf() {
    for path in std::env::var("LAGGARD_PERF_DATA").unwrap_or_default().split_whitespace() {
        agreement(Path::new(path));
    }
}

#[test]
fn stacks_agree_with_perf() {
    for flags in [
        &["--call-graph", "fp"][..],
        &["--call-graph", "dwarf,8192"],
        &["--call-graph", "dwarf,8192", "-z"],
        &["--call-graph", "fp", "-e", "task-clock"],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let Some(data) = recorded(directory.path(), flags) else { return };
        let (agreeing, all) = agreement(&data);
        assert!(all > 20, "{flags:?}: {all} samples");
        assert!(agreeing * 20 >= all * 19, "{flags:?}: {agreeing} of {all} agree");
    }
}

#[test]
fn reads_truncated_recording() {
    let directory = tempfile::tempdir().unwrap();
    let Some(data) = recorded(directory.path(), &["--call-graph", "fp"]) else { return };
    let whole = std::fs::read(&data).unwrap();
    let all = read(&data).samples.len();
    let cut = directory.path().join("cut.data");
    let mut before = 0;
    for part in [16, 10, 6, 4, 3, 2] {
        std::fs::write(&cut, &whole[..whole.len() / part]).unwrap();
        let Ok(profile) = perf::read(Source::open(&cut).unwrap(), &|_| ()) else { continue };
        assert!(profile.samples.len() >= before && profile.samples.len() <= all);
        assert!(profile.quality.warnings.iter().any(|text| text.contains("truncated")));
        before = profile.samples.len();
    }
    assert!(before > 0, "half of a recording has samples");
}
