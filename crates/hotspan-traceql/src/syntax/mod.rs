//! From text to tree.

mod field_expr;
mod lexer;
mod literal_text;
mod parser;
mod pipeline;
mod token;

pub(crate) use lexer::{is_attribute_name_char, tokenize};
pub(crate) use token::{Symbol, Token, TokenKind};
pub use parser::parse_syntax;
pub(crate) use parser::{AGGREGATES, METRICS_FUNCTIONS, SECOND_STAGES, SINKS, SPANSET_STAGES};

/// Longest query text accepted, in bytes.
pub const MAX_QUERY_BYTES: usize = 128 * 1024;

/// Deepest nesting of expressions accepted; every later pass recurses no deeper than this.
pub const MAX_DEPTH: usize = 96;
