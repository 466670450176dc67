//! The questions that are asked, each with its right answer and its place in the budgets.

mod explain;
mod of_pyroscope;
mod profiles;
mod traces;

pub(crate) use explain::{explain_questions, join_questions};
pub(crate) use of_pyroscope::pyroscope_questions;
pub(crate) use profiles::{profile_questions, span_lookups};
pub(crate) use traces::{trace_lookups, trace_questions};

use crate::measure::{Call, Check};

/// A question, several of a kind where the ids asked for differ.
pub(crate) struct Question<'e> {
    pub(crate) name: String,
    pub(crate) calls: Vec<(Call, Check<'e>)>,
    pub(crate) budget: Budget,
}

/// The budget and the peers' figure of a question, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Budget {
    /// What the peer took.
    pub(crate) peer: Option<f64>,
    /// What the peer's CPU took.
    pub(crate) peer_cpu: Option<f64>,
    /// What a cold call may take.
    pub(crate) cold: Option<f64>,
    /// What a warm call may take.
    pub(crate) warm: Option<f64>,
}

impl Budget {
    /// A share of what the peer took, cold or warm.
    fn share(peer: f64, divisor: f64) -> Self {
        Self { peer: Some(peer), peer_cpu: None, cold: None, warm: Some(peer / divisor) }
    }

    fn none() -> Self {
        Self::default()
    }
}

fn json(body: &[u8]) -> Result<serde_json::Value, String> {
    serde_json::from_slice(body).map_err(|error| format!("the answer is not JSON: {error}"))
}

/// A number as JSON has it, or as text, as 64-bit numbers are written.
fn number(value: &serde_json::Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
