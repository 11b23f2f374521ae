//! Names of the kernel's functions, when it is this machine's kernel that was recorded.

use super::header::Header;

/// Addresses and names of the running kernel.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    /// By address.
    symbols: Vec<(u64, String)>,
    /// Where its code begins.
    text: u64,
}

impl Kernel {
    /// The running kernel's symbols, if the recording is of this machine and they may be read.
    pub(super) fn of(header: &Header) -> Option<Kernel> {
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
        // Those who may not see addresses get zeros.
        (!kernel.symbols.is_empty()).then_some(kernel)
    }

    /// Whether a recording whose kernel begins at this address is of this boot.
    pub(super) fn begins_at(&self, address: u64) -> bool {
        self.text == address
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
    fn addresses_are_named_and_hidden_ones_are_not() {
        let text = "ffff1000 T _text\nffff2000 t read\nffff3000 D table\nffff4000 T write [mod]\n";
        let kernel = Kernel::parse(text).expect("symbols");
        assert!(kernel.begins_at(0xffff_1000));
        assert_eq!(kernel.name(0xffff_2fff), Some("read"));
        assert_eq!(kernel.name(0xffff_4000), Some("write"));
        assert_eq!(kernel.name(0x1000), None);
        assert!(Kernel::parse("0000000000000000 T _text\n0 t read\n").is_none());
    }
}
