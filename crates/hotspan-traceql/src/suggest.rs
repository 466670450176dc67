//! The nearest known name to a mistyped one.

use crate::ast::{Field, Query, Scope};
use crate::error::SourceRange;

/// The candidate with the smallest edit distance to `typed`, if it is near enough to be what was meant.
///
/// Hand it the attribute names a store knows to suggest one for a filter that found nothing.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match typed.chars().count() {
        0 => return None,
        1..=3 => 1,
        4..=6 => 2,
        _ => 3,
    };
    let lower = typed.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| *candidate != typed)
        .map(|candidate| (edit_distance(&lower, &candidate.to_lowercase(), allowed), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// For every attribute of a query that a store does not know: its place, and the nearest name it does know. `known`
/// has full names such as `span.http.method`; this is how an empty result can say what was probably meant.
pub fn suggest_attributes(query: &Query, known: &[&str]) -> Vec<(SourceRange, String)> {
    let mut suggestions = Vec::new();
    query.for_each_field(&mut |field, range| {
        let Field::Attribute { scope, name, .. } = field else { return };
        let plain = Field::attribute(*scope, name.clone()).to_string();
        let unscoped = |full: &str| full.split_once('.').map_or_else(String::new, |(_, rest)| rest.to_owned());
        let is_known = match scope {
            Scope::Unscoped => known.iter().any(|full| unscoped(full) == *name),
            _ => known.contains(&plain.as_str()),
        };
        if is_known {
            return;
        }
        // The right name under another scope is nearer than another name under the right scope.
        let elsewhere = known.iter().find(|full| unscoped(full) == *name).copied();
        let near = || match scope {
            Scope::Unscoped => {
                let names: Vec<String> = known.iter().map(|full| unscoped(full)).collect();
                let close = nearest(name, names.iter().map(String::as_str))?.to_owned();
                known.iter().find(|full| unscoped(full) == close).copied()
            }
            _ => nearest(&plain, known.iter().copied()),
        };
        if let Some(meant) = elsewhere.or_else(near) {
            suggestions.push((range, meant.to_owned()));
        }
    });
    suggestions
}

/// Edits (insert, delete, replace, swap of neighbours) that turn one text into the other; anything over
/// `allowed` may be reported as just `allowed + 1`.
fn edit_distance(left: &str, right: &str, allowed: usize) -> usize {
    let left: Vec<char> = left.chars().take(65).collect();
    let right: Vec<char> = right.chars().take(65).collect();
    if left.len().abs_diff(right.len()) > allowed {
        return allowed + 1;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, from) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, to) in right.iter().enumerate() {
            let replace = last[column] + usize::from(from != to);
            let mut best = replace.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && *from == right[column - 1] && left[row - 1] == *to {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a query with attributes under the wrong scope, mistyped, known and unknown, inside every construct.
    /// Guarantee: each unknown one near to a known one is reported at its place, the others are not.
    #[test]
    fn suggests_for_unknown_attributes() {
        let known = ["span.http.method", "resource.service.name", "span.rows"];
        let text = "{ .http.methd = 1 && span.service.name = 2 } | by(.rows) | sum(span.row) > 1 | avg(.zebra) > 2";
        let found: Vec<(usize, String)> = suggest_attributes(&crate::parse(text).unwrap(), &known)
            .into_iter()
            .map(|(range, meant)| (range.start, meant))
            .collect();
        let expected = [(2, "span.http.method"), (21, "resource.service.name"), (63, "span.rows")];
        assert_eq!(found, expected.map(|(at, name)| (at, name.to_owned())));
    }

    /// Scenario: common slips of the finger against a list of names.
    /// Guarantee: the meant name is found, an unrelated word finds nothing, an exact name is not suggested again.
    #[test]
    fn finds_what_was_meant() {
        let names = ["duration", "name", "status", "kind"];
        assert_eq!(nearest("duratoin", names), Some("duration"));
        assert_eq!(nearest("Stauts", names), Some("status"));
        assert_eq!(nearest("nmae", names), Some("name"));
        assert_eq!(nearest("pineapple", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("name", names), None);
    }
}
