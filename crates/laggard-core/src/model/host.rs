//! `Host`: facts about a machine, its permissions and its load, for `laggard doctor`.
//!
//! Values are raw, without interpretation. Unknown values carry the reason.

/// A value, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// The value.
    Is(T),
    /// Unknown, with the reason.
    Unknown(String),
}

impl<T> Known<T> {
    /// An unknown value with a reason.
    pub fn unknown(why: impl Into<String>) -> Known<T> {
        Known::Unknown(why.into())
    }

    /// The value, if known.
    pub fn get(&self) -> Option<&T> {
        match self {
            Known::Is(value) => Some(value),
            Known::Unknown(_) => None,
        }
    }

    /// Why it is unknown.
    pub fn why(&self) -> Option<&str> {
        match self {
            Known::Is(_) => None,
            Known::Unknown(why) => Some(why),
        }
    }

    /// Converts the value, if known.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        self.then(|value| Known::Is(change(value)))
    }

    /// Computes another value from this one, if known.
    pub fn then<U>(self, next: impl FnOnce(T) -> Known<U>) -> Known<U> {
        match self {
            Known::Is(value) => next(value),
            Known::Unknown(why) => Known::Unknown(why),
        }
    }

    /// This value, or `other` if it is unknown.
    pub fn or(self, other: impl FnOnce() -> Known<T>) -> Known<T> {
        match self {
            Known::Is(_) => self,
            Known::Unknown(_) => other(),
        }
    }
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known::unknown("not checked")
    }
}

/// Result of trying something that the kernel may refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It works.
    Works,
    /// It was refused.
    Refused {
        /// The error number; 0 if there was none.
        errno: i32,
        /// Description of the error.
        why: String,
    },
    /// It was not tried, with the reason.
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
        Attempt::Untried("not checked".into())
    }
}

/// Facts about a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Operating system and permissions of this process.
    pub system: System,
    /// Sampling of programs.
    pub sampling: Sampling,
    /// Hardware counters.
    pub counters: Counters,
    /// Python interpreters, in the order of PATH.
    pub pythons: Vec<Python>,
    /// Tools that laggard uses.
    pub tools: Tools,
    /// CPUs.
    pub cpu: Cpu,
    /// Settings and load that make timings vary between runs.
    pub noise: Noise,
    /// Memory, disk space and limits.
    pub room: Room,
}

/// Operating system and permissions of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Rust's name of the operating system: `linux`, `macos`.
    pub os: String,
    /// Rust's name of the architecture: `x86_64`, `aarch64`.
    pub arch: String,
    /// Kernel release, such as `6.1.0-32-amd64`.
    pub kernel: Known<String>,
    /// The distribution.
    pub distribution: Known<Distribution>,
    /// The hypervisor, if any.
    pub hypervisor: Known<Option<String>>,
    /// The kind of container, if any.
    pub container: Known<Option<String>>,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: Known<u64>,
    /// Whether the process runs as root.
    pub root: bool,
    /// Effective capabilities as a bit set.
    pub capabilities: Known<u64>,
}

/// A Linux distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Its short name: `debian`, `ubuntu`, `fedora`.
    pub id: String,
    /// Short names of the distributions it is derived from.
    pub like: Vec<String>,
    /// Full name.
    pub name: String,
}

/// Permissions, triggers and limits of sampling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Known<i64>,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Known<i64>,
    /// `kernel.yama.ptrace_scope`; `None` if the kernel has no Yama.
    pub ptrace_scope: Known<Option<i64>>,
    /// A software event for user code of this process.
    pub software_event: Attempt,
    /// The same including kernel code.
    pub kernel_event: Attempt,
    /// Samples by SIGTRAP in the sampled thread.
    pub sigtrap: Trigger,
    /// Samples by a signal on event overflow.
    pub signal: Trigger,
    /// Samples by a CPU time timer of the thread.
    pub timer: Trigger,
    /// Kernel tick rate, which limits timers.
    pub tick: Known<Tick>,
    /// `kernel.perf_event_max_sample_rate`, in samples per second.
    pub max_sample_rate: Known<u64>,
    /// `kernel.perf_cpu_time_max_percent`.
    pub cpu_time_max_percent: Known<u64>,
    /// Source of symbols for internal functions of the C library; `None` if there is none.
    pub libc_symbols: Known<Option<String>>,
}

/// A sample trigger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trigger {
    /// Whether it works.
    pub attempt: Attempt,
    /// Measured samples per second of CPU time.
    pub rate_hz: f64,
    /// Requested samples per second.
    pub asked_hz: f64,
}

/// Kernel tick rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Ticks per second.
    pub hz: u64,
    /// Where the value was read.
    pub source: String,
}

/// Hardware counters and their limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// PMUs, one per core type.
    pub pmus: Known<Vec<Pmu>>,
    /// The cycles counter.
    pub cycles: Attempt,
    /// The instructions counter.
    pub instructions: Attempt,
    /// Branch records (LBR).
    pub branch_stack: Attempt,
    /// `kernel.perf_event_mlock_kb`.
    pub mlock_kb: Known<u64>,
    /// RLIMIT_MEMLOCK in bytes; `None` if unlimited.
    pub memlock: Known<Option<u64>>,
}

/// The PMU of a core type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// `cpu`, `cpu_core`, `cpu_atom`, `armv8_pmuv3_0`.
    pub name: String,
    /// List of its CPUs; empty if unknown.
    pub cpus: String,
    /// Whether it counts cycles.
    pub cycles: Attempt,
}

/// A Python interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    /// Its path.
    pub path: String,
    /// Its build facts.
    pub build: Known<PythonBuild>,
}

/// Build facts of an interpreter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonBuild {
    /// `cpython`, `pypy`.
    pub implementation: String,
    /// Major, minor and micro.
    pub version: [u32; 3],
    /// Whether it is a free-threaded build.
    pub free_threaded: bool,
    /// Whether its code is in a shared library.
    pub shared: bool,
    /// Whether it was built with frame pointers.
    pub frame_pointers: bool,
    /// Source of symbols for its internal functions; `None` if there is none.
    pub symbols: Known<Option<String>>,
}

/// Tools that laggard uses; `None` if not in PATH.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// perf.
    pub perf: Known<Option<Tool>>,
    /// valgrind, for callgrind.
    pub valgrind: Known<Option<Tool>>,
    /// A C compiler.
    pub compiler: Known<Option<Tool>>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its path.
    pub path: String,
    /// Its version output.
    pub version: Known<String>,
}

/// CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Processor model.
    pub model: Known<String>,
    /// Online logical CPUs.
    pub threads: Known<u64>,
    /// Physical cores.
    pub cores: Known<u64>,
    /// Logical CPUs that this process may use.
    pub allowed: Known<u64>,
    /// Whether SMT is active.
    pub smt: Known<bool>,
    /// Isolated CPUs as a list such as `2-3`; may be empty.
    pub isolated: Known<String>,
    /// Frequency scaling driver, such as `intel_pstate`.
    pub driver: Known<String>,
    /// Distinct governors in use.
    pub governors: Known<Vec<String>>,
    /// Whether turbo is on.
    pub turbo: Known<bool>,
    /// The file that controls turbo, and the value that turns it off.
    pub turbo_off: Option<(String, String)>,
    /// Current frequency of the slowest core, in kHz.
    pub frequency_khz: Known<u64>,
    /// Maximum frequency of a core, in kHz.
    pub max_frequency_khz: Known<u64>,
}

/// Settings and load that make timings vary between runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// `kernel.randomize_va_space`.
    pub aslr: Known<u64>,
    /// Mode of transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Known<String>,
    /// `kernel.numa_balancing`.
    pub numa_balancing: Known<u64>,
    /// NUMA nodes.
    pub numa_nodes: Known<u64>,
    /// One-minute load average.
    pub load: Known<f64>,
    /// CPU use observed for a short time.
    pub watched: Known<Watched>,
    /// Current clock source: `tsc`, `kvm-clock`, `hpet`.
    pub clocksource: Known<String>,
    /// Available clock sources.
    pub clocksources: Known<Vec<String>>,
    /// Highest temperature, in °C.
    pub temperature: Known<f64>,
    /// Thermal throttling events since boot.
    pub throttled: Known<u64>,
    /// CPU quota, if limited.
    pub quota: Known<Option<Quota>>,
}

/// CPU use observed for a short time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// Duration, in nanoseconds.
    pub for_ns: u64,
    /// Utilization of the busiest CPU, as a share.
    pub busiest: f64,
    /// Utilization of all CPUs, as a share.
    pub busy: f64,
    /// Steal time, as a share.
    pub stolen: f64,
    /// Other processes with the highest CPU use, descending.
    pub processes: Vec<Busy>,
}

/// A process and its CPU use.
#[derive(Clone, Debug, PartialEq)]
pub struct Busy {
    /// Process ID.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// CPU use, in CPUs.
    pub cpus: f64,
}

/// A CPU quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Microseconds of CPU time per period.
    pub quota_us: u64,
    /// Length of a period in microseconds.
    pub period_us: u64,
    /// Throttled periods so far.
    pub throttled: Known<u64>,
}

/// Memory, disk space and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Total memory in bytes.
    pub memory: Known<u64>,
    /// Available memory in bytes.
    pub available: Known<u64>,
    /// Memory limit of the container in bytes; `None` if unlimited.
    pub memory_limit: Known<Option<u64>>,
    /// Swap in use, in bytes.
    pub swap_used: Known<u64>,
    /// Shared memory, used to pass samples.
    pub shared_memory: Known<Space>,
    /// The file system of the cache directory.
    pub cache: Known<Space>,
    /// RLIMIT_NOFILE; `None` if unlimited.
    pub open_files: Known<Option<u64>>,
}

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The directory.
    pub path: String,
    /// Bytes available to this user.
    pub free: u64,
    /// Total bytes.
    pub size: u64,
    /// Whether this user may write there.
    pub writable: bool,
}
