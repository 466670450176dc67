//! The tables of the lake: their columns, their order and their partitions.
//!
//! All tables are flat enough for any reader of Parquet. Ids are fixed-size binary, times are nanoseconds
//! (R8), and attribute sets that JSON describes best are JSON text in a dictionary column.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

/// Nanoseconds in 15 seconds: the finest window of rollups, and the unit that samples are clustered by.
pub const WINDOW_15S: i64 = 15 * 1_000_000_000;
/// Nanoseconds in an hour: the partition of most tables, and the window of the coarse rollup.
pub const HOUR: i64 = 3600 * 1_000_000_000;
/// Nanoseconds in a day: the partition of symbols and of the coarse rollup.
pub const DAY: i64 = 24 * HOUR;

/// A table of the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// One row a span.
    Spans,
    /// One row a trace and file: what search lists and prunes by.
    Traces,
    /// One row a sample.
    Samples,
    /// Samples summed by series, 15 s window and call path.
    Rollup15s,
    /// Samples summed by series, hour and call path.
    Rollup1h,
    /// One row a received profile.
    Profiles,
    /// One row a label set and hour.
    Series,
    /// One row a call-path node, service and day.
    Nodes,
    /// One row a frame, service and day.
    Frames,
}

impl Table {
    /// Every table.
    pub const ALL: [Table; 9] = [
        Self::Spans,
        Self::Traces,
        Self::Samples,
        Self::Rollup15s,
        Self::Rollup1h,
        Self::Profiles,
        Self::Series,
        Self::Nodes,
        Self::Frames,
    ];

    /// The tables that a flush writes; the others are derived by compaction.
    pub const RECEIVED: [Table; 6] =
        [Self::Spans, Self::Samples, Self::Profiles, Self::Series, Self::Nodes, Self::Frames];

    /// Its name in paths, SQL and the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Traces => "traces",
            Self::Samples => "samples",
            Self::Rollup15s => "rollup_15s",
            Self::Rollup1h => "rollup_1h",
            Self::Profiles => "profiles",
            Self::Series => "series",
            Self::Nodes => "nodes",
            Self::Frames => "frames",
        }
    }

    /// The columns that every file of this table has; spans may have attribute columns besides.
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<HashMap<Table, SchemaRef>> =
            LazyLock::new(|| Table::ALL.iter().map(|table| (*table, numbered(table.columns()))).collect());
        Arc::clone(&SCHEMAS[&self])
    }

    /// The column that places a row in time.
    pub fn time_column(self) -> &'static str {
        match self {
            Self::Spans | Self::Traces => "start_time",
            _ => "time",
        }
    }

    /// How much time one partition holds.
    pub fn partition_length(self) -> i64 {
        match self {
            Self::Rollup1h | Self::Nodes | Self::Frames => DAY,
            _ => HOUR,
        }
    }

    /// The start of the partition that holds `time`.
    pub fn partition_of(self, time: i64) -> i64 {
        time.div_euclid(self.partition_length()).saturating_mul(self.partition_length())
    }

    /// The columns that rows are sorted by, in order. Samples are sorted by their 15 s window where `time`
    /// stands the first time, and by the exact time where it stands the second time.
    pub fn sort_columns(self) -> &'static [&'static str] {
        match self {
            Self::Spans => &["trace_id", "start_time", "span_id"],
            Self::Traces => &["start_time", "trace_id"],
            Self::Samples => &["series", "time", "trace_id", "span_id", "time"],
            Self::Rollup15s | Self::Rollup1h => &["series", "time", "path"],
            Self::Profiles => &["time", "profile_id"],
            Self::Series => &["series", "time"],
            Self::Nodes | Self::Frames => &["service_id", "id", "time"],
        }
    }

    fn columns(self) -> Vec<Field> {
        match self {
            Self::Spans => span_columns(),
            Self::Traces => vec![
                required("trace_id", DataType::FixedSizeBinary(16)),
                required("start_time", timestamp()),
                required("end_time", timestamp()),
                optional("root_service", DataType::Utf8),
                optional("root_name", DataType::Utf8),
                optional("root_start_time", timestamp()),
                optional("root_duration", DataType::Int64),
                required("spans", DataType::UInt32),
                required("errors", DataType::UInt32),
                required("services", list_of("item", DataType::Utf8)),
            ],
            Self::Samples => vec![
                required("series", DataType::UInt64),
                required("time", timestamp()),
                required("timed", DataType::Boolean),
                optional("trace_id", DataType::FixedSizeBinary(16)),
                optional("span_id", DataType::FixedSizeBinary(8)),
                required("path", DataType::UInt64),
                required("value", DataType::Int64),
                optional("thread_id", DataType::Int64),
                optional("thread_name", dictionary()),
                required("profile_id", DataType::FixedSizeBinary(16)),
                optional("attributes", dictionary()),
            ],
            Self::Rollup15s | Self::Rollup1h => vec![
                required("series", DataType::UInt64),
                required("time", timestamp()),
                required("path", DataType::UInt64),
                required("value", DataType::Int64),
                required("count", DataType::UInt32),
            ],
            Self::Profiles => vec![
                required("profile_id", DataType::FixedSizeBinary(16)),
                required("time", timestamp()),
                required("duration", DataType::Int64),
                required("service", dictionary()),
                required("profile_type", dictionary()),
                required("period", DataType::Int64),
                required("samples", DataType::UInt32),
                required("value", DataType::Int64),
                optional("resource", dictionary()),
                optional("scope", dictionary()),
                optional("attributes", dictionary()),
                optional("mappings", dictionary()),
                required("dropped_attributes_count", DataType::UInt32),
                optional("original_payload_format", dictionary()),
                optional("original_payload", DataType::Binary),
                optional("source", dictionary()),
                // Added after the others: files of before lack it.
                optional("labels", dictionary()),
            ],
            Self::Series => vec![
                required("series", DataType::UInt64),
                required("time", timestamp()),
                required("service", DataType::Utf8),
                required("profile_type", DataType::Utf8),
                required("labels", map()),
            ],
            Self::Nodes => vec![
                required("id", DataType::UInt64),
                required("time", timestamp()),
                required("parent", DataType::UInt64),
                required("frame", DataType::UInt64),
                required("service_id", DataType::UInt64),
            ],
            Self::Frames => vec![
                required("id", DataType::UInt64),
                required("time", timestamp()),
                required("function", DataType::Utf8),
                optional("system_name", DataType::Utf8),
                optional("file", dictionary()),
                required("line", DataType::UInt32),
                required("column", DataType::UInt32),
                required("start_line", DataType::UInt32),
                optional("mapping", dictionary()),
                optional("build_id", dictionary()),
                required("address", DataType::UInt64),
                required("kind", DataType::UInt8),
                optional("attributes", dictionary()),
                required("service_id", DataType::UInt64),
            ],
        }
    }
}

fn span_columns() -> Vec<Field> {
    vec![
        required("trace_id", DataType::FixedSizeBinary(16)),
        required("span_id", DataType::FixedSizeBinary(8)),
        optional("parent_span_id", DataType::FixedSizeBinary(8)),
        required("start_time", timestamp()),
        required("duration", DataType::Int64),
        required("service", dictionary()),
        required("name", DataType::Utf8),
        required("kind", DataType::Int8),
        required("status", DataType::Int8),
        optional("status_message", DataType::Utf8),
        optional("trace_state", DataType::Utf8),
        required("flags", DataType::UInt32),
        required("resource", dictionary()),
        required("scope", dictionary()),
        required("attributes", map()),
        required("attributes_json", map()),
        required("events", list_of("item", DataType::Struct(event_fields()))),
        required("links", list_of("item", DataType::Struct(link_fields()))),
        required("dropped_attributes_count", DataType::UInt32),
        required("dropped_events_count", DataType::UInt32),
        required("dropped_links_count", DataType::UInt32),
    ]
}

/// The fields of one event inside the `events` column.
pub fn event_fields() -> Fields {
    Fields::from(vec![
        required("time", timestamp()),
        required("name", DataType::Utf8),
        required("attributes", DataType::Utf8),
        required("dropped_attributes_count", DataType::UInt32),
    ])
}

/// The fields of one link inside the `links` column.
pub fn link_fields() -> Fields {
    Fields::from(vec![
        required("trace_id", DataType::FixedSizeBinary(16)),
        required("span_id", DataType::FixedSizeBinary(8)),
        required("trace_state", DataType::Utf8),
        required("attributes", DataType::Utf8),
        required("dropped_attributes_count", DataType::UInt32),
        required("flags", DataType::UInt32),
    ])
}

fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn optional(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

/// Nanoseconds since 1970, in UTC by definition.
pub fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, None)
}

/// Text of which a file holds few distinct values.
pub fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn list_of(item: &str, data_type: DataType) -> DataType {
    DataType::List(FieldRef::new(required(item, data_type)))
}

/// Text to text. Rows repeat the same few keys. Field names as Parquet spells them.
pub fn map() -> DataType {
    DataType::Map(FieldRef::new(required("key_value", DataType::Struct(map_entry_fields(dictionary())))), false)
}

/// The fields of one entry of a map column.
pub(crate) fn map_entry_fields(keys: DataType) -> Fields {
    Fields::from(vec![required("key", keys), required("value", DataType::Utf8)])
}

/// The metadata key under which the Parquet writer finds a column's stable number.
const FIELD_ID: &str = "PARQUET:field_id";

/// Numbers the columns, so that readers which map columns by number (DuckLake, Iceberg) find them.
fn numbered(columns: Vec<Field>) -> SchemaRef {
    let number = |(index, field): (usize, Field)| {
        field.with_metadata(HashMap::from([(FIELD_ID.to_owned(), (index + 1).to_string())]))
    };
    Arc::new(Schema::new(columns.into_iter().enumerate().map(number).collect::<Vec<_>>()))
}

/// A name that is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a table of the lake")]
pub struct UnknownTable(String);

impl FromStr for Table {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<Self, UnknownTable> {
        Self::ALL.into_iter().find(|table| table.name() == name).ok_or_else(|| UnknownTable(name.to_owned()))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
