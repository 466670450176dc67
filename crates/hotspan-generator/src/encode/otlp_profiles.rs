//! `ExportProfilesServiceRequest`, with the field numbers of OTLP 1.10.

use hashbrown::HashMap;

use super::attributes::{write_resource, write_scope};
use super::dictionary::Dictionary;
use super::protobuf::Writer;
use crate::settings::WINDOW_NANOS;
use crate::workload::PERIOD_NANOS;
use crate::workload::{GeneratedProfile, SampleKind, Window};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRequest {
    /// How many profiles it holds.
    pub profiles: usize,
    /// How many observations they hold.
    pub samples: usize,
    /// Its protobuf.
    pub bytes: Vec<u8>,
}

/// How observations with the same stack, attributes and link are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleShape {
    /// As one sample with all their values and times, as OTLP wants it.
    Merged,
    /// As a sample each, for receivers that read one value of a sample only, such as Pyroscope.
    Single,
}

/// The profiles of a window, so many in a request.
pub fn profile_requests<'a>(
    window: &'a Window<'_>,
    profiles_per_request: usize,
    shape: SampleShape,
) -> impl Iterator<Item = ProfileRequest> + 'a {
    window.profiles.chunks(profiles_per_request.max(1)).map(move |profiles| ProfileRequest {
        profiles: profiles.len(),
        samples: profiles.iter().map(|profile| profile.samples.len()).sum(),
        bytes: profile_request(window, profiles, shape),
    })
}

fn profile_request(window: &Window<'_>, profiles: &[GeneratedProfile], shape: SampleShape) -> Vec<u8> {
    let mut dictionary = Dictionary::default();
    let mut out = Writer::default();
    for profile in profiles {
        let service = &window.workload.fleet().services[usize::from(profile.service)];
        out.message(1, |resource_profiles| {
            write_resource(resource_profiles, &service.resource);
            resource_profiles.message(2, |scope_profiles| {
                write_scope(scope_profiles, service.language.name());
                scope_profiles.message(2, |message| write_profile(message, window, profile, shape, &mut dictionary));
            });
            resource_profiles.text(3, service.resource.schema_url);
        });
    }
    out.message(2, |message| dictionary.write(message));
    out.into_bytes()
}

/// What makes two observations the same OTLP sample: stack, attributes, link.
type Identity = (u64, [u64; 2], u64);

fn write_profile<'w>(
    out: &mut Writer,
    window: &Window<'w>,
    profile: &GeneratedProfile,
    shape: SampleShape,
    dictionary: &mut Dictionary<'w>,
) {
    let service = &window.workload.fleet().services[usize::from(profile.service)];
    let mut merged: HashMap<Identity, usize> = HashMap::with_capacity(profile.samples.len());
    let mut samples: Vec<(Identity, Vec<(i64, i64)>)> = Vec::with_capacity(profile.samples.len());
    for sample in &profile.samples {
        let stack = dictionary.stack(profile.service, service, sample.node);
        let thread = dictionary.thread(profile.service, service, sample.thread);
        let link = sample.span.map_or(0, |span| dictionary.link(span, window));
        let identity = (stack, thread, link);
        let known = match shape {
            SampleShape::Merged => *merged.entry(identity).or_insert(samples.len()),
            SampleShape::Single => samples.len(),
        };
        if known == samples.len() {
            samples.push((identity, Vec::new()));
        }
        samples[known].1.push((sample.value, sample.time));
    }
    let kind = dictionary.string(profile.kind.name());
    let unit = dictionary.string("nanoseconds");
    out.message(1, |value_type| {
        value_type.varint(1, kind);
        value_type.varint(2, unit);
    });
    for ((stack, attributes, link), observations) in &samples {
        out.message(2, |sample| {
            sample.varint(1, *stack);
            sample.packed(2, *attributes);
            sample.varint(3, *link);
            sample.packed(4, observations.iter().map(|(value, _)| *value as u64));
            let times: Vec<u8> = observations.iter().flat_map(|(_, time)| time.to_le_bytes()).collect();
            sample.bytes(5, &times);
        });
    }
    out.fixed64(3, profile.start as u64);
    out.varint(4, WINDOW_NANOS as u64);
    if profile.kind == SampleKind::Cpu {
        out.message(5, |period_type| {
            period_type.varint(1, kind);
            period_type.varint(2, unit);
        });
        out.varint(6, PERIOD_NANOS as u64);
    }
    out.bytes(7, &profile.id);
}
