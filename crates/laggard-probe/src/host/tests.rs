//! Tests with synthetic machines.

use super::*;
use laggard_core::model::host::{Attempt, Known};
use std::fs;
use std::io::Write;

/// A machine with these files.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::at(directory.path());
    (directory, root)
}

fn host(files: &[(&str, &str)]) -> Host {
    let (_directory, root) = machine(files);
    read(&root, &Places::default())
}

#[test]
fn a_machine_without_files_has_unknown_values() {
    let host = host(&[]);
    assert_eq!(
        host.sampling.paranoid.why(),
        Some("/proc/sys/kernel/perf_event_paranoid does not exist")
    );
    assert_eq!(host.sampling.sigtrap.attempt, Attempt::Untried("not checked".into()));
    assert!(host.cpu.model.why().is_some());
    assert_eq!(host.noise.quota, Known::Is(None));
    assert_eq!(host.system.container, Known::Is(None));
    let (_directory, root) = machine(&[]);
    assert_eq!(facts_of(&root).len(), 2, "os and container: {:?}", facts_of(&root));
}

#[test]
fn malformed_files_are_reported_with_their_content() {
    let huge = "9".repeat(400);
    for weird in
        ["", "\u{0}", "-", "99999999999999999999999", "[", "((((", "0-", "a:b:c", "1-0,2", &huge]
    {
        let paths = [
            "/proc/sys/kernel/perf_event_paranoid",
            "/proc/sys/kernel/osrelease",
            "/proc/sys/kernel/yama/ptrace_scope",
            "/proc/self/status",
            "/proc/self/cgroup",
            "/proc/cpuinfo",
            "/proc/meminfo",
            "/proc/loadavg",
            "/proc/stat",
            "/proc/1/sched",
            "/proc/config.gz",
            "/etc/os-release",
            "/sys/devices/system/cpu/online",
            "/sys/devices/system/cpu/smt/active",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
            "/sys/devices/system/node/online",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/class/thermal/thermal_zone0/temp",
            "/sys/fs/cgroup/cpu.max",
            "/sys/fs/cgroup/memory.max",
            "/sys/bus/event_source/devices/cpu/type",
            "/lib64/libc.so.6",
        ];
        let host = host(&paths.map(|path| (path, weird)));
        assert!(host.sampling.paranoid.why().unwrap().contains("unexpected content"), "{weird:?}");
        assert!(host.sampling.tick.why().is_some(), "{weird:?}");
        assert!(host.noise.load.why().is_some() || weird.len() > 20, "{weird:?}");
    }
}

#[test]
fn limits_of_both_cgroup_versions_are_read() {
    let status = (
        "/proc/self/status",
        "Seccomp:\t2\nCapEff:\t00000000a80425fb\nCpus_allowed_list:\t0-3,8\n",
    );
    let new = host(&[
        status,
        ("/proc/self/cgroup", "0::/docker/abc"),
        ("/sys/fs/cgroup/cpu.max", "max 100000"),
        ("/sys/fs/cgroup/docker/abc/cpu.max", "150000 100000"),
        ("/sys/fs/cgroup/docker/abc/cpu.stat", "usage_usec 5\nnr_throttled 12\n"),
        ("/sys/fs/cgroup/docker/abc/memory.max", "1073741824"),
    ]);
    let quota = new.noise.quota.get().unwrap().clone().unwrap();
    assert_eq!((quota.quota_us, quota.throttled), (150_000, Known::Is(12)));
    assert_eq!(new.room.memory_limit, Known::Is(Some(1 << 30)));
    assert_eq!(new.system.container, Known::Is(Some("Docker".into())));
    assert_eq!((new.system.seccomp, new.cpu.allowed), (Known::Is(2), Known::Is(5)));
    assert_eq!(new.system.capabilities, Known::Is(0xa804_25fb));
    let old = host(&[
        ("/proc/self/cgroup", "4:memory:/a\n1:cpu,cpuacct:/a\n0::/"),
        ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
        ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
        ("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000"),
        ("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
        ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000"),
    ]);
    assert_eq!(old.noise.quota.get().unwrap().clone().unwrap().quota_us, 50_000);
    assert_eq!(old.room.memory_limit, Known::Is(Some(1000)));
}

#[test]
fn hypervisors_and_containers_are_detected() {
    let guest = ("/proc/cpuinfo", "model name : X\nflags\t: fpu hypervisor avx\n");
    let bare = ("/proc/cpuinfo", "flags : fpu avx\n");
    let vendor = |name| ("/sys/class/dmi/id/sys_vendor", name);
    for (files, expected) in [
        (vec![guest, vendor("QEMU")], Some("QEMU")),
        (vec![guest, vendor("Amazon EC2")], Some("Amazon EC2")),
        (vec![bare, vendor("Amazon EC2")], None),
        (vec![guest], Some("unidentified")),
        (vec![bare, vendor("Dell Inc.")], None),
        (
            vec![("/proc/sys/kernel/osrelease", "5.15.1-microsoft-standard-WSL2")],
            Some("WSL 2 (Hyper-V)"),
        ),
    ] {
        let found = host(&files).system.hypervisor;
        assert_eq!(found, Known::Is(expected.map(str::to_owned)), "{files:?}");
    }
    for (file, expected) in [
        (("/.dockerenv", ""), Some("Docker")),
        (("/run/.containerenv", ""), Some("Podman")),
        (("/proc/self/cgroup", "0::/kubepods.slice/pod1"), Some("Kubernetes")),
        (("/proc/1/sched", "systemd (1, #threads: 1)"), None),
        (("/proc/1/sched", "sh (4711, #threads: 1)"), Some("a container")),
    ] {
        assert_eq!(
            host(&[file]).system.container,
            Known::Is(expected.map(str::to_owned)),
            "{file:?}"
        );
    }
}

#[test]
fn a_laptop_is_read() {
    let host = host(&[
        ("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n"),
        ("/boot/config-6.8.0-45-generic", "CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n"),
        ("/etc/os-release", "ID=ubuntu\nID_LIKE=\"debian\"\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n"),
        ("/sys/devices/system/cpu/online", "0-3"),
        ("/sys/devices/system/cpu/smt/active", "1"),
        ("/sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0-1"),
        ("/sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0-1"),
        ("/sys/devices/system/cpu/cpu2/topology/core_cpus_list", "2"),
        ("/sys/devices/system/cpu/cpu3/topology/core_cpus_list", "3"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
        ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1200000"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4800000"),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
        ("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7"),
        ("/sys/class/thermal/thermal_zone0/temp", "71500"),
        ("/sys/class/thermal/thermal_zone1/temp", "-274000"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("/sys/bus/event_source/devices/cpu_core/type", "4"),
        ("/sys/bus/event_source/devices/cpu_core/cpus", "0-1"),
        ("/sys/bus/event_source/devices/cpu_atom/type", "10"),
        ("/sys/bus/event_source/devices/uncore_imc/type", "11"),
        (
            "/proc/meminfo",
            "MemTotal: 1000 kB\nMemAvailable: 500 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
        ),
    ]);
    assert_eq!(host.sampling.tick.get().unwrap().hz, 1000);
    assert_eq!((host.cpu.threads, host.cpu.cores), (Known::Is(4), Known::Is(3)));
    assert_eq!(host.cpu.governors.get().unwrap().join(" "), "performance powersave");
    assert_eq!(host.cpu.turbo, Known::Is(true));
    assert_eq!(host.noise.temperature, Known::Is(71.5));
    assert_eq!(
        (host.noise.throttled, host.noise.huge_pages),
        (Known::Is(7), Known::Is("madvise".into()))
    );
    assert_eq!((host.room.swap_used, host.room.available), (Known::Is(6144), Known::Is(512_000)));
    let pmus: Vec<String> =
        host.counters.pmus.get().unwrap().iter().map(|pmu| pmu.name.clone()).collect();
    assert_eq!(pmus, ["cpu_atom", "cpu_core"]);
    assert_eq!(host.system.distribution.get().unwrap().like, ["debian"]);
}

#[test]
fn the_tick_is_read_from_a_compressed_configuration() {
    let (directory, root) = machine(&[("/proc/x", "")]);
    let file = fs::File::create(directory.path().join("proc/config.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(b"# CONFIG_HZ_100 is not set\nCONFIG_HZ=250\n").unwrap();
    packed.finish().unwrap();
    assert_eq!(read(&root, &Places::default()).sampling.tick.get().unwrap().hz, 250);
}

#[cfg(target_os = "linux")]
#[test]
fn this_machine_can_be_read_and_its_facts_are_cheap() {
    let host = read(&Root::real(), &Places::from_env());
    assert!(host.system.kernel.get().is_some());
    assert!(host.sampling.timer.attempt.works(), "{:?}", host.sampling.timer);
    let start = std::time::Instant::now();
    let facts = facts();
    // Ten times the usual duration, because the machine may be busy.
    assert!(start.elapsed() < std::time::Duration::from_millis(50), "{:?}", start.elapsed());
    assert!(facts.iter().any(|(name, _)| name == "kernel"), "{facts:?}");
}
