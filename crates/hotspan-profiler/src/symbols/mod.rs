//! From addresses to functions, outside the signal handler and off the service's threads.

pub(crate) mod build_id;
mod detached;
mod elf;

pub use elf::{ElfSymbols, SourceFrame};

use crate::sampler::modules::Module;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// Addresses whose frames are remembered (R5).
const MAX_REMEMBERED: usize = 100_000;

/// How much the profiler finds out about addresses before it sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symbols {
    /// Nothing: addresses and build ids travel, the server resolves them.
    Off,
    /// Function names from the symbol table.
    Names,
    /// Names, inlined functions, files and lines where the program carries debug information.
    #[default]
    Lines,
}

/// Looks addresses up, remembering what it found. Belongs to the export thread.
#[derive(Debug)]
pub(crate) struct Symbolizer {
    symbols: Symbols,
    files: HashMap<String, Option<ElfSymbols>>,
    hashes: HashMap<String, Option<String>>,
    remembered: HashMap<(Rc<str>, u64), Rc<[SourceFrame]>>,
}

impl Symbolizer {
    pub(crate) fn new(symbols: Symbols) -> Symbolizer {
        Symbolizer { symbols, files: HashMap::new(), hashes: HashMap::new(), remembered: HashMap::new() }
    }

    /// The functions at an address of a module, innermost first.
    pub(crate) fn frames_at(&mut self, module: &Module, address: u64) -> Rc<[SourceFrame]> {
        if self.symbols == Symbols::Off {
            return Rc::new([]);
        }
        let key: (Rc<str>, u64) = (module.path.as_str().into(), address.wrapping_sub(module.bias));
        if let Some(frames) = self.remembered.get(&key) {
            return Rc::clone(frames);
        }
        let with_lines = self.symbols == Symbols::Lines;
        let file =
            self.files.entry(module.path.clone()).or_insert_with(|| ElfSymbols::open(file_of(module), with_lines));
        let frames: Rc<[SourceFrame]> = file.as_ref().map(|file| file.frames_at(key.1)).unwrap_or_default().into();
        if self.remembered.len() >= MAX_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered.insert(key, Rc::clone(&frames));
        frames
    }

    /// The hash that names the module's file.
    pub(crate) fn htlhash(&mut self, module: &Module) -> Option<String> {
        self.hashes.entry(module.path.clone()).or_insert_with(|| build_id::htlhash(file_of(module))).clone()
    }
}

/// The program itself is read through procfs, which finds it even if its file was replaced since.
fn file_of(module: &Module) -> &Path {
    if module.is_main { Path::new("/proc/self/exe") } else { Path::new(&module.path) }
}
