//! Uploaded profiles that spans name: the attribute `profile.file` or `profile.id` of a span joins the whole file to it.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use futures::TryStreamExt;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::table::HOUR;
use hotspan_lake::{IdSet, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::labels::PROFILE_SOURCE;
use hotspan_model::{Exactness, LinkStrength, ProfileId, SpanId, TenantId, TraceId, attributes_from_json};

use crate::Engine;
use crate::error::Result;
use crate::linked_rows::LinkedRow;
use crate::owners::{OwnerFilter, SampleOwners};
use crate::scan::{Grain, Scan, ScannedRows};
use crate::series::SeriesEntry;
use crate::side_by_side::side_by_side;
use crate::trace::read_spans;

/// Attributes of a span that name an uploaded profile; an upload carries its own names under the same keys.
const NAMES: [&str; 2] = ["profile.file", "profile.id"];

/// The span that names a profile.
pub(crate) type NamingSpan = (TraceId, SpanId);

/// Takes samples of uploaded profiles, as they are stored in a batch.
pub(crate) type EachUploaded<'f> = dyn FnMut(&RecordBatch, Vec<LinkedRow>) -> Result<()> + Send + 'f;

impl Engine {
    /// Shows the samples of every uploaded profile that a span of the question names, as far as they name no span
    /// themselves: those were found by it. `columns` are read besides ids.
    pub(crate) async fn visit_named_uploads(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        (owners, series): (&SampleOwners, &[SeriesEntry]),
        (from, until): (i64, i64),
        columns: &[&str],
        each_uploaded: &mut EachUploaded<'_>,
    ) -> Result<()> {
        let is_upload = |entry: &SeriesEntry| entry.labels.get(PROFILE_SOURCE).is_some();
        let places: Vec<usize> = (0..series.len()).filter(|place| is_upload(&series[*place])).collect();
        let uploads: Arc<Vec<u64>> = Arc::new(places.iter().map(|place| series[*place].id.0).collect());
        // Most stores have none, and pay no more than this look.
        if uploads.is_empty() {
            return Ok(());
        }
        let names = self.names_in_spans(tenant, snapshot, owners).await?;
        if names.is_empty() {
            return Ok(());
        }
        let profiles = self.profiles_named(tenant, snapshot, &names, (from, until)).await?;
        let mut all_columns = vec!["profile_id", "trace_id", "span_id"];
        all_columns.extend(columns.iter().filter(|column| !["profile_id", "trace_id", "span_id"].contains(*column)));
        let (range, grain) = ((from, until), Grain::Sample);
        let scan = Scan { range, series: &uploads, grain, columns: &all_columns, with_counts: false };
        let mut each = |rows: &ScannedRows<'_>| {
            let batch = rows.batch;
            let ids = arrays::ids(batch, "profile_id")?;
            let (traces, spans) = (arrays::ids(batch, "trace_id")?, arrays::ids(batch, "span_id")?);
            let numbered = rows.runs.iter().flat_map(|(number, run)| run.clone().map(|row| (places[*number], row)));
            let unnamed = numbered.filter(|(_, row)| traces.is_null(*row) && spans.is_null(*row));
            let linked = unnamed.filter_map(|(series, row)| {
                let (trace_id, span_id) = *profiles.get(&arrays::id_at::<16>(ids, row))?;
                Some(LinkedRow { row, series, owner: (Some(trace_id), Some(span_id), LinkStrength::Exact) })
            });
            each_uploaded(batch, linked.collect())
        };
        self.scan(tenant, snapshot, &scan, &mut each).await?;
        Ok(())
    }

    /// The names of profiles that spans of the question carry.
    async fn names_in_spans(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        owners: &SampleOwners,
    ) -> Result<HashMap<String, NamingSpan>> {
        let mut names = HashMap::new();
        let filter = OwnerFilter::new(owners, &[]);
        let Some(ids): Option<Arc<IdSet>> = filter.id_set() else { return Ok(names) };
        let (options, mut exactness) = (ReadOptions::default(), Exactness::default());
        let whenever = (i64::MIN, i64::MAX);
        let jobs = self.id_jobs(tenant, snapshot, Table::Spans, &ids, whenever, &options, &mut exactness).await?;
        let mut spans = Vec::new();
        side_by_side(jobs, &mut |batch: RecordBatch| read_spans(&batch, &mut spans)).await?;
        for span in spans {
            if filter.named_owner(Some(span.trace_id), Some(span.span_id)).is_none() {
                continue;
            }
            let named = span.attributes.iter().filter(|attribute| NAMES.contains(&attribute.key.as_ref()));
            for name in named.filter_map(|attribute| attribute.value.as_str()).filter(|name| !name.is_empty()) {
                names.entry(file_name(name).to_owned()).or_insert((span.trace_id, span.span_id));
            }
        }
        Ok(names)
    }

    /// The profiles that were uploaded under these names, or have them for an id.
    async fn profiles_named(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        names: &HashMap<String, NamingSpan>,
        (from, until): (i64, i64),
    ) -> Result<HashMap<[u8; 16], NamingSpan>> {
        let by_id =
            names.iter().filter_map(|(name, span)| Some((name.replace('-', "").parse::<ProfileId>().ok()?.0, *span)));
        let mut profiles: HashMap<[u8; 16], NamingSpan> = by_id.collect();
        // A profile is dated by its start; its samples may come later.
        let from = from.saturating_sub(HOUR);
        // Files give few distinct texts, so that each is read once.
        let mut known: HashMap<String, Option<NamingSpan>> = HashMap::new();
        for segment in snapshot.segments(tenant, Table::Profiles).iter().filter(|found| found.overlaps(from, until)) {
            let options = ReadOptions::columns(&["profile_id", "attributes"]).within("time", from, until);
            let mut stream = self.lake().reader().stream(segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                let ids = arrays::ids(&batch, "profile_id")?;
                let attributes = arrays::texts(&batch, "attributes")?;
                for row in 0..batch.num_rows() {
                    let json = attributes.get(row);
                    if json.is_empty() {
                        continue;
                    }
                    let span = match known.get(json) {
                        Some(span) => *span,
                        None => *known.entry(json.to_owned()).or_insert_with_key(|json| named_in(json, names)),
                    };
                    profiles.extend(span.map(|span| (arrays::id_at::<16>(ids, row), span)));
                }
            }
        }
        Ok(profiles)
    }
}

/// The span that names a profile with these attributes.
fn named_in(json: &str, names: &HashMap<String, NamingSpan>) -> Option<NamingSpan> {
    let attributes = attributes_from_json(json);
    let own = attributes.iter().filter(|attribute| NAMES.contains(&attribute.key.as_ref()));
    let own: HashSet<&str> = own.filter_map(|attribute| attribute.value.as_str()).map(file_name).collect();
    own.iter().find_map(|name| names.get(*name)).copied()
}

/// A service names the file where it wrote it, an upload where it was read.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
