//! The first pass: where each message of a pprof profile lies, and the string table.

use super::FORMAT;
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::protobuf::{Content, Field, Fields};
use crate::utf8::Neighbours;

/// A message of the profile and where it starts in the file.
pub(super) type Message<'a> = (&'a [u8], usize);

/// The top level of a profile.
#[derive(Debug, Default)]
pub(super) struct Outline<'a> {
    pub(super) sample_types: Vec<Message<'a>>,
    pub(super) samples: Vec<Message<'a>>,
    pub(super) mappings: Vec<Message<'a>>,
    pub(super) locations: Vec<Message<'a>>,
    pub(super) functions: Vec<Message<'a>>,
    pub(super) strings: Vec<&'a str>,
    /// How many of them were longer than the limit, and are cut.
    pub(super) cut_texts: u64,
    pub(super) period_type: Option<Message<'a>>,
    pub(super) time_nanos: i64,
    pub(super) duration_nanos: i64,
    pub(super) period: i64,
    pub(super) drop_frames: Index,
    pub(super) keep_frames: Index,
    pub(super) default_sample_type: Index,
    pub(super) doc_url: Index,
    pub(super) comments: Vec<u64>,
    /// How many bytes each of the tables that are made of this may take.
    pub(super) max_table_bytes: usize,
}

/// An index into the string table, and the place that said so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Index {
    pub(super) index: u64,
    pub(super) offset: usize,
}

impl Index {
    pub(super) fn of(field: &Field<'_>) -> Result<Self> {
        Ok(Self { index: field.unsigned()?, offset: field.offset })
    }

    /// The index in this field, if that comes next; the index of the empty string otherwise.
    #[inline(always)]
    pub(super) fn next_in(fields: &mut Fields<'_>, number: u8) -> Result<Self> {
        Ok(fields.next_number(number)?.map_or_else(Self::default, |(index, offset)| Self { index, offset }))
    }
}

/// A value type: what is counted, and in which unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueType<'a> {
    pub(super) name: &'a str,
    pub(super) unit: &'a str,
}

impl<'a> Outline<'a> {
    /// Reads the top level.
    pub(super) fn scan(bytes: &'a [u8], options: &DecodeOptions) -> Result<Self> {
        let (max_samples, max_symbols) = (options.max_samples(), options.max_symbols());
        // About what a sample and its share of the symbols take; a guess, tables still grow as they need.
        let expected = (bytes.len() / 256).min(1 << 13);
        let mut outline = Self {
            samples: Vec::with_capacity(expected),
            locations: Vec::with_capacity(3 * expected),
            functions: Vec::with_capacity(2 * expected),
            strings: Vec::with_capacity(3 * expected),
            max_table_bytes: options.limits.max_decoded_bytes,
            ..Self::default()
        };
        let max_text_bytes = options.limits.max_text_bytes;
        let mut symbols = 0;
        let mut table = Neighbours::new(bytes);
        let mut fields = Fields::new(FORMAT, bytes, 0);
        while let Some(field) = fields.next()? {
            match field.number {
                2 => {
                    if outline.samples.len() == max_samples {
                        return Err(FileError::too_large(FORMAT, field.offset, "samples", max_samples as u64));
                    }
                    outline.samples.push((field.bytes()?, field.offset));
                }
                1 | 3..=6 => {
                    symbols += 1;
                    if symbols > max_symbols {
                        let what = "sample types, mappings, locations, functions and strings";
                        return Err(FileError::too_large(FORMAT, field.offset, what, max_symbols as u64));
                    }
                    match field.number {
                        1 => outline.sample_types.push((field.bytes()?, field.offset)),
                        3 => outline.mappings.push((field.bytes()?, field.offset)),
                        4 => outline.locations.push((field.bytes()?, field.offset)),
                        5 => outline.functions.push((field.bytes()?, field.offset)),
                        _ => {
                            let end = field.offset + field.bytes()?.len();
                            let text = table.text(field.offset..end).map_or_else(|| field.text(), Ok)?;
                            let kept = text.floor_char_boundary(max_text_bytes);
                            outline.cut_texts += u64::from(kept < text.len());
                            outline.strings.push(&text[..kept]);
                        }
                    }
                }
                7 => outline.drop_frames = Index::of(&field)?,
                8 => outline.keep_frames = Index::of(&field)?,
                9 => outline.time_nanos = field.signed()?,
                10 => outline.duration_nanos = field.signed()?,
                11 => outline.period_type = Some((field.bytes()?, field.offset)),
                12 => outline.period = field.signed()?,
                13 => {
                    let more = if let Content::Bytes(packed) = field.content { packed.len() } else { 1 };
                    if outline.comments.len() + more > max_symbols {
                        return Err(FileError::too_large(FORMAT, field.offset, "comments", max_symbols as u64));
                    }
                    field.append_numbers(&mut outline.comments)?;
                }
                14 => outline.default_sample_type = Index::of(&field)?,
                15 => outline.doc_url = Index::of(&field)?,
                _ => {}
            }
        }
        if outline.sample_types.is_empty() {
            return Err(FileError::malformed(FORMAT, bytes.len(), "at least one sample type", "none"));
        }
        match outline.strings.first() {
            Some(&"") => Ok(outline),
            Some(first) => Err(FileError::malformed(FORMAT, 0, "an empty first string", format!("{first:?}"))),
            None => Err(FileError::malformed(FORMAT, bytes.len(), "a string table", "none")),
        }
    }

    /// A string of the table.
    #[inline]
    pub(super) fn string(&self, index: Index) -> Result<&'a str> {
        match self.strings.get(index.index as usize) {
            Some(text) => Ok(text),
            None => Err(self.missing_string(index)),
        }
    }

    #[cold]
    fn missing_string(&self, index: Index) -> FileError {
        let expected = format!("a string index below {}", self.strings.len());
        FileError::malformed(FORMAT, index.offset, expected, index.index)
    }

    /// Reads a value type.
    pub(super) fn value_type(&self, message: Message<'a>) -> Result<ValueType<'a>> {
        let mut value_type = ValueType::default();
        let mut fields = Fields::new(FORMAT, message.0, message.1);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => value_type.name = self.string(Index::of(&field)?)?,
                2 => value_type.unit = self.string(Index::of(&field)?)?,
                _ => {}
            }
        }
        Ok(value_type)
    }
}
