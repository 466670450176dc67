//! What a source says about a profile as a whole, as the JSON texts that the lake keeps.

use std::fmt::Write as _;

use hotspan_model::attribute::{write_json_object, write_json_string};
use hotspan_model::entity_ref::write_entity_refs;
use hotspan_model::{Resource, Scope};

use super::super::fault::Read;
use super::budget::Budget;
use super::dictionary::{Dictionary, TableAttribute};

/// `{"attributes":{…},"schema_url":…,"dropped_attributes_count":n,"entity_refs":[…]}`, what is empty left out.
pub(super) fn resource_json(resource: &Resource<'_>) -> String {
    let mut object = Object::default();
    if !resource.attributes.is_empty() {
        write_json_object(&resource.attributes, object.member("attributes"));
    }
    object.text("schema_url", resource.schema_url);
    object.number("dropped_attributes_count", resource.dropped_attributes_count);
    if !resource.entity_refs.is_empty() {
        write_entity_refs(&resource.entity_refs, object.member("entity_refs"));
    }
    object.finish()
}

/// The same for a scope, with its name and version.
pub(super) fn scope_json(scope: &Scope<'_>) -> String {
    let mut object = Object::default();
    object.text("name", scope.name);
    object.text("version", scope.version);
    if !scope.attributes.is_empty() {
        write_json_object(&scope.attributes, object.member("attributes"));
    }
    object.text("schema_url", scope.schema_url);
    object.number("dropped_attributes_count", scope.dropped_attributes_count);
    object.finish()
}

/// Appends the attributes with these indices as an object, and says how many there are.
///
/// The budget is charged one by one, since an index of one byte may stand for a text of a megabyte.
pub(super) fn write_table_attributes(
    dictionary: &Dictionary<'_>,
    indices: &[i32],
    budget: &mut Budget,
    out: &mut String,
) -> Read<usize> {
    let mut count = 0;
    out.push('{');
    for index in indices {
        if let Some(attribute) = dictionary.attribute(*index)? {
            let before = out.len();
            write_table_attribute(attribute, count, out);
            budget.charge(out.len() - before)?;
            count += 1;
        }
    }
    out.push('}');
    Ok(count)
}

/// Appends one attribute as a member of an object; `earlier` is how many it has already.
///
/// A unit is kept as `{"$value":…,"$unit":…}`; keys of the sender's own that start with `$` have a second one.
pub(super) fn write_table_attribute(attribute: &TableAttribute<'_>, earlier: usize, out: &mut String) {
    if earlier > 0 {
        out.push(',');
    }
    if attribute.key.starts_with('$') {
        write_json_string(&format!("${}", attribute.key), out);
    } else {
        write_json_string(&attribute.key, out);
    }
    out.push(':');
    if attribute.unit.is_empty() {
        attribute.value.write_json(out);
    } else {
        out.push_str("{\"$value\":");
        attribute.value.write_json(out);
        out.push_str(",\"$unit\":");
        write_json_string(&attribute.unit, out);
        out.push('}');
    }
}

/// A JSON object in the making, without its braces.
#[derive(Default)]
struct Object {
    members: String,
}

impl Object {
    fn member(&mut self, name: &str) -> &mut String {
        if !self.members.is_empty() {
            self.members.push(',');
        }
        // Writing into a String can't fail.
        let _ = write!(self.members, "\"{name}\":");
        &mut self.members
    }

    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            write_json_string(text, self.member(name));
        }
    }

    fn number(&mut self, name: &str, number: u32) {
        if number != 0 {
            let _ = write!(self.member(name), "{number}");
        }
    }

    fn finish(self) -> String {
        if self.members.is_empty() { String::new() } else { format!("{{{}}}", self.members) }
    }
}
