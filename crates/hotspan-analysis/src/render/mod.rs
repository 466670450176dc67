//! An explanation for people: as text for a terminal, as Markdown for a ticket. One wording for both.

mod markdown;
mod sentences;
mod text;

pub use markdown::markdown;
pub use sentences::{headline, sentence};
pub use text::text;
