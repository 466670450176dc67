//! Colours.

use crate::ast::{Field, Keyword, Kind, Status, intrinsic_by_name};
use crate::error::SourceRange;
use crate::syntax::{AGGREGATES, METRICS_FUNCTIONS, SECOND_STAGES, SINKS, SPANSET_STAGES, Symbol, TokenKind, tokenize};

/// What a word of a query is, for colouring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenClass {
    /// `by`, `with`, `true`, `error`, `server` …
    Keyword,
    /// `rate`, `count`, `flame` …
    Function,
    /// `duration`, `span:id` …
    Intrinsic,
    /// `.x`, `span.x` …
    Attribute,
    /// A string.
    String,
    /// A number or a duration.
    Number,
    /// `=`, `&&`, `>>` …
    Operator,
    /// Braces, parentheses, commas.
    Punctuation,
    /// A bare word that is none of these: a hint, a profile type, or a name still being typed.
    Word,
    /// Something that cannot be read.
    Error,
}

/// A coloured word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Highlight {
    /// Its bytes.
    pub range: SourceRange,
    /// Its class.
    pub class: TokenClass,
}

/// The class of every word; works on any text, finished or not. Spaces and comments have no class.
pub fn highlight(query: &str) -> Vec<Highlight> {
    tokenize(query)
        .into_iter()
        .filter_map(|token| {
            let class = match &token.kind {
                TokenKind::End => return None,
                TokenKind::Bad(_) => TokenClass::Error,
                TokenKind::Text(_) => TokenClass::String,
                TokenKind::Number(_) => TokenClass::Number,
                TokenKind::Field(Field::Intrinsic(_)) => TokenClass::Intrinsic,
                TokenKind::Field(Field::Attribute { .. }) => TokenClass::Attribute,
                TokenKind::Symbol(
                    Symbol::OpenBrace | Symbol::CloseBrace | Symbol::OpenParen | Symbol::CloseParen | Symbol::Comma,
                ) => TokenClass::Punctuation,
                TokenKind::Symbol(_) => TokenClass::Operator,
                TokenKind::Word => class_of_word(&query[token.range.start..token.range.end]),
            };
            Some(Highlight { range: token.range, class })
        })
        .collect()
}

fn class_of_word(word: &str) -> TokenClass {
    let is_function = AGGREGATES.contains(&word)
        || METRICS_FUNCTIONS.contains(&word)
        || SECOND_STAGES.contains(&word)
        || SINKS.contains(&word);
    let is_keyword = SPANSET_STAGES.contains(&word)
        || ["with", "true", "false", "nil", "minInt", "maxInt"].contains(&word)
        || Status::ALL.iter().any(|status| status.name() == Some(word))
        || Kind::ALL.iter().any(|kind| kind.name() == Some(word));
    if is_function {
        TokenClass::Function
    } else if is_keyword {
        TokenClass::Keyword
    } else if intrinsic_by_name(word).is_some() {
        TokenClass::Intrinsic
    } else {
        TokenClass::Word
    }
}
