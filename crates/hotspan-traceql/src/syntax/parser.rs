//! The parser's state, and the outermost rule: a whole query.

use super::token::{Symbol, Token, TokenKind};
use super::{MAX_DEPTH, MAX_HEIGHT, MAX_QUERY_BYTES, tokenize};
use crate::ast::{
    CompareOp, Hint, Intrinsic, Keyword, Kind, Literal, Query, QueryBody, Sink, Status, all_intrinsic_names,
    intrinsic_by_name,
};
use crate::error::{SourceRange, TraceqlError};
use crate::suggest::nearest;

/// Stages that work on spansets.
pub(crate) const SPANSET_STAGES: [&str; 3] = ["by", "coalesce", "select"];
/// Functions that turn a spanset into one value.
pub(crate) const AGGREGATES: [&str; 5] = ["count", "avg", "min", "max", "sum"];
/// Functions that turn spans into series.
pub(crate) const METRICS_FUNCTIONS: [&str; 9] = [
    "rate",
    "count_over_time",
    "min_over_time",
    "max_over_time",
    "sum_over_time",
    "avg_over_time",
    "quantile_over_time",
    "histogram_over_time",
    "compare",
];
/// Functions on series.
pub(crate) const SECOND_STAGES: [&str; 2] = ["topk", "bottomk"];
/// Hotspan's last stages.
pub(crate) const SINKS: [&str; 4] = ["flame", "top", "diff", "ledger"];

/// Parses a query without checking types.
pub fn parse_syntax(text: &str) -> Result<Query, TraceqlError> {
    if text.len() > MAX_QUERY_BYTES {
        let message = format!("query is {} bytes long; at most {MAX_QUERY_BYTES} are allowed", text.len());
        return Err(TraceqlError::at(SourceRange::new(0, 0), message).locate(text));
    }
    let mut parser = Parser { text, tokens: tokenize(text), at: 0, depth: 0 };
    parser.query().map_err(|error| error.locate(text))
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

pub(super) type Parsed<T> = Result<T, TraceqlError>;

/// A node with the height of the tree below it, which bounds the recursion of every later pass.
pub(super) struct Tall<T> {
    pub(super) node: T,
    pub(super) height: usize,
}

impl<T> Tall<T> {
    pub(super) fn leaf(node: T) -> Self {
        Self { node, height: 1 }
    }
}

impl<'a> Parser<'a> {
    pub(super) fn kind(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    pub(super) fn next_kind(&self) -> &TokenKind {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn range(&self) -> SourceRange {
        self.tokens[self.at].range
    }

    /// The token just consumed.
    pub(super) fn last_range(&self) -> SourceRange {
        self.tokens[self.at.saturating_sub(1)].range
    }

    pub(super) fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    /// The text of the current token.
    pub(super) fn written(&self) -> &'a str {
        &self.text[self.range().start..self.range().end]
    }

    /// The current token, if it is a bare word.
    pub(super) fn word(&self) -> Option<&'a str> {
        matches!(self.kind(), TokenKind::Word).then(|| self.written())
    }

    pub(super) fn is_symbol(&self, symbol: Symbol) -> bool {
        matches!(self.kind(), TokenKind::Symbol(found) if *found == symbol)
    }

    pub(super) fn take_symbol(&mut self, symbol: Symbol) -> bool {
        let taken = self.is_symbol(symbol);
        if taken {
            self.advance();
        }
        taken
    }

    pub(super) fn expect_symbol(&mut self, symbol: Symbol) -> Parsed<SourceRange> {
        let range = self.range();
        if self.take_symbol(symbol) { Ok(range) } else { Err(self.unexpected(&format!("`{}`", symbol.text()))) }
    }

    /// An error at the current token, which is not what was expected.
    pub(super) fn unexpected(&self, expected: &str) -> TraceqlError {
        let message = match self.kind() {
            TokenKind::Bad(error) => return (**error).clone(),
            TokenKind::End => "query ends too early".to_owned(),
            _ => format!("unexpected `{}`", self.written()),
        };
        TraceqlError::at(self.range(), message).expecting(expected)
    }

    /// Runs a rule one level deeper.
    pub(super) fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("expression is nested deeper than {MAX_DEPTH} levels");
            return Err(TraceqlError::at(self.range(), message));
        }
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// The node on top of trees of these heights.
    pub(super) fn above<T>(&self, node: T, heights: &[usize]) -> Parsed<Tall<T>> {
        let height = heights.iter().max().copied().unwrap_or(0) + 1;
        if height > MAX_HEIGHT {
            let message = format!("expression has more than {MAX_HEIGHT} operators on top of each other");
            return Err(TraceqlError::at(self.range(), message));
        }
        Ok(Tall { node, height })
    }

    fn query(&mut self) -> Parsed<Query> {
        let mut sink = None;
        let operand = self.pipeline(Some(&mut sink))?;
        let body = self.finish(operand, sink)?;
        let hints = if self.word() == Some("with") { self.hints()? } else { Vec::new() };
        if !matches!(self.kind(), TokenKind::End) {
            let error = self.unexpected("`|`, an operator, `with(…)` or the end of the query");
            return Err(error);
        }
        Ok(Query { body, hints })
    }

    fn finish(&self, operand: super::pipeline::Operand, sink: Option<Sink>) -> Parsed<QueryBody> {
        use super::pipeline::Operand;
        match operand {
            Operand::Spans(spans) => {
                Ok(QueryBody::Search { pipeline: super::pipeline::into_pipeline(spans.node), sink })
            }
            Operand::Metrics(metrics) => Ok(QueryBody::Metrics(metrics.node)),
            Operand::Scalar(scalar) => {
                let error = TraceqlError::at(scalar.node.range(), "a value alone selects no spans");
                Err(error.expecting("a comparison, such as `count() > 2`"))
            }
        }
    }

    fn hints(&mut self) -> Parsed<Vec<Hint>> {
        self.advance();
        self.expect_symbol(Symbol::OpenParen)?;
        let mut hints = Vec::new();
        loop {
            let start = self.range();
            let Some(name) = self.word().map(str::to_owned) else {
                return Err(self.unexpected("the name of a hint"));
            };
            self.advance();
            self.expect_symbol(Symbol::Eq)?;
            let Some(value) = self.literal()? else {
                return Err(self.unexpected("true, false, a number, a duration or a string"));
            };
            hints.push(Hint { name, value, range: start.to(self.last_range()) });
            if !self.take_symbol(Symbol::Comma) {
                break;
            }
        }
        self.expect_symbol(Symbol::CloseParen)?;
        Ok(hints)
    }

    /// A constant with its sign, if one stands here.
    pub(super) fn literal(&mut self) -> Parsed<Option<Literal>> {
        let negative = self.is_symbol(Symbol::Minus) && matches!(self.next_kind(), TokenKind::Number(_));
        let start = self.range();
        if negative {
            self.advance();
        }
        let literal = match self.kind() {
            TokenKind::Number(magnitude) => match magnitude.signed(negative) {
                Some(literal) => literal,
                None => {
                    let range = start.to(self.range());
                    let message = format!("number `{}` is out of range", &self.text[range.start..range.end]);
                    return Err(TraceqlError::at(range, message));
                }
            },
            TokenKind::Text(text) => Literal::Str(text.clone()),
            TokenKind::Word => match keyword_literal(self.written()) {
                Some(literal) => literal,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(literal))
    }

    /// The intrinsic named by the current word.
    pub(super) fn intrinsic(&self) -> Option<Intrinsic> {
        self.word().and_then(intrinsic_by_name)
    }

    /// The error for a word that is no name of anything.
    pub(super) fn unknown_name(&self, also: &[&'static str]) -> TraceqlError {
        let word = self.written();
        let keywords = ["true", "false", "nil", "minInt", "maxInt"];
        let enums = Status::ALL.iter().filter_map(|s| s.name()).chain(Kind::ALL.iter().filter_map(|k| k.name()));
        let known = all_intrinsic_names().chain(also.iter().copied()).chain(keywords).chain(enums);
        let error = TraceqlError::at(self.range(), format!("unknown name `{word}`"));
        match nearest(word, known) {
            Some(meant) => error.suggesting(Some(meant.to_owned())),
            None if word.contains(':') => {
                let scope = &word[..=word.find(':').unwrap_or(0)];
                let known: Vec<&str> = all_intrinsic_names().filter(|name| name.starts_with(scope)).collect();
                let known = if known.is_empty() {
                    "span:, trace:, event:, link: or instrumentation:".to_owned()
                } else {
                    known.join(", ")
                };
                error.expecting(known)
            }
            None => error.expecting(format!("an attribute such as `.{word}` or `span.{word}`, or a string in quotes")),
        }
    }

    /// The comparison operator that stands here.
    pub(super) fn compare_op(&self) -> Option<CompareOp> {
        let TokenKind::Symbol(symbol) = self.kind() else { return None };
        Some(match symbol {
            Symbol::Eq => CompareOp::Eq,
            Symbol::NotEq => CompareOp::NotEq,
            Symbol::Less => CompareOp::Less,
            Symbol::LessEq => CompareOp::LessEq,
            Symbol::Greater => CompareOp::Greater,
            Symbol::GreaterEq => CompareOp::GreaterEq,
            Symbol::Match => CompareOp::Match,
            Symbol::NotMatch => CompareOp::NotMatch,
            _ => return None,
        })
    }
}

/// A word that stands for a constant.
fn keyword_literal(word: &str) -> Option<Literal> {
    Some(match word {
        "nil" => Literal::Nil,
        "true" => Literal::Bool(true),
        "false" => Literal::Bool(false),
        "minInt" => Literal::Int(i64::MIN),
        "maxInt" => Literal::Int(i64::MAX),
        _ => {
            if let Some(status) = Status::ALL.iter().find(|status| status.name() == Some(word)) {
                Literal::Status(*status)
            } else {
                Literal::Kind(*Kind::ALL.iter().find(|kind| kind.name() == Some(word))?)
            }
        }
    })
}
