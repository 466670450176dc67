//! Decoding, whatever a request holds: off the reactor, and in turn.

use crate::app::App;
use crate::receive::Refusal;
use crate::self_tracing::child_span;

/// Decodes a request once it has a turn: as many at a time as there are cores. More would finish no sooner, take more memory,
/// and take each other's from the processor's caches.
pub(super) async fn decode_in_turn<T: Send + 'static>(
    app: &App,
    decode: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let turn = app.decoding.acquire().await;
    let span = child_span!("decode");
    let decoded = tokio::task::spawn_blocking(move || span.in_scope(decode)).await;
    drop(turn);
    // A decoder never panics; if one did, the sender learns that its request can't be read.
    decoded.map_err(|error| Refusal::Invalid(format!("decoding failed: {error}")))?
}
