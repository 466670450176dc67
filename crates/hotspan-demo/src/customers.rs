//! Who buys what: customers, carts and items, drawn as a real shop would see them.

use crate::random::{below, chance};

/// Where the goods go decides the tax.
pub(crate) const REGIONS: [&str; 8] = ["DE-BE", "FR-75", "NL-NH", "ES-MD", "IT-25", "SE-AB", "PL-MZ", "US-CA"];

/// One line of a cart.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) sku: String,
    pub(crate) category: &'static str,
    pub(crate) cents: u64,
    pub(crate) quantity: u64,
}

/// What a customer wants to buy.
#[derive(Debug, Clone)]
pub(crate) struct Cart {
    pub(crate) customer: String,
    pub(crate) tier: &'static str,
    pub(crate) region: &'static str,
    pub(crate) items: Vec<Item>,
}

impl Cart {
    /// A cart of the usual sizes; one in fourteen is a reseller's. These are the slow tail.
    pub(crate) fn random() -> Cart {
        if chance(0.07) { Cart::of_reseller() } else { Cart::of("retail", 1 + below(4)) }
    }

    /// A cart with dozens of items.
    pub(crate) fn of_reseller() -> Cart {
        Cart::of("reseller", 55 + below(35))
    }

    fn of(tier: &'static str, count: u64) -> Cart {
        Cart {
            customer: format!("c-{:04}", below(400)),
            tier,
            region: REGIONS[below(REGIONS.len() as u64) as usize],
            items: (0..count).map(|_| Item::random()).collect(),
        }
    }

    /// Price of everything before tax and discount.
    pub(crate) fn cents(&self) -> u64 {
        self.items.iter().map(|item| item.cents * item.quantity).sum()
    }
}

impl Item {
    fn random() -> Item {
        const CATEGORIES: [&str; 5] = ["books", "food", "clothing", "electronics", "toys"];
        let category = CATEGORIES[below(CATEGORIES.len() as u64) as usize];
        Item {
            sku: format!("{}-{:05}", &category[..2].to_uppercase(), below(20_000)),
            category,
            cents: 99 + below(20_000),
            quantity: 1 + below(3),
        }
    }
}
