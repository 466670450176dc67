//! Label sets: what a series of profiles is known by.

use std::borrow::Cow;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::ids::SeriesId;

/// The label that holds the service, as Pyroscope names it.
pub const SERVICE_NAME: &str = "service_name";
/// The service of whatever says none, as OpenTelemetry names it.
pub const UNKNOWN_SERVICE: &str = "unknown_service";
/// The label that holds the five-part profile type.
pub const PROFILE_TYPE: &str = "__profile_type__";
/// Labels that Pyroscope stores beside each profile and that follow from others here: the five parts of the profile type,
/// in their order, and the service.
pub const DERIVED_LABELS: [&str; 6] =
    ["__name__", "__type__", "__unit__", "__period_type__", "__period_unit__", "__service_name__"];
/// The label of profiles that came as named files, which spans may refer to.
pub const PROFILE_SOURCE: &str = "profile_source";

/// Names and values, sorted by name, each name once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// A set from pairs in any order; of equal names the later one wins. Pairs are sorted once: senders may have many.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut labels: Vec<(String, String)> =
            pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        // The sort is stable, so that of equal names the last one came last.
        labels.sort_by(|one, other| one.0.cmp(&other.0));
        labels.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            same
        });
        Self(labels)
    }

    /// Sets a label, replacing the value it had.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        match self.0.binary_search_by(|(other, _)| other.as_str().cmp(&name)) {
            Ok(at) => self.0[at].1 = value.into(),
            Err(at) => self.0.insert(at, (name, value.into())),
        }
    }

    /// Sets a label unless it is there already.
    pub fn set_default(&mut self, name: &str, value: impl Into<String>) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    /// Takes a label out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        let at = self.0.binary_search_by(|(other, _)| other.as_str().cmp(name)).ok()?;
        Some(self.0.remove(at).1)
    }

    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(other, _)| other.as_str().cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// Names and values in order of name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Identity and check value of this set: two sets with equal ids and different checks have collided.
    pub fn identity(&self) -> (SeriesId, u64) {
        let mut text = Vec::with_capacity(64 * self.0.len());
        for (name, value) in &self.0 {
            for part in [name, value] {
                text.extend_from_slice(&(part.len() as u64).to_le_bytes());
                text.extend_from_slice(part.as_bytes());
            }
        }
        let hash = xxh3_128(&text);
        (SeriesId(hash as u64), (hash >> 64) as u64)
    }

    /// The value of one of [`DERIVED_LABELS`].
    pub fn derived(&self, name: &str) -> Option<&str> {
        let value = match DERIVED_LABELS.iter().position(|known| *known == name)? {
            5 => self.get(SERVICE_NAME),
            part => self.get(PROFILE_TYPE)?.split(':').nth(part),
        };
        // A part that is not said is no label.
        value.filter(|value| !value.is_empty())
    }

    /// The service these profiles belong to.
    pub fn service(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.get(SERVICE_NAME).unwrap_or(UNKNOWN_SERVICE))
    }

    /// The service as a number: what symbols are stored by, so that those of one service lie together.
    pub fn service_id(&self) -> u64 {
        service_id(&self.service())
    }
}

/// The number of a service with this name; see [`Labels::service_id`].
pub fn service_id(service: &str) -> u64 {
    xxh3_64(service.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the same labels in another order. Guarantee: one identity; another value has another one.
    #[test]
    fn identity_ignores_order() {
        let a = Labels::from_pairs([("b", "2"), ("a", "1")]);
        let b = Labels::from_pairs([("a", "1"), ("b", "2")]);
        let shifted = Labels::from_pairs([("a", "1b"), ("", "2")]);
        assert_eq!(a.identity(), b.identity());
        assert_ne!(a.identity(), shifted.identity());
    }

    /// Scenario: the labels that Pyroscope would store for a profile, one part of whose type is empty.
    /// Guarantee: they follow from its type and service; other names do not.
    #[test]
    fn labels_of_pyroscope() {
        let labels = Labels::from_pairs([(PROFILE_TYPE, "process_cpu:cpu:nanoseconds::count"), (SERVICE_NAME, "shop")]);
        let derived = DERIVED_LABELS.map(|name| labels.derived(name));
        assert_eq!(derived, [Some("process_cpu"), Some("cpu"), Some("nanoseconds"), None, Some("count"), Some("shop")]);
        assert_eq!((labels.derived(PROFILE_TYPE), labels.derived("name")), (None, None));
    }

    /// Scenario: names that come again, three times, and between others. Guarantee: one of each, with its last value.
    #[test]
    fn the_last_of_equal_names_wins() {
        let labels = Labels::from_pairs([("b", "1"), ("a", "2"), ("b", "3"), ("c", "4"), ("b", "5")]);
        assert!(labels.iter().eq([("a", "2"), ("b", "5"), ("c", "4")]));
    }
}
