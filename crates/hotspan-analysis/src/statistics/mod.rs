//! The statistics of comparing two groups of requests: moments, tests, resampling, and many tests at once.

pub mod bootstrap;
pub mod exceedance;
pub mod false_discovery;
pub mod random;
pub mod welch;
