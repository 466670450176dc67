//! Planted causes must be first, and noise must give no finding.
#![allow(clippy::unwrap_used, reason = "a test may fail as tests do")]

#[path = "../scenarios/mod.rs"]
mod scenarios;

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
