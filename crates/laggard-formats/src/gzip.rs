//! gzip compression of output.

use std::io::Write;

/// Compresses with gzip.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    // Writing to a vector cannot fail.
    let _ = out.write_all(content);
    out.finish().unwrap_or_default()
}
