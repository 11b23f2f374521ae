//! The `build` judge: the same source, compiled with other options.

use super::seen::{Pair, Seen};
use super::{Finding, Kind, Unit, Work};
use crate::model::code::{Code, Mark, Mix};
use crate::profile::file_name;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Options that make code faster.
const SPEEDING: [&str; 6] = ["-march=", "-mavx", "-mfma", "-msse", "-flto", "-ffast-math"];
/// Options that make code slower.
const SLOWING: [&str; 4] = ["-fsanitize", "-pg", "-fno-inline", "-fno-tree-vectorize"];
/// GCC records this target if no other one is given.
const GENERIC: &str = "-march=x86-64";

/// How a program or library was compiled, from its debug information.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleBuild {
    /// File name of the program or library.
    pub library: String,
    /// The compiler.
    pub compiler: String,
    /// Its options that affect speed.
    pub flags: Vec<String>,
}

impl ModuleBuild {
    /// The builds of files with debug information.
    pub(super) fn of_code(code: &Code) -> Vec<ModuleBuild> {
        let of_file = |file: &crate::model::code::CodeFile| {
            let compilers =
                file.build.debug.producers.iter().filter(|one| !one.compiler.contains(" AS "));
            // Compilers that do not record their options are unknown.
            let main = compilers.max_by_key(|producer| producer.units)?;
            if main.flags.is_empty() {
                return None;
            }
            // The last level applies.
            let level = main.flags.iter().rfind(|flag| flag.starts_with("-O"));
            let others = main.flags.iter().filter(|flag| {
                let is_known = |prefix: &&str| flag.starts_with(*prefix);
                SPEEDING.iter().chain(&SLOWING).any(is_known) && *flag != GENERIC
            });
            let mut flags: Vec<String> = others.cloned().collect();
            flags.sort();
            flags.splice(0..0, level.cloned());
            let library = file_name(&file.path).to_owned();
            Some(ModuleBuild { library, compiler: main.compiler.clone(), flags })
        };
        code.files.iter().filter_map(of_file).collect()
    }

    /// The optimization level, from 0 to 4.
    fn level(&self) -> u8 {
        match self.flags.iter().find_map(|flag| flag.strip_prefix("-O")) {
            None | Some("0") => 0,
            Some("g") => 1,
            Some("" | "1" | "s" | "z") => 2,
            Some("2") => 3,
            Some(_) => 4,
        }
    }

    /// Whether the code is probably faster than that of another build.
    fn is_better_than(&self, other: &ModuleBuild) -> bool {
        let slows = |flag: &String| SLOWING.iter().any(|slowing| flag.starts_with(slowing));
        let only = |one: &ModuleBuild, other: &ModuleBuild, is_slowing: bool| {
            let is_option = |flag: &&String| !flag.starts_with("-O") && slows(flag) == is_slowing;
            one.flags.iter().filter(is_option).any(|flag| !other.flags.contains(flag))
        };
        match self.level().cmp(&other.level()) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if only(self, other, true) => false,
            Ordering::Equal => {
                only(other, self, true) || only(self, other, false) && !only(other, self, false)
            }
        }
    }

    fn text(&self) -> String {
        let level = if self.flags.iter().any(|flag| flag.starts_with("-O")) { "" } else { "-O0 " };
        format!("{} {level}{}", self.compiler, self.flags.join(" ")).trim_end().to_owned()
    }
}

/// The finding if both sides spend most of their time in programs or libraries made from the same
/// source files, and B's was compiled with weaker options.
pub(super) fn weaker_build(pair: &Pair<'_>) -> Option<Finding> {
    weaker_options(pair).or_else(|| unoptimized(pair))
}

fn weaker_options(pair: &Pair<'_>) -> Option<Finding> {
    let [a, b] = [hottest_module(pair.a)?, hottest_module(pair.b)?];
    let build = |side: &Seen, library: &str| {
        side.builds.iter().find(|build| build.library == library).cloned()
    };
    let (of_a, of_b) = (build(pair.a, a.library)?, build(pair.b, b.library)?);
    let files: FxHashSet<&str> = a.works.iter().map(|work| source_file(work)).collect();
    let is_shared =
        |work: &&&Work| !source_file(work).is_empty() && files.contains(source_file(work));
    let shared_ns: f64 = b.works.iter().filter(is_shared).map(|work| work.ns).sum();
    let is_cause = b.ns - a.ns >= (pair.b.user_ns - pair.a.user_ns) / 2.0;
    if shared_ns < b.ns / 2.0 || !is_cause || !of_a.is_better_than(&of_b) {
        return None;
    }
    let worst = b.works.iter().max_by(|x, y| x.ns.total_cmp(&y.ns))?;
    let advice =
        format!("A is built with {}, B with {}: use A's options for B", of_a.text(), of_b.text());
    let samples = b.works.iter().map(|work| work.samples).sum();
    let what = "time in the same source files";
    Some(Finding::new(Kind::Build, worst.at(), advice).fact(
        what,
        [a.ns, b.ns],
        Unit::Nanos,
        samples,
    ))
}

/// The finding if both sides run functions of the same names most of the time, and B's keep their
/// variables in memory, as code that is compiled without optimization does. Needs no debug information.
fn unoptimized(pair: &Pair<'_>) -> Option<Finding> {
    /// Minimum share of instructions that access local variables, in unoptimized code: about half of
    /// them do, in optimized code one of ten.
    const UNOPTIMIZED: f64 = 0.35;
    let [a, b] = [hottest_module(pair.a)?, hottest_module(pair.b)?];
    // Optimized code has fewer functions, because small ones are inlined into their callers.
    let callers = pair.b.stacks.frames.iter().filter(|frame| frame.file == b.library);
    let callers = callers.map(|frame| frame.name.as_str());
    let names_of_a: FxHashSet<&str> = a.works.iter().map(|work| work.name.as_str()).collect();
    let names_of_b: FxHashSet<&str> =
        b.works.iter().map(|work| work.name.as_str()).chain(callers).collect();
    let shared = |own: &Module, others: &FxHashSet<&str>| {
        let is_shared =
            |work: &&&Work| !work.name.starts_with('[') && others.contains(work.name.as_str());
        own.works.iter().filter(is_shared).map(|work| work.ns).sum::<f64>() >= own.ns / 2.0
    };
    let are_same = shared(&a, &names_of_b) || shared(&b, &names_of_a);
    let is_cause = b.ns - a.ns >= (pair.b.user_ns - pair.a.user_ns) / 2.0;
    let [of_a, of_b] = [locals(&a)?, locals(&b)?];
    if !are_same || !is_cause || of_b < UNOPTIMIZED || of_a > of_b / 2.0 {
        return None;
    }
    let worst = b.works.iter().max_by(|x, y| x.ns.total_cmp(&y.ns))?;
    let samples = b.works.iter().map(|work| work.samples).sum();
    let advice = "B keeps its variables in memory, as compilers do without optimization: compile it as \
                  A, for example with -O2";
    let what = "instructions that access local variables in memory";
    Some(
        Finding::new(Kind::Build, worst.at(), advice)
            .fact(what, [of_a, of_b], Unit::Share, samples)
            .fact("time in the program or library", [a.ns, b.ns], Unit::Nanos, samples),
    )
}

/// Share of the executed instructions that access local variables in memory. `None` if the code could not
/// be disassembled.
fn locals(module: &Module<'_>) -> Option<f64> {
    let mut sum = Mix::default();
    module.works.iter().filter_map(|work| work.mix.as_ref()).for_each(|mix| sum.add(mix));
    let all = sum.working();
    (all > 0).then(|| sum.with(Mark::Local) as f64 / all as f64)
}

/// The functions of a program or library.
struct Module<'a> {
    library: &'a str,
    works: Vec<&'a Work>,
    ns: f64,
}

/// The program or library with most of a side's time.
fn hottest_module(side: &Seen) -> Option<Module<'_>> {
    let mut times: FxHashMap<&str, f64> = FxHashMap::default();
    for work in &side.work {
        *times.entry(&work.library).or_default() += work.ns;
    }
    let (library, ns) = times.into_iter().max_by(|x, y| x.1.total_cmp(&y.1))?;
    let works = side.work.iter().filter(|work| work.library == library).collect();
    (ns > side.user_ns / 2.0).then_some(Module { library, works, ns })
}

/// The source file of a function: `w.c` for `w.c:12`.
fn source_file(work: &Work) -> &str {
    work.place.rsplit_once(':').map_or("", |(file, _)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(flags: &[&str], file: &str, ns: f64) -> Seen {
        let work = Work {
            name: "step".into(),
            library: "app".into(),
            place: format!("{file}:3"),
            ns,
            samples: 100,
            ..Work::default()
        };
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let build = ModuleBuild { library: "app".into(), compiler: "GNU C17".into(), flags };
        Seen { user_ns: ns, work: vec![work], builds: vec![build], ..Seen::default() }
    }

    fn is_build(a: &Seen, b: &Seen) -> bool {
        weaker_build(&Pair { a, b }).is_some()
    }

    #[test]
    fn weaker_options_are_a_cause() {
        let fast = side(&["-O2"], "w.c", 10.0);
        assert!(is_build(&fast, &side(&[], "w.c", 50.0)));
        assert!(is_build(&fast, &side(&["-O1"], "w.c", 50.0)));
        assert!(is_build(&fast, &side(&["-O2", "-fsanitize=address"], "w.c", 50.0)));
        assert!(is_build(
            &side(&["-O2", "-march=native"], "w.c", 10.0),
            &side(&["-O2"], "w.c", 50.0)
        ));
    }

    #[test]
    fn code_that_keeps_variables_in_memory_is_unoptimized() {
        use crate::model::code::{Class, Marks};
        let side = |library: &str, name: &str, locals: u64, ns: f64| {
            let mut mix = Mix::default();
            mix.count(Class::Integer, Marks::default(), 100 - locals);
            mix.count(Class::Integer, Marks::default().and(Mark::Local), locals);
            let (library, name) = (library.to_owned(), name.to_owned());
            let work = Work { name, library, ns, samples: 100, mix: Some(mix), ..Work::default() };
            Seen { user_ns: ns, work: vec![work], ..Seen::default() }
        };
        let fast = side("app-O2", "step", 5, 10.0);
        assert!(is_build(&fast, &side("app-O0", "step", 55, 50.0)));
        assert!(!is_build(&fast, &side("app-O2", "step", 15, 50.0)), "some variables");
        assert!(!is_build(&fast, &side("app-O0", "other", 55, 50.0)), "another function");
        assert!(!is_build(&side("app", "step", 50, 10.0), &side("app", "step", 55, 50.0)));
    }

    #[test]
    fn equal_or_stronger_options_and_other_sources_are_not() {
        let fast = side(&["-O2"], "w.c", 10.0);
        assert!(!is_build(&fast, &side(&["-O2"], "w.c", 50.0)));
        assert!(!is_build(&fast, &side(&["-O3"], "w.c", 50.0)));
        let slowed = side(&["-O2", "-fsanitize=address"], "w.c", 10.0);
        assert!(!is_build(&slowed, &side(&["-O2"], "w.c", 50.0)));
        let native = side(&["-O2", "-march=native"], "w.c", 50.0);
        assert!(!is_build(&fast, &native));
        assert!(!is_build(&fast, &side(&["-O0"], "other.c", 50.0)));
        let unknown = Seen { builds: vec![], ..side(&["-O0"], "w.c", 50.0) };
        assert!(!is_build(&fast, &unknown));
    }
}
