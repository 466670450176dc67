//! Adding up an order.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::profiling::Around;
use crate::tracing::in_span;

/// What the tax office publishes: rates by district.
static TAX_TABLE: LazyLock<String> = LazyLock::new(|| {
    let rates = json!({ "books": 0.07, "food": 0.05, "toys": 0.19, "clothing": 0.19 });
    let district = |number: usize| json!({ "name": format!("district-{number:04}"), "rates": rates });
    Value::Array((0..400).map(district).collect()).to_string()
});

pub fn checkout(items: usize, around: Around<'_>) -> f64 {
    in_span("order.calculate_totals", || {
        let total: f64 = (0..items).map(price).sum();
        total + calculate_tax(items, around)
    })
}

fn price(item: usize) -> f64 {
    5.0 + (item % 20) as f64
}

fn calculate_tax(items: usize, around: Around<'_>) -> f64 {
    in_span("calculate_tax", || {
        let mut tax = 0.0;
        around(&mut || tax = (0..items).map(|item| price(item) * lookup_tax_rate(item % 400)).sum());
        tax
    })
}

/// The problem: it reads the whole table for one number.
#[inline(never)]
fn lookup_tax_rate(district: usize) -> f64 {
    parse_tax_table(&TAX_TABLE)[district]["rates"]["books"].as_f64().unwrap_or(0.0)
}

#[inline(never)]
fn parse_tax_table(document: &str) -> Value {
    serde_json::from_str(document).unwrap_or_default()
}
