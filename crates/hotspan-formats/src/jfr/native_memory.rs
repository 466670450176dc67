//! Native memory that was taken and not given back.

use hashbrown::HashMap;
use hotspan_model::{ProfileSet, Sample};

use crate::file_error::Result;
use crate::set_builder::SetBuilder;

/// Memory that was taken.
#[derive(Debug, Clone, Copy)]
struct Taken {
    sample: Sample,
    size: i64,
    /// Whether the sample refers to the tables of [`KeptMemory`] instead of those of the chunk.
    kept: bool,
}

/// Time, address, and what a `malloc` took; none for a `free`.
type MemoryEvent = (i64, u64, Option<Taken>);

/// What an event takes.
pub(super) const EVENT_BYTES: usize = size_of::<MemoryEvent>();

/// `malloc` and `free`, settled chunk by chunk.
///
/// Threads flush their events when they like, so that a `free` may stand before its `malloc` in the file, even in the chunk
/// before: only the time orders them.
#[derive(Debug, Default)]
pub(super) struct NativeMemory {
    /// Events of the chunk that is being read, as they came.
    events: Vec<MemoryEvent>,
    /// What was in use after the last chunk.
    in_use: HashMap<u64, Taken>,
    /// What the last chunk gave back.
    given_back: Vec<MemoryEvent>,
}

impl NativeMemory {
    pub(super) fn taken(&mut self, address: u64, sample: Sample, size: i64) {
        self.events.push((sample.time, address, Some(Taken { sample, size, kept: false })));
    }

    pub(super) fn given_back(&mut self, address: u64, time: i64) {
        self.events.push((time, address, None));
    }

    /// Ends a chunk: what is in use is known, as far as chunks have been read.
    pub(super) fn settle(&mut self) {
        let given_back: Vec<MemoryEvent> = self.events.iter().filter(|(.., taken)| taken.is_none()).copied().collect();
        let before = std::mem::take(&mut self.in_use).into_iter();
        let mut events: Vec<MemoryEvent> =
            before.map(|(address, taken)| (taken.sample.time, address, Some(taken))).collect();
        events.append(&mut self.given_back);
        events.append(&mut self.events);
        events.sort_by_key(|(time, ..)| *time);
        for (_, address, taken) in events {
            match taken {
                Some(taken) => self.in_use.insert(address, taken),
                None => self.in_use.remove(&address),
            };
        }
        self.given_back = given_back;
    }

    /// The samples of what the last chunk took and did not give back.
    pub(super) fn new_samples(&mut self) -> impl Iterator<Item = &mut Sample> {
        self.in_use.values_mut().filter(|taken| !taken.kept).map(|taken| &mut taken.sample)
    }

    /// What is in use, in order of time.
    pub(super) fn in_use(&self) -> Vec<(Sample, i64)> {
        let mut in_use: Vec<_> = self.in_use.iter().collect();
        in_use.sort_unstable_by_key(|(address, taken)| (taken.sample.time, **address));
        in_use.into_iter().map(|(_, taken)| (taken.sample, taken.size)).collect()
    }

    /// Moves what the last chunk left in use over into tables that outlive it.
    pub(super) fn keep(&mut self, set: &ProfileSet<'static>, kept: &mut KeptMemory, offset: usize) -> Result<()> {
        let mut paths = HashMap::new();
        for taken in self.in_use.values_mut().filter(|taken| !taken.kept) {
            let sample = &mut taken.sample;
            sample.path = *paths.entry(sample.path).or_insert_with(|| kept.path(set, sample.path));
            sample.link = kept.tables.link(set.links[sample.link as usize]);
            sample.thread = kept.tables.thread(set.threads[sample.thread as usize].clone());
            sample.labels = kept.tables.labels(set.label_sets[sample.labels as usize].clone());
            sample.attributes = kept.tables.attributes(set.attribute_sets[sample.attributes as usize].clone());
            taken.kept = true;
        }
        kept.tables.check_room_for(self.in_use.len().saturating_mul(2 * size_of::<Taken>()), offset)
    }
}

/// Paths and other tables of memory that is in use while a recording is read chunk by chunk.
#[derive(Debug)]
pub(super) struct KeptMemory {
    pub(super) tables: SetBuilder<'static>,
}

impl KeptMemory {
    fn path(&mut self, set: &ProfileSet<'static>, path: u32) -> u32 {
        let tables = &mut self.tables;
        let mut frames = Vec::new();
        for frame in set.paths.walk_to_root(path) {
            let (known, text) = (tables.set.paths.frames.len(), frame.function.len() + frame.mapping.len());
            frames.push(tables.set.paths.frame(frame.into_owned()));
            tables.note_symbols(tables.set.paths.frames.len() - known, text);
        }
        frames.reverse();
        tables.set.paths.path(&frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: i64) -> Sample {
        Sample { path: 0, value: 1, time, timed: true, link: 0, thread: 0, labels: 0, attributes: 0 }
    }

    fn sizes(memory: &NativeMemory) -> Vec<i64> {
        memory.in_use().iter().map(|(_, size)| *size).collect()
    }

    /// Scenario: a free that stands before its malloc, and an address that is used again.
    /// Guarantee: time decides; what was taken last and not given back is in use.
    #[test]
    fn time_orders_events() {
        let mut memory = NativeMemory::default();
        memory.given_back(1, 20);
        memory.taken(1, sample(10), 100);
        memory.taken(2, sample(5), 7);
        memory.given_back(2, 6);
        memory.taken(2, sample(8), 9);
        memory.settle();
        assert_eq!(sizes(&memory), [9]);
    }

    /// Scenario: memory that a later chunk gives back, and a free whose malloc stands in the chunk after it.
    /// Guarantee: neither is in use.
    #[test]
    fn chunks_settle_together() {
        let mut memory = NativeMemory::default();
        memory.taken(1, sample(10), 100);
        memory.taken(2, sample(11), 200);
        memory.given_back(3, 20);
        memory.settle();
        assert_eq!(sizes(&memory), [100, 200]);
        memory.given_back(1, 30);
        memory.taken(3, sample(19), 300);
        memory.settle();
        assert_eq!(sizes(&memory), [200]);
    }
}
