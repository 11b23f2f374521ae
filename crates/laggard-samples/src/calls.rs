//! Synthetic call traces. Functions and call sites are written as text, as in [`crate::profile`].

use crate::profile::Sketch;
use laggard_core::model::calls::{
    ArgumentRow, CallQuality, CallRow, Calls, Function, InstructionRow,
};
use laggard_core::model::profile::{Event, Unit};

/// Builder of a call trace. Functions are `libx.so!f`, call sites `libx.so!g (g.c:12)`.
#[derive(Default)]
pub struct CallSketch {
    sketch: Sketch,
    calls: Calls,
    thread: u32,
}

impl CallSketch {
    /// Sets the thread of the following calls.
    pub fn thread(&mut self, pid: u32, tid: u32, process: &str, name: &str) -> &mut CallSketch {
        self.sketch.thread(pid, tid, process, name);
        let threads = &self.sketch.profile.threads;
        let found = threads.iter().position(|t| (t.pid, t.tid) == (pid, tid));
        self.thread = found.unwrap_or(0) as u32;
        self
    }

    /// Adds calls of a function from a call site, given as counts by duration. `own` is the share of
    /// self time.
    pub fn calls(
        &mut self,
        place: &str,
        function: &str,
        durations: &[(u64, u64)],
        own: f64,
    ) -> &mut CallSketch {
        let caller = self.sketch.frame(place);
        let function = self.function(function);
        let total_ns = durations.iter().map(|(ns, count)| ns * count).sum();
        self.calls.rows.push(CallRow {
            function,
            caller,
            thread: self.thread,
            count: durations.iter().map(|(_, count)| count).sum(),
            unfinished: 0,
            total_ns,
            self_ns: (total_ns as f64 * own) as u64,
            min_ns: durations.iter().map(|(ns, _)| *ns).min().unwrap_or(0),
            max_ns: durations.iter().map(|(ns, _)| *ns).max().unwrap_or(0),
            histogram: durations.iter().map(|&(ns, count)| (class(ns), count)).collect(),
            instructions: None,
        });
        self
    }

    /// Adds calls without times, with optional instruction counts.
    pub fn counted(
        &mut self,
        place: &str,
        function: &str,
        count: u64,
        instructions: Option<u64>,
    ) -> &mut CallSketch {
        let (caller, function) = (self.sketch.frame(place), self.function(function));
        let thread = self.thread;
        let row = CallRow { function, caller, thread, count, instructions, ..CallRow::default() };
        self.calls.rows.push(row);
        self
    }

    /// Adds self instructions of a function.
    pub fn own(&mut self, function: &str, own: u64) -> &mut CallSketch {
        let function = self.function(function);
        self.calls.instructions.push(InstructionRow { function, own });
        self
    }

    /// Adds recorded stacks, each of which ends with the called function and represents `weight`
    /// calls.
    pub fn stacks(
        &mut self,
        stacks: usize,
        weight: u64,
        stack: &str,
        function: &str,
    ) -> &mut CallSketch {
        let event = self.function(function);
        self.sketch.samples(stacks, stack);
        for sample in self.sketch.profile.samples.iter_mut().rev().take(stacks) {
            (sample.event, sample.weight) = (event, weight);
        }
        self
    }

    /// Sets the number of calls of the last row that did not return.
    pub fn unfinished(&mut self, count: u64) -> &mut CallSketch {
        if let Some(row) = self.calls.rows.last_mut() {
            row.count += count;
            row.unfinished += count;
        }
        self
    }

    /// Adds argument values of a function.
    pub fn arguments(
        &mut self,
        function: &str,
        values: &[i64],
        count: u64,
        total_ns: u64,
    ) -> &mut CallSketch {
        let function = self.function(function);
        self.calls.arguments.push(ArgumentRow {
            function,
            values: values.to_vec(),
            count,
            total_ns,
        });
        self
    }

    /// The call trace.
    pub fn done(&mut self) -> Calls {
        let mut calls = self.calls.clone();
        calls.profile = self.sketch.profile.clone();
        let name = |function: &Function| Event {
            name: self.sketch.profile.texts.get(function.name).to_owned(),
            unit: Unit::Count,
        };
        let has_stacks = !calls.profile.samples.is_empty();
        let functions = calls.functions.iter().filter(|_| has_stacks);
        calls.profile.events = functions.map(name).collect();
        calls.profile.about.rate = 0.0;
        calls.profile.about.method = "agent, stubs between libraries".into();
        calls.profile.about.duration_ns = 2_000_000_000;
        calls.profile.about.user_ns = 1_900_000_000;
        calls.profile.about.system_ns = 50_000_000;
        calls.quality.cost_ns = 30.0;
        calls
    }

    fn function(&mut self, text: &str) -> u32 {
        let frame = self.sketch.frame(text);
        let frame = self.sketch.profile.frames[frame as usize];
        let function = Function { name: frame.function, module: frame.module };
        let known = self.calls.functions.iter().position(|other| *other == function);
        known.unwrap_or_else(|| {
            self.calls.functions.push(function);
            self.calls.functions.len() - 1
        }) as u32
    }
}

/// Lower bound of a histogram bin, which is an eighth of an octave.
fn class(ns: u64) -> u64 {
    let octave = ns.max(8).ilog2();
    let width = 1 << (octave - 3);
    ns / width * width
}

const MATRIX: &str = "_multiarray_umath.so!cblas_matrixproduct (cblasfuncs.c:412)";
const BLAS: &str = "libopenblas64_p.so";

/// A program that multiplies matrices with OpenBLAS, with the matrix sizes as arguments.
pub fn products() -> Calls {
    let mut sketch = CallSketch::default();
    let gemm = format!("{BLAS}!cblas_dgemm64_");
    sketch.calls(MATRIX, &gemm, &[(700_000, 90), (750_000, 9), (9_000_000, 1)], 0.75);
    sketch.calls(
        "_multiarray_umath.so!0x1f00",
        &format!("{BLAS}!cblas_ddot64_"),
        &[(120, 900), (135, 90), (4_000, 10)],
        1.0,
    );
    sketch.calls(
        &format!("{BLAS}!exec_blas (blas_server.c:77)"),
        "libgomp.so.1!GOMP_parallel",
        &[(175_000, 100)],
        1.0,
    );
    sketch.thread(100, 101, "python3", "worker <b>\u{1b}[31m");
    sketch.calls(MATRIX, &gemm, &[(400_000, 20)], 1.0).unfinished(1);
    sketch.arguments(&gemm, &[102, 111, 111, 500, 500, 500], 100, 79_000_000);
    sketch.arguments(&gemm, &[102, 111, 112, 300, 300, 0x7f12_3456_7890], 20, 8_000_000);
    let mut calls = sketch.done();
    calls.quality = CallQuality {
        too_deep: 2,
        table_full: 0,
        not_wrapped: vec![
            ("dlopen".into(), "its result depends on its caller".into()),
            ("exit".into(), "it does not return".into()),
        ],
        cost_ns: 30.0,
    };
    calls
}

/// The same program with another BLAS and one more called function.
pub fn products_elsewhere() -> Calls {
    let mut sketch = CallSketch::default();
    sketch.calls(MATRIX, "libblas.so.3!cblas_dgemm64_", &[(2_800_000, 120)], 1.0);
    sketch.calls(
        "_multiarray_umath.so!0x1f00",
        &format!("{BLAS}!cblas_ddot64_"),
        &[(128, 990), (260, 1010)],
        1.0,
    );
    sketch.calls(MATRIX, "libblas.so.3!xerbla_", &[(90, 3)], 1.0);
    sketch.done()
}

/// Calls inside a library, counted on a simulated CPU: instructions but no times. The kernel takes
/// more instructions for larger `work`.
pub fn inside(work: u64) -> Calls {
    let [gemm, kernel, copy] =
        ["cblas_dgemm", "dgemm_kernel", "dgemm_copy"].map(|name| format!("libblas.so.3!{name}"));
    let inner = format!("{gemm} (interface/gemm.c:5)");
    let mut sketch = CallSketch::default();
    sketch.counted("app!main (app.c:9)", &gemm, 100, Some(60_500 + 100 * work));
    sketch.counted("app!check (app.c:3)", &gemm, 20, Some(12_100 + 20 * work));
    sketch.counted(&inner, &kernel, 120, Some(120 * work));
    sketch.counted(&inner, &copy, 240, Some(48_600));
    sketch.own(&gemm, 24_000).own(&kernel, 120 * work).own(&copy, 48_600);
    weightless(sketch.done(), "callgrind")
}

/// The same with only the number of calls.
pub fn counts() -> Calls {
    let mut calls = inside(10_000);
    calls.instructions.clear();
    calls.rows.iter_mut().for_each(|row| row.instructions = None);
    weightless(calls, "uprobes")
}

fn weightless(mut calls: Calls, method: &str) -> Calls {
    calls.profile.about.method = method.into();
    calls.quality.cost_ns = 0.0;
    calls
}

/// A Python program that multiplies matrices on two lines, with stacks of some calls.
pub fn products_from_python() -> Calls {
    let mut sketch = CallSketch::default();
    let (gemm, dot) = (format!("{BLAS}!cblas_dgemm64_"), format!("{BLAS}!cblas_ddot64_"));
    sketch.calls(MATRIX, &gemm, &[(700_000, 1000)], 1.0);
    sketch.calls("_multiarray_umath.so!DOUBLE_dot", &dot, &[(120, 90)], 1.0);
    sketch.calls(
        "_multiarray_umath.so!FLOAT_dot",
        &format!("{BLAS}!cblas_sdot64_"),
        &[(90, 1)],
        1.0,
    );
    let start = "python3!_start;python3!_PyEval_EvalFrameDefault;<module> (/home/me/app.py:30)";
    let glue = "python3!_PyEval_EvalFrameDefault;python3!_PyObject_MakeTpCall";
    let forward = format!("{start};{glue};forward (/home/me/app.py:12);{MATRIX};{gemm}");
    let backward = format!("{start};{glue};backward (/home/me/app.py:21);{MATRIX};{gemm}");
    sketch.stacks(3, 100, &forward, &gemm).stacks(1, 100, &backward, &gemm);
    let worker = format!("libpthread.so!start_thread;libwork.so!work;{gemm}");
    sketch.stacks(1, 100, &worker, &gemm);
    // The mapped file may have another name than the library that was linked.
    let mapped = "libopenblas64_p-r0.3.so!cblas_ddot64_";
    let dots = format!("{start};_multiarray_umath.so!DOUBLE_dot;{mapped}");
    sketch.stacks(2, 100, &dots, &dot);
    sketch.done()
}
