//! A simulated machine: a host clock, device streams, and the events on them.
//!
//! [`Machine`] runs operators, Python functions and kernels in simulated time. Calls take closures, so that
//! spans are properly nested and a launch lies inside its operator.

use super::kernels::{Kernel, Work};
use super::ops::Op;
use super::{Gpu, Recipe, Steady, Variant};
use crate::Rng;

/// A recorded event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) what: What,
    pub(super) start: i64,
    pub(super) dur: i64,
    /// The host thread; not used for device operations.
    pub(super) thread: Thread,
    /// External ID of the enclosing operator or annotation.
    pub(super) external: i64,
    /// Sequence number of host events.
    pub(super) index: i64,
}

#[derive(Debug)]
pub(super) enum What {
    Op { op: Op, sequence: i64 },
    Annotation(Label),
    Python { name: Label, id: i64, parent: i64, module: Option<i64> },
    Memory { bytes: i64, allocated: i64, address: i64 },
    Call { call: Call, correlation: i64 },
    Kernel { kernel: &'static Kernel, stream: i64, correlation: i64, collective: bool },
    Copy { bytes: i64, stream: i64, correlation: i64 },
    Fill { bytes: i64, stream: i64, correlation: i64 },
    DeviceAnnotation(Label),
}

/// A runtime call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Launch(&'static Kernel),
    GraphLaunch,
    Copy { bytes: i64 },
    Fill,
    IsCapturing,
    Synchronize,
    WaitEvent,
}

impl Call {
    /// Whether it launches a device operation.
    pub(super) fn launches(self) -> bool {
        !matches!(self, Call::IsCapturing | Call::Synchronize | Call::WaitEvent)
    }
}

/// Host threads of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    Main,
    Autograd,
}

/// A name, which may contain a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Label {
    Fixed(&'static str),
    /// `nn.Module: Block_3`
    Module(&'static str, u32),
    /// `ProfilerStep#12`
    Step(u64),
    /// A phase of inference with a name as in vLLM.
    Phase {
        prefill: bool,
        tokens: u64,
    },
}

pub(super) struct Machine {
    pub(super) rng: Rng,
    pub(super) gpu: Gpu,
    pub(super) variant: Variant,
    pub(super) now: i64,
    pub(super) events: Vec<Event>,
    noise: Option<Noise>,
    python: bool,
    thread: Thread,
    compute_free: i64,
    comm_free: i64,
    correlation: i64,
    externals: i64,
    enclosing: i64,
    index: i64,
    python_id: i64,
    python_parent: i64,
    sequence: i64,
    allocated: i64,
}

/// Noise in the durations of device operations.
struct Noise {
    share: f64,
    rng: Rng,
}

/// Start of the first step, after the base time.
const START: i64 = 1_184_213_000_000_000;
/// IDs of the outermost Python functions, which are written last.
pub(super) const ROOT_PYTHON_IDS: i64 = 2;

impl Machine {
    pub(super) fn new(recipe: &Recipe) -> Machine {
        let mut rng = Rng::new(recipe.run() ^ (u64::from(recipe.rank) << 32));
        let now = START + rng.between(0, 999_999_999);
        Machine {
            rng,
            gpu: recipe.gpu,
            variant: recipe.steady.map_or(Variant::Plain, |steady| steady.variant),
            now,
            events: Vec::new(),
            noise: recipe.steady.map(|Steady { noise, noise_seed, .. }| Noise {
                share: noise,
                rng: Rng::new(noise_seed),
            }),
            python: recipe.python,
            thread: Thread::Main,
            compute_free: now,
            comm_free: now,
            correlation: 4_000,
            externals: 0,
            enclosing: 0,
            index: 0,
            python_id: ROOT_PYTHON_IDS,
            python_parent: ROOT_PYTHON_IDS,
            sequence: 1_000,
            allocated: 8_589_934_592,
        }
    }

    /// Clears the events of the last step. The host times of a steady job depend only on the step number,
    /// not on earlier steps.
    pub(super) fn begin_step(&mut self, recipe: &Recipe, number: u64) {
        self.events.clear();
        if recipe.steady.is_some() {
            self.rng = Rng::new(recipe.seed.wrapping_add(number << 32));
        }
    }

    pub(super) fn compute_stream(&self) -> i64 {
        match self.gpu {
            Gpu::Nvidia => 7,
            Gpu::Amd => 0,
        }
    }

    pub(super) fn comm_stream(&self) -> i64 {
        match self.gpu {
            Gpu::Nvidia => 22,
            Gpu::Amd => 3,
        }
    }

    /// Runs an operator around `body`.
    pub(super) fn op(&mut self, op: Op, body: impl FnOnce(&mut Machine)) {
        self.sequence += 1;
        self.numbered(What::Op { op, sequence: self.sequence }, 1_300, body);
    }

    /// Runs an operator without nested calls.
    pub(super) fn small_op(&mut self, op: Op) {
        self.op(op, |m| m.spend(1_100));
    }

    /// Runs `body` in an annotation.
    pub(super) fn annotate(&mut self, label: Label, body: impl FnOnce(&mut Machine)) {
        self.numbered(What::Annotation(label), 900, body);
    }

    /// Runs `body` in a Python function.
    pub(super) fn python(&mut self, name: &'static str, body: impl FnOnce(&mut Machine)) {
        self.python_call(Label::Fixed(name), None, body);
    }

    /// Runs `body` in a module call, with PyTorch's frames around `forward`.
    pub(super) fn module(
        &mut self,
        class: &'static str,
        number: u32,
        forward: &'static str,
        body: impl FnOnce(&mut Machine),
    ) {
        self.python("torch/nn/modules/module.py(1915): __getattr__", |m| m.spend(600));
        self.python_call(Label::Module(class, number), Some(i64::from(number)), |m| {
            m.python("torch/nn/modules/module.py(1735): _wrapped_call_impl", |m| {
                m.python("<built-in method _get_tracing_state of PyCapsule object>", |m| {
                    m.spend(400);
                });
                m.python("torch/nn/modules/module.py(1747): _call_impl", |m| {
                    m.python(forward, body);
                });
            });
        });
    }

    /// Launches the kernels of `work` on the compute stream.
    pub(super) fn run(&mut self, work: Work) {
        let work = self.variant.instead_of(work);
        for kernel in work.kernels(self.gpu) {
            let correlation = self.call(Call::Launch(kernel), 4_800);
            self.queue_kernel(work, kernel, correlation, false);
        }
    }

    /// Launches a collective on the communication stream.
    pub(super) fn communicate(&mut self) {
        for kernel in Work::AllReduce.kernels(self.gpu) {
            self.call(Call::IsCapturing, 700);
            let correlation = self.call(Call::Launch(kernel), 9_200);
            self.queue_kernel(Work::AllReduce, kernel, correlation, true);
        }
        if self.variant == Variant::CommunicationAlone {
            self.wait_for_communication();
        }
    }

    /// Makes the compute stream wait for all launched collectives.
    pub(super) fn wait_for_communication(&mut self) {
        self.call(Call::WaitEvent, 1_200);
        self.compute_free = self.compute_free.max(self.comm_free);
    }

    /// Launches a graph that runs all of `work`.
    pub(super) fn run_graph(&mut self, work: &[Work], times: u32) {
        let (gpu, correlation) = (self.gpu, self.call(Call::GraphLaunch, 61_000));
        for _ in 0..times {
            for &work in work {
                for kernel in work.kernels(gpu) {
                    self.queue_kernel(work, kernel, correlation, false);
                }
            }
        }
    }

    pub(super) fn copy(&mut self, bytes: i64) {
        let correlation = self.call(Call::Copy { bytes }, 6_400);
        let stream = self.compute_stream();
        self.queue(What::Copy { bytes, stream, correlation }, 1_500 + bytes / 24, false);
    }

    pub(super) fn fill(&mut self, bytes: i64) {
        let correlation = self.call(Call::Fill, 4_100);
        let stream = self.compute_stream();
        self.queue(What::Fill { bytes, stream, correlation }, 1_200 + bytes / 900, false);
    }

    /// Allocates device memory, or frees it when `bytes` is negative.
    pub(super) fn allocate(&mut self, bytes: i64) {
        self.allocated += bytes;
        let address = 0x7f30_0000_0000 + self.rng.between(0, 1 << 20) * 512;
        let what = What::Memory { bytes, allocated: self.allocated, address };
        let index = self.next_index();
        self.events.push(Event {
            what,
            start: self.now,
            dur: 0,
            thread: self.thread,
            external: 0,
            index,
        });
        self.spend(250);
    }

    /// Waits for the device.
    pub(super) fn synchronize(&mut self) {
        let wait = (self.compute_free.max(self.comm_free) - self.now).max(0);
        self.call(Call::Synchronize, 5_000);
        let done = self.now + wait;
        if let Some(event) = self.events.last_mut() {
            event.dur += wait;
        }
        self.now = done;
    }

    /// Runs `body` on another thread while this one waits.
    pub(super) fn on_thread(&mut self, thread: Thread, body: impl FnOnce(&mut Machine)) {
        self.spend(8_000);
        let caller = std::mem::replace(&mut self.thread, thread);
        body(self);
        self.thread = caller;
        self.spend(5_000);
    }

    /// Adds the device annotation of the last host annotation.
    pub(super) fn annotate_device(&mut self, label: Label, external: i64) {
        let spans = || {
            self.events
                .iter()
                .filter(|event| {
                    matches!(
                        event.what,
                        What::Kernel { collective: false, .. }
                            | What::Copy { .. }
                            | What::Fill { .. }
                    )
                })
                .map(|event| (event.start, event.start + event.dur))
        };
        let (Some(start), Some(end)) =
            (spans().map(|span| span.0).min(), spans().map(|span| span.1).max())
        else {
            return;
        };
        self.events.push(Event {
            what: What::DeviceAnnotation(label),
            start,
            dur: end - start,
            thread: Thread::Main,
            external,
            index: 0,
        });
    }

    /// Advances the host clock.
    pub(super) fn spend(&mut self, nanos: i64) {
        self.now += self.rng.jitter(nanos);
    }

    fn numbered(&mut self, what: What, overhead: i64, body: impl FnOnce(&mut Machine)) {
        self.externals += 1;
        let outer = std::mem::replace(&mut self.enclosing, self.externals);
        self.span(what, self.externals, overhead, body);
        self.enclosing = outer;
    }

    fn python_call(&mut self, name: Label, module: Option<i64>, body: impl FnOnce(&mut Machine)) {
        if !self.python {
            return body(self);
        }
        self.python_id += 1;
        let (id, parent) = (self.python_id, self.python_parent);
        self.python_parent = id;
        self.span(What::Python { name, id, parent, module }, 0, 800, body);
        self.python_parent = parent;
    }

    fn span(&mut self, what: What, external: i64, overhead: i64, body: impl FnOnce(&mut Machine)) {
        let (place, start, index) = (self.events.len(), self.now, self.next_index());
        self.events.push(Event { what, start, dur: 0, thread: self.thread, external, index });
        self.spend(overhead);
        body(self);
        self.spend(overhead);
        self.events[place].dur = self.now - start;
    }

    fn call(&mut self, call: Call, nanos: i64) -> i64 {
        self.correlation += 1;
        if call.launches() {
            self.now += self.variant.before_launch_ns();
        }
        let start = self.now;
        self.spend(nanos);
        let what = What::Call { call, correlation: self.correlation };
        self.events.push(Event {
            what,
            start,
            dur: self.now - start,
            thread: self.thread,
            external: self.enclosing,
            index: 0,
        });
        self.spend(400);
        self.correlation
    }

    fn queue_kernel(
        &mut self,
        work: Work,
        kernel: &'static Kernel,
        correlation: i64,
        collective: bool,
    ) {
        let stream = if collective { self.comm_stream() } else { self.compute_stream() };
        self.queue(
            What::Kernel { kernel, stream, correlation, collective },
            self.variant.nanos(work, kernel),
            collective,
        );
    }

    fn queue(&mut self, what: What, nanos: i64, on_comm: bool) {
        let dur = match &mut self.noise {
            Some(Noise { share, rng }) => {
                (nanos as f64 * (1.0 + *share * rng.normal())).round() as i64
            }
            None => self.rng.jitter(nanos),
        };
        let dur = dur.max(1);
        let ready = self.now + self.rng.between(1_800, 3_200);
        let gap = self.rng.between(600, 1_400);
        // A collective waits for its input.
        let busy_until =
            if on_comm { self.comm_free.max(self.compute_free) } else { self.compute_free };
        let start = ready.max(busy_until + gap);
        *(if on_comm { &mut self.comm_free } else { &mut self.compute_free }) = start + dur;
        self.events.push(Event {
            what,
            start,
            dur,
            thread: Thread::Main,
            external: self.enclosing,
            index: 0,
        });
    }

    fn next_index(&mut self) -> i64 {
        self.index += 1;
        self.index - 1
    }
}
