//! The pages of a column chunk: compressed, laid out one after the other, and where each of them is.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, EncodingMask, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ColumnChunkMetaDataBuilder, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Compresses the pages of all columns of a file: one after the other in the same memory, which stays near that way.
pub(in crate::segment) struct PageCompressor(Compressor<'static>);

impl PageCompressor {
    pub(in crate::segment) fn new(level: i32) -> Result<Self> {
        Ok(Self(Compressor::new(level)?))
    }

    fn compress(&mut self, codec: Compression, page: &[u8]) -> Result<Bytes> {
        match codec {
            Compression::UNCOMPRESSED => Ok(Bytes::copy_from_slice(page)),
            Compression::ZSTD(_) => Ok(self.0.compress(page)?.into()),
            other => Err(ParquetError::NYI(format!("pages are not compressed by {other}"))),
        }
    }
}

/// The pages of a column chunk so far.
pub(super) struct ChunkPages {
    codec: Compression,
    data: TrackedWrite<Vec<u8>>,
    dictionary: Vec<u8>,
    uncompressed_bytes: usize,
    values: u64,
    locations: OffsetIndexBuilder,
    encodings: Vec<PageEncodingStats>,
}

/// What a data page holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageContent {
    pub(super) rows: usize,
    /// Values with those that are missing.
    pub(super) values: usize,
    pub(super) encoding: Encoding,
}

impl ChunkPages {
    pub(super) fn new(codec: Compression) -> Self {
        Self {
            codec,
            data: TrackedWrite::new(Vec::new()),
            dictionary: Vec::new(),
            uncompressed_bytes: 0,
            values: 0,
            locations: OffsetIndexBuilder::new(),
            encodings: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.data.bytes_written() + self.dictionary.len()
    }

    pub(super) fn put(&mut self, page: &[u8], content: PageContent, compressor: &mut PageCompressor) -> Result<()> {
        let PageContent { rows, values, encoding } = content;
        let data_page = Page::DataPage {
            buf: compressor.compress(self.codec, page)?,
            num_values: values as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let offset = self.data.bytes_written();
        let written =
            SerializedPageWriter::new(&mut self.data).write_page(CompressedPage::new(data_page, page.len()))?;
        self.uncompressed_bytes += written.uncompressed_size;
        self.values += values as u64;
        self.locations.append_row_count(rows as i64);
        self.locations.append_offset_and_size(offset as i64, written.compressed_size as i32);
        match self.encodings.last_mut() {
            Some(last) if last.encoding == encoding => last.count += 1,
            _ => self.encodings.push(PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: 1 }),
        }
        Ok(())
    }

    /// The dictionary, which is known last and stands first.
    pub(super) fn put_dictionary(
        &mut self,
        (page, distinct): (Vec<u8>, usize),
        compressor: &mut PageCompressor,
    ) -> Result<()> {
        let encoding = Encoding::PLAIN;
        let dictionary_page = Page::DictionaryPage {
            buf: compressor.compress(self.codec, &page)?,
            num_values: distinct as u32,
            encoding,
            is_sorted: false,
        };
        let mut sink = TrackedWrite::new(Vec::new());
        let written =
            SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(dictionary_page, page.len()))?;
        self.uncompressed_bytes += written.uncompressed_size;
        self.dictionary = sink.into_inner()?;
        self.encodings.insert(0, PageEncodingStats { page_type: PageType::DICTIONARY_PAGE, encoding, count: 1 });
        Ok(())
    }

    /// All pages in the order of the file, where they lie, and what is known of them.
    pub(super) fn finish(
        self,
        column: ColumnDescPtr,
    ) -> Result<(Bytes, OffsetIndexMetaData, ColumnChunkMetaDataBuilder)> {
        let mut bytes = self.dictionary;
        let dictionary_bytes = bytes.len() as i64;
        bytes.write_all(&self.data.into_inner()?)?;
        let mut locations = self.locations.build();
        locations.page_locations.iter_mut().for_each(|location| location.offset += dictionary_bytes);
        // Levels are always encoded like this.
        let levels = [Encoding::RLE];
        let encodings = self.encodings.iter().map(|pages| &pages.encoding).chain(&levels);
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(self.codec)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings))
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed_bytes as i64)
            .set_num_values(self.values as i64)
            .set_data_page_offset(dictionary_bytes)
            .set_dictionary_page_offset((dictionary_bytes > 0).then_some(0))
            .set_page_encoding_stats(self.encodings);
        Ok((bytes.into(), locations, metadata))
    }
}
