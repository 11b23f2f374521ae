//! Measures the phases of loading a trace, for `cargo xtask bench traces`. Each process does one
//! measurement and prints one line of JSON.
#![allow(clippy::print_stdout, unsafe_code)]

use laggard_core::classify::Rules;
use laggard_core::model::timeline::Activity;
use laggard_core::trace::Analysis;
use laggard_core::trace::link::link;
use laggard_core::trace::phase::Phases;
use laggard_formats::read::kineto::{self, Isa, Options, Paths};
use laggard_formats::{Bytes, Source};
use std::path::Path;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, mode, path, flags @ ..] = &args[..] else {
        panic!("usage: loadbench sum|scan|load|inflate FILE [--threads N] [--portable] [--walk]")
    };
    let mut options = Options { threads: 1, ..Options::default() };
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "--threads" => {
                options.threads =
                    flags.next().and_then(|n| n.parse().ok()).expect("a number of threads")
            }
            "--portable" => options.isa = Isa::Portable,
            "--walk" => options.paths = Paths::Walk,
            "--careful" => options.paths = Paths::Careful,
            other => panic!("unknown flag {other}"),
        }
    }
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let source = Source::open(Path::new(path)).expect("a readable file");
    let mut measured = Measured::default();
    match mode.as_str() {
        "sum" => {
            let Bytes::Mapped(map) = source.bytes else { panic!("the file is compressed") };
            let words = map
                .chunks_exact(8)
                .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
            measured.sum = words.fold(0, u64::wrapping_add);
            measured.bytes = map.len() as u64;
        }
        "inflate" => {
            let Bytes::Stream(mut stream) = source.bytes else {
                panic!("the file is not compressed")
            };
            measured.bytes =
                std::io::copy(&mut stream, &mut std::io::sink()).expect("a whole stream");
        }
        "scan" | "load" => {
            let mut timeline = kineto::read(source, &options, &|_| {}).expect("a trace");
            let phases = Phases::default();
            if mode == "load" {
                link(&mut timeline, &phases);
                std::hint::black_box(
                    Analysis::new(&timeline, Rules::builtin(), &phases, None).rows.len(),
                );
            }
            measured.bytes = timeline.bytes;
            measured.events = timeline.events;
            let spans = &timeline.gpu.spans;
            let is_kernel: Vec<bool> = timeline
                .kinds
                .iter()
                .map(|kind| kind.activity() == Some(Activity::Kernel))
                .collect();
            for (_, &dur) in spans
                .kind
                .iter()
                .zip(spans.dur.iter())
                .filter(|(kind, _)| is_kernel[**kind as usize])
            {
                measured.kernels += 1;
                measured.kernel_ns += dur;
            }
            report(mode, wall, cpu, &measured);
            std::mem::forget(timeline);
            return;
        }
        other => panic!("unknown mode {other}"),
    }
    report(mode, wall, cpu, &measured);
}

#[derive(Default)]
struct Measured {
    bytes: u64,
    events: u64,
    kernels: u64,
    kernel_ns: i64,
    sum: u64,
}

fn report(mode: &str, wall: Instant, cpu: f64, measured: &Measured) {
    let (wall_s, cpu_s) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        |line: &str| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok();
    let anon_bytes = status.lines().find_map(kilobytes).unwrap_or(0) * 1024;
    let Measured { bytes, events, kernels, kernel_ns, sum } = measured;
    println!(
        r#"{{"mode":"{mode}","cpu_s":{cpu_s:.4},"wall_s":{wall_s:.4},"bytes":{bytes},"events":{events},"kernels":{kernels},"kernel_ns":{kernel_ns},"anon_bytes":{anon_bytes},"sum":{sum}}}"#
    );
}

fn cpu_seconds() -> f64 {
    // SAFETY: `getrusage` fills the struct it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
