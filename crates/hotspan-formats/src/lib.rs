//! Wire and file formats, to and from the model. No I/O: bytes in, model out, and back.
//!
//! Every byte is taken for hostile: nothing here panics, recurses without bound or takes memory that the
//! [`Limits`] do not allow (R5), and an error says which field was wrong (R7).

pub mod app_name;
pub mod change_table;
mod clock_window;
pub mod collapsed;
pub mod compression;
mod decode_options;
mod detect;
pub mod diff_tree;
pub mod dot;
pub mod error;
mod expand;
mod file_error;
pub mod flame_frames;
pub mod flame_page;
pub mod flamebearer;
pub mod jfr;
mod json_scan;
mod kept_beside;
mod label_roles;
mod leaf_side;
pub mod limits;
pub mod measure;
mod mistaken;
mod naming;
pub mod otlp;
mod otlp_file;
pub mod packed_flame;
pub mod perf_script;
pub mod pprof;
pub mod profile_query;
pub mod profile_tree;
mod protobuf;
pub mod push;
pub mod pyroscope_tree;
pub mod sample_types;
mod set_builder;
mod shortened;
pub mod span_identity;
pub mod speedscope;
pub mod svg;
pub mod text_flame;
pub mod top_table;
mod utf8;
pub mod v8;
mod value_text;

pub use clock_window::{ClockWindow, OutsideWindow};
pub use compression::{DecompressError, Encoding, announced_size, decompress};
pub use decode_options::{DecodeOptions, SampleTypeConfig, TextType};
pub use detect::{FileFormat, decode_file, detect, into_owned};
pub use error::DecodeError;
pub use expand::{expanded, gzip};
pub use file_error::{Fault, FileError};
pub use limits::Limits;
pub use mistaken::mistaken;
pub use shortened::{shortened, wrapped};
pub use value_text::{count_text, counted, duration_text, rate_text, value_text};
