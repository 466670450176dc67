//! From the syntax tree to nodes that run.

use super::node::FieldRef;
use super::pipeline::{PipelineOp, ScalarOp, ScalarSide, SpansOp, StageOp};
use crate::ast::{
    CompareOp, Field, FieldExpr, FieldExprKind, Intrinsic, Literal, LogicalOp, ScalarExpr, Scope, SpansetExpr,
    SpansetOp, Stage,
};
use crate::error::TraceqlError;
use crate::eval::Node;
use crate::plan::{FieldTable, Needs, is_derived};
use crate::regex_match::Matcher;
use crate::value::Value;

/// Collects fields and needs while a query is lowered.
#[derive(Debug, Default)]
pub(crate) struct Lowering {
    pub(crate) fields: FieldTable,
    pub(crate) needs: Needs,
    /// Fields to show with each span, in the order met.
    pub(crate) shown: Vec<Field>,
}

type Lowered<T> = Result<T, TraceqlError>;

/// Ids may be written short or in capitals; they compare in full and in lower case.
pub(crate) fn normalized(field: &Field, literal: &Literal) -> Literal {
    let digits = match field {
        Field::Intrinsic(Intrinsic::TraceId | Intrinsic::LinkTraceId) => 32,
        Field::Intrinsic(Intrinsic::SpanId | Intrinsic::ParentId | Intrinsic::LinkSpanId) => 16,
        _ => return literal.clone(),
    };
    match literal {
        Literal::Str(text)
            if !text.is_empty() && text.len() <= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            Literal::Str(format!("{:0>digits$}", text.to_ascii_lowercase()))
        }
        other => other.clone(),
    }
}

/// The field that every event or link has, which tells "lacks the attribute" from "there is none to have it".
pub(crate) fn carrier_of(field: &Field) -> Option<Intrinsic> {
    match field {
        Field::Attribute { of_parent: false, scope: Scope::Event, .. } => Some(Intrinsic::EventName),
        Field::Attribute { of_parent: false, scope: Scope::Link, .. } => Some(Intrinsic::LinkTraceId),
        _ => None,
    }
}

impl Lowering {
    fn field(&mut self, field: &Field) -> FieldRef {
        if !self.shown.contains(field) {
            self.shown.push(field.clone());
        }
        self.field_ref(field)
    }

    /// Where a field's value comes from.
    pub(crate) fn field_ref(&mut self, field: &Field) -> FieldRef {
        match field {
            Field::Intrinsic(intrinsic) if is_derived(*intrinsic) => {
                match intrinsic {
                    Intrinsic::TraceDuration | Intrinsic::RootName | Intrinsic::RootService => {
                        self.needs.trace_facts = true;
                    }
                    _ => self.needs.structure = true,
                }
                self.needs.whole_trace = true;
                FieldRef::Derived(*intrinsic)
            }
            Field::Intrinsic(_) => FieldRef::Own(self.fields.intern(field.clone())),
            Field::Attribute { of_parent, scope, name } => {
                let id = self.fields.intern(Field::attribute(*scope, name.clone()));
                if *of_parent {
                    self.needs.structure = true;
                    self.needs.whole_trace = true;
                    FieldRef::OfParent(id)
                } else {
                    FieldRef::Own(id)
                }
            }
        }
    }

    pub(crate) fn expr(&mut self, expr: &FieldExpr) -> Lowered<Node> {
        Ok(match &expr.kind {
            FieldExprKind::Literal(literal) => Node::Constant(Value::from_literal(literal)),
            FieldExprKind::Field(field) => Node::Field(self.field(field)),
            FieldExprKind::Not(of) => Node::Not(Box::new(self.expr(of)?)),
            FieldExprKind::Negate(of) => Node::Negate(Box::new(self.expr(of)?)),
            FieldExprKind::Logical { op, operands } => {
                let nodes = operands.iter().map(|operand| self.expr(operand)).collect::<Lowered<Vec<_>>>()?;
                match op {
                    LogicalOp::And => Node::All(nodes),
                    LogicalOp::Or => Node::Any(fold_equalities(nodes)),
                }
            }
            FieldExprKind::Arithmetic { op, lhs, rhs, .. } => {
                Node::Arithmetic { op: *op, lhs: Box::new(self.expr(lhs)?), rhs: Box::new(self.expr(rhs)?) }
            }
            FieldExprKind::Compare { op, lhs, rhs, .. } => self.comparison(*op, lhs, rhs)?,
        })
    }

    fn comparison(&mut self, op: CompareOp, lhs: &FieldExpr, rhs: &FieldExpr) -> Lowered<Node> {
        if op.is_regex() {
            let Some(Literal::Str(pattern)) = rhs.as_literal() else {
                return Err(TraceqlError::at(rhs.range, "a pattern must be a string"));
            };
            let matcher = Matcher::new(pattern)
                .map_err(|reason| TraceqlError::at(rhs.range, format!("not a regular expression: {reason}")))?;
            let negated = op == CompareOp::NotMatch;
            return Ok(Node::Match { of: Box::new(self.expr(lhs)?), matcher, negated });
        }
        match (lhs.as_literal(), rhs.as_literal()) {
            (Some(Literal::Nil), Some(_)) | (Some(_), Some(Literal::Nil)) => Ok(Node::Constant(Value::Bool(false))),
            (Some(Literal::Nil), None) => self.presence(op, rhs),
            (None, Some(Literal::Nil)) => self.presence(op, lhs),
            (None, Some(literal)) => self.against_constant(op, lhs, literal),
            (Some(literal), None) => self.against_constant(op.mirrored(), rhs, literal),
            _ => Ok(Node::Compare { op, lhs: Box::new(self.expr(lhs)?), rhs: Box::new(self.expr(rhs)?) }),
        }
    }

    fn against_constant(&mut self, op: CompareOp, of: &FieldExpr, literal: &Literal) -> Lowered<Node> {
        let node = self.expr(of)?;
        let constant = match &of.kind {
            FieldExprKind::Field(field) => Value::from_literal(&normalized(field, literal)),
            _ => Value::from_literal(literal),
        };
        Ok(match node {
            Node::Field(FieldRef::Own(field)) => match constant {
                Value::Str(text) if matches!(op, CompareOp::Eq | CompareOp::NotEq) => {
                    Node::TextIs { field, text, negated: op == CompareOp::NotEq }
                }
                constant => Node::CompareOwn { field, op, constant },
            },
            node => Node::Compare { op, lhs: Box::new(node), rhs: Box::new(Node::Constant(constant)) },
        })
    }

    /// `= nil` and `!= nil`.
    fn presence(&mut self, op: CompareOp, of: &FieldExpr) -> Lowered<Node> {
        let node = Box::new(self.expr(of)?);
        if op == CompareOp::NotEq {
            return Ok(Node::Exists(node));
        }
        let missing = Node::Missing(node);
        let carrier = match &of.kind {
            FieldExprKind::Field(field) => carrier_of(field),
            _ => None,
        };
        Ok(match carrier {
            Some(carrier) => {
                let carrier = self.field_ref(&Field::Intrinsic(carrier));
                Node::All(vec![missing, Node::Exists(Box::new(Node::Field(carrier)))])
            }
            None => missing,
        })
    }

    pub(crate) fn pipeline(&mut self, stages: &[Stage]) -> Lowered<PipelineOp> {
        let mut lowered = Vec::new();
        for stage in stages {
            match stage {
                Stage::Spanset(spans) => lowered.push(StageOp::Spans(self.spanset(spans)?)),
                Stage::By(expr) => {
                    let (label, by_element) = (format!("by({expr})"), expr.is_set());
                    lowered.push(StageOp::By { label, expr: self.expr(expr)?, by_element });
                }
                Stage::Coalesce(_) => lowered.push(StageOp::Coalesce),
                Stage::Select(fields) => {
                    for field in fields {
                        self.expr(field)?;
                    }
                }
            }
        }
        Ok(PipelineOp { stages: lowered })
    }

    fn spanset(&mut self, spans: &SpansetExpr) -> Lowered<SpansOp> {
        Ok(match spans {
            SpansetExpr::Filter { condition: None, .. } => SpansOp::Every,
            SpansetExpr::Filter { condition: Some(condition), .. } => SpansOp::Filter(self.expr(condition)?),
            SpansetExpr::Binary { op, lhs, rhs, .. } => {
                let (lhs, rhs) = (Box::new(self.spanset(lhs)?), Box::new(self.spanset(rhs)?));
                match op {
                    SpansetOp::And => SpansOp::And(lhs, rhs),
                    SpansetOp::Or => SpansOp::Or(lhs, rhs),
                    SpansetOp::Structural { relation, form } => {
                        self.needs.structure = true;
                        self.needs.whole_trace = true;
                        SpansOp::Structural { relation: *relation, form: *form, lhs, rhs }
                    }
                }
            }
            SpansetExpr::ScalarFilter { op, lhs, rhs, .. } => {
                SpansOp::Scalar { op: *op, lhs: self.scalar_side(lhs)?, rhs: self.scalar_side(rhs)? }
            }
            SpansetExpr::Pipeline(pipeline) => SpansOp::Pipeline(self.pipeline(&pipeline.stages)?),
        })
    }

    fn scalar_side(&mut self, scalar: &ScalarExpr) -> Lowered<ScalarSide> {
        let expr = self.scalar(scalar)?;
        let label = (!is_constant(&expr)).then(|| scalar.to_string());
        Ok(ScalarSide { expr, label })
    }

    fn scalar(&mut self, scalar: &ScalarExpr) -> Lowered<ScalarOp> {
        Ok(match scalar {
            ScalarExpr::Literal { value, .. } => ScalarOp::Constant(Value::from_literal(value)),
            ScalarExpr::Aggregate { op, of, .. } => {
                let of = of.as_ref().map(|of| self.expr(of)).transpose()?;
                ScalarOp::Aggregate { op: *op, of }
            }
            ScalarExpr::Negate { of, .. } => ScalarOp::Negate(Box::new(self.scalar(of)?)),
            ScalarExpr::Binary { op, lhs, rhs } => {
                ScalarOp::Arithmetic { op: *op, lhs: Box::new(self.scalar(lhs)?), rhs: Box::new(self.scalar(rhs)?) }
            }
            ScalarExpr::Pipeline { stages, value, .. } => {
                ScalarOp::Pipeline { pipeline: self.pipeline(stages)?, value: Box::new(self.scalar(value)?) }
            }
        })
    }
}

fn is_constant(scalar: &ScalarOp) -> bool {
    match scalar {
        ScalarOp::Constant(_) => true,
        ScalarOp::Aggregate { .. } | ScalarOp::Pipeline { .. } => false,
        ScalarOp::Negate(of) => is_constant(of),
        ScalarOp::Arithmetic { lhs, rhs, .. } => is_constant(lhs) && is_constant(rhs),
    }
}

/// `x = "a" || x = "b" || …` becomes one lookup, so that a long list is read once a span.
fn fold_equalities(nodes: Vec<Node>) -> Vec<Node> {
    let mut folded: Vec<Node> = Vec::new();
    for node in nodes {
        let Node::TextIs { field, text, negated: false } = node else {
            folded.push(node);
            continue;
        };
        let known = folded.iter_mut().find_map(|node| match node {
            Node::OneOf { field: known, words } if *known == field => Some(words),
            _ => None,
        });
        match known {
            Some(words) => words.push(text),
            None => folded.push(Node::OneOf { field, words: vec![text] }),
        }
    }
    folded
}

impl PipelineOp {
    /// The condition that alone decides about each span, if the pipeline is no more than that.
    ///
    /// Grouping does not change which spans come out, so metrics may ignore it; a search shows the groups.
    pub(crate) fn as_condition(&self, groups_matter: bool) -> Option<Node> {
        let mut nodes = Vec::new();
        for stage in &self.stages {
            match stage {
                StageOp::Spans(spans) => nodes.extend(spans.as_condition(groups_matter)?),
                StageOp::By { .. } | StageOp::Coalesce if groups_matter => return None,
                StageOp::By { .. } | StageOp::Coalesce => {}
            }
        }
        Some(match nodes.len() {
            1 => nodes.remove(0),
            _ => Node::All(nodes),
        })
    }
}

impl SpansOp {
    /// `Some(None)`: every span; `None`: no condition on single spans says it.
    fn as_condition(&self, groups_matter: bool) -> Option<Option<Node>> {
        match self {
            Self::Every => Some(None),
            Self::Filter(node) => Some(Some(node.clone())),
            Self::Or(lhs, rhs) => match (lhs.as_condition(groups_matter)?, rhs.as_condition(groups_matter)?) {
                (Some(left), Some(right)) => Some(Some(Node::Any(vec![left, right]))),
                _ => Some(None),
            },
            Self::Pipeline(pipeline) => Some(Some(pipeline.as_condition(groups_matter)?)),
            Self::And(..) | Self::Structural { .. } | Self::Scalar { .. } => None,
        }
    }
}
