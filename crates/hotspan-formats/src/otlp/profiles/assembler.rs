//! Puts profiles together from their header, their samples and the tables they refer to.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::profile::ProfileContext;
use hotspan_model::{Profile, ProfileId, ProfileSet, Resource, Sample, Scope};

use super::super::attributes::{ItemReader, Repairs};
use super::super::fault::{Fault, Locate as _, Problem, Read};
use super::super::outcome::Outcome;
use super::super::resource::{merge_resource, merge_scope};
use super::super::wire::Reader;
use super::budget::Budget;
use super::context::{resource_json, scope_json, write_table_attributes};
use super::dictionary::Dictionary;
use super::facts::{FactTable, take_identity};
use super::header::Header;
use super::profile_types::{ValueType, resolve};
use super::rows::Parts;
use super::samples::RawSample;
use super::series::Series;
use super::stacks::Stacks;
use super::version::{Role, WireVersion};
use crate::Limits;

/// Room for samples that is made ahead of reading them; more grows with what is there.
const MAX_SAMPLES_AHEAD: usize = 1 << 14;
/// The same for frames and paths: tables may be long without being used.
const MAX_SYMBOLS_AHEAD: usize = 1 << 13;

/// A set in the making.
pub(super) struct Assembler<'a, 'l> {
    pub(super) dictionary: Dictionary<'a>,
    pub(super) stacks: Stacks,
    pub(super) facts: FactTable<'a>,
    pub(super) set: ProfileSet<'a>,
    pub(super) outcome: Outcome,
    pub(super) budget: Budget,
    pub(super) limits: &'l Limits,
    pub(super) received_at: i64,
    pub(super) fields: [Role; 8],
    pub(super) raw: RawSample,
    /// For each set of mappings, the number of the last profile that used it.
    pub(super) mapping_set_used: Vec<u64>,
    pub(super) profile_number: u64,
}

/// What the profiles of a scope share.
pub(super) struct Surroundings {
    pub(super) series: Series,
    pub(super) resource: String,
    pub(super) scope: String,
    pub(super) group: usize,
    pub(super) scope_index: usize,
}

impl Surroundings {
    /// Adds the path to one of the profiles.
    pub(super) fn locate(&self, fault: Box<Fault>, profile: usize) -> Box<Fault> {
        let fault = fault.element("profiles", profile).element("scope_profiles", self.scope_index);
        fault.element("resource_profiles", self.group)
    }
}

impl<'a, 'l> Assembler<'a, 'l> {
    pub(super) fn new(
        dictionary: Dictionary<'a>,
        version: WireVersion,
        limits: &'l Limits,
        budget: Budget,
        outcome: Outcome,
        received_at: i64,
    ) -> Self {
        let mut set = ProfileSet::default();
        let (frames, paths) = (dictionary.locations.len(), dictionary.stacks.len());
        set.paths.reserve(frames.min(MAX_SYMBOLS_AHEAD), paths.min(MAX_SYMBOLS_AHEAD));
        let (texts, functions) = (dictionary.strings.len(), dictionary.functions.len());
        set.paths.frames.reserve_symbols(texts.min(MAX_SYMBOLS_AHEAD), functions.min(MAX_SYMBOLS_AHEAD));
        // Links keep their numbers; the null entry is "none" in both.
        set.links.extend(dictionary.links.iter().skip(1));
        Self {
            stacks: Stacks::new(&dictionary, limits.max_stack_depth),
            dictionary,
            facts: FactTable::default(),
            set,
            outcome,
            budget,
            limits,
            received_at,
            fields: version.sample_fields(),
            raw: RawSample::default(),
            mapping_set_used: Vec::new(),
            profile_number: 0,
        }
    }

    pub(super) fn finish(mut self) -> (ProfileSet<'a>, Outcome) {
        let cut = self.stacks.cut_frames;
        self.set.cut_frames = cut;
        if cut > 0 {
            let fault = Fault::new(Problem::TooDeep { limit: self.limits.max_stack_depth, cut });
            self.outcome.note(&fault.field("stack_table").field("dictionary"));
        }
        (self.set, self.outcome)
    }

    pub(super) fn resource_profiles(&mut self, group: Reader<'a>, group_index: usize) -> Read<()> {
        let repairs = Repairs::default();
        let (mut resource, mut refused) = (Resource::default(), None);
        let mut walk = group;
        // The strings are lent to the reader while the rest of the assembler stays in reach.
        let strings = std::mem::take(&mut self.dictionary.strings);
        let mut items = ItemReader::new(self.limits, &repairs, &strings);
        while let Some(field) = walk.field()? {
            let read = match field.number {
                1 => walk
                    .message(field)
                    .and_then(|message| merge_resource(message, &mut items, &mut resource))
                    .field("resource"),
                3 => walk
                    .bytes(field)
                    .and_then(|bytes| items.borrowed_text(bytes))
                    .map(|text| resource.schema_url = text)
                    .field("schema_url"),
                _ => walk.skip(field),
            };
            keep_refusal(read, &mut refused)?;
        }
        items
            .note_repairs(&mut self.outcome, |fault| fault.field("resource").element("resource_profiles", group_index));
        let series = Series::of_resource(&resource, self.limits);
        let resource = resource_json(&resource);
        self.dictionary.strings = strings;
        self.budget.charge(resource.len() + series.bytes())?;
        let refused = refused.map(|fault| fault.element("resource_profiles", group_index));

        let mut walk = group;
        let mut index = 0;
        while let Some(field) = walk.field()? {
            if field.number != 2 {
                walk.skip(field)?;
                continue;
            }
            let scope = walk.message(field).element("scope_profiles", index)?;
            let surroundings = Surroundings {
                series: series.clone(),
                resource: resource.clone(),
                scope: String::new(),
                group: group_index,
                scope_index: index,
            };
            self.budget.charge(resource.len() + series.bytes())?;
            self.scope_profiles(scope, surroundings, refused.as_deref()).element("scope_profiles", index)?;
            index += 1;
        }
        Ok(())
    }

    fn scope_profiles(&mut self, group: Reader<'a>, mut around: Surroundings, refused: Option<&Fault>) -> Read<()> {
        let repairs = Repairs::default();
        let (mut scope, mut scope_refused) = (Scope::default(), None);
        let mut profiles = Vec::new();
        let mut walk = group;
        let strings = std::mem::take(&mut self.dictionary.strings);
        let mut items = ItemReader::new(self.limits, &repairs, &strings);
        while let Some(field) = walk.field()? {
            let read = match field.number {
                1 => {
                    walk.message(field).and_then(|message| merge_scope(message, &mut items, &mut scope)).field("scope")
                }
                2 => {
                    let index = profiles.len();
                    let message = walk.message(field).element("profiles", index)?;
                    let header = Header::read(message, &mut self.budget).element("profiles", index)?;
                    profiles.push((message, header));
                    Ok(())
                }
                3 => walk
                    .bytes(field)
                    .and_then(|bytes| items.borrowed_text(bytes))
                    .map(|text| scope.schema_url = text)
                    .field("schema_url"),
                _ => walk.skip(field),
            };
            keep_refusal(read, &mut scope_refused)?;
        }
        let locate = |fault: Box<Fault>| {
            fault.element("scope_profiles", around.scope_index).element("resource_profiles", around.group)
        };
        items.note_repairs(&mut self.outcome, |fault| locate(fault.field("scope")));
        let scope_refused = scope_refused.map(locate);
        around.series = around.series.with_scope(&scope, self.limits);
        around.scope = scope_json(&scope);
        self.dictionary.strings = strings;
        self.budget.charge(around.scope.len())?;

        // Profiles without the resource or scope they belong to would be misleading.
        if let Some(fault) = refused.or(scope_refused.as_deref()) {
            self.outcome.rejected += profiles.len() as u64;
            for (_, header) in &profiles {
                self.outcome.rejected_samples += header.sample_count;
                self.outcome.note_time(Some(header.time), header.sample_count);
            }
            self.outcome.note_many(fault, profiles.len() as u64);
            return Ok(());
        }
        for (index, (message, header)) in profiles.iter().enumerate() {
            let has_cpu_time = self.has_cpu_time(header, &profiles);
            match self.profile(*message, header, &around, index, has_cpu_time) {
                Ok(()) => {}
                Err(fault) if fault.problem.is_fatal() => return Err(fault.element("profiles", index)),
                Err(fault) => {
                    self.outcome.rejected += 1;
                    self.outcome.rejected_samples += header.sample_count;
                    self.outcome.note_time(Some(header.time), header.sample_count);
                    if fault.problem.is_untimely() {
                        self.outcome.untimely += 1;
                        self.outcome.untimely_samples += header.sample_count;
                    }
                    self.outcome.note(&around.locate(fault, index));
                }
            }
        }
        Ok(())
    }

    /// Whether a profile that counts samples has a sibling that measures the same as CPU time.
    fn has_cpu_time(&self, header: &Header<'a>, siblings: &[(Reader<'a>, Header<'a>)]) -> bool {
        let sample_type = |header: &Header<'a>| self.value_type(header.sample_type).unwrap_or_default();
        sample_type(header).is_sample_count()
            // A scope with thousands of profiles is not a Go program's.
            && siblings.iter().take(64).any(|(_, other)| other.time == header.time && sample_type(other).is_cpu_time())
    }

    fn value_type(&self, (kind, unit): (i32, i32)) -> Read<ValueType<'_>> {
        let kind = self.dictionary.text(kind).field("type_strindex")?;
        let unit = self.dictionary.text(unit).field("unit_strindex")?;
        Ok(ValueType { kind, unit })
    }

    fn profile(
        &mut self,
        message: Reader<'a>,
        header: &Header<'a>,
        around: &Surroundings,
        index: usize,
        has_cpu_time: bool,
    ) -> Read<()> {
        let sample_type = self.value_type(header.sample_type).field("sample_type")?;
        let period_type = self.value_type(header.period_type).field("period_type")?;
        let (profile_type, scale) = resolve(sample_type, period_type, header.period, has_cpu_time);
        let attributes = self.profile_attributes(header).field("attribute_indices")?;
        let mut identity = around.series.identity;
        for at in &header.attribute_indices {
            if let Some(attribute) = self.dictionary.attribute(*at).field("attribute_indices")? {
                take_identity(attribute, &mut identity);
            }
        }
        let own_time = self.own_time(header.time, around, index);
        let time = own_time.unwrap_or(self.received_at);
        if let Err(outside) = self.limits.clock.check(time) {
            return Err(Fault::new(outside.into()).field("time_unix_nano"));
        }
        let id = self.profile_id(header.profile_id, around, index);
        let context = ProfileContext {
            resource: Cow::Owned(around.resource.clone()),
            scope: Cow::Owned(around.scope.clone()),
            attributes: Cow::Owned(attributes),
            mappings: Cow::Borrowed(""),
            dropped_attributes_count: header.dropped_attributes_count,
            original_payload_format: String::from_utf8_lossy(header.payload_format),
            original_payload: Cow::Borrowed(header.payload),
            source: Cow::Borrowed("otlp"),
            undated: own_time.is_none(),
        };
        let template = Profile {
            id: None,
            profile_type,
            labels: around.series.labels.clone(),
            time,
            duration: i64::try_from(header.duration).unwrap_or(i64::MAX),
            period: header.period,
            context,
            samples: Vec::new(),
        };
        let samples = Vec::with_capacity((header.sample_count as usize).min(MAX_SAMPLES_AHEAD));
        let profile = Profile { id, samples, ..template.clone() };
        self.charge_profile(&profile)?;
        self.profile_number += 1;
        let mut parts = Parts {
            profiles: vec![profile],
            by_service: HashMap::new(),
            template,
            scale,
            time,
            fallback: identity.link(),
            used_sets: Vec::new(),
        };
        let (rejected, untimely) = self.samples(message, &mut parts, around, index)?;
        self.outcome.rejected_samples += rejected;
        self.outcome.untimely_samples += untimely;
        if rejected > 0 && rejected == header.sample_count {
            self.outcome.rejected += 1;
            self.outcome.untimely += u64::from(untimely == rejected);
            return Ok(());
        }
        self.outcome.accepted += 1;
        parts.drop_empty_first();
        let mappings = self.mappings_json(&parts.used_sets)?;
        for mut profile in parts.profiles {
            self.budget.charge(mappings.len())?;
            profile.context.mappings = Cow::Owned(mappings.clone());
            self.set.profiles.push(profile);
        }
        Ok(())
    }

    pub(super) fn charge_profile(&mut self, profile: &Profile<'_>) -> Read<()> {
        let context = &profile.context;
        let texts = context.resource.len() + context.scope.len() + context.original_payload_format.len();
        let labels: usize = profile.labels.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
        let samples = profile.samples.capacity() * size_of::<Sample>();
        self.budget.charge(size_of::<Profile<'_>>() + texts + labels + samples)
    }

    fn profile_attributes(&mut self, header: &Header<'a>) -> Read<String> {
        let mut json = String::new();
        let count = write_table_attributes(&self.dictionary, &header.attribute_indices, &mut self.budget, &mut json)?;
        if count == 0 {
            json.clear();
        }
        if !header.comments.is_empty() {
            // Where later versions keep them.
            json.pop();
            json.push_str(if count == 0 { "{" } else { "," });
            json.push_str("\"pprof.profile.comment\":[");
            for (at, comment) in header.comments.iter().enumerate() {
                if at > 0 {
                    json.push(',');
                }
                let text = self.dictionary.text(*comment)?;
                self.budget.charge(2 * text.len())?;
                hotspan_model::attribute::write_json_string(text, &mut json);
            }
            json.push_str("]}");
        }
        Ok(json)
    }

    /// The time of a profile, if the sender gave one that a clock can show.
    fn own_time(&mut self, time: u64, around: &Surroundings, index: usize) -> Option<i64> {
        if i64::try_from(time).is_err() {
            let fault = Fault::new(Problem::ProfileTime { found: time }).field("time_unix_nano");
            self.outcome.note(&around.locate(fault, index));
        }
        i64::try_from(time).ok().filter(|time| *time != 0)
    }

    fn profile_id(&mut self, bytes: &[u8], around: &Surroundings, index: usize) -> Option<ProfileId> {
        if !bytes.is_empty() && bytes.len() != 16 {
            let fault = Fault::new(Problem::ProfileId { found: bytes.len() }).field("profile_id");
            self.outcome.note(&around.locate(fault, index));
        }
        ProfileId::from_slice(bytes)
    }

    fn mappings_json(&mut self, sets: &[u32]) -> Read<String> {
        let mut used: Vec<u32> =
            sets.iter().flat_map(|set| self.stacks.mapping_sets[*set as usize].iter().copied()).collect();
        used.sort_unstable();
        used.dedup();
        let mut json = String::new();
        for at in used {
            if let Some(Ok(mapping)) = self.dictionary.mappings.get(at as usize)
                && !mapping.json.is_empty()
            {
                self.budget.charge(mapping.json.len())?;
                json.push(if json.is_empty() { '[' } else { ',' });
                json.push_str(&mapping.json);
            }
        }
        if !json.is_empty() {
            json.push(']');
        }
        Ok(json)
    }
}

fn keep_refusal(read: Read<()>, refused: &mut Option<Box<Fault>>) -> Read<()> {
    match read {
        Err(fault) if fault.problem.is_fatal() => return Err(fault),
        Err(fault) => *refused = Some(fault),
        Ok(()) => {}
    }
    Ok(())
}
