//! Which requests are profiled, decided once when they come in: a flag from outside, or the dice.

use axum::http::HeaderMap;

/// 1 % unless PROFILE_SHARE says otherwise.
pub fn profile_share() -> f64 {
    let given = std::env::var("PROFILE_SHARE").ok().and_then(|text| text.parse().ok());
    given.filter(|share| (0.0..=1.0).contains(share)).unwrap_or(0.01)
}

pub fn is_chosen(headers: &HeaderMap) -> bool {
    headers.contains_key("x-profile") || rand::random::<f64>() < profile_share()
}
