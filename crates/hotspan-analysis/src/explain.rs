//! The whole way from two groups of requests to an answer.

use hotspan_model::CoverageOf;

use crate::blame::Walk;
use crate::calls::Calls;
use crate::causes::{FEWEST_SAMPLES, FURTHER_SHARE, Findings, JOINT_SHARE, LEADING_SHARE};
use crate::clock_skew::{ClockSkew, correct_clocks};
use crate::explanation::{Cause, Coverage, Explanation, ServiceCoverage, SideSummary, Verdict};
use crate::ledger::{Ledger, ledger};
use crate::ledger_summary::{Reach, ledger_summary, path_steps, side_summary};
use crate::local_roots::fold_silent_spans;
use crate::matrix::{FEW_REQUESTS, Matrix};
use crate::moved::moved;
use crate::notes::{folded_note, notes};
use crate::part::Part;
use crate::request::Request;
use crate::separating::separating_attributes;
use crate::sources::Sources;
use crate::statistics::bootstrap::{Side, difference_intervals};
use crate::tree::{NodeId, Tree};
use crate::vocabulary::Vocabulary;

/// What is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// One request, or a handful: what did it do that others do not?
    Single,
    /// A group of requests: what do they do more of than the others?
    Cohort,
}

/// Two groups of requests, and what to make of them.
#[derive(Debug)]
pub struct Question {
    /// The words that both are told in.
    pub vocabulary: Vocabulary,
    /// The requests in question.
    pub slow: Vec<Request>,
    /// Those they are compared with.
    pub fast: Vec<Request>,
    /// Whether this is about one request or about many.
    pub subject: Subject,
    /// Seed of resampling.
    pub seed: u64,
    /// The text of the question: attributes named in it are no news.
    pub text: String,
    /// Services that send profiles, though none of these requests' spans has samples of theirs.
    pub unlinked: Vec<String>,
}

/// The answer, and what it was read off.
#[derive(Debug)]
pub struct Analysis {
    /// The words.
    pub vocabulary: Vocabulary,
    /// The requests, their clocks corrected; index 0 is slow, 1 is fast.
    pub sides: [Vec<Request>; 2],
    /// The vectors of both sides; index 0 is slow, 1 is fast.
    pub ledger: Ledger,
    /// Their comparison.
    pub matrix: Matrix,
    /// The answer.
    pub explanation: Explanation,
    /// The operation node of each cause, and the slow requests that are slow by it.
    cause_places: Vec<(NodeId, Vec<usize>)>,
    text: String,
}

impl Analysis {
    /// The spans whose attributes can tell slow requests from fast ones: those in question, and those of the operations
    /// that are blamed. As indexes of side, request and span.
    pub fn telling_spans(&self) -> Vec<(usize, usize, usize)> {
        let mut spans = Vec::new();
        for (side, vectors) in self.ledger.sides.iter().enumerate() {
            for (request, vector) in vectors.iter().enumerate() {
                spans.push((side, request, 0));
                let is_blamed = |node: NodeId| self.cause_places.iter().any(|(operation, _)| *operation == node);
                let blamed = vector.spans.iter().filter(|(node, span)| *span != 0 && is_blamed(*node));
                spans.extend(blamed.map(|(_, span)| (side, request, *span as usize)));
            }
        }
        spans
    }

    /// Names for each cause the attributes that slow requests have; to be called once the attributes are known.
    pub fn name_requests(&mut self) {
        let text = &self.text;
        let known = |attribute: &str| text.contains(attribute);
        let sides = [self.sides[0].as_slice(), self.sides[1].as_slice()];
        for (cause, (operation, carriers)) in self.explanation.causes.iter_mut().zip(&self.cause_places) {
            // Where requests are slow for different reasons, those of this one are what is told apart.
            let slow = if carriers.len() >= FEW_REQUESTS { carriers.clone() } else { (0..sides[0].len()).collect() };
            cause.requests = separating_attributes(&self.vocabulary, &self.ledger, sides, &slow, *operation, &known);
        }
    }

    /// The question with its sides exchanged.
    pub fn into_reversed_question(self, seed: u64) -> Question {
        let [slow, fast] = self.sides;
        Question {
            vocabulary: self.vocabulary,
            slow: fast,
            fast: slow,
            subject: Subject::Cohort,
            seed,
            text: self.text,
            unlinked: Vec::new(),
        }
    }
}

/// The chance at which durations are believed to differ.
const DURATIONS_DIFFER: f64 = 0.01;
/// Standard errors from which on a difference can be seen.
const VISIBLE: f64 = 3.5;

/// Explains why the requests in question take longer than the others.
pub fn analyse(question: Question) -> Analysis {
    let Question { vocabulary, mut slow, mut fast, subject, seed, text, unlinked } = question;
    // A handful is no group whose mean could be judged: each is, by what is usual.
    let subject = if slow.len() < FEW_REQUESTS { Subject::Single } else { subject };
    let folded = fold_silent_spans(&vocabulary, &mut [&mut slow, &mut fast]);
    let skew = correct_clocks(&vocabulary, &mut [&mut slow, &mut fast]);
    let sources = Sources::of(&vocabulary, &[&slow, &fast]);
    let ledger = ledger(&vocabulary, &sources, &slow, &fast);
    let matrix = Matrix::of(&ledger);
    let calls = Calls::of(&vocabulary, &ledger, &matrix);
    let summaries = [side_summary(&ledger, 0), side_summary(&ledger, 1)];
    let difference = matrix.difference(Tree::ROOT);
    let is_slower = is_slower(subject, &ledger, &matrix);
    let has_enough = match subject {
        Subject::Single => !slow.is_empty() && fast.len() >= FEW_REQUESTS,
        Subject::Cohort => fast.len() >= FEW_REQUESTS,
    };
    let sides = [slow.as_slice(), fast.as_slice()];
    let findings = Findings {
        vocabulary: &vocabulary,
        sides,
        ledger: &ledger,
        matrix: &matrix,
        calls: &calls,
        sources: &sources,
        seed,
    };
    let (causes, cause_places): (Vec<Cause>, Vec<_>) = if has_enough && is_slower {
        let (smallest, usual) = (FURTHER_SHARE * difference.delta, LEADING_SHARE * difference.delta);
        let walk = Walk { ledger: &ledger, matrix: &matrix, calls: &calls, smallest, usual };
        let found = findings.causes(&walk.blame()).into_iter();
        found.map(|found| (found.cause, (found.operation, found.carriers))).unzip()
    } else {
        (Vec::new(), Vec::new())
    };
    let widest = if causes.is_empty() { findings.widest() } else { None };
    let smallest_visible_ms = smallest_visible_ms(&sources, &matrix, slow.len(), is_slower);
    let verdict = verdict(&causes, has_enough, is_slower, &matrix, &summaries, subject);
    let durations =
        [0, 1].map(|side| vec![ledger.sides[side].iter().map(|vector| vector.duration).collect::<Vec<_>>()]);
    // One duration has no spread: it is as long as it is.
    let exact = [0.0];
    let [left, right] = [0, 1].map(|side| Side {
        columns: &durations[side],
        known_variance: (ledger.sides[side].len() < 2).then_some(exact.as_slice()),
    });
    let interval = difference_intervals(left, right, seed)[0];
    let ledger_parts = ledger_summary(&vocabulary, &ledger, Reach::Through);
    let coverage = coverage(&vocabulary, &sources, &ledger, &matrix, skew);
    let mut explanation = Explanation {
        verdict,
        causes,
        widest,
        slow: summaries[0].clone(),
        fast: summaries[1].clone(),
        delta_ms: difference.delta / 1e6,
        interval_ms: [interval.low / 1e6, interval.high / 1e6],
        is_slower,
        smallest_visible_ms,
        ledger: ledger_parts,
        critical_path: path_steps(&vocabulary, &ledger, &calls, &slow),
        coverage,
        moved: if has_enough { moved(&vocabulary, &ledger, &matrix) } else { Vec::new() },
        comparison: None,
        notes: Vec::new(),
    };
    explanation.notes = notes(&vocabulary, &sources, (&ledger, &matrix), &explanation, &unlinked);
    explanation.notes.extend(folded_note(&vocabulary, &folded));
    let mut analysis = Analysis { vocabulary, sides: [slow, fast], ledger, matrix, explanation, cause_places, text };
    analysis.name_requests();
    analysis
}

/// Whether the requests in question take longer at all.
fn is_slower(subject: Subject, ledger: &Ledger, matrix: &Matrix) -> bool {
    let difference = matrix.difference(Tree::ROOT);
    if difference.delta <= 0.0 {
        return false;
    }
    let fast = matrix.moments[1][Tree::ROOT as usize];
    match subject {
        Subject::Cohort => matrix.chance(Tree::ROOT) < DURATIONS_DIFFER,
        // One request is slow if it lies outside of what is usual, not if its mean differs: it has none.
        Subject::Single => {
            let spread = (fast.mean_variance * ledger.sides[1].len() as f64).sqrt();
            difference.delta > 2.0 * spread && difference.delta > 0.05 * fast.mean
        }
    }
}

fn verdict(
    causes: &[Cause],
    has_enough: bool,
    is_slower: bool,
    matrix: &Matrix,
    summaries: &[SideSummary; 2],
    subject: Subject,
) -> Verdict {
    if !causes.is_empty() {
        return Verdict::Found;
    }
    if !has_enough {
        return Verdict::NotEnoughData;
    }
    if !is_slower {
        return Verdict::Nothing;
    }
    let fewest = if subject == Subject::Single { 1 } else { FEW_REQUESTS };
    let has_samples = summaries[0].with_samples >= fewest && matrix.samples[0][Tree::ROOT as usize].1 >= FEWEST_SAMPLES;
    if has_samples { Verdict::Nothing } else { Verdict::NotEnoughData }
}

/// The smallest difference a request that could have been named: enough samples, and enough of them to be sure.
fn smallest_visible_ms(sources: &Sources, matrix: &Matrix, requests: usize, is_slower: bool) -> Option<f64> {
    if requests == 0 {
        return None;
    }
    let difference = matrix.difference(Tree::ROOT);
    let by_samples =
        sources.cpu_period().map_or(0.0, |period| FEWEST_SAMPLES.max(VISIBLE * VISIBLE) * period / requests as f64);
    let by_durations = if is_slower { JOINT_SHARE * difference.delta } else { VISIBLE * difference.error };
    Some(by_samples.max(by_durations) / 1e6)
}

fn coverage(
    vocabulary: &Vocabulary,
    sources: &Sources,
    ledger: &Ledger,
    matrix: &Matrix,
    skew: Vec<ClockSkew>,
) -> Coverage {
    let duration = matrix.moments[0][Tree::ROOT as usize].mean;
    let mut rest = 0.0;
    for (id, node) in ledger.tree.nodes().iter().enumerate() {
        if node.key == crate::tree::NodeKey::Part(Part::Unexplained) {
            rest += matrix.moments[0][id].mean;
        }
    }
    let requests = (ledger.sides[0].len() + ledger.sides[1].len()).max(1) as f64;
    let evidence = &ledger.evidence;
    let mut services: Vec<ServiceCoverage> = evidence
        .services
        .iter()
        .map(|(service, time)| ServiceCoverage {
            service: vocabulary.text_of(*service).to_owned(),
            ms: time / requests / 1e6,
            profiles: sources.measures(*service).iter().map(|measure| measure.name()).collect(),
        })
        .collect();
    services.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.service.cmp(&b.service)));
    let durations: f64 = ledger.sides.iter().flatten().map(|vector| vector.duration).sum();
    let sampled = hotspan_model::Coverage::new(CoverageOf::Spans, evidence.seen as i64, durations as i64);
    let share = |time: f64| if evidence.seen > 0.0 { (time / evidence.seen).min(1.0) } else { 0.0 };
    Coverage {
        sampled: sampled.map_or(0.0, hotspan_model::Coverage::share),
        explained: if duration > 0.0 { (1.0 - rest / duration).clamp(0.0, 1.0) } else { 0.0 },
        exact_samples: evidence.links[0],
        inherited_samples: evidence.links[1],
        inferred_samples: evidence.links[2],
        unsymbolised: share(evidence.unsymbolised),
        estimated: share(evidence.estimated),
        cpu_period_ms: sources.cpu_period().map(|period| period / 1e6),
        services,
        dropped: 0,
        clock_skew: skew,
        matched: None,
    }
}
