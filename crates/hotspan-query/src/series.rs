//! The label sets of a tenant, and when each was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Lake, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::labels::{DERIVED_LABELS, PROFILE_TYPE};
use hotspan_model::selector::{Selector, label_value};
use hotspan_model::{Exactness, Labels, SeriesId, TenantId};

use crate::Engine;
use crate::error::Result;
use crate::linked::LinkedQuery;
use crate::told::Told;
use crate::upload_names::is_without_service;

/// One label set that profiles came with.
#[derive(Debug, Clone)]
pub struct SeriesEntry {
    /// Its identity in the tables.
    pub id: SeriesId,
    /// Its labels, the profile type among them.
    pub labels: Arc<Labels>,
}

/// Label sets by hour, as far as they have been read.
#[derive(Debug, Default)]
pub(crate) struct SeriesIndex {
    labels: HashMap<SeriesId, Arc<Labels>>,
    hours: BTreeMap<i64, BTreeSet<SeriesId>>,
    /// All rows up to this version have been read.
    version: i64,
}

impl SeriesIndex {
    /// Reads what was committed since the last time.
    async fn catch_up(&mut self, lake: &Lake, snapshot: &Snapshot, tenant: &TenantId) -> Result<()> {
        let segments = snapshot.segments(tenant, Table::Series);
        for segment in segments.iter().filter(|segment| segment.data_version > self.version) {
            for batch in lake.reader().read_all(segment, ReadOptions::default()).await? {
                let ids = arrays::uint64s(&batch, "series")?.values();
                let times = arrays::times(&batch, "time")?.values();
                let maps = arrays::maps(&batch, "labels")?;
                for row in 0..batch.num_rows() {
                    let id = SeriesId(ids[row]);
                    self.hours.entry(times[row]).or_default().insert(id);
                    self.labels.entry(id).or_insert_with(|| {
                        let entries = maps.entries_of(row);
                        Arc::new(Labels::from_pairs(entries.map(|entry| (maps.key(entry), maps.value(entry)))))
                    });
                }
            }
        }
        self.version = self.version.max(snapshot.version());
        Ok(())
    }

    fn select(&self, fits: impl Fn(&Labels) -> bool, from: i64, until: i64) -> Vec<SeriesEntry> {
        let mut ids: BTreeSet<SeriesId> = BTreeSet::new();
        let first_hour = from.div_euclid(HOUR).saturating_mul(HOUR);
        if first_hour < until {
            ids.extend(self.hours.range(first_hour..until).flat_map(|(_, ids)| ids.iter().copied()));
        }
        let entries = ids.into_iter().filter_map(|id| {
            let labels = self.labels.get(&id)?;
            fits(labels).then(|| SeriesEntry { id, labels: Arc::clone(labels) })
        });
        entries.collect()
    }

    /// The starts of the first and the last hour that any of these series was seen in. The ids are sorted.
    fn hours_of(&self, series: &[u64]) -> Option<(i64, i64)> {
        let is_seen = |ids: &BTreeSet<SeriesId>| ids.iter().any(|id| series.binary_search(&id.0).is_ok());
        let mut hours = self.hours.iter().filter(|(_, ids)| is_seen(ids)).map(|(hour, _)| *hour);
        let first = hours.next()?;
        Some((first, hours.next_back().unwrap_or(first)))
    }
}

impl Engine {
    /// The label sets that any of these selectors fits and that were seen in the hours that `from..until` touches, by id.
    pub async fn series(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        any_of: &[Selector],
        (from, until): (i64, i64),
    ) -> Result<Told<Vec<SeriesEntry>>> {
        let fits = |labels: &Labels| any_of.iter().any(|selector| selector.fits(labels));
        let answer = self.select_series(tenant, snapshot, fits, (from, until)).await?;
        Ok(Told { answer, exactness: self.exactness_of_series(tenant, snapshot, (from, until)) })
    }

    /// The same for one selector, where it is part of an answer that says itself what it rests on.
    pub(crate) async fn fitting_series(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        selector: &Selector,
        from: i64,
        until: i64,
    ) -> Result<Vec<SeriesEntry>> {
        self.select_series(tenant, snapshot, |labels| selector.fits(labels), (from, until)).await
    }

    /// The same for a question about spans, with the uploads of which nobody said the service: each is of the service of the
    /// span that names it, and is looked at again once that is known.
    pub(crate) async fn series_of_spans(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &LinkedQuery,
    ) -> Result<Vec<SeriesEntry>> {
        let fits = |labels: &Labels| query.selector.fits(labels) || is_without_service(labels);
        self.select_series(tenant, snapshot, fits, (query.from, query.until)).await
    }

    async fn select_series(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        fits: impl Fn(&Labels) -> bool,
        (from, until): (i64, i64),
    ) -> Result<Vec<SeriesEntry>> {
        let memory = self.memory(tenant);
        let mut index = memory.series.lock().await;
        index.catch_up(self.lake(), snapshot, tenant).await?;
        Ok(index.select(fits, from, until))
    }

    /// What lists of labels rest on: label sets of whole hours, without those that only rejected samples had.
    fn exactness_of_series(&self, tenant: &TenantId, snapshot: &Snapshot, (from, until): (i64, i64)) -> Exactness {
        let segments = snapshot.segments(tenant, Table::Series);
        let segments_read = segments.iter().filter(|segment| segment.overlaps(from, until)).count() as u64;
        // A time without an end has no edge there.
        let is_rounded = |edge: i64| ![i64::MIN, i64::MAX].contains(&edge) && edge.rem_euclid(HOUR) != 0;
        Exactness {
            dropped: self.lake().rejected().between(tenant, from, until).samples,
            rounded_edges: is_rounded(from) || is_rounded(until),
            segments_read,
            segments_pruned: segments.len() as u64 - segments_read,
            ..Exactness::default()
        }
    }

    /// The starts of the first and the last hour that any of these series was seen in. The ids are sorted.
    pub(crate) async fn hours_of_series(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        series: &[u64],
    ) -> Result<Option<(i64, i64)>> {
        let memory = self.memory(tenant);
        let mut index = memory.series.lock().await;
        index.catch_up(self.lake(), snapshot, tenant).await?;
        Ok(index.hours_of(series))
    }

    /// The profile types that were seen, sorted.
    pub async fn profile_types(&self, tenant: &TenantId, from: i64, until: i64) -> Result<Told<Vec<String>>> {
        self.label_values(tenant, PROFILE_TYPE, &[Selector::default()], from, until).await
    }

    /// The names in label sets that any of these selectors fits, sorted, with those that follow from others.
    pub async fn label_names(
        &self,
        tenant: &TenantId,
        any_of: &[Selector],
        from: i64,
        until: i64,
    ) -> Result<Told<Vec<String>>> {
        let Told { answer: series, exactness } = self.series(tenant, &self.snapshot(), any_of, (from, until)).await?;
        let mut names: BTreeSet<&str> =
            series.iter().flat_map(|entry| entry.labels.iter().map(|(name, _)| name)).collect();
        let is_there = |name: &str| series.iter().any(|entry| entry.labels.derived(name).is_some());
        names.extend(DERIVED_LABELS.into_iter().filter(|name| is_there(name)));
        Ok(Told { answer: names.into_iter().map(str::to_owned).collect(), exactness })
    }

    /// The values of a label in label sets that any of these selectors fits, sorted.
    pub async fn label_values(
        &self,
        tenant: &TenantId,
        name: &str,
        any_of: &[Selector],
        from: i64,
        until: i64,
    ) -> Result<Told<Vec<String>>> {
        let Told { answer: series, exactness } = self.series(tenant, &self.snapshot(), any_of, (from, until)).await?;
        let values: BTreeSet<&str> = series.iter().filter_map(|entry| label_value(&entry.labels, name)).collect();
        Ok(Told { answer: values.into_iter().map(str::to_owned).collect(), exactness })
    }
}
