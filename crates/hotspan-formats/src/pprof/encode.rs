//! pprof out: a whole [`ProfileSet`], or merged call paths of which the caller knows the values.

use hashbrown::HashMap;
use hotspan_model::call_path::PathIndex;
use hotspan_model::frame::FrameIndex;
use hotspan_model::{BuildIds, Frame, FrameKind, PathTable, Profile, ProfileSet, Sample};

use crate::expand::gzip;
use crate::protobuf::{put_bytes, put_number, put_packed};

/// What stands around the samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Name and unit of each value of a sample.
    pub sample_types: Vec<(String, String)>,
    /// Name and unit of the period.
    pub period_type: (String, String),
    /// Distance of samples in units of the period.
    pub period: i64,
    /// Start in nanoseconds since 1970.
    pub time: i64,
    /// Length in nanoseconds.
    pub duration: i64,
    /// The sample type to show first; empty for the last one, which is pprof's own rule.
    pub default_sample_type: String,
    /// Free text.
    pub comments: Vec<String>,
    /// Regular expressions for frames that `pprof` hides, and for those it shows all the same.
    pub drop_and_keep_frames: (String, String),
}

/// A label of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PprofLabel<'l> {
    /// Text.
    Text(&'l str, &'l str),
    /// A number and its unit.
    Number(&'l str, i64, &'l str),
}

/// A binary, and what is known of the locations in it.
#[derive(Debug)]
struct Mapping {
    file: u64,
    build_id: u64,
    /// Whether all have functions: `pprof` looks for names only where it is told that there are none.
    has_functions: bool,
    has_addresses: bool,
}

/// The end of a binary that has addresses. Stored addresses are offsets in its file; with a mapping of offset 0 to address
/// 0, and of all that a process can address, `pprof` takes them as that, and finds the part with the code itself.
const END_OF_ADDRESSES: u64 = 1 << 63;

/// Writes a profile sample by sample. Frames and paths are written when a sample first needs them.
#[derive(Debug)]
pub struct PprofWriter<'p, 'a> {
    paths: &'p PathTable<'a>,
    out: Vec<u8>,
    strings: HashMap<String, u64>,
    string_order: Vec<String>,
    mappings: HashMap<(u64, u64), u64>,
    /// In the order of their ids; what is true of all their locations is known when the last one is written.
    mapping_order: Vec<Mapping>,
    /// For frames that have none of their own.
    build_ids: BuildIds,
    functions: HashMap<[u64; 4], u64>,
    locations: HashMap<Box<[FrameIndex]>, u64>,
    symbols: Vec<u8>,
    message: Vec<u8>,
    nested: Vec<u8>,
    run: Vec<FrameIndex>,
    stack: Vec<u64>,
}

impl<'p, 'a> PprofWriter<'p, 'a> {
    /// Starts a profile whose samples lie in `paths`.
    pub fn new(header: &Header, paths: &'p PathTable<'a>) -> Self {
        let mut writer = Self {
            paths,
            out: Vec::new(),
            strings: HashMap::new(),
            string_order: Vec::new(),
            mappings: HashMap::new(),
            mapping_order: Vec::new(),
            build_ids: BuildIds::default(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            symbols: Vec::new(),
            message: Vec::new(),
            nested: Vec::new(),
            run: Vec::new(),
            stack: Vec::new(),
        };
        writer.string("");
        for (name, unit) in &header.sample_types {
            writer.value_type(1, name, unit);
        }
        let (drop_frames, keep_frames) = &header.drop_and_keep_frames;
        let (drop_frames, keep_frames) = (writer.string(drop_frames), writer.string(keep_frames));
        put_number(&mut writer.out, 7, drop_frames);
        put_number(&mut writer.out, 8, keep_frames);
        put_number(&mut writer.out, 9, header.time as u64);
        put_number(&mut writer.out, 10, header.duration as u64);
        if !header.period_type.0.is_empty() {
            writer.value_type(11, &header.period_type.0, &header.period_type.1);
        }
        put_number(&mut writer.out, 12, header.period as u64);
        for comment in &header.comments {
            let comment = writer.string(comment);
            put_number(&mut writer.out, 13, comment);
        }
        let default_sample_type = writer.string(&header.default_sample_type);
        put_number(&mut writer.out, 14, default_sample_type);
        writer
    }

    /// Says which builds the binaries of frames were that do not know it themselves.
    #[must_use]
    pub fn with_build_ids(self, build_ids: BuildIds) -> Self {
        Self { build_ids, ..self }
    }

    /// Adds a sample: one value for each sample type of the header.
    pub fn sample<'l>(&mut self, path: PathIndex, values: &[i64], labels: impl IntoIterator<Item = PprofLabel<'l>>) {
        self.collect_locations(path);
        let mut message = std::mem::take(&mut self.message);
        let mut nested = std::mem::take(&mut self.nested);
        message.clear();
        put_packed(&mut message, &mut nested, 1, self.stack.iter().copied());
        put_packed(&mut message, &mut nested, 2, values.iter().map(|value| *value as u64));
        for label in labels {
            nested.clear();
            match label {
                PprofLabel::Text(key, text) => {
                    put_number(&mut nested, 1, self.string(key));
                    put_number(&mut nested, 2, self.string(text));
                }
                PprofLabel::Number(key, number, unit) => {
                    put_number(&mut nested, 1, self.string(key));
                    put_number(&mut nested, 3, number as u64);
                    put_number(&mut nested, 4, self.string(unit));
                }
            }
            put_bytes(&mut message, 3, &nested);
        }
        put_bytes(&mut self.out, 2, &message);
        (self.message, self.nested) = (message, nested);
    }

    /// The finished profile, not compressed.
    pub fn finish(mut self) -> Vec<u8> {
        let mut message = std::mem::take(&mut self.message);
        for (id, mapping) in (1..).zip(&self.mapping_order) {
            message.clear();
            put_number(&mut message, 1, id);
            put_number(&mut message, 3, if mapping.has_addresses { END_OF_ADDRESSES } else { 0 });
            put_number(&mut message, 5, mapping.file);
            put_number(&mut message, 6, mapping.build_id);
            put_number(&mut message, 7, u64::from(mapping.has_functions));
            put_bytes(&mut self.out, 3, &message);
        }
        self.out.append(&mut self.symbols);
        for text in &self.string_order {
            put_bytes(&mut self.out, 6, text.as_bytes());
        }
        self.out
    }

    /// The finished profile as it is usually stored.
    pub fn finish_gzip(self) -> Vec<u8> {
        gzip(&self.finish())
    }

    fn string(&mut self, text: &str) -> u64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.string_order.len() as u64;
        self.string_order.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn value_type(&mut self, field: u64, name: &str, unit: &str) {
        let mut message = Vec::new();
        put_number(&mut message, 1, self.string(name));
        put_number(&mut message, 2, self.string(unit));
        put_bytes(&mut self.out, field, &message);
    }

    /// Fills `stack` with the locations of a path, the leaf first.
    ///
    /// Inlined frames belong into the location of the function they were inlined into.
    fn collect_locations(&mut self, path: PathIndex) {
        self.stack.clear();
        self.run.clear();
        let paths = self.paths;
        let mut steps = paths.steps_to_root(path).peekable();
        while let Some(frame) = steps.next() {
            self.run.push(frame);
            let inlined = paths.frames.kind(frame) == FrameKind::Inlined;
            if !inlined || steps.peek().is_none() {
                let location = self.location();
                self.stack.push(location);
                self.run.clear();
            }
        }
    }

    /// The location of the frames in `run`, innermost first.
    fn location(&mut self) -> u64 {
        if let Some(id) = self.locations.get(self.run.as_slice()) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(self.run.clone().into_boxed_slice(), id);
        let paths = self.paths;
        let mut location = Vec::new();
        put_number(&mut location, 1, id);
        let run = std::mem::take(&mut self.run);
        // The outermost frame is the one that was loaded from somewhere.
        let outermost = run.last().map(|frame| paths.frames.get(*frame));
        if let Some(frame) = &outermost {
            put_number(&mut location, 2, self.mapping(frame));
            put_number(&mut location, 3, frame.address);
        }
        for frame in &run {
            let frame = paths.frames.get(*frame);
            if frame.function.is_empty() && frame.file.is_empty() && frame.line == 0 && run.len() == 1 {
                continue;
            }
            let mut line = Vec::new();
            put_number(&mut line, 1, self.function(&frame));
            put_number(&mut line, 2, u64::from(frame.line));
            put_number(&mut line, 3, u64::from(frame.column));
            put_bytes(&mut location, 4, &line);
        }
        if outermost.is_some_and(|frame| frame.attributes.contains("pprof.location.is_folded")) {
            put_number(&mut location, 5, 1);
        }
        put_bytes(&mut self.symbols, 4, &location);
        self.run = run;
        id
    }

    /// The mapping of a location by its outermost frame; 0 for none.
    fn mapping(&mut self, frame: &Frame<'_>) -> u64 {
        if frame.mapping.is_empty() && frame.build_id.is_empty() {
            return 0;
        }
        let build_id = if frame.build_id.is_empty() { self.build_ids.of(&frame.mapping) } else { &frame.build_id };
        let build_id = build_id.to_owned();
        let key = (self.string(&frame.mapping), self.string(&build_id));
        let order = &mut self.mapping_order;
        let id = *self.mappings.entry(key).or_insert_with(|| {
            order.push(Mapping { file: key.0, build_id: key.1, has_functions: true, has_addresses: false });
            order.len() as u64
        });
        let mapping = &mut order[id as usize - 1];
        mapping.has_functions &= !frame.function.is_empty();
        mapping.has_addresses |= frame.address != 0;
        id
    }

    fn function(&mut self, frame: &Frame<'_>) -> u64 {
        let name = self.string(&frame.function);
        let system_name = if frame.system_name.is_empty() { name } else { self.string(&frame.system_name) };
        let key = [name, system_name, self.string(&frame.file), u64::from(frame.start_line)];
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let mut message = Vec::new();
        put_number(&mut message, 1, id);
        for (field, number) in (2..).zip(key) {
            put_number(&mut message, field, number);
        }
        put_bytes(&mut self.symbols, 5, &message);
        id
    }
}

/// Encodes all profiles of a set as the sample types of one gzipped pprof profile.
///
/// Series labels have no place in pprof and stay out; labels, threads, spans and times of samples are kept.
pub fn encode(set: &ProfileSet<'_>) -> Vec<u8> {
    let mut columns: Vec<(String, String)> = Vec::new();
    let column_of: Vec<usize> = set.profiles.iter().map(|profile| column_of(profile, &mut columns)).collect();
    let first = set.profiles.first();
    let header = Header {
        sample_types: columns.clone(),
        period_type: first.map_or_else(Default::default, |profile| {
            (profile.profile_type.period_type.clone(), profile.profile_type.period_unit.clone())
        }),
        period: first.map_or(0, |profile| profile.period),
        time: set.profiles.iter().map(|profile| profile.time).min().unwrap_or(0),
        duration: set.profiles.iter().map(|profile| profile.duration).max().unwrap_or(0),
        ..Header::default()
    };

    // Rows that differ in nothing but the sample type are one sample of pprof.
    let mut rows: Vec<(Sample, Vec<i64>)> = Vec::new();
    let mut index: HashMap<(u32, u32, u32, u32, u32, i64), usize> = HashMap::new();
    for (profile, column) in set.profiles.iter().zip(&column_of) {
        for sample in &profile.samples {
            let time = if sample.timed { sample.time } else { 0 };
            let key = (sample.path, sample.link, sample.thread, sample.labels, sample.attributes, time);
            let row = *index.entry(key).or_insert_with(|| {
                rows.push((*sample, vec![0; columns.len()]));
                rows.len() - 1
            });
            let value = &mut rows[row].1[*column];
            *value = value.saturating_add(sample.value);
        }
    }
    let mut writer = PprofWriter::new(&header, &set.paths).with_build_ids(build_ids(set));
    let attribute_sets: Vec<Vec<(String, AttributeLabel)>> =
        set.attribute_sets.iter().map(|json| attribute_labels(json)).collect();
    for (sample, values) in &rows {
        let ids = SampleIds::of(set, sample);
        writer.sample(sample.path, values, ids.labels(set, sample, &attribute_sets));
    }
    writer.finish_gzip()
}

/// The build ids of binaries, as far as the mappings of all profiles agree on them.
fn build_ids(set: &ProfileSet<'_>) -> BuildIds {
    let mut told: Vec<&str> = set.profiles.iter().map(|profile| &*profile.context.mappings).collect();
    told.dedup();
    let mut build_ids = BuildIds::default();
    told.into_iter().for_each(|mappings| build_ids.learn(mappings));
    build_ids
}

fn column_of(profile: &Profile<'_>, columns: &mut Vec<(String, String)>) -> usize {
    let column = (profile.profile_type.sample_type.clone(), profile.profile_type.sample_unit.clone());
    columns.iter().position(|known| *known == column).unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    })
}

/// Texts of a sample's ids, which labels borrow.
struct SampleIds {
    span_id: Option<String>,
    trace_id: Option<String>,
}

impl SampleIds {
    fn of(set: &ProfileSet<'_>, sample: &Sample) -> Self {
        let link = set.links.get(sample.link as usize).copied().unwrap_or_default();
        Self {
            span_id: (!link.span_id.is_zero()).then(|| link.span_id.to_string()),
            trace_id: (!link.trace_id.is_zero()).then(|| link.trace_id.to_string()),
        }
    }

    fn labels<'l>(
        &'l self,
        set: &'l ProfileSet<'_>,
        sample: &Sample,
        attribute_sets: &'l [Vec<(String, AttributeLabel)>],
    ) -> Vec<PprofLabel<'l>> {
        let mut labels = Vec::new();
        if let Some(label_set) = set.label_sets.get(sample.labels as usize) {
            labels.extend(label_set.iter().map(|(name, value)| PprofLabel::Text(name, value)));
        }
        labels.extend(self.span_id.as_deref().map(|id| PprofLabel::Text("span_id", id)));
        labels.extend(self.trace_id.as_deref().map(|id| PprofLabel::Text("trace_id", id)));
        if let Some(thread) = set.threads.get(sample.thread as usize) {
            labels.extend(thread.id.map(|id| PprofLabel::Number("thread_id", id, "")));
            if !thread.name.is_empty() {
                labels.push(PprofLabel::Text("thread_name", &thread.name));
            }
        }
        if sample.timed {
            labels.push(PprofLabel::Number("end_timestamp_ns", sample.time, "nanoseconds"));
        }
        for (key, label) in attribute_sets.get(sample.attributes as usize).into_iter().flatten() {
            labels.push(match label {
                AttributeLabel::Text(text) => PprofLabel::Text(key, text),
                AttributeLabel::Number(number, unit) => PprofLabel::Number(key, *number, unit),
            });
        }
        labels
    }
}

enum AttributeLabel {
    Text(String),
    Number(i64, String),
}

/// Attributes as labels: numbers stay numbers, everything else becomes text.
fn attribute_labels(json: &str) -> Vec<(String, AttributeLabel)> {
    let Ok(serde_json::Value::Object(attributes)) = serde_json::from_str(json) else { return Vec::new() };
    let label = |value: serde_json::Value| match (&value, value.get("value").and_then(|number| number.as_i64())) {
        (_, Some(number)) => {
            let unit = value.get("unit").and_then(|unit| unit.as_str()).unwrap_or_default();
            AttributeLabel::Number(number, unit.to_owned())
        }
        (serde_json::Value::String(text), _) => AttributeLabel::Text(text.clone()),
        (serde_json::Value::Number(number), _) if number.is_i64() => {
            AttributeLabel::Number(number.as_i64().unwrap_or_default(), String::new())
        }
        _ => AttributeLabel::Text(value.to_string()),
    };
    attributes.into_iter().map(|(key, value)| (key, label(value))).collect()
}
