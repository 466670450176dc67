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

    /// An address as an offset in the file, so that it is the same in every process that runs the file, and in every format.
    ///
    /// The eBPF profiler counts both from where the linker placed the code, profilers of the pprof kind from where the
    /// process has it: the mapping says how far either is from the start of the file.
    pub(super) fn file_offset_of(&self, address: u64) -> u64 {
        let is_kernel = self.memory_start >= LOWEST_KERNEL_ADDRESS;
        if !is_kernel && (self.memory_start..self.memory_limit).contains(&address) {
            (address - self.memory_start).saturating_add(self.file_offset)
        } else {
            address
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the same instruction seen in two processes, as the linker placed it low and high, and in a program with one fixed
    /// place; an address in the kernel.
    /// Guarantee: one offset in the file for all but the kernel's, which stays as it is.
    #[test]
    fn addresses_are_offsets_in_the_file() {
        let mapping = |memory_start: u64, file_offset: u64| Mapping {
            memory_start,
            memory_limit: memory_start.saturating_add(0x10_0000),
            file_offset,
            ..Mapping::default()
        };
        for start in [0x7f12_3450_0000, 0x55d0_0000_0000, 0x1000, 0x2000, 0x40_1000] {
            assert_eq!(mapping(start, 0x1000).file_offset_of(start + 0x234), 0x1234, "{start:#x}");
        }
        let kernel = mapping(0xffff_ffff_8100_0000, 0);
        assert_eq!(kernel.file_offset_of(0xffff_ffff_8100_1234), 0xffff_ffff_8100_1234);
        // Outside of the mapping, or at the end of all numbers: no arithmetic that could go wrong.
        assert_eq!(mapping(0x7f12_3450_0000, u64::MAX).file_offset_of(0x7f12_3450_0234), u64::MAX);
        assert_eq!(mapping(0x7f12_3450_0000, 0).file_offset_of(0x10), 0x10);
        assert_eq!(Mapping::default().file_offset_of(0x1234), 0x1234);
    }
}
