//! Names and values of attributes, for completion. The latest spans are asked first, and what is new is given at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use futures::TryStreamExt;
use hashbrown::HashSet;
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_lake::{LakeError, ReadOptions, Segment, arrays};
use hotspan_model::{Exactness, TenantId, attributes_from_json};
use hotspan_traceql::{FieldTable, FieldValue, Program, SpanCondition, SpanSource, Value};

use super::binding::BoundSpans;
use super::query_columns::columns_of;
use super::run::overlapping;
use crate::Engine;
use crate::error::Result;

/// Attribute names by scope.
pub type TagScopes = BTreeMap<&'static str, BTreeSet<String>>;

/// A value of a tag, with its type as Tempo names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagValue {
    /// `string`, `int`, `float`, `bool`, `duration` or `keyword`.
    pub value_type: &'static str,
    /// The value as text.
    pub text: String,
}

/// Which spans to look at.
#[derive(Debug, Clone)]
pub struct TagQuery {
    /// Start of the time, in nanoseconds since 1970.
    pub from: i64,
    /// End of the time, not included.
    pub until: i64,
    /// Only spans that pass.
    pub filter: Option<(FieldTable, SpanCondition)>,
    /// Most names of a scope, or values.
    pub limit: usize,
    /// How many of the latest spans to look at, at least; none looks at all.
    pub enough_spans: Option<u64>,
}

/// The segments that a question about tags still has to read, the latest first.
#[derive(Debug)]
struct Remaining {
    engine: Engine,
    tenant: TenantId,
    query: TagQuery,
    segments: std::vec::IntoIter<Arc<Segment>>,
    seen_spans: u64,
    inspected_bytes: u64,
}

impl Remaining {
    fn new(engine: &Engine, tenant: &TenantId, query: TagQuery) -> Self {
        let mut segments = overlapping(&engine.snapshot(), tenant, query.from, query.until);
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.max_time));
        let (engine, tenant, segments) = (engine.clone(), tenant.clone(), segments.into_iter());
        Self { engine, tenant, query, segments, seen_spans: 0, inspected_bytes: 0 }
    }

    fn exactness(&self) -> Exactness {
        self.engine.exactness_of_search(&self.tenant, (self.query.from, self.query.until), self.seen_spans, None)
    }

    fn next(&mut self) -> Option<Arc<Segment>> {
        if self.query.enough_spans.is_some_and(|enough| self.seen_spans >= enough) {
            return None;
        }
        let segment = self.segments.next()?;
        self.seen_spans += segment.rows;
        self.inspected_bytes += segment.bytes();
        Some(segment)
    }

    fn options(&self, mut columns: Vec<String>) -> ReadOptions {
        if let Some((fields, _)) = &self.query.filter {
            columns.extend(columns_of(fields));
        }
        ReadOptions::columns(&columns).within("start_time", self.query.from, self.query.until)
    }

    /// The rows of a batch that pass the filter.
    fn passing(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let Some((fields, condition)) = &self.query.filter else { return Ok(batch) };
        let spans = BoundSpans::bind(batch.clone(), fields)?;
        let passes: BooleanArray = (0..spans.len()).map(|span| Some(condition.holds(&spans, span))).collect();
        Ok(filter_record_batch(&batch, &passes).map_err(LakeError::from)?)
    }
}

/// A question for attribute names under way.
#[derive(Debug)]
pub struct TagNamesRun {
    remaining: Remaining,
    known: TagScopes,
}

/// A question for the values of one attribute under way.
#[derive(Debug)]
pub struct TagValuesRun {
    remaining: Remaining,
    program: Arc<Program>,
    known: BTreeSet<TagValue>,
}

impl Engine {
    /// Starts to look for the names of attributes.
    pub fn start_tag_names(&self, tenant: &TenantId, query: TagQuery) -> TagNamesRun {
        TagNamesRun { remaining: Remaining::new(self, tenant, query), known: TagScopes::new() }
    }

    /// Starts to look for the values of the one field that `program` selects.
    pub fn start_tag_values(&self, tenant: &TenantId, program: &Arc<Program>, query: TagQuery) -> TagValuesRun {
        TagValuesRun {
            remaining: Remaining::new(self, tenant, query),
            program: Arc::clone(program),
            known: BTreeSet::new(),
        }
    }
}

impl TagNamesRun {
    /// Names that were not given before; none when all have been given.
    pub async fn next_part(&mut self) -> Result<Option<TagScopes>> {
        let Some(segment) = self.remaining.next() else { return Ok(None) };
        let mut fresh = TagScopes::new();
        let columns = ["attributes", "attributes_json", "resource", "scope", "events", "links"];
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let options = self.remaining.options(columns).with_prefix(ATTRIBUTE_PREFIX);
        let mut stream = self.remaining.engine.lake().reader().stream(&segment, options).await?;
        while let Some(batch) = stream.try_next().await? {
            let batch = self.remaining.passing(batch)?;
            self.read_names(&batch, &mut fresh)?;
            tokio::task::yield_now().await;
        }
        Ok(Some(fresh))
    }

    /// Bytes of the segments that were opened.
    pub fn inspected_bytes(&self) -> u64 {
        self.remaining.inspected_bytes
    }

    /// What the parts that were given so far rest on.
    pub fn exactness(&self) -> Exactness {
        self.remaining.exactness()
    }

    fn read_names(&mut self, batch: &RecordBatch, fresh: &mut TagScopes) -> Result<()> {
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            if let Some(key) = field.name().strip_prefix(ATTRIBUTE_PREFIX)
                && column.null_count() < column.len()
            {
                self.add("span", key, fresh);
            }
        }
        for column in ["attributes", "attributes_json"] {
            for key in arrays::maps(batch, column)?.keys_in_use() {
                self.add("span", key, fresh);
            }
        }
        for (column, scope) in [("resource", "resource"), ("scope", "instrumentation")] {
            for text in texts_in_use(batch, column)? {
                let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
                for attribute in attributes_from_json(&json["attributes"].to_string()) {
                    self.add(scope, &attribute.key, fresh);
                }
            }
        }
        for (column, scope, at) in [("events", "event", 2), ("links", "link", 3)] {
            let elements = arrays::lists(batch, column)?.values().as_struct().column(at).clone();
            for text in elements.as_string::<i32>().iter().flatten().filter(|text| text.len() > 2) {
                for attribute in attributes_from_json(text) {
                    self.add(scope, &attribute.key, fresh);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, scope: &'static str, key: &str, fresh: &mut TagScopes) {
        let known = self.known.entry(scope).or_default();
        if known.len() < self.remaining.query.limit && !known.contains(key) {
            known.insert(key.to_owned());
            fresh.entry(scope).or_default().insert(key.to_owned());
        }
    }
}

/// The distinct texts of a dictionary column that some row has.
fn texts_in_use<'a>(batch: &'a RecordBatch, column: &str) -> Result<Vec<&'a str>> {
    let texts = arrays::texts(batch, column)?;
    let arrays::Texts::Coded(codes, distinct) = texts else {
        let plain: HashSet<&str> = (0..batch.num_rows()).map(|row| texts.get(row)).collect();
        return Ok(plain.into_iter().collect());
    };
    let distinct: &StringArray = distinct;
    let used: HashSet<i32> = codes.keys().iter().flatten().collect();
    Ok(used.into_iter().map(|code| distinct.value(code as usize)).collect())
}

impl TagValuesRun {
    /// Values that were not given before; none when all have been given.
    pub async fn next_part(&mut self) -> Result<Option<BTreeSet<TagValue>>> {
        if self.known.len() >= self.remaining.query.limit {
            return Ok(None);
        }
        let Some((field, _)) = self.program.fields().iter().last() else { return Ok(None) };
        let Some(segment) = self.remaining.next() else { return Ok(None) };
        let mut fresh = BTreeSet::new();
        let options = self.remaining.options(columns_of(self.program.fields()));
        let mut stream = self.remaining.engine.lake().reader().stream(&segment, options).await?;
        while let Some(batch) = stream.try_next().await? {
            let batch = self.remaining.passing(batch)?;
            let spans = BoundSpans::bind(batch, self.program.fields())?;
            for span in 0..spans.len() {
                let mut add = |value: FieldValue<'_>| {
                    if let Some(value) = tag_value(value)
                        && !self.known.contains(&value)
                        && self.known.len() < self.remaining.query.limit
                    {
                        self.known.insert(value.clone());
                        fresh.insert(value);
                    }
                };
                match spans.value(span, field) {
                    FieldValue::Many(count) => (0..count).for_each(|index| add(spans.element(span, field, index))),
                    single => add(single),
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(Some(fresh))
    }

    /// Bytes of the segments that were opened.
    pub fn inspected_bytes(&self) -> u64 {
        self.remaining.inspected_bytes
    }

    /// What the parts that were given so far rest on.
    pub fn exactness(&self) -> Exactness {
        self.remaining.exactness()
    }
}

fn tag_value(value: FieldValue<'_>) -> Option<TagValue> {
    let (value_type, text) = match value {
        FieldValue::Nil | FieldValue::Many(_) => return None,
        FieldValue::Bool(value) => ("bool", value.to_string()),
        FieldValue::Int(value) => ("int", value.to_string()),
        FieldValue::Float(value) => ("float", value.to_string()),
        FieldValue::Duration(nanos) => ("duration", Value::Duration(nanos).to_string()),
        FieldValue::Str(text) => ("string", text.to_owned()),
        FieldValue::Status(status) => ("keyword", Value::Status(status).to_string()),
        FieldValue::Kind(kind) => ("keyword", Value::Kind(kind).to_string()),
        FieldValue::SpanId(id) => ("string", id.to_string()),
        FieldValue::TraceId(id) => ("string", id.to_string()),
    };
    Some(TagValue { value_type, text })
}
