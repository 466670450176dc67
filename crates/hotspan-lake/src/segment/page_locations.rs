//! Where the pages of a column of a row group lie: the offset index of Parquet, read for one column at a time.
//!
//! The reader of the Parquet crate parses the indexes of all columns of all row groups before it reads anything, which takes
//! longer than a look-up does. The encoding is Thrift's compact protocol; nothing else in a file is read by this module.

use parquet::file::page_index::offset_index::PageLocation;

/// Types of the compact protocol that occur here.
const STOP: u8 = 0;
const I64: u8 = 6;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The pages of a column chunk in the order of their rows; none if this is no offset index.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<PageLocation>> {
    let mut input = Input(bytes);
    // The first field is the list of pages. What may come behind it is not needed.
    if input.byte()? != 1 << 4 | LIST {
        return None;
    }
    let head = input.byte()?;
    if head & 0xf != STRUCT {
        return None;
    }
    let count = match head >> 4 {
        15 => usize::try_from(input.unsigned()?).ok()?,
        few => usize::from(few),
    };
    // A page takes four bytes at least, which bounds what a damaged count can ask for.
    if count > bytes.len() / 4 {
        return None;
    }
    (0..count).map(|_| input.page()).collect()
}

struct Input<'b>(&'b [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A page: three required numbers in the order of their fields.
    fn page(&mut self) -> Option<PageLocation> {
        let mut numbers = [None; 3];
        let mut field = 0;
        loop {
            let head = self.byte()?;
            if head == STOP {
                break;
            }
            field += usize::from(head >> 4);
            // 32 and 64 bits are written the same way.
            if head >> 4 == 0 || !matches!(head & 0xf, 5 | I64) {
                return None;
            }
            *numbers.get_mut(field - 1)? = Some(self.signed()?);
        }
        let [offset, size, first_row] = numbers;
        Some(PageLocation {
            offset: offset?,
            compressed_page_size: i32::try_from(size?).ok()?,
            first_row_index: first_row?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: an index of two pages as the format has it, cut short anywhere, and with a count that can't be.
    /// Guarantee: the pages, or nothing; never a panic, never memory for what is not there.
    #[test]
    fn whole_or_nothing() {
        let index = [0x19, 0x2c, 0x16, 8, 0x15, 200, 1, 0x16, 0, 0, 0x16, 208, 1, 0x15, 6, 0x16, 128, 32, 0, 0];
        let pages = parse(&index).unwrap();
        let numbers: Vec<(i64, i32, i64)> =
            pages.iter().map(|page| (page.offset, page.compressed_page_size, page.first_row_index)).collect();
        assert_eq!(numbers, [(4, 100, 0), (104, 3, 2048)]);
        for length in 0..index.len() - 1 {
            assert!(parse(&index[..length]).is_none(), "{length} bytes");
        }
        assert!(parse(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_none());
    }
}
