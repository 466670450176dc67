//! A ring of words between one signal handler and the monitor: no locks, no allocation, never waits.
//!
//! The writer is one thread (inside its handler, one at a time should they nest), the reader is the
//! monitor. A record that does not fit is dropped and counted with its weight, so that totals stay known (R4).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words of one record that precede its frames.
const LENGTH_WORD: usize = 1;

/// What a ring has left after a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// More than half.
    Plenty,
    /// Half at most: it is time to empty it.
    Little,
    /// Too little for the record, which was dropped and counted.
    Exhausted,
}

/// Single-producer, single-consumer ring of length-prefixed records.
#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[AtomicU64]>,
    /// Total words ever written; only the producer stores it.
    written: AtomicUsize,
    /// Total words ever read; only the consumer stores it.
    read: AtomicUsize,
    dropped_records: AtomicU64,
    dropped_weight: AtomicU64,
}

impl Ring {
    /// A ring of `capacity` words, rounded up to a power of two.
    pub(crate) fn with_capacity(capacity: usize) -> Ring {
        // SAFETY: zero is a valid atomic. Memory that comes zeroed is not touched: a thread that is never sampled takes none.
        let words = unsafe { Box::<[AtomicU64]>::new_zeroed_slice(capacity.next_power_of_two()).assume_init() };
        Ring {
            words,
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            dropped_records: AtomicU64::new(0),
            dropped_weight: AtomicU64::new(0),
        }
    }

    /// Appends a record made of two parts, and says what room is left.
    pub(crate) fn push(&self, head: &[u64], tail: &[u64], weight: u64) -> Room {
        let mask = self.words.len() - 1;
        let length = LENGTH_WORD + head.len() + tail.len();
        let written = self.written.load(Ordering::Relaxed);
        let free = self.words.len() - written.wrapping_sub(self.read.load(Ordering::Acquire));
        if length > free {
            self.count_drop(weight);
            return Room::Exhausted;
        }
        let mut position = written;
        let length_word = std::iter::once((head.len() + tail.len()) as u64);
        for word in length_word.chain(head.iter().copied()).chain(tail.iter().copied()) {
            self.words[position & mask].store(word, Ordering::Relaxed);
            position = position.wrapping_add(1);
        }
        // Release: the reader that sees the new length sees the words as well.
        self.written.store(position, Ordering::Release);
        if free - length > self.words.len() / 2 { Room::Plenty } else { Room::Little }
    }

    /// Hands every waiting record to `each`, oldest first.
    pub(crate) fn drain(&self, scratch: &mut Vec<u64>, mut each: impl FnMut(&[u64])) {
        let mask = self.words.len() - 1;
        let written = self.written.load(Ordering::Acquire);
        let mut position = self.read.load(Ordering::Relaxed);
        while position != written {
            let length = self.words[position & mask].load(Ordering::Relaxed) as usize;
            position = position.wrapping_add(LENGTH_WORD);
            scratch.clear();
            scratch.extend((0..length).map(|i| self.words[position.wrapping_add(i) & mask].load(Ordering::Relaxed)));
            position = position.wrapping_add(length);
            each(scratch);
        }
        // Release: the words are read before the producer may overwrite them.
        self.read.store(position, Ordering::Release);
    }

    /// True when nothing waits to be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.written.load(Ordering::Acquire) == self.read.load(Ordering::Acquire)
    }

    /// Counts a record that could not be kept.
    pub(crate) fn count_drop(&self, weight: u64) {
        self.dropped_records.fetch_add(1, Ordering::Relaxed);
        self.dropped_weight.fetch_add(weight, Ordering::Relaxed);
    }

    /// Records and weight dropped since the last call.
    pub(crate) fn take_dropped(&self) -> (u64, u64) {
        // Almost always none: a load leaves the line where it is, a swap takes it from the producer's processor.
        if self.dropped_records.load(Ordering::Relaxed) == 0 {
            return (0, 0);
        }
        (self.dropped_records.swap(0, Ordering::Relaxed), self.dropped_weight.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: records of different lengths go round the ring many times.
    /// Guarantee: each comes out once, whole and in order.
    #[test]
    fn records_survive_wrapping() {
        let ring = Ring::with_capacity(64);
        let mut scratch = Vec::new();
        for i in 0..1_000u64 {
            let tail: Vec<u64> = (0..i % 20).collect();
            assert_ne!(ring.push(&[i], &tail, 1), Room::Exhausted);
            let mut seen = Vec::new();
            ring.drain(&mut scratch, |record| seen.push(record.to_vec()));
            assert_eq!(seen, vec![std::iter::once(i).chain(tail).collect::<Vec<_>>()]);
        }
        assert!(ring.is_empty());
    }

    /// Scenario: more is written than fits.
    /// Guarantee: half-way it says so; what is dropped is counted with its weight, and what was kept is intact (R4).
    #[test]
    fn overflow_is_counted_not_hidden() {
        let ring = Ring::with_capacity(16);
        let rooms: Vec<Room> = (0..10u64).map(|i| ring.push(&[i, 7, 7], &[], 5)).collect();
        assert_eq!(rooms[..4], [Room::Plenty, Room::Little, Room::Little, Room::Little]);
        assert!(rooms[4..].iter().all(|room| *room == Room::Exhausted));
        assert_eq!(ring.take_dropped(), (6, 30));
        let mut seen = 0;
        ring.drain(&mut Vec::new(), |record| {
            assert_eq!(record, [seen, 7, 7]);
            seen += 1;
        });
        assert_eq!(seen, 4);
    }

    /// Scenario: a producer and a consumer run at the same time.
    /// Guarantee: every record is either delivered intact or counted as dropped.
    #[test]
    fn concurrent_use_loses_nothing_silently() {
        let ring = Ring::with_capacity(256);
        let total = 50_000u64;
        let mut delivered = 0u64;
        std::thread::scope(|scope| {
            let producer = scope.spawn(|| {
                for i in 0..total {
                    ring.push(&[i, i ^ u64::MAX], &[i], 1);
                }
            });
            let mut scratch = Vec::new();
            while !producer.is_finished() || !ring.is_empty() {
                ring.drain(&mut scratch, |record| {
                    assert_eq!(record[0] ^ record[1], u64::MAX);
                    assert_eq!(record[0], record[2]);
                    delivered += 1;
                });
            }
        });
        assert_eq!(delivered + ring.take_dropped().0, total);
    }
}
