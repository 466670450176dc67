//! Questions about profiles as people write them: `order-service.cpu{span_id="…", region="eu"}`, and `topk(10, …)` around
//! them.

use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Matcher, ProfileType, Selector, SelectorError, SpanId, TraceId};

use crate::span_identity::{Identity, IdentityLabel, classify};

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileQuery {
    /// What is measured.
    pub profile_type: ProfileType,
    /// Whether it does not matter what triggered a sample, which no short name says.
    pub any_period: bool,
    /// Labels of the profiles.
    pub selector: Selector,
    /// Only samples of these, if there are any.
    pub ids: SampleIds,
}

/// Spans and traces that samples are asked for by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleIds {
    /// Spans.
    pub spans: Vec<SpanId>,
    /// Traces.
    pub traces: Vec<TraceId>,
}

/// What is wrong with a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProfileQueryError(String);

impl From<SelectorError> for ProfileQueryError {
    fn from(error: SelectorError) -> Self {
        Self(error.to_string())
    }
}

type Result<T> = std::result::Result<T, ProfileQueryError>;

impl ProfileQuery {
    /// Reads `<type>{matchers}`, where the type is a five-part id, a short name, or `service.short-name`.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim().is_empty() {
            return Err(ProfileQueryError("the query is empty; {} selects everything".to_owned()));
        }
        let (name, matchers) = text.split_at(text.find('{').unwrap_or(text.len()));
        let name = name.trim();
        // What looks like a function or a condition is no service that happens to be called so.
        if let Some(found) = name.chars().find(|c| "()}\",=".contains(*c)) {
            let lost = if "=\"".contains(found) && matchers.is_empty() {
                "; if there were braces, they were taken by curl, which leaves them alone with --globoff (-g)"
            } else {
                ""
            };
            return Err(ProfileQueryError(format!(
                "{found:?} can't stand in {name:?}: write service.type{{label=\"value\"}}, or topk(10, …) around it; \
                 a service with such a name is written {{service_name=\"…\"}}{lost}"
            )));
        }
        let mut selector = parse_selector(matchers)?;
        let inside = if name.is_empty() { take_long_name(&mut selector) } else { None };
        let name = inside.as_deref().unwrap_or(name);
        let any_period = !name.contains(':');
        let (service, profile_type) = if any_period { short_name(name) } else { (None, long_name(name)?) };
        if let Some(service) = service {
            selector = selector.and(Matcher::equal(SERVICE_NAME, service));
        }
        let ids = SampleIds::take_from(&mut selector)?;
        Ok(Self { profile_type, any_period, selector, ids })
    }
}

/// The five-part id that stands in the braces as Prometheus writes a name there: `{__name__="a:b:c:d:e"}`.
fn take_long_name(selector: &mut Selector) -> Option<String> {
    let is_long = |matcher: &Matcher| {
        matcher.name == "__name__" && matcher.equal_value().is_some_and(|value| value.contains(':'))
    };
    let at = selector.matchers.iter().position(is_long)?;
    selector.matchers.remove(at).equal_value().map(str::to_owned)
}

fn long_name(name: &str) -> Result<ProfileType> {
    name.parse().map_err(|error: hotspan_model::profile_type::ProfileTypeError| ProfileQueryError(error.to_string()))
}

/// The service, if the name has one, and the type; a name that is no type is a service, and the question about its CPU
/// time.
fn short_name(name: &str) -> (Option<&str>, ProfileType) {
    if name.is_empty() {
        return (None, ProfileType::cpu());
    }
    let with_service = name.rsplit_once('.').and_then(|(service, short)| Some((service, short.parse().ok()?)));
    match (with_service, name.parse()) {
        (Some((service, profile_type)), _) => (Some(service), profile_type),
        (None, Ok(profile_type)) => (None, profile_type),
        (None, Err(_)) => (Some(name), ProfileType::cpu()),
    }
}

/// A selector; an empty text selects everything.
pub fn parse_selector(text: &str) -> std::result::Result<Selector, SelectorError> {
    if text.trim().is_empty() { Ok(Selector::default()) } else { Selector::parse(text) }
}

impl SampleIds {
    /// Takes ids out of a selector and makes them what they are: `{span_id="…"}` never is a label.
    pub fn take_from(selector: &mut Selector) -> Result<Self> {
        let mut ids = Self::default();
        for matcher in std::mem::take(&mut selector.matchers) {
            let name = &matcher.name;
            match classify(name) {
                Some(IdentityLabel::Span | IdentityLabel::Trace) => {}
                Some(IdentityLabel::LocalRoot) => {
                    return Err(ProfileQueryError(format!(
                        "{name}: samples are found by span and trace; those that name only a local root have it as \
                         span_id"
                    )));
                }
                _ => {
                    selector.matchers.push(matcher);
                    continue;
                }
            }
            let Some(value) = matcher.equal_value() else {
                return Err(ProfileQueryError(format!("{name} can only be compared with =")));
            };
            // As in the labels of a sample, some spellings are decimal.
            let mut identity = Identity::default();
            identity.take_text(name, value);
            if identity.span.is_none() && identity.trace.is_none() {
                return Err(ProfileQueryError(format!(
                    "{name}: {value:?} is not an id; samples that came with it have it as an attribute, which SQL finds"
                )));
            }
            ids.spans.extend(identity.span);
            ids.traces.extend(identity.trace);
        }
        Ok(ids)
    }
}

/// Takes `topk(10, query)` apart, in any case and with spaces wherever people write them.
pub fn top_query(text: &str) -> Result<(&str, Option<usize>)> {
    let trimmed = text.trim();
    let (word, rest) = trimmed.split_at(trimmed.find('(').unwrap_or(trimmed.len()));
    if !word.trim_end().eq_ignore_ascii_case("topk") || rest.is_empty() {
        return Ok((trimmed, None));
    }
    let wrong = || ProfileQueryError(format!("{trimmed:?} is not of the form topk(10, query)"));
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(wrong)?;
    let (count, query) = inner.split_once(',').ok_or_else(wrong)?;
    let count = count.trim().parse::<usize>().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
    Ok((query.trim(), Some(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ProfileQuery {
        ProfileQuery::parse(text).unwrap()
    }

    /// Scenario: queries as they stand in dashboards and runbooks.
    /// Guarantee: the type, the service and the span are found wherever they are written.
    #[test]
    fn queries() {
        let long = read(r#"process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="shop.eu"}"#);
        assert_eq!((&long.profile_type, long.selector.matchers.len()), (&ProfileType::cpu(), 1));
        let short = read(r#"order-service.wall{span_id="4D2", region=eu}"#);
        assert_eq!(short.profile_type.name, "wall");
        assert_eq!(short.ids.spans, ["00000000000004d2".parse().unwrap()]);
        let names: Vec<&str> = short.selector.matchers.iter().map(|matcher| matcher.name.as_str()).collect();
        assert_eq!(names, ["region", "service_name"]);
        assert!(short.any_period && !read("a:b:c:d:e{}").any_period);
        assert_eq!(read("shop.eu").selector.matchers[0].equal_value(), Some("shop.eu"));
        assert_eq!((read("wall{}").profile_type.name.as_str(), read("wall{}").selector.matchers.len()), ("wall", 0));
        assert_eq!(read("{}").profile_type, ProfileType::cpu());
        let inside = read(r#"{__name__="process_cpu:cpu:nanoseconds:cpu:nanoseconds", service_name="shop.eu"}"#);
        assert_eq!(inside, long);
        assert_eq!(read(r#"{__name__="process_cpu"}"#).selector.matchers.len(), 1, "a label that types have");
        for wrong in ["a:b{}", r#"{__name__="a:b"}"#, r#"cpu{span_id=~"a"}"#] {
            assert!(ProfileQuery::parse(wrong).is_err(), "{wrong}");
        }
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
            (r#"shop.cpuregion="eu""#, "--globoff"),
            (r#"shop{span_id=""}"#, "span_id: \"\" is not an id"),
            (r#"shop{trace_id="x y"}"#, "trace_id: \"x y\" is not an id"),
            (r#"shop{local_root_span_id="ab"}"#, "local_root_span_id: "),
        ] {
            let error = ProfileQuery::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
        for text in [r#"shop{dd.span_id="1234"}"#, r#"shop{"span id"="1234"}"#, r#"shop{span_id="4d2"}"#] {
            assert_eq!(read(text).ids.spans, ["00000000000004d2".parse().unwrap()], "{text}");
        }
        let trace = read(r#"shop{dd.trace_id="1234"}"#).ids.traces;
        assert_eq!(trace, ["000000000000000000000000000004d2".parse().unwrap()]);
    }

    /// Scenario: queries with and without `topk`. Guarantee: taken apart, or an error that says how it is written.
    #[test]
    fn topk() {
        assert_eq!(top_query(r#" topk(10, shop.cpu{a="b,c"}) "#), Ok((r#"shop.cpu{a="b,c"}"#, Some(10))));
        assert_eq!(top_query("shop.cpu"), Ok(("shop.cpu", None)));
        assert_eq!(top_query("TOPK ( 2 , topk.cpu )"), Ok(("topk.cpu", Some(2))));
        assert_eq!(top_query("topk.cpu{a=\"(\"}"), Ok(("topk.cpu{a=\"(\"}", None)));
        for wrong in ["topk(x, y)", "topk(0, y)", "topk(2, y", "topk(2)", "topk(2, y) by"] {
            assert!(top_query(wrong).is_err(), "{wrong}");
        }
    }
}
