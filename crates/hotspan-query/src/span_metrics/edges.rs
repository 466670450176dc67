//! Who calls whom: a client's span and the server's span that it led to are an edge of the service graph.
//!
//! The two come in different requests, mostly seconds apart, so each waits for the other for a while.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, MapArray, RecordBatch};
use hashbrown::HashMap;
use hotspan_lake::arrays;
use hotspan_model::{SpanKind, StatusCode};

use super::Latency;
use crate::error::Result;

/// How the two sides are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectionType {
    /// A call between two services that both send spans.
    Call,
    /// A message between them.
    Messaging,
    /// A database that sends no spans.
    Database,
    /// Another side that sends no spans: a service that a client names, or whoever called from outside.
    Virtual,
}

impl ConnectionType {
    /// The value of the label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Call => "",
            Self::Messaging => "messaging_system",
            Self::Database => "database",
            Self::Virtual => "virtual_node",
        }
    }
}

/// What an edge is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeSeries {
    /// Who calls.
    pub client: String,
    /// Who is called.
    pub server: String,
    /// How.
    pub connection: ConnectionType,
}

/// What is counted of an edge.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edge {
    /// Requests that failed on either side.
    pub failed: u64,
    /// As the server saw them.
    pub server: Latency,
    /// As the client saw them.
    pub client: Latency,
}

/// The edges, and the sides that still wait for their other side.
#[derive(Debug, Clone, Default)]
pub struct EdgeCounts {
    /// By edge.
    pub series: HashMap<EdgeSeries, Edge>,
    /// Sides whose other side did not come, by service.
    pub unpaired: HashMap<String, u64>,
    /// Sides that were given up to make room (R4, R5).
    pub dropped: u64,
    waiting: HashMap<SideKey, Waiting>,
    arrivals: VecDeque<(Instant, SideKey)>,
}

/// Trace, and span id of the client's side.
type SideKey = ([u8; 16], [u8; 8]);

#[derive(Debug, Clone, Default)]
struct Waiting {
    client: Option<Side>,
    /// One client may lead to several servers; each of them is a request.
    servers: Vec<Side>,
    was_paired: bool,
}

#[derive(Debug, Clone)]
struct Side {
    service: String,
    duration: i64,
    failed: bool,
    is_message: bool,
    /// Who the client says it called, and whether that is a database.
    peer: Option<(String, ConnectionType)>,
}

/// How long a side waits. Senders batch for 5 s, and clients finish after their servers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most sides that wait at once.
const MAX_WAITING: usize = 100_000;
/// Most edges that are told apart.
const MAX_EDGES: usize = 10_000;
/// The client of a request from outside.
const OUTSIDE: &str = "user";

impl EdgeCounts {
    pub(super) fn fold(&mut self, batch: &RecordBatch, now: Instant) -> Result<()> {
        let trace_ids = arrays::ids(batch, "trace_id")?;
        let span_ids = arrays::ids(batch, "span_id")?;
        let parents = arrays::ids(batch, "parent_span_id")?;
        let durations = arrays::int64s(batch, "duration")?.values();
        let services = arrays::texts(batch, "service")?;
        let kinds = arrays::int8s(batch, "kind")?.values();
        let statuses = arrays::int8s(batch, "status")?.values();
        let attributes = arrays::maps(batch, "attributes")?;
        for row in 0..batch.num_rows() {
            let kind = SpanKind::from_number(i64::from(kinds[row]));
            let is_client = matches!(kind, SpanKind::Client | SpanKind::Producer);
            if !is_client && !matches!(kind, SpanKind::Server | SpanKind::Consumer) {
                continue;
            }
            let side = Side {
                service: services.get(row).to_owned(),
                duration: durations[row],
                failed: statuses[row] == StatusCode::Error as i8,
                is_message: matches!(kind, SpanKind::Producer | SpanKind::Consumer),
                peer: if is_client { named_peer(attributes, row) } else { None },
            };
            let trace_id: [u8; 16] = arrays::id_at(trace_ids, row);
            if is_client {
                self.meet((trace_id, arrays::id_at(span_ids, row)), Some(side), None, now);
            } else if parents.is_valid(row) {
                self.meet((trace_id, arrays::id_at(parents, row)), None, Some(side), now);
            } else {
                self.count(OUTSIDE.to_owned(), None, Some(&side), ConnectionType::Virtual);
            }
        }
        self.give_up_waiting(now);
        Ok(())
    }

    fn meet(&mut self, key: SideKey, client: Option<Side>, server: Option<Side>, now: Instant) {
        let entry = self.waiting.entry(key).or_insert_with(|| {
            self.arrivals.push_back((now, key));
            Waiting::default()
        });
        entry.client = client.or_else(|| entry.client.take());
        entry.servers.extend(server);
        let Some(client) = entry.client.as_ref().filter(|_| !entry.servers.is_empty()).cloned() else { return };
        let servers = std::mem::take(&mut entry.servers);
        entry.was_paired |= !servers.is_empty();
        for server in servers {
            let connection =
                if client.is_message || server.is_message { ConnectionType::Messaging } else { ConnectionType::Call };
            self.count(client.service.clone(), Some(&client), Some(&server), connection);
        }
    }

    fn count(&mut self, client: String, client_side: Option<&Side>, server: Option<&Side>, connection: ConnectionType) {
        let server_name = match (server, client_side.and_then(|side| side.peer.as_ref())) {
            (Some(server), _) => server.service.clone(),
            (None, Some((peer, _))) => peer.clone(),
            (None, None) => return,
        };
        let key = EdgeSeries { client, server: server_name, connection };
        if self.series.len() >= MAX_EDGES && !self.series.contains_key(&key) {
            self.dropped += 1;
            return;
        }
        let edge = self.series.entry(key).or_default();
        edge.failed += u64::from(client_side.is_some_and(|side| side.failed) || server.is_some_and(|side| side.failed));
        // Where one side is missing, the other's time is all there is.
        let of = |side: Option<&Side>, other: Option<&Side>| side.or(other).map_or(0, |side| side.duration);
        edge.server.add(of(server, client_side));
        edge.client.add(of(client_side, server));
    }

    /// Counts the sides that have waited long enough: as edges to what they name, or as unpaired.
    pub(super) fn give_up_waiting(&mut self, now: Instant) {
        while let Some((arrived, key)) = self.arrivals.front().copied() {
            let is_crowded = self.arrivals.len() > MAX_WAITING;
            if !is_crowded && now.duration_since(arrived) < PATIENCE {
                break;
            }
            self.arrivals.pop_front();
            let Some(waiting) = self.waiting.remove(&key) else { continue };
            self.dropped += u64::from(is_crowded && !waiting.was_paired);
            for server in waiting.servers {
                *self.unpaired.entry(server.service).or_default() += 1;
            }
            if let Some(client) = waiting.client.filter(|_| !waiting.was_paired) {
                match client.peer.clone() {
                    Some((_, connection)) => self.count(client.service.clone(), Some(&client), None, connection),
                    None => *self.unpaired.entry(client.service).or_default() += 1,
                }
            }
        }
    }

    /// Without what waits.
    pub(super) fn counted(&self) -> Self {
        Self { series: self.series.clone(), unpaired: self.unpaired.clone(), dropped: self.dropped, ..Self::default() }
    }
}

/// Who a client's span says it called.
fn named_peer(attributes: &MapArray, row: usize) -> Option<(String, ConnectionType)> {
    const NAMES: [(&str, ConnectionType); 4] = [
        ("peer.service", ConnectionType::Virtual),
        ("db.name", ConnectionType::Database),
        ("db.system.name", ConnectionType::Database),
        ("db.system", ConnectionType::Database),
    ];
    let (keys, values) = (attributes.keys().as_string::<i32>(), attributes.values().as_string::<i32>());
    let entries = attributes.value_offsets()[row] as usize..attributes.value_offsets()[row + 1] as usize;
    NAMES.iter().find_map(|(name, connection)| {
        let at = entries.clone().find(|entry| keys.value(*entry) == *name)?;
        Some((values.value(at).to_owned(), *connection))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(service: &str, millis: i64, peer: Option<&str>) -> Side {
        Side {
            service: service.to_owned(),
            duration: millis * 1_000_000,
            failed: millis > 100,
            is_message: false,
            peer: peer.map(|peer| (peer.to_owned(), ConnectionType::Database)),
        }
    }

    /// Scenario: sides that come in either order, one client with two servers, a database, and a lonely server.
    /// Guarantee: every request is counted once, on the right edge, and the lonely one is told.
    #[test]
    fn sides_meet_in_any_order() {
        let mut edges = EdgeCounts::default();
        let now = Instant::now();
        let key = |number: u8| ([number; 16], [number; 8]);
        edges.meet(key(1), Some(side("front", 20, None)), None, now);
        edges.meet(key(1), None, Some(side("cart", 10, None)), now);
        edges.meet(key(2), None, Some(side("cart", 200, None)), now);
        edges.meet(key(2), Some(side("front", 210, None)), None, now);
        edges.meet(key(1), None, Some(side("cart", 5, None)), now);
        edges.meet(key(3), Some(side("cart", 3, Some("postgres"))), None, now);
        edges.meet(key(4), None, Some(side("alone", 3, None)), now);
        edges.give_up_waiting(now + PATIENCE);
        let edge = |client: &str, server: &str, connection| {
            let key = EdgeSeries { client: client.to_owned(), server: server.to_owned(), connection };
            edges.series.get(&key).map(|edge| (edge.server.count, edge.failed))
        };
        assert_eq!(edge("front", "cart", ConnectionType::Call), Some((3, 1)));
        assert_eq!(edge("cart", "postgres", ConnectionType::Database), Some((1, 0)));
        assert_eq!(edges.series.len(), 2);
        assert_eq!(edges.unpaired.get("alone"), Some(&1));
        assert!(edges.waiting.is_empty() && edges.arrivals.is_empty());
    }
}
