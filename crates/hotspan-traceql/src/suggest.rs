//! The nearest known name to a mistyped one.

/// The candidate with the smallest edit distance to `typed`, if it is near enough to be what was meant.
///
/// Hand it the attribute names a store knows to suggest one for a filter that found nothing.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match typed.chars().count() {
        0 => return None,
        1..=2 => 1,
        3..=5 => 2,
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
