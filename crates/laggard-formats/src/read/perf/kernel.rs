//! Kernel symbols, if the recording is from the running kernel.

use super::header::Header;

/// Symbols of the running kernel.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    /// Sorted by address.
    symbols: Vec<(u64, String)>,
    /// Start of the kernel text.
    text: u64,
}

/// Symbols of the running kernel, loaded for the first kernel frame: generating them takes the
/// kernel longer than reading a small recording.
#[derive(Debug, Default)]
pub(super) struct LazyKernel {
    /// Start of the recorded kernel's text, if known.
    pub(super) begins_at: Option<u64>,
    kernel: Option<Option<Kernel>>,
}

impl LazyKernel {
    pub(super) fn get(&mut self, header: &Header) -> Option<&Kernel> {
        let begins_at = self.begins_at;
        // After another boot, addresses differ.
        let is_this_boot = |kernel: &Kernel| begins_at.is_none_or(|at| kernel.text == at);
        self.kernel.get_or_insert_with(|| Kernel::of(header).filter(is_this_boot)).as_ref()
    }
}

impl Kernel {
    /// Symbols of the running kernel, if the recording is from this machine and they are readable.
    fn of(header: &Header) -> Option<Kernel> {
        let is = |path: &str, text: &str| {
            !text.is_empty() && std::fs::read_to_string(path).is_ok_and(|own| own.trim() == text)
        };
        if !is("/proc/sys/kernel/hostname", &header.host)
            || !is("/proc/sys/kernel/osrelease", &header.kernel)
        {
            return None;
        }
        Kernel::parse(&std::fs::read_to_string("/proc/kallsyms").ok()?)
    }

    fn parse(text: &str) -> Option<Kernel> {
        let mut kernel = Kernel::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if name == "_text" || (name == "_stext" && kernel.text == 0) {
                kernel.text = address;
            }
            if matches!(kind, "t" | "T" | "w" | "W") && address != 0 {
                kernel.symbols.push((address, name.to_owned()));
            }
        }
        kernel.symbols.sort_by_key(|(address, _)| *address);
        // Unprivileged users see zeros instead of addresses.
        (!kernel.symbols.is_empty()).then_some(kernel)
    }

    /// The function at an address.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let after = self.symbols.partition_point(|(start, _)| *start <= address);
        Some(&self.symbols.get(after.checked_sub(1)?)?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolizes_addresses_unless_hidden() {
        let text = "ffff1000 T _text\nffff2000 t read\nffff3000 D table\nffff4000 T write [mod]\n";
        let kernel = Kernel::parse(text).expect("symbols");
        assert_eq!(kernel.text, 0xffff_1000);
        assert_eq!(kernel.name(0xffff_2fff), Some("read"));
        assert_eq!(kernel.name(0xffff_4000), Some("write"));
        assert_eq!(kernel.name(0x1000), None);
        assert!(Kernel::parse("0000000000000000 T _text\n0 t read\n").is_none());
    }
}
