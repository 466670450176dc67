//! Workloads in which there is nothing to find.

use hotspan_model::SpanKind::{Client, Server};

use super::clear::{begin, usual_work};
use super::workload::{Waits, Workshop};
use super::{Picked, Planted, Scenario};

fn scenario(name: &'static str, picked: Picked, make: fn(&mut Workshop<'_>, bool)) -> Scenario {
    let planted = Planted::Nothing;
    Scenario { name, planted, also: &[], is_ambiguous: false, picked, requests: 600, slow_share: 0.0, make }
}

const FUNCTIONS: [&str; 10] = [
    "main.a|a.go|1",
    "main.b|b.go|1",
    "main.c|c.go|1",
    "main.d|d.go|1",
    "main.e|e.go|1",
    "main.f|f.go|1",
    "main.g|g.go|1",
    "main.h|h.go|1",
    "main.i|i.go|1",
    "main.j|j.go|1",
];

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("a random split", Picked::Chance, |shop, _| {
            begin(shop);
            usual_work(shop);
        }),
        scenario("a random split with heavy tails", Picked::Chance, |shop, _| {
            begin(shop);
            usual_work(shop);
            let time = shop.spread(8.0, 1.2);
            shop.work(&["main.handleCheckout|checkout.go|41", "main.rare|rare.go|1"], time);
        }),
        scenario("a random split of calls", Picked::Chance, |shop, _| {
            shop.enter("checkout", "POST /api/checkout", Server);
            for _ in 0..5 {
                shop.enter("checkout", "GET item", Client);
                let time = shop.spread(8.0, 0.8);
                shop.gap(time);
                shop.leave();
            }
        }),
        scenario("slow by many small chances", Picked::Duration, |shop, _| {
            begin(shop);
            for function in FUNCTIONS {
                let time = shop.spread(12.0, 0.35);
                shop.work(&["main.handleCheckout|checkout.go|41", function], time);
            }
        }),
        scenario("slow for reasons nobody sees", Picked::Duration, |shop, _| {
            shop.waits = Waits::Unseen;
            begin(shop);
            usual_work(shop);
            let time = shop.spread(40.0, 0.8);
            shop.gap(time);
        }),
    ]
}
