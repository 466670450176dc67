//! Search: the traces that match a query, in order, as soon as their place is certain.

use std::sync::Arc;

use hotspan_lake::table::HOUR;
use hotspan_lake::{Segment, Snapshot, Table};
use hotspan_model::{Exactness, TenantId};
use hotspan_traceql::Program;

use super::latest::LatestTraces;
use super::longest::LongestTraces;
use super::order::Best;
use super::profile_fields::ProfileFields;
use super::whole::WholeTraces;
use super::{FoundTrace, Rank, SearchOrder};
use crate::Engine;
use crate::error::{QueryError, Result};

/// What to search for.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    /// Start of the time, in nanoseconds since 1970; a trace counts if one of its spans starts inside.
    pub from: i64,
    /// End of the time, not included.
    pub until: i64,
    /// How many traces to give at most.
    pub limit: usize,
    /// How many spans of a set to give at most.
    pub spans_per_set: usize,
    /// What comes first.
    pub order: SearchOrder,
    /// Only traces behind this place: the next page.
    pub after: Option<Rank>,
}

/// A part of what a search finds, or all of it.
#[derive(Debug, Clone, Default)]
pub struct SearchAnswer {
    /// The traces, in order.
    pub traces: Vec<FoundTrace>,
    /// What was looked at so far.
    pub inspected: Inspected,
    /// What that rests on: all spans that were evaluated.
    pub exactness: Exactness,
    /// Where the next page starts, once the search is over and there may be one.
    pub next_page: Option<Rank>,
}

/// What a question looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inspected {
    /// Spans that were evaluated.
    pub spans: u64,
    /// Traces that were evaluated whole.
    pub traces: u64,
    /// Bytes of the segments that were opened.
    pub bytes: u64,
    /// Pieces of work that are done.
    pub steps_done: u32,
    /// Pieces of work in all.
    pub steps: u32,
}

/// Spans of a trace may start this long before or after the time asked for and still be found with it.
const TRACE_REACH: i64 = HOUR;

/// A search under way. Dropping it ends it.
#[derive(Debug)]
pub struct SearchRun {
    scene: Scene,
    work: Work,
    is_over: bool,
}

/// What the ways of searching share.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) engine: Engine,
    pub(super) tenant: TenantId,
    pub(super) program: Arc<Program>,
    pub(super) query: SearchQuery,
    pub(super) snapshot: Arc<Snapshot>,
    /// What profiles know of spans, once it has been read.
    pub(super) profiles: Option<Arc<ProfileFields>>,
    is_begun: bool,
    pub(super) best: Best,
    pub(super) inspected: Inspected,
}

#[derive(Debug)]
enum Work {
    Latest(LatestTraces),
    Longest(LongestTraces),
    Whole(WholeTraces),
}

/// How far a step brought a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Traces that are still unseen have keys up to this.
    UnseenUpTo(i64),
    /// All that counts has been seen.
    Over,
    /// This way of searching would take too much memory: another one has to start.
    TooMany,
}

impl Engine {
    /// The traces that match a query, all at once.
    pub async fn search(&self, tenant: &TenantId, program: &Arc<Program>, query: SearchQuery) -> Result<SearchAnswer> {
        let mut run = self.start_search(tenant, program, query)?;
        let mut answer = SearchAnswer::default();
        while let Some(part) = run.next_part().await? {
            answer.traces.extend(part.traces);
            answer.inspected = part.inspected;
            answer.exactness = part.exactness;
            answer.next_page = part.next_page;
        }
        Ok(answer)
    }

    /// Starts a search that gives its traces part by part.
    pub fn start_search(&self, tenant: &TenantId, program: &Arc<Program>, query: SearchQuery) -> Result<SearchRun> {
        let search = program
            .search()
            .ok_or_else(|| QueryError::Invalid("this is a metrics query; ask /api/metrics/query_range".to_owned()))?;
        let snapshot = self.snapshot();
        let work = match (search.span_filter(), query.order) {
            (_, SearchOrder::Recent) => Work::Latest(LatestTraces::new(&snapshot, tenant, program, &query)),
            (Some(_), SearchOrder::Duration) => Work::Longest(LongestTraces::new(&snapshot, tenant, &query)),
            (None, SearchOrder::Duration) => Work::Whole(WholeTraces::new(&snapshot, tenant, &query)),
        };
        let scene = Scene {
            engine: self.clone(),
            tenant: tenant.clone(),
            program: Arc::clone(program),
            best: Best::new(query.limit, query.after),
            query,
            snapshot,
            profiles: None,
            is_begun: false,
            inspected: Inspected::default(),
        };
        Ok(SearchRun { scene, work, is_over: false })
    }
}

impl SearchRun {
    /// The traces whose place became certain with the next piece of work; none when the search is over.
    pub async fn next_part(&mut self) -> Result<Option<SearchAnswer>> {
        if self.is_over {
            return Ok(None);
        }
        self.scene.begin().await?;
        let progress = match &mut self.work {
            Work::Latest(work) => work.step(&mut self.scene).await?,
            Work::Longest(work) => work.step(&mut self.scene).await?,
            Work::Whole(work) => work.step(&mut self.scene).await?,
        };
        let unseen = match progress {
            Progress::UnseenUpTo(key) => Some(key),
            Progress::Over => None,
            Progress::TooMany => {
                let Scene { snapshot, tenant, query, .. } = &self.scene;
                self.work = Work::Whole(WholeTraces::new(snapshot, tenant, query));
                Some(i64::MAX)
            }
        };
        self.is_over = progress == Progress::Over;
        if self.is_over {
            self.scene.inspected.steps_done = self.scene.inspected.steps;
        }
        Ok(Some(SearchAnswer {
            traces: self.scene.show_certain(unseen).await?,
            inspected: self.scene.inspected,
            exactness: self.scene.exactness(),
            next_page: if self.is_over { self.scene.best.next_page() } else { None },
        }))
    }
}

impl Scene {
    /// Reads what profiles know, if the query asks for it.
    async fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.is_begun, true) {
            let (fields, range) = (self.program.fields(), (self.query.from, self.query.until));
            self.profiles = self.engine.profile_fields(&self.tenant, &self.snapshot, fields, range).await?;
        }
        Ok(())
    }

    fn exactness(&self) -> Exactness {
        let Self { engine, tenant, query, .. } = self;
        engine.exactness_of_search(tenant, (query.from, query.until), self.inspected.spans, self.profiles.as_deref())
    }
}

impl Engine {
    /// What an answer rests on that was made from the spans of a time, and from samples where profile fields are asked for.
    pub(crate) fn exactness_of_search(
        &self,
        tenant: &TenantId,
        (from, until): (i64, i64),
        spans: u64,
        profiles: Option<&ProfileFields>,
    ) -> Exactness {
        let mut exactness = self.exactness_of_spans(tenant, spans, Some((from, until)));
        exactness.merge(&profiles.map(ProfileFields::exactness).unwrap_or_default());
        exactness
    }
}

/// The segments of spans that a time touches.
pub(crate) fn overlapping(snapshot: &Snapshot, tenant: &TenantId, from: i64, until: i64) -> Vec<Arc<Segment>> {
    let segments = snapshot.segments(tenant, Table::Spans);
    segments.iter().filter(|segment| segment.overlaps(from, until)).cloned().collect()
}

pub(crate) fn reach_back(from: i64) -> i64 {
    from.saturating_sub(TRACE_REACH)
}

pub(crate) fn reach_on(until: i64) -> i64 {
    until.saturating_add(TRACE_REACH)
}
