//! Brings the two sides of a call together: they come in different requests, mostly seconds apart, so each waits for the
//! other for a while. They hold numbers of names, not names, so that what waits stays small.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, RecordBatch};
use hashbrown::HashMap;
use hotspan_lake::arrays::{self, TextMap};
use hotspan_model::{SpanKind, StatusCode};

use super::edges::{ConnectionType, Edge, EdgeCounts, EdgeSeries};
use super::waiting::{SideKey, WaitingRow};
use crate::by_text::ByText;
use crate::error::Result;

/// How long a side waits. Senders batch for 5 s, and clients finish after their servers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most sides that wait at once.
const MAX_WAITING: usize = 100_000;
/// Most edges that are told apart.
const MAX_EDGES: usize = 10_000;
/// Most services and peers that are told apart.
const MAX_NAMES: usize = 20_000;
/// The client of a request from outside.
const OUTSIDE: &str = "user";

/// Counts edges, and keeps the sides that still wait for their other side.
#[derive(Debug, Default)]
pub(super) struct EdgeCounter {
    names: Names,
    edges: HashMap<(Name, Name, ConnectionType), Edge>,
    unpaired: HashMap<Name, u64>,
    dropped: u64,
    waiting: WaitingRow<Sides>,
}

/// The sides of a call that have come.
#[derive(Debug, Default)]
struct Sides {
    client: Option<Side>,
    /// One client may lead to several servers; each of them is a request. They stand here until it comes.
    server: Option<Side>,
    more_servers: Vec<Side>,
    was_paired: bool,
}

#[derive(Debug, Clone, Copy)]
struct Side {
    service: Name,
    duration: i64,
    failed: bool,
    is_message: bool,
    /// Who the client says it called, and whether that is a database.
    peer: Option<(Name, ConnectionType)>,
}

impl EdgeCounter {
    pub(super) fn fold(&mut self, batch: &RecordBatch, now: Instant) -> Result<()> {
        let trace_ids = arrays::ids(batch, "trace_id")?;
        let span_ids = arrays::ids(batch, "span_id")?;
        let parents = arrays::ids(batch, "parent_span_id")?;
        let durations = arrays::int64s(batch, "duration")?.values();
        let services = arrays::texts(batch, "service")?;
        let kinds = arrays::int8s(batch, "kind")?.values();
        let statuses = arrays::int8s(batch, "status")?.values();
        let peers = NamedPeers::of(arrays::maps(batch, "attributes")?);
        let mut numbers = ByText::new(services);
        for row in 0..batch.num_rows() {
            let kind = SpanKind::from_number(kinds[row]);
            let is_client = matches!(kind, SpanKind::Client | SpanKind::Producer);
            if !is_client && !matches!(kind, SpanKind::Server | SpanKind::Consumer) {
                continue;
            }
            let peer = if is_client { peers.get(row) } else { None };
            let service = numbers.get(row, |service| self.names.number(service));
            let Some((service, peer)) = service.and_then(|service| Some((service, self.names.of_peer(peer)?))) else {
                self.dropped += 1;
                continue;
            };
            let side = Side {
                service,
                duration: durations[row],
                failed: statuses[row] == StatusCode::Error.number(),
                is_message: matches!(kind, SpanKind::Producer | SpanKind::Consumer),
                peer,
            };
            let trace_id: [u8; 16] = arrays::id_at(trace_ids, row);
            if is_client {
                self.meet_servers((trace_id, arrays::id_at(span_ids, row)), side, now);
            } else if parents.is_valid(row) {
                self.meet_client((trace_id, arrays::id_at(parents, row)), side, now);
            } else if let Some(outside) = self.names.number(OUTSIDE) {
                self.count((outside, service, ConnectionType::Virtual), side.duration, side.duration, side.failed);
            } else {
                self.dropped += 1;
            }
        }
        self.give_up_waiting(now);
        Ok(())
    }

    /// A client's side: it meets the servers that wait for it.
    fn meet_servers(&mut self, key: SideKey, client: Side, now: Instant) {
        let sides = self.waiting.at(key, now);
        sides.client = Some(client);
        let (server, more_servers) = (sides.server.take(), std::mem::take(&mut sides.more_servers));
        sides.was_paired |= server.is_some();
        for server in server.iter().chain(&more_servers) {
            self.count_pair(&client, server);
        }
    }

    /// A server's side: it meets its client, or waits for it.
    fn meet_client(&mut self, key: SideKey, server: Side, now: Instant) {
        let sides = self.waiting.at(key, now);
        match sides.client {
            None if sides.server.is_none() => sides.server = Some(server),
            None => sides.more_servers.push(server),
            Some(client) => {
                sides.was_paired = true;
                self.count_pair(&client, &server);
            }
        }
    }

    fn count_pair(&mut self, client: &Side, server: &Side) {
        let is_message = client.is_message || server.is_message;
        let connection = if is_message { ConnectionType::Messaging } else { ConnectionType::Call };
        let key = (client.service, server.service, connection);
        self.count(key, client.duration, server.duration, client.failed || server.failed);
    }

    /// Where one side is missing, the other's time stands for both.
    fn count(&mut self, key: (Name, Name, ConnectionType), client_nanos: i64, server_nanos: i64, failed: bool) {
        if self.edges.len() >= MAX_EDGES && !self.edges.contains_key(&key) {
            self.dropped += 1;
            return;
        }
        let edge = self.edges.entry(key).or_default();
        edge.failed += u64::from(failed);
        edge.server.add(server_nanos);
        edge.client.add(client_nanos);
    }

    /// Counts the sides that have waited long enough: as edges to what they name, or as unpaired.
    pub(super) fn give_up_waiting(&mut self, now: Instant) {
        while let Some(arrived) = self.waiting.first_arrival() {
            let is_crowded = self.waiting.len() > MAX_WAITING;
            if !is_crowded && now.duration_since(arrived) < PATIENCE {
                break;
            }
            let Some(sides) = self.waiting.pop() else { break };
            self.dropped += u64::from(is_crowded && !sides.was_paired);
            for server in sides.server.iter().chain(&sides.more_servers) {
                *self.unpaired.entry(server.service).or_default() += 1;
            }
            if let Some(client) = sides.client.filter(|_| !sides.was_paired) {
                match client.peer {
                    Some((peer, connection)) => {
                        let key = (client.service, peer, connection);
                        self.count(key, client.duration, client.duration, client.failed);
                    }
                    None => *self.unpaired.entry(client.service).or_default() += 1,
                }
            }
        }
    }

    /// What is counted so far, without what waits.
    pub(super) fn counted(&self) -> EdgeCounts {
        let text = |name: &Name| self.names.text(*name).to_owned();
        let series = self.edges.iter().map(|((client, server, connection), edge)| {
            (EdgeSeries { client: text(client), server: text(server), connection: *connection }, edge.clone())
        });
        let unpaired = self.unpaired.iter().map(|(service, count)| (text(service), *count));
        EdgeCounts { series: series.collect(), unpaired: unpaired.collect(), dropped: self.dropped }
    }
}

/// The number of a name.
type Name = u32;

/// Names of services and peers, each kept once.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Arc<str>, Name>,
    texts: Vec<Arc<str>>,
}

impl Names {
    /// The number of a name; none if it is new and there is no more room (R5).
    fn number(&mut self, text: &str) -> Option<Name> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        if self.texts.len() >= MAX_NAMES {
            return None;
        }
        let (number, text) = (self.texts.len() as Name, Arc::<str>::from(text));
        self.numbers.insert(Arc::clone(&text), number);
        self.texts.push(text);
        Some(number)
    }

    /// A peer with the number of its name; nothing at all if there is no room for it.
    fn of_peer(&mut self, peer: Option<(&str, ConnectionType)>) -> Option<Option<(Name, ConnectionType)>> {
        match peer {
            Some((peer, connection)) => Some(Some((self.number(peer)?, connection))),
            None => Some(None),
        }
    }

    fn text(&self, name: Name) -> &str {
        &self.texts[name as usize]
    }
}

/// Whom the spans of a batch say that they called.
struct NamedPeers<'a> {
    attributes: TextMap<'a>,
    /// For each code of a key, its place in `NAMES`, or one past them. Empty if no key is there.
    places: Vec<usize>,
}

impl<'a> NamedPeers<'a> {
    /// The attributes that name a peer, the most telling first.
    const NAMES: [(&'static str, ConnectionType); 4] = [
        ("peer.service", ConnectionType::Virtual),
        ("db.name", ConnectionType::Database),
        ("db.system.name", ConnectionType::Database),
        ("db.system", ConnectionType::Database),
    ];

    fn of(attributes: TextMap<'a>) -> Self {
        let place = |key: Option<&str>| Self::NAMES.iter().position(|(name, _)| key == Some(name));
        let places: Vec<_> = attributes.distinct_keys().iter().map(place).collect();
        let has_any = places.iter().any(Option::is_some);
        let places = places.into_iter().map(|place| place.unwrap_or(Self::NAMES.len()));
        Self { attributes, places: if has_any { places.collect() } else { Vec::new() } }
    }

    fn get(&self, row: usize) -> Option<(&'a str, ConnectionType)> {
        if self.places.is_empty() {
            return None;
        }
        let entries = self.attributes.entries_of(row);
        let (place, entry) = entries.map(|entry| (self.places[self.attributes.code(entry)], entry)).min()?;
        Some((self.attributes.value(entry), Self::NAMES.get(place)?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(edges: &mut EdgeCounter, service: &str, millis: i64, peer: Option<&str>) -> Side {
        let peer = edges.names.of_peer(peer.map(|peer| (peer, ConnectionType::Database))).unwrap();
        let service = edges.names.number(service).unwrap();
        Side { service, duration: millis * 1_000_000, failed: millis > 100, is_message: false, peer }
    }

    /// Scenario: sides that come in either order, one client with two servers, a database, and a lonely server.
    /// Guarantee: every request is counted once, on the right edge, and the lonely one is told.
    #[test]
    fn sides_meet_in_any_order() {
        let mut edges = EdgeCounter::default();
        let now = Instant::now();
        let key = |number: u8| ([number; 16], [number; 8]);
        let [front, slow_front] = [20, 210].map(|millis| side(&mut edges, "front", millis, None));
        let [cart, slow_cart, quick_cart] = [10, 200, 5].map(|millis| side(&mut edges, "cart", millis, None));
        let to_database = side(&mut edges, "cart", 3, Some("postgres"));
        let alone = side(&mut edges, "alone", 3, None);
        edges.meet_servers(key(1), front, now);
        edges.meet_client(key(1), cart, now);
        edges.meet_client(key(2), slow_cart, now);
        edges.meet_servers(key(2), slow_front, now);
        edges.meet_client(key(1), quick_cart, now);
        edges.meet_servers(key(3), to_database, now);
        edges.meet_client(key(4), alone, now);
        edges.give_up_waiting(now + PATIENCE);
        let counted = edges.counted();
        let edge = |client: &str, server: &str, connection| {
            let key = EdgeSeries { client: client.to_owned(), server: server.to_owned(), connection };
            counted.series.get(&key).map(|edge| (edge.server.count, edge.failed))
        };
        assert_eq!(edge("front", "cart", ConnectionType::Call), Some((3, 1)));
        assert_eq!(edge("cart", "postgres", ConnectionType::Database), Some((1, 0)));
        assert_eq!(counted.series.len(), 2);
        assert_eq!(counted.unpaired.get("alone"), Some(&1));
        assert_eq!(edges.waiting.len(), 0);
    }

    /// Scenario: a sender that makes up a new service name for each span.
    /// Guarantee: no more names are kept than allowed, known ones are still found, and a new one is refused.
    #[test]
    fn names_are_bounded() {
        let mut names = Names::default();
        for number in 0..MAX_NAMES {
            assert!(names.number(&format!("service-{number}")).is_some());
        }
        assert_eq!(names.number("one-more"), None);
        assert_eq!(names.number("service-7"), Some(7));
        assert_eq!(names.of_peer(Some(("one-more", ConnectionType::Virtual))), None);
        assert_eq!(
            names.of_peer(Some(("service-7", ConnectionType::Virtual))),
            Some(Some((7, ConnectionType::Virtual)))
        );
        assert_eq!(names.of_peer(None), Some(None));
    }
}
