//! Workloads with several causes at once, as real services have them: the largest must be first, and none may be missing.

use hotspan_model::SpanKind::{Client, Internal, Server};

use super::workload::{Waits, Workshop};
use super::{Picked, Planted, Scenario};

fn scenario(
    name: &'static str,
    planted: Planted,
    also: &'static [Planted],
    make: fn(&mut Workshop<'_>, bool),
) -> Scenario {
    let (picked, requests, slow_share) = (Picked::Duration, 900, 0.05);
    Scenario { name, planted, also, is_ambiguous: true, picked, requests, slow_share, make }
}

const RATES: [&str; 4] = [
    "tax::serve|src/main.rs|7",
    "tax::calculate_tax|src/tax.rs|30",
    "tax::lookup_tax_rate|src/tax.rs|40",
    "serde_json::de::from_str|/root/.cargo/registry/src/x/serde_json-1/src/de.rs|1",
];
const RULES: [&str; 4] = [
    "discount::serve|src/main.rs|7",
    "discount::apply_price_rules|src/rules.rs|12",
    "discount::compile_rule|src/rules.rs|44",
    "regex::builders::Builder::build|/root/.cargo/registry/src/x/regex-1/src/builders.rs|1",
];
const SHARD: [&str; 4] = [
    "inventory::serve|src/main.rs|7",
    "inventory::reserve|src/stock.rs|22",
    "inventory::wait_for_shard|src/stock.rs|60",
    "clock_nanosleep",
];
const ORDER: [&str; 4] = [
    "order::serve|src/main.rs|7",
    "order::store_order|src/book.rs|31",
    "std::sys::sync::mutex::futex::Mutex::lock_contended|/rustc/x/library/std/src/sys/sync/mutex/futex.rs|1",
    "syscall",
];

/// A call from the checkout into another service, and one span inside it.
fn called(shop: &mut Workshop<'_>, service: &str, inner: &str, role: hotspan_model::SpanKind) {
    shop.enter("checkout", &format!("POST {service}"), Client);
    shop.gap(0.3);
    shop.enter(service, &format!("POST /v1/{service}"), Server);
    shop.enter(service, inner, role);
}

fn answered(shop: &mut Workshop<'_>) {
    shop.leave();
    shop.leave();
    shop.gap(0.3);
    shop.leave();
}

/// A checkout of a shop; `tax` and `rules` in milliseconds, `shard` and `lock` likewise.
fn checkout(shop: &mut Workshop<'_>, [tax, rules, shard, lock]: [f64; 4]) {
    shop.waits = Waits::Wall(20_000_000);
    shop.enter("checkout", "POST /api/checkout", Server);
    let (tax, rules, shard, lock) = (shop.about(tax), shop.about(rules), shop.about(shard), shop.about(lock));
    called(shop, "inventory", "UPDATE stock", Client);
    shop.wait(&SHARD, shard);
    answered(shop);
    called(shop, "discount", "apply_price_rules", Internal);
    shop.work(&RULES, rules);
    answered(shop);
    called(shop, "tax", "calculate_tax", Internal);
    shop.work(&RATES, tax);
    answered(shop);
    called(shop, "order", "store_order", Internal);
    shop.wait(&ORDER, lock);
    answered(shop);
    let pay = shop.about(15.0);
    shop.enter("checkout", "POST payments", Client);
    shop.gap(pay);
    shop.leave();
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(
            "a large cart is dear to two services",
            Planted::Function("tax::lookup_tax_rate", "cpu"),
            &[Planted::Function("discount::compile_rule", "cpu")],
            |shop, is_large| checkout(shop, if is_large { [500.0, 90.0, 4.0, 1.0] } else { [12.0, 3.0, 4.0, 1.0] }),
        ),
        scenario(
            "four causes in different requests",
            Planted::Function("tax::lookup_tax_rate", "cpu"),
            &[
                Planted::Function("discount::compile_rule", "cpu"),
                Planted::Function("inventory::wait_for_shard", "downstream"),
                Planted::Function("order::store_order", "lock"),
            ],
            |shop, is_large| {
                let shard = if shop.chance(0.03) { 450.0 } else { 4.0 };
                let lock = if shop.chance(0.025) { 300.0 } else { 1.0 };
                let [tax, rules] = if is_large { [600.0, 100.0] } else { [12.0, 3.0] };
                checkout(shop, [tax, rules, shard, lock]);
            },
        ),
    ]
}
