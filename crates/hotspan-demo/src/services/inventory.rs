//! `inventory`: stock, kept in shards by customer. Its problems: one shard answers late, and items are asked for one by one.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Answer, Request};
use crate::customers::Cart;
use crate::mesh::{Endpoint, Failure, Mesh, Service};
use crate::problems::Problem;
use crate::random::{below, chance, millis_between};
use crate::telemetry::{Kind, Span};

const RESERVE: Endpoint = Endpoint { service: Service::Inventory, method: "POST", route: "/v1/reservations" };
const STOCK: Endpoint = Endpoint { service: Service::Inventory, method: "GET", route: "/v1/stock" };
const SHARDS: u64 = 8;
const SLOW_SHARD: u64 = 3;

/// Reserves everything in a cart.
pub(super) fn reserve_remotely(request: &Request<'_>, cart: &Arc<Cart>) -> Answer<()> {
    let cart = Arc::clone(cart);
    request.mesh.call(request.span, RESERVE, move |mesh, span| {
        let shard = shard_of(&cart.customer);
        span.set("customer.id", cart.customer.as_str());
        span.set("shard", format!("shard-{shard}"));
        check_stock(mesh, span, &cart);
        reserve_stock(mesh, span, shard, cart.items.len())
    })
}

/// How many kinds of goods there are to show.
pub(super) fn ask_stock(request: &Request<'_>) -> Answer<usize> {
    request.mesh.call(request.span, STOCK, move |_mesh, span| {
        // A list for all customers comes from a copy that no shard holds up.
        span.set("shard", "replica");
        let mut query = database_span(span, "SELECT stock", "replica");
        thread::sleep(millis_between(1.0, 4.0));
        let rows = 10 + below(40) as usize;
        query.set("db.response.returned_rows", rows);
        Ok(rows)
    })
}

/// Whether there is enough of everything. The planted problem: one query for each item instead of one for all.
#[inline(never)]
fn check_stock(mesh: &Arc<Mesh>, span: &Span, cart: &Cart) {
    let batch = if mesh.problems().has(Problem::Queries) { 1 } else { cart.items.len().max(1) };
    for items in cart.items.chunks(batch) {
        let mut query = database_span(span, "SELECT stock", "replica");
        query.set("db.operation.batch.size", items.len());
        thread::sleep(millis_between(1.5, 4.0));
        query.set("db.response.returned_rows", items.len());
    }
}

#[inline(never)]
fn reserve_stock(mesh: &Arc<Mesh>, span: &Span, shard: u64, items: usize) -> Answer<()> {
    let name = format!("shard-{shard}");
    let mut query = database_span(span, "UPDATE stock", &name);
    query.set("db.operation.batch.size", items);
    if shard == SLOW_SHARD && mesh.problems().has(Problem::Shard) {
        let time = millis_between(300.0, 600.0);
        wait_for_shard(time);
        let lag = (time.as_secs_f64() * 2e3).into();
        query.event("replication lag", [("shard", name.into()), ("replication.lag_ms", lag)]);
    } else {
        wait_for_shard(millis_between(2.0, 7.0));
    }
    if chance(0.01) {
        let message = format!("shard-{shard} refused: too many connections");
        query.fail("too_many_connections", &message);
        return Err(Failure { status: 503, kind: "too_many_connections", message });
    }
    Ok(())
}

/// A shard's answer takes as long as it takes.
#[inline(never)]
fn wait_for_shard(time: Duration) {
    thread::sleep(time);
    // Something to do afterwards keeps this function on the stack meanwhile; something of its own keeps it from being merged
    // with functions that do the same.
    std::hint::black_box(("shard", time));
}

fn database_span(span: &Span, operation: &str, shard: &str) -> Span {
    let mut query = span.child(operation, Kind::Client);
    query.set("db.system.name", "postgresql");
    query.set("db.namespace", "inventory");
    query.set("db.query.summary", operation);
    query.set("shard", shard);
    query.set("server.address", format!("{shard}.inventory-db"));
    query
}

/// A customer's stock is always in the same shard.
fn shard_of(customer: &str) -> u64 {
    customer.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte))) % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: all customers of the shop.
    /// Guarantee: the slow shard has some of them, but far from most, so that it is a tail.
    #[test]
    fn the_slow_shard_is_a_tail() {
        let slow = (0..400).filter(|number| shard_of(&format!("c-{number:04}")) == SLOW_SHARD).count();
        assert!((20..100).contains(&slow), "{slow}");
    }
}
