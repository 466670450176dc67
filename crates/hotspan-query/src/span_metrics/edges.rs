//! Who calls whom: a client's span and the server's span that it led to are an edge of the service graph.

use hashbrown::HashMap;

use super::Latency;

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

/// The edges that were counted, and what could not be.
#[derive(Debug, Clone, Default)]
pub struct EdgeCounts {
    /// By edge.
    pub series: HashMap<EdgeSeries, Edge>,
    /// Sides whose other side did not come, by service.
    pub unpaired: HashMap<String, u64>,
    /// Sides that were given up to make room (R4, R5).
    pub dropped: u64,
}
