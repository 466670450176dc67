//! speedscope's JSON, in and out.

mod read;
mod shared;
mod stacks;
mod write;

pub use read::decode;
pub use write::encode;

const FORMAT: &str = "speedscope";
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
