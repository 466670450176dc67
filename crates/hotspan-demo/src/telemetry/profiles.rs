//! Profiles of the shop, divided by service.
//!
//! One process has one profiler, but the shop plays five services. Every upload is therefore taken apart: a sample goes
//! to the service that made its span, one without a span to the service whose thread it was taken on.

use std::collections::BTreeMap;
use std::time::Duration;

use hotspan_profiler::{Adaptive, Profiler, StartError};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::{
    Profile, ProfilesDictionary, ResourceProfiles, Sample, ScopeProfiles,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::Release;
use super::resource::text;
use super::span::service_of_span;
use crate::http;
use crate::mesh::Service;

/// Short, so that the flame graph of a request is there seconds after it.
const UPLOAD_INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes between heap samples: parsing allocates much, so that this gives a few hundred samples a minute.
const HEAP_INTERVAL: usize = 512 << 10;

const STACK_DEPTH: usize = 192;
/// The shop hardly works and uploads often, for people who watch: what that costs is much of little, and no reason to
/// look less closely.
const CEILING_PERCENT: f64 = 10.0;

/// Starts the profiler: CPU, wall clock, heap and locks. `release_of` tells in which version a service is now.
pub(crate) fn start(
    server: &str,
    release_of: impl Fn(Service) -> Release + Send + Sync + 'static,
) -> Result<Profiler, StartError> {
    let server = server.to_owned();
    Profiler::builder("shop")
        .ignore_environment()
        .cpu_hertz(100)
        .adaptive(Adaptive { overhead_ceiling_percent: CEILING_PERCENT, ..Adaptive::default() })
        .wall_hertz(50)
        // Parsers and builds without optimisation go deep, and the shop's own functions are at the far end.
        .max_stack_depth(STACK_DEPTH)
        .locks(true)
        .memory(HEAP_INTERVAL)
        .upload_interval(UPLOAD_INTERVAL)
        .on_upload(move |upload| {
            if let Ok(request) = ExportProfilesServiceRequest::decode(upload) {
                deliver(&server, &divide(request, &release_of).encode_to_vec());
            }
        })
        .start()
}

/// Sends an upload, with a second and third try for a server that is busy.
fn deliver(server: &str, body: &[u8]) {
    for pause in [0, 300, 1000] {
        std::thread::sleep(Duration::from_millis(pause));
        let answer = http::send(server, "POST", "/v1development/profiles", "application/x-protobuf", body, TIMEOUT);
        if answer.is_ok_and(|answer| !matches!(answer.status(), Some(429 | 502 | 503 | 504))) {
            return;
        }
    }
}

/// Whose a sample is: a service's, or nobody's (the load, the exporter, the profiler itself).
fn owner_of(sample: &Sample, dictionary: &ProfilesDictionary) -> Option<Service> {
    let link = usize::try_from(sample.link_index).ok().filter(|link| *link > 0);
    if let Some(link) = link.and_then(|link| dictionary.link_table.get(link)) {
        return service_of_span(&link.span_id);
    }
    sample.attribute_indices.iter().find_map(|index| {
        let attribute = dictionary.attribute_table.get(usize::try_from(*index).ok()?)?;
        let key = dictionary.string_table.get(usize::try_from(attribute.key_strindex).ok()?)?;
        match attribute.value.as_ref()?.value.as_ref()? {
            Value::StringValue(name) if key == "thread.name" => Service::of_thread(name),
            _ => None,
        }
    })
}

/// Takes an upload of the process apart into uploads of its services, which share the dictionary.
fn divide(
    request: ExportProfilesServiceRequest,
    release_of: &impl Fn(Service) -> Release,
) -> ExportProfilesServiceRequest {
    let dictionary = request.dictionary.unwrap_or_default();
    let mut scopes: BTreeMap<Option<Service>, ScopeProfiles> = BTreeMap::new();
    for scope_profiles in request.resource_profiles.into_iter().flat_map(|resource| resource.scope_profiles) {
        for mut profile in scope_profiles.profiles {
            let mut samples: BTreeMap<Option<Service>, Vec<Sample>> = BTreeMap::new();
            for sample in std::mem::take(&mut profile.samples) {
                samples.entry(owner_of(&sample, &dictionary)).or_default().push(sample);
            }
            for (owner, samples) in samples {
                let profile = Profile { samples, profile_id: id_for(&profile.profile_id, owner), ..profile.clone() };
                let scope = scopes.entry(owner).or_insert_with(|| ScopeProfiles {
                    scope: scope_profiles.scope.clone(),
                    ..ScopeProfiles::default()
                });
                scope.profiles.push(profile);
            }
        }
    }
    let resource_profiles = scopes
        .into_iter()
        .map(|(owner, scope)| ResourceProfiles {
            resource: Some(owner.map_or_else(shop_resource, |service| release_of(service).resource())),
            scope_profiles: vec![scope],
            ..ResourceProfiles::default()
        })
        .collect();
    ExportProfilesServiceRequest { resource_profiles, dictionary: Some(dictionary) }
}

/// What is no service's: what it costs to run the demo.
fn shop_resource() -> Resource {
    Resource { attributes: vec![text("service.name", "shop")], ..Resource::default() }
}

/// The parts of a profile are profiles of their own: the server would take the same id twice for a retry.
fn id_for(id: &[u8], owner: Option<Service>) -> Vec<u8> {
    let mut id = id.to_vec();
    if let Some(last) = id.last_mut() {
        *last = last.wrapping_add(owner.map_or(0, Service::number));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::AnyValue;
    use opentelemetry_proto::tonic::profiles::v1development::{KeyValueAndUnit, Link};

    /// Scenario: an upload with samples of a tax span, of an order thread without a span, and of another thread.
    /// Guarantee: each is with its service, under an id of its own, and none is lost.
    #[test]
    fn samples_go_to_their_service() {
        let thread = |name: &str| KeyValueAndUnit {
            key_strindex: 1,
            value: Some(AnyValue { value: Some(Value::StringValue(name.to_owned())) }),
            unit_strindex: 0,
        };
        let link = Link { trace_id: vec![1; 16], span_id: vec![9, 0, 0, 0, 0, 0, 0, Service::Tax.number()] };
        let dictionary = ProfilesDictionary {
            string_table: vec![String::new(), "thread.name".to_owned()],
            attribute_table: vec![KeyValueAndUnit::default(), thread("order-2"), thread("load")],
            link_table: vec![Link::default(), link],
            ..ProfilesDictionary::default()
        };
        let sample = |link_index, attribute, value| Sample {
            link_index,
            attribute_indices: vec![attribute],
            values: vec![value],
            ..Sample::default()
        };
        // The span's service counts, not the thread's.
        let samples = vec![sample(1, 1, 10), sample(0, 1, 20), sample(0, 2, 30)];
        let profile = Profile { samples, profile_id: vec![5; 16], ..Profile::default() };
        let scope = ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() };
        let resource = ResourceProfiles { scope_profiles: vec![scope], ..ResourceProfiles::default() };
        let request =
            ExportProfilesServiceRequest { resource_profiles: vec![resource], dictionary: Some(dictionary.clone()) };
        let divided = divide(request, &|service| Release { service, is_fixed: false });
        assert_eq!(divided.dictionary, Some(dictionary));
        let mut seen: Vec<_> = divided
            .resource_profiles
            .iter()
            .map(|part| {
                let profile = &part.scope_profiles[0].profiles[0];
                let Some(Value::StringValue(name)) =
                    part.resource.clone().unwrap().attributes[0].value.clone().unwrap().value
                else {
                    panic!("a service has a name");
                };
                (name, profile.samples[0].values[0], profile.profile_id.clone())
            })
            .collect();
        seen.sort();
        let names: Vec<_> = seen.iter().map(|(name, value, _)| (name.as_str(), *value)).collect();
        assert_eq!(names, [("order", 20), ("shop", 30), ("tax", 10)]);
        assert!(seen[0].2 != seen[1].2 && seen[1].2 != seen[2].2);
    }
}
