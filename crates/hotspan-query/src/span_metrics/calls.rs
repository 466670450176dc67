//! Calls, failures and latencies by service, operation, kind and status.

use std::borrow::Cow;

use arrow::array::RecordBatch;
use hashbrown::HashMap;
use hotspan_lake::arrays;
use hotspan_model::{SpanKind, StatusCode};

use crate::error::Result;

/// What a series of calls is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSeries {
    /// The service.
    pub service: String,
    /// The operation.
    pub name: String,
    /// Role of the spans: [`SpanKind`] as stored.
    pub kind: i8,
    /// Their outcome: [`StatusCode`] as stored.
    pub status: i8,
}

/// How many operations are told apart; the rest is counted as [`OTHER`] (R5), so that sums stay right (R4).
const MAX_SERIES: usize = 20_000;
/// Stands for the operations that came when there was no more room.
const OTHER: &str = "[other]";

/// How long calls took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Latency {
    /// Calls up to each bound of [`Latency::bounds`], and those above the last.
    pub buckets: [u64; Latency::BUCKETS + 1],
    /// All of them.
    pub count: u64,
    /// Their durations in nanoseconds.
    pub sum_nanos: u128,
}

impl Latency {
    /// How many bounds there are.
    pub const BUCKETS: usize = 14;

    /// Upper bounds in seconds: 2 ms, and each twice the one before, as Tempo has them.
    pub fn bounds() -> [f64; Self::BUCKETS] {
        std::array::from_fn(|bucket| 0.002 * f64::from(1u32 << bucket))
    }

    /// Counts a duration.
    pub fn add(&mut self, nanos: i64) {
        let nanos = u64::try_from(nanos).unwrap_or(0);
        // Each bound is twice the one before: the bits of how often the first one fits are the bucket.
        let doublings = u64::BITS - (nanos.saturating_sub(1) / 2_000_000).leading_zeros();
        let bucket = (doublings as usize).min(Self::BUCKETS);
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum_nanos += u128::from(nanos);
    }
}

/// The latencies of all series.
#[derive(Debug, Clone, Default)]
pub struct CallCounts {
    numbers: HashMap<CallSeries, usize>,
    /// By number.
    latencies: Vec<Latency>,
}

impl CallCounts {
    /// All series, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&CallSeries, &Latency)> {
        self.numbers.iter().map(|(series, number)| (series, &self.latencies[*number]))
    }

    pub(super) fn fold(&mut self, batch: &RecordBatch) -> Result<()> {
        let durations = arrays::int64s(batch, "duration")?.values();
        let (services, names) = (arrays::texts(batch, "service")?, arrays::texts(batch, "name")?);
        let kinds = arrays::int8s(batch, "kind")?.values();
        let statuses = arrays::int8s(batch, "status")?.values();
        // A batch has few series, which stay in the processor's cache, and tells services apart by codes.
        let mut of_batch = HashMap::new();
        for row in 0..batch.num_rows() {
            let (name, kind, status) = (names.get(row), kinds[row], statuses[row]);
            let mut find = || self.number(CallKey { service: services.get(row), name, kind, status });
            let number = match services.codes() {
                Some((codes, _)) => *of_batch.entry((codes[row], name, kind, status)).or_insert_with(find),
                None => find(),
            };
            self.latencies[number].add(durations[row]);
        }
        Ok(())
    }

    /// The number of a series. Nearly every span is of one that came before: no text is copied for it.
    fn number(&mut self, mut key: CallKey<'_>) -> usize {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.numbers.len() >= MAX_SERIES {
            key.name = OTHER;
        }
        *self.numbers.entry(key.to_series()).or_insert_with(|| {
            self.latencies.push(Latency::default());
            self.latencies.len() - 1
        })
    }
}

/// A [`CallSeries`] that borrows its texts, with the same hash: fields stand in the same order.
#[derive(Hash)]
struct CallKey<'a> {
    service: &'a str,
    name: &'a str,
    kind: i8,
    status: i8,
}

impl CallKey<'_> {
    fn to_series(&self) -> CallSeries {
        CallSeries {
            service: self.service.to_owned(),
            name: self.name.to_owned(),
            kind: self.kind,
            status: self.status,
        }
    }
}

impl hashbrown::Equivalent<CallSeries> for CallKey<'_> {
    fn equivalent(&self, series: &CallSeries) -> bool {
        self.service == series.service
            && self.name == series.name
            && (self.kind, self.status) == (series.kind, series.status)
    }
}

impl CallSeries {
    /// The kind as Prometheus labels spell it.
    pub fn kind_name(&self) -> Cow<'static, str> {
        name_or_number(SpanKind::from_number(self.kind).otlp_name(), self.kind)
    }

    /// The status as Prometheus labels spell it.
    pub fn status_name(&self) -> Cow<'static, str> {
        name_or_number(StatusCode::from_number(self.status).otlp_name(), self.status)
    }
}

/// What has no name is told by its number: two series may not have the same labels.
fn name_or_number(name: Option<&'static str>, number: i8) -> Cow<'static, str> {
    name.map_or_else(|| Cow::Owned(number.to_string()), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, Int8Array, Int64Array, StringArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    /// Scenario: the same calls in two batches, with services plain and coded; codes stand for other services in each.
    /// Guarantee: both count alike, and one after the other they count double.
    #[test]
    fn coded_services_count_as_plain_ones() {
        let calls = [("shop", "GET /", 2), ("cart", "GET /", 2), ("shop", "POST /", 2), ("shop", "GET /", 3)];
        let batch = |calls: &[(&str, &str, i8)], is_coded: bool| {
            let services = calls.iter().map(|call| call.0);
            let services: ArrayRef = match is_coded {
                true => Arc::new(services.collect::<DictionaryArray<Int32Type>>()),
                false => Arc::new(services.map(Some).collect::<StringArray>()),
            };
            let columns: [(&str, ArrayRef); 5] = [
                ("duration", Arc::new(Int64Array::from(vec![5_000_000; calls.len()]))),
                ("service", services),
                ("name", Arc::new(calls.iter().map(|call| Some(call.1)).collect::<StringArray>())),
                ("kind", Arc::new(calls.iter().map(|call| call.2).collect::<Int8Array>())),
                ("status", Arc::new(Int8Array::from(vec![1; calls.len()]))),
            ];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let backwards: Vec<_> = calls.into_iter().rev().collect();
        let mut counts = CallCounts::default();
        for (rounds, is_coded) in [(1, true), (2, true), (3, false)] {
            let calls = if rounds == 2 { &backwards } else { &calls.to_vec() };
            counts.fold(&batch(calls, is_coded)).unwrap();
            assert_eq!(counts.iter().count(), calls.len());
            for (service, name, kind) in calls {
                let key = CallKey { service, name, kind: *kind, status: 1 };
                assert_eq!(counts.latencies[counts.numbers[&key]].count, rounds, "{service} {name} {kind}");
            }
        }
    }

    /// Scenario: a series and the borrowed key of the same texts. Guarantee: one finds the other.
    #[test]
    fn borrowed_keys_find_series() {
        let key = CallKey { service: "shop", name: "GET /", kind: 2, status: 1 };
        let mut series = HashMap::new();
        series.insert(key.to_series(), 7);
        assert_eq!(series.get(&key), Some(&7));
        assert_eq!(series.get(&CallKey { status: 2, ..key }), None);
    }

    /// Scenario: durations on and beside bounds. Guarantee: a bound is in its own bucket, and nothing is lost.
    #[test]
    fn durations_fall_into_buckets() {
        let mut latency = Latency::default();
        for nanos in [0, 2_000_000, 2_000_001, 4_000_000, 16_384_000_000, 16_384_000_001, -5] {
            latency.add(nanos);
        }
        assert_eq!((latency.buckets[0], latency.buckets[1]), (3, 2));
        assert_eq!((latency.buckets[13], latency.buckets[14], latency.count), (1, 1, 7));
        assert!((Latency::bounds()[13] - 16.384).abs() < 1e-12);
    }
}
