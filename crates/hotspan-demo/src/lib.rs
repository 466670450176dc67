//! The demo shop: five services under a steady load, with problems planted that traces and profiles lead to.
//!
//! ```text
//! load ---> checkout ---> order       a lock that a background job holds for long; a receipt copied line by line
//!               |    ---> discount    a regular expression compiled for each item; a search that tries everything
//!               |    ---> tax         the same JSON document parsed for each item; a cache missed by one region
//!               |    ---> inventory   one shard that answers late; a query for each item
//!               +-------> payments    outside of the shop: slow for some, or asked again and again
//! ```
//!
//! All services live in one process and call each other through queues, but each has its own threads, its own OTel
//! resource, and client and server spans as HTTP would give them. The work is real: CPU is burned, locks are waited for.
//! Spans go out as OTLP over HTTP, profiles come from `hotspan-profiler`, divided by service in `telemetry::profiles`.
//!
//! [`run_shop`] is the whole shop; [`Control`] switches problems of one that runs elsewhere.

mod control;
mod customers;
mod http;
mod load;
mod mesh;
mod problems;
mod random;
mod services;
mod shop;
mod telemetry;

pub use control::{Control, ControlError};
pub use problems::{Problem, Problems, Scenario, UnknownName};
pub use shop::{ShopOptions, run_shop};
