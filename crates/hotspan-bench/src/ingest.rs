//! Sends prepared requests as fast as the server acknowledges them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::http::Client;
use crate::process::{Process, Usage};
use crate::server::Server;
use crate::spool::Spool;

/// What sending a spool took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    /// Wall time until the last acknowledgement.
    pub(crate) wall: Duration,
    /// What the server used meanwhile.
    pub(crate) cpu: Duration,
    /// What of that went into compactions that were finished by then, as the server tells.
    pub(crate) compaction_cpu: Duration,
    /// Time of each request from its first byte to the acknowledgement, sorted.
    pub(crate) latencies: Vec<Duration>,
    /// Requests that were refused for now and sent again.
    pub(crate) retried: usize,
}

impl Sent {
    /// The time that this share of requests was acknowledged in.
    pub(crate) fn latency(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
    }
}

/// How often a request is sent again before that counts as failure.
const MAX_RETRIES: usize = 200;

/// Where requests go: a process, its address, and a path that may depend on the number of the request.
pub(crate) struct Target<'t> {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    pub(crate) path: &'t (dyn Fn(usize) -> String + Sync),
}

/// Sends all requests to one path of OTLP.
pub(crate) fn send(server: &Server, spool: &Spool, path: &str, connections: usize) -> anyhow::Result<Sent> {
    let compaction_before = server.compaction_cpu();
    let target = Target { process: server.process(), address: server.otlp, path: &|_| path.to_owned() };
    let mut sent = send_to(&target, spool, connections)?;
    sent.compaction_cpu = server.compaction_cpu().saturating_sub(compaction_before);
    Ok(sent)
}

/// Sends all requests over several connections. An answer that is neither success nor "later" is an error.
pub(crate) fn send_to(target: &Target<'_>, spool: &Spool, connections: usize) -> anyhow::Result<Sent> {
    let next = AtomicUsize::new(0);
    let before: Usage = target.process.usage()?;
    let started = Instant::now();
    let results: Vec<anyhow::Result<Sent>> = thread::scope(|scope| {
        let sender = || send_share(target, spool, &next);
        let senders: Vec<_> = (0..connections).map(|_| scope.spawn(sender)).collect();
        let joined = senders.into_iter().map(|sender| match sender.join() {
            Ok(result) => result,
            Err(_) => bail!("a sender died"),
        });
        joined.collect()
    });
    let mut sent = Sent { wall: started.elapsed(), ..Sent::default() };
    sent.cpu = target.process.usage()?.cpu.saturating_sub(before.cpu);
    for result in results {
        let share = result?;
        sent.latencies.extend(share.latencies);
        sent.retried += share.retried;
    }
    sent.latencies.sort_unstable();
    Ok(sent)
}

fn send_share(target: &Target<'_>, spool: &Spool, next: &AtomicUsize) -> anyhow::Result<Sent> {
    let mut client = Client::new(target.address);
    let mut sent = Sent::default();
    let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "gzip")];
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= spool.len() {
            return Ok(sent);
        }
        let body = spool.read(number)?;
        let path = (target.path)(number);
        let mut tries = 0;
        loop {
            let started = Instant::now();
            let answer = client.post(&path, &headers, &body).context("sending")?;
            match answer.status {
                200 => {
                    refuse_partial(&answer.body)?;
                    sent.latencies.push(started.elapsed());
                    break;
                }
                429 | 503 if tries < MAX_RETRIES => {
                    tries += 1;
                    sent.retried += 1;
                    thread::sleep(Duration::from_millis(50));
                }
                status => bail!("the server answered {status}: {}", String::from_utf8_lossy(&answer.body)),
            }
        }
    }
}

/// An empty answer is full success; a partial success that rejected something would make every figure wrong.
fn refuse_partial(body: &[u8]) -> anyhow::Result<()> {
    // Field 1 is partial_success; inside it, field 1 is the count of what was rejected.
    if let [0x0a, length, inside @ ..] = body
        && *length > 0
        && inside.first() == Some(&0x08)
    {
        bail!("the server rejected part of a request: {}", String::from_utf8_lossy(inside));
    }
    Ok(())
}
