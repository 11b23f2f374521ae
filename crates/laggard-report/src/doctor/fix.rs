//! Commands that help, for the distribution and user at hand.

use laggard_core::model::host::Host;

/// What helps against a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What is better afterwards, and for how long.
    pub effect: String,
    /// What to type; none where it is not a matter of commands.
    pub commands: Vec<String>,
    /// The setting of the kernel that is changed, to keep it after a reboot.
    pub sysctl: Option<String>,
    /// The package that is installed, which may be several words.
    pub package: Option<String>,
    /// Whether it is to be done on the machine, outside the container that this is.
    pub outside: bool,
}

/// Capabilities that lift the limits of events: CAP_SYS_ADMIN and CAP_PERFMON.
const EVENT_CAPABILITIES: u64 = 1 << 21 | 1 << 38;

/// A machine and how its user acts on it.
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

/// A package, by its name in each family.
pub(super) enum Package {
    Perf,
    Valgrind,
    Compiler,
    Python,
    LibcSymbols,
    /// Of the system's Python of this version.
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

    /// The container around, if there is one.
    pub(super) fn container(&self) -> Option<&str> {
        self.host.system.container.get()?.as_deref()
    }

    /// Whether limits of events do not bind this user.
    pub(super) fn may_use_events(&self) -> bool {
        self.host.system.capabilities.get().is_some_and(|bits| bits & EVENT_CAPABILITIES != 0)
    }

    /// A setting of the kernel.
    pub(super) fn sysctl(&self, effect: &str, setting: &str) -> Fix {
        Fix {
            commands: vec![format!("{}sysctl -w {setting}", self.sudo_outside())],
            sysctl: Some(setting.to_owned()),
            outside: self.container().is_some(),
            ..self.advice(&format!("{effect}; until reboot"))
        }
    }

    /// A value for files of the kernel.
    pub(super) fn write(&self, effect: &str, value: &str, path: &str) -> Fix {
        Fix {
            commands: vec![format!("echo {value} | {}tee {path}", self.sudo_outside())],
            outside: self.container().is_some(),
            ..self.advice(&format!("{effect}; until reboot"))
        }
    }

    /// A command for the machine's file systems.
    pub(super) fn mount(&self, effect: &str, command: &str) -> Fix {
        Fix {
            commands: vec![format!("{}{command}", self.sudo)],
            ..self.advice(&format!("{effect}; until reboot"))
        }
    }

    /// Something of the shell.
    pub(super) fn shell(&self, effect: &str, command: &str) -> Fix {
        Fix {
            commands: vec![command.to_owned()],
            ..self.advice(&format!("{effect}; in this shell"))
        }
    }

    /// Something to do that is no command.
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
            // A question would swallow the commands that are pasted after it: all of these ask none.
            Family::Other => {
                return Some(self.advice(&format!("{effect}: install the package {name}")));
            }
        };
        let name = name.strip_prefix("debuginfo:").unwrap_or(&name).to_owned();
        Some(Fix {
            commands: vec![command],
            package: Some(name),
            ..self.advice(&format!("{effect}; for good"))
        })
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

    /// Settings of the kernel belong to the machine; root of a container may not be root there.
    fn sudo_outside(&self) -> &'static str {
        if self.container().is_some() { "sudo " } else { self.sudo }
    }
}

/// Whether a text can stand in a command as it is.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}
