//! Paths of fields in messages for people: long ones lose their middle.
//!
//! How deep a value nests is up to its sender. What a person looks for is at both ends: which span it is, and which field.

/// Bytes that are kept of a long path's start: resource, scope, span and attribute.
const START_BYTES: usize = 120;
/// Bytes that are kept of its end.
const END_BYTES: usize = 60;

/// The path, its middle left out if it is long. Steps stay whole.
pub(crate) fn shortened(path: String) -> String {
    if path.len() <= START_BYTES + END_BYTES {
        return path;
    }
    let start = &path[..path.floor_char_boundary(START_BYTES)];
    let end = &path[path.ceil_char_boundary(path.len() - END_BYTES)..];
    let start = start.rsplit_once('.').map_or(start, |(whole, _)| whole);
    let end = end.split_once('.').map_or(end, |(_, whole)| whole);
    format!("{start}.….{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a path of usual length, and one through a hundred lists in each other.
    /// Guarantee: the first is left alone; of the second both ends are kept, in whole steps.
    #[test]
    fn long_paths_lose_their_middle() {
        let short = "resource_spans[0].scope_spans[0].spans[0].attributes[0].value".to_owned();
        assert_eq!(shortened(short.clone()), short);
        let long = format!("{short}{}.key", ".array_value.values[0]".repeat(100));
        assert_eq!(
            shortened(long),
            "resource_spans[0].scope_spans[0].spans[0].attributes[0].value.array_value.values[0].array_value.values[0]\
             .array_value.….values[0].array_value.values[0].array_value.values[0].key"
        );
    }
}
