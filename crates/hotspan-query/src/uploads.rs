//! Uploaded profiles that spans name: the attribute `profile.file` or `profile.id` of a span joins the whole file to it.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use hashbrown::HashMap;
use hotspan_lake::table::HOUR;
use hotspan_lake::{IdSet, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::labels::{PROFILE_SOURCE, SERVICE_NAME};
use hotspan_model::selector::Selector;
use hotspan_model::{Exactness, Labels, LinkStrength, TenantId, attributes_from_json};
use hotspan_traceql::{MetricsLimits, Program, TimeGrid, Value};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::linked_rows::LinkedRow;
use crate::owners::{OwnerFilter, SampleOwners};
use crate::scan::{Grain, Scan, ScannedRows};
use crate::series::SeriesEntry;
use crate::side_by_side::side_by_side;
use crate::trace::read_spans;
use crate::upload_names::{FileServices, NamedUploads, NamingSpan, SpanNames, Upload, UploadNames, file_name};

/// Which files spans name, and in which services.
const NAMING_FILES: &str =
    r#"{ span."profile.file" != nil } | count_over_time() by (span."profile.file", resource.service.name)"#;

/// Takes samples of uploaded profiles, as they are stored in a batch.
pub(crate) type EachUploaded<'f> = dyn FnMut(&RecordBatch, Vec<LinkedRow>) -> Result<()> + Send + 'f;

/// The labels of an upload without a service as they are for a span of this service that names it.
fn of(labels: &Labels, service: &str) -> Labels {
    let mut labels = labels.clone();
    labels.set(SERVICE_NAME, service);
    labels
}

impl Engine {
    /// Shows the samples of every uploaded profile that a span of the question names, as far as they name no span
    /// themselves: those were found by it. `columns` are read besides ids.
    pub(crate) async fn visit_named_uploads(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        (owners, series, selector): (&SampleOwners, &[SeriesEntry], &Selector),
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
        let scan = Scan { range, series: &uploads, grain, columns: &all_columns };
        let mut asked: HashMap<(usize, NamingSpan), bool> = HashMap::new();
        let mut each = |rows: &ScannedRows<'_>| {
            let batch = rows.batch;
            let ids = arrays::ids(batch, "profile_id")?;
            let (traces, spans) = (arrays::ids(batch, "trace_id")?, arrays::ids(batch, "span_id")?);
            let numbered = rows.runs.iter().flat_map(|(number, run)| run.clone().map(|row| (places[*number], row)));
            let unnamed = numbered.filter(|(_, row)| traces.is_null(*row) && spans.is_null(*row));
            let linked = unnamed.filter_map(|(place, row)| {
                let span = *profiles.get(&arrays::id_at::<16>(ids, row))?;
                let is_asked = *asked.entry((place, span)).or_insert_with(|| {
                    let labels = &series[place].labels;
                    selector.fits(labels)
                        || names.service_of(&span).is_some_and(|service| selector.fits(&of(labels, service)))
                });
                let owner = (Some(span.0), Some(span.1), LinkStrength::Exact);
                is_asked.then_some(LinkedRow { row, series: place, owner })
            });
            each_uploaded(batch, linked.collect())
        };
        self.scan(tenant, snapshot, &scan, &mut each).await?;
        Ok(())
    }

    /// The names of profiles that spans of the question carry.
    async fn names_in_spans(&self, tenant: &TenantId, snapshot: &Snapshot, owners: &SampleOwners) -> Result<SpanNames> {
        let mut names = SpanNames::default();
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
            let time = (span.start, span.start.saturating_add(span.duration.max(0)));
            names.add((span.trace_id, span.span_id), &span.service, time, &span.attributes);
        }
        Ok(names)
    }

    /// The profiles that spans name.
    async fn profiles_named(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        names: &SpanNames,
        (from, until): (i64, i64),
    ) -> Result<HashMap<[u8; 16], NamingSpan>> {
        let mut profiles = NamedUploads::new(names);
        // A profile is dated by its start; its samples may come later.
        let from = from.saturating_sub(HOUR);
        // Files give few distinct texts, so that each is read once.
        let mut known: HashMap<String, UploadNames> = HashMap::new();
        for segment in snapshot.segments(tenant, Table::Profiles).iter().filter(|found| found.overlaps(from, until)) {
            let columns = ["profile_id", "time", "duration", "service", "attributes"];
            let options = ReadOptions::columns(&columns).within("time", from, until);
            let mut stream = self.lake().reader().stream(segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                let ids = arrays::ids(&batch, "profile_id")?;
                let times = arrays::times(&batch, "time")?.values();
                let durations = arrays::int64s(&batch, "duration")?.values();
                let services = arrays::texts(&batch, "service")?;
                let attributes = arrays::texts(&batch, "attributes")?;
                for row in 0..batch.num_rows() {
                    let json = attributes.get(row);
                    if json.is_empty() {
                        continue;
                    }
                    if !known.contains_key(json) {
                        known.insert(json.to_owned(), UploadNames::of(&attributes_from_json(json)));
                    }
                    let Some(names_of_upload) = known.get(json).filter(|names| !names.is_empty()) else { continue };
                    let upload = Upload {
                        id: arrays::id_at::<16>(ids, row),
                        names: names_of_upload,
                        service: services.get(row),
                        from: times[row],
                        until: times[row].saturating_add(durations[row].max(0)),
                    };
                    profiles.add(&upload, names);
                }
            }
        }
        if let Some(time) = profiles.time_without_service()
            && let Some(services) = self.services_naming_files(tenant, time).await?
        {
            profiles.join_without_service(&services);
        }
        Ok(profiles.finish())
    }

    /// The services whose spans name files in a time; none if there are too many to tell.
    ///
    /// Boxed, since metrics may be about profiles: these are not, but a future that held itself would have no size.
    fn services_naming_files<'a>(
        &'a self,
        tenant: &'a TenantId,
        range: (i64, i64),
    ) -> BoxFuture<'a, Result<Option<FileServices>>> {
        let wrong = |error: String| QueryError::Invalid(format!("spans that name files can't be found: {error}"));
        let start = move || {
            let program = Program::new(NAMING_FILES).map_err(|error| wrong(error.to_string()))?;
            let grid = TimeGrid::instant(range.0, range.1).map_err(|error| wrong(error.to_string()))?;
            self.start_metrics(tenant, &Arc::new(program), grid, range, MetricsLimits::default())
        };
        async move {
            let answer = start()?.into_answer().await?;
            let mut services = FileServices::default();
            for series in &answer.series {
                let text = |value: &Value| if let Value::Str(text) = value { text.clone() } else { value.to_string() };
                let [file, service] = series.labels.as_slice() else { continue };
                services.entry(file_name(&text(&file.1)).to_owned()).or_default().insert(text(&service.1));
            }
            Ok(answer.notes.is_empty().then_some(services))
        }
        .boxed()
    }
}
