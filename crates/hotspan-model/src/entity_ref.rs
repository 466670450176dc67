//! Which attributes of a resource say what it is: OTLP's references to entities.

use crate::attribute::write_json_string;

/// An entity that a resource tells of: a service, a host or a process, by the keys of the resource's attributes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityRef<'a> {
    /// The schema that these attributes follow, or empty.
    pub schema_url: &'a str,
    /// What it is, `service` or `host` for instance.
    pub entity_type: &'a str,
    /// Keys of the attributes that identify it.
    pub id_keys: Vec<&'a str>,
    /// Keys of the attributes that describe it.
    pub description_keys: Vec<&'a str>,
}

/// Appends entities as a JSON list of objects with the names that OTLP has for their fields.
pub fn write_entity_refs(entities: &[EntityRef<'_>], out: &mut String) {
    write_list(entities, out, |entity, out| {
        out.push_str("{\"schema_url\":");
        write_json_string(entity.schema_url, out);
        out.push_str(",\"type\":");
        write_json_string(entity.entity_type, out);
        out.push_str(",\"id_keys\":");
        write_list(&entity.id_keys, out, |key, out| write_json_string(key, out));
        out.push_str(",\"description_keys\":");
        write_list(&entity.description_keys, out, |key, out| write_json_string(key, out));
        out.push('}');
    });
}

fn write_list<T>(items: &[T], out: &mut String, write: impl Fn(&T, &mut String)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}
