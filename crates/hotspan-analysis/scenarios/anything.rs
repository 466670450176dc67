//! Requests of any shape, for what must hold whatever they look like.

use hotspan_analysis::statistics::random::Random;
use hotspan_analysis::{AttributeValue, Measure, Request, RequestSample, RequestSpan, Vocabulary};
use hotspan_model::{LinkStrength, SpanId, SpanKind, TraceId};

const ROLES: [SpanKind; 5] =
    [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Unspecified];
const FUNCTIONS: [&str; 8] = [
    "main.a",
    "main.b",
    "encoding/json.Unmarshal",
    "futex_wait",
    "read",
    "runtime.mallocgc",
    "throttle_cfs_rq",
    "lib.so!0x10",
];

/// Any request: spans anywhere in time, below any earlier span, and samples of all kinds, also outside their spans.
pub(crate) fn any_request(vocabulary: &mut Vocabulary, random: &mut Random) -> Request {
    let below = |random: &mut Random, limit: u64| random.next_u64() % limit.max(1);
    let mut request = Request { trace_id: TraceId([below(random, 255) as u8; 16]), ..Request::default() };
    for index in 0..1 + below(random, 12) {
        let start = below(random, 1_000_000_000) as i64;
        let role = ROLES[below(random, 5) as usize];
        let service = ["front", "middle", "back"][below(random, 3) as usize];
        let name = ["get", "put", "list", "scan"][below(random, 4) as usize];
        request.spans.push(RequestSpan {
            span_id: SpanId((index + 1).to_be_bytes()),
            parent: (index > 0).then(|| below(random, index) as u32),
            operation: vocabulary.operation(service, name, role),
            role,
            clock: vocabulary.text(service),
            start,
            end: start + below(random, 500_000_000) as i64,
            failed: below(random, 5) == 0,
            attributes: vec![(vocabulary.text("key"), AttributeValue::Number(1.0))],
        });
    }
    for _ in 0..below(random, 40) {
        let depth = below(random, 6);
        let frames: Vec<u32> =
            (0..depth).map(|_| vocabulary.frame(FUNCTIONS[below(random, 8) as usize], "", 1)).collect();
        request.samples.push(RequestSample {
            span: below(random, request.spans.len() as u64) as u32,
            stack: vocabulary.stack(&frames),
            measure: Measure::ALL[below(random, 5) as usize],
            time: (below(random, 4) > 0).then(|| below(random, 1_500_000_000) as i64),
            value: below(random, 60_000_000) as i64,
            link: LinkStrength::Exact,
        });
    }
    request
}
