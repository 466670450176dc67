//! What to know besides the causes: what could not be seen, why, and what to change to see it.

use crate::causes::FEWEST_SAMPLES;
use crate::explanation::{Cause, Explanation, Verdict, Widest};
use crate::ledger::Ledger;
use crate::matrix::{FEW_REQUESTS, Matrix};
use crate::moved::service_name;
use crate::part::Part;
use crate::patterns::Pattern;
use crate::sources::Sources;
use crate::tree::{NodeId, NodeKey};
use crate::vocabulary::{OperationId, Vocabulary};

/// A share of the time that is worth a word.
const WORTH_A_WORD: f64 = 0.2;

/// The share of what a call takes longer that the called side must not have seen to be worth a word.
const MOSTLY_UNSEEN: f64 = 0.5;

/// The notes of an answer.
pub(crate) fn notes(
    vocabulary: &Vocabulary,
    sources: &Sources,
    (ledger, matrix): (&Ledger, &Matrix),
    explanation: &Explanation,
    unlinked: &[String],
) -> Vec<String> {
    let is_slower = explanation.is_slower;
    let mut notes = Vec::new();
    let (slow, fast) = (&explanation.slow, &explanation.fast);
    if let Some(widest) = &explanation.widest {
        notes.push(most_of_the_time(widest, explanation.slow.mean_ms));
    }
    too_few(&mut notes, explanation, unlinked);
    if slow.spans > 0 && fast.spans >= FEW_REQUESTS && !is_slower && explanation.verdict == Verdict::Nothing {
        notes.push(if explanation.delta_ms < 0.0 {
            format!(
                "The requests in question are not slower: {} against {} on average.",
                ms(slow.mean_ms),
                ms(fast.mean_ms)
            )
        } else {
            format!(
                "The durations do not differ beyond chance: {} against {} on average{}.",
                ms(slow.mean_ms),
                ms(fast.mean_ms),
                explanation.smallest_visible_ms.map_or(String::new(), |smallest| format!(
                    "; a difference from about {} on would have been seen",
                    ms(smallest)
                ))
            )
        });
    }
    unexplained(&mut notes, vocabulary, sources, (ledger, matrix), explanation, unlinked);
    nameless(&mut notes, explanation);
    notes.extend(explanation.causes.iter().filter_map(|cause| on_the_way(cause, explanation)));
    sampling(&mut notes, explanation);
    notes.extend(scaled_note(vocabulary, &ledger.evidence.scaled));
    for skew in &explanation.coverage.clock_skew {
        notes.push(format!(
            "The clock of {} differs from that of {} by {}: {} of {} calls lay outside their caller. Its spans were shifted.",
            skew.to,
            skew.from,
            ms(skew.offset_ms),
            skew.outside,
            skew.calls
        ));
    }
    notes
}

/// Where the time goes, for who asks and has nothing to compare with.
fn most_of_the_time(widest: &Widest, duration: f64) -> String {
    let Widest { service, operation, function, .. } = widest;
    let inside = format!("{service} {operation}");
    let name = match (function, place_of(widest.file.as_deref(), widest.line)) {
        (Some(function), Some(place)) => format!("{function} ({place}) in {inside}"),
        (Some(function), None) => format!("{function} in {inside}"),
        (None, _) => inside,
    };
    format!("Most of the time, {} of {} a request, goes to {name}.", ms(widest.ms), ms(duration))
}

/// `tax.go:112`.
pub(crate) fn place_of(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let file = file?.rsplit('/').next()?;
    Some(line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
}

fn too_few(notes: &mut Vec<String>, explanation: &Explanation, unlinked: &[String]) {
    let (slow, fast) = (&explanation.slow, &explanation.fast);
    if slow.spans == 0 {
        notes.push("No span matches in this time: check the query, or widen the time range.".to_owned());
    } else if slow.spans > 1 && slow.spans < FEW_REQUESTS {
        notes.push(format!(
            "Only {} requests match: each is judged by what is usual, and what they share may be chance. A wider time range would tell more.",
            slow.spans
        ));
    }
    if slow.spans > 0 && fast.spans < FEW_REQUESTS {
        notes.push(format!(
            "Only {} requests to compare with; at least {FEW_REQUESTS} are needed. Widen the time range, or name another baseline.",
            fast.spans
        ));
    }
    if slow.spans > 0 && slow.samples == 0 {
        notes.push(match unlinked {
            [] => "No samples belong to these spans: no profiles of these services were sent in this time.".to_owned(),
            _ => format!(
                "No samples belong to these spans, though profiles came from {}: no sample fell into them, or the profiler does not put span ids on its samples (links = inferred matches them by thread and time).",
                unlinked.join(", ")
            ),
        });
    } else if explanation.verdict == Verdict::NotEnoughData && (slow.samples as f64) < FEWEST_SAMPLES {
        notes.push(format!(
            "Only {} in the requests in question, about {FEWEST_SAMPLES} are needed: {}.",
            counted(slow.samples, "sample"),
            more_samples(explanation)
        ));
    } else if slow.spans > 0 && fast.spans > 0 && fast.samples == 0 {
        notes.push("The requests compared with have no samples, so that code can't be compared.".to_owned());
    }
}

/// Operations that are causes as a whole, since too few samples tell what is slow inside.
fn nameless(notes: &mut Vec<String>, explanation: &Explanation) {
    for cause in &explanation.causes {
        let is_whole = cause.kind == Part::Downstream.name()
            || cause.patterns.iter().any(|pattern| matches!(pattern, Pattern::RepeatedCalls | Pattern::Retries));
        let is_profiled = explanation
            .coverage
            .services
            .iter()
            .any(|service| service.service == cause.service && !service.profiles.is_empty());
        if cause.function.is_none() && !is_whole && is_profiled {
            notes.push(format!(
                "{} of {} {} are too few to name a function in it: {}.",
                counted(cause.samples, "sample"),
                cause.service,
                cause.operation,
                more_samples(explanation)
            ));
        }
    }
}

/// Calls that take longer, though the called side does not: it has not begun, or its answer is on the way.
fn on_the_way(cause: &Cause, explanation: &Explanation) -> Option<String> {
    let callee = cause.callee.as_deref()?;
    let steps = explanation.critical_path.iter().filter(|step| {
        (&step.service, &step.operation, step.callee.as_deref()) == (&cause.service, &cause.operation, Some(callee))
    });
    // A step's own time is what no span below it was seen in.
    let unseen: f64 = steps.map(|step| step.ms - step.fast_ms).sum();
    (unseen > MOSTLY_UNSEEN * cause.delta_ms).then(|| {
        format!(
            "{} of what {} {} → {callee} takes longer are outside of what {callee} saw of it: on the network, or queued before {callee} began.",
            ms(unseen),
            cause.service,
            cause.operation
        )
    })
}

/// What to change for more samples.
fn more_samples(explanation: &Explanation) -> String {
    let look = if explanation.slow.spans < FEW_REQUESTS {
        "ask about more requests like this one"
    } else {
        "ask about a longer time"
    };
    match explanation.coverage.cpu_period_ms {
        Some(period) => format!("{look}, or sample more often (CPU samples are {} apart)", ms(period)),
        None => format!("{look}, or sample more often"),
    }
}

/// What time is not seen, and what would show it.
fn unexplained(
    notes: &mut Vec<String>,
    vocabulary: &Vocabulary,
    sources: &Sources,
    (ledger, matrix): (&Ledger, &Matrix),
    explanation: &Explanation,
    unlinked: &[String],
) {
    let is_slower = explanation.is_slower;
    let part = |kind: Part| explanation.ledger.parts.iter().find(|part| part.kind == kind.name());
    let duration = explanation.ledger.duration_ms;
    if let Some(rest) = part(Part::Unexplained).filter(|rest| rest.ms > WORTH_A_WORD * duration) {
        let of_difference = if is_slower && explanation.delta_ms > 0.0 && rest.delta_ms > 0.0 {
            format!(", and {} of the {} difference", ms(rest.delta_ms), ms(explanation.delta_ms))
        } else {
            String::new()
        };
        notes.push(format!("{} of {} a request are not explained{of_difference}.", ms(rest.ms), ms(duration)));
    }
    // Services whose own time stays open, most of it first.
    let mut open: Vec<(String, f64, bool, bool)> = Vec::new();
    for (id, node) in ledger.tree.nodes().iter().enumerate() {
        if !matches!(node.key, NodeKey::Part(Part::Unexplained | Part::Downstream)) {
            continue;
        }
        let NodeKey::Operation(operation) = ledger.tree.node(node.operation).key else { continue };
        let service = vocabulary.operation_of(operation).service;
        let time = matrix.moments[0][id].mean / 1e6;
        let name = service_name(vocabulary, &ledger.tree, id as NodeId);
        match open.iter_mut().find(|(known, ..)| *known == name) {
            Some(known) => known.1 += time,
            None => open.push((name, time, sources.is_profiled(service), sources.sees_waiting(service))),
        }
    }
    open.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (service, time, is_profiled, sees_waiting) in
        open.into_iter().filter(|(_, time, ..)| *time > WORTH_A_WORD * duration).take(2)
    {
        if unlinked.contains(&service) {
            notes.push(format!(
                "{service} has {} a request on the critical path and sends profiles, but none of its samples belong to these spans: let its profiler put span ids on its samples.",
                ms(time)
            ));
        } else if !is_profiled {
            notes.push(format!(
                "{service} has {} a request on the critical path, but no samples of it: profile that service.",
                ms(time)
            ));
        } else if !sees_waiting {
            notes.push(format!(
                "{service} is profiled on the CPU only; what it waits for in {} a request would show in off-CPU or wall-clock profiles.",
                ms(time)
            ));
        }
    }
}

fn sampling(notes: &mut Vec<String>, explanation: &Explanation) {
    let coverage = &explanation.coverage;
    if coverage.unsymbolised > 0.1 {
        notes.push(format!(
            "{:.0} % of the time seen is in functions without a name: upload debug symbols, or build with them.",
            coverage.unsymbolised * 100.0
        ));
    }
    if coverage.estimated > 0.5 {
        notes.push(
            "Most samples have no time of their own: they were counted by the share of their span that is on the critical path."
                .to_owned(),
        );
    }
    let inferred = coverage.inferred_samples;
    let all = coverage.exact_samples + coverage.inherited_samples + inferred;
    if inferred * 4 > all {
        notes.push(format!("{inferred} of {all} samples were matched to their span by thread and time alone."));
    }
    if let Some(period) = coverage.cpu_period_ms
        && explanation.slow.mean_ms < 2.0 * period
        && explanation.verdict != Verdict::Found
    {
        notes.push(format!(
            "Requests take {} and CPU samples are {} apart: sample faster, or look at more requests.",
            ms(explanation.slow.mean_ms),
            ms(period)
        ));
    }
    if explanation.verdict == Verdict::NotEnoughData
        && let Some(smallest) = explanation.smallest_visible_ms
        && explanation.slow.spans > 0
    {
        notes.push(format!(
            "With this many requests and samples, differences from about {} a request on can be seen.",
            ms(smallest)
        ));
    }
}

/// What to know of operations in which several threads work at once, those first that most do.
fn scaled_note(vocabulary: &Vocabulary, scaled: &[(OperationId, f64)]) -> Option<String> {
    const NAMED: usize = 3;
    let mut most: Vec<&(OperationId, f64)> = scaled.iter().collect();
    most.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let name = |(operation, scale): &(OperationId, f64)| {
        let operation = vocabulary.operation_of(*operation);
        let (service, name) = (vocabulary.text_of(operation.service), vocabulary.text_of(operation.name));
        format!("about {:.1} for {service} {name}", 1.0 / scale)
    };
    let names: Vec<String> = most.iter().take(NAMED).map(|scaled| name(scaled)).collect();
    let more = match scaled.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and for {}", counted(more as u64, "more operation")),
    };
    (!scaled.is_empty()).then(|| {
        format!("Several threads work at once, {}{more}: their time was scaled to the span's.", names.join(", "))
    })
}

/// What to know of inner spans that were folded into those that have their samples.
pub(crate) fn folded_note(vocabulary: &Vocabulary, folded: &[OperationId]) -> Option<String> {
    const NAMED: usize = 3;
    let names: Vec<&str> =
        folded.iter().take(NAMED).map(|id| vocabulary.text_of(vocabulary.operation_of(*id).name)).collect();
    let more = if folded.len() > NAMED { format!(" and {} more", folded.len() - NAMED) } else { String::new() };
    (!folded.is_empty()).then(|| {
        format!(
            "Samples name the span that a service was called by, not the one inside: {}{more} count as part of their callers.",
            names.join(", ")
        )
    })
}

/// `1 request`, `2 requests`.
pub(crate) fn counted(count: impl Into<u64>, thing: &str) -> String {
    let count: u64 = count.into();
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Milliseconds as a person reads them.
pub(crate) fn ms(value: f64) -> String {
    let size = value.abs();
    // No minus before nothing.
    let value = if size < 0.000_5 { 0.0 } else { value };
    if size >= 10_000.0 {
        format!("{:.1} s", value / 1e3)
    } else if size >= 1_000.0 {
        format!("{:.2} s", value / 1e3)
    } else if size >= 100.0 {
        format!("{value:.0} ms")
    } else if size >= 1.0 {
        format!("{value:.1} ms")
    } else {
        format!("{:.0} µs", value * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use hotspan_model::SpanKind;

    use super::*;

    /// Scenario: no operation, one, and five in which several threads work at once.
    /// Guarantee: one sentence at most, that names those with the most threads and counts the others.
    #[test]
    fn many_scaled_operations_are_one_note() {
        let mut vocabulary = Vocabulary::default();
        let scaled: Vec<(OperationId, f64)> = (1..=5u32)
            .map(|number| {
                let operation = vocabulary.operation("shop", &format!("op{number}"), SpanKind::Internal);
                (operation, 1.0 / f64::from(number + 1))
            })
            .collect();
        assert_eq!(scaled_note(&vocabulary, &[]), None);
        let one = scaled_note(&vocabulary, &scaled[..1]).unwrap();
        assert_eq!(one, "Several threads work at once, about 2.0 for shop op1: their time was scaled to the span's.");
        let five = scaled_note(&vocabulary, &scaled).unwrap();
        let named = "about 6.0 for shop op5, about 5.0 for shop op4, about 4.0 for shop op3 and for 2 more operations";
        assert!(five.contains(named), "{five}");
    }
}
