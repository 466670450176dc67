//! Which span names which uploaded profile, by the attributes `profile.id` and `profile.file` of both.
//!
//! An id is meant to be the only one of its kind. Names of files come again in other services and on other days, so that a
//! file is joined only to a span of its own service that ran at about that time. A file of which nobody said the service is
//! of the one service that names it, if there is no other.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::table::DAY;
use hotspan_model::labels::{PROFILE_SOURCE, UNKNOWN_SERVICE};
use hotspan_model::{Attribute, Labels, ProfileId, SpanId, TraceId, Value};

/// The attribute that names an upload by the id it was given, or by the id that it is stored under.
const ID: &str = "profile.id";
/// The attribute that names the file of an upload.
const FILE: &str = "profile.file";

/// Whether these are labels of an upload of which nobody said the service.
pub(crate) fn is_without_service(labels: &Labels) -> bool {
    labels.get(PROFILE_SOURCE).is_some() && labels.service() == UNKNOWN_SERVICE
}

/// The span that names a profile.
pub(crate) type NamingSpan = (TraceId, SpanId);

/// The profiles that spans name.
#[derive(Debug, Default)]
pub(crate) struct SpanNames {
    ids: HashMap<String, NamingSpan>,
    /// By name without folder.
    files: HashMap<String, Vec<NamedFile>>,
    services: HashMap<NamingSpan, Arc<str>>,
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

impl Upload<'_> {
    fn is_without_service(&self) -> bool {
        self.service == UNKNOWN_SERVICE
    }
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
            self.services.insert(span, Arc::clone(service));
        }
        if let Some(path) = name_in(attributes, FILE) {
            let named = self.files.entry(file_name(&path).to_owned()).or_default();
            named.push(NamedFile { span, service: Arc::clone(service), path, from, until });
            self.services.insert(span, Arc::clone(service));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.files.is_empty()
    }

    /// The service of a span that names something.
    pub(crate) fn service_of(&self, span: &NamingSpan) -> Option<&str> {
        self.services.get(span).map(|service| &**service)
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
        let is_of_service = |named: &NamedFile| upload.is_without_service() || *named.service == *upload.service;
        let near = named.filter(|named| is_of_service(named) && apart(named) <= DAY);
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
    /// Those that may be of the service of the span that names them.
    without_service: Vec<FileWithoutService>,
}

#[derive(Debug)]
struct FileWithoutService {
    profile: [u8; 16],
    span: NamingSpan,
    service: Arc<str>,
    path: String,
    has_path: bool,
    from: i64,
    until: i64,
}

/// The services whose spans name a file, by its name without folder.
pub(crate) type FileServices = HashMap<String, HashSet<String>>;

impl NamedUploads {
    pub(crate) fn new(names: &SpanNames) -> Self {
        Self { profiles: names.stored_ids().collect(), ..Self::default() }
    }

    /// Adds an upload, if a span names it.
    pub(crate) fn add(&mut self, upload: &Upload<'_>, names: &SpanNames) {
        if let Some(span) = upload.names.id.as_ref().and_then(|id| names.ids.get(id)) {
            self.profiles.insert(upload.id, *span);
        } else if let Some(named) = names.of_file(upload) {
            let has_path = upload.names.file.as_ref() == Some(&named.path);
            if !upload.is_without_service() || *named.service == *upload.service {
                return self.join_file(upload.id, named.span, has_path);
            }
            self.without_service.push(FileWithoutService {
                profile: upload.id,
                span: named.span,
                service: Arc::clone(&named.service),
                path: named.path.clone(),
                has_path,
                from: upload.from,
                until: upload.until,
            });
        }
    }

    fn join_file(&mut self, profile: [u8; 16], span: NamingSpan, has_path: bool) {
        if has_path {
            self.with_path.insert(span);
            self.profiles.entry(profile).or_insert(span);
        } else {
            self.by_file_name.push((profile, span));
        }
    }

    /// The time of the spans that may name files without a service; none if there are no such files.
    pub(crate) fn time_without_service(&self) -> Option<(i64, i64)> {
        let from = self.without_service.iter().map(|file| file.from).min()?.saturating_sub(DAY);
        let until = self.without_service.iter().map(|file| file.until).max()?.saturating_add(DAY);
        Some((from, until))
    }

    /// Joins the files without a service that just one service names.
    pub(crate) fn join_without_service(&mut self, services: &FileServices) {
        for file in std::mem::take(&mut self.without_service) {
            let naming = services.get(file_name(&file.path));
            if naming.is_some_and(|naming| naming.iter().all(|service| **service == *file.service)) {
                self.join_file(file.profile, file.span, file.has_path);
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
pub(crate) fn file_name(path: &str) -> &str {
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
        assert_eq!(
            named.time_without_service().is_some(),
            uploads.iter().any(|(service, ..)| *service == UNKNOWN_SERVICE)
        );
        let mut services = FileServices::default();
        for named in names.files.values().flatten() {
            services.entry(file_name(&named.path).to_owned()).or_default().insert(named.service.to_string());
        }
        named.join_without_service(&services);
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

    /// Scenario: files of which nobody said the service: one that spans of two services name, one that spans of one do, on the
    /// day of the file and on another.
    /// Guarantee: the second alone is joined, and on its day.
    #[test]
    fn files_without_a_service() {
        let mut names = SpanNames::default();
        let (web, shop): (Arc<str>, Arc<str>) = ("web".into(), "shop".into());
        names.add(span(1), &web, (NOW, NOW + 10), &attribute(FILE, text("run.jfr")));
        names.add(span(2), &shop, (NOW + 5, NOW + 10), &attribute(FILE, text("/var/run.jfr")));
        names.add(span(3), &shop, (NOW, NOW + 10), &attribute(FILE, text("cpu.pprof")));
        names.add(span(4), &shop, (NOW + DAY, NOW + DAY + 10), &attribute(FILE, text("cpu.pprof")));
        let file = |path: &'static str, time: i64| (UNKNOWN_SERVICE, time, attribute(FILE, text(path)));
        let uploads = [file("run.jfr", NOW), file("/tmp/cpu.pprof", NOW), file("cpu.pprof", NOW - 2 * DAY)];
        assert_eq!(joined(&names, &uploads), [None, Some(3), None]);
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
