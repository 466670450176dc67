//! What a trace must have to be worth reading, in a form that a scan can push down.
//!
//! A [`Prefilter`] is an upper bound: a trace that fails it gives no result, a trace that passes it may.

use crate::ast::{CompareOp, Literal};
use crate::eval::test_each;
use crate::plan::FieldId;
use crate::regex_match::Matcher;
use crate::source::{SpanSource, TraceSource};
use crate::value::{FieldValue, Value, compare};

/// A condition on a trace as a whole.
#[derive(Debug, Clone)]
pub enum Prefilter {
    /// Any trace may match.
    Always,
    /// No trace can match.
    Never,
    /// Enough spans satisfy a condition.
    Spans(NeededSpans),
    /// Every part holds, each for its own span.
    All(Vec<Prefilter>),
    /// At least one part holds.
    Any(Vec<Prefilter>),
}

/// Spans without which a trace can't match.
#[derive(Debug, Clone)]
pub struct NeededSpans {
    /// What each of them satisfies.
    pub condition: SpanCondition,
    /// How many there are at least; never 0.
    pub least: usize,
}

/// A condition on one span.
#[derive(Debug, Clone)]
pub enum SpanCondition {
    /// Every span.
    True,
    /// No span.
    False,
    /// A test of one field.
    Test(SpanPredicate),
    /// All hold.
    All(Vec<SpanCondition>),
    /// At least one holds.
    Any(Vec<SpanCondition>),
    /// It does not hold.
    Not(Box<SpanCondition>),
}

/// A test of one field of a span.
#[derive(Debug, Clone)]
pub struct SpanPredicate {
    /// Which field.
    pub field: FieldId,
    /// How it is tested. A field that is missing fails every test but [`SpanTest::Missing`]; of several values, the
    /// negative tests (`!=`, `!~`) must hold for all and the others for any.
    pub test: SpanTest,
}

/// How a field is tested.
#[derive(Debug, Clone)]
pub enum SpanTest {
    /// Compared with a constant; never `=~` or `!~`.
    Compare(CompareOp, Literal),
    /// Equal to one of the constants.
    In(Vec<Literal>),
    /// There is a value.
    Exists,
    /// There is none.
    Missing,
    /// The whole text matches, or with `negated` does not match, a pattern.
    Matches {
        /// As written.
        pattern: String,
        /// Compiled.
        matcher: Matcher,
        /// `!~` instead of `=~`.
        negated: bool,
    },
}

impl SpanPredicate {
    /// Whether a span passes.
    pub fn holds<S: SpanSource>(&self, source: &S, span: usize) -> bool {
        self.test.accepts(source.value(span, self.field), |index| source.element(span, self.field, index))
    }
}

impl SpanTest {
    /// Whether a value passes; `element` gives the values that [`FieldValue::Many`] announces.
    pub fn accepts<'v>(&self, value: FieldValue<'v>, element: impl Fn(usize) -> FieldValue<'v>) -> bool {
        match self {
            Self::Exists => value != FieldValue::Nil,
            Self::Missing => value == FieldValue::Nil,
            Self::Compare(op, literal) => {
                let constant = Value::from_literal(literal);
                test_each(value, op.is_negative(), element, |value| compare(value, *op, constant.as_field_value()))
            }
            Self::In(literals) => literals.iter().any(|literal| {
                let constant = Value::from_literal(literal);
                test_each(value, false, &element, |value| compare(value, CompareOp::Eq, constant.as_field_value()))
            }),
            Self::Matches { matcher, negated, .. } => {
                test_each(value, *negated, element, |value| value.test_text(|text| matcher.is_match(text) != *negated))
            }
        }
    }
}

impl SpanCondition {
    /// Whether a span passes.
    pub fn holds<S: SpanSource>(&self, source: &S, span: usize) -> bool {
        match self {
            Self::True => true,
            Self::False => false,
            Self::Test(predicate) => predicate.holds(source, span),
            Self::All(parts) => parts.iter().all(|part| part.holds(source, span)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(source, span)),
            Self::Not(part) => !part.holds(source, span),
        }
    }

    /// All of them, without what changes nothing.
    pub(crate) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::True => {}
                Self::False => return Self::False,
                Self::All(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::True,
            1 => kept.remove(0),
            _ => Self::All(kept),
        }
    }

    /// Any of them; equalities of one field become a list.
    pub(crate) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept: Vec<Self> = Vec::new();
        for part in parts {
            match part {
                Self::False => {}
                Self::True => return Self::True,
                Self::Any(inner) => inner.into_iter().for_each(|part| add_alternative(&mut kept, part)),
                other => add_alternative(&mut kept, other),
            }
        }
        match kept.len() {
            0 => Self::False,
            1 => kept.remove(0),
            _ => Self::Any(kept),
        }
    }
}

/// The constants a predicate accepts, if it is an equality.
fn accepted(condition: &mut SpanCondition) -> Option<(FieldId, Vec<Literal>)> {
    match condition {
        SpanCondition::Test(SpanPredicate { field, test: SpanTest::Compare(CompareOp::Eq, literal) }) => {
            Some((*field, vec![literal.clone()]))
        }
        SpanCondition::Test(SpanPredicate { field, test: SpanTest::In(literals) }) => {
            Some((*field, std::mem::take(literals)))
        }
        _ => None,
    }
}

fn add_alternative(kept: &mut Vec<SpanCondition>, mut part: SpanCondition) {
    let Some((field, literals)) = accepted(&mut part) else {
        kept.push(part);
        return;
    };
    for known in kept.iter_mut() {
        if let SpanCondition::Test(SpanPredicate { field: known_field, test }) = known
            && *known_field == field
        {
            match test {
                SpanTest::In(list) => {
                    list.extend(literals);
                    return;
                }
                SpanTest::Compare(CompareOp::Eq, first) => {
                    let mut list = vec![first.clone()];
                    list.extend(literals);
                    *test = SpanTest::In(list);
                    return;
                }
                _ => {}
            }
        }
    }
    let mut literals = literals;
    let test =
        if literals.len() == 1 { SpanTest::Compare(CompareOp::Eq, literals.remove(0)) } else { SpanTest::In(literals) };
    kept.push(SpanCondition::Test(SpanPredicate { field, test }));
}

impl Prefilter {
    /// Whether a trace passes; engines that can do no better may call it before grouping.
    pub fn may_match<S: TraceSource>(&self, source: &S) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Spans(NeededSpans { condition, least }) => {
                let satisfying = (0..source.span_count()).filter(|span| condition.holds(source, *span));
                satisfying.take(*least).count() == *least
            }
            Self::All(parts) => parts.iter().all(|part| part.may_match(source)),
            Self::Any(parts) => parts.iter().any(|part| part.may_match(source)),
        }
    }

    /// Spans that every trace which passes has, each kind for itself: a scan may look for any one of them.
    pub fn necessary(&self) -> Vec<NeededSpans> {
        match self {
            Self::Always => vec![NeededSpans { condition: SpanCondition::True, least: 1 }],
            Self::Never => vec![NeededSpans { condition: SpanCondition::False, least: 1 }],
            Self::Spans(needed) => vec![needed.clone()],
            Self::All(parts) => parts.iter().flat_map(Self::necessary).collect(),
            // One of the parts holds, and with it what is necessary for it.
            Self::Any(parts) => {
                let needed = || parts.iter().filter_map(|part| part.necessary().into_iter().next());
                let least = needed().map(|needed| needed.least).min().unwrap_or(1);
                vec![NeededSpans { condition: SpanCondition::any(needed().map(|needed| needed.condition)), least }]
            }
        }
    }

    /// At least so many spans satisfy a condition.
    pub(crate) fn spans(condition: SpanCondition, least: usize) -> Self {
        match condition {
            SpanCondition::True if least <= 1 => Self::Always,
            SpanCondition::False => Self::Never,
            condition => Self::Spans(NeededSpans { condition, least: least.max(1) }),
        }
    }

    pub(crate) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::Always => {}
                Self::Never => return Self::Never,
                Self::All(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::Always,
            1 => kept.remove(0),
            _ => Self::All(kept),
        }
    }

    pub(crate) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::Never => {}
                Self::Always => return Self::Always,
                Self::Any(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::Never,
            1 => kept.remove(0),
            _ => Self::Any(kept),
        }
    }
}
