//! The profiles that were taken for a question, those without a sample of it among them.
//!
//! Samples find the profiles that they came in, but what does nothing makes profiles without any: whoever divides by profiles,
//! or by the time that they took, has to count these as well, or an idle service looks busy. They are found by the labels that
//! they came with as a whole. Labels that only samples have say nothing about a profile without any: it counts if others from
//! the same source, with the same labels as a whole, have samples that fit.

use futures::TryStreamExt;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::table::HOUR;
use hotspan_lake::{ReadOptions, Snapshot, Table, arrays};
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::{Labels, TenantId, attributes_from_json};

use crate::Engine;
use crate::error::Result;
use crate::flame::FlameQuery;

/// The id of a profile. One file may hold profiles of several types, all under one id and of one length.
pub(crate) type ProfileKey = [u8; 16];

/// A profile of the type that is asked for.
#[derive(Debug)]
pub(crate) struct TakenProfile {
    pub(crate) id: ProfileKey,
    /// When it began.
    pub(crate) time: i64,
    pub(crate) duration: i64,
    /// Which of the sources it came from; none where it was stored before profiles had labels.
    pub(crate) source: Option<usize>,
}

/// The labels of profiles as a whole, and their type.
#[derive(Debug)]
pub(crate) struct ProfileSource {
    pub(crate) labels: Labels,
    /// Whether they are what is asked for by themselves.
    pub(crate) fits: bool,
}

/// All profiles of the type that is asked for, in a time that is somewhat longer.
#[derive(Debug, Default)]
pub(crate) struct TakenProfiles {
    pub(crate) profiles: Vec<TakenProfile>,
    pub(crate) sources: Vec<ProfileSource>,
    range: (i64, i64),
}

impl TakenProfiles {
    /// The profiles that count where these have samples that are asked for, and how long each took.
    pub(crate) fn behind(&self, sampled: HashSet<ProfileKey>) -> HashMap<ProfileKey, i64> {
        let is_sampled = |profile: &&TakenProfile| sampled.contains(&profile.id);
        let active: HashSet<usize> =
            self.profiles.iter().filter(is_sampled).filter_map(|profile| profile.source).collect();
        let counts = |profile: &&TakenProfile| {
            is_sampled(profile)
                || self.of_range(profile).is_some_and(|at| self.sources[at].fits || active.contains(&at))
        };
        let mut behind: HashMap<ProfileKey, i64> =
            self.profiles.iter().filter(counts).map(|profile| (profile.id, profile.duration.max(0))).collect();
        for id in sampled {
            behind.entry(id).or_insert(0);
        }
        behind
    }

    /// The source of a profile that began in the time asked about.
    pub(crate) fn of_range(&self, profile: &TakenProfile) -> Option<usize> {
        profile.source.filter(|_| (self.range.0..self.range.1).contains(&profile.time))
    }
}

impl Engine {
    /// The profiles whose samples a question may be about.
    pub(crate) async fn taken_profiles(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
    ) -> Result<TakenProfiles> {
        let mut taken = TakenProfiles { range: (query.from, query.until), ..TakenProfiles::default() };
        let (selector, named) = (query.typed_selector(), &query.profiles);
        let of_type = FlameQuery { selector: Default::default(), ..query.clone() }.typed_selector();
        // By type and then by labels; none where the type is another one.
        let mut numbers: HashMap<String, HashMap<String, Option<usize>>> = HashMap::new();
        // A profile is dated by its start; its samples may come later.
        let (from, until) = (query.from.saturating_sub(HOUR), query.until);
        for segment in snapshot.segments(tenant, Table::Profiles).iter().filter(|found| found.overlaps(from, until)) {
            let columns = ["profile_id", "time", "duration", "profile_type", "labels"];
            let options = ReadOptions::columns(&columns).within("time", from, until);
            let mut stream = self.lake().reader().stream(segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                let ids = arrays::ids(&batch, "profile_id")?;
                let times = arrays::times(&batch, "time")?.values();
                let durations = arrays::int64s(&batch, "duration")?.values();
                let types = arrays::texts(&batch, "profile_type")?;
                // Files of before have no such column.
                let labels = arrays::texts(&batch, "labels").ok();
                for row in 0..batch.num_rows() {
                    let id = arrays::id_at::<16>(ids, row);
                    if !named.is_empty() && !named.iter().any(|profile| profile.0 == id) {
                        continue;
                    }
                    let (profile_type, json) = (types.get(row), labels.map_or("", |labels| labels.get(row)));
                    let known = match numbers.get_mut(profile_type) {
                        Some(known) => known,
                        None => numbers.entry(profile_type.to_owned()).or_default(),
                    };
                    let number = match known.get(json) {
                        Some(number) => *number,
                        None => {
                            let labels = labels_of(json, profile_type);
                            let number = of_type.fits(&labels).then_some(taken.sources.len());
                            if number.is_some() {
                                taken.sources.push(ProfileSource { fits: selector.fits(&labels), labels });
                            }
                            known.insert(json.to_owned(), number);
                            number
                        }
                    };
                    if number.is_some() {
                        let source = number.filter(|_| !json.is_empty());
                        let (time, duration) = (times[row], durations[row]);
                        taken.profiles.push(TakenProfile { id, time, duration, source });
                    }
                }
            }
        }
        Ok(taken)
    }
}

fn labels_of(json: &str, profile_type: &str) -> Labels {
    let attributes = attributes_from_json(json);
    let pairs = attributes.iter().filter_map(|label| Some((label.key.as_ref(), label.value.as_str()?)));
    let mut labels = Labels::from_pairs(pairs);
    labels.set(PROFILE_TYPE, profile_type);
    labels
}
