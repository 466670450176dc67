//! An explanation for people: as text for a terminal, as Markdown for a ticket. One wording for both.

mod markdown;
mod sentences;
mod text;

pub use markdown::markdown;
pub use sentences::{SideNames, headline, sentence, side_names};
pub use text::text;
