//! Resources and scopes, which traces and profiles share.

use hotspan_model::{Resource, Scope};

use super::attributes::ItemReader;
use super::fault::{Locate as _, Read};
use super::wire::Reader;

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
            _ => message.skip(field)?,
        }
    }
    Ok(())
}

/// Reads the `scope` of a `ScopeSpans` or `ScopeProfiles`; one that comes in parts is put together.
pub(crate) fn merge_scope<'a>(
    mut message: Reader<'a>,
    items: &mut ItemReader<'a, '_>,
    into: &mut Scope<'a>,
) -> Read<()> {
    while let Some(field) = message.field()? {
        match field.number {
            1 => into.name = message.bytes(field).and_then(|bytes| items.borrowed_text(bytes)).field("name")?,
            2 => into.version = message.bytes(field).and_then(|bytes| items.borrowed_text(bytes)).field("version")?,
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
