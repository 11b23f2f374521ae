//! Reads runs, including unfinished and damaged ones.

use super::calls::CallRows;
use super::part::{self, NoPart};
use super::read::{Format, manifest};
use super::record::Manifest;
use super::rows::Rows;
use super::tables::{self, Wrong};
use super::{RUN_SCHEMA, STREAM_KEY};
use crate::error::Error;
use crate::map::Map;
use arrow_buffer::Buffer;
use laggard_core::model::calls::Calls;
use laggard_core::model::profile::Profile;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The content of a run file.
#[derive(Clone, Debug)]
pub enum Run {
    /// Samples.
    Profile(Profile),
    /// A call trace.
    Calls(Calls),
}

/// Something that could not be read from a run file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The recording was killed or is still active.
    Unfinished,
    /// The file ends within a part, which is skipped.
    CutShort {
        /// Bytes skipped.
        bytes: u64,
    },
    /// A part is damaged. It and the following parts are skipped.
    Damaged {
        /// Offset of the part.
        offset: u64,
    },
    /// References to rows that do not exist.
    Astray {
        /// Number of references. Affected samples are skipped.
        count: u64,
    },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Loss::Unfinished => f.write_str(
                "the recording was not finished: symbols and the last samples may be missing",
            ),
            Loss::CutShort { bytes } => {
                write!(f, "the file is truncated: its last {bytes} bytes were skipped")
            }
            Loss::Damaged { offset } => {
                write!(f, "the file is damaged at byte {offset}: the rest was skipped")
            }
            Loss::Astray { count } => {
                write!(f, "invalid references in the file: {count}; the affected rows were skipped")
            }
        }
    }
}

/// The format of a file that starts with a manifest (`laggard.run/1` or `laggard.index/1`). `None`
/// for any other file.
pub fn format_of(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let mut start = vec![];
    let size = 2 * super::MANIFEST_SIZE as u64;
    File::open(path).ok()?.take(size).read_to_end(&mut start).ok()?;
    if !start.starts_with(&[0xff; 4]) {
        return None;
    }
    let Format { schema } = serde_json::from_str(manifest(&start).ok()?).ok()?;
    Some(schema)
}

/// Reads a run and its losses.
pub fn read_run(path: &Path) -> Result<(Run, Vec<Loss>), Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let map = Map::open(&file).map_err(Error::io("map", path))?;
    let bad = |reason: Wrong| Error::BadRunFile { path: path.into(), reason };
    let text = manifest(&map).map_err(bad)?;
    let parsed = |error: serde_json::Error| bad(error.to_string());
    let Format { schema } = serde_json::from_str(text).map_err(parsed)?;
    if schema != RUN_SCHEMA {
        return Err(Error::NotARun { path: path.into(), format: schema });
    }
    let Manifest { kind, .. } = serde_json::from_str(text).map_err(parsed)?;
    let found = parts(&tables::buffer(map.clone()), &kind);
    if !map.is_whole() {
        return Err(Error::Shrank { path: path.into() });
    }
    found.map_err(bad)
}

/// Combines the parts. A part marked as whole replaces all preceding parts.
fn parts(file: &Buffer, kind: &str) -> Result<(Run, Vec<Loss>), Wrong> {
    let (mut rows, mut calls) = (Rows::default(), CallRows::default());
    let (mut expected, mut finished, mut gap) = (0, false, false);
    let mut losses = vec![];
    let mut at = part::first(file).ok_or("no data after the manifest")?;
    while at < file.len() {
        let part = match part::read(file, at) {
            Ok(part) => part,
            Err(NoPart::Cut) => {
                losses.push(Loss::CutShort { bytes: (file.len() - at) as u64 });
                break;
            }
            Err(NoPart::Damaged(next)) => {
                if !gap {
                    losses.push(Loss::Damaged { offset: at as u64 });
                }
                gap = true;
                match next {
                    Some(next) if next > at => at = next,
                    _ => break,
                }
                continue;
            }
        };
        at = part.end;
        if part.header.whole {
            (rows, calls) = (Rows::default(), CallRows::default());
            (finished, gap) = (true, false);
            losses.clear();
        } else if gap || finished || part.header.number != expected {
            continue;
        }
        expected = part.header.number + 1;
        for batch in &part.streams {
            let metadata = batch.schema_ref().metadata();
            let name = metadata.get(STREAM_KEY).map_or("", String::as_str);
            if !rows.take(name, batch)? {
                calls.take(name, batch, &mut rows)?;
            }
        }
    }
    if expected == 0 {
        return Err("no part is intact".into());
    }
    if !finished {
        losses.insert(0, Loss::Unfinished);
    }
    let (profile, mut astray) = rows.finish()?;
    let run = match kind {
        "profile" => Run::Profile(profile),
        "calls" => Run::Calls(calls.finish(profile, &mut astray)),
        other => return Err(format!("its kind is {other:?}, which this version does not support")),
    };
    if astray > 0 {
        losses.push(Loss::Astray { count: astray });
    }
    Ok((run, losses))
}
