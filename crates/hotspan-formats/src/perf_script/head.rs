//! The line that a sample starts with, and those that are about something else than a sample.

/// What a sample says about itself, before its stack.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) comm: &'a str,
    pub(super) tid: Option<i64>,
    /// Nanoseconds on perf's own clock.
    pub(super) time: Option<i64>,
    pub(super) period: Option<i64>,
    pub(super) event: &'a str,
    /// What follows the event: where the sample was taken, if no stack is below; nothing, or the text of a tracepoint.
    rest: &'a str,
}

/// What a line is called that says no event.
pub(super) const NO_EVENT: &str = "samples";

/// What perf calls the records that it also writes if it is asked to: processes that start and end, what they map.
const RECORD: &str = "PERF_RECORD_";

impl<'a> Head<'a> {
    /// Reads `comm pid/tid [cpu] seconds.micros: period event:`, of which most parts may be absent.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        // The time is the first word that is a number and a colon; what precedes it is the command and its ids.
        let mut time = None;
        let mut split = None;
        let mut at = 0;
        for word in line.split_inclusive(' ') {
            let bare = word.trim();
            if let Some(number) = bare.strip_suffix(':')
                && number.contains('.')
                && let Some(nanoseconds) = parse_seconds(number)
            {
                time = Some(nanoseconds);
                split = Some((at, at + word.len()));
                break;
            }
            at += word.len();
        }
        let (before, after) = match split {
            Some((from, to)) => (&line[..from], &line[to..]),
            None => (line, ""),
        };
        let mut before = before.trim();
        if before.ends_with(']')
            && let Some(cpu) = before.rfind('[')
        {
            before = before[..cpu].trim_end();
        }
        let (comm, ids) = before.rsplit_once(char::is_whitespace)?;
        let tid = ids.rsplit_once('/').map_or(ids, |(_, tid)| tid).parse().ok();
        tid?;
        let (mut word, mut rest) = first_word(after);
        let mut period = None;
        if word.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
            // What is negative or too large is no period, and what follows would be no event.
            period = Some(word.parse().ok().filter(|period| *period >= 0)?);
            (word, rest) = first_word(rest);
        }
        let event = if word.is_empty() { NO_EVENT } else { word.strip_suffix(':').unwrap_or(word) };
        Some(Self { comm: comm.trim(), tid, time, period, event, rest })
    }

    /// The frame at the end of the line: an address comes first, which no text of a tracepoint starts with.
    pub(super) fn own_frame(&self) -> Option<&'a str> {
        let address = self.rest.split_whitespace().next()?;
        u64::from_str_radix(address, 16).is_ok().then_some(self.rest)
    }
}

/// Whether a line could start a sample: it names a time and an event.
pub(crate) fn is_head(line: &str) -> bool {
    Head::parse(line).is_some_and(|head| head.time.is_some())
}

/// Whether a line is a record of something else than a sample.
pub(super) fn is_record(line: &str) -> bool {
    if !line.contains(RECORD) {
        return false;
    }
    match Head::parse(line) {
        Some(head) if head.time.is_some() => head.event.starts_with(RECORD),
        // Without a time nothing marks where the event stands; a round that ends has nothing before its name.
        _ => line.split_whitespace().any(|word| word.starts_with(RECORD)),
    }
}

/// The first word of a text, and what follows it.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

fn parse_seconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = fraction.len();
    if digits == 0 || digits > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds = fraction.parse::<i64>().ok()? * 10i64.pow(9 - digits as u32);
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the shapes that perf gives its first line, by version and by options.
    /// Guarantee: command, thread, time, period and event are found in each.
    #[test]
    fn heads() {
        let head = Head::parse("my app 12/34 [001]  5.000001:   250000 cpu-clock:u: ").unwrap();
        assert_eq!((head.comm, head.tid, head.time), ("my app", Some(34), Some(5_000_001_000)));
        assert_eq!((head.period, head.event), (Some(250_000), "cpu-clock:u"));
        let head = Head::parse("swapper     0 [000] 1.5: sched:sched_switch: prev_comm=x").unwrap();
        assert_eq!((head.comm, head.tid, head.period, head.event), ("swapper", Some(0), None, "sched:sched_switch"));
        assert_eq!(head.own_frame(), None, "what a tracepoint says is no frame");
        let head =
            Head::parse("  python3  4632 26515.359891:  250000 cpu-clock:  55d0 f(int, char)+0x1 (/a b)").unwrap();
        assert_eq!(
            (head.comm, head.event, head.own_frame()),
            ("python3", "cpu-clock", Some("55d0 f(int, char)+0x1 (/a b)"))
        );
        assert!(Head::parse("nonsense").is_none());
        assert!(Head::parse("a b c").is_none());
    }

    /// Scenario: records as perf writes them with and without times, and a sample of a command that is called like one.
    /// Guarantee: the records are told from the sample.
    #[test]
    fn records() {
        for record in [
            "p 15778  3185.226244: PERF_RECORD_EXIT(15778:15778):(15727:15727)",
            "         swapper     0     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x12090c8) @ 0]: x [k]_text",
            "perf-exec     0 PERF_RECORD_COMM: perf-exec:15778/15778",
            "PERF_RECORD_FINISHED_ROUND",
        ] {
            assert!(is_record(record), "{record}");
        }
        assert!(!is_record("PERF_RECORD_TOOL 12/34 1.5: 10 cpu-clock: "));
    }
}
