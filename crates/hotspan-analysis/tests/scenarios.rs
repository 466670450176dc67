//! Planted causes must be first, and noise must give no finding.
#![allow(clippy::unwrap_used, reason = "a test may fail as tests do")]

#[path = "../scenarios/mod.rs"]
mod scenarios;

use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::{Question, Request, Subject, Vocabulary, analyse};
use hotspan_model::SpanKind::{Client, Internal, Server};
use scenarios::workload::{Waits, Workshop};
use scenarios::{Outcome, Planted};

/// Scenario: thirty-four workloads with a planted cause, half of them ambiguous on purpose, three runs each.
/// Guarantee: the planted function or operation is the first cause, with the kind of time it spends, in every run; what was
/// planted besides is named as well, and nothing else is.
#[test]
fn planted_causes_are_first() {
    let all = scenarios::all();
    let planted: Vec<_> = all.iter().filter(|scenario| !matches!(scenario.planted, Planted::Nothing)).collect();
    assert!(planted.len() >= 24);
    assert!(planted.iter().filter(|scenario| scenario.is_ambiguous).count() * 2 >= planted.len());
    let mut wrong = Vec::new();
    for scenario in planted {
        for seed in 1..=3 {
            let analysis = scenarios::explain(scenario, seed);
            let others = scenarios::missed_and_made_up(scenario, &analysis);
            if scenarios::judge(scenario, &analysis) != Outcome::First || others != (0, 0) {
                let found = analysis.explanation.causes.iter();
                let found: Vec<_> = found
                    .map(|cause| {
                        format!("{} {:?} in {} {:.1} ms", cause.kind, cause.function, cause.operation, cause.delta_ms)
                    })
                    .collect();
                wrong.push(format!("{} (seed {seed}): wanted {:?}, found {found:#?}", scenario.name, scenario.planted));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Scenario: workloads without a cause, forty runs each, split at random or by duration.
/// Guarantee: at most one run in twenty gives any finding.
#[test]
fn noise_gives_no_finding() {
    for scenario in scenarios::all().iter().filter(|scenario| matches!(scenario.planted, Planted::Nothing)) {
        let runs = 40;
        let findings = (1..=runs)
            .filter(|seed| scenarios::judge(scenario, &scenarios::explain(scenario, *seed)) != Outcome::First);
        let findings = findings.count();
        assert!(findings * 20 <= runs as usize, "{}: {findings} of {runs} runs found something", scenario.name);
    }
}

/// Scenario: one slow request that waits 220 ms in a function, as samples tell, and 110 ms more than usual in a call, as spans do.
/// Guarantee: the longer wait is first: one wait that is sampled again and again is as sure as a span, or nearly.
#[test]
fn a_long_wait_is_before_a_shorter_call() {
    for seed in 1..=20 {
        let (mut vocabulary, mut random, mut stacks) = (Vocabulary::default(), Random::new(seed), Default::default());
        let mut requests: Vec<Request> = Vec::new();
        for number in 0..60 {
            let mut shop = Workshop::new(&mut vocabulary, &mut stacks, &mut random, number);
            shop.waits = Waits::Wall(20_000_000);
            let [load, call] = if number == 0 { [220.0, 115.0] } else { [shop.about(4.0), shop.about(5.0)] };
            shop.enter("checkout", "POST /api/checkout", Server);
            shop.enter("checkout", "POST rates", Client);
            shop.gap(call);
            shop.leave();
            shop.enter("tax", "POST /v1/tax", Server);
            let sleeps = ["tax::serve|src/main.rs|7", "tax::load_exemptions|src/tax.rs|91", "clock_nanosleep"];
            shop.wait(&sleeps, load);
            requests.push(shop.finish());
        }
        let fast = requests.split_off(1);
        let (subject, text) = (Subject::Single, String::new());
        let question = Question { vocabulary, slow: requests, fast, subject, seed, text, unlinked: Vec::new() };
        let causes = analyse(question).explanation.causes;
        let functions: Vec<Option<&str>> = causes.iter().map(|cause| cause.function.as_deref()).collect();
        assert_eq!(functions.first(), Some(&Some("tax::load_exemptions")), "seed {seed}: {causes:#?}");
        assert!(causes.iter().any(|cause| cause.operation == "POST rates"), "seed {seed}: {causes:#?}");
    }
}

/// Scenario: calls to a service that take long before that service begins, as where its threads are all busy.
/// Guarantee: the call is named, not the called service, and a note says that the called side did not see the time; where the
/// called side is what takes long, there is no such note.
#[test]
fn time_on_the_way_is_not_the_called_services() {
    let ask = |[queue, work]: [f64; 2]| {
        let (mut vocabulary, mut random, mut stacks) = (Vocabulary::default(), Random::new(3), Default::default());
        let mut request = |number: u64| {
            let is_slow = number < 20;
            let mut shop = Workshop::new(&mut vocabulary, &mut stacks, &mut random, number);
            shop.enter("checkout", "POST /api/checkout", Server);
            let call = shop.enter("checkout", "POST", Client) as usize;
            let [queue, work] = [if is_slow { queue } else { 2.0 }, if is_slow { work } else { 8.0 }];
            let (queue, work) = (shop.about(queue), shop.about(work));
            shop.gap(queue);
            shop.enter("order", "POST /v1/orders", Server);
            shop.work(&["order::serve|src/main.rs|7", "order::price|src/price.rs|21"], work);
            (shop.finish(), call)
        };
        let mut requests: Vec<(Request, usize)> = (0..120).map(&mut request).collect();
        let operation = vocabulary.call("checkout", "POST", Client, "order");
        requests.iter_mut().for_each(|(request, call)| request.spans[*call].operation = operation);
        let mut slow: Vec<Request> = requests.into_iter().map(|(request, _)| request).collect();
        let fast = slow.split_off(20);
        let (subject, text) = (Subject::Cohort, String::new());
        analyse(Question { vocabulary, slow, fast, subject, seed: 1, text, unlinked: Vec::new() }).explanation
    };
    let says_so = |note: &String| note.contains("outside of what order saw");
    let queued = ask([300.0, 8.0]);
    assert_eq!((queued.causes[0].operation.as_str(), queued.causes[0].kind), ("POST", "downstream"), "{queued:#?}");
    assert!(queued.notes.iter().any(says_so), "{:#?}", queued.notes);
    let worked = ask([2.0, 300.0]);
    assert_eq!(worked.causes[0].function.as_deref(), Some("order::price"), "{worked:#?}");
    assert!(!worked.notes.iter().any(says_so), "{:#?}", worked.notes);
}

/// Scenario: one slow request, two samples of which are in its slow operation; others do the same there, or something else.
/// Guarantee: two samples name a function that usual requests do nothing beside; if they do other things, the operation alone
/// is named.
#[test]
fn two_samples_are_enough_where_others_do_nothing_else() {
    for (others_do, named) in [("shop::best_bundle", Some("shop::best_bundle")), ("shop::print_offer", None)] {
        let (mut vocabulary, mut random, mut stacks) = (Vocabulary::default(), Random::new(8), Default::default());
        let request = |number: u64| {
            let mut shop = Workshop::new(&mut vocabulary, &mut stacks, &mut random, number);
            shop.cpu_period = 100_000_000;
            shop.enter("shop", "POST /offers", Server);
            shop.enter("shop", "find_bundle", Internal);
            let (function, time) = if number == 0 { ("shop::best_bundle", 200.0) } else { (others_do, 30.0) };
            let frame = format!("{function}|src/offers.rs|33");
            shop.work(&["tokio::runtime::run", &frame], time);
            shop.finish()
        };
        let mut requests: Vec<Request> = (0..80).map(request).collect();
        let fast = requests.split_off(1);
        assert_eq!(requests[0].samples.len(), 2);
        let (subject, text) = (Subject::Single, String::new());
        let question = Question { vocabulary, slow: requests, fast, subject, seed: 1, text, unlinked: Vec::new() };
        let causes = analyse(question).explanation.causes;
        assert_eq!(causes.len(), 1, "{causes:#?}");
        assert_eq!(
            (causes[0].operation.as_str(), causes[0].function.as_deref()),
            ("find_bundle", named),
            "{causes:#?}"
        );
    }
}

/// Scenario: one slow request, whose function runs for a sample or two of a slow profiler and is seen waiting besides.
/// Guarantee: though samples leave open how much of the difference it is, it is named: the span around it tells.
#[test]
fn spans_tell_how_much_where_samples_tell_what() {
    for seed in 1..=30 {
        let (mut vocabulary, mut random, mut stacks) = (Vocabulary::default(), Random::new(seed), Default::default());
        let request = |number: u64| {
            let mut shop = Workshop::new(&mut vocabulary, &mut stacks, &mut random, number);
            shop.waits = Waits::OffCpu(6_000_000);
            shop.cpu_period = 96_000_000;
            shop.enter("shop", "POST /offers", Server);
            shop.enter("shop", "find_bundle", Internal);
            let [work, wait] = if number == 0 { [100.0, 110.0] } else { [1.0, 1.0] };
            let best = ["tokio::runtime::run", "shop::best_bundle|src/offers.rs|33"];
            shop.work(&best, work);
            shop.wait(&[best[0], best[1], "clock_nanosleep"], wait);
            shop.finish()
        };
        let mut requests: Vec<Request> = (0..80).map(request).collect();
        let fast = requests.split_off(1);
        let (subject, text) = (Subject::Single, String::new());
        let question = Question { vocabulary, slow: requests, fast, subject, seed, text, unlinked: Vec::new() };
        let causes = analyse(question).explanation.causes;
        let named: Vec<Option<&str>> = causes.iter().map(|cause| cause.function.as_deref()).collect();
        assert_eq!(named, [Some("shop::best_bundle")], "seed {seed}: {causes:#?}");
        assert!(causes[0].share > 0.9, "seed {seed}: {causes:#?}");
    }
}

/// Scenario: one request that runs for 600 ms and waits 80 ms for a CPU, by itself, beside others that wait half of their time,
/// and beside others that never do.
/// Guarantee: it waited as long as its own samples tell, whoever is looked at besides, and nothing is left unexplained.
#[test]
fn one_request_waits_for_a_cpu_as_long_as_it_did() {
    let ask = |seed: u64, others: u64, usual: [f64; 2]| {
        let (mut vocabulary, mut random, mut stacks) = (Vocabulary::default(), Random::new(seed), Default::default());
        let request = |number: u64| {
            let mut shop = Workshop::new(&mut vocabulary, &mut stacks, &mut random, number);
            shop.waits = Waits::Wall(20_000_000);
            shop.enter("tax", "calculate_tax", Server);
            let [runs, waits] = if number == 0 { [600.0, 80.0] } else { usual };
            let lookup = ["tax::serve|src/main.rs|7", "tax::lookup_rate|src/tax.rs|112"];
            shop.work(&lookup, runs);
            shop.wait(&lookup, waits);
            shop.finish()
        };
        let mut slow: Vec<Request> = (0..=others).map(request).collect();
        let fast = slow.split_off(1);
        let (subject, text) = (Subject::Single, String::new());
        let parts = analyse(Question { vocabulary, slow, fast, subject, seed, text, unlinked: Vec::new() })
            .explanation
            .ledger
            .parts;
        let of = |kind: &str| parts.iter().find(|part| part.kind == kind).map_or(0.0, |part| part.ms);
        [of("scheduling"), of("unexplained")]
    };
    for seed in 1..=10 {
        let [alone, unexplained] = ask(seed, 0, [0.0; 2]);
        // A period of each clock at either end.
        assert!((alone - 80.0).abs() < 60.0 && unexplained.abs() < 60.0, "seed {seed}: {alone}, {unexplained}");
        for usual in [[100.0, 100.0], [100.0, 0.0]] {
            let [beside, _] = ask(seed, 60, usual);
            assert!((beside - alone).abs() < 0.5, "seed {seed}: {beside} beside {usual:?}, {alone} alone");
        }
    }
}
