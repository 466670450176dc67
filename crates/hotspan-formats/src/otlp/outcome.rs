//! What became of a request: how much was kept, how much was not, and why, in a text of bounded length.

use std::fmt::Write as _;

use super::fault::{Fault, Problem};

/// Times of refused items are told apart up to this many minutes; further ones are not.
const MAX_TIMES: usize = 64;
const MINUTE: i64 = 60 * 1_000_000_000;
/// Reasons are told apart up to this many; further ones are only counted.
const MAX_REASONS: usize = 8;

/// What became of the spans or profiles of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Spans or profiles that were kept.
    pub accepted: u64,
    /// Spans or profiles that were refused.
    pub rejected: u64,
    /// Samples that were refused, those of refused profiles included; 0 for traces.
    pub rejected_samples: u64,
    /// Of the refused spans or profiles, those that were refused for their time alone.
    pub untimely: u64,
    /// Of the refused samples, the same.
    pub untimely_samples: u64,
    /// When refused spans and samples had happened, where they say so: the start of a minute, and how many.
    pub rejected_times: Vec<(i64, u64)>,
    /// Texts that were not UTF-8; kept with the wrong bytes replaced by U+FFFD.
    pub repaired_texts: u64,
    /// Texts that were longer than the limit; kept up to it.
    pub cut_texts: u64,
    /// Frames that were cut from stacks deeper than the limit; 0 for traces.
    pub cut_frames: u64,
    /// Why: each kind of problem once, in the order of appearance.
    pub reasons: Vec<Reason>,
    /// Problems of kinds that found no place in `reasons`.
    pub further_problems: u64,
}

/// A kind of problem, how often it was met, and its first appearance in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The field, `trace_id` for instance.
    field: &'static str,
    problem: std::mem::Discriminant<Problem>,
    /// How often.
    pub count: u64,
    /// The first one, with its path.
    pub first: String,
}

impl Outcome {
    /// Whether everything was kept just as it was sent.
    pub fn is_clean(&self) -> bool {
        self.reasons.is_empty() && self.rejected == 0
    }

    /// The text for `partial_success.error_message`; empty if all is well.
    pub fn message(&self) -> String {
        let mut text = String::new();
        for reason in &self.reasons {
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.push_str(&reason.first);
            if reason.count > 1 {
                // Writing into a String can't fail.
                let _ = write!(text, " (and {} more like it)", reason.count - 1);
            }
        }
        if self.further_problems > 0 {
            let _ = write!(text, "; and {} problems of other kinds", self.further_problems);
        }
        text
    }

    /// Whether nothing was refused but for its time.
    pub(crate) fn is_whole_but_for_time(&self) -> bool {
        (self.rejected, self.rejected_samples) == (self.untimely, self.untimely_samples)
    }

    /// Takes down when refused items had happened; no time, or zero, says nothing.
    pub(crate) fn note_time(&mut self, time: Option<u64>, count: u64) {
        let Some(time) = time.and_then(|time| i64::try_from(time).ok()).filter(|time| *time != 0) else { return };
        let minute = time - time % MINUTE;
        if let Some((_, sum)) = self.rejected_times.iter_mut().find(|(other, _)| *other == minute) {
            *sum += count;
        } else if self.rejected_times.len() < MAX_TIMES {
            self.rejected_times.push((minute, count));
        }
    }

    /// Takes down a problem; what it means for the counts is up to the caller.
    pub(crate) fn note(&mut self, fault: &Fault) {
        self.note_many(fault, 1);
    }

    /// Counts a problem of a kind that was met before, for which its full path is of no interest; false if it is new.
    pub(crate) fn count_known(&mut self, fault: &Fault) -> bool {
        let (field, problem) = (fault.leaf(), std::mem::discriminant(&fault.problem));
        let known = self.reasons.iter_mut().find(|known| known.field == field && known.problem == problem);
        let Some(known) = known else { return false };
        known.count += 1;
        true
    }

    /// Takes down a problem that `count` items share.
    pub(crate) fn note_many(&mut self, fault: &Fault, count: u64) {
        match fault.problem {
            Problem::NotUtf8 => self.repaired_texts += count,
            Problem::TooLong { .. } => self.cut_texts += count,
            Problem::TooDeep { cut, .. } => self.cut_frames += cut,
            _ => {}
        }
        let (field, problem) = (fault.leaf(), std::mem::discriminant(&fault.problem));
        if let Some(known) = self.reasons.iter_mut().find(|known| known.field == field && known.problem == problem) {
            known.count += count;
        } else if self.reasons.len() < MAX_REASONS {
            // Of bounded length: long paths are shortened, and no problem quotes the sender.
            self.reasons.push(Reason { field, problem, count, first: fault.to_string() });
        } else {
            self.further_problems += count;
        }
    }
}
