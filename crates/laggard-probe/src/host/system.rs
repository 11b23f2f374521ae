//! Operating system, container and hypervisor.

use super::root::{Root, short};
use super::sys;
use laggard_core::model::host::{Distribution, Known, System};

pub(super) fn read(root: &Root) -> System {
    System {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        kernel: root.text("/proc/sys/kernel/osrelease"),
        distribution: distribution(root),
        hypervisor: hypervisor(root),
        container: container(root),
        seccomp: root.field("/proc/self/status", "Seccomp").then(|mode| number(&mode, 10)),
        root: root.is_real() && sys::is_root(),
        capabilities: root.field("/proc/self/status", "CapEff").then(|bits| number(&bits, 16)),
    }
}

fn number(text: &str, radix: u32) -> Known<u64> {
    match u64::from_str_radix(text, radix) {
        Ok(number) => Known::Is(number),
        Err(_) => {
            Known::unknown(format!("unexpected value in /proc/self/status: {:?}", short(text)))
        }
    }
}

fn distribution(root: &Root) -> Known<Distribution> {
    let text = root.text("/etc/os-release").or(|| root.text("/usr/lib/os-release"));
    text.map(|text| {
        let value = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        };
        let like = value("ID_LIKE").split_whitespace().map(str::to_owned).collect();
        let name = Some(value("PRETTY_NAME")).filter(|name| !name.is_empty());
        Distribution { id: value("ID"), like, name: name.unwrap_or_else(|| value("NAME")) }
    })
}

/// Firmware marks, and the hypervisors that they identify.
const FIRMWARE: [(&str, &str); 12] = [
    ("firecracker", "Firecracker"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("microsoft corporation virtual machine", "Hyper-V"),
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("parallels", "Parallels"),
    ("xen", "Xen"),
    ("bhyve", "bhyve"),
    ("qemu", "QEMU"),
    ("kvm", "KVM"),
];

fn hypervisor(root: &Root) -> Known<Option<String>> {
    let kernel = root.text("/proc/sys/kernel/osrelease");
    if kernel.get().is_some_and(|kernel| kernel.to_ascii_lowercase().contains("microsoft")) {
        return Known::Is(Some("WSL 2 (Hyper-V)".into()));
    }
    let marks = ["sys_vendor", "product_name", "board_vendor", "bios_vendor"]
        .map(|file| root.text(&format!("/sys/class/dmi/id/{file}")))
        .iter()
        .filter_map(|text| text.get().map(|text| text.to_ascii_lowercase()))
        .collect::<Vec<_>>()
        .join(" ");
    let named = FIRMWARE.iter().find(|(mark, _)| marks.contains(mark)).map(|(_, name)| *name);
    // EC2 also has machines without a hypervisor, so the CPU flag decides.
    let flags = root.field("/proc/cpuinfo", "flags");
    let flagged = flags.get().map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let is_guest = root.text("/sys/hypervisor/type").get().cloned();
    match (named, is_guest, flagged) {
        (Some(name), _, Some(true) | None) => Known::Is(Some(name.to_owned())),
        (_, Some(kind), _) if !kind.is_empty() => Known::Is(Some(kind)),
        (None, _, Some(true)) => Known::Is(Some(unnamed(root))),
        (_, _, Some(false)) => Known::Is(None),
        (None, _, None) if !marks.is_empty() => Known::Is(None),
        _ => Known::unknown("not reported by the CPU or the firmware"),
    }
}

/// Name of a hypervisor that only the CPU flag reveals.
fn unnamed(root: &Root) -> String {
    let clocks = root.text("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    let clocks = clocks.get().map_or("", String::as_str);
    match () {
        () if clocks.contains("kvm-clock") => "KVM".into(),
        () if clocks.contains("hyperv") => "Hyper-V".into(),
        () if clocks.contains("xen") => "Xen".into(),
        () => "unidentified".into(),
    }
}

fn container(root: &Root) -> Known<Option<String>> {
    let groups = root.text("/proc/self/cgroup").or(|| Known::Is(String::new()));
    let groups = groups.get().map_or("", String::as_str);
    let is = |name: &str| Known::Is(Some(name.to_owned()));
    if root.exists("/var/run/secrets/kubernetes.io") || groups.contains("kubepods") {
        return is("Kubernetes");
    }
    if root.exists("/run/.containerenv") || groups.contains("libpod") {
        return is("Podman");
    }
    if root.exists("/.dockerenv") || groups.contains("docker") {
        return is("Docker");
    }
    if groups.contains("lxc") {
        return is("LXC");
    }
    match root.text("/proc/1/sched").get().and_then(|text| text.lines().next()) {
        // In a container, the first process has another PID outside of it.
        Some(line) if line.contains("(1, ") || !line.contains('(') => Known::Is(None),
        Some(_) => is("a container"),
        None => Known::Is(None),
    }
}
