//! From the words of a request to a question: types, selectors, ids and times, each checked once, here.

use hotspan_formats::span_identity::{Identity, IdentityLabel, classify, parse_span_id, parse_trace_id};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{ProfileId, ProfileType, SpanId, TraceId};
use hotspan_query::{FlameQuery, Matcher, Selector};

use crate::api::ApiError;

/// Nodes of a flame graph where the asker does not say.
pub(super) const DEFAULT_NODES: usize = 8192;
const MOST_NODES: i64 = 1 << 20;
const HOUR: i64 = 3600 * 1_000_000_000;

/// A range of milliseconds, both ends included, in nanoseconds with the end excluded. Without either, the last hour.
pub(super) fn time_range(start: i64, end: i64) -> Result<(i64, i64), ApiError> {
    let nanos = |millis: i64| millis.saturating_mul(1_000_000);
    if start == 0 && end == 0 {
        let now = now_nanos();
        // What was just pushed carries the sender's clock, which may be a little ahead.
        return Ok((now.saturating_sub(HOUR), now.saturating_add(60 * 1_000_000_000)));
    }
    if start > end {
        return Err(ApiError::invalid(format!("start ({start}) must not be after end ({end})")));
    }
    Ok((nanos(start), nanos(end.saturating_add(1))))
}

/// How many nodes to keep, for every address that takes a number of them.
pub(in crate::api) fn max_nodes(asked: Option<i64>) -> Result<usize, ApiError> {
    match asked {
        None | Some(0) => Ok(DEFAULT_NODES),
        Some(nodes) if (1..=MOST_NODES).contains(&nodes) => Ok(nodes as usize),
        Some(nodes) => {
            Err(ApiError::invalid(format!("max_nodes is {nodes}; it may be 1 to {MOST_NODES}, or 0 for the default")))
        }
    }
}

/// A five-part id or a short name.
pub(super) fn profile_type(text: &str) -> Result<ProfileType, ApiError> {
    text.parse().map_err(|error: hotspan_model::profile_type::ProfileTypeError| ApiError::invalid(error.to_string()))
}

/// A selector; an empty text selects everything.
pub(super) fn selector(text: &str) -> Result<Selector, ApiError> {
    if text.trim().is_empty() { Ok(Selector::default()) } else { Ok(Selector::parse(text)?) }
}

/// Span ids as people and scripts write them.
pub(super) fn span_ids(texts: &[String]) -> Result<Vec<SpanId>, ApiError> {
    let id = |text: &String| {
        parse_span_id(text).ok_or_else(|| ApiError::invalid(format!("span id {text:?} is neither hex nor base64")))
    };
    // A dashboard's variable that is not set comes as an empty text.
    texts.iter().filter(|text| !text.is_empty()).map(id).collect()
}

/// Trace ids as people and scripts write them.
pub(super) fn trace_ids(texts: &[String]) -> Result<Vec<TraceId>, ApiError> {
    let id = |text: &String| {
        parse_trace_id(text).ok_or_else(|| ApiError::invalid(format!("trace id {text:?} is neither hex nor base64")))
    };
    texts.iter().filter(|text| !text.is_empty()).map(id).collect()
}

/// Profile ids: 32 hexadecimal digits, with or without the dashes of a UUID.
pub(super) fn profile_ids(texts: &[String]) -> Result<Vec<ProfileId>, ApiError> {
    let id = |text: &String| {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        digits.parse::<ProfileId>().map_err(|error| ApiError::invalid(error.to_string()))
    };
    texts.iter().filter(|text| !text.is_empty()).map(id).collect()
}

/// Takes ids out of the selector of a question and makes them what they are: `{span_id="…"}` never is a label.
pub(in crate::api) fn take_ids(query: &mut FlameQuery) -> Result<(), ApiError> {
    let matchers = std::mem::take(&mut query.selector.matchers);
    for matcher in matchers {
        let name = &matcher.name;
        match classify(name) {
            Some(IdentityLabel::Span | IdentityLabel::Trace) => {}
            Some(IdentityLabel::LocalRoot) => {
                return Err(ApiError::invalid(format!(
                    "{name}: samples are found by span and trace; those that name only a local root have it as span_id"
                )));
            }
            _ => {
                query.selector.matchers.push(matcher);
                continue;
            }
        }
        let Some(value) = matcher.equal_value() else {
            return Err(ApiError::invalid(format!("{name} can only be compared with =")));
        };
        // As in the labels of a sample, some spellings are decimal.
        let mut identity = Identity::default();
        identity.take_text(name, value);
        if identity.span.is_none() && identity.trace.is_none() {
            return Err(ApiError::invalid(format!("{name}: {value:?} is not an id")));
        }
        query.spans.extend(identity.span);
        query.traces.extend(identity.trace);
    }
    Ok(())
}

/// Reads `<type>{matchers}`, where the type is a five-part id, a short name, or `service.short-name`.
pub(super) fn written_query(text: &str) -> Result<FlameQuery, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::invalid("the query is empty; {} selects everything"));
    }
    let (name, rest) = text.split_at(text.find('{').unwrap_or(text.len()));
    let name = name.trim();
    // What looks like a function or a condition is no service that happens to be called so.
    if let Some(found) = name.chars().find(|c| "()}\",=".contains(*c)) {
        return Err(ApiError::invalid(format!(
            "{found:?} can't stand in {name:?}: write service.type{{label=\"value\"}}, or topk(10, …) around it; \
             a service with such a name is written {{service_name=\"…\"}}"
        )));
    }
    let mut query = FlameQuery { selector: selector(rest)?, ..FlameQuery::default() };
    let short = name.rsplit_once('.').and_then(|(service, short)| Some((service, short.parse::<ProfileType>().ok()?)));
    query.any_period = !name.contains(':');
    query.profile_type = match (name, short) {
        ("", _) => ProfileType::cpu(),
        (_, Some((service, profile_type))) if !name.contains(':') => {
            query.selector = query.selector.and(Matcher::equal(SERVICE_NAME, service));
            profile_type
        }
        _ => match name.parse() {
            Ok(profile_type) => profile_type,
            // A name that is no type is a service, and the question about its CPU time.
            Err(_) if !name.contains(':') => {
                query.selector = query.selector.and(Matcher::equal(SERVICE_NAME, name));
                ProfileType::cpu()
            }
            Err(error) => return Err(ApiError::invalid(error.to_string())),
        },
    };
    take_ids(&mut query)?;
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: queries as they stand in dashboards and runbooks.
    /// Guarantee: the type, the service and the span are found wherever they are written.
    #[test]
    fn written_queries() {
        let long = written_query(r#"process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="shop.eu"}"#).unwrap();
        assert_eq!((long.profile_type, long.selector.matchers.len()), (ProfileType::cpu(), 1));
        let short = written_query(r#"order-service.wall{span_id="4D2", region=eu}"#).unwrap();
        assert_eq!(short.profile_type.name, "wall");
        assert_eq!(short.spans, ["00000000000004d2".parse().unwrap()]);
        let names: Vec<&str> = short.selector.matchers.iter().map(|matcher| matcher.name.as_str()).collect();
        assert_eq!(names, ["region", "service_name"]);
        assert!(short.any_period && !written_query("a:b:c:d:e{}").unwrap().any_period);
        let service = written_query("shop.eu").unwrap();
        assert_eq!(service.selector.matchers[0].equal_value(), Some("shop.eu"));
        assert!(written_query("a:b{}").is_err() && written_query(r#"cpu{span_id=~"a"}"#).is_err());
    }

    /// Scenario: queries with functions that there are none of, conditions without braces, ids that are none, and ids in
    /// the decimal spellings in which samples bring them.
    /// Guarantee: the first are refused with what is wrong; the last find what the samples were stored under.
    #[test]
    fn wrong_queries_and_decimal_ids() {
        for (text, named) in [
            ("", "empty"),
            (" ", "empty"),
            ("rate(shop.cpu)", "'('"),
            ("sum(shop.cpu{a=b})", "'('"),
            ("shop.cpu) by (x", "')'"),
            ("topk 2, shop.cpu", "','"),
            ("shop.cpu, region=eu", "','"),
            (r#"shop{span_id=""}"#, "span_id: \"\" is not an id"),
            (r#"shop{trace_id="x y"}"#, "trace_id: \"x y\" is not an id"),
            (r#"shop{local_root_span_id="ab"}"#, "local_root_span_id: "),
        ] {
            let error = written_query(text).unwrap_err().message;
            assert!(error.contains(named), "{text}: {error}");
        }
        for text in [r#"shop{dd.span_id="1234"}"#, r#"shop{"span id"="1234"}"#, r#"shop{span_id="4d2"}"#] {
            assert_eq!(written_query(text).unwrap().spans, ["00000000000004d2".parse().unwrap()], "{text}");
        }
        let trace = written_query(r#"shop{dd.trace_id="1234"}"#).unwrap().traces;
        assert_eq!(trace, ["000000000000000000000000000004d2".parse().unwrap()]);
    }
}
