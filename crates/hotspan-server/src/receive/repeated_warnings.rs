//! Warnings about what comes again and again, and is told once a minute: a sender that sends what can't be read does so until
//! somebody changes that, and what one meets while the server has no room or is not ready, all do.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;

const PAUSE: Duration = Duration::from_mins(1);

/// Warnings by what they are about: a signal or an API, and why it is refused.
#[derive(Debug, Default)]
pub(crate) struct RepeatedWarnings(Mutex<HashMap<(&'static str, &'static str), Told>>);

#[derive(Debug)]
struct Told {
    at: Instant,
    since: u64,
}

impl RepeatedWarnings {
    /// How many requests a warning now is about, those since the last one included; none while that is fresh.
    pub(crate) fn due(&self, signal: &'static str, reason: &'static str, now: Instant) -> Option<u64> {
        let mut warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = warnings.get_mut(&(signal, reason)) else {
            warnings.insert((signal, reason), Told { at: now, since: 0 });
            return Some(1);
        };
        told.since += 1;
        if now.duration_since(told.at) < PAUSE {
            return None;
        }
        told.at = now;
        Some(std::mem::take(&mut told.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: two signals that are refused every twenty seconds.
    /// Guarantee: each is told at once, then once a minute with how many there were.
    #[test]
    fn once_a_minute() {
        let (warnings, start) = (RepeatedWarnings::default(), Instant::now());
        let due = |signal, seconds| warnings.due(signal, "not_stored", start + Duration::from_secs(seconds));
        for signal in ["metrics", "logs"] {
            let told: Vec<Option<u64>> = (0..7).map(|turn| due(signal, 20 * turn)).collect();
            assert_eq!(told, [Some(1), None, None, Some(3), None, None, Some(3)], "{signal}");
        }
    }
}
