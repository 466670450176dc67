//! Native memory that was taken and not given back.

use hashbrown::HashMap;
use hotspan_model::Sample;

/// Time, address, and for a `malloc` its sample and size.
type MemoryEvent = (i64, u64, Option<(Sample, i64)>);

/// `malloc` and `free` as they came.
#[derive(Debug, Default)]
pub(super) struct NativeMemory {
    events: Vec<MemoryEvent>,
}

impl NativeMemory {
    pub(super) fn taken(&mut self, address: u64, sample: Sample, size: i64) {
        self.events.push((sample.time, address, Some((sample, size))));
    }

    pub(super) fn given_back(&mut self, address: u64, time: i64) {
        self.events.push((time, address, None));
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// What is in use at the end. Threads flush their events when they like, so that a `free` may stand before
    /// its `malloc` in the file: only the time orders them.
    pub(super) fn in_use(mut self) -> Vec<(Sample, i64)> {
        self.events.sort_by_key(|(time, ..)| *time);
        let mut in_use: HashMap<u64, (Sample, i64)> = HashMap::new();
        for (_, address, taken) in self.events {
            match taken {
                Some(taken) => in_use.insert(address, taken),
                None => in_use.remove(&address),
            };
        }
        let mut in_use: Vec<(Sample, i64)> = in_use.into_values().collect();
        in_use.sort_unstable_by_key(|(sample, _)| sample.time);
        in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a free that stands before its malloc, and an address that is used again.
    /// Guarantee: time decides; what was taken last and not given back is in use.
    #[test]
    fn time_orders_events() {
        let sample =
            |time| Sample { path: 0, value: 1, time, timed: true, link: 0, thread: 0, labels: 0, attributes: 0 };
        let mut memory = NativeMemory::default();
        memory.given_back(1, 20);
        memory.taken(1, sample(10), 100);
        memory.taken(2, sample(5), 7);
        memory.given_back(2, 6);
        memory.taken(2, sample(8), 9);
        let sizes: Vec<i64> = memory.in_use().iter().map(|(_, size)| *size).collect();
        assert_eq!(sizes, [9]);
    }
}
