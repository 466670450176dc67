//! Why a request can't be read. Each error names the field, and the byte where that helps (R7).

/// A request or file that is refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// More bytes than the limit allows.
    #[error("the request has {found} bytes, at most {limit} are allowed")]
    TooLarge {
        /// How many there are.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The bytes are not what the format demands.
    #[error("{path} {problem} (byte {offset})")]
    Malformed {
        /// The field, such as `resource_spans[0].scope_spans[1].spans[3].name`.
        path: String,
        /// What is wrong with it, as the rest of a sentence that starts with the path.
        problem: String,
        /// Where in the decompressed request, counted from 0.
        offset: usize,
    },
    /// The text is not what the format demands.
    #[error("{path} {problem} (line {line}, column {column})")]
    MalformedText {
        /// The field, as above.
        path: String,
        /// What is wrong with it.
        problem: String,
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
    },
    /// Small on the wire, but more than the limit allows once decoded.
    #[error("the request would take more than {limit} bytes of memory once decoded; send smaller batches")]
    Expands {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// A version of the format that is not read.
    #[error("{version} is not supported; {advice}")]
    UnsupportedVersion {
        /// What the request appears to be.
        version: &'static str,
        /// What the sender can do.
        advice: &'static str,
    },
}

impl DecodeError {
    /// Whether the request is refused for its size alone: 413 or RESOURCE_EXHAUSTED rather than 400.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::Expands { .. })
    }
}
