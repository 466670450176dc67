//! Stopping in time: a server that is told to end does so, whatever a part of it waits for.

use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::warn;

/// Waits for a part of the server to end, and breaks it off once the time is over. Nothing is lost by that: all that was
/// acknowledged is durable, and what a part leaves half done is what a crash would leave. One that panicked is gone already.
pub(crate) async fn in_time<T>(part: &'static str, grace: Duration, mut task: JoinHandle<T>) {
    if tokio::time::timeout(grace, &mut task).await.is_err() {
        warn!(part, "did not end in time and is broken off");
        task.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Scenario: a part that takes a while to end, one that panics, and one that never ends.
    /// Guarantee: the first is waited for, the second is no trouble, and the third is broken off after as long as was said.
    #[tokio::test]
    async fn nobody_waits_forever() {
        let (moment, long) = (Duration::from_millis(20), Duration::from_secs(60));
        let work = Arc::new(());
        let held = Arc::clone(&work);
        let ends = tokio::spawn(async move {
            tokio::time::sleep(moment).await;
            drop(held);
        });
        in_time("one that ends", long, ends).await;
        assert_eq!(Arc::strong_count(&work), 1);
        in_time("one that panics", long, tokio::spawn(async { panic!("as it should") })).await;
        let held = Arc::clone(&work);
        let hangs = tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        in_time("one that hangs", moment, hangs).await;
        // It is dropped when the runtime comes to it.
        while Arc::strong_count(&work) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
