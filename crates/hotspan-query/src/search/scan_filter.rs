//! The part of a search's filter that a scan can decide from a few cheap columns, so that the others are only read
//! for the rows that are left.

use arrow::array::{Array, BooleanArray, RecordBatch};
use hotspan_lake::arrays::{self, Texts};
use hotspan_traceql::ast::{CompareOp, Field, Intrinsic, Literal, Scope};
use hotspan_traceql::{FieldTable, Matcher, SpanCondition, SpanPredicate, SpanTest};

/// Tests that all must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanFilter {
    tests: Vec<ColumnTest>,
}

#[derive(Debug, Clone)]
struct ColumnTest {
    column: &'static str,
    test: CheapTest,
}

#[derive(Debug, Clone)]
enum CheapTest {
    Nanos(CompareOp, i64),
    Code(CompareOp, i8),
    /// Equal to one of these.
    Texts(Vec<String>),
    Differs(String),
    Matches(Matcher, bool),
}

impl ScanFilter {
    /// What can be said of a condition: never less than the condition lets through.
    pub(crate) fn of(fields: &FieldTable, condition: &SpanCondition) -> Self {
        let mut tests = Vec::new();
        collect(fields, condition, &mut tests);
        Self { tests }
    }

    /// The columns that it reads; none if it lets everything through.
    pub(crate) fn columns(&self) -> Vec<&'static str> {
        let mut columns: Vec<&'static str> = self.tests.iter().map(|test| test.column).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Which rows of a batch may match.
    pub(crate) fn matches(&self, batch: &RecordBatch) -> BooleanArray {
        let mut keep = vec![true; batch.num_rows()];
        for test in &self.tests {
            test.narrow(batch, &mut keep);
        }
        BooleanArray::from(keep)
    }
}

/// Alternatives and negations are left to the evaluator: a test that is not made lets everything through.
fn collect(fields: &FieldTable, condition: &SpanCondition, tests: &mut Vec<ColumnTest>) {
    match condition {
        SpanCondition::All(parts) => parts.iter().for_each(|part| collect(fields, part, tests)),
        SpanCondition::Test(predicate) => tests.extend(cheap(fields, predicate)),
        _ => {}
    }
}

fn cheap(fields: &FieldTable, predicate: &SpanPredicate) -> Option<ColumnTest> {
    let column = match fields.get(predicate.field)? {
        Field::Intrinsic(Intrinsic::Duration) => "duration",
        Field::Intrinsic(Intrinsic::Status) => "status",
        Field::Intrinsic(Intrinsic::Kind) => "kind",
        Field::Intrinsic(Intrinsic::Name) => "name",
        Field::Attribute { of_parent: false, scope: Scope::Resource, name } if name == "service.name" => "service",
        _ => return None,
    };
    let is_text = column == "name" || column == "service";
    let test = match &predicate.test {
        SpanTest::Compare(op, Literal::Duration(nanos)) if column == "duration" => CheapTest::Nanos(*op, *nanos),
        SpanTest::Compare(op, Literal::Status(status)) if column == "status" => CheapTest::Code(*op, *status as i8),
        SpanTest::Compare(op, Literal::Kind(kind)) if column == "kind" => CheapTest::Code(*op, *kind as i8),
        SpanTest::Compare(CompareOp::Eq, Literal::Str(text)) if is_text => CheapTest::Texts(vec![text.clone()]),
        SpanTest::Compare(CompareOp::NotEq, Literal::Str(text)) if is_text => CheapTest::Differs(text.clone()),
        SpanTest::In(literals) if is_text => {
            let texts = literals.iter().map(|literal| match literal {
                Literal::Str(text) => Some(text.clone()),
                _ => None,
            });
            CheapTest::Texts(texts.collect::<Option<_>>()?)
        }
        SpanTest::Matches { matcher, negated, .. } if is_text => CheapTest::Matches(matcher.clone(), *negated),
        _ => return None,
    };
    Some(ColumnTest { column, test })
}

impl ColumnTest {
    /// A column that a segment lacks decides nothing.
    fn narrow(&self, batch: &RecordBatch, keep: &mut [bool]) {
        match &self.test {
            CheapTest::Nanos(op, bound) => {
                if let Ok(values) = arrays::int64s(batch, self.column) {
                    narrow_numbers(*op, values.values(), *bound, keep);
                }
            }
            CheapTest::Code(op, code) => {
                if let Ok(values) = arrays::int8s(batch, self.column) {
                    narrow_numbers(*op, values.values(), *code, keep);
                }
            }
            CheapTest::Texts(texts) => self.narrow_texts(batch, keep, |text| texts.iter().any(|wanted| wanted == text)),
            CheapTest::Differs(unwanted) => self.narrow_texts(batch, keep, |text| text != unwanted),
            CheapTest::Matches(matcher, negated) => {
                self.narrow_texts(batch, keep, |text| matcher.is_match(text) != *negated);
            }
        }
    }

    /// A text in a dictionary is tested once.
    fn narrow_texts(&self, batch: &RecordBatch, keep: &mut [bool], test: impl Fn(&str) -> bool) {
        let Ok(texts) = arrays::texts(batch, self.column) else { return };
        match texts {
            Texts::Coded(codes, distinct) => {
                let fits: Vec<bool> = distinct.iter().map(|text| text.is_some_and(&test)).collect();
                for (keep, code) in keep.iter_mut().zip(codes.keys().values()) {
                    *keep &= fits.get(*code as usize).copied().unwrap_or(true);
                }
            }
            Texts::Plain(plain) => {
                for (row, keep) in keep.iter_mut().enumerate().filter(|(_, keep)| **keep) {
                    *keep = plain.is_valid(row) && test(plain.value(row));
                }
            }
        }
    }
}

fn narrow_numbers<N: Copy + PartialOrd>(op: CompareOp, values: &[N], bound: N, keep: &mut [bool]) {
    let mut each = |test: fn(&N, &N) -> bool| {
        for (keep, value) in keep.iter_mut().zip(values) {
            *keep &= test(value, &bound);
        }
    };
    match op {
        CompareOp::Eq => each(|value, bound| value == bound),
        CompareOp::NotEq => each(|value, bound| value != bound),
        CompareOp::Less => each(|value, bound| value < bound),
        CompareOp::LessEq => each(|value, bound| value <= bound),
        CompareOp::Greater => each(|value, bound| value > bound),
        CompareOp::GreaterEq => each(|value, bound| value >= bound),
        CompareOp::Match | CompareOp::NotMatch => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, Int8Array, Int64Array, StringArray};
    use arrow::datatypes::Int32Type;
    use hotspan_traceql::Program;

    use super::*;

    fn matches(query: &str) -> (Vec<&'static str>, Vec<bool>) {
        let services: DictionaryArray<Int32Type> = ["a", "b", "a", "c"].into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("service", Arc::new(services)),
            ("name", Arc::new(StringArray::from(vec!["get", "get", "put", "post"]))),
            ("duration", Arc::new(Int64Array::from(vec![1_000_000, 2_000_000, 3_000_000, 4_000_000]))),
            ("status", Arc::new(Int8Array::from(vec![0, 2, 2, 0]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let program = Program::new(query).unwrap();
        let condition = program.search().unwrap().span_filter().unwrap().condition().clone();
        let filter = ScanFilter::of(program.fields(), &condition);
        let kept = filter.matches(&batch).iter().map(|keep| keep.unwrap()).collect();
        (filter.columns(), kept)
    }

    /// Scenario: filters of which all, some or nothing can be told from cheap columns.
    /// Guarantee: what is told is right, and what is not told lets every row through.
    #[test]
    fn never_less_than_the_filter() {
        let service = matches(r#"{ resource.service.name = "a" && duration > 1ms }"#);
        assert_eq!(service, (vec!["duration", "service"], vec![false, false, true, false]));
        let attribute = matches(r#"{ resource.service.name = "a" && span.x = 1 }"#);
        assert_eq!(attribute, (vec!["service"], vec![true, false, true, false]));
        assert_eq!(matches(r#"{ name =~ "p.*" && status != error }"#).1, [false, false, false, true]);
        assert_eq!(matches(r#"{ name = "get" || span.x = 1 }"#), (vec![], vec![true; 4]));
        assert_eq!(matches("{ }"), (vec![], vec![true; 4]));
    }
}
