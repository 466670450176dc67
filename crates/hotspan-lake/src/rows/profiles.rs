//! Rows of the tables that profiles fill: `samples`, `profiles`, `series`, `nodes` and `frames`.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::{HashMap, HashSet};
use hotspan_model::call_path::{ContentHash, NO_PATH, PathIndex};
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::{Labels, Profile, ProfileId, ProfileSet, Sample, SeriesId};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::known_ids::{KnownIds, Standing};
use super::profile_columns::{FrameColumns, NodeColumns, ProfileColumns, SampleCodes, SampleColumns, SeriesColumns};
use crate::table::Table;

/// Tells which symbols and series are durable already, so that a request need not bring them again.
///
/// Each service has all of its callers and frames itself, so that its symbols can be read without those of others.
pub trait KnownSymbols {
    /// The nodes that are stored for a service in the partition of the day that starts at `day`.
    fn nodes_of(&self, day: i64, service_id: u64) -> Option<&KnownIds>;
    /// The frames that are stored for it there.
    fn frames_of(&self, day: i64, service_id: u64) -> Option<&KnownIds>;
    /// The series that are stored in the partition of the hour that starts at `hour`.
    fn series_of(&self, hour: i64) -> Option<&KnownIds>;
}

/// Profiles on their way into a segment, table by table and column by column.
#[derive(Debug, Default)]
pub struct ProfileRows {
    samples: SampleColumns,
    profiles: ProfileColumns,
    series: SeriesColumns,
    nodes: NodeColumns,
    frames: FrameColumns,
    /// Which samples belong to which profile, so that a profile that came before can be left out whole.
    ranges: Vec<ProfileRange>,
    collisions: u64,
}

/// The samples of one received profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileRange {
    /// What a retried profile is known by: see [`retry_key`].
    pub(crate) key: u128,
    pub(crate) first_sample: usize,
    pub(crate) sample_count: usize,
}

impl ProfileRows {
    /// Adds everything in a set of profiles, leaving out symbols and series that are durable already.
    pub fn push(&mut self, set: &ProfileSet<'_>, known: &impl KnownSymbols) {
        let mut series_of_request = HashSet::new();
        let mut used = UsedPaths::new(set.paths.path_count());
        let codes = SampleCodes {
            thread_names: set.threads.iter().map(|thread| self.samples.thread_name.intern(&thread.name)).collect(),
            attributes: set.attribute_sets.iter().map(|text| self.samples.attributes.intern(text)).collect(),
        };
        for profile in &set.profiles {
            let id = profile.id.unwrap_or_else(|| content_id(profile, set));
            let first_sample = self.samples.time.len();
            let profile_type = profile.profile_type.to_string();
            self.samples.reserve(profile.samples.len());
            let mut series_by_label_set: Vec<Option<SampleSeries>> = vec![None; set.label_sets.len()];
            let mut last_series_hour = (u32::MAX, i64::MIN);
            for sample in &profile.samples {
                let slot = &mut series_by_label_set[sample.labels as usize];
                let SampleSeries { id: series, check, service_id, labels } = slot.get_or_insert_with(|| {
                    let labels = series_labels(profile, &set.label_sets[sample.labels as usize], &profile_type);
                    let (id, check) = labels.identity();
                    SampleSeries { id, check, service_id: labels.service_id(), labels }
                });
                let hour = Table::Series.partition_of(sample.time);
                if last_series_hour != (sample.labels, hour) {
                    last_series_hour = (sample.labels, hour);
                    let standing = known.series_of(hour).map_or(Standing::New, |ids| ids.standing(series.0, *check));
                    self.collisions += u64::from(standing == Standing::Collided);
                    if standing == Standing::New && series_of_request.insert((hour, *series)) {
                        self.series.push(*series, *check, hour, labels, &profile_type);
                    }
                }
                used.mark(*service_id, sample);
                self.samples.series.push(series.0);
            }
            self.samples.extend(&profile.samples, id, set, &codes);
            self.profiles.push(id, profile, &profile_type);
            let key = retry_key(&id.0, &profile.labels.service(), &profile_type);
            self.ranges.push(ProfileRange { key, first_sample, sample_count: profile.samples.len() });
        }
        self.push_symbols(set, &used, known);
        self.collisions += set.paths.collisions();
    }

    /// Adds the nodes and frames of used paths, and of all their callers, that their day and service lack so far.
    fn push_symbols(&mut self, set: &ProfileSet<'_>, used: &UsedPaths, known: &impl KnownSymbols) {
        let (mut unknown, mut chain) = (Vec::new(), Vec::new());
        let (mut nodes_written, mut frames_written) = (Written::default(), Written::default());
        // Each frame is looked up once a group; marks of groups before mean nothing to the next one.
        let mut frame_seen = vec![NO_GROUP; set.paths.frames.len()];
        for (group, PathGroup { day, service_id, paths }) in used.groups.iter().enumerate() {
            let group = group as u32;
            let (known_nodes, known_frames) = (known.nodes_of(*day, *service_id), known.frames_of(*day, *service_id));
            nodes_written.ids.clear();
            frames_written.ids.clear();
            // Most paths are known, and then nobody asks for their callers.
            let is_known = |path: &PathIndex| {
                let hash = set.paths.path_hash(*path);
                known_nodes.is_some_and(|ids| ids.is_found_at_once(hash.id, hash.check))
            };
            fill_with_unknown(&mut unknown, paths, is_known);
            for path in &unknown {
                if !nodes_written.lacks(known_nodes, set.paths.path_hash(*path)) {
                    continue;
                }
                set.paths.chain(*path, &mut chain);
                let mut new = chain.len() - 1;
                // A node that is known or written has callers that are: the walk stops at the first one.
                while new > 0 && nodes_written.lacks(known_nodes, chain[new - 1].hash) {
                    new -= 1;
                }
                for at in new..chain.len() {
                    let link = chain[at];
                    nodes_written.add(link.hash);
                    let frame_hash = set.paths.frames.hash(link.frame);
                    self.nodes.id.push(link.hash.id);
                    self.nodes.check.push(link.hash.check);
                    self.nodes.time.push(*day);
                    self.nodes.parent.push(if at == 0 { 0 } else { chain[at - 1].hash.id });
                    self.nodes.frame.push(frame_hash.id);
                    self.nodes.service_id.push(*service_id);
                    // New paths mostly go through code that is known.
                    if std::mem::replace(&mut frame_seen[link.frame as usize], group) != group
                        && frames_written.lacks(known_frames, frame_hash)
                    {
                        frames_written.add(frame_hash);
                        let frame = set.paths.frames.get(link.frame);
                        self.frames.push(frame_hash, *day, *service_id, &frame);
                    }
                }
            }
        }
        self.collisions += nodes_written.collisions + frames_written.collisions;
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.profiles.time.is_empty()
    }

    /// How many samples there are.
    pub fn sample_count(&self) -> usize {
        self.samples.time.len()
    }

    /// How many profiles there are.
    pub fn profile_count(&self) -> usize {
        self.profiles.time.len()
    }

    pub(crate) fn ranges(&self) -> &[ProfileRange] {
        &self.ranges
    }

    /// What these rows bring that is not known to be durable yet.
    pub(crate) fn new_symbols(&self) -> NewSymbols {
        let (nodes, frames, series) = (&self.nodes, &self.frames, &self.series);
        NewSymbols {
            nodes: new_ids(&nodes.time, nodes.service_id.iter().copied(), &nodes.id, &nodes.check),
            frames: new_ids(&frames.time, frames.service_id.iter().copied(), &frames.id, &frames.check),
            series: new_ids(&series.time, std::iter::repeat(0), &series.series, &series.check),
        }
    }

    /// How many symbols and series met another one with the same id.
    pub(crate) fn collisions(&self) -> u64 {
        self.collisions
    }

    /// About how much memory the rows take.
    pub fn size(&self) -> usize {
        let sample = 8 + 8 + 1 + 16 + 8 + 8 + 8 + 8 + 1 + 4 + 16 + 4;
        self.samples.time.len() * sample
            + self.nodes.id.len() * 48
            + self.frames.id.len() * 64
            + self.frames.function.size()
            + self.frames.system_name.size()
            + self.frames.file.size()
            + self.series.labels.size()
            + self.profiles.time.len() * 80
            + self.profiles.resource.size()
            + self.profiles.mappings.size()
            + self.profiles.labels.size()
            + self.profiles.original_payload.iter().map(Vec::len).sum::<usize>()
    }

    /// Makes room for this many further samples.
    pub(crate) fn reserve(&mut self, samples: usize) {
        self.samples.reserve(samples);
    }

    /// Joins the profiles of another request to these.
    pub(crate) fn append(&mut self, other: &Self) {
        let base = self.samples.time.len();
        self.ranges.extend(
            other.ranges.iter().map(|range| ProfileRange { first_sample: base + range.first_sample, ..*range }),
        );
        self.collisions += other.collisions;
        self.samples.append(&other.samples);
        self.profiles.append(&other.profiles);
        self.series.append(&other.series);
        self.nodes.append(&other.nodes);
        self.frames.append(&other.frames);
    }

    /// One Arrow batch for each table.
    pub(crate) fn finish(self) -> Result<Vec<(Table, RecordBatch)>, ArrowError> {
        Ok(vec![
            (Table::Samples, self.samples.finish()?),
            (Table::Profiles, self.profiles.finish()?),
            (Table::Series, self.series.finish()?),
            (Table::Nodes, self.nodes.finish()?),
            (Table::Frames, self.frames.finish()?),
        ])
    }
}

/// Symbols and series that are not known to be durable yet.
#[derive(Debug, Default)]
pub(crate) struct NewSymbols {
    pub(crate) nodes: Vec<NewId>,
    pub(crate) frames: Vec<NewId>,
    pub(crate) series: Vec<NewId>,
}

/// An id with the rest of its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewId {
    /// The day or hour that it belongs to.
    pub(crate) time: i64,
    /// The service that it belongs to; 0 for series, which follow from it.
    pub(crate) service_id: u64,
    pub(crate) id: u64,
    pub(crate) check: u64,
}

fn new_ids(times: &[i64], services: impl Iterator<Item = u64>, ids: &[u64], checks: &[u64]) -> Vec<NewId> {
    let rows = times.iter().zip(services).zip(ids).zip(checks);
    rows.map(|(((time, service_id), id), check)| NewId { time: *time, service_id, id: *id, check: *check }).collect()
}

/// The series of a sample.
#[derive(Debug, Clone)]
struct SampleSeries {
    id: SeriesId,
    check: u64,
    service_id: u64,
    labels: Labels,
}

/// The paths that a request uses, by day and service. Memory follows the samples, however many services there are.
struct UsedPaths {
    groups: Vec<PathGroup>,
    numbers: HashMap<(i64, u64), u32>,
    /// For each node, the group that used it last.
    marks: Vec<u32>,
    current: u32,
}

struct PathGroup {
    day: i64,
    service_id: u64,
    /// Nearly each once.
    paths: Vec<PathIndex>,
}

/// The ids that a request writes for one group, beside those that are durable.
#[derive(Debug, Default)]
struct Written {
    /// With the half of the hash that is not in the id.
    ids: HashMap<u64, u64>,
    collisions: u64,
}

impl Written {
    /// Whether something is neither durable nor written so far. What meets another one with the same id counts as that one.
    fn lacks(&mut self, known: Option<&KnownIds>, hash: ContentHash) -> bool {
        let standing = match known.map_or(Standing::New, |ids| ids.standing(hash.id, hash.check)) {
            Standing::New => match self.ids.get(&hash.id) {
                None => Standing::New,
                Some(check) if *check == hash.check => Standing::Durable,
                Some(_) => Standing::Collided,
            },
            standing => standing,
        };
        self.collisions += u64::from(standing == Standing::Collided);
        standing == Standing::New
    }

    fn add(&mut self, hash: ContentHash) {
        self.ids.insert(hash.id, hash.check);
    }
}

/// Fills `unknown` with the paths that are not known, without a branch: a processor could only guess it, and would wait.
fn fill_with_unknown(unknown: &mut Vec<PathIndex>, paths: &[PathIndex], is_known: impl Fn(&PathIndex) -> bool) {
    unknown.clear();
    unknown.resize(paths.len(), NO_PATH);
    let mut count = 0;
    for path in paths {
        unknown[count] = *path;
        count += usize::from(!is_known(path));
    }
    unknown.truncate(count);
}

/// Marks a node or frame that no group has used.
const NO_GROUP: u32 = u32::MAX;

impl UsedPaths {
    fn new(node_count: usize) -> Self {
        Self { groups: Vec::new(), numbers: HashMap::new(), marks: vec![NO_GROUP; node_count], current: NO_GROUP }
    }

    fn mark(&mut self, service_id: u64, sample: &Sample) {
        if sample.path == NO_PATH {
            return;
        }
        let day = Table::Nodes.partition_of(sample.time);
        // Neighbours mostly share their group.
        if !self.groups.get(self.current as usize).is_some_and(|now| now.day == day && now.service_id == service_id) {
            self.current = *self.numbers.entry((day, service_id)).or_insert_with(|| {
                self.groups.push(PathGroup { day, service_id, paths: Vec::new() });
                self.groups.len() as u32 - 1
            });
        }
        if std::mem::replace(&mut self.marks[sample.path as usize], self.current) != self.current {
            self.groups[self.current as usize].paths.push(sample.path);
        }
    }
}

/// The labels that the samples of a profile with this label set are found by.
fn series_labels(profile: &Profile<'_>, sample_labels: &Labels, profile_type: &str) -> Labels {
    let mut labels = profile.labels.clone();
    for (name, value) in sample_labels.iter() {
        // A label of the series wins over one of the sample, as in Pyroscope.
        labels.set_default(name, value);
    }
    labels.set(PROFILE_TYPE, profile_type);
    labels
}

/// The identity of a profile that came without one: a retried request has the same content, and so the same id. What the
/// sender did not say is left out: a time of arrival is another one in the retry.
fn content_id(profile: &Profile<'_>, set: &ProfileSet<'_>) -> ProfileId {
    // Hashing in one go is far faster than in pieces of a few bytes.
    let mut bytes = Vec::with_capacity(128 + CONTENT_BYTES * profile.samples.len());
    bytes.extend_from_slice(profile.profile_type.to_string().as_bytes());
    bytes.extend_from_slice(&profile.labels.identity().0.0.to_le_bytes());
    let own_time = |time: i64| if profile.context.undated { 0 } else { time };
    for number in [own_time(profile.time), profile.duration, profile.period] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for sample in &profile.samples {
        let link = &set.links[sample.link as usize];
        let mut content = [0; CONTENT_BYTES];
        content[0..8].copy_from_slice(&set.paths.node_id(sample.path).0.to_le_bytes());
        content[8..16].copy_from_slice(&sample.value.to_le_bytes());
        let time = if sample.timed { sample.time } else { own_time(sample.time) };
        content[16..24].copy_from_slice(&time.to_le_bytes());
        content[24..40].copy_from_slice(&link.trace_id.0);
        content[40..48].copy_from_slice(&link.span_id.0);
        bytes.extend_from_slice(&content);
    }
    ProfileId(xxh3_128(&bytes).to_be_bytes())
}

/// What of a sample counts for the identity of its profile: path, value, time, trace and span.
const CONTENT_BYTES: usize = 48;

/// What a retried profile is known by. One pprof file has a profile for each sample type, all with one id.
pub(crate) fn retry_key(profile_id: &[u8], service: &str, profile_type: &str) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(profile_id);
    hasher.update(&(service.len() as u64).to_le_bytes());
    hasher.update(service.as_bytes());
    hasher.update(profile_type.as_bytes());
    hasher.digest128()
}

#[cfg(test)]
mod tests {
    use hotspan_model::profile::ProfileContext;

    use super::*;

    /// Scenario: something that is durable, something that the request wrote itself, others with their ids, and something new.
    /// Guarantee: only the new one is lacking, and both collisions are counted.
    #[test]
    fn what_is_written_is_not_lacking() {
        let mut durable = KnownIds::default();
        durable.learn(1, 10);
        let mut written = Written::default();
        written.add(ContentHash { id: 2, check: 20 });
        let lacking = [(1, 10), (2, 20), (1, 11), (2, 21), (3, 30)]
            .map(|(id, check)| written.lacks(Some(&durable), ContentHash { id, check }));
        assert_eq!((lacking, written.collisions), ([false, false, false, false, true], 2));
        assert!(written.lacks(None, ContentHash { id: 1, check: 10 }));
    }
    /// The identity of a profile of two samples, of which the second has a time of its own.
    fn identity(undated: bool, time: i64, sample_time: i64) -> ProfileId {
        let mut set = ProfileSet::default();
        let sample = |time, timed| {
            let (link, thread, labels, attributes) = (0, 0, 0, 0);
            Sample { path: NO_PATH, value: 5, time, timed, link, thread, labels, attributes }
        };
        let context = ProfileContext { undated, ..ProfileContext::default() };
        let samples = vec![sample(time, false), sample(sample_time, true)];
        set.profiles.push(Profile { time, context, samples, ..Profile::default() });
        content_id(&set.profiles[0], &set)
    }

    /// Scenario: profiles without an id that differ in their own time, in that of a sample, or only in when they came.
    /// Guarantee: only a time that the sender gave tells them apart.
    #[test]
    fn a_time_of_arrival_is_no_content() {
        assert_eq!(identity(true, 100, 7), identity(true, 200, 7));
        assert_ne!(identity(true, 100, 7), identity(true, 100, 8));
        assert_ne!(identity(false, 100, 7), identity(false, 200, 7));
        assert_ne!(identity(false, 100, 7), identity(true, 100, 7));
    }
}
