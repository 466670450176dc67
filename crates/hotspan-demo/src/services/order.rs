//! `order`: the order book. Its problems: a report holds the book's lock while it works and waits, and receipts are copied
//! again and again.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hotspan_profiler::sync::Mutex;

use super::cost::times_costing;
use super::{Answer, Request, Stores};
use crate::customers::Cart;
use crate::mesh::{Endpoint, Mesh, Service};
use crate::problems::Problem;
use crate::random::millis_between;
use crate::telemetry::{Kind, Span};

const ORDERS: Endpoint = Endpoint { service: Service::Order, method: "POST", route: "/v1/orders" };
/// Orders that the book remembers.
const MAX_ORDERS: usize = 2_000;
/// Time from one report to the next.
pub(crate) const REPORT_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
struct Order {
    customer: String,
    cents: u64,
}

/// All orders, behind one lock.
#[derive(Debug, Default)]
pub(crate) struct OrderBook {
    orders: Mutex<VecDeque<Order>>,
}

/// Places an order; answers with its number.
pub(super) fn place_remotely(request: &Request<'_>, cart: &Arc<Cart>, cents: u64) -> Answer<usize> {
    let (stores, cart) = (Arc::clone(request.stores), Arc::clone(cart));
    request.mesh.call(request.span, ORDERS, move |mesh, span| {
        span.set("customer.id", cart.customer.as_str());
        let number = store_order(&stores.orders, span, Order { customer: cart.customer.clone(), cents });
        span.set("order.number", number);
        print_receipt(&stores.receipts, &cart, mesh.problems().has(Problem::Memory));
        Ok(number)
    })
}

#[inline(never)]
fn store_order(book: &OrderBook, span: &Span, order: Order) -> usize {
    let mut inner = span.child("store_order", Kind::Internal);
    let asked = Instant::now();
    let mut orders = book.orders.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = asked.elapsed();
    inner.set("lock.wait_ms", waited.as_secs_f64() * 1e3);
    if waited > Duration::from_millis(50) {
        inner.event("waited for the order book", [("lock.wait_ms", (waited.as_secs_f64() * 1e3).into())]);
    }
    orders.push_back(order);
    if orders.len() > MAX_ORDERS {
        orders.pop_front();
    }
    orders.len()
}

/// What copying the receipt of a large cart is to cost.
const COPY_COST: Duration = Duration::from_millis(200);
/// Lines of such a receipt.
const LARGE_RECEIPT: usize = 70;

/// Prints receipts, in as many layouts as the problem takes to be felt.
#[derive(Debug)]
pub(super) struct ReceiptPrinter {
    layouts: usize,
}

impl ReceiptPrinter {
    pub(super) fn open() -> ReceiptPrinter {
        let lines: Vec<String> =
            (0..LARGE_RECEIPT).map(|number| format!("BO-{number:05}   2 x   {number:>8}")).collect();
        let times = times_costing(COPY_COST, || {
            std::hint::black_box(copy_receipt(&lines));
        });
        ReceiptPrinter { layouts: times as usize }
    }
}

/// Some honest work for each order. The planted problem: for each line that is added the receipt is copied.
#[inline(never)]
fn print_receipt(printer: &ReceiptPrinter, cart: &Cart, copies: bool) {
    let lines: Vec<String> =
        cart.items.iter().map(|item| format!("{:<12}{:>4} x {:>8}", item.sku, item.quantity, item.cents)).collect();
    if copies {
        (0..printer.layouts).for_each(|_| drop(std::hint::black_box(copy_receipt(&lines))));
    }
    std::hint::black_box(lines.join("\n"));
    thread::sleep(millis_between(1.0, 3.0));
}

#[inline(never)]
fn copy_receipt(lines: &[String]) -> Vec<String> {
    let mut receipt: Vec<String> = Vec::new();
    for line in lines {
        let mut longer = receipt.clone();
        longer.push(line.clone());
        receipt = longer;
    }
    receipt
}

/// The background job: sums up the book. The planted problem: it keeps the lock until its report is written.
#[inline(never)]
pub(crate) fn write_report(mesh: &Mesh, stores: &Stores) {
    let mut span = mesh.begin_job(Service::Order, "write_report");
    let held = stores.orders.orders.lock().unwrap_or_else(PoisonError::into_inner);
    let keeps_lock = mesh.problems().has(Problem::Lock);
    let orders: Vec<Order> = held.iter().cloned().collect();
    let held = keeps_lock.then_some(held);
    span.set("report.orders", orders.len());
    span.set("report.keeps_lock", keeps_lock);
    sum_by_customer(&orders);
    // The report goes to a slow disk.
    thread::sleep(millis_between(150.0, 400.0));
    drop(held);
}

#[inline(never)]
fn sum_by_customer(orders: &[Order]) {
    let mut sums = std::collections::BTreeMap::<&str, u64>::new();
    for order in orders {
        *sums.entry(&order.customer).or_default() += order.cents;
    }
    std::hint::black_box(sums);
}
