//! Writes a tree back as text, with no more parentheses than needed to read it back the same.

use std::fmt::{self, Display, Formatter, Write};

use super::{
    AggregateOp, ArithmeticOp, Field, FieldExpr, FieldExprKind, Keyword, Literal, MetricsExpr, MetricsFunction,
    Pipeline, Query, QueryBody, Relation, ScalarExpr, SecondStage, Sink, SpansetExpr, SpansetOp, Stage, StructuralForm,
};
use crate::syntax::is_attribute_name_char;

/// Binding strength, loosest first; the parser uses the same order.
const LOGICAL: u8 = 1;
const COMPARE: u8 = 2;
const ADD: u8 = 3;
const NOT: u8 = 4;
const MUL: u8 = 5;
const POW: u8 = 6;
const ATOM: u8 = 7;

/// Writes text in double quotes.
pub(crate) fn write_quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\U{:08x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

/// Writes nanoseconds in units that read back to the same number.
pub(crate) fn write_duration(out: &mut impl Write, nanos: i64) -> fmt::Result {
    if nanos == 0 {
        return out.write_str("0s");
    }
    if nanos < 0 {
        out.write_char('-')?;
    }
    let mut rest = nanos.unsigned_abs();
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    for (size, unit) in units {
        if rest >= size {
            write!(out, "{}{unit}", rest / size)?;
            rest %= size;
        }
    }
    Ok(())
}

/// Writes a constant as its word, or else as its number: both can be asked for.
pub(crate) fn write_keyword(out: &mut impl Write, keyword: impl Keyword) -> fmt::Result {
    match keyword.name() {
        Some(word) => out.write_str(word),
        None => write!(out, "{}", keyword.number()),
    }
}

impl Display for Literal {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => out.write_str("nil"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(i64::MIN) => out.write_str("minInt"),
            Self::Int(value) => write!(out, "{value}"),
            Self::Float(value) => write!(out, "{value:?}"),
            Self::Duration(nanos) => write_duration(out, *nanos),
            Self::Str(text) => write_quoted(out, text),
            Self::Status(status) => write_keyword(out, *status),
            Self::Kind(kind) => write_keyword(out, *kind),
        }
    }
}

impl Display for Field {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (of_parent, scope, name) = match self {
            Self::Intrinsic(intrinsic) => return out.write_str(intrinsic.name()),
            Self::Attribute { of_parent, scope, name } => (*of_parent, *scope, name),
        };
        let prefix = scope.prefix();
        if of_parent {
            out.write_str(if prefix == "." { "parent" } else { "parent." })?;
        }
        out.write_str(prefix)?;
        // `parent."span.x"` is the attribute `span.x`; bare it would be the span attribute `x`.
        let looks_scoped = of_parent && prefix == "." && (name.starts_with("span.") || name.starts_with("resource."));
        let looks_like_a_number = prefix == "." && !of_parent && name.starts_with(|c: char| c.is_ascii_digit());
        if name.is_empty() || looks_scoped || looks_like_a_number || !name.chars().all(is_attribute_name_char) {
            let mut quoted = String::with_capacity(name.len() + 2);
            for c in name.chars() {
                if c == '"' || c == '\\' {
                    quoted.push('\\');
                }
                quoted.push(c);
            }
            write!(out, "\"{quoted}\"")
        } else {
            out.write_str(name)
        }
    }
}

fn arithmetic_strength(op: ArithmeticOp) -> u8 {
    match op {
        ArithmeticOp::Add | ArithmeticOp::Sub => ADD,
        ArithmeticOp::Mul | ArithmeticOp::Div | ArithmeticOp::Mod => MUL,
        ArithmeticOp::Pow => POW,
    }
}

impl FieldExpr {
    fn strength(&self) -> u8 {
        match &self.kind {
            FieldExprKind::Literal(_) | FieldExprKind::Field(_) | FieldExprKind::Negate(_) => ATOM,
            FieldExprKind::Not(_) => NOT,
            FieldExprKind::Logical { .. } => LOGICAL,
            FieldExprKind::Compare { .. } => COMPARE,
            FieldExprKind::Arithmetic { op, .. } => arithmetic_strength(*op),
        }
    }

    fn write(&self, out: &mut Formatter<'_>, least: u8) -> fmt::Result {
        if self.strength() >= least { write!(out, "{self}") } else { write!(out, "({self})") }
    }
}

impl Display for FieldExpr {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FieldExprKind::Literal(literal) => write!(out, "{literal}"),
            FieldExprKind::Field(field) => write!(out, "{field}"),
            FieldExprKind::Not(of) | FieldExprKind::Negate(of) => {
                out.write_str(if matches!(self.kind, FieldExprKind::Not(_)) { "!" } else { "-" })?;
                // A bare number after a minus would be read as one negative literal.
                if matches!(of.kind, FieldExprKind::Field(_)) { write!(out, "{of}") } else { write!(out, "({of})") }
            }
            FieldExprKind::Logical { op, operands } => {
                for (at, operand) in operands.iter().enumerate() {
                    if at > 0 {
                        write!(out, " {} ", op.symbol())?;
                    }
                    // The other operator on the same level needs no parentheses in first place.
                    operand.write(out, if at == 0 { LOGICAL } else { LOGICAL + 1 })?;
                }
                Ok(())
            }
            FieldExprKind::Compare { op, lhs, rhs, .. } => {
                lhs.write(out, COMPARE)?;
                write!(out, " {} ", op.symbol())?;
                rhs.write(out, COMPARE + 1)
            }
            FieldExprKind::Arithmetic { op, lhs, rhs, .. } => {
                let strength = arithmetic_strength(*op);
                let right_associative = strength == POW;
                lhs.write(out, strength + u8::from(right_associative))?;
                write!(out, " {} ", op.symbol())?;
                rhs.write(out, strength + u8::from(!right_associative))
            }
        }
    }
}

impl SpansetOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        let SpansetOp::Structural { relation, form } = self else {
            return if self == SpansetOp::And { "&&" } else { "||" };
        };
        let forms = match relation {
            Relation::Child => [">", "!>", "&>"],
            Relation::Parent => ["<", "!<", "&<"],
            Relation::Descendant => [">>", "!>>", "&>>"],
            Relation::Ancestor => ["<<", "!<<", "&<<"],
            Relation::Sibling => ["~", "!~", "&~"],
        };
        match form {
            StructuralForm::Right => forms[0],
            StructuralForm::RightWithout => forms[1],
            StructuralForm::Both => forms[2],
        }
    }
}

impl SpansetExpr {
    fn strength(&self) -> u8 {
        match self {
            Self::Filter { .. } | Self::Pipeline(_) => ATOM,
            Self::Binary { op: SpansetOp::And | SpansetOp::Or, .. } => LOGICAL,
            Self::Binary { .. } | Self::ScalarFilter { .. } => COMPARE,
        }
    }

    fn write(&self, out: &mut Formatter<'_>, least: u8) -> fmt::Result {
        if self.strength() >= least { write!(out, "{self}") } else { write!(out, "({self})") }
    }
}

impl Display for SpansetExpr {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter { condition: None, .. } => out.write_str("{ }"),
            Self::Filter { condition: Some(condition), .. } => write!(out, "{{ {condition} }}"),
            Self::Binary { op, lhs, rhs, .. } => {
                let strength = self.strength();
                lhs.write(out, strength)?;
                write!(out, " {} ", op.symbol())?;
                rhs.write(out, strength + 1)
            }
            Self::ScalarFilter { op, lhs, rhs, .. } => {
                lhs.write(out, COMPARE + 1)?;
                write!(out, " {} ", op.symbol())?;
                rhs.write(out, COMPARE + 1)
            }
            Self::Pipeline(pipeline) => write!(out, "({pipeline})"),
        }
    }
}

impl AggregateOp {
    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
        }
    }
}

impl ScalarExpr {
    fn strength(&self) -> u8 {
        match self {
            Self::Binary { op, .. } => arithmetic_strength(*op),
            _ => ATOM,
        }
    }

    fn write(&self, out: &mut Formatter<'_>, least: u8) -> fmt::Result {
        if self.strength() >= least { write!(out, "{self}") } else { write!(out, "({self})") }
    }
}

impl Display for ScalarExpr {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal { value, .. } => write!(out, "{value}"),
            Self::Aggregate { op, of: None, .. } => write!(out, "{}()", op.name()),
            Self::Aggregate { op, of: Some(of), .. } => write!(out, "{}({of})", op.name()),
            Self::Binary { op, lhs, rhs } => {
                let strength = arithmetic_strength(*op);
                let right_associative = strength == POW;
                lhs.write(out, strength + u8::from(right_associative))?;
                write!(out, " {} ", op.symbol())?;
                rhs.write(out, strength + u8::from(!right_associative))
            }
            Self::Negate { of, .. } => write!(out, "-({of})"),
            Self::Pipeline { stages, value, .. } => {
                out.write_char('(')?;
                for stage in stages {
                    write!(out, "{stage} | ")?;
                }
                write!(out, "{value})")
            }
        }
    }
}

fn write_list<T: Display>(out: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.write_str(", ")?;
        }
        write!(out, "{item}")?;
    }
    Ok(())
}

impl Display for Stage {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spanset(spanset) => write!(out, "{spanset}"),
            Self::By(expr) => write!(out, "by({expr})"),
            Self::Coalesce(_) => out.write_str("coalesce()"),
            Self::Select(fields) => {
                out.write_str("select(")?;
                write_list(out, fields)?;
                out.write_char(')')
            }
        }
    }
}

impl Display for Pipeline {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (at, stage) in self.stages.iter().enumerate() {
            if at > 0 {
                out.write_str(" | ")?;
            }
            write!(out, "{stage}")?;
        }
        Ok(())
    }
}

/// A profile type is a bare word where its characters allow.
fn write_profile_type(out: &mut Formatter<'_>, name: &str) -> fmt::Result {
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.split(':').all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    if is_word { out.write_str(name) } else { write_quoted(out, name) }
}

impl Display for Sink {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flame { profile_type } => {
                out.write_str("flame(")?;
                write_profile_type(out, profile_type)?;
            }
            Self::Top { count, profile_type } => {
                write!(out, "top({count}, ")?;
                write_profile_type(out, profile_type)?;
            }
            Self::Diff { baseline, profile_type } => {
                write!(out, "diff({baseline}, ")?;
                write_profile_type(out, profile_type)?;
            }
            Self::Ledger => out.write_str("ledger(")?,
        }
        out.write_char(')')
    }
}

impl MetricsFunction {
    /// The function's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::CountOverTime => "count_over_time",
            Self::MinOverTime(_) => "min_over_time",
            Self::MaxOverTime(_) => "max_over_time",
            Self::SumOverTime(_) => "sum_over_time",
            Self::AvgOverTime(_) => "avg_over_time",
            Self::QuantileOverTime(..) => "quantile_over_time",
            Self::HistogramOverTime(_) => "histogram_over_time",
            Self::Compare { .. } => "compare",
        }
    }
}

impl Display for MetricsFunction {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}(", self.name())?;
        match self {
            Self::Rate | Self::CountOverTime => {}
            Self::MinOverTime(of)
            | Self::MaxOverTime(of)
            | Self::SumOverTime(of)
            | Self::AvgOverTime(of)
            | Self::HistogramOverTime(of) => write!(out, "{of}")?,
            Self::QuantileOverTime(of, quantiles) => {
                write!(out, "{of}")?;
                for quantile in quantiles {
                    write!(out, ", {quantile:?}")?;
                }
            }
            Self::Compare { selection, top, window } => {
                match selection {
                    Some(condition) => write!(out, "{{ {condition} }}")?,
                    None => out.write_str("{ }")?,
                }
                if let Some(top) = top {
                    write!(out, ", {top}")?;
                }
                if let Some((from, to)) = window {
                    write!(out, ", {from}, {to}")?;
                }
            }
        }
        out.write_char(')')
    }
}

impl Display for SecondStage {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TopK(count) => write!(out, "topk({count})"),
            Self::BottomK(count) => write!(out, "bottomk({count})"),
            Self::Filter(op, literal) => write!(out, "{} {literal}", op.symbol()),
        }
    }
}

impl MetricsExpr {
    fn write(&self, out: &mut Formatter<'_>, least: u8) -> fmt::Result {
        let strength = match self {
            Self::Number { .. } => ATOM,
            Self::Binary { op, .. } => arithmetic_strength(*op),
            Self::Query(_) | Self::Staged { .. } => 0,
        };
        if strength >= least { write!(out, "{self}") } else { write!(out, "({self})") }
    }
}

impl Display for MetricsExpr {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(query) => {
                write!(out, "{} | {}", query.pipeline, query.function)?;
                if !query.by.is_empty() {
                    out.write_str(" by(")?;
                    write_list(out, &query.by)?;
                    out.write_char(')')?;
                }
                Ok(())
            }
            Self::Number { value, .. } => write!(out, "{value}"),
            Self::Binary { op, lhs, rhs, .. } => {
                let strength = arithmetic_strength(*op);
                lhs.write(out, strength)?;
                write!(out, " {} ", op.symbol())?;
                rhs.write(out, strength + 1)
            }
            Self::Staged { of, stage, .. } => {
                // Only series can be staged; arithmetic in front of a stage needs its own parentheses.
                of.write(out, if matches!(**of, Self::Query(_) | Self::Staged { .. }) { 0 } else { ATOM })?;
                write!(out, " | {stage}")
            }
        }
    }
}

impl Display for Query {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match &self.body {
            QueryBody::Search { pipeline, sink } => {
                write!(out, "{pipeline}")?;
                if let Some(sink) = sink {
                    write!(out, " | {sink}")?;
                }
            }
            QueryBody::Metrics(metrics) => write!(out, "{metrics}")?,
        }
        if !self.hints.is_empty() {
            out.write_str(" with(")?;
            for (at, hint) in self.hints.iter().enumerate() {
                let separator = if at > 0 { ", " } else { "" };
                write!(out, "{separator}{}={}", hint.name, hint.value)?;
            }
            out.write_char(')')?;
        }
        Ok(())
    }
}
