//! Patterns: what a cause looks like, and what usually helps against it.

use serde::Serialize;

use crate::calls::CallChange;
use crate::looks::Looks;
use crate::part::Part;
use crate::signs::{Sign, Signs};

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
            Self::Downstream => {
                "Look into that service: its own profiles show where it spends the time. What it does not see is the way to it."
            }
            Self::WideLeaf => "One function does the work itself: a better algorithm, or doing it less often.",
            Self::DeepChain => "Many thin layers share the cost: look for the one that could be skipped as a whole.",
        }
    }
}

/// The share of a cause's time that functions of a kind must be in for them to say something about it.
const TELLING_SHARE: f64 = 0.4;
/// How often a function of own code must stand in its own stacks, on average, to be called recursion.
const DEEP_RECURSION: f64 = 3.0;
/// The share of the time that one function must spend itself to be called wide.
const WIDE: f64 = 0.8;
/// Frames that make a chain of calls long.
const LONG_CHAIN: f64 = 25.0;
/// In a chain none of whose functions stands out, none spends more itself than this share.
const THIN: f64 = 0.3;

/// The patterns of a cause, the most telling first.
pub fn patterns_of(kind: Part, looks: &Looks, calls: Option<CallChange>) -> Vec<Pattern> {
    let mut found = Vec::new();
    if let Some(calls) = calls.filter(|calls| calls.is_mostly_more() || calls.is_retrying()) {
        found.push(if calls.is_retrying() { Pattern::Retries } else { Pattern::RepeatedCalls });
    }
    match kind {
        Part::Lock => found.push(Pattern::Lock),
        Part::Io => found.push(Pattern::Io),
        Part::Scheduling => found.push(Pattern::Scheduling),
        Part::Downstream => found.push(Pattern::Downstream),
        _ => {}
    }
    if matches!(kind, Part::Cpu | Part::Gc | Part::Scheduling) {
        found.extend(patterns_of_running(kind, looks));
        if found.is_empty() && looks.widest_leaf >= WIDE {
            found.push(Pattern::WideLeaf);
        }
        if found.is_empty() && looks.depth >= LONG_CHAIN && looks.widest_leaf < THIN {
            found.push(Pattern::DeepChain);
        }
    }
    found
}

/// What running code does, by the names of its functions. They count together: memory is taken in one, given back in
/// another and copied in a third.
fn patterns_of_running(kind: Part, looks: &Looks) -> Vec<Pattern> {
    let mut found = Vec::new();
    let says = |sign: Sign| looks.share(|signs| signs.say(sign));
    // Who allocates may have to collect: that is collecting.
    let collects = says(Sign::Collects);
    let allocates = looks.share(|signs| signs.say(Sign::Allocates) && !signs.say(Sign::Collects));
    let takes_memory = |signs: Signs| signs.say(Sign::Allocates) || signs.say(Sign::Copies);
    let takes_memory = looks.share(|signs| takes_memory(signs) && !signs.say(Sign::Collects));
    if kind == Part::Gc && collects >= allocates {
        found.push(Pattern::Collection);
    }
    if looks.recursion >= DEEP_RECURSION {
        found.push(Pattern::Recursion);
    }
    let (parses, serialises) = (says(Sign::Parses), says(Sign::Serialises));
    if says(Sign::Matches) >= TELLING_SHARE {
        found.push(Pattern::Regex);
    } else if parses >= TELLING_SHARE && parses >= serialises {
        found.push(Pattern::Parsing);
    } else if serialises >= TELLING_SHARE {
        found.push(Pattern::Serialisation);
    }
    if takes_memory >= TELLING_SHARE || (kind == Part::Gc && collects < allocates) {
        found.push(Pattern::Allocation);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a cause looks like whose stacks have these functions for these shares of the time.
    fn looks(stacks: &[(&[&str], f64)]) -> Looks {
        let signs = |names: &[&str]| names.iter().map(|name| Signs::of(name)).fold(Signs::default(), Signs::or);
        let said = stacks.iter().map(|(names, share)| (signs(names), *share)).collect();
        Looks { said, recursion: 1.0, widest_leaf: 0.4, depth: 5.0 }
    }

    fn named(kind: Part, stacks: &[(&[&str], f64)]) -> Vec<&'static str> {
        patterns_of(kind, &looks(stacks), None).into_iter().map(Pattern::name).collect()
    }

    /// Scenario: causes whose stacks show what they do, in several languages, and one that shows nothing.
    /// Guarantee: each pattern is named where most of the time looks like it, and nothing where nothing does.
    #[test]
    fn running_code_is_told_by_its_functions() {
        let cpu = |stacks: &[(&[&str], f64)]| named(Part::Cpu, stacks);
        assert_eq!(cpu(&[(&["main.lookup", "encoding/json.Unmarshal"], 0.9), (&["main.lookup"], 0.1)]), ["parsing"]);
        assert_eq!(cpu(&[(&["render", "JSON.stringify"], 0.8)]), ["serialisation"]);
        assert_eq!(cpu(&[(&["price", "re.compile"], 0.5), (&["price", "json.loads"], 0.5)]), ["regex"]);
        assert!(cpu(&[(&["price", "sort"], 0.6), (&["price", "json.loads"], 0.3)]).is_empty());
        let collecting: &[&str] = &["main.report", "runtime.mallocgc", "runtime.gcAssistAlloc"];
        assert_eq!(named(Part::Gc, &[(collecting, 0.7), (&["main.report", "runtime.mallocgc"], 0.3)]), ["gc"]);
    }

    /// Scenario: a receipt that is copied: memory is taken, filled and given back by different functions, none of which has much.
    /// Guarantee: together they are allocation; a copy into memory that is there is not.
    #[test]
    fn memory_is_taken_and_given_back_in_many_functions() {
        let receipt: &[(&[&str], f64)] = &[
            (&["print", "__rustc::__rust_alloc", "mi_malloc_aligned"], 0.15),
            (&["print", "mi_free"], 0.15),
            (&["print", "<alloc::vec::Vec<T,A> as core::clone::Clone>::clone"], 0.15),
            (&["print"], 0.55),
        ];
        assert_eq!(named(Part::Cpu, receipt), ["allocation"]);
        assert_eq!(named(Part::Gc, &[(&["print", "mi_free"], 0.3), (&["print"], 0.7)]), ["allocation"]);
        assert!(named(Part::Cpu, &[(&["print", "memcpy"], 0.9), (&["print", "malloc"], 0.1)]).is_empty());
    }

    /// Scenario: code that calls itself, one function that does it all, layers of which none stands out, and waits.
    /// Guarantee: each is named, and shape only where nothing more telling is seen.
    #[test]
    fn shapes_and_waits_have_names() {
        let of = |recursion, widest_leaf, depth| {
            let looks = Looks { recursion, widest_leaf, depth, ..looks(&[(&["work"], 1.0)]) };
            patterns_of(Part::Cpu, &looks, None)
        };
        assert_eq!(of(7.0, 0.9, 40.0), [Pattern::Recursion]);
        assert_eq!(of(1.0, 0.9, 40.0), [Pattern::WideLeaf]);
        assert_eq!(of(1.0, 0.2, 40.0), [Pattern::DeepChain]);
        assert!(of(1.0, 0.5, 40.0).is_empty() && of(1.0, 0.2, 10.0).is_empty());
        let wide = Looks { widest_leaf: 0.9, ..looks(&[(&["lock", "futex"], 1.0)]) };
        for (kind, name) in
            [(Part::Lock, "lock"), (Part::Io, "io"), (Part::Scheduling, "scheduling"), (Part::Downstream, "downstream")]
        {
            let found = patterns_of(kind, &wide, None);
            assert_eq!(found.iter().map(|pattern| pattern.name()).collect::<Vec<_>>(), [name]);
            assert!(!found[0].helps().is_empty());
        }
        assert!(patterns_of(Part::Waiting, &wide, None).is_empty());
    }

    /// Scenario: an operation that is called ten times instead of once, one whose calls fail and are made again, and one whose
    /// calls take longer.
    /// Guarantee: repeated calls and retries are named first; slower calls are neither.
    #[test]
    fn calls_made_again_are_named_first() {
        let called = |slow, more_calls_ms, slower_calls_ms, failed_share| {
            let calls = CallChange { slow, fast: 1.0, more_calls_ms, slower_calls_ms, failed_share };
            patterns_of(Part::Downstream, &Looks::default(), Some(calls))
        };
        assert_eq!(called(10.0, 90.0, 1.0, 0.0), [Pattern::RepeatedCalls, Pattern::Downstream]);
        assert_eq!(called(3.0, 60.0, 1.0, 0.6), [Pattern::Retries, Pattern::Downstream]);
        assert_eq!(called(1.0, 0.0, 90.0, 0.0), [Pattern::Downstream]);
    }
}
