//! Diagnoses of synthetic machines.

use super::*;
use crate::table::Style;
use insta::assert_snapshot;
use laggard_core::model::host::{
    Attempt, Busy, Counters, Cpu, Distribution, Noise, Pmu, Python, PythonBuild, Quota, Room,
    Sampling, Space, System, Tick, Tool, Tools, Trigger, Watched,
};

fn is<T>(value: T) -> Known<T> {
    Known::Is(value)
}

fn tool(path: &str, version: &str) -> Known<Option<Tool>> {
    is(Some(Tool { path: path.into(), version: is(version.into()) }))
}

fn python(path: &str, version: [u32; 3]) -> Python {
    let symbols = is(Some("symbol table inside".into()));
    let implementation = "cpython".into();
    let build = PythonBuild { implementation, version, symbols, ..PythonBuild::default() };
    Python { path: path.into(), build: is(build) }
}

fn trigger(rate_hz: f64) -> Trigger {
    Trigger { attempt: Attempt::Works, rate_hz, asked_hz: 9_999.0 }
}

fn refused(errno: i32, why: &str) -> Attempt {
    Attempt::Refused { errno, why: why.into() }
}

/// A server configured for benchmarks.
fn quiet() -> Host {
    let space =
        |path: &str| Space { path: path.into(), free: 8 << 30, size: 16 << 30, writable: true };
    Host {
        system: System {
            os: "linux".into(),
            arch: "x86_64".into(),
            kernel: is("6.8.0-45-generic".into()),
            distribution: is(Distribution {
                id: "fedora".into(),
                like: vec![],
                name: "Fedora Linux 42".into(),
            }),
            hypervisor: is(None),
            container: is(None),
            seccomp: is(0),
            root: false,
            capabilities: is(0),
        },
        sampling: Sampling {
            paranoid: is(1),
            kptr_restrict: is(0),
            ptrace_scope: is(Some(1)),
            software_event: Attempt::Works,
            kernel_event: Attempt::Works,
            sigtrap: trigger(9_912.0),
            signal: trigger(9_900.0),
            timer: trigger(1_000.0),
            tick: is(Tick { hz: 1000, source: "/boot/config-6.8.0-45-generic".into() }),
            max_sample_rate: is(100_000),
            cpu_time_max_percent: is(25),
            libc_symbols: is(Some("compressed symbol table inside".into())),
        },
        counters: Counters {
            pmus: is(vec![Pmu { name: "cpu".into(), cpus: String::new(), cycles: Attempt::Works }]),
            cycles: Attempt::Works,
            instructions: Attempt::Works,
            branch_stack: Attempt::Works,
            mlock_kb: is(516),
            memlock: is(Some(8 << 20)),
        },
        pythons: vec![
            python("/usr/bin/python3.13", [3, 13, 1]),
            python("/opt/python/bin/python3.14", [3, 14, 0]),
        ],
        tools: Tools {
            perf: tool("/usr/bin/perf", "perf version 6.8.12"),
            valgrind: tool("/usr/bin/valgrind", "valgrind-3.24.0"),
            compiler: tool("/usr/bin/cc", "gcc (GCC) 14.2.1"),
        },
        cpu: Cpu {
            model: is("AMD EPYC 9554".into()),
            threads: is(64),
            cores: is(64),
            allowed: is(64),
            smt: is(false),
            isolated: is("60-63".into()),
            driver: is("amd-pstate-epp".into()),
            governors: is(vec!["performance".into()]),
            turbo: is(false),
            turbo_off: None,
            frequency_khz: is(3_100_000),
            max_frequency_khz: is(3_750_000),
        },
        noise: Noise {
            aslr: is(2),
            huge_pages: is("madvise".into()),
            numa_balancing: is(0),
            numa_nodes: is(2),
            load: is(0.02),
            watched: is(Watched {
                for_ns: 200_000_000,
                busiest: 0.02,
                busy: 0.001,
                stolen: 0.0,
                processes: vec![],
            }),
            clocksource: is("tsc".into()),
            clocksources: is(vec!["tsc".into(), "hpet".into()]),
            temperature: is(48.2),
            throttled: is(0),
            quota: is(None),
        },
        room: Room {
            memory: is(256 << 30),
            available: is(250 << 30),
            memory_limit: is(None),
            swap_used: is(0),
            shared_memory: is(space("/dev/shm")),
            cache: is(space("/home/u/.cache/laggard")),
            open_files: is(Some(524_288)),
        },
    }
}

/// A busy laptop with a hybrid CPU and a restrictive distribution.
fn laptop() -> Host {
    let mut host = quiet();
    host.system.distribution = is(Distribution {
        id: "ubuntu".into(),
        like: vec!["debian".into()],
        name: "Ubuntu 24.04.1 LTS".into(),
    });
    let no = || refused(13, "not allowed to this user (EACCES)");
    host.sampling.paranoid = is(4);
    host.sampling.software_event = no();
    host.sampling.kernel_event = no();
    host.sampling.sigtrap = Trigger { attempt: no(), ..Trigger::default() };
    host.sampling.signal = Trigger { attempt: no(), ..Trigger::default() };
    host.sampling.timer = trigger(251.4);
    host.sampling.tick = is(Tick { hz: 250, source: "/proc/config.gz".into() });
    host.sampling.libc_symbols = is(None);
    host.counters.cycles = no();
    host.counters.instructions = no();
    host.counters.branch_stack = no();
    let unit = |name: &str, cpus: &str| Pmu { name: name.into(), cpus: cpus.into(), cycles: no() };
    host.counters.pmus = is(vec![unit("cpu_core", "0-11"), unit("cpu_atom", "12-19")]);
    let mut stripped = python("/usr/bin/python3.12", [3, 12, 3]);
    if let Known::Is(build) = &mut stripped.build {
        build.symbols = is(None);
    }
    let mut free = python("/opt/py/bin/python3.13t", [3, 13, 0]);
    if let Known::Is(build) = &mut free.build {
        build.free_threaded = true;
    }
    let broken = Python {
        path: "/opt/\u{1b}[2J/python".into(),
        build: Known::unknown("it did not answer in 3 s"),
    };
    host.pythons = vec![stripped, free, python("/opt/old/python3.8", [3, 8, 1]), broken];
    host.tools = Tools { perf: is(None), valgrind: is(None), compiler: is(None) };
    host.cpu.governors = is(vec!["powersave".into()]);
    host.cpu.driver = is("intel_pstate".into());
    host.cpu.turbo = is(true);
    host.cpu.turbo_off = Some(("/sys/devices/system/cpu/intel_pstate/no_turbo".into(), "1".into()));
    host.cpu.smt = is(true);
    let process = |pid, name: &str, cpus| Busy { pid, name: name.into(), cpus };
    host.noise.watched = is(Watched {
        for_ns: 201_000_000,
        busiest: 1.0,
        busy: 0.31,
        stolen: 0.0,
        processes: vec![process(4711, "rustc", 1.0), process(9, "x\n\u{1b}[31m", 0.3)],
    });
    host.noise.temperature = is(91.0);
    host.noise.throttled = is(17);
    host.noise.clocksource = is("hpet".into());
    host.noise.numa_balancing = is(1);
    host.room.swap_used = is(2 << 30);
    host.room.open_files = is(Some(256));
    host
}

/// A restricted container on a virtual machine.
fn container() -> Host {
    let mut host = laptop();
    let no = || refused(1, "not permitted (EPERM)");
    host.system.container = is(Some("Docker".into()));
    host.system.hypervisor = is(Some("KVM".into()));
    host.system.seccomp = is(2);
    host.system.root = true;
    host.sampling.paranoid = is(2);
    host.sampling.software_event = no();
    host.pythons = vec![];
    let throttled = is(12_345);
    host.noise.quota = is(Some(Quota { quota_us: 150_000, period_us: 100_000, throttled }));
    host.room.shared_memory = Known::unknown("there is no /dev/shm");
    host.room.memory_limit = is(Some(512 << 20));
    host.room.cache = is(Space { path: "/".into(), free: 0, size: 1 << 30, writable: false });
    host
}

fn shown(host: &Host) -> String {
    text(&diagnose(host), &Style::default())
}

#[test]
fn a_benchmark_machine_has_nothing_to_fix() {
    let diagnosis = diagnose(&quiet());
    assert_eq!(diagnosis.worst(), Verdict::Fine, "{}", shown(&quiet()));
    assert_snapshot!(shown(&quiet()));
}

#[test]
fn a_laptop_lists_commands_to_run() {
    assert_eq!(diagnose(&laptop()).worst(), Verdict::Costs);
    assert_snapshot!(shown(&laptop()));
    assert_snapshot!("laptop_markdown", markdown(&diagnose(&laptop())));
    assert_snapshot!("laptop_json", json(&laptop(), &diagnose(&laptop())));
    assert!(
        csv(&diagnose(&laptop())).starts_with("group,check,verdict,title,found,cost,fix,effect")
    );
}

#[test]
fn a_container_lists_changes_for_the_host() {
    assert_eq!(diagnose(&container()).worst(), Verdict::Blocks);
    assert_snapshot!(shown(&container()));
}

#[test]
fn other_systems_list_supported_commands() {
    let system = System { os: "macos".into(), arch: "aarch64".into(), ..System::default() };
    assert_snapshot!(shown(&Host { system, ..Host::default() }));
}

#[test]
fn unknown_values_are_not_problems() {
    let system = System { os: "linux".into(), arch: "x86_64".into(), ..System::default() };
    let host = Host { system, pythons: vec![python("/p", [3, 12, 0])], ..Host::default() };
    let diagnosis = diagnose(&host);
    assert_eq!(diagnosis.worst(), Verdict::Fine, "{}", shown(&host));
    assert!(diagnosis.verdict.contains("could not be tested"), "{}", diagnosis.verdict);
}

#[test]
fn commands_match_the_distribution() {
    for (id, like, expected) in [
        ("debian", "", "sudo apt-get install -y linux-perf"),
        (
            "ubuntu",
            "debian",
            "sudo apt-get install -y linux-tools-common linux-tools-6.8.0-45-generic",
        ),
        (
            "linuxmint",
            "ubuntu debian",
            "sudo apt-get install -y linux-tools-common linux-tools-6.8.0-45-generic",
        ),
        ("rocky", "rhel centos fedora", "sudo dnf install -y perf"),
        ("opensuse-tumbleweed", "opensuse suse", "sudo zypper --non-interactive install perf"),
        ("manjaro", "arch", "sudo pacman -S --noconfirm perf"),
        ("alpine", "", "sudo apk add perf"),
    ] {
        let mut host = quiet();
        host.tools.perf = is(None);
        let like = like.split_whitespace().map(str::to_owned).collect();
        host.system.distribution = is(Distribution { id: id.into(), like, name: id.into() });
        assert!(shown(&host).contains(expected), "{id}: {}", shown(&host));
    }
    let mut host = quiet();
    host.tools.perf = is(None);
    host.system.distribution = Known::default();
    assert!(shown(&host).contains("# perf: install perf (package perf)"));
    // A kernel release with special characters must not reach a command.
    host.system.distribution =
        is(Distribution { id: "ubuntu".into(), like: vec![], name: "Ubuntu".into() });
    host.system.kernel = is("6.8; rm -rf ~".into());
    assert!(shown(&host).contains("sudo apt-get install -y perf"));
}

#[test]
fn reported_rate_is_the_measured_rate() {
    let mut host = quiet();
    host.sampling.sigtrap = trigger(4_321.0);
    assert!(diagnose(&host).verdict.contains("up to 4,300 Hz"));
    host.sampling.max_sample_rate = is(500);
    let diagnosis = diagnose(&host);
    assert!(diagnosis.verdict.contains("up to 500 Hz"));
    assert_eq!(diagnosis.worst(), Verdict::Costs);
    host.sampling.sigtrap.attempt = refused(22, "the kernel does not know this kind (EINVAL)");
    host.system.kernel = is("5.4.0-1-amd64".into());
    assert!(shown(&host).contains("signals, 9,900 Hz measured"), "{}", shown(&host));
}
