//! What can't be a label is kept beside what it belongs to, so that nothing is dropped (R4): labels that are too many or
//! too long for a series, and ids that can't be read, each of which would make a series of its own.
//!
//! One pass over a finished set does this for all formats that [`SetBuilder`] collects. OTLP, whose senders have a place for
//! attributes of each kind, does it while it reads.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::attribute::write_json_object;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Attribute, Labels, ProfileSet, Value};

use crate::file_error::Result;
use crate::limits::Limits;
use crate::set_builder::SetBuilder;
use crate::span_identity::is_id;

/// Labels that were taken apart; JSON is empty where there is nothing.
struct Parted {
    labels: Labels,
    /// Those beyond the limits.
    beyond: String,
    /// Ids that can't be read.
    unread_ids: String,
}

impl<'a> SetBuilder<'a> {
    /// The set, within the limits on labels and texts.
    pub(crate) fn finish(mut self) -> Result<ProfileSet<'a>> {
        let mut unread_ids = Vec::new();
        for index in 0..self.set.profiles.len() {
            self.cut_type(index);
            unread_ids.push(self.part_series(index)?);
        }
        let beside: Vec<String> = (0..self.set.label_sets.len()).map(|index| self.part_label_set(index)).collect();
        self.put_beside(&unread_ids, &beside)?;
        self.set.cut_texts += self.set.paths.frames.cut_texts();
        Ok(self.set)
    }

    fn cut_type(&mut self, profile: usize) {
        let mut profile_type = std::mem::take(&mut self.set.profiles[profile].profile_type);
        let hotspan_model::ProfileType { name, sample_type, sample_unit, period_type, period_unit } = &mut profile_type;
        for part in [name, sample_type, sample_unit, period_type, period_unit] {
            let length = self.kept_text(part).len();
            part.truncate(length);
        }
        self.set.profiles[profile].profile_type = profile_type;
    }

    /// Keeps the labels of a profile within the limits; gives the ids among them that can't be read.
    fn part_series(&mut self, profile: usize) -> Result<String> {
        // The service has a place of its own, and no series is without one.
        let most = self.limits.max_labels.max(2) - 1;
        let mut labels = std::mem::take(&mut self.set.profiles[profile].labels);
        let service = labels.remove(SERVICE_NAME);
        let mut parted = self.part(labels, most, service.as_deref());
        if let Some(service) = service {
            parted.labels.set(SERVICE_NAME, self.limits.short_label(&service));
        }
        self.take(parted.beyond.len(), 0)?;
        let profile = &mut self.set.profiles[profile];
        profile.labels = parted.labels;
        if !parted.beyond.is_empty() {
            profile.context.attributes = Cow::Owned(joined(&profile.context.attributes, &parted.beyond));
        }
        Ok(parted.unread_ids)
    }

    /// Keeps a label set of samples within the limits; gives what is kept beside them.
    fn part_label_set(&mut self, index: usize) -> String {
        let labels = &self.set.label_sets[index];
        if fits(labels, self.limits.max_labels, &self.limits) {
            return String::new();
        }
        let labels = std::mem::take(&mut self.set.label_sets[index]);
        let Parted { labels, beyond, unread_ids } = self.part(labels, self.limits.max_labels, None);
        self.set.label_sets[index] = labels;
        joined(&beyond, &unread_ids)
    }

    /// Takes labels apart. A service that is longer than a label may be is among those beyond the limits as well.
    fn part(&mut self, labels: Labels, most: usize, service: Option<&str>) -> Parted {
        let service = service.filter(|service| service.len() > self.limits.max_label_bytes);
        if service.is_none() && fits(&labels, most, &self.limits) {
            return Parted { labels, beyond: String::new(), unread_ids: String::new() };
        }
        let (mut kept, mut beyond, mut unread_ids) = (Labels::default(), Vec::new(), Vec::new());
        for (name, value) in labels.iter() {
            if is_id(name) {
                unread_ids.push((name, value));
            } else if kept.len() < most && self.limits.may_be_label(name, value) {
                kept.set(name, value);
            } else {
                beyond.push((name, value));
            }
        }
        beyond.extend(service.map(|service| (SERVICE_NAME, service)));
        Parted { beyond: self.json(&beyond), unread_ids: self.json(&unread_ids), labels: kept }
    }

    fn json(&mut self, pairs: &[(&str, &str)]) -> String {
        let mut json = String::new();
        if !pairs.is_empty() {
            let attribute =
                |(name, value): &(&str, &str)| (self.kept_text(name).to_owned(), self.kept_text(value).to_owned());
            let texts: Vec<(String, String)> = pairs.iter().map(attribute).collect();
            let attributes: Vec<Attribute<'_>> =
                texts.iter().map(|(name, value)| Attribute::new(name, Value::str(value))).collect();
            write_json_object(&attributes, &mut json);
        }
        json
    }

    /// Gives samples what is kept beside them: the ids of their profile, and what their label set could not hold.
    fn put_beside(&mut self, unread_ids: &[String], beside: &[String]) -> Result<()> {
        if unread_ids.iter().chain(beside).all(String::is_empty) {
            return Ok(());
        }
        let mut profiles = std::mem::take(&mut self.set.profiles);
        for (profile, unread_ids) in profiles.iter_mut().zip(unread_ids) {
            let mut known = HashMap::new();
            for sample in &mut profile.samples {
                let key = (sample.labels, sample.attributes);
                sample.attributes = match known.get(&key) {
                    Some(attributes) => *attributes,
                    None => {
                        let own = &self.set.attribute_sets[sample.attributes as usize];
                        let attributes =
                            self.attributes(joined(&joined(own, &beside[sample.labels as usize]), unread_ids));
                        // A few labels and many attributes make very many of both.
                        self.check_room(0)?;
                        known.insert(key, attributes);
                        attributes
                    }
                };
            }
        }
        self.set.profiles = profiles;
        Ok(())
    }
}

fn fits(labels: &Labels, most: usize, limits: &Limits) -> bool {
    labels.len() <= most && labels.iter().all(|(name, value)| limits.may_be_label(name, value) && !is_id(name))
}

/// Two objects of JSON as one; an empty text is one without members.
fn joined(one: &str, other: &str) -> String {
    match (one.strip_suffix('}'), other.strip_prefix('{')) {
        (Some(start), Some(end)) => format!("{start},{end}"),
        _ => format!("{one}{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecodeOptions, collapsed};

    fn decode(labels: &[(&str, &str)], limits: Limits, text: &'static str) -> ProfileSet<'static> {
        let labels = Labels::from_pairs(labels.iter().copied());
        collapsed::decode(text.as_bytes(), &DecodeOptions { labels, limits, ..DecodeOptions::default() }).unwrap()
    }

    /// Scenario: a series with one label too many, one that is too long, and a service that is.
    /// Guarantee: the series keeps those that it can have, the service cut; the others are beside the profile, whole.
    #[test]
    fn labels_beyond_the_limits() {
        let limits = Limits { max_labels: 3, max_label_bytes: 12, ..Limits::default() };
        let labels = [
            ("a", "1"),
            ("b", "more than twelve"),
            ("c", "3"),
            ("d", "4"),
            (SERVICE_NAME, "order-service of the shop"),
        ];
        let set = decode(&labels, limits, "main 1\n");
        let kept = [("a", "1"), ("c", "3"), (SERVICE_NAME, "order-servic")];
        assert_eq!(set.profiles[0].labels, Labels::from_pairs(kept));
        let beside = r#"{"b":"more than twelve","d":"4","service_name":"order-service of the shop"}"#;
        assert_eq!((set.profiles[0].context.attributes.as_ref(), set.cut_texts), (beside, 0));
    }

    /// Scenario: functions, labels and a type with texts longer than the limit.
    /// Guarantee: they are kept up to it, and each is counted once however often it comes.
    #[test]
    fn long_texts_are_cut_and_counted() {
        let limits = Limits { max_label_bytes: 8, max_text_bytes: 12, ..Limits::default() };
        let set =
            decode(&[("a", "123456789012345")], limits, "main;a_long_function_name 1\nmain;x;a_long_function_name 2\n");
        let names: Vec<String> = set.paths.frames.iter().map(|frame| frame.function.into_owned()).collect();
        assert!(names.contains(&"a_long_funct".to_owned()), "{names:?}");
        assert_eq!(set.profiles[0].context.attributes, r#"{"a":"123456789012"}"#);
        assert_eq!(set.cut_texts, 2);
    }

    /// Scenario: a series whose span id is a UUID, and one without a span. Guarantee: the first is an attribute of its samples,
    /// neither a label nor a link; the second is nothing.
    #[test]
    fn ids_that_cannot_be_read() {
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        let set = decode(&[("span_id", uuid), ("trace_id", "0000")], Limits::default(), "main 1\nmain;x 2\n");
        let samples = &set.profiles[0].samples;
        let attributes: Vec<&str> =
            samples.iter().map(|sample| set.attribute_sets[sample.attributes as usize].as_str()).collect();
        let expected = format!(r#"{{"span_id":"{uuid}"}}"#);
        assert_eq!(attributes, [expected.as_str(); 2]);
        assert!(set.profiles[0].labels.is_empty() && set.profiles[0].context.attributes.is_empty());
        assert!(samples.iter().all(|sample| sample.link == 0));
    }

    /// Scenario: objects of JSON with and without members. Guarantee: joined, they hold the members of both.
    #[test]
    fn objects_are_joined() {
        assert_eq!(joined(r#"{"a":1}"#, r#"{"b":2}"#), r#"{"a":1,"b":2}"#);
        assert_eq!(
            (joined("", r#"{"b":2}"#).as_str(), joined(r#"{"a":1}"#, "").as_str()),
            (r#"{"b":2}"#, r#"{"a":1}"#)
        );
        assert_eq!(joined("", ""), "");
    }
}
