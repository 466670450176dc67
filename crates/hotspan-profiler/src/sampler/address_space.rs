//! What the handler must know about the process's memory, as one immutable snapshot.
//!
//! The monitor builds a new one when libraries or threads come and go, and swaps it in; handlers read whichever is
//! current without locks. An old snapshot is freed once no handler can still be reading it (see `unwinding`).

use crate::sampler::modules::{LoaderVersion, Module, SectionBytes, loaded_modules, loader_version};
use framehop::{MustNotAllocateDuringUnwind, Unwinder};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The unwinder that may run inside a handler.
pub(crate) type HandlerUnwinder = framehop::UnwinderNative<SectionBytes, MustNotAllocateDuringUnwind>;

/// A readable mapping of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MappedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The main thread's stack, which grows downward by itself.
    pub(crate) is_main_stack: bool,
}

/// An immutable view of mappings and modules.
pub(crate) struct AddressSpace {
    /// A number that no other snapshot of the process has.
    pub(crate) serial: u64,
    pub(crate) readable: Arc<[MappedRange]>,
    pub(crate) unwinder: HandlerUnwinder,
    pub(crate) modules: Arc<[Module]>,
    pub(crate) loader_version: LoaderVersion,
}

impl std::fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressSpace")
            .field("mappings", &self.readable.len())
            .field("modules", &self.modules.len())
            .finish_non_exhaustive()
    }
}

impl AddressSpace {
    /// Looks at the process as it is now.
    pub(crate) fn capture() -> AddressSpace {
        // The version is read first: a module that comes in between makes the next check differ, never the reverse.
        let loader_version = loader_version();
        let modules: Arc<[Module]> = loaded_modules().into();
        let mut unwinder = HandlerUnwinder::new();
        for module in modules.iter() {
            unwinder.add_module(module.for_unwinder());
        }
        AddressSpace { serial: next_serial(), readable: read_mappings(), unwinder, modules, loader_version }
    }

    /// The same modules with mappings as they are now: what a new thread needs.
    pub(crate) fn with_fresh_mappings(&self) -> AddressSpace {
        AddressSpace {
            serial: next_serial(),
            readable: read_mappings(),
            unwinder: self.unwinder.clone(),
            modules: Arc::clone(&self.modules),
            loader_version: self.loader_version,
        }
    }

    /// The mapping that holds `address`. A main stack that has grown since the snapshot still counts as holding it.
    pub(crate) fn mapping_of(&self, address: u64) -> Option<MappedRange> {
        const LARGEST_STACK_GROWTH: u64 = 64 << 20;
        let index = self.readable.partition_point(|range| range.end <= address);
        let range = *self.readable.get(index)?;
        let grown_into = range.is_main_stack && range.start.saturating_sub(address) < LARGEST_STACK_GROWTH;
        (range.start <= address || grown_into).then_some(range)
    }
}

fn next_serial() -> u64 {
    // From one: a place that remembers none has zero.
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    TAKEN.fetch_add(1, Ordering::Relaxed) + 1
}

fn read_mappings() -> Arc<[MappedRange]> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    parse_mappings(&text).into()
}

fn parse_mappings(text: &str) -> Vec<MappedRange> {
    let mut ranges: Vec<MappedRange> = text.lines().filter_map(parse_mapping).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// One line of procfs maps, if it is readable memory: `start-end perms offset device inode name`.
fn parse_mapping(line: &str) -> Option<MappedRange> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let is_main_stack = line.ends_with("[stack]");
    // vvar pages look readable but are not memory.
    if !permissions.starts_with('r') || line.ends_with("[vvar]") || line.ends_with("[vvar_vclock]") {
        return None;
    }
    Some(MappedRange {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        is_main_stack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0-55e0 r-xp 00000000 08:01 1 /bin/app
7000-8000 ---p 00000000 00:00 0
8000-9000 rw-p 00000000 00:00 0
7fff0000-7fff2000 rw-p 00000000 00:00 0 [stack]
7fff4000-7fff8000 r--p 00000000 00:00 0 [vvar]
";

    /// Scenario: a maps file with code, a guard page, a thread stack, the main stack and vvar.
    /// Guarantee: only readable memory is kept, and the main stack may have grown downward since.
    #[test]
    fn only_readable_memory_is_kept() {
        let space = AddressSpace { readable: parse_mappings(MAPS).into(), ..AddressSpace::capture() };
        assert_eq!(space.readable.len(), 3);
        assert_eq!(space.mapping_of(0x8800).map(|range| range.end), Some(0x9000));
        assert_eq!(space.mapping_of(0x7800), None);
        assert_eq!(space.mapping_of(0x7ffe_f000).map(|range| range.end), Some(0x7fff_2000));
        assert_eq!(space.mapping_of(0x7fff_4000), None);
    }

    /// Scenario: a local variable of this very thread.
    /// Guarantee: the live snapshot knows the mapping it lies in.
    #[test]
    fn the_own_stack_is_known() {
        let local = 0u64;
        assert!(AddressSpace::capture().mapping_of(&raw const local as u64).is_some());
    }
}
