//! Processes: which series of samples can come from the process that a span ran in.

use std::sync::Arc;

use hashbrown::HashMap;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Labels, attributes_from_json};

use crate::outline::SpanOutline;

/// Resource attributes that tell the processes of a service apart. Series carry them as labels of the same names.
const INSTANCE_KEYS: [&str; 7] = [
    "service.namespace",
    "service.instance.id",
    "k8s.pod.name",
    "k8s.pod.uid",
    "container.id",
    "host.name",
    "process.pid",
];

/// A process, as far as a resource tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    /// The service it belongs to.
    pub service: Arc<str>,
    /// What tells it apart from others of the service.
    instance: Vec<(&'static str, String)>,
}

impl Process {
    /// The process of a resource, given as stored.
    fn of(service: &Arc<str>, resource: &str) -> Self {
        let stored: serde_json::Value = serde_json::from_str(resource).unwrap_or_default();
        let attributes = attributes_from_json(&stored["attributes"].to_string());
        let instance = INSTANCE_KEYS.iter().filter_map(|key| {
            let attribute = attributes.iter().find(|attribute| attribute.key == *key)?;
            Some((*key, attribute.value.to_label().into_owned()))
        });
        Self { service: Arc::clone(service), instance: instance.collect() }
    }

    /// Whether a series can come from this process: of the same service, and nothing that both say differs.
    pub fn may_have(&self, labels: &Labels) -> bool {
        labels.get(SERVICE_NAME) == Some(self.service.as_ref())
            && self.instance.iter().all(|(key, value)| labels.get(key).is_none_or(|label| label == value))
    }
}

/// Resources that were read, each once.
#[derive(Debug, Default)]
pub(crate) struct Processes(HashMap<(Arc<str>, Arc<str>), Arc<Process>>);

impl Processes {
    pub(crate) fn of_span(&mut self, span: &SpanOutline) -> Arc<Process> {
        let key = (Arc::clone(&span.service), Arc::clone(&span.resource));
        let process = self.0.entry(key).or_insert_with(|| Arc::new(Process::of(&span.service, &span.resource)));
        Arc::clone(process)
    }
}

/// A process and the times at which its samples count.
#[derive(Debug, Clone)]
pub struct ProcessTime {
    /// The process.
    pub process: Arc<Process>,
    /// Starts and ends, the ends not included; sorted, without overlaps.
    pub times: Vec<(i64, i64)>,
}

impl ProcessTime {
    /// The times at which spans ran, process by process. Where spans overlap, the time counts once.
    pub(crate) fn of_spans<'s>(spans: impl Iterator<Item = &'s SpanOutline>) -> Vec<Self> {
        let mut processes = Processes::default();
        let mut times: HashMap<Arc<Process>, Vec<(i64, i64)>> = HashMap::new();
        for span in spans {
            // A span without length still covers the moment at which it started.
            let end = span.end().max(span.start.saturating_add(1));
            times.entry(processes.of_span(span)).or_default().push((span.start, end));
        }
        times.into_iter().map(|(process, times)| Self { process, times: united(times) }).collect()
    }
}

/// The same times, sorted and without overlaps.
pub(crate) fn united(mut times: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    times.sort_unstable();
    let mut united: Vec<(i64, i64)> = Vec::with_capacity(times.len());
    for (start, end) in times {
        match united.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => united.push((start, end)),
        }
    }
    united
}

/// How much time these are, where they overlap once.
pub(crate) fn united_length(times: Vec<(i64, i64)>) -> i64 {
    united(times).iter().map(|(start, end)| end.saturating_sub(*start)).fold(0, i64::saturating_add)
}

/// Whether a moment lies in one of these times.
pub(crate) fn covers(times: &[(i64, i64)], moment: i64) -> bool {
    let after = times.partition_point(|(start, _)| *start <= moment);
    after > 0 && moment < times[after - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: times that overlap, touch and lie apart. Guarantee: each moment is covered as before, and once.
    #[test]
    fn times_are_united() {
        let times = united(vec![(5, 9), (1, 3), (2, 4), (9, 10), (20, 21)]);
        assert_eq!(times, [(1, 4), (5, 10), (20, 21)]);
        let covered: Vec<i64> = (0..25).filter(|moment| covers(&times, *moment)).collect();
        assert_eq!(covered, [1, 2, 3, 5, 6, 7, 8, 9, 20]);
        assert!(!covers(&[], 1));
    }

    /// Scenario: series of the same and of other instances, of another service, and of one that says nothing.
    /// Guarantee: only what contradicts the resource is ruled out.
    #[test]
    fn series_of_a_process() {
        let resource = r#"{"attributes":{"service.instance.id":"a-1","host.name":"h1","process.pid":7}}"#;
        let process = Process::of(&Arc::from("shop"), resource);
        let labels = |pairs: &[(&str, &str)]| Labels::from_pairs(pairs.iter().copied());
        assert!(process.may_have(&labels(&[("service_name", "shop")])));
        assert!(process.may_have(&labels(&[("service_name", "shop"), ("service.instance.id", "a-1")])));
        assert!(process.may_have(&labels(&[("service_name", "shop"), ("process.pid", "7")])));
        assert!(!process.may_have(&labels(&[("service_name", "shop"), ("service.instance.id", "a-2")])));
        assert!(!process.may_have(&labels(&[("service_name", "tax")])));
    }
}
