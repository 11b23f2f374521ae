//! Reads the metadata of a recording: events, machine and command.

use super::attr::Attr;
use super::bytes::Rest;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Magic of little-endian recordings.
pub(super) const MAGIC: &[u8] = b"PERFILE2";
/// Magic of big-endian recordings.
pub(super) const MAGIC_OF_OTHERS: &[u8] = b"2ELIFREP";

/// Size of a pipe-mode header, which has no sections.
const PIPE_HEADER: u64 = 16;
const RECORD_HEADER: usize = 8;

/// Numbers of the feature sections after the records.
mod feature {
    pub(super) const BUILD_ID: u64 = 2;
    pub(super) const HOSTNAME: u64 = 3;
    pub(super) const OS_RELEASE: u64 = 4;
    pub(super) const VERSION: u64 = 5;
    pub(super) const ARCHITECTURE: u64 = 6;
    pub(super) const CPU: u64 = 8;
    pub(super) const COMMAND: u64 = 11;
    pub(super) const EVENTS: u64 = 12;
    pub(super) const LAST: u64 = 255;
}

/// Records that replace sections in pipe mode.
mod kind {
    pub(super) const ATTR: u32 = 64;
    pub(super) const TRACING: u32 = 66;
    pub(super) const BUILD_ID: u32 = 67;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const FEATURE: u32 = 80;
}

/// The metadata of a recording.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) attrs: Vec<Attr>,
    /// Range of the records.
    pub(super) records: Range<usize>,
    pub(super) host: String,
    pub(super) kernel: String,
    pub(super) perf: String,
    pub(super) architecture: String,
    pub(super) cpu: String,
    /// perf's command line.
    pub(super) command: Vec<String>,
    /// Build IDs by path.
    pub(super) build_ids: FxHashMap<Vec<u8>, String>,
    /// Losses.
    pub(super) losses: Vec<String>,
}

impl Header {
    /// Reads the header of a file or of a stream. The error is the reason.
    pub(super) fn read(bytes: &[u8]) -> Result<Header, String> {
        if bytes.starts_with(MAGIC_OF_OTHERS) {
            return Err("recordings from big-endian machines are not supported".into());
        }
        let mut rest = Rest(bytes.strip_prefix(MAGIC).ok_or("the PERFILE2 magic is missing")?);
        let size = rest.u64().ok_or("the header is truncated")?;
        let header = match size {
            PIPE_HEADER => Header::of_stream(bytes),
            _ => Header::of_file(bytes, rest).ok_or("the header is truncated")?,
        };
        match header.attrs.is_empty() {
            true => Err("the header lists no events".into()),
            false => Ok(header),
        }
    }

    fn of_file(bytes: &[u8], mut rest: Rest<'_>) -> Option<Header> {
        let attr_size = rest.u64()?;
        let (attrs_at, attrs_size) = (rest.u64()?, rest.u64()?);
        let (data_at, data_size) = (rest.u64()?, rest.u64()?);
        rest.take(16)?;
        let features = [rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?];
        let mut header = Header::default();
        let end = bytes.len() as u64;
        let data_end = match data_size {
            // perf writes the size at exit. If it is missing, the rest of the file is records.
            0 => {
                header.losses.push(
                    "perf did not finish this recording: the data it writes last is missing".into(),
                );
                end
            }
            size => data_at.saturating_add(size),
        };
        if data_end > end {
            header.losses.push(format!(
                "the file is truncated: it has {} of {data_size} bytes of records",
                end.saturating_sub(data_at)
            ));
        }
        header.records = data_at.min(end) as usize..data_end.min(end) as usize;
        // Sections follow the records, ordered by number.
        let mut table = Rest(bytes.get(data_end as usize..).unwrap_or_default());
        for number in 0..=feature::LAST {
            if features[number as usize / 64] >> (number % 64) & 1 == 0 || data_size == 0 {
                continue;
            }
            let section = (|| {
                let (at, size) = (table.u64()?, table.u64()?);
                bytes.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(size).ok()?)
            })();
            if let Some(section) = section {
                header.feature(number, section);
            }
        }
        if header.attrs.is_empty() {
            header.attrs = plain_attrs(bytes, attr_size, attrs_at, attrs_size);
        }
        Some(header)
    }

    /// A stream has the metadata as records. They are read first, because build IDs come last but
    /// are needed from the start.
    fn of_stream(bytes: &[u8]) -> Header {
        let mut header = Header { records: PIPE_HEADER as usize..bytes.len(), ..Header::default() };
        let mut at = PIPE_HEADER as usize;
        while let Some((kind, body, next)) = record_at(bytes, at) {
            match kind {
                kind::ATTR => {
                    let size = Rest(body.get(4..).unwrap_or_default()).u32().unwrap_or(0);
                    let (attr, ids) = body.split_at(body.len().min(size as usize));
                    if let Some(mut attr) = Attr::read(attr) {
                        attr.ids = super::bytes::words(ids).collect();
                        header.attrs.push(attr);
                    }
                }
                kind::FEATURE => {
                    let mut rest = Rest(body);
                    if let Some(number) = rest.u64() {
                        header.feature(number, rest.0);
                    }
                }
                kind::BUILD_ID => header.build_id(body, 0),
                _ => {}
            }
            at = next;
        }
        header
    }

    fn feature(&mut self, number: u64, section: &[u8]) {
        let mut rest = Rest(section);
        let mut text = || rest.header_text().unwrap_or_default();
        match number {
            feature::HOSTNAME => self.host = text(),
            feature::OS_RELEASE => self.kernel = text(),
            feature::VERSION => self.perf = text(),
            feature::ARCHITECTURE => self.architecture = text(),
            feature::CPU => self.cpu = text(),
            feature::COMMAND => {
                let count = rest.u32().unwrap_or(0);
                self.command = (0..count).map_while(|_| rest.header_text()).collect();
            }
            feature::EVENTS => {
                let described = described_attrs(rest);
                // A stream has already described its events, without names.
                if self.attrs.is_empty() {
                    self.attrs = described;
                } else {
                    for (attr, described) in self.attrs.iter_mut().zip(described) {
                        attr.name = described.name;
                    }
                }
            }
            feature::BUILD_ID => {
                let mut at = 0;
                while let Some((_, body, next)) = record_at(section, at) {
                    let misc = u16::from_le_bytes([section[at + 4], section[at + 5]]);
                    self.build_id(body, misc);
                    at = next;
                }
            }
            _ => {}
        }
    }

    /// Parses process, build ID with its size, and path.
    fn build_id(&mut self, body: &[u8], misc: u16) {
        const HAS_SIZE: u16 = 1 << 15;
        let mut rest = Rest(body);
        let Some(_pid) = rest.u32() else { return };
        let Some(id) = rest.take(24) else { return };
        let size = match misc & HAS_SIZE {
            0 => 20 - id[..20].rchunks_exact(4).take_while(|part| **part == [0; 4]).count() * 4,
            _ => usize::from(id[20]).min(20),
        };
        let id = hex(&id[..size]);
        if !id.is_empty() {
            self.build_ids.insert(rest.text().to_vec(), id);
        }
    }
}

/// An id in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Kind and body of the record at an offset, and the offset of the next one.
fn record_at(bytes: &[u8], at: usize) -> Option<(u32, &[u8], usize)> {
    let mut rest = Rest(bytes.get(at..)?);
    let kind = rest.u32()?;
    let size = usize::from((rest.u32()? >> 16) as u16);
    let body = bytes.get(at..at.checked_add(size)?)?.get(RECORD_HEADER..)?;
    Some((kind, body, at.checked_add(size)?.checked_add(extra(kind, body))?))
}

/// Bytes after a record that its size does not include.
pub(super) fn extra(kind: u32, body: &[u8]) -> usize {
    let mut rest = Rest(body);
    let size = match kind {
        kind::TRACING => rest.u32().map(|size| (u64::from(size) + 7) & !7),
        kind::AUXTRACE => rest.u64(),
        _ => None,
    };
    usize::try_from(size.unwrap_or(0)).unwrap_or(usize::MAX)
}

/// Parses events with names and ids.
fn described_attrs(mut rest: Rest<'_>) -> Vec<Attr> {
    let mut attrs = vec![];
    let (Some(count), Some(size)) = (rest.u32(), rest.u32()) else { return attrs };
    for _ in 0..count {
        let attr = (|| {
            let mut attr = Attr::read(rest.take(u64::from(size))?)?;
            let ids = rest.u32()?;
            attr.name = rest.header_text()?;
            attr.ids = super::bytes::words(rest.take(u64::from(ids) * 8)?).collect();
            Some(attr)
        })();
        match attr {
            Some(attr) => attrs.push(attr),
            None => break,
        }
    }
    attrs
}

/// Parses events without names, each with the location of its ids.
fn plain_attrs(bytes: &[u8], attr_size: u64, at: u64, size: u64) -> Vec<Attr> {
    let mut attrs = vec![];
    let Ok(at) = usize::try_from(at) else { return attrs };
    let mut rest = Rest(bytes.get(at..).unwrap_or_default());
    rest = Rest(&rest.0[..usize::try_from(size).unwrap_or(usize::MAX).min(rest.0.len())]);
    let Some(own) = attr_size.checked_sub(16) else { return attrs };
    while let Some(attr) = rest.take(own) {
        let Some(mut attr) = Attr::read(attr) else { break };
        let (Some(ids_at), Some(ids_size)) = (rest.u64(), rest.u64()) else { break };
        let ids = usize::try_from(ids_at).ok().and_then(|at| bytes.get(at..));
        let ids = ids.and_then(|ids| Rest(ids).take(ids_size)).unwrap_or_default();
        attr.ids = super::bytes::words(ids).collect();
        attrs.push(attr);
    }
    attrs
}
