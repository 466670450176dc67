//! Which spans are in question, and which they are compared with.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::Snapshot;
use hotspan_model::{SpanId, TenantId, TraceId};
use hotspan_query::outline::by_trace;
use hotspan_query::{CohortSpan, Engine, MAX_COHORT_SPANS, Result};
use hotspan_traceql::Program;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::load::{TraceShape, range_of};
use super::target::{Target, search};
use super::{BeforeAfter, ExplainQuery, invalid, seed_of};
use crate::matrix::FEW_REQUESTS;

/// Requests of one side that are looked at.
pub(super) const MOST_REQUESTS: usize = 2_000;
/// Requests around the median: between these shares of all, by duration.
const AROUND_MEDIAN: (f64, f64) = (0.25, 0.75);
/// Where a search selects an operation whole, the slowest of it are in question.
const SLOWEST: f64 = 0.1;
/// Traces that are looked at to tell which operations of a search call which.
const SURVEYED_TRACES: usize = 200;
/// How far around a trace others are looked for to compare it with.
const AROUND_TRACE: i64 = 3600 * 1_000_000_000;

/// The spans of both sides.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) slow: Vec<CohortSpan>,
    pub(super) fast: Vec<CohortSpan>,
    /// How many matched, before they were thinned out.
    pub(super) matched: [usize; 2],
    pub(super) is_single: bool,
    pub(super) seed: u64,
    pub(super) notes: Vec<String>,
}

/// Chooses spans.
#[derive(Debug)]
pub(super) struct Chooser<'a> {
    pub(super) engine: &'a Engine,
    pub(super) tenant: &'a TenantId,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) query: &'a ExplainQuery,
}

impl Chooser<'_> {
    /// Both sides.
    pub(super) async fn choose(&self) -> Result<Chosen> {
        let mut chosen = self.target_only(true).await?;
        if chosen.slow.is_empty() {
            return Ok(chosen);
        }
        let range = self.baseline_range(&chosen);
        let fast = match &self.query.baseline {
            Some(text) => {
                let found = self.find(&search("baseline", text)?, range).await?;
                like_the_target(found, &mut chosen)
            }
            None => self.usual(&mut chosen, range).await?,
        };
        let in_question: HashSet<(TraceId, SpanId)> =
            chosen.slow.iter().map(|span| (span.trace_id, span.span_id)).collect();
        let fast: Vec<CohortSpan> =
            fast.into_iter().filter(|span| !in_question.contains(&(span.trace_id, span.span_id))).collect();
        chosen.matched[1] = fast.len();
        chosen.fast = thinned(fast, chosen.seed);
        chosen.slow = thinned(std::mem::take(&mut chosen.slow), chosen.seed);
        Ok(chosen)
    }

    /// The spans in question; of one operation only, where they are to be compared.
    pub(super) async fn target_only(&self, is_compared: bool) -> Result<Chosen> {
        let mut chosen = Chosen { seed: seed_of(self.query), ..Chosen::default() };
        match Target::parse(&self.query.target)? {
            Target::Search(program) => {
                let range = self.query.range.unwrap_or(self.query.default_range);
                let spans = self.find(&program, range).await?;
                chosen.slow = if is_compared { self.one_operation(spans, &mut chosen.notes).await? } else { spans };
                // A search for one span by its id is about that span.
                chosen.is_single = chosen.slow.len() == 1;
            }
            Target::Trace(trace) => {
                chosen.slow = vec![self.span_of_trace(trace, None).await?];
                chosen.is_single = true;
            }
            Target::Span(trace, span) => {
                chosen.slow = vec![self.span_of_trace(trace, Some(span)).await?];
                chosen.is_single = true;
            }
            Target::Sixteen(trace, span) => {
                chosen.slow = vec![self.span_or_short_trace(trace, span).await?];
                chosen.is_single = true;
            }
        }
        chosen.matched[0] = chosen.slow.len();
        if !is_compared {
            chosen.slow = thinned(chosen.slow, chosen.seed);
        }
        Ok(chosen)
    }

    /// The same search in two times: after is in question, before is compared with.
    pub(super) async fn before_and_after(&self, times: BeforeAfter) -> Result<Chosen> {
        let Target::Search(program) = Target::parse(&self.query.target)? else {
            return Err(invalid("target: before and after are compared for a search, not for one trace"));
        };
        let mut chosen = Chosen { seed: seed_of(self.query), ..Chosen::default() };
        let after = self.find(&program, times.after).await?;
        chosen.slow = self.one_operation(after, &mut chosen.notes).await?;
        let operation = chosen.slow.first().map(|span| (Arc::clone(&span.service), Arc::clone(&span.name)));
        chosen.fast = self.find(&program, times.before).await?;
        if let Some((service, name)) = operation {
            chosen.fast.retain(|span| span.service == service && span.name == name);
        }
        chosen.matched = [chosen.slow.len(), chosen.fast.len()];
        chosen.slow = thinned(chosen.slow, chosen.seed);
        chosen.fast = thinned(chosen.fast, chosen.seed);
        Ok(chosen)
    }

    async fn find(&self, program: &Program, range: (i64, i64)) -> Result<Vec<CohortSpan>> {
        Ok(self.engine.cohort(self.tenant, self.snapshot, program, range, MAX_COHORT_SPANS).await?.spans)
    }

    /// The spans of the operation that takes most time, since only like is compared with like. Operations that are called
    /// by others of the search are part of those.
    async fn one_operation(&self, mut spans: Vec<CohortSpan>, notes: &mut Vec<String>) -> Result<Vec<CohortSpan>> {
        let mut times: HashMap<(Arc<str>, Arc<str>), i128> = HashMap::new();
        for span in &spans {
            *times.entry((Arc::clone(&span.service), Arc::clone(&span.name))).or_default() += i128::from(span.duration);
        }
        if times.len() < 2 {
            return Ok(spans);
        }
        let operations = times.len();
        let inner = self.inner_operations(&spans).await?;
        if times.keys().any(|operation| !inner.contains(operation)) {
            times.retain(|operation, _| !inner.contains(operation));
        }
        let most = times.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        let Some(((service, name), _)) = most else { return Ok(spans) };
        let all = spans.len();
        spans.retain(|span| span.service == service && span.name == name);
        notes.push(format!(
            "The search selects {operations} operations; looked at is {service} {name}, {} of the {all} spans: of those that no other calls it takes most time.",
            spans.len()
        ));
        Ok(spans)
    }

    /// The operations of a search whose spans mostly lie below others that it selects, judged by some of the traces.
    async fn inner_operations(&self, spans: &[CohortSpan]) -> Result<HashSet<(Arc<str>, Arc<str>)>> {
        let mut traces: Vec<TraceId> = spans.iter().map(|span| span.trace_id).collect();
        traces.sort_unstable();
        traces.dedup();
        traces.truncate(SURVEYED_TRACES);
        let surveyed: HashSet<TraceId> = traces.iter().copied().collect();
        let selected: HashSet<(TraceId, SpanId)> = spans.iter().map(|span| (span.trace_id, span.span_id)).collect();
        let of_these: Vec<&CohortSpan> = spans.iter().filter(|span| surveyed.contains(&span.trace_id)).collect();
        let outlines = self.engine.outlines(self.tenant, self.snapshot, &traces, range_of(&of_these)).await?.answer;
        let shapes: HashMap<TraceId, TraceShape<'_>> =
            by_trace(&outlines).filter_map(|trace| Some((trace.first()?.trace_id, TraceShape::of(trace)))).collect();
        let mut counts: HashMap<(Arc<str>, Arc<str>), (usize, usize)> = HashMap::new();
        for span in of_these {
            let count = counts.entry((Arc::clone(&span.service), Arc::clone(&span.name))).or_default();
            let shape = shapes.get(&span.trace_id);
            count.0 += usize::from(shape.is_some_and(|shape| shape.has_caller_in(span.span_id, &selected)));
            count.1 += 1;
        }
        Ok(counts.into_iter().filter(|(_, (inner, all))| 2 * inner > *all).map(|(operation, _)| operation).collect())
    }

    fn baseline_range(&self, chosen: &Chosen) -> (i64, i64) {
        match (self.query.range, chosen.slow.first()) {
            (Some(range), _) => range,
            (None, Some(span)) if chosen.is_single => {
                (span.start.saturating_sub(AROUND_TRACE), span.start.saturating_add(AROUND_TRACE))
            }
            _ => self.query.default_range,
        }
    }

    /// Spans of the same operation around its median. Where all of the operation is in question, its slowest are.
    async fn usual(&self, chosen: &mut Chosen, range: (i64, i64)) -> Result<Vec<CohortSpan>> {
        let Some(first) = chosen.slow.first() else { return Ok(Vec::new()) };
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!(
            "{{ resource.service.name = \"{}\" && name = \"{}\" }}",
            quoted(&first.service),
            quoted(&first.name)
        );
        let mut all = self.find(&search("baseline", &text)?, range).await?;
        all.sort_by_key(|span| (span.duration, span.trace_id, span.span_id));
        let share = |share: f64| (all.len() as f64 * share) as usize;
        let mut usual: Vec<CohortSpan> = all[share(AROUND_MEDIAN.0)..share(AROUND_MEDIAN.1)].to_vec();
        if !chosen.is_single && chosen.slow.len() as f64 > 0.9 * all.len() as f64 {
            let slowest = all[share(1.0 - SLOWEST)..].to_vec();
            chosen.notes.push(format!(
                "The search selects nearly every request of {} {}: the slowest tenth, {} requests, is compared with those around the median.",
                first.service,
                first.name,
                slowest.len()
            ));
            chosen.matched[0] = slowest.len();
            chosen.slow = slowest;
            return Ok(usual);
        }
        // A search may hold most of the usual requests itself: then the others are what there is to compare with.
        let in_question: HashSet<(TraceId, SpanId)> =
            chosen.slow.iter().map(|span| (span.trace_id, span.span_id)).collect();
        let others = usual.iter().filter(|span| !in_question.contains(&(span.trace_id, span.span_id))).count();
        if others < 2 * FEW_REQUESTS {
            usual = all;
        }
        Ok(usual)
    }

    async fn span_of_trace(&self, trace_id: TraceId, span_id: Option<SpanId>) -> Result<CohortSpan> {
        let found = self.engine.trace_by_id(self.tenant, trace_id).await?;
        let spans = found.ok_or_else(|| invalid(format!("target: there is no trace {trace_id}")))?.spans;
        let ids: HashSet<SpanId> = spans.iter().map(|span| span.span_id).collect();
        let chosen = match span_id {
            Some(id) => spans.iter().find(|span| span.span_id == id),
            // The longest span without a caller: parts that came loose are shorter.
            None => spans
                .iter()
                .filter(|span| span.parent_id.is_none_or(|parent| !ids.contains(&parent)))
                .max_by_key(|span| (span.duration, std::cmp::Reverse(span.span_id)))
                .or(spans.first()),
        };
        let span = chosen.ok_or_else(|| {
            invalid(format!(
                "target: trace {trace_id} has no span {}",
                span_id.map_or(String::new(), |id| id.to_string())
            ))
        })?;
        Ok(CohortSpan {
            trace_id,
            span_id: span.span_id,
            start: span.start,
            duration: span.duration,
            service: Arc::clone(&span.service),
            name: Arc::from(span.name.as_str()),
        })
    }

    async fn span_or_short_trace(&self, trace_id: TraceId, span_id: SpanId) -> Result<CohortSpan> {
        if self.engine.trace_by_id(self.tenant, trace_id).await?.is_some() {
            return self.span_of_trace(trace_id, None).await;
        }
        let range = self.query.range.unwrap_or(self.query.default_range);
        let program = search("target", &format!("{{ span:id = \"{span_id}\" }}"))?;
        let found = self.find(&program, range).await?;
        found.into_iter().next().ok_or_else(|| {
            invalid(format!("target: there is no trace {span_id}, and no span of that id in this time; TRACE:SPAN finds a span at any time"))
        })
    }
}

/// The spans of a baseline that do the same as those in question, if there are enough of them.
fn like_the_target(found: Vec<CohortSpan>, chosen: &mut Chosen) -> Vec<CohortSpan> {
    let Some(first) = chosen.slow.first() else { return found };
    let is_alike = |span: &&CohortSpan| span.service == first.service && span.name == first.name;
    let alike: Vec<CohortSpan> = found.iter().filter(is_alike).cloned().collect();
    if alike.len() == found.len() || alike.len() < FEW_REQUESTS {
        return found;
    }
    chosen.notes.push(format!(
        "Of the baseline, the {} of {} spans that are {} {} are compared with.",
        alike.len(),
        found.len(),
        first.service,
        first.name
    ));
    alike
}

/// At most so many spans, drawn by a hash of their ids: the same ones each time, whatever order they come in.
fn thinned(mut spans: Vec<CohortSpan>, seed: u64) -> Vec<CohortSpan> {
    let rank = |span: &CohortSpan| {
        let mut bytes = [0u8; 24];
        bytes[..16].copy_from_slice(&span.trace_id.0);
        bytes[16..].copy_from_slice(&span.span_id.0);
        xxh3_64_with_seed(&bytes, seed)
    };
    if spans.len() > MOST_REQUESTS {
        spans.sort_by_cached_key(|span| (rank(span), span.trace_id, span.span_id));
        spans.truncate(MOST_REQUESTS);
    }
    spans.sort_unstable_by_key(|span| (span.trace_id, span.span_id));
    spans
}
