//! What may come next at the cursor.

use crate::ast::{Field, Intrinsic, Keyword, Kind, Scope, Status, all_intrinsic_names, intrinsic_by_name};
use crate::error::{SourceRange, floor_char_boundary};
use crate::syntax::{
    AGGREGATES, METRICS_FUNCTIONS, SECOND_STAGES, SINKS, SPANSET_STAGES, Symbol, Token, TokenKind, tokenize,
};

/// Something that may stand at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// Exactly this text: a keyword, a function with its parenthesis, an intrinsic, a scope with its dot.
    Text(String),
    /// An operator.
    Operator(&'static str),
    /// An attribute of this scope: ask the store for names.
    Attribute {
        /// Which scope.
        scope: Scope,
        /// Whether the parent's attributes are meant.
        of_parent: bool,
    },
    /// A value of this field: ask the store for values.
    Value {
        /// Which field.
        field: Field,
    },
}

/// The answer of [`complete`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completions {
    /// The bytes that a chosen completion replaces; empty if it is inserted.
    pub replace: SourceRange,
    /// What was typed of the completion so far, for filtering.
    pub prefix: String,
    /// What may stand there.
    pub items: Vec<Completion>,
}

const COMPARISONS: [&str; 8] = ["=", "!=", "=~", "!~", ">", ">=", "<", "<="];
const STRUCTURAL: [&str; 15] =
    [">", ">>", "<", "<<", "~", "!>", "!>>", "!<", "!<<", "!~", "&>", "&>>", "&<", "&<<", "&~"];

/// Where the cursor is.
enum Place<'a> {
    /// Where a field or the start of a condition belongs.
    Field,
    /// Behind a field.
    Comparison,
    /// Behind a comparison operator of this field.
    Value(Option<&'a Token>),
    /// Behind a finished condition.
    Connective,
    /// Where a spanset belongs.
    Spanset,
    /// Behind a spanset.
    AfterSpanset,
    /// Behind `|`.
    Stage { after_metrics: bool, is_first: bool },
    /// Behind a metrics function.
    AfterMetrics,
    /// Inside the parentheses of a profile sink.
    ProfileType,
    /// Inside `with(`.
    Hint,
    /// Nothing is known to fit.
    Nothing,
}

/// What may come next at the cursor (a byte position) of a query in any state.
pub fn complete(query: &str, cursor: usize) -> Completions {
    let cursor = floor_char_boundary(query, cursor);
    let before = &query[..cursor];
    let mut tokens = tokenize(before);
    tokens.pop();
    // The word that touches the cursor is still being typed.
    let typed = tokens.last().filter(|token| token.range.end == cursor && is_unfinished(&token.kind)).cloned();
    if typed.is_some() {
        tokens.pop();
    }
    let replace = typed.as_ref().map_or(SourceRange::new(cursor, cursor), |token| token.range);
    let written = &query[replace.start..replace.end];
    let place = place_of(before, &tokens);
    if let Place::Field = place
        && let Some(scoped) = scope_of(written)
    {
        let (of_parent, scope, prefix_len) = scoped;
        let range = SourceRange::new(replace.start + prefix_len, cursor);
        let prefix = written[prefix_len..].trim_start_matches('"').to_owned();
        return Completions { replace: range, prefix, items: vec![Completion::Attribute { scope, of_parent }] };
    }
    let prefix = written.trim_start_matches(['"', '`']).to_owned();
    let mut items = items_at(before, &place);
    items.retain(|item| match item {
        Completion::Text(text) => text.to_lowercase().starts_with(&prefix.to_lowercase()),
        _ => true,
    });
    Completions { replace, prefix, items }
}

fn is_unfinished(kind: &TokenKind) -> bool {
    matches!(kind, TokenKind::Word | TokenKind::Field(_) | TokenKind::Bad(_) | TokenKind::Number(_))
}

/// The scope a half-typed attribute already has, and the length of its prefix.
fn scope_of(written: &str) -> Option<(bool, Scope, usize)> {
    let prefixes = [
        ("parent.span.", true, Scope::Span),
        ("parent.resource.", true, Scope::Resource),
        ("parent.", true, Scope::Unscoped),
        ("span.", false, Scope::Span),
        ("resource.", false, Scope::Resource),
        ("event.", false, Scope::Event),
        ("link.", false, Scope::Link),
        ("instrumentation.", false, Scope::Instrumentation),
        (".", false, Scope::Unscoped),
    ];
    prefixes
        .into_iter()
        .find(|(prefix, ..)| written.starts_with(prefix))
        .map(|(prefix, of_parent, scope)| (of_parent, scope, prefix.len()))
}

fn place_of<'a>(text: &str, tokens: &'a [Token]) -> Place<'a> {
    let word = |token: &Token| text[token.range.start..token.range.end].to_owned();
    // Which bracket the cursor is in, and the function in front of it.
    let mut brackets: Vec<(Symbol, Option<String>)> = Vec::new();
    let mut has_metrics = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Symbol(open @ (Symbol::OpenBrace | Symbol::OpenParen)) => {
                let function = at.checked_sub(1).map(|at| &tokens[at]);
                let function = function.filter(|token| matches!(token.kind, TokenKind::Word)).map(word);
                has_metrics |= function.as_ref().is_some_and(|name| METRICS_FUNCTIONS.contains(&name.as_str()));
                brackets.push((open, function));
            }
            TokenKind::Symbol(Symbol::CloseBrace | Symbol::CloseParen) => {
                brackets.pop();
            }
            _ => {}
        }
    }
    let last = tokens.last();
    let in_braces = brackets.iter().any(|(open, _)| *open == Symbol::OpenBrace);
    let function = brackets.last().and_then(|(_, function)| function.clone()).unwrap_or_default();
    if !in_braces && SINKS.contains(&function.as_str()) {
        return match last.map(|token| &token.kind) {
            Some(TokenKind::Symbol(Symbol::OpenParen)) if function == "diff" => Place::Spanset,
            Some(TokenKind::Symbol(Symbol::OpenParen)) if function == "top" => Place::Nothing,
            Some(TokenKind::Symbol(Symbol::CloseBrace)) => Place::AfterSpanset,
            _ => Place::ProfileType,
        };
    }
    if !in_braces && function == "with" {
        return Place::Hint;
    }
    let takes_fields = !function.is_empty() && function != "compare" && !SECOND_STAGES.contains(&function.as_str());
    if in_braces || takes_fields {
        return place_in_condition(text, tokens);
    }
    match last.map(|token| &token.kind) {
        None => Place::Stage { after_metrics: false, is_first: true },
        Some(TokenKind::Symbol(Symbol::Pipe)) => Place::Stage { after_metrics: has_metrics, is_first: false },
        Some(TokenKind::Symbol(Symbol::CloseBrace)) => Place::AfterSpanset,
        Some(TokenKind::Symbol(Symbol::CloseParen)) if has_metrics => Place::AfterMetrics,
        Some(TokenKind::Symbol(Symbol::CloseParen)) => Place::AfterSpanset,
        Some(TokenKind::Symbol(_)) => Place::Spanset,
        _ => Place::Nothing,
    }
}

fn place_in_condition<'a>(text: &str, tokens: &'a [Token]) -> Place<'a> {
    let Some(last) = tokens.last() else { return Place::Field };
    match &last.kind {
        TokenKind::Field(_) => Place::Comparison,
        TokenKind::Word => {
            let is_field = intrinsic_by_name(&text[last.range.start..last.range.end]).is_some();
            if is_field { Place::Comparison } else { Place::Connective }
        }
        TokenKind::Text(_) | TokenKind::Number(_) => Place::Connective,
        TokenKind::Symbol(Symbol::CloseParen) => Place::Connective,
        TokenKind::Symbol(
            Symbol::Eq
            | Symbol::NotEq
            | Symbol::Match
            | Symbol::NotMatch
            | Symbol::Less
            | Symbol::LessEq
            | Symbol::Greater
            | Symbol::GreaterEq,
        ) => Place::Value(tokens.len().checked_sub(2).map(|at| &tokens[at])),
        TokenKind::Symbol(_) => Place::Field,
        TokenKind::Bad(_) | TokenKind::End => Place::Nothing,
    }
}

fn items_at(text: &str, place: &Place<'_>) -> Vec<Completion> {
    let texts = |words: &[&str]| words.iter().map(|word| Completion::Text((*word).to_owned())).collect::<Vec<_>>();
    let calls = |names: &[&str]| names.iter().map(|name| Completion::Text(format!("{name}("))).collect::<Vec<_>>();
    let operators = |list: &[&'static str]| list.iter().map(|op| Completion::Operator(op)).collect::<Vec<_>>();
    match place {
        Place::Nothing => Vec::new(),
        Place::Field => {
            let mut items = texts(&["span.", "resource.", "event.", "link.", "instrumentation.", "parent."]);
            items.extend(all_intrinsic_names().map(|name| Completion::Text(name.to_owned())));
            items.push(Completion::Attribute { scope: Scope::Unscoped, of_parent: false });
            items
        }
        Place::Comparison => [operators(&COMPARISONS), operators(&["&&", "||", "+", "-", "*", "/", "%", "^"])].concat(),
        Place::Value(field) => values_for(text, *field),
        Place::Connective => operators(&["&&", "||", "}", ")"]),
        Place::Spanset => texts(&["{"]),
        Place::AfterSpanset => [operators(&["|", "&&", "||"]), operators(&STRUCTURAL), texts(&["with("])].concat(),
        Place::AfterMetrics => {
            [texts(&["by("]), operators(&["|"]), operators(&COMPARISONS[..2]), texts(&["with("])].concat()
        }
        Place::Stage { after_metrics: true, .. } => calls(&SECOND_STAGES),
        Place::Stage { is_first: true, .. } => texts(&["{", "("]),
        Place::Stage { .. } => {
            [calls(&AGGREGATES), calls(&SPANSET_STAGES), calls(&METRICS_FUNCTIONS), calls(&SINKS), texts(&["{"])]
                .concat()
        }
        Place::ProfileType => texts(&[
            "cpu",
            "wall",
            "off_cpu",
            "alloc_space",
            "alloc_objects",
            "inuse_space",
            "mutex",
            "block",
            "goroutine",
        ]),
        Place::Hint => texts(&[
            "most_recent=true",
            "exemplars=true",
            "sample=true",
            "span_sample=0.1",
            "trace_sample=0.1",
            "extrapolate=true",
            "precise_quantiles=true",
        ]),
    }
}

fn values_for(text: &str, field: Option<&Token>) -> Vec<Completion> {
    let field = match field {
        Some(Token { kind: TokenKind::Field(field), .. }) => field.clone(),
        Some(token) => match intrinsic_by_name(&text[token.range.start..token.range.end]) {
            Some(intrinsic) => Field::Intrinsic(intrinsic),
            None => return Vec::new(),
        },
        None => return Vec::new(),
    };
    match field {
        Field::Intrinsic(Intrinsic::Status) => keywords(Status::ALL),
        Field::Intrinsic(Intrinsic::Kind) => keywords(Kind::ALL),
        Field::Intrinsic(Intrinsic::Parent) => vec![Completion::Text("nil".to_owned())],
        field => vec![Completion::Value { field }, Completion::Text("nil".to_owned())],
    }
}

fn keywords<K: Keyword>(all: &[K]) -> Vec<Completion> {
    all.iter().filter_map(|keyword| Some(Completion::Text(keyword.name()?.to_owned()))).collect()
}
