//! Bundles: the items that together come closest to half a cart's price, which the shop gives a rebate on. Its problem: the
//! search tries every choice, and remembers none that it has tried before.

use std::collections::HashMap;
use std::time::Duration;

use super::cost::times_costing;
use crate::customers::Cart;

/// What the search is to cost for a large cart. How many items it looks at follows from that.
const SEARCH_COST: Duration = Duration::from_millis(250);
/// Items that are looked at, at most.
const MOST_ITEMS: usize = 26;

/// How bundles are searched for.
#[derive(Debug)]
pub(super) struct BundleSearch {
    items: usize,
}

impl BundleSearch {
    pub(super) fn open() -> BundleSearch {
        const TRIAL: usize = 13;
        let prices: Vec<u64> = (0..TRIAL as u64).map(|number| 20 + number * 37 % 150).collect();
        let room = prices.iter().sum::<u64>() / 2;
        let times = times_costing(SEARCH_COST, || {
            std::hint::black_box(best_bundle(&prices, room, &mut None));
        });
        // Each item more doubles the work.
        BundleSearch { items: (TRIAL + times.log2() as usize).min(MOST_ITEMS) }
    }

    /// The price of the best bundle, in euros.
    pub(super) fn search(&self, cart: &Cart, remembers: bool) -> u64 {
        let prices: Vec<u64> = cart.items.iter().take(self.items).map(|item| item.cents / 100).collect();
        let room = prices.iter().sum::<u64>() / 2;
        best_bundle(&prices, room, &mut remembers.then(HashMap::new))
    }
}

/// Results by what they were asked for: how many items are left, and how much room.
type Known = Option<HashMap<(usize, u64), u64>>;

/// The most that fits: with the first item or without it. The planted problem is to call this without a memory.
#[inline(never)]
fn best_bundle(prices: &[u64], room: u64, known: &mut Known) -> u64 {
    let Some((price, rest)) = prices.split_first() else { return 0 };
    if let Some(best) = known.as_ref().and_then(|known| known.get(&(prices.len(), room))) {
        return *best;
    }
    let without = best_bundle(rest, room, known);
    let with = room.checked_sub(*price).map_or(0, |left| price + best_bundle(rest, left, known));
    let best = with.max(without);
    if let Some(known) = known {
        known.insert((prices.len(), room), best);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: prices of a cart, searched with a memory and without one.
    /// Guarantee: the fix changes the cost, never the bundle.
    #[test]
    fn the_fix_changes_no_bundle() {
        let prices = [90, 40, 25, 60, 10, 75];
        for room in [0, 9, 35, 150, 299, 1000] {
            let best = best_bundle(&prices, room, &mut None);
            assert_eq!(best, best_bundle(&prices, room, &mut Some(HashMap::new())), "{room}");
            assert!(best <= room);
        }
        assert_eq!(best_bundle(&prices, 150, &mut None), 150);
    }
}
