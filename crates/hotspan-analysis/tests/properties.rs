//! What must hold whatever the requests look like.
#![allow(clippy::unwrap_used, reason = "a test may fail as tests do")]

#[path = "../scenarios/mod.rs"]
mod scenarios;

use hotspan_analysis::clock_skew::correct_clocks;
use hotspan_analysis::critical_path::critical_path;
use hotspan_analysis::merged_tree::{merged_tree, short_merged_tree};
use hotspan_analysis::statistics::bootstrap::{Side, difference_intervals};
use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::{Question, Request, RequestSpan, Subject, Verdict, Vocabulary, analyse};
use hotspan_model::{SpanId, SpanKind};
use proptest::prelude::*;
use scenarios::anything::any_request;

fn any_question(seed: u64) -> Question {
    let mut random = Random::new(seed);
    let mut vocabulary = Vocabulary::default();
    let [slow, fast] = [0, 1].map(|_| {
        let count = random.next_u64() % 12;
        (0..count).map(|_| any_request(&mut vocabulary, &mut random)).collect::<Vec<_>>()
    });
    let subject = if slow.len() == 1 { Subject::Single } else { Subject::Cohort };
    Question { vocabulary, slow, fast, subject, seed, text: String::new(), unlinked: Vec::new() }
}

proptest! {
    /// Scenario: any requests, with children outside their parents and samples outside their spans.
    /// Guarantee: each request's parts, the ledger and the merged tree sum to the duration; shares to at most one; the same
    /// question gets the same answer.
    #[test]
    fn parts_sum_to_the_duration(seed in any::<u64>()) {
        let analysis = analyse(any_question(seed));
        for vector in analysis.ledger.sides.iter().flatten() {
            let sum: f64 = vector.times.iter().map(|(_, time)| time).sum();
            prop_assert!((sum - vector.duration).abs() < 1.0, "{sum} is not {}", vector.duration);
        }
        let summary = &analysis.explanation.ledger;
        let parts: f64 = summary.parts.iter().map(|part| part.ms).sum();
        prop_assert!((parts - summary.duration_ms).abs() < 1e-5);
        let fast: f64 = summary.parts.iter().map(|part| part.fast_ms).sum();
        prop_assert!((fast - summary.fast_duration_ms).abs() < 1e-5);
        let path: f64 = analysis.explanation.critical_path.iter().map(|step| step.ms).sum();
        prop_assert!(path <= summary.duration_ms + 1e-5);
        let shares: f64 = analysis.explanation.causes.iter().map(|cause| cause.share).sum();
        prop_assert!(shares <= 1.0 + 1e-9);
        for side in [0, 1] {
            let tree = merged_tree(&analysis.vocabulary, &analysis.ledger, side);
            let mean = analysis.ledger.sides[side].iter().map(|vector| vector.duration).sum::<f64>()
                / analysis.ledger.sides[side].len().max(1) as f64;
            prop_assert!((tree.total() as f64 - mean).abs() <= 1.0, "{} is not {mean}", tree.total());
            prop_assert!(tree.nodes().iter().all(|node| node.total >= -1), "a bar is negative");
            let short = short_merged_tree(&analysis.vocabulary, &analysis.ledger, side);
            prop_assert_eq!(short.total(), tree.total());
            prop_assert!(short.nodes().len() <= tree.nodes().len());
        }
        let again = analyse(any_question(seed));
        prop_assert_eq!(
            serde_json::to_string(&analysis.explanation).unwrap(),
            serde_json::to_string(&again.explanation).unwrap()
        );
    }

    /// Scenario: any requests. Guarantee: the stretches of the critical path lie inside the request, do not overlap, and
    /// are exactly its duration.
    #[test]
    fn the_critical_path_is_the_duration(seed in any::<u64>()) {
        let question = any_question(seed);
        for request in question.slow.iter().chain(&question.fast) {
            let mut stretches = critical_path(request);
            stretches.sort_by_key(|stretch| stretch.from);
            let whole: i64 = stretches.iter().map(|stretch| stretch.to - stretch.from).sum();
            prop_assert_eq!(whole, request.duration());
            prop_assert!(stretches.iter().all(|stretch| stretch.from < stretch.to));
            prop_assert!(stretches.windows(2).all(|pair| pair[0].to <= pair[1].from));
            let root = &request.spans[0];
            prop_assert!(stretches.iter().all(|stretch| stretch.from >= root.start && stretch.to <= root.end));
        }
    }
}

/// Scenario: one cohort of requests with work, calls and heavy tails, split at random a thousand times.
/// Guarantee: at most one split in twenty gives any finding (measured: far fewer), and never a verdict but "nothing".
#[test]
fn random_splits_find_nothing() {
    let heavy =
        scenarios::all().into_iter().find(|scenario| scenario.name == "a random split with heavy tails").unwrap();
    let mut findings = 0;
    let splits = 1000;
    // One cohort for ten splits: making requests takes longer than comparing them.
    for cohort in 0..splits / 10 {
        let question = scenarios::question(&heavy, cohort);
        let all: Vec<Request> = question.slow.iter().chain(&question.fast).take(200).cloned().collect();
        for split in 0..10 {
            let mut random = Random::new(cohort * 100 + split);
            let (slow, fast): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|_| random.unit() < 0.4);
            let vocabulary = question.vocabulary.clone();
            let analysis = analyse(Question {
                vocabulary,
                slow,
                fast,
                subject: Subject::Cohort,
                seed: split,
                text: String::new(),
                unlinked: Vec::new(),
            });
            findings += u64::from(analysis.explanation.verdict == Verdict::Found);
        }
    }
    assert!(findings * 20 <= splits, "{findings} of {splits} random splits found something");
}

/// Scenario: two skewed groups of known means, of twelve, forty and two hundred requests, drawn four hundred times.
/// Guarantee: the interval of 95 % holds the true difference in about 95 % of the draws.
#[test]
fn intervals_cover_the_truth() {
    for (count, least) in [(12, 0.90), (40, 0.92), (200, 0.93)] {
        let draws = 400;
        let mut covered = 0;
        let mut random = Random::new(11);
        for draw in 0..draws {
            let mut log_normal = |scale: f64| {
                let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
                scale * (0.5 * normal).exp()
            };
            let slow: Vec<f64> = (0..count).map(|_| log_normal(30.0)).collect();
            let fast: Vec<f64> = (0..2 * count).map(|_| log_normal(20.0)).collect();
            let truth = (30.0 - 20.0) * (0.5f64 * 0.5 / 2.0).exp();
            let (slow, fast) = (vec![slow], vec![fast]);
            let side = |columns| Side { columns, known_variance: None };
            let interval = difference_intervals(side(&slow), side(&fast), draw)[0];
            covered += u32::from(interval.low <= truth && truth <= interval.high);
        }
        let share = f64::from(covered) / draws as f64;
        assert!(share >= least && share <= 0.99, "{share} of the intervals of {count} requests hold the truth");
    }
}

/// Scenario: a called service whose clock is 400 ms ahead, and one whose clock is right.
/// Guarantee: the first is shifted back to within its callers, the second is left alone, and the correction is told.
#[test]
fn skewed_clocks_are_corrected() {
    let mut vocabulary = Vocabulary::default();
    let mut request = |number: i64| {
        let mut span = |parent: Option<u32>, service: &str, role: SpanKind, start: i64, end: i64| RequestSpan {
            span_id: SpanId([start as u8 + 1; 8]),
            parent,
            operation: vocabulary.operation(service, "call", role),
            role,
            clock: vocabulary.text(service),
            start: start * 1_000_000,
            end: end * 1_000_000,
            failed: false,
            attributes: Vec::new(),
        };
        let spans = vec![
            span(None, "front", SpanKind::Server, 0, 100),
            span(Some(0), "front", SpanKind::Client, 10, 40),
            span(Some(1), "ahead", SpanKind::Server, 412 + number % 3, 438),
            span(Some(0), "front", SpanKind::Client, 50, 90),
            span(Some(3), "right", SpanKind::Server, 51, 89),
        ];
        Request { spans, ..Request::default() }
    };
    let mut requests: Vec<Request> = (0..20).map(&mut request).collect();
    let corrections = correct_clocks(&vocabulary, &mut [&mut requests]);
    assert_eq!(corrections.len(), 1);
    assert_eq!((corrections[0].from.as_str(), corrections[0].to.as_str()), ("front", "ahead"));
    assert!((corrections[0].offset_ms + 400.0).abs() < 3.0, "{}", corrections[0].offset_ms);
    for request in &requests {
        assert!(request.spans[2].start >= request.spans[1].start && request.spans[2].end <= request.spans[1].end);
        assert_eq!(request.spans[4].start, 51_000_000);
    }
}
