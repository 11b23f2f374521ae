//! Writes a synthetic recording:
//! `cargo run --release -p laggard-formats --example sketch_run -- FILE`.
//! With `--killed`, the recording is unfinished.

use laggard_formats::lag::{self, Recorder};
use laggard_samples::profile::matrix_product;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("usage: sketch_run FILE [--killed]")?;
    let profile = matrix_product();
    if words.next().as_deref() != Some("--killed") {
        return Ok(lag::write_profile(Path::new(&path), &profile)?);
    }
    let mut recorder = Recorder::create(Path::new(&path), &profile.about)?;
    for end in [30, 60, profile.samples.len()] {
        let mut grown = profile.clone();
        grown.samples.truncate(end);
        recorder.append(&grown)?;
    }
    Ok(())
}
