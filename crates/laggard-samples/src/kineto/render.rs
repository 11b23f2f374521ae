//! Writes the events of the simulated machine in Kineto's format.

use super::kernels::Kernel;
use super::machine::{Call, Event, Label, Thread, What};
use super::ops::Op;
use super::{Gpu, Recipe, Totals};
use crate::json::Json;
use crate::pen::Pen;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Process and thread numbers of the host side.
const PID: i64 = 4021;
const AUTOGRAD_TID: i64 = 4177;
/// Prefix of kernel names of torch.compile.
const TRITON: &str = "triton_";

pub(super) struct Renderer<'a, W: Write> {
    pub(super) pen: Pen<W>,
    pub(super) totals: Totals,
    recipe: &'a Recipe,
    device: i64,
    inputs: Vec<OpInputs>,
    ranks: String,
    name: String,
}

/// The inputs of an operator, formatted in the layout of the trace.
struct OpInputs {
    name: &'static str,
    has_inputs: bool,
    concrete: String,
    types: String,
    strides: String,
    dims: String,
}

impl<'a, W: Write> Renderer<'a, W> {
    pub(super) fn new(pen: Pen<W>, recipe: &'a Recipe) -> Renderer<'a, W> {
        let ranks: Vec<String> = (0..recipe.ranks).map(|rank| rank.to_string()).collect();
        Renderer {
            pen,
            totals: Totals::default(),
            recipe,
            device: i64::from(recipe.rank % 8),
            inputs: Op::all().into_iter().map(|op| inputs(op, recipe)).collect(),
            ranks: format!("[{}]", ranks.join(", ")),
            name: String::new(),
        }
    }

    /// Writes the events of a step in Kineto's order: operators, Python functions, then device events.
    pub(super) fn step(&mut self, events: &[Event]) -> io::Result<()> {
        for wanted in [Group::Operators, Group::Python, Group::Device] {
            for event in events.iter().filter(|event| group(event) == wanted) {
                self.event(event)?;
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.what {
            What::Op { op, sequence } => self.op(event, *op, *sequence),
            What::Annotation(label) => self.annotation(event, *label),
            What::Python { name, id, parent, module } => {
                self.python(event, *name, [*id, *parent], *module)
            }
            What::Memory { bytes, allocated, address } => {
                self.memory(event, [*bytes, *allocated, *address])
            }
            What::Call { call, correlation } => self.call(event, *call, *correlation),
            What::Kernel { kernel, stream, correlation, collective } => {
                self.kernel(event, kernel, *stream, *correlation, *collective)
            }
            What::Copy { bytes, stream, correlation } => {
                self.totals.copies += 1;
                self.transfer(
                    event,
                    "gpu_memcpy",
                    ["Memcpy HtoD (Pinned -> Device)", "HtoD"],
                    *bytes,
                    *stream,
                    *correlation,
                )
            }
            What::Fill { bytes, stream, correlation } => {
                self.totals.fills += 1;
                self.transfer(
                    event,
                    "gpu_memset",
                    ["Memset (Device)", "Device"],
                    *bytes,
                    *stream,
                    *correlation,
                )
            }
            What::DeviceAnnotation(label) => self.device_annotation(event, *label),
        }
    }

    fn op(&mut self, event: &Event, op: Op, sequence: i64) -> io::Result<()> {
        self.totals.ops += 1;
        self.begin("cpu_op", self.inputs[op as usize].name, event)?;
        let inputs = &self.inputs[op as usize];
        let pen = &mut self.pen;
        pen.int("External id", event.external).gap(0).int("Record function id", 0);
        if op == Op::Communicate {
            collective(pen, self.recipe.ranks, &self.ranks);
        }
        if event.thread == Thread::Autograd {
            pen.int("Sequence number", sequence).int("Fwd thread id", 1);
        }
        if inputs.has_inputs {
            pen.ready("Concrete Inputs", &inputs.concrete).ready("Input type", &inputs.types);
            pen.ready("Input Strides", &inputs.strides).ready("Input Dims", &inputs.dims);
        }
        pen.int("Ev Idx", event.index).end_args();
        Ok(())
    }

    fn annotation(&mut self, event: &Event, label: Label) -> io::Result<()> {
        self.totals.annotations += 1;
        self.begin_labelled("user_annotation", label, event)?;
        self.pen
            .int("External id", event.external)
            .gap(0)
            .int("Record function id", 0)
            .int("Ev Idx", event.index)
            .end_args();
        Ok(())
    }

    fn python(
        &mut self,
        event: &Event,
        label: Label,
        [id, parent]: [i64; 2],
        module: Option<i64>,
    ) -> io::Result<()> {
        self.totals.python += 1;
        self.begin_labelled("python_function", label, event)?;
        match parent {
            0 => self.pen.ready("Python parent id", "null"),
            parent => self.pen.int("Python parent id", parent),
        };
        self.pen.int("Python id", id);
        if let Some(module) = module {
            self.pen.int("Python module id", module);
        }
        self.pen.int("Ev Idx", event.index).end_args();
        Ok(())
    }

    fn memory(&mut self, event: &Event, [bytes, allocated, address]: [i64; 3]) -> io::Result<()> {
        self.totals.instants += 1;
        let tid = tid(event.thread);
        self.pen.event()?;
        let pen = &mut self.pen;
        pen.str("ph", "i").str("cat", "cpu_instant_event").str("s", "t").str("name", "[memory]");
        pen.line().int("pid", PID).int("tid", tid).line().micros("ts", event.start).args();
        pen.int("Total Reserved", 25_769_803_776)
            .int("Total Allocated", allocated)
            .int("Bytes", bytes)
            .int("Addr", address);
        pen.int("Device Id", self.device)
            .int("Device Type", 1)
            .int("Ev Idx", event.index)
            .end_args();
        Ok(())
    }

    fn call(&mut self, event: &Event, call: Call, correlation: i64) -> io::Result<()> {
        self.totals.runtime += 1;
        let amd = self.recipe.gpu == Gpu::Amd;
        let (nvidia_name, nvidia_id, amd_name, amd_id) = match call {
            Call::Launch(kernel) if kernel.name.starts_with("Cijk_") => {
                ("", 0, "hipExtModuleLaunchKernel", 70)
            }
            Call::Launch(kernel) if kernel.name.starts_with("nvjet_") => {
                ("cudaLaunchKernelExC", 430, "", 0)
            }
            Call::Launch(kernel) if kernel.name.starts_with(TRITON) => {
                ("cuLaunchKernel", 307, "hipModuleLaunchKernel", 169)
            }
            Call::Launch(_) => ("cudaLaunchKernel", 211, "hipLaunchKernel", 107),
            Call::GraphLaunch => ("cudaGraphLaunch", 311, "hipGraphLaunch", 424),
            Call::Copy { .. } => ("cudaMemcpyAsync", 41, "hipMemcpyAsync", 134),
            Call::Fill => ("cudaMemsetAsync", 51, "hipMemsetAsync", 159),
            Call::IsCapturing => ("cudaStreamIsCapturing", 317, "hipStreamIsCapturing", 290),
            Call::Synchronize => ("cudaDeviceSynchronize", 165, "hipDeviceSynchronize", 48),
            Call::WaitEvent => ("cudaStreamWaitEvent", 147, "hipStreamWaitEvent", 200),
        };
        // Triton launches through the driver API. HIP does not distinguish driver and runtime.
        let by_driver = matches!(call, Call::Launch(kernel) if kernel.name.starts_with(TRITON));
        let cat = if by_driver && !amd { "cuda_driver" } else { "cuda_runtime" };
        self.begin(cat, if amd { amd_name } else { nvidia_name }, event)?;
        let pen = &mut self.pen;
        pen.int("External id", event.external);
        if amd {
            if let Call::Launch(kernel) = call {
                pen.gap(10)
                    .str("kernel", kernel.name)
                    .int("cid", amd_id)
                    .int("correlation", correlation);
                pen.gap(6)
                    .list("grid", &kernel.grid)
                    .gap(6)
                    .list("block", &kernel.block)
                    .gap(6)
                    .int("shared memory", i64::from(kernel.shared));
            } else {
                pen.gap(6).int("cid", amd_id).int("correlation", correlation);
            }
            if let Call::Copy { bytes } = call {
                pen.str("src", "0x7f0e4a7e8000")
                    .str("dst", "0x7f0e79800400")
                    .ready("bytes", &format!("\"{bytes}\""))
                    .str("kind", "1");
            }
        } else {
            pen.gap(6).int("cbid", nvidia_id).int("correlation", correlation);
        }
        pen.end_args();
        self.flow(
            event,
            if call.launches() { "s" } else { "f" },
            correlation,
            [PID, tid(event.thread)],
        )
    }

    fn kernel(
        &mut self,
        event: &Event,
        kernel: &Kernel,
        stream: i64,
        correlation: i64,
        is_collective: bool,
    ) -> io::Result<()> {
        self.totals.kernels += 1;
        self.totals.kernel_ns += event.dur as u64;
        self.begin_on_device("kernel", kernel.name, event, stream)?;
        let (device, ranks) = (self.device, self.recipe.ranks);
        let pen = &mut self.pen;
        match self.recipe.gpu {
            Gpu::Amd => {
                pen.gap(6)
                    .int("device", device)
                    .int("stream", stream)
                    .gap(6)
                    .int("correlation", correlation);
                pen.str("kind", "Dispatch Kernel");
            }
            Gpu::Nvidia => {
                let sms = u64::from(self.recipe.gpu.units());
                let blocks: u64 = kernel.grid.iter().map(|n| u64::from(*n)).product();
                let warps =
                    kernel.block.iter().map(|n| u64::from(*n)).product::<u64>().div_ceil(32);
                pen.int("External id", event.external)
                    .gap(6)
                    .int("queued", 0)
                    .int("device", device)
                    .int("context", 1);
                pen.gap(6).int("stream", stream).int("correlation", correlation);
                pen.gap(6).int("registers per thread", i64::from(kernel.registers));
                pen.gap(6).int("shared memory", i64::from(kernel.shared));
                pen.gap(6).decimal("blocks per SM", blocks * 1_000_000 / sms, 6);
                pen.gap(6).decimal("warps per SM", blocks * warps * 1_000_000 / sms, 6);
                pen.gap(6).list("grid", &kernel.grid).gap(6).list("block", &kernel.block);
                pen.gap(6).int(
                    "est. achieved occupancy %",
                    (blocks * warps * 100 / (sms * 64)).min(100) as i64,
                );
            }
        }
        if is_collective {
            collective(pen, ranks, &self.ranks);
        }
        pen.end_args();
        self.flow(event, "f", correlation, [device, stream])
    }

    fn transfer(
        &mut self,
        event: &Event,
        cat: &str,
        [name, kind]: [&str; 2],
        bytes: i64,
        stream: i64,
        correlation: i64,
    ) -> io::Result<()> {
        self.begin_on_device(cat, name, event, stream)?;
        let device = self.device;
        let pen = &mut self.pen;
        match self.recipe.gpu {
            Gpu::Amd => {
                pen.gap(6)
                    .int("device", device)
                    .int("stream", stream)
                    .gap(6)
                    .int("correlation", correlation)
                    .str("kind", kind);
            }
            Gpu::Nvidia => {
                pen.int("External id", event.external)
                    .gap(6)
                    .int("device", device)
                    .int("context", 1);
                pen.gap(6)
                    .int("stream", stream)
                    .int("correlation", correlation)
                    .gap(6)
                    .int("bytes", bytes);
                pen.decimal(
                    "memory bandwidth (GB/s)",
                    bytes.unsigned_abs() * 1_000_000 / event.dur.unsigned_abs(),
                    6,
                );
            }
        }
        pen.end_args();
        self.flow(event, "f", correlation, [device, stream])
    }

    fn device_annotation(&mut self, event: &Event, label: Label) -> io::Result<()> {
        self.totals.annotations += 1;
        spell(&mut self.name, label);
        let name = std::mem::take(&mut self.name);
        let stream = match self.recipe.gpu {
            Gpu::Amd => 0,
            Gpu::Nvidia => 7,
        };
        self.begin_on_device("gpu_user_annotation", &name, event, stream)?;
        self.name = name;
        self.pen.int("External id", event.external).end_args();
        Ok(())
    }

    fn flow(
        &mut self,
        event: &Event,
        phase: &str,
        id: i64,
        [pid, tid]: [i64; 2],
    ) -> io::Result<()> {
        self.totals.flows += 1;
        self.pen.event()?;
        let pen = &mut self.pen;
        pen.str("ph", phase)
            .int("id", id)
            .int("pid", pid)
            .int("tid", tid)
            .micros("ts", event.start);
        pen.line().str("cat", "ac2g").str("name", "ac2g");
        if phase == "f" {
            pen.str("bp", "e");
        }
        pen.end();
        Ok(())
    }

    fn begin(&mut self, cat: &str, name: &str, event: &Event) -> io::Result<()> {
        self.begin_at(cat, name, event, [PID, tid(event.thread)])
    }

    fn begin_labelled(&mut self, cat: &str, label: Label, event: &Event) -> io::Result<()> {
        spell(&mut self.name, label);
        let name = std::mem::take(&mut self.name);
        self.begin(cat, &name, event)?;
        self.name = name;
        Ok(())
    }

    fn begin_on_device(
        &mut self,
        cat: &str,
        name: &str,
        event: &Event,
        stream: i64,
    ) -> io::Result<()> {
        self.begin_at(cat, name, event, [self.device, stream])
    }

    fn begin_at(
        &mut self,
        cat: &str,
        name: &str,
        event: &Event,
        [pid, tid]: [i64; 2],
    ) -> io::Result<()> {
        self.pen.event()?;
        let pen = &mut self.pen;
        pen.str("ph", "X").str("cat", cat).str("name", name).int("pid", pid).int("tid", tid);
        pen.line().micros("ts", event.start).micros("dur", event.dur).args();
        Ok(())
    }

    /// Writes the events after the last step: outermost Python frames, names, the span of the whole run.
    pub(super) fn end(&mut self, start: i64, end: i64, streams: &[i64]) -> io::Result<()> {
        if self.recipe.workload == super::Workload::Training && self.recipe.python {
            for (id, name) in [(1, "train.py(97): <module>"), (2, "train.py(80): main")] {
                let what =
                    What::Python { name: Label::Fixed(name), id, parent: id - 1, module: None };
                let (start, dur) = (start - 3_000 + 1_000 * id, end - start + 6_000 - 2_000 * id);
                self.event(&Event {
                    what,
                    start,
                    dur,
                    thread: Thread::Main,
                    external: 0,
                    index: 0,
                })?;
            }
        }
        self.process(PID, "CPU", PID, start)?;
        self.process(self.device, &format!("GPU {}", self.device), 5_000_000 + self.device, start)?;
        self.thread(PID, PID, "thread 4021 (python3)", PID, start)?;
        self.thread(PID, AUTOGRAD_TID, "thread 4177 (pt_autograd_0)", AUTOGRAD_TID, start)?;
        for stream in streams {
            self.thread(self.device, *stream, &format!("stream {stream} "), *stream, start)?;
        }
        self.closing_marks(start, end)
    }

    fn closing_marks(&mut self, start: i64, end: i64) -> io::Result<()> {
        let pen = &mut self.pen;
        pen.event()?;
        pen.str("ph", "X")
            .str("cat", "Trace")
            .micros("ts", start - 4_000)
            .micros("dur", end - start + 8_000);
        pen.line()
            .str("pid", "Spans")
            .str("tid", "PyTorch Profiler")
            .line()
            .str("name", "PyTorch Profiler (0)")
            .args();
        pen.int("Op count", 0).end_args();
        pen.event()?;
        pen.str("name", "process_sort_index").str("ph", "M").micros("ts", start - 4_000);
        pen.line().str("pid", "Spans").int("tid", 0).args();
        pen.int("sort_index", 536_870_912).end_args();
        pen.event()?;
        pen.str("name", "Iteration Start: PyTorch Profiler").str("ph", "i").str("s", "g");
        pen.line()
            .str("pid", "Traces")
            .str("tid", "Trace PyTorch Profiler")
            .micros("ts", start - 4_000)
            .end();
        pen.event()?;
        pen.str("name", "Record Window End").str("ph", "i").str("s", "g");
        pen.line().str("pid", "").str("tid", "").micros("ts", end + 5_000).end();
        self.totals.instants += 2;
        Ok(())
    }

    fn process(&mut self, pid: i64, labels: &str, order: i64, ts: i64) -> io::Result<()> {
        self.meta("process_name", pid, 0, ts)?.str("name", "python3").end_args();
        self.meta("process_labels", pid, 0, ts)?.str("labels", labels).end_args();
        self.meta("process_sort_index", pid, 0, ts)?.int("sort_index", order).end_args();
        Ok(())
    }

    fn thread(&mut self, pid: i64, tid: i64, name: &str, order: i64, ts: i64) -> io::Result<()> {
        self.meta("thread_name", pid, tid, ts)?.str("name", name).end_args();
        self.meta("thread_sort_index", pid, tid, ts)?.int("sort_index", order).end_args();
        Ok(())
    }

    fn meta(&mut self, name: &str, pid: i64, tid: i64, ts: i64) -> io::Result<&mut Pen<W>> {
        self.pen.event()?;
        self.pen
            .str("name", name)
            .str("ph", "M")
            .micros("ts", ts)
            .int("pid", pid)
            .int("tid", tid)
            .args();
        Ok(&mut self.pen)
    }
}

#[derive(PartialEq)]
enum Group {
    Operators,
    Python,
    Device,
}

fn group(event: &Event) -> Group {
    match event.what {
        What::Op { .. } | What::Annotation(_) | What::Memory { .. } => Group::Operators,
        What::Python { .. } => Group::Python,
        What::Call { .. }
        | What::Kernel { .. }
        | What::Copy { .. }
        | What::Fill { .. }
        | What::DeviceAnnotation(_) => Group::Device,
    }
}

fn tid(thread: Thread) -> i64 {
    match thread {
        Thread::Main => PID,
        Thread::Autograd => AUTOGRAD_TID,
    }
}

/// Details of an all-reduce, written for its operator and its kernel.
fn collective<W: Write>(pen: &mut Pen<W>, ranks: u32, members: &str) {
    pen.str("Collective name", "allreduce")
        .int("In msg nelems", 8_388_608)
        .int("Out msg nelems", 8_388_608);
    pen.int("Group size", i64::from(ranks))
        .str("dtype", "BFloat16")
        .str("In split size", "[]")
        .str("Out split size", "[]");
    pen.str("Process Group Name", "0")
        .str("Process Group Description", "default_pg")
        .str("Process Group Ranks", members);
}

fn spell(name: &mut String, label: Label) {
    name.clear();
    match label {
        Label::Fixed(text) => name.push_str(text),
        // Writing into a String cannot fail.
        Label::Module(class, number) => _ = write!(name, "nn.Module: {class}_{number}"),
        Label::Step(number) => _ = write!(name, "ProfilerStep#{number}"),
        Label::Phase { prefill: true, tokens } => {
            _ = write!(name, "execute_context_1({tokens})_generation_0(0)");
        }
        Label::Phase { prefill: false, tokens } => {
            _ = write!(name, "execute_context_0(0)_generation_{tokens}({tokens})");
        }
    }
}

fn inputs(op: Op, recipe: &Recipe) -> OpInputs {
    let spec = op.spec();
    let texts = |texts: &[&str]| {
        Json::list(texts.iter().map(|text| Json::text(*text))).write(recipe.style, 4)
    };
    let numbers = |lists: Vec<Vec<u32>>| {
        Json::list(
            lists.iter().map(|list| Json::list(list.iter().map(|n| Json::Int(i128::from(*n))))),
        )
        .write(recipe.style, 4)
    };
    OpInputs {
        name: spec.name,
        has_inputs: !spec.types.is_empty(),
        concrete: texts(spec.concrete),
        types: texts(spec.types),
        strides: numbers(spec.dims.iter().map(|dims| strides(dims)).collect()),
        dims: numbers(spec.dims.iter().map(|dims| dims.to_vec()).collect()),
    }
}

/// Strides of a contiguous tensor.
fn strides(dims: &[u32]) -> Vec<u32> {
    (1..=dims.len()).map(|from| dims[from..].iter().product()).collect()
}
