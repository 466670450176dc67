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

/// A sentence in lines of at most `width` characters, each behind `indent` spaces; without a width, in one. A word that is
/// longer than a line has one of its own.
pub fn wrapped(sentence: &str, indent: usize, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
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

    /// Scenario: a sentence with room for all of it, for some words, and for less than one.
    /// Guarantee: no line is longer than it may be unless it is one word, and no word is lost.
    #[test]
    fn sentences_are_wrapped() {
        let sentence = "7 samples, größtenteils alone";
        assert_eq!(wrapped(sentence, 2, None), "  7 samples, größtenteils alone\n");
        assert_eq!(wrapped(sentence, 2, Some(20)), "  7 samples,\n  größtenteils alone\n");
        assert_eq!(wrapped(sentence, 1, Some(5)), " 7\n samples,\n größtenteils\n alone\n");
    }
}
