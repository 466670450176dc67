//! From text to tree.

mod field_expr;
mod lexer;
mod literal_text;
mod metrics_stage;
mod parser;
mod pipeline;
mod sink;
mod token;

pub(crate) use lexer::{is_attribute_name_char, tokenize};
pub use parser::parse_syntax;
pub(crate) use parser::{AGGREGATES, METRICS_FUNCTIONS, SECOND_STAGES, SINKS, SPANSET_STAGES};
pub(crate) use token::{Symbol, Token, TokenKind};

/// Longest query text accepted, in bytes.
pub const MAX_QUERY_BYTES: usize = 128 * 1024;

/// Deepest nesting of parentheses and the like accepted: the parser recurses once for each.
pub const MAX_DEPTH: usize = 48;

/// Highest tree accepted: every later pass recurses no deeper than this. A chain such as `a + b + c` makes a high tree
/// without nesting.
pub const MAX_HEIGHT: usize = 128;
