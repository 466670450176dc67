//! Which format a request to `/ingest` is in, and how each is decoded.

use std::collections::BTreeMap;

use bytes::Bytes;
use hotspan_formats::app_name::AppName;
use hotspan_formats::{
    DecodeOptions, SampleTypeConfig, collapsed, decode_file, detect, expanded, jfr, pprof, pyroscope_tree, speedscope,
};

use super::ingest_body::UploadBody;
use super::ingest_rows::RowSink;
use super::{Refusal, Room};

/// Formats of `/ingest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IngestFormat {
    Trie,
    Tree,
    Lines,
    Jfr,
    Pprof,
    PprofForm,
    Speedscope,
    /// Collapsed stacks, and whatever comes without a name: the bytes then tell.
    Groups,
}

impl IngestFormat {
    /// The parameter decides first, then the content type, as in Pyroscope.
    pub(super) fn choose(parameter: &str, content_type: &str) -> Self {
        match (parameter, content_type) {
            ("trie", _) | (_, "binary/octet-stream+trie") => Self::Trie,
            ("tree", _) | (_, "binary/octet-stream+tree") => Self::Tree,
            ("lines", _) => Self::Lines,
            ("jfr", _) => Self::Jfr,
            (_, form) if form.starts_with("multipart/") && parameter != "speedscope" => Self::PprofForm,
            ("pprof", _) => Self::Pprof,
            ("speedscope", _) => Self::Speedscope,
            _ => Self::Groups,
        }
    }

    /// Whether the format says itself what its values are; the others are told by the application's name.
    pub(super) fn is_typed(self) -> bool {
        matches!(self, Self::Jfr | Self::Pprof | Self::PprofForm | Self::Speedscope)
    }
}

/// Decodes a body into rows.
pub(super) fn decode_ingest(
    format: IngestFormat,
    body: &UploadBody,
    app: &AppName,
    mut options: DecodeOptions,
    sink: &mut RowSink,
    room: &mut Room,
) -> Result<(), Refusal> {
    let content = content_of(format, body)?;
    let plain = expanded(content, &options.limits)?;
    room.decodes(plain.len(), 0)?;
    if !format.is_typed() {
        let described = detect(&plain).filter(|_| format == IngestFormat::Groups);
        if described.is_some_and(|found| found != hotspan_formats::FileFormat::Collapsed) {
            return sink.push(decode_file(&plain, &options)?);
        }
        let rate = options.sample_rate.unwrap_or(DEFAULT_SAMPLE_RATE);
        let text_type = app.text_type(rate).ok_or_else(|| unknown_suffix(&app.name))?;
        options.text_type = Some(text_type);
    }
    sink.push(match format {
        IngestFormat::Trie => pyroscope_tree::decode_trie(&plain, &options)?,
        IngestFormat::Tree => pyroscope_tree::decode_tree(&plain, &options)?,
        IngestFormat::Lines => collapsed::decode_lines(&plain, &options)?,
        IngestFormat::Groups => collapsed::decode(&plain, &options)?,
        IngestFormat::Speedscope => speedscope::decode(&plain, &options)?,
        IngestFormat::Jfr => {
            let labels = body.part("labels").map(|part| expanded(part, &options.limits)).transpose()?;
            jfr::decode(&plain, labels.as_deref(), &options)?
        }
        IngestFormat::Pprof => pprof::decode(&plain, &options)?,
        IngestFormat::PprofForm => {
            options.sample_types = sample_type_config(body)?;
            pprof::decode(&plain, &options)?
        }
    })
}

/// Samples a second where a client does not say.
const DEFAULT_SAMPLE_RATE: u32 = 100;

/// The bytes of the profile.
fn content_of(format: IngestFormat, body: &UploadBody) -> Result<&Bytes, Refusal> {
    let name = if format == IngestFormat::Jfr { "jfr" } else { "profile" };
    match body {
        UploadBody::Bare(bytes) => Ok(bytes),
        UploadBody::Form(_) if body.part("prev_profile").is_some() => {
            Err(Refusal::Invalid("the form has a part prev_profile; send the difference as one profile".to_owned()))
        }
        UploadBody::Form(_) => {
            body.part(name).ok_or_else(|| Refusal::Invalid(format!("the form has no part named {name}")))
        }
    }
}

fn sample_type_config(body: &UploadBody) -> Result<BTreeMap<String, SampleTypeConfig>, Refusal> {
    match body.part("sample_type_config") {
        None => Ok(BTreeMap::new()),
        Some(json) => serde_json::from_slice(json)
            .map_err(|error| Refusal::Invalid(format!("the part sample_type_config can't be read: {error}"))),
    }
}

fn unknown_suffix(name: &str) -> Refusal {
    let suffix = name.rsplit('.').next().unwrap_or(name);
    Refusal::Invalid(format!(
        "the name {name:?} ends in {suffix:?}, which is no profile type; stacks without a type need a name such as \
         order-service.cpu, or one without a dot for CPU time"
    ))
}
