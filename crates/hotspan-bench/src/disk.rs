//! How many bytes a folder takes.

use std::fs;
use std::io;
use std::path::Path;

/// Bytes of all files below a folder. A file that vanishes meanwhile, as compaction makes it, counts nothing.
pub(crate) fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(facts) if facts.is_dir() => folders.push(entry.path()),
                Ok(facts) => sum += facts.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(sum)
}
