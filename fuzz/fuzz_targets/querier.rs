//! Requests to the querier: protobuf and JSON of one message read alike, and any text gives an answer. The first byte
//! chooses the message.

#![no_main]

use std::fmt::Debug;

use json_fields::message_from_json;
use libfuzzer_sys::fuzz_target;
use messages::{
    AdHocUploadRequest, AnalyzeQueryRequest, DiffRequest, HeatmapRequest, LabelValuesRequest, MergeProfileRequest,
    SelectSeriesRequest, SeriesRequest, SettingMessage, SpanProfileRequest, StacktracesRequest,
};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

// The server with all that it needs takes far longer to build than the fuzzer runs.
#[allow(dead_code, reason = "the server tells unknown names from wrong ones")]
#[path = "../../crates/hotspan-server/src/api/pyroscope/json_fields.rs"]
mod json_fields;
#[path = "../../crates/hotspan-server/src/api/pyroscope/json_forms.rs"]
mod json_forms;
#[allow(dead_code, unused_imports, reason = "requests are read here, answers are not")]
#[path = "../../crates/hotspan-server/src/api/pyroscope/messages/mod.rs"]
mod messages;
#[path = "../../crates/hotspan-server/src/api/pyroscope/pprof_message.rs"]
mod pprof_message;

/// Where the messages look for these.
mod api {
    pub(crate) mod pyroscope {
        pub(crate) use crate::json_forms;
    }
}

fn check<M: Message + Default + Debug + PartialEq + Serialize + DeserializeOwned>(bytes: &[u8]) {
    if let Ok(message) = M::decode(bytes) {
        check_json(&message);
    }
    match message_from_json::<M>(bytes) {
        Ok(message) => {
            assert_eq!(M::decode(message.encode_to_vec().as_slice()).as_ref(), Ok(&message));
            check_json(&message);
        }
        Err(wrong) => assert!(!wrong.to_string().is_empty()),
    }
}

fn check_json<M: Message + Debug + PartialEq + Serialize + DeserializeOwned>(message: &M) {
    let json = serde_json::to_value(message).expect("own message is written");
    // JSON has no infinite steps.
    if json.get("step") != Some(&Value::Null) {
        let read = message_from_json::<M>(json.to_string().as_bytes());
        assert_eq!(&read.expect("own JSON is read"), message, "{json}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let checks = [
        check::<StacktracesRequest>,
        check::<SpanProfileRequest>,
        check::<MergeProfileRequest>,
        check::<DiffRequest>,
        check::<SelectSeriesRequest>,
        check::<HeatmapRequest>,
        check::<LabelValuesRequest>,
        check::<SeriesRequest>,
        check::<AdHocUploadRequest>,
        check::<SettingMessage>,
        check::<AnalyzeQueryRequest>,
    ];
    checks[usize::from(*choice) % checks.len()](bytes);
});
