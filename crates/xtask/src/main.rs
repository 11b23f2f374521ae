//! The project's chores: demo, test, bench, goldens, man pages, completions.

fn main() {}
