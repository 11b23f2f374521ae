//! The generated files in the project's `fixtures/` directory.

use crate::compress;
use crate::kineto::{self, Events, Gpu, Recipe, Workload};
use crate::pen::Style;
use crate::traps::{self, Found, Sample};
use std::io;

/// A file in `fixtures/`.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Path below `fixtures/`.
    pub path: String,
    /// One-line description.
    pub about: String,
    /// The command that makes it.
    pub command: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Expected counts; `None` if several results are acceptable or the file is not a trace.
    pub found: Option<Found>,
}

/// All fixtures.
pub fn all() -> io::Result<Vec<Fixture>> {
    let mut fixtures = Vec::new();
    for gpu in [Gpu::Amd, Gpu::Nvidia] {
        for style in Style::ALL {
            let recipe = Recipe { style, ..small(gpu) };
            let path = format!("{}-{}.json", gpu.word(), style.word());
            fixtures.push(plain(&path, "training trace in this layout", &recipe));
        }
    }
    let decode = Recipe { workload: Workload::Decode, bytes: 70_000, ..small(Gpu::Nvidia) };
    fixtures.push(plain(
        "decode.json",
        "inference server: one prompt, a replayed graph, single launches",
        &decode,
    ));
    for rank in 0..3 {
        let recipe = Recipe { rank, ranks: 3, ..small(Gpu::Nvidia) };
        fixtures.push(plain(
            &format!("ranks/rank{rank}.json"),
            "one of three ranks, with collectives",
            &recipe,
        ));
    }
    for (name, events, about) in [
        ("events-first.json", Events::First, "`traceEvents` before all other keys"),
        ("events-last.json", Events::Last, "`traceEvents` after all other keys"),
        ("bare-array.json", Events::Bare, "the event array alone"),
    ] {
        let recipe = Recipe { events, ..small(Gpu::Amd) };
        fixtures.push(Fixture { command: GOLDENS.into(), ..plain(name, about, &recipe) });
    }
    let (text, totals) = kineto::text(&small(Gpu::Amd));
    let text = text.as_bytes();
    for (name, about, bytes) in [
        ("one-member.json.gz", "amd-native.json, compressed", compress::gz(text, 1)?),
        (
            "three-members.json.gz",
            "amd-native.json, compressed in three parts",
            compress::gz(text, 3)?,
        ),
        ("zstandard.json.zst", "amd-native.json, compressed", compress::zst(text)?),
    ] {
        let found = Some(totals.into());
        fixtures.push(Fixture {
            path: name.into(),
            about: about.into(),
            command: GOLDENS.into(),
            bytes,
            found,
        });
    }
    fixtures.extend(traps::traps().into_iter().map(|sample| placed("traps", sample)));
    fixtures.extend(traps::not_traces().into_iter().map(|sample| placed("not-traces", sample)));
    Ok(fixtures)
}

const GOLDENS: &str = "cargo xtask goldens";

fn small(gpu: Gpu) -> Recipe {
    Recipe::new(40_000, gpu)
}

fn plain(path: &str, about: &str, recipe: &Recipe) -> Fixture {
    let (text, totals) = kineto::text(recipe);
    let mut out = path.to_owned();
    let mut flags = format!("--mb {} --gpu {}", recipe.bytes as f64 / 1e6, recipe.gpu.word());
    if recipe.style != Style::Native {
        flags += &format!(" --style {}", recipe.style.word());
    }
    if recipe.workload == Workload::Decode {
        flags += " --kernels-heavy";
    }
    if recipe.ranks > 1 {
        flags += &format!(" --ranks {}", recipe.ranks);
        out = path.replace(&recipe.rank.to_string(), "{rank}");
    }
    Fixture {
        path: path.into(),
        about: about.into(),
        command: format!("cargo xtask gen fixtures/{out} {flags}"),
        bytes: text.into_bytes(),
        found: Some(totals.into()),
    }
}

fn placed(directory: &str, sample: Sample) -> Fixture {
    let Sample { name, about, bytes, found } = sample;
    Fixture { path: format!("{directory}/{name}"), about, command: GOLDENS.into(), bytes, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_are_small_and_have_unique_names() {
        let fixtures = all().expect("fixtures");
        let mut paths: Vec<&str> = fixtures.iter().map(|fixture| fixture.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), fixtures.len());
        assert!(fixtures.iter().map(|fixture| fixture.bytes.len()).sum::<usize>() < 2_000_000);
    }
}
