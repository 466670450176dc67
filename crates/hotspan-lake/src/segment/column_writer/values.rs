//! What the values of a column chunk are on their way into pages.

use std::ops::Range;

use arrow::array::{Array, AsArray, BooleanBufferBuilder};
use arrow::buffer::NullBuffer;
use parquet::basic::{BoundaryOrder, Encoding};

use super::bounds::Bounds;

/// The values of a column chunk: those of the page that is being filled, and the dictionary of the whole.
pub(super) trait Values: Send {
    /// Adds the values of a range that are there.
    fn append(&mut self, values: &dyn Array, range: Range<usize>, present: Option<&NullBuffer>);

    /// About how many bytes the page has.
    fn page_bytes(&self) -> usize;

    /// Ends the page: appends its values, and says how they are encoded and what their bounds are.
    fn end_page(&mut self, out: &mut Vec<u8>) -> (Encoding, Option<Bounds>);

    /// Bytes of the dictionary, as long as there is one.
    fn dictionary_bytes(&self) -> Option<usize>;

    /// The dictionary as a page, and how many values it has. Values that are added later are not coded any more.
    fn take_dictionary(&mut self) -> Option<(Vec<u8>, usize)>;

    /// The bounds of all pages that were ended, and the order of these.
    fn chunk_bounds(&self) -> Option<(Bounds, BoundaryOrder)>;
}

/// Truth values, which are bits as in Arrow.
pub(super) struct Flags(BooleanBufferBuilder);

impl Default for Flags {
    fn default() -> Self {
        Self(BooleanBufferBuilder::new(0))
    }
}

impl Values for Flags {
    fn append(&mut self, values: &dyn Array, range: Range<usize>, present: Option<&NullBuffer>) {
        let flags = values.as_boolean().values().slice(range.start, range.len());
        match present {
            None => self.0.append_buffer(&flags),
            Some(present) => present.valid_indices().for_each(|at| self.0.append(flags.value(at))),
        }
    }

    fn page_bytes(&self) -> usize {
        self.0.len() / 8
    }

    fn end_page(&mut self, out: &mut Vec<u8>) -> (Encoding, Option<Bounds>) {
        out.extend_from_slice(self.0.finish().values());
        (Encoding::PLAIN, None)
    }

    fn dictionary_bytes(&self) -> Option<usize> {
        None
    }

    fn take_dictionary(&mut self) -> Option<(Vec<u8>, usize)> {
        None
    }

    fn chunk_bounds(&self) -> Option<(Bounds, BoundaryOrder)> {
        None
    }
}
