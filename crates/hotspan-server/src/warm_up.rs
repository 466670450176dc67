//! Reads ahead after a start what the first questions will need, and gives way to every question that comes meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::app::App;

/// How soon it is looked again whether anybody still waits for an answer.
const GIVE_WAY: Duration = Duration::from_millis(10);

/// Ends when all is read, when its time is over, or when the server stops.
pub(crate) async fn warm_up(app: Arc<App>, stop: CancellationToken) {
    let Ok(core) = app.core() else { return };
    let (began, longest) = (Instant::now(), app.settings.warm_up);
    let mut warm_up = core.engine.warm_up();
    let mut parts = 0u64;
    while !stop.is_cancelled() && began.elapsed() < longest {
        if app.queries.running() > 0 {
            tokio::time::sleep(GIVE_WAY).await;
            continue;
        }
        match warm_up.next_part().await {
            Ok(false) => break,
            Ok(true) => parts += 1,
            // Whoever asks for it will be told; a file may also have been merged away meanwhile.
            Err(error) => debug!(%error, "could not be read ahead"),
        }
        // Reading a local file never waits: others get their turn.
        tokio::task::yield_now().await;
    }
    app.warming_up.store(false, Ordering::Relaxed);
    debug!(parts, milliseconds = began.elapsed().as_millis() as u64, "read ahead");
}
