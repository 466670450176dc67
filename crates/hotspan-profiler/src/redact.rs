//! Names that must not leave the process.

/// Replaces function names and tag values that match a pattern. `*` stands for any run of characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redaction {
    patterns: Vec<String>,
}

/// What stands in for a redacted name.
pub(crate) const REDACTED: &str = "[redacted]";

impl Redaction {
    /// Redacts whatever matches one of the patterns, in full.
    pub fn matching<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Redaction {
        Redaction { patterns: patterns.into_iter().map(Into::into).collect() }
    }

    /// The name as it may leave the process.
    pub(crate) fn apply<'a>(&self, name: &'a str) -> &'a str {
        if self.covers(name) { REDACTED } else { name }
    }

    pub(crate) fn covers(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| matches_glob(pattern.as_bytes(), name.as_bytes()))
    }
}

/// Matches with one remembered star: linear in practice, never exponential.
fn matches_glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((star, taken)) = retry {
            retry = Some((star, taken + 1));
            p = star + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: patterns with stars at every place, and names that nearly match.
    /// Guarantee: whole names are compared, and only matching ones are hidden.
    #[test]
    fn patterns_match_whole_names() {
        let redaction = Redaction::matching(["*secret*", "crate::pay::*", "exact"]);
        assert_eq!(redaction.apply("my::secret::key"), REDACTED);
        assert_eq!(redaction.apply("crate::pay::charge"), REDACTED);
        assert_eq!(redaction.apply("exact"), REDACTED);
        assert_eq!(redaction.apply("exactly"), "exactly");
        assert_eq!(redaction.apply("crate::payment"), "crate::payment");
        assert!(matches_glob(b"a*b*c", b"a--b--b-c") && !matches_glob(b"a*b*c", b"a--b--b-"));
        assert_eq!(Redaction::default().apply("secret"), "secret");
    }
}
