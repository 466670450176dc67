//! Profiles in the shape that every format is translated into, and that the lake takes its rows from.
//!
//! A [`ProfileSet`] is what one request or file held: its call paths once, and its profiles, one for each
//! sample type. Samples refer to tables of the set by index, so that a sample is forty bytes whatever it says.

use std::borrow::Cow;

use crate::call_path::{PathIndex, PathTable};
use crate::ids::{ProfileId, SpanId, TraceId};
use crate::labels::Labels;
use crate::profile_type::ProfileType;

/// What one request or file held.
#[derive(Debug)]
pub struct ProfileSet<'a> {
    /// Frames and call paths of all profiles in the set.
    pub paths: PathTable<'a>,
    /// Label sets of samples; index 0 is the empty one.
    pub label_sets: Vec<Labels>,
    /// Threads of samples; index 0 is "not known".
    pub threads: Vec<Thread<'a>>,
    /// Attributes of samples that are neither labels nor threads, as JSON; index 0 is none.
    pub attribute_sets: Vec<String>,
    /// Spans that samples belong to; index 0 is "none".
    pub links: Vec<Link>,
    /// The profiles, one for each sample type.
    pub profiles: Vec<Profile<'a>>,
    /// Frames that were cut because a stack was deeper than the limit (R4: counted, never silent).
    pub cut_frames: u64,
    /// Texts that were longer than the limit, and are kept up to it (R4).
    pub cut_texts: u64,
}

impl Default for ProfileSet<'_> {
    fn default() -> Self {
        Self {
            paths: PathTable::default(),
            label_sets: vec![Labels::default()],
            threads: vec![Thread::default()],
            attribute_sets: vec![String::new()],
            links: vec![Link::default()],
            profiles: Vec::new(),
            cut_frames: 0,
            cut_texts: 0,
        }
    }
}

/// The thread that a sample was taken on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Thread<'a> {
    /// Its number.
    pub id: Option<i64>,
    /// Its name; empty if not known.
    pub name: Cow<'a, str>,
}

/// The span that a sample belongs to. Zero ids mean "not said": some sources name only one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Link {
    /// The trace; zero if the source names only the span.
    pub trace_id: TraceId,
    /// The span; zero if the source names only the trace.
    pub span_id: SpanId,
}

/// One profile: samples of one type over one stretch of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile<'a> {
    /// The id it came with; the lake computes one from the content where this is none.
    pub id: Option<ProfileId>,
    /// What its values measure.
    pub profile_type: ProfileType,
    /// Labels of all its samples, the service among them, without the profile type.
    pub labels: Labels,
    /// Start in nanoseconds since 1970.
    pub time: i64,
    /// Length in nanoseconds; 0 if not known.
    pub duration: i64,
    /// Distance of samples in units of the period type; 0 if not known.
    pub period: i64,
    /// Facts about the whole profile that the lake keeps beside its samples.
    pub context: ProfileContext<'a>,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// What a source says about a profile as a whole. Each text is JSON, or empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileContext<'a> {
    /// Resource attributes, schema and dropped count.
    pub resource: Cow<'a, str>,
    /// Scope name, version, attributes and schema.
    pub scope: Cow<'a, str>,
    /// Attributes of the profile itself.
    pub attributes: Cow<'a, str>,
    /// The loaded binaries with their address ranges.
    pub mappings: Cow<'a, str>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// Format of the original payload, if the sender attached one.
    pub original_payload_format: Cow<'a, str>,
    /// The original payload.
    pub original_payload: Cow<'a, [u8]>,
    /// Where it came from: `otlp`, `pprof`, `jfr`, …
    pub source: Cow<'a, str>,
    /// Whether the profile's time is that of its arrival, since the sender gave none: then it is not the same in a retry.
    pub undated: bool,
}

/// One observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Its call path: an index into [`ProfileSet::paths`].
    pub path: PathIndex,
    /// What was measured.
    pub value: i64,
    /// When, in nanoseconds since 1970; the profile's own time where the source has none.
    pub time: i64,
    /// Whether `time` is the sample's own.
    pub timed: bool,
    /// Index into [`ProfileSet::links`].
    pub link: u32,
    /// Index into [`ProfileSet::threads`].
    pub thread: u32,
    /// Index into [`ProfileSet::label_sets`].
    pub labels: u32,
    /// Index into [`ProfileSet::attribute_sets`].
    pub attributes: u32,
}

impl ProfileSet<'_> {
    /// How many samples there are in all profiles.
    pub fn sample_count(&self) -> usize {
        self.profiles.iter().map(|profile| profile.samples.len()).sum()
    }
}
