//! LZ4 frames (one block after another, each on its own) straight from the buffers that hold the bytes.
//!
//! Frame encoders take a stream: they copy what they are given into a block of theirs, and grow what they write to. A
//! flush has its bytes in few large buffers already, and writing is on the way to every acknowledgement.

use arrow::buffer::{Buffer, MutableBuffer};
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use xxhash_rust::xxh32::xxh32;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Version 1, blocks on their own, and the length of the content in the header.
const FLAGS: u8 = 0b0110_1000;
/// Blocks of 256 KiB at most: what is made of one stays in the cache until it is copied to its place.
const BLOCK_SIZE_CODE: u8 = 5 << 4;
const BLOCK_BYTES: usize = 256 << 10;
/// Magic number, flags, size of blocks, length of the content, checksum of the header.
const HEADER_BYTES: usize = 4 + 1 + 1 + 8 + 1;
/// Marks a block that is stored as it is.
const STORED: u32 = 1 << 31;
/// No byte of a block becomes more than this many, so that a wrong length can't ask for any memory.
const MOST_BYTES_FOR_ONE: usize = 255;

/// Appends the frame of some parts, one after another.
pub(super) fn compress(parts: &[Buffer], frame: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    frame.extend_from_slice(&MAGIC);
    let header = header(length as u64);
    frame.extend_from_slice(&header);
    frame.push(header_checksum(&header));
    let mut blocks =
        BlockWriter { frame, table: CompressTable::large(), compressed: vec![0; get_maximum_output_size(BLOCK_BYTES)] };
    // Small parts share a block.
    let mut gathered: Vec<u8> = Vec::new();
    for part in parts {
        if gathered.len() + part.len() > BLOCK_BYTES {
            blocks.write(&gathered);
            gathered.clear();
        }
        match part.len() {
            0..BLOCK_BYTES => gathered.extend_from_slice(part),
            _ => part.chunks(BLOCK_BYTES).for_each(|chunk| blocks.write(chunk)),
        }
    }
    blocks.write(&gathered);
    frame.extend_from_slice(&0u32.to_le_bytes());
}

struct BlockWriter<'f> {
    frame: &'f mut Vec<u8>,
    table: CompressTable,
    compressed: Vec<u8>,
}

impl BlockWriter<'_> {
    fn write(&mut self, content: &[u8]) {
        if content.is_empty() {
            return;
        }
        let (mark, block) = match compress_into_with_table(content, &mut self.compressed, &mut self.table) {
            Ok(length) if length < content.len() => (0, &self.compressed[..length]),
            _ => (STORED, content),
        };
        self.frame.extend_from_slice(&(block.len() as u32 | mark).to_le_bytes());
        self.frame.extend_from_slice(block);
    }
}

/// What a frame holds, in one aligned buffer; says what is wrong with a frame that `compress` did not write.
pub(super) fn decompress(frame: &[u8]) -> Result<Buffer, String> {
    let (header, mut rest) = frame.split_at_checked(HEADER_BYTES).ok_or("it is shorter than its header")?;
    let (flags, checksum) = (&header[4..HEADER_BYTES - 1], header[HEADER_BYTES - 1]);
    if header[..4] != MAGIC || flags[..2] != [FLAGS, BLOCK_SIZE_CODE] || header_checksum(flags) != checksum {
        return Err("it does not start like an LZ4 frame of ours".to_owned());
    }
    let length = flags[2..].try_into().map(u64::from_le_bytes).map_err(|_| "its length is cut off")?;
    let length = usize::try_from(length).ok().filter(|length| *length / MOST_BYTES_FOR_ONE <= frame.len());
    let length = length.ok_or("no frame of its size holds as much as it says")?;
    let mut content = MutableBuffer::from_len_zeroed(length);
    let mut filled = 0;
    loop {
        let (size, behind) = rest.split_first_chunk().ok_or("it ends within a block")?;
        let size = u32::from_le_bytes(*size);
        if size == 0 {
            break;
        }
        let bytes = (size & !STORED) as usize;
        let (block, behind) = behind.split_at_checked(bytes).ok_or("it ends within a block")?;
        let room = &mut content.as_slice_mut()[filled..];
        filled += match size & STORED {
            0 => decompress_into(block, room).map_err(|error| error.to_string())?,
            _ => {
                room.get_mut(..bytes).ok_or("a block is longer than what is missing")?.copy_from_slice(block);
                bytes
            }
        };
        rest = behind;
    }
    match filled == length {
        true => Ok(content.into()),
        false => Err(format!("it holds {filled} bytes and says {length}")),
    }
}

fn header(length: u64) -> [u8; HEADER_BYTES - MAGIC.len() - 1] {
    let mut header = [FLAGS, BLOCK_SIZE_CODE, 0, 0, 0, 0, 0, 0, 0, 0];
    header[2..].copy_from_slice(&length.to_le_bytes());
    header
}

/// The second byte of the hash of all between the magic number and itself.
fn header_checksum(header: &[u8]) -> u8 {
    xxh32(header, 0).to_le_bytes()[1]
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use lz4_flex::frame::FrameDecoder;

    use super::*;

    /// Nothing, a little, much that repeats, much that does not, and the sizes around a block.
    fn parts() -> Vec<Buffer> {
        let mut state = 1u64;
        let mut noise = |length: usize| -> Vec<u8> {
            let step = |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            };
            (0..length).map(step).collect()
        };
        let random = noise(BLOCK_BYTES + 77);
        let repeated = b"GET /cart ".repeat(100_000);
        let sizes = [0, 1, 12, 13, 4096, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES];
        let parts = sizes.map(|size| repeated[..size].to_vec()).into_iter().chain([random, repeated]);
        parts.map(Buffer::from).collect()
    }

    /// Scenario: parts of all sizes, compressed. Guarantee: they come back, also from a decoder that others wrote, and
    /// what repeats takes less room.
    #[test]
    fn round_trip() {
        let whole: Vec<u8> = parts().iter().flat_map(|part| part.to_vec()).collect();
        let mut frame = Vec::new();
        compress(&parts(), &mut frame);
        assert!(frame.len() < whole.len() / 4, "{} of {}", frame.len(), whole.len());
        assert!(decompress(&frame).unwrap().as_slice() == whole);
        let mut elsewhere = Vec::new();
        FrameDecoder::new(frame.as_slice()).read_to_end(&mut elsewhere).unwrap();
        assert!(elsewhere == whole);
        let mut empty = Vec::new();
        compress(&[], &mut empty);
        assert!(decompress(&empty).unwrap().is_empty());
    }

    /// Scenario: a frame cut anywhere near its ends or its blocks, or with a byte of its header or of a size changed.
    /// Guarantee: an error, and no panic.
    #[test]
    fn damage() {
        let mut frame = Vec::new();
        compress(&[Buffer::from(b"GET /cart ".repeat(60_000))], &mut frame);
        for length in (0..64).chain(frame.len() - 64..frame.len()) {
            assert!(decompress(&frame[..length]).is_err(), "cut at {length}");
        }
        for at in (0..HEADER_BYTES + 4).chain(frame.len() - 4..frame.len()) {
            let mut wrong = frame.clone();
            wrong[at] ^= 0x41;
            assert!(decompress(&wrong).is_err(), "changed at {at}");
        }
    }
    /// Scenario: frames with bytes of their blocks changed anywhere, and a header of ours with anything behind it.
    /// Guarantee: an error, or as many bytes as the header says; no panic.
    #[test]
    fn damaged_blocks() {
        let mut chance = 1u64;
        let mut random = |below: usize| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) as usize % below
        };
        let content: Vec<u8> =
            (0..3000).map(|at| if at % 7 < 4 { (at / 7) as u8 } else { random(256) as u8 }).collect();
        let mut frame = Vec::new();
        compress(&[Buffer::from(content.clone())], &mut frame);
        for round in 0..20_000 {
            let mut wrong = frame.clone();
            if round % 4 == 0 {
                wrong.truncate(HEADER_BYTES + 4);
                wrong.extend((0..random(300)).map(|_| random(256) as u8));
            }
            for _ in 0..1 + random(4) {
                let at = HEADER_BYTES + random(wrong.len() - HEADER_BYTES);
                wrong[at] = [0, 1, 0x7f, 0xff, random(256) as u8][random(5)];
            }
            if let Ok(found) = decompress(&wrong) {
                assert_eq!(found.len(), content.len());
            }
        }
    }
}
