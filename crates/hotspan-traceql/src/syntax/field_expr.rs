//! Expressions inside `{ }`: operator precedence climbing.
//!
//! Loosest to tightest: `&&` and `||` (one level, left to right, as in Tempo); comparisons; `+ -`; `!`; `* / %`;
//! `^` (right to left); unary minus.

use super::parser::{Parsed, Parser, Tall};
use super::token::{Symbol, TokenKind};
use crate::ast::{ArithmeticOp, CompareOp, Field, FieldExpr, FieldExprKind, LogicalOp};
use crate::error::TraceqlError;

const LOGICAL: u8 = 1;
const COMPARE: u8 = 2;
const ADD: u8 = 3;
const MUL: u8 = 5;
const POW: u8 = 6;
pub(super) const UNARY: u8 = 7;

#[derive(Clone, Copy)]
enum Infix {
    Logical(LogicalOp),
    Compare(CompareOp),
    Arithmetic(ArithmeticOp),
}

/// The arithmetic operator of a symbol, with its strength.
pub(super) fn arithmetic_op(symbol: Symbol) -> Option<(ArithmeticOp, u8)> {
    Some(match symbol {
        Symbol::Plus => (ArithmeticOp::Add, ADD),
        Symbol::Minus => (ArithmeticOp::Sub, ADD),
        Symbol::Star => (ArithmeticOp::Mul, MUL),
        Symbol::Slash => (ArithmeticOp::Div, MUL),
        Symbol::Percent => (ArithmeticOp::Mod, MUL),
        Symbol::Caret => (ArithmeticOp::Pow, POW),
        _ => return None,
    })
}

impl Parser<'_> {
    /// A whole field expression.
    pub(super) fn field_expr(&mut self) -> Parsed<Tall<FieldExpr>> {
        self.field_expr_at(LOGICAL)
    }

    fn field_infix(&self) -> Option<(Infix, u8)> {
        if let Some(op) = self.compare_op() {
            return Some((Infix::Compare(op), COMPARE));
        }
        let TokenKind::Symbol(symbol) = self.kind() else { return None };
        match symbol {
            Symbol::And => Some((Infix::Logical(LogicalOp::And), LOGICAL)),
            Symbol::Or => Some((Infix::Logical(LogicalOp::Or), LOGICAL)),
            symbol => arithmetic_op(*symbol).map(|(op, strength)| (Infix::Arithmetic(op), strength)),
        }
    }

    /// An expression of operators at least as strong as `least`.
    fn field_expr_at(&mut self, least: u8) -> Parsed<Tall<FieldExpr>> {
        self.deeper(|parser| {
            let mut lhs = parser.field_prefix()?;
            while let Some((infix, strength)) = parser.field_infix() {
                if strength < least {
                    break;
                }
                let op_range = parser.range();
                parser.advance();
                let rhs = parser.field_expr_at(if strength == POW { POW } else { strength + 1 })?;
                lhs = parser.combine(infix, op_range, lhs, rhs)?;
            }
            Ok(lhs)
        })
    }

    fn combine(
        &self,
        infix: Infix,
        op_range: crate::error::SourceRange,
        lhs: Tall<FieldExpr>,
        rhs: Tall<FieldExpr>,
    ) -> Parsed<Tall<FieldExpr>> {
        let range = lhs.node.range.to(rhs.node.range);
        let heights = [lhs.height, rhs.height];
        let (op, mut lhs, rhs) = match infix {
            Infix::Logical(op) => (op, lhs, rhs),
            Infix::Compare(op) => {
                let (lhs, rhs) = (Box::new(lhs.node), Box::new(rhs.node));
                let kind = FieldExprKind::Compare { op, op_range, lhs, rhs };
                return self.above(FieldExpr { kind, range }, &heights);
            }
            Infix::Arithmetic(op) => {
                let (lhs, rhs) = (Box::new(lhs.node), Box::new(rhs.node));
                let kind = FieldExprKind::Arithmetic { op, op_range, lhs, rhs };
                return self.above(FieldExpr { kind, range }, &heights);
            }
        };
        // A chain of one operator stays flat however long it is.
        if let FieldExprKind::Logical { op: same, operands } = &mut lhs.node.kind
            && *same == op
        {
            operands.push(rhs.node);
            lhs.node.range = range;
            let below = lhs.height.saturating_sub(1);
            return self.above(lhs.node, &[below, rhs.height]);
        }
        let kind = FieldExprKind::Logical { op, operands: vec![lhs.node, rhs.node] };
        self.above(FieldExpr { kind, range }, &heights)
    }

    fn field_prefix(&mut self) -> Parsed<Tall<FieldExpr>> {
        let start = self.range();
        if let Some(literal) = self.literal()? {
            let range = start.to(self.last_range());
            return Ok(Tall::leaf(FieldExpr { kind: FieldExprKind::Literal(literal), range }));
        }
        match self.kind() {
            TokenKind::Field(field) => {
                let kind = FieldExprKind::Field(field.clone());
                self.advance();
                Ok(Tall::leaf(FieldExpr { kind, range: start }))
            }
            TokenKind::Word => match self.intrinsic() {
                Some(intrinsic) => {
                    self.advance();
                    Ok(Tall::leaf(FieldExpr { kind: FieldExprKind::Field(Field::Intrinsic(intrinsic)), range: start }))
                }
                None => Err(self.unknown_name(&[])),
            },
            TokenKind::Symbol(Symbol::OpenParen) => {
                self.advance();
                let mut inner = self.field_expr()?;
                self.expect_symbol(Symbol::CloseParen)?;
                inner.node.range = start.to(self.last_range());
                Ok(inner)
            }
            TokenKind::Symbol(Symbol::Not) => {
                self.advance();
                let of = self.field_expr_at(MUL)?;
                let range = start.to(of.node.range);
                self.above(FieldExpr { kind: FieldExprKind::Not(Box::new(of.node)), range }, &[of.height])
            }
            TokenKind::Symbol(Symbol::Minus) => {
                self.advance();
                let of = self.field_expr_at(UNARY)?;
                let range = start.to(of.node.range);
                self.above(FieldExpr { kind: FieldExprKind::Negate(Box::new(of.node)), range }, &[of.height])
            }
            TokenKind::Symbol(Symbol::OpenBrace) => {
                Err(TraceqlError::at(start, "a spanset cannot stand inside a condition")
                    .expecting("a field, a value or `(`"))
            }
            _ => Err(self.unexpected("a field such as `span.x` or `duration`, a value, `!` or `(`")),
        }
    }
}
