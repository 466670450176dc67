//! A batch as pprof in Pyroscope's push request, for those who have that server already.

use super::destination::gzip;
use super::otlp::Identity;
use super::wire::Message;
use crate::aggregate::batch::Batch;
use crate::aggregate::profile_type::ProfileType;
use crate::aggregate::synthetic_frame::synthetic_name;
use crate::symbols::{CodeLine, Symbolizer, build_id};
use std::collections::HashMap;

/// Encodes a PushRequest with one series per profile type.
pub(crate) fn encode_push(batch: &Batch, identity: &Identity, symbolizer: &mut Symbolizer) -> Option<Vec<u8>> {
    let mut request = Message::new();
    for profile in ProfileType::ALL {
        if batch.groups.keys().any(|key| key.profile == profile) {
            let body = gzip(&encode_profile(profile, batch, identity, symbolizer)).ok()?;
            request.message(1, |series| {
                let name = match profile {
                    ProfileType::Cpu => "process_cpu",
                    ProfileType::AllocSpace
                    | ProfileType::AllocObjects
                    | ProfileType::InuseSpace
                    | ProfileType::InuseObjects => "memory",
                    ProfileType::Lock => "mutex",
                    _ => "wall",
                };
                let label = |series: &mut Message, name: &str, value: &str| {
                    series.message(1, |pair| {
                        pair.string(1, name);
                        pair.string(2, value);
                    });
                };
                label(series, "__name__", name);
                for (key, value) in &identity.resource {
                    label(series, &key.replace('.', "_"), value);
                }
                series.message(2, |sample| sample.bytes(1, &body));
            });
        }
    }
    let bytes = request.into_bytes();
    (!bytes.is_empty()).then_some(bytes)
}

/// One pprof Profile (profile.proto): sample types 1, samples 2, mappings 3, locations 4, functions 5, strings 6.
fn encode_profile(profile: ProfileType, batch: &Batch, identity: &Identity, symbolizer: &mut Symbolizer) -> Vec<u8> {
    let mut tables = Tables { strings: vec![String::new()], ..Tables::default() };
    let (name, unit) = profile.name_and_unit();
    let (name, unit) = (tables.string(name), tables.string(unit));
    let span_label = tables.string("span_id");
    let mut out = Message::new();
    let value_type = |value_type: &mut Message| {
        value_type.uint(1, name);
        value_type.uint(2, unit);
    };
    out.message(1, value_type);
    for (key, values) in batch.groups.iter().filter(|(key, _)| key.profile == profile) {
        let (first, mut left_out) =
            if profile.is_of_memory() { symbolizer.asker_of(&key.stack, &batch.modules) } else { (0, 0) };
        let frames = key.stack[first..].iter();
        let locations: Vec<u64> = frames
            .map(|address| tables.location((*address, std::mem::take(&mut left_out)), batch, identity, symbolizer))
            .collect();
        let total = values.folded + values.timed.iter().map(|(_, value)| value).sum::<u64>();
        let span = (!key.span.is_none()).then(|| tables.string(&build_id::to_hex(&key.span.span_id)));
        out.message(2, |sample| {
            sample.packed_uints(1, locations);
            sample.packed_uints(2, [total]);
            if let Some(span) = span {
                sample.message(3, |label| {
                    label.uint(1, span_label);
                    label.uint(2, span);
                });
            }
        });
    }
    for (index, module) in batch.modules.iter().enumerate() {
        let file = tables.string(&module.path);
        let id = module.build_id.as_ref().map(|id| tables.string(&build_id::to_hex(id))).unwrap_or_default();
        let (code, offset) = &module.code;
        out.message(3, |mapping| {
            mapping.uint(1, index as u64 + 1);
            mapping.uint(2, code.start);
            mapping.uint(3, code.end);
            mapping.uint(4, *offset);
            mapping.uint(5, file);
            mapping.uint(6, id);
        });
    }
    tables.locations.iter().for_each(|location| out.bytes(4, location));
    tables.functions.iter().for_each(|function| out.bytes(5, function));
    tables.strings.iter().for_each(|text| out.string(6, text));
    out.uint(9, batch.start_monotonic_ns.wrapping_add(batch.unix_offset_ns));
    out.uint(10, batch.end_monotonic_ns.saturating_sub(batch.start_monotonic_ns));
    out.message(11, value_type);
    out.uint(12, batch.period_ns.max(1));
    out.into_bytes()
}

#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_numbers: HashMap<String, u64>,
    locations: Vec<Vec<u8>>,
    /// By address, and by how many of the functions inlined there are left out.
    location_numbers: HashMap<(u64, usize), u64>,
    functions: Vec<Vec<u8>>,
    function_numbers: HashMap<(u64, u64), u64>,
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.string_numbers.get(text) {
            return *number;
        }
        let number = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.string_numbers.insert(text.to_owned(), number);
        number
    }

    /// The location of an address, without so many of the functions that were inlined there.
    fn location(
        &mut self,
        place: (u64, usize),
        batch: &Batch,
        identity: &Identity,
        symbolizer: &mut Symbolizer,
    ) -> u64 {
        if let Some(number) = self.location_numbers.get(&place) {
            return *number;
        }
        let (address, left_out) = place;
        let module = batch.modules.iter().position(|module| module.range.contains(&address));
        let found = module.map_or_else(|| [].into(), |index| symbolizer.lines_at(&batch.modules[index], address));
        let mut lines: Vec<(u64, u64)> = found
            .iter()
            .skip(left_out)
            .map(|CodeLine { function, line }| {
                let is_secret = identity.redaction.covers(&function.name);
                let name = self.string(identity.redaction.apply(&function.name));
                let file = if is_secret { 0 } else { self.string(&function.file) };
                (self.function(name, file), u64::from(*line))
            })
            .collect();
        if let Some(name) = synthetic_name(address) {
            let name = self.string(name);
            lines.push((self.function(name, 0), 0));
        }
        let number = self.locations.len() as u64 + 1;
        let bias = module.map_or(0, |index| batch.modules[index].bias);
        let mut location = Message::new();
        location.uint(1, number);
        location.uint(2, module.map_or(0, |index| index as u64 + 1));
        location.uint(3, address.wrapping_sub(bias));
        for (function, line) in lines {
            location.message(4, |out| {
                out.uint(1, function);
                out.uint(2, line);
            });
        }
        self.locations.push(location.into_bytes());
        self.location_numbers.insert(place, number);
        number
    }

    fn function(&mut self, name: u64, file: u64) -> u64 {
        let next = self.functions.len() as u64 + 1;
        let number = *self.function_numbers.entry((name, file)).or_insert(next);
        if number == next {
            let mut function = Message::new();
            function.uint(1, number);
            function.uint(2, name);
            function.uint(4, file);
            self.functions.push(function.into_bytes());
        }
        number
    }
}
