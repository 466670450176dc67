//! The straightforward translation of profile requests from the generated types: every sample looks up everything
//! anew, nothing is remembered, nothing is shared.

use hotspan_formats::span_identity::{Identity, IdentityLabel, classify};
use hotspan_model::attribute::{write_json_object, write_json_string};
use hotspan_model::entity_ref::write_entity_refs;
use hotspan_model::{Attribute, Frame, FrameKind, Labels, Link, ProfileSet, SpanId, TraceId, Value};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, EntityRef, KeyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development::{Location, Profile, ProfilesDictionary, Sample, ValueType};

use crate::trace_oracle;

/// A set of profiles as text: a line for each profile, and a line for each of its samples.
pub(crate) fn describe(set: &ProfileSet<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for profile in &set.profiles {
        lines.push(format!(
            "{} {:?} {} {} {} {:?} {:?}",
            profile.profile_type,
            profile.id,
            profile.time,
            profile.duration,
            profile.period,
            profile.labels,
            profile.context
        ));
        for sample in &profile.samples {
            let mut frames: Vec<Frame<'_>> = set.paths.walk_to_root(sample.path).collect();
            frames.reverse();
            lines.push(sample_line(
                &frames,
                sample.value,
                sample.timed.then_some(sample.time),
                set.links[sample.link as usize],
                set.threads[sample.thread as usize].id,
                &set.threads[sample.thread as usize].name,
                &set.label_sets[sample.labels as usize],
                &set.attribute_sets[sample.attributes as usize],
            ));
            assert!(sample.timed || sample.time == profile.time);
        }
    }
    lines
}

#[allow(clippy::too_many_arguments)]
fn sample_line(
    frames: &[Frame<'_>],
    value: i64,
    time: Option<i64>,
    link: Link,
    thread_id: Option<i64>,
    thread_name: &str,
    labels: &Labels,
    attributes: &str,
) -> String {
    format!("  {value} {time:?} {link:?} {thread_id:?} {thread_name:?} {labels:?} {attributes} {frames:?}")
}

/// The lines, and how many profiles and samples are refused.
pub(crate) fn translate(request: &ExportProfilesServiceRequest, received_at: i64) -> (Vec<String>, u64, u64) {
    let null = ProfilesDictionary::default();
    let oracle = Oracle { dictionary: request.dictionary.as_ref().unwrap_or(&null), received_at };
    let (mut lines, mut profiles, mut samples) = (Vec::new(), 0, 0);
    for group in &request.resource_profiles {
        let resource = group.resource.clone().unwrap_or_default();
        for scope_profiles in &group.scope_profiles {
            let scope = scope_profiles.scope.clone().unwrap_or_default();
            let Some(resource_attributes) = oracle.attributes(&resource.attributes) else {
                profiles += scope_profiles.profiles.len() as u64;
                samples += scope_profiles.profiles.iter().map(|profile| profile.samples.len() as u64).sum::<u64>();
                continue;
            };
            let scope_attributes = trace_oracle::attributes(&scope.attributes);
            let mut around = Around::default();
            around.label(&resource_attributes);
            let text = |key: &str| {
                resource_attributes
                    .iter()
                    .find(|attribute| attribute.key == key)
                    .and_then(|attribute| attribute.value.as_str())
                    .filter(|text| !text.is_empty())
            };
            around.labels.set("service_name", text("service.name").unwrap_or("unknown_service"));
            around.label(&scope_attributes);
            around.resource = object(&[
                ("attributes", set_json(&resource_attributes)),
                ("schema_url", text_json(&group.schema_url)),
                ("dropped_attributes_count", number_json(resource.dropped_attributes_count)),
                ("entity_refs", entities_json(&resource.entity_refs)),
            ]);
            around.scope = object(&[
                ("name", text_json(&scope.name)),
                ("version", text_json(&scope.version)),
                ("attributes", set_json(&scope_attributes)),
                ("schema_url", text_json(&scope_profiles.schema_url)),
                ("dropped_attributes_count", number_json(scope.dropped_attributes_count)),
            ]);
            for profile in &scope_profiles.profiles {
                let (mut told, refused) = oracle.profile(profile, &scope_profiles.profiles, &around);
                samples += refused;
                profiles += u64::from(told.is_empty());
                lines.append(&mut told);
            }
        }
    }
    (lines, profiles, samples)
}

#[derive(Default)]
struct Around {
    labels: Labels,
    identity: Identity,
    resource: String,
    scope: String,
}

impl Around {
    fn label(&mut self, attributes: &[Attribute<'_>]) {
        for attribute in attributes {
            let value = match &attribute.value {
                value if take_identity(&mut self.identity, &attribute.key, value) || holds_id(&attribute.key) => {
                    continue;
                }
                Value::Array(values) if values.len() == 1 && !matches!(values[0], Value::Double(_)) => &values[0],
                value => value,
            };
            let scalar = matches!(value, Value::String(_) | Value::Int(_) | Value::Bool(_) | Value::Double(_));
            if scalar && !attribute.key.is_empty() && !value.to_label().is_empty() {
                self.labels.set_default(&attribute.key, value.to_label());
            }
        }
    }
}

fn take_identity(identity: &mut Identity, key: &str, value: &Value<'_>) -> bool {
    match value {
        Value::String(text) => identity.take_text(key, text),
        Value::Int(number) => identity.take_number(key, *number),
        Value::Bytes(bytes) => identity.take_bytes(key, bytes),
        _ => false,
    }
}

/// An id that can't be read is no label either.
fn holds_id(key: &str) -> bool {
    classify(key).is_some_and(|meaning| meaning != IdentityLabel::SpanName)
}

struct Oracle<'r> {
    dictionary: &'r ProfilesDictionary,
    received_at: i64,
}

impl<'r> Oracle<'r> {
    fn text(&self, index: i32) -> Option<&'r str> {
        Some(self.dictionary.string_table.get(usize::try_from(index).ok()?)?)
    }

    /// Attributes whose texts may be in the dictionary; none if one of them is not.
    fn attributes(&self, sent: &'r [KeyValue]) -> Option<Vec<Attribute<'r>>> {
        let one = |sent: &'r KeyValue| {
            let key = if sent.key.is_empty() { self.text(sent.key_strindex)? } else { &sent.key };
            Some(Attribute::new(key, self.value(sent.value.as_ref())?))
        };
        sent.iter().map(one).collect()
    }

    fn value(&self, sent: Option<&'r AnyValue>) -> Option<Value<'r>> {
        match sent.and_then(|sent| sent.value.as_ref()) {
            Some(any_value::Value::StringValueStrindex(index)) => self.text(*index).map(Value::str),
            _ => Some(trace_oracle::value(sent)),
        }
    }

    /// Key, value and unit of an entry of the attribute table; nothing for the null entry.
    fn table_attribute(&self, index: i32) -> Option<Option<(&'r str, Value<'r>, &'r str)>> {
        let entry = self.dictionary.attribute_table.get(usize::try_from(index).ok()?)?;
        let key = self.text(entry.key_strindex)?;
        let (value, unit) = (self.value(entry.value.as_ref())?, self.text(entry.unit_strindex)?);
        Some((!key.is_empty() || value != Value::Empty).then_some((key, value, unit)))
    }

    fn table_attributes(&self, indices: &[i32]) -> Option<Vec<(&'r str, Value<'r>, &'r str)>> {
        let found: Option<Vec<_>> = indices.iter().map(|index| self.table_attribute(*index)).collect();
        Some(found?.into_iter().flatten().collect())
    }

    /// The lines of a profile, none if it is refused, and how many samples are.
    fn profile(&self, profile: &Profile, siblings: &[Profile], around: &Around) -> (Vec<String>, u64) {
        let all = profile.samples.len() as u64;
        let Some(attributes) = self.table_attributes(&profile.attribute_indices) else { return (Vec::new(), all) };
        let (profile_type, scale) = self.profile_type(profile, siblings);
        let mut identity = around.identity;
        for (key, value, _) in &attributes {
            take_identity(&mut identity, key, value);
        }
        let mut by_service: Vec<(Option<String>, Vec<String>)> = vec![(None, Vec::new())];
        let mut refused = 0;
        let mut mappings = Vec::new();
        for sample in &profile.samples {
            let Some((service, mut told, mut used)) = self.sample(sample, scale, identity.link()) else {
                refused += 1;
                continue;
            };
            mappings.append(&mut used);
            match by_service.iter_mut().find(|(known, _)| *known == service) {
                Some((_, lines)) => lines.append(&mut told),
                None => by_service.push((service, told)),
            }
        }
        if refused > 0 && refused == all {
            return (Vec::new(), all);
        }
        if by_service.len() > 1 && by_service[0].1.is_empty() {
            by_service.remove(0);
        }
        mappings.sort_unstable();
        mappings.dedup();
        let mappings: Vec<String> = mappings.into_iter().filter_map(|index| self.mapping_json(index)).collect();
        let context = hotspan_model::profile::ProfileContext {
            resource: around.resource.clone().into(),
            scope: around.scope.clone().into(),
            attributes: if attributes.is_empty() { String::new() } else { table_json(&attributes) }.into(),
            mappings: if mappings.is_empty() { String::new() } else { format!("[{}]", mappings.join(",")) }.into(),
            dropped_attributes_count: profile.dropped_attributes_count,
            original_payload_format: profile.original_payload_format.clone().into(),
            original_payload: profile.original_payload.clone().into(),
            source: "otlp".into(),
            undated: profile.time_unix_nano == 0 || profile.time_unix_nano > i64::MAX as u64,
        };
        let mut id = hotspan_model::ProfileId::from_slice(&profile.profile_id);
        let time = i64::try_from(profile.time_unix_nano).ok().filter(|time| *time != 0).unwrap_or(self.received_at);
        let mut lines = Vec::new();
        for (service, mut samples) in by_service {
            let mut labels = around.labels.clone();
            if let Some(service) = service {
                labels.set("service_name", service);
            }
            let duration = i64::try_from(profile.duration_nano).unwrap_or(i64::MAX);
            lines.push(format!("{profile_type} {id:?} {time} {duration} {} {labels:?} {context:?}", profile.period));
            lines.append(&mut samples);
            id = None;
        }
        (lines, refused)
    }

    fn profile_type(&self, profile: &Profile, siblings: &[Profile]) -> (String, i64) {
        let texts = |value_type: &Option<ValueType>| {
            let value_type = value_type.unwrap_or_default();
            (self.text(value_type.type_strindex).unwrap(), self.text(value_type.unit_strindex).unwrap())
        };
        let (kind, unit) = texts(&profile.sample_type);
        let (period_kind, period_unit) = texts(&profile.period_type);
        let is_measured = || {
            siblings.iter().any(|other| {
                other.time_unix_nano == profile.time_unix_nano && texts(&other.sample_type) == ("cpu", "nanoseconds")
            })
        };
        match (kind, unit, period_kind) {
            ("samples", "count", "cpu") if profile.period > 0 && !is_measured() => {
                ("process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned(), profile.period)
            }
            ("samples", "count", "cpu") => ("process_cpu:samples:count:cpu:nanoseconds".to_owned(), 1),
            ("cpu", ..) => ("process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned(), 1),
            ("off_cpu", ..) => ("off_cpu:off_cpu:nanoseconds::".to_owned(), 1),
            ("wall", ..) => ("wall:wall:nanoseconds:wall:nanoseconds".to_owned(), 1),
            ("alloc_space", ..) => ("memory:alloc_space:bytes:space:bytes".to_owned(), 1),
            ("", _, "") => ("unknown:unknown:::".to_owned(), 1),
            (_, _, "") => (format!("{kind}:{kind}:{unit}::"), 1),
            ("", ..) => (format!("{period_kind}:{period_kind}:{unit}:{period_kind}:{period_unit}"), 1),
            _ => (format!("{period_kind}:{kind}:{unit}:{period_kind}:{period_unit}"), 1),
        }
    }

    #[allow(clippy::type_complexity)]
    fn sample(&self, sample: &Sample, scale: i64, fallback: Link) -> Option<(Option<String>, Vec<String>, Vec<i32>)> {
        let (values, times) = (&sample.values, &sample.timestamps_unix_nano);
        let observations: Vec<(i64, Option<u64>)> = match (values.len(), times.len()) {
            (0, 0) => return None,
            _ if values.iter().any(|value| *value < 0) => return None,
            (_, 0) => vec![(values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value)), None)],
            (0, _) => times.iter().map(|time| (1, Some(*time))).collect(),
            (values, times) if values != times => return None,
            _ => values.iter().copied().zip(times.iter().copied().map(Some)).collect(),
        };
        let stack = self.dictionary.stack_table.get(usize::try_from(sample.stack_index).ok()?)?;
        let (mut frames, mut mappings) = (Vec::new(), Vec::new());
        for index in stack.location_indices.iter().rev() {
            let location = self.dictionary.location_table.get(usize::try_from(*index).ok()?)?;
            frames.append(&mut self.frames(location)?);
            mappings.push(location.mapping_index);
        }
        let mut identity = Identity::default();
        let (mut thread_id, mut thread_name, mut service) = (None, "".to_owned(), None);
        let (mut labels, mut others) = (Labels::default(), Vec::new());
        for (key, value, unit) in self.table_attributes(&sample.attribute_indices)? {
            match (key, &value) {
                ("thread.name", Value::String(name)) => thread_name = name.to_string(),
                ("thread.id", Value::Int(id)) => thread_id = Some(*id),
                ("thread.id", Value::String(text)) if text.parse::<i64>().is_ok() => thread_id = text.parse().ok(),
                ("thread.id", _) => others.push((key, value, unit)),
                _ if take_identity(&mut identity, key, &value) => {}
                _ if holds_id(key) => others.push((key, value, unit)),
                ("service.name", Value::String(text)) if !text.is_empty() => service = Some(text.to_string()),
                (_, Value::String(text)) if !key.is_empty() && !text.is_empty() && unit.is_empty() => {
                    labels.set(key, text.as_ref());
                }
                (_, Value::Bool(bool)) if !key.is_empty() && unit.is_empty() => labels.set(key, bool.to_string()),
                _ => others.push((key, value, unit)),
            }
        }
        let mut link = Link::default();
        if sample.link_index != 0 {
            let entry = self.dictionary.link_table.get(usize::try_from(sample.link_index).ok()?)?;
            link.trace_id = TraceId::from_slice(&entry.trace_id).unwrap_or_default();
            link.span_id = SpanId::from_slice(&entry.span_id).unwrap_or_default();
        }
        for other in [identity.link(), fallback] {
            link.trace_id = if link.trace_id.is_zero() { other.trace_id } else { link.trace_id };
            link.span_id = if link.span_id.is_zero() { other.span_id } else { link.span_id };
        }
        let attributes = if others.is_empty() { String::new() } else { table_json(&others) };
        let line = |(value, time): (i64, Option<u64>)| {
            let time = time.and_then(|time| i64::try_from(time).ok()).filter(|time| *time != 0);
            let value = value.saturating_mul(scale);
            sample_line(&frames, value, time, link, thread_id, &thread_name, &labels, &attributes)
        };
        Some((service, observations.into_iter().map(line).collect(), mappings))
    }

    /// The frames of a location, the outermost first.
    fn frames(&self, location: &Location) -> Option<Vec<Frame<'r>>> {
        let mapping = self.dictionary.mapping_table.get(usize::try_from(location.mapping_index).ok()?)?;
        let build_id = self.build_id(&mapping.attribute_indices)?;
        let mut attributes = self.table_attributes(&location.attribute_indices)?;
        let mut kind = FrameKind::Unknown;
        attributes.retain(|(key, value, _)| match value.as_str() {
            Some(name) if *key == "profile.frame.type" => {
                kind = FrameKind::from_otel(name);
                false
            }
            _ => true,
        });
        let attributes = if attributes.is_empty() { String::new() } else { table_json(&attributes) };
        let mut lines = location.lines.clone();
        if lines.is_empty() {
            lines.push(Default::default());
        }
        let outermost = lines.len() - 1;
        let number = |number: i64| u32::try_from(number).unwrap_or(0);
        let frame = |(at, line): (usize, &opentelemetry_proto::tonic::profiles::v1development::Line)| {
            let function = self.dictionary.function_table.get(usize::try_from(line.function_index).ok()?)?;
            let name = self.text(function.name_strindex)?;
            let system_name = self.text(function.system_name_strindex)?;
            let has_name = !name.is_empty() || !system_name.is_empty();
            Some(Frame {
                function: if name.is_empty() { system_name } else { name }.into(),
                system_name: if name.is_empty() || name == system_name { "" } else { system_name }.into(),
                file: self.text(function.filename_strindex)?.into(),
                line: number(line.line),
                column: number(line.column),
                start_line: number(function.start_line),
                mapping: self.text(mapping.filename_strindex)?.into(),
                build_id: if has_name { String::new() } else { build_id.clone() }.into(),
                address: if has_name { 0 } else { file_offset(mapping, location.address) },
                kind: if at < outermost { FrameKind::Inlined } else { kind },
                attributes: attributes.clone().into(),
            })
        };
        let mut frames: Vec<Frame<'_>> = lines.iter().enumerate().map(frame).collect::<Option<_>>()?;
        frames.reverse();
        Some(frames)
    }

    fn build_id(&self, indices: &[i32]) -> Option<String> {
        let attributes = self.table_attributes(indices)?;
        let found = attributes.iter().find(|(key, ..)| *key == "process.executable.build_id.gnu");
        Some(found.map_or(String::new(), |(_, value, _)| value.to_label().into_owned()))
    }

    fn mapping_json(&self, index: i32) -> Option<String> {
        let mapping = &self.dictionary.mapping_table[usize::try_from(index).ok()?];
        if index == 0 {
            return None;
        }
        let attributes = self.table_attributes(&mapping.attribute_indices)?;
        let number = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        let json = object(&[
            ("memory_start", number(mapping.memory_start)),
            ("memory_limit", number(mapping.memory_limit)),
            ("file_offset", number(mapping.file_offset)),
            ("filename", text_json(self.text(mapping.filename_strindex)?)),
            ("build_id", text_json(&self.build_id(&mapping.attribute_indices)?)),
            ("attributes", if attributes.is_empty() { String::new() } else { table_json(&attributes) }),
        ]);
        Some(json).filter(|json| !json.is_empty())
    }
}

fn file_offset(mapping: &opentelemetry_proto::tonic::profiles::v1development::Mapping, address: u64) -> u64 {
    let (start, limit) = (mapping.memory_start, mapping.memory_limit);
    if start < 1 << 63 && (start..limit).contains(&address) {
        (address - start).saturating_add(mapping.file_offset)
    } else {
        address
    }
}

fn object(members: &[(&str, String)]) -> String {
    let members: Vec<String> =
        members.iter().filter(|(_, json)| !json.is_empty()).map(|(name, json)| format!("\"{name}\":{json}")).collect();
    if members.is_empty() { String::new() } else { format!("{{{}}}", members.join(",")) }
}

fn set_json(attributes: &[Attribute<'_>]) -> String {
    let mut json = String::new();
    if !attributes.is_empty() {
        write_json_object(attributes, &mut json);
    }
    json
}

fn table_json(attributes: &[(&str, Value<'_>, &str)]) -> String {
    let members: Vec<String> = attributes
        .iter()
        .map(|(key, value, unit)| {
            let mut json = String::new();
            let key = if key.starts_with('$') { format!("${key}") } else { (*key).to_owned() };
            write_json_string(&key, &mut json);
            json.push(':');
            if unit.is_empty() {
                value.write_json(&mut json);
            } else {
                json.push_str("{\"$value\":");
                value.write_json(&mut json);
                json.push_str(",\"$unit\":");
                write_json_string(unit, &mut json);
                json.push('}');
            }
            json
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn text_json(text: &str) -> String {
    let mut json = String::new();
    if !text.is_empty() {
        write_json_string(text, &mut json);
    }
    json
}

fn number_json(number: u32) -> String {
    if number == 0 { String::new() } else { number.to_string() }
}

fn entities_json(entities: &[EntityRef]) -> String {
    let mut text = String::new();
    if !entities.is_empty() {
        write_entity_refs(&entities.iter().map(trace_oracle::entity_ref).collect::<Vec<_>>(), &mut text);
    }
    text
}
