//! What the events of a recording measure.

use hotspan_model::{ProfileType, Sample};

use super::head::{Head, NO_EVENT};
use crate::decode_options::DecodeOptions;
use crate::naming::nanos_per_sample;

/// An event and its samples.
pub(super) struct Event<'a> {
    pub(super) name: &'a str,
    pub(super) profile_type: ProfileType,
    pub(super) samples: Vec<Sample>,
    /// What a sample stands for that tells no period.
    each: i64,
}

impl<'a> Event<'a> {
    /// The event of the sample `head`, in a file that has `others` already.
    pub(super) fn new(head: &Head<'a>, others: &[Self], options: &DecodeOptions) -> Self {
        let (natural, each) = natural_type(head, options);
        // Two events that tick at once, such as both clocks, are not twice the time: one of them has a type of its own.
        let is_free = |wanted: &ProfileType| {
            !others.iter().any(|other| other.profile_type == *wanted && !are_apart(other.name, head.event))
        };
        let own = own_type(head.event, &natural.sample_unit);
        let wanted = [options.type_in_unit_of(natural.clone()), natural];
        let profile_type = wanted.into_iter().find(is_free).unwrap_or(own);
        Self { name: head.event, profile_type, samples: Vec::new(), each }
    }

    pub(super) fn value_of(&self, head: &Head<'_>) -> i64 {
        head.period.unwrap_or(self.each)
    }
}

/// What an event measures as far as the file tells, and what a sample stands for that tells no period. Periods of clocks are
/// nanoseconds; others count whatever the event is.
fn natural_type(head: &Head<'_>, options: &DecodeOptions) -> (ProfileType, i64) {
    let bare = without_modifier(head.event).0;
    let is_clock = matches!(bare, "cpu-clock" | "task-clock");
    let is_cycles = matches!(bare, "cycles" | "cpu-cycles");
    if is_clock && head.period.is_some() {
        return (ProfileType::cpu(), 1);
    }
    // Samples of running code that are only counted.
    if (is_clock || is_cycles || bare == NO_EVENT)
        && head.period.is_none()
        && let Some(rate) = options.sample_rate
    {
        return (ProfileType::cpu(), nanos_per_sample(rate));
    }
    let profile_type = match () {
        () if is_clock => ProfileType::from_parts(["process_cpu", "samples", "count", "cpu", "nanoseconds"]),
        () if is_cycles => ProfileType::from_parts(["process_cpu", "cycles", "count", "cycles", "count"]),
        () => own_type(head.event, "count"),
    };
    (profile_type, 1)
}

/// The type that is called like the event. Tracepoints are `group:name` and stay whole; a colon can't stand inside a type.
fn own_type(event: &str, unit: &str) -> ProfileType {
    let event = event.replace(':', "_");
    ProfileType::from_parts(["perf", &event, unit, &event, unit])
}

/// Whether nothing is counted by both: the same event in the kernel (`cycles:k`) and outside (`cycles:u`).
fn are_apart(one: &str, other: &str) -> bool {
    let [(one, one_side), (other, other_side)] = [one, other].map(without_modifier);
    let sides = |modifier: &str| "ukh".chars().filter(|side| modifier.contains(*side)).collect::<String>();
    let (one_side, other_side) = (sides(one_side), sides(other_side));
    let is_said = !one_side.is_empty() && !other_side.is_empty();
    one == other && is_said && !one_side.chars().any(|side| other_side.contains(side))
}

/// An event and what stands behind its colon.
fn without_modifier(event: &str) -> (&str, &str) {
    event.split_once(':').unwrap_or((event, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextType;

    /// The types of events in the order of their lines, and what a sample of each stands for.
    fn types(lines: &[&str], kind: &str, sample_rate: Option<u32>) -> Vec<(String, i64)> {
        let given = kind.parse().ok().map(|profile_type| TextType { profile_type, scale: 1 });
        let options = DecodeOptions { text_type: given, sample_rate, ..DecodeOptions::default() };
        let mut events: Vec<Event<'_>> = Vec::new();
        let mut values = Vec::new();
        for line in lines {
            let line = format!("app 1 1.5: {line}").leak();
            let head = Head::parse(line).unwrap();
            let event = Event::new(&head, &events, &options);
            values.push((event.profile_type.measured(), event.value_of(&head)));
            events.push(event);
        }
        values
    }

    fn of<const N: usize>(expected: [(&str, i64); N]) -> Vec<(String, i64)> {
        expected.map(|(measured, value)| (measured.to_owned(), value)).to_vec()
    }

    const CPU: &str = "process_cpu:cpu:nanoseconds:";

    /// Scenario: recordings of both clocks, and of the two sides of one. Guarantee: the second clock is no CPU time on top of the
    /// first; what ran in the kernel and outside is.
    #[test]
    fn clocks_are_not_added_up() {
        let task_clock = "perf:task-clock:nanoseconds:";
        assert_eq!(types(&["7 cpu-clock:", "8 task-clock:"], "", None), of([(CPU, 7), (task_clock, 8)]));
        assert_eq!(types(&["7 cpu-clock:u:", "8 cpu-clock:k:"], "", None), of([(CPU, 7), (CPU, 8)]));
        let both = "perf:cpu-clock_uk:nanoseconds:";
        assert_eq!(types(&["7 cpu-clock:u:", "8 cpu-clock:uk:"], "", None), of([(CPU, 7), (both, 8)]));
        let samples = "process_cpu:samples:count:";
        let task_clock = "perf:task-clock:count:";
        assert_eq!(types(&["cpu-clock:", "task-clock:"], "", None), of([(samples, 1), (task_clock, 1)]));
    }

    /// Scenario: clocks, cycles and faults with a type and a rate given. Guarantee: a type of time is that of clocks, and of samples
    /// that a rate makes time; what counts anything else keeps its own.
    #[test]
    fn a_given_type_fits_the_unit() {
        let faults = ("perf:page-faults:count:", 3);
        let wall = "wall:wall:nanoseconds:";
        assert_eq!(types(&["3 page-faults:", "7 cpu-clock:"], "wall", None), of([faults, (wall, 7)]));
        let cycles = ("process_cpu:cycles:count:", 9);
        assert_eq!(types(&["9 cycles:", "3 page-faults:"], "cpu", Some(100)), of([cycles, faults]));
        let (cpu, wall) = ((CPU, 10_000_000), (wall, 10_000_000));
        for event in ["cycles:", "cpu-clock:", ""] {
            assert_eq!(types(&[event], "wall", Some(100)), of([wall]), "{event}");
            assert_eq!(types(&[event], "", Some(100)), of([cpu]), "{event}");
        }
        let objects = ("memory:alloc_objects:count:", 3);
        assert_eq!(types(&["7 cpu-clock:", "3 probe:malloc:"], "alloc_objects", None), of([(CPU, 7), objects]));
        assert_eq!(types(&["3 probe:malloc:", "3 page-faults:"], "alloc_objects", None), of([objects, faults]));
    }
}
