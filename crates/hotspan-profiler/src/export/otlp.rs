//! A batch as OTLP profiles, in the numbering of protocol v1.10 and v1.11.

use super::wire::Message;
use crate::aggregate::batch::{Batch, GroupKey, Values};
use crate::aggregate::profile_type::ProfileType;
use crate::aggregate::synthetic_frame::synthetic_name;
use crate::random::random_u64;
use crate::redact::Redaction;
use crate::symbols::{CodeLine, Function, Symbolizer, build_id};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// What does not change from batch to batch.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) redaction: Redaction,
}

/// Encodes an ExportProfilesServiceRequest; `None` if there is nothing to say.
pub(crate) fn encode(batch: &Batch, identity: &Identity, symbolizer: &mut Symbolizer) -> Option<Vec<u8>> {
    if batch.is_empty() {
        return None;
    }
    let mut dictionary = Dictionary::new(&identity.redaction);
    let mut profiles: Vec<Vec<u8>> = Vec::new();
    for profile in ProfileType::ALL {
        let mut groups: Vec<_> = batch.groups.iter().filter(|(key, _)| key.profile == profile).collect();
        if !groups.is_empty() {
            groups.sort_by(|a, b| (a.0.tid, &a.0.span, &a.0.stack).cmp(&(b.0.tid, &b.0.span, &b.0.stack)));
            profiles.push(encode_profile(profile, &groups, batch, &mut dictionary, symbolizer));
        }
    }
    let mut request = Message::new();
    request.message(1, |resource_profiles| {
        resource_profiles.message(1, |resource| {
            for (key, value) in &identity.resource {
                resource.message(1, |out| out.resource_attribute(key, value));
            }
        });
        resource_profiles.message(2, |scope_profiles| {
            scope_profiles.message(1, |scope| {
                scope.string(1, env!("CARGO_PKG_NAME"));
                scope.string(2, env!("CARGO_PKG_VERSION"));
            });
            profiles.iter().for_each(|profile| scope_profiles.bytes(2, profile));
        });
    });
    request.bytes(2, &dictionary.into_bytes());
    Some(request.into_bytes())
}

fn encode_profile(
    profile: ProfileType,
    groups: &[(&GroupKey, &Values)],
    batch: &Batch,
    dictionary: &mut Dictionary<'_>,
    symbolizer: &mut Symbolizer,
) -> Vec<u8> {
    let (name, unit) = profile.name_and_unit();
    let mut out = Message::new();
    out.message(1, |value_type| dictionary.value_type(value_type, name, unit));
    for (key, values) in groups {
        let stack = dictionary.stack(key, batch, symbolizer);
        let link = dictionary.link(key);
        let attributes = dictionary.thread_attributes(key.tid, batch);
        let mut sample = |values: &[u64], times: &[u64]| {
            out.message(2, |sample| {
                sample.uint(1, stack);
                sample.packed_uints(2, attributes.iter().copied());
                sample.uint(3, link);
                sample.packed_uints(4, values.iter().copied());
                sample.packed_fixed64(5, times);
            });
        };
        if !values.timed.is_empty() {
            let weights: Vec<u64> = values.timed.iter().map(|(_, value)| *value).collect();
            let times: Vec<u64> =
                values.timed.iter().map(|(time, _)| time.wrapping_add(batch.unix_offset_ns)).collect();
            sample(&weights, &times);
        }
        if values.folded > 0 {
            sample(&[values.folded], &[]);
        }
    }
    out.fixed64(3, batch.start_monotonic_ns.wrapping_add(batch.unix_offset_ns));
    out.uint(4, batch.end_monotonic_ns.saturating_sub(batch.start_monotonic_ns));
    if profile == ProfileType::Cpu {
        out.message(5, |value_type| dictionary.value_type(value_type, name, unit));
        out.uint(6, batch.period_ns);
    }
    // A retried upload carries the same id, so that the server counts it once.
    let id: Vec<u8> = [random_u64().to_be_bytes(), random_u64().to_be_bytes()].concat();
    out.bytes(7, &id);
    out.into_bytes()
}

/// The tables that samples point into. Element zero of each is the null element.
struct Dictionary<'a> {
    redaction: &'a Redaction,
    strings: Table<String>,
    attributes: Table<Vec<u8>>,
    mappings: Table<Vec<u8>>,
    functions: Table<Vec<u8>>,
    locations: Table<Vec<u8>>,
    links: Table<Vec<u8>>,
    stacks: Table<Vec<u64>>,
    attributes_of_thread: HashMap<i32, Vec<u64>>,
    /// The attribute of all native frames, once there is one.
    native: Option<u64>,
    mapping_of_module: HashMap<usize, u64>,
    /// By the id that the symbolizer gives functions.
    number_of_function: HashMap<u64, u64>,
    /// By address, and by how many of the functions inlined there are left out.
    location_of_address: HashMap<(u64, usize), u64>,
    /// By the address of the frames, and whether those that hand memory on are left out.
    stack_of_frames: HashMap<(usize, bool), u64>,
}

/// Distinct values, numbered in order of appearance.
struct Table<T> {
    values: Vec<T>,
    numbers: HashMap<T, u64>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn starting_with(null: T) -> Table<T> {
        Table { values: vec![null.clone()], numbers: HashMap::from([(null, 0)]) }
    }

    fn number_of<Q: ToOwned<Owned = T> + Eq + Hash + ?Sized>(&mut self, value: &Q) -> u64
    where
        T: Borrow<Q>,
    {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.values.len() as u64;
        self.values.push(value.to_owned());
        self.numbers.insert(value.to_owned(), number);
        number
    }
}

impl<'a> Dictionary<'a> {
    fn new(redaction: &'a Redaction) -> Dictionary<'a> {
        // OTLP wants the null link to have ids of full length, all zero.
        let null_link = encoded(|link| {
            link.bytes(1, &[0; 16]);
            link.bytes(2, &[0; 8]);
        });
        Dictionary {
            redaction,
            strings: Table::starting_with(String::new()),
            attributes: Table::starting_with(Vec::new()),
            mappings: Table::starting_with(Vec::new()),
            functions: Table::starting_with(Vec::new()),
            locations: Table::starting_with(Vec::new()),
            links: Table::starting_with(null_link),
            stacks: Table::starting_with(Vec::new()),
            attributes_of_thread: HashMap::new(),
            native: None,
            mapping_of_module: HashMap::new(),
            number_of_function: HashMap::new(),
            location_of_address: HashMap::new(),
            stack_of_frames: HashMap::new(),
        }
    }

    fn string(&mut self, text: &str) -> u64 {
        self.strings.number_of(text)
    }

    fn value_type(&mut self, out: &mut Message, name: &str, unit: &str) {
        out.uint(1, self.string(name));
        out.uint(2, self.string(unit));
    }

    fn attribute(&mut self, key: &str, value: impl FnOnce(&mut Message)) -> u64 {
        let key = self.string(key);
        let bytes = encoded(|attribute| {
            attribute.uint(1, key);
            attribute.message(2, value);
        });
        self.attributes.number_of(&*bytes)
    }

    fn string_attribute(&mut self, key: &str, value: &str) -> u64 {
        self.attribute(key, |out| out.string(1, value))
    }

    fn thread_attributes(&mut self, tid: i32, batch: &Batch) -> Vec<u64> {
        if tid == 0 {
            return Vec::new();
        }
        if let Some(attributes) = self.attributes_of_thread.get(&tid) {
            return attributes.clone();
        }
        let mut attributes = vec![self.attribute("thread.id", |out| out.uint(3, tid as u64))];
        if let Some(name) = batch.thread_names.get(&tid).filter(|name| !name.is_empty()) {
            attributes.push(self.string_attribute("thread.name", name));
        }
        self.attributes_of_thread.insert(tid, attributes.clone());
        attributes
    }

    fn link(&mut self, key: &GroupKey) -> u64 {
        if key.span.is_none() {
            return 0;
        }
        let bytes = encoded(|link| {
            link.bytes(1, &key.span.trace_id);
            link.bytes(2, &key.span.span_id);
        });
        self.links.number_of(&*bytes)
    }

    fn stack(&mut self, key: &GroupKey, batch: &Batch, symbolizer: &mut Symbolizer) -> u64 {
        // Equal stacks of a batch are one allocation, mostly: its address saves comparing the frames.
        let is_of_memory = key.profile.is_of_memory();
        let identity = (key.stack.as_ptr() as usize, is_of_memory);
        if let Some(stack) = self.stack_of_frames.get(&identity) {
            return *stack;
        }
        let (first, mut left_out) = if is_of_memory { symbolizer.asker_of(&key.stack, &batch.modules) } else { (0, 0) };
        let frames = key.stack[first..].iter();
        let locations: Vec<u64> =
            frames.map(|address| self.location((*address, std::mem::take(&mut left_out)), batch, symbolizer)).collect();
        let number = self.stacks.number_of(&*locations);
        self.stack_of_frames.insert(identity, number);
        number
    }

    /// The location of an address, without so many of the functions that were inlined there.
    fn location(&mut self, place: (u64, usize), batch: &Batch, symbolizer: &mut Symbolizer) -> u64 {
        if let Some(location) = self.location_of_address.get(&place) {
            return *location;
        }
        let (address, left_out) = place;
        let module = batch.modules.iter().position(|module| module.range.contains(&address));
        let bytes = if let Some(name) = synthetic_name(address) {
            let function = self.describe_function(name, "", "");
            encoded(|location| location.message(3, |line| line.uint(1, function)))
        } else if let Some(index) = module {
            let mapping = self.mapping(index, batch, symbolizer);
            let module = &batch.modules[index];
            let found = symbolizer.lines_at(module, address);
            let numbered = |CodeLine { function, line }: &CodeLine| (self.function(function), u64::from(*line));
            let lines: Vec<(u64, u64)> = found.iter().skip(left_out).map(numbered).collect();
            let frame_type = self.native_frame();
            encoded(|location| {
                location.uint(1, mapping);
                location.uint(2, address.wrapping_sub(module.bias));
                for (function, line) in lines {
                    location.message(3, |out| {
                        out.uint(1, function);
                        out.uint(2, line);
                    });
                }
                location.packed_uints(4, [frame_type]);
            })
        } else {
            encoded(|location| location.uint(2, address))
        };
        let number = self.locations.number_of(&*bytes);
        self.location_of_address.insert(place, number);
        number
    }

    fn native_frame(&mut self) -> u64 {
        if let Some(native) = self.native {
            return native;
        }
        let native = self.string_attribute("profile.frame.type", "native");
        self.native = Some(native);
        native
    }

    fn function(&mut self, function: &Function) -> u64 {
        if let Some(number) = self.number_of_function.get(&function.id) {
            return *number;
        }
        let number = self.describe_function(&function.name, &function.system_name, &function.file);
        self.number_of_function.insert(function.id, number);
        number
    }

    fn describe_function(&mut self, name: &str, system_name: &str, file: &str) -> u64 {
        let is_secret = self.redaction.covers(name);
        let name = self.string(self.redaction.apply(name));
        let (system_name, file) = if is_secret { (0, 0) } else { (self.string(system_name), self.string(file)) };
        let bytes = encoded(|function| {
            function.uint(1, name);
            function.uint(2, system_name);
            function.uint(3, file);
        });
        self.functions.number_of(&*bytes)
    }

    fn mapping(&mut self, index: usize, batch: &Batch, symbolizer: &mut Symbolizer) -> u64 {
        if let Some(mapping) = self.mapping_of_module.get(&index) {
            return *mapping;
        }
        let module = &batch.modules[index];
        let file = self.string(&module.path);
        let mut attributes = Vec::new();
        if let Some(id) = &module.build_id {
            attributes.push(self.string_attribute("process.executable.build_id.gnu", &build_id::to_hex(id)));
        }
        if let Some(hash) = symbolizer.htlhash(module) {
            attributes.push(self.string_attribute("process.executable.build_id.htlhash", &hash));
        }
        // Addresses are those of the file, not of this process: they mean the same on every machine.
        let (code, offset) = &module.code;
        let bytes = encoded(|mapping| {
            mapping.uint(1, code.start);
            mapping.uint(2, code.end);
            mapping.uint(3, *offset);
            mapping.uint(4, file);
            mapping.packed_uints(5, attributes);
        });
        let number = self.mappings.number_of(&*bytes);
        self.mapping_of_module.insert(index, number);
        number
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut out = Message::new();
        self.mappings.values.iter().for_each(|bytes| out.bytes(1, bytes));
        self.locations.values.iter().for_each(|bytes| out.bytes(2, bytes));
        self.functions.values.iter().for_each(|bytes| out.bytes(3, bytes));
        self.links.values.iter().for_each(|bytes| out.bytes(4, bytes));
        self.strings.values.iter().for_each(|text| out.string(5, text));
        self.attributes.values.iter().for_each(|bytes| out.bytes(6, bytes));
        for stack in &self.stacks.values {
            out.message(7, |message| message.packed_uints(1, stack.iter().copied()));
        }
        out.into_bytes()
    }
}

fn encoded(fill: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut message = Message::new();
    fill(&mut message);
    message.into_bytes()
}
