//! Cohorts: any TraceQL search selects spans, and the spans select the code that ran in them.

use std::str::FromStr;

use hashbrown::{HashMap, HashSet};
use hotspan_model::{SpanId, TenantId, TraceId};
use hotspan_traceql::{Program, SpanSource, TraceSource};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::search::{gather, overlapping, reach_back, reach_on, slices};

/// Whose samples count for a selected span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CohortScope {
    /// The span's own.
    #[default]
    Span,
    /// Its own and those of everything it called.
    Subtree,
    /// Those of its whole trace.
    Trace,
}

impl FromStr for CohortScope {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "span" => Ok(Self::Span),
            "subtree" => Ok(Self::Subtree),
            "trace" => Ok(Self::Trace),
            other => Err(QueryError::Invalid(format!("scope {other:?} is not known; use span, subtree or trace"))),
        }
    }
}

/// The spans that a search selected.
#[derive(Debug, Clone, Default)]
pub struct Cohort {
    /// Spans whose samples count; empty if whole traces count.
    pub spans: Vec<SpanId>,
    /// Traces whose samples count.
    pub traces: Vec<TraceId>,
    /// How many spans the search matched, before children were added.
    pub matched: u64,
    /// Whether there were more than `limit`; the latest were kept.
    pub is_cut: bool,
}

impl Engine {
    /// The spans that match a search and start in `from..until`, at most `limit` of them, with what `scope` adds.
    pub async fn cohort(
        &self,
        tenant: &TenantId,
        program: &Program,
        (from, until): (i64, i64),
        scope: CohortScope,
        limit: usize,
    ) -> Result<Cohort> {
        let search = program.search().ok_or_else(|| {
            QueryError::Invalid("a cohort is selected by a search, not by a metrics query".to_owned())
        })?;
        let snapshot = self.snapshot();
        let segments = overlapping(&snapshot, tenant, reach_back(from), reach_on(until));
        let mut selected: Vec<(i64, TraceId, Vec<SpanId>)> = Vec::new();
        for slice in slices(&segments) {
            let Some(mut gathered) = gather(self.lake(), &segments, slice, program.fields()).await? else { continue };
            for rows in std::mem::take(&mut gathered.traces) {
                gathered.spans.show(rows);
                let spans = &gathered.spans;
                if !program.prefilter().may_match(spans) {
                    continue;
                }
                let mut matched: Vec<usize> = search
                    .evaluate(&program.view(spans))
                    .into_iter()
                    .flat_map(|set| set.spans)
                    .map(|span| span as usize)
                    .filter(|span| (from..until).contains(&spans.start_nanos(*span)))
                    .collect();
                matched.sort_unstable();
                matched.dedup();
                let subtrees = (scope == CohortScope::Subtree && !matched.is_empty()).then(|| children_of(spans));
                for span in matched {
                    let ids = match &subtrees {
                        Some(children) => subtree(spans, children, span),
                        None => vec![spans.span_id(span)],
                    };
                    selected.push((spans.start_nanos(span), spans.trace_id(span), ids));
                }
            }
        }
        selected.sort_unstable_by_key(|(start, trace, _)| (std::cmp::Reverse(*start), *trace));
        let matched = selected.len() as u64;
        let is_cut = selected.len() > limit;
        selected.truncate(limit);
        let traces: HashSet<TraceId> = selected.iter().map(|(_, trace, _)| *trace).collect();
        let spans: HashSet<SpanId> = match scope {
            CohortScope::Trace => HashSet::new(),
            _ => selected.into_iter().flat_map(|(_, _, ids)| ids).collect(),
        };
        Ok(Cohort { spans: spans.into_iter().collect(), traces: traces.into_iter().collect(), matched, is_cut })
    }
}

fn children_of(spans: &impl TraceSource) -> HashMap<SpanId, Vec<usize>> {
    let mut children: HashMap<SpanId, Vec<usize>> = HashMap::new();
    for span in 0..spans.span_count() {
        if let Some(parent) = spans.parent_id(span) {
            children.entry(parent).or_default().push(span);
        }
    }
    children
}

fn subtree(spans: &impl TraceSource, children: &HashMap<SpanId, Vec<usize>>, root: usize) -> Vec<SpanId> {
    let mut ids = Vec::new();
    let mut seen: HashSet<SpanId> = HashSet::new();
    let mut pending = vec![root];
    while let Some(span) = pending.pop() {
        let id = spans.span_id(span);
        // Parent links may form a circle in a broken trace.
        if seen.insert(id) {
            ids.push(id);
            pending.extend(children.get(&id).into_iter().flatten());
        }
    }
    ids
}
