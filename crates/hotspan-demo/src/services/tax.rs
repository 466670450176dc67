//! `tax`: what the state gets. Its problems: the table of rates is parsed anew for each item, and exemptions of one region
//! are never found in their cache.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::cost::times_costing;
use super::{Answer, Request, Stores};
use crate::customers::{Cart, Item, REGIONS};
use crate::mesh::{Endpoint, Failure, Service};
use crate::problems::Problem;
use crate::random::millis_between;
use crate::telemetry::{Kind, Span};

const TAX: Endpoint = Endpoint { service: Service::Tax, method: "POST", route: "/v1/tax" };
/// What parsing the document is to cost. Its size follows from that.
const PARSE_COST: Duration = Duration::from_millis(8);
/// Districts per region, at least and at most; about a kilobyte each for all regions together.
const DISTRICTS: RangeInclusive<usize> = 20..=1500;

/// The table of rates, as the state publishes it.
#[derive(Debug)]
pub(super) struct TaxOffice {
    document: String,
    parsed: OnceLock<Option<Value>>,
    /// Categories without tax, by region.
    exemptions: Mutex<HashMap<String, Vec<&'static str>>>,
}

impl TaxOffice {
    pub(super) fn open() -> TaxOffice {
        const TRIAL: usize = 50;
        let trial = tax_document(TRIAL);
        let times = times_costing(PARSE_COST, || {
            std::hint::black_box(parse_tax_document(&trial));
        });
        let districts = (TRIAL as f64 * times) as usize;
        TaxOffice::with_districts(districts.clamp(*DISTRICTS.start(), *DISTRICTS.end()))
    }

    fn with_districts(districts: usize) -> TaxOffice {
        let exemptions = REGIONS.map(|region| (region.to_owned(), exemptions_of(region)));
        TaxOffice {
            document: tax_document(districts),
            parsed: OnceLock::new(),
            exemptions: Mutex::new(exemptions.into_iter().collect()),
        }
    }
}

fn tax_document(districts: usize) -> String {
    let mut regions = serde_json::Map::new();
    for (at, region) in REGIONS.into_iter().enumerate() {
        let district = |number: usize| {
            json!({
                "district": format!("{region}-{number:04}"),
                "valid_from": "2026-01-01",
                "rates": {
                    "books": 7.0, "food": 7.0, "clothing": 19.0, "toys": 19.0, "electronics": 19.0 + at as f64 / 4.0,
                },
                "surcharge": (number % 5) as f64 / 10.0,
            })
        };
        regions.insert(region.to_owned(), (0..districts).map(district).collect());
    }
    json!({ "regions": regions }).to_string()
}

/// Asks the tax service for the tax on a cart, in cents.
pub(super) fn ask(request: &Request<'_>, cart: &Arc<Cart>) -> Answer<u64> {
    let (stores, cart) = (Arc::clone(request.stores), Arc::clone(cart));
    request.mesh.call(request.span, TAX, move |mesh, span| {
        span.set("customer.id", cart.customer.as_str());
        span.set("tax.region", cart.region);
        let has_problem = mesh.problems().has(Problem::Tax);
        // The region's rules are fetched once for the cart: a short, honest wait.
        thread::sleep(millis_between(0.5, 2.0));
        let exempt = find_exemptions(&stores.tax, cart.region, mesh.problems().has(Problem::Cache));
        span.set("tax.exempt_categories", exempt.len());
        calculate_tax(&stores, span, &cart, has_problem)
    })
}

/// What is free of tax in a region. The planted problem: a region with capitals in its name is kept under another key than
/// it is looked for, so that it is fetched each time.
#[inline(never)]
fn find_exemptions(office: &TaxOffice, region: &'static str, misses_one_region: bool) -> Vec<&'static str> {
    let key = if misses_one_region { region.replace("US-", "us-") } else { region.to_owned() };
    let known = office.exemptions.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    known.unwrap_or_else(|| load_exemptions(office, region))
}

/// The office answers in its own time.
#[inline(never)]
fn load_exemptions(office: &TaxOffice, region: &'static str) -> Vec<&'static str> {
    thread::sleep(millis_between(150.0, 280.0));
    let loaded = exemptions_of(region);
    office.exemptions.lock().unwrap_or_else(PoisonError::into_inner).insert(region.to_owned(), loaded.clone());
    loaded
}

fn exemptions_of(region: &str) -> Vec<&'static str> {
    if region.starts_with("US") { vec!["stamps", "bread"] } else { vec!["stamps"] }
}

/// Sums up the tax of all items.
#[inline(never)]
fn calculate_tax(stores: &Stores, span: &Span, cart: &Cart, parses_each_time: bool) -> Answer<u64> {
    let mut inner = span.child("calculate_tax", Kind::Internal);
    inner.set("cart.items", cart.items.len());
    let mut cents = 0;
    for item in &cart.items {
        let rate = lookup_tax_rate(&stores.tax, cart.region, item, parses_each_time)?;
        cents += tax_of(item, rate);
    }
    inner.set("tax.cents", usize::try_from(cents).unwrap_or(usize::MAX));
    Ok(cents)
}

/// The rate for an item. The planted problem: it parses the whole document to read one number.
#[inline(never)]
fn lookup_tax_rate(office: &TaxOffice, region: &str, item: &Item, parses_each_time: bool) -> Answer<f64> {
    if parses_each_time {
        let rates = parse_tax_document(&office.document);
        return find_rate(rates.as_ref(), region, item);
    }
    let rates = office.parsed.get_or_init(|| parse_tax_document(&office.document));
    find_rate(rates.as_ref(), region, item)
}

#[inline(never)]
fn parse_tax_document(document: &str) -> Option<Value> {
    serde_json::from_str(document).ok()
}

fn find_rate(rates: Option<&Value>, region: &str, item: &Item) -> Answer<f64> {
    let rate = rates.and_then(|rates| {
        let district = rates.get("regions")?.get(region)?.get(item.sku.len())?;
        Some(district.get("rates")?.get(item.category)?.as_f64()? + district.get("surcharge")?.as_f64()?)
    });
    rate.ok_or_else(|| Failure {
        status: 500,
        kind: "no_tax_rate",
        message: format!("there is no rate for {} in {region}", item.category),
    })
}

fn tax_of(item: &Item, percent: f64) -> u64 {
    (item.cents as f64 * item.quantity as f64 * percent / 100.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: every region and category, with the document parsed once and each time.
    /// Guarantee: there is a rate, and the fix changes the cost, never the tax.
    #[test]
    fn the_fix_changes_no_tax() {
        let office = TaxOffice::with_districts(*DISTRICTS.start());
        for region in REGIONS {
            for category in ["books", "food", "clothing", "electronics", "toys"] {
                let item = Item { sku: "BO-01234".to_owned(), category, cents: 1000, quantity: 1 };
                let rate = |parses| lookup_tax_rate(&office, region, &item, parses).unwrap();
                assert!(rate(true) >= 7.0 && rate(true) == rate(false), "{region} {category}");
            }
        }
    }
}
