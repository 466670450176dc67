//! From the kernel's records to events. Nothing here trusts a length.

use crate::event::{Event, Measure, Stack};
use crate::registers::{Registers, USER_REGISTER_COUNT};

const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const SWITCH: u32 = 14;

const FLAG_EXECUTED: u16 = 1 << 13;
/// The same bit in records of switches: the thread leaves.
const FLAG_LEAVES: u16 = 1 << 13;
/// Marks in a call chain that say whose frames follow.
const FIRST_MARK: u64 = u64::MAX - 4095 + 1;
/// Bytes at the end of each record but samples: process, thread, time.
const TRAILER: usize = 16;
const PROT_EXEC: u32 = 4;

/// Reads one record; `None` for those of no interest, and for broken ones.
pub(super) fn read(kind: u32, flags: u16, body: &[u8]) -> Option<(u64, Event)> {
    if kind == SAMPLE {
        return read_sample(body);
    }
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER)?)?;
    let mut trailer = Cursor(trailer);
    let (trailer_pid, trailer_tid, time) = (trailer.i32()?, trailer.i32()?, trailer.u64()?);
    let mut cursor = Cursor(body);
    let event = match kind {
        MMAP | MMAP2 => {
            let (pid, _tid) = (cursor.i32()?, cursor.i32()?);
            let (start, length, offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
            if kind == MMAP2 {
                cursor.skip(24)?;
                let protection = cursor.u32()?;
                cursor.skip(4)?;
                if protection & PROT_EXEC == 0 {
                    return None;
                }
            }
            Event::Mapped { pid, range: start..start.checked_add(length)?, offset, path: cursor.text() }
        }
        COMM => {
            let (pid, tid) = (cursor.i32()?, cursor.i32()?);
            Event::Named { pid, tid, name: cursor.text(), executed: flags & FLAG_EXECUTED != 0 }
        }
        FORK => {
            let (pid, parent) = (cursor.i32()?, cursor.i32()?);
            Event::Forked { pid, parent }
        }
        EXIT => {
            let (pid, _parent, tid) = (cursor.i32()?, cursor.i32()?, cursor.i32()?);
            Event::Exited { pid, tid }
        }
        SWITCH if flags & FLAG_LEAVES == 0 => Event::BackOnCpu { pid: trailer_pid, tid: trailer_tid, time },
        LOST => {
            cursor.skip(8)?;
            Event::Lost { samples: cursor.u64()? }
        }
        _ => return None,
    };
    Some((time, event))
}

fn read_sample(body: &[u8]) -> Option<(u64, Event)> {
    let mut cursor = Cursor(body);
    let ip = cursor.u64()?;
    let (pid, tid) = (cursor.i32()?, cursor.i32()?);
    let (time, period) = (cursor.u64()?, cursor.u64()?);
    let count = usize::try_from(cursor.u64()?).ok().filter(|count| *count <= body.len() / 8)?;
    let mut kernel = Vec::new();
    for _ in 0..count {
        let address = cursor.u64()?;
        if address < FIRST_MARK {
            kernel.push(address);
        }
    }
    let has_registers = cursor.u64()? != 0;
    let registers = if has_registers {
        let mut values = [0; USER_REGISTER_COUNT];
        for value in &mut values {
            *value = cursor.u64()?;
        }
        Some(Registers::from_perf(values))
    } else {
        None
    };
    let length = usize::try_from(cursor.u64()?).ok()?;
    let mut bytes: &[u8] = &[];
    if length > 0 {
        let copied = cursor.bytes(length)?;
        let filled = usize::try_from(cursor.u64()?).ok()?;
        bytes = copied.get(..filled)?;
    }
    // A thread that was in the kernel has no user code at the interrupted address; its registers say where it left.
    let user = registers.map(|registers| Stack { registers, bytes: bytes.to_vec() });
    // A switch counts as one; CPU time counts in nanoseconds, and never in ones.
    let measure = if period == 1 { Measure::LeavesCpu } else { Measure::Cpu { nanoseconds: period } };
    Some((time, Event::Sample { pid, tid, time, measure, interrupted: ip, kernel, user }))
}

/// Reads forward, never past the end.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes(count).map(drop)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// What is left, up to the zero that ends it.
    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a sample record cut off at every length, and filled with 0xff.
    /// Guarantee: the whole one is read, no other one panics.
    #[test]
    fn broken_records_are_refused() {
        let mut body = Vec::new();
        body.extend(0x1000u64.to_ne_bytes());
        body.extend(7i32.to_ne_bytes());
        body.extend(8i32.to_ne_bytes());
        for word in [55u64, 10_000_000, 2, u64::MAX - 127, 0xffff_ffff_8000_0000, 2] {
            body.extend(word.to_ne_bytes());
        }
        (0..USER_REGISTER_COUNT as u64).for_each(|value| body.extend(value.to_ne_bytes()));
        body.extend(16u64.to_ne_bytes());
        body.extend([9; 16]);
        body.extend(12u64.to_ne_bytes());
        let Some((55, Event::Sample { pid: 7, tid: 8, measure, kernel, user: Some(user), .. })) =
            read(SAMPLE, 0, &body)
        else {
            panic!("not read")
        };
        assert_eq!(measure, Measure::Cpu { nanoseconds: 10_000_000 });
        assert_eq!((kernel.as_slice(), user.bytes.len()), (&[0xffff_ffff_8000_0000][..], 12));
        for length in 0..body.len() {
            assert!(read(SAMPLE, 0, &body[..length]).is_none());
        }
        for kind in 0..20 {
            for length in 0..80 {
                // Must not panic; whether it is understood does not matter.
                let _ = read(kind, 0xffff, &vec![0xff; length]);
            }
        }
    }
}
