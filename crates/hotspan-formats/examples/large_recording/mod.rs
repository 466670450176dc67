//! Recordings as large as one likes, from a small real one.

use std::io::{self, Read};

/// A one-chunk recording with its events repeated until the chunk has about `target` bytes.
pub(crate) fn inflated_chunk(chunk: &[u8], target: usize) -> Vec<u8> {
    const HEADER: usize = 68;
    // Metadata (type 0) and constant pools (type 1) describe the others and stay single.
    let (mut events, mut pools, mut metadata) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = HEADER;
    while at < chunk.len() {
        let mut content = at;
        let size = varint(chunk, &mut content);
        let event = &chunk[at..at + size];
        match varint(chunk, &mut content) {
            0 => metadata.extend_from_slice(event),
            1 => pools.extend_from_slice(event),
            _ => events.extend_from_slice(event),
        }
        at += size;
    }
    let mut inflated = chunk[..HEADER].to_vec();
    inflated.extend(events.repeat((target / events.len().max(1)).max(1)));
    let pools_at = inflated.len();
    inflated.extend(pools);
    let metadata_at = inflated.len();
    inflated.extend(metadata);
    for (at, value) in [(8, inflated.len()), (16, pools_at), (24, metadata_at)] {
        inflated[at..at + 8].copy_from_slice(&(value as u64).to_be_bytes());
    }
    inflated
}

/// The same chunk as if it had been recorded this many seconds later; equal chunks would be taken for a retry.
#[allow(dead_code, reason = "examples read, they do not store")]
pub(crate) fn moved_by(chunk: &[u8], seconds: u64) -> Vec<u8> {
    const START: std::ops::Range<usize> = 32..40;
    let mut moved = chunk.to_vec();
    let start = chunk[START].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    moved[START].copy_from_slice(&(start + seconds * 1_000_000_000).to_be_bytes());
    moved
}

fn varint(bytes: &[u8], at: &mut usize) -> usize {
    let (mut number, mut place) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= usize::from(byte & 0x7f) << place;
        place += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

/// The same chunk over and over, up to a length.
#[allow(dead_code, reason = "one of the examples reads from memory")]
pub(crate) struct Repeated<'c> {
    pub(crate) chunk: &'c [u8],
    pub(crate) at: usize,
    pub(crate) chunks_left: usize,
}

impl Read for Repeated<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() && self.chunks_left > 0 {
            self.chunks_left -= 1;
            self.at = 0;
        }
        let length = into.len().min(self.chunk.len() - self.at);
        into[..length].copy_from_slice(&self.chunk[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}
