//! Names of functions in the kernel, where it tells them.

/// The kernel's symbols, sorted by address.
#[derive(Debug, Default)]
pub(crate) struct KernelSymbols {
    symbols: Vec<(u64, String)>,
}

impl KernelSymbols {
    /// Reads them; empty where `kernel.kptr_restrict` hides addresses.
    pub(crate) fn read() -> KernelSymbols {
        KernelSymbols::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn parse(text: &str) -> KernelSymbols {
        let symbol = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            is_code.then_some((address, words.next()?.to_owned()))
        };
        let mut symbols: Vec<(u64, String)> = text.lines().filter_map(symbol).collect();
        symbols.sort();
        KernelSymbols { symbols }
    }

    /// The function at an address.
    pub(crate) fn name_of(&self, address: u64) -> Option<&str> {
        let index = self.symbols.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        Some(&self.symbols[index].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: symbols in any order, data among them, and hidden addresses.
    /// Guarantee: an address gets the function it lies in, and none below the first.
    #[test]
    fn addresses_find_their_function() {
        let symbols = KernelSymbols::parse("ffff20 T second\nffff10 t first\nffff18 d data\n0 T hidden\n");
        assert_eq!(symbols.name_of(0xffff1f), Some("first"));
        assert_eq!(symbols.name_of(0xffff20), Some("second"));
        assert_eq!(symbols.name_of(0xffff0f), None);
    }
}
