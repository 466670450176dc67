//! The messages of `push.v1.PusherService/Push`, as its clients encode them.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) series: Vec<PushSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PushSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Pair>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Pair {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) id: String,
}
