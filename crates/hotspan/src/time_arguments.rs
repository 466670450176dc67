//! Which time a question is about: the same flags for every command that asks, whatever the server calls them.

use clap::Args;
use hotspan_server::parse_duration;

/// The time that a question about profiles is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct TimeArguments {
    /// Look at the time up to now, such as 15m, 1h or 2d [default: 1h, or all time for a span or trace]
    #[arg(long, visible_alias = "time-range", alias = "since", value_name = "LENGTH", value_parser = length, conflicts_with = "from")]
    last: Option<String>,
    /// Start, such as 2026-01-31T10:00:00Z, 20260131, 1700000000 or now-2h
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End; the default is now
    #[arg(long, alias = "to", value_name = "TIME")]
    until: Option<String>,
}

impl TimeArguments {
    /// As a server wants to be told. What is not said is left to it.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        said([("from", start(&self.last, &self.from)), ("until", self.until.clone())])
    }
}

/// The time that a question about spans is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct RangeArguments {
    /// Look at the time up to now, such as 15m, 1h or 2d [default: 1h]
    #[arg(long, aliases = ["time-range", "since"], value_name = "LENGTH", value_parser = length, conflicts_with = "from")]
    last: Option<String>,
    /// Start, such as 2026-01-31T10:00:00Z, 20260131, 1700000000 or now-2h
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End; the default is now
    #[arg(long, alias = "until", value_name = "TIME")]
    to: Option<String>,
}

impl RangeArguments {
    /// As a server wants to be told. What is not said is left to it.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        said([("from", start(&self.last, &self.from)), ("to", self.to.clone())])
    }

    /// Start and end, for servers that want to be told both and for sentences.
    pub(crate) fn range(&self) -> (String, String) {
        let from = start(&self.last, &self.from).unwrap_or_else(|| "now-1h".to_owned());
        (from, self.to.clone().unwrap_or_else(|| "now".to_owned()))
    }
}

fn start(last: &Option<String>, from: &Option<String>) -> Option<String> {
    last.as_ref().map(|length| format!("now-{length}")).or_else(|| from.clone())
}

fn said(times: [(&'static str, Option<String>); 2]) -> Vec<(&'static str, String)> {
    times.into_iter().filter_map(|(name, time)| Some((name, time?))).collect()
}

/// A length of time, as it was written: the server reads it again.
fn length(text: &str) -> Result<String, String> {
    let is_length = parse_duration(text).is_some_and(|length| !length.is_zero());
    if is_length {
        Ok(text.to_owned())
    } else {
        Err("a length of time is written like 15m, 1h, 1h30m or 2d".to_owned())
    }
}
