//! A chunk: its header, its metadata, and its events one after another.

use super::FORMAT;
use super::cursor::Cursor;
use super::layout::Layouts;
use crate::file_error::{FileError, Result};

pub(super) const HEADER_BYTES: usize = 68;
/// Types of the events that describe the others.
const METADATA: u64 = 0;
pub(super) const CONSTANT_POOL: u64 = 1;

/// The header of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) size: u64,
    metadata_at: u64,
    start_nanos: i64,
    duration_nanos: i64,
    start_ticks: i64,
    ticks_per_second: i64,
    compressed: bool,
}

/// A chunk in memory.
#[derive(Debug)]
pub(super) struct Chunk<'c> {
    bytes: &'c [u8],
    /// Where it starts in the file.
    base: usize,
    header: Header,
    pub(super) layouts: Layouts,
}

/// One event: its type, and where its content lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'c> {
    pub(super) class: u64,
    pub(super) content: Cursor<'c>,
}

impl Header {
    /// Reads a header that starts at `base` of the file.
    pub(super) fn read(bytes: &[u8], base: usize) -> Result<Self> {
        if !bytes.starts_with(b"FLR\0") {
            let found = String::from_utf8_lossy(&bytes[..bytes.len().min(4)]).into_owned();
            return Err(FileError::malformed(FORMAT, base, "the start of a chunk, FLR", format!("{found:?}")));
        }
        if bytes.len() < HEADER_BYTES {
            let expected = format!("a chunk header of {HEADER_BYTES} bytes");
            return Err(FileError::truncated(FORMAT, base + bytes.len(), expected));
        }
        let number = |at: usize| bytes[at..at + 8].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let major = u16::from_be_bytes([bytes[4], bytes[5]]);
        if !(1..=2).contains(&major) {
            return Err(FileError::malformed(FORMAT, base + 4, "version 1 or 2 of the format", major));
        }
        let header = Self {
            size: number(8),
            metadata_at: number(24),
            start_nanos: number(32) as i64,
            duration_nanos: number(40) as i64,
            start_ticks: number(48) as i64,
            ticks_per_second: number(56) as i64,
            compressed: bytes[67] & 1 != 0,
        };
        if header.size < HEADER_BYTES as u64 {
            let found = format!("{}, as in a recording that was not finished", header.size);
            return Err(FileError::malformed(FORMAT, base + 8, "the size of the chunk", found));
        }
        if header.ticks_per_second <= 0 {
            return Err(FileError::malformed(FORMAT, base + 56, "ticks a second above 0", header.ticks_per_second));
        }
        Ok(header)
    }
}

impl<'c> Chunk<'c> {
    /// Opens a chunk of which all bytes are there.
    pub(super) fn open(bytes: &'c [u8], base: usize) -> Result<Self> {
        let header = Header::read(bytes, base)?;
        let mut chunk = Self { bytes, base, header, layouts: Layouts::default() };
        let at = usize::try_from(header.metadata_at).unwrap_or(usize::MAX);
        if at < HEADER_BYTES || at >= bytes.len() {
            let expected = "the place of the metadata inside the chunk";
            return Err(FileError::malformed(FORMAT, base + 24, expected, header.metadata_at));
        }
        let (event, _) = chunk.event(at)?;
        if event.class != METADATA {
            let found = format!("event type {}", event.class);
            return Err(FileError::malformed(FORMAT, base + at, "a metadata event", found));
        }
        let mut content = event.content;
        chunk.layouts = Layouts::read(&mut content)?;
        Ok(chunk)
    }

    /// All events in the order of the file.
    pub(super) fn events(&self) -> impl Iterator<Item = Result<Event<'c>>> {
        let mut at = HEADER_BYTES;
        let mut failed = false;
        std::iter::from_fn(move || {
            if at >= self.bytes.len() || failed {
                return None;
            }
            let event = self.event(at);
            match &event {
                Ok((_, end)) => at = *end,
                Err(_) => failed = true,
            }
            Some(event.map(|(event, _)| event))
        })
    }

    /// The event at a place, and where it ends.
    fn event(&self, at: usize) -> Result<(Event<'c>, usize)> {
        let mut cursor = self.cursor(at);
        let size = cursor.int()? as usize;
        let header = cursor.at - at;
        if size <= header || size > self.bytes.len() - at {
            let expected = format!("the size of an event, at most {}", self.bytes.len() - at);
            return Err(FileError::malformed(FORMAT, self.base + at, expected, size));
        }
        let mut content = cursor.window(cursor.at, at + size);
        let class = content.long()?;
        Ok((Event { class, content }, at + size))
    }

    /// A cursor at a place of the chunk.
    pub(super) fn cursor(&self, at: usize) -> Cursor<'c> {
        Cursor::new(self.bytes, at, self.header.compressed, self.base)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Where it starts in the file.
    pub(super) fn offset(&self) -> usize {
        self.base
    }

    /// Nanoseconds since 1970 of a moment in ticks.
    #[inline]
    pub(super) fn nanoseconds_at(&self, ticks: i64) -> i64 {
        self.header.start_nanos.saturating_add(self.nanoseconds(ticks.wrapping_sub(self.header.start_ticks)))
    }

    /// Nanoseconds of a stretch in ticks.
    #[inline]
    pub(super) fn nanoseconds(&self, ticks: i64) -> i64 {
        if self.header.ticks_per_second == 1_000_000_000 {
            return ticks;
        }
        let wide = i128::from(ticks) * 1_000_000_000 / i128::from(self.header.ticks_per_second);
        i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
    }

    /// Start and length in nanoseconds.
    pub(super) fn time_range(&self) -> (i64, i64) {
        (self.header.start_nanos, self.header.duration_nanos)
    }
}
