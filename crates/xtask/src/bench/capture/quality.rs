//! Share of correct stacks, for matrix products whose functions and lines are known.

use super::figures::share;
use super::tools::answer;
use super::{Lab, machine};
use crate::project;
use anyhow::Result;
use laggard_core::model::profile::{Frame, FrameKind, Profile, Sample, state};
use laggard_probe::sample::{self, Options};
use laggard_symbols::FileSystem;
use std::ffi::OsString;
use std::path::Path;

/// Matrix size, number of products (about a second in total), and element type. Kernels for one
/// type may have unwind tables while those for another do not.
const CASES: [(&str, &str, &str); 3] =
    [("4", "600000", "float32"), ("512", "80", "float32"), ("512", "40", "float64")];
const RATE: u32 = 999;
const SPY_RATE: u32 = 100;

/// BLAS function, Python function and line of each call in the subject.
const CALLS: [(&str, &str, &str); 2] = [
    ("gemm", "product_with_itself", "products.py:12"),
    ("syrk", "product_with_transpose", "products.py:18"),
];

/// Counts of samples whose leaf is in BLAS.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    leaves: usize,
    /// The stack reaches the program's entry point.
    to_first: usize,
    /// The stack contains the called BLAS function.
    with_entry: usize,
    /// The stack contains the right Python function and line above the right BLAS function.
    right: usize,
}

pub(super) fn section(lab: &Lab) -> Result<String> {
    let mut text = format!(
        "### Stack quality\n\n{}\n\n\
         `subjects/probe/products.py` calls two BLAS functions from two lines. The table counts samples \
         whose leaf is in BLAS and that were called from this file (importing NumPy also calls BLAS): \
         how many stacks reach the program's entry point, contain the called function (`cblas_*`), and \
         contain it below the right Python function and line. laggard and perf sample at {RATE} Hz \
         (perf: `-e task-clock:u --call-graph dwarf,32768`, `perf script`), py-spy `--native` at \
         {SPY_RATE} Hz. py-spy does not report the entry point; perf does not report Python lines.\n\n\
         | | matrices | tool | reaches entry point | with `cblas_*` | and right line |\n\
         |---|---:|---|---:|---:|---:|\n",
        machine::describe(),
    );
    for python in &lab.pythons {
        let version = machine::python(python);
        for (size, times, numbers) in CASES {
            eprintln!("bench: quality, {version}, {size}, {numbers}");
            let command: [OsString; 5] = [
                python.into(),
                project::root().join("subjects/probe/products.py").into(),
                size.into(),
                times.into(),
                numbers.into(),
            ];
            let tools: [(&str, Result<Found>); 3] = [
                ("laggard", of_agent(&command)),
                ("perf", of_perf(lab, &command)),
                ("py-spy", of_spy(lab, &command)),
            ];
            for (tool, found) in tools {
                let cells = match found {
                    Ok(found) => {
                        let of = |part: usize| share(part, found.leaves);
                        let first = if tool == "py-spy" { "-".into() } else { of(found.to_first) };
                        let right = if tool == "perf" { "-".into() } else { of(found.right) };
                        format!("{first} | {} | {right}", of(found.with_entry))
                    }
                    Err(error) => format!("not measured: {error:#} | |"),
                };
                text += &format!("| {version} | {size}, {numbers} | {tool} | {cells} |\n");
            }
        }
    }
    Ok(text)
}

fn of_agent(command: &[OsString]) -> Result<Found> {
    let options = Options { rate: f64::from(RATE), quiet: true, ..Options::default() };
    let (mut profile, _) = sample::record(command, &options, &mut |_| ())?;
    laggard_symbols::resolve(&mut profile, &FileSystem);
    let mut found = Found::default();
    for sample in &profile.samples {
        judge(&frames(&profile, sample), sample.state & state::CUT == 0, &mut found);
    }
    Ok(found)
}

/// Frames as text from the leaf outwards: `name (library)`, or `function (file.py:line)`.
fn frames(profile: &Profile, sample: &Sample) -> Vec<String> {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let spell = |frame: &Frame| {
        let name = profile.texts.get(frame.function);
        match frame.kind {
            FrameKind::Python => {
                format!("{name} ({}:{})", file_name(profile.texts.get(frame.file)), frame.line)
            }
            _ => format!("{name} ({})", file_name(profile.module_path(frame))),
        }
    };
    profile.frames_of(sample.stack).map(|frame| spell(&profile.frames[frame as usize])).collect()
}

fn of_perf(lab: &Lab, command: &[OsString]) -> Result<Found> {
    let recording = lab.scratch.path().join("perf.data");
    _ = answer(&mut lab.tools.perf_record(RATE, &recording, command)?)?;
    Ok(read_perf(&lab.tools.perf_script(&recording)?))
}

/// Blocks of lines `address name (path)`, separated by empty lines.
fn read_perf(text: &str) -> Found {
    let mut found = Found::default();
    for block in text.split("\n\n") {
        let frames: Vec<String> = block
            .lines()
            .filter_map(|line| {
                let (_, frame) = line.trim().split_once(' ')?;
                let (name, path) = frame.rsplit_once(" (")?;
                let library = path.trim_end_matches(')').rsplit('/').next()?;
                let name = name.split("+0x").next()?;
                Some(format!("{name} ({library})"))
            })
            .collect();
        let is_whole = frames.last().is_some_and(|frame| frame.starts_with("_start ("));
        judge(&frames, is_whole, &mut found);
    }
    found
}

fn of_spy(lab: &Lab, command: &[OsString]) -> Result<Found> {
    let recording = lab.scratch.path().join("py-spy.folded");
    _ = answer(&mut lab.tools.spy_record(SPY_RATE, true, &recording, command)?)?;
    Ok(read_spy(&std::fs::read_to_string(&recording)?))
}

/// Lines `outermost;…;leaf count`.
fn read_spy(text: &str) -> Found {
    let mut found = Found::default();
    for line in text.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let frames: Vec<String> = stack.rsplit(';').map(spell_spy).collect();
        for _ in 0..count.parse().unwrap_or(0) {
            judge(&frames, false, &mut found);
        }
    }
    found
}

/// Shortens paths to file names, as for the other tools.
fn spell_spy(frame: &str) -> String {
    match frame.rsplit_once(" (") {
        Some((name, place)) => {
            format!("{name} ({}", Path::new(place).file_name().unwrap_or_default().display())
        }
        None => frame.to_owned(),
    }
}

/// Counts a stack, given from its leaf outwards, if its leaf is in BLAS.
fn judge(frames: &[String], is_whole: bool, found: &mut Found) {
    let is_blas =
        |frame: &&String| frame.rsplit_once(" (").is_some_and(|(_, at)| at.contains("blas"));
    if frames.first().filter(is_blas).is_none() {
        return;
    }
    let is_python = |frame: &&String| frame.contains(".py:");
    let caller = frames.iter().find(is_python).map_or("", String::as_str);
    if !caller.is_empty() && !caller.contains("(products.py:") {
        return;
    }
    // NumPy has functions with such names, too.
    let is_entry = |frame: &&String| is_blas(frame) && frame.contains("cblas_");
    let entry = frames.iter().find(is_entry).map_or("", String::as_str);
    found.leaves += 1;
    found.to_first += usize::from(is_whole);
    found.with_entry += usize::from(!entry.is_empty());
    let is_right = CALLS.iter().any(|(blas, function, line)| {
        entry.contains(blas) && caller.starts_with(function) && caller.contains(line)
    });
    found.right += usize::from(is_right);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_py_spy_stacks() {
        let text = "\
<module> (/x/products.py:24);product_with_itself (/x/products.py:12);cblas_matrixproduct (numpy/_core/_multiarray_umath.so);scipy_cblas_sgemm64_ (numpy.libs/libscipy_openblas64_.so);sgemm_kernel (numpy.libs/libscipy_openblas64_.so) 3
<module> (/x/products.py:24);product_with_itself (/x/products.py:12);sgemm_kernel (numpy.libs/libscipy_openblas64_.so) 2
<module> (/x/products.py:24);product_with_itself (/x/products.py:12) 5
";
        let expected = Found { leaves: 5, to_first: 0, with_entry: 3, right: 3 };
        assert_eq!(read_spy(text), expected);
    }

    #[test]
    fn reads_perf_stacks() {
        let text = "
            7f01 sgemm_kernel_SKYLAKEX+0x1b (/v/numpy.libs/libscipy_openblas64_.so)
            7f02 scipy_cblas_sgemm64_ (/v/numpy.libs/libscipy_openblas64_.so)
            55e0 _start (/usr/bin/python3.11)

            7f01 sgemm_kernel_SKYLAKEX (/v/numpy.libs/libscipy_openblas64_.so)
            7f02 [unknown] ([unknown])
";
        let expected = Found { leaves: 2, to_first: 1, with_entry: 1, right: 0 };
        assert_eq!(read_perf(text), expected);
    }
}
