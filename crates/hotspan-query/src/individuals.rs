//! Profiles and spans one by one: what heatmaps are drawn from, and what exemplars point at.

use std::sync::Arc;

use arrow::array::Array;
use hashbrown::HashMap;
use hotspan_lake::arrays;
use hotspan_model::{Exactness, Labels, ProfileId, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::flame::FlameQuery;
use crate::groups::Groups;
use crate::scan::{Grain, Scan, ScannedRows};

/// What counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndividualKind {
    /// A profile as it was received.
    Profile,
    /// A span that samples name.
    Span,
}

/// One profile or span, and what was measured in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Individual {
    /// Index into [`Individuals::groups`].
    pub group: usize,
    /// The sum of its samples.
    pub value: i64,
    /// Its first sample.
    pub time: i64,
    /// The profile that its first sample came in.
    pub profile_id: ProfileId,
    /// The span, if it is one.
    pub span_id: Option<SpanId>,
    /// The trace of the span, as far as it is known.
    pub trace_id: Option<TraceId>,
    /// Labels of its series.
    pub labels: Arc<Labels>,
}

/// All individuals of a question.
#[derive(Debug, Clone, Default)]
pub struct Individuals {
    /// Labels that tell groups apart.
    pub groups: Vec<Labels>,
    /// Individuals in order of time.
    pub all: Vec<Individual>,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

/// More individuals than this are more than a picture can show.
const MOST: usize = 1_000_000;

impl Engine {
    /// The profiles or spans behind a question, by groups of labels, and what of them lies in stacks that count. Profiles and nodes play no part.
    pub async fn individuals(
        &self,
        tenant: &TenantId,
        query: &FlameQuery,
        kind: IndividualKind,
        group_by: &[String],
    ) -> Result<Individuals> {
        let snapshot = self.snapshot();
        let entries = self.fitting_series(tenant, &snapshot, &query.typed_selector(), query.from, query.until).await?;
        let groups = Groups::of(&entries, group_by);
        let series: Arc<Vec<u64>> = Arc::new(entries.iter().map(|entry| entry.id.0).collect());
        let kept = self.kept_paths(tenant, &snapshot, query, &entries).await?;
        let mut columns = vec!["time", "value", "profile_id", "trace_id", "span_id"];
        columns.extend(kept.is_some().then_some("path"));
        let range = (query.from, query.until);
        let scan = Scan { range, series: &series, grain: Grain::Sample, columns: &columns };
        let mut found: HashMap<(usize, [u8; 16]), Individual> = HashMap::new();
        let mut each = |rows: &ScannedRows<'_>| {
            let batch = rows.batch;
            let times = arrays::times(batch, "time")?.values();
            let values = arrays::int64s(batch, "value")?.values();
            let profiles = arrays::ids(batch, "profile_id")?;
            let traces = arrays::ids(batch, "trace_id")?;
            let spans = arrays::ids(batch, "span_id")?;
            let paths = if kept.is_some() { Some(arrays::uint64s(batch, "path")?.values()) } else { None };
            for (at, row) in rows.runs.iter().flat_map(|(at, run)| run.clone().map(|row| (*at, row))) {
                if let (Some(kept), Some(paths)) = (&kept, paths)
                    && !kept.contains(&paths[row])
                {
                    continue;
                }
                let profile = arrays::id_at::<16>(profiles, row);
                let span = spans.is_valid(row).then(|| arrays::id_at::<8>(spans, row));
                let key = match (kind, span) {
                    (IndividualKind::Profile, _) => profile,
                    (IndividualKind::Span, Some(span)) => wide(span),
                    (IndividualKind::Span, None) => continue,
                };
                let is_span = kind == IndividualKind::Span;
                let one = found.entry((groups.of_series[at], key)).or_insert_with(|| Individual {
                    group: groups.of_series[at],
                    value: 0,
                    time: times[row],
                    profile_id: ProfileId(profile),
                    span_id: span.filter(|_| is_span).map(SpanId),
                    trace_id: None,
                    labels: Arc::clone(&entries[at].labels),
                });
                one.value = one.value.saturating_add(values[row]);
                one.time = one.time.min(times[row]);
                if is_span && one.trace_id.is_none() && traces.is_valid(row) {
                    one.trace_id = Some(TraceId(arrays::id_at::<16>(traces, row)));
                }
            }
            if found.len() > MOST {
                let message = format!("more than {MOST} profiles or spans fit; ask for less time or more labels");
                return Err(QueryError::Limit(message));
            }
            Ok(())
        };
        let exactness = self.scan_question(tenant, &snapshot, (query, &entries), &scan, &mut each).await?;
        let mut all: Vec<Individual> = found.into_values().collect();
        all.sort_by_key(|one| (one.time, one.profile_id, one.span_id, one.group));
        Ok(Individuals { groups: groups.labels, all, exactness })
    }
}

/// Ids of both kinds in one key.
fn wide(span: [u8; 8]) -> [u8; 16] {
    let mut key = [0; 16];
    key[8..].copy_from_slice(&span);
    key
}
