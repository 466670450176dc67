//! The names of an uploaded file, by which spans can refer to it: `profile.file` and `profile.id`.

use std::borrow::Cow;

use hotspan_model::attribute::write_json_object;
use hotspan_model::labels::PROFILE_SOURCE;
use hotspan_model::{Attribute, ProfileSet, Value, attributes_from_json};

/// What the sender calls a file.
#[derive(Debug, Clone, Default)]
pub(super) struct UploadName {
    /// Its name on disk.
    pub(super) file: Option<String>,
    /// The id that it was given.
    pub(super) id: Option<String>,
}

impl UploadName {
    /// The same with the name of a file of a form, unless the sender says another.
    pub(super) fn or_file(&self, file: Option<&str>) -> Self {
        Self { file: self.file.clone().or_else(|| file.map(str::to_owned)), id: self.id.clone() }
    }

    /// Writes the names into every profile of the file. They are attributes and no labels, since each would make a
    /// series of its own; one label says that there are some.
    pub(super) fn mark<'a>(&self, mut set: ProfileSet<'a>) -> ProfileSet<'a> {
        let names = [("profile.file", &self.file), ("profile.id", &self.id)];
        let names: Vec<(&str, &str)> =
            names.into_iter().filter_map(|(key, name)| Some((key, name.as_deref()?))).collect();
        if names.is_empty() {
            return set;
        }
        for profile in &mut set.profiles {
            let mut attributes = attributes_from_json(&profile.context.attributes);
            attributes.retain(|attribute| names.iter().all(|(key, _)| attribute.key != *key));
            let new = |(key, name): &(&str, &str)| Attribute {
                key: Cow::Owned((*key).to_owned()),
                value: Value::String(Cow::Owned((*name).to_owned())),
            };
            attributes.extend(names.iter().map(new));
            let mut json = String::new();
            write_json_object(&attributes, &mut json);
            profile.context.attributes = Cow::Owned(json);
            profile.labels.set(PROFILE_SOURCE, "file");
        }
        set
    }
}
