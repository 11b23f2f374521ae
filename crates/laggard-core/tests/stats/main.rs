//! Statistics on noise with known true values.

mod coverage;
mod means;
mod noise;
mod ratio;
mod runs;
mod shape;
mod verdicts;
