//! Heatmaps: how many profiles or spans had which value at which time.

use std::collections::BTreeMap;

use hotspan_model::{Exactness, Labels, TenantId};

use crate::Engine;
use crate::error::Result;
use crate::individuals::{Individual, IndividualKind, Individuals};
use crate::step_grid::Grid;
use crate::timeline::TimelineQuery;

/// Bands of values.
pub const HEATMAP_BANDS: usize = 20;

/// A heatmap of each group; all share the bands, so that they compare.
#[derive(Debug, Clone, Default)]
pub struct Heatmap {
    /// The least value of each band.
    pub bands: Vec<f64>,
    /// Groups in order of their labels.
    pub groups: Vec<HeatmapGroup>,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

/// The heatmap of one group.
#[derive(Debug, Clone, Default)]
pub struct HeatmapGroup {
    /// The labels that all its series share.
    pub labels: Labels,
    /// Columns of cells by the end of their step; steps without anything are left out.
    pub slots: BTreeMap<i64, Vec<HeatmapCell>>,
}

/// How many fell into a band in a step, and the largest of them.
#[derive(Debug, Clone, Default)]
pub struct HeatmapCell {
    /// How many.
    pub count: u32,
    /// The largest.
    pub largest: Option<Individual>,
}

impl Engine {
    /// Counts the individuals behind a question by time and value.
    pub async fn heatmap(&self, tenant: &TenantId, query: &TimelineQuery, kind: IndividualKind) -> Result<Heatmap> {
        let individuals = self.individuals(tenant, &query.samples, kind, &query.group_by).await?;
        Ok(count(individuals, query.grid(), query.max_groups))
    }
}

fn count(individuals: Individuals, grid: Grid, max_groups: usize) -> Heatmap {
    let values = || individuals.all.iter().map(|one| one.value);
    let exactness = individuals.exactness;
    let (Some(least), Some(most)) = (values().min(), values().max()) else {
        return Heatmap { exactness, ..Heatmap::default() };
    };
    let width = (most.saturating_sub(least).max(1) as f64) / HEATMAP_BANDS as f64;
    let bands: Vec<f64> = (0..HEATMAP_BANDS).map(|band| least as f64 + band as f64 * width).collect();
    let mut groups: Vec<HeatmapGroup> =
        individuals.groups.into_iter().map(|labels| HeatmapGroup { labels, ..HeatmapGroup::default() }).collect();
    let mut sums = vec![0i64; groups.len()];
    for one in individuals.all {
        sums[one.group] = sums[one.group].saturating_add(one.value);
        // The band whose least value is the last one not above it.
        let band = bands.partition_point(|least| *least <= one.value as f64).saturating_sub(1);
        let end = grid.end_of(grid.step_of(one.time));
        let slot = groups[one.group].slots.entry(end).or_insert_with(|| vec![HeatmapCell::default(); HEATMAP_BANDS]);
        slot[band].count += 1;
        if slot[band].largest.as_ref().is_none_or(|largest| largest.value < one.value) {
            slot[band].largest = Some(one);
        }
    }
    let mut kept: Vec<(HeatmapGroup, i64)> =
        groups.into_iter().zip(sums).filter(|(group, _)| !group.slots.is_empty()).collect();
    if max_groups > 0 {
        kept.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.labels.cmp(&b.0.labels)));
        kept.truncate(max_groups);
    }
    kept.sort_by(|a, b| a.0.labels.cmp(&b.0.labels));
    Heatmap { bands, groups: kept.into_iter().map(|(group, _)| group).collect(), exactness }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotspan_model::ProfileId;

    use super::*;

    fn one(group: usize, value: i64, time: i64) -> Individual {
        Individual {
            group,
            value,
            time,
            profile_id: ProfileId([value as u8; 16]),
            span_id: None,
            trace_id: None,
            labels: Arc::default(),
        }
    }

    /// Scenario: profiles of two groups with values from 0 to 100, at two times.
    /// Guarantee: each is counted once, in the band and step where it belongs; the largest of a cell is kept, and
    /// the group with the larger sum when only one may stay.
    #[test]
    fn each_is_counted_once() {
        let groups = vec![Labels::from_pairs([("v", "1")]), Labels::from_pairs([("v", "2")])];
        let all = vec![one(0, 0, 5), one(0, 4, 7), one(1, 100, 8), one(1, 99, 13)];
        let individuals = Individuals { groups, all, ..Individuals::default() };
        let map = count(individuals.clone(), Grid::new(0, 10, None), 0);
        assert_eq!((map.bands.len(), map.bands[0], map.bands[1], map.bands[19]), (20, 0.0, 5.0, 95.0));
        let cell = |group: usize, end: i64, band: usize| map.groups[group].slots[&end][band].clone();
        assert_eq!((cell(0, 10, 0).count, cell(0, 10, 0).largest.unwrap().value), (2, 4));
        assert_eq!((cell(1, 10, 19).count, cell(1, 20, 19).count), (1, 1));
        let largest = count(individuals, Grid::new(0, 10, None), 1);
        assert_eq!(largest.groups.len(), 1);
        assert_eq!(largest.groups[0].labels.get("v"), Some("2"));
        assert!(count(Individuals::default(), Grid::new(0, 10, None), 0).groups.is_empty());
    }

    /// Scenario: values that lie closer together than there are bands, and values that are all the same.
    /// Guarantee: every band still starts higher than the one before, and what is largest is in the last one.
    #[test]
    fn bands_of_close_values() {
        let groups = || vec![Labels::default()];
        let all = (10..=15).map(|value| one(0, value, 5)).collect();
        let map = count(Individuals { groups: groups(), all, ..Individuals::default() }, Grid::new(0, 10, None), 0);
        assert_eq!((map.bands[0], map.bands[1], map.bands[4], map.bands[19]), (10.0, 10.25, 11.0, 14.75));
        let counts: Vec<u32> = map.groups[0].slots[&10].iter().map(|cell| cell.count).collect();
        assert_eq!((counts[0], counts[4], counts[16], counts[19]), (1, 1, 1, 1));
        let same = count(
            Individuals { groups: groups(), all: vec![one(0, 7, 5); 3], ..Individuals::default() },
            Grid::new(0, 10, None),
            0,
        );
        assert!(same.bands.is_sorted_by(|a, b| a < b), "{:?}", same.bands);
        assert_eq!(same.groups[0].slots[&10][0].count, 3);
    }
}
