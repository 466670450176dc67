//! The ledger: each request cut into parts that do not overlap and together are its duration.
//!
//! Only time on the critical path counts. A span's own stretches of it are filled with what its samples say, and what
//! they leave open stays open: as time in another service where the span is a call, as unexplained elsewhere. A part
//! that comes out negative by chance (one sample worth 10 ms in a stretch of 5 ms) keeps its sign, or means would be
//! biased. Requests that are looked at one by one have no mean: what their samples say beyond their time is left out.

use hashbrown::HashMap;
use hotspan_model::{LinkStrength, SpanKind};

use crate::critical_path::{Stretch, critical_path};
use crate::matrix::FEW_REQUESTS;
use crate::part::Part;
use crate::request::{Measure, Request, RequestSample};
use crate::signs::Sign;
use crate::sources::Sources;
use crate::tree::{NodeId, NodeKey, Tree};
use crate::vocabulary::{OperationId, TextId, Vocabulary};

/// A request as a sparse vector over the leaves of the tree.
#[derive(Debug, Clone, Default)]
pub struct RequestVector {
    /// Nanoseconds by leaf, in order of leaves, each leaf once.
    pub times: Vec<(NodeId, f64)>,
    /// Variance that sampling brings, by leaf.
    pub noise: Vec<(NodeId, f64)>,
    /// Duration in nanoseconds: what the times add up to.
    pub duration: f64,
    /// Spans on the critical path by operation node: how many, and how many of them failed.
    pub calls: Vec<(NodeId, u32, u32)>,
    /// Index of a span on the critical path for each operation node.
    pub spans: Vec<(NodeId, u32)>,
    /// Samples that were counted.
    pub samples: u32,
}

/// Both sides as vectors over one tree; index 0 is slow, 1 is fast.
#[derive(Debug)]
pub struct Ledger {
    /// The tree.
    pub tree: Tree,
    /// The children of each of its nodes, in order of their numbers.
    pub children: Vec<Vec<NodeId>>,
    /// The vectors of each side.
    pub sides: [Vec<RequestVector>; 2],
    /// Samples by leaf on each side: how many, and how many periods their time is.
    pub samples: [Vec<(u64, f64)>; 2],
    /// What the numbers rest on.
    pub evidence: Evidence,
}

/// What the numbers rest on.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Samples by how they came to their span: exact, inherited, inferred.
    pub links: [u64; 3],
    /// Time of samples without a time of their own, which were counted by the critical share of their span.
    pub estimated: f64,
    /// Time of samples without any function's name.
    pub unsymbolised: f64,
    /// Time of all samples counted.
    pub seen: f64,
    /// Operations in which several threads work at once, and by how much their samples were scaled.
    pub scaled: Vec<(OperationId, f64)>,
    /// Services of spans on the critical path, with the time they spend there.
    pub services: HashMap<TextId, f64>,
}

/// A request with its critical path and what its samples mean, before samples are scaled.
struct Prepared {
    stretches: Vec<Stretch>,
    own: Vec<i64>,
    /// (sample, part, nanoseconds that count)
    weighed: Vec<(usize, Part, f64)>,
}

/// Builds the vectors of two sides.
pub fn ledger(vocabulary: &Vocabulary, sources: &Sources, slow: &[Request], fast: &[Request]) -> Ledger {
    let mut evidence = Evidence::default();
    let is_one_by_one = [slow.len() < FEW_REQUESTS, false];
    let prepared: [Vec<Prepared>; 2] = [0, 1].map(|side| {
        let requests = [slow, fast][side].iter();
        requests.map(|request| prepare(vocabulary, sources, request, is_one_by_one[side], &mut evidence)).collect()
    });
    let scales = concurrency_scales(sources, vocabulary, [slow, fast], &prepared);
    evidence.scaled = scales.iter().map(|(operation, scale)| (*operation, *scale)).collect();
    evidence.scaled.sort_unstable_by_key(|(operation, _)| *operation);
    let mut ledger = Ledger {
        tree: Tree::over(vocabulary),
        children: Vec::new(),
        sides: [Vec::new(), Vec::new()],
        samples: Default::default(),
        evidence,
    };
    for (side, requests) in [slow, fast].into_iter().enumerate() {
        for (request, prepared) in requests.iter().zip(&prepared[side]) {
            let scales = span_scales(&scales, request, prepared, is_one_by_one[side]);
            let vector = ledger.vector(vocabulary, sources, &scales, side, request, prepared);
            ledger.sides[side].push(vector);
        }
    }
    ledger.children = ledger.tree.children();
    ledger
}

/// What the samples of each span of a request are scaled by.
fn span_scales(
    by_operation: &HashMap<OperationId, f64>,
    request: &Request,
    prepared: &Prepared,
    is_one_by_one: bool,
) -> Vec<f64> {
    let of_operation = |operation: OperationId| by_operation.get(&operation).copied().unwrap_or(1.0);
    let mut scales: Vec<f64> = request.spans.iter().map(|span| of_operation(span.operation)).collect();
    if is_one_by_one {
        let mut seen = vec![0.0; request.spans.len()];
        for (sample, _, time) in &prepared.weighed {
            let span = request.samples[*sample].span as usize;
            seen[span] += time * scales[span];
        }
        for (span, seen) in seen.into_iter().enumerate() {
            let own = prepared.own[span] as f64;
            scales[span] *= if seen > own { own / seen } else { 1.0 };
        }
    }
    scales
}

impl Ledger {
    /// The functions and waits below a node that belong to its own operation, in order of their numbers.
    pub fn below(&self, above: NodeId) -> Vec<NodeId> {
        let mut below: Vec<NodeId> = Vec::new();
        let mut pending = vec![above];
        while let Some(node) = pending.pop() {
            let own = self.children[node as usize].iter();
            let own = own.filter(|child| !matches!(self.tree.node(**child).key, NodeKey::Operation(_)));
            let first = below.len();
            below.extend(own);
            pending.extend_from_slice(&below[first..]);
        }
        below.sort_unstable();
        below
    }
}

fn prepare(
    vocabulary: &Vocabulary,
    sources: &Sources,
    request: &Request,
    is_one_by_one: bool,
    evidence: &mut Evidence,
) -> Prepared {
    let off_cpu = if is_one_by_one { sources.off_cpu_of(vocabulary, request) } else { HashMap::new() };
    let mut stretches = critical_path(request);
    stretches.sort_unstable_by_key(|stretch| (stretch.span, stretch.from));
    let mut own = vec![0i64; request.spans.len()];
    for stretch in &stretches {
        own[stretch.span as usize] += stretch.to - stretch.from;
    }
    let mut untimed_shares: HashMap<u32, f64> = HashMap::new();
    let mut weighed = Vec::new();
    for (index, sample) in request.samples.iter().enumerate() {
        let span = &request.spans[sample.span as usize];
        let off_cpu = off_cpu.get(&span.operation).copied();
        let Some((part, share)) = sources.part_of(vocabulary, span.operation, sample, off_cpu) else { continue };
        let own = own[sample.span as usize];
        let value = sample.value as f64;
        let counted = match sample.time {
            _ if sample.measure == Measure::Parked => {
                // A span that waits for its children is parked too: that time is theirs.
                let in_children = (span.end - span.start - own) as f64;
                (value - in_children).clamp(0.0, own as f64)
            }
            Some(time) => {
                // A wait is told when it is over, which is often the very end of its span: its middle counts, too.
                let middle = time.saturating_sub(sample.value / 2);
                let is_critical = is_inside(&stretches, sample.span, time)
                    || (sample.measure == Measure::Lock && is_inside(&stretches, sample.span, middle));
                if is_critical { value } else { 0.0 }
            }
            None => {
                let share =
                    *untimed_shares.entry(sample.span).or_insert_with(|| untimed_share(request, sample.span, own));
                evidence.estimated += value * share;
                value * share
            }
        };
        if counted <= 0.0 {
            continue;
        }
        // In a call, waiting means waiting for the other side, also where its answer comes through a queue with a lock.
        let is_call = matches!(span.role, SpanKind::Client | SpanKind::Producer);
        let is_wait =
            matches!(part, Part::Io | Part::Waiting) || (part == Part::Lock && sample.measure != Measure::Lock);
        let part = if is_call && is_wait { Part::Downstream } else { part };
        let counted = counted * share;
        if counted <= 0.0 {
            continue;
        }
        evidence.seen += counted;
        evidence.links[match sample.link {
            LinkStrength::Exact => 0,
            LinkStrength::Inherited => 1,
            LinkStrength::Inferred => 2,
        }] += 1;
        let leaf = vocabulary.leaf_of(sample.stack);
        if leaf.is_none_or(|leaf| sources.signs_of(leaf).say(Sign::Nameless)) {
            evidence.unsymbolised += counted;
        }
        weighed.push((index, part, counted));
    }
    Prepared { stretches, own, weighed }
}

fn is_inside(sorted: &[Stretch], span: u32, time: i64) -> bool {
    let after = sorted.partition_point(|stretch| (stretch.span, stretch.from) <= (span, time));
    after > 0 && sorted[after - 1].span == span && time < sorted[after - 1].to
}

/// The share of a span's own time that is critical: what samples without a time are counted by.
fn untimed_share(request: &Request, span: u32, own: i64) -> f64 {
    let here = &request.spans[span as usize];
    let mut children: Vec<(i64, i64)> = request
        .spans
        .iter()
        .filter(|child| child.parent == Some(span))
        .map(|child| (child.start.max(here.start), child.end.min(here.end)))
        .filter(|(start, end)| start < end)
        .collect();
    children.sort_unstable();
    let mut covered = 0;
    let mut reached = here.start;
    for (start, end) in children {
        covered += (end - start.max(reached)).max(0);
        reached = reached.max(end);
    }
    let whole = here.end - here.start;
    let alone = whole - covered;
    let base = if alone > 0 { alone } else { whole };
    if base > 0 { (own as f64 / base as f64).min(1.0) } else { 0.0 }
}

/// Where several threads work for one span, its samples are worth more than its time: they are scaled to it, per
/// operation and for both sides alike.
fn concurrency_scales(
    sources: &Sources,
    vocabulary: &Vocabulary,
    sides: [&[Request]; 2],
    prepared: &[Vec<Prepared>; 2],
) -> HashMap<OperationId, f64> {
    let mut sums: HashMap<OperationId, (f64, f64, f64)> = HashMap::new();
    for (requests, prepared) in sides.into_iter().zip(prepared) {
        for (request, prepared) in requests.iter().zip(prepared) {
            for (span, own) in request.spans.iter().zip(&prepared.own) {
                sums.entry(span.operation).or_default().0 += *own as f64;
            }
            for (sample, _, time) in &prepared.weighed {
                let sample = &request.samples[*sample];
                let operation = request.spans[sample.span as usize].operation;
                let quantum = sources.quantum(vocabulary.operation_of(operation).service, sample.measure);
                let sum = sums.entry(operation).or_default();
                sum.1 += time;
                sum.2 += time * quantum;
            }
        }
    }
    let too_much =
        sums.into_iter().filter(|(_, (own, seen, noise))| *seen > own * 1.1 && seen - own > 4.0 * noise.sqrt());
    too_much.map(|(operation, (own, seen, _))| (operation, own / seen)).collect()
}

impl Ledger {
    fn vector(
        &mut self,
        vocabulary: &Vocabulary,
        sources: &Sources,
        scales: &[f64],
        side: usize,
        request: &Request,
        prepared: &Prepared,
    ) -> RequestVector {
        let mut places: Vec<Option<NodeId>> = vec![None; request.spans.len()];
        let mut vector = RequestVector { duration: request.duration() as f64, ..RequestVector::default() };
        let mut seen: Vec<f64> = vec![0.0; request.spans.len()];
        let mut noise: Vec<f64> = vec![0.0; request.spans.len()];
        for stretch in &prepared.stretches {
            place_of(&mut self.tree, request, &mut places, stretch.span);
        }
        let mut wait = RunOfWaits::default();
        for (sample, part, time) in &prepared.weighed {
            let sample = &request.samples[*sample];
            let span = &request.spans[sample.span as usize];
            let Some(operation) = places[sample.span as usize] else { continue };
            let scale = scales[sample.span as usize];
            let time = time * scale;
            let placement = self.tree.place(vocabulary, operation, sample.stack);
            self.tree.add_time(placement, side, time);
            let leaf = self.tree.leaf(placement, *part);
            let quantum = sources.quantum(vocabulary.operation_of(span.operation).service, sample.measure) * scale;
            let variance = if wait.goes_on(sample, leaf, *part) { 0.0 } else { time * quantum };
            vector.times.push((leaf, time));
            vector.noise.push((leaf, variance));
            vector.samples += 1;
            seen[sample.span as usize] += time;
            noise[sample.span as usize] += variance;
            let counted = &mut self.samples[side];
            counted.resize(counted.len().max(leaf as usize + 1), (0, 0.0));
            let counted = &mut counted[leaf as usize];
            counted.0 += 1;
            counted.1 += time / quantum.max(1.0);
        }
        let focus_service = vocabulary.operation_of(request.spans[0].operation).service;
        for (index, span) in request.spans.iter().enumerate() {
            let own = prepared.own[index];
            let Some(operation) = places[index] else { continue };
            let service = vocabulary.operation_of(span.operation).service;
            if own > 0 {
                *self.evidence.services.entry(service).or_default() += own as f64;
                let is_call = matches!(span.role, SpanKind::Client | SpanKind::Producer);
                let is_elsewhere = service != focus_service && !sources.is_profiled(service);
                let rest = if is_call || is_elsewhere { Part::Downstream } else { Part::Unexplained };
                let leaf = self.tree.child(operation, NodeKey::Part(rest), false);
                vector.times.push((leaf, own as f64 - seen[index]));
                vector.noise.push((leaf, noise[index]));
            }
            match vector.calls.iter_mut().find(|(node, ..)| *node == operation) {
                Some((_, calls, failed)) => {
                    *calls += 1;
                    *failed += u32::from(span.failed);
                }
                None => {
                    vector.calls.push((operation, 1, u32::from(span.failed)));
                    vector.spans.push((operation, index as u32));
                }
            }
        }
        vector.times = summed(vector.times);
        vector.noise = summed(vector.noise);
        vector
    }
}

/// Samples in which one wait is seen again and again. How long it was is known to a sample at either end, however long it
/// was: between them there is no chance.
#[derive(Debug, Default)]
struct RunOfWaits {
    last: Option<(u32, Measure, NodeId)>,
    length: usize,
}

impl RunOfWaits {
    /// Whether this sample is in the midst of a wait. Samples come in order of span, measure and time.
    fn goes_on(&mut self, sample: &RequestSample, leaf: NodeId, part: Part) -> bool {
        const ENDS: usize = 2;
        let here = Some((sample.span, sample.measure, leaf));
        let is_same = self.last == here && part.is_waiting() && part != Part::Scheduling && sample.time.is_some();
        self.length = if is_same { self.length + 1 } else { 1 };
        self.last = here;
        self.length > ENDS
    }
}

/// The node of a span, below those of its callers.
fn place_of(tree: &mut Tree, request: &Request, places: &mut [Option<NodeId>], span: u32) -> NodeId {
    // Upwards to the first that has a place, then down again.
    let mut chain = vec![span];
    while let Some(parent) = request.spans[*chain.last().unwrap_or(&span) as usize].parent {
        if places[parent as usize].is_some() || chain.len() > request.spans.len() {
            break;
        }
        chain.push(parent);
    }
    let mut place = Tree::ROOT;
    while let Some(here) = chain.pop() {
        let index = here as usize;
        place = match places[index] {
            Some(known) => known,
            None => {
                let above =
                    request.spans[index].parent.and_then(|parent| places[parent as usize]).unwrap_or(Tree::ROOT);
                tree.child(above, NodeKey::Operation(request.spans[index].operation), false)
            }
        };
        places[index] = Some(place);
    }
    place
}

/// The same entries with each leaf once.
fn summed(mut entries: Vec<(NodeId, f64)>) -> Vec<(NodeId, f64)> {
    entries.sort_by_key(|(node, _)| *node);
    let mut out: Vec<(NodeId, f64)> = Vec::with_capacity(entries.len());
    for (node, value) in entries {
        match out.last_mut() {
            Some((last, sum)) if *last == node => *sum += value,
            _ => out.push((node, value)),
        }
    }
    out
}
