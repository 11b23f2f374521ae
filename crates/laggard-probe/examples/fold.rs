//! Records a command and prints its collapsed stacks: `fold RATE -- COMMAND…`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a developer tool"
)]

use laggard_core::model::profile::{FrameKind, state};
use laggard_probe::sample::{Options, record};
use std::collections::HashMap;

fn main() {
    let args: Vec<_> = std::env::args_os().collect();
    let rate: f64 = args[1].to_str().unwrap().parse().unwrap();
    let options = Options {
        rate,
        children: std::env::var("CHILDREN").is_ok(),
        inherit: std::env::var("INHERIT").is_ok(),
        ..Options::default()
    };
    let (mut profile, ended) = record(&args[3..], &options, &mut |_| ()).unwrap();
    let t = std::time::Instant::now();
    let resolution = laggard_symbols::resolve(&mut profile, &laggard_symbols::FileSystem);
    let took = t.elapsed();
    let mut stacks: HashMap<String, u64> = HashMap::new();
    let mut complete = 0;
    for sample in &profile.samples {
        if sample.state & state::CUT == 0 {
            complete += 1
        }
        let mut names: Vec<String> = profile
            .frames_of(sample.stack)
            .map(|f| {
                let f = &profile.frames[f as usize];
                let name = profile.texts.get(f.function);
                match f.kind {
                    FrameKind::Python => format!(
                        "{name} ({}:{})",
                        profile.texts.get(f.file).rsplit('/').next().unwrap(),
                        f.line
                    ),
                    _ if name.is_empty() => {
                        format!("[{}]", profile.module_path(f).rsplit('/').next().unwrap())
                    }
                    _ => name.to_owned(),
                }
            })
            .collect();
        names.reverse();
        *stacks.entry(names.join(";")).or_default() += 1;
    }
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_by_key(|s| std::cmp::Reverse(s.1));
    for (stack, n) in &stacks {
        println!("{stack} {n}");
    }
    eprintln!(
        "exit status {} samples {} complete {} {:?} symbolization {:?} {:?}",
        ended.code(),
        profile.samples.len(),
        complete,
        profile.quality,
        took,
        resolution
    );
    for (m, n, r) in &profile.quality.cut {
        eprintln!("  truncated {n} in {}: {}", profile.texts.get(*m), profile.texts.get(*r));
    }
    eprintln!(
        "cpu user {:.3} system {:.3} threads {:.3} sampled {:.3}",
        profile.about.user_ns as f64 / 1e9,
        profile.about.system_ns as f64 / 1e9,
        profile.threads.iter().map(|t| t.cpu_ns).sum::<u64>() as f64 / 1e9,
        profile.samples.len() as f64 / rate
    );
}
