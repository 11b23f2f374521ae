//! Statistics on noise whose truth is known.

mod coverage;
mod noise;
mod ratio;
mod runs;
mod shape;
mod verdicts;
