//! `hotspan demo`: the server, and a small shop that sends to it.
//!
//! The shop is a child process, so that its profiles hold the shop and nothing of the server. It lives as long as its
//! standard input is open: when this process ends, however it ends, so does the shop.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use hotspan_demo::{Control, Problem, Scenario, ShopOptions};
use hotspan_server::{Address, BoundListener, Settings};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::config::{DEMO_STORE, DemoFlags, load};
use crate::logging;
use crate::screen::say;
use crate::serve::LEFT_BEHIND;

/// How long the shop may take to send what it has left.
const SHOP_GRACE: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    flags: DemoFlags,
    /// The problems: mix (tax, regex, shard and lock), all, none, or names with commas between; switches the demo that runs
    /// on this store, or else is what the one that is started begins with [default: mix]
    #[arg(long, value_name = "NAMES")]
    scenario: Option<Scenario>,
    /// Requests per second
    #[arg(long, value_name = "N", default_value = "6", value_parser = rate)]
    rate: f64,
    /// Fix a problem, likewise
    #[arg(long, value_name = "NAME")]
    fix: Vec<Problem>,
    /// Bring a problem back, likewise
    #[arg(long = "break", value_name = "NAME")]
    broken: Vec<Problem>,
    /// List the problems that can be planted
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShopArguments {
    /// The server that gets spans and profiles
    #[arg(long)]
    server: String,
    /// The server's store
    #[arg(long)]
    store: PathBuf,
    /// Problems to begin with
    #[arg(long)]
    scenario: Scenario,
    /// Requests per second
    #[arg(long, value_parser = rate)]
    rate: f64,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.1..=100.0).contains(rate));
    rate.ok_or_else(|| format!("{text:?} is not a rate; use a number of requests per second from 0.1 to 100"))
}

/// Runs the demo until it is told to stop, or switches the one that runs.
pub(crate) fn run(arguments: DemoArguments) -> anyhow::Result<()> {
    if arguments.list {
        list_problems();
        return Ok(());
    }
    let loaded = load(&arguments.flags.into())?;
    let mut settings = loaded.config.settings;
    settings.source = settings.source.or_else(checkout);
    let switches = switches(arguments.scenario.as_ref(), &arguments.fix, &arguments.broken);
    if let Ok(running) = Control::of_store(&settings.store) {
        anyhow::ensure!(
            !switches.is_empty(),
            "a demo runs on the store {} already; switch its problems with --scenario, --fix or --break, or start \
             another with --store DIR",
            settings.store.display()
        );
        return switch_running(&running, &switches);
    }
    let changes_one = !(arguments.fix.is_empty() && arguments.broken.is_empty());
    if let (true, Address::At(address)) = (changes_one, &settings.http) {
        anyhow::ensure!(
            !is_taken(address),
            "no demo runs on the store {}, but something listens on {address}; give the --store of the running demo",
            settings.store.display()
        );
    }
    let scenario = switches.into_iter().fold(Scenario::default(), |scenario, (problem, present)| {
        if present { scenario.with(problem) } else { scenario.without(problem) }
    });
    logging::start(&settings.log);
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve_with_shop(settings, scenario, arguments.rate));
    runtime.shutdown_timeout(LEFT_BEHIND);
    served
}

/// What the flags ask for, later ones over earlier ones: which problems are to be present.
fn switches(scenario: Option<&Scenario>, fix: &[Problem], broken: &[Problem]) -> Vec<(Problem, bool)> {
    let of_scenario = scenario.into_iter().flat_map(|scenario| {
        Problem::ALL.into_iter().map(move |problem| (problem, scenario.problems().contains(&problem)))
    });
    let fixed = fix.iter().map(|problem| (*problem, false));
    of_scenario.chain(fixed).chain(broken.iter().map(|problem| (*problem, true))).collect()
}

/// Whether somebody answers there.
fn is_taken(address: &str) -> bool {
    !address.ends_with(":0") && std::net::TcpStream::connect(address).is_ok()
}

/// The shop's process: until standard input ends or the server is gone.
pub(crate) fn run_shop(arguments: ShopArguments) -> anyhow::Result<()> {
    crate::allocator::profile_the_heap();
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
        // Nothing is ever written to it: reading returns when the parent closes it or is gone.
        let _ = std::io::stdin().read(&mut [0]);
        ended.store(true, Ordering::Relaxed);
    })?;
    let ShopArguments { server, store, scenario, rate } = arguments;
    hotspan_demo::run_shop(&ShopOptions { server, store, scenario, rate }, &stop)
}

/// The working folder, if it is a checkout of Hotspan: then the lines of the shop's code can be shown.
fn checkout() -> Option<PathBuf> {
    Path::new("crates/hotspan-demo/src").is_dir().then(|| PathBuf::from("."))
}

async fn serve_with_shop(settings: Settings, scenario: Scenario, rate: f64) -> anyhow::Result<()> {
    anyhow::ensure!(settings.http != Address::Off, "the demo needs its page; leave --http on");
    crate::allocator::keep_freed_memory_for_a_while();
    let store = settings.store.clone();
    let stop_server = CancellationToken::new();
    let (announce, announced) = oneshot::channel();
    let mut server =
        tokio::spawn(hotspan_server::serve(settings, stop_server.clone(), move |bound: &[BoundListener]| {
            // Nobody listens only if this process is ending.
            let _ = announce.send(bound.to_vec());
        }));
    let Ok(bound) = announced.await else {
        return server.await?;
    };
    let page = bound.first().map(|listener| reachable(listener.address)).context("the server has no page")?;
    if !wait_until_ready(page, &mut server).await {
        return server.await?;
    }
    let mut shop = start_shop(page, &store, &scenario, rate)?;
    introduce(&bound, page, &scenario, rate, &store);
    let first_slow = tokio::spawn(point_at_slow_checkout(store.clone(), page));
    let shop_ended = tokio::select! {
        () = stop_signal() => None,
        ended = shop.ended() => Some(ended?),
        result = &mut server => return result?,
    };
    first_slow.abort();
    say("\nStopping; the shop sends what it has left. Ctrl-C again stops at once.");
    tokio::select! {
        () = stop_both(shop, shop_ended, &stop_server) => {}
        () = stop_signal() => stop_server.cancel(),
    }
    server.await??;
    say(&format!("The store in {}. Remove the folder to begin anew.", disk_use(&store)));
    match shop_ended {
        Some(status) if !status.success() => anyhow::bail!("the shop ended: {status}"),
        _ => Ok(()),
    }
}

/// The shop first, so that the server still takes what it has left.
async fn stop_both(mut shop: Shop, ended: Option<ExitStatus>, server: &CancellationToken) {
    if ended.is_none() {
        drop(shop.child.stdin.take());
        if tokio::time::timeout(SHOP_GRACE, shop.ended()).await.is_err() {
            warn!("the shop did not end in time and was killed");
        }
    }
    drop(shop);
    server.cancel();
}

fn start_shop(server: SocketAddr, store: &Path, scenario: &Scenario, rate: f64) -> anyhow::Result<Shop> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let child = Command::new(program)
        .arg("demo-shop")
        .args(["--server", &server.to_string(), "--scenario", &scenario.to_string(), "--rate", &rate.to_string()])
        .arg("--store")
        .arg(store)
        .stdin(Stdio::piped())
        // Ctrl-C is for this process, which then ends the shop in order.
        .process_group(0)
        .spawn()
        .context("cannot start the shop")?;
    Ok(Shop { child })
}

/// The shop's process. It is killed when dropped, should it still run.
struct Shop {
    child: Child,
}

impl Shop {
    /// Waits until it has ended by itself.
    async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a listener on all interfaces is reached from here.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    address
}

/// Names a slow request as soon as there is one, for those who like to begin at the end.
async fn point_at_slow_checkout(store: PathBuf, page: SocketAddr) {
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let store = store.clone();
        let status = tokio::task::spawn_blocking(move || Control::of_store(&store)?.status()).await;
        let Ok(Ok(status)) = status else { continue };
        let slow = status["slow_checkouts"].as_array().into_iter().flatten().find(|slow| {
            // Old enough for its spans and samples to be in the store.
            slow["age_ms"].as_u64() >= Some(4_000)
        });
        if let Some((trace_id, time)) = slow.and_then(|slow| Some((slow["trace_id"].as_str()?, &slow["duration_ms"]))) {
            say(&format!("  A checkout that took {time} ms:  http://{page}/#/trace/{trace_id}\n"));
            return;
        }
    }
}

/// False if the server ended instead of becoming ready.
async fn wait_until_ready(page: SocketAddr, server: &mut tokio::task::JoinHandle<anyhow::Result<()>>) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    while !server.is_finished() {
        if let Ok(mut stream) = tokio::net::TcpStream::connect(page).await {
            let mut answer = Vec::new();
            let asked = stream.write_all(b"GET /ready HTTP/1.1\r\nhost: demo\r\nconnection: close\r\n\r\n").await;
            if asked.is_ok() && stream.read_to_end(&mut answer).await.is_ok() && answer.starts_with(b"HTTP/1.1 200") {
                return true;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

fn switch_running(running: &Control, switches: &[(Problem, bool)]) -> anyhow::Result<()> {
    for (problem, present) in switches {
        if running.status()?["problems"][problem.name()] == *present {
            say(&format!("{problem} is {} already", if *present { "there" } else { "fixed" }));
            continue;
        }
        let status = running.switch(*problem, *present)?;
        let has_problem = |other: &Problem| status["problems"][other.name()] == true;
        let is_broken = Problem::ALL.iter().any(|other| other.service() == problem.service() && has_problem(other));
        let word = if *present { "broken again" } else { "fixed" };
        let version = if is_broken { "1.4.0" } else { "1.4.1" };
        say(&format!(
            "{problem} is {word} in the running demo: {} is {version} from now on; compare the time before and after",
            problem.service()
        ));
    }
    Ok(())
}

/// Addresses first, one a line as `serve` prints them; then what a person wants to know.
fn introduce(bound: &[BoundListener], page: SocketAddr, scenario: &Scenario, rate: f64, store: &Path) {
    for listener in bound {
        say(&format!("{} {}", listener.role.name(), listener.address));
    }
    say(&format!("\n  Hotspan:  http://{page}\n"));
    say(&format!(
        "  A shop of five services gets {rate} requests a second. Some POST /api/checkout take a second: why?"
    ));
    for problem in scenario.problems() {
        say(&format!("    {:<8} {}", problem.name(), problem.explanation()));
    }
    let example = scenario.problems().first().copied().unwrap_or(Problem::ALL[0]);
    let (word, opposite) = if scenario.problems().is_empty() { ("break", "fix") } else { ("fix", "break") };
    say(&format!(
        "\n  In another terminal: {} --{word} {example} (or --{opposite} {example}), then compare.",
        own_command(store)
    ));
    say(&format!("  The store in {}. Ctrl-C stops all of it.\n", disk_use(store)));
}

/// How this demo is addressed from another terminal in the same folder.
fn own_command(store: &Path) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "hotspan".to_owned());
    let is_usual = store == Path::new(DEMO_STORE);
    if is_usual { format!("{program} demo") } else { format!("{program} demo --store {}", store.display()) }
}

/// "FOLDER holds 12.3 MB".
fn disk_use(store: &Path) -> String {
    format!("{} holds {:.1} MB", store.display(), bytes_in(store) as f64 / 1e6)
}

fn list_problems() {
    for problem in Problem::ALL {
        say(&format!("{:<8} {:<10} {}", problem.name(), problem.service(), problem.explanation()));
    }
    say(
        "\n--scenario mix (the first four), all, none, or names with commas between; --fix NAME and --break NAME switch the running demo.",
    );
}

fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
