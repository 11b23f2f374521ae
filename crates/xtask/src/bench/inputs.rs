//! Input traces, generated once and kept below the target directory.

use crate::{gen_trace, project};
use anyhow::{Context, Result, bail};
use laggard_samples::Style;
use laggard_samples::kineto::{Gpu, Recipe, Workload};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kind of most events of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// Python functions and operators.
    Host,
    /// Kernels, launches and flow events.
    Kernels,
}

/// An input trace.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) flavour: Flavour,
    pub(super) style: Style,
    pub(super) gigabytes: f64,
    pub(super) compressed: bool,
}

impl Input {
    /// A heading: "0.9 GB, native layout, mostly kernels and launches, as .json.gz".
    pub(super) fn title(&self) -> String {
        let most = match self.flavour {
            Flavour::Host => "mostly Python functions and operators",
            Flavour::Kernels => "mostly kernels and launches",
        };
        let suffix = if self.compressed { ", as .json.gz" } else { "" };
        format!("{} GB, {} layout, {most}{suffix}", self.gigabytes, self.style.word())
    }
}

/// Generates traces, from events of real traces where available.
pub(super) struct Kitchen {
    directory: PathBuf,
    shared: Option<PathBuf>,
    python: PathBuf,
}

impl Kitchen {
    pub(super) fn new(python: PathBuf) -> Result<Kitchen> {
        let shared = project::root()
            .parent()
            .map(|parent| parent.join("shared"))
            .filter(|shared| shared.join(GENERATOR).is_file());
        Ok(Kitchen { directory: project::target()?.join("bench"), shared, python })
    }

    /// Origin of the events, for the report.
    pub(super) fn source(&self) -> &'static str {
        match self.shared {
            Some(_) => "events of real traces, repeated with shifted IDs and times",
            None => "synthetic, from `cargo xtask gen`",
        }
    }

    /// Base traces of a distributed job (mostly host events, mostly kernels) and a directory of
    /// ranks. Real traces where available.
    pub(super) fn job(&self) -> Result<([PathBuf; 2], PathBuf)> {
        if let Some(shared) = &self.shared {
            let traces = shared.join("traces");
            let bases = ["mi300_resnet.json.gz", "v100_test.json.gz"].map(|name| traces.join(name));
            return Ok((bases, traces.join("dlrm_8_ranks")));
        }
        let made = |flavour| -> Result<PathBuf> {
            let input = Input { flavour, style: Style::Native, gigabytes: 0.01, compressed: false };
            Ok(self.serve(&input)?.0)
        };
        let bases = [made(Flavour::Host)?, made(Flavour::Kernels)?];
        Ok((bases, project::root().join("fixtures/ranks")))
    }

    /// The file of an input and its uncompressed size. Generates the file if it does not exist.
    pub(super) fn serve(&self, input: &Input) -> Result<(PathBuf, u64)> {
        let origin = if self.shared.is_some() { "real" } else { "made" };
        let flavour = match input.flavour {
            Flavour::Host => "host",
            Flavour::Kernels => "kernels",
        };
        let plain = self.directory.join(format!(
            "{origin}-{flavour}-{}-{}.json",
            input.style.word(),
            input.gigabytes
        ));
        if !plain.is_file() {
            eprintln!("bench: generating {}", project::short(&plain));
            self.make(input, &plain)?;
        }
        let text_bytes = std::fs::metadata(&plain)?.len();
        if !input.compressed {
            return Ok((plain, text_bytes));
        }
        let compressed = plain.with_extension("json.gz");
        if !compressed.is_file() {
            eprintln!("bench: generating {}", project::short(&compressed));
            compress(&plain, &compressed)?;
        }
        Ok((compressed, text_bytes))
    }

    fn make(&self, input: &Input, path: &Path) -> Result<()> {
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let unfinished = path.with_extension("unfinished");
        let megabytes = input.gigabytes * 1000.0;
        match &self.shared {
            Some(shared) => {
                let base = match input.flavour {
                    Flavour::Host => "traces/mi300_resnet.json.gz",
                    Flavour::Kernels => "traces/v100_test.json.gz",
                };
                let mut command = Command::new(&self.python);
                command.arg(shared.join(GENERATOR)).arg(shared.join(base)).arg(&unfinished);
                command.arg(megabytes.to_string()).args(["--style", input.style.word()]);
                if input.flavour == Flavour::Kernels {
                    command.args(["--gpu-boost", "4"]);
                }
                project::must(&mut command)?;
            }
            None => {
                let (gpu, workload) = match input.flavour {
                    Flavour::Host => (Gpu::Amd, Workload::Training),
                    Flavour::Kernels => (Gpu::Nvidia, Workload::Decode),
                };
                let recipe = Recipe {
                    style: input.style,
                    workload,
                    ..Recipe::new((megabytes * 1e6) as u64, gpu)
                };
                gen_trace::write(&recipe, &unfinished)?;
            }
        }
        std::fs::rename(&unfinished, path)
            .with_context(|| format!("cannot rename to {}", path.display()))
    }
}

const GENERATOR: &str = "tools/gen_trace.py";

fn compress(plain: &Path, compressed: &Path) -> Result<()> {
    let unfinished = compressed.with_extension("unfinished.gz");
    let copied = || {
        let mut sink = laggard_samples::compress::Sink::create(&unfinished)?;
        std::io::copy(&mut std::fs::File::open(plain)?, &mut sink)?;
        sink.finish()?;
        std::fs::rename(&unfinished, compressed)
    };
    copied().with_context(|| format!("cannot write {}", compressed.display()))
}

/// Parses a size in gigabytes; a `k` suffix selects mostly kernels.
pub(super) fn parse_size(text: &str) -> Result<(f64, Flavour)> {
    let (number, flavour) = match text.strip_suffix('k') {
        Some(number) => (number, Flavour::Kernels),
        None => (text, Flavour::Host),
    };
    match number.parse::<f64>() {
        Ok(gigabytes) if gigabytes > 0.0 => Ok((gigabytes, flavour)),
        _ => bail!(
            "invalid size {text:?}: expected gigabytes, with suffix k for mostly kernels, such as 0.9 or 1.1k"
        ),
    }
}
