//! Statistics on noise whose truth is known.

mod coverage;
mod means;
mod noise;
mod ratio;
mod runs;
mod shape;
mod verdicts;
