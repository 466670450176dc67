//! Ranking the catalogue.

use crate::profiling::Around;
use crate::tracing::in_span;

pub fn search(words: usize, around: Around<'_>) -> String {
    in_span("catalogue.rank", || {
        let mut best = String::new();
        around(&mut || best = (0..words).map(|word| rank_products(&format!("word-{word}"))).last().unwrap_or_default());
        best
    })
}

#[inline(never)]
fn rank_products(word: &str) -> String {
    let products = (0..5000).map(|number| format!("product-{number:04}"));
    products.max_by_key(|product| similarity(word, product)).unwrap_or_default()
}

fn similarity(word: &str, product: &str) -> u32 {
    let bytes = word.bytes().chain(product.bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
