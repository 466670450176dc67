//! What profiles know of spans: CPU, waiting and samples of each span of a set.

use hashbrown::HashMap;
use hotspan_lake::Snapshot;
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::selector::Selector;
use hotspan_model::{Exactness, LinkStrength, ProfileType, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::Result;
use crate::linked::{LinkedQuery, LinkedSample};
use crate::owners::SampleOwners;
use crate::series::SeriesEntry;

/// What a profile type tells about a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Time on a processor.
    Cpu,
    /// Time that went by, running or waiting.
    Wall,
    /// Time spent waiting for anything.
    OffCpu,
    /// Time spent waiting for a lock.
    Lock,
    /// Memory that was asked for.
    Allocated,
}

impl Measure {
    /// What a type tells; none if it says nothing about how long or how much a span took.
    pub fn of(profile_type: &ProfileType) -> Option<Self> {
        let ProfileType { name, sample_type, sample_unit, .. } = profile_type;
        match (name.as_str(), sample_type.as_str(), sample_unit.as_str()) {
            (_, "cpu", "nanoseconds") => Some(Self::Cpu),
            (_, "wall", "nanoseconds") => Some(Self::Wall),
            (_, "off_cpu", "nanoseconds") => Some(Self::OffCpu),
            ("mutex" | "block", "delay", "nanoseconds") => Some(Self::Lock),
            (_, "alloc_space", "bytes") => Some(Self::Allocated),
            _ => None,
        }
    }

    /// What each series measures.
    pub(crate) fn of_series(series: &[SeriesEntry]) -> Vec<Option<Self>> {
        let measure = |entry: &SeriesEntry| {
            let text = entry.labels.get(PROFILE_TYPE)?;
            Self::of(&text.parse::<ProfileType>().ok()?)
        };
        series.iter().map(measure).collect()
    }
}

/// What profiles know of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanFacts {
    /// Nanoseconds on a processor.
    pub cpu: i64,
    /// Nanoseconds that went by, running or waiting.
    pub wall: i64,
    /// Nanoseconds of waiting.
    pub off_cpu: i64,
    /// Nanoseconds of waiting for locks.
    pub lock: i64,
    /// Bytes asked for.
    pub allocated: i64,
    /// Samples of time: CPU, wall clock and waiting.
    pub samples: u64,
    /// How many of them name a span above.
    pub inherited: u64,
    /// How many of them were matched by thread and time.
    pub inferred: u64,
}

impl SpanFacts {
    /// Adds a sample.
    pub(crate) fn add(&mut self, measure: Measure, value: i64, link: LinkStrength) {
        let sum = match measure {
            Measure::Cpu => &mut self.cpu,
            Measure::Wall => &mut self.wall,
            Measure::OffCpu => &mut self.off_cpu,
            Measure::Lock => &mut self.lock,
            Measure::Allocated => &mut self.allocated,
        };
        *sum = sum.saturating_add(value);
        if matches!(measure, Measure::Cpu | Measure::Wall | Measure::OffCpu) {
            self.samples += 1;
            self.inherited += u64::from(link == LinkStrength::Inherited);
            self.inferred += u64::from(link == LinkStrength::Inferred);
        }
    }

    /// Adds what is known of another span.
    pub fn join(&mut self, other: &Self) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.wall = self.wall.saturating_add(other.wall);
        self.off_cpu = self.off_cpu.saturating_add(other.off_cpu);
        self.lock = self.lock.saturating_add(other.lock);
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.samples += other.samples;
        self.inherited += other.inherited;
        self.inferred += other.inferred;
    }

    /// Nanoseconds that are in samples, running or waiting, each once.
    pub fn time(&self) -> i64 {
        self.cpu.saturating_add(self.waiting())
    }

    /// Nanoseconds of waiting, from whatever tells: off-CPU samples, wall clock beyond CPU, or locks.
    pub fn waiting(&self) -> i64 {
        if self.off_cpu > 0 { self.off_cpu } else { self.wall.saturating_sub(self.cpu).max(self.lock).max(0) }
    }
}

/// Facts by span.
pub type FactsBySpan = HashMap<(TraceId, SpanId), SpanFacts>;

impl Engine {
    /// What profiles know of the spans of a set. Spans without samples are left out.
    pub async fn span_facts(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        owners: SampleOwners,
        (from, until): (i64, i64),
    ) -> Result<(FactsBySpan, Exactness)> {
        let query = LinkedQuery {
            owners,
            selector: Selector::default(),
            from,
            until,
            profiles: Vec::new(),
            with_threads: false,
        };
        let measures = Measure::of_series(&self.series_of_spans(tenant, snapshot, &query).await?);
        let mut facts = FactsBySpan::new();
        let mut add = |sample: &LinkedSample| {
            let measure = measures.get(sample.series as usize).copied().flatten();
            if let (Some(measure), Some(trace), Some(span)) = (measure, sample.trace_id, sample.span_id) {
                facts.entry((trace, span)).or_default().add(measure, sample.value, sample.link);
            }
            Ok(())
        };
        let tables = self.visit_linked_samples(tenant, snapshot, &query, &mut add).await?;
        Ok((facts, tables.exactness))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: types of several profilers. Guarantee: each is what its values are, and counts are nothing.
    #[test]
    fn measures() {
        let of = |text: &str| Measure::of(&text.parse().unwrap());
        assert_eq!(of("cpu"), Some(Measure::Cpu));
        assert_eq!(of("wall"), Some(Measure::Wall));
        assert_eq!(of("off_cpu"), Some(Measure::OffCpu));
        assert_eq!(of("mutex"), Some(Measure::Lock));
        assert_eq!(of("block"), Some(Measure::Lock));
        assert_eq!(of("alloc_space"), Some(Measure::Allocated));
        assert_eq!(of("process_cpu:samples:count:cpu:nanoseconds"), None);
        assert_eq!(of("inuse_space"), None);
    }

    /// Scenario: spans with CPU and wall clock, with off-CPU samples, with locks alone.
    /// Guarantee: waiting is what the best source says, and never negative.
    #[test]
    fn waiting() {
        let facts = |cpu, wall, off_cpu, lock| SpanFacts { cpu, wall, off_cpu, lock, ..SpanFacts::default() };
        assert_eq!(facts(3, 10, 0, 0).waiting(), 7);
        assert_eq!(facts(3, 0, 5, 9).waiting(), 5);
        assert_eq!(facts(3, 0, 0, 9).waiting(), 9);
        assert_eq!(facts(3, 2, 0, 0).waiting(), 0);
        // Time that wall clock and CPU both tell of is one time.
        assert_eq!([facts(3, 10, 0, 0), facts(3, 0, 5, 9), facts(3, 2, 0, 0)].map(|facts| facts.time()), [10, 8, 3]);
    }
}
