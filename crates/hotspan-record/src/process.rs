//! The processes that are recorded: what code they have mapped where, and how to walk their stacks.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use framehop::Unwinder as _;

use crate::event::Stack;
use crate::modules::{ElfModule, ElfModules};
use crate::registers::{Cache, Unwinder};

/// An address, and the file it lies in if there is one.
#[derive(Debug, Clone)]
pub(crate) struct CodeAddress {
    pub(crate) module: Option<Arc<ElfModule>>,
    /// In the file's own addresses where there is one, else as it is in the process.
    pub(crate) address: u64,
}

#[derive(Clone)]
struct Mapping {
    range: Range<u64>,
    module: Arc<ElfModule>,
    bias: u64,
}

/// One address space.
pub(crate) struct Process {
    mappings: Vec<Mapping>,
    unwinder: Unwinder<Arc<[u8]>>,
    cache: Cache,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("mappings", &self.mappings.len()).finish_non_exhaustive()
    }
}

impl Process {
    pub(crate) fn new() -> Process {
        Process { mappings: Vec::new(), unwinder: Unwinder::new(), cache: Cache::new() }
    }

    /// A process that has just been forked off this one.
    pub(crate) fn forked(&self) -> Process {
        let mut child = Process::new();
        self.mappings.iter().cloned().for_each(|mapping| child.add(mapping));
        child
    }

    /// Code was mapped at a place, in the stead of what was there.
    pub(crate) fn map(&mut self, range: Range<u64>, offset: u64, module: Option<Arc<ElfModule>>) {
        let (replaced, kept) = std::mem::take(&mut self.mappings)
            .into_iter()
            .partition(|mapping| mapping.range.start < range.end && range.start < mapping.range.end);
        self.mappings = kept;
        let replaced: Vec<Mapping> = replaced;
        replaced.iter().for_each(|mapping| self.unwinder.remove_module(mapping.range.start));
        if let Some(module) = module
            && let Some(bias) = module.bias(range.start, offset)
        {
            self.add(Mapping { range, module, bias });
        }
    }

    fn add(&mut self, mapping: Mapping) {
        self.unwinder.add_module(mapping.module.for_unwinder(mapping.range.clone(), mapping.bias));
        let at = self.mappings.partition_point(|other| other.range.start < mapping.range.start);
        self.mappings.insert(at, mapping);
    }

    /// What lies at an address.
    pub(crate) fn locate(&self, address: u64) -> CodeAddress {
        let index = self.mappings.partition_point(|mapping| mapping.range.start <= address).checked_sub(1);
        let mapping = index.map(|index| &self.mappings[index]).filter(|mapping| mapping.range.contains(&address));
        match mapping {
            Some(mapping) => {
                CodeAddress { module: Some(Arc::clone(&mapping.module)), address: address.wrapping_sub(mapping.bias) }
            }
            None => CodeAddress { module: None, address },
        }
    }

    /// The addresses of a stack, innermost first. Return addresses are moved into the call they return from. The
    /// second value says whether the stack was deeper.
    pub(crate) fn unwind(&mut self, stack: &Stack, max_depth: usize) -> (Vec<u64>, bool) {
        let bottom = stack.registers.sp;
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(bottom).ok_or(())?).map_err(drop)?;
            let bytes = stack.bytes.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(drop)?))
        };
        let registers = stack.registers.for_unwinder();
        let mut frames = self.unwinder.iter_frames(stack.registers.pc, registers, &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            if addresses.len() == max_depth {
                return (addresses, true);
            }
            addresses.push(frame.address_for_lookup());
        }
        (addresses, false)
    }
}

/// Every process, by its number.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    by_pid: HashMap<i32, Process>,
    modules: ElfModules,
}

impl Processes {
    pub(crate) fn get(&mut self, pid: i32) -> &mut Process {
        self.by_pid.entry(pid).or_insert_with(Process::new)
    }

    pub(crate) fn fork(&mut self, pid: i32, parent: i32) {
        if pid != parent
            && let Some(forked) = self.by_pid.get(&parent).map(Process::forked)
        {
            self.by_pid.insert(pid, forked);
        }
    }

    /// The process runs another program: its old code is gone.
    pub(crate) fn execute(&mut self, pid: i32) {
        self.by_pid.insert(pid, Process::new());
    }

    pub(crate) fn map(&mut self, pid: i32, range: Range<u64>, offset: u64, path: &str) {
        let module = self.modules.get(pid, path);
        self.get(pid).map(range, offset, module);
    }

    pub(crate) fn forget(&mut self, pid: i32) {
        self.by_pid.remove(&pid);
    }

    /// Reads what a running process has mapped already.
    pub(crate) fn read_maps(&mut self, pid: i32) -> std::io::Result<()> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        for line in text.lines() {
            if let Some((range, offset, path)) = parse_map(line) {
                self.map(pid, range, offset, path);
            }
        }
        Ok(())
    }
}

/// A line of `maps` that maps code of a file.
fn parse_map(line: &str) -> Option<(Range<u64>, u64, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    let is_code = words.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2)?.trim_start();
    (is_code && path.starts_with('/')).then_some((range, offset, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: lines of procfs: code of a file with a blank in its name, data, and memory without a file.
    /// Guarantee: only the code is taken, with its whole path.
    #[test]
    fn maps_are_read() {
        let line = "7f00-8f00 r-xp 00001000 fd:00 123                 /opt/my program";
        assert_eq!(parse_map(line), Some((0x7f00..0x8f00, 0x1000, "/opt/my program")));
        assert_eq!(parse_map("7f00-8f00 r--p 00001000 fd:00 123    /lib/x.so"), None);
        assert_eq!(parse_map("7f00-8f00 r-xp 00000000 00:00 0      [vdso]"), None);
        assert_eq!(parse_map("7f00-8f00 rwxp 00000000 00:00 0"), None);
    }
}
