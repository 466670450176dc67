//! What each service does. Functions that a person should find in a flame graph are never inlined.

mod bundles;
pub(crate) mod checkout;
mod cost;
mod discount;
mod inventory;
pub(crate) mod order;
mod tax;

use std::sync::Arc;

use crate::mesh::{Failure, Mesh};
use crate::telemetry::Span;

/// What all services remember between requests.
#[derive(Debug)]
pub(crate) struct Stores {
    tax: tax::TaxOffice,
    discount: discount::PriceRules,
    bundles: bundles::BundleSearch,
    receipts: order::ReceiptPrinter,
    pub(crate) orders: order::OrderBook,
}

impl Stores {
    /// Fills the stores; takes some milliseconds.
    pub(crate) fn open() -> Arc<Stores> {
        Arc::new(Stores {
            tax: tax::TaxOffice::open(),
            discount: discount::PriceRules::open(),
            bundles: bundles::BundleSearch::open(),
            receipts: order::ReceiptPrinter::open(),
            orders: order::OrderBook::default(),
        })
    }
}

/// The answer of a service to a call.
type Answer<T> = Result<T, Failure>;

/// What a call is served with.
struct Request<'a> {
    mesh: &'a Arc<Mesh>,
    stores: &'a Arc<Stores>,
    span: &'a mut Span,
}
