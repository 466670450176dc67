//! stub
mod arithmetic;
pub mod ast;
mod check;
mod error;
mod plan;
mod regex_match;
mod source;
mod suggest;
mod syntax;
mod value;
pub use error::{SourceRange, TraceqlError};
pub use source::{SpanSource, TraceSource};
pub use syntax::{MAX_DEPTH, MAX_QUERY_BYTES, parse_syntax};
pub use suggest::nearest;
pub use value::{FieldValue, Value};
pub use plan::*;
/// Parses and checks a query.
pub fn parse(text: &str) -> Result<ast::Query, TraceqlError> {
    let query = parse_syntax(text)?;
    check::check(&query).map_err(|error| error.locate(text))?;
    Ok(query)
}
