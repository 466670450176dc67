//! Parameters that nobody reads are refused, and so are values that mean nothing: a misspelt condition would widen the
//! answer without a word (R7).

use std::ops::RangeInclusive;

use axum::extract::Query;
use http::Uri;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

use super::ApiError;

/// The names, other spellings included, that a structure of parameters is read from.
pub(crate) fn names_of<P: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Nothing is there to be read; the structure has said its names by then.
    let _ = P::deserialize(NamesOnly(&mut names));
    names
}

/// Refuses an address with a parameter that is in none of these lists.
pub(crate) fn refuse_unknown(uri: &Uri, known: &[&[&str]]) -> Result<(), ApiError> {
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return Err(ApiError::invalid("the parameters can't be read"));
    };
    let is_known = |name: &str| known.iter().any(|names| names.contains(&name));
    match pairs.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let known = known.concat().join(", ");
            Err(ApiError::invalid(format!("the parameter {name:?} is not known; there are {known}")))
        }
    }
}

/// Refuses a value that is none of those that a parameter may have.
pub(crate) fn refuse_other(name: &str, value: &str, allowed: &[&str]) -> Result<(), ApiError> {
    let [others @ .., last] = allowed else { return Ok(()) };
    if allowed.contains(&value) {
        return Ok(());
    }
    let or = if others.is_empty() { "" } else { " or " };
    Err(ApiError::invalid(format!("{name} {value:?} is not known; use {}{or}{last}", others.join(", "))))
}

/// A count that a parameter gives, or the one that stands for it if it is not given. One that is too large or too small is
/// refused: another would be answered than was asked for.
pub(crate) fn count_within(
    name: &str,
    given: Option<usize>,
    default: usize,
    allowed: RangeInclusive<usize>,
) -> Result<usize, ApiError> {
    let count = given.unwrap_or(default);
    if allowed.contains(&count) {
        return Ok(count);
    }
    Err(ApiError::invalid(format!("{name} is {count}; it may be {} to {}", allowed.start(), allowed.end())))
}

/// Takes down the names that a structure asks for, and gives it nothing.
struct NamesOnly<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for NamesOnly<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only names are taken down"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Asked {
        #[serde(rename = "type", alias = "profile_type")]
        _kind: Option<String>,
        #[serde(rename = "limit")]
        _limit: Option<usize>,
    }

    /// Scenario: addresses with every name that a structure has, and with one that it has not.
    /// Guarantee: all spellings are known; the other is named together with what there is.
    #[test]
    fn names_of_structures() {
        assert_eq!(names_of::<Asked>(), ["profile_type", "type", "limit"]);
        let check =
            |address: &'static str| refuse_unknown(&Uri::from_static(address), &[names_of::<Asked>(), &["app"]]);
        assert!(check("/x").is_ok() && check("/x?profile_type=cpu&limit=3&app=a").is_ok());
        let error = check("/x?app=a&tpye=wall").unwrap_err().message;
        assert_eq!(error, "the parameter \"tpye\" is not known; there are profile_type, type, limit, app");
    }

    /// Scenario: values that a parameter may have, and others. Guarantee: the others are told with what is allowed.
    #[test]
    fn values_that_mean_nothing() {
        assert!(refuse_other("format", "json", &["json", "text"]).is_ok());
        let refused = |allowed: &[&str]| refuse_other("format", "csv", allowed).unwrap_err().message;
        assert_eq!(refused(&["json", "text", "svg"]), "format \"csv\" is not known; use json, text or svg");
        assert_eq!(refused(&["json"]), "format \"csv\" is not known; use json");
        let count = |given| count_within("limit", given, 5, 1..=9).map_err(|error| error.message);
        assert_eq!((count(None), count(Some(9))), (Ok(5), Ok(9)));
        assert_eq!(count(Some(0)), Err("limit is 0; it may be 1 to 9".to_owned()));
        assert_eq!(count(Some(10)), Err("limit is 10; it may be 1 to 9".to_owned()));
    }
}
