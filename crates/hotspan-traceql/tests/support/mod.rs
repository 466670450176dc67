//! What the tests of this crate share.

// Each test binary uses a part of it, and all of it is test code.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::print_stdout)]

pub mod fixture;
pub mod generate;
pub mod reference;
