//! Derives the prefilter: each construct is replaced by something that can only let more through.

use crate::ast::{
    AggregateOp, CompareOp, Field, FieldExpr, FieldExprKind, Literal, LogicalOp, ScalarExpr, SpansetExpr, SpansetOp,
    Stage, StructuralForm,
};
use crate::eval::{FieldRef, Lowering, carrier_of, normalized};
use crate::plan::{FieldId, Prefilter, SpanCondition, SpanPredicate, SpanTest};
use crate::regex_match::Matcher;

/// What a trace must have for the stages to give anything.
pub(crate) fn requirement_of(lowering: &mut Lowering, stages: &[Stage]) -> Prefilter {
    let mut parts = Vec::new();
    // From the end, since a count says something about all stages before it: none of them adds spans.
    let mut least = 1;
    for stage in stages.iter().rev() {
        match stage {
            Stage::Spanset(SpansetExpr::ScalarFilter { op, lhs, rhs, .. }) => {
                least = least.max(least_count(*op, lhs, rhs));
            }
            Stage::Spanset(spans) => parts.push(spanset_requirement(lowering, spans, least)),
            Stage::By(_) | Stage::Coalesce(_) | Stage::Select(_) => {}
        }
    }
    parts.reverse();
    Prefilter::all(parts)
}

/// How many spans a set has at least whose `count()` compares so with a number.
fn least_count(op: CompareOp, lhs: &ScalarExpr, rhs: &ScalarExpr) -> usize {
    let count = |expr: &ScalarExpr| matches!(expr, ScalarExpr::Aggregate { op: AggregateOp::Count, of: None, .. });
    let (op, number) = match (lhs, rhs) {
        (lhs, ScalarExpr::Literal { value: Literal::Int(number), .. }) if count(lhs) => (op, *number),
        (ScalarExpr::Literal { value: Literal::Int(number), .. }, rhs) if count(rhs) => (op.mirrored(), *number),
        _ => return 1,
    };
    let least = match op {
        CompareOp::Greater => number.saturating_add(1),
        CompareOp::GreaterEq | CompareOp::Eq => number,
        CompareOp::NotEq | CompareOp::Less | CompareOp::LessEq | CompareOp::Match | CompareOp::NotMatch => 1,
    };
    usize::try_from(least).unwrap_or(1).max(1)
}

/// What a trace must have for a stage to give a set of at least so many spans.
fn spanset_requirement(lowering: &mut Lowering, spans: &SpansetExpr, least: usize) -> Prefilter {
    match spans {
        SpansetExpr::ScalarFilter { .. } => Prefilter::Always,
        SpansetExpr::Filter { condition: None, .. } => Prefilter::spans(SpanCondition::True, least),
        SpansetExpr::Filter { condition: Some(condition), .. } => {
            Prefilter::spans(condition_of(lowering, condition).0, least)
        }
        // Either side may have brought the spans that are counted.
        SpansetExpr::Binary { op, lhs, rhs, .. } => {
            let right = spanset_requirement(lowering, rhs, 1);
            match op {
                // A negated form is satisfied most easily where the left side has no spans at all.
                SpansetOp::Structural { form: StructuralForm::RightWithout, .. } => right,
                SpansetOp::Or => Prefilter::any([spanset_requirement(lowering, lhs, 1), right]),
                SpansetOp::And | SpansetOp::Structural { .. } => {
                    Prefilter::all([spanset_requirement(lowering, lhs, 1), right])
                }
            }
        }
        SpansetExpr::Pipeline(pipeline) => requirement_of(lowering, &pipeline.stages),
    }
}

/// A condition at least as weak as the expression, and whether it is exactly the expression.
pub(crate) fn condition_of(lowering: &mut Lowering, expr: &FieldExpr) -> (SpanCondition, bool) {
    match &expr.kind {
        FieldExprKind::Literal(literal) if *literal == Literal::Bool(true) => (SpanCondition::True, true),
        FieldExprKind::Literal(_) => (SpanCondition::False, true),
        FieldExprKind::Field(field) => truth_of(lowering, field, true),
        FieldExprKind::Not(of) => match &of.kind {
            FieldExprKind::Field(field) => truth_of(lowering, field, false),
            FieldExprKind::Literal(literal) if *literal == Literal::Bool(false) => (SpanCondition::True, true),
            FieldExprKind::Literal(_) => (SpanCondition::False, true),
            _ => match condition_of(lowering, of) {
                (condition, true) => (negated(condition), true),
                // The opposite of something weaker is something stronger: of no use here.
                (_, false) => (SpanCondition::True, false),
            },
        },
        FieldExprKind::Logical { op, operands } => {
            let (parts, exact): (Vec<_>, Vec<_>) =
                operands.iter().map(|operand| condition_of(lowering, operand)).unzip();
            let condition = match op {
                LogicalOp::And => SpanCondition::all(parts),
                LogicalOp::Or => SpanCondition::any(parts),
            };
            (condition, exact.into_iter().all(|exact| exact))
        }
        FieldExprKind::Compare { op, lhs, rhs, .. } => match (&lhs.kind, &rhs.kind) {
            (FieldExprKind::Field(field), FieldExprKind::Literal(literal)) => test_of(lowering, field, *op, literal),
            (FieldExprKind::Literal(literal), FieldExprKind::Field(field)) => {
                test_of(lowering, field, op.mirrored(), literal)
            }
            _ => (SpanCondition::True, false),
        },
        FieldExprKind::Arithmetic { .. } | FieldExprKind::Negate(_) => (SpanCondition::True, false),
    }
}

fn negated(condition: SpanCondition) -> SpanCondition {
    match condition {
        SpanCondition::True => SpanCondition::False,
        SpanCondition::False => SpanCondition::True,
        SpanCondition::Not(inner) => *inner,
        other => SpanCondition::Not(Box::new(other)),
    }
}

/// The number of a field that spans themselves have.
fn own_field(lowering: &mut Lowering, field: &Field) -> Option<FieldId> {
    match lowering.field_ref(field) {
        FieldRef::Own(id) => Some(id),
        FieldRef::OfParent(_) | FieldRef::Derived(_) => None,
    }
}

fn truth_of(lowering: &mut Lowering, field: &Field, expected: bool) -> (SpanCondition, bool) {
    match own_field(lowering, field) {
        Some(field) => {
            let test = SpanTest::Compare(CompareOp::Eq, Literal::Bool(expected));
            (SpanCondition::Test(SpanPredicate { field, test }), true)
        }
        None => (SpanCondition::True, false),
    }
}

fn test_of(lowering: &mut Lowering, name: &Field, op: CompareOp, literal: &Literal) -> (SpanCondition, bool) {
    let Some(field) = own_field(lowering, name) else { return (SpanCondition::True, false) };
    let single = |test| SpanCondition::Test(SpanPredicate { field, test });
    match (op, literal) {
        (CompareOp::Eq, Literal::Nil) => {
            let carrier = carrier_of(name).and_then(|carrier| own_field(lowering, &Field::Intrinsic(carrier)));
            let exists = carrier.map(|field| SpanCondition::Test(SpanPredicate { field, test: SpanTest::Exists }));
            (SpanCondition::all([single(SpanTest::Missing)].into_iter().chain(exists)), true)
        }
        (CompareOp::NotEq, Literal::Nil) => (single(SpanTest::Exists), true),
        (_, Literal::Nil) => (SpanCondition::False, true),
        (CompareOp::Match | CompareOp::NotMatch, Literal::Str(pattern)) => {
            let Ok(matcher) = Matcher::new(pattern) else { return (SpanCondition::True, false) };
            if let (CompareOp::Match, Some(words)) = (op, matcher.exact_words()) {
                let words = words.iter().map(|word| Literal::Str(word.clone())).collect();
                return (single(SpanTest::In(words)), true);
            }
            let negated = op == CompareOp::NotMatch;
            (single(SpanTest::Matches { pattern: pattern.clone(), matcher, negated }), true)
        }
        (CompareOp::Match | CompareOp::NotMatch, _) => (SpanCondition::False, true),
        (op, literal) => (single(SpanTest::Compare(op, normalized(name, literal))), true),
    }
}
