//! Makes the data before anything is measured: requests into spools, right answers into memory.

use std::ops::Range;
use std::path::Path;

use hotspan_generator::Workload;
use hotspan_generator::encode::{profile_requests, trace_requests};

use crate::arguments::Arguments;
use crate::expected::Expected;
use crate::spool::{Spool, SpoolWriter};

/// Requests of some windows.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) traces: Spool,
    pub(crate) profiles: Spool,
}

pub(crate) fn prepare(
    workload: &Workload,
    windows: Range<u32>,
    arguments: &Arguments,
    folder: &Path,
    expected: &mut Expected,
) -> anyhow::Result<Prepared> {
    let mut traces = SpoolWriter::create(&folder.join("traces.spool"))?;
    let mut profiles = SpoolWriter::create(&folder.join("profiles.spool"))?;
    for number in windows {
        let window = workload.window(number);
        expected.add(&window);
        for request in trace_requests(&window, arguments.spans_per_request) {
            traces.add(&request.bytes, request.spans)?;
        }
        for request in profile_requests(&window, arguments.profiles_per_request, arguments.sample_shape()) {
            profiles.add(&request.bytes, request.samples)?;
        }
    }
    Ok(Prepared { traces: traces.finish()?, profiles: profiles.finish()? })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::questions::{trace_lookups, trace_questions};

    /// Scenario: a hundredth of an hour of spans alone.
    /// Guarantee: spans are made and no profile is, and every question about spans knows its right answer.
    #[test]
    fn spans_alone() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = Arguments::parse_from(["hotspan-bench", "--only", "spans"]);
        let workload = Workload::new(arguments.settings(0.01)).unwrap();
        let mut expected = Expected::new(&workload);
        let windows = 0..workload.window_count();
        let prepared = prepare(&workload, windows, &arguments, folder.path(), &mut expected).unwrap();
        assert_eq!((prepared.traces.items, prepared.profiles.items), (expected.oracle.spans, 0));
        assert!(expected.oracle.spans > 1000);
        assert!(trace_lookups(&expected).iter().all(|question| !question.calls.is_empty()));
        assert_eq!(trace_questions(&workload, &expected).len(), 7);
    }
}
