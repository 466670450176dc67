//! Level 0: one object with all tables of a flush as Arrow streams, one after the other, each an LZ4 frame.
//!
//! ```text
//! "HOTSPAN\x01"  stream of spans  stream of samples  …  contents (JSON)  length of contents (u32)  "HOTSPAN\x01"
//! ```
//!
//! The catalog knows where each stream lies, so that a reader fetches only what it needs; the contents at the
//! end let a person or a tool understand an object without the catalog.

use std::ops::Range;

use arrow::array::{Array, RecordBatch, TimestampNanosecondArray};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamEncoder;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::lz4_frame;
use crate::error::{LakeError, Result};
use crate::table::Table;

const MAGIC: &[u8; 8] = b"HOTSPAN\x01";

/// One table inside an encoded object.
#[derive(Debug, Clone)]
pub(crate) struct EncodedTable {
    pub(crate) table: Table,
    pub(crate) range: Range<u64>,
    pub(crate) checksum: u64,
    pub(crate) rows: u64,
    pub(crate) min_time: i64,
    pub(crate) max_time: i64,
}

/// Encodes all tables of a flush into one object.
pub(crate) fn encode(batches: &[(Table, RecordBatch)]) -> Result<(Bytes, Vec<EncodedTable>)> {
    // Compressed, rows take a third to a half: growing on the way would copy what is there again and again.
    let memory: usize = batches.iter().map(|(_, batch)| batch.get_array_memory_size()).sum();
    let mut object = Vec::with_capacity(memory / 2 + (64 << 10));
    object.extend_from_slice(MAGIC);
    let mut tables = Vec::with_capacity(batches.len());
    for (table, batch) in batches {
        let start = object.len();
        let mut stream = StreamEncoder::try_new(&batch.schema())?;
        let mut parts = stream.encode(batch)?;
        parts.extend(stream.finish()?);
        lz4_frame::compress(&parts, &mut object);
        let (min_time, max_time) = time_range(*table, batch)?;
        tables.push(EncodedTable {
            table: *table,
            range: start as u64..object.len() as u64,
            checksum: xxh3_64(&object[start..]),
            rows: batch.num_rows() as u64,
            min_time,
            max_time,
        });
    }
    let contents = describe(&tables);
    object.extend_from_slice(contents.as_bytes());
    object.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    object.extend_from_slice(MAGIC);
    Ok((Bytes::from(object), tables))
}

fn describe(tables: &[EncodedTable]) -> String {
    let entries = tables.iter().map(|entry| {
        serde_json::json!({
            "table": entry.table.name(), "start": entry.range.start, "end": entry.range.end,
            "rows": entry.rows, "xxh3": format!("{:016x}", entry.checksum),
            "min_time": entry.min_time, "max_time": entry.max_time,
        })
    });
    serde_json::json!({ "tables": entries.collect::<Vec<_>>() }).to_string()
}

/// Decodes the stream of one table, which must be what was written: Arrow's reader takes the lengths and types in it for
/// granted. Its columns share one piece of memory.
pub(crate) fn decode(path: &str, stream: &Bytes, checksum: u64) -> Result<RecordBatch> {
    let damaged = |reason: String| LakeError::Damaged { path: path.to_owned(), reason };
    let found = xxh3_64(stream);
    if found != checksum {
        return Err(damaged(format!("checksum {found:016x}, the catalog says {checksum:016x}")));
    }
    let mut content = lz4_frame::decompress(stream).map_err(damaged)?;
    let mut decoder = StreamDecoder::new();
    let batch = decoder.decode(&mut content).map_err(|error| damaged(error.to_string()))?;
    batch.ok_or_else(|| damaged("the stream holds no batch".to_owned()))
}

/// The earliest and latest time in a batch of this table.
pub(crate) fn time_range(table: Table, batch: &RecordBatch) -> Result<(i64, i64)> {
    let times = batch
        .column_by_name(table.time_column())
        .and_then(|column| column.as_any().downcast_ref::<TimestampNanosecondArray>())
        .ok_or_else(|| LakeError::Damaged {
            path: table.name().to_owned(),
            reason: format!("column {} is not a timestamp", table.time_column()),
        })?;
    // Every row has a time.
    let range = |(min, max): (i64, i64), time: &i64| (min.min(*time), max.max(*time));
    Ok(times.values().iter().fold((i64::MAX, i64::MIN), range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;
    use hotspan_model::{Attribute, Resource, Span, SpanId, TraceId, TraceSink as _, Value};

    /// Three spans, with attributes whose keys are coded.
    fn batches() -> Vec<(Table, RecordBatch)> {
        let mut rows = Rows::default();
        rows.spans.resource(&Resource::default());
        for start in [30, 10, 20] {
            let ids = (TraceId([1; 16]), SpanId([start as u8; 8]));
            let attributes = vec![Attribute::new("route", Value::str("/cart")), Attribute::new("n", Value::Int(start))];
            let (trace_id, span_id) = ids;
            rows.spans.span(&Span { trace_id, span_id, start, end: start + 5, attributes, ..Span::default() });
        }
        rows.finish().unwrap()
    }

    /// Scenario: a segment written and read back. Guarantee: rows, ranges and checksums agree.
    #[test]
    fn round_trip() {
        let batches = batches();
        let (object, tables) = encode(&batches).unwrap();
        assert_eq!((tables[0].min_time, tables[0].max_time, tables[0].rows), (10, 30, 3));
        let stream = object.slice(tables[0].range.start as usize..tables[0].range.end as usize);
        assert_eq!(xxh3_64(&stream), tables[0].checksum);
        assert_eq!(decode("x", &stream, tables[0].checksum).unwrap(), batches[0].1);
    }

    /// Scenario: a stream in which any one bit has changed, or that is cut short anywhere.
    /// Guarantee: an error that names the object; never a panic, and never other rows.
    #[test]
    fn damage_is_told() {
        let (object, tables) = encode(&batches()).unwrap();
        let stream = &object[tables[0].range.start as usize..tables[0].range.end as usize];
        let refuse = |wrong: Vec<u8>, what: &str| {
            let error = decode("l0/x.seg", &wrong.into(), tables[0].checksum).expect_err(what).to_string();
            assert!(error.contains("l0/x.seg is damaged"), "{what}: {error}");
        };
        for at in 0..stream.len() {
            let mut wrong = stream.to_vec();
            wrong[at] ^= 1 << (at % 8);
            refuse(wrong, &format!("byte {at} changed"));
            refuse(stream[..at].to_vec(), &format!("cut at {at}"));
        }
    }
}
