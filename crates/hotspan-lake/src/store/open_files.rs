//! Files that stay open: a look-up asks the id index of every file for a few hundred bytes, and opening each one
//! again would cost more than all else it does.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

/// How many are kept, well below the 1,024 that a process may have open unless told otherwise.
const MOST_FILES: usize = 256;

/// Open files by their path inside the store.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    files: Mutex<HashMap<String, Arc<File>>>,
}

impl OpenFiles {
    /// The file at `target`, opened if it is not open.
    pub(super) fn get(&self, path: &str, target: &Path) -> io::Result<Arc<File>> {
        if let Some(file) = self.lock().get(path) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(target)?);
        let mut files = self.lock();
        if files.len() >= MOST_FILES {
            // Any one gives way. The least recently used would be a bad choice: look-ups ask all files in turn, so that
            // it is just the one that is asked for next.
            let any = files.keys().next().cloned();
            any.and_then(|path| files.remove(&path));
        }
        files.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    /// Closes a file that is about to be deleted, once nobody reads it any more; its space would stay taken else.
    pub(super) fn forget(&self, path: &str) {
        self.lock().remove(path);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<File>>> {
        // A cache that a panicking thread left behind is still a cache.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: more files than may stay open are read, twice in turn; then one is deleted.
    /// Guarantee: each gives its own bytes, no more than allowed stay open, and a deleted file is not found again.
    #[test]
    fn open_files_are_bounded() {
        use std::os::unix::fs::FileExt;
        let folder = tempfile::tempdir().unwrap();
        let open = OpenFiles::default();
        for round in 0..2 {
            for number in 0..MOST_FILES as u32 + 20 {
                let path = number.to_string();
                let target = folder.path().join(&path);
                if round == 0 {
                    std::fs::write(&target, number.to_le_bytes()).unwrap();
                }
                let mut bytes = [0; 4];
                open.get(&path, &target).unwrap().read_exact_at(&mut bytes, 0).unwrap();
                assert_eq!(u32::from_le_bytes(bytes), number);
                assert!(open.lock().len() <= MOST_FILES);
            }
        }
        let target = folder.path().join("7");
        open.get("7", &target).unwrap();
        std::fs::remove_file(&target).unwrap();
        open.forget("7");
        assert_eq!(open.get("7", &target).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
