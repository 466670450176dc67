//! Push: any bytes give an answer, generated types agree with what is read, and JSON says the same as protobuf.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hotspan_formats::Limits;
use hotspan_formats::push::{PushError, PushedProfile, each_profile, each_profile_json};
use hotspan_model::Labels;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use serde_json::{Value, json};

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
}

/// A profile by its place, with its labels.
type Taken = Vec<(String, Labels, Vec<u8>)>;

fn read(message: &[u8], is_json: bool, limits: &Limits) -> Result<Taken, PushError> {
    let mut taken = Taken::new();
    let mut take = |profile: PushedProfile<'_>| {
        assert!(profile.labels.len() <= limits.max_labels);
        taken.push((profile.place(), profile.labels.clone(), profile.raw.to_vec()));
        Ok::<_, PushError>(())
    };
    match is_json {
        true => each_profile_json(message, limits, &mut take)?,
        false => each_profile(message, limits, &mut take)?,
    }
    Ok(taken)
}

fn as_json(request: &Request) -> Value {
    let label = |label: &Label| json!({ "name": label.name, "value": label.value });
    let sample = |sample: &Sample| json!({ "rawProfile": STANDARD.encode(&sample.raw_profile) });
    let series = |series: &Series| {
        let labels: Vec<Value> = series.labels.iter().map(label).collect();
        let samples: Vec<Value> = series.samples.iter().map(sample).collect();
        json!({ "labels": labels, "samples": samples })
    };
    json!({ "series": request.series.iter().map(series).collect::<Vec<_>>() })
}

/// A request that brings these profiles.
fn request_of(taken: &Taken) -> Request {
    let series = |(_, labels, raw): &(String, Labels, Vec<u8>)| Series {
        labels: labels.iter().map(|(name, value)| Label { name: name.to_owned(), value: value.to_owned() }).collect(),
        samples: vec![Sample { raw_profile: raw.clone() }],
    };
    Request { series: taken.iter().map(series).collect() }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_labels: 4, max_label_bytes: 16, ..Limits::default() };
    let by_wire = read(bytes, false, &limits);
    if let Ok(request) = Request::decode(bytes) {
        let by_types = read(&request.encode_to_vec(), false, &limits);
        let by_json = read(as_json(&request).to_string().as_bytes(), true, &limits);
        assert_eq!(by_types.is_ok(), by_json.is_ok(), "{by_types:?} {by_json:?}");
        if let (Ok(by_types), Ok(by_json)) = (by_types, by_json) {
            assert_eq!(by_types, by_json);
            // What is not read here (groups, numbers of fields that there are none of) is refused, not misread.
            assert!(by_wire.is_err() || by_wire.as_ref() == Ok(&by_types), "{by_wire:?} {by_types:?}");
        }
    }
    for is_json in [false, true] {
        match read(bytes, is_json, &limits) {
            Ok(taken) => {
                let content =
                    |taken: Taken| -> Vec<_> { taken.into_iter().map(|(_, labels, raw)| (labels, raw)).collect() };
                let again = read(&request_of(&taken).encode_to_vec(), false, &limits).expect("own request is read");
                assert_eq!(content(again), content(taken));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
