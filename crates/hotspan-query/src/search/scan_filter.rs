//! A condition on single spans as a mask over columns: tried once for each distinct text, and over whole arrays of
//! numbers, so that rows are looked at one by one only where a mask can't tell.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use hotspan_lake::arrays;
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_model::{SpanKind, StatusCode};
use hotspan_traceql::ast::{Field, Intrinsic, Scope};
use hotspan_traceql::{FieldTable, FieldValue, SpanCondition, SpanPredicate, SpanTest};

use super::column_masks::{
    TriedTexts, accepts_value, attribute_mask, by_code, bytes, constant, each, numbers, text_mask,
};
use super::field_binding::coded_values;

/// A condition that columns can answer.
#[derive(Debug, Clone)]
pub(crate) struct ScanFilter {
    condition: ColumnCondition,
    is_exact: bool,
}

impl Default for ScanFilter {
    /// Lets everything through, and does not say that it is right.
    fn default() -> Self {
        Self { condition: ColumnCondition::Constant(true), is_exact: false }
    }
}

#[derive(Debug, Clone)]
enum ColumnCondition {
    Constant(bool),
    Test(Source, SpanTest),
    All(Vec<ColumnCondition>),
    Any(Vec<ColumnCondition>),
    Not(Box<ColumnCondition>),
}

/// Where the values of a field are.
#[derive(Debug, Clone)]
enum Source {
    Duration,
    Status,
    Kind,
    /// A text of its own.
    Text(&'static str),
    /// A value in a set that many spans share, such as their resource.
    Shared(&'static str, Field),
    /// An attribute of the span.
    Attribute(String),
}

impl ScanFilter {
    /// What can be said of a condition: never less than the condition lets through.
    pub(crate) fn of(fields: &FieldTable, condition: &SpanCondition) -> Self {
        let (condition, is_exact) = column_condition(fields, condition);
        Self { condition, is_exact }
    }

    /// Whether it lets through exactly what the condition does.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// The columns that it reads; none if it lets everything through.
    pub(crate) fn columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        self.condition.columns(&mut columns);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Which rows of a batch may match.
    pub(crate) fn matches(&self, batch: &RecordBatch) -> BooleanArray {
        BooleanArray::new(self.mask(batch, &mut TriedTexts::default()), None)
    }

    /// The same as bits, with what was tried on the batches before it that share their texts.
    pub(crate) fn mask(&self, batch: &RecordBatch, memory: &mut TriedTexts) -> BooleanBuffer {
        self.condition.mask(batch, memory)
    }
}

/// The condition over columns, and whether it is the whole truth. What can't be told lets everything through.
fn column_condition(fields: &FieldTable, condition: &SpanCondition) -> (ColumnCondition, bool) {
    let parts_of = |parts: &[SpanCondition]| -> (Vec<ColumnCondition>, bool) {
        let (parts, exact): (Vec<_>, Vec<_>) = parts.iter().map(|part| column_condition(fields, part)).unzip();
        (parts, exact.into_iter().all(|exact| exact))
    };
    match condition {
        SpanCondition::True => (ColumnCondition::Constant(true), true),
        SpanCondition::False => (ColumnCondition::Constant(false), true),
        SpanCondition::Test(SpanPredicate { field, test }) => match fields.get(*field).and_then(source_of) {
            Some(source) => (ColumnCondition::Test(source, test.clone()), true),
            None => (ColumnCondition::Constant(true), false),
        },
        SpanCondition::All(parts) => {
            let (parts, exact) = parts_of(parts);
            (ColumnCondition::All(parts), exact)
        }
        SpanCondition::Any(parts) => {
            let (parts, exact) = parts_of(parts);
            let is_everything = parts.iter().any(|part| matches!(part, ColumnCondition::Constant(true)));
            if is_everything { (ColumnCondition::Constant(true), exact) } else { (ColumnCondition::Any(parts), exact) }
        }
        SpanCondition::Not(part) => match column_condition(fields, part) {
            (part, true) => (ColumnCondition::Not(Box::new(part)), true),
            // The opposite of something weaker is something stronger.
            (_, false) => (ColumnCondition::Constant(true), false),
        },
    }
}

fn source_of(field: &Field) -> Option<Source> {
    Some(match field {
        Field::Intrinsic(Intrinsic::Duration) => Source::Duration,
        Field::Intrinsic(Intrinsic::Status) => Source::Status,
        Field::Intrinsic(Intrinsic::Kind) => Source::Kind,
        Field::Intrinsic(Intrinsic::Name) => Source::Text("name"),
        Field::Intrinsic(Intrinsic::StatusMessage) => Source::Text("status_message"),
        Field::Intrinsic(Intrinsic::InstrumentationName | Intrinsic::InstrumentationVersion) => {
            Source::Shared("scope", field.clone())
        }
        Field::Attribute { of_parent: false, scope: Scope::Resource, name } if name == "service.name" => {
            Source::Text("service")
        }
        Field::Attribute { of_parent: false, scope: Scope::Resource, .. } => Source::Shared("resource", field.clone()),
        Field::Attribute { of_parent: false, scope: Scope::Instrumentation, .. } => {
            Source::Shared("scope", field.clone())
        }
        Field::Attribute { of_parent: false, scope: Scope::Span, name } => Source::Attribute(name.clone()),
        _ => return None,
    })
}

impl ColumnCondition {
    fn columns(&self, columns: &mut Vec<String>) {
        match self {
            Self::Constant(_) => {}
            Self::Test(source, _) => source.columns(columns),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.columns(columns)),
            Self::Not(part) => part.columns(columns),
        }
    }

    fn mask(&self, batch: &RecordBatch, memory: &mut TriedTexts) -> BooleanBuffer {
        let rows = batch.num_rows();
        match self {
            Self::Constant(true) => BooleanBuffer::new_set(rows),
            Self::Constant(false) => BooleanBuffer::new_unset(rows),
            Self::Test(source, test) => source.mask(batch, test, memory),
            Self::All(parts) => {
                let mut mask = BooleanBuffer::new_set(rows);
                for part in parts {
                    if mask.count_set_bits() == 0 {
                        break;
                    }
                    mask = &mask & &part.mask(batch, memory);
                }
                mask
            }
            Self::Any(parts) => {
                let masks = parts.iter().map(|part| part.mask(batch, memory));
                masks.reduce(|left, right| &left | &right).unwrap_or_else(|| BooleanBuffer::new_unset(rows))
            }
            Self::Not(part) => !&part.mask(batch, memory),
        }
    }
}

impl Source {
    fn columns(&self, columns: &mut Vec<String>) {
        let needed: &[&str] = match self {
            Self::Duration => &["duration"],
            Self::Status => &["status"],
            Self::Kind => &["kind"],
            Self::Text(column) | Self::Shared(column, _) => &[*column],
            Self::Attribute(name) => {
                columns.push(format!("{ATTRIBUTE_PREFIX}{name}"));
                &["attributes", "attributes_json"]
            }
        };
        columns.extend(needed.iter().map(|name| (*name).to_owned()));
    }

    /// Which rows pass a test. What a segment has no column for is missing there.
    fn mask(&self, batch: &RecordBatch, test: &SpanTest, memory: &mut TriedTexts) -> BooleanBuffer {
        let accepts = |value: FieldValue<'_>| test.accepts(value, |_| FieldValue::Nil);
        let rows = batch.num_rows();
        let missing = || constant(accepts(FieldValue::Nil), rows);
        match self {
            Self::Duration => {
                let Ok(values) = arrays::int64s(batch, "duration") else { return missing() };
                numbers(values.values(), test)
                    .unwrap_or_else(|| each(rows, |row| accepts(FieldValue::Duration(values.value(row)))))
            }
            Self::Status => {
                let Ok(codes) = arrays::int8s(batch, "status") else { return missing() };
                bytes(codes.values(), |code| accepts(FieldValue::Status(StatusCode::from_number(code))))
            }
            Self::Kind => {
                let Ok(codes) = arrays::int8s(batch, "kind") else { return missing() };
                bytes(codes.values(), |code| accepts(FieldValue::Kind(SpanKind::from_number(code))))
            }
            Self::Text(column) => match arrays::texts(batch, column) {
                Ok(texts) => text_mask(texts, test, memory, |text| accepts(FieldValue::Str(text.unwrap_or("")))),
                Err(_) => constant(accepts(FieldValue::Str("")), rows),
            },
            Self::Shared(_, field) => match coded_values(batch, field) {
                Some((codes, values)) => {
                    let fits: Vec<bool> = values.iter().map(|value| accepts_value(test, value)).collect();
                    by_code(&codes, &fits, accepts(FieldValue::Nil))
                }
                None => missing(),
            },
            Self::Attribute(name) => attribute_mask(batch, name, test, memory),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int8Array, Int64Array, StringArray};
    use arrow::array::{MapBuilder, StringBuilder, StringDictionaryBuilder};
    use arrow::datatypes::Int32Type;
    use hotspan_traceql::{Program, TraceView};
    use proptest::prelude::*;

    use super::*;
    use crate::search::BoundSpans;

    fn map(entries: &[&[(&str, &str)]]) -> ArrayRef {
        let mut builder = MapBuilder::new(None, StringDictionaryBuilder::<Int32Type>::new(), StringBuilder::new());
        for row in entries {
            for (key, value) in *row {
                builder.keys().append_value(key);
                builder.values().append_value(value);
            }
            builder.append(true).unwrap();
        }
        Arc::new(builder.finish())
    }

    /// Eight spans, with attributes in columns and in maps, plain or with coded texts.
    fn spans(is_coded: bool) -> RecordBatch {
        let text = |texts: Vec<Option<&str>>| -> ArrayRef {
            if is_coded {
                Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>())
            } else {
                Arc::new(texts.into_iter().collect::<StringArray>())
            }
        };
        let services: DictionaryArray<Int32Type> = ["a", "b", "a", "c", "a", "a", "b", "c"].into_iter().collect();
        let resources: DictionaryArray<Int32Type> = [
            r#"{"attributes":{"host.name":"one","cpus":4}}"#,
            r#"{"attributes":{"host.name":"two"}}"#,
            "{}",
            r#"{"attributes":{"host.name":"one","tags":["x","y"]}}"#,
        ]
        .into_iter()
        .cycle()
        .take(8)
        .collect();
        let names = ["get", "get", "put", "post", "", "get", "put", "get"];
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("service", Arc::new(services)),
            ("name", text(names.into_iter().map(Some).collect())),
            ("status_message", text(vec![None, Some("bad"), None, Some("worse"), None, None, Some("bad"), None])),
            ("duration", Arc::new(Int64Array::from_iter_values((1..=8).map(|ms| ms * 1_000_000)))),
            ("status", Arc::new(Int8Array::from(vec![0, 2, 2, 0, 1, 0, 2, 7]))),
            ("kind", Arc::new(Int8Array::from(vec![1, 2, 3, 0, 2, 2, 3, 7]))),
            ("resource", Arc::new(resources)),
            (
                "attributes",
                map(&[&[("x", "text")], &[], &[("rare", "yes"), ("x", "5")], &[], &[("rare", "no")], &[], &[], &[]]),
            ),
            (
                "attributes_json",
                map(&[
                    &[("rare", "7")],
                    &[("x", "2.5")],
                    &[],
                    &[("list", r#"["yes","maybe"]"#)],
                    &[("x", "true")],
                    &[("list", "[1,5]")],
                    &[],
                    &[("rare", "[7,8]")],
                ]),
            ),
            ("attr.x", Arc::new(Int64Array::from(vec![None, None, None, Some(5), None, Some(1), Some(7), None]))),
            ("attr.y", text(vec![Some("yes"), None, Some("no"), None, Some("yes"), Some("no"), None, Some("maybe")])),
            ("attr.f", Arc::new(Float64Array::from(vec![Some(1.5), None, None, Some(5.0), None, None, None, None]))),
            (
                "attr.b",
                Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), None, None, None, None, Some(true)])),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn check(query: &str) -> (bool, Vec<bool>) {
        let program = Program::new(query).unwrap();
        let filter = program.search().unwrap().span_filter().unwrap();
        let scan = ScanFilter::of(program.fields(), filter.condition());
        let mut answers = Vec::new();
        for is_coded in [false, true] {
            let batch = spans(is_coded);
            let masked: Vec<bool> = scan.mask(&batch, &mut TriedTexts::default()).iter().collect();
            let bound = BoundSpans::bind(spans(is_coded), program.fields()).unwrap();
            let view = TraceView::of_batch(&bound);
            for (row, masked) in masked.iter().enumerate() {
                let truth = filter.matches(&view, row);
                assert!(*masked || !truth, "{query} loses row {row}");
                let is_exact = scan.is_exact() && filter.is_exact();
                assert!(!is_exact || *masked == truth, "{query} is not exact in row {row}");
            }
            answers.push(masked);
        }
        assert_eq!(answers[0], answers[1], "{query}: texts in dictionaries");
        (scan.is_exact(), answers.remove(0))
    }

    /// Scenario: filters of which all, some or nothing can be told from columns.
    /// Guarantee: what is told is right, and what is not told lets every row through.
    #[test]
    fn never_less_than_the_filter() {
        let rows = |text: &str| text.chars().map(|digit| digit == '1').collect::<Vec<_>>();
        assert_eq!(check(r#"{ resource.service.name = "a" && duration > 1ms }"#), (true, rows("00101100")));
        assert_eq!(check(r#"{ name =~ "p.*" && status != error }"#), (true, rows("00010000")));
        assert_eq!(check(r#"{ span.rare = "yes" || span.x = 5 }"#), (true, rows("00110000")));
        assert_eq!(check("{ span:id = \"00\" || name = \"get\" }"), (false, vec![true; 8]));
        assert_eq!(check("{ span:id = \"00\" && name = \"get\" }"), (false, rows("11000101")));
        assert_eq!(check("{ }"), (true, vec![true; 8]));
    }

    fn condition() -> impl Strategy<Value = String> {
        let test = prop_oneof![
            "span\\.(x|y|f|b|rare|list|none) (=|!=|<|>=) (1|5|2\\.5|7ms|true|\"yes\"|\"5\"|\"maybe\")",
            "span\\.(x|y|rare|list|none) (=~|!~) \"(y.*|no|.*e.*|yes[|]no)\"",
            "span\\.(x|y|f|b|rare|list|none) (=|!=) nil",
            "(name|statusMessage|resource\\.host\\.name) (=|!=|=~|!~) \"(get|bad|one|p.*)\"",
            "resource\\.(cpus|tags|none) (=|!=|>) (4|\"x\"|1)",
            "resource\\.service\\.name (=|!=|=~) \"(a|b|[ab])\"",
            "duration (=|!=|<|<=|>|>=) (3ms|4ms|1500us)",
            "status (=|!=) (error|ok|unset|7)",
            "kind (=|!=) (server|client|unspecified|2|7)",
        ];
        test.prop_recursive(3, 8, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} && {right})")),
                (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} || {right})")),
                inner.prop_map(|part| format!("!({part})")),
            ]
        })
    }

    proptest! {
        /// Scenario: random conditions over attributes of every type, in columns and in maps.
        /// Guarantee: a mask loses no row that the evaluator keeps, and is the evaluator where it says so.
        #[test]
        fn masks_agree_with_the_evaluator(text in condition()) {
            let query = format!("{{ {text} }}");
            if Program::new(&query).is_ok_and(|program| program.search().unwrap().span_filter().is_some()) {
                check(&query);
            }
        }
    }
}
