//! The attributes of many spans at once.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_lake::{IdSet, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::{Exactness, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::Result;
use crate::search::{reach_back, reach_on};
use crate::side_by_side::side_by_side;
use crate::told::Told;
use crate::trace::{StoredAttribute, read_attributes};

impl Engine {
    /// The attributes of these spans, as far as they start within an hour of `from..until`.
    pub async fn span_attributes(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        spans: &[(TraceId, SpanId)],
        (from, until): (i64, i64),
    ) -> Result<Told<HashMap<(TraceId, SpanId), Vec<StoredAttribute>>>> {
        let wanted: HashSet<(TraceId, SpanId)> = spans.iter().copied().collect();
        let ids = Arc::new(IdSet::traces(spans.iter().map(|(trace, _)| *trace)));
        let options = ReadOptions::columns(&["trace_id", "span_id", "attributes", "attributes_json"])
            .with_prefix(ATTRIBUTE_PREFIX);
        let range = (reach_back(from), reach_on(until));
        let mut read = Exactness::default();
        let jobs = self.id_jobs(tenant, snapshot, Table::Spans, &ids, range, &options, &mut read).await?;
        let mut found: HashMap<(TraceId, SpanId), Vec<StoredAttribute>> = HashMap::new();
        let mut each = |batch: arrow::array::RecordBatch| {
            let trace_ids = arrays::ids(&batch, "trace_id")?;
            let span_ids = arrays::ids(&batch, "span_id")?;
            for row in 0..batch.num_rows() {
                let id = (TraceId(arrays::id_at(trace_ids, row)), SpanId(arrays::id_at(span_ids, row)));
                if wanted.contains(&id) {
                    found.insert(id, read_attributes(&batch, row)?);
                }
            }
            Ok(())
        };
        side_by_side(jobs, &mut each).await?;
        let mut exactness = self.exactness_of_spans(tenant, found.len() as u64, Some((from, until)));
        exactness.merge(&read);
        Ok(Told { answer: found, exactness })
    }
}
