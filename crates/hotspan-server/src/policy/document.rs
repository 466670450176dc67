//! What a policy may say, as JSON, and the checks that keep nonsense from reaching every service.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::time_text::parse_duration;

/// Samples per second of CPU that a policy may ask for.
const RATES: std::ops::RangeInclusive<u32> = 1..=1000;
/// The longest boost: a forgotten one ends.
const LONGEST_BOOST_SECONDS: u64 = 7 * 24 * 3600;

/// How the profilers of a service are to behave. What is not said stays as the service configured it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// Samples per second of CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<u32>,
    /// What is profiled, and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) types: Option<BTreeSet<ProfiledType>>,
    /// Which requests keep their samples in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conditions: Option<Conditions>,
    /// Another rate until a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) boost: Option<Boost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProfiledType {
    Cpu,
    Memory,
    Wall,
    Locks,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conditions {
    /// A length such as `1s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slow_request_threshold: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_threshold_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile_errors: Option<bool>,
    /// A share of all requests, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sampled_traces: Option<bool>,
}

/// A rate with an end. `for` is turned into `until_unix_seconds` when it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Boost {
    pub(crate) rate: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until_unix_seconds: Option<u64>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub(crate) lasts: Option<String>,
}

/// Why a policy is refused: the field, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub(crate) struct PolicyError {
    field: &'static str,
    reason: String,
}

impl PolicyError {
    fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

impl Policy {
    /// Checks every value (R7), and gives a boost its end.
    pub(crate) fn checked(mut self, now_unix_seconds: u64) -> Result<Self, PolicyError> {
        if let Some(rate) = self.rate {
            check_rate("rate", rate)?;
        }
        if self.types.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(PolicyError::new("types", "names nothing; leave it out, or name cpu, memory, wall or locks"));
        }
        if let Some(conditions) = &self.conditions {
            conditions.check()?;
        }
        if let Some(boost) = &mut self.boost {
            boost.check(now_unix_seconds)?;
        }
        if self == Self::default() {
            return Err(PolicyError::new("policy", "says nothing; name a rate, types, conditions or a boost"));
        }
        Ok(self)
    }

    /// The policy as it is in force at a moment: a boost that has ended is gone.
    pub(crate) fn at(&self, now_unix_seconds: u64) -> Self {
        let boost =
            self.boost.clone().filter(|boost| boost.until_unix_seconds.is_some_and(|end| now_unix_seconds < end));
        Self { boost, ..self.clone() }
    }

    /// This policy with what `change` says in the place of what it said.
    pub(crate) fn changed_by(&self, change: Self) -> Self {
        Self {
            rate: change.rate.or(self.rate),
            types: change.types.or_else(|| self.types.clone()),
            conditions: change.conditions.or_else(|| self.conditions.clone()),
            boost: change.boost.or_else(|| self.boost.clone()),
        }
    }

    /// Whether nothing is said any more.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Conditions {
    fn check(&self) -> Result<(), PolicyError> {
        let threshold = self.slow_request_threshold.as_deref();
        if threshold.is_some_and(|text| parse_duration(text).is_none()) {
            return Err(PolicyError::new("conditions.slow_request_threshold", "is not a length such as 250ms or 1s"));
        }
        if self.cpu_threshold_percent.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
            return Err(PolicyError::new("conditions.cpu_threshold_percent", "is not between 0 and 100"));
        }
        if self.request_share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(PolicyError::new("conditions.request_share", "is not between 0 and 1"));
        }
        Ok(())
    }
}

impl Boost {
    fn check(&mut self, now: u64) -> Result<(), PolicyError> {
        check_rate("boost.rate", self.rate)?;
        let end = match (self.until_unix_seconds, self.lasts.take()) {
            (Some(end), None) => end,
            (None, Some(text)) => {
                let length = parse_duration(&text)
                    .ok_or_else(|| PolicyError::new("boost.for", format!("{text:?} is not a length such as 10m")))?;
                now.saturating_add(length.as_secs().max(1))
            }
            (Some(_), Some(_)) => return Err(PolicyError::new("boost", "say either until_unix_seconds or for")),
            (None, None) => return Err(PolicyError::new("boost", "has no end; say until_unix_seconds or for")),
        };
        if end <= now {
            return Err(PolicyError::new("boost.until_unix_seconds", "is over already"));
        }
        if end - now > LONGEST_BOOST_SECONDS {
            return Err(PolicyError::new("boost", "is longer than 7 days; use rate for a lasting change"));
        }
        self.until_unix_seconds = Some(end);
        Ok(())
    }
}

fn check_rate(field: &'static str, rate: u32) -> Result<(), PolicyError> {
    if RATES.contains(&rate) {
        return Ok(());
    }
    let (least, most) = (RATES.start(), RATES.end());
    Err(PolicyError::new(field, format!("{rate} is not between {least} and {most} samples per second of CPU")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Policy, String> {
        let policy: Policy = serde_json::from_str(text).map_err(|error| error.to_string())?;
        policy.checked(1000).map_err(|error| error.to_string())
    }

    /// Scenario: policies with each kind of mistake.
    /// Guarantee: all are refused, and the message names the field.
    #[test]
    fn mistakes_name_their_field() {
        for (text, field) in [
            (r#"{"rate": 0}"#, "rate"),
            (r#"{"rate": 1001}"#, "rate"),
            (r#"{"types": []}"#, "types"),
            (r#"{"types": ["gpu"]}"#, "gpu"),
            (r#"{"speed": 3}"#, "speed"),
            (r#"{"conditions": {"slow_request_threshold": "soon"}}"#, "conditions.slow_request_threshold"),
            (r#"{"conditions": {"request_share": 1.5}}"#, "conditions.request_share"),
            (r#"{"conditions": {"cpu_threshold_percent": -1}}"#, "conditions.cpu_threshold_percent"),
            (r#"{"boost": {"rate": 200}}"#, "boost"),
            (r#"{"boost": {"rate": 200, "for": "ever"}}"#, "boost.for"),
            (r#"{"boost": {"rate": 200, "for": "9d"}}"#, "boost"),
            (r#"{"boost": {"rate": 200, "until_unix_seconds": 999}}"#, "boost.until_unix_seconds"),
            (r#"{"boost": {"rate": 200, "until_unix_seconds": 2000, "for": "1m"}}"#, "boost"),
            ("{}", "policy"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(field), "{text}: {message}");
        }
    }

    /// Scenario: a boost of ten minutes on a policy with a lasting rate, before and after its end, then changed.
    /// Guarantee: the boost is there until its time and not after; a change keeps what it does not name.
    #[test]
    fn a_boost_ends_and_the_rest_stays() {
        let policy = read(r#"{"rate": 50, "boost": {"rate": 200, "for": "10m"}}"#).unwrap();
        assert_eq!(policy.at(1599).boost.unwrap().until_unix_seconds, Some(1600));
        assert_eq!(policy.at(1600), Policy { rate: Some(50), ..Policy::default() });
        let changed = policy.changed_by(read(r#"{"types": ["cpu", "wall"]}"#).unwrap());
        assert_eq!((changed.rate, changed.boost), (policy.rate, policy.boost));
        assert_eq!(changed.types.unwrap().len(), 2);
    }
}
