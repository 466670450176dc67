//! Symbols that were split off a file: distributions ship system libraries without, and their names in packages of their own.

use object::Object;
use std::path::{Path, PathBuf};

/// The file in `folder` that holds the symbols of `file`, where that has lost its own.
///
/// Only names are taken from it. Lines of system libraries help few, and the debug information of one can be larger than the
/// service that is profiled.
pub(super) fn detached_file(file: &object::File<'_>, folder: &Path) -> Option<PathBuf> {
    if file.symbols().next().is_some() {
        return None;
    }
    let path = path_of(folder, file.build_id().ok()??);
    path.is_file().then_some(path)
}

/// Where the symbols of a build lie: its first byte is a folder, so that none has too many files.
pub(super) fn path_of(folder: &Path, build_id: &[u8]) -> PathBuf {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at(hex.len().min(2));
    folder.join(first).join(format!("{rest}.debug"))
}
