//! speedscope's JSON, in and out.

mod read;
mod write;

pub use read::decode;
pub use write::encode;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
