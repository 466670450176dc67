//! Lists of words as they are read best: a text with commas between them.

use std::ops::Deref;
use std::sync::OnceLock;

/// A list of words; cut into them once, when it is first looked at.
#[derive(Debug)]
pub(crate) struct Words {
    text: &'static str,
    words: OnceLock<Vec<&'static str>>,
}

impl Words {
    /// The words of a text, each followed by a comma and a blank but the last.
    pub(crate) const fn of(text: &'static str) -> Self {
        Self { text, words: OnceLock::new() }
    }
}

impl Deref for Words {
    type Target = [&'static str];

    fn deref(&self) -> &[&'static str] {
        self.words.get_or_init(|| self.text.split(", ").collect())
    }
}
