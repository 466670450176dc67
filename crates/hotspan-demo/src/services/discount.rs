//! `discount`: price rules and bundles. Its problems: the rule's regular expression is compiled for each item, and bundles
//! are searched for by trying everything.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use regex::Regex;

use super::cost::cost_of;
use super::{Answer, Request, Stores};
use crate::customers::{Cart, Item};
use crate::mesh::{Endpoint, Service};
use crate::problems::Problem;
use crate::telemetry::{Kind, Span};

const DISCOUNTS: Endpoint = Endpoint { service: Service::Discount, method: "POST", route: "/v1/discounts" };
/// What compiling the rule is to cost. How many letters it allows follows from that.
const COMPILE_COST: Duration = Duration::from_millis(3);
/// Letters, at least and at most: what is compiled for more of them would be too large.
const LETTERS: RangeInclusive<usize> = 1..=32;

/// The rules, compiled when first needed.
#[derive(Debug)]
pub(super) struct PriceRules {
    pattern: String,
    offer: OnceLock<Option<Regex>>,
}

impl PriceRules {
    pub(super) fn open() -> PriceRules {
        let cost_of_letters = |letters: usize| {
            let pattern = offer_pattern(letters);
            cost_of(|| {
                std::hint::black_box(compile_price_rule(&pattern));
            })
        };
        // The rest of the pattern costs something, too: what a letter adds is seen in the difference.
        let (short, longer) = (*LETTERS.start(), *LETTERS.start() + 4);
        let [cost, longer_cost] = [short, longer].map(|letters| cost_of_letters(letters).as_secs_f64());
        let a_letter = ((longer_cost - cost) / (longer - short) as f64).max(1e-6);
        let further = ((COMPILE_COST.as_secs_f64() - cost) / a_letter).max(0.0) as usize;
        PriceRules { pattern: offer_pattern((short + further).min(*LETTERS.end())), offer: OnceLock::new() }
    }
}

/// Which items are on offer. Letters of all alphabets make it costly to compile, as such rules are in real shops.
fn offer_pattern(letters: usize) -> String {
    format!(r"(?i)^(?:BO|FO|EL)-(?:0[0-4]|1[05])\d{{3}}$|^TO-\d{{1,4}}5$|^promo[-_ ]\p{{L}}{{1,{letters}}}\d*$")
}

/// Asks the discount service what a cart gets off, in cents.
pub(super) fn ask(request: &Request<'_>, cart: &Arc<Cart>) -> Answer<u64> {
    let (stores, cart) = (Arc::clone(request.stores), Arc::clone(cart));
    request.mesh.call(request.span, DISCOUNTS, move |mesh, span| {
        span.set("customer.id", cart.customer.as_str());
        span.set("customer.tier", cart.tier);
        let bundle = find_bundle(&stores, span, &cart, !mesh.problems().has(Problem::Bundles));
        Ok(apply_price_rules(&stores, span, &cart, mesh.problems().has(Problem::Regex)) + bundle / 20)
    })
}

#[inline(never)]
fn find_bundle(stores: &Stores, span: &Span, cart: &Cart, remembers: bool) -> u64 {
    let mut inner = span.child("find_bundle", Kind::Internal);
    let euros = stores.bundles.search(cart, remembers);
    inner.set("bundle.euros", usize::try_from(euros).unwrap_or(usize::MAX));
    euros
}

/// Sums up what is off for all items.
#[inline(never)]
fn apply_price_rules(stores: &Stores, span: &Span, cart: &Cart, compiles_each_time: bool) -> u64 {
    let mut inner = span.child("apply_price_rules", Kind::Internal);
    inner.set("cart.items", cart.items.len());
    let mut cents = 0;
    let mut offers = 0usize;
    for item in &cart.items {
        if is_on_offer(&stores.discount, item, compiles_each_time) {
            offers += 1;
            cents += item.cents * item.quantity / 10;
        }
    }
    inner.set("discount.offers", offers);
    cents
}

/// Whether a rule matches. The planted problem: the rule is compiled to look at one item.
#[inline(never)]
fn is_on_offer(rules: &PriceRules, item: &Item, compiles_each_time: bool) -> bool {
    if compiles_each_time {
        return compile_price_rule(&rules.pattern).is_some_and(|rule| rule.is_match(&item.sku));
    }
    let rule = rules.offer.get_or_init(|| compile_price_rule(&rules.pattern));
    rule.as_ref().is_some_and(|rule| rule.is_match(&item.sku))
}

#[inline(never)]
fn compile_price_rule(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: items on offer and not, with the largest rule compiled once and each time.
    /// Guarantee: it compiles, and the fix changes the cost, never the price.
    #[test]
    fn the_fix_changes_no_price() {
        let rules = PriceRules { pattern: offer_pattern(*LETTERS.end()), offer: OnceLock::new() };
        let item = |sku: &str| Item { sku: sku.to_owned(), category: "books", cents: 1, quantity: 1 };
        for (sku, expected) in [("BO-01234", true), ("BO-19999", false), ("TO-1235", true), ("CL-00001", false)] {
            for compiles_each_time in [true, false] {
                assert_eq!(is_on_offer(&rules, &item(sku), compiles_each_time), expected, "{sku}");
            }
        }
    }
}
