//! Fixed-size identities. They are parsed once at the edge and never travel as strings inside.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text holds something that is not a hexadecimal digit.
    #[error("{kind} {text:?} has {found:?} at character {at}; only 0-9 and a-f are allowed")]
    NotHex {
        /// What was being read, for the message.
        kind: &'static str,
        /// The text as given.
        text: String,
        /// The first character that does not fit.
        found: char,
        /// Its position, counted from 1.
        at: usize,
    },
    /// The text is empty or longer than the id.
    #[error("{kind} {text:?} has {found} hexadecimal digits; 1 to {most} are allowed")]
    Length {
        /// What was being read, for the message.
        kind: &'static str,
        /// The text as given.
        text: String,
        /// How many digits it has.
        found: usize,
        /// How many an id of this kind has at most.
        most: usize,
    },
    /// The id consists of zeros only, which every protocol reserves for "none".
    #[error("{kind} is all zeros, which means no id")]
    Zero {
        /// What was being read, for the message.
        kind: &'static str,
    },
}

/// Reads up to `2 * N` hexadecimal digits of either case; a shorter text is padded on the left, as Tempo does.
fn parse_hex<const N: usize>(kind: &'static str, text: &str) -> Result<[u8; N], IdError> {
    if text.is_empty() || text.len() > 2 * N {
        let found = text.chars().count();
        return Err(IdError::Length { kind, text: text.to_owned(), found, most: 2 * N });
    }
    let mut bytes = [0u8; N];
    let first_digit = 2 * N - text.len();
    for (at, found) in text.chars().enumerate() {
        let Some(digit) = found.to_digit(16) else {
            return Err(IdError::NotHex { kind, text: text.to_owned(), found, at: at + 1 });
        };
        let place = first_digit + at;
        bytes[place / 2] |= (digit as u8) << (4 * (1 - place % 2));
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(IdError::Zero { kind });
    }
    Ok(bytes)
}

fn write_hex(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for byte in bytes {
        write!(out, "{byte:02x}")?;
    }
    Ok(())
}

macro_rules! byte_id {
    ($(#[$doc:meta])* $name:ident, $size:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; $size]);

        impl $name {
            /// The bytes of a wire field, if they are as many as this id has and not all zero.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                let id = Self(bytes.try_into().ok()?);
                (!id.is_zero()).then_some(id)
            }

            /// Whether this is the reserved "no id".
            pub fn is_zero(&self) -> bool {
                self.0 == [0; $size]
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                parse_hex($kind, text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(&self.0, out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(&self.0, out)
            }
        }
    };
}

byte_id!(
    /// Identity of a trace: 16 bytes, written as 32 lower-case hexadecimal digits.
    TraceId, 16, "trace id"
);
byte_id!(
    /// Identity of a span inside its trace: 8 bytes, written as 16 lower-case hexadecimal digits.
    SpanId, 8, "span id"
);
byte_id!(
    /// Identity of one received profile: its OTLP profile id, or the hash of its content.
    ProfileId, 16, "profile id"
);

/// Identity of a label set: the hash of its names and values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SeriesId(pub u64);

impl fmt::Debug for SeriesId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// Who owns the data. Part of every path and key (R6).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TenantId(Arc<str>);

impl TenantId {
    /// The tenant of everyone while multi-tenancy is off; the name that Pyroscope and Tempo use too.
    pub const ANONYMOUS: &'static str = "anonymous";

    /// The single tenant of a server without multi-tenancy.
    pub fn anonymous() -> Self {
        Self(Arc::from(Self::ANONYMOUS))
    }

    /// The name as it stands in headers and paths.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TenantId {
    type Err = TenantError;

    /// Accepts what Tempo and Pyroscope accept, which is also safe as a folder name.
    fn from_str(name: &str) -> Result<Self, TenantError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "!-_.*'()".contains(c);
        if name.is_empty() || name.len() > 150 || name == "." || name == ".." {
            return Err(TenantError::Length);
        }
        match name.chars().find(|c| !allowed(*c)) {
            Some(found) => Err(TenantError::Character { found }),
            None => Ok(Self(Arc::from(name))),
        }
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Why a text is not a tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TenantError {
    /// Empty, longer than 150 bytes, or a path component with a meaning of its own.
    #[error("a tenant has 1 to 150 characters and is neither \".\" nor \"..\"")]
    Length,
    /// A character outside letters, digits and `!-_.*'()`.
    #[error("{found:?} is not allowed in a tenant; letters, digits and !-_.*'() are")]
    Character {
        /// The first character that does not fit.
        found: char,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: ids as scripts hand them on: either case, leading zeros lost.
    /// Guarantee: they name the same id.
    #[test]
    fn hex_of_either_case_and_length() {
        let id: TraceId = "00000000000000000123456789ABCDEF".parse().unwrap();
        assert_eq!(id, "123456789abcdef".parse().unwrap());
        assert_eq!(id.to_string(), "00000000000000000123456789abcdef");
    }

    /// Scenario: texts that are no ids. Guarantee: the error names the character or the length.
    #[test]
    fn errors_name_what_is_wrong() {
        let wrong = "12g4".parse::<SpanId>().unwrap_err();
        assert_eq!(wrong.to_string(), "span id \"12g4\" has 'g' at character 3; only 0-9 and a-f are allowed");
        assert!(matches!("".parse::<SpanId>(), Err(IdError::Length { found: 0, .. })));
        assert!(matches!("0".parse::<SpanId>(), Err(IdError::Zero { .. })));
        assert!(matches!("0123456789abcdef0".parse::<SpanId>(), Err(IdError::Length { found: 17, .. })));
        assert!(matches!("é1".parse::<SpanId>(), Err(IdError::NotHex { at: 1, .. })));
    }

    /// Scenario: names that would climb out of the store. Guarantee: refused.
    #[test]
    fn tenants_are_safe_folder_names() {
        assert!("..".parse::<TenantId>().is_err());
        assert!("a/b".parse::<TenantId>().is_err());
        assert_eq!("team-1_(eu)".parse::<TenantId>().unwrap().as_str(), "team-1_(eu)");
    }
}
