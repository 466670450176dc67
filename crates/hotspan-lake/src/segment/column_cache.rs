//! Decoded columns that are kept in memory: what is scanned again and again is then only compared again.
//!
//! The unit is one column of one row group. Bytes are bounded (R5). A scan over more than fits would displace
//! everything it is about to read, so a newcomer takes the place only of what nobody has used for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::ArrayRef;
use hashbrown::HashMap;

/// What was used so lately stays, whoever else wants its place.
const KEPT_AFTER_USE: Duration = Duration::from_secs(10);

/// So often the rows of a column are decoded without keeping them.
const RENTED_TIMES: usize = 2;

/// A column of a row group.
type Place = (usize, String);

#[derive(Debug)]
pub(super) struct ColumnCache {
    most_bytes: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the path of the file, so that a file can be forgotten at once.
    files: HashMap<String, FileColumns>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct FileColumns {
    kept: HashMap<Place, Kept>,
    /// Rows that were decoded one by one of columns that are not kept.
    spent: HashMap<Place, usize>,
}

#[derive(Debug)]
struct Kept {
    array: ArrayRef,
    bytes: usize,
    used: Instant,
}

impl ColumnCache {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes: AtomicUsize::new(most_bytes), state: Mutex::default() }
    }

    pub(super) fn set_most_bytes(&self, most_bytes: usize) {
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.most_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn get(&self, path: &str, group: usize, column: &str) -> Option<ArrayRef> {
        let mut state = self.lock();
        let kept = state.files.get_mut(path)?.kept.get_mut(&(group, column.to_owned()))?;
        kept.used = Instant::now();
        Some(ArrayRef::clone(&kept.array))
    }

    /// Keeps a column, if there is room or what has the room is stale.
    pub(super) fn keep(&self, path: &str, group: usize, column: &str, array: &ArrayRef) {
        let bytes = array.get_array_memory_size();
        let mut state = self.lock();
        if !state.make_room(bytes, self.most_bytes()) {
            return;
        }
        let file = state.files.entry_ref(path).or_default();
        let place = (group, column.to_owned());
        file.spent.remove(&place);
        let kept = Kept { array: ArrayRef::clone(array), bytes, used: Instant::now() };
        let before = file.kept.insert(place, kept).map_or(0, |other| other.bytes);
        state.bytes = (state.bytes + bytes).saturating_sub(before);
    }

    /// Notes that rows of a column are about to be decoded without keeping them, unless that has been done for twice as many
    /// rows as there are: whoever rents until then never pays much more than three times what the best plan costs, and what
    /// is asked for once, whole and then in a few places, is not kept. Says whether the column is to be.
    pub(super) fn is_worth_keeping(
        &self,
        (path, group, column): (&str, usize, &str),
        rows: usize,
        all_rows: usize,
        bytes: usize,
    ) -> bool {
        let mut state = self.lock();
        let file = state.files.entry_ref(path).or_default();
        let spent = file.spent.entry((group, column.to_owned())).or_default();
        if *spent >= RENTED_TIMES * all_rows {
            return state.has_room(bytes, self.most_bytes());
        }
        *spent = spent.saturating_add(rows);
        false
    }

    pub(super) fn forget(&self, path: &str) {
        let mut state = self.lock();
        if let Some(file) = state.files.remove(path) {
            let freed: usize = file.kept.values().map(|kept| kept.bytes).sum();
            state.bytes = state.bytes.saturating_sub(freed);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A cache that a panicking thread left behind is still a cache.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a column of this size would be kept.
    fn has_room(&self, bytes: usize, most_bytes: usize) -> bool {
        if self.bytes + bytes <= most_bytes {
            return true;
        }
        let kept = self.files.values().flat_map(|file| file.kept.values());
        let stale: usize = kept.filter(|kept| kept.used.elapsed() > KEPT_AFTER_USE).map(|kept| kept.bytes).sum();
        self.bytes + bytes <= most_bytes + stale
    }

    /// Drops what is stale, the stalest first, as far as needed.
    fn make_room(&mut self, bytes: usize, most_bytes: usize) -> bool {
        if !self.has_room(bytes, most_bytes) {
            return false;
        }
        while self.bytes + bytes > most_bytes {
            let places = self.files.iter().flat_map(|(path, file)| file.kept.iter().map(move |entry| (path, entry)));
            let stalest = places.min_by_key(|(_, (_, kept))| kept.used);
            let Some((path, place)) = stalest.map(|(path, (place, _))| (path.clone(), place.clone())) else {
                return false;
            };
            let dropped = self.files.get_mut(&path).and_then(|file| file.kept.remove(&place));
            self.bytes = self.bytes.saturating_sub(dropped.map_or(0, |kept| kept.bytes));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    fn column(rows: i64) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(0..rows))
    }

    /// Scenario: more columns than fit, all of them in use, then a file that is forgotten.
    /// Guarantee: memory stays in its bounds, what is in use is not displaced, and forgetting makes room again.
    #[test]
    fn memory_is_bounded() {
        let one = column(1000).get_array_memory_size();
        let cache = ColumnCache::new(3 * one);
        for group in 0..5 {
            cache.keep(if group < 2 { "a" } else { "b" }, group, "duration", &column(1000));
            assert!(cache.bytes() <= 3 * one);
        }
        assert!(cache.get("a", 1, "duration").is_some() && cache.get("b", 2, "duration").is_some());
        assert!(cache.get("b", 4, "duration").is_none());
        cache.keep("a", 0, "duration", &column(1000));
        cache.forget("a");
        assert_eq!(cache.bytes(), one);
        assert!(cache.get("a", 1, "duration").is_none());
        cache.keep("c", 0, "duration", &column(1000));
        assert_eq!(cache.bytes(), 2 * one);
    }

    /// Scenario: rows of a column are read by themselves again and again.
    /// Guarantee: the column is worth keeping once that has cost as much as reading it whole, if there is room.
    #[test]
    fn rent_until_it_has_cost_the_price() {
        let cache = ColumnCache::new(1000);
        let place = ("a", 0, "name");
        for _ in 0..5 {
            assert!(!cache.is_worth_keeping(place, 400, 1000, 10));
        }
        assert!(!cache.is_worth_keeping(place, 400, 1000, 2000));
        assert!(cache.is_worth_keeping(place, 1, 1000, 10));
    }
}
