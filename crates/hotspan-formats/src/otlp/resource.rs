//! Resources and scopes, which traces and profiles share.

use hotspan_model::{EntityRef, Resource, Scope};

use super::attributes::ItemReader;
use super::fault::{Locate as _, Read};
use super::wire::{Field, Reader};

/// Reads the `resource` of a `ResourceSpans` or `ResourceProfiles`; one that comes in parts is put together.
pub(crate) fn merge_resource<'a>(
    mut message: Reader<'a>,
    items: &mut ItemReader<'a, '_>,
    into: &mut Resource<'a>,
) -> Read<()> {
    while let Some(field) = message.field()? {
        match field.number {
            1 => items.attribute(&mut message, field, &mut into.attributes)?,
            2 => {
                let count = message.varint(field).field("dropped_attributes_count")?;
                into.dropped_attributes_count = count as u32;
            }
            3 => {
                let index = into.entity_refs.len();
                let entity = message.message(field).element("entity_refs", index)?;
                into.entity_refs.push(read_entity_ref(entity, items).element("entity_refs", index)?);
            }
            _ => message.skip(field)?,
        }
    }
    Ok(())
}

fn read_entity_ref<'a>(mut message: Reader<'a>, items: &mut ItemReader<'a, '_>) -> Read<EntityRef<'a>> {
    items.charge(size_of::<EntityRef<'_>>())?;
    let mut entity = EntityRef::default();
    while let Some(field) = message.field()? {
        match field.number {
            1 => entity.schema_url = read_text(&mut message, field, items).field("schema_url")?,
            2 => entity.entity_type = read_text(&mut message, field, items).field("type")?,
            3 => push_key(&mut message, field, items, &mut entity.id_keys).field("id_keys")?,
            4 => push_key(&mut message, field, items, &mut entity.description_keys).field("description_keys")?,
            _ => message.skip(field)?,
        }
    }
    Ok(entity)
}

fn push_key<'a>(
    message: &mut Reader<'a>,
    field: Field,
    items: &mut ItemReader<'a, '_>,
    into: &mut Vec<&'a str>,
) -> Read<()> {
    items.charge(size_of::<&str>())?;
    into.push(read_text(message, field, items)?);
    Ok(())
}

fn read_text<'a>(message: &mut Reader<'a>, field: Field, items: &mut ItemReader<'a, '_>) -> Read<&'a str> {
    message.bytes(field).and_then(|bytes| items.borrowed_text(bytes))
}

/// Reads the `scope` of a `ScopeSpans` or `ScopeProfiles`; one that comes in parts is put together.
pub(crate) fn merge_scope<'a>(
    mut message: Reader<'a>,
    items: &mut ItemReader<'a, '_>,
    into: &mut Scope<'a>,
) -> Read<()> {
    while let Some(field) = message.field()? {
        match field.number {
            1 => into.name = read_text(&mut message, field, items).field("name")?,
            2 => into.version = read_text(&mut message, field, items).field("version")?,
            3 => items.attribute(&mut message, field, &mut into.attributes)?,
            4 => {
                let count = message.varint(field).field("dropped_attributes_count")?;
                into.dropped_attributes_count = count as u32;
            }
            _ => message.skip(field)?,
        }
    }
    Ok(())
}
