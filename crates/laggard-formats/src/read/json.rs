//! Reads whole JSON files. Shared by the profile formats of viewers.

use crate::error::Error;
use crate::source::{Bytes, Source};
use laggard_core::model::NONE;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads a whole file as a value of type `T`.
pub(super) fn read<T: DeserializeOwned>(
    source: Source,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(PathBuf, T), Error> {
    let Source { path, bytes } = source;
    let read = match bytes {
        Bytes::Mapped(map) => {
            let read = parse(&map, &path);
            if !map.is_whole() {
                return Err(Error::Shrank { path });
            }
            progress(map.len() as u64);
            read
        }
        Bytes::Stream(mut stream) => {
            let mut text = vec![];
            stream.read_to_end(&mut text).map_err(Error::io("read", &path))?;
            progress(text.len() as u64);
            parse(&text, &path)
        }
    };
    Ok((path, read?))
}

fn parse<T: DeserializeOwned>(text: &[u8], path: &Path) -> Result<T, Error> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    serde_json::from_slice(text).map_err(|why| Error::NotARecording {
        path: path.to_owned(),
        what: match why.is_eof() {
            true => "the JSON is truncated".to_owned(),
            false => format!("invalid JSON: {why}"),
        },
    })
}

/// A row number. `NONE` if the value is not a valid one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row(pub(super) u32);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Row, D::Error> {
        let Number(number) = Number::deserialize(from)?;
        let is_row = number >= 0.0 && number < f64::from(NONE);
        Ok(Row(if is_row { number as u32 } else { NONE }))
    }
}

/// A number. NaN for `null` and other values that are not numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number(pub(super) f64);

impl Default for Number {
    fn default() -> Number {
        Number(f64::NAN)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Number, D::Error> {
        from.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number(value))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
        Ok(Number::default())
    }

    /// Some writers store process ids as strings.
    fn visit_str<E>(self, text: &str) -> Result<Number, E> {
        Ok(Number(text.parse().unwrap_or(f64::NAN)))
    }
}
