//! Words of the language.

use crate::ast::{Field, Literal};
use crate::error::{SourceRange, TraceqlError};

/// A word with its place.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) range: SourceRange,
}

/// What a word is.
#[derive(Debug, Clone)]
pub(crate) enum TokenKind {
    /// A bare word: keyword, function, intrinsic, profile type.
    Word,
    /// `.x`, `span.x`, `parent.resource.x`, `profile.cpu`.
    Field(Field),
    /// A string, number or duration. Integers and durations hold their magnitude: the sign is another token.
    Number(Magnitude),
    /// A string.
    Text(String),
    /// Punctuation.
    Symbol(Symbol),
    /// Something that is no word, with the reason.
    Bad(Box<TraceqlError>),
    /// The end of the text.
    End,
}

/// A number before its sign is known: `-9223372036854775808` is a number although its magnitude alone is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Magnitude {
    Int(u64),
    Float(f64),
    Duration(u64),
}

impl Magnitude {
    /// The literal with this sign, unless it is out of range.
    pub(crate) fn signed(self, negative: bool) -> Option<Literal> {
        let sign = |magnitude: u64| {
            if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
        };
        match self {
            Self::Int(magnitude) => sign(magnitude).map(Literal::Int),
            Self::Duration(magnitude) => sign(magnitude).map(Literal::Duration),
            Self::Float(value) => Some(Literal::Float(if negative { -value } else { value })),
        }
    }
}

macro_rules! symbols {
    ($($name:ident $text:literal),* $(,)?) => {
        /// Punctuation and operators.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Symbol { $($name),* }

        impl Symbol {
            /// Longest first, so that the first match in this order is the longest.
            pub(crate) const ALL: &'static [(Symbol, &'static str)] = &[$((Symbol::$name, $text)),*];

            /// As written.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Symbol::$name => $text),* }
            }
        }
    };
}

symbols! {
    NotDescendant "!>>", NotAncestor "!<<", UnionDescendant "&>>", UnionAncestor "&<<",
    And "&&", Or "||", Descendant ">>", Ancestor "<<",
    NotEq "!=", NotMatch "!~", NotChild "!>", NotParent "!<",
    UnionChild "&>", UnionParent "&<", UnionSibling "&~",
    GreaterEq ">=", LessEq "<=", Match "=~",
    OpenBrace "{", CloseBrace "}", OpenParen "(", CloseParen ")", Comma ",", Pipe "|",
    Eq "=", Greater ">", Less "<", Sibling "~", Not "!",
    Plus "+", Minus "-", Star "*", Slash "/", Percent "%", Caret "^",
}
