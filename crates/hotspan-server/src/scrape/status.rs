//! How scraping goes, target by target: what `/api/v1/targets` shows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotspan_model::TenantId;
use serde_json::{Value, json};

use super::job::{ProfileKind, ScrapeJob};
use crate::time_text::time_as_text;

/// The state of every target.
#[derive(Debug, Default)]
pub(crate) struct ScrapeStatus {
    targets: Mutex<Vec<Arc<TargetStatus>>>,
}

/// The state of one profile of one target.
#[derive(Debug)]
pub(super) struct TargetStatus {
    tenant: TenantId,
    service: String,
    target: String,
    url: String,
    kind: ProfileKind,
    interval: Duration,
    scrapes: Mutex<Scrapes>,
}

#[derive(Debug, Default, Clone)]
struct Scrapes {
    count: u64,
    failures: u64,
    samples: u64,
    last_time: i64,
    last_length: Duration,
    last_error: Option<String>,
}

impl ScrapeStatus {
    /// Begins to watch a target.
    pub(super) fn add(&self, job: &ScrapeJob, target: &str, kind: ProfileKind, url: &str) -> Arc<TargetStatus> {
        let status = Arc::new(TargetStatus {
            tenant: job.tenant.clone(),
            service: job.service.clone(),
            target: target.to_owned(),
            url: url.to_owned(),
            kind,
            interval: job.interval,
            scrapes: Mutex::default(),
        });
        lock(&self.targets).push(Arc::clone(&status));
        status
    }

    /// Scrapes and failed scrapes of all targets since the start.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let targets = lock(&self.targets);
        let scrapes = targets.iter().map(|target| lock(&target.scrapes).clone());
        scrapes.fold((0, 0), |(count, failures), one| (count + one.count, failures + one.failures))
    }

    /// The targets whose profiles a tenant owns, in the order of the configuration (R6).
    pub(crate) fn json(&self, tenant: &TenantId) -> Value {
        let targets = lock(&self.targets);
        let own = targets.iter().filter(|target| target.tenant == *tenant);
        json!({ "targets": own.map(|target| target.json()).collect::<Vec<_>>() })
    }
}

impl TargetStatus {
    /// Notes how a scrape went.
    pub(super) fn note(&self, time: i64, length: Duration, outcome: &Result<usize, String>) {
        let mut scrapes = lock(&self.scrapes);
        scrapes.count += 1;
        scrapes.last_time = time;
        scrapes.last_length = length;
        match outcome {
            Ok(samples) => {
                scrapes.samples += *samples as u64;
                scrapes.last_error = None;
            }
            Err(error) => {
                scrapes.failures += 1;
                scrapes.last_error = Some(error.clone());
            }
        }
    }

    /// Whether the last scrape failed.
    pub(super) fn is_down(&self) -> bool {
        lock(&self.scrapes).last_error.is_some()
    }

    fn json(&self) -> Value {
        let scrapes = lock(&self.scrapes).clone();
        let health = match (scrapes.count, &scrapes.last_error) {
            (0, _) => "unknown",
            (_, None) => "up",
            (_, Some(_)) => "down",
        };
        json!({
            "service": self.service,
            "target": self.target,
            "profile": self.kind.name(),
            "url": self.url,
            "interval_seconds": self.interval.as_secs_f64(),
            "health": health,
            "last_scrape": (scrapes.count > 0).then(|| time_as_text(scrapes.last_time)),
            "last_scrape_seconds": scrapes.last_length.as_secs_f64(),
            "last_error": scrapes.last_error,
            "scrapes": scrapes.count,
            "failures": scrapes.failures,
            "samples": scrapes.samples,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
