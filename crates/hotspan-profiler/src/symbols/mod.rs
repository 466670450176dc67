//! From addresses to functions, outside the signal handler and off the service's threads.

pub(crate) mod build_id;
mod detached;
mod elf;
mod handed_on;

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

/// A function as uploads name it.
#[derive(Debug)]
pub(crate) struct Function {
    /// A number that no other function of the process ever has: cheaper to compare than names.
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) system_name: String,
    pub(crate) file: String,
    /// Whether it stands between who asks for memory and the sample of it.
    hands_memory_on: bool,
}

/// One function at an address, and the line in it.
#[derive(Debug, Clone)]
pub(crate) struct CodeLine {
    pub(crate) function: Rc<Function>,
    pub(crate) line: u32,
}

/// What is known about the file of a module.
#[derive(Debug, Default)]
struct KnownFile {
    /// Opened when the first of its addresses is asked for.
    symbols: Option<Option<ElfSymbols>>,
    htlhash: Option<Option<String>>,
    lines_of_address: HashMap<u64, Rc<[CodeLine]>>,
}

/// Looks addresses up, remembering what it found. Belongs to the export thread.
#[derive(Debug)]
pub(crate) struct Symbolizer {
    symbols: Symbols,
    files: HashMap<String, KnownFile>,
    /// By name, system name and file: most functions have many addresses.
    functions: HashMap<[String; 3], Rc<Function>>,
    functions_met: u64,
    remembered: usize,
}

impl Symbolizer {
    pub(crate) fn new(symbols: Symbols) -> Symbolizer {
        Symbolizer { symbols, files: HashMap::new(), functions: HashMap::new(), functions_met: 0, remembered: 0 }
    }

    /// The functions at an address of a module, innermost first.
    pub(crate) fn lines_at(&mut self, module: &Module, address: u64) -> Rc<[CodeLine]> {
        if self.symbols == Symbols::Off {
            return Rc::new([]);
        }
        let address = address.wrapping_sub(module.bias);
        let known = self.files.get(&module.path).and_then(|file| file.lines_of_address.get(&address));
        if let Some(lines) = known {
            return Rc::clone(lines);
        }
        self.look_up(module, address)
    }

    /// Where the stack of an allocation, leaf first, comes to who asked for it: how many frames to leave out, and how many of
    /// the functions that were inlined into the next.
    pub(crate) fn asker_of(&mut self, stack: &[u64], modules: &[Module]) -> (usize, usize) {
        for (depth, address) in stack.iter().enumerate() {
            let module = modules.iter().find(|module| module.range.contains(address));
            let lines = module.map_or_else(|| [].into(), |module| self.lines_at(module, *address));
            let left_out = lines.iter().take_while(|line| line.function.hands_memory_on).count();
            if left_out < lines.len() || lines.is_empty() {
                return (depth, left_out);
            }
        }
        (0, 0)
    }

    fn look_up(&mut self, module: &Module, address: u64) -> Rc<[CodeLine]> {
        if self.remembered >= MAX_REMEMBERED {
            self.files.values_mut().for_each(|file| file.lines_of_address.clear());
            self.functions.clear();
            self.remembered = 0;
        }
        let with_lines = self.symbols == Symbols::Lines;
        let file = self.files.entry(module.path.clone()).or_default();
        let symbols = file.symbols.get_or_insert_with(|| ElfSymbols::open(file_of(module), with_lines));
        let frames = symbols.as_ref().map(|symbols| symbols.frames_at(address)).unwrap_or_default();
        let (functions, met) = (&mut self.functions, &mut self.functions_met);
        let lines: Rc<[CodeLine]> = frames.into_iter().map(|frame| known_line(frame, functions, met)).collect();
        file.lines_of_address.insert(address, Rc::clone(&lines));
        self.remembered += 1;
        lines
    }

    /// The hash that names the module's file.
    pub(crate) fn htlhash(&mut self, module: &Module) -> Option<String> {
        let file = self.files.entry(module.path.clone()).or_default();
        file.htlhash.get_or_insert_with(|| build_id::htlhash(file_of(module))).clone()
    }
}

fn known_line(frame: SourceFrame, functions: &mut HashMap<[String; 3], Rc<Function>>, met: &mut u64) -> CodeLine {
    let SourceFrame { name, system_name, file, line } = frame;
    let function = functions.entry([name, system_name, file]).or_insert_with_key(|[name, system_name, file]| {
        *met += 1;
        let (name, system_name, file) = (name.clone(), system_name.clone(), file.clone());
        let hands_memory_on = handed_on::hands_memory_on(&name);
        Rc::new(Function { id: *met, name, system_name, file, hands_memory_on })
    });
    CodeLine { function: Rc::clone(function), line }
}

/// The program itself is read through procfs, which finds it even if its file was replaced since.
fn file_of(module: &Module) -> &Path {
    if module.is_main { Path::new("/proc/self/exe") } else { Path::new(&module.path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_with_many_addresses(number: u64) -> u64 {
        std::hint::black_box(number) ^ 0x5eed
    }

    /// Scenario: addresses of one function are looked up, once more, and after everything was forgotten.
    /// Guarantee: they share the function and its id while it is remembered; afterwards it has another id, never that of
    /// another function.
    #[test]
    fn addresses_share_their_function() {
        assert_ne!(a_function_with_many_addresses(7), 7);
        let modules = crate::sampler::modules::loaded_modules();
        let main = modules.iter().find(|module| module.is_main).unwrap();
        let start = a_function_with_many_addresses as *const () as u64;
        let mut symbolizer = Symbolizer::new(Symbols::Lines);
        let outermost = |symbolizer: &mut Symbolizer, address| {
            let line = symbolizer.lines_at(main, address).last().unwrap().clone();
            assert!(line.function.name.ends_with("::a_function_with_many_addresses"), "{line:?}");
            line.function
        };
        let first = outermost(&mut symbolizer, start);
        assert!(Rc::ptr_eq(&first, &outermost(&mut symbolizer, start + 1)));
        assert!(Rc::ptr_eq(&first, &outermost(&mut symbolizer, start)));
        assert_eq!(symbolizer.remembered, 2);
        symbolizer.remembered = MAX_REMEMBERED;
        let again = outermost(&mut symbolizer, start + 2);
        assert!(again.id > first.id && symbolizer.remembered == 1);
    }
}
