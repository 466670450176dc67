//! What does nothing was profiled all the same: profiles without samples count wherever profiles or their seconds do.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake};
use hotspan_model::{Frame, Labels, Profile, ProfileSet, ProfileType, Sample, TenantId};
use hotspan_query::{Engine, FlameQuery, Selector, StepValue, TimelineQuery};

const START: i64 = 472_222 * HOUR;
const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;

/// Ten profiles of ten seconds, one a minute, of each of three instances: `busy` has samples of an endpoint in its first two
/// and of another in its third, `idle` has none, and `other` is another service's.
async fn store(folder: &Path, tenant: &TenantId) -> Arc<Lake> {
    let lake = Lake::open(folder).await.unwrap();
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), options);
    for minute in 0..10 {
        let mut set = ProfileSet::default();
        let frame = set.paths.frame(Frame { function: "work".into(), ..Frame::default() });
        let path = set.paths.path(&[frame]);
        set.label_sets.push(Labels::from_pairs([("endpoint", "/cart")]));
        set.label_sets.push(Labels::from_pairs([("endpoint", "/pay")]));
        for (service, instance) in [("shop", "busy"), ("shop", "idle"), ("stock", "other")] {
            let time = START + minute * MINUTE;
            let labels = if minute == 2 { 2 } else { 1 };
            let sample = Sample { path, value: SECOND, time, timed: false, link: 0, thread: 0, labels, attributes: 0 };
            set.profiles.push(Profile {
                profile_type: ProfileType::cpu(),
                labels: Labels::from_pairs([("service_name", service), ("instance", instance)]),
                time,
                duration: 10 * SECOND,
                samples: if instance == "busy" && minute < 3 { vec![sample] } else { Vec::new() },
                ..Profile::default()
            });
        }
        // A retry brings nothing more.
        for _ in 0..2 {
            let mut rows = Rows::default();
            rows.profiles.push(&set, &ingest.known().of(tenant));
            ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
        }
    }
    lake
}

fn asked(selector: &str) -> FlameQuery {
    FlameQuery {
        profile_type: ProfileType::cpu(),
        selector: Selector::parse(selector).unwrap(),
        from: START,
        until: START + HOUR,
        ..FlameQuery::default()
    }
}

async fn measured(engine: &Engine, tenant: &TenantId, query: &FlameQuery) -> (f64, f64) {
    let count = engine.profile_count(tenant, query).await.unwrap().count;
    (count, engine.profile_seconds(tenant, query).await.unwrap().count)
}

/// Scenario: instances of which one is mostly and one always idle, asked for by labels that profiles have as a whole and by
/// labels that only samples have, before and after compaction.
/// Guarantee: each profile that was taken counts with its time, once, whether it has samples or not; labels leave out others.
#[tokio::test(flavor = "multi_thread")]
async fn idle_time_is_profiled_time() {
    let folder = tempfile::tempdir().unwrap();
    let tenant = TenantId::anonymous();
    let lake = store(folder.path(), &tenant).await;
    let engine = Engine::new(Arc::clone(&lake));
    for round in ["received", "merged"] {
        for (selector, profiles) in [
            (r#"{service_name="shop"}"#, 20.0),
            (r#"{service_name="shop", instance="busy"}"#, 10.0),
            (r#"{service_name="shop", instance!="busy"}"#, 10.0),
            (r#"{service_name="stock"}"#, 10.0),
            (r#"{endpoint="/cart"}"#, 10.0),
            (r#"{service_name="shop", endpoint=~"/.*"}"#, 10.0),
            (r#"{service_name="nobody"}"#, 0.0),
        ] {
            let found = measured(&engine, &tenant, &asked(selector)).await;
            assert_eq!(found, (profiles, 10.0 * profiles), "{selector} {round}");
        }
        let half = FlameQuery { until: START + 5 * MINUTE, ..asked(r#"{service_name="shop"}"#) };
        assert_eq!(measured(&engine, &tenant, &half).await, (10.0, 100.0), "{round}");
        let ten_minutes = TimelineQuery {
            samples: asked(r#"{service_name="shop"}"#),
            step: 15 * MINUTE,
            step_value: StepValue::MeanOfProfiles,
            ..TimelineQuery::default()
        };
        let means = engine.timelines(&tenant, &ten_minutes).await.unwrap().groups;
        assert_eq!(means[0].points, [(START + 15 * MINUTE, 3.0 * SECOND as f64 / 20.0)], "{round}");
        let by_endpoint = TimelineQuery { group_by: vec!["endpoint".to_owned()], ..ten_minutes };
        let means = engine.timelines(&tenant, &by_endpoint).await.unwrap().groups;
        let values: Vec<f64> = means.iter().map(|group| group.points[0].1 / SECOND as f64).collect();
        assert_eq!(values, [0.2, 0.1], "{round}");
        let anything = [Selector::default()];
        let list = engine.label_values(&tenant, "instance", &anything, START, START + HOUR).await.unwrap().answer;
        assert_eq!(list, ["busy"], "lists are of what has samples: {round}");
        let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
        compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
    }
}
