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
    /// Parts in order.
    Form(Vec<FormPart>),
}

/// A part of a form.
#[derive(Debug)]
pub(super) struct FormPart {
    pub(super) name: String,
    /// What the sender calls the file, if it is one.
    pub(super) file_name: Option<String>,
    pub(super) bytes: Bytes,
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
        let mut form_parts = Vec::new();
        while let Some(field) = form.next_field().await.map_err(broken)? {
            if form_parts.len() == MAX_PARTS {
                return Err(Refusal::Invalid(format!("the form has more than {MAX_PARTS} parts")));
            }
            let name = field.name().unwrap_or_default().to_owned();
            let file_name = field.file_name().map(str::to_owned).filter(|name| !name.is_empty());
            form_parts.push(FormPart { name, file_name, bytes: field.bytes().await.map_err(broken)? });
        }
        Ok((parts, Self::Form(form_parts)))
    }

    /// What is nearly all of it: the bytes, or the largest part.
    pub(super) fn content(&self) -> Bytes {
        match self {
            Self::Bare(bytes) => bytes.clone(),
            Self::Form(parts) => {
                let largest = parts.iter().map(|part| &part.bytes).max_by_key(|bytes| bytes.len());
                largest.cloned().unwrap_or_default()
            }
        }
    }

    /// A part of a form by its name.
    pub(super) fn part(&self, name: &str) -> Option<&Bytes> {
        match self {
            Self::Bare(_) => None,
            Self::Form(parts) => parts.iter().find(|part| part.name == name).map(|part| &part.bytes),
        }
    }
}

/// The content type of a request in lower case, empty if it has none.
pub(super) fn content_type(parts: &Parts) -> String {
    let header = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    header.unwrap_or_default().trim().to_ascii_lowercase()
}
