//! Native gRPC without generated clients: messages are bytes, which tests encode and decode themselves.

use bytes::{Buf, BufMut};
use prost::Message;
use tonic::codec::CompressionEncoding;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Status};

/// Bytes as they are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining()).to_vec()))
    }
}

/// Calls a method, plain or compressed, as a tenant if one is named.
pub(crate) async fn call<Q: Message, A: Message + Default>(
    address: &str,
    method: &str,
    question: &Q,
    encoding: Option<CompressionEncoding>,
    tenant: Option<&str>,
) -> Result<A, Status> {
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
    if let Some(encoding) = encoding {
        client = client.send_compressed(encoding).accept_compressed(encoding);
    }
    client.ready().await.unwrap();
    let mut request = Request::new(question.encode_to_vec());
    if let Some(tenant) = tenant {
        request.metadata_mut().insert("x-scope-orgid", tenant.parse().unwrap());
    }
    let answer = client.unary(request, method.parse().unwrap(), Raw).await?.into_inner();
    Ok(A::decode(answer.as_slice()).unwrap())
}
