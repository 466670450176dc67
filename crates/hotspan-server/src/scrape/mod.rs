//! Pulling: services that offer their profiles over HTTP, as Go's `net/http/pprof` does, are asked in turn.
//!
//! ```text
//! [[scrape]] -> one task a target and profile -> fetch -> decode -> delta -> the lake, as if it had been pushed
//!                                             -> status of the target
//! ```

mod delta;
mod job;
mod status;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use delta::{Found, LastValues};
use hotspan_formats::{DecodeOptions, expanded, into_owned, mistaken, pprof};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Profile, ProfileSet};
pub(crate) use job::base_address;
use job::without_password;
pub use job::{ProfileKind, ScrapeJob};
pub(crate) use status::ScrapeStatus;
use status::TargetStatus;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::app::App;
use crate::receive::store_scraped;

/// Starts to ask every target of the configuration, until `stop`.
pub(crate) fn start(app: &Arc<App>, stop: &CancellationToken) -> anyhow::Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    if app.settings.scrape.is_empty() {
        return Ok(tasks);
    }
    let agent = concat!("hotspan/", env!("CARGO_PKG_VERSION"));
    let client = reqwest::Client::builder().user_agent(agent).build()?;
    for job in &app.settings.scrape {
        for target in &job.targets {
            let added: Vec<(ProfileKind, String, Arc<TargetStatus>)> = job
                .profiles
                .iter()
                .map(|kind| {
                    let url = address(job, target, *kind);
                    let status = app.scrape.add(job, &without_password(target), *kind, &without_password(&url));
                    (*kind, url, status)
                })
                .collect();
            let allocs = added.iter().find(|(kind, _, _)| *kind == ProfileKind::Allocs);
            let allocs = allocs.map(|(_, _, status)| Arc::clone(status));
            let allocations: SharedValues = Arc::default();
            for (kind, url, status) in added {
                let last = if kind.has_allocations() { Arc::clone(&allocations) } else { SharedValues::default() };
                let scraper = Scraper {
                    app: Arc::clone(app),
                    client: client.clone(),
                    job: job.clone(),
                    target: without_password(target),
                    kind,
                    url,
                    status,
                    last,
                    allocs: allocs.clone(),
                };
                tasks.spawn(scraper.run(stop.clone()));
            }
        }
        info!(service = job.service, targets = job.targets.len(), profiles = job.profiles.len(), "scraping");
    }
    Ok(tasks)
}

/// How long a CPU profile runs: nearly all of the time between two of them.
fn cpu_seconds(job: &ScrapeJob) -> u64 {
    job.interval.as_secs().saturating_sub(1).max(1)
}

fn address(job: &ScrapeJob, target: &str, kind: ProfileKind) -> String {
    let path = job.path.trim_matches('/');
    let mut url = format!("{}/{path}/{}", base_address(target), kind.path());
    if kind == ProfileKind::Cpu {
        url.push_str(&format!("?seconds={}", cpu_seconds(job)));
    }
    url
}

/// One profile of one target.
struct Scraper {
    app: Arc<App>,
    client: reqwest::Client,
    job: ScrapeJob,
    /// Its address as everybody may see it.
    target: String,
    kind: ProfileKind,
    url: String,
    status: Arc<TargetStatus>,
    last: SharedValues,
    /// How the allocations of the target are doing, if they are asked for by themselves.
    allocs: Option<Arc<TargetStatus>>,
}

/// The values of the last scrape. Heap and allocs of a target share theirs, so that whichever answers stores what was
/// added since either did, and each allocation is stored once.
type SharedValues = Arc<tokio::sync::Mutex<LastValues>>;

impl Scraper {
    async fn run(self, stop: CancellationToken) {
        // Targets begin at random moments of the interval, so that they are spread over it for good.
        let mut wait = random_below(self.job.interval);
        let mut was_down = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return,
            }
            let started = Instant::now();
            let (length, outcome) = tokio::select! {
                scraped = self.scrape() => scraped,
                () = stop.cancelled() => return,
            };
            match (&outcome, was_down) {
                // Once when it begins, not at every scrape: the status has the rest.
                (Err(error), false) => warn!(address = self.target, profile = self.kind.name(), error, "scrape failed"),
                (Ok(_), true) => info!(address = self.target, profile = self.kind.name(), "scrape works again"),
                _ => {}
            }
            was_down = outcome.is_err();
            self.status.note(now_nanos(), length, &outcome);
            wait = self.job.interval.saturating_sub(started.elapsed()) + random_below(self.job.jitter);
        }
    }

    /// Fetches and stores once; how long the answer took, and how many samples there were, or what went wrong.
    async fn scrape(&self) -> (Duration, Result<usize, String>) {
        let asked = Instant::now();
        let fetched = self.fetch().await;
        let answered = Instant::now();
        let stored = match fetched {
            Ok(body) => self.store(body, Found::between(asked, answered)).await,
            Err(error) => Err(error),
        };
        (answered - asked, stored)
    }

    /// Stores what is new in an answer; how many samples that are.
    async fn store(&self, body: Vec<u8>, mut found: Found) -> Result<usize, String> {
        let mut set = self.decoded(body).await?;
        // Held until it is known whether all is stored, but not while anybody waits for the target.
        let mut last = self.last.lock().await;
        let mut profiles: Vec<Profile<'_>> = std::mem::take(&mut set.profiles);
        let allocs_has_them = self.allocs.as_ref().is_some_and(|allocs| !allocs.is_down());
        profiles.retain(|profile| self.kind.keeps(&profile.profile_type.sample_type, allocs_has_them));
        profiles.retain_mut(|profile| {
            let cumulative = self.job.delta && self.kind.is_cumulative(&profile.profile_type.sample_type);
            !cumulative || last.subtract(&set, profile, &mut found)
        });
        set.profiles = profiles;
        let stored = store_scraped(&self.app, self.job.tenant.clone(), set).await;
        last.remember(found, stored.is_ok());
        stored.map_err(|refusal| refusal.to_string())
    }

    async fn decoded(&self, body: Vec<u8>) -> Result<ProfileSet<'static>, String> {
        let (options, kind) = (self.options(), self.kind);
        let decode = move || {
            let plain = expanded(&body, &options.limits).map_err(|error| error.to_string())?;
            let set = pprof::decode(&plain, &options).map_err(|error| {
                let why = mistaken(&plain).map_or_else(|| error.to_string(), |known| format!("it is {known}"));
                format!("the answer is no {} profile in pprof: {why}", kind.name())
            })?;
            let sample_types = set.profiles.iter().map(|profile| profile.profile_type.sample_type.as_str());
            kind.check(&sample_types.collect::<Vec<_>>())?;
            Ok(into_owned(set))
        };
        tokio::task::spawn_blocking(decode).await.map_err(|error| error.to_string())?
    }

    async fn fetch(&self) -> Result<Vec<u8>, String> {
        let profiling = if self.kind == ProfileKind::Cpu { cpu_seconds(&self.job) } else { 0 };
        let timeout = self.job.timeout + Duration::from_secs(profiling);
        let request = self.client.get(&self.url).timeout(timeout);
        let mut answer = request.send().await.map_err(|error| innermost(&error))?;
        let most = self.app.settings.limits.max_bytes;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| innermost(&error))? {
            if body.len() + chunk.len() > most {
                return Err(format!("the answer has more than {most} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        let status = answer.status();
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).trim().chars().take(200).collect();
            return Err(format!("the target answers {status}: {said}"));
        }
        Ok(body)
    }

    fn options(&self) -> DecodeOptions {
        let now = now_nanos();
        let mut labels = self.job.labels.clone();
        labels.set_default("instance", self.target.as_str());
        labels.set(SERVICE_NAME, self.job.service.as_str());
        DecodeOptions {
            labels,
            name: Some(self.kind.profile_name().to_owned()),
            from: now,
            until: now,
            tolerant: true,
            limits: self.app.settings.limits.clone(),
            ..DecodeOptions::default()
        }
    }
}

/// What an error rests on: libraries wrap "connection refused" several times.
fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

fn random_below(most: Duration) -> Duration {
    let share = RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64;
    most.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: targets as people write them. Guarantee: the address that Go serves each profile at.
    #[test]
    fn addresses() {
        let job = ScrapeJob { interval: Duration::from_secs(10), ..ScrapeJob::default() };
        assert_eq!(address(&job, "a:6060", ProfileKind::Cpu), "http://a:6060/debug/pprof/profile?seconds=9");
        assert_eq!(address(&job, "https://a/x/", ProfileKind::Heap), "https://a/x/debug/pprof/heap");
        let prefixed = ScrapeJob { path: "admin/pprof/".to_owned(), ..job };
        assert_eq!(address(&prefixed, "a", ProfileKind::ThreadCreate), "http://a/admin/pprof/threadcreate");
        assert!((0..100).all(|_| random_below(Duration::from_secs(1)) <= Duration::from_secs(1)));
    }

    /// Scenario: heap and allocs scraped together, with allocs down, and alone.
    /// Guarantee: each allocation is stored once, and memory in use with the heap alone.
    #[test]
    fn allocations_come_from_one_profile() {
        use ProfileKind::{Allocs, Heap};
        for (answering, allocs_has_them) in [(&[Heap][..], false), (&[Allocs], true), (&[Heap, Allocs], true)] {
            let stored =
                |sample_type: &str| answering.iter().filter(|kind| kind.keeps(sample_type, allocs_has_them)).count();
            assert_eq!(stored("alloc_space"), 1, "{answering:?}");
            assert_eq!(stored("inuse_space"), usize::from(answering.contains(&Heap)), "{answering:?}");
        }
    }
}
