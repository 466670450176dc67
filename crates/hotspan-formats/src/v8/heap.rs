//! `.heapprofile`: a tree of call frames with the bytes that each allocated and that were still alive.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_model::call_path::{NO_PATH, PathIndex};
use hotspan_model::profile::ProfileContext;
use hotspan_model::{Profile, ProfileSet, ProfileType, Sample};

use super::frames::{ROOT, read_call_frame, whole_count};
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::leaf_side::child_path;
use crate::set_builder::{SYMBOL_BYTES, SetBuilder};

const FORMAT: &str = "heapprofile";
/// What a node takes while the file is read, and as a frame.
const NODE_BYTES: usize = size_of::<Node<'_>>() + SYMBOL_BYTES;
/// What an allocation takes while the file is read and as a sample. Its attributes are counted when they are made, but then it
/// is too late to say where in the file that was.
const ALLOCATION_BYTES: usize = size_of::<Allocation>() + size_of::<Sample>() + 2 * 64;

/// A node of the tree; parents stand before their children.
#[derive(Debug, Default)]
struct Node<'a> {
    parent: usize,
    id: u64,
    frame: hotspan_model::Frame<'a>,
    bytes: i64,
    /// Where it stands in the file.
    offset: usize,
}

/// One sampled allocation: its size, its node, and its place in the order of allocations.
type Allocation = (i64, u64, u64);

/// Reads a sampling heap profile: bytes in use, allocation by allocation where the file lists them.
pub fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut builder = SetBuilder::new(FORMAT, options);
    let (nodes, allocations) = read(bytes, &mut builder)?;
    let mut paths: Vec<PathIndex> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let parent = if index == 0 { NO_PATH } else { paths[node.parent] };
        let path = if node.frame.function == ROOT && index == 0 {
            NO_PATH
        } else {
            let frame = builder.set.paths.frame(node.frame.clone());
            child_path(&mut builder.set, parent, frame, options.limits.max_stack_depth)
        };
        builder.check_room(node.offset)?;
        paths.push(path);
    }
    let (labels, link) = options.series();
    let link = builder.link(link);
    let (time, duration) = options.time_range(0, 0);
    let plain = Sample { path: NO_PATH, value: 0, time, timed: false, link, thread: 0, labels: 0, attributes: 0 };
    let mut samples = Vec::new();
    if allocations.is_empty() {
        let used = nodes.iter().zip(&paths).filter(|(node, _)| node.bytes > 0);
        samples.extend(used.map(|(node, path)| Sample { path: *path, value: node.bytes, ..plain }));
    } else {
        let by_id: HashMap<u64, PathIndex> = nodes.iter().zip(&paths).map(|(node, path)| (node.id, *path)).collect();
        for (size, node, ordinal) in allocations {
            // V8 lists samples of nodes that it has already thrown away: their bytes count, without a stack.
            let path = by_id.get(&node).copied().unwrap_or(NO_PATH);
            // The order of allocations is all the time that V8 records.
            let attributes = builder.attributes(format!("{{\"v8.ordinal\":{ordinal}}}"));
            samples.push(Sample { path, value: size, attributes, ..plain });
        }
    }
    builder.set.profiles.push(Profile {
        id: None,
        profile_type: ProfileType::from_parts(["memory", "inuse_space", "bytes", "space", "bytes"]),
        labels,
        time,
        duration,
        period: 0,
        context: ProfileContext { source: Cow::Borrowed(FORMAT), ..ProfileContext::default() },
        samples,
    });
    builder.finish()
}

fn read<'a>(bytes: &'a [u8], builder: &mut SetBuilder<'_>) -> Result<(Vec<Node<'a>>, Vec<Allocation>)> {
    let mut tokens = Tokens::new(FORMAT, bytes);
    let (mut nodes, mut allocations) = (Vec::new(), Vec::new());
    tokens.expect(&Token::ObjectStart, "an object")?;
    while let Token::Key(key) = tokens.require()? {
        let value = tokens.require()?;
        match (key.as_ref(), value) {
            ("head", Token::ObjectStart) => nodes = read_tree(&mut tokens, builder)?,
            ("samples", Token::ArrayStart) => {
                while tokens.require()? == Token::ObjectStart {
                    builder.take(ALLOCATION_BYTES, tokens.last_offset())?;
                    allocations.push(read_allocation(&mut tokens)?);
                }
            }
            (_, other) => tokens.skip(&other)?,
        }
    }
    if tokens.next()?.is_some() || nodes.is_empty() {
        return Err(FileError::malformed(FORMAT, bytes.len(), "an object with a tree called head", "none"));
    }
    Ok((nodes, allocations))
}

/// Reads the tree after its opening bracket, without recursion: it nests as deep as stacks do.
fn read_tree<'a>(tokens: &mut Tokens<'a>, builder: &mut SetBuilder<'_>) -> Result<Vec<Node<'a>>> {
    let mut nodes = vec![Node::default()];
    let mut open = vec![0];
    while let Some(current) = open.last().copied() {
        match tokens.require()? {
            Token::Key(key) => {
                let value = tokens.require()?;
                match (key.as_ref(), value) {
                    ("callFrame", Token::ObjectStart) => nodes[current].frame = read_call_frame(tokens)?,
                    ("selfSize", Token::Number(size)) => nodes[current].bytes = whole_count(FORMAT, tokens, size)?,
                    ("id", Token::Number(id)) => nodes[current].id = id as u64,
                    // Its elements come as object starts, and its end as an array end.
                    ("children", Token::ArrayStart) => {}
                    (_, other) => tokens.skip(&other)?,
                }
            }
            Token::ObjectStart => {
                let offset = tokens.last_offset();
                builder.take(NODE_BYTES, offset)?;
                open.push(nodes.len());
                nodes.push(Node { parent: current, offset, ..Node::default() });
            }
            Token::ObjectEnd => {
                open.pop();
            }
            Token::ArrayEnd => {}
            other => {
                let found = format!("{other:?}");
                return Err(FileError::malformed(FORMAT, tokens.last_offset(), "a node of the tree", found));
            }
        }
    }
    Ok(nodes)
}

fn read_allocation(tokens: &mut Tokens<'_>) -> Result<Allocation> {
    let mut allocation = (0, 0, 0);
    while let Token::Key(key) = tokens.require()? {
        let value = tokens.require()?;
        match (key.as_ref(), value) {
            ("size", Token::Number(size)) => allocation.0 = whole_count(FORMAT, tokens, size)?,
            ("nodeId", Token::Number(node)) => allocation.1 = node as u64,
            ("ordinal", Token::Number(ordinal)) => allocation.2 = ordinal as u64,
            (_, other) => tokens.skip(&other)?,
        }
    }
    Ok(allocation)
}
