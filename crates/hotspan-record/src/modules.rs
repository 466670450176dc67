//! Files that code was mapped from: what unwinding and naming need of each, read once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hotspan_profiler::ElfSymbols;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection};

/// An ELF file.
#[derive(Debug)]
pub(crate) struct ElfModule {
    pub(crate) path: String,
    pub(crate) build_id: String,
    code: Vec<Segment>,
    sections: Sections,
    symbols: Option<ElfSymbols>,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    file_size: u64,
    address: u64,
}

type Bytes = Arc<[u8]>;

#[derive(Debug, Default)]
struct Sections {
    eh_frame: Option<(Range<u64>, Bytes)>,
    eh_frame_hdr: Option<(Range<u64>, Bytes)>,
    debug_frame: Option<Bytes>,
    text: Option<(Range<u64>, Bytes)>,
}

impl ElfModule {
    /// Reads a file. `root` is where the program's own file system is seen from here.
    fn open(root: &str, path: &str) -> Option<ElfModule> {
        let mut file = format!("{root}{path}");
        if !std::path::Path::new(&file).exists() {
            path.clone_into(&mut file);
        }
        let bytes = std::fs::read(&file).ok()?;
        let elf: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes.as_slice()).ok()?;
        let endian = elf.endian();
        // Of code only: a page at a seam of two segments is mapped for both.
        let code = elf.elf_program_headers().iter().filter(|header| {
            header.p_type(endian) == object::elf::PT_LOAD && header.p_flags(endian) & object::elf::PF_X != 0
        });
        let segments = code
            .map(|header| Segment {
                offset: header.p_offset(endian),
                file_size: header.p_filesz(endian),
                address: header.p_vaddr(endian),
            })
            .collect();
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            let data = section.data().ok().filter(|data| !data.is_empty())?;
            Some((section.address()..section.address() + section.size(), Bytes::from(data)))
        };
        let sections = Sections {
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: section(".debug_frame").map(|(_, bytes)| bytes),
            text: section(".text"),
        };
        let build_id = elf.build_id().ok().flatten().unwrap_or_default();
        let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let symbols = ElfSymbols::open(std::path::Path::new(&file), true);
        Some(ElfModule { path: path.to_owned(), build_id, code: segments, sections, symbols })
    }

    /// How far the addresses of a mapping lie from those in the file.
    pub(crate) fn bias(&self, mapped_at: u64, offset: u64) -> Option<u64> {
        // The kernel maps whole pages, so a segment may begin inside the first one.
        let segment = self
            .code
            .iter()
            .find(|segment| (segment.offset & !0xfff) <= offset && offset < segment.offset + segment.file_size)?;
        Some(mapped_at.wrapping_sub(segment.address.wrapping_add(offset).wrapping_sub(segment.offset)))
    }

    /// The module as the unwinder wants it, at a place in a process.
    pub(crate) fn for_unwinder(&self, range: Range<u64>, bias: u64) -> framehop::Module<Bytes> {
        let sections = &self.sections;
        let info = framehop::ExplicitModuleSectionInfo {
            base_svma: range.start.wrapping_sub(bias),
            text_svma: sections.text.as_ref().map(|(range, _)| range.clone()),
            text: sections.text.as_ref().map(|(_, bytes)| Arc::clone(bytes)),
            stubs_svma: None,
            stub_helper_svma: None,
            got_svma: None,
            unwind_info: None,
            eh_frame_svma: sections.eh_frame.as_ref().map(|(range, _)| range.clone()),
            eh_frame: sections.eh_frame.as_ref().map(|(_, bytes)| Arc::clone(bytes)),
            eh_frame_hdr_svma: sections.eh_frame_hdr.as_ref().map(|(range, _)| range.clone()),
            eh_frame_hdr: sections.eh_frame_hdr.as_ref().map(|(_, bytes)| Arc::clone(bytes)),
            debug_frame: sections.debug_frame.clone(),
            text_segment_svma: None,
            text_segment: None,
        };
        framehop::Module::new(self.path.clone(), range.clone(), range.start, info)
    }

    /// Where in the file the code at an address of the file lies: pprof and OTLP count so, too, and linkers may place code
    /// anywhere.
    pub(crate) fn offset_of(&self, address: u64) -> u64 {
        let of_segment = |segment: &Segment| {
            let within = address.checked_sub(segment.address)?;
            (within < segment.file_size).then_some(segment.offset.saturating_add(within))
        };
        self.code.iter().find_map(of_segment).unwrap_or(address)
    }

    /// The functions at an address of the file, innermost first.
    pub(crate) fn frames_at(&self, address: u64) -> Vec<hotspan_profiler::SourceFrame> {
        self.symbols.as_ref().map(|symbols| symbols.frames_at(address)).unwrap_or_default()
    }
}

/// All files, by where they are seen from and by path.
#[derive(Debug, Default)]
pub(crate) struct ElfModules {
    by_path: HashMap<String, Option<Arc<ElfModule>>>,
}

impl ElfModules {
    /// The file of that path, if it is one we can read.
    pub(crate) fn get(&mut self, pid: i32, path: &str) -> Option<Arc<ElfModule>> {
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        if !path.starts_with('/') || path.starts_with("//") {
            return None;
        }
        let opened = self.by_path.entry(path.to_owned());
        opened.or_insert_with(|| ElfModule::open(&format!("/proc/{pid}/root"), path).map(Arc::new)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: code of a program with one fixed place, code that the linker put a page further than the file has it, and an
    /// address in neither. Guarantee: offsets in the file for the code, the address itself for what is none.
    #[test]
    fn addresses_become_offsets() {
        let segment = |address, offset| Segment { address, offset, file_size: 0x500 };
        let module = ElfModule {
            path: "program".to_owned(),
            build_id: String::new(),
            code: vec![segment(0x40_1000, 0x1000), segment(0x50_3000, 0x2000)],
            sections: Sections::default(),
            symbols: None,
        };
        let offsets = [0x40_1234, 0x50_3234, 0x40_1500, 0x12].map(|address| module.offset_of(address));
        assert_eq!(offsets, [0x1234, 0x2234, 0x40_1500, 0x12]);
    }
}
