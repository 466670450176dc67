//! What the transport knows about a profile and the profile itself does not say.

use std::collections::BTreeMap;

use hotspan_model::{Labels, Link, ProfileType, Sample};

use crate::limits::Limits;
use crate::set_builder::SYMBOL_BYTES;
use crate::span_identity::Identity;

/// Facts from the request or the command line, and the limits that decoding keeps to.
#[derive(Debug, Clone, Default)]
pub struct DecodeOptions {
    /// Labels of the series, the service among them. Span and trace ids in them become links.
    pub labels: Labels,
    /// The profile's name where the transport says it: Push's `__name__`. Without it the name is guessed.
    pub name: Option<String>,
    /// What the values of formats without types (collapsed, tree, trie) mean. Where a file states units (speedscope, perf script,
    /// flamebearer), what those of its values are that have the unit of this type.
    pub text_type: Option<TextType>,
    /// Start in nanoseconds since 1970, for profiles that don't say theirs; 0 if not known.
    pub from: i64,
    /// End in nanoseconds since 1970; 0 if not known. A profile of which only this is known starts as much earlier as it is long.
    pub until: i64,
    /// The client that took the profile, as `spyName` names it; empty if not known.
    pub spy_name: String,
    /// Samples a second, where the transport says so; turns counted samples into time.
    pub sample_rate: Option<u32>,
    /// `sample_type_config` of a multipart upload, by sample type.
    pub sample_types: BTreeMap<String, SampleTypeConfig>,
    /// The span that the whole profile belongs to; samples that name their own keep it.
    pub link: Link,
    /// Whether text may lack what Pyroscope does not ask for: lines without a count, an end after the last stack. Samples with a
    /// negative value are passed over then, as there. Clients may rely on that. A file that somebody hands over is whole, or
    /// it is refused.
    pub tolerant: bool,
    /// How much the file may ask of us.
    pub limits: Limits,
}

/// The part of `sample_type_config` that decides something here.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(default)]
pub struct SampleTypeConfig {
    /// The name that the profile's own name is guessed from.
    #[serde(rename = "display-name")]
    pub display_name: String,
    /// The unit that the client would show.
    pub units: String,
    /// Whether values count since the start of the process.
    pub cumulative: bool,
}

/// The type of values in a format that has none, and what to multiply them by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextType {
    /// What the values measure after scaling.
    pub profile_type: ProfileType,
    /// Units per counted value: nanoseconds a sample for instance.
    pub scale: i64,
}

impl DecodeOptions {
    /// The labels of the series without ids and internal labels, and the span that they name.
    ///
    /// Python's and Rust's `tag_wrapper` put span ids into series labels; such ids never make a series.
    pub(crate) fn series(&self) -> (Labels, Link) {
        let mut labels = Labels::default();
        let mut identity = Identity::default();
        for (name, value) in self.labels.iter() {
            if !identity.take_text(name, value) && !name.starts_with("__") {
                labels.set(name, value);
            }
        }
        if !self.spy_name.is_empty() {
            labels.set_default("pyroscope_spy", self.spy_name.as_str());
        }
        (labels, filled(self.link, identity.link()))
    }

    /// The type of values whose unit the file states: the given one if that has the same unit, or else what the file says itself.
    pub(crate) fn type_in_unit_of(&self, own: ProfileType) -> ProfileType {
        let given = self.text_type.as_ref().map(|given| &given.profile_type);
        given.filter(|given| given.sample_unit == own.sample_unit).cloned().unwrap_or(own)
    }

    /// How many samples fit into the memory that a decoded file may take.
    pub(crate) fn max_samples(&self) -> usize {
        self.limits.max_decoded_bytes / size_of::<Sample>()
    }

    /// How many names, functions, places and other rows fit that samples refer to.
    pub(crate) fn max_symbols(&self) -> usize {
        self.limits.max_decoded_bytes / SYMBOL_BYTES
    }

    /// Start and length of a profile that says `time` and `duration`, either of which may be absent.
    pub(crate) fn time_range(&self, time: i64, duration: i64) -> (i64, i64) {
        let placed = self.placed(time, duration);
        (placed.start, if duration > 0 { duration } else { placed.length })
    }

    /// Where a profile of some length has its place, of which `time` says the start or is absent.
    pub(crate) fn placed(&self, time: i64, length: i64) -> Placed {
        const DAY: i64 = 24 * 3600 * 1_000_000_000;
        let length = length.max(0);
        // Some clients leave the time out, others count from the start of the process: both date to 1970.
        if time >= 365 * DAY {
            return Placed { start: time, length, holds: true };
        }
        let (from, until) = (self.from.max(0), self.until.max(0));
        let given = if from > 0 { until.saturating_sub(from).max(0) } else { 0 };
        let room = match (from > 0, until > 0) {
            (true, true) => given,
            // No recording goes on for longer, but sums of many processes do.
            (true, false) | (false, true) => DAY,
            (false, false) => 0,
        };
        let holds = length <= room && (from > 0 || until > 0);
        let start = match () {
            () if from > 0 => from,
            () if holds => until.saturating_sub(length),
            () => until,
        };
        Placed { start, length: if holds && length > 0 { length } else { given }, holds }
    }
}

/// The place of a profile in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Nanoseconds since 1970; 0 if nobody knows.
    pub(crate) start: i64,
    /// In nanoseconds; 0 if not known.
    pub(crate) length: i64,
    /// Whether times that count from the start hold. They don't where the profile is longer than it can have taken: then it is
    /// a sum, and its samples are of no other time than the start.
    pub(crate) holds: bool,
}

impl Placed {
    /// When a sample was taken of which a time is known that counts from the start; and whether that is its own time.
    pub(crate) fn sample_time(&self, since_start: Option<i64>) -> (i64, bool) {
        match since_start {
            Some(since_start) if self.holds => (self.start.saturating_add(since_start), true),
            _ => (self.start, false),
        }
    }
}

/// What one link says, completed by another: the ids of samples come before those of their series.
pub(crate) fn filled(own: Link, default: Link) -> Link {
    let span_id = if own.span_id.is_zero() && own.trace_id.is_zero() { default.span_id } else { own.span_id };
    Link { trace_id: if own.trace_id.is_zero() { default.trace_id } else { own.trace_id }, span_id }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a profile of ten seconds, with its start, its end, both or neither known, in room enough and in too little;
    /// a sum that is longer than a day; one that says its time itself.
    /// Guarantee: it ends where it is said to, starts as much earlier as it is long unless the start is said, and times that can't
    /// be are not believed.
    #[test]
    fn profiles_have_their_place_in_time() {
        const SECOND: i64 = 1_000_000_000;
        let day = 24 * 3600 * SECOND;
        let now = 20_000 * day;
        let placed = |from: i64, until: i64, time: i64, length: i64| {
            let options = DecodeOptions { from, until, ..DecodeOptions::default() };
            let placed = options.placed(time, length);
            (placed.start, placed.length, placed.holds)
        };
        let ten = 10 * SECOND;
        assert_eq!(placed(0, now, 0, ten), (now - ten, ten, true));
        assert_eq!(placed(now, 0, 0, ten), (now, ten, true));
        assert_eq!(placed(now - 2 * ten, now, 0, ten), (now - 2 * ten, ten, true));
        assert_eq!(placed(now - SECOND, now, 0, ten), (now - SECOND, SECOND, false));
        assert_eq!(placed(0, now, 0, 70 * day), (now, 0, false));
        assert_eq!(placed(now - SECOND, 0, 0, 70 * day), (now - SECOND, 0, false));
        assert_eq!(placed(0, 0, 0, ten), (0, 0, false));
        assert_eq!(placed(5 * day, 6 * day, now, ten), (now, ten, true));
        let of_sum = DecodeOptions { until: now, ..DecodeOptions::default() }.placed(0, 70 * day);
        assert_eq!((of_sum.sample_time(Some(ten)), of_sum.sample_time(None)), ((now, false), (now, false)));
    }
}
