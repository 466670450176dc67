//! `name{label=value}`: how `/ingest` names an application and its labels.

use hotspan_model::Labels;

use crate::decode_options::TextType;

/// An application as `/ingest` names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppName {
    /// What precedes the braces: `order-service.cpu`.
    pub name: String,
    /// What stands in the braces.
    pub labels: Labels,
}

/// Why a text is no application name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppNameError {
    /// There is nothing before the braces.
    #[error("an application name is missing before the labels")]
    Empty,
    /// A character that names can't have.
    #[error("{found:?} at byte {at} can't stand in {place}; letters, digits and {others} can")]
    Character {
        /// The first character that does not fit.
        found: char,
        /// Where it stands.
        at: usize,
        /// What it stands in.
        place: &'static str,
        /// What else is allowed there.
        others: &'static str,
    },
}

impl AppName {
    /// Reads a name. Values are not escaped, a missing closing brace is tolerated, and of equal names the later one wins.
    /// Clients do not quote values; people do, as they do in a selector, and mean the same.
    pub fn parse(text: &str) -> Result<Self, AppNameError> {
        let (name, labels) = text.split_once('{').map_or((text, ""), |(name, labels)| (name, labels));
        let name = name.trim();
        if name.is_empty() {
            return Err(AppNameError::Empty);
        }
        check(name, 0, "an application name", "_ . - /", |c| matches!(c, '_' | '.' | '-' | '/'))?;
        let mut pairs = Vec::new();
        let labels = labels.split_once('}').map_or(labels, |(labels, _)| labels);
        for pair in labels.split(',') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() {
                continue;
            }
            // The pair is a part of the text, so its distance from the start is where it stands.
            let at = key.as_ptr() as usize - text.as_ptr() as usize;
            check(key, at, "a label name", "_ .", |c| matches!(c, '_' | '.'))?;
            pairs.push((key, unquoted(value)));
        }
        Ok(Self { name: name.to_owned(), labels: Labels::from_pairs(pairs) })
    }

    /// The type that the last dot-suffix of the name selects, for formats that have none of their own: one of Pyroscope's, or
    /// else what queries call a type.
    pub fn text_type(&self, sample_rate: u32) -> Option<TextType> {
        let short_name = || {
            let profile_type = self.name.rsplit_once('.')?.1.parse().ok()?;
            Some(TextType { profile_type, scale: 1 })
        };
        TextType::from_app_name(&self.name, sample_rate).or_else(short_name)
    }

    /// The service: the name without the suffix that selects a type. Where the format has types of its own, only suffixes that
    /// clients send are no part of the name.
    pub fn service(&self, format_has_types: bool) -> &str {
        let selects_type = match format_has_types {
            true => TextType::from_app_name(&self.name, 100).is_some(),
            false => self.text_type(100).is_some(),
        };
        match self.name.rsplit_once('.') {
            Some((service, _)) if selects_type => service,
            _ => &self.name,
        }
    }
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

fn check(
    text: &str,
    start: usize,
    place: &'static str,
    others: &'static str,
    also: impl Fn(char) -> bool,
) -> Result<(), AppNameError> {
    match text.char_indices().find(|(_, c)| !c.is_ascii_alphanumeric() && !also(*c)) {
        Some((at, found)) => Err(AppNameError::Character { found, at: start + at, place, others }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: names as agents and people send them, whole and damaged.
    /// Guarantee: labels and type are found; an error names the character and its place.
    #[test]
    fn names() {
        let app = AppName::parse("team/order-service.cpu{region= eu ,span_id=00ab,region=us").unwrap();
        assert_eq!(app.labels, Labels::from_pairs([("region", "us"), ("span_id", "00ab")]));
        assert_eq!(AppName::parse(r#"shop{region="us", span_id="00ab"}"#).unwrap().labels, app.labels);
        assert_eq!(app.text_type(100).unwrap().scale, 10_000_000);
        assert_eq!(app.service(true), "team/order-service");
        assert_eq!(AppName::parse("shop.eu").unwrap().service(false), "shop.eu");
        let off_cpu = AppName::parse("shop.off_cpu").unwrap();
        assert_eq!(off_cpu.text_type(100).unwrap().profile_type.to_string(), "off_cpu:off_cpu:nanoseconds::");
        assert_eq!((off_cpu.service(false), off_cpu.service(true)), ("shop", "shop.off_cpu"));
        assert_eq!(AppName::parse("{a=b}"), Err(AppNameError::Empty));
        let error = AppName::parse("shop{a b=c}").unwrap_err().to_string();
        assert_eq!(error, "' ' at byte 6 can't stand in a label name; letters, digits and _ . can");
    }
}
