//! `push.v1.PushRequest`: profiles of several series, each with its labels, as protobuf or as protobuf JSON.
//!
//! Read one series at a time: a decoder that built all of a request first would make seventy bytes of memory of an empty
//! series of two (R5).

mod json;
mod protobuf;

use std::collections::BTreeMap;

use hotspan_model::Labels;

use crate::limits::Limits;

pub use json::each_profile_json;
pub use protobuf::each_profile;

/// Profiles of one series in one request; clients send one.
const MAX_PROFILES: usize = 4096;
/// About what a label takes, beside its texts.
const LABEL_BYTES: usize = 64;

/// What is wrong with a request, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PushError(String);

/// A profile of a request.
#[derive(Debug, Clone, Copy)]
pub struct PushedProfile<'p> {
    /// The labels of its series.
    pub labels: &'p Labels,
    /// Its bytes, as the sender packed them.
    pub raw: &'p [u8],
    series: usize,
    sample: usize,
}

impl PushedProfile<'_> {
    /// Where in the request it stands.
    pub fn place(&self) -> String {
        format!("series[{}].samples[{}]", self.series, self.sample)
    }
}

/// Takes a profile; an error of its own ends the request.
pub type TakeProfile<'f, E> = dyn FnMut(PushedProfile<'_>) -> Result<(), E> + 'f;

/// What was read of a series. Labels may stand after its profiles, so these wait for its end.
#[derive(Debug)]
struct Series<'l, R> {
    limits: &'l Limits,
    index: usize,
    /// By name, of which the last one counts.
    labels: BTreeMap<String, String>,
    /// About what these take.
    label_bytes: usize,
    /// By their places; those without bytes are left out, which is how protobuf writes them as well.
    raw_profiles: Vec<(usize, R)>,
    samples: usize,
}

impl<'l, R: AsRef<[u8]>> Series<'l, R> {
    fn new(limits: &'l Limits, index: usize) -> Self {
        Self { limits, index, labels: BTreeMap::new(), label_bytes: 0, raw_profiles: Vec::new(), samples: 0 }
    }

    /// Adds a label. One that a series can't have is kept beside its profiles; but all of them have to fit into memory (R5).
    fn add_label(&mut self, name: &str, value: &str) -> Result<(), PushError> {
        let most = self.limits.max_item_bytes;
        let wrong = |problem: String| Err(PushError(format!("series[{}] has {problem}", self.index)));
        if name.is_empty() {
            return wrong("a label without a name".to_owned());
        }
        let bytes_of = |value: &str| name.len() + value.len() + LABEL_BYTES;
        let replaced = self.labels.insert(name.to_owned(), value.to_owned()).map_or(0, |value| bytes_of(&value));
        self.label_bytes = self.label_bytes + bytes_of(value) - replaced;
        if self.label_bytes > most {
            return wrong(format!("labels of more than {most} bytes (limits.max_item_bytes)"));
        }
        Ok(())
    }

    fn add_sample(&mut self, raw: R) -> Result<(), PushError> {
        if !raw.as_ref().is_empty() {
            self.raw_profiles.push((self.samples, raw));
        }
        self.samples += 1;
        if self.raw_profiles.len() == MAX_PROFILES {
            let index = self.index;
            return Err(PushError(format!("series[{index}] has {MAX_PROFILES} profiles or more; send fewer at once")));
        }
        Ok(())
    }

    fn give<E>(self, take: &mut TakeProfile<'_, E>) -> Result<(), E> {
        let (labels, series) = (Labels::from_pairs(self.labels), self.index);
        self.raw_profiles.iter().try_for_each(|(sample, raw)| {
            take(PushedProfile { labels: &labels, raw: raw.as_ref(), series, sample: *sample })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::put_bytes;

    type Profiles = Vec<(String, Labels, Vec<u8>)>;

    fn read(message: &[u8], limits: &Limits) -> Result<Profiles, String> {
        let mut profiles = Vec::new();
        let mut take = |profile: PushedProfile<'_>| {
            profiles.push((profile.place(), profile.labels.clone(), profile.raw.to_vec()));
            Ok::<_, PushError>(())
        };
        let is_json = message.first().is_some_and(|first| b"{[ ".contains(first));
        let read = if is_json {
            each_profile_json(message, limits, &mut take)
        } else {
            each_profile(message, limits, &mut take)
        };
        read.map_err(|error| error.to_string()).map(|()| profiles)
    }

    fn field(number: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, number, content);
        bytes
    }

    fn label(name: &str, value: &str) -> Vec<u8> {
        field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
    }

    /// Scenario: a request with labels after profiles, a sample without bytes and fields of a later version, in protobuf
    /// and in JSON of either spelling, with nulls, and with base64 of either alphabet.
    /// Guarantee: all say the same.
    #[test]
    fn protobuf_and_json_say_the_same() {
        let sample = |raw: &[u8]| field(2, &field(1, raw));
        let first = [field(2, &[]), sample(&[0xfb, 0xff]), label("service_name", "shop"), field(9, b"later")].concat();
        let request = [field(1, &first), field(1, &[]), field(1, &sample(b"z"))].concat();
        let profiles = read(&request, &Limits::default()).unwrap();
        let shop = Labels::from_pairs([("service_name", "shop")]);
        let expected = [
            ("series[0].samples[1]".to_owned(), shop, vec![0xfb, 0xff]),
            ("series[2].samples[0]".to_owned(), Labels::default(), b"z".to_vec()),
        ];
        assert_eq!(profiles, expected);
        for text in [
            r#"{"series": [{"samples": [{}, {"rawProfile": "+/8="}], "labels": [{"name": "service_name", "value": "shop"}]},
                {}, {"samples": [{"rawProfile": "eg==", "ID": "1"}]}], "later": [{"a": null}]}"#,
            r#"{"series": [{"samples": [{"raw_profile": null}, {"raw_profile": "-_8"}], "later": 1,
                "labels": [{"value": "shop", "name": "service_name"}]},
                {"labels": null, "samples": null}, {"samples": [{"raw_profile": "eg"}]}]}"#,
        ] {
            assert_eq!(read(text.as_bytes(), &Limits::default()).unwrap(), expected, "{text}");
        }
        assert_eq!(read(b"", &Limits::default()), Ok(Vec::new()));
        assert_eq!(read(br#"{"series": null}"#, &Limits::default()), Ok(Vec::new()));
    }

    /// Scenario: requests that are broken, or hold more than a limit allows. Guarantee: refused, with what and where.
    #[test]
    fn what_is_wrong_is_named() {
        let limits = Limits { max_item_bytes: 2 * LABEL_BYTES + 4, ..Limits::default() };
        let in_second = |series: &[u8]| [field(1, &[]), field(1, series)].concat();
        let json = |series: &str| format!(r#"{{"series": [{{}}, {series}]}}"#).into_bytes();
        let many = (0..MAX_PROFILES).map(|_| r#"{"rawProfile": "eg"}"#).collect::<Vec<_>>().join(",");
        for (message, problem) in [
            (vec![0x0a, 5, 0], "broken: PushRequest: at byte 3: expected 5 bytes of field 1"),
            (in_second(&[label("a", "b"), label("c", "de")].concat()), "series[1] has labels of more than 132 bytes"),
            (in_second(&label("", "b")), "series[1] has a label without a name"),
            (in_second(&field(1, &field(1, &[0xff]))), "UTF-8"),
            (in_second(&field(2, &field(1, b"z")).repeat(MAX_PROFILES)), "series[1] has 4096 profiles"),
            (json(r#"{"labels": [{"name": "abc"}, {"name": "de"}]}"#), "(limits.max_item_bytes)"),
            (json(r#"{"labels": [{"value": "b"}]}"#), "series[1] has a label without a name"),
            (json(r#"{"samples": [{}, {"rawProfile": "!"}]}"#), "series[1].samples[1].rawProfile is not base64"),
            (json(&format!(r#"{{"samples": [{many}]}}"#)), "series[1] has 4096 profiles"),
            (json("7"), "expected a series, which is an object at line 1 column"),
            (b"[]".to_vec(), "expected a request, which is an object"),
            (b"{} {".to_vec(), "trailing characters"),
        ] {
            let error = read(&message, &limits).unwrap_err();
            assert!(error.contains(problem), "{problem}: {error}");
        }
    }

    /// Scenario: a series with more labels than a series may have, and one that is too long. Guarantee: all are handed on, to be
    /// kept beside the profile.
    #[test]
    fn labels_beyond_the_limits_are_handed_on() {
        let limits = Limits { max_labels: 1, max_label_bytes: 4, ..Limits::default() };
        let series = [label("b", "efghi"), label("a", "x"), label("b", "again"), field(2, &field(1, b"z"))].concat();
        let profiles = read(&field(1, &series), &limits).unwrap();
        assert_eq!(profiles[0].1, Labels::from_pairs([("a", "x"), ("b", "again")]));
    }

    /// Scenario: a profile that is refused for a reason of its own. Guarantee: that reason is the answer, in JSON as well.
    #[test]
    fn refusals_are_handed_on() {
        let mut refuse = |_: PushedProfile<'_>| Err::<(), _>(PushError("full".to_owned()));
        let json = br#"{"series": [{"samples": [{"rawProfile": "eg=="}]}]}"#;
        assert_eq!(each_profile_json(json, &Limits::default(), &mut refuse), Err(PushError("full".to_owned())));
    }
}
