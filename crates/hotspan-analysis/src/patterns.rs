//! Patterns: what a cause looks like, and what usually helps against it.

use serde::Serialize;

use crate::calls::CallChange;
use crate::part::{Part, Signs};

/// Something that is seen again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Pattern {
    /// The same operation called many times in one request.
    #[serde(rename = "repeated calls")]
    RepeatedCalls,
    /// Calls that fail and are made again.
    #[serde(rename = "retries")]
    Retries,
    /// Text or bytes are turned into values.
    #[serde(rename = "parsing")]
    Parsing,
    /// A regular expression is compiled, or matched with effort.
    #[serde(rename = "regex")]
    Regex,
    /// Values are turned into text or bytes.
    #[serde(rename = "serialisation")]
    Serialisation,
    /// Garbage is collected.
    #[serde(rename = "gc")]
    Collection,
    /// Memory is taken and given back.
    #[serde(rename = "allocation")]
    Allocation,
    /// A lock is waited for.
    #[serde(rename = "lock")]
    Lock,
    /// A disk or a socket is waited for.
    #[serde(rename = "io")]
    Io,
    /// A function calls itself, deeply.
    #[serde(rename = "recursion")]
    Recursion,
    /// No CPU was free.
    #[serde(rename = "scheduling")]
    Scheduling,
    /// Another service takes the time.
    #[serde(rename = "downstream")]
    Downstream,
    /// One function does nearly all of it itself.
    #[serde(rename = "one wide leaf")]
    WideLeaf,
    /// A long chain of calls, none of which stands out.
    #[serde(rename = "deep chain")]
    DeepChain,
}

impl Pattern {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RepeatedCalls => "repeated calls",
            Self::Retries => "retries",
            Self::Parsing => "parsing",
            Self::Regex => "regex",
            Self::Serialisation => "serialisation",
            Self::Collection => "gc",
            Self::Allocation => "allocation",
            Self::Lock => "lock",
            Self::Io => "io",
            Self::Recursion => "recursion",
            Self::Scheduling => "scheduling",
            Self::Downstream => "downstream",
            Self::WideLeaf => "one wide leaf",
            Self::DeepChain => "deep chain",
        }
    }

    /// What usually helps.
    pub fn helps(self) -> &'static str {
        match self {
            Self::RepeatedCalls => "Fetch in one call what is fetched one by one, or remember what was fetched.",
            Self::Retries => "Find out why the first attempts fail; give up sooner, or wait less between attempts.",
            Self::Parsing => "Parse once and keep the result, or read only the part that is needed.",
            Self::Regex => "Compile the pattern once, outside the request; simplify it if matching is what takes long.",
            Self::Serialisation => "Write less, or use a cheaper format on this path.",
            Self::Collection => {
                "Allocate less in this request; alloc_space shows who does. A larger heap collects less often."
            }
            Self::Allocation => "Reuse buffers, reserve their size once, and allocate outside the loop.",
            Self::Lock => "Hold the lock for less, split it, or read without it; look at who holds it meanwhile.",
            Self::Io => "Read less, read ahead, batch it, or keep it in memory.",
            Self::Recursion => "Bound the depth, or remember results already computed.",
            Self::Scheduling => "The process had no CPU: raise its limit, or move its neighbours.",
            Self::Downstream => "Look into that service: its own profiles show where it spends the time.",
            Self::WideLeaf => "One function does the work itself: a better algorithm, or doing it less often.",
            Self::DeepChain => "Many thin layers share the cost: look for the one that could be skipped as a whole.",
        }
    }
}

/// What a cause is told by.
#[derive(Debug)]
pub struct Looks<'a> {
    /// What its time was spent on.
    pub kind: Part,
    /// Functions on the way to the cause and below it, with the share of its time they carry.
    pub functions: &'a [(String, f64)],
    /// How often the blamed function stands in its own stacks, on average over its time.
    pub recursion: f64,
    /// Share of its time that one function spends itself.
    pub widest_leaf: f64,
    /// Frames below the blamed function, on average over its time.
    pub depth: f64,
    /// How often its operation was called.
    pub calls: Option<CallChange>,
}

const PARSING: &[&str] = &[
    "unmarshal",
    "parse",
    "decode",
    "deserial",
    "from_str",
    "from_slice",
    "from_reader",
    "json.loads",
    "readvalue",
    "readtree",
    "jsonparser",
    "xmlreader",
    "saxparser",
    "yaml.load",
    "fromjson",
    "loads",
    "unpickle",
    "unpack",
];
const SERIALISATION: &[&str] = &[
    "marshal",
    "serializ",
    "serialis",
    "encode",
    "to_json",
    "tojson",
    "json.dumps",
    "stringify",
    "writevalue",
    "to_string",
    "dumps",
    "pickle.dump",
    "jsonwriter",
];
const REGEX: &[&str] =
    &["regex", "regexp", "re.compile", "re2::", "sre_compile", "_sre", "java.util.regex", "pcre", "irregexp"];

/// A function must carry this much of a cause's time for its name to say something about it.
const TELLING_SHARE: f64 = 0.4;

/// The patterns of a cause, the most telling first.
pub fn patterns_of(looks: &Looks<'_>) -> Vec<Pattern> {
    let mut found = Vec::new();
    if let Some(calls) = looks.calls.filter(|calls| calls.is_mostly_more() || calls.is_retrying()) {
        found.push(if calls.is_retrying() { Pattern::Retries } else { Pattern::RepeatedCalls });
    }
    match looks.kind {
        Part::Lock => found.push(Pattern::Lock),
        Part::Io => found.push(Pattern::Io),
        Part::Scheduling => found.push(Pattern::Scheduling),
        Part::Downstream => found.push(Pattern::Downstream),
        _ => {}
    }
    let is_telling = |words: &[&str]| {
        looks.functions.iter().any(|(name, share)| {
            *share >= TELLING_SHARE && words.iter().any(|word| name.to_ascii_lowercase().contains(word))
        })
    };
    if matches!(looks.kind, Part::Cpu | Part::Gc | Part::Scheduling) {
        let collects = share_of(looks, Signs::collects);
        let allocates = share_of(looks, Signs::allocates);
        if looks.kind == Part::Gc && collects >= allocates {
            found.push(Pattern::Collection);
        }
        if looks.recursion >= 3.0 {
            found.push(Pattern::Recursion);
        }
        if is_telling(REGEX) {
            found.push(Pattern::Regex);
        } else if is_telling(PARSING) && !only_matches_serialisation(looks) {
            found.push(Pattern::Parsing);
        } else if is_telling(SERIALISATION) {
            found.push(Pattern::Serialisation);
        }
        if allocates >= TELLING_SHARE || (looks.kind == Part::Gc && collects < allocates) {
            found.push(Pattern::Allocation);
        }
        if found.is_empty() && looks.widest_leaf >= 0.8 {
            found.push(Pattern::WideLeaf);
        }
        if found.is_empty() && looks.depth >= 25.0 && looks.widest_leaf < 0.3 {
            found.push(Pattern::DeepChain);
        }
    }
    found
}

fn share_of(looks: &Looks<'_>, is: impl Fn(Signs) -> bool) -> f64 {
    let shares = looks.functions.iter().filter(|(name, _)| is(Signs::of(name))).map(|(_, share)| *share);
    shares.fold(0.0, f64::max)
}

/// `unmarshal` contains `marshal`, but not the other way round.
fn only_matches_serialisation(looks: &Looks<'_>) -> bool {
    let strongest = |words: &[&str], without: &[&str]| {
        let shares = looks.functions.iter().filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            words.iter().any(|word| name.contains(word)) && !without.iter().any(|word| name.contains(word))
        });
        shares.map(|(_, share)| *share).fold(0.0, f64::max)
    };
    strongest(SERIALISATION, PARSING) > strongest(PARSING, &[])
}
