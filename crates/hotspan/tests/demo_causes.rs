//! `explain` on a real program: each problem of the demo, found by a cohort, by a whole service and by one trace.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests fail as tests do

mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::demo::{Demo, shop_status};
use support::now_nanos;

/// What was planted, and what an answer must name for it.
struct Planted {
    problem: &'static str,
    /// How the names of these functions end; empty if an operation is the cause.
    functions: &'static [&'static str],
    /// The file, for functions.
    file: &'static str,
    operation: &'static str,
    kinds: &'static [&'static str],
    /// The pattern that must be among those named, if one must.
    pattern: Option<&'static str>,
}

/// Seconds of real load are chance: of 15 answers that are right 97 times of 100, fewer than this are in one run of 100. How
/// many are right is measured by `each_problem_for_a_minute`.
const FIRST_OF_15: usize = 13;

/// Work. On a machine that others keep busy, most of its time may be waiting for a CPU.
const RUNNING: &[&str] = &["cpu", "gc", "scheduling"];

const PLANTED: [Planted; 10] = [
    Planted {
        problem: "tax",
        functions: &["::lookup_tax_rate", "::parse_tax_document"],
        file: "services/tax.rs",
        operation: "calculate_tax",
        kinds: RUNNING,
        pattern: Some("parsing"),
    },
    Planted {
        problem: "regex",
        functions: &["::is_on_offer", "::compile_price_rule"],
        file: "services/discount.rs",
        operation: "apply_price_rules",
        kinds: RUNNING,
        pattern: Some("regex"),
    },
    Planted {
        problem: "shard",
        functions: &["::wait_for_shard"],
        file: "services/inventory.rs",
        operation: "UPDATE stock",
        kinds: &["downstream"],
        pattern: None,
    },
    Planted {
        problem: "lock",
        functions: &["::store_order"],
        file: "services/order.rs",
        operation: "store_order",
        kinds: &["lock"],
        pattern: Some("lock"),
    },
    Planted {
        problem: "queries",
        functions: &[],
        file: "",
        operation: "SELECT stock",
        kinds: &["downstream"],
        pattern: Some("repeated calls"),
    },
    Planted {
        problem: "bundles",
        functions: &["::best_bundle"],
        file: "services/bundles.rs",
        operation: "find_bundle",
        kinds: RUNNING,
        pattern: Some("recursion"),
    },
    Planted {
        problem: "cache",
        functions: &["::load_exemptions"],
        file: "services/tax.rs",
        operation: "POST /v1/tax",
        kinds: &["waiting"],
        pattern: None,
    },
    Planted {
        problem: "memory",
        functions: &["::copy_receipt", "::print_receipt"],
        file: "services/order.rs",
        operation: "POST /v1/orders",
        kinds: RUNNING,
        pattern: Some("allocation"),
    },
    Planted {
        problem: "payments",
        functions: &["::wait_for_provider", "::charge_card"],
        file: "services/checkout.rs",
        operation: "POST",
        kinds: &["downstream"],
        pattern: None,
    },
    Planted {
        problem: "retries",
        functions: &[],
        file: "",
        operation: "POST",
        kinds: &["downstream"],
        pattern: Some("retries"),
    },
];

impl Planted {
    fn is(&self, cause: &Value) -> bool {
        let function = cause["function"].as_str().unwrap_or_default().trim_end_matches("::{{closure}}");
        let is_function = self.functions.is_empty() || self.functions.iter().any(|end| function.ends_with(end));
        let is_there = cause["file"].as_str().unwrap_or_default().ends_with(self.file)
            && (self.file.is_empty() || cause["line"].as_u64() > Some(0));
        let patterns = cause["patterns"].as_array();
        let is_pattern =
            self.pattern.is_none_or(|name| patterns.is_some_and(|all| all.iter().any(|pattern| pattern == name)));
        is_function
            && is_there
            && is_pattern
            && cause["operation"] == self.operation
            && self.kinds.iter().any(|kind| cause["kind"] == *kind)
    }
}

/// Asks about the time `from..to` in the three ways in which a person would. Says for each at which place the planted cause
/// stands, and what stood first.
fn places(demo: &Demo, planted: &Planted, (from, to): (u64, u64)) -> Vec<(&'static str, Option<usize>, String)> {
    let checkouts = "{ name = \"POST /api/checkout\" && duration > 150ms }";
    let slowest = slowest_trace(demo, checkouts, (from, to));
    let targets = [
        ("slow checkouts", Some(checkouts.to_owned())),
        ("the service", Some("{ resource.service.name = \"checkout\" }".to_owned())),
        ("one trace", slowest),
    ];
    let place = |(name, target): (&'static str, Option<String>)| {
        let Some(target) = target else { return (name, None, "no checkout was slow".to_owned()) };
        let answer = demo.post_json("/api/v1/explain", &json!({ "target": target, "from": from, "to": to }));
        let causes = answer["causes"].as_array().unwrap();
        let shown = format!("{} {} {}", answer["headline"], answer["notes"], answer["causes"]);
        (name, causes.iter().position(|cause| planted.is(cause)), shown)
    };
    targets.into_iter().map(place).collect()
}

/// The slowest trace that matches, if one does.
fn slowest_trace(demo: &Demo, query: &str, (from, to): (u64, u64)) -> Option<String> {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (start, end) = (from / 1_000_000_000, to / 1_000_000_000 + 1);
    let answer = demo.get(&format!("/api/search?q={escaped}&start={start}&end={end}&limit=200"));
    let found: Value = serde_json::from_slice(&answer.body).unwrap();
    let inside = |trace: &&Value| {
        let started: u64 = trace["startTimeUnixNano"].as_str().unwrap().parse().unwrap();
        (from..to).contains(&started)
    };
    let traces = found["traces"].as_array().cloned().unwrap_or_default();
    let slowest = traces.iter().filter(inside).max_by_key(|trace| trace["durationMs"].as_u64());
    slowest.map(|trace| trace["traceID"].as_str().unwrap().to_owned())
}

/// Two shops on two cores would be slow by each other.
fn one_shop_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_until_shop_answers(store: &std::path::Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while shop_status(store).is_none_or(|status| status["requests"].as_u64() < Some(20)) {
        assert!(Instant::now() < deadline, "the shop did not open");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Plants one problem for a while and asks about that time.
fn round(demo: &Demo, planted: &Planted, length: Duration) -> Vec<(&'static str, Option<usize>, String)> {
    demo.switch("--break", planted.problem);
    let from = now_nanos();
    std::thread::sleep(length);
    let to = now_nanos();
    // What began before ends; switching then sends what was sampled so far.
    std::thread::sleep(Duration::from_millis(1500));
    demo.switch("--fix", planted.problem);
    std::thread::sleep(Duration::from_millis(1000));
    places(demo, planted, (from, to))
}

/// Scenario: the shop runs, and one after the other problems of five kinds are planted for some seconds and fixed again: a cache
/// that misses, a lock, a query for each item, calls that are tried again, and a search that tries everything.
/// Guarantee: asked about that time by slow checkouts, by the service or by its slowest trace, `explain` names the planted
/// function with its file, or the planted call, first nearly always.
#[test]
fn planted_problems_are_found_in_the_running_shop() {
    let _alone = one_shop_at_a_time();
    let store = tempfile::tempdir().unwrap();
    let mut demo = Demo::start(store.path(), "none", 30);
    wait_until_shop_answers(store.path());
    let (mut first, mut asked, mut missed) = (0, 0, Vec::new());
    let kinds = ["cache", "lock", "queries", "retries", "bundles"];
    for planted in PLANTED.iter().filter(|planted| kinds.contains(&planted.problem)) {
        let mut answers = round(&demo, planted, Duration::from_millis(4500));
        if answers.iter().any(|(_, place, _)| *place != Some(0)) {
            // A few seconds on a busy machine may hold too few slow requests: look once more, and longer.
            answers = round(&demo, planted, Duration::from_secs(9));
        }
        for (target, place, shown) in answers {
            asked += 1;
            first += usize::from(place == Some(0));
            if place != Some(0) {
                missed.push(format!("{} by {target}: {shown}", planted.problem));
            }
        }
    }
    assert!(demo.interrupt().success());
    assert_eq!(asked, 15);
    assert!(first >= FIRST_OF_15, "{first} of {asked} are first; missed:\n{}", missed.join("\n"));
}

/// Of these problems, those whose operations take at least a tenth of what slow checkouts take longer, and those of them that
/// are not among the causes; and what was.
fn large_and_missing(demo: &Demo, problems: &[&str], (from, to): (u64, u64)) -> (usize, Vec<&'static str>, String) {
    let target = "{ name = \"POST /api/checkout\" && duration > 150ms }";
    let answer = demo.post_json("/api/v1/explain", &json!({ "target": target, "from": from, "to": to }));
    let number = |value: &Value| value.as_f64().unwrap();
    let share = |planted: &Planted| {
        let steps = answer["critical_path"].as_array().unwrap().iter();
        let longer = steps.filter(|step| step["operation"] == planted.operation && step["callee"].is_null());
        longer.map(|step| number(&step["ms"]) - number(&step["fast_ms"])).sum::<f64>() / number(&answer["delta_ms"])
    };
    let causes = answer["causes"].as_array().unwrap();
    let planted = PLANTED.iter().filter(|planted| problems.contains(&planted.problem));
    let large: Vec<&Planted> = planted.filter(|planted| share(planted) >= 0.1).collect();
    let missing = large.iter().filter(|planted| !causes.iter().any(|cause| planted.is(cause)));
    (large.len(), missing.map(|planted| planted.problem).collect(), format!("{:#}", answer["causes"]))
}

/// Scenario: the demo as `make run` starts it, with its four problems at once, which slow down different requests.
/// Guarantee: asked about slow checkouts, `explain` names every problem that takes a tenth of the difference (three of them at
/// least do; the lock, where the machine is idle), with function, file and kind.
#[test]
fn the_problems_of_the_mix_are_all_named() {
    let _alone = one_shop_at_a_time();
    let store = tempfile::tempdir().unwrap();
    let mut demo = Demo::start(store.path(), "mix", 6);
    let from = now_nanos();
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        // Some dozens of slow requests, as chance has it: every problem is to have its share of them.
        std::thread::sleep(Duration::from_secs(20));
        let problems = ["tax", "regex", "shard", "lock"];
        let (large, missing, causes) = large_and_missing(&demo, &problems, (from, now_nanos()));
        if large >= 3 && missing.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "{large} problems are large; {missing:?} are missing among {causes}");
    }
    assert!(demo.interrupt().success());
}

/// Scenario: the demo as `make run` starts it, with one problem at a time for a minute, asked about as its page would.
/// Guarantee: prints the table of benches/README.md; the planted cause is first in 95 of 100 answers.
#[test]
#[ignore = "takes a quarter of an hour: cargo test -p hotspan --test demo_causes -- --ignored --nocapture"]
fn each_problem_for_a_minute() {
    println!("| problem | slow checkouts | the service | one trace |\n|---|---|---|---|");
    let (mut first, mut among_three, mut asked) = (0, 0, 0);
    for planted in &PLANTED {
        let store = tempfile::tempdir().unwrap();
        let mut demo = Demo::start(store.path(), planted.problem, 6);
        wait_until_shop_answers(store.path());
        let from = now_nanos() - 5_000_000_000;
        std::thread::sleep(Duration::from_secs(55));
        let answers = places(&demo, planted, (from, now_nanos()));
        let cell = |(_, place, _): &(&str, Option<usize>, String)| {
            place.map_or_else(|| "missed".to_owned(), |place| (place + 1).to_string())
        };
        println!("| {} | {} |", planted.problem, answers.iter().map(cell).collect::<Vec<_>>().join(" | "));
        for (target, place, shown) in &answers {
            asked += 1;
            first += usize::from(*place == Some(0));
            among_three += usize::from(place.is_some_and(|place| place < 3));
            if *place != Some(0) {
                println!("<!-- {target}: {shown} -->");
            }
        }
        assert!(demo.interrupt().success());
    }
    println!("\nfirst: {first} of {asked}; among the first three: {among_three} of {asked}");
    assert!(first * 100 >= asked * 95);
}
