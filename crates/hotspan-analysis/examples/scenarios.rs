//! Measures `explain` on planted causes and on noise, and prints the table for benches/README.md.
//!
//! `cargo run --release -p hotspan-analysis --example scenarios -- [RUNS]`
#![allow(clippy::print_stdout, reason = "printing is what this is for")]

#[path = "../scenarios/mod.rs"]
mod scenarios;

use scenarios::{Outcome, Planted};

fn main() {
    let runs: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let percent = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
    println!("| workload | ambiguous | first | among three | share found, mean | others missed | others made up |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    let (mut first_in_all, mut three_in_all, mut of_all) = (0, 0, 0);
    let mut others_in_all = (0, 0);
    for scenario in scenarios::all().iter().filter(|scenario| !matches!(scenario.planted, Planted::Nothing)) {
        let (mut first, mut three, mut share) = (0, 0, 0.0);
        let (mut missed, mut made_up) = (0, 0);
        for seed in 1..=runs {
            let analysis = scenarios::explain(scenario, seed);
            let others = scenarios::missed_and_made_up(scenario, &analysis);
            missed += others.0 as u64;
            made_up += others.1 as u64;
            match scenarios::judge(scenario, &analysis) {
                Outcome::First => {
                    first += 1;
                    share += analysis.explanation.causes.first().map_or(0.0, |cause| cause.share);
                }
                Outcome::AmongThree => three += 1,
                Outcome::Missed | Outcome::FalseFinding => {}
            }
        }
        first_in_all += first;
        three_in_all += first + three;
        of_all += runs;
        others_in_all = (others_in_all.0 + missed, others_in_all.1 + made_up);
        let ambiguous = if scenario.is_ambiguous { "yes" } else { "" };
        let name = scenario.name;
        println!(
            "| {name} | {ambiguous} | {:.0} % | {:.0} % | {:.2} | {} | {made_up} |",
            percent(first, runs),
            percent(first + three, runs),
            share / first.max(1) as f64,
            if scenario.also.is_empty() {
                String::new()
            } else {
                format!("{missed} of {}", scenario.also.len() as u64 * runs)
            },
        );
    }
    println!(
        "| **all, {runs} runs each** | | **{:.1} %** | **{:.1} %** | | **{}** | **{}** |\n",
        percent(first_in_all, of_all),
        percent(three_in_all, of_all),
        others_in_all.0,
        others_in_all.1
    );
    println!("| nothing planted | runs | false findings |");
    println!("|---|---:|---:|");
    let noise_runs = runs * 10;
    for scenario in scenarios::all().iter().filter(|scenario| matches!(scenario.planted, Planted::Nothing)) {
        let found = (1..=noise_runs)
            .filter(|seed| scenarios::judge(scenario, &scenarios::explain(scenario, *seed)) == Outcome::FalseFinding)
            .count() as u64;
        println!("| {} | {noise_runs} | {:.1} % |", scenario.name, percent(found, noise_runs));
    }
}
