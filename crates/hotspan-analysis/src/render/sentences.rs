//! The sentences of an explanation.

use crate::comparison::{Change, Comparison};
use crate::explanation::{Cause, Explanation, Verdict};
use crate::notes::{ms, place_of};
use crate::separating::Separating;

/// The part of a cause's time waiting for a CPU that is worth a word.
const WORTH_A_WORD: f64 = 0.15;

/// The answer in one sentence.
pub fn headline(explanation: &Explanation) -> String {
    if let Some(comparison) = &explanation.comparison {
        return change(comparison);
    }
    match (explanation.verdict, explanation.causes.first()) {
        (Verdict::Found, Some(cause)) => sentence(cause, explanation),
        (Verdict::NotEnoughData, _) => "Too little data to name a cause.".to_owned(),
        _ if explanation.is_slower => {
            format!(
                "Nothing that was measured explains the {} that these requests take longer.",
                ms(explanation.delta_ms)
            )
        }
        _ => "These requests are not slower than the others, as far as can be told from chance.".to_owned(),
    }
}

/// What a cause does to a request.
pub fn sentence(cause: &Cause, explanation: &Explanation) -> String {
    format!("{} {}.", subject(cause), effect(cause, explanation))
}

/// `lookupTaxRate (tax.go:112)`, or the operation.
pub(super) fn subject(cause: &Cause) -> String {
    match &cause.function {
        Some(function) => place(cause).map_or_else(|| function.clone(), |place| format!("{function} ({place})")),
        None => operation(cause),
    }
}

/// `tax.go:112`.
pub(super) fn place(cause: &Cause) -> Option<String> {
    place_of(cause.file.as_deref(), cause.line)
}

/// `tax POST /v1/tax`, and `checkout POST → tax` for a call, whose name often says too little.
pub(super) fn called(service: &str, operation: &str, callee: Option<&str>) -> String {
    let name = format!("{service} {operation}");
    callee.map_or_else(|| name.trim().to_owned(), |callee| format!("{name} → {callee}"))
}

/// Where a cause is.
pub(super) fn operation(cause: &Cause) -> String {
    called(&cause.service, &cause.operation, cause.callee.as_deref())
}

fn effect(cause: &Cause, explanation: &Explanation) -> String {
    let amount = ms(cause.delta_ms);
    let waits_for_cpu = cause.waiting_for_cpu_ms > WORTH_A_WORD * cause.delta_ms;
    let doing = match cause.kind {
        "lock" => format!("waits {amount} longer for a lock"),
        "io" => format!("waits {amount} longer for I/O"),
        "scheduling" => format!("waits {amount} longer for a CPU"),
        "gc" => format!("spends {amount} more on allocating and collecting garbage"),
        "downstream" if cause.function.is_none() => format!("takes {amount} longer"),
        "downstream" => format!("waits {amount} longer for another service"),
        "waiting" => format!("waits {amount} longer"),
        _ if waits_for_cpu => format!("takes {amount} more"),
        _ => format!("takes {amount} more on the CPU"),
    };
    let inside = if cause.function.is_some() { format!(" in {}", operation(cause)) } else { String::new() };
    let of_it = if waits_for_cpu {
        format!(", {} of it waiting for a CPU", ms(cause.waiting_for_cpu_ms))
    } else {
        String::new()
    };
    format!("{doing}{inside}{of_it}: {:.0} % of the {} difference", cause.share * 100.0, ms(explanation.delta_ms))
}

fn change(comparison: &Comparison) -> String {
    let Comparison { before, after, interval_ms, delta_ms, .. } = comparison;
    let (was, is) = (ms(before.mean_ms), ms(after.mean_ms));
    let share = if before.mean_ms > 0.0 { delta_ms.abs() / before.mean_ms * 100.0 } else { 0.0 };
    let [low, high] = interval_ms.map(|end| ms(end.abs()));
    match comparison.change {
        Change::Faster => {
            format!(
                "Faster: {is} instead of {was} on average, {} ({share:.0} %) less; between {high} and {low} less, surely.",
                ms(delta_ms.abs())
            )
        }
        Change::Slower => {
            format!(
                "Slower: {is} instead of {was} on average, {} ({share:.0} %) more; between {low} and {high} more, surely.",
                ms(*delta_ms)
            )
        }
        Change::Same => format!("No difference that could be told from chance: {was} before, {is} after."),
        Change::NotEnoughData => {
            format!("Too few requests to tell: {} before, {} after.", before.spans, after.spans)
        }
    }
}

/// The further lines about a cause: the way, the pattern, the calls, and which requests.
pub(super) fn details(cause: &Cause, names: SideNames) -> Vec<String> {
    let mut lines = Vec::new();
    if !cause.via.is_empty() {
        lines.push(format!("via {}", cause.via.join(" > ")));
    }
    if let Some(calls) = cause.calls.filter(|calls| (calls.slow - calls.fast).abs() >= 0.5) {
        lines.push(format!(
            "called {:.1} times against {:.1}: {} by more calls, {} by slower calls",
            calls.slow,
            calls.fast,
            ms(calls.more_calls_ms),
            ms(calls.slower_calls_ms)
        ));
    }
    if !cause.requests.is_empty() {
        let named: Vec<String> = cause.requests.iter().map(|separating| which(separating, names)).collect();
        lines.push(format!("where {}", named.join("; ")));
    }
    if let (Some(pattern), Some(helps)) = (cause.pattern, cause.helps) {
        lines.push(format!("{}: {helps}", pattern.name()));
    }
    lines
}

fn which(separating: &Separating, names: SideNames) -> String {
    let Separating { attribute, value, slow, fast } = separating;
    match value {
        Some(value) => {
            format!(
                "{attribute} = {value:?} ({:.0} % of these requests, {:.0} % {})",
                slow * 100.0,
                fast * 100.0,
                names.in_fast
            )
        }
        None => format!("{attribute} is {} on average instead of {}", amount(*slow), amount(*fast)),
    }
}

fn amount(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// What a part of the ledger is called.
pub(super) fn part_name(kind: &str) -> &str {
    match kind {
        "cpu" => "on CPU",
        "gc" => "allocating, GC",
        "lock" => "waiting for locks",
        "io" => "waiting for I/O",
        "scheduling" => "waiting for a CPU",
        "waiting" => "waiting",
        "downstream" => "in other services",
        "child" => "in child spans",
        _ => "unexplained",
    }
}

/// The time of a part. Samples may stand for more time than went by: what they tell too much is taken off the rest again, or
/// the parts would not add up.
pub(super) fn part_time(time: f64) -> String {
    if is_too_much(time) { format!("{} too much", ms(-time)) } else { ms(time) }
}

/// What `too much` means, where a ledger says so.
pub(super) fn too_much(explanation: &Explanation) -> Option<&'static str> {
    let mut times = explanation.ledger.parts.iter().flat_map(|part| [part.ms, part.fast_ms]);
    times.any(is_too_much).then_some(
        "Too much: by chance, samples stand for a little more time than went by. It is taken off, so that the parts add up.",
    )
}

fn is_too_much(time: f64) -> bool {
    ms(time).starts_with('-')
}

/// How the two sides are called: those in question, and those they are compared with.
#[derive(Debug, Clone, Copy)]
pub struct SideNames {
    /// `slow`, or the time in which requests took longer.
    pub slow: &'static str,
    /// `fast`, or the other time.
    pub fast: &'static str,
    /// `a slow request`.
    pub one_slow: &'static str,
    /// `a fast one`.
    pub one_fast: &'static str,
    /// `in fast ones`.
    pub in_fast: &'static str,
}

/// Two times are called by what they are. Where a change helped, what was before it is in question.
pub fn side_names(explanation: &Explanation) -> SideNames {
    const BEFORE: [&str; 2] = ["before", "a request before"];
    const AFTER: [&str; 2] = ["after", "a request after"];
    let [[slow, one_slow], [fast, one_fast]] = match &explanation.comparison {
        None => {
            let [one_slow, one_fast] = ["a slow request", "a fast one"];
            return SideNames { slow: "slow", fast: "fast", one_slow, one_fast, in_fast: "in fast ones" };
        }
        Some(comparison) if comparison.change == Change::Faster => [BEFORE, AFTER],
        Some(_) => [AFTER, BEFORE],
    };
    SideNames { slow, fast, one_slow, one_fast, in_fast: fast }
}

/// Who is compared with whom.
pub(super) fn sides(explanation: &Explanation) -> String {
    let (slow, fast, names) = (&explanation.slow, &explanation.fast, side_names(explanation));
    if slow.spans == 0 {
        return "No request matches.".to_owned();
    }
    if slow.spans == 1 {
        return format!(
            "One request of {} against {} of {} on average.",
            ms(slow.mean_ms),
            fast.spans,
            ms(fast.mean_ms)
        );
    }
    let [when, other] = match explanation.comparison {
        Some(_) => [names.slow, names.fast].map(|name| format!(" {name}")),
        None => Default::default(),
    };
    let (delta, [low, high]) = (explanation.delta_ms, explanation.interval_ms);
    let (by, comparative, low, high) =
        if delta < 0.0 { (-delta, "shorter", -high, -low) } else { (delta, "longer", low, high) };
    format!(
        "{} requests{when} of {} against {}{other} of {} on average; {} {comparative} ({} to {}).",
        slow.spans,
        ms(slow.mean_ms),
        fast.spans,
        ms(fast.mean_ms),
        ms(by),
        ms(low),
        ms(high)
    )
}

#[cfg(test)]
mod tests {
    use hotspan_model::{LinkStrength, SpanKind};

    use super::super::text;
    use crate::request::{Measure, Request, RequestSample, RequestSpan};
    use crate::vocabulary::Vocabulary;
    use crate::{Question, Subject, analyse};

    /// Ten requests a side of so many milliseconds, each with one sample that stands for `sampled`.
    fn told([slow, fast]: [i64; 2], sampled: i64) -> String {
        let mut vocabulary = Vocabulary::default();
        let operation = vocabulary.operation("tax", "calculate", SpanKind::Server);
        let (frame, clock) = (vocabulary.frame("tax::calculate", "src/tax.rs", 7), vocabulary.text("tax"));
        let stack = vocabulary.stack(&[frame]);
        let request = |duration: i64| {
            let span = RequestSpan {
                span_id: Default::default(),
                parent: None,
                operation,
                role: SpanKind::Server,
                clock,
                start: 0,
                end: duration * 1_000_000,
                failed: false,
                attributes: Vec::new(),
            };
            let (measure, value) = (Measure::Cpu, sampled * 1_000_000);
            let link = LinkStrength::Exact;
            let sample = RequestSample { span: 0, stack, measure, time: Some(1), value, link };
            Request { spans: vec![span], samples: vec![sample], ..Request::default() }
        };
        let [slow, fast] = [slow, fast].map(|duration| vec![request(duration); 10]);
        let (subject, text_of_question) = (Subject::Cohort, String::new());
        let question =
            Question { vocabulary, slow, fast, subject, seed: 1, text: text_of_question, unlinked: Vec::new() };
        text(&analyse(question).explanation)
    }

    /// Scenario: requests in question that take longer than the others, and some that do not.
    /// Guarantee: which it is is said in words, not by a sign.
    #[test]
    fn less_time_is_shorter() {
        assert!(told([100, 40], 7).contains("60.0 ms longer (60.0 ms to 60.0 ms)"));
        assert!(told([40, 100], 7).contains("60.0 ms shorter (60.0 ms to 60.0 ms)"));
    }

    /// Scenario: samples of short requests stand for more time than those took.
    /// Guarantee: no part of the ledger is a negative time; what it is instead is explained, and only where it is so.
    #[test]
    fn time_below_nothing_is_too_much() {
        let text = told([100, 5], 7);
        assert!(text.contains("(2.0 ms too much in fast ones)") && text.contains("Too much: "), "{text}");
        assert!(!text.contains("-2.0 ms"), "{text}");
        assert!(!told([100, 40], 7).to_lowercase().contains("too much"));
    }
}
