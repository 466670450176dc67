//! Java Flight Recorder files, as async-profiler, the Pyroscope agent and the JDK write them.
//!
//! ```text
//!  file: chunk, chunk, …      chunk: header, events, metadata, constant pools
//!
//!  Chunk::open   reads the header and the metadata: the layout of every type
//!  Pools::scan   notes where each constant lies, without reading it
//!  Plan          says for each field of an event what it is to us; most are skipped
//!  Recording     turns events into samples, reading constants when they are first needed
//! ```
//!
//! A chunk is all that is ever held, and [`JfrReader`] gives one set of profiles for each, so that memory is bounded by the
//! largest chunk however long the file is. Two things reach across chunks and are carried on: native memory that is given back
//! later, and spans that end later ([`FarSpans`]).

mod chunk;
mod constants;
mod cursor;
mod event_plan;
mod frame;
mod labels_snapshot;
mod layout;
mod native_memory;
mod profile_kinds;
mod reader;
mod recording;
mod settings;
mod span_join;

pub use reader::{JfrReader, decode, is_recording};
pub use span_join::FarSpans;

const FORMAT: &str = "jfr";
