//! Types of field expressions.

use super::Checked;
use crate::ast::{ArithmeticOp, CompareOp, Field, FieldExpr, FieldExprKind, Intrinsic, Literal, Scope};
use crate::error::{SourceRange, TraceqlError};
use crate::regex_match::Matcher;

/// What is known of a value before any span is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Nil,
    Bool,
    Int,
    Float,
    Duration,
    Str,
    Status,
    Kind,
    /// The parent itself, which can only be compared with nil.
    Parent,
    /// An attribute: anything.
    Unknown,
    /// Calculated from an attribute: some number.
    Number,
}

impl Type {
    pub(super) fn of_literal(literal: &Literal) -> Self {
        match literal {
            Literal::Nil => Self::Nil,
            Literal::Bool(_) => Self::Bool,
            Literal::Int(_) => Self::Int,
            Literal::Float(_) => Self::Float,
            Literal::Duration(_) => Self::Duration,
            Literal::Str(_) => Self::Str,
            Literal::Status(_) => Self::Status,
            Literal::Kind(_) => Self::Kind,
        }
    }

    fn of_field(field: &Field) -> Self {
        let Field::Intrinsic(intrinsic) = field else { return Self::Unknown };
        match intrinsic {
            Intrinsic::Duration
            | Intrinsic::TraceDuration
            | Intrinsic::EventTimeSinceStart
            | Intrinsic::ProfileCpu
            | Intrinsic::ProfileWall => Self::Duration,
            Intrinsic::Name
            | Intrinsic::StatusMessage
            | Intrinsic::SpanId
            | Intrinsic::ParentId
            | Intrinsic::RootName
            | Intrinsic::RootService
            | Intrinsic::TraceId
            | Intrinsic::EventName
            | Intrinsic::LinkTraceId
            | Intrinsic::LinkSpanId
            | Intrinsic::InstrumentationName
            | Intrinsic::InstrumentationVersion
            | Intrinsic::ProfileFunction
            | Intrinsic::ProfileFile => Self::Str,
            Intrinsic::ChildCount
            | Intrinsic::NestedSetLeft
            | Intrinsic::NestedSetRight
            | Intrinsic::NestedSetParent
            | Intrinsic::ProfileSamples => Self::Int,
            Intrinsic::Status => Self::Status,
            Intrinsic::Kind => Self::Kind,
            Intrinsic::Parent => Self::Parent,
        }
    }

    pub(super) fn of_arithmetic(left: Self, op: ArithmeticOp, right: Self) -> Self {
        match (left, op, right) {
            (Self::Unknown | Self::Number, ..) | (.., Self::Unknown | Self::Number) => Self::Number,
            (Self::Int, _, Self::Int) => Self::Int,
            (Self::Duration, ArithmeticOp::Add | ArithmeticOp::Sub, Self::Duration)
            | (Self::Duration, ArithmeticOp::Mul | ArithmeticOp::Div, Self::Int | Self::Float)
            | (Self::Int | Self::Float, ArithmeticOp::Mul, Self::Duration) => Self::Duration,
            _ => Self::Float,
        }
    }

    /// Whether it is, or may turn out to be, a number.
    pub(super) fn is_numeric(self) -> bool {
        matches!(self, Self::Int | Self::Float | Self::Duration | Self::Number | Self::Unknown)
    }

    fn may_be_bool(self) -> bool {
        matches!(self, Self::Bool | Self::Unknown)
    }

    /// With its article, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool => "true or false",
            Self::Int => "an integer",
            Self::Float => "a float",
            Self::Duration => "a duration",
            Self::Str => "a string",
            Self::Status => "a status",
            Self::Kind => "a kind",
            Self::Parent => "a parent span",
            Self::Unknown => "an attribute",
            Self::Number => "a number",
        }
    }

    /// What may stand on the other side of a comparison.
    fn comparable(self) -> &'static str {
        match self {
            Self::Int | Self::Float | Self::Number => "a number or a duration",
            Self::Duration => "a duration such as `100ms`, or a number of nanoseconds",
            Self::Str => "a string in quotes",
            Self::Status => "ok, error or unset",
            Self::Kind => "unspecified, internal, server, client, producer or consumer",
            Self::Bool => "true or false",
            Self::Parent => "nil",
            Self::Nil | Self::Unknown => "a value",
        }
    }
}

pub(super) fn mentions_a_field(expr: &FieldExpr) -> bool {
    match &expr.kind {
        FieldExprKind::Literal(_) => false,
        FieldExprKind::Field(_) => true,
        FieldExprKind::Not(of) | FieldExprKind::Negate(of) => mentions_a_field(of),
        FieldExprKind::Logical { operands, .. } => operands.iter().any(mentions_a_field),
        FieldExprKind::Compare { lhs, rhs, .. } | FieldExprKind::Arithmetic { lhs, rhs, .. } => {
            mentions_a_field(lhs) || mentions_a_field(rhs)
        }
    }
}

/// Checks the condition of a filter.
pub(super) fn check_condition(condition: &FieldExpr) -> Checked<()> {
    let found = type_of(condition)?;
    if found.may_be_bool() {
        return Ok(());
    }
    Err(TraceqlError::at(condition.range, format!("a condition must be true or false, but this is {}", found.name()))
        .expecting("a comparison such as `… = …`"))
}

pub(super) fn refuse_zero_divisor(op: ArithmeticOp, divisor_is_zero: bool, range: SourceRange) -> Checked<()> {
    if divisor_is_zero && matches!(op, ArithmeticOp::Div | ArithmeticOp::Mod) {
        return Err(TraceqlError::at(range, "division by zero"));
    }
    Ok(())
}

/// The type of an expression, all of whose parts fit together.
pub(super) fn type_of(expr: &FieldExpr) -> Checked<Type> {
    match &expr.kind {
        FieldExprKind::Literal(literal) => Ok(Type::of_literal(literal)),
        FieldExprKind::Field(field) => Ok(Type::of_field(field)),
        FieldExprKind::Not(of) => {
            require(type_of(of)?.may_be_bool(), of, "!", "true or false")?;
            Ok(Type::Bool)
        }
        FieldExprKind::Negate(of) => {
            let found = type_of(of)?;
            require(found.is_numeric(), of, "-", "a number or a duration")?;
            Ok(if found == Type::Unknown { Type::Number } else { found })
        }
        FieldExprKind::Logical { op, operands } => {
            for operand in operands {
                require(type_of(operand)?.may_be_bool(), operand, op.symbol(), "a condition")?;
            }
            Ok(Type::Bool)
        }
        FieldExprKind::Arithmetic { op, lhs, rhs, .. } => {
            let (left, right) = (type_of(lhs)?, type_of(rhs)?);
            require(left.is_numeric(), lhs, op.symbol(), "a number or a duration")?;
            require(right.is_numeric(), rhs, op.symbol(), "a number or a duration")?;
            refuse_zero_divisor(*op, rhs.as_literal() == Some(&Literal::Int(0)), rhs.range)?;
            Ok(Type::of_arithmetic(left, *op, right))
        }
        FieldExprKind::Compare { op, op_range, lhs, rhs } => {
            check_comparison(*op, *op_range, lhs, rhs)?;
            Ok(Type::Bool)
        }
    }
}

fn require(fits: bool, operand: &FieldExpr, op: &str, expected: &str) -> Checked<()> {
    if fits {
        return Ok(());
    }
    let found = type_of(operand)?.name();
    Err(TraceqlError::at(operand.range, format!("`{op}` does not work on {found}")).expecting(expected))
}

fn check_comparison(op: CompareOp, op_range: SourceRange, lhs: &FieldExpr, rhs: &FieldExpr) -> Checked<()> {
    let (left, right) = (type_of(lhs)?, type_of(rhs)?);
    if op.is_regex() {
        return check_regex(op, lhs, left, rhs);
    }
    if left == Type::Nil || right == Type::Nil {
        let other = if left == Type::Nil { rhs } else { lhs };
        return check_nil(op, op_range, other);
    }
    check_compared(left, &lhs.to_string(), op, op_range, right, &rhs.to_string(), rhs.range)
}

fn check_regex(op: CompareOp, lhs: &FieldExpr, left: Type, rhs: &FieldExpr) -> Checked<()> {
    let Some(Literal::Str(pattern)) = rhs.as_literal() else {
        return Err(TraceqlError::at(rhs.range, format!("`{}` needs a pattern on its right side", op.symbol()))
            .expecting("a string in quotes"));
    };
    if !matches!(left, Type::Str | Type::Unknown) {
        return Err(TraceqlError::at(lhs.range, format!("`{}` does not work on {}", op.symbol(), left.name()))
            .expecting("a string or an attribute on its left side"));
    }
    Matcher::new(pattern)
        .map(|_| ())
        .map_err(|reason| TraceqlError::at(rhs.range, format!("not a regular expression: {reason}")))
}

fn check_nil(op: CompareOp, op_range: SourceRange, other: &FieldExpr) -> Checked<()> {
    if !matches!(op, CompareOp::Eq | CompareOp::NotEq) {
        return Err(
            TraceqlError::at(op_range, format!("`{}` does not work with nil", op.symbol())).expecting("`=` or `!=`")
        );
    }
    let always_present = match &other.kind {
        FieldExprKind::Field(Field::Intrinsic(intrinsic)) => intrinsic.is_always_present(),
        FieldExprKind::Field(Field::Attribute { of_parent: false, scope: Scope::Resource, name }) => {
            name == "service.name"
        }
        _ => false,
    };
    if always_present && op == CompareOp::Eq {
        let error = TraceqlError::at(other.range, format!("`{other}` is never nil: every span has it"));
        let is_parent_id = other.kind == FieldExprKind::Field(Field::Intrinsic(Intrinsic::ParentId));
        return Err(if is_parent_id { error.suggesting(Some("parent = nil".to_owned())) } else { error });
    }
    Ok(())
}

/// Checks a comparison between values of these types.
pub(super) fn check_compared(
    left: Type,
    left_text: &str,
    op: CompareOp,
    op_range: SourceRange,
    right: Type,
    right_text: &str,
    right_range: SourceRange,
) -> Checked<()> {
    if left == Type::Parent || right == Type::Parent {
        return Err(TraceqlError::at(op_range, "`parent` can only be compared with nil")
            .expecting("`parent = nil`, or one of its attributes such as `parent.span.x`"));
    }
    let fits = match (left, right) {
        (Type::Unknown, _) | (_, Type::Unknown) => true,
        // As OTLP numbers them, which may be more than have a name.
        (Type::Status | Type::Kind, Type::Int) | (Type::Int, Type::Status | Type::Kind) => true,
        (left, right) => left == right || (left.is_numeric() && right.is_numeric()),
    };
    if !fits {
        let message = format!(
            "cannot compare `{left_text}` ({}) with `{right_text}` ({})",
            bare(left.name()),
            bare(right.name())
        );
        return Err(TraceqlError::at(right_range, message).expecting(left.comparable()));
    }
    let is_order = !matches!(op, CompareOp::Eq | CompareOp::NotEq);
    let unordered = |found: Type| matches!(found, Type::Bool | Type::Status | Type::Kind);
    if is_order && (unordered(left) || unordered(right)) {
        let found = if unordered(left) { left } else { right };
        return Err(TraceqlError::at(op_range, format!("`{}` does not work on {}", op.symbol(), found.name()))
            .expecting("`=` or `!=`"));
    }
    Ok(())
}

fn bare(name: &str) -> &str {
    name.strip_prefix("a ").or_else(|| name.strip_prefix("an ")).unwrap_or(name)
}
