//! What was rejected on its way in, in the words of Tempo's `message`, which Grafana shows beside a partial answer.

use hotspan_model::Exactness;

/// Says how much an answer may lack: spans, and samples where a query asks for profile fields; nothing if nothing was
/// rejected.
pub(super) fn rejected_note(exactness: &Exactness) -> Option<String> {
    let dropped = exactness.dropped;
    (dropped > 0)
        .then(|| format!("{dropped} spans or samples that came in this time were rejected and are not in this"))
}
