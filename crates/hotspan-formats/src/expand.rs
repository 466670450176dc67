//! Files as they lie on disk: plain, gzip or zstd.

use std::borrow::Cow;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::compression::{DecompressError, Encoding, decompress_slice};
use crate::file_error::{Fault, FileError, Result};
use crate::limits::Limits;

/// What a byte of a compressed file is.
const COUNTED: &str = "(bytes are counted once decompressed)";

/// The bytes themselves, or what they expand to if they are compressed.
pub fn expanded<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>> {
    let (encoding, format) = match Encoding::from_magic(bytes) {
        Encoding::Identity => return Ok(Cow::Borrowed(bytes)),
        Encoding::Gzip => (Encoding::Gzip, "gzip"),
        Encoding::Zstd => (Encoding::Zstd, "zstd"),
    };
    match decompress_slice(encoding, bytes, limits.max_bytes) {
        Ok(plain) => Ok(Cow::Owned(plain)),
        Err(DecompressError::TooLarge { limit }) => {
            Err(FileError::too_large(format, limit, "decompressed bytes", limit as u64))
        }
        Err(DecompressError::Corrupt { reason, decompressed, .. }) => {
            let expected = format!("intact compressed data {COUNTED}");
            Err(FileError { fault: Fault::Malformed, ..FileError::malformed(format, decompressed, expected, reason) })
        }
    }
}

/// Compresses with gzip, fast rather than small.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), Compression::new(4));
    // Writing into a Vec can't fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
