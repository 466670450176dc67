//! What one sample says, and how it lies in a ring.

use crate::context::SpanKey;
use crate::sampler::clock::monotonic_ns;

/// What was measured when the sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SampleKind {
    /// The thread used CPU; the weight is CPU nanoseconds.
    Cpu,
    /// The thread worked on a span, running or not; the weight is wall nanoseconds, `extra` the CPU part of them.
    Wall,
    /// Memory was allocated; the weight is estimated bytes, `extra` and `extra2` locate the live-set entry.
    Allocation,
    /// A lock was waited for; the weight is nanoseconds.
    LockWait,
}

impl SampleKind {
    const ALL: [SampleKind; 4] = [SampleKind::Cpu, SampleKind::Wall, SampleKind::Allocation, SampleKind::LockWait];

    fn from_code(code: u64) -> Option<SampleKind> {
        SampleKind::ALL.into_iter().find(|kind| *kind as u64 == code)
    }
}

/// The stack was cut because it was deeper than the limit.
pub(crate) const FLAG_TRUNCATED: u64 = 1;
/// Only the leaf could be recorded: no unwinder was free, or the stack is unknown.
pub(crate) const FLAG_LEAF_ONLY: u64 = 2;

/// Words before the frames.
const HEAD_WORDS: usize = 10;

/// A sample as the handler hands it over. Frames are addresses to look up: the leaf is the interrupted program
/// counter, every other one lies inside its call instruction.
#[derive(Debug, Clone)]
pub(crate) struct Sample<'a> {
    pub(crate) kind: SampleKind,
    pub(crate) flags: u64,
    pub(crate) monotonic_ns: u64,
    pub(crate) weight: u64,
    pub(crate) extra: u64,
    pub(crate) extra2: u64,
    pub(crate) tid: i32,
    pub(crate) span: SpanKey,
    pub(crate) frames: &'a [u64],
}

impl<'a> Sample<'a> {
    /// CPU time that only a clock tells: without a span, and without a stack but for what is said in its place.
    pub(crate) fn of_clock(tid: i32, weight: u64, frames: &'a [u64]) -> Sample<'a> {
        Sample {
            kind: SampleKind::Cpu,
            flags: if frames.is_empty() { FLAG_LEAF_ONLY } else { 0 },
            monotonic_ns: monotonic_ns(),
            weight,
            extra: 0,
            extra2: 0,
            tid,
            span: SpanKey::default(),
            frames,
        }
    }
}

impl Sample<'_> {
    /// The words that precede the frames.
    pub(crate) fn head(&self) -> [u64; HEAD_WORDS] {
        let trace = self.span.trace_id;
        [
            self.kind as u64 | (self.flags << 8) | (u64::from(self.span.flags) << 16),
            self.monotonic_ns,
            self.weight,
            self.extra,
            self.extra2,
            self.tid as u64,
            u64::from_ne_bytes([trace[0], trace[1], trace[2], trace[3], trace[4], trace[5], trace[6], trace[7]]),
            u64::from_ne_bytes([trace[8], trace[9], trace[10], trace[11], trace[12], trace[13], trace[14], trace[15]]),
            u64::from_ne_bytes(self.span.span_id),
            u64::from_ne_bytes(self.span.local_root),
        ]
    }

    /// Reads a record back; `None` if it is not one of ours.
    pub(crate) fn from_words(words: &[u64]) -> Option<Sample<'_>> {
        let (head, frames) = words.split_at_checked(HEAD_WORDS)?;
        let mut trace_id = [0u8; 16];
        trace_id[..8].copy_from_slice(&head[6].to_ne_bytes());
        trace_id[8..].copy_from_slice(&head[7].to_ne_bytes());
        let span = SpanKey {
            trace_id,
            span_id: head[8].to_ne_bytes(),
            local_root: head[9].to_ne_bytes(),
            flags: (head[0] >> 16) as u8,
        };
        Some(Sample {
            kind: SampleKind::from_code(head[0] & 0xff)?,
            flags: (head[0] >> 8) & 0xff,
            monotonic_ns: head[1],
            weight: head[2],
            extra: head[3],
            extra2: head[4],
            tid: head[5] as i32,
            span,
            frames,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a sample is written to words and read back.
    /// Guarantee: nothing of it changes on the way.
    #[test]
    fn a_sample_survives_the_ring() {
        let span = SpanKey { trace_id: [3; 16], span_id: [5; 8], local_root: [7; 8], flags: 1 };
        let sample = Sample {
            kind: SampleKind::Wall,
            flags: FLAG_TRUNCATED,
            monotonic_ns: 11,
            weight: 13,
            extra: 17,
            extra2: 19,
            tid: 23,
            span,
            frames: &[29, 31],
        };
        let words: Vec<u64> = sample.head().into_iter().chain(sample.frames.iter().copied()).collect();
        assert_eq!(format!("{:?}", Sample::from_words(&words).unwrap()), format!("{sample:?}"));
        assert!(Sample::from_words(&words[..5]).is_none());
    }
}
