//! A field expression ready to run.

use crate::arithmetic::{calculate, negate};
use crate::ast::{ArithmeticOp, CompareOp, Intrinsic};
use crate::eval::TraceView;
use crate::plan::FieldId;
use crate::regex_match::Matcher;
use crate::source::SpanSource;
use crate::value::{FieldValue, Value, compare};

/// Where a field's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldRef {
    /// The span itself.
    Own(FieldId),
    /// The span's parent.
    OfParent(FieldId),
    /// Computed from the trace.
    Derived(Intrinsic),
}

/// One step of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Constant(Value),
    Field(FieldRef),
    Not(Box<Node>),
    Negate(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    Arithmetic {
        op: ArithmeticOp,
        lhs: Box<Node>,
        rhs: Box<Node>,
    },
    Compare {
        op: CompareOp,
        lhs: Box<Node>,
        rhs: Box<Node>,
    },
    /// The comparison of a span's own field with a constant, which most conditions consist of.
    CompareOwn {
        field: FieldId,
        op: CompareOp,
        constant: Value,
    },
    /// The equality of a span's own field with a text.
    TextIs {
        field: FieldId,
        text: String,
        negated: bool,
    },
    /// A field that is one of several texts.
    OneOf {
        field: FieldId,
        words: Vec<String>,
    },
    Match {
        of: Box<Node>,
        matcher: Matcher,
        negated: bool,
    },
    Exists(Box<Node>),
    Missing(Box<Node>),
}

impl FieldRef {
    #[inline]
    fn value<'v, S: SpanSource>(self, view: &'v TraceView<'_, S>, span: usize) -> FieldValue<'v> {
        match self {
            Self::Own(field) => view.source.value(span, field),
            Self::OfParent(field) => {
                view.parent(span).map_or(FieldValue::Nil, |parent| view.source.value(parent, field))
            }
            Self::Derived(intrinsic) => view.derived(span, intrinsic),
        }
    }

    fn element<'v, S: SpanSource>(self, view: &'v TraceView<'_, S>, span: usize, index: usize) -> FieldValue<'v> {
        match self {
            Self::Own(field) => view.source.element(span, field, index),
            Self::OfParent(field) => {
                view.parent(span).map_or(FieldValue::Nil, |parent| view.source.element(parent, field, index))
            }
            Self::Derived(_) => FieldValue::Nil,
        }
    }
}

/// Tests a value, or the several values it announces: the negative operators must hold for all, the others for any.
#[inline]
pub(crate) fn test_each<'v>(
    value: FieldValue<'v>,
    negative: bool,
    element: impl Fn(usize) -> FieldValue<'v>,
    test: impl Fn(FieldValue<'v>) -> bool,
) -> bool {
    match value {
        FieldValue::Many(count) if negative => (0..count).all(|index| test(element(index))),
        FieldValue::Many(count) => (0..count).any(|index| test(element(index))),
        single => test(single),
    }
}

impl Node {
    /// The value for a span. Only a bare field can give [`FieldValue::Many`].
    pub(crate) fn value<'v, S: SpanSource>(&'v self, view: &'v TraceView<'_, S>, span: usize) -> FieldValue<'v> {
        match self {
            Self::Constant(value) => value.as_field_value(),
            Self::Field(field) => field.value(view, span),
            Self::Negate(of) => negate(of.value(view, span)),
            Self::Arithmetic { op, lhs, rhs } => calculate(lhs.value(view, span), *op, rhs.value(view, span)),
            condition => FieldValue::Bool(condition.holds(view, span)),
        }
    }

    /// The number of the value for a span, if this is a field whose values its source has numbered.
    #[inline]
    pub(crate) fn code<S: SpanSource>(&self, view: &TraceView<'_, S>, span: usize) -> Option<u32> {
        match self {
            Self::Field(FieldRef::Own(field)) => view.source.code(span, *field),
            _ => None,
        }
    }

    /// One of the values announced by [`Node::value`].
    pub(crate) fn element<'v, S: SpanSource>(
        &'v self,
        view: &'v TraceView<'_, S>,
        span: usize,
        index: usize,
    ) -> FieldValue<'v> {
        match self {
            Self::Field(field) => field.element(view, span, index),
            _ => FieldValue::Nil,
        }
    }

    /// The value for a span, copied, with all its elements.
    pub(crate) fn owned_value<S: SpanSource>(&self, view: &TraceView<'_, S>, span: usize) -> Value {
        match self.value(view, span) {
            FieldValue::Many(count) => {
                Value::Array((0..count).map(|index| self.element(view, span, index).to_value()).collect())
            }
            single => single.to_value(),
        }
    }

    /// The values for a span, each once; nil if it has none.
    pub(crate) fn distinct_values<S: SpanSource>(&self, view: &TraceView<'_, S>, span: usize) -> Vec<Value> {
        match self.owned_value(view, span) {
            Value::Array(mut values) if !values.is_empty() => {
                values.sort_unstable();
                values.dedup();
                values
            }
            single => vec![single],
        }
    }

    /// Calls `visit` with every number among the values for a span.
    pub(crate) fn for_each_number<S: SpanSource>(
        &self,
        view: &TraceView<'_, S>,
        span: usize,
        mut visit: impl FnMut(FieldValue<'_>),
    ) {
        match self.value(view, span) {
            FieldValue::Many(count) => {
                for index in 0..count {
                    let element = self.element(view, span, index);
                    if element.as_number().is_some() {
                        visit(element);
                    }
                }
            }
            single if single.as_number().is_some() => visit(single),
            _ => {}
        }
    }

    /// Whether the span satisfies the condition.
    #[inline]
    pub(crate) fn holds<S: SpanSource>(&self, view: &TraceView<'_, S>, span: usize) -> bool {
        match self {
            Self::CompareOwn { field, op, constant } => {
                let constant = constant.as_field_value();
                test_each(
                    view.source.value(span, *field),
                    op.is_negative(),
                    |index| view.source.element(span, *field, index),
                    |value| compare(value, *op, constant),
                )
            }
            Self::TextIs { field, text, negated } => match view.source.value(span, *field) {
                FieldValue::Str(value) => (value == text) != *negated,
                value => test_each(
                    value,
                    *negated,
                    |index| view.source.element(span, *field, index),
                    |value| value.test_text(|value| (value == text) != *negated),
                ),
            },
            Self::OneOf { field, words } => test_each(
                view.source.value(span, *field),
                false,
                |index| view.source.element(span, *field, index),
                |value| value.test_text(|text| words.iter().any(|word| word == text)),
            ),
            Self::All(nodes) => nodes.iter().all(|node| node.holds(view, span)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(view, span)),
            other => other.holds_rarely(view, span),
        }
    }

    fn holds_rarely<S: SpanSource>(&self, view: &TraceView<'_, S>, span: usize) -> bool {
        match self {
            Self::Not(of) => match &**of {
                // The opposite of a value that is neither true nor false is not true either.
                Self::Field(_) | Self::Constant(_) => test_each(
                    of.value(view, span),
                    false,
                    |index| of.element(view, span, index),
                    |value| value == FieldValue::Bool(false),
                ),
                Self::Arithmetic { .. } | Self::Negate(_) => false,
                condition => !condition.holds(view, span),
            },
            Self::Compare { op, lhs, rhs } => {
                let (left, right) = (lhs.value(view, span), rhs.value(view, span));
                match (left, right) {
                    (FieldValue::Many(_), FieldValue::Many(_)) => false,
                    (left, right @ FieldValue::Many(_)) => test_each(
                        right,
                        op.is_negative(),
                        |index| rhs.element(view, span, index),
                        |right| compare(left, *op, right),
                    ),
                    (left, right) => test_each(
                        left,
                        op.is_negative(),
                        |index| lhs.element(view, span, index),
                        |left| compare(left, *op, right),
                    ),
                }
            }
            Self::Match { of, matcher, negated } => test_each(
                of.value(view, span),
                *negated,
                |index| of.element(view, span, index),
                |value| value.test_text(|text| matcher.is_match(text) != *negated),
            ),
            Self::Exists(of) => of.value(view, span) != FieldValue::Nil,
            Self::Missing(of) => of.value(view, span) == FieldValue::Nil,
            value => test_each(
                value.value(view, span),
                false,
                |index| value.element(view, span, index),
                |value| value == FieldValue::Bool(true),
            ),
        }
    }
}
