//! Workloads whose cause stands out, once the right thing is looked at.

use hotspan_model::SpanKind::{Client, Internal, Server};

use super::workload::{Waits, Workshop};
use super::{Picked, Planted, Scenario};

fn scenario(name: &'static str, planted: Planted, make: fn(&mut Workshop<'_>, bool)) -> Scenario {
    Scenario {
        name,
        planted,
        also: &[],
        is_ambiguous: false,
        picked: Picked::Duration,
        requests: 900,
        slow_share: 0.08,
        make,
    }
}

/// The framework around a handler written in Go.
pub(super) const GO: [&str; 3] = [
    "net/http.(*conn).serve|/usr/local/go/src/net/http/server.go|2092",
    "net/http.HandlerFunc.ServeHTTP|/usr/local/go/src/net/http/server.go|2220",
    "main.handleCheckout|checkout.go|41",
];

pub(super) fn below<'f>(above: &[&'f str], frames: &[&'f str]) -> Vec<&'f str> {
    above.iter().chain(frames).copied().collect()
}

/// What every checkout does besides: some work of its own, and a query.
pub(super) fn usual_work(shop: &mut Workshop<'_>) {
    let (check, query, render) = (shop.about(6.0), shop.about(9.0), shop.about(8.0));
    shop.work(&below(&GO, &["main.checkCart|cart.go|17"]), check);
    shop.enter("checkout", "SELECT carts", Client);
    shop.wait(
        &below(&GO, &["database/sql.(*DB).Query|/usr/local/go/src/database/sql/sql.go|1", "internal/poll.(*FD).Read"]),
        query,
    );
    shop.leave();
    shop.work(
        &below(
            &GO,
            &[
                "main.renderPage|page.go|88",
                "html/template.(*Template).Execute|/usr/local/go/src/html/template/template.go|1",
            ],
        ),
        render,
    );
    let rest = shop.about(2.0);
    shop.gap(rest);
}

pub(super) fn begin(shop: &mut Workshop<'_>) {
    shop.enter("checkout", "POST /api/checkout", Server);
    let customer = format!("c-{}", shop.number() % 50);
    shop.text("customer.id", &customer);
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("JSON parsed on each request", Planted::Function("main.lookupTaxRate", "cpu"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            shop.enter("checkout", "calculateTax", Internal);
            let items = if slow { 12.0 } else { 1.0 };
            let parse = shop.about(7.0 * items);
            let tax = [
                "main.calculateTax|tax.go|90",
                "main.lookupTaxRate|tax.go|112",
                "encoding/json.Unmarshal|/usr/local/go/src/encoding/json/decode.go|96",
                "encoding/json.(*decodeState).object|/usr/local/go/src/encoding/json/decode.go|600",
            ];
            shop.work(&below(&GO, &tax), parse);
            let sum = shop.about(1.0);
            shop.work(&below(&GO, &tax[..1]), sum);
        }),
        scenario(
            "regular expression compiled on each call",
            Planted::Function("match_price_rule", "cpu"),
            |shop, slow| {
                shop.enter("pricing", "POST /prices", Server);
                let flask = [
                    "run_wsgi|/usr/lib/python3.12/site-packages/werkzeug/serving.py|370",
                    "dispatch|/usr/lib/python3.12/site-packages/flask/app.py|880",
                    "prices|/app/prices.py|20",
                ];
                let (load, answer) = (shop.about(12.0), shop.about(5.0));
                shop.work(&below(&flask, &["load_items|/app/prices.py|44"]), load);
                let calls = if slow { 60.0 } else { 3.0 };
                let compile = shop.about(1.2 * calls);
                shop.work(
                    &below(
                        &flask,
                        &[
                            "match_price_rule|/app/rules.py|31",
                            "compile|/usr/lib/python3.12/re/__init__.py|228",
                            "_compile|/usr/lib/python3.12/re/_compiler.py|760",
                        ],
                    ),
                    compile,
                );
                shop.work(&below(&flask, &["dumps|/usr/lib/python3.12/json/__init__.py|183"]), answer);
            },
        ),
        scenario("lock contention", Planted::Function("shop::orders::store_order", "lock"), |shop, slow| {
            shop.enter("order", "POST /v1/orders", Server);
            let own = ["std::thread::spawn", "shop::serve|src/main.rs|12"];
            let work = shop.about(8.0);
            shop.work(&below(&own, &["shop::orders::check|src/orders.rs|20"]), work);
            let held = if slow { shop.spread(220.0, 0.5) } else { shop.about(0.4) };
            let wait = [
                "shop::orders::store_order|src/orders.rs|61",
                "std::sync::Mutex::lock|/rustc/x/library/std/src/sync/mutex.rs|1",
                "futex_wait|/rustc/x/library/std/src/sys/futex.rs|1",
            ];
            shop.wait(&below(&own, &wait), held);
            let print = shop.about(4.0);
            shop.work(&below(&own, &["shop::orders::print_receipt|src/orders.rs|80"]), print);
        }),
        scenario("one query for each item", Planted::Operation("SELECT item", "downstream"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            let queries = if slow { 40 } else { 2 };
            for _ in 0..queries {
                shop.enter("checkout", "SELECT item", Client);
                let time = shop.about(2.5);
                shop.gap(time);
                shop.leave();
            }
        }),
        scenario("garbage collection", Planted::Function("main.buildReport", "gc"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            let build = ["main.buildReport|report.go|30"];
            let (rows, sort, join) = (shop.about(8.0), shop.about(6.0), shop.about(6.0));
            shop.work(&below(&GO, &[build[0], "main.readRows|report.go|51"]), rows);
            shop.work(&below(&GO, &[build[0], "main.sortRows|report.go|72"]), sort);
            shop.work(&below(&GO, &[build[0], "main.joinRows|report.go|95"]), join);
            // Whoever allocates helps to collect.
            let burden = if slow { 36.0 } else { 1.5 };
            for caller in [
                "main.readRows|report.go|55",
                "main.sortRows|report.go|76",
                "main.joinRows|report.go|99",
                "main.writeRows|report.go|120",
            ] {
                let time = shop.spread(burden, 0.4);
                shop.work(
                    &below(
                        &GO,
                        &[
                            build[0],
                            caller,
                            "runtime.mallocgc|/usr/local/go/src/runtime/malloc.go|1",
                            "runtime.gcAssistAlloc|/usr/local/go/src/runtime/mgcmark.go|1",
                        ],
                    ),
                    time,
                );
            }
        }),
        scenario("slow downstream", Planted::Operation("POST payments.example.com", "downstream"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            shop.enter("checkout", "POST payments.example.com", Client);
            let time = if slow { shop.spread(300.0, 0.4) } else { shop.about(15.0) };
            shop.gap(time);
            shop.leave();
        }),
        scenario("one slow shard", Planted::Operation("UPDATE stock", "downstream"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            shop.enter("checkout", "UPDATE stock", Client);
            let shard = if slow { 3 } else { [0, 1, 2, 4, 5, 6, 7][(shop.number() % 7) as usize] };
            shop.text("shard", &format!("shard-{shard}"));
            let time = if slow { shop.about(180.0) } else { shop.about(5.0) };
            shop.gap(time);
            shop.leave();
        }),
        Scenario {
            slow_share: 0.06,
            ..scenario(
                "cache missing for one customer",
                Planted::Function("main.recomputePrices", "cpu"),
                |shop, slow| {
                    shop.enter("checkout", "POST /api/checkout", Server);
                    let customer = if slow { "acme".to_owned() } else { format!("c-{}", shop.number() % 20) };
                    shop.text("customer.id", &customer);
                    usual_work(shop);
                    if slow {
                        let time = shop.about(90.0);
                        shop.work(
                            &below(&GO, &["main.priceOf|prices.go|12", "main.recomputePrices|prices.go|44"]),
                            time,
                        );
                    }
                },
            )
        },
        scenario("deep recursion", Planted::Function("walk_categories", "cpu"), |shop, slow| {
            shop.enter("catalog", "GET /categories", Server);
            let express =
                ["next|/app/node_modules/express/lib/router/index.js|1", "listCategories|/app/src/categories.js|10"];
            let read = shop.about(15.0);
            shop.work(&below(&express, &["readFilters|/app/src/filters.js|5"]), read);
            let deep = if slow { 14 } else { 2 };
            let mut frames = below(&express, &[]);
            frames.extend(std::iter::repeat_n("walk_categories|/app/src/categories.js|31", deep));
            let time = shop.about(if slow { 110.0 } else { 6.0 });
            shop.work(&frames, time);
        }),
        Scenario {
            picked: Picked::Truth,
            slow_share: 0.5,
            ..scenario(
                "regression in one version",
                Planted::Function("com.acme.shop.InvoiceRenderer.render", "cpu"),
                |shop, slow| {
                    shop.enter("invoice", "GET /invoice", Server);
                    shop.text("service.version", if slow { "2.4.0" } else { "2.3.9" });
                    let spring = [
                        "java.lang.Thread.run|Thread.java|1",
                        "org.springframework.web.servlet.DispatcherServlet.doDispatch|DispatcherServlet.java|1",
                        "com.acme.shop.InvoiceController.get|InvoiceController.java|33",
                    ];
                    let (load, map) = (shop.about(25.0), shop.about(15.0));
                    shop.work(
                        &below(&spring, &["com.acme.shop.InvoiceRepository.load|InvoiceRepository.java|19"]),
                        load,
                    );
                    shop.work(
                        &below(
                            &spring,
                            &["com.fasterxml.jackson.databind.ObjectMapper.writeValue|ObjectMapper.java|1"],
                        ),
                        map,
                    );
                    let time = shop.about(if slow { 26.0 } else { 20.0 });
                    shop.work(&below(&spring, &["com.acme.shop.InvoiceRenderer.render|InvoiceRenderer.java|77"]), time);
                },
            )
        },
        scenario("retries", Planted::Operation("GET rates.example.com", "downstream"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            let attempts = if slow { 4 } else { 1 };
            for attempt in 1..=attempts {
                shop.enter("checkout", "GET rates.example.com", Client);
                let time = shop.about(30.0);
                shop.gap(time);
                if attempt < attempts {
                    shop.fail();
                }
                shop.leave();
            }
        }),
        scenario("uneven fan-out", Planted::Operation("GET /search shard", "downstream"), |shop, slow| {
            shop.enter("search", "GET /search", Server);
            let work = shop.about(5.0);
            shop.work(&["main.search|search.go|10"], work);
            let (begin, mut end) = (shop.now(), shop.now());
            for shard in 0..8 {
                shop.at(begin);
                shop.enter("search", "GET /search shard", Client);
                shop.text("shard", &format!("s{shard}"));
                let time = shop.about(if slow && shard == 5 { 160.0 } else { 20.0 });
                shop.gap(time);
                end = end.max(shop.now());
                shop.leave();
            }
            shop.at(end);
            let merge = shop.about(4.0);
            shop.work(&["main.search|search.go|10", "main.mergeHits|search.go|60"], merge);
        }),
        scenario("large answers are written", Planted::Function("main.writeAnswer", "cpu"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            let time = shop.about(if slow { 130.0 } else { 6.0 });
            shop.work(
                &below(
                    &GO,
                    &[
                        "main.writeAnswer|answer.go|15",
                        "encoding/json.Marshal|/usr/local/go/src/encoding/json/encode.go|1",
                        "encoding/json.structEncoder.encode|/usr/local/go/src/encoding/json/encode.go|700",
                    ],
                ),
                time,
            );
        }),
        scenario("a file is written to a slow disk", Planted::Function("main.appendAudit", "io"), |shop, slow| {
            begin(shop);
            shop.waits = Waits::Events;
            usual_work(shop);
            let time = if slow { shop.spread(140.0, 0.5) } else { shop.about(3.0) };
            shop.wait(
                &below(
                    &GO,
                    &[
                        "main.appendAudit|audit.go|25",
                        "os.(*File).Sync|/usr/local/go/src/os/file_posix.go|1",
                        "internal/poll.(*FD).Fsync|/usr/local/go/src/internal/poll/fd.go|1",
                        "syscall.fdatasync",
                    ],
                ),
                time,
            );
        }),
        scenario(
            "waits for a monitor, wall clock only",
            Planted::Function("com.acme.shop.SessionStore.get", "lock"),
            |shop, slow| {
                shop.waits = Waits::Wall(20_000_000);
                shop.cpu_period = i64::MAX / 4;
                shop.enter("session", "GET /session", Server);
                let frame = [
                    "java.lang.Thread.run|Thread.java|1",
                    "com.acme.shop.SessionController.get|SessionController.java|21",
                ];
                let read = shop.about(30.0);
                shop.work(&below(&frame, &["com.acme.shop.SessionCodec.decode|SessionCodec.java|40"]), read);
                let time = if slow { shop.spread(250.0, 0.5) } else { shop.about(1.0) };
                shop.wait(
                    &below(
                        &frame,
                        &[
                            "com.acme.shop.SessionStore.get|SessionStore.java|55",
                            "ObjectMonitor::enter",
                            "__futex_abstimed_wait_common64",
                        ],
                    ),
                    time,
                );
            },
        ),
        scenario(
            "CPU in a called service",
            Planted::Function("inventory::stock::count_reserved", "cpu"),
            |shop, slow| {
                begin(shop);
                usual_work(shop);
                shop.enter("checkout", "POST inventory", Client);
                let go = shop.about(1.0);
                shop.gap(go);
                shop.enter("inventory", "POST /v1/reservations", Server);
                let (check, time) = (shop.about(6.0), shop.about(if slow { 120.0 } else { 8.0 }));
                shop.work(&["inventory::serve|src/main.rs|9", "inventory::stock::check|src/stock.rs|12"], check);
                shop.work(
                    &[
                        "inventory::serve|src/main.rs|9",
                        "inventory::stock::reserve|src/stock.rs|30",
                        "inventory::stock::count_reserved|src/stock.rs|52",
                    ],
                    time,
                );
                shop.leave();
                let back = shop.about(1.0);
                shop.gap(back);
                shop.leave();
            },
        ),
    ]
}
