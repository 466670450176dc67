//! Work on all cores: jobs give items, one consumer takes them.

use std::sync::{Arc, Mutex, PoisonError};

use futures::TryStreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use hotspan_lake::LakeError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::Result;

/// Opens a stream of items; polling it is the work.
pub(crate) type Job<T> = BoxFuture<'static, Result<BoxStream<'static, Result<T>>>>;

/// Items that may wait for the consumer, for each core.
const ITEMS_AHEAD: usize = 4;

/// How many jobs run at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Runs jobs on all cores and hands every item to `each`, in no particular order.
pub(crate) async fn side_by_side<T: Send + 'static>(
    mut jobs: Vec<Job<T>>,
    each: &mut (dyn FnMut(T) -> Result<()> + Send + '_),
) -> Result<()> {
    if jobs.len() <= 1 {
        for job in jobs {
            let mut stream = job.await?;
            while let Some(item) = stream.try_next().await? {
                each(item)?;
                // Whoever asked may have left meanwhile; reading from memory never waits by itself.
                tokio::task::yield_now().await;
            }
        }
        return Ok(());
    }
    // Taken from the end: the first job is begun first.
    jobs.reverse();
    let workers = cores().min(jobs.len());
    let queue = Arc::new(Mutex::new(jobs));
    let (sender, mut receiver) = mpsc::channel(ITEMS_AHEAD * workers);
    // Dropping the set ends the workers, should the consumer give up.
    let mut running = JoinSet::new();
    for _ in 0..workers {
        running.spawn(work(Arc::clone(&queue), sender.clone()));
    }
    drop(sender);
    while let Some(item) = receiver.recv().await {
        each(item?)?;
    }
    while let Some(ended) = running.join_next().await {
        // A worker that panicked has not read all: what was read is no answer.
        if ended.is_err() {
            return Err(LakeError::ShuttingDown.into());
        }
    }
    Ok(())
}

/// Takes jobs until there is none, one fails, or nobody listens any more.
async fn work<T: Send>(queue: Arc<Mutex<Vec<Job<T>>>>, sender: mpsc::Sender<Result<T>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(job) = job else { return };
        let done = async {
            let mut stream = job.await?;
            while let Some(item) = stream.try_next().await? {
                if sender.send(Ok(item)).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        if let Err(error) = done.await {
            let _ = sender.send(Err(error)).await;
            return;
        }
        if sender.is_closed() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::*;
    use crate::error::QueryError;

    fn job(items: Vec<Result<u32>>) -> Job<u32> {
        async move { Ok(futures::stream::iter(items).boxed()) }.boxed()
    }

    /// Scenario: more jobs than cores; one of several that fails; a consumer that gives up.
    /// Guarantee: every item is seen once; the error comes out; nothing hangs.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_item_once() {
        for count in [0u32, 1, 2, 50] {
            let jobs = (0..count).map(|number| job((0..100).map(|item| Ok(number * 100 + item)).collect())).collect();
            let mut seen = Vec::new();
            side_by_side(jobs, &mut |item| {
                seen.push(item);
                Ok(())
            })
            .await
            .unwrap();
            seen.sort_unstable();
            assert_eq!(seen, (0..count * 100).collect::<Vec<_>>());
        }
        let too_much = || QueryError::Limit("too much".to_owned());
        let jobs = vec![job((0..1000).map(Ok).collect()), job(vec![Ok(2), Err(too_much())]), job(vec![Ok(3)])];
        let ended = side_by_side(jobs, &mut |_| Ok(())).await;
        assert_eq!(ended.unwrap_err().to_string(), "too much");
        let jobs = vec![job((0..1000).map(Ok).collect()), job((0..1000).map(Ok).collect())];
        assert!(side_by_side(jobs, &mut |_| Err(too_much())).await.is_err());
    }
}
