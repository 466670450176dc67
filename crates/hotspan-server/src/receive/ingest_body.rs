//! Bodies of uploads: bare, or a form with named parts.

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use bytes::Bytes;
use http::header;
use http::request::Parts;

use super::{Intake, Refusal};

/// What a client sent.
#[derive(Debug)]
pub(super) enum UploadBody {
    /// The bytes themselves.
    Bare(Bytes),
    /// Parts by name, in order.
    Form(Vec<(String, Bytes)>),
}

/// A form has a handful of parts; more are a mistake or an attack.
const MAX_PARTS: usize = 64;

impl UploadBody {
    /// Reads a body, as far as the intake lets it in.
    pub(super) async fn read(request: Request, intake: &mut Intake<'_>) -> Result<(Parts, Self), Refusal> {
        let (parts, body) = request.into_parts();
        let bytes = intake.read(body, &parts.headers).await?;
        if !content_type(&parts).starts_with("multipart/") {
            return Ok((parts, Self::Bare(bytes)));
        }
        let mut whole = Request::from_parts(parts.clone(), Body::from(bytes));
        // The bytes are in memory and counted already.
        DefaultBodyLimit::disable().apply(&mut whole);
        let broken = |error: axum::extract::multipart::MultipartError| {
            Refusal::Invalid(format!("the form can't be read: {}", error.body_text()))
        };
        let form = Multipart::from_request(whole, &()).await;
        let mut form =
            form.map_err(|error| Refusal::Invalid(format!("the form can't be read: {}", error.body_text())))?;
        let mut fields = Vec::new();
        while let Some(field) = form.next_field().await.map_err(broken)? {
            if fields.len() == MAX_PARTS {
                return Err(Refusal::Invalid(format!("the form has more than {MAX_PARTS} parts")));
            }
            let name = field.name().unwrap_or_default().to_owned();
            fields.push((name, field.bytes().await.map_err(broken)?));
        }
        Ok((parts, Self::Form(fields)))
    }

    /// What is nearly all of it: the bytes, or the largest part.
    pub(super) fn content(&self) -> Bytes {
        match self {
            Self::Bare(bytes) => bytes.clone(),
            Self::Form(parts) => {
                let largest = parts.iter().max_by_key(|(_, bytes)| bytes.len());
                largest.map(|(_, bytes)| bytes.clone()).unwrap_or_default()
            }
        }
    }

    /// A part of a form by its name.
    pub(super) fn part(&self, name: &str) -> Option<&Bytes> {
        match self {
            Self::Bare(_) => None,
            Self::Form(parts) => parts.iter().find(|(other, _)| other == name).map(|(_, bytes)| bytes),
        }
    }
}

/// The content type of a request in lower case, empty if it has none.
pub(super) fn content_type(parts: &Parts) -> String {
    let header = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    header.unwrap_or_default().trim().to_ascii_lowercase()
}
