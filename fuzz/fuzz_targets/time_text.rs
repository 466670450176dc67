//! Times, durations and sizes: what was read and written reads as the same, and "now" moves nothing but what is relative
//! to it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use time_text::{parse_duration, parse_time, time_as_text};
use units::{duration_text, parse_size, size_text};

// The server with all that it needs takes far longer to build than the fuzzer runs.
#[path = "../../crates/hotspan-server/src/time_text.rs"]
mod time_text;
#[path = "../../crates/hotspan-server/src/config/units.rs"]
mod units;

const SECOND: i64 = 1_000_000_000;
const NOW: i64 = 1_700_000_000 * SECOND + 1;
const LATER: i64 = NOW + 7;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse_time(text, NOW) {
        Ok(time) => {
            let second = time.div_euclid(SECOND);
            assert_eq!(parse_time(&time_as_text(time), NOW).map(|read| read.div_euclid(SECOND)), Ok(second));
            // Nanoseconds are known by their digits.
            if time.unsigned_abs() >= 10u64.pow(17) {
                assert_eq!(parse_time(&time.to_string(), NOW), Ok(time));
            }
            let moved = parse_time(text, LATER).expect("a time at any time");
            let is_relative = text.trim().starts_with("now");
            let is_at_an_end = [i64::MIN, i64::MAX].iter().any(|end| end.abs_diff(time) <= LATER.abs_diff(NOW));
            assert!(is_at_an_end || moved - time == if is_relative { LATER - NOW } else { 0 }, "{time} {moved}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&duration_text(duration)), Some(duration));
        let nanos = i64::try_from(duration.as_nanos()).expect("a duration fits");
        assert_eq!(parse_time(&format!("now-{text}"), NOW), Ok(NOW.saturating_sub(nanos)));
        assert_eq!(parse_time(&format!("now+{text}"), NOW), Ok(NOW.saturating_add(nanos)));
    }
    if let Some(size) = parse_size(text) {
        assert_eq!(parse_size(&size_text(size)), Some(size));
    }
});
