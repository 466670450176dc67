//! The messages of Push, read one series at a time.
//!
//! A generated decoder would build all of a request first, and an empty series of two bytes becomes seventy bytes
//! of memory: here a series is gone before the next one is looked at (R5).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Buf;
use hotspan_formats::Limits;
use hotspan_model::Labels;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde::Deserialize;

use super::Refusal;

/// Takes the labels of a series and one profile of it.
pub(super) type StoreProfile<'f> = dyn FnMut(&Labels, &[u8]) -> Result<(), Refusal> + 'f;

/// Reads `PushRequest` in protobuf.
pub(super) fn each_series(message: &[u8], limits: &Limits, store: &mut StoreProfile<'_>) -> Result<(), Refusal> {
    let mut index = 0;
    each_field(message, "the request", |number, series| {
        if number != 1 {
            return Ok(());
        }
        let place = format!("series[{index}]");
        index += 1;
        let mut labels = Labels::default();
        let mut raw_profiles: Vec<&[u8]> = Vec::new();
        each_field(series, &place, |number, content| {
            match number {
                1 => {
                    let mut pair = [""; 2];
                    each_field(content, &place, |number, text| {
                        if let Some(slot) = pair.get_mut((number as usize).wrapping_sub(1)) {
                            *slot = std::str::from_utf8(text)
                                .map_err(|_| Refusal::Invalid(format!("{place}: a label is not UTF-8")))?;
                        }
                        Ok(())
                    })?;
                    add_label(&mut labels, pair[0], pair[1], limits, &place)?;
                }
                2 => each_field(content, &place, |number, raw| {
                    if number == 1 && raw_profiles.len() < MAX_PROFILES {
                        raw_profiles.push(raw);
                    }
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        if raw_profiles.len() == MAX_PROFILES {
            return Err(Refusal::Invalid(format!("{place} has {MAX_PROFILES} profiles or more; send fewer at once")));
        }
        // Labels may stand after the profiles, so these wait for the whole series.
        for (at, raw) in raw_profiles.iter().enumerate() {
            store(&labels, raw).map_err(|error| within(&place, at, error))?;
        }
        Ok(())
    })
}

/// Profiles of one series in one request; clients send one.
const MAX_PROFILES: usize = 4096;

/// Visits the length-delimited fields of a message; the others have no meaning in these.
fn each_field<'m>(
    message: &'m [u8],
    place: &str,
    mut visit: impl FnMut(u32, &'m [u8]) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut rest = message;
    while rest.has_remaining() {
        let at = message.len() - rest.len();
        let broken = |problem: String| Refusal::Invalid(format!("{place} is broken at its byte {at}: {problem}"));
        let (number, wire_type) = decode_key(&mut rest).map_err(|error| broken(error.to_string()))?;
        if wire_type == WireType::LengthDelimited {
            let length = decode_varint(&mut rest).map_err(|error| broken(error.to_string()))?;
            let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
            let Some(length) = length else {
                return Err(broken(format!("field {number} is longer than the {} bytes that are left", rest.len())));
            };
            let (content, after) = rest.split_at(length);
            rest = after;
            visit(number, content)?;
        } else {
            skip_field(wire_type, number, &mut rest, DecodeContext::default())
                .map_err(|error| broken(error.to_string()))?;
        }
    }
    Ok(())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JsonRequest {
    series: Vec<JsonSeries>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JsonSeries {
    labels: Vec<JsonLabel>,
    samples: Vec<JsonSample>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JsonLabel {
    name: String,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JsonSample {
    #[serde(rename = "rawProfile", alias = "raw_profile")]
    raw_profile: String,
}

/// Reads `PushRequest` in protobuf JSON.
pub(super) fn each_series_json(message: &[u8], limits: &Limits, store: &mut StoreProfile<'_>) -> Result<(), Refusal> {
    let request: JsonRequest =
        serde_json::from_slice(message).map_err(|error| Refusal::Invalid(format!("the request is broken: {error}")))?;
    for (index, series) in request.series.iter().enumerate() {
        let place = format!("series[{index}]");
        let mut labels = Labels::default();
        for label in &series.labels {
            add_label(&mut labels, &label.name, &label.value, limits, &place)?;
        }
        for (at, sample) in series.samples.iter().enumerate() {
            let raw = STANDARD.decode(sample.raw_profile.as_bytes()).map_err(|error| {
                Refusal::Invalid(format!("{place}.samples[{at}].rawProfile is not base64: {error}"))
            })?;
            store(&labels, &raw).map_err(|error| within(&place, at, error))?;
        }
    }
    Ok(())
}

fn add_label(labels: &mut Labels, name: &str, value: &str, limits: &Limits, place: &str) -> Result<(), Refusal> {
    if labels.len() >= limits.max_labels {
        return Err(Refusal::Invalid(format!("{place} has more than {} labels", limits.max_labels)));
    }
    if name.is_empty() {
        return Err(Refusal::Invalid(format!("{place} has a label without a name")));
    }
    if name.len() + value.len() > 2 * limits.max_label_bytes {
        return Err(Refusal::Invalid(format!("{place} has a label that is too long")));
    }
    labels.set(name, value);
    Ok(())
}

fn within(place: &str, at: usize, refusal: Refusal) -> Refusal {
    let Refusal::Profile(mut error) = refusal else { return refusal };
    error.expected = format!("{} (in {place}.samples[{at}])", error.expected).into();
    Refusal::Profile(error)
}
