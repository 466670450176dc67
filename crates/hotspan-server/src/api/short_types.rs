//! Short names of types held against what is stored: sources call the same thing by different names, and some declare
//! types that nobody else has.

use hotspan_model::labels::{PROFILE_TYPE, SERVICE_NAME};
use hotspan_model::{ProfileType, TenantId};
use hotspan_query::{FlameQuery, Matcher, Selector};

use super::ApiError;
use crate::app::Core;

/// Settles what a written query is about: `shop.live` names a type if a source of `shop` declares one, and a service if
/// one is called so.
pub(crate) async fn settle_query(
    core: &Core,
    tenant: &TenantId,
    text: &str,
    query: &mut FlameQuery,
) -> Result<(), ApiError> {
    let name = text[..text.find('{').unwrap_or(text.len())].trim();
    if name.is_empty() || name.contains(':') {
        return Ok(());
    }
    let (service, short) = name.rsplit_once('.').map_or((None, name), |(service, short)| (Some(service), short));
    if short.parse::<ProfileType>().is_ok() {
        return settle_known(core, tenant, short, query).await;
    }
    // Until here it is the name of a service.
    let called_so = label_values(core, tenant, SERVICE_NAME, &query.selector, query).await?;
    if !called_so.is_empty() {
        return Ok(());
    }
    let is_service = |matcher: &Matcher| matcher.name == SERVICE_NAME && matcher.equal_value() == Some(name);
    let mut selector = query.selector.clone();
    selector.matchers.retain(|matcher| !is_service(matcher));
    if let Some(service) = service {
        selector = selector.and(Matcher::equal(SERVICE_NAME, service));
    }
    if let Some(declared) = declared_type(core, tenant, short, &selector, query).await? {
        (query.selector, query.profile_type) = (selector, declared);
    }
    Ok(())
}

/// Settles the type that a parameter names: five parts, a short name, or what a source that is asked about declares.
pub(crate) async fn settle_type(
    core: &Core,
    tenant: &TenantId,
    text: &str,
    query: &mut FlameQuery,
) -> Result<(), ApiError> {
    query.any_period = !text.contains(':');
    let wrong = match text.parse() {
        Ok(known) => {
            query.profile_type = known;
            return settle_known(core, tenant, text, query).await;
        }
        Err(error) => ApiError::invalid(format!("type: {error}")),
    };
    if text.contains(':') {
        return Err(wrong);
    }
    query.profile_type = declared_type(core, tenant, text, &query.selector, query).await?.ok_or(wrong)?;
    Ok(())
}

/// A short name that is known may stand for types that some sources call differently: the first that is stored counts.
async fn settle_known(core: &Core, tenant: &TenantId, short: &str, query: &mut FlameQuery) -> Result<(), ApiError> {
    let others: Vec<ProfileType> = ProfileType::also_called(short).collect();
    if others.is_empty() {
        return Ok(());
    }
    let stored = label_values(core, tenant, PROFILE_TYPE, &query.selector, query).await?;
    let is_stored = |kind: &&ProfileType| stored.iter().any(|stored| stored.starts_with(&kind.measured()));
    let first = std::iter::once(&query.profile_type).chain(&others).find(is_stored);
    if let Some(first) = first.cloned() {
        query.profile_type = first;
    } else if let Some(declared) = declared_as(short, &stored)? {
        query.profile_type = declared;
    }
    Ok(())
}

/// The type that the sources of a selection declare under this name; it must be one.
async fn declared_type(
    core: &Core,
    tenant: &TenantId,
    short: &str,
    selector: &Selector,
    query: &FlameQuery,
) -> Result<Option<ProfileType>, ApiError> {
    declared_as(short, &label_values(core, tenant, PROFILE_TYPE, selector, query).await?)
}

/// The type among stored ones that is called so, by what it counts or else by its whole profile, of which the time is meant.
fn declared_as(short: &str, stored: &[String]) -> Result<Option<ProfileType>, ApiError> {
    let all: Vec<ProfileType> = stored.iter().filter_map(|text| text.parse().ok()).collect();
    let of = |is_meant: &dyn Fn(&ProfileType) -> bool| all.iter().filter(|kind| is_meant(kind)).cloned().collect();
    let ways: [Vec<ProfileType>; 3] = [
        of(&|kind| kind.sample_type == short),
        of(&|kind| kind.name == short && kind.is_time()),
        of(&|kind| kind.name == short),
    ];
    let mut declared = ways.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    // They are sorted, so that those which differ in their period alone are neighbours.
    declared.dedup_by_key(|kind| kind.measured());
    match declared.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => {
            let several = several.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
            Err(ApiError::invalid(format!("{short:?} may be {several}; write all five parts")))
        }
    }
}

async fn label_values(
    core: &Core,
    tenant: &TenantId,
    label: &str,
    selector: &Selector,
    query: &FlameQuery,
) -> Result<Vec<String>, ApiError> {
    let any_of = std::slice::from_ref(selector);
    Ok(core.engine.label_values(tenant, label, any_of, query.from, query.until).await?.answer)
}
