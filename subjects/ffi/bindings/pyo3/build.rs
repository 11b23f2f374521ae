//! Links libbenchlib.so from the directory BENCHLIB_DIR. At run time it is loaded from the module's directory.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BENCHLIB_DIR");
    // Tools such as clippy do not link and need no directory.
    if let Ok(directory) = env::var("BENCHLIB_DIR") {
        println!("cargo::rustc-link-search=native={directory}");
    }
    println!("cargo::rustc-link-lib=dylib=benchlib");
    println!("cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN");
}
