//! Submissions on their way to the committer.
//!
//! Any thread puts them in, and one task takes them out, a batch at a time. It is woken for the first of a batch and when
//! the batch is full, but not for those between: waking somebody costs more than taking in what a small request brings.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Submission;

#[derive(Debug)]
struct Waiting {
    queue: Mutex<Queue>,
    batch_bytes: usize,
    /// There is a first submission, a full batch, or there will be no more.
    due: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    submissions: VecDeque<Submission>,
    bytes: usize,
    /// One of the ends is gone.
    is_closed: bool,
}

/// Where submissions enter.
#[derive(Debug)]
pub(super) struct Entrance(Arc<Waiting>);

/// Where batches are taken out.
#[derive(Debug)]
pub(super) struct Exit(Arc<Waiting>);

/// The two ends of a queue whose batches have about this many bytes.
pub(super) fn queue(batch_bytes: usize) -> (Entrance, Exit) {
    let waiting = Arc::new(Waiting { queue: Mutex::default(), batch_bytes, due: Notify::new() });
    (Entrance(Arc::clone(&waiting)), Exit(waiting))
}

impl Waiting {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue();
        queue.is_closed = true;
        self.due.notify_one();
        queue
    }
}

impl Entrance {
    /// Puts a submission in. It is dropped, and with it the hope for an answer, if nobody will take it out.
    pub(super) fn put(&self, submission: Submission) {
        let mut queue = self.0.queue();
        if queue.is_closed {
            return;
        }
        let before = queue.bytes;
        queue.bytes += submission.bytes;
        queue.submissions.push_back(submission);
        let is_full = before < self.0.batch_bytes && queue.bytes >= self.0.batch_bytes;
        if queue.submissions.len() == 1 || is_full {
            drop(queue);
            self.0.due.notify_one();
        }
    }

    /// How many wait to be taken out.
    pub(super) fn len(&self) -> usize {
        self.0.queue().submissions.len()
    }
}

impl Exit {
    /// Waits for a submission; false if none will come.
    pub(super) async fn some(&self) -> bool {
        self.until(|queue| !queue.submissions.is_empty()).await
    }

    /// The next batch: what comes until it is full, or until the first has waited this long for others.
    pub(super) async fn batch(&self, longest: Duration) -> Option<Vec<Submission>> {
        if !self.some().await {
            return None;
        }
        // What there is by then is a batch as well.
        let _ = tokio::time::timeout(longest, self.until(|queue| queue.bytes >= self.0.batch_bytes)).await;
        Some(self.take())
    }

    async fn until(&self, is_reached: impl Fn(&Queue) -> bool) -> bool {
        loop {
            {
                let queue = self.0.queue();
                if is_reached(&queue) || queue.is_closed {
                    return is_reached(&queue);
                }
            }
            self.0.due.notified().await;
        }
    }

    /// Takes out no more than a batch: what came during a slow commit may be many.
    fn take(&self) -> Vec<Submission> {
        let mut queue = self.0.queue();
        let mut bytes = 0;
        let is_wanted = |submission: &Submission| {
            let is_wanted = bytes < self.0.batch_bytes;
            bytes += submission.bytes;
            is_wanted
        };
        let count = queue.submissions.iter().map(is_wanted).take_while(|wanted| *wanted).count();
        let batch: Vec<Submission> = queue.submissions.drain(..count).collect();
        queue.bytes -= batch.iter().map(|submission| submission.bytes).sum::<usize>();
        batch
    }
}

impl Drop for Entrance {
    /// What has entered is still taken out.
    fn drop(&mut self) {
        drop(self.0.close());
    }
}

impl Drop for Exit {
    /// What has entered has nobody to answer it.
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.0.close().submissions);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use hotspan_model::TenantId;
    use tokio::sync::{Semaphore, oneshot};

    use super::*;
    use crate::error::LakeError;
    use crate::ingest::{Answer, Receipt, Reservation};
    use crate::rows::Rows;

    type Answered = oneshot::Receiver<Result<Receipt, Arc<LakeError>>>;

    fn submission(bytes: usize) -> (Submission, Answered) {
        let (answer, answered) = oneshot::channel();
        let answer = Answer(answer);
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let reservation = Reservation { permit };
        (Submission { tenant: TenantId::anonymous(), rows: Rows::default(), bytes, reservation, answer }, answered)
    }

    fn put(entrance: &Entrance, sizes: &[usize]) -> Vec<Answered> {
        let enter = |bytes: &usize| {
            let (submission, answer) = submission(*bytes);
            entrance.put(submission);
            answer
        };
        sizes.iter().map(enter).collect()
    }

    fn sizes(batch: Option<Vec<Submission>>) -> Option<Vec<usize>> {
        batch.map(|batch| batch.iter().map(|submission| submission.bytes).collect())
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    /// Scenario: more than a batch at once; then less than one, which waits for others; then no more will come.
    /// Guarantee: full batches at once, each no larger than it must be, in order; the rest when its time is over, or at the end.
    #[tokio::test]
    async fn batches_are_full_or_old() {
        let (entrance, exit) = queue(100);
        let _answers = put(&entrance, &[60, 60, 10, 200, 5]);
        assert_eq!((entrance.len(), sizes(exit.batch(LONG).await)), (5, Some(vec![60, 60])));
        assert_eq!(sizes(exit.batch(LONG).await), Some(vec![10, 200]));
        let started = Instant::now();
        assert_eq!(sizes(exit.batch(SHORT).await), Some(vec![5]));
        assert!(started.elapsed() >= SHORT && entrance.len() == 0);
        let _answers = put(&entrance, &[7]);
        drop(entrance);
        assert_eq!(sizes(exit.batch(LONG).await), Some(vec![7]));
        assert_eq!(sizes(exit.batch(LONG).await), None);
        assert!(started.elapsed() < LONG);
    }

    /// Scenario: submissions from another thread while the committer waits, first for one, then for a full batch.
    /// Guarantee: it is woken for both.
    #[tokio::test]
    async fn the_committer_is_woken() {
        let (entrance, exit) = queue(100);
        let feeder = std::thread::spawn(move || {
            let mut answers = Vec::new();
            for bytes in [40, 40, 40] {
                std::thread::sleep(Duration::from_millis(20));
                answers.extend(put(&entrance, &[bytes]));
            }
            (entrance, answers)
        });
        assert!(exit.some().await);
        assert_eq!(sizes(exit.batch(LONG).await), Some(vec![40, 40, 40]));
        feeder.join().unwrap();
    }

    /// Scenario: the committer is gone. Guarantee: nobody waits for an answer, neither from before nor from after.
    #[tokio::test]
    async fn nobody_waits_in_vain() {
        let (entrance, exit) = queue(100);
        let before = put(&entrance, &[1]);
        drop(exit);
        for answer in before.into_iter().chain(put(&entrance, &[2])) {
            assert!(answer.await.is_err());
        }
    }
}
