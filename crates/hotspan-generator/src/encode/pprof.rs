//! The same samples as a pprof file, with the span in labels, as Go's and Pyroscope's SDKs write it.

use hashbrown::HashMap;

use super::protobuf::Writer;
use crate::settings::WINDOW_NANOS;
use crate::workload::{GeneratedProfile, PERIOD_NANOS, Window};

/// One profile as pprof, not compressed. It has no time for each sample, since pprof has no place for it.
pub fn pprof_file(window: &Window<'_>, profile: &GeneratedProfile) -> Vec<u8> {
    let service = &window.workload.fleet().services[usize::from(profile.service)];
    let mut strings = Strings::default();
    // Locations are call sites: a function and a line in it.
    let mut locations: HashMap<(u32, u32), u64> = HashMap::new();
    let mut out = Writer::default();
    for (kind, unit) in [("samples", "count"), (profile.kind.name(), "nanoseconds")] {
        write_value_type(&mut out, 1, &mut strings, kind, unit);
    }
    for sample in &profile.samples {
        let stack: Vec<u64> = service
            .calls
            .leaf_to_root(sample.node)
            .map(|(_, node)| {
                let next = locations.len() as u64 + 1;
                *locations.entry((node.function, node.line)).or_insert(next)
            })
            .collect();
        let mut labels =
            vec![(strings.index("thread"), strings.index(&service.thread_names[usize::from(sample.thread)]))];
        if let Some(span) = sample.span {
            let span = &window.spans[span as usize].span;
            labels.push((strings.index("trace_id"), strings.index(&span.trace_id.to_string())));
            labels.push((strings.index("span_id"), strings.index(&span.span_id.to_string())));
        }
        out.message(2, |message| {
            message.packed(1, stack);
            message.packed(2, [1, sample.value as u64]);
            for (key, value) in labels {
                message.message(3, |label| {
                    label.varint(1, key);
                    label.varint(2, value);
                });
            }
        });
    }
    let mapping_name = strings.index(&service.name);
    out.message(3, |mapping| {
        mapping.varint(1, 1);
        mapping.varint(5, mapping_name);
        mapping.varint(7, 1);
    });
    let mut in_order: Vec<_> = locations.into_iter().collect();
    in_order.sort_by_key(|(_, id)| *id);
    let mut functions: Vec<u32> = Vec::new();
    for ((function, line), id) in in_order {
        functions.push(function);
        out.message(4, |location| {
            location.varint(1, id);
            location.varint(2, 1);
            location.varint(3, 0x40_0000 + u64::from(function) * 640 + u64::from(line));
            location.message(4, |lines| {
                lines.varint(1, u64::from(function) + 1);
                lines.varint(2, line.into());
            });
        });
    }
    functions.sort_unstable();
    functions.dedup();
    for number in functions {
        let function = &service.calls.functions[number as usize];
        let name = strings.index(&function.name);
        let file = strings.index(&service.calls.files[function.file as usize]);
        out.message(5, |message| {
            message.varint(1, u64::from(number) + 1);
            message.varint(2, name);
            message.varint(3, name);
            message.varint(4, file);
            message.varint(5, function.start_line.into());
        });
    }
    write_value_type(&mut out, 11, &mut strings, profile.kind.name(), "nanoseconds");
    for text in &strings.texts {
        out.bytes(6, text.as_bytes());
    }
    out.varint(9, profile.start as u64);
    out.varint(10, WINDOW_NANOS as u64);
    out.varint(12, PERIOD_NANOS as u64);
    out.into_bytes()
}

fn write_value_type(out: &mut Writer, field: u32, strings: &mut Strings, kind: &str, unit: &str) {
    let (kind, unit) = (strings.index(kind), strings.index(unit));
    out.message(field, |value_type| {
        value_type.varint(1, kind);
        value_type.varint(2, unit);
    });
}

/// The string table; index 0 is the empty text.
struct Strings {
    texts: Vec<String>,
    known: HashMap<String, u64>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { texts: vec![String::new()], known: HashMap::new() }
    }
}

impl Strings {
    fn index(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let index = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }
}
