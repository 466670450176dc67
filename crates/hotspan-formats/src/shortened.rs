//! Texts that fit into a column of a terminal.

/// A text in at most `width` characters. The middle is what goes: a qualified name starts with whose it is, and ends with what it
/// does, which tells more.
pub fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let start = kept / 3;
    let end = text.chars().skip(length - (kept - start));
    text.chars().take(start).chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a name that fits exactly, and the same in ever less room. Guarantee: it fits, and its end is kept longest.
    #[test]
    fn names_fit() {
        let name = "shop::cart::größe";
        assert_eq!(shortened(name, 17), name);
        assert_eq!(shortened(name, 10), "sho…:größe");
        assert_eq!(shortened(name, 2), "…e");
        assert_eq!(shortened(name, 1), "…");
    }
}
