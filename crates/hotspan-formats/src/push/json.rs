//! A request in protobuf JSON: names in camel case or as the schema has them, bytes in base64, and null for what is not
//! there.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{PushError, Series, TakeProfile};
use crate::limits::Limits;
use crate::span_identity::base64_bytes;

/// Gives the profiles of a request.
pub fn each_profile_json<E: From<PushError>>(
    message: &[u8],
    limits: &Limits,
    take: &mut TakeProfile<'_, E>,
) -> Result<(), E> {
    let mut json = serde_json::Deserializer::from_slice(message);
    let mut refused = None;
    let request = Request(SeriesList { limits, take, refused: &mut refused });
    let read = request.deserialize(&mut json).and_then(|()| json.end());
    match (refused, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(PushError(format!("the request is broken: {error}")).into()),
        (None, Ok(())) => Ok(()),
    }
}

struct Request<'t, 'f, E>(SeriesList<'t, 'f, E>);

struct SeriesList<'t, 'f, E> {
    limits: &'t Limits,
    take: &'t mut TakeProfile<'f, E>,
    /// Why a profile was not taken: errors of the JSON reader are texts.
    refused: &'t mut Option<E>,
}

type JsonSeries<'l> = Series<'l, Vec<u8>>;

struct SeriesFields<'s, 'l>(&'s mut JsonSeries<'l>);

struct LabelList<'s, 'l>(&'s mut JsonSeries<'l>);

struct SampleList<'s, 'l>(&'s mut JsonSeries<'l>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Label {
    name: Option<String>,
    value: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sample {
    #[serde(rename = "rawProfile", alias = "raw_profile")]
    raw_profile: Option<String>,
}

/// Each of these reads the JSON that stands where it is asked for, in the form that is there.
macro_rules! read_in_place {
    ([$($generics:tt)*] $name:ty) => {
        impl<'de, $($generics)*> DeserializeSeed<'de> for $name {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
                json.deserialize_any(self)
            }
        }
    };
}

read_in_place!([E] Request<'_, '_, E>);
read_in_place!([E] SeriesList<'_, '_, E>);
read_in_place!([] SeriesFields<'_, '_>);
read_in_place!([] LabelList<'_, '_>);
read_in_place!([] SampleList<'_, '_>);

impl<'de, E> Visitor<'de> for Request<'_, '_, E> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a request, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let SeriesList { limits, take, refused } = self.0;
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            match &*name {
                "series" => map.next_value_seed(SeriesList { limits, take, refused })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de, E> Visitor<'de> for SeriesList<'_, '_, E> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of series")
    }

    fn visit_unit<F: Error>(self) -> Result<(), F> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        for index in 0.. {
            let mut series = Series::new(self.limits, index);
            if list.next_element_seed(SeriesFields(&mut series))?.is_none() {
                break;
            }
            if let Err(error) = series.give(self.take) {
                *self.refused = Some(error);
                return Err(A::Error::custom("a profile was not taken"));
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for SeriesFields<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a series, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            match &*name {
                "labels" => map.next_value_seed(LabelList(self.0))?,
                "samples" => map.next_value_seed(SampleList(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for LabelList<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of labels")
    }

    fn visit_unit<F: Error>(self) -> Result<(), F> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(Label { name, value }) = list.next_element()? {
            let (name, value) = (name.unwrap_or_default(), value.unwrap_or_default());
            self.0.add_label(&name, &value).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for SampleList<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of samples")
    }

    fn visit_unit<F: Error>(self) -> Result<(), F> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(Sample { raw_profile }) = list.next_element()? {
            let Some(raw) = base64_bytes(&raw_profile.unwrap_or_default()) else {
                let JsonSeries { index, samples, .. } = self.0;
                return Err(A::Error::custom(format!("series[{index}].samples[{samples}].rawProfile is not base64")));
            };
            self.0.add_sample(raw).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
