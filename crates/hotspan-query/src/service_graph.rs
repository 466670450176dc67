//! The service graph of a time: who calls whom, how often, how long, how often in vain; from whole traces.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use hotspan_model::{Exactness, SpanId, SpanKind, StatusCode, TenantId};
use hotspan_traceql::{FieldId, FieldValue, Program, SpanSource, TraceSource};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::request_statistics::{PlotSteps, RequestGroups, RequestStatistics};
use crate::search::{gather, overlapping, reach_back, reach_on, slices};
use crate::span_metrics::{ConnectionType, EdgeSeries};

/// What a span must tell; the last ones name what a client called.
const FIELDS: &str = "{ } | select(kind, status, .peer.service, .db.name, .db.system.name, .db.system)";

/// The fields of [`FIELDS`].
struct Fields {
    kind: FieldId,
    status: FieldId,
    peers: Vec<(FieldId, ConnectionType)>,
}

impl Fields {
    fn of(program: &Program) -> Option<Self> {
        let find = |name: &str| program.fields().iter().find(|(_, field)| field.to_string() == name).map(|(id, _)| id);
        let peer = |(name, connection)| find(name).map(|id| (id, connection));
        let peers = [
            (".peer.service", ConnectionType::Virtual),
            (".db.name", ConnectionType::Database),
            (".db.system.name", ConnectionType::Database),
            (".db.system", ConnectionType::Database),
        ];
        Some(Self { kind: find("kind")?, status: find("status")?, peers: peers.into_iter().filter_map(peer).collect() })
    }
}

/// Who calls whom.
#[derive(Debug, Clone)]
pub struct ServiceGraph {
    /// The steps that all statistics have.
    pub steps: PlotSteps,
    /// Calls by caller and called.
    pub edges: BTreeMap<EdgeSeries, RequestStatistics>,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

impl Engine {
    /// The edges of requests that start in `from..until`.
    pub async fn service_graph(&self, tenant: &TenantId, from: i64, until: i64) -> Result<ServiceGraph> {
        let program = Program::new(FIELDS).map_err(|error| QueryError::Invalid(error.to_string()))?;
        let Some(fields) = Fields::of(&program) else {
            let (steps, exactness) = (PlotSteps::of(from, until), Exactness::default());
            return Ok(ServiceGraph { steps, edges: BTreeMap::new(), exactness });
        };
        let mut edges: HashMap<EdgeSeries, usize> = HashMap::new();
        let mut groups = RequestGroups::new(from, until);
        let mut spans = 0;
        let snapshot = self.snapshot();
        let segments = overlapping(&snapshot, tenant, reach_back(from), reach_on(until));
        for slice in slices(&segments) {
            let Some(mut gathered) = gather(self.lake(), &segments, slice, program.fields()).await? else { continue };
            for rows in std::mem::take(&mut gathered.traces) {
                gathered.spans.show(rows);
                spans += gathered.spans.span_count() as u64;
                for_each_edge(&gathered.spans, &fields, |edge, span, failed| {
                    let start = gathered.spans.start_nanos(span);
                    if (from..until).contains(&start) {
                        let number = *edges.entry(edge).or_insert_with(|| groups.start_group());
                        groups.add(number, start, gathered.spans.duration_nanos(span), failed);
                    }
                });
            }
            tokio::task::yield_now().await;
        }
        let (steps, mut groups) = groups.finish();
        let edges = edges.into_iter().map(|(edge, number)| (edge, std::mem::take(&mut groups[number])));
        let exactness = self.exactness_of_search(tenant, (from, until), spans, None);
        Ok(ServiceGraph { steps, edges: edges.collect(), exactness })
    }
}

/// Calls `visit` with each edge of a trace, the span whose time it took, and whether it failed.
fn for_each_edge<S: TraceSource>(spans: &S, fields: &Fields, mut visit: impl FnMut(EdgeSeries, usize, bool)) {
    let by_id: HashMap<SpanId, usize> = (0..spans.span_count()).map(|span| (spans.span_id(span), span)).collect();
    let kind = |span: usize| match spans.value(span, fields.kind) {
        FieldValue::Kind(kind) => kind,
        _ => SpanKind::Unspecified,
    };
    let is_error = |span: usize| spans.value(span, fields.status) == FieldValue::Status(StatusCode::Error);
    let mut answered: HashSet<usize> = HashSet::new();
    for span in 0..spans.span_count() {
        let Some(parent) = spans.parent_id(span).and_then(|parent| by_id.get(&parent).copied()) else { continue };
        let (own, callers) = (kind(span), kind(parent));
        let answers = matches!(own, SpanKind::Server | SpanKind::Consumer);
        let calls = matches!(callers, SpanKind::Client | SpanKind::Producer);
        let same_service = spans.service_name(span) == spans.service_name(parent);
        // Instrumentation that sets no kinds still changes the service from caller to called.
        if (answers && calls) || !same_service {
            answered.insert(parent);
            let is_message = own == SpanKind::Consumer || callers == SpanKind::Producer;
            let edge = EdgeSeries {
                client: spans.service_name(parent).to_owned(),
                server: spans.service_name(span).to_owned(),
                connection: if is_message { ConnectionType::Messaging } else { ConnectionType::Call },
            };
            visit(edge, span, is_error(span) || (calls && is_error(parent)));
        }
    }
    for span in 0..spans.span_count() {
        if answered.contains(&span) || !matches!(kind(span), SpanKind::Client | SpanKind::Producer) {
            continue;
        }
        let named = fields.peers.iter().find_map(|(field, connection)| match spans.value(span, *field) {
            FieldValue::Str(name) => Some((name.to_owned(), *connection)),
            _ => None,
        });
        if let Some((server, connection)) = named {
            let edge = EdgeSeries { client: spans.service_name(span).to_owned(), server, connection };
            visit(edge, span, is_error(span));
        }
    }
}
