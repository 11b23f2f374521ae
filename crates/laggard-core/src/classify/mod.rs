//! Kernel names to operation classes, by rules in TOML.
