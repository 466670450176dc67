//! What a person is told whose question no sample answers: what was asked for, and when or of what there are some instead.

use std::collections::BTreeSet;

use hotspan_lake::table::HOUR;
use hotspan_model::labels::{PROFILE_TYPE, SERVICE_NAME};
use hotspan_model::{ProfileType, TenantId};
use hotspan_query::{FlameQuery, Matcher, SampleRow, Selector};

use super::ApiError;
use crate::app::Core;
use crate::time_text::time_as_text;

/// Samples of what is named that are looked at.
const LOOKED_AT: usize = 1000;
/// Names that are listed at most.
const LISTED: usize = 20;

/// Whose samples were asked for, as a selector says it.
pub(super) fn asked_for(query: &FlameQuery) -> String {
    let FlameQuery { selector, spans, traces, .. } = query;
    let labels = selector.matchers.iter().map(ToString::to_string);
    let ids = spans.iter().map(|span| format!("span_id=\"{span}\""));
    let ids = ids.chain(traces.iter().map(|trace| format!("trace_id=\"{trace}\"")));
    format!("{{{}}}", labels.chain(ids).collect::<Vec<_>>().join(", "))
}

/// A text for a terminal.
pub(crate) async fn no_samples(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<String, ApiError> {
    let FlameQuery { profile_type, from, until, .. } = query;
    let when = if (*from, *until) == (0, i64::MAX) { "" } else { " in this time" };
    let mut text = format!("no samples of {profile_type} match {}{when}\n", asked_for(query));
    if let Some(said) = other_times(core, tenant, query).await? {
        text.push_str(&said);
        return Ok(text);
    }
    if let Some(said) = whose_ids_they_are(core, tenant, query).await? {
        text.push_str(&said);
        return Ok(text);
    }
    if let Some(said) = values_instead(core, tenant, query).await? {
        text.push_str(&said);
        return Ok(text);
    }
    if let Some(said) = types_of_service(core, tenant, query).await? {
        text.push_str(&said);
        return Ok(text);
    }
    let services = core.engine.label_values(tenant, SERVICE_NAME, &[typed(profile_type)], *from, *until).await?.answer;
    if !services.is_empty() {
        text.push_str(&format!("services that have some: {}\n", listed(&services)));
        return Ok(text);
    }
    match core.engine.profile_types(tenant, *from, *until).await?.answer {
        types if types.is_empty() => text.push_str(&when_at_all(core, tenant).await?),
        types => text.push_str(&format!("types that there are: {}\n", listed(&types))),
    }
    Ok(text)
}

/// When there are samples of the very thing that was asked for. Spans and traces are looked for whenever they ran in any case.
async fn other_times(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<Option<String>, ApiError> {
    if names_ids(query) {
        return Ok(None);
    }
    let times = core.engine.sample_times(tenant, &query.typed_selector()).await?.answer;
    let is_outside = |(first, last): &(i64, i64)| *first < query.from || *last >= query.until;
    Ok(times.filter(is_outside).map(|times| format!("there are some {}\n", between(times))))
}

fn names_ids(query: &FlameQuery) -> bool {
    !query.spans.is_empty() || !query.traces.is_empty() || query.owners.is_some()
}

async fn when_at_all(core: &Core, tenant: &TenantId) -> Result<String, ApiError> {
    let times = core.engine.sample_times(tenant, &Selector::default()).await?.answer;
    Ok(times.map_or_else(
        || "there are no profiles at all\n".to_owned(),
        |times| format!("there are profiles {}\n", between(times)),
    ))
}

/// A range of time, and how to ask for its end, which is what most people mean.
fn between((first, last): (i64, i64)) -> String {
    let [first_text, last_text] = [first, last].map(time_as_text);
    let range =
        if first_text == last_text { format!("at {first_text}") } else { format!("from {first_text} to {last_text}") };
    let from = time_as_text(first.max(last.saturating_sub(HOUR)));
    format!("{range}: ask with --from {from}")
}

/// What the spans and traces that are named have samples of, or the trace of a span that has none.
async fn whose_ids_they_are(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<Option<String>, ApiError> {
    let (spans, traces, owners) = (query.spans.clone(), query.traces.clone(), query.owners.clone());
    let named = FlameQuery { spans, traces, owners, ..FlameQuery::default() };
    let elsewhere = services_of_ids(core, tenant, &named).await?;
    if !elsewhere.is_empty() {
        return Ok(Some(format!("what is named has samples of: {}\n", listed(&elsewhere))));
    }
    if !query.spans.is_empty() && !query.traces.is_empty() {
        let whole_trace = FlameQuery { traces: query.traces.clone(), ..FlameQuery::default() };
        let of_trace = services_of_ids(core, tenant, &whole_trace).await?;
        if !of_trace.is_empty() {
            let of_trace = listed(&of_trace);
            return Ok(Some(format!(
                "other spans of the trace have samples of: {of_trace}; they count without span_id\n"
            )));
        }
    }
    // No other service, type or time would help.
    Ok(names_ids(query).then(|| "no sample of any type names it\n".to_owned()))
}

/// Services and types of the samples of spans and traces, whenever they were taken.
async fn services_of_ids(core: &Core, tenant: &TenantId, named: &FlameQuery) -> Result<Vec<String>, ApiError> {
    let whenever = FlameQuery { from: 0, until: i64::MAX, ..named.clone() };
    let page = core.engine.samples(tenant, &whenever, 0, LOOKED_AT).await?;
    let label = |sample: &SampleRow, name| sample.labels.get(name).unwrap_or_default().to_owned();
    let named = |sample| format!("{} ({})", label(sample, SERVICE_NAME), label(sample, PROFILE_TYPE));
    Ok(page.rows.iter().map(named).collect::<BTreeSet<String>>().into_iter().collect())
}

/// The values of a label that alone keeps all else from being found: a commit that never ran, or one that is misspelt. If it is
/// the label that is misspelt, the labels that there are.
async fn values_instead(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<Option<String>, ApiError> {
    if names_ids(query) {
        return Ok(None);
    }
    let is_other = |(_, matcher): &(usize, &Matcher)| matcher.name != SERVICE_NAME;
    for (place, matcher) in query.selector.matchers.iter().enumerate().filter(is_other) {
        let mut others = query.typed_selector();
        others.matchers.remove(place);
        let (any_of, label, from, until) = (&[others], &matcher.name, query.from, query.until);
        let values = core.engine.label_values(tenant, label, any_of, from, until).await?.answer;
        if !values.is_empty() {
            return Ok(Some(format!("values of {label} that there are: {}\n", listed(&values))));
        }
        let mut labels = core.engine.label_names(tenant, any_of, from, until).await?.answer;
        labels.retain(|name| !name.starts_with("__"));
        if !labels.is_empty() {
            return Ok(Some(format!("none has a label {label}; labels that there are: {}\n", listed(&labels))));
        }
    }
    Ok(None)
}

/// What the service that is named has instead; also if what is named is a service and a type that it has not.
async fn types_of_service(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<Option<String>, ApiError> {
    let named = query.selector.matchers.iter().filter(|matcher| matcher.name == SERVICE_NAME);
    let Some(name) = named.filter_map(Matcher::equal_value).next_back() else { return Ok(None) };
    let service_before = name.rsplit_once('.').map(|(service, _)| service);
    for service in std::iter::once(name).chain(service_before) {
        let selector = Selector::default().and(Matcher::equal(SERVICE_NAME, service));
        let types = core.engine.label_values(tenant, PROFILE_TYPE, &[selector], query.from, query.until).await?.answer;
        if !types.is_empty() {
            return Ok(Some(format!("types that there are of {service}: {}\n", listed(&types))));
        }
    }
    Ok(None)
}

fn typed(profile_type: &ProfileType) -> Selector {
    let measured = FlameQuery { profile_type: profile_type.clone(), any_period: true, ..FlameQuery::default() };
    measured.typed_selector()
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
