//! How much a sender may ask of us. Checked while decompressing and decoding, never after (R5).

use crate::clock_window::ClockWindow;

/// Bounds on one request or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request after decompression.
    pub max_bytes: usize,
    /// Bytes of one chunk of a JFR recording, which has to be in memory whole; a chunk of `max_bytes` is taken in any case.
    /// async-profiler ends its chunks at 100 MB, the JDK at 12 MB.
    pub max_chunk_bytes: usize,
    /// Memory that a decoded set of profiles may take, as estimated from its tables. It is what stops a few
    /// megabytes of input from becoming gigabytes of rows, labels and call paths.
    pub max_decoded_bytes: usize,
    /// Memory that one decoded span, resource or scope, or the labels of a pushed series, may take: two bytes of input make an attribute.
    pub max_item_bytes: usize,
    /// Longest text or byte value that is kept whole; a longer one is cut and counted.
    pub max_text_bytes: usize,
    /// Deepest call path; frames nearer the root than that are cut and counted.
    pub max_stack_depth: usize,
    /// Labels of one series; further ones are kept beside the profile, but can't be matched on.
    pub max_labels: usize,
    /// Longest name or value of a label; a longer one is kept beside the profile instead. A longer service is cut as well.
    pub max_label_bytes: usize,
    /// How deep attribute values may nest.
    pub max_nesting: usize,
    /// The times that spans, profiles and samples of OTLP may have. It moves on with the clock, so that each request has its own.
    pub clock: ClockWindow,
}

impl Limits {
    /// Whether a name and value are short enough for a label.
    pub(crate) fn may_be_label(&self, name: &str, value: &str) -> bool {
        name.len().max(value.len()) <= self.max_label_bytes
    }

    /// As much of a value as a label may have, for the service, which no series is without.
    pub(crate) fn short_label<'v>(&self, value: &'v str) -> &'v str {
        &value[..value.floor_char_boundary(self.max_label_bytes)]
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            max_chunk_bytes: 256 << 20,
            max_decoded_bytes: 512 << 20,
            max_item_bytes: 16 << 20,
            max_text_bytes: 1 << 20,
            max_stack_depth: 512,
            max_labels: 128,
            max_label_bytes: 2048,
            max_nesting: 32,
            clock: ClockWindow::default(),
        }
    }
}
