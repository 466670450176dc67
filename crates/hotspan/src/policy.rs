//! `hotspan policy`: how the profilers of services behave, changed while they run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::client::{Client, ServerArguments};
use crate::screen::say;

const PATH: &str = "/api/v1/profiling/policy";

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Change how the profilers of a service behave; what is not named stays as it is.
    #[command(after_help = "Examples:\n  hotspan policy set order-service --rate 200 --for 10m\n  \
        hotspan policy set '*' --types cpu,wall --slow 500ms --errors true")]
    Set(SetArguments),
    /// Show all policies.
    List(ListArguments),
    /// Remove the policy of a service; its own configuration holds again.
    Clear(ClearArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// The service, as its profiles name it; `*` is every service without a policy of its own
    service: String,
    /// Samples per second of CPU
    #[arg(long, value_name = "HERTZ")]
    rate: Option<u32>,
    /// How long the rate holds, such as 10m; for good if it is left out
    #[arg(long = "for", value_name = "LENGTH", requires = "rate")]
    lasts: Option<String>,
    /// What is profiled: cpu, memory, wall, locks
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    types: Option<Vec<String>>,
    /// Keep requests in full that take longer than this, such as 500ms
    #[arg(long, value_name = "LENGTH")]
    slow: Option<String>,
    /// Keep requests in full while the machine's CPU is busier than this
    #[arg(long, value_name = "PERCENT")]
    busy: Option<f64>,
    /// Keep failed requests in full
    #[arg(long, value_name = "true|false")]
    errors: Option<bool>,
    /// Keep this share of all requests in full, such as 0.05 or 5%
    #[arg(long, value_name = "SHARE")]
    share: Option<String>,
    /// Keep requests in full whose trace is sampled
    #[arg(long, value_name = "true|false")]
    sampled_traces: Option<bool>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ClearArguments {
    /// The service
    service: String,
    #[command(flatten)]
    server: ServerArguments,
}

/// Runs a policy command.
pub(crate) fn run(command: PolicyCommand) -> anyhow::Result<()> {
    match command {
        PolicyCommand::Set(arguments) => {
            let change = arguments.change()?;
            let client = Client::new(&arguments.server);
            let answer = client.patch_json(PATH, &[("service", &arguments.service)], &change)?.json()?;
            say(&format!("{}: {}", arguments.service, describe(&answer["policy"], now_unix_seconds())));
        }
        PolicyCommand::List(arguments) => {
            let answer = Client::new(&arguments.server).get(PATH, &[])?.json()?;
            if arguments.json {
                say(&format!("{:#}", answer["policies"]));
                return Ok(());
            }
            let Some(policies) = answer["policies"].as_object().filter(|policies| !policies.is_empty()) else {
                say("no policies: every service runs as it is configured");
                return Ok(());
            };
            let width = policies.keys().map(String::len).max().unwrap_or(0);
            for (service, policy) in policies {
                say(&format!("{service:width$}  {}", describe(policy, now_unix_seconds())));
            }
        }
        PolicyCommand::Clear(arguments) => {
            let client = Client::new(&arguments.server);
            client.delete(PATH, &[("service", &arguments.service)])?;
            say(&format!("{}: as it is configured", arguments.service));
        }
    }
    Ok(())
}

impl SetArguments {
    /// The body of the request: only what was named.
    fn change(&self) -> anyhow::Result<Value> {
        let mut change = Map::new();
        match (self.rate, &self.lasts) {
            (Some(rate), Some(lasts)) => {
                change.insert("boost".to_owned(), json!({ "rate": rate, "for": lasts }));
            }
            (Some(rate), None) => {
                change.insert("rate".to_owned(), json!(rate));
            }
            (None, _) => {}
        }
        if let Some(types) = &self.types {
            change.insert("types".to_owned(), json!(types));
        }
        let share = self.share.as_deref().map(parse_share).transpose()?;
        let named = [
            ("slow_request_threshold", self.slow.as_ref().map(|slow| json!(slow))),
            ("cpu_threshold_percent", self.busy.map(|busy| json!(busy))),
            ("profile_errors", self.errors.map(|errors| json!(errors))),
            ("request_share", share.map(|share| json!(share))),
            ("sampled_traces", self.sampled_traces.map(|sampled| json!(sampled))),
        ];
        let conditions: Map<String, Value> =
            named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if !conditions.is_empty() {
            change.insert("conditions".to_owned(), Value::Object(conditions));
        }
        if change.is_empty() {
            bail!("nothing to set; name --rate, --types, --slow, --busy, --errors, --share or --sampled-traces");
        }
        Ok(Value::Object(change))
    }
}

fn parse_share(text: &str) -> anyhow::Result<f64> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&(number * unit)) => Ok(number * unit),
        _ => bail!("--share: {text:?} is not a share such as 0.05 or 5%"),
    }
}

/// A policy in a line.
fn describe(policy: &Value, now: u64) -> String {
    let mut parts = Vec::new();
    if let Some(rate) = policy["rate"].as_u64() {
        parts.push(format!("{rate} Hz"));
    }
    let boost = &policy["boost"];
    if let (Some(rate), Some(end)) = (boost["rate"].as_u64(), boost["until_unix_seconds"].as_u64()) {
        parts.push(format!("{rate} Hz for another {}", length_as_text(end.saturating_sub(now))));
    }
    if let Some(types) = policy["types"].as_array() {
        parts.push(format!("only {}", types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")));
    }
    if let Some(conditions) = policy["conditions"].as_object() {
        let named: Vec<String> =
            conditions.iter().map(|(name, value)| format!("{name} {}", value.to_string().trim_matches('"'))).collect();
        parts.push(format!("keep in full: {}", named.join(", ")));
    }
    parts.join("; ")
}

fn length_as_text(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

fn now_unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a policy with everything in it.
    /// Guarantee: the line says each part, and how long the boost still lasts.
    #[test]
    fn a_policy_reads_as_a_line() {
        let policy = json!({
            "rate": 50, "types": ["cpu", "wall"], "conditions": {"profile_errors": true},
            "boost": {"rate": 200, "until_unix_seconds": 1_600},
        });
        let line = describe(&policy, 1_000);
        assert_eq!(line, "50 Hz; 200 Hz for another 10m00s; only cpu, wall; keep in full: profile_errors true");
    }

    /// Scenario: shares as numbers, as percentages, and wrong ones.
    /// Guarantee: the right ones are read, the others refused.
    #[test]
    fn shares() {
        assert!((parse_share("5%").unwrap() - 0.05).abs() < 1e-9);
        assert!((parse_share("0.25").unwrap() - 0.25).abs() < 1e-9);
        for wrong in ["150%", "2", "-1", "some"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
