//! Samples to rows of the profile they belong to.

use hashbrown::HashMap;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Link, Profile, Sample};

use super::super::fault::{Fault, Locate as _, Read};
use super::super::wire::Reader;
use super::assembler::{Assembler, Surroundings};
use super::dictionary::wrong_index;
use super::facts::Facts;

/// The profiles that one profile of the request becomes: one, or one for each service its samples name.
pub(super) struct Parts<'a> {
    /// The first one is that of the resource's own service.
    pub(super) profiles: Vec<Profile<'a>>,
    /// Which of them belongs to the service with this number.
    pub(super) by_service: HashMap<u32, usize>,
    /// A profile like the first one, without id and samples.
    pub(super) template: Profile<'a>,
    pub(super) scale: i64,
    pub(super) time: i64,
    /// The span of samples that name none.
    pub(super) fallback: Link,
    pub(super) used_sets: Vec<u32>,
}

impl Parts<'_> {
    /// Leaves out the resource's own profile if every sample belongs to a service that it names itself.
    pub(super) fn drop_empty_first(&mut self) {
        if self.profiles.len() > 1 && self.profiles[0].samples.is_empty() {
            let first = self.profiles.remove(0);
            self.profiles[0].id = first.id;
        }
    }
}

impl<'a> Assembler<'a, '_> {
    /// Reads all samples, and says how many were refused, and how many of them for their time alone.
    pub(super) fn samples(
        &mut self,
        mut walk: Reader<'a>,
        parts: &mut Parts<'a>,
        around: &Surroundings,
        index: usize,
    ) -> Read<(u64, u64)> {
        let (mut number, mut rejected, mut untimely) = (0, 0, 0);
        while let Some(field) = walk.field()? {
            if field.number != 2 {
                walk.skip(field)?;
                continue;
            }
            let sample = walk.message(field).element("samples", number)?;
            if let Err(fault) = self.sample(sample, parts) {
                let fault = fault.element("samples", number);
                if fault.problem.is_fatal() {
                    return Err(fault);
                }
                rejected += 1;
                untimely += u64::from(fault.problem.is_untimely());
                let time = self.raw.times().next().or(u64::try_from(parts.time).ok());
                self.outcome.note_time(time, 1);
                if !self.outcome.count_known(&fault) {
                    self.outcome.note(&around.locate(fault, index));
                }
            }
            number += 1;
        }
        Ok((rejected, untimely))
    }

    #[inline]
    fn sample(&mut self, message: Reader<'a>, parts: &mut Parts<'a>) -> Read<()> {
        self.raw.read(message, &self.fields)?;
        let count = self.raw.observation_count()?;
        for time in self.raw.times() {
            // A time that no clock shows is no time.
            if let Ok(time) = i64::try_from(time)
                && time != 0
                && let Err(outside) = self.limits.clock.check(time)
            {
                return Err(Fault::new(outside.into()).field("timestamps_unix_nano"));
            }
        }
        let index = self.raw.stack_index;
        let stack =
            self.stacks.get(index, &self.dictionary, &mut self.set.paths, &mut self.budget).field("stack_index")?;
        let facts =
            self.facts.get(&self.raw.attributes, &self.dictionary, &mut self.set, self.limits, &mut self.budget)?;
        let link = self.link(self.raw.link_index, &facts, parts.fallback).field("link_index")?;
        let used = stack.mappings as usize;
        if used >= self.mapping_set_used.len() {
            self.mapping_set_used.resize(self.stacks.mapping_sets.len(), 0);
        }
        if self.mapping_set_used[used] != self.profile_number {
            self.mapping_set_used[used] = self.profile_number;
            parts.used_sets.push(stack.mappings);
        }
        // Growing doubles, so that a row may take its place twice.
        self.budget.charge(count.saturating_mul(2 * size_of::<Sample>()))?;
        let (scale, profile_time) = (parts.scale, parts.time);
        let samples = self.samples_of_service(facts.service, parts)?;
        for observation in self.raw.observations() {
            // A time that no clock shows is no time.
            let time = observation.time.and_then(|time| i64::try_from(time).ok()).filter(|time| *time != 0);
            samples.push(Sample {
                path: stack.path,
                value: observation.value.saturating_mul(scale),
                time: time.unwrap_or(profile_time),
                timed: time.is_some(),
                link,
                thread: facts.thread,
                labels: facts.labels,
                attributes: facts.attributes,
            });
        }
        Ok(())
    }

    /// Where the samples of a service go: a profile of several services becomes one for each.
    #[inline]
    fn samples_of_service<'p>(&mut self, service: u32, parts: &'p mut Parts<'a>) -> Read<&'p mut Vec<Sample>> {
        if service == 0 {
            return Ok(&mut parts.profiles[0].samples);
        }
        let at = match parts.by_service.get(&service) {
            Some(at) => *at,
            None => {
                // An id names one profile: the others get one from their content.
                let mut split = parts.template.clone();
                split.labels.set(SERVICE_NAME, self.facts.services[service as usize - 1].as_str());
                self.charge_profile(&split)?;
                parts.by_service.insert(service, parts.profiles.len());
                parts.profiles.push(split);
                parts.profiles.len() - 1
            }
        };
        Ok(&mut parts.profiles[at].samples)
    }

    /// The link from the table, completed by what the attributes of sample, profile, scope and resource say.
    #[inline]
    fn link(&mut self, index: i32, facts: &Facts, fallback: Link) -> Read<u32> {
        let table = match usize::try_from(index).ok().and_then(|at| self.dictionary.links.get(at)) {
            _ if index == 0 => Link::default(),
            Some(link) => *link,
            None => return Err(wrong_index(index, "link_table", self.dictionary.links.len())),
        };
        if index != 0 && !table.trace_id.is_zero() && !table.span_id.is_zero() {
            return Ok(index as u32);
        }
        let mut link = table;
        for other in [facts.link, fallback] {
            if link.span_id.is_zero() {
                link.span_id = other.span_id;
            }
            if link.trace_id.is_zero() {
                link.trace_id = other.trace_id;
            }
        }
        self.facts.intern_link(link, &mut self.set, &mut self.budget)
    }
}
