//! The executables and libraries loaded in this process, with what the unwinder needs of each.
//!
//! Found through the dynamic loader from the monitor thread; the signal handler only ever sees the finished list.
//! The main program's tables are read where they lie, since it is never unloaded; those of libraries are copied,
//! so that a `dlclose` cannot take them away under a running handler.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes of an unwind section.
#[derive(Debug, Clone)]
pub(crate) enum SectionBytes {
    Resident(&'static [u8]),
    Copied(Arc<[u8]>),
}

impl Deref for SectionBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            SectionBytes::Resident(bytes) => bytes,
            SectionBytes::Copied(bytes) => bytes,
        }
    }
}

/// One loaded ELF file.
#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub(crate) path: String,
    /// Addresses in this process.
    pub(crate) range: Range<u64>,
    /// Address in this process minus address in the file's own address space.
    pub(crate) bias: u64,
    /// Where the code lies in the file's own address space, and where in the file.
    pub(crate) code: (Range<u64>, u64),
    pub(crate) build_id: Option<Vec<u8>>,
    /// The program itself, rather than a library.
    pub(crate) is_main: bool,
    unwind: Option<UnwindTables>,
}

#[derive(Debug, Clone)]
struct UnwindTables {
    hdr_svma: Range<u64>,
    hdr: SectionBytes,
    eh_frame_svma: Range<u64>,
    eh_frame: SectionBytes,
}

/// How often the loader added and removed modules: unchanged means the list is unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LoaderVersion {
    adds: u64,
    subs: u64,
}

/// Asks the loader whether anything was loaded or unloaded; far cheaper than reading the list.
pub(crate) fn loader_version() -> LoaderVersion {
    let mut version = LoaderVersion::default();
    // SAFETY: the callback matches the C signature and only lives for this call, as does `version`.
    unsafe { libc::dl_iterate_phdr(Some(read_version), (&raw mut version).cast()) };
    version
}

/// Every module loaded now, in address order.
pub(crate) fn loaded_modules() -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: the callback matches the C signature and only lives for this call, as does `modules`.
    unsafe { libc::dl_iterate_phdr(Some(collect_module), (&raw mut modules).cast()) };
    modules.sort_by_key(|module| module.range.start);
    modules
}

impl Module {
    /// The module as framehop wants it.
    pub(crate) fn for_unwinder(&self) -> framehop::Module<SectionBytes> {
        let base_svma = self.range.start.wrapping_sub(self.bias);
        let sections = match &self.unwind {
            None => framehop::ExplicitModuleSectionInfo { base_svma, ..empty_sections() },
            Some(tables) => framehop::ExplicitModuleSectionInfo {
                base_svma,
                eh_frame_hdr_svma: Some(tables.hdr_svma.clone()),
                eh_frame_hdr: Some(tables.hdr.clone()),
                eh_frame_svma: Some(tables.eh_frame_svma.clone()),
                eh_frame: Some(tables.eh_frame.clone()),
                ..empty_sections()
            },
        };
        framehop::Module::new(self.path.clone(), self.range.clone(), self.range.start, sections)
    }
}

fn empty_sections() -> framehop::ExplicitModuleSectionInfo<SectionBytes> {
    framehop::ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: None,
        text: None,
        stubs_svma: None,
        stub_helper_svma: None,
        got_svma: None,
        unwind_info: None,
        eh_frame_svma: None,
        eh_frame: None,
        eh_frame_hdr_svma: None,
        eh_frame_hdr: None,
        debug_frame: None,
        text_segment_svma: None,
        text_segment: None,
    }
}

extern "C" fn read_version(info: *mut libc::dl_phdr_info, _size: libc::size_t, out: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the loader passes a valid info, and `out` is the LoaderVersion of `loader_version`.
    unsafe {
        let version = &mut *out.cast::<LoaderVersion>();
        version.adds = (*info).dlpi_adds;
        version.subs = (*info).dlpi_subs;
    }
    1
}

extern "C" fn collect_module(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    out: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader passes a valid info whose headers and name live as long as the module, which cannot be
    // unloaded during the callback; `out` is the vector of `loaded_modules`.
    unsafe {
        let info = &*info;
        let modules = &mut *out.cast::<Vec<Module>>();
        if !info.dlpi_phdr.is_null() {
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            let name = if info.dlpi_name.is_null() {
                String::new()
            } else {
                std::ffi::CStr::from_ptr(info.dlpi_name).to_string_lossy().into_owned()
            };
            // The program comes first and has no name.
            let is_main = modules.is_empty() && name.is_empty();
            modules.extend(read_module(info.dlpi_addr, headers, name, is_main));
        }
    }
    0
}

/// # Safety
/// The segments that `headers` describe must be mapped at `bias` for the duration of the call.
unsafe fn read_module(bias: u64, headers: &[libc::Elf64_Phdr], name: String, is_main: bool) -> Option<Module> {
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = bias.wrapping_add(loads().map(|header| header.p_vaddr).min()?);
    let end = bias.wrapping_add(loads().map(|header| header.p_vaddr + header.p_memsz).max()?);
    let code = loads().find(|header| header.p_flags & libc::PF_X != 0).or_else(|| loads().next())?;
    let code = (code.p_vaddr..code.p_vaddr + code.p_memsz, code.p_offset);
    // SAFETY: forwarded from the caller.
    let unwind = unsafe { read_unwind_tables(bias, headers, is_main) };
    let build_id = headers.iter().filter(|header| header.p_type == libc::PT_NOTE).find_map(|header| {
        // SAFETY: forwarded from the caller; a note segment lies inside a loaded segment.
        find_gnu_build_id(unsafe { mapped(bias.wrapping_add(header.p_vaddr), header.p_filesz) })
    });
    let path = if is_main {
        std::fs::read_link("/proc/self/exe").map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    } else {
        name
    };
    Some(Module { path, range: start..end, bias, code, build_id, is_main, unwind })
}

/// # Safety
/// `length` bytes at `address` must be mapped and readable for as long as the result is used.
unsafe fn mapped<'a>(address: u64, length: u64) -> &'a [u8] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(address as *const u8, length as usize) }
}

/// # Safety
/// As `read_module`.
unsafe fn read_unwind_tables(bias: u64, headers: &[libc::Elf64_Phdr], is_main: bool) -> Option<UnwindTables> {
    let hdr = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
    // SAFETY: forwarded from the caller; the header's segment lies inside a loaded one.
    let hdr_bytes = unsafe { mapped::<'static>(bias.wrapping_add(hdr.p_vaddr), hdr.p_filesz) };
    let eh_frame_start = eh_frame_address(hdr_bytes, hdr.p_vaddr)?;
    let segment = headers.iter().find(|header| {
        header.p_type == libc::PT_LOAD
            && header.p_vaddr <= eh_frame_start
            && eh_frame_start < header.p_vaddr + header.p_filesz
    })?;
    // The section's own size is not in memory. The segment's end bounds it, and lookups go through the header's
    // table, so what follows the section is never parsed.
    let eh_frame_end = segment.p_vaddr + segment.p_filesz;
    // SAFETY: forwarded from the caller; the range lies inside one loaded segment.
    let eh_frame =
        unsafe { mapped::<'static>(bias.wrapping_add(eh_frame_start), eh_frame_end.saturating_sub(eh_frame_start)) };
    let keep = |bytes: &'static [u8]| {
        if is_main { SectionBytes::Resident(bytes) } else { SectionBytes::Copied(Arc::from(bytes)) }
    };
    Some(UnwindTables {
        hdr_svma: hdr.p_vaddr..hdr.p_vaddr + hdr.p_filesz,
        hdr: keep(hdr_bytes),
        eh_frame_svma: eh_frame_start..eh_frame_end,
        eh_frame: keep(eh_frame),
    })
}

/// Where `.eh_frame` starts, from its search table. Only the encoding that every linker writes is read: a signed
/// 32-bit offset relative to the field itself.
fn eh_frame_address(hdr: &[u8], hdr_svma: u64) -> Option<u64> {
    const RELATIVE_I32: u8 = 0x1b;
    let (version, pointer_encoding) = (*hdr.first()?, *hdr.get(1)?);
    if version != 1 || pointer_encoding != RELATIVE_I32 {
        return None;
    }
    let offset = i32::from_le_bytes(hdr.get(4..8)?.try_into().ok()?);
    Some((hdr_svma + 4).wrapping_add_signed(i64::from(offset)))
}

/// The GNU build id in a note segment.
pub(crate) fn find_gnu_build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    const GNU_BUILD_ID: u32 = 3;
    let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    while notes.len() >= 12 {
        let name_length = word(notes, 0)? as usize;
        let value_length = word(notes, 4)? as usize;
        let kind = word(notes, 8)?;
        let value_start = 12 + name_length.next_multiple_of(4);
        let value = notes.get(value_start..value_start.checked_add(value_length)?)?;
        if kind == GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
            return Some(value.to_vec());
        }
        notes = notes.get(value_start + value_length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: this test program asks for its own modules.
    /// Guarantee: it finds itself, with unwind tables and a range that holds its own code, and the file has that code where it says.
    #[test]
    fn the_program_finds_itself() {
        let modules = loaded_modules();
        let main = modules.iter().find(|module| module.is_main).unwrap();
        let here = the_program_finds_itself as *const () as u64;
        assert!(main.range.contains(&here));
        let (code, offset) = &main.code;
        let address = here - main.bias;
        assert!(code.contains(&address));
        let file = std::fs::read(&main.path).unwrap();
        let in_file = &file[(address - code.start + offset) as usize..][..32];
        // SAFETY: the code of a function is mapped, readable and longer than this.
        assert_eq!(in_file, unsafe { mapped(here, 32) });
        assert!(main.unwind.is_some());
        assert!(main.path.contains("hotspan_profiler"), "{}", main.path);
        assert!(modules.iter().any(|module| module.path.contains("libc") && module.unwind.is_some()));
        assert_eq!(loader_version(), loader_version());
    }

    /// Scenario: note segments with another note first, with none, and cut short.
    /// Guarantee: the build id is found where there is one, and nothing is read past the end.
    #[test]
    fn build_ids_are_read_from_notes() {
        let note = |name: &[u8], kind: u32, value: &[u8]| {
            let mut bytes = Vec::new();
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(name);
            bytes.extend(value);
            bytes
        };
        let both = [note(b"GNU\0", 5, &[0; 16]), note(b"GNU\0", 3, &[9; 20])].concat();
        assert_eq!(find_gnu_build_id(&both), Some(vec![9; 20]));
        assert_eq!(find_gnu_build_id(&both[..both.len() - 1]), None);
        assert_eq!(find_gnu_build_id(&[]), None);
    }
}
