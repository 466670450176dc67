//! Values over time: the sum, or the mean of a profile, in each step and for each group of series.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::arrays;
use hotspan_model::{Exactness, Labels, TenantId};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::flame::FlameQuery;
use crate::groups::Groups;
use crate::individuals::{Individual, IndividualKind, Individuals};
use crate::scan::{Grain, Scan, ScannedRows};
use crate::step_grid::Grid;
use crate::taken_profiles::{ProfileKey, ProfileSource, TakenProfiles};

/// How the values of one step become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StepValue {
    /// Their sum.
    #[default]
    Sum,
    /// The mean over the profiles in the step: for what is in use at a moment, such as memory.
    MeanOfProfiles,
}

/// A question about values over time.
#[derive(Debug, Clone, Default)]
pub struct TimelineQuery {
    /// Which samples count; which profiles they came in is not looked at.
    pub samples: FlameQuery,
    /// Length of a step in nanoseconds.
    pub step: i64,
    /// Whether steps begin at multiples of their length since 1970. Otherwise the first begins with the time asked for.
    pub aligned: bool,
    /// The latest moment that a point may have: a step that would end later ends there, and has all that is later.
    pub last_point: Option<i64>,
    /// How the values of a step become one.
    pub step_value: StepValue,
    /// Labels that tell groups apart; none makes one group of everything.
    pub group_by: Vec<String>,
    /// How many groups to keep, those with the largest sums; 0 keeps all.
    pub max_groups: usize,
}

/// The values of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The labels that all its series share, of those grouped by.
    pub labels: Labels,
    /// Ends of steps in nanoseconds since 1970, and values; steps without samples are left out.
    pub points: Vec<(i64, f64)>,
}

/// The values of all groups, and what they rest on.
#[derive(Debug, Clone, Default)]
pub struct Timelines {
    /// Groups in order of their labels; those without samples are left out.
    pub groups: Vec<Timeline>,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

/// The profiles or spans that contributed most, and what that rests on.
#[derive(Debug, Clone, Default)]
pub struct Exemplars {
    /// The largest of each step of each group, by the labels of the group and the end of the step.
    pub largest: HashMap<(Labels, i64), Individual>,
    /// What they were chosen from.
    pub exactness: Exactness,
}

impl TimelineQuery {
    pub(crate) fn grid(&self) -> Grid {
        let (from, step) = (i128::from(self.samples.from), i128::from(self.step));
        let first = if self.aligned { from.div_euclid(step) * step } else { from };
        Grid::new(first, self.step, self.last_point)
    }
}

/// The profiles that were taken in each step of each group.
type ProfilesOfSteps = HashMap<(usize, i64), HashSet<ProfileKey>>;

impl Engine {
    /// Values over time. Steps that are whole windows of 15 s lie on the grid of such windows, so that rollups
    /// answer, and what compaction has done to the samples makes no difference.
    pub async fn timelines(&self, tenant: &TenantId, query: &TimelineQuery) -> Result<Timelines> {
        let samples = &query.samples;
        if query.step < 1_000_000 {
            return Err(QueryError::Invalid("a step has at least one millisecond".to_owned()));
        }
        let snapshot = self.snapshot();
        let entries =
            self.fitting_series(tenant, &snapshot, &samples.typed_selector(), samples.from, samples.until).await?;
        let groups = Groups::of(&entries, &query.group_by);
        let series: Arc<Vec<u64>> = Arc::new(entries.iter().map(|entry| entry.id.0).collect());
        let grid = query.grid();
        let range = (samples.from, samples.until);
        let kept = self.kept_paths(tenant, &snapshot, samples, &entries).await?;
        let mean = query.step_value == StepValue::MeanOfProfiles;
        let mut columns = vec!["time", "value"];
        columns.extend(kept.is_some().then_some("path"));
        columns.extend(mean.then_some("profile_id"));
        let grain = if mean { Grain::Sample } else { grid.grain() };
        let scan = Scan { range, series: &series, grain, columns: &columns };
        let mut steps: HashMap<(usize, i64), i64> = HashMap::new();
        let mut taken_in = ProfilesOfSteps::new();
        let mut each = |rows: &ScannedRows<'_>| {
            let times = arrays::times(rows.batch, "time")?.values();
            let values = arrays::int64s(rows.batch, "value")?.values();
            let paths = if kept.is_some() { Some(arrays::uint64s(rows.batch, "path")?.values()) } else { None };
            let profiles = if mean { Some(arrays::ids(rows.batch, "profile_id")?) } else { None };
            let counts = |row: &usize| match (&kept, paths) {
                (Some(kept), Some(paths)) => kept.contains(&paths[*row]),
                _ => true,
            };
            for (number, run) in &rows.runs {
                let mut first = run.start;
                // Rows of one step mostly lie together, so that it is looked up once for all of them.
                while first < run.end {
                    let step = grid.step_of(times[first]);
                    let (from, until) = (grid.start_of(step), grid.end_of(step));
                    let length = times[first..run.end].iter().take_while(|time| (from..until).contains(*time)).count();
                    let together = first..first + length.max(1);
                    first = together.end;
                    let place = (groups.of_series[*number], step);
                    if let Some(profiles) = profiles {
                        let ids = together.clone().map(|row| arrays::id_at::<16>(profiles, row));
                        taken_in.entry(place).or_default().extend(ids);
                    }
                    let mut counted = together.filter(counts).peekable();
                    if counted.peek().is_none() {
                        continue;
                    }
                    let sum = steps.entry(place).or_default();
                    *sum = counted.fold(*sum, |sum, row| sum.saturating_add(values[row]));
                }
            }
            Ok(())
        };
        let exactness = self.scan_question(tenant, &snapshot, (samples, &entries), &scan, &mut each).await?;
        // Whoever asks about spans asks about the profiles that have samples of them.
        if mean && samples.sample_owners().is_none() {
            let taken = self.taken_profiles(tenant, &snapshot, samples).await?;
            add_profiles_without_samples(&mut taken_in, &taken, (&groups, &query.group_by), grid);
        }
        let mut timelines: Vec<Timeline> =
            groups.labels.into_iter().map(|labels| Timeline { labels, points: Vec::new() }).collect();
        for ((group, step), value) in steps {
            let profiles = taken_in.get(&(group, step)).map_or(1, HashSet::len);
            let value = if mean { value as f64 / profiles.max(1) as f64 } else { value as f64 };
            timelines[group].points.push((grid.end_of(step), value));
        }
        timelines.retain(|timeline| !timeline.points.is_empty());
        for timeline in &mut timelines {
            timeline.points.sort_unstable_by_key(|(time, _)| *time);
        }
        if query.max_groups > 0 && timelines.len() > query.max_groups {
            let total = |timeline: &Timeline| timeline.points.iter().map(|(_, value)| value).sum::<f64>();
            timelines.sort_by(|a, b| total(b).total_cmp(&total(a)).then_with(|| a.labels.cmp(&b.labels)));
            timelines.truncate(query.max_groups);
        }
        timelines.sort_by(|a, b| a.labels.cmp(&b.labels));
        Ok(Timelines { groups: timelines, exactness })
    }
}

impl Engine {
    /// The profiles or spans that contributed most to each step of each group.
    pub async fn exemplars(&self, tenant: &TenantId, query: &TimelineQuery, kind: IndividualKind) -> Result<Exemplars> {
        let Individuals { groups, all, exactness } =
            self.individuals(tenant, &query.samples, kind, &query.group_by).await?;
        let grid = query.grid();
        let mut largest: HashMap<(Labels, i64), Individual> = HashMap::new();
        for one in all {
            let key = (groups[one.group].clone(), grid.end_of(grid.step_of(one.time)));
            let best = largest.entry(key).or_insert_with(|| one.clone());
            if best.value < one.value {
                *best = one;
            }
        }
        Ok(Exemplars { largest, exactness })
    }
}

/// Adds profiles that began in a step but have no sample there: to the group that their own labels name, and to those that
/// others from the same source have samples in.
fn add_profiles_without_samples(
    taken_in: &mut ProfilesOfSteps,
    taken: &TakenProfiles,
    (groups, group_by): (&Groups, &[String]),
    grid: Grid,
) {
    let mut groups_of_profile: HashMap<ProfileKey, HashSet<usize>> = HashMap::new();
    for ((group, _), profiles) in &*taken_in {
        for profile in profiles {
            groups_of_profile.entry(*profile).or_default().insert(*group);
        }
    }
    let own_group = |source: &ProfileSource| groups.of_labels(&source.labels, group_by).filter(|_| source.fits);
    let mut groups_of_source: Vec<HashSet<usize>> =
        taken.sources.iter().map(|source| own_group(source).into_iter().collect()).collect();
    for profile in &taken.profiles {
        if let (Some(source), Some(groups)) = (profile.source, groups_of_profile.get(&profile.id)) {
            groups_of_source[source].extend(groups);
        }
    }
    for profile in &taken.profiles {
        let Some(source) = taken.of_range(profile) else { continue };
        for group in &groups_of_source[source] {
            taken_in.entry((*group, grid.step_of(profile.time))).or_default().insert(profile.id);
        }
    }
}
