//! How long, and for how many requests, the profiles of a question were taken: what makes two of them comparable.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::arrays;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::selector::Selector;
use hotspan_model::{Exactness, TenantId};
use hotspan_traceql::{MetricsLimits, Program, TimeGrid};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::flame::FlameQuery;
use crate::scan::{Grain, Scan, ScannedRows};
use crate::taken_profiles::ProfileKey;

/// What sums are divided by, and what that rests on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Units {
    /// Seconds, profiles or requests.
    pub count: f64,
    /// What was counted.
    pub exactness: Exactness,
}

impl Engine {
    /// How many profiles there are behind a question, with those that have no sample of it.
    pub async fn profile_count(&self, tenant: &TenantId, query: &FlameQuery) -> Result<Units> {
        let (profiles, exactness) = self.profiles_behind(tenant, query).await?;
        Ok(Units { count: profiles.len() as f64, exactness })
    }

    /// Seconds that the profiles behind a question cover together: those of two instances in one minute are 120.
    pub async fn profile_seconds(&self, tenant: &TenantId, query: &FlameQuery) -> Result<Units> {
        let (profiles, exactness) = self.profiles_behind(tenant, query).await?;
        let nanos: i128 = profiles.values().map(|duration| i128::from(*duration)).sum();
        Ok(Units { count: nanos as f64 / 1e9, exactness })
    }

    /// The profiles that were taken for a question, how long each took, and what that rests on.
    async fn profiles_behind(
        &self,
        tenant: &TenantId,
        query: &FlameQuery,
    ) -> Result<(HashMap<ProfileKey, i64>, Exactness)> {
        let snapshot = self.snapshot();
        let series = self.series_ids(tenant, &snapshot, query).await?;
        let named: HashSet<ProfileKey> = query.profiles.iter().map(|profile| profile.0).collect();
        let mut sampled = HashSet::new();
        let range = (query.from, query.until);
        let scan = Scan { range, series: &series, grain: Grain::Sample, columns: &["profile_id"] };
        let mut each = |rows: &ScannedRows<'_>| {
            let ids = arrays::ids(rows.batch, "profile_id")?;
            let rows = rows.runs.iter().flat_map(|(_, run)| run.clone());
            let ids = rows.map(|row| arrays::id_at::<16>(ids, row));
            sampled.extend(ids.filter(|id| named.is_empty() || named.contains(id)));
            Ok(())
        };
        let exactness = self.scan(tenant, &snapshot, &scan, &mut each).await?;
        let taken = self.taken_profiles(tenant, &snapshot, query).await?;
        Ok((taken.behind(sampled), exactness))
    }

    /// Requests that the services of a question answered in its time: spans of servers and consumers whose
    /// attributes fit the selector, or the spans that the question names.
    pub async fn requests(&self, tenant: &TenantId, query: &FlameQuery) -> Result<Units> {
        if !query.spans.is_empty() || !query.traces.is_empty() {
            let count = query.spans.len().max(query.traces.len());
            let exactness = Exactness { spans: count as u64, ..Exactness::default() };
            return Ok(Units { count: count as f64, exactness });
        }
        let text = requests_query(&query.selector);
        let wrong = |error: String| QueryError::Invalid(format!("requests can't be counted with {text}: {error}"));
        let program = Program::new(&text).map_err(|error| wrong(error.to_string()))?;
        let grid = TimeGrid::instant(query.from, query.until).map_err(|error| wrong(error.to_string()))?;
        let range = (query.from, query.until);
        let run = self.start_metrics(tenant, &Arc::new(program), grid, range, MetricsLimits::default())?;
        let answer = run.into_answer().await?;
        let values = answer.series.iter().flat_map(|series| &series.points).map(|point| point.value);
        Ok(Units { count: values.filter(|value| value.is_finite()).sum(), exactness: answer.exactness })
    }
}

/// The same labels as attributes of spans.
fn requests_query(selector: &Selector) -> String {
    let mut text = String::from("{ (kind = server || kind = consumer)");
    for matcher in &selector.matchers {
        let name = match matcher.name.as_str() {
            SERVICE_NAME | "service.name" => "resource.service.name".to_owned(),
            name if name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) => format!(".{name}"),
            name => format!(".\"{}\"", name.replace('\\', r"\\").replace('"', r#"\""#)),
        };
        text.push_str(&format!(" && {name}{}", matcher.condition()));
    }
    text.push_str(" } | count_over_time()");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: selectors with every operator and odd label names. Guarantee: TraceQL that compiles.
    #[test]
    fn selectors_become_traceql() {
        let selector =
            Selector::parse(r#"{service_name="shop", commit!="a\"b", "odd name"=~"x.*", k8s.pod!~"y"}"#).unwrap();
        let text = requests_query(&selector);
        assert!(text.contains(r#"resource.service.name="shop" && .commit!="a\"b" && ."odd name"=~"#), "{text}");
        Program::new(&text).unwrap();
        let odd = Selector::parse("{\"a\\n\\\"\\\\\"=\"\\n\r\u{7f}\", b=~`1\\d`}").unwrap();
        Program::new(&requests_query(&odd)).unwrap();
    }
}
