//! Steering a running profiler: rate by load, policy from the server, commands over HTTP.

pub(crate) mod endpoint;
pub(crate) mod policy;
pub(crate) mod rate;
