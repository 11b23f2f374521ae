//! What a machine is, what it allows and what goes on in it: the evidence `laggard doctor` judges.
//!
//! Plain values as they were found, without judgement. What could not be found out says why.

/// A value, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// It was found.
    Is(T),
    /// It was not, for this reason.
    Unknown(String),
}

impl<T> Known<T> {
    /// Not known, for this reason.
    pub fn unknown(why: impl Into<String>) -> Known<T> {
        Known::Unknown(why.into())
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        match self {
            Known::Is(value) => Some(value),
            Known::Unknown(_) => None,
        }
    }

    /// Why it is not known.
    pub fn why(&self) -> Option<&str> {
        match self {
            Known::Is(_) => None,
            Known::Unknown(why) => Some(why),
        }
    }

    /// Another value made from this one, if there is one.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        self.then(|value| Known::Is(change(value)))
    }

    /// What can be found out from this value, if there is one.
    pub fn then<U>(self, next: impl FnOnce(T) -> Known<U>) -> Known<U> {
        match self {
            Known::Is(value) => next(value),
            Known::Unknown(why) => Known::Unknown(why),
        }
    }

    /// This, or what `other` finds when it is not known.
    pub fn or(self, other: impl FnOnce() -> Known<T>) -> Known<T> {
        match self {
            Known::Is(_) => self,
            Known::Unknown(_) => other(),
        }
    }
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known::unknown("not looked at")
    }
}

/// What came of trying something that a kernel may refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It works.
    Works,
    /// It was refused, with this error number and its text.
    Refused {
        /// The error number, 0 when there was none.
        errno: i32,
        /// What it means.
        why: String,
    },
    /// It was not tried, for this reason.
    Untried(String),
}

impl Attempt {
    /// Whether it works.
    pub fn works(&self) -> bool {
        *self == Attempt::Works
    }

    /// Why it does not work.
    pub fn why(&self) -> Option<&str> {
        match self {
            Attempt::Works => None,
            Attempt::Refused { why, .. } | Attempt::Untried(why) => Some(why),
        }
    }
}

impl Default for Attempt {
    fn default() -> Attempt {
        Attempt::Untried("not looked at".into())
    }
}

/// All that is known about a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Its operating system, and what this process may do in it.
    pub system: System,
    /// How it can be sampled.
    pub sampling: Sampling,
    /// What it can count.
    pub counters: Counters,
    /// Its Python interpreters, in the order of PATH.
    pub pythons: Vec<Python>,
    /// Programs that laggard works with.
    pub tools: Tools,
    /// Its processors.
    pub cpu: Cpu,
    /// What makes its timings differ from run to run.
    pub noise: Noise,
    /// How much it has of what laggard needs.
    pub room: Room,
}

/// The operating system, and what this process may do in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// As Rust calls it: `linux`, `macos`.
    pub os: String,
    /// As Rust calls it: `x86_64`, `aarch64`.
    pub arch: String,
    /// The release of the kernel, as `6.1.0-32-amd64`.
    pub kernel: Known<String>,
    /// The distribution.
    pub distribution: Known<Distribution>,
    /// The hypervisor that runs the machine, if one does.
    pub hypervisor: Known<Option<String>>,
    /// The kind of container that this process is in, if it is in one.
    pub container: Known<Option<String>>,
    /// The mode of system call filtering: 0 none, 1 strict, 2 filter.
    pub seccomp: Known<u64>,
    /// Whether the process has the rights of root.
    pub root: bool,
    /// Effective capabilities, one a bit.
    pub capabilities: Known<u64>,
}

/// A Linux distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Its short name: `debian`, `ubuntu`, `fedora`.
    pub id: String,
    /// Short names of those that it is made from.
    pub like: Vec<String>,
    /// As people call it.
    pub name: String,
}

/// How programs can be sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Known<i64>,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Known<i64>,
    /// `kernel.yama.ptrace_scope`; none where the kernel has no Yama.
    pub ptrace_scope: Known<Option<i64>>,
    /// A software event of this process's user code.
    pub software_event: Attempt,
    /// The same with kernel code.
    pub kernel_event: Attempt,
    /// Samples by a trap in the sampled thread.
    pub sigtrap: Trigger,
    /// Samples by a signal when an event overflows.
    pub signal: Trigger,
    /// Samples by a timer of the thread's CPU time.
    pub timer: Trigger,
    /// How often the kernel's clock ticks, which bounds timers.
    pub tick: Known<Tick>,
    /// `kernel.perf_event_max_sample_rate`, a second.
    pub max_sample_rate: Known<u64>,
    /// `kernel.perf_cpu_time_max_percent`.
    pub cpu_time_max_percent: Known<u64>,
    /// Where names of the C library's inner functions come from; none when from nowhere.
    pub libc_symbols: Known<Option<String>>,
}

/// A way to interrupt a thread for a sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trigger {
    /// Whether it can be had.
    pub attempt: Attempt,
    /// Samples that came for a second of CPU time when `asked` were asked for.
    pub rate_hz: f64,
    /// Samples that were asked for, a second.
    pub asked_hz: f64,
}

/// How often the kernel's clock ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Times a second.
    pub hz: u64,
    /// Where this is known from.
    pub source: String,
}

/// What can be counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Units that count for a kind of core; more than one where cores differ.
    pub pmus: Known<Vec<Pmu>>,
    /// The cycles counter.
    pub cycles: Attempt,
    /// The instructions counter.
    pub instructions: Attempt,
    /// Records of the last branches.
    pub branch_stack: Attempt,
    /// `kernel.perf_event_mlock_kb`.
    pub mlock_kb: Known<u64>,
    /// RLIMIT_MEMLOCK in bytes; none is unlimited.
    pub memlock: Known<Option<u64>>,
}

/// A unit that counts for a kind of core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// `cpu`, `cpu_core`, `cpu_atom`, `armv8_pmuv3_0`.
    pub name: String,
    /// The cores that it counts for, where it says so.
    pub cpus: String,
    /// Whether it counts cycles.
    pub cycles: Attempt,
}

/// A Python interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    /// Where it was found.
    pub path: String,
    /// What it says about itself.
    pub build: Known<PythonBuild>,
}

/// What an interpreter says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonBuild {
    /// `cpython`, `pypy`.
    pub implementation: String,
    /// Major, minor and micro.
    pub version: [u32; 3],
    /// Whether it runs without the global lock.
    pub free_threaded: bool,
    /// Whether its code is in a shared library.
    pub shared: bool,
    /// Whether it was built with frame pointers.
    pub frame_pointers: bool,
    /// Where names of its inner functions come from; none when from nowhere.
    pub symbols: Known<Option<String>>,
}

/// Programs that laggard works with; none where there is no such program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// The perf program.
    pub perf: Known<Option<Tool>>,
    /// valgrind, for callgrind.
    pub valgrind: Known<Option<Tool>>,
    /// A C compiler.
    pub compiler: Known<Option<Tool>>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Where it is.
    pub path: String,
    /// What it says its version is.
    pub version: Known<String>,
}

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Their model.
    pub model: Known<String>,
    /// Logical processors that are online.
    pub threads: Known<u64>,
    /// Physical cores.
    pub cores: Known<u64>,
    /// Logical processors that this process may use.
    pub allowed: Known<u64>,
    /// Whether cores run several threads at once.
    pub smt: Known<bool>,
    /// Processors kept free of other work, as a list like `2-3`; empty when none are.
    pub isolated: Known<String>,
    /// What drives the frequency, as `intel_pstate`.
    pub driver: Known<String>,
    /// Governors in use, each once.
    pub governors: Known<Vec<String>>,
    /// Whether cores may run above their nominal frequency.
    pub turbo: Known<bool>,
    /// The file that switches it, and what to write there to switch it off.
    pub turbo_off: Option<(String, String)>,
    /// The frequency of the slowest core now, in kHz.
    pub frequency_khz: Known<u64>,
    /// The highest that a core may reach, in kHz.
    pub max_frequency_khz: Known<u64>,
}

/// What makes timings differ from run to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// `kernel.randomize_va_space`.
    pub aslr: Known<u64>,
    /// When transparent huge pages are used: `always`, `madvise`, `never`.
    pub huge_pages: Known<String>,
    /// `kernel.numa_balancing`.
    pub numa_balancing: Known<u64>,
    /// Nodes of memory.
    pub numa_nodes: Known<u64>,
    /// Processes ready to run, over the last minute.
    pub load: Known<f64>,
    /// What happened over a short while.
    pub watched: Known<Watched>,
    /// The clock's source: `tsc`, `kvm-clock`, `hpet`.
    pub clocksource: Known<String>,
    /// Clock sources that there are.
    pub clocksources: Known<Vec<String>>,
    /// The hottest temperature, in °C.
    pub temperature: Known<f64>,
    /// Times since boot that a core was slowed for heat.
    pub throttled: Known<u64>,
    /// The container's share of the processors, if it is limited.
    pub quota: Known<Option<Quota>>,
}

/// What happened over a short while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// How long, in nanoseconds.
    pub for_ns: u64,
    /// The share of its time that the busiest processor worked.
    pub busiest: f64,
    /// The share of their time that all processors worked.
    pub busy: f64,
    /// The share of their time that the hypervisor gave to others.
    pub stolen: f64,
    /// Other processes that used the most processor time, most first.
    pub processes: Vec<Busy>,
}

/// A process that uses processor time.
#[derive(Clone, Debug, PartialEq)]
pub struct Busy {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Processors that it kept busy.
    pub cpus: f64,
}

/// A limit of processor time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Microseconds of processor time it may use in a period.
    pub quota_us: u64,
    /// Microseconds of a period.
    pub period_us: u64,
    /// Periods in which it had to stop, so far.
    pub throttled: Known<u64>,
}

/// How much there is of what laggard needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes of memory.
    pub memory: Known<u64>,
    /// Bytes of it that programs could still use.
    pub available: Known<u64>,
    /// Bytes that the container may use; none is unlimited.
    pub memory_limit: Known<Option<u64>>,
    /// Bytes of swap in use.
    pub swap_used: Known<u64>,
    /// Shared memory, where samples pass through.
    pub shared_memory: Known<Space>,
    /// The file system of the cache directory.
    pub cache: Known<Space>,
    /// RLIMIT_NOFILE: how many files a process may have open; none is unlimited.
    pub open_files: Known<Option<u64>>,
}

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The directory that was looked at.
    pub path: String,
    /// Bytes that this user may still write.
    pub free: u64,
    /// Bytes of the whole.
    pub size: u64,
    /// Whether this user may write there.
    pub writable: bool,
}
