//! What a half-typed query already says, to narrow the values offered for completion.
//!
//! Comparisons of a field with a constant are taken where they are whole; everything unfinished is left out, and what
//! cannot be understood at all means no filter. The result lets through at least what the finished query could match.

use crate::ast::{CompareOp, Field, FieldExpr, FieldExprKind, Intrinsic, Literal, intrinsic_by_name};
use crate::error::{SourceRange, TraceqlError};
use crate::eval::Lowering;
use crate::plan::{FieldTable, SpanCondition, condition_of};
use crate::syntax::{MAX_QUERY_BYTES, Symbol, Token, TokenKind, tokenize};

/// Most alternatives (`||`) a filter for completion may have, as in Tempo.
pub const MAX_GROUPS: usize = 100;

/// The condition on spans that the finished matchers of a query make, with the fields they test.
///
/// `None` means that nothing usable was found: no filter. More than [`MAX_GROUPS`] alternatives are an error.
pub fn lenient_condition(query: &str) -> Result<Option<(FieldTable, SpanCondition)>, TraceqlError> {
    if query.len() > MAX_QUERY_BYTES {
        return Ok(None);
    }
    let mut lowering = Lowering::default();
    let mut alternatives = Vec::new();
    for filter in filters_of(&tokenize(query)) {
        let groups = groups_of(query, filter);
        if alternatives.len() + groups.len() > MAX_GROUPS {
            let range = filter.first().map_or_else(SourceRange::default, |token| token.range);
            let message = format!("the filter has more than {MAX_GROUPS} alternatives (`||`)");
            return Err(TraceqlError::at(range, message).locate(query));
        }
        for group in groups {
            let parts: Vec<SpanCondition> =
                group.iter().map(|matcher| condition_of(&mut lowering, matcher).0).collect();
            alternatives.push(SpanCondition::all(parts));
        }
    }
    Ok(match SpanCondition::any(alternatives) {
        SpanCondition::True | SpanCondition::False => None,
        condition => Some((lowering.fields, condition)),
    })
}

/// The tokens inside each `{ }`; the last may still be open.
fn filters_of(tokens: &[Token]) -> Vec<&[Token]> {
    let mut filters = Vec::new();
    let mut open = None;
    for (at, token) in tokens.iter().enumerate() {
        match (&token.kind, open) {
            (TokenKind::Symbol(Symbol::OpenBrace), None) => open = Some(at + 1),
            (TokenKind::Symbol(Symbol::CloseBrace) | TokenKind::End, Some(from)) => {
                filters.push(&tokens[from..at]);
                open = None;
            }
            _ => {}
        }
    }
    filters
}

/// The finished matchers of each alternative of a filter. Parentheses and `!` are beyond what is understood: such a
/// filter has one group without matchers, which matches everything.
fn groups_of(query: &str, tokens: &[Token]) -> Vec<Vec<FieldExpr>> {
    let is_beyond = tokens
        .iter()
        .any(|token| matches!(token.kind, TokenKind::Symbol(Symbol::Not | Symbol::OpenParen | Symbol::CloseParen)));
    let mixes = tokens.iter().any(|token| matches!(token.kind, TokenKind::Symbol(Symbol::Or)))
        && tokens.iter().any(|token| matches!(token.kind, TokenKind::Symbol(Symbol::And)));
    // `a || b && c` is `(a || b) && c`; read as alternatives it would let too little through.
    if is_beyond || mixes {
        return vec![Vec::new()];
    }
    tokens
        .split(|token| matches!(token.kind, TokenKind::Symbol(Symbol::Or)))
        .map(|group| {
            group
                .split(|token| matches!(token.kind, TokenKind::Symbol(Symbol::And)))
                .filter_map(|part| matcher_of(query, part))
                .collect()
        })
        .collect()
}

fn matcher_of(query: &str, tokens: &[Token]) -> Option<FieldExpr> {
    let [field, op, rest @ ..] = tokens else { return None };
    let name = match &field.kind {
        TokenKind::Field(name) => name.clone(),
        TokenKind::Word => Field::Intrinsic(intrinsic_of(&query[field.range.start..field.range.end])?),
        _ => return None,
    };
    let TokenKind::Symbol(symbol) = op.kind else { return None };
    let compare_op = match symbol {
        Symbol::Eq => CompareOp::Eq,
        Symbol::NotEq => CompareOp::NotEq,
        Symbol::Less => CompareOp::Less,
        Symbol::LessEq => CompareOp::LessEq,
        Symbol::Greater => CompareOp::Greater,
        Symbol::GreaterEq => CompareOp::GreaterEq,
        Symbol::Match => CompareOp::Match,
        Symbol::NotMatch => CompareOp::NotMatch,
        _ => return None,
    };
    let from = rest.first()?.range.start;
    let to = rest.last()?.range.end;
    let literal = literal_of(&query[from..to])?;
    let range = SourceRange::new(field.range.start, to);
    let leaf = |kind| Box::new(FieldExpr { kind, range });
    let kind = FieldExprKind::Compare {
        op: compare_op,
        op_range: op.range,
        lhs: leaf(FieldExprKind::Field(name)),
        rhs: leaf(FieldExprKind::Literal(literal)),
    };
    let matcher = FieldExpr { kind, range };
    // The checker knows which comparisons make no sense; those say nothing yet.
    crate::parse(&format!("{{ {matcher} }}")).is_ok().then_some(matcher)
}

fn intrinsic_of(word: &str) -> Option<Intrinsic> {
    intrinsic_by_name(word)
}

/// A single constant.
fn literal_of(text: &str) -> Option<Literal> {
    let query = crate::parse_syntax(&format!("{{ .x = {text} }}")).ok()?;
    let crate::ast::QueryBody::Search { pipeline, .. } = query.body else { return None };
    let [crate::ast::Stage::Spanset(crate::ast::SpansetExpr::Filter { condition: Some(condition), .. })] =
        pipeline.stages.as_slice()
    else {
        return None;
    };
    match &condition.kind {
        FieldExprKind::Compare { rhs, .. } => rhs.as_literal().cloned(),
        _ => None,
    }
}
