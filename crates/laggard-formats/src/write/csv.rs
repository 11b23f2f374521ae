//! Writes samples as CSV, one per row.

use super::{joined, plain_labels};
use laggard_core::profile::View;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Writes samples as CSV (RFC 4180). Frames are joined by `;`, outermost first.
pub fn csv(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let profile = view.profile;
    let labels = plain_labels(view);
    let mut stacks: FxHashMap<u32, String> = FxHashMap::default();
    write!(out, "time_ns,pid,tid,process,thread,event,weight,state,stack\r\n")?;
    for sample in &view.samples {
        let Some(thread) = profile.threads.get(sample.thread as usize) else { continue };
        let stack = stacks
            .entry(sample.stack)
            .or_insert_with(|| field(&joined(view, &labels, sample.stack)));
        write!(
            out,
            "{},{},{},{},{},{},{},{},{stack}\r\n",
            sample.time_ns,
            thread.pid,
            thread.tid,
            field(profile.texts.get(thread.process)),
            field(profile.texts.get(thread.name)),
            field(view.event_name()),
            sample.weight,
            sample.state,
        )?;
    }
    Ok(())
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
