//! Profile facts as fields of spans: `profile.cpu`, `profile.wall`, `profile.samples`, `profile.function`,
//! `profile.file`.
//!
//! The samples of the time are read once, before the spans, and summed up by span; a span then answers from there.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::{Snapshot, Table};
use hotspan_model::selector::Selector;
use hotspan_model::{Exactness, SpanId, TenantId, TraceId};
use hotspan_traceql::ast::{Field, Intrinsic};
use hotspan_traceql::{FieldTable, FieldValue};

use crate::Engine;
use crate::call_paths::CallPaths;
use crate::error::{QueryError, Result};
use crate::linked::{LinkedQuery, LinkedSample};
use crate::owners::SampleOwners;
use crate::span_facts::{Measure, SpanFacts};

/// Samples that profile fields are answered from at most: what bounds the memory.
const MAX_SAMPLES: u64 = 20_000_000;
/// Samples may lie this long before or after the spans' own time: a profile is dated by its start, a span by its own.
const REACH: i64 = 10 * 60 * 1_000_000_000;

/// What profiles know of the spans of a time.
#[derive(Debug)]
pub(crate) struct ProfileFields {
    spans: HashMap<(TraceId, SpanId), Profiled>,
    paths: CallPaths,
    functions: Names,
    files: Names,
    /// Samples that name a span, those of this time that were rejected, and paths without names.
    exactness: Exactness,
}

#[derive(Debug, Default)]
struct Profiled {
    facts: SpanFacts,
    /// Distinct call paths, if functions or files are asked for.
    paths: Vec<u64>,
}

/// One text of each frame, and each text once.
#[derive(Debug, Default)]
struct Names {
    of_frame: Vec<u32>,
    texts: Vec<Arc<str>>,
}

impl Names {
    fn of(paths: &CallPaths, text: impl Fn(u32) -> Arc<str>) -> Self {
        let mut names = Self::default();
        let mut numbers: HashMap<Arc<str>, u32> = HashMap::new();
        for frame in 0..paths.frame_count() as u32 {
            let text = text(frame);
            let next = names.texts.len() as u32;
            let number = *numbers.entry(Arc::clone(&text)).or_insert(next);
            if number == next {
                names.texts.push(text);
            }
            names.of_frame.push(number);
        }
        names
    }
}

/// The fields of a query that profiles answer.
fn asked_for(fields: &FieldTable) -> impl Iterator<Item = Intrinsic> {
    fields.iter().filter_map(|(_, field)| match field {
        Field::Intrinsic(intrinsic) => Some(*intrinsic),
        Field::Attribute { .. } => None,
    })
}

fn is_name(intrinsic: Intrinsic) -> bool {
    matches!(intrinsic, Intrinsic::ProfileFunction | Intrinsic::ProfileFile)
}

/// Whether profiles answer a field.
pub(super) fn is_profile_field(intrinsic: Intrinsic) -> bool {
    is_name(intrinsic)
        || matches!(intrinsic, Intrinsic::ProfileCpu | Intrinsic::ProfileWall | Intrinsic::ProfileSamples)
}

impl Engine {
    /// What profiles know of the spans that start in `from..until`; none if the query does not ask.
    pub(crate) async fn profile_fields(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        fields: &FieldTable,
        (from, until): (i64, i64),
    ) -> Result<Option<Arc<ProfileFields>>> {
        if !asked_for(fields).any(is_profile_field) {
            return Ok(None);
        }
        let with_names = asked_for(fields).any(is_name);
        let (from, until) = (from.saturating_sub(REACH), until.saturating_add(REACH));
        let rows: u64 = snapshot
            .segments(tenant, Table::Samples)
            .iter()
            .filter(|segment| segment.overlaps(from, until))
            .map(|segment| segment.rows)
            .sum();
        if rows > MAX_SAMPLES {
            return Err(QueryError::Limit(format!(
                "profile fields are answered from at most {MAX_SAMPLES} samples, and this time has {rows}; \
                 ask for less time"
            )));
        }
        let query = LinkedQuery {
            owners: SampleOwners::Everybody,
            selector: Selector::default(),
            from,
            until,
            profiles: Vec::new(),
            with_threads: false,
        };
        let measures = Measure::of_series(&self.series_of_spans(tenant, snapshot, &query).await?);
        let mut spans: HashMap<(TraceId, SpanId), Profiled> = HashMap::new();
        let mut add = |sample: &LinkedSample| {
            let (Some(trace), Some(span)) = (sample.trace_id, sample.span_id) else { return Ok(()) };
            let Some(measure) = measures.get(sample.series as usize).copied().flatten() else { return Ok(()) };
            let profiled = spans.entry((trace, span)).or_default();
            profiled.facts.add(measure, sample.value, sample.link);
            if with_names && !profiled.paths.contains(&sample.path) {
                profiled.paths.push(sample.path);
            }
            Ok(())
        };
        let tables = self.visit_linked_samples(tenant, snapshot, &query, &mut add).await?;
        let distinct: HashSet<u64> = spans.values().flat_map(|profiled| profiled.paths.iter().copied()).collect();
        let paths = self.call_paths(tenant, snapshot, (from, until), &tables.series, distinct).await?;
        let functions = Names::of(&paths, |frame| Arc::clone(&paths.frame(frame).function));
        let files = Names::of(&paths, |frame| Arc::clone(&paths.frame(frame).file));
        let samples = spans.values().map(|profiled| profiled.facts.samples).sum();
        let exactness = Exactness {
            samples,
            linked_samples: samples,
            dropped: tables.exactness.dropped,
            unresolved_paths: paths.exactness().unresolved_paths,
            ..Exactness::default()
        };
        Ok(Some(Arc::new(ProfileFields { spans, paths, functions, files, exactness })))
    }
}

impl ProfileFields {
    /// What they rest on.
    pub(crate) fn exactness(&self) -> Exactness {
        self.exactness
    }

    /// A single value of a span; nil if profiles know nothing of it.
    pub(super) fn value(&self, trace: TraceId, span: SpanId, intrinsic: Intrinsic) -> FieldValue<'static> {
        let Some(profiled) = self.spans.get(&(trace, span)) else { return FieldValue::Nil };
        match intrinsic {
            Intrinsic::ProfileCpu => FieldValue::Duration(profiled.facts.cpu),
            Intrinsic::ProfileWall => FieldValue::Duration(profiled.facts.wall),
            Intrinsic::ProfileSamples => FieldValue::Int(profiled.facts.samples as i64),
            _ => FieldValue::Nil,
        }
    }

    /// The functions or files of a span, each once, as numbers of [`ProfileFields::name`].
    pub(super) fn names(&self, trace: TraceId, span: SpanId, intrinsic: Intrinsic) -> Vec<u32> {
        let Some(profiled) = self.spans.get(&(trace, span)) else { return Vec::new() };
        let of_frame = &self.names_of(intrinsic).of_frame;
        let frames = profiled.paths.iter().flat_map(|path| self.paths.frame_numbers(*path));
        let mut names: Vec<u32> = frames.map(|frame| of_frame[frame as usize]).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !self.name(intrinsic, *name).is_empty());
        names
    }

    /// A function or file by its number.
    pub(super) fn name(&self, intrinsic: Intrinsic, number: u32) -> &str {
        self.names_of(intrinsic).texts.get(number as usize).map_or("", AsRef::as_ref)
    }

    fn names_of(&self, intrinsic: Intrinsic) -> &Names {
        if intrinsic == Intrinsic::ProfileFile { &self.files } else { &self.functions }
    }
}
