//! Links the libbenchlib.so in the directory BENCHLIB_DIR, to be found beside the module when that is loaded.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BENCHLIB_DIR");
    // Checks such as clippy's do not link and need no directory.
    if let Ok(directory) = env::var("BENCHLIB_DIR") {
        println!("cargo::rustc-link-search=native={directory}");
    }
    println!("cargo::rustc-link-lib=dylib=benchlib");
    println!("cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN");
}
