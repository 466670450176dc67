//! Names of code that a runtime made: `/tmp/perf-PID.map`, which Node, Java agents, Julia and others write.

/// The map of one process.
#[derive(Debug, Default)]
pub(crate) struct JitMap {
    symbols: Vec<(u64, u64, String)>,
}

/// Maps grow for ever in long-lived processes; more than this is not read.
const MAX_BYTES: u64 = 256 << 20;

impl JitMap {
    /// Reads the map of a process; empty if it wrote none.
    pub(crate) fn of(pid: i32) -> JitMap {
        let path = format!("/tmp/perf-{pid}.map");
        let is_small = std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
        let bytes = if is_small { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
        JitMap::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> JitMap {
        let symbol = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let start = u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok()?;
            let size = u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok()?;
            Some((start, start.checked_add(size)?, words.next()?.trim().to_owned()))
        };
        let mut symbols: Vec<(u64, u64, String)> = text.lines().filter_map(symbol).collect();
        // Stable, so that of two at one place the one that was written last wins.
        symbols.sort_by_key(|(start, _, _)| *start);
        JitMap { symbols }
    }

    /// The function at an address.
    pub(crate) fn name_of(&self, address: u64) -> Option<&str> {
        let index = self.symbols.partition_point(|(start, _, _)| *start <= address).checked_sub(1)?;
        let (_, end, name) = &self.symbols[index];
        (address < *end).then_some(name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a map with code that was replaced, a gap, and lines that are none.
    /// Guarantee: the latest name wins, gaps have none.
    #[test]
    fn maps_are_read() {
        let map = JitMap::parse("1000 10 old\n1000 10 LazyCompile:*order app.js:3\nnonsense\n2000 8 other\n");
        assert_eq!(map.name_of(0x100f), Some("LazyCompile:*order app.js:3"));
        assert_eq!(map.name_of(0x1010), None);
        assert_eq!(map.name_of(0x2007), Some("other"));
    }
}
