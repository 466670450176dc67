//! Workloads in which something else looks like the cause: more of it is seen, it is nearer to the root, or it differs
//! too, but does not delay the answer.

use hotspan_model::SpanKind::{Client, Internal, Server};

use super::clear::{GO, begin, below, usual_work};
use super::workload::{Waits, Workshop};
use super::{Picked, Planted, Scenario};

fn scenario(name: &'static str, planted: Planted, make: fn(&mut Workshop<'_>, bool)) -> Scenario {
    Scenario {
        name,
        planted,
        also: &[],
        is_ambiguous: true,
        picked: Picked::Duration,
        requests: 900,
        slow_share: 0.08,
        make,
    }
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            also: &[Planted::Function("main.readRates", "cpu")],
            ..scenario("two causes, the larger first", Planted::Function("main.reserve", "lock"), |shop, slow| {
                begin(shop);
                usual_work(shop);
                let (wait, parse) =
                    if slow { (shop.about(140.0), shop.about(70.0)) } else { (shop.about(2.0), shop.about(4.0)) };
                shop.wait(
                    &below(
                        &GO,
                        &[
                            "main.reserve|stock.go|18",
                            "sync.(*Mutex).Lock|/usr/local/go/src/sync/mutex.go|1",
                            "runtime.semacquire1",
                        ],
                    ),
                    wait,
                );
                shop.work(
                    &below(
                        &GO,
                        &[
                            "main.readRates|rates.go|9",
                            "encoding/json.Unmarshal|/usr/local/go/src/encoding/json/decode.go|1",
                        ],
                    ),
                    parse,
                );
            })
        },
        scenario("one helper, called from everywhere", Planted::Function("main.normalise", "cpu"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            let cost = if slow { 20.0 } else { 1.0 };
            for caller in [
                "main.readName|form.go|3",
                "main.readStreet|form.go|9",
                "main.readCity|form.go|15",
                "main.readPhone|form.go|21",
                "main.readMail|form.go|27",
                "main.readNote|form.go|33",
            ] {
                let (own, time) = (shop.about(2.0), shop.about(cost));
                shop.work(&below(&GO, &[caller]), own);
                shop.work(&below(&GO, &[caller, "main.normalise|text.go|70"]), time);
            }
        }),
        Scenario {
            picked: Picked::Truth,
            slow_share: 0.5,
            requests: 3000,
            ..scenario(
                "five per cent more in one function",
                Planted::Function("main.priceItems", "cpu"),
                |shop, slow| {
                    begin(shop);
                    usual_work(shop);
                    let own = shop.spread(40.0, 0.15);
                    shop.work(&below(&GO, &["main.listItems|items.go|8"]), own);
                    let time = shop.spread(40.0, 0.15) + if slow { 5.0 } else { 0.0 };
                    shop.work(&below(&GO, &["main.priceItems|items.go|30"]), time);
                },
            )
        },
        scenario("clocks differ", Planted::Function("tax::rates::parse_table", "cpu"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            shop.enter("checkout", "POST tax", Client);
            let go = shop.about(1.0);
            shop.gap(go);
            shop.enter("tax", "POST /v1/tax", Server);
            let time = shop.about(if slow { 150.0 } else { 9.0 });
            shop.work(
                &[
                    "tax::serve|src/main.rs|7",
                    "tax::rates::parse_table|src/rates.rs|40",
                    "serde_json::de::from_str|/root/.cargo/registry/src/x/serde_json-1/src/de.rs|1",
                ],
                time,
            );
            shop.leave();
            let back = shop.about(1.0);
            shop.gap(back);
            shop.leave();
            shop.skew("tax", 400.0);
        }),
        scenario("samples without times", Planted::Function("main.readRates", "cpu"), |shop, slow| {
            shop.timed = false;
            begin(shop);
            usual_work(shop);
            let time = shop.about(if slow { 120.0 } else { 10.0 });
            shop.work(
                &below(
                    &GO,
                    &["main.readRates|rates.go|9", "encoding/xml.Unmarshal|/usr/local/go/src/encoding/xml/read.go|1"],
                ),
                time,
            );
        }),
        scenario(
            "a job that outlives the request is busy too",
            Planted::Function("main.chargeCard", "cpu"),
            |shop, slow| {
                begin(shop);
                usual_work(shop);
                let job = shop.now();
                shop.enter("checkout", "send_mail", Internal);
                let mail = shop.about(if slow { 400.0 } else { 20.0 });
                shop.work(&["main.sendMail|mail.go|11"], mail);
                shop.leave();
                shop.at(job);
                let time = shop.about(if slow { 130.0 } else { 6.0 });
                shop.work(&below(&GO, &["main.chargeCard|pay.go|20"]), time);
            },
        ),
        scenario("more work beside the path than on it", Planted::Function("main.lockSeat", "lock"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            let fork = shop.now();
            shop.enter("checkout", "recommend", Internal);
            let beside = shop.about(if slow { 60.0 } else { 10.0 });
            shop.work(&["main.recommend|recommend.go|14"], beside);
            shop.leave();
            shop.at(fork);
            shop.enter("checkout", "book_seat", Internal);
            let time = shop.about(if slow { 120.0 } else { 25.0 });
            shop.wait(
                &["main.bookSeat|seat.go|9", "main.lockSeat|seat.go|31", "sync.(*RWMutex).Lock", "runtime.semacquire"],
                time,
            );
            shop.leave();
        }),
        scenario(
            "cost moved between parsers, the cause is elsewhere",
            Planted::Function("main.buildQuery", "cpu"),
            |shop, slow| {
                begin(shop);
                usual_work(shop);
                let parser = if slow { "main.parseV2|parse.go|60" } else { "main.parseV1|parse.go|10" };
                let parse = shop.spread(45.0, 0.1);
                shop.work(&below(&GO, &["main.parse|parse.go|3", parser]), parse);
                let time = shop.about(if slow { 60.0 } else { 8.0 });
                shop.work(&below(&GO, &["main.buildQuery|query.go|22"]), time);
            },
        ),
        scenario(
            "only library code on the stack",
            Planted::Function("org.apache.lucene.search.IndexSearcher.search", "cpu"),
            |shop, slow| {
                shop.enter("search", "GET /find", Server);
                let netty =
                    ["java.lang.Thread.run|Thread.java|1", "io.netty.channel.nio.NioEventLoop.run|NioEventLoop.java|1"];
                let read = shop.about(12.0);
                shop.work(
                    &below(&netty, &["io.netty.handler.codec.http.HttpObjectDecoder.decode|HttpObjectDecoder.java|1"]),
                    read,
                );
                let time = shop.about(if slow { 110.0 } else { 14.0 });
                shop.work(
                    &below(&netty, &["org.apache.lucene.search.IndexSearcher.search|IndexSearcher.java|1"]),
                    time,
                );
            },
        ),
        scenario(
            "a called service that nobody profiles",
            Planted::Operation("GET /v1/rates", "downstream"),
            |shop, slow| {
                begin(shop);
                usual_work(shop);
                shop.enter("checkout", "GET rates", Client);
                let go = shop.about(1.0);
                shop.gap(go);
                shop.enter("rates", "GET /v1/rates", Server);
                let time = if slow { shop.spread(200.0, 0.4) } else { shop.about(12.0) };
                shop.gap(time);
                shop.leave();
                let back = shop.about(1.0);
                shop.gap(back);
                shop.leave();
            },
        ),
        scenario(
            "a wait that CPU profiles do not see",
            Planted::Operation("acquire_connection", "waiting"),
            |shop, slow| {
                shop.waits = Waits::Unseen;
                begin(shop);
                usual_work(shop);
                shop.enter("checkout", "acquire_connection", Internal);
                let time = if slow { shop.spread(180.0, 0.5) } else { shop.about(1.0) };
                shop.wait(&["main.acquire|pool.go|3"], time);
                shop.leave();
                let more = shop.about(12.0);
                shop.work(&below(&GO, &["main.useConnection|pool.go|40"]), more);
            },
        ),
        scenario("no CPU was free", Planted::Function("main.resize", "scheduling"), |shop, slow| {
            begin(shop);
            usual_work(shop);
            let (work, wait) = (shop.about(30.0), if slow { shop.about(130.0) } else { shop.about(2.0) });
            shop.work(&below(&GO, &["main.resize|image.go|12"]), work);
            shop.wait(&below(&GO, &["main.resize|image.go|12", "throttle_cfs_rq"]), wait);
        }),
        scenario("work that grows with the cart", Planted::Function("main.taxOfItem", "cpu"), |shop, _| {
            begin(shop);
            let items = shop.spread(5.0, 0.9).ceil();
            shop.amount("cart.items", items);
            usual_work(shop);
            let time = shop.about(3.0 * items);
            shop.work(&below(&GO, &["main.taxes|tax.go|10", "main.taxOfItem|tax.go|35"]), time);
        }),
        scenario("several threads at once", Planted::Function("shop::rank::score", "cpu"), |shop, slow| {
            shop.enter("rank", "POST /rank", Server);
            let own = ["rayon::join", "shop::rank::rank_all|src/rank.rs|8"];
            let read = shop.about(20.0);
            shop.work(&["shop::rank::load|src/rank.rs|3"], read);
            let time = shop.about(if slow { 110.0 } else { 20.0 });
            shop.work_on(4, &below(&own, &["shop::rank::score|src/rank.rs|44"]), time);
        }),
        scenario("samples name the local root only", Planted::Function("main.lookupTaxRate", "cpu"), |shop, slow| {
            shop.names_local_root = true;
            inner_span(shop, slow);
        }),
        scenario(
            "samples name the local root only, and no time",
            Planted::Function("main.lookupTaxRate", "cpu"),
            |shop, slow| {
                shop.names_local_root = true;
                shop.timed = false;
                inner_span(shop, slow);
            },
        ),
    ]
}

/// Parsing in a span inside the request.
fn inner_span(shop: &mut Workshop<'_>, slow: bool) {
    shop.waits = Waits::Unseen;
    begin(shop);
    usual_work(shop);
    shop.enter("checkout", "calculateTax", Internal);
    let parse = shop.about(if slow { 110.0 } else { 8.0 });
    shop.work(&below(&GO, &["main.calculateTax|tax.go|90", "main.lookupTaxRate|tax.go|112"]), parse);
    shop.leave();
}
