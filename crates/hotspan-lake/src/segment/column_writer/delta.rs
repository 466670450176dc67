//! Numbers by their differences, packed as wide as the widest among its neighbours: Parquet's DELTA_BINARY_PACKED.
//!
//! The parquet crate has an encoder too, which is not public.

use super::hybrid::put_varint;

/// Differences that are packed with the same width.
const PACKED_TOGETHER: usize = 64;
/// Of so many of these the least difference is told once.
const PARTS: usize = 4;

/// Appends numbers of 64 bits.
pub(super) fn put_deltas(values: &[u64], out: &mut Vec<u8>) {
    put_varint((PACKED_TOGETHER * PARTS) as u64, out);
    put_varint(PARTS as u64, out);
    put_varint(values.len() as u64, out);
    let first = values.first().copied().unwrap_or(0);
    put_zigzag(first as i64, out);
    let mut last = first;
    for block in values.get(1..).unwrap_or_default().chunks(PACKED_TOGETHER * PARTS) {
        // What is missing of the last block has no difference to the least.
        let mut deltas = [0u64; PACKED_TOGETHER * PARTS];
        let mut least = i64::MAX;
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(last);
            least = least.min(*delta as i64);
            last = *value;
        }
        deltas[..block.len()].iter_mut().for_each(|delta| *delta = delta.wrapping_sub(least as u64));
        put_zigzag(least, out);
        let (parts, _) = deltas.as_chunks::<PACKED_TOGETHER>();
        let widths: [u32; PARTS] = std::array::from_fn(|part| {
            u64::BITS - parts[part].iter().fold(0, |all, delta| all | delta).leading_zeros()
        });
        out.extend(widths.map(|width| width as u8));
        for (part, width) in parts.iter().zip(widths).take(block.len().div_ceil(PACKED_TOGETHER)) {
            put_packed(part, width, out);
        }
    }
}

fn put_packed(part: &[u64; PACKED_TOGETHER], width: u32, out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u128, 0);
    for value in part {
        bits |= u128::from(*value) << count;
        count += width;
        if count >= 64 {
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            bits >>= 64;
            count -= 64;
        }
    }
    // Sixty-four values of any width fill whole words.
}

/// Small numbers of either sign as small ones.
fn put_zigzag(number: i64, out: &mut Vec<u8>) {
    put_varint(((number << 1) ^ (number >> 63)) as u64, out);
}
