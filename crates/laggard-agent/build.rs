//! Builds each injected library with one call of rustc, so that it can be embedded in the program.
//!
//! The libraries are `no_std` and link nothing. They look up libc functions at load time, without
//! symbol versions, so that they also load on older systems.

use std::path::Path;
use std::process::Command;

const AGENTS: [&str; 2] = ["sample", "calls"];

fn main() {
    println!("cargo::rerun-if-changed=src");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    let supported = target.starts_with("x86_64") && target.contains("linux");
    for agent in AGENTS {
        let library = Path::new(&out).join(format!("{agent}.so"));
        if supported {
            build(agent, &library, &target);
        } else {
            std::fs::write(&library, b"").expect("OUT_DIR is writable");
        }
    }
}

fn build(agent: &str, library: &Path, target: &str) {
    let mut rustc = Command::new(std::env::var("RUSTC").expect("cargo sets RUSTC"));
    rustc
        .arg(format!("src/{agent}_agent.rs"))
        .args(["--crate-name", &format!("laggard_{agent}"), "--crate-type", "cdylib"])
        .args(["--edition", "2024", "--target", target, "--cfg", "laggard_agent"])
        .args(["-C", "panic=abort", "-C", "opt-level=3", "-C", "lto=fat"])
        .args(["-C", "codegen-units=1", "-C", "strip=debuginfo"])
        .args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-nostdlib"])
        .args(["-C", "link-arg=-Wl,-z,now", "-C", "link-arg=-Wl,--hash-style=gnu"])
        // Fewer segments: each costs every process that loads the library several microseconds.
        .args(["-C", "relro-level=off", "-C", "link-arg=-Wl,-z,noseparate-code"])
        .args(["-D", "warnings", "-A", "dead_code"])
        .arg("-o")
        .arg(library);
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let status = rustc.status().expect("rustc can be run");
    assert!(status.success(), "cannot build the {agent} agent");
}
