//! Fixes as commands for the distribution and the user.

use laggard_core::model::host::Host;

/// Fix for a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What the fix does and how long it lasts.
    pub effect: String,
    /// Shell commands; empty if `effect` is the advice itself.
    pub commands: Vec<String>,
    /// The kernel setting, for `sysctl.d`.
    pub sysctl: Option<String>,
    /// The packages to install, separated by spaces.
    pub package: Option<String>,
    /// Whether to run the commands on the host, outside this container.
    pub outside: bool,
}

/// Capabilities that bypass `perf_event_paranoid`: CAP_SYS_ADMIN and CAP_PERFMON.
const EVENT_CAPABILITIES: u64 = 1 << 21 | 1 << 38;

/// A machine and how its user runs commands on it.
pub(super) struct Site<'a> {
    pub(super) host: &'a Host,
    /// Empty for root.
    sudo: &'static str,
    family: Family,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Debian,
    Ubuntu,
    Fedora,
    Suse,
    Arch,
    Alpine,
    Other,
}

/// A package whose name depends on the distribution.
pub(super) enum Package {
    Perf,
    Valgrind,
    Compiler,
    Python,
    LibcSymbols,
    /// Debug symbols of the distribution's Python of this version.
    PythonSymbols(u32, u32),
}

impl Site<'_> {
    pub(super) fn of(host: &Host) -> Site<'_> {
        let distribution = host.system.distribution.get();
        let names = distribution.into_iter().flat_map(|found| {
            std::iter::once(found.id.as_str()).chain(found.like.iter().map(String::as_str))
        });
        let family = names.map(|name| match name {
            "ubuntu" => Family::Ubuntu,
            "debian" => Family::Debian,
            "fedora" | "rhel" | "centos" | "amzn" => Family::Fedora,
            "suse" | "opensuse" | "opensuse-leap" | "opensuse-tumbleweed" | "sles" => Family::Suse,
            "arch" => Family::Arch,
            "alpine" => Family::Alpine,
            _ => Family::Other,
        });
        let family = family.into_iter().find(|family| *family != Family::Other);
        let sudo = if host.system.root { "" } else { "sudo " };
        Site { host, sudo, family: family.unwrap_or(Family::Other) }
    }

    pub(super) fn is_linux(&self) -> bool {
        self.host.system.os == "linux"
    }

    /// The kind of container, if any.
    pub(super) fn container(&self) -> Option<&str> {
        self.host.system.container.get()?.as_deref()
    }

    /// Whether this user may open any perf event.
    pub(super) fn may_use_events(&self) -> bool {
        self.host.system.capabilities.get().is_some_and(|bits| bits & EVENT_CAPABILITIES != 0)
    }

    /// A kernel setting.
    pub(super) fn sysctl(&self, effect: &str, setting: &str) -> Fix {
        Fix {
            commands: vec![format!("{}sysctl -w {setting}", self.sudo_outside())],
            sysctl: Some(setting.to_owned()),
            outside: self.container().is_some(),
            ..self.advice(&format!("{effect} (until reboot)"))
        }
    }

    /// A value to write to files in `/sys`.
    pub(super) fn write(&self, effect: &str, value: &str, path: &str) -> Fix {
        Fix {
            commands: vec![format!("echo {value} | {}tee {path}", self.sudo_outside())],
            outside: self.container().is_some(),
            ..self.advice(&format!("{effect} (until reboot)"))
        }
    }

    /// A command that changes a file system.
    pub(super) fn mount(&self, effect: &str, command: &str) -> Fix {
        Fix {
            commands: vec![format!("{}{command}", self.sudo)],
            ..self.advice(&format!("{effect} (until reboot)"))
        }
    }

    /// A command that affects the current shell.
    pub(super) fn shell(&self, effect: &str, command: &str) -> Fix {
        Fix {
            commands: vec![command.to_owned()],
            ..self.advice(&format!("{effect} (this shell only)"))
        }
    }

    /// Advice without a command.
    pub(super) fn advice(&self, effect: &str) -> Fix {
        Fix {
            effect: effect.to_owned(),
            commands: vec![],
            sysctl: None,
            package: None,
            outside: false,
        }
    }

    /// A package to install.
    pub(super) fn install(&self, effect: &str, package: &Package) -> Option<Fix> {
        let name = self.name(package)?;
        let command = match self.family {
            Family::Debian | Family::Ubuntu => format!("{}apt-get install -y {name}", self.sudo),
            Family::Fedora if name.starts_with("debuginfo:") => {
                format!("{}dnf debuginfo-install -y {}", self.sudo, &name["debuginfo:".len()..])
            }
            Family::Fedora => format!("{}dnf install -y {name}", self.sudo),
            Family::Suse => format!("{}zypper --non-interactive install {name}", self.sudo),
            Family::Arch => format!("{}pacman -S --noconfirm {name}", self.sudo),
            Family::Alpine => format!("{}apk add {name}", self.sudo),
            // No command prompts: a prompt would consume the commands pasted after it.
            Family::Other => {
                return Some(self.advice(&format!("{effect} (package {name})")));
            }
        };
        let name = name.strip_prefix("debuginfo:").unwrap_or(&name).to_owned();
        Some(Fix { commands: vec![command], package: Some(name), ..self.advice(effect) })
    }

    fn name(&self, package: &Package) -> Option<String> {
        use Family::{Alpine, Arch, Debian, Fedora, Suse, Ubuntu};
        let kernel = self.host.system.kernel.get().map_or("", String::as_str);
        let name = match (package, self.family) {
            (Package::Perf, Debian) => "linux-perf",
            (Package::Perf, Ubuntu) if is_plain(kernel) => {
                return Some(format!("linux-tools-common linux-tools-{kernel}"));
            }
            (Package::Perf, _) => "perf",
            (Package::Valgrind, _) => "valgrind",
            (Package::Compiler, Debian | Ubuntu) => "build-essential",
            (Package::Compiler, Arch) => "base-devel",
            (Package::Compiler, Alpine) => "build-base",
            (Package::Compiler, _) => "gcc",
            (Package::Python, Arch) => "python",
            (Package::Python, _) => "python3",
            (Package::LibcSymbols, Debian | Ubuntu) => "libc6-dbg",
            (Package::LibcSymbols, Fedora) => "debuginfo:glibc",
            (Package::LibcSymbols, Suse) => "glibc-debuginfo",
            (Package::LibcSymbols, Alpine) => "musl-dbg",
            (Package::PythonSymbols(major, minor), Debian | Ubuntu) => {
                return Some(format!("python{major}.{minor}-dbg"));
            }
            (Package::PythonSymbols(..), Fedora) => "debuginfo:python3",
            _ => return None,
        };
        Some(name.to_owned())
    }

    /// `sudo` for commands on the host: root in a container may not be root there.
    fn sudo_outside(&self) -> &'static str {
        if self.container().is_some() { "sudo " } else { self.sudo }
    }
}

/// Whether a text needs no quoting in a command.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}
