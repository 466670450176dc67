//! The least and greatest values of pages and of the whole chunk, and what Parquet keeps of them.

use parquet::basic::{BoundaryOrder, Type};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::Result;
use parquet::file::metadata::ColumnIndexBuilder;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescriptor;

/// Bytes of a text that bounds keep at most.
const MOST_BYTES: usize = 64;

/// The least and the greatest value of something, as Parquet stores values.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    pub(super) least: Vec<u8>,
    pub(super) greatest: Vec<u8>,
}

/// Bounds being found, of values that are told apart as `T`.
#[derive(Debug)]
pub(super) struct BoundsOf<T> {
    page: Option<(T, T)>,
    chunk: Option<(T, T)>,
    /// Those of the last page that had any.
    last: Option<(T, T)>,
    /// Whether no page so far begins or ends below the one before it, and whether none does above it.
    ascends: bool,
    descends: bool,
}

impl<T: Ord + Clone> BoundsOf<T> {
    pub(super) fn new() -> Self {
        Self { page: None, chunk: None, last: None, ascends: true, descends: true }
    }

    pub(super) fn add(&mut self, least: T, greatest: T) {
        widen(&mut self.page, least, greatest);
    }

    /// Those of the page that ends here.
    pub(super) fn end_page(&mut self) -> Option<(T, T)> {
        let (least, greatest) = self.page.take()?;
        widen(&mut self.chunk, least.clone(), greatest.clone());
        if let Some(last) = self.last.replace((least.clone(), greatest.clone())) {
            self.ascends &= last.0 <= least && last.1 <= greatest;
            self.descends &= last.0 >= least && last.1 >= greatest;
        }
        Some((least, greatest))
    }

    /// Those of all pages that have ended.
    pub(super) fn of_chunk(&self) -> Option<&(T, T)> {
        self.chunk.as_ref()
    }

    /// The order of the pages.
    pub(super) fn order(&self) -> BoundaryOrder {
        match (self.ascends, self.descends) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        }
    }
}

impl BoundsOf<Vec<u8>> {
    /// Copies a text only if it is a bound.
    pub(super) fn add_text(&mut self, text: &[u8]) {
        match &mut self.page {
            Some((least, _)) if text < least.as_slice() => *least = text.to_vec(),
            Some((_, greatest)) if text > greatest.as_slice() => *greatest = text.to_vec(),
            Some(_) => {}
            None => self.page = Some((text.to_vec(), text.to_vec())),
        }
    }
}

fn widen<T: Ord>(known: &mut Option<(T, T)>, least: T, greatest: T) {
    match known {
        Some(known) => {
            if least < known.0 {
                known.0 = least;
            }
            if greatest > known.1 {
                known.1 = greatest;
            }
        }
        None => *known = Some((least, greatest)),
    }
}

/// The bounds of each page of a chunk.
#[derive(Debug, Default)]
pub(super) struct PageBounds {
    pages: Vec<(Option<Bounds>, usize)>,
}

impl PageBounds {
    pub(super) fn push(&mut self, bounds: Option<Bounds>, nulls: usize) {
        self.pages.push((bounds, nulls));
    }

    pub(super) fn finish(self, order: BoundaryOrder, column: &ColumnDescriptor) -> Result<ColumnIndexMetaData> {
        let mut index = ColumnIndexBuilder::new(column.physical_type());
        index.set_boundary_order(order);
        for (bounds, nulls) in self.pages {
            match bounds {
                Some(bounds) => {
                    let (least, greatest) = (shortened(bounds.least, column), raised(bounds.greatest, column));
                    index.append(false, least.0, greatest.0, nulls as i64);
                }
                // A page without any value has no bounds.
                None => index.append(true, Vec::new(), Vec::new(), nulls as i64),
            }
        }
        index.build()
    }
}

/// The bounds of a whole chunk for its metadata.
pub(super) fn chunk_statistics(bounds: Option<Bounds>, nulls: u64, column: &ColumnDescriptor) -> Statistics {
    let is_signed = column.sort_order().is_signed();
    let (least, greatest) = match bounds {
        Some(bounds) => (Some(shortened(bounds.least, column)), Some(raised(bounds.greatest, column))),
        None => (None, None),
    };
    let is_exact = |bound: &Option<(Vec<u8>, bool)>| bound.as_ref().is_some_and(|(_, is_exact)| *is_exact);
    let exact = (is_exact(&least), is_exact(&greatest));
    let (least, greatest) = (least.map(|(bytes, _)| bytes), greatest.map(|(bytes, _)| bytes));
    macro_rules! of {
        ($from:expr) => {
            ValueStatistics::new(least.map($from), greatest.map($from), None, Some(nulls), false)
                .with_min_is_exact(exact.0)
                .with_max_is_exact(exact.1)
                .with_backwards_compatible_min_max(is_signed)
                .into()
        };
    }
    match column.physical_type() {
        Type::INT32 => of!(|bytes: Vec<u8>| i32::from_le_bytes(fixed(&bytes))),
        Type::INT64 => of!(|bytes: Vec<u8>| i64::from_le_bytes(fixed(&bytes))),
        Type::FIXED_LEN_BYTE_ARRAY => of!(|bytes: Vec<u8>| FixedLenByteArray::from(bytes)),
        _ => of!(|bytes: Vec<u8>| ByteArray::from(bytes)),
    }
}

fn fixed<const BYTES: usize>(bytes: &[u8]) -> [u8; BYTES] {
    bytes.first_chunk().copied().unwrap_or([0; BYTES])
}

/// A least value that is not too long, and whether it is still the value itself.
fn shortened(bound: Vec<u8>, column: &ColumnDescriptor) -> (Vec<u8>, bool) {
    match start_of(&bound, column) {
        Some(start) => (start.as_bytes().to_vec(), false),
        None => (bound, true),
    }
}

/// A greatest value that is not too long: its start, raised by one.
fn raised(bound: Vec<u8>, column: &ColumnDescriptor) -> (Vec<u8>, bool) {
    let raised = start_of(&bound, column).and_then(|start| {
        let mut characters = start.char_indices().rev();
        characters.find_map(|(at, character)| {
            // Not by a character that takes more bytes, so that all is at most as long as the start.
            let next = char::from_u32(character as u32 + 1)?;
            (next.len_utf8() == character.len_utf8()).then(|| format!("{}{next}", &start[..at]))
        })
    });
    match raised {
        Some(raised) => (raised.into_bytes(), false),
        None => (bound, true),
    }
}

/// The start of a bound that is too long, if it is a text.
fn start_of<'b>(bound: &'b [u8], column: &ColumnDescriptor) -> Option<&'b str> {
    if bound.len() <= MOST_BYTES || column.physical_type() != Type::BYTE_ARRAY {
        return None;
    }
    let text = str::from_utf8(bound).ok()?;
    Some(&text[..text.floor_char_boundary(MOST_BYTES)])
}
