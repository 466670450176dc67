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

/// Outcome of a span; the numbers are OTLP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// Not said.
    Unset = 0,
    /// Said to have gone well.
    Ok = 1,
    /// Failed.
    Error = 2,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Unset, Self::Ok, Self::Error];

    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }

    /// The status of an OTLP code; codes of the future count as not said.
    pub fn from_otlp(code: i32) -> Self {
        match code {
            1 => Self::Ok,
            2 => Self::Error,
            _ => Self::Unset,
        }
    }
}

/// Role of a span; the numbers are OTLP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Not said.
    Unspecified = 0,
    /// Inside a service.
    Internal = 1,
    /// Answers a request.
    Server = 2,
    /// Makes a request.
    Client = 3,
    /// Sends a message.
    Producer = 4,
    /// Receives a message.
    Consumer = 5,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Unspecified, Self::Internal, Self::Server, Self::Client, Self::Producer, Self::Consumer];

    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Internal => "internal",
            Self::Server => "server",
            Self::Client => "client",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
        }
    }

    /// The kind of an OTLP code; codes of the future count as not said.
    pub fn from_otlp(code: i32) -> Self {
        match code {
            1 => Self::Internal,
            2 => Self::Server,
            3 => Self::Client,
            4 => Self::Producer,
            5 => Self::Consumer,
            _ => Self::Unspecified,
        }
    }
}
