//! Reads source text at the places of culprits from disk.
//!
//! Paths come from recordings and saved verdicts, so they are untrusted: only regular files with the
//! suffix of Python source are read.

use laggard_core::culprit::{Judgement, Seen};
use laggard_core::divergence::{
    FunctionSource, Point, PointSource, SideSource, SourceLoss, diff, function_lines,
};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Larger files are not read.
const LARGEST: u64 = 8 << 20;

/// Whether reports contain source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceText {
    Included,
    Omitted,
}

/// Adds the source at the place of each culprit.
pub(crate) fn add_source(judgement: &mut Judgement, sides: [&Seen; 2], text: SourceText) {
    for culprit in &mut judgement.culprits {
        culprit.source = culprit.point.as_deref().and_then(|point| source_at(point, sides, text));
    }
}

/// The source at a divergence point; `None` if the place is the statement.
pub(crate) fn source_at(point: &Point, sides: [&Seen; 2], text: SourceText) -> Option<PointSource> {
    let function = point.place.python.as_ref()?;
    let mut source = PointSource::default();
    let mut bodies: [Option<(String, [u32; 2])>; 2] = [None, None];
    for side in [0, 1] {
        let line = point.place.lines[side];
        let Some(of_side) = function.sources[side].as_ref().filter(|_| line > 0) else { continue };
        let content = match text {
            SourceText::Included => read_source(of_side, sides[side].measured_unix),
            SourceText::Omitted => Err(SourceLoss::NotRequested),
        };
        let content = content.and_then(|content| {
            let lines = function_lines(&content, of_side.lines, line);
            // Another file than the measured one may be at this path.
            let is_function = is_definition(&lines, &function.name);
            if is_function { Ok(content) } else { Err(SourceLoss::Changed) }
        });
        let shown = content.as_ref().map_err(|loss| *loss).and_then(|content| {
            let at = content.lines().nth(line as usize - 1);
            at.map(|text| text.trim_end().to_owned()).ok_or(SourceLoss::NoSuchLine)
        });
        source.sides[side] = Some(SideSource { file: of_side.file.clone(), line, text: shown });
        bodies[side] = content.ok().map(|content| (content, of_side.lines));
    }
    if let [Some((a, lines_a)), Some((b, lines_b))] = &bodies {
        let [line_a, line_b] = point.place.lines;
        source.diff =
            diff(&function_lines(a, *lines_a, line_a), &function_lines(b, *lines_b, line_b));
    }
    source.sides.iter().any(Option::is_some).then_some(source)
}

/// Whether lines start with the definition of a function, possibly after decorators.
fn is_definition(lines: &[(u32, &str)], name: &str) -> bool {
    const MOST_DECORATORS: usize = 40;
    let last = name.rsplit('.').next().unwrap_or_default();
    if last == "<module>" {
        return true;
    }
    if last == "<lambda>" {
        return lines.iter().take(MOST_DECORATORS).any(|(_, text)| text.contains("lambda"));
    }
    // The other version of the function may have other leading underscores.
    let is_definition = |text: &str| {
        let definition = text.trim_start().trim_start_matches("async ").strip_prefix("def ");
        let defined = definition.and_then(|text| text.split(['(', '[']).next()).unwrap_or_default();
        defined.trim().trim_start_matches('_') == last.trim_start_matches('_')
    };
    lines.iter().take(MOST_DECORATORS).any(|(_, text)| is_definition(text))
}

/// The content of a source file that has not changed since `measured_unix`, seconds since 1970.
fn read_source(source: &FunctionSource, measured_unix: f64) -> Result<String, SourceLoss> {
    const SUFFIXES: [&str; 4] = ["py", "pyw", "pyx", "pxi"];
    let path = Path::new(&source.file);
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or("");
    if !SUFFIXES.contains(&suffix) {
        return Err(SourceLoss::Unreadable);
    }
    // A pipe with the name of a source file must not block.
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = file.map_err(|_| SourceLoss::Unreadable)?;
    let about = file.metadata().map_err(|_| SourceLoss::Unreadable)?;
    if !about.is_file() {
        return Err(SourceLoss::Unreadable);
    }
    if about.len() > LARGEST {
        return Err(SourceLoss::TooLarge);
    }
    let measured = UNIX_EPOCH + Duration::try_from_secs_f64(measured_unix).unwrap_or_default();
    if measured_unix > 0.0 && about.modified().is_ok_and(|modified| modified > measured) {
        return Err(SourceLoss::Changed);
    }
    let mut bytes = vec![];
    file.take(LARGEST).read_to_end(&mut bytes).map_err(|_| SourceLoss::Unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The current time, seconds since 1970.
pub(crate) fn now_unix() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
