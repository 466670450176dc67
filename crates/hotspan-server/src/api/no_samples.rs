//! What a person is told whose question no sample answers: what was asked for, and what there is instead.

use std::collections::BTreeSet;

use hotspan_model::labels::{PROFILE_TYPE, SERVICE_NAME};
use hotspan_model::{ProfileType, TenantId};
use hotspan_query::{FlameQuery, Matcher, SampleRow, Selector};

use super::ApiError;
use crate::app::Core;

/// Samples of what is named that are looked at.
const LOOKED_AT: usize = 1000;
/// Names that are listed at most.
const LISTED: usize = 20;

/// A text for a terminal.
pub(crate) async fn no_samples(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<String, ApiError> {
    let FlameQuery { profile_type, selector, from, until, spans, traces, .. } = query;
    let labels = selector.matchers.iter().map(ToString::to_string);
    let ids = spans.iter().map(|span| format!("span_id=\"{span}\""));
    let ids = ids.chain(traces.iter().map(|trace| format!("trace_id=\"{trace}\"")));
    let asked: Vec<String> = labels.chain(ids).collect();
    let mut text = format!("no samples of {profile_type} match {{{}}} in this time\n", asked.join(", "));
    let elsewhere = services_of_ids(core, tenant, query).await?;
    if !elsewhere.is_empty() {
        text.push_str(&format!("what is named has samples of: {}\n", listed(&elsewhere)));
        return Ok(text);
    }
    if let Some(said) = types_of_service(core, tenant, query).await? {
        text.push_str(&said);
        return Ok(text);
    }
    let services = core.engine.label_values(tenant, SERVICE_NAME, &typed(profile_type), *from, *until).await?;
    if !services.is_empty() {
        text.push_str(&format!("services that have some: {}\n", listed(&services)));
        return Ok(text);
    }
    match core.engine.profile_types(tenant, *from, *until).await? {
        types if types.is_empty() => text.push_str("there are no profiles at all; ask for more time?\n"),
        types => text.push_str(&format!("types that there are: {}\n", listed(&types))),
    }
    Ok(text)
}

/// Services and types that the spans and traces which are named have samples of, whatever else was asked for.
async fn services_of_ids(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<Vec<String>, ApiError> {
    let (spans, traces, owners) = (query.spans.clone(), query.traces.clone(), query.owners.clone());
    let whenever = FlameQuery { from: 0, until: i64::MAX, spans, traces, owners, ..FlameQuery::default() };
    let page = core.engine.samples(tenant, &whenever, 0, LOOKED_AT).await?;
    let label = |sample: &SampleRow, name| sample.labels.get(name).unwrap_or_default().to_owned();
    let named = |sample| format!("{} ({})", label(sample, SERVICE_NAME), label(sample, PROFILE_TYPE));
    Ok(page.rows.iter().map(named).collect::<BTreeSet<String>>().into_iter().collect())
}

/// What the service that is named has instead; also if what is named is a service and a type that it has not.
async fn types_of_service(core: &Core, tenant: &TenantId, query: &FlameQuery) -> Result<Option<String>, ApiError> {
    let named = query.selector.matchers.iter().filter(|matcher| matcher.name == SERVICE_NAME);
    let Some(name) = named.filter_map(Matcher::equal_value).next_back() else { return Ok(None) };
    let service_before = name.rsplit_once('.').map(|(service, _)| service);
    for service in std::iter::once(name).chain(service_before) {
        let selector = Selector::default().and(Matcher::equal(SERVICE_NAME, service));
        let types = core.engine.label_values(tenant, PROFILE_TYPE, &selector, query.from, query.until).await?;
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
