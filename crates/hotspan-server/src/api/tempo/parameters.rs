//! What a question says, whether it came in an address or in a message: what to look for, in which time, how much.

use hotspan_lake::catalog::now_nanos;
use hotspan_query::search::{SearchOrder, SearchQuery};
use hotspan_traceql::{Program, TraceqlError};
use serde::Deserialize;
use std::sync::Arc;

use super::messages::{
    QueryInstantRequest, QueryRangeRequest, SearchRequest, SearchTagValuesRequest, SearchTagsRequest,
};
use crate::api::ApiError;
use crate::time_text::{parse_duration, parse_time};

/// The parameters of all questions; each looks at its own.
#[derive(Debug, Deserialize, Default)]
pub(super) struct Parameters {
    q: Option<String>,
    query: Option<String>,
    tags: Option<String>,
    #[serde(rename = "minDuration")]
    min_duration: Option<String>,
    #[serde(rename = "maxDuration")]
    max_duration: Option<String>,
    limit: Option<usize>,
    spss: Option<usize>,
    start: Option<String>,
    end: Option<String>,
    since: Option<String>,
    pub(super) step: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) exemplars: Option<usize>,
    #[serde(rename = "maxSeries")]
    pub(super) max_series: Option<usize>,
    order: Option<String>,
    pub(super) cursor: Option<String>,
}

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 262_144;
const DEFAULT_SPANS_PER_SET: usize = 3;
const MAX_SPANS_PER_SET: usize = 100;
pub(super) const HOUR: i64 = 3600 * 1_000_000_000;

impl Parameters {
    /// The time asked for; `fallback` nanoseconds up to now, or everything, where none is given.
    pub(super) fn range(&self, fallback: Option<i64>) -> Result<(i64, i64), ApiError> {
        let now = now_nanos();
        let read = |name: &str, text: &Option<String>| {
            let parsed = text.as_deref().filter(|text| !text.is_empty()).map(|text| parse_time(text, now)).transpose();
            parsed.map_err(|error| ApiError::invalid(format!("{name}: {error}")))
        };
        let (start, end) = (read("start", &self.start)?, read("end", &self.end)?);
        if start.is_some() != end.is_some() {
            return Err(ApiError::invalid("start and end go together: give both or neither"));
        }
        if let Some(since) = &self.since {
            let length = parse_duration(since)
                .ok_or_else(|| ApiError::invalid(format!("since: {since:?} is not a length such as 1h")))?;
            let until = end.unwrap_or(now);
            return Ok((until.saturating_sub(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)), until));
        }
        let (from, until) = match (start, end) {
            (Some(start), Some(end)) => (start, end),
            _ => fallback.map_or((i64::MIN, i64::MAX), |length| (now - length, now + 1)),
        };
        if from >= until {
            return Err(ApiError::invalid("start must be before end"));
        }
        Ok((from, until))
    }

    /// Whether a time is given.
    pub(super) fn has_range(&self) -> bool {
        let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        given(&self.start) || given(&self.end) || given(&self.since)
    }

    /// The text of the query, if there is any.
    pub(super) fn query_text(&self) -> Option<&str> {
        self.q.as_deref().or(self.query.as_deref()).filter(|query| !query.trim().is_empty())
    }

    /// The program to run: `q`, or what `tags` and durations say.
    pub(super) fn program(&self) -> Result<Arc<Program>, ApiError> {
        let text = match self.query_text() {
            Some(query) => query.to_owned(),
            None => self.tags_as_traceql()?,
        };
        let program = Program::new(&text).map_err(|error: TraceqlError| ApiError::invalid(error.render(&text)))?;
        Ok(Arc::new(program))
    }

    /// A search by tags: traces that have each of them on some span, and lasted as long as is said.
    fn tags_as_traceql(&self) -> Result<String, ApiError> {
        let mut conditions = Vec::new();
        for (key, value) in logfmt_pairs(self.tags.as_deref().unwrap_or_default())? {
            conditions.push(tag_condition(&key, &value));
        }
        for (name, operator, text) in
            [("minDuration", ">=", &self.min_duration), ("maxDuration", "<=", &self.max_duration)]
        {
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
                let length = parse_duration(text)
                    .ok_or_else(|| ApiError::invalid(format!("{name}: {text:?} is not a length such as 100ms")))?;
                conditions.push(format!("traceDuration {operator} {}ns", length.as_nanos()));
            }
        }
        if conditions.is_empty() {
            return Ok("{ }".to_owned());
        }
        Ok(conditions.iter().map(|condition| format!("{{ {condition} }}")).collect::<Vec<_>>().join(" && "))
    }

    /// How many to give, if that is said.
    pub(super) fn given_limit(&self) -> Option<usize> {
        self.limit.filter(|limit| *limit > 0)
    }

    /// What to search for, besides the program.
    pub(super) fn search_query(&self) -> Result<SearchQuery, ApiError> {
        let (from, until) = self.range(None)?;
        let order = self.order.as_deref().filter(|order| !order.is_empty());
        let cursor = self.cursor.as_deref().filter(|cursor| !cursor.is_empty());
        Ok(SearchQuery {
            from,
            until,
            limit: bounded("limit", self.given_limit().unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?,
            spans_per_set: bounded(
                "spss",
                self.spss.filter(|spans| *spans > 0).unwrap_or(DEFAULT_SPANS_PER_SET),
                MAX_SPANS_PER_SET,
            )?,
            order: order.map_or(Ok(SearchOrder::Recent), str::parse)?,
            after: cursor.map(str::parse).transpose()?,
        })
    }
}

fn bounded(name: &str, given: usize, most: usize) -> Result<usize, ApiError> {
    if given > most {
        return Err(ApiError::invalid(format!("{name}: {given} is more than {most}, the most that is given at once")));
    }
    Ok(given)
}

/// What a span must satisfy to have a tag. Texts match if they contain the value, in capitals or not.
fn tag_condition(key: &str, value: &str) -> String {
    let pattern = format!("(?i).*{}.*", regex_escape(value));
    let field = match key {
        "name" => "name".to_owned(),
        "status" | "kind" => return format!("{key} = {value}"),
        key => format!(".\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    let contains = format!("{field} =~ {pattern:?}");
    // A tag has no type: a number or a truth value is meant as well as its text.
    let is_typed = value.parse::<f64>().is_ok_and(f64::is_finite) || ["true", "false"].contains(&value);
    let typed = format!("{field} = {value}");
    match is_typed && hotspan_traceql::parse(&format!("{{ {typed} }}")).is_ok() {
        true => format!("{typed} || {contains}"),
        false => contains,
    }
}

/// A pattern that matches just this text.
fn regex_escape(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == ' ' || !c.is_ascii();
    text.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// `key=value` and `key="quoted value"`, separated by spaces.
fn logfmt_pairs(text: &str) -> Result<Vec<(String, String)>, ApiError> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let not_a_pair = || ApiError::invalid(format!("tags: {rest:?} is not key=value"));
        let (key, after) = rest.split_once('=').filter(|(key, _)| !key.contains(' ')).ok_or_else(not_a_pair)?;
        let value;
        if let Some(quoted) = after.strip_prefix('"') {
            let mut text = String::new();
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next().ok_or_else(not_a_pair)? {
                    (at, '"') => break at,
                    (_, '\\') => text.push(characters.next().ok_or_else(not_a_pair)?.1),
                    (_, other) => text.push(other),
                }
            };
            value = text;
            rest = quoted[end + 1..].trim_start();
        } else {
            let end = after.find(' ').unwrap_or(after.len());
            value = after[..end].to_owned();
            rest = after[end..].trim_start();
        }
        pairs.push((key.to_owned(), value));
    }
    Ok(pairs)
}

#[expect(clippy::needless_pass_by_value, reason = "numbers are small")]
fn unless_zero<N: Default + PartialEq + ToString>(number: N) -> Option<String> {
    (number != N::default()).then(|| number.to_string())
}

fn count_unless_zero(number: u32) -> Option<usize> {
    (number > 0).then_some(number as usize)
}

impl From<SearchRequest> for Parameters {
    fn from(message: SearchRequest) -> Self {
        let quoted = message.tags.iter().map(|(key, value)| format!("{key}={value:?}"));
        let millis = |millis: u32| unless_zero(millis).map(|millis| format!("{millis}ms"));
        Self {
            tags: Some(quoted.collect::<Vec<_>>().join(" ")),
            q: Some(message.query),
            min_duration: millis(message.min_duration_ms),
            max_duration: millis(message.max_duration_ms),
            limit: count_unless_zero(message.limit),
            spss: count_unless_zero(message.spans_per_span_set),
            start: unless_zero(message.start),
            end: unless_zero(message.end),
            ..Self::default()
        }
    }
}

impl From<SearchTagsRequest> for Parameters {
    fn from(message: SearchTagsRequest) -> Self {
        Self {
            scope: Some(message.scope),
            q: Some(message.query),
            limit: count_unless_zero(message.max_tags_per_scope),
            start: unless_zero(message.start),
            end: unless_zero(message.end),
            ..Self::default()
        }
    }
}

impl From<SearchTagValuesRequest> for Parameters {
    fn from(message: SearchTagValuesRequest) -> Self {
        Self {
            q: Some(message.query),
            limit: count_unless_zero(message.max_tag_values),
            start: unless_zero(message.start),
            end: unless_zero(message.end),
            ..Self::default()
        }
    }
}

impl From<QueryRangeRequest> for Parameters {
    fn from(message: QueryRangeRequest) -> Self {
        Self {
            q: Some(message.query),
            start: unless_zero(message.start),
            end: unless_zero(message.end),
            step: unless_zero(message.step).map(|nanos| format!("{nanos}ns")),
            exemplars: count_unless_zero(message.exemplars),
            max_series: count_unless_zero(message.max_series),
            ..Self::default()
        }
    }
}

impl From<QueryInstantRequest> for Parameters {
    fn from(message: QueryInstantRequest) -> Self {
        Self {
            q: Some(message.query),
            start: unless_zero(message.start),
            end: unless_zero(message.end),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: tags as old clients send them. Guarantee: each becomes a condition of the right type, or an error.
    #[test]
    fn tags_become_conditions() {
        let of = |tags: &str| {
            let parameters = Parameters { tags: Some(tags.to_owned()), ..Parameters::default() };
            parameters.tags_as_traceql().map_err(|error| error.message)
        };
        assert_eq!(of("").unwrap(), "{ }");
        assert_eq!(of("service.name=shop").unwrap(), r#"{ ."service.name" =~ "(?i).*shop.*" }"#);
        assert_eq!(
            of(r#"name="GET /a \"b\"" http.status_code=500 status=error"#).unwrap(),
            r#"{ name =~ "(?i).*GET \\/a \\\"b\\\".*" } && { ."http.status_code" = 500 || ."http.status_code" =~ "(?i).*500.*" } && { status = error }"#
        );
        let lasting = Parameters { min_duration: Some("1.5s".to_owned()), ..Parameters::default() };
        assert_eq!(lasting.tags_as_traceql().unwrap(), "{ traceDuration >= 1500000000ns }");
        assert!(of("name").unwrap_err().contains("key=value"));
        assert!(of("name=\"open").is_err());
        for tags in ["a=1 b=x", "status=error kind=server", "x=true", r#"name="a.b*c(d[\"\\{" x=ü-1 y=+5 z=.5 name=7"#]
        {
            let parameters = Parameters { tags: Some(tags.to_owned()), ..Parameters::default() };
            assert!(parameters.program().is_ok(), "{tags}");
        }
    }
}
