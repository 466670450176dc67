//! The shop as a whole: services, load, telemetry and control, from start to a clean stop.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::control::{self, Controlled};
use crate::load::{self, LoadCounters};
use crate::mesh::{self, Mesh};
use crate::problems::{Problems, Scenario};
use crate::services::{Stores, order};
use crate::telemetry::export::{INTERVAL, SpanExporter};
use crate::telemetry::{SpanQueue, profiles};

/// How long requests under way may take when the shop closes.
const CLOSING_TIME: Duration = Duration::from_secs(3);

/// What a shop is started with.
#[derive(Debug, Clone)]
pub struct ShopOptions {
    /// The server that gets spans and profiles: `host:port` with OTLP over HTTP.
    pub server: String,
    /// The store's folder, where the control endpoint's address is written.
    pub store: PathBuf,
    /// The problems at the start.
    pub scenario: Scenario,
    /// Requests per second.
    pub rate: f64,
}

/// Runs the shop until `stop` is set or the server has been gone for a while; then sends what is left.
///
/// # Errors
/// If a thread, the profiler or the control endpoint can't be had.
pub fn run_shop(options: &ShopOptions, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let problems = Arc::new(Problems::new(&options.scenario));
    let spans = Arc::new(SpanQueue::default());
    let counters = Arc::new(LoadCounters::default());
    let stores = Stores::open();
    let mesh = Mesh::start(Arc::clone(&problems), Arc::clone(&spans)).context("cannot start the shop's threads")?;
    let of_problems = Arc::clone(&problems);
    let profiler = profiles::start(&options.server, move |service| mesh::release_of(&of_problems, service))
        .context("cannot start the profiler")?;
    // Shared with the control endpoint, taken out of it at the end.
    let profiler = Arc::new(Mutex::new(Some(profiler)));
    let to_flush = Arc::clone(&profiler);
    let controlled = Controlled {
        problems,
        counters: Arc::clone(&counters),
        spans: Arc::clone(&spans),
        before_switch: Box::new(move || {
            if let Some(profiler) = &*to_flush.lock().unwrap_or_else(PoisonError::into_inner) {
                profiler.flush();
            }
        }),
    };
    let control_file = control::start(&options.store, controlled).context("cannot open the control endpoint")?;
    let closing = Arc::new(AtomicBool::new(false));
    start_load(&mesh, &stores, &counters, options.rate, &closing)?;
    start_reports(&mesh, &stores, &closing)?;

    let mut exporter = SpanExporter::new(&options.server);
    while !stop.load(Ordering::Relaxed) && !exporter.server_is_gone() {
        thread::sleep(INTERVAL);
        exporter.export(&spans);
    }
    closing.store(true, Ordering::Relaxed);
    drop(control_file);
    let deadline = Instant::now() + CLOSING_TIME;
    while counters.under_way() > 0 && Instant::now() < deadline && !exporter.server_is_gone() {
        thread::sleep(Duration::from_millis(20));
    }
    exporter.export(&spans);
    // Dropping it sends what was sampled last.
    drop(profiler.lock().unwrap_or_else(PoisonError::into_inner).take());
    Ok(())
}

fn start_load(
    mesh: &Arc<Mesh>,
    stores: &Arc<Stores>,
    counters: &Arc<LoadCounters>,
    rate: f64,
    closing: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let (mesh, stores, counters, closing) =
        (Arc::clone(mesh), Arc::clone(stores), Arc::clone(counters), Arc::clone(closing));
    let run = move || load::run(&mesh, &stores, &counters, rate, &closing);
    thread::Builder::new().name("load".to_owned()).spawn(run).context("cannot start the load")?;
    Ok(())
}

fn start_reports(mesh: &Arc<Mesh>, stores: &Arc<Stores>, closing: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let (mesh, stores, closing) = (Arc::clone(mesh), Arc::clone(stores), Arc::clone(closing));
    let run = move || {
        while !closing.load(Ordering::Relaxed) {
            thread::sleep(order::REPORT_INTERVAL);
            order::write_report(&mesh, &stores);
        }
    };
    thread::Builder::new().name("order-report".to_owned()).spawn(run).context("cannot start the reports")?;
    Ok(())
}
