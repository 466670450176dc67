//! `.cpuprofile`: a tree of call frames, and for each sample its node and the time since the one before.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::{NO_PATH, PathIndex};
use hotspan_model::frame::FrameIndex;
use hotspan_model::profile::ProfileContext;
use hotspan_model::{Frame, Profile, ProfileSet, ProfileType, Sample};

use super::frames::{IDLE, ROOT, read_call_frame, whole_count};
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::leaf_side::child_path;
use crate::set_builder::{SYMBOL_BYTES, SetBuilder};

const FORMAT: &str = "cpuprofile";
/// What a node takes while the file is read, and as a frame.
const NODE_BYTES: usize = size_of::<Node<'_>>() + SYMBOL_BYTES;
/// What a sample takes while the file is read, as wall-clock time and as CPU time.
const SAMPLE_BYTES: usize = size_of::<Hit>() + 2 * size_of::<Sample>();

#[derive(Debug, Default)]
struct Node<'a> {
    id: u64,
    frame: Frame<'a>,
    hits: i64,
    children: Vec<u64>,
    parent: Option<u64>,
    /// Where it stands in the file.
    offset: usize,
}

/// A sample, and where it stands in the file.
#[derive(Debug)]
struct Hit {
    node: u64,
    offset: usize,
    /// Nanoseconds since the start, known once all of the file is.
    at: i64,
}

#[derive(Debug, Default)]
struct File<'a> {
    nodes: Vec<Node<'a>>,
    samples: Vec<Hit>,
    deltas: Vec<f64>,
    start: f64,
    end: f64,
    /// Where the times between samples end.
    deltas_end: usize,
}

/// Reads a CPU profile: the wall-clock time of every sample, and as CPU time all that was not idle.
pub fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut builder = SetBuilder::new(FORMAT, options);
    let mut file = File::read(bytes, &mut builder)?;
    file.order_samples();
    let paths = file.paths(&mut builder, options)?;
    let (labels, link) = options.series();
    let link = builder.link(link);
    // V8's clock counts from the start of the machine; only where it looks like a date is it one.
    let end = ((file.end - file.start) * 1000.0) as i64;
    let length = end.max(file.samples.last().map_or(0, |last| last.at));
    let placed = options.placed((file.start * 1000.0) as i64, length);
    let (time, duration) = options.time_range((file.start * 1000.0) as i64, length);

    let mut wall = Vec::new();
    let mut cpu = Vec::new();
    let mut add = |node: PathIndex, idle: bool, value: i64, at: Option<i64>| {
        let (time, timed) = placed.sample_time(at);
        let sample = Sample { path: node, value, time, timed, link, thread: 0, labels: 0, attributes: 0 };
        if value > 0 {
            wall.push(sample);
            if !idle {
                cpu.push(sample);
            }
        }
    };
    if file.samples.is_empty() {
        // An old file: only how often each node was met.
        let all = file.nodes.iter().fold(0i64, |all, node| all.saturating_add(node.hits));
        let each = if all > 0 { duration / all } else { 0 }.max(1);
        for node in &file.nodes {
            let (path, idle) = paths[&node.id];
            add(path, idle, node.hits.saturating_mul(each), None);
        }
    } else {
        // What a sample stands for is the time until the next one. Nothing of what lies before the start was recorded.
        let next_ones = file.samples.iter().skip(1).map(|next| next.at.max(0)).chain([end]);
        for (Hit { node, offset, at }, until) in file.samples.iter().zip(next_ones) {
            let Some((path, idle)) = paths.get(node) else {
                return Err(FileError::malformed(FORMAT, *offset, "the id of a node", node));
            };
            let at = (*at).max(0);
            add(*path, *idle, until.saturating_sub(at), Some(at));
        }
    }
    let wall_type = ProfileType::from_parts(["wall", "wall", "nanoseconds", "wall", "nanoseconds"]);
    let period = if wall.is_empty() { 0 } else { duration / wall.len() as i64 };
    for (profile_type, samples) in [(ProfileType::cpu(), cpu), (wall_type, wall)] {
        let context = ProfileContext { source: Cow::Borrowed(FORMAT), ..ProfileContext::default() };
        let labels = labels.clone();
        builder.set.profiles.push(Profile { id: None, profile_type, labels, time, duration, period, context, samples });
    }
    builder.finish()
}

impl<'a> File<'a> {
    fn read(bytes: &'a [u8], builder: &mut SetBuilder<'_>) -> Result<Self> {
        let mut tokens = Tokens::new(FORMAT, bytes);
        let mut file = Self::default();
        tokens.expect(&Token::ObjectStart, "an object")?;
        while let Token::Key(key) = tokens.require()? {
            let value = tokens.require()?;
            match (key.as_ref(), value) {
                ("nodes", Token::ArrayStart) => {
                    while tokens.require()? == Token::ObjectStart {
                        builder.take(NODE_BYTES, tokens.last_offset())?;
                        file.nodes.push(read_node(&mut tokens, builder)?);
                    }
                }
                ("samples", Token::ArrayStart) => {
                    while let Token::Number(node) = tokens.require()? {
                        let offset = tokens.last_offset();
                        builder.take(SAMPLE_BYTES, offset)?;
                        file.samples.push(Hit { node: node as u64, offset, at: 0 });
                    }
                }
                ("timeDeltas", Token::ArrayStart) => {
                    while let Token::Number(delta) = tokens.require()? {
                        check_micros(&tokens, delta)?;
                        builder.take(size_of::<f64>(), tokens.last_offset())?;
                        file.deltas.push(delta);
                    }
                    file.deltas_end = tokens.last_offset();
                }
                ("startTime", Token::Number(start)) => {
                    check_micros(&tokens, start)?;
                    file.start = start;
                }
                ("endTime", Token::Number(end)) => {
                    check_micros(&tokens, end)?;
                    file.end = end;
                }
                (_, other) => tokens.skip(&other)?,
            }
        }
        if tokens.next()?.is_some() || file.nodes.is_empty() {
            return Err(FileError::malformed(FORMAT, bytes.len(), "an object with a list of nodes", "none"));
        }
        let (samples, deltas) = (file.samples.len(), file.deltas.len());
        if deltas > 0 && deltas != samples {
            let expected = format!("{samples} timeDeltas, one for each sample");
            return Err(FileError::malformed(FORMAT, file.deltas_end, expected, deltas));
        }
        Ok(file)
    }

    /// Gives each sample its time and puts them into the order of time: V8 writes some later than others that came after them,
    /// and then a delta is negative.
    fn order_samples(&mut self) {
        // Where no times are told at all, samples are evenly apart.
        let even = (self.end - self.start) / self.samples.len() as f64;
        let mut told = 0.0;
        for (index, sample) in self.samples.iter_mut().enumerate() {
            // A delta is the time before its sample.
            told += self.deltas.get(index).copied().unwrap_or_default();
            let micros = if self.deltas.is_empty() { even * index as f64 } else { told };
            sample.at = (micros * 1000.0) as i64;
        }
        self.samples.sort_by_key(|sample| sample.at);
    }

    /// The path of every node, and whether it stands for doing nothing.
    fn paths(&self, builder: &mut SetBuilder<'a>, options: &DecodeOptions) -> Result<HashMap<u64, (PathIndex, bool)>> {
        let index: HashMap<u64, usize> = self.nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
        let mut has_parent = vec![false; self.nodes.len()];
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let below = node.children.iter().filter_map(|id| index.get(id).copied().map(|child| (at, child)));
            let above = node.parent.and_then(|id| index.get(&id).copied()).map(|parent| (parent, at));
            for (parent, child) in below.chain(above) {
                // Whoever claims a node first is its parent: so there are no cycles to walk in.
                if !std::mem::replace(&mut has_parent[child], true) {
                    children[parent].push(child);
                }
            }
        }
        let mut paths = HashMap::with_capacity(self.nodes.len());
        let roots = (0..self.nodes.len()).filter(|at| !has_parent[*at]);
        let mut stack: Vec<(usize, PathIndex)> = roots.map(|root| (root, NO_PATH)).collect();
        while let Some((at, parent)) = stack.pop() {
            let node = &self.nodes[at];
            let path = if node.frame.function == ROOT {
                parent
            } else {
                let frame: FrameIndex = builder.set.paths.frame(node.frame.clone());
                child_path(&mut builder.set, parent, frame, options.limits.max_stack_depth)
            };
            builder.check_room(node.offset)?;
            paths.insert(node.id, (path, node.frame.function == IDLE));
            stack.extend(children[at].iter().map(|child| (*child, path)));
        }
        // Nodes in a circle have no root; they have no path either.
        for node in &self.nodes {
            paths.entry(node.id).or_insert((NO_PATH, false));
        }
        Ok(paths)
    }
}

/// Times are kept in nanoseconds.
fn check_micros(tokens: &Tokens<'_>, micros: f64) -> Result<()> {
    if (micros * 1000.0).abs() < i64::MAX as f64 {
        return Ok(());
    }
    let expected = "microseconds that fit into 63 bits as nanoseconds";
    Err(FileError::malformed(FORMAT, tokens.last_offset(), expected, micros))
}

fn read_node<'a>(tokens: &mut Tokens<'a>, builder: &mut SetBuilder<'_>) -> Result<Node<'a>> {
    let mut node = Node { offset: tokens.last_offset(), ..Node::default() };
    while let Token::Key(key) = tokens.require()? {
        let value = tokens.require()?;
        match (key.as_ref(), value) {
            ("id", Token::Number(id)) => node.id = id as u64,
            ("parent", Token::Number(id)) => node.parent = Some(id as u64),
            ("hitCount", Token::Number(hits)) => node.hits = whole_count(FORMAT, tokens, hits)?,
            ("callFrame", Token::ObjectStart) => node.frame = read_call_frame(tokens)?,
            ("children", Token::ArrayStart) => {
                while let Token::Number(id) = tokens.require()? {
                    builder.take(size_of::<u64>(), tokens.last_offset())?;
                    node.children.push(id as u64);
                }
            }
            (_, other) => tokens.skip(&other)?,
        }
    }
    Ok(node)
}
