//! Writers of profiles for other programs, one file per format.
//!
//! You give a [`View`] of one event, you get text. Names are changed only where a format cannot
//! represent them.

mod calls;
mod chrome;
mod collapsed;
mod csv;
mod firefox;
pub mod parquet;
mod pprof;
mod speedscope;

pub use calls::collapsed_calls;
pub use chrome::chrome;
pub use collapsed::collapsed;
pub use csv::csv;
pub use firefox::firefox;
pub use pprof::pprof;
pub use speedscope::speedscope;

use laggard_core::profile::{View, frame_label};

/// Labels of all frames, without frame and line separators of collapsed stacks.
fn plain_labels(view: &View) -> Vec<String> {
    let profile = view.profile;
    profile.frames.iter().map(|frame| plain(&frame_label(profile, frame))).collect()
}

/// A label without frame and line separators.
fn plain(label: &str) -> String {
    label.replace(';', ":").replace(|c: char| c.is_control(), " ").trim().to_owned()
}

/// Frames of a stack joined by `;`, outermost first.
fn joined(view: &View, labels: &[String], stack: u32) -> String {
    let mut names: Vec<&str> = view
        .profile
        .frames_of(stack)
        .filter_map(|frame| labels.get(frame as usize).map(String::as_str))
        .collect();
    names.reverse();
    names.join(";")
}
