//! Pyroscope's querier over Connect in JSON, and stacks to ask it about.

use serde_json::{Value, json};

use super::{Answer, Server, percent_encoded};

/// CPU time, as Pyroscope names it.
pub(crate) const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// Calls a method of the querier, or one that is given with its service.
pub(crate) fn ask(server: &Server, method: &str, message: &Value) -> Answer {
    let path = if method.starts_with('/') { method.to_owned() } else { format!("/querier.v1.QuerierService/{method}") };
    server.post(&path, "application/json", message.to_string().as_bytes()).unwrap()
}

/// The same, for what must succeed.
pub(crate) fn ask_json(server: &Server, method: &str, message: &Value) -> Value {
    let answer = ask(server, method, message);
    assert_eq!(answer.status, 200, "{method}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// The message with a range of all time: fixtures carry the day they were made on.
pub(crate) fn always(mut message: Value) -> Value {
    message["start"] = json!("1");
    message["end"] = json!(4_102_444_800_000i64);
    message
}

/// Sends collapsed stacks whose values are nanoseconds, measured in the ten seconds after a second.
pub(crate) fn ingest_stacks(server: &Server, name: &str, second: u64, stacks: &str) {
    let name = percent_encoded(name);
    let path = format!("/ingest?name={name}&from={second}&until={}&sampleRate=1000000000", second + 10);
    let answer = server.post(&path, "text/plain", stacks.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}
