//! What a file is that somebody took for a profile, so that the error can say where the profile is to be had.

use crate::collapsed::lines;
use crate::shortened::shortened;
use crate::utf8::without_mark;

/// How far a file is looked into.
const LOOKED_AT: usize = 4 << 10;
/// Characters of a line that are quoted.
const QUOTED: usize = 40;

/// Files that people have at hand where they profile: what they begin with, in any case, what they are and what to do.
const KNOWN: [(&str, &str); 19] = [
    ("PERFILE2", "a recording of perf; send what `perf script` prints of it"),
    ("PK\x03\x04", "a zip archive; send the files in it"),
    ("\x7fELF", "a program"),
    ("JAVA PROFILE 1.", "a heap dump of Java, which holds objects and no samples; record a JFR"),
    // What Go's net/http/pprof answers to `?debug=1`, and for goroutines to `?debug=2`.
    ("goroutine profile: total", DEBUG_TEXT),
    ("goroutine 1 [", DEBUG_TEXT),
    ("threadcreate profile: total", DEBUG_TEXT),
    ("heap profile: ", DEBUG_TEXT),
    ("--- contention:", DEBUG_TEXT),
    ("--- mutex:", DEBUG_TEXT),
    ("<!doctype html", WEB_PAGE),
    ("<html", WEB_PAGE),
    ("<svg", PICTURE),
    ("<?xml", "XML, a picture perhaps; send the stacks that it was drawn from"),
    ("{\"snapshot\":", "a heap snapshot of V8, which has no stacks; `node --heap-prof` samples allocations"),
    ("{\"traceevents\":", EVENTS),
    ("[{\"args\":", EVENTS),
    ("[{\"cat\":", EVENTS),
    ("# callgrind format", "a file of callgrind, which has no stacks"),
];

const GO_TRACE: &str = "an execution trace of Go; /debug/pprof/profile has a CPU profile";
const DEBUG_TEXT: &str = "the text of a Go profile for people; without `debug=` in the address it is pprof";
const WEB_PAGE: &str = "a web page";
const PICTURE: &str = "a picture (SVG); send the stacks that it was drawn from";
const EVENTS: &str =
    "a trace of events for Chrome; profilers that write it can write speedscope or collapsed stacks, too";

/// What a file is known to be instead of a profile.
pub fn mistaken(plain: &[u8]) -> Option<&'static str> {
    let head = without_mark(plain).trim_ascii_start();
    let begins = |start: &&(&str, &str)| {
        head.get(..start.0.len()).is_some_and(|found| found.eq_ignore_ascii_case(start.0.as_bytes()))
    };
    // `go 1.26 trace` and zeros: a stack may start so, too, but has no zeros.
    let is_go_trace = head.starts_with(b"go 1.") && head.iter().take(16).any(|byte| *byte == 0);
    if is_go_trace { Some(GO_TRACE) } else { KNOWN.iter().find(begins).map(|(_, what)| *what) }
}

/// What stands in a file that nobody knows: its first line if it is text, which often is the error of whoever made it.
pub(crate) fn first_line(plain: &[u8]) -> Option<String> {
    let mut lines = lines(&plain[..plain.len().min(LOOKED_AT)]).map(|(line, _)| line.trim_ascii());
    let line = std::str::from_utf8(lines.find(|line| !line.is_empty())?).ok()?;
    if line.contains(|c: char| c.is_control() && c != '\t') {
        return None;
    }
    let quoted = shortened(line, QUOTED);
    let count = line.rsplit_once(' ').map(|(_, last)| last);
    Some(match count.filter(|count| count.parse::<f64>().is_ok()) {
        Some(_) => format!("{quoted:?}; counts of stacks are whole numbers of 0 or more"),
        None => format!("text that starts with {quoted:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: what lies beside profiles: recordings, archives, pages, dumps and traces in other formats; and text that is an
    /// error, or stacks with counts that are none.
    /// Guarantee: each is told by its name, or quoted; noise is not.
    #[test]
    fn neighbours_of_profiles() {
        for (file, told) in [
            (&b"PERFILE2\x68\0"[..], "perf script"),
            (b"\n<!DOCTYPE html><html>", "a web page"),
            (b"\xef\xbb\xbf{\"snapshot\":{\"meta\":{}}", "--heap-prof"),
            (b"goroutine profile: total 5\n1 @ 0x47 0x48\n", "debug="),
            (b"go 1.26 trace\0\0\0", "/debug/pprof/profile"),
        ] {
            assert!(mistaken(file).unwrap().contains(told), "{told}");
        }
        assert_eq!((mistaken(b"main;work 5\n"), mistaken(b"go 1.26;main;work 5\n")), (None, None));
        assert_eq!(first_line(b"\n401 Unauthorized\n").unwrap(), "text that starts with \"401 Unauthorized\"");
        assert!(first_line(b"main;work 1.5\n").unwrap().starts_with("\"main;work 1.5\"; counts"));
        assert_eq!((first_line(&[0xff; 9]), first_line(b"a\0b"), first_line(b"")), (None, None, None));
    }
}
