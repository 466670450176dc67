//! Times a question: cold, as the first one after a start of the server, and then again and again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::http::{Answer, Client};
use crate::process::Process;
use crate::server::Launch;

/// How to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) path: String,
    /// A JSON body makes it a POST.
    pub(crate) body: Option<String>,
}

impl Call {
    pub(crate) fn get(path: String) -> Self {
        Self { path, body: None }
    }

    fn make(&self, client: &mut Client) -> anyhow::Result<Answer> {
        match &self.body {
            None => client.get(&self.path),
            Some(body) => client.post(&self.path, &[("Content-Type", "application/json")], body.as_bytes()),
        }
    }
}

/// What asking took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Timing {
    /// The server does not have this question yet.
    NotAvailable(u16),
    /// The answer was not the right one.
    Wrong(String),
    /// The answers were right.
    Right(Times),
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Times {
    /// The first call after a start of the server, the median of several starts.
    pub(crate) cold: Duration,
    /// Median of the others.
    pub(crate) warm: Duration,
    /// The server's CPU for one of the others, on average.
    pub(crate) warm_cpu: Duration,
}

/// A slow question is not asked for longer than this, once it was asked three times.
const LONGEST: Duration = Duration::from_secs(10);

/// Reading ahead after a start ends sooner.
const LONGEST_WARM_UP: Duration = Duration::from_secs(10);

/// Starts whose first call is timed: a single one says as much of the machine as of the server.
const COLD_STARTS: usize = 5;

/// Asks a freshly started server, and says how long the slowest start took. Calls differ where there are several, so that
/// nothing but the data is warm.
pub(crate) fn measure(
    launch: &Launch,
    repeats: usize,
    calls: &[(Call, Check<'_>)],
) -> anyhow::Result<(Timing, Duration)> {
    let (mut slowest_start, mut first_calls) = (Duration::ZERO, Vec::with_capacity(COLD_STARTS));
    loop {
        let is_last = first_calls.len() + 1 == COLD_STARTS;
        let server = launch.start()?;
        slowest_start = slowest_start.max(server.ready_after);
        let timing = ask(server.answering(), if is_last { repeats } else { 0 }, calls)?;
        server.stop()?;
        let Timing::Right(times) = timing else { return Ok((timing, slowest_start)) };
        first_calls.push(times.cold);
        if is_last {
            first_calls.sort_unstable();
            return Ok((Timing::Right(Times { cold: first_calls[COLD_STARTS / 2], ..times }), slowest_start));
        }
    }
}

/// A server that has run for some seconds has read ahead: that is what warm means.
fn wait_until_warm(client: &mut Client) -> anyhow::Result<()> {
    let started = Instant::now();
    while started.elapsed() < LONGEST_WARM_UP {
        let metrics = client.get("/metrics")?;
        if !String::from_utf8_lossy(&metrics.body).contains("\nhotspan_warm_up_running 1\n") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Says what is wrong with an answer, if anything.
pub(crate) type Check<'e> = Box<dyn Fn(&[u8]) -> Result<(), String> + 'e>;

/// Who is asked: Hotspan or a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answering {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

pub(crate) fn ask(server: Answering, repeats: usize, calls: &[(Call, Check<'_>)]) -> anyhow::Result<Timing> {
    let mut client = Client::new(server.address);
    // The connection is not part of the question.
    client.get("/ready")?;
    let mut cold = Duration::ZERO;
    let mut times = Vec::with_capacity(repeats);
    let mut bodies = Vec::with_capacity(repeats);
    let mut before = server.process.usage()?;
    let started = Instant::now();
    for (number, (call, check)) in calls.iter().cycle().take(repeats + 1).enumerate() {
        let asked = Instant::now();
        let answer = call.make(&mut client)?;
        let took = asked.elapsed();
        match answer.status {
            200 => {}
            404 | 405 | 501 => return Ok(Timing::NotAvailable(answer.status)),
            status => {
                let text = String::from_utf8_lossy(&answer.body);
                let text: String = text.chars().take(200).collect();
                return Ok(Timing::Wrong(format!("{status} for {}: {text}", call.path)));
            }
        }
        if number == 0 {
            if let Err(wrong) = check(&answer.body) {
                return Ok(Timing::Wrong(format!("{wrong}; asked {}", call.path)));
            }
            cold = took;
            if repeats > 0 {
                wait_until_warm(&mut client)?;
            }
            before = server.process.usage()?;
        } else {
            times.push(took);
            bodies.push((number, answer.body));
        }
        if times.len() >= 3 && started.elapsed() > LONGEST {
            break;
        }
    }
    let used = server.process.usage()?.cpu.saturating_sub(before.cpu);
    // Checked afterwards, so that our own parsing takes no CPU from the server.
    for (number, body) in &bodies {
        let (call, check) = &calls[number % calls.len()];
        if let Err(wrong) = check(body) {
            return Ok(Timing::Wrong(format!("{wrong}; asked {}", call.path)));
        }
    }
    times.sort_unstable();
    let warm = times.get(times.len() / 2).copied().unwrap_or(cold);
    let warm_cpu = used / (times.len().max(1) as u32);
    Ok(Timing::Right(Times { cold, warm, warm_cpu }))
}
