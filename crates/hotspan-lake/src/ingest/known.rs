//! What is durable already: call-path nodes and frames of the day and series of the hour need not be written again.
//!
//! Forgetting is harmless, since writing a symbol twice is; so the memory is bounded by starting over.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashMap;
use hotspan_model::TenantId;

use crate::rows::{KnownIds, KnownSymbols, NewId, NewSymbols};

/// Durable symbols and series, by tenant (R6).
#[derive(Debug)]
pub struct Known {
    max_ids: usize,
    tenants: RwLock<HashMap<TenantId, TenantSymbols>>,
}

/// What is durable of one tenant, by day and hour.
#[derive(Debug, Default)]
struct TenantSymbols {
    nodes: KnownByService,
    frames: KnownByService,
    series: KnownByService,
}

/// Ids by the day or hour and the service that they belong to.
type KnownByService = HashMap<(i64, u64), KnownIds>;

impl Known {
    pub(super) fn new(max_ids: usize) -> Self {
        Self { max_ids, tenants: RwLock::default() }
    }

    /// The view of one tenant. It keeps commits from being noted while it lives: take it late and drop it soon.
    pub fn of<'k>(&'k self, tenant: &'k TenantId) -> KnownOf<'k> {
        KnownOf { tenants: self.read(), tenant }
    }

    /// Notes what a commit has made durable.
    pub(super) fn learn(&self, tenant: &TenantId, new: &NewSymbols) {
        let NewSymbols { nodes, frames, series } = new;
        if nodes.is_empty() && frames.is_empty() && series.is_empty() {
            return;
        }
        let mut tenants = self.write();
        let count: usize = tenants.values().map(TenantSymbols::len).sum();
        if count > self.max_ids {
            tenants.clear();
        }
        let symbols = tenants.entry(tenant.clone()).or_default();
        let TenantSymbols { nodes: known_nodes, frames: known_frames, series: known_series } = symbols;
        for (map, new) in [(known_nodes, nodes), (known_frames, frames), (known_series, series)] {
            // A request mostly brings those of one service and day.
            let place = |new: &NewId| (new.time, new.service_id);
            for of_one_place in new.chunk_by(|a, b| place(a) == place(b)) {
                let ids = map.entry(place(&of_one_place[0])).or_default();
                ids.reserve(of_one_place.len());
                for new in of_one_place {
                    ids.learn(new.id, new.check);
                }
            }
        }
    }

    /// How many nodes, frames and series are known.
    pub fn count(&self) -> usize {
        self.read().values().map(TenantSymbols::len).sum()
    }

    // A panic while holding the lock can't leave a set half changed in a way that matters: see the module.
    fn read(&self) -> RwLockReadGuard<'_, HashMap<TenantId, TenantSymbols>> {
        self.tenants.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<TenantId, TenantSymbols>> {
        self.tenants.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantSymbols {
    fn len(&self) -> usize {
        self.nodes.values().chain(self.frames.values()).chain(self.series.values()).map(KnownIds::len).sum()
    }
}

/// What is durable of one tenant.
#[derive(Debug)]
pub struct KnownOf<'k> {
    tenants: RwLockReadGuard<'k, HashMap<TenantId, TenantSymbols>>,
    tenant: &'k TenantId,
}

impl KnownSymbols for KnownOf<'_> {
    fn nodes_of(&self, day: i64, service_id: u64) -> Option<&KnownIds> {
        self.tenants.get(self.tenant)?.nodes.get(&(day, service_id))
    }

    fn frames_of(&self, day: i64, service_id: u64) -> Option<&KnownIds> {
        self.tenants.get(self.tenant)?.frames.get(&(day, service_id))
    }

    fn series_of(&self, hour: i64) -> Option<&KnownIds> {
        self.tenants.get(self.tenant)?.series.get(&(hour, 0))
    }
}

#[cfg(test)]
mod tests {
    use hotspan_model::{Frame, Profile, ProfileSet, Sample};

    use super::*;
    use crate::rows::{ProfileRows, Standing};

    fn new_id(time: i64, service_id: u64, id: u64) -> NewId {
        NewId { time, service_id, id, check: 1 }
    }

    /// Scenario: two tenants, two days, two services.
    /// Guarantee: what one has made durable is new to the others, and on other days.
    #[test]
    fn by_tenant_day_and_service() {
        let known = Known::new(100);
        let (mine, other) = (TenantId::anonymous(), "other".parse::<TenantId>().unwrap());
        let (nodes, frames) = (vec![new_id(0, 3, 7), new_id(0, 3, 6)], vec![new_id(0, 3, 9)]);
        known.learn(&mine, &NewSymbols { nodes, frames, series: vec![new_id(0, 0, 8)] });
        let standing = |tenant, day, service, id| {
            known.of(tenant).nodes_of(day, service).map_or(Standing::New, |ids: &KnownIds| ids.standing(id, 1))
        };
        assert_eq!(standing(&mine, 0, 3, 7), Standing::Durable);
        assert_eq!(standing(&mine, 0, 3, 6), Standing::Durable);
        assert_eq!(standing(&mine, 0, 4, 7), Standing::New);
        assert_eq!(standing(&mine, 1, 3, 7), Standing::New);
        assert_eq!(standing(&mine, 0, 3, 9), Standing::New);
        assert_eq!(standing(&other, 0, 3, 7), Standing::New);
        assert_eq!(known.of(&mine).frames_of(0, 3).map(|ids| ids.standing(9, 1)), Some(Standing::Durable));
        assert_eq!(known.of(&mine).series_of(0).map(|ids| ids.standing(8, 1)), Some(Standing::Durable));
        assert_eq!(known.count(), 4);
    }

    /// Scenario: more ids than are kept. Guarantee: memory stays bounded by the limit and one commit.
    #[test]
    fn bounded() {
        let known = Known::new(10);
        for day in 0..100 {
            let nodes = vec![new_id(day, 0, 1), new_id(day, 0, 2)];
            known.learn(&TenantId::anonymous(), &NewSymbols { nodes, ..NewSymbols::default() });
        }
        assert!(known.count() <= 12, "{}", known.count());
    }

    /// Scenario: a request with some paths; then one with a path that is known, a new one through the same code, and a new one
    /// into another function.
    /// Guarantee: of the second, both new paths are written and only the one new frame.
    #[test]
    fn known_symbols_are_not_written_again() {
        let (known, tenant) = (Known::new(1000), TenantId::anonymous());
        let symbols_of = |stacks: &[&[&'static str]]| {
            let mut set = ProfileSet::default();
            let mut profile = Profile::default();
            for stack in stacks {
                let frames: Vec<u32> = stack.iter().map(|name| set.paths.frame(Frame::named(name))).collect();
                let path = set.paths.path(&frames);
                let (value, time, timed) = (1, 5, true);
                profile.samples.push(Sample { path, value, time, timed, link: 0, thread: 0, labels: 0, attributes: 0 });
            }
            set.profiles.push(profile);
            let mut rows = ProfileRows::default();
            rows.push(&set, &known.of(&tenant));
            rows.new_symbols()
        };
        let first = symbols_of(&[&["main", "serve"], &["main", "parse"]]);
        assert_eq!((first.nodes.len(), first.frames.len(), first.series.len()), (3, 3, 1));
        known.learn(&tenant, &first);
        let second = symbols_of(&[&["main", "parse"], &["main", "parse", "serve"], &["main", "render"]]);
        assert_eq!((second.nodes.len(), second.frames.len(), second.series.len()), (2, 1, 0));
    }
}
