//! Workloads with planted causes, and with none: what `explain` is measured by.
//!
//! Every workload makes requests with real noise (log-normal work, a profiler that ticks, chance in every part), and the
//! slow ones are picked as a person would: by duration, by version, or by an attribute. The planted cause is known.

// The test and the example each use a part of this.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

mod ambiguous;
pub(crate) mod anything;
mod clear;
mod mixed;
mod noise;
pub(crate) mod workload;

use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::{Analysis, Cause, Question, Request, Subject, Vocabulary, analyse};

use workload::Workshop;

/// What was planted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Planted {
    /// This function, and what its time is spent on.
    Function(&'static str, &'static str),
    /// This operation as a whole, and what its time is spent on.
    Operation(&'static str, &'static str),
    /// Nothing.
    Nothing,
}

/// How the slow requests are picked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Picked {
    /// The slowest, against those around the median.
    Duration,
    /// Those with the planted cause, against the others: as a version or a customer would pick them.
    Truth,
    /// At random.
    Chance,
}

/// A workload.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) planted: Planted,
    /// What was planted besides, and costs less.
    pub(crate) also: &'static [Planted],
    /// Whether something else looks like the cause, too.
    pub(crate) is_ambiguous: bool,
    pub(crate) picked: Picked,
    pub(crate) requests: usize,
    /// Share of the requests that have the planted cause.
    pub(crate) slow_share: f64,
    /// Makes one request; the flag says whether the cause is in it.
    pub(crate) make: fn(&mut Workshop<'_>, bool),
}

/// All workloads.
pub(crate) fn all() -> Vec<Scenario> {
    let mut scenarios = clear::scenarios();
    scenarios.extend(ambiguous::scenarios());
    scenarios.extend(mixed::scenarios());
    scenarios.extend(noise::scenarios());
    scenarios
}

/// The two sides of a workload.
pub(crate) fn question(scenario: &Scenario, seed: u64) -> Question {
    let mut vocabulary = Vocabulary::default();
    let mut random = Random::new(seed);
    let mut made: Vec<(bool, Request)> = Vec::new();
    let mut stacks = Default::default();
    for number in 0..scenario.requests {
        let has_cause = random.unit() < scenario.slow_share;
        let mut workshop = Workshop::new(&mut vocabulary, &mut stacks, &mut random, number as u64);
        (scenario.make)(&mut workshop, has_cause);
        made.push((has_cause, workshop.finish()));
    }
    let (slow, fast) = pick(scenario, made, &mut random);
    Question { vocabulary, slow, fast, subject: Subject::Cohort, seed: 7, text: String::new(), unlinked: Vec::new() }
}

fn pick(scenario: &Scenario, mut made: Vec<(bool, Request)>, random: &mut Random) -> (Vec<Request>, Vec<Request>) {
    match scenario.picked {
        Picked::Truth => {
            let (slow, fast): (Vec<_>, Vec<_>) = made.into_iter().partition(|(has_cause, _)| *has_cause);
            (requests(slow), requests(fast))
        }
        Picked::Chance => {
            let (slow, fast): (Vec<_>, Vec<_>) = made.into_iter().partition(|_| random.unit() < 0.3);
            (requests(slow), requests(fast))
        }
        Picked::Duration => {
            made.sort_by_key(|(_, request)| request.duration());
            let count = made.len() as f64;
            let slow = made.split_off((count * 0.92) as usize);
            let fast = made.drain((count * 0.25) as usize..(count * 0.75) as usize).collect();
            (requests(slow), requests(fast))
        }
    }
}

fn requests(made: Vec<(bool, Request)>) -> Vec<Request> {
    made.into_iter().map(|(_, request)| request).collect()
}

/// How an answer compares with what was planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The planted cause is first; for noise, nothing was found.
    First,
    /// It is second or third.
    AmongThree,
    /// It was not found.
    Missed,
    /// There was nothing to find, and something was found.
    FalseFinding,
}

/// Explains one run of a workload.
pub(crate) fn explain(scenario: &Scenario, seed: u64) -> Analysis {
    analyse(question(scenario, seed))
}

impl Planted {
    fn is(&self, cause: &Cause) -> bool {
        match self {
            Planted::Function(function, kind) => cause.function.as_deref() == Some(function) && cause.kind == *kind,
            Planted::Operation(operation, kind) => cause.operation == *operation && cause.kind == *kind,
            Planted::Nothing => false,
        }
    }
}

/// Causes that were planted besides the first and are not named, and causes that are named and were not planted.
pub(crate) fn missed_and_made_up(scenario: &Scenario, analysis: &Analysis) -> (usize, usize) {
    let causes = &analysis.explanation.causes;
    let is_missed = |planted: &&Planted| !causes.iter().any(|cause| planted.is(cause));
    let is_made_up =
        |cause: &&Cause| !std::iter::once(&scenario.planted).chain(scenario.also).any(|planted| planted.is(cause));
    (scenario.also.iter().filter(is_missed).count(), causes.iter().filter(is_made_up).count())
}

/// Judges an answer.
pub(crate) fn judge(scenario: &Scenario, analysis: &Analysis) -> Outcome {
    let causes = &analysis.explanation.causes;
    match (scenario.planted, causes.iter().position(|cause| scenario.planted.is(cause))) {
        (Planted::Nothing, _) if causes.is_empty() => Outcome::First,
        (Planted::Nothing, _) => Outcome::FalseFinding,
        (_, Some(0)) => Outcome::First,
        (_, Some(1 | 2)) => Outcome::AmongThree,
        _ => Outcome::Missed,
    }
}
