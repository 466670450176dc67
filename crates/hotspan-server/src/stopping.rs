//! Stopping in time: a server that is told to end does so, whatever a part of it waits for.

use std::time::Duration;

use tracing::warn;

/// Waits for a part of the server to end, and goes on without it once the time is over. Nothing is lost by that: all that was
/// acknowledged is durable, and what a part leaves half done is what a crash would leave.
pub(crate) async fn in_time<T>(part: &'static str, grace: Duration, end: impl Future<Output = T>) -> Option<T> {
    let ended = tokio::time::timeout(grace, end).await.ok();
    if ended.is_none() {
        warn!(part, "did not end in time and is left behind");
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a part that ends, and one that never does.
    /// Guarantee: the first is waited for, the second only as long as was said.
    #[tokio::test]
    async fn nobody_waits_forever() {
        let (moment, long) = (Duration::from_millis(20), Duration::from_secs(60));
        assert!(in_time("one that ends", long, tokio::time::sleep(moment)).await.is_some());
        assert!(in_time("one that hangs", moment, std::future::pending::<()>()).await.is_none());
    }
}
