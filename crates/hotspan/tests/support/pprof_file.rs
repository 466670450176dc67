//! pprof as its own schema says it: what an exported file is checked against, beside our own reader.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofFile {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_types: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) locations: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) functions: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(crate) strings: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(crate) time: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) values: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) file: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) mapping: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
    #[prost(int64, tag = "3")]
    pub(crate) column: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Function {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) file: i64,
    #[prost(int64, tag = "5")]
    pub(crate) start_line: i64,
}

impl PprofFile {
    /// The number of a text, which is added if it is not there.
    pub(crate) fn text(&mut self, text: &str) -> i64 {
        let known = self.strings.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            self.strings.push(text.to_owned());
            self.strings.len() - 1
        }) as i64
    }

    fn text_of(&self, number: i64) -> &str {
        &self.strings[number as usize]
    }

    fn mapping_of(&self, location: &Location) -> Mapping {
        self.mappings.iter().find(|mapping| mapping.id == location.mapping).copied().unwrap_or_default()
    }

    /// The binaries in words: file, build id, and whether its functions are known; sorted.
    pub(crate) fn binaries(&self) -> Vec<String> {
        let told = |mapping: &Mapping| {
            let (file, build_id) = (self.text_of(mapping.file), self.text_of(mapping.build_id));
            format!("{file} {build_id} {}", if mapping.has_functions { "named" } else { "to be named" })
        };
        let mut binaries: Vec<String> = self.mappings.iter().map(told).collect();
        binaries.sort_unstable();
        binaries
    }

    /// The samples in words, the leaf first: binary, the address as an offset in it, and functions with their lines; sorted.
    pub(crate) fn stacks(&self) -> Vec<String> {
        let place = |id: &u64| {
            let location = self.locations.iter().find(|location| location.id == *id).unwrap();
            let mapping = self.mapping_of(location);
            let in_file = location.address.checked_sub(mapping.start).unwrap() + mapping.offset;
            assert!(location.address == 0 || mapping.limit == 0 || location.address < mapping.limit, "{location:?}");
            let line = |line: &Line| {
                let function = self.functions.iter().find(|function| function.id == line.function).unwrap();
                let [name, system_name, file] =
                    [function.name, function.system_name, function.file].map(|text| self.text_of(text));
                format!("{name}/{system_name}@{file}:{}:{}:{}", function.start_line, line.line, line.column)
            };
            let lines: Vec<String> = location.lines.iter().map(line).collect();
            let address =
                if lines.is_empty() { format!("+0x{in_file:x}") } else { format!("({})", lines.join(" in ")) };
            format!("{}{address}", self.text_of(mapping.file))
        };
        let stack = |sample: &Sample| {
            let places: Vec<String> = sample.locations.iter().map(place).collect();
            format!("{:?} {}", sample.values, places.join("; "))
        };
        let mut stacks: Vec<String> = self.samples.iter().map(stack).collect();
        stacks.sort_unstable();
        stacks
    }
}
