//! Which span names which uploaded profile, by the attributes `profile.id` and `profile.file` of both.
//!
//! An id is meant to be the only one of its kind. Names of files come again in other services and on other days, so that a
//! file is joined only to a span of its own service that ran at about that time.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::table::DAY;
use hotspan_model::{Attribute, ProfileId, SpanId, TraceId, Value};

/// The attribute that names an upload by the id it was given, or by the id that it is stored under.
const ID: &str = "profile.id";
/// The attribute that names the file of an upload.
const FILE: &str = "profile.file";

/// The span that names a profile.
pub(crate) type NamingSpan = (TraceId, SpanId);

/// The profiles that spans name.
#[derive(Debug, Default)]
pub(crate) struct SpanNames {
    ids: HashMap<String, NamingSpan>,
    /// By name without folder.
    files: HashMap<String, Vec<NamedFile>>,
}

#[derive(Debug)]
struct NamedFile {
    span: NamingSpan,
    service: Arc<str>,
    /// As the span has it.
    path: String,
    from: i64,
    until: i64,
}

/// The names that an upload was given.
#[derive(Debug, Clone, Default)]
pub(crate) struct UploadNames {
    id: Option<String>,
    file: Option<String>,
}

/// An uploaded profile.
#[derive(Debug)]
pub(crate) struct Upload<'u> {
    pub(crate) id: [u8; 16],
    pub(crate) names: &'u UploadNames,
    pub(crate) service: &'u str,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl UploadNames {
    pub(crate) fn of(attributes: &[Attribute<'_>]) -> Self {
        Self { id: name_in(attributes, ID), file: name_in(attributes, FILE) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.id.is_none() && self.file.is_none()
    }
}

impl SpanNames {
    /// Adds what a span of a service names, which ran at this time.
    pub(crate) fn add(
        &mut self,
        span: NamingSpan,
        service: &Arc<str>,
        (from, until): (i64, i64),
        attributes: &[Attribute<'_>],
    ) {
        if let Some(id) = name_in(attributes, ID) {
            self.ids.entry(id).or_insert(span);
        }
        if let Some(path) = name_in(attributes, FILE) {
            let named = self.files.entry(file_name(&path).to_owned()).or_default();
            named.push(NamedFile { span, service: Arc::clone(service), path, from, until });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.files.is_empty()
    }

    /// The profiles that are named by the id that they are stored under.
    pub(crate) fn stored_ids(&self) -> impl Iterator<Item = ([u8; 16], NamingSpan)> {
        self.ids.iter().filter_map(|(id, span)| Some((id.replace('-', "").parse::<ProfileId>().ok()?.0, *span)))
    }

    /// The span that names a file; of several, one that has its whole path, and then the nearest in time.
    fn of_file(&self, upload: &Upload<'_>) -> Option<&NamedFile> {
        let file = upload.names.file.as_deref()?;
        let named = self.files.get(file_name(file))?.iter();
        let apart =
            |named: &NamedFile| (named.from.saturating_sub(upload.until)).max(upload.from.saturating_sub(named.until));
        // A file that does not say when it was made is dated by when it was sent.
        let near = named.filter(|named| *named.service == *upload.service && apart(named) <= DAY);
        near.min_by_key(|named| (Reverse(named.path == file), apart(named)))
    }
}

/// Uploads as they are found to be named.
#[derive(Debug, Default)]
pub(crate) struct NamedUploads {
    profiles: HashMap<[u8; 16], NamingSpan>,
    /// Those of which a span has the file's name alone.
    by_file_name: Vec<([u8; 16], NamingSpan)>,
    /// The spans whose path of a file is just that of an upload.
    with_path: HashSet<NamingSpan>,
}

impl NamedUploads {
    pub(crate) fn new(names: &SpanNames) -> Self {
        Self { profiles: names.stored_ids().collect(), ..Self::default() }
    }

    /// Adds an upload, if a span names it.
    pub(crate) fn add(&mut self, upload: &Upload<'_>, names: &SpanNames) {
        if let Some(span) = upload.names.id.as_ref().and_then(|id| names.ids.get(id)) {
            self.profiles.insert(upload.id, *span);
        } else if let Some(named) = names.of_file(upload) {
            if upload.names.file.as_ref() == Some(&named.path) {
                self.with_path.insert(named.span);
                self.profiles.entry(upload.id).or_insert(named.span);
            } else {
                self.by_file_name.push((upload.id, named.span));
            }
        }
    }

    /// The span of each profile. Where a span has the whole path of one file, others of that name are not meant.
    pub(crate) fn finish(mut self) -> HashMap<[u8; 16], NamingSpan> {
        for (profile, span) in self.by_file_name {
            if !self.with_path.contains(&span) {
                self.profiles.entry(profile).or_insert(span);
            }
        }
        self.profiles
    }
}

/// A name that attributes have under a key; a number is as good a name as a text.
fn name_in(attributes: &[Attribute<'_>], key: &str) -> Option<String> {
    let value = attributes.iter().find(|attribute| attribute.key == key).map(|attribute| &attribute.value)?;
    match value {
        Value::String(text) if !text.is_empty() => Some(text.to_string()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A service names the file where it wrote it, an upload where it was read.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000_000_000;

    fn attribute(key: &'static str, value: Value<'static>) -> Vec<Attribute<'static>> {
        vec![Attribute { key: key.into(), value }]
    }

    fn text(text: &'static str) -> Value<'static> {
        Value::String(text.into())
    }

    fn span(number: u8) -> NamingSpan {
        (TraceId([7; 16]), SpanId([number; 8]))
    }

    /// The number of the span that each upload is joined to; uploads are numbered from 0.
    fn joined(names: &SpanNames, uploads: &[(&str, i64, Vec<Attribute<'static>>)]) -> Vec<Option<u8>> {
        let mut named = NamedUploads::new(names);
        for (number, (service, from, attributes)) in uploads.iter().enumerate() {
            let upload_names = UploadNames::of(attributes);
            let (id, until) = ([number as u8; 16], from + 1000);
            named.add(&Upload { id, names: &upload_names, service, from: *from, until }, names);
        }
        let found = named.finish();
        (0..uploads.len()).map(|number| found.get(&[number as u8; 16]).map(|span| span.1.0[0])).collect()
    }

    /// Scenario: spans of two services that name the same file, one that names it with its folder, and uploads of that name
    /// from either service, from another, from other days and from that folder.
    /// Guarantee: each goes to the span of its service that is nearest in time, none to one more than a day away, and
    /// whoever names a whole path gets just that file.
    #[test]
    fn files_of_the_same_name() {
        let mut names = SpanNames::default();
        let (web, shop): (Arc<str>, Arc<str>) = ("web".into(), "shop".into());
        names.add(span(1), &web, (NOW, NOW + 10), &attribute(FILE, text("/var/run.jfr")));
        names.add(span(2), &shop, (NOW, NOW + 10), &attribute(FILE, text("run.jfr")));
        names.add(span(3), &web, (NOW + DAY, NOW + DAY + 10), &attribute(FILE, text("C:\\tmp\\run.jfr")));
        let file = |path: &'static str| attribute(FILE, text(path));
        let uploads = [
            ("web", NOW + 5, file("run.jfr")),
            ("shop", NOW - 5, file("/elsewhere/run.jfr")),
            ("other", NOW, file("run.jfr")),
            ("web", NOW + DAY - 20, file("run.jfr")),
            ("shop", NOW + DAY + 1000, file("run.jfr")),
            ("shop", NOW - DAY - 2000, file("run.jfr")),
        ];
        assert_eq!(joined(&names, &uploads), [Some(1), Some(2), None, Some(3), None, None]);
        let exact = [("web", NOW + 5, file("run.jfr")), ("web", NOW + 50, file("/var/run.jfr"))];
        assert_eq!(joined(&names, &exact), [None, Some(1)]);
    }

    /// Scenario: spans that name uploads by a text, by a number, and by the id that a profile is stored under.
    /// Guarantee: ids hold in every service and at any time, and more than the name of a file does.
    #[test]
    fn ids() {
        let mut names = SpanNames::default();
        let web: Arc<str> = "web".into();
        names.add(span(1), &web, (NOW, NOW), &attribute(ID, text("request 42")));
        names.add(span(2), &web, (NOW, NOW), &attribute(ID, Value::Int(42)));
        names.add(span(3), &web, (NOW, NOW), &attribute(ID, text("02020202-0202-0202-0202-020202020202")));
        names.add(span(4), &web, (NOW, NOW), &attribute(FILE, text("42")));
        let uploads = [
            ("web", NOW - 9 * DAY, attribute(ID, text("request 42"))),
            ("other", NOW, [attribute(ID, text("42")), attribute(FILE, text("42"))].concat()),
            ("other", 0, Vec::new()),
            ("web", NOW, attribute(FILE, text("42"))),
            ("web", NOW, attribute(ID, text(""))),
        ];
        assert_eq!(joined(&names, &uploads), [Some(1), Some(2), Some(3), Some(4), None]);
        assert!(UploadNames::of(&attribute(ID, text(""))).is_empty() && !names.is_empty());
    }
}
