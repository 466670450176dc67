//! Ids of ad hoc profiles: a ULID, which sorts by time, and the name that the sender gave.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

/// What an uploaded profile is called, here and in the store. Safe as the name of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AdHocId {
    /// The ULID: 48 bits of milliseconds, 80 that tell apart what came in the same one.
    stamp: u128,
    name: String,
}

/// A text that no profile can have as its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not the id of an ad hoc profile; Upload and List give such ids")]
pub(crate) struct AdHocIdError;

/// Crockford's digits, in the order of their bytes.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const STAMP_DIGITS: usize = 26;
/// The longest name; with all that stands around it, it still is the name of a file.
const NAME_BYTES: usize = 100;
/// The name of what has none.
const NAMELESS: &str = "profile";

impl AdHocId {
    /// The id of a profile that came at `nanos` since 1970.
    pub(crate) fn new(nanos: i64, name: &str, content: &[u8]) -> Self {
        let nanos = nanos.unsigned_abs();
        let (millis, within) = (u128::from(nanos / 1_000_000), u128::from(nanos % 1_000_000));
        // No luck is needed: the same content in the same nanosecond is the same profile.
        let stamp = (millis << 80) | (within << 60) | u128::from(xxh3_64(content) >> 4);
        Self { stamp, name: file_name(name) }
    }

    /// When it came, in milliseconds since 1970.
    pub(crate) fn uploaded_at(&self) -> i64 {
        (self.stamp >> 80) as i64
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for AdHocId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |at: usize| char::from(DIGITS[(self.stamp >> (5 * at)) as usize % DIGITS.len()]);
        let stamp: String = (0..STAMP_DIGITS).rev().map(digit).collect();
        write!(out, "{stamp}-{}", self.name)
    }
}

impl FromStr for AdHocId {
    type Err = AdHocIdError;

    /// Takes what [`AdHocId::new`] can have made, and nothing else: it becomes a path.
    fn from_str(text: &str) -> Result<Self, AdHocIdError> {
        let (digits, name) = text.split_once('-').ok_or(AdHocIdError)?;
        // 26 digits hold 130 bits.
        if digits.len() != STAMP_DIGITS || digits > "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" || name != file_name(name) {
            return Err(AdHocIdError);
        }
        let number = |digit: u8| DIGITS.iter().position(|known| *known == digit).ok_or(AdHocIdError);
        let stamp = digits.bytes().try_fold(0, |stamp, digit| Ok((stamp << 5) | number(digit)? as u128))?;
        Ok(Self { stamp, name: name.to_owned() })
    }
}

/// The last part of a path, with letters, digits, dots, dashes and underscores only.
fn file_name(text: &str) -> String {
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = last.chars().take(NAME_BYTES).map(allowed).collect();
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Scenario: ids of one nanosecond after another, of other content, and of names that are paths.
    /// Guarantee: texts sort as they came and read back as themselves; names hold nothing that a path could use.
    #[test]
    fn ids_sort_and_come_back() {
        let now = 1_763_290_000_123_456_789;
        let ids = [
            AdHocId::new(now, "z.pb.gz", b"a"),
            AdHocId::new(now + 1, "../../etc/passwd", b"b"),
            AdHocId::new(now + 1_000_000, r"C:\tmp\größe 1.json", b"c"),
            AdHocId::new(now + 3_600_000_000_000, "", b"d"),
            AdHocId::new(i64::MAX, &"x".repeat(1000), b"e"),
        ];
        let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
        assert!(texts.is_sorted() && ids.is_sorted(), "{texts:?}");
        for (id, text) in ids.iter().zip(&texts) {
            assert_eq!(text.parse::<AdHocId>().as_ref(), Ok(id));
        }
        let names: Vec<&str> = ids.iter().map(AdHocId::name).take(4).collect();
        assert_eq!(names, ["z.pb.gz", "passwd", "gr__e_1.json", "profile"]);
        assert_eq!((ids[0].uploaded_at(), ids[4].name().len()), (now / 1_000_000, 100));
        assert_ne!(ids[0], AdHocId::new(now, "z.pb.gz", b"other"));
        assert!(texts[0].starts_with("01"), "as a ULID of this century starts: {}", texts[0]);
    }

    /// Scenario: texts that are nearly ids, or try to leave their folder.
    /// Guarantee: none is taken.
    #[test]
    fn other_texts_are_no_ids() {
        let stamp = "01KA5Z3Q4R5S6T7V8W9XAYBZC0";
        assert!(format!("{stamp}-a.json").parse::<AdHocId>().is_ok());
        let wrong = [
            String::new(),
            stamp.to_owned(),
            format!("{stamp}-"),
            format!("{stamp}-../a"),
            format!("{stamp}-a/b"),
            format!("{stamp}-a\0"),
            format!("../{stamp}-a"),
            format!("{}-a", stamp.to_lowercase()),
            format!("8{}-a", &stamp[1..]),
            format!("{}U-a", &stamp[1..]),
            format!("{}-a", &stamp[1..]),
            format!("{stamp}-{}", "x".repeat(101)),
        ];
        for text in wrong {
            assert_eq!(text.parse::<AdHocId>(), Err(AdHocIdError), "{text:?}");
        }
    }
}
