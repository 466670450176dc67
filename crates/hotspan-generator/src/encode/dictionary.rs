//! The dictionary of an OTLP profiles request: what samples point to, each thing once.

use hashbrown::HashMap;

use super::protobuf::Writer;
use crate::fleet::Service;
use crate::fleet::call_tree::NodeNumber;
use crate::workload::{GeneratedSpan, Window};

/// Tables in the making. Index 0 of each is the null value.
#[derive(Debug, Default)]
pub(super) struct Dictionary<'w> {
    strings: Table<&'w str, &'w str>,
    mappings: Table<u16, (u64, u64, u64)>,
    functions: Table<(u16, u32), [u64; 3]>,
    locations: Table<(u16, u32, u32), [u64; 3]>,
    links: Table<u32, ([u8; 16], [u8; 8])>,
    attributes: Table<(u16, u8, bool), (u64, AttributeValue)>,
    stacks: Table<(u16, NodeNumber), Vec<u64>>,
    mapping_attributes: Table<u16, (u64, AttributeValue)>,
}

#[derive(Debug, Clone, Copy)]
enum AttributeValue {
    Text(u64),
    Int(u64),
}

/// Rows in order, and where each is.
#[derive(Debug)]
struct Table<K, V> {
    index: HashMap<K, u64>,
    rows: Vec<V>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { index: HashMap::new(), rows: Vec::new() }
    }
}

impl<K: std::hash::Hash + Eq, V> Table<K, V> {
    fn get(&self, key: &K) -> Option<u64> {
        self.index.get(key).copied()
    }

    /// Adds a row; the first one gets index 1, behind the null value.
    fn add(&mut self, key: K, row: V) -> u64 {
        self.rows.push(row);
        let index = self.rows.len() as u64;
        self.index.insert(key, index);
        index
    }
}

impl<'w> Dictionary<'w> {
    pub(super) fn string(&mut self, text: &'w str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        self.strings.get(&text).unwrap_or_else(|| self.strings.add(text, text))
    }

    /// The stack that ends in a node, the innermost frame first.
    pub(super) fn stack(&mut self, number: u16, service: &'w Service, leaf: NodeNumber) -> u64 {
        if let Some(known) = self.stacks.get(&(number, leaf)) {
            return known;
        }
        let frames = service.calls.leaf_to_root(leaf);
        let locations = frames.map(|(_, node)| self.location(number, service, node.function, node.line)).collect();
        self.stacks.add((number, leaf), locations)
    }

    fn location(&mut self, number: u16, service: &'w Service, function: u32, line: u32) -> u64 {
        let key = (number, function, line);
        if let Some(known) = self.locations.get(&key) {
            return known;
        }
        let mapping = self.mapping(number, service);
        let function = self.function(number, service, function);
        self.locations.add(key, [mapping, function, line.into()])
    }

    fn function(&mut self, number: u16, service: &'w Service, function: u32) -> u64 {
        let key = (number, function);
        if let Some(known) = self.functions.get(&key) {
            return known;
        }
        let function = &service.calls.functions[function as usize];
        let name = self.string(&function.name);
        let file = self.string(&service.calls.files[function.file as usize]);
        self.functions.add(key, [name, file, function.start_line.into()])
    }

    fn mapping(&mut self, number: u16, service: &'w Service) -> u64 {
        if let Some(known) = self.mappings.get(&number) {
            return known;
        }
        let file = self.string(&service.name);
        let key = self.string("process.executable.build_id.gnu");
        // The pod's name stands for a build id: any text that differs from service to service will do.
        let build = service.resource.attributes.get(3).and_then(|attribute| attribute.value.as_str());
        let build = self.string(build.unwrap_or("unknown"));
        self.mapping_attributes.add(number, (key, AttributeValue::Text(build)));
        let attribute = self.mapping_attributes.rows.len() as u64;
        self.mappings.add(number, (0x40_0000, file, attribute))
    }

    /// Name and number of a thread, as a list of attributes.
    pub(super) fn thread(&mut self, number: u16, service: &'w Service, thread: u8) -> [u64; 2] {
        let name = match self.attributes.get(&(number, thread, true)) {
            Some(known) => known,
            None => {
                let key = self.string("thread.name");
                let name = service.thread_names.get(usize::from(thread)).map_or("", String::as_str);
                let name = self.string(name);
                self.attributes.add((number, thread, true), (key, AttributeValue::Text(name)))
            }
        };
        let id = match self.attributes.get(&(number, thread, false)) {
            Some(known) => known,
            None => {
                let key = self.string("thread.id");
                self.attributes.add((number, thread, false), (key, AttributeValue::Int(u64::from(thread) + 1)))
            }
        };
        [name, id]
    }

    /// The link to a span of the window.
    pub(super) fn link(&mut self, number: u32, window: &Window<'_>) -> u64 {
        if let Some(known) = self.links.get(&number) {
            return known;
        }
        let GeneratedSpan { span, .. } = &window.spans[number as usize];
        self.links.add(number, (span.trace_id.0, span.span_id.0))
    }

    pub(super) fn write(&self, out: &mut Writer) {
        let attribute_count = self.attributes.rows.len() as u64;
        out.message(1, |_| {});
        for (start, file, attribute) in &self.mappings.rows {
            out.message(1, |mapping| {
                mapping.varint(1, *start);
                mapping.varint(2, start + 0x200_0000);
                mapping.varint(4, *file);
                mapping.packed(5, [attribute_count + attribute]);
            });
        }
        out.message(2, |_| {});
        for [mapping, function, line] in &self.locations.rows {
            out.message(2, |location| {
                location.varint(1, *mapping);
                // Symbolised on the spot, but the address is sent too, as profilers do.
                location.varint(2, 0x40_0000 + function * 640 + line);
                location.message(3, |lines| {
                    lines.varint(1, *function);
                    lines.varint(2, *line);
                });
            });
        }
        out.message(3, |_| {});
        for [name, file, start_line] in &self.functions.rows {
            out.message(3, |function| {
                function.varint(1, *name);
                function.varint(3, *file);
                function.varint(4, *start_line);
            });
        }
        out.message(4, |_| {});
        for (trace, span) in &self.links.rows {
            out.message(4, |link| {
                link.bytes(1, trace);
                link.bytes(2, span);
            });
        }
        out.bytes(5, b"");
        for text in &self.strings.rows {
            out.bytes(5, text.as_bytes());
        }
        out.message(6, |_| {});
        for (key, value) in self.attributes.rows.iter().chain(&self.mapping_attributes.rows) {
            out.message(6, |attribute| {
                attribute.varint(1, *key);
                attribute.message(2, |any| match value {
                    AttributeValue::Text(text) => any.bytes(1, self.strings.rows[*text as usize - 1].as_bytes()),
                    AttributeValue::Int(number) => any.always_varint(3, *number),
                });
            });
        }
        out.message(7, |_| {});
        for locations in &self.stacks.rows {
            out.message(7, |stack| stack.packed(1, locations.iter().copied()));
        }
    }
}
