//! Reads ahead at a start what the first questions will need: footers and labels before the server says that it is ready, since
//! they take next to no time; the rest afterwards, giving way to every question that comes meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hotspan_query::{Engine, WarmUp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::app::App;

/// How soon it is looked again whether anybody still waits for an answer.
const GIVE_WAY: Duration = Duration::from_millis(10);

/// Nobody waits longer than this for a server to be ready because it reads ahead.
const LONGEST_BEFORE_READY: Duration = Duration::from_millis(50);
/// Whoever waited for the server asks as soon as it is ready, and should have all cores then.
const FIRST_QUESTION: Duration = Duration::from_millis(50);

/// Reads what is basic. Whoever asks for what can't be read will be told; a file may also have been merged away meanwhile.
pub(crate) async fn read_basics(engine: &Engine, longest: Duration) -> WarmUp {
    let (began, longest) = (Instant::now(), longest.min(LONGEST_BEFORE_READY));
    let mut warm_up = engine.warm_up();
    while warm_up.is_basic() && began.elapsed() < longest {
        if let Err(error) = warm_up.next_part().await {
            debug!(%error, "could not be read ahead");
        }
    }
    warm_up
}

/// Reads the rest. Ends when all is read, when its time is over, or when the server stops.
pub(crate) async fn read_ahead(mut warm_up: WarmUp, app: Arc<App>, stop: CancellationToken) {
    let (began, longest) = (Instant::now(), app.settings.warm_up);
    let mut parts = 0u64;
    tokio::time::sleep(FIRST_QUESTION.min(longest)).await;
    while !stop.is_cancelled() && began.elapsed() < longest {
        if app.queries.running() > 0 {
            tokio::time::sleep(GIVE_WAY).await;
            continue;
        }
        match warm_up.next_part().await {
            Ok(false) => break,
            Ok(true) => parts += 1,
            Err(error) => debug!(%error, "could not be read ahead"),
        }
        // Reading a local file never waits: others get their turn.
        tokio::task::yield_now().await;
    }
    app.warming_up.store(false, Ordering::Relaxed);
    debug!(parts, milliseconds = began.elapsed().as_millis() as u64, "read ahead");
}
