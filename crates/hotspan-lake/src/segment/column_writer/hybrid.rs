//! Parquet's hybrid of run lengths and packed bits, which levels and codes of dictionaries are stored in.
//!
//! Eight equal values in a row begin a run; all others are packed, eight at a time. The parquet crate has an encoder too,
//! which takes one value at a time and is not public.

use arrow::buffer::BooleanBuffer;

/// Values that are packed together.
const GROUP: usize = 8;

/// How many bits it takes to tell so many values apart.
pub(super) fn width_of(distinct: usize) -> u32 {
    usize::BITS - distinct.saturating_sub(1).leading_zeros()
}

/// Appends codes, each less than two to the power of `width`.
pub(super) fn put_codes(codes: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut at, mut packed_until) = (0, 0);
    while let Some(group) = codes[at..].first_chunk::<GROUP>() {
        let code = group[0];
        if group.iter().any(|other| *other != code) {
            at += GROUP;
            continue;
        }
        put_packed_codes(&codes[packed_until..at], width, out);
        let end = at + codes[at..].iter().take_while(|other| **other == code).count();
        put_code_run(end - at, code, width, out);
        (at, packed_until) = (end, end);
    }
    let rest = &codes[packed_until..];
    match rest.first() {
        Some(code) if rest.iter().all(|other| other == code) => put_code_run(rest.len(), *code, width, out),
        _ => put_packed_codes(rest, width, out),
    }
}

fn put_code_run(length: usize, code: u32, width: u32, out: &mut Vec<u8>) {
    put_varint((length as u64) << 1, out);
    out.extend_from_slice(&code.to_le_bytes()[..width.div_ceil(8) as usize]);
}

fn put_packed_codes(codes: &[u32], width: u32, out: &mut Vec<u8>) {
    if codes.is_empty() {
        return;
    }
    let groups = codes.len().div_ceil(GROUP);
    put_varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * width as usize;
    out.reserve(groups * width as usize + 4);
    let (mut bits, mut count) = (0u64, 0);
    for code in codes {
        bits |= u64::from(*code) << count;
        count += width;
        if count >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            count -= 32;
        }
    }
    out.extend_from_slice(&(bits as u32).to_le_bytes());
    // What is missing of the last group is zero, and what was written too much too.
    out.resize(end, 0);
}

/// Appends levels that are zero or one.
pub(super) fn put_bits(bits: &BooleanBuffer, out: &mut Vec<u8>) {
    let (mut at, mut packed_until) = (0, 0);
    while at + GROUP <= bits.len() {
        let group = eight_bits(bits, at);
        if group != 0 && group != u8::MAX {
            at += GROUP;
            continue;
        }
        put_packed_bits(bits, packed_until..at, out);
        let is_set = group != 0;
        let mut end = at + GROUP;
        while end + GROUP <= bits.len() && eight_bits(bits, end) == group {
            end += GROUP;
        }
        while end < bits.len() && bits.value(end) == is_set {
            end += 1;
        }
        put_bit_run(end - at, is_set, out);
        (at, packed_until) = (end, end);
    }
    let rest = packed_until..bits.len();
    if !rest.is_empty() {
        let first = bits.value(rest.start);
        if rest.clone().all(|at| bits.value(at) == first) {
            put_bit_run(rest.len(), first, out);
        } else {
            put_packed_bits(bits, rest, out);
        }
    }
}

fn put_bit_run(length: usize, is_set: bool, out: &mut Vec<u8>) {
    put_varint((length as u64) << 1, out);
    out.push(u8::from(is_set));
}

fn put_packed_bits(bits: &BooleanBuffer, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
    if range.is_empty() {
        return;
    }
    put_varint((range.len().div_ceil(GROUP) as u64) << 1 | 1, out);
    out.extend(range.clone().step_by(GROUP).map(|at| {
        let beyond = (at + GROUP).saturating_sub(range.end);
        eight_bits(bits, at) & (u8::MAX >> beyond)
    }));
}

/// Eight bits from one on, of which those past the end may be anything.
fn eight_bits(bits: &BooleanBuffer, at: usize) -> u8 {
    let (byte, shift) = ((bits.offset() + at) / 8, (bits.offset() + at) % 8);
    let bytes = bits.values();
    let next = bytes.get(byte + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([bytes[byte], next]) >> shift) as u8
}

/// Seven bits a byte, the lowest first; all but the last byte have their highest bit set.
pub(super) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
