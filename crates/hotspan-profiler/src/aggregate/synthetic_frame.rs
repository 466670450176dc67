//! Frames for time that has no stack. Their addresses are never those of code.

/// Time in which a span was polled.
pub(crate) const POLLING: u64 = u64::MAX - 1;
/// Time in which a span waited to be polled.
pub(crate) const PARKED: u64 = u64::MAX - 2;
/// CPU time that the clocks tell of threads which ended before a sample met them.
pub(crate) const SHORT_THREADS: u64 = u64::MAX - 3;

/// CPU time that the clocks tell of threads which take no signals.
pub(crate) const NOT_SAMPLED: u64 = u64::MAX - 4;

/// What such a frame is called.
pub(crate) fn synthetic_name(address: u64) -> Option<&'static str> {
    match address {
        POLLING => Some("[polling]"),
        PARKED => Some("[parked]"),
        SHORT_THREADS => Some("[short threads]"),
        NOT_SAMPLED => Some("[signal blocked]"),
        _ => None,
    }
}
