//! The partial result of a metrics query: what workers fill and merge.

use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::compare::CompareState;
use super::grid::{MetricsError, MetricsLimits, TimeGrid};
use super::histograms::Histograms;
use super::series::Exemplar;
use super::{Function, Leaf, Metrics};
use crate::plan::Exemplars;
use crate::value::{FieldValue, Value};

/// A partial result. Merging is associative and commutative, up to the rounding of floating-point sums.
#[derive(Debug, Clone)]
pub struct MetricsState {
    pub(super) grid: TimeGrid,
    pub(super) limits: MetricsLimits,
    pub(super) leaves: Vec<LeafState>,
}

#[derive(Debug, Clone)]
pub(super) enum LeafState {
    Series(SeriesTable),
    Compare(CompareState),
}

/// The series of one leaf, found by their label values.
#[derive(Debug, Clone)]
pub(super) struct SeriesTable {
    hasher: DefaultHashBuilder,
    positions: HashTable<u32>,
    texts: Vec<KnownText>,
    /// The series of each code, where the source has numbered the values of the only label.
    codes: Vec<u32>,
    pub(super) series: Vec<SeriesState>,
    pub(super) exemplars: Reservoir,
}

const TEXT_SLOTS: usize = 128;
const NO_SERIES: u32 = u32::MAX;
/// Codes that are remembered: more distinct values make more series than are allowed.
const MOST_CODES: usize = 1 << 16;

/// Where a text lay, and the series it belongs to.
#[derive(Debug, Clone, Copy)]
struct KnownText {
    address: usize,
    length: usize,
    series: u32,
}

impl KnownText {
    const NONE: Self = Self { address: 0, length: 0, series: NO_SERIES };
}

#[derive(Debug, Clone)]
pub(super) struct SeriesState {
    pub(super) key: Vec<Value>,
    pub(super) cells: Cells,
    /// Whether the values were durations, which are reported in seconds.
    pub(super) in_seconds: bool,
}

/// One cell for each interval; not-a-number means that there was no value.
#[derive(Debug, Clone)]
pub(super) enum Cells {
    /// Weighted counts: exact while spans stand for themselves.
    Count(Vec<f64>),
    Smallest(Vec<f64>),
    Largest(Vec<f64>),
    Sum(Vec<f64>),
    Mean(Vec<(f64, f64)>),
    Histogram(Histograms),
}

impl Cells {
    fn for_function(function: &Function, intervals: usize) -> Self {
        match function {
            Function::Rate | Function::Count | Function::Compare { .. } => Self::Count(vec![0.0; intervals]),
            Function::Min(_) => Self::Smallest(vec![f64::NAN; intervals]),
            Function::Max(_) => Self::Largest(vec![f64::NAN; intervals]),
            Function::Sum(_) => Self::Sum(vec![f64::NAN; intervals]),
            Function::Mean(_) => Self::Mean(vec![(0.0, 0.0); intervals]),
            Function::Quantiles { precise, .. } => Self::Histogram(Histograms::new(intervals, *precise)),
            Function::Histogram(_) => Self::Histogram(Histograms::new(intervals, false)),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, interval: usize, value: f64, precise: bool, weight: f64) {
        match self {
            Self::Count(counts) => counts[interval] += weight,
            Self::Smallest(values) => values[interval] = values[interval].min(value),
            Self::Largest(values) => values[interval] = values[interval].max(value),
            Self::Sum(values) => values[interval] = add_present(values[interval], value * weight),
            Self::Mean(values) => {
                values[interval].0 += value * weight;
                values[interval].1 += weight;
            }
            Self::Histogram(values) => values.add(interval, value, precise, weight),
        }
    }

    fn merge(&mut self, other: &Self) -> Result<(), MetricsError> {
        match (self, other) {
            (Self::Count(left), Self::Count(right)) => zip(left, right, |left, right| *left += right),
            (Self::Smallest(left), Self::Smallest(right)) => zip(left, right, |left, right| *left = left.min(*right)),
            (Self::Largest(left), Self::Largest(right)) => zip(left, right, |left, right| *left = left.max(*right)),
            (Self::Sum(left), Self::Sum(right)) => zip(left, right, |left, right| *left = add_present(*left, *right)),
            (Self::Mean(left), Self::Mean(right)) => zip(left, right, |left, right| {
                left.0 += right.0;
                left.1 += right.1;
            }),
            (Self::Histogram(left), Self::Histogram(right)) => left.merge(right),
            _ => return Err(MetricsError::Mismatch),
        }
        Ok(())
    }
}

fn zip<T>(left: &mut [T], right: &[T], mut merge: impl FnMut(&mut T, &T)) {
    for (left, right) in left.iter_mut().zip(right) {
        merge(left, right);
    }
}

/// A sum where not-a-number is "nothing yet".
fn add_present(left: f64, right: f64) -> f64 {
    if left.is_nan() {
        right
    } else if right.is_nan() {
        left
    } else {
        left + right
    }
}

/// A choice of spans that does not depend on order: those whose mixed ids are smallest.
#[derive(Debug, Clone)]
pub(super) struct Reservoir {
    most: usize,
    kept: BinaryHeap<Candidate>,
}

#[derive(Debug, Clone)]
pub(super) struct Candidate {
    mixed: u64,
    pub(super) series: u32,
    pub(super) exemplar: Exemplar,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.mixed == other.mixed
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.mixed.cmp(&other.mixed)
    }
}

impl Reservoir {
    pub(super) fn is_off(&self) -> bool {
        self.most == 0
    }

    /// Whether a span of this id would be kept; asked first, so that the rest of it need not be read.
    #[inline]
    pub(super) fn mixed_if_wanted(&self, span: [u8; 8]) -> Option<u64> {
        // A finaliser that spreads every bit, so that sequential ids are chosen evenly.
        let mut mixed = u64::from_be_bytes(span);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let is_wanted = self.kept.len() < self.most || self.kept.peek().is_some_and(|worst| mixed < worst.mixed);
        is_wanted.then_some(mixed)
    }

    pub(super) fn keep(&mut self, mixed: u64, series: u32, exemplar: Exemplar) {
        self.kept.push(Candidate { mixed, series, exemplar });
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    pub(super) fn into_kept(self) -> Vec<Candidate> {
        self.kept.into_sorted_vec()
    }
}

impl MetricsState {
    pub(super) fn new(metrics: &Metrics, grid: TimeGrid, limits: MetricsLimits) -> Self {
        let exemplars = match metrics.hints.exemplars {
            Some(Exemplars::Off) => 0,
            Some(Exemplars::Count(count)) => (count as usize).min(limits.exemplars),
            Some(Exemplars::Default) | None => limits.exemplars,
        };
        let leaves = metrics.leaves.iter().map(|leaf| match leaf.function {
            Function::Compare { .. } => LeafState::Compare(CompareState::new(grid.intervals(), limits.max_points)),
            _ => LeafState::Series(SeriesTable::new(exemplars)),
        });
        Self { grid, limits, leaves: leaves.collect() }
    }

    /// Adds what another worker found for the same query and range.
    pub fn merge(&mut self, other: &Self) -> Result<(), MetricsError> {
        if self.grid != other.grid || self.leaves.len() != other.leaves.len() {
            return Err(MetricsError::Mismatch);
        }
        for (mine, theirs) in self.leaves.iter_mut().zip(&other.leaves) {
            match (mine, theirs) {
                (LeafState::Series(mine), LeafState::Series(theirs)) => {
                    mine.merge(theirs, &self.limits, self.grid.intervals())?;
                }
                (LeafState::Compare(mine), LeafState::Compare(theirs)) => mine.merge(theirs),
                _ => return Err(MetricsError::Mismatch),
            }
        }
        Ok(())
    }

    pub(super) fn forget_texts(&mut self) {
        for leaf in &mut self.leaves {
            if let LeafState::Series(table) = leaf {
                table.forget_texts();
            }
        }
    }

    /// What had to be left out of the answer, for a person.
    pub fn notes(&self) -> Vec<String> {
        let compares = self.leaves.iter().filter_map(|leaf| match leaf {
            LeafState::Compare(compare) => compare.note(),
            LeafState::Series(_) => None,
        });
        compares.collect()
    }

    /// How many series there are so far.
    pub fn series_count(&self) -> usize {
        self.leaves
            .iter()
            .map(|leaf| match leaf {
                LeafState::Series(table) => table.series.len(),
                LeafState::Compare(compare) => compare.series_count(),
            })
            .sum()
    }
}

impl SeriesTable {
    fn new(exemplars: usize) -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            positions: HashTable::new(),
            texts: vec![KnownText::NONE; TEXT_SLOTS],
            codes: Vec::new(),
            series: Vec::new(),
            exemplars: Reservoir { most: exemplars, kept: BinaryHeap::new() },
        }
    }

    fn hash_key(hasher: &DefaultHashBuilder, key: &[Value]) -> u64 {
        let mut state = hasher.build_hasher();
        for value in key {
            std::hash::Hash::hash(value, &mut state);
        }
        state.finish()
    }

    /// The series with these label values, if it is known. Nothing is allocated to find it.
    #[inline]
    pub(super) fn find(&self, key: &[FieldValue<'_>]) -> Option<usize> {
        if key.is_empty() {
            return (!self.series.is_empty()).then_some(0);
        }
        let mut state = self.hasher.build_hasher();
        for value in key {
            value.hash_into(&mut state);
        }
        let same = |at: &u32| key.iter().zip(&self.series[*at as usize].key).all(|(left, right)| left.same_as(right));
        self.positions.find(state.finish(), same).map(|at| *at as usize)
    }

    /// The series of a single text label, remembered by where the text lies: sources with dictionaries hand out the same
    /// few texts again and again. Good only while the source is borrowed; see [`SeriesTable::forget_texts`].
    #[inline]
    pub(super) fn find_text(&mut self, text: &str) -> Option<usize> {
        let (address, length) = (text.as_ptr() as usize, text.len());
        let slot = (address ^ (address >> 7) ^ length) % TEXT_SLOTS;
        let known = self.texts[slot];
        if known.address == address && known.length == length && known.series != NO_SERIES {
            return Some(known.series as usize);
        }
        let found = self.find(&[FieldValue::Str(text)])?;
        self.texts[slot] = KnownText { address, length, series: found as u32 };
        Some(found)
    }

    /// The series of a code of the source, if it was asked for before. Good only while the source is borrowed, too.
    #[inline]
    pub(super) fn find_code(&self, code: u32) -> Option<usize> {
        self.codes.get(code as usize).filter(|series| **series != NO_SERIES).map(|series| *series as usize)
    }

    /// Remembers the series of a code.
    pub(super) fn know_code(&mut self, code: u32, series: usize) {
        let at = code as usize;
        if at >= MOST_CODES {
            return;
        }
        if at >= self.codes.len() {
            self.codes.resize(at + 1, NO_SERIES);
        }
        self.codes[at] = series as u32;
    }

    /// To be called before texts of another borrow are asked for: an address may have new contents by then, and a code
    /// another meaning.
    pub(super) fn forget_texts(&mut self) {
        self.texts.fill(KnownText::NONE);
        self.codes.clear();
    }

    /// The series with these label values, made if it is new.
    pub(super) fn find_or_insert(
        &mut self,
        key: Vec<Value>,
        limits: &MetricsLimits,
        intervals: usize,
        make_cells: impl FnOnce() -> Cells,
    ) -> Result<usize, MetricsError> {
        let hash = Self::hash_key(&self.hasher, &key);
        if let Some(at) = self.positions.find(hash, |at| self.series[*at as usize].key == key) {
            return Ok(*at as usize);
        }
        if self.series.len() >= limits.max_series {
            return Err(MetricsError::TooManySeries { limit: limits.max_series });
        }
        if (self.series.len() + 1).saturating_mul(intervals) > limits.max_points.max(intervals) {
            return Err(MetricsError::TooManyPoints { limit: limits.max_points });
        }
        let at = self.series.len();
        self.series.push(SeriesState { key, cells: make_cells(), in_seconds: false });
        let (hasher, series) = (&self.hasher, &self.series);
        self.positions.insert_unique(hash, at as u32, |at| Self::hash_key(hasher, &series[*at as usize].key));
        Ok(at)
    }

    fn merge(&mut self, other: &Self, limits: &MetricsLimits, intervals: usize) -> Result<(), MetricsError> {
        let mut moved = Vec::with_capacity(other.series.len());
        for series in &other.series {
            let known = self.series.len();
            let at = self.find_or_insert(series.key.clone(), limits, intervals, || series.cells.clone())?;
            let mine = &mut self.series[at];
            mine.in_seconds |= series.in_seconds;
            if at < known {
                mine.cells.merge(&series.cells)?;
            }
            moved.push(at as u32);
        }
        for candidate in &other.exemplars.kept {
            let series = moved[candidate.series as usize];
            self.exemplars.keep(candidate.mixed, series, candidate.exemplar.clone());
        }
        Ok(())
    }
}

impl Leaf {
    pub(super) fn new_cells(&self, intervals: usize) -> Cells {
        Cells::for_function(&self.function, intervals)
    }
}
