//! Constants.

/// A constant as written in a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `nil`: the absence of a value.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// `42`, `minInt`, `maxInt`.
    Int(i64),
    /// `0.5`.
    Float(f64),
    /// `1h30m`, in nanoseconds.
    Duration(i64),
    /// `"text"` or a raw string in backquotes.
    Str(String),
    /// `ok`, `error`, `unset`.
    Status(Status),
    /// `server`, `client`, …
    Kind(Kind),
}

/// Outcome of a span.
pub use hotspan_model::StatusCode as Status;

/// Role of a span.
pub use hotspan_model::SpanKind as Kind;

/// A constant that is written as a word.
pub trait Keyword: Copy + 'static {
    /// Every constant of this type that is written so.
    const ALL: &'static [Self];

    /// The word; none for numbers that OTLP's list does not have, which values may be and constants never are.
    fn name(self) -> Option<&'static str>;

    /// The number that it has in OTLP.
    fn number(self) -> i8;
}

impl Keyword for Status {
    const ALL: &'static [Self] = &[Self::Unset, Self::Ok, Self::Error];

    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Unset => "unset",
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Other(_) => return None,
        })
    }

    fn number(self) -> i8 {
        Self::number(self)
    }
}

impl Keyword for Kind {
    const ALL: &'static [Self] =
        &[Self::Unspecified, Self::Internal, Self::Server, Self::Client, Self::Producer, Self::Consumer];

    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Unspecified => "unspecified",
            Self::Internal => "internal",
            Self::Server => "server",
            Self::Client => "client",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Other(_) => return None,
        })
    }

    fn number(self) -> i8 {
        Self::number(self)
    }
}
