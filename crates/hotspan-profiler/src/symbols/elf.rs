//! Names and lines out of one ELF file: its debug information where it has some, its symbol table otherwise, or the one that was
//! split off it.

use super::detached::detached_file;
use addr2line::gimli::{self, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSymbol};
use std::os::fd::AsRawFd;
use std::path::Path;

type Reader = EndianSlice<'static, RunTimeEndian>;

/// Debug sections larger than this are left alone: they would cost the service memory it may not have.
const MAX_DEBUG_BYTES: u64 = 256 << 20;

/// Where distributions keep the symbols of what they strip.
const DETACHED_SYMBOLS: &str = "/usr/lib/debug/.build-id";

/// One function (or inlined function) at an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceFrame {
    /// As the symbol table spells it.
    pub system_name: String,
    /// As a person reads it.
    pub name: String,
    /// The source file; empty if it is not known.
    pub file: String,
    /// The line in it; zero if it is not known.
    pub line: u32,
}

struct Symbol {
    start: u64,
    end: u64,
    name: &'static str,
}

/// Names and lines of one ELF file, which stays mapped for good.
pub struct ElfSymbols {
    symbols: Vec<Symbol>,
    lines: Option<addr2line::Context<Reader>>,
    /// Where code starts: functions that the linker threw away keep debug information at addresses near zero.
    code_start: u64,
}

impl std::fmt::Debug for ElfSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ElfSymbols")
            .field("symbols", &self.symbols.len())
            .field("lines", &self.lines.is_some())
            .finish()
    }
}

impl ElfSymbols {
    /// Reads a file's tables; `None` if it is not an ELF file or has no names at all.
    pub fn open(path: &Path, with_lines: bool) -> Option<ElfSymbols> {
        ElfSymbols::open_beside(path, Path::new(DETACHED_SYMBOLS), with_lines)
    }

    fn open_beside(path: &Path, detached: &Path, with_lines: bool) -> Option<ElfSymbols> {
        let bytes = map_file(path)?;
        let file = object::File::parse(bytes).ok()?;
        let detached = detached_file(&file, detached)
            .and_then(|path| map_file(&path))
            .and_then(|bytes| object::File::parse(bytes).ok());
        let mut symbols: Vec<Symbol> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .chain(detached.iter().flat_map(|detached| detached.symbols()))
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.address() != 0)
            .filter_map(|symbol| {
                let start = symbol.address();
                Some(Symbol { start, end: start + symbol.size(), name: symbol.name().ok()? })
            })
            .collect();
        symbols.sort_by_key(|symbol| (symbol.start, std::cmp::Reverse(symbol.end)));
        symbols.dedup_by_key(|symbol| symbol.start);
        let lines = if with_lines { open_lines(&file) } else { None };
        let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let code_start = code.map(|section| section.address()).min().unwrap_or(0);
        (!symbols.is_empty() || lines.is_some()).then_some(ElfSymbols { symbols, lines, code_start })
    }

    /// The functions at an address of the file, innermost first. Empty if nothing is known.
    pub fn frames_at(&self, address: u64) -> Vec<SourceFrame> {
        if address < self.code_start {
            return Vec::new();
        }
        let symbol = self.symbol_at(address);
        let mut frames = self.frames_with_lines(address);
        match (frames.last_mut(), symbol) {
            // Lines are known, but not which of them were inlined: the symbol table knows the function.
            (Some(outermost), Some(symbol)) if outermost.system_name.is_empty() => {
                let (file, line) = self.own_place(symbol.start, address).unwrap_or_default();
                *outermost = SourceFrame { file, line, ..named(symbol.name) };
            }
            (None, Some(symbol)) => frames.push(named(symbol.name)),
            _ => {}
        }
        frames.retain(|frame| !frame.name.is_empty());
        frames
    }

    fn symbol_at(&self, address: u64) -> Option<&Symbol> {
        let index = self.symbols.partition_point(|symbol| symbol.start <= address).checked_sub(1)?;
        let symbol = &self.symbols[index];
        // Hand-written assembly often has no size; it then reaches to the next symbol.
        (address < symbol.end || symbol.end == symbol.start).then_some(symbol)
    }

    /// The last line before an address that is the function's own, where what was inlined into it is not told apart (split
    /// debug information that was left behind). A function begins in its own file; lines of other files are inlined ones.
    fn own_place(&self, start: u64, address: u64) -> Option<(String, u32)> {
        let rows = self.lines.as_ref()?.find_location_range(start, address + 1).ok()?;
        let mut rows =
            rows.filter_map(|(_, _, location)| Some((location.file?, location.line.filter(|line| *line > 0)?)));
        let first = rows.next()?;
        let (file, line) = rows.filter(|(file, _)| *file == first.0).last().unwrap_or(first);
        Some((file.to_owned(), line))
    }

    fn frames_with_lines(&self, address: u64) -> Vec<SourceFrame> {
        let mut found = Vec::new();
        let Some(lines) = &self.lines else { return found };
        let Ok(mut frames) = lines.find_frames(address).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let system_name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let mut described = system_name.map(|name| named(&name)).unwrap_or_default();
            if let Some(location) = frame.location {
                described.file = location.file.unwrap_or_default().to_owned();
                described.line = location.line.unwrap_or_default();
            }
            found.push(described);
        }
        found
    }
}

fn named(system_name: &str) -> SourceFrame {
    SourceFrame { name: demangled(system_name), system_name: system_name.to_owned(), ..SourceFrame::default() }
}

/// A readable name, without the hash that only tells compilations apart.
fn demangled(name: &str) -> String {
    // `#` leaves the hash out.
    format!("{:#}", rustc_demangle::demangle(name))
}

fn open_lines(file: &object::File<'static>) -> Option<addr2line::Context<Reader>> {
    let size: u64 = file
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug_")))
        .map(|s| s.size())
        .sum();
    if size == 0 || size > MAX_DEBUG_BYTES {
        return None;
    }
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let load = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
        let section = file.section_by_name(id.name());
        // Compressed sections are not unpacked here: the server can do that with the uploaded file.
        let is_plain = |section: &object::Section<'static, '_>| {
            section.compressed_file_range().is_ok_and(|range| range.format == object::CompressionFormat::None)
        };
        let data = section.filter(is_plain).and_then(|section| section.data().ok()).unwrap_or(&[]);
        Ok(EndianSlice::new(data, endian))
    };
    let dwarf = gimli::Dwarf::load(load).ok()?;
    addr2line::Context::from_dwarf(dwarf).ok()
}

/// Maps a file for good: modules are few, and only the pages that are looked at take memory.
fn map_file(path: &Path) -> Option<&'static [u8]> {
    let file = std::fs::File::open(path).ok()?;
    let length = usize::try_from(file.metadata().ok()?.len()).ok().filter(|length| *length > 0)?;
    // SAFETY: a private read-only mapping of a program, a library or its symbols, which package managers and linkers replace
    // instead of writing into them; it is never unmapped, hence 'static.
    unsafe {
        let mapping = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        (mapping != libc::MAP_FAILED).then(|| std::slice::from_raw_parts(mapping.cast::<u8>(), length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain arithmetic: its first instruction belongs to its own line, not to something inlined.
    #[inline(never)]
    fn a_function_to_find(number: u64) -> u64 {
        number ^ 0x5eed_f00d
    }

    /// Hardly anything of its own: what it does is inlined, from another file.
    #[inline(never)]
    fn a_function_of_inlined_code(number: u64) -> u64 {
        let started = crate::sampler::clock::ticks();
        started ^ number
    }

    /// Scenario: every address of a function into which code of another file was inlined is looked up.
    /// Guarantee: whether debug information tells inlined code apart or not, the function's file and line are its own.
    #[test]
    fn a_function_keeps_its_own_file() {
        assert_ne!(a_function_of_inlined_code(std::hint::black_box(7)), 0);
        let elf = ElfSymbols::open(Path::new("/proc/self/exe"), true).unwrap();
        let modules = crate::sampler::modules::loaded_modules();
        let main = modules.iter().find(|module| module.is_main).unwrap();
        let start = a_function_of_inlined_code as *const () as u64 - main.bias;
        let end = elf.symbol_at(start).unwrap().end;
        assert!(end > start);
        let mut inlined = 0;
        for address in start..end {
            let outermost = elf.frames_at(address).pop().unwrap();
            assert!(outermost.name.ends_with("::a_function_of_inlined_code"), "{outermost:?}");
            assert!(outermost.file.ends_with("elf.rs"), "{address:#x}: {outermost:?}");
            let lines = elf.lines.as_ref().unwrap();
            let row = lines.find_location(address).unwrap().and_then(|location| location.file);
            inlined += usize::from(row.is_some_and(|file| file.ends_with("clock.rs")));
        }
        assert!(inlined > 0, "nothing was inlined, so nothing was proved");
    }

    /// Scenario: a copy of this test program without its symbols, and a folder that has them by the build id; another build's.
    /// Guarantee: names come from the folder, and only for the file that they were split off.
    #[test]
    fn names_that_were_split_off_are_found() {
        let (folder, program) = (tempfile::tempdir().unwrap(), std::env::current_exe().unwrap());
        let (stripped, of_others) = (folder.path().join("stripped"), folder.path().join("of_others"));
        let strip = std::process::Command::new("strip").arg("-o").arg(&stripped).arg(&program).status();
        assert!(strip.unwrap().success());
        let whole = std::fs::read(&program).unwrap();
        let build_id = object::File::parse(&*whole).unwrap().build_id().unwrap().unwrap().to_vec();
        let place = crate::symbols::detached::path_of(folder.path(), &build_id);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, &whole).unwrap();
        let modules = crate::sampler::modules::loaded_modules();
        let address =
            a_function_to_find as *const () as u64 - modules.iter().find(|module| module.is_main).unwrap().bias;
        let name_beside = |symbols: &Path| {
            let frames = ElfSymbols::open_beside(&stripped, symbols, true)?.frames_at(address);
            frames.first().map(|frame| frame.name.clone())
        };
        assert!(name_beside(folder.path()).unwrap().ends_with("elf::tests::a_function_to_find"));
        assert_eq!(name_beside(&of_others), None);
        std::fs::write(&place, std::fs::read(&stripped).unwrap()).unwrap();
        assert_eq!(name_beside(folder.path()), None);
    }

    /// Scenario: an address inside a function of this test program is looked up.
    /// Guarantee: its readable name is found, without hash, and with its file where there is debug information.
    #[test]
    fn a_function_is_named() {
        assert_ne!(a_function_to_find(std::hint::black_box(7)), 7);
        let elf = ElfSymbols::open(Path::new("/proc/self/exe"), true).unwrap();
        let modules = crate::sampler::modules::loaded_modules();
        let main = modules.iter().find(|module| module.is_main).unwrap();
        let frames = elf.frames_at(a_function_to_find as *const () as u64 - main.bias);
        let outermost = frames.last().unwrap();
        assert!(outermost.name.ends_with("elf::tests::a_function_to_find"), "{outermost:?}");
        assert!(outermost.file.ends_with("elf.rs"), "{outermost:?}");
        assert!(elf.frames_at(1).is_empty());
    }
}
