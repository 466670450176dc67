//! No body inflates beyond the limit. The first byte chooses the encoding.
#![no_main]

use bytes::Bytes;
use hotspan_formats::{Encoding, decompress};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, body)) = bytes.split_first() else { return };
    let encoding = [Encoding::Gzip, Encoding::Zstd, Encoding::Identity][usize::from(*choice) % 3];
    if let Ok(out) = decompress(encoding, Bytes::copy_from_slice(body), LIMIT) {
        assert!(out.len() <= LIMIT);
    }
});
