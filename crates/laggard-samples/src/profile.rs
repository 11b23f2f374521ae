//! Synthetic profiles. A stack is a line of text, outermost frame first, with frames separated by
//! `;`.
//!
//! `libx.so!f` is a native frame, `libx.so!f (f.c:12)` one with a source line, `libx.so!0x12` one
//! without a symbol, `inline libx.so!f` an inlined one. `f (app.py:3)` is a Python frame,
//! `[kernel]!f` a kernel frame, `-- text` a marker.

use laggard_core::model::NONE;
use laggard_core::model::profile::{
    About, Event, Frame, FrameKind, Interner, Module, Profile, Sample, Thread, Unit, state,
};

/// Nanoseconds per sample.
pub const PERIOD_NS: u64 = 1_000_000;

/// Builder of a profile.
pub struct Sketch {
    /// The profile so far.
    pub profile: Profile,
    interner: Interner,
    thread: u32,
    event: u32,
    clock_ns: u64,
}

impl Default for Sketch {
    fn default() -> Sketch {
        let mut profile = Profile::default();
        profile.events.push(Event { name: "task-clock".into(), unit: Unit::Nanos });
        profile.about = About {
            command: vec!["python3".into(), "app.py".into()],
            exit_code: Some(0),
            started_unix: 1_750_000_000.0,
            rate: 1e9 / PERIOD_NS as f64,
            method: "sigtrap".into(),
            tool: "laggard 0.1.0".into(),
            ..About::default()
        };
        let mut sketch =
            Sketch { profile, interner: Interner::default(), thread: 0, event: 0, clock_ns: 0 };
        sketch.thread(100, 100, "python3", "python3");
        sketch
    }
}

impl Sketch {
    /// Sets the thread of the following samples.
    pub fn thread(&mut self, pid: u32, tid: u32, process: &str, name: &str) -> &mut Sketch {
        let known = self.profile.threads.iter().position(|t| (t.pid, t.tid) == (pid, tid));
        self.thread = known.unwrap_or(self.profile.threads.len()) as u32;
        if known.is_none() {
            let (name, process) = (self.profile.texts.add(name), self.profile.texts.add(process));
            self.profile.threads.push(Thread { pid, tid, name, process, cpu_ns: 0 });
        }
        self
    }

    /// Sets the event of the following samples.
    pub fn event(&mut self, name: &str, unit: Unit) -> &mut Sketch {
        let known = self.profile.events.iter().position(|event| event.name == name);
        self.event = known.unwrap_or(self.profile.events.len()) as u32;
        if known.is_none() {
            self.profile.events.push(Event { name: name.into(), unit });
        }
        self
    }

    /// Sets the time of the next sample.
    pub fn at(&mut self, time_ns: u64) -> &mut Sketch {
        self.clock_ns = time_ns;
        self
    }

    /// Adds samples of a stack, one period apart.
    pub fn samples(&mut self, count: usize, stack: &str) -> &mut Sketch {
        let stack = self.stack(stack);
        for _ in 0..count {
            self.profile.samples.push(Sample {
                time_ns: self.clock_ns,
                thread: self.thread,
                stack,
                event: self.event,
                count: 1,
                weight: PERIOD_NS,
                state: if stack == NONE { state::CUT } else { 0 },
            });
            self.profile.threads[self.thread as usize].cpu_ns += PERIOD_NS;
            self.clock_ns += PERIOD_NS;
        }
        self
    }

    /// The profile, with samples sorted by time.
    pub fn done(&mut self) -> Profile {
        let mut profile = self.profile.clone();
        profile.samples.sort_by_key(|sample| sample.time_ns);
        let last = profile.samples.last().map_or(0, |sample| sample.time_ns + PERIOD_NS);
        profile.about.duration_ns = last;
        profile.about.user_ns = profile.threads.iter().map(|thread| thread.cpu_ns).sum();
        profile
    }

    fn stack(&mut self, text: &str) -> u32 {
        let frames: Vec<u32> =
            text.split(';').filter(|f| !f.is_empty()).map(|frame| self.frame(frame)).collect();
        self.interner.stack(&mut self.profile, frames.into_iter())
    }

    /// Adds a frame and returns its number.
    pub(crate) fn frame(&mut self, text: &str) -> u32 {
        let texts = &mut self.profile.texts;
        let (rest, kind) = match text.strip_prefix("inline ") {
            Some(rest) => (rest, FrameKind::Inlined),
            None => (text, FrameKind::Native),
        };
        let place = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
        let place = place.and_then(|(f, at)| Some((f, at.rsplit_once(':')?)));
        let (rest, file, line) = match place {
            Some((rest, (file, line))) => (rest, texts.add(file), line.parse().unwrap_or(0)),
            None => (rest, 0, 0),
        };
        let mut frame = Frame { kind, module: NONE, address: 0, function: 0, file, line };
        if let Some(mark) = rest.strip_prefix("-- ") {
            frame.kind = FrameKind::Mark;
            frame.function = texts.add(mark);
        } else if let Some((library, function)) = rest.split_once('!') {
            if library == "[kernel]" {
                frame.kind = FrameKind::Kernel;
            }
            match function.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16)) {
                Some(Ok(address)) => frame.address = address,
                _ => {
                    frame.address = 0x1000 + function.len() as u64;
                    frame.function = texts.add(function);
                }
            }
            let path = match library {
                "[kernel]" => texts.add(library),
                _ => texts.add(&format!("/usr/lib/{library}")),
            };
            frame.module = self.interner.module(&mut self.profile, Module { path, id: 0 });
        } else {
            frame.kind = FrameKind::Python;
            frame.function = texts.add(rest);
        }
        self.interner.frame(&mut self.profile, frame)
    }
}

/// A program that imports NumPy and multiplies matrices, with two OpenBLAS worker threads.
pub fn matrix_product() -> Profile {
    const START: &str = "python3.12!_start;libc.so.6!__libc_start_main;python3.12!Py_RunMain";
    const BLAS: &str = "libopenblas64_p.so";
    let mut sketch = Sketch::default();
    let module =
        format!("{START};<module> (app.py:1);_find_and_load (<frozen importlib._bootstrap>:1349)");
    sketch.samples(6, &format!("{module};python3.12!PyEval_EvalCode"));
    sketch.samples(2, &format!("{module};ld-linux-x86-64.so.2!dl_open_worker;{BLAS}!gotoblas_init;{BLAS}!blas_thread_init;libc.so.6!clone3"));
    let main = format!("{START};<module> (app.py:12);main (app.py:9)");
    sketch.samples(
        3,
        &format!(
            "{main};make (app.py:4);_generator.so!random_standard_uniform (distributions.c:27)"
        ),
    );
    let dot = format!(
        "{main};product (app.py:7);_multiarray_umath.so!cblas_matrixproduct;{BLAS}!cblas_dgemm64_;{BLAS}!dgemm_thread_nn"
    );
    let start = sketch.clock_ns;
    sketch.samples(
        4,
        &format!("{dot};{BLAS}!exec_blas;{BLAS}!inner_thread;{BLAS}!dgemm_oncopy_HASWELL"),
    );
    sketch.samples(
        20,
        &format!("{dot};{BLAS}!exec_blas;{BLAS}!inner_thread;{BLAS}!dgemm_kernel_HASWELL"),
    );
    sketch.samples(2, &format!("{main};product (app.py:7);_multiarray_umath.so!0x1f00;libc.so.6!__memmove_avx_unaligned_erms"));
    sketch.samples(
        1,
        &format!("{main};shown <b>&\"it's\"\u{1b}[31m (app.py:8);python3.12!PyObject_Str"),
    );
    sketch.samples(1, "");
    for worker in 0..2 {
        sketch.thread(100, 101 + worker, "python3", "python3").at(start + 100_000);
        let server = format!(
            "libc.so.6!clone3;libc.so.6!start_thread;{BLAS}!blas_thread_server;{BLAS}!inner_thread"
        );
        sketch.samples(3, &format!("{server};{BLAS}!dgemm_oncopy_HASWELL"));
        sketch.samples(19, &format!("{server};{BLAS}!dgemm_kernel_HASWELL"));
    }
    let mut profile = sketch.done();
    profile.about.system_ns = 2_000_000;
    profile.about.facts = vec![("processor".into(), "made up".into())];
    profile.quality.with_python = 39;
    profile.quality.late = 1;
    let ended = (profile.texts.add("libc.so.6"), 1, profile.texts.add("no unwind table"));
    profile.quality.cut = vec![ended];
    profile
}

/// The same product with an older kernel in another build of the library, a preceding copy and a
/// hostile name. The kernel has `more` additional samples.
pub fn older_kernel(more: usize) -> Profile {
    const BLAS: &str = "libopenblas.so.0";
    let mut sketch = Sketch::default();
    let main = "python3.13!_start;<module> (app.py:12);main (app.py:9)";
    let dot = format!("{main};product (app.py:7);_multiarray_umath.so!cblas_matrixproduct");
    sketch.samples(40, &format!("{dot};libc.so.6!__memmove_avx_unaligned_erms"));
    sketch.samples(
        90 + more,
        &format!("{dot};{BLAS}!cblas_dgemm64_;{BLAS}!dgemm_thread_nn;{BLAS}!dgemm_kernel_NEHALEM"),
    );
    sketch.samples(
        5,
        &format!("{main};hostile|`<b>`\u{1b}[2J\u{202e} (app.py:30);python3.13!PyObject_Str"),
    );
    sketch.done()
}
