//! Writes synthetic PyTorch profiler traces of any size and returns their exact totals.
//!
//! A transformer runs on a simulated machine with nested operators and Python functions, launches with
//! correlations, kernels on streams with idle gaps, and collectives. Durations depend on a seed.

mod kernels;
mod machine;
mod ops;
mod render;
mod steady;
mod steps;

use crate::json::Json;
use crate::pen::{Pen, Style};
use machine::{Event, Machine, What};
use render::Renderer;
use std::io::{self, Write};

pub use steady::{Steady, Variant};

/// Vendor of the device and runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gpu {
    /// CUDA: events have grid, block, registers and external IDs.
    Nvidia,
    /// HIP: launches have grid and block, kernels have few details.
    Amd,
}

impl Gpu {
    /// The name in file names and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Gpu::Nvidia => "nvidia",
            Gpu::Amd => "amd",
        }
    }

    fn units(self) -> u32 {
        match self {
            Gpu::Nvidia => 132,
            Gpu::Amd => 304,
        }
    }
}

/// The traced job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// Training: 60 % of the events are Python functions and operators.
    Training,
    /// Inference: mostly kernels and launches. Some steps replay a graph, whose kernels share a correlation.
    Decode,
}

/// Position of the event array in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Events {
    /// Between the device properties and the base time, as in Kineto's output.
    Amid,
    /// Before all other keys.
    First,
    /// After all other keys.
    Last,
    /// The file consists of the array only.
    Bare,
}

/// Parameters of a trace.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Approximate size: complete steps are written until the file has this size.
    pub bytes: u64,
    /// JSON layout.
    pub style: Style,
    /// Vendor of the device.
    pub gpu: Gpu,
    /// The traced job.
    pub workload: Workload,
    /// Seed of the durations.
    pub seed: u64,
    /// Layers of the model.
    pub layers: u32,
    /// Rank in the job.
    pub rank: u32,
    /// Number of ranks; with 2 or more there are collectives.
    pub ranks: u32,
    /// Position of the event array.
    pub events: Events,
    /// Number of steps; overrides the size.
    pub steps: Option<u64>,
    /// Whether Python functions are recorded.
    pub python: bool,
    /// Makes all steps equal, for comparisons. Otherwise durations vary widely.
    pub steady: Option<Steady>,
}

impl Recipe {
    /// A trace of about `bytes` in the native layout, with a model size to match.
    pub fn new(bytes: u64, gpu: Gpu) -> Recipe {
        Recipe {
            bytes,
            style: Style::Native,
            gpu,
            workload: Workload::Training,
            seed: 1,
            layers: (bytes / 800_000).clamp(1, 24) as u32,
            rank: 0,
            ranks: 1,
            events: Events::Amid,
            steps: None,
            python: true,
            steady: None,
        }
    }

    /// ID of the recorded run. Two steady jobs with the same seed are different runs.
    fn run(&self) -> u64 {
        self.seed ^ self.steady.map_or(0, |steady| steady.noise_seed)
    }
}

/// A device operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The kernel; `None` for copies and fills.
    pub(crate) kernel: Option<&'static str>,
    pub(crate) start_ns: i64,
    pub(crate) dur_ns: i64,
}

/// Exact totals of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Size before compression.
    pub bytes: u64,
    /// Objects in the event array.
    pub events: u64,
    /// Kernels.
    pub kernels: u64,
    /// Sum of their durations.
    pub kernel_ns: u64,
    /// Copies to, from and within the device.
    pub copies: u64,
    /// Fills of device memory.
    pub fills: u64,
    /// Runtime calls.
    pub runtime: u64,
    /// Operators.
    pub ops: u64,
    /// Python functions.
    pub python: u64,
    /// Annotations, on the host and on the device.
    pub annotations: u64,
    /// Ends of flow arrows.
    pub flows: u64,
    /// Instant events.
    pub instants: u64,
    /// Steps of the job.
    pub steps: u64,
}

impl Totals {
    /// The counts by name.
    pub fn named(&self) -> [(&'static str, u64); 13] {
        [
            ("bytes", self.bytes),
            ("events", self.events),
            ("kernels", self.kernels),
            ("kernel_ns", self.kernel_ns),
            ("copies", self.copies),
            ("fills", self.fills),
            ("runtime", self.runtime),
            ("ops", self.ops),
            ("python", self.python),
            ("annotations", self.annotations),
            ("flows", self.flows),
            ("instants", self.instants),
            ("steps", self.steps),
        ]
    }
}

/// Writes the trace to `out`, which need not be buffered.
pub fn write(recipe: &Recipe, out: impl Write) -> io::Result<Totals> {
    write_watched(recipe, out, |_| {})
}

/// Writes the trace and passes the device operations of each step to `watch`.
pub(crate) fn write_watched(
    recipe: &Recipe,
    out: impl Write,
    mut watch: impl FnMut(&mut dyn Iterator<Item = Piece>),
) -> io::Result<Totals> {
    let mut pen = Pen::new(out, recipe.style);
    let (before, after) = frame(recipe);
    pen.raw(&before);
    let mut machine = Machine::new(recipe);
    let mut renderer = Renderer::new(pen, recipe);
    let (start, mut steps) = (machine.now, 0);
    while match recipe.steps {
        Some(wanted) => steps < wanted,
        None => steps == 0 || renderer.pen.bytes() < recipe.bytes,
    } {
        machine.begin_step(recipe, steps);
        steps::step(&mut machine, recipe, steps);
        watch(&mut machine.events.iter().filter_map(piece));
        renderer.step(&machine.events)?;
        steps += 1;
    }
    let streams = [machine.compute_stream(), machine.comm_stream()];
    renderer.end(start, machine.now, if recipe.ranks > 1 { &streams } else { &streams[..1] })?;
    let Renderer { mut pen, totals, .. } = renderer;
    pen.raw(&after);
    let totals = Totals { events: pen.events(), bytes: pen.bytes(), steps, ..totals };
    pen.finish()?;
    Ok(totals)
}

fn piece(event: &Event) -> Option<Piece> {
    let kernel = match event.what {
        What::Kernel { kernel, .. } => Some(kernel.name),
        What::Copy { .. } | What::Fill { .. } => None,
        _ => return None,
    };
    Some(Piece { kernel, start_ns: event.start, dur_ns: event.dur })
}

/// The trace as a string.
pub fn text(recipe: &Recipe) -> (String, Totals) {
    let mut bytes = Vec::new();
    match write(recipe, &mut bytes) {
        Ok(totals) => (String::from_utf8_lossy(&bytes).into_owned(), totals),
        Err(error) => unreachable!("writing to memory failed: {error}"),
    }
}

/// The text before the first event and the text after the last one.
fn frame(recipe: &Recipe) -> (String, String) {
    let last_line = match recipe.style {
        Style::Native => "\n  ]",
        Style::Indent2 => "\n  ]",
        Style::Compact | Style::Spaced => "]",
    };
    if recipe.events == Events::Bare {
        return (
            "[".into(),
            if recipe.style == Style::Native { "\n]\n".into() } else { last_line.into() },
        );
    }
    let (mut before, mut after) = (metadata(recipe), closing(recipe));
    match recipe.events {
        Events::First => after.splice(0..0, before.drain(..)).for_each(drop),
        Events::Last => before.append(&mut after),
        Events::Amid | Events::Bare => {}
    }
    let lines = |entries: &[(&'static str, Json)]| -> Vec<String> {
        entries.iter().map(|(key, value)| top_level(recipe.style, key, value)).collect()
    };
    let (open, comma, close) = match recipe.style {
        Style::Native => ("\n{\n  ", ",\n  ", "\n}"),
        Style::Compact => ("{", ",", "}"),
        Style::Spaced => ("{", ", ", "}"),
        Style::Indent2 => ("{\n  ", ",\n  ", "\n}"),
    };
    let array =
        if recipe.style == Style::Compact { "\"traceEvents\":[" } else { "\"traceEvents\": [" };
    let mut head = lines(&before);
    head.push(array.into());
    let mut tail = vec![last_line.to_owned()];
    tail.extend(lines(&after));
    (format!("{open}{}", head.join(comma)), format!("{}{close}", tail.join(comma)))
}

/// A top-level key with its value. Kineto writes the device properties on separate lines.
fn top_level(style: Style, key: &str, value: &Json) -> String {
    match (style, value) {
        (Style::Native, Json::List(devices)) => {
            let devices: Vec<String> = devices.iter().map(native_device).collect();
            format!("\"{key}\": [\n{}\n  ]", devices.join(",\n"))
        }
        (Style::Compact, _) => format!("\"{key}\":{}", value.write(style, 1)),
        _ => format!("\"{key}\": {}", value.write(style, 1)),
    }
}

/// One device in Kineto's layout, with a fixed number of keys per line.
fn native_device(device: &Json) -> String {
    let Json::Map(entries) = device else { return String::new() };
    let mut lines = Vec::new();
    let mut rest = entries.as_slice();
    for keys in [3, 2, 2, 3, 2, 2] {
        let (line, others) = rest.split_at(keys.min(rest.len()));
        let line: Vec<String> = line
            .iter()
            .map(|(key, value)| format!("\"{key}\": {}", value.write(Style::Native, 0)))
            .collect();
        lines.push(line.join(", "));
        rest = others;
    }
    lines.retain(|line| !line.is_empty());
    format!("    {{\n      {}\n    }}", lines.join(",\n      "))
}

fn metadata(recipe: &Recipe) -> Vec<(&'static str, Json)> {
    let devices = (0..recipe.ranks.clamp(1, 8)).map(|id| device(recipe.gpu, id));
    let mut keys = vec![("schemaVersion", Json::Int(1)), ("deviceProperties", Json::list(devices))];
    match recipe.gpu {
        Gpu::Nvidia => {
            keys.push(("cupti_version", Json::Int(26)));
            keys.push(("cuda_runtime_version", Json::Int(12_080)));
            keys.push(("cuda_driver_version", Json::Int(12_080)));
        }
        Gpu::Amd => {
            keys.push(("roctracer_version", Json::raw("4.1")));
            keys.push(("hip_runtime_version", Json::Int(60_443_483)));
            keys.push(("hip_driver_version", Json::Int(60_443_483)));
        }
    }
    if recipe.ranks > 1 {
        keys.push(("distributedInfo", distributed(recipe)));
    }
    let flags = ["profile_memory", "record_shapes", "with_stack"];
    let flags = if recipe.python { &flags[..] } else { &flags[..2] };
    keys.extend(flags.iter().map(|flag| (*flag, Json::Int(1))));
    let id = crate::Rng::new(recipe.run()).bits();
    keys.push(("trace_id", Json::text(format!("{id:016X}{:016X}", recipe.rank))));
    keys
}

fn closing(recipe: &Recipe) -> Vec<(&'static str, Json)> {
    vec![
        ("traceName", Json::text(format!("./traces/rank{}.json", recipe.rank))),
        ("displayTimeUnit", Json::text("ms")),
        ("baseTimeNanoseconds", Json::Int(1_754_006_400_000_000_000)),
    ]
}

fn device(gpu: Gpu, id: u32) -> Json {
    let number = |n: u64| Json::Int(i128::from(n));
    let (name, memory, major, warp, shared, shared_unit, shared_most) = match gpu {
        Gpu::Nvidia => {
            ("NVIDIA H100 80GB HBM3", 85_045_673_984, (9, 0), 32, 49_152, 233_472, 232_448)
        }
        Gpu::Amd => ("AMD Instinct MI300X", 206_141_652_992, (9, 4), 64, 65_536, 65_536, 65_536),
    };
    Json::map([
        ("id", number(u64::from(id))),
        ("name", Json::text(name)),
        ("totalGlobalMem", number(memory)),
        ("computeMajor", number(major.0)),
        ("computeMinor", number(major.1)),
        ("maxThreadsPerBlock", number(1024)),
        ("maxThreadsPerMultiprocessor", number(2048)),
        ("regsPerBlock", number(65_536)),
        ("regsPerMultiprocessor", number(65_536)),
        ("warpSize", number(warp)),
        ("sharedMemPerBlock", number(shared)),
        ("sharedMemPerMultiprocessor", number(shared_unit)),
        ("numSms", number(u64::from(gpu.units()))),
        ("sharedMemPerBlockOptin", number(shared_most)),
    ])
}

fn distributed(recipe: &Recipe) -> Json {
    let number = |n: u32| Json::Int(i128::from(n));
    Json::map([
        ("backend", Json::text("nccl")),
        ("rank", number(recipe.rank)),
        ("world_size", number(recipe.ranks)),
        ("pg_count", number(1)),
        (
            "pg_config",
            Json::list([Json::map([
                ("pg_name", Json::text("0")),
                ("pg_desc", Json::text("default_pg")),
                ("backend_config", Json::text("cuda:nccl")),
                ("pg_size", number(recipe.ranks)),
                ("ranks", Json::list((0..recipe.ranks).map(number))),
            ])]),
        ),
        ("nccl_version", Json::text("2.26.2")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_depend_only_on_the_recipe() {
        let recipe = Recipe { ranks: 2, ..Recipe::new(200_000, Gpu::Amd) };
        assert_eq!(text(&recipe), text(&recipe));
        assert_ne!(text(&recipe).0, text(&Recipe { seed: 2, ..recipe.clone() }).0);
    }

    #[test]
    fn totals_match_the_trace() {
        for style in Style::ALL {
            for workload in [Workload::Training, Workload::Decode] {
                let recipe = Recipe { style, workload, ..Recipe::new(150_000, Gpu::Nvidia) };
                let (text, totals) = text(&recipe);
                let dense: String = text.split_whitespace().collect();
                assert_eq!(text.len() as u64, totals.bytes);
                assert_eq!(dense.matches("\"ph\":").count() as u64, totals.events);
                assert_eq!(dense.matches("\"cat\":\"kernel\"").count() as u64, totals.kernels);
            }
        }
    }
}
