//! Loaded binaries: where they lie, what they are called, and how an address in them is made comparable.

use std::borrow::Cow;
use std::fmt::Write as _;

use hotspan_model::Value;
use hotspan_model::attribute::write_json_string;

use super::super::fault::{Locate as _, Read};
use super::super::wire::Reader;
use super::budget::Budget;
use super::context::write_table_attributes;
use super::dictionary::Dictionary;

/// Attributes that identify a binary, the most widely understood first.
const BUILD_ID_KEYS: &[&str] = &[
    "process.executable.build_id.gnu",
    "process.executable.build_id.go",
    "process.executable.build_id.htlhash",
    "process.executable.build_id.profiling",
];

/// Below this no position-independent program is ever loaded on a 64-bit system, and above it no linker places
/// one: it tells addresses of a running process from addresses in a file.
const LOWEST_RUNTIME_ADDRESS: u64 = 1 << 36;
/// From here on, addresses belong to the kernel, whose image is not moved by us.
const LOWEST_KERNEL_ADDRESS: u64 = 1 << 63;

/// An entry of the mapping table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mapping<'a> {
    memory_start: u64,
    memory_limit: u64,
    file_offset: u64,
    pub(super) file_name: Cow<'a, str>,
    pub(super) build_id: Cow<'a, str>,
    /// The whole entry as JSON; empty for the null entry.
    pub(super) json: String,
}

impl<'a> Mapping<'a> {
    pub(super) fn read(mut message: Reader<'a>, dictionary: &Dictionary<'a>, budget: &mut Budget) -> Read<Self> {
        let mut mapping = Self::default();
        let mut indices = Vec::new();
        let mut file_name = 0;
        while let Some(field) = message.field()? {
            match field.number {
                1 => mapping.memory_start = message.varint(field).field("memory_start")?,
                2 => mapping.memory_limit = message.varint(field).field("memory_limit")?,
                3 => mapping.file_offset = message.varint(field).field("file_offset")?,
                4 => file_name = message.int32(field).field("filename_strindex")?,
                5 => message.varints(field, |index| indices.push(index as i32)).field("attribute_indices")?,
                _ => message.skip(field)?,
            }
        }
        mapping.file_name = dictionary.text(file_name).field("filename_strindex")?.clone();
        for wanted in BUILD_ID_KEYS {
            for index in &indices {
                let attribute = dictionary.attribute(*index).field("attribute_indices")?;
                if let Some(attribute) = attribute.filter(|attribute| attribute.key == *wanted)
                    && mapping.build_id.is_empty()
                {
                    mapping.build_id = match &attribute.value {
                        Value::String(text) => text.clone(),
                        other => Cow::Owned(other.to_label().into_owned()),
                    };
                }
            }
        }
        mapping.json = mapping.to_json(dictionary, &indices, budget)?;
        budget.charge(2 * mapping.build_id.len() + mapping.file_name.len())?;
        Ok(mapping)
    }

    fn to_json(&self, dictionary: &Dictionary<'a>, attribute_indices: &[i32], budget: &mut Budget) -> Read<String> {
        let mut out = String::new();
        let numbers = [
            ("memory_start", self.memory_start),
            ("memory_limit", self.memory_limit),
            ("file_offset", self.file_offset),
        ];
        for (name, number) in numbers {
            if number != 0 {
                // Writing into a String can't fail.
                let _ = write!(out, ",\"{name}\":{number}");
            }
        }
        for (name, text) in [("filename", &self.file_name), ("build_id", &self.build_id)] {
            if !text.is_empty() {
                let _ = write!(out, ",\"{name}\":");
                write_json_string(text, &mut out);
            }
        }
        let attributes = out.len();
        out.push_str(",\"attributes\":");
        if write_table_attributes(dictionary, attribute_indices, budget, &mut out).field("attribute_indices")? == 0 {
            out.truncate(attributes);
        }
        if !out.is_empty() {
            out.replace_range(0..1, "{");
            out.push('}');
        }
        Ok(out)
    }

    /// An address as the file itself counts, so that it is the same in every process that runs the file.
    ///
    /// The eBPF profiler sends addresses in the file already; profilers of the pprof kind send those of the process.
    pub(super) fn file_address(&self, address: u64) -> u64 {
        let is_runtime = (LOWEST_RUNTIME_ADDRESS..LOWEST_KERNEL_ADDRESS).contains(&self.memory_start);
        if is_runtime && (self.memory_start..self.memory_limit).contains(&address) {
            (address - self.memory_start).saturating_add(self.file_offset)
        } else {
            address
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the same instruction seen in two processes, in a file, in a fixed-position program, in the kernel.
    /// Guarantee: one address for the first three, the address as it is for the others.
    #[test]
    fn addresses_are_those_of_the_file() {
        let mapping = |memory_start: u64, file_offset: u64| Mapping {
            memory_start,
            memory_limit: memory_start.saturating_add(0x10_0000),
            file_offset,
            ..Mapping::default()
        };
        assert_eq!(mapping(0x7f12_3450_0000, 0x1000).file_address(0x7f12_3450_0234), 0x1234);
        assert_eq!(mapping(0x55d0_0000_0000, 0x1000).file_address(0x55d0_0000_0234), 0x1234);
        assert_eq!(mapping(0x1000, 0x1000).file_address(0x1234), 0x1234);
        assert_eq!(mapping(0x40_0000, 0).file_address(0x40_1234), 0x40_1234);
        let kernel = mapping(0xffff_ffff_8100_0000, 0);
        assert_eq!(kernel.file_address(0xffff_ffff_8100_1234), 0xffff_ffff_8100_1234);
        // Outside of the mapping, or at the end of all numbers: no arithmetic that could go wrong.
        assert_eq!(mapping(0x7f12_3450_0000, u64::MAX).file_address(0x7f12_3450_0234), u64::MAX);
        assert_eq!(mapping(0x7f12_3450_0000, 0).file_address(0x10), 0x10);
    }
}
