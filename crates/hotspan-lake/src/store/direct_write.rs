//! Writing past the page cache.
//!
//! A segment of level 0 is on the way to every acknowledgement, and nobody reads its file before it is compacted: its rows stay
//! in memory. Through the page cache, each of its bytes would be copied into memory that is first taken from elsewhere, which
//! costs several times what handing it to the device does.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Devices want addresses, lengths and places in a file to be multiples of their block, of which this is the largest.
const ALIGNMENT: usize = 4096;
/// What is handed over at once: small enough that it is still in the processor's cache.
const CHUNK_BYTES: usize = 1 << 20;
/// Less than this is not worth a second look at the file.
const WORTHWHILE_BYTES: usize = 128 << 10;

/// Fills an empty file, and says whether it did: where it is not worthwhile, or the file system has no way past the page cache,
/// the file is still empty. What is written is as durable as after any other write: it needs to be synced.
pub(super) fn fill(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    if bytes.len() < WORTHWHILE_BYTES {
        return Ok(false);
    }
    let is_unsupported = |error: &io::Error| matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported);
    let file = match OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path) {
        Err(error) if is_unsupported(&error) => return Ok(false),
        opened => opened?,
    };
    match write_in_chunks(&file, bytes) {
        Err(error) if is_unsupported(&error) => file.set_len(0).map(|()| false),
        written => written.map(|()| true),
    }
}

fn write_in_chunks(file: &File, bytes: &[u8]) -> io::Result<()> {
    let mut memory = vec![0; CHUNK_BYTES + ALIGNMENT];
    let aligned = memory.as_ptr().align_offset(ALIGNMENT);
    let buffer = &mut memory[aligned..aligned + CHUNK_BYTES];
    for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        let padded = chunk.len().next_multiple_of(ALIGNMENT);
        buffer[..chunk.len()].copy_from_slice(chunk);
        buffer[chunk.len()..padded].fill(0);
        file.write_all_at(&buffer[..padded], (number * CHUNK_BYTES) as u64)?;
    }
    // Without what the last block was filled up with.
    file.set_len(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: contents around the sizes of a block and a chunk, in an empty file.
    /// Guarantee: the file holds exactly them, or is still empty and the caller is told.
    #[test]
    fn files_hold_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..3 * CHUNK_BYTES + 5).map(|at| (at * 31 + at / 251) as u8).collect();
        for length in
            [0, WORTHWHILE_BYTES - 1, WORTHWHILE_BYTES, WORTHWHILE_BYTES + 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 5]
        {
            let path = folder.path().join(length.to_string());
            File::create(&path).unwrap();
            let filled = fill(&path, &content[..length]).unwrap();
            let expected = if filled { &content[..length] } else { &[] };
            assert!(std::fs::read(&path).unwrap() == expected, "{length} bytes");
            assert!(!filled || length >= WORTHWHILE_BYTES);
        }
    }
}
