//! The customers: a steady, bounded load.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hotspan_profiler::RuntimeStatistics;

use crate::customers::Cart;
use crate::mesh::Mesh;
use crate::random::{unit, until_next};
use crate::services::{Stores, checkout};

/// Requests that may be under way: more would only measure queues.
const MAX_UNDER_WAY: usize = 12;
/// Share of one core above which customers are turned away, so that a slow machine is not brought to its knees.
const CPU_CEILING: f64 = 0.45;
/// Slow checkouts that are remembered for the status.
const MAX_SLOW: usize = 20;
const SLOW: Duration = Duration::from_millis(200);

/// A checkout that took long.
#[derive(Debug, Clone)]
pub(crate) struct SlowCheckout {
    pub(crate) trace_id: String,
    pub(crate) duration: Duration,
    pub(crate) items: usize,
    pub(crate) at: Instant,
}

/// What the load has done so far.
#[derive(Debug, Default)]
pub(crate) struct LoadCounters {
    under_way: AtomicUsize,
    pub(crate) requests: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) turned_away: AtomicU64,
    slow: Mutex<VecDeque<SlowCheckout>>,
}

impl LoadCounters {
    /// Requests that have begun and not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// The last slow checkouts, the newest first.
    pub(crate) fn slow_checkouts(&self) -> Vec<SlowCheckout> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }

    fn remember(&self, checkout: SlowCheckout) {
        let mut slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        if slow.len() == MAX_SLOW {
            slow.pop_front();
        }
        slow.push_back(checkout);
    }
}

/// What a customer does.
#[derive(Debug, Clone, Copy)]
enum Visit {
    Buy,
    ShowCart,
    ListProducts,
}

impl Visit {
    fn random() -> Visit {
        match unit() {
            share if share < 0.45 => Visit::Buy,
            share if share < 0.65 => Visit::ShowCart,
            _ => Visit::ListProducts,
        }
    }
}

/// Lets customers come until `stop`.
pub(crate) fn run(
    mesh: &Arc<Mesh>,
    stores: &Arc<Stores>,
    counters: &Arc<LoadCounters>,
    per_second: f64,
    stop: &AtomicBool,
) {
    // A reseller comes first, so that there is something to look at as soon as the page opens.
    begin(mesh, stores, counters, Visit::Buy, Cart::of_reseller());
    let mut cpu = CpuMeter::new();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(until_next(per_second));
        if counters.under_way() >= MAX_UNDER_WAY || cpu.share() > CPU_CEILING {
            counters.turned_away.fetch_add(1, Ordering::Relaxed);
        } else {
            begin(mesh, stores, counters, Visit::random(), Cart::random());
        }
    }
}

fn begin(mesh: &Arc<Mesh>, stores: &Arc<Stores>, counters: &Arc<LoadCounters>, visit: Visit, cart: Cart) {
    let (stores, counters, cart) = (Arc::clone(stores), Arc::clone(counters), Arc::new(cart));
    counters.under_way.fetch_add(1, Ordering::Relaxed);
    let endpoint = match visit {
        Visit::Buy => checkout::BUY,
        Visit::ShowCart => checkout::CART,
        Visit::ListProducts => checkout::PRODUCTS,
    };
    mesh.enter(endpoint, move |mesh, span| {
        let result = match visit {
            Visit::Buy => checkout::buy(mesh, &stores, span, &cart),
            Visit::ShowCart => checkout::show_cart(mesh, &stores, span, &cart),
            Visit::ListProducts => checkout::list_products(mesh, &stores, span, &cart),
        };
        counters.requests.fetch_add(1, Ordering::Relaxed);
        counters.failures.fetch_add(u64::from(result.is_err()), Ordering::Relaxed);
        counters.under_way.fetch_sub(1, Ordering::Relaxed);
        let duration = span.elapsed();
        let is_reseller = cart.tier == "reseller";
        // A reseller's cart counts as slow even when all is fixed: that is what before and after are compared by.
        if matches!(visit, Visit::Buy) && result.is_ok() && (duration >= SLOW || is_reseller) {
            let items = cart.items.len();
            counters.remember(SlowCheckout { trace_id: span.trace_id_text(), duration, items, at: Instant::now() });
        }
        result
    });
}

/// The process's use of CPU over the last seconds.
#[derive(Debug)]
struct CpuMeter {
    since: Instant,
    cpu: Duration,
    share: f64,
}

impl CpuMeter {
    fn new() -> CpuMeter {
        CpuMeter { since: Instant::now(), cpu: RuntimeStatistics::now().cpu, share: 0.0 }
    }

    /// In cores, smoothed over about five seconds.
    fn share(&mut self) -> f64 {
        let elapsed = self.since.elapsed();
        if elapsed >= Duration::from_secs(1) {
            let cpu = RuntimeStatistics::now().cpu;
            let now = cpu.saturating_sub(self.cpu).as_secs_f64() / elapsed.as_secs_f64();
            let weight = (elapsed.as_secs_f64() / 5.0).min(1.0);
            self.share += (now - self.share) * weight;
            (self.since, self.cpu) = (Instant::now(), cpu);
        }
        self.share
    }
}
