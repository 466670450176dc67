//! Protobuf JSON: 64-bit numbers are texts, and what is zero is left out.

use std::fmt::Display;

use serde::Serializer;

/// Whether a number is what a missing field means.
pub(super) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// A 64-bit number as text.
pub(super) fn as_text<S: Serializer, N: Display>(number: &N, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(number)
}
