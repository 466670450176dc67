//! From the store to requests: which spans are in question, which they are compared with, and everything below them.

mod attributes;
mod cohorts;
mod load;
mod target;

use std::sync::Arc;
use std::time::Duration;

use hotspan_lake::catalog::now_nanos;
use hotspan_lake::rejected::Rejected;
use hotspan_lake::{LakeError, Snapshot};
use hotspan_model::TenantId;
use hotspan_query::{Engine, LinkPolicy, QueryError, Result};
use xxhash_rust::xxh3::xxh3_64;

pub use load::measure_of;
pub use target::Target;

use self::cohorts::{Chooser, Chosen, MOST_REQUESTS};
use self::load::{Loaded, Loader};
use crate::comparison::{Change, Comparison, compare};
use crate::explain::{Analysis, Question, Subject, analyse};
use crate::explanation::{Matched, SideSummary};
use crate::ledger_summary::side_summary;
use crate::notes::counted;
use crate::request::Measure;

/// What is asked.
#[derive(Debug, Clone)]
pub struct ExplainQuery {
    /// A trace, a span, or a search.
    pub target: String,
    /// A search for what to compare with; none for the same operation's spans around its median.
    pub baseline: Option<String>,
    /// Start and end of the time in which spans start, where it was said.
    pub range: Option<(i64, i64)>,
    /// Start and end of the time to take where none was said.
    pub default_range: (i64, i64),
    /// The measures that count; empty for all that are time.
    pub measures: Vec<Measure>,
    /// Prefixes of functions that are own code whatever their files say.
    pub own_code: Vec<String>,
    /// How surely a sample must belong to a span to count.
    pub links: LinkPolicy,
}

/// Two times that are compared.
#[derive(Debug, Clone, Copy)]
pub struct BeforeAfter {
    /// Start and end of the time before the change.
    pub before: (i64, i64),
    /// Start and end of the time after it.
    pub after: (i64, i64),
}

/// Explains a target.
pub async fn explain(engine: &Engine, tenant: &TenantId, query: &ExplainQuery) -> Result<Analysis> {
    let snapshot = engine.snapshot();
    let chooser = Chooser { engine, tenant, snapshot: &snapshot, query };
    let chosen = chooser.choose().await?;
    let (analysis, besides) = answer(engine, tenant, &snapshot, query, chosen).await?;
    Ok(besides.added_to(analysis))
}

/// Compares a cohort before and after a change. The causes are those of the side that is slower.
pub async fn explain_change(
    engine: &Engine,
    tenant: &TenantId,
    query: &ExplainQuery,
    times: BeforeAfter,
) -> Result<Analysis> {
    let snapshot = engine.snapshot();
    let chooser = Chooser { engine, tenant, snapshot: &snapshot, query };
    let chosen = chooser.before_and_after(times).await?;
    let seed = chosen.seed;
    let (mut analysis, mut besides) = answer(engine, tenant, &snapshot, query, chosen).await?;
    let comparison = comparison_of(&analysis, seed);
    if comparison.change == Change::Faster {
        // Where the change helped, the causes are what it took away.
        analysis = off_thread(analysis.into_reversed_question(seed)).await?;
        besides.matched = Matched { slow: besides.matched.fast, fast: besides.matched.slow };
    }
    analysis.explanation.comparison = Some(comparison);
    Ok(besides.added_to(analysis))
}

fn comparison_of(analysis: &Analysis, seed: u64) -> Comparison {
    let summaries: [SideSummary; 2] = [side_summary(&analysis.ledger, 0), side_summary(&analysis.ledger, 1)];
    compare(&analysis.vocabulary, &analysis.ledger, &analysis.matrix, summaries, seed)
}

/// The requests that a search selects, without anything to compare them with: for their ledger and merged tree.
pub async fn requests_of(engine: &Engine, tenant: &TenantId, query: &ExplainQuery) -> Result<Analysis> {
    let snapshot = engine.snapshot();
    let chooser = Chooser { engine, tenant, snapshot: &snapshot, query };
    let chosen = chooser.target_only(false).await?;
    let (analysis, besides) = answer(engine, tenant, &snapshot, query, chosen).await?;
    Ok(besides.added_to(analysis))
}

/// Samples of a request that ended less than this ago may not be here yet.
const ON_THEIR_WAY: Duration = Duration::from_secs(20);
/// The explained share of the time from which on no more samples are to be waited for.
const WELL_EXPLAINED: f64 = 0.8;

/// What is known of an answer before anything is analysed.
struct Besides {
    /// Requests that matched, before they were thinned out.
    matched: Matched,
    /// What came in this time and was not taken.
    rejected: Rejected,
    /// How long ago one request that is asked about ended, if that is not long.
    ended_ago: Option<Duration>,
    notes: Vec<String>,
}

impl Besides {
    fn added_to(self, mut analysis: Analysis) -> Analysis {
        let explanation = &mut analysis.explanation;
        let mut notes = self.notes;
        notes.extend(drawn(self.matched, [explanation.slow.spans, explanation.fast.spans]));
        let Rejected { spans, samples } = self.rejected;
        if spans + samples > 0 {
            notes.push(format!(
                "{} and {} that came in this time were rejected and are not in this: their senders were told why.",
                counted(spans, "span"),
                counted(samples, "sample")
            ));
        }
        if let Some(ago) = self.ended_ago
            && explanation.coverage.explained < WELL_EXPLAINED
        {
            notes.push(format!(
                "It ended {} seconds ago: samples may still be on their way, since profilers send them every few seconds. Ask again.",
                ago.as_secs()
            ));
        }
        explanation.coverage.matched = Some(self.matched);
        explanation.coverage.dropped = spans + samples;
        notes.append(&mut explanation.notes);
        explanation.notes = notes;
        analysis
    }
}

/// Which side was thinned out, if any was.
fn drawn(matched: Matched, [slow, fast]: [usize; 2]) -> Option<String> {
    let sides = [(slow, matched.slow, "in question"), (fast, matched.fast, "to compare with")];
    let thinned: Vec<String> = sides
        .into_iter()
        .filter(|(_, matched, _)| *matched > MOST_REQUESTS)
        .map(|(left, matched, which)| format!("{left} of {matched} requests {which}"))
        .collect();
    (!thinned.is_empty()).then(|| format!("{} were drawn at random, the same ones each time.", thinned.join(" and ")))
}

async fn answer(
    engine: &Engine,
    tenant: &TenantId,
    snapshot: &Arc<Snapshot>,
    query: &ExplainQuery,
    chosen: Chosen,
) -> Result<(Analysis, Besides)> {
    let loader = Loader { engine, tenant, snapshot, query };
    let Loaded { vocabulary, slow, fast, resources, range, unlinked, mut notes } = loader.load(&chosen).await?;
    let text = format!("{} {}", query.target, query.baseline.as_deref().unwrap_or_default());
    let subject = if chosen.is_single { Subject::Single } else { Subject::Cohort };
    let question = Question { vocabulary, slow, fast, subject, seed: chosen.seed, text, unlinked };
    let mut analysis = off_thread(question).await?;
    if !analysis.explanation.causes.is_empty() && subject == Subject::Cohort {
        loader.add_attributes(&mut analysis, &resources, range).await?;
        analysis.name_requests();
    }
    let matched = Matched { slow: chosen.matched[0], fast: chosen.matched[1] };
    let (from, until) = if matched.slow > 0 { range } else { query.range.unwrap_or(query.default_range) };
    let rejected = engine.lake().rejected().between(tenant, from, until);
    let one = chosen.slow.first().filter(|_| chosen.is_single);
    let ended_ago = one.map(|span| now_nanos().saturating_sub(span.start.saturating_add(span.duration)));
    let ended_ago = ended_ago.map(|ago| Duration::from_nanos(u64::try_from(ago).unwrap_or(0)));
    let ended_ago = ended_ago.filter(|ago| *ago < ON_THEIR_WAY);
    let mut all = chosen.notes;
    all.append(&mut notes);
    Ok((analysis, Besides { matched, rejected, ended_ago, notes: all }))
}

/// Analyses on a thread for long work: a second of arithmetic would hold up other questions.
async fn off_thread(question: Question) -> Result<Analysis> {
    let done = tokio::task::spawn_blocking(move || analyse(question)).await;
    done.map_err(|error| {
        let (action, path) = ("analysing", "the requests".to_owned());
        QueryError::Lake(LakeError::Storage { action, path, source: std::io::Error::other(error) })
    })
}

/// The seed of a question: the same question draws the same requests.
fn seed_of(query: &ExplainQuery) -> u64 {
    xxh3_64(format!("{}\n{}", query.target, query.baseline.as_deref().unwrap_or_default()).as_bytes())
}

fn invalid(message: impl Into<String>) -> QueryError {
    QueryError::Invalid(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: both sides are thinned out, one of them, none; one also lost requests that lie inside others.
    /// Guarantee: only those that were drawn from are named.
    #[test]
    fn only_a_side_that_was_drawn_is_named() {
        let told = |slow, fast, left| drawn(Matched { slow, fast }, left);
        assert_eq!(told(753, 1_990, [753, 1_900]), None);
        let one = told(753, 5_000, [753, 2_000]).unwrap();
        assert_eq!(one, "2000 of 5000 requests to compare with were drawn at random, the same ones each time.");
        let both = told(9_000, 5_000, [2_000, 1_990]).unwrap();
        assert!(both.starts_with("2000 of 9000 requests in question and 1990 of 5000 requests to compare with were"));
    }
}
