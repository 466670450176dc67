//! `.cpuprofile`: a tree of call frames, and for each sample its node and the time since the one before.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::{NO_PATH, PathIndex};
use hotspan_model::frame::FrameIndex;
use hotspan_model::profile::ProfileContext;
use hotspan_model::{Frame, Profile, ProfileSet, ProfileType, Sample};

use super::frames::{IDLE, ROOT, read_call_frame};
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::set_builder::SetBuilder;

const FORMAT: &str = "cpuprofile";

#[derive(Debug, Default)]
struct Node<'a> {
    id: u64,
    frame: Frame<'a>,
    hits: u64,
    children: Vec<u64>,
    parent: Option<u64>,
}

#[derive(Debug, Default)]
struct File<'a> {
    nodes: Vec<Node<'a>>,
    samples: Vec<u64>,
    deltas: Vec<f64>,
    start: f64,
    end: f64,
}

/// Reads a CPU profile: the wall-clock time of every sample, and as CPU time all that was not idle.
pub fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let file = File::read(bytes, options)?;
    let mut builder = SetBuilder::default();
    let paths = file.paths(&mut builder, options)?;
    let (labels, link) = options.series();
    let link = builder.link(link);
    // V8's clock counts from the start of the machine; only where it looks like a date is it one.
    let length = (file.end - file.start).max(0.0) * 1000.0;
    let (time, duration) = options.time_range((file.start * 1000.0) as i64, length as i64);

    let mut wall = Vec::new();
    let mut cpu = Vec::new();
    let mut add = |node: PathIndex, idle: bool, value: i64, at: Option<i64>| {
        let timed = at.is_some() && time > 0;
        let time = if timed { time.saturating_add(at.unwrap_or(0)) } else { time };
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
        let all: u64 = file.nodes.iter().map(|node| node.hits).sum();
        let each = if all > 0 { duration / all as i64 } else { 0 }.max(1);
        for node in &file.nodes {
            let (path, idle) = paths[&node.id];
            add(path, idle, (node.hits as i64).saturating_mul(each), None);
        }
    } else {
        let mut at = 0.0;
        for (index, id) in file.samples.iter().enumerate() {
            let Some((path, idle)) = paths.get(id) else {
                return Err(FileError::malformed(FORMAT, bytes.len(), "samples of known nodes", format!("node {id}")));
            };
            at += file.deltas.get(index).copied().unwrap_or(0.0);
            // A delta is the time before its sample; what a sample stands for is the time until the next one.
            let until_next = file.deltas.get(index + 1).copied().unwrap_or(file.end - file.start - at);
            add(*path, *idle, (until_next * 1000.0) as i64, Some((at * 1000.0) as i64));
        }
    }
    let wall_type = ProfileType::from_parts(["wall", "wall", "nanoseconds", "wall", "nanoseconds"]);
    let period = if wall.is_empty() { 0 } else { duration / wall.len() as i64 };
    for (profile_type, samples) in [(ProfileType::cpu(), cpu), (wall_type, wall)] {
        let context = ProfileContext { source: Cow::Borrowed(FORMAT), ..ProfileContext::default() };
        let labels = labels.clone();
        builder.set.profiles.push(Profile { id: None, profile_type, labels, time, duration, period, context, samples });
    }
    Ok(builder.set)
}

impl<'a> File<'a> {
    fn read(bytes: &'a [u8], options: &DecodeOptions) -> Result<Self> {
        let mut tokens = Tokens::new(FORMAT, bytes);
        let mut file = Self::default();
        tokens.expect(&Token::ObjectStart, "an object")?;
        while let Token::Key(key) = tokens.require()? {
            let offset = tokens.offset();
            let value = tokens.require()?;
            match (key.as_ref(), value) {
                ("nodes", Token::ArrayStart) => {
                    while tokens.require()? == Token::ObjectStart {
                        if file.nodes.len() == options.max_symbols() {
                            return Err(FileError::too_large(FORMAT, offset, "nodes", file.nodes.len() as u64));
                        }
                        file.nodes.push(read_node(&mut tokens)?);
                    }
                }
                ("samples", Token::ArrayStart) => {
                    read_numbers(&mut tokens, options, |number| file.samples.push(number as u64))?;
                }
                ("timeDeltas", Token::ArrayStart) => {
                    read_numbers(&mut tokens, options, |number| file.deltas.push(number))?;
                }
                ("startTime", Token::Number(start)) => file.start = start,
                ("endTime", Token::Number(end)) => file.end = end,
                (_, other) => tokens.skip(&other)?,
            }
        }
        if tokens.next()?.is_some() || file.nodes.is_empty() {
            return Err(FileError::malformed(FORMAT, bytes.len(), "an object with a list of nodes", "none"));
        }
        Ok(file)
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
        let mut stack: Vec<(usize, PathIndex, usize)> = roots.map(|root| (root, NO_PATH, 0)).collect();
        while let Some((at, parent, depth)) = stack.pop() {
            let node = &self.nodes[at];
            let path = if node.frame.function == ROOT {
                parent
            } else if depth > options.limits.max_stack_depth {
                builder.set.cut_frames += 1;
                parent
            } else {
                let frame: FrameIndex = builder.set.paths.frame(node.frame.clone());
                builder.set.paths.child(parent, frame)
            };
            paths.insert(node.id, (path, node.frame.function == IDLE));
            stack.extend(children[at].iter().map(|child| (*child, path, depth + 1)));
        }
        // Nodes in a circle have no root; they have no path either.
        for node in &self.nodes {
            paths.entry(node.id).or_insert((NO_PATH, false));
        }
        Ok(paths)
    }
}

fn read_node<'a>(tokens: &mut Tokens<'a>) -> Result<Node<'a>> {
    let mut node = Node::default();
    while let Token::Key(key) = tokens.require()? {
        let value = tokens.require()?;
        match (key.as_ref(), value) {
            ("id", Token::Number(id)) => node.id = id as u64,
            ("parent", Token::Number(id)) => node.parent = Some(id as u64),
            ("hitCount", Token::Number(hits)) => node.hits = hits as u64,
            ("callFrame", Token::ObjectStart) => node.frame = read_call_frame(tokens)?,
            ("children", Token::ArrayStart) => {
                while let Token::Number(id) = tokens.require()? {
                    node.children.push(id as u64);
                }
            }
            (_, other) => tokens.skip(&other)?,
        }
    }
    Ok(node)
}

fn read_numbers(tokens: &mut Tokens<'_>, options: &DecodeOptions, mut each: impl FnMut(f64)) -> Result<()> {
    let most = options.max_samples();
    for _ in 0..=most {
        match tokens.require()? {
            Token::Number(number) => each(number),
            _ => return Ok(()),
        }
    }
    Err(FileError::too_large(FORMAT, tokens.offset(), "samples", most as u64))
}
