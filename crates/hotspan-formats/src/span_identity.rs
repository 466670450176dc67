//! The many spellings under which profilers attach span and trace ids to samples.
//!
//! An id is a [`Link`], never a label: as a label each would make a series of its own. Whoever reads labels (OTLP
//! attributes, pprof labels, JFR contexts, `/ingest` names) shows each one to an [`Identity`] first, and keeps
//! those that it does not take.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hotspan_model::{Link, SpanId, TraceId};

/// What a label that speaks of a span means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityLabel {
    /// Id of the span that was running.
    Span,
    /// Id of its trace.
    Trace,
    /// Id of the topmost span of this process in the trace, under which the running one is.
    LocalRoot,
    /// Name of the span: an ordinary label, since there are few of them.
    SpanName,
}

/// How a spelling writes numbers that could be read either way, `1234` for instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    /// OpenTelemetry, Pyroscope, Elastic.
    Hex,
    /// Datadog.
    Decimal,
    /// Sixteen of them in hexadecimal; whatever else has this name is an ordinary label.
    SixteenHex,
}

/// Spellings in lower case, without what stands between the words.
const SPELLINGS: &[(&str, IdentityLabel, Digits)] = &[
    ("spanid", IdentityLabel::Span, Digits::Hex),
    ("otelspanid", IdentityLabel::Span, Digits::Hex),
    ("traceid", IdentityLabel::Trace, Digits::Hex),
    ("oteltraceid", IdentityLabel::Trace, Digits::Hex),
    ("localrootspanid", IdentityLabel::LocalRoot, Digits::Hex),
    ("ddspanid", IdentityLabel::Span, Digits::Decimal),
    ("ddtraceid", IdentityLabel::Trace, Digits::Decimal),
    ("ddlocalrootspanid", IdentityLabel::LocalRoot, Digits::Decimal),
    ("spanname", IdentityLabel::SpanName, Digits::Hex),
];

/// Spellings that have their meaning only in exactly this form.
const EXACT_SPELLINGS: &[(&str, IdentityLabel, Digits)] = &[
    // Pyroscope's first name for the span id; `profile.id` would be another thing.
    ("profile_id", IdentityLabel::Span, Digits::Hex),
    // Datadog's, told from the others by their spaces.
    ("span id", IdentityLabel::Span, Digits::Decimal),
    ("trace id", IdentityLabel::Trace, Digits::Decimal),
    ("local root span id", IdentityLabel::LocalRoot, Digits::Decimal),
    // Elastic calls the first span of a process a transaction. Shops have transactions as well.
    ("transaction.id", IdentityLabel::LocalRoot, Digits::SixteenHex),
];

const LONGEST_SPELLING: usize = 24;

/// Whether a label with this name holds an id, whatever its value: as a label, each would make a series of its own.
pub(crate) fn is_id(label_name: &str) -> bool {
    classify(label_name).is_some_and(|meaning| meaning != IdentityLabel::SpanName)
}

/// What the label with this name says about a span, if anything; none where that depends on its value.
pub fn classify(label_name: &str) -> Option<IdentityLabel> {
    spelling(label_name).filter(|(_, digits)| *digits != Digits::SixteenHex).map(|(meaning, _)| meaning)
}

fn spelling(label_name: &str) -> Option<(IdentityLabel, Digits)> {
    if label_name.len() > LONGEST_SPELLING || label_name.len() < 6 {
        return None;
    }
    if let Some((_, meaning, digits)) = EXACT_SPELLINGS.iter().find(|(name, ..)| *name == label_name) {
        return Some((*meaning, *digits));
    }
    let is_separator = |byte: &u8| matches!(byte, b'_' | b'.' | b'-' | b' ');
    let name = label_name.as_bytes();
    if name.first().is_some_and(is_separator) || name.last().is_some_and(is_separator) {
        return None;
    }
    let mut bare = [0; LONGEST_SPELLING];
    let mut length = 0;
    for byte in name.iter().filter(|byte| !is_separator(byte)) {
        bare[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let found = SPELLINGS.iter().find(|(name, ..)| name.as_bytes() == &bare[..length]);
    found.map(|(_, meaning, digits)| (*meaning, *digits))
}

impl Digits {
    /// Whether a text can be an id where its label may be about something else.
    fn may_write(self, value: &str) -> bool {
        self != Self::SixteenHex || value.len() == 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// What the labels of one sample say about its span, put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity {
    /// The span that was running.
    pub span: Option<SpanId>,
    /// Its trace.
    pub trace: Option<TraceId>,
    /// The local root above it.
    pub local_root: Option<SpanId>,
}

impl Identity {
    /// Takes a label that holds an id. Says whether it was one, or an empty or zero one, which is how profilers write "no
    /// span". What can't be read is not taken: by its name ([`is_id`]) it is kept as an attribute, never as a label.
    pub fn take_text(&mut self, label_name: &str, value: &str) -> bool {
        let Some((meaning, digits)) = spelling(label_name).filter(|(_, digits)| digits.may_write(value)) else {
            return false;
        };
        let is_read = match meaning {
            IdentityLabel::Span => read_into(&mut self.span, span_id(value, digits)),
            IdentityLabel::LocalRoot => read_into(&mut self.local_root, span_id(value, digits)),
            IdentityLabel::Trace => read_into(&mut self.trace, trace_id(value, digits)),
            IdentityLabel::SpanName => return false,
        };
        is_read || says_none(value)
    }

    /// Takes a label that holds an id as a number; a negative one is the same 64 bits.
    pub fn take_number(&mut self, label_name: &str, value: i64) -> bool {
        let Some((meaning, _)) = spelling(label_name).filter(|(_, digits)| *digits != Digits::SixteenHex) else {
            return false;
        };
        let bytes = value.to_be_bytes();
        match meaning {
            IdentityLabel::Span => self.span = SpanId::from_slice(&bytes).or(self.span),
            IdentityLabel::LocalRoot => self.local_root = SpanId::from_slice(&bytes).or(self.local_root),
            IdentityLabel::Trace => self.trace = low_trace_id(bytes).or(self.trace),
            IdentityLabel::SpanName => return false,
        }
        true
    }

    /// Takes a label that holds an id as raw bytes.
    pub fn take_bytes(&mut self, label_name: &str, value: &[u8]) -> bool {
        let Some((meaning, _)) = spelling(label_name) else {
            return false;
        };
        let is_read = match meaning {
            IdentityLabel::Span => read_into(&mut self.span, SpanId::from_slice(value)),
            IdentityLabel::LocalRoot => read_into(&mut self.local_root, SpanId::from_slice(value)),
            IdentityLabel::Trace => read_into(&mut self.trace, TraceId::from_slice(value)),
            IdentityLabel::SpanName => return false,
        };
        is_read || value.iter().all(|byte| *byte == 0)
    }

    /// The link these ids make. Without a span of its own, the sample belongs to the local root.
    pub fn link(&self) -> Link {
        Link { trace_id: self.trace.unwrap_or_default(), span_id: self.span.or(self.local_root).unwrap_or_default() }
    }
}

/// Takes down an id that was read. Says whether it was.
fn read_into<I>(slot: &mut Option<I>, id: Option<I>) -> bool {
    let is_read = id.is_some();
    if is_read {
        *slot = id;
    }
    is_read
}

/// Whether a text is one of those that stand for no id: nothing, or zeros however they are written.
fn says_none(text: &str) -> bool {
    let text = text.trim();
    hex(text).bytes().all(|byte| matches!(byte, b'0' | b'-'))
        || base64_bytes(text).is_some_and(|bytes| matches!(bytes.len(), 8 | 16) && bytes.iter().all(|byte| *byte == 0))
}

/// A span id as scripts and people write it: hex of either case, padded if short, or base64.
pub fn parse_span_id(text: &str) -> Option<SpanId> {
    span_id(text, Digits::Hex)
}

/// What an id may be, for whoever wrote something else.
pub const ID_FORMS: &str = "ids are hexadecimal, of a span 16 digits and of a trace 32, or base64";

/// A trace id as scripts and people write it: hex of either case, padded if short, or base64.
pub fn parse_trace_id(text: &str) -> Option<TraceId> {
    trace_id(text, Digits::Hex)
}

fn span_id(whole: &str, digits: Digits) -> Option<SpanId> {
    let text = whole.trim();
    if digits == Digits::Decimal
        && let Ok(number) = text.parse::<u64>()
    {
        return SpanId::from_slice(&number.to_be_bytes());
    }
    // A decimal number has more digits than an id in hexadecimal unless it is a small one.
    let decimal = || SpanId::from_slice(&text.parse::<u64>().ok()?.to_be_bytes());
    hex(text).parse().ok().or_else(decimal).or_else(|| base64_id(whole, SpanId::from_slice))
}

fn trace_id(whole: &str, digits: Digits) -> Option<TraceId> {
    let text = whole.trim();
    // Datadog writes the low 64 bits in decimal, or all 128 in hex, which is longer.
    if digits == Digits::Decimal
        && text.len() <= 20
        && let Ok(number) = text.parse::<u64>()
    {
        return low_trace_id(number.to_be_bytes());
    }
    hex(text).parse().ok().or_else(|| base64_id(whole, TraceId::from_slice))
}

fn low_trace_id(low: [u8; 8]) -> Option<TraceId> {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&low);
    TraceId::from_slice(&bytes)
}

fn hex(text: &str) -> &str {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text)
}

/// An id in base64. A `+` that was not escaped in an address arrives as a space, at the ends as well; spaces that are
/// none make the text too long for an id.
fn base64_id<I>(text: &str, from_slice: impl Fn(&[u8]) -> Option<I>) -> Option<I> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return None;
    }
    let read = |text: &str| from_slice(&base64_bytes(&text.replace(' ', "+"))?);
    // What is padded is whole but for those at its start, which selectors without quotes have lost.
    let lost = || trimmed.ends_with('=').then(|| format!("{}{trimmed}", "+".repeat(missing_of_base64(trimmed))));
    read(text).or_else(|| read(trimmed)).or_else(|| read(&lost()?))
}

/// How many characters a padded text lacks to groups of four.
fn missing_of_base64(text: &str) -> usize {
    text.len().wrapping_neg() % 4
}

/// Bytes from base64 of either alphabet, with or without padding.
pub(crate) fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: every spelling that is met in the wild, and some that only look like one.
    /// Guarantee: the first are understood, the others stay labels.
    #[test]
    fn spellings() {
        for name in ["span_id", "span.id", "spanId", "SpanId", "SPAN-ID", "span id", "profile_id", "dd.span_id"] {
            assert_eq!(classify(name), Some(IdentityLabel::Span), "{name}");
        }
        for name in ["otel.span_id", "otel.spanId", "otelSpanID", "OTEL_SPAN_ID", "ddSpanId", "dd-span-id"] {
            assert_eq!(classify(name), Some(IdentityLabel::Span), "{name}");
        }
        for name in ["trace_id", "trace.id", "traceId", "trace id", "dd.trace_id", "otel.trace_id", "otelTraceID"] {
            assert_eq!(classify(name), Some(IdentityLabel::Trace), "{name}");
        }
        for name in ["local root span id", "localRootSpanId", "local.root.span.id", "dd.local_root_span_id"] {
            assert_eq!(classify(name), Some(IdentityLabel::LocalRoot), "{name}");
        }
        assert_eq!(classify("span_name"), Some(IdentityLabel::SpanName));
        for name in
            ["", "id", "span", "container.id", "request_id", "profile.id", "profile.id.of.something.else", "span_idé"]
                .into_iter()
                .chain(["_span_id", "span_id_", "......", "spanids", "transaction_id", "transaction.id"])
        {
            assert_eq!(classify(name), None, "{name}");
        }
    }

    /// Scenario: one span id in hex of either case, short, decimal, base64 and as a number.
    /// Guarantee: one id.
    #[test]
    fn one_id_however_written() {
        let id: SpanId = "00000000000004d2".parse().unwrap();
        let texts =
            [("span_id", "00000000000004d2"), ("spanId", "4D2"), ("ddSpanId", "1234"), ("otelSpanID", "AAAAAAAABNI=")];
        for (name, text) in texts {
            let mut identity = Identity::default();
            assert!(identity.take_text(name, text));
            assert_eq!(identity.span, Some(id), "{name}={text}");
        }
        let mut identity = Identity::default();
        assert!(identity.take_number("span id", 1234));
        assert_eq!(identity.link().span_id, id);
        assert_eq!(parse_trace_id("EjRWeJASNFZ4kBI0VniQEg=="), "12345678901234567890123456789012".parse().ok());
    }

    /// Scenario: ids in base64 with `+` at either end and inside, as they arrive from an address in which it was not
    /// escaped; ids with spaces around them; nothing but spaces.
    /// Guarantee: a space that stands for a `+` is read as one, others are left out, and spaces alone are no id.
    #[test]
    fn plus_signs_that_became_spaces() {
        let id = SpanId([0xfb, 0xef, 0xbe, 1, 2, 3, 4, 5]);
        for text in ["++++AQIDBAU=", "    AQIDBAU=", "    AQIDBAU", " ++ AQIDBAU=", "----AQIDBAU=", " ++++AQIDBAU= "] {
            assert_eq!(parse_span_id(text), Some(id), "{text:?}");
        }
        // Unquoted in a selector, what was at the start is trimmed away.
        assert_eq!(parse_span_id("wAAAAAAAAE="), Some(SpanId([0xfb, 0, 0, 0, 0, 0, 0, 1])));
        assert_eq!(parse_span_id("AQIDBAU="), None);
        let id = TraceId([0xfb; 16]);
        let text = "+/v7+/v7+/v7+/v7+/v7+w==";
        assert_eq!(parse_trace_id(text), Some(id));
        assert_eq!(parse_trace_id(&text.replace('+', " ")), Some(id));
        assert_eq!(parse_span_id(" 4d2 "), "00000000000004d2".parse().ok());
        assert_eq!(parse_span_id("           "), None);
        assert_eq!(parse_trace_id("                      "), None);
    }

    /// Scenario: "no span" as profilers write it, what can't be read, and a sample that names only its local root.
    /// Guarantee: the first are taken without a link, the second are not; the last is linked to the local root.
    #[test]
    fn nothing_and_local_root() {
        let mut identity = Identity::default();
        for text in ["", " ", "0000000000000000", "0", "0x0", "AAAAAAAAAAA=", "00000000-0000-0000-0000-000000000000"] {
            assert!(identity.take_text("span_id", text), "{text}");
            assert!(identity.take_text("dd.trace_id", text), "{text}");
        }
        for text in ["not an id", "550e8400-e29b-41d4-a716-446655440000", "0 0"] {
            assert!(!identity.take_text("span_id", text) && !identity.take_text("trace_id", text), "{text}");
        }
        assert!(identity.take_bytes("span_id", &[0; 8]) && !identity.take_bytes("span_id", &[1; 7]));
        assert!(is_id("span_id") && is_id("dd.local_root_span_id") && !is_id("span_name") && !is_id("transaction.id"));
        assert_eq!(identity.link(), Link::default());
        for name in ["local root span id", "local.root.span.id", "localRootSpanId"] {
            let mut identity = Identity::default();
            assert!(identity.take_text(name, "18446744073709551615"));
            assert_eq!(identity.link().span_id, SpanId([0xff; 8]), "{name}");
        }
        assert!(!identity.take_text("span_name", "GET /"));
    }

    /// Scenario: Elastic's transaction, and the transactions of a shop.
    /// Guarantee: the first is the local root, the others stay labels.
    #[test]
    fn transactions() {
        let mut identity = Identity::default();
        for text in ["4711", "tx-00f067aa0ba902", "18446744073709551615", ""] {
            assert!(!identity.take_text("transaction.id", text), "{text}");
        }
        assert!(!identity.take_number("transaction.id", 4711));
        assert_eq!(identity, Identity::default());
        assert!(identity.take_text("transaction.id", "00f067aa0ba902b7"));
        assert_eq!(identity.link().span_id.to_string(), "00f067aa0ba902b7");
    }
}
