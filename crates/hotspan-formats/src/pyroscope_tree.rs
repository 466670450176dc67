//! Pyroscope's `tree` bytes: the records of a call tree one after another, and the older `trie` in the same shape.
//!
//! A record is: length of the name, name, own value, number of children; all numbers are varints. The first
//! record is the root, which has no name. In a trie, the name continues that of the parent.

use std::borrow::Cow;

use hotspan_model::FlameTree;
use hotspan_model::{ProfileSet, call_path::NO_PATH};

use crate::collapsed::StackSink;
use crate::decode_options::DecodeOptions;
use crate::file_error::{FileError, Result};
use crate::protobuf::{put_varint, read_varint};

const TREE: &str = "tree";
const TRIE: &str = "trie";

/// One record.
struct Record<'a> {
    name: &'a [u8],
    value: u64,
    children: u64,
    offset: usize,
}

struct Records<'a> {
    format: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    fn next(&mut self) -> Result<Record<'a>> {
        let offset = self.at;
        let length = self.varint()?;
        if length > (self.bytes.len() - self.at) as u64 {
            return Err(FileError::truncated(self.format, self.bytes.len(), format!("a name of {length} bytes")));
        }
        let name = &self.bytes[self.at..self.at + length as usize];
        self.at += length as usize;
        let (value, children) = (self.varint()?, self.varint()?);
        // A record takes three bytes at least: more children than that can't follow.
        if children > (self.bytes.len() - self.at) as u64 / 3 {
            let expected = format!("{children} children of the record at byte {offset}");
            return Err(FileError::truncated(self.format, self.bytes.len(), expected));
        }
        Ok(Record { name, value, children, offset })
    }

    fn varint(&mut self) -> Result<u64> {
        read_varint(self.format, self.bytes, &mut self.at, 0)
    }

    fn finish(&self) -> Result<()> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        let found = format!("{} more bytes", self.bytes.len() - self.at);
        Err(FileError::malformed(self.format, self.at, "the end of the data", found))
    }
}

/// Reads a tree.
pub fn decode_tree<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut sink = StackSink::new(TREE, options);
    let mut records = Records { format: TREE, bytes, at: 0 };
    // The path so far: for each open record its node and how many of its children are still to come.
    let mut open: Vec<(u32, u64)> = Vec::new();
    let mut started = false;
    while !started || !open.is_empty() {
        started = true;
        let record = records.next()?;
        let parent = match open.last_mut() {
            Some((node, remaining)) => {
                *remaining -= 1;
                *node
            }
            None => NO_PATH,
        };
        let name = std::str::from_utf8(record.name)
            .map_err(|_| FileError::malformed(TREE, record.offset, "a name in UTF-8", "other bytes"))?;
        let node = if name.is_empty() && open.is_empty() {
            NO_PATH
        } else {
            let frame = sink.frame(Cow::Borrowed(name), record.offset)?;
            sink.child(parent, frame, record.offset)?
        };
        sink.add(node, record.value, record.offset)?;
        if record.children > 0 {
            open.push((node, record.children));
        }
        while open.last().is_some_and(|(_, remaining)| *remaining == 0) {
            open.pop();
        }
    }
    records.finish()?;
    sink.finish()
}

/// Reads a trie: names are stacks in collapsed form, cut at any byte into prefix and continuation.
pub fn decode_trie<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let mut sink = StackSink::new(TRIE, options);
    let mut records = Records { format: TRIE, bytes, at: 0 };
    let mut prefix: Vec<u8> = Vec::new();
    let mut open: Vec<(usize, u64)> = Vec::new();
    let mut spelled_out = 0;
    let mut started = false;
    while !started || !open.is_empty() {
        started = true;
        let record = records.next()?;
        if let Some((length, remaining)) = open.last_mut() {
            prefix.truncate(*length);
            *remaining -= 1;
        }
        prefix.extend_from_slice(record.name);
        if record.value > 0 {
            // A short file can repeat a long prefix in every record: work and memory are bounded by the sum.
            spelled_out += prefix.len();
            if spelled_out > options.limits.max_decoded_bytes {
                let limit = options.limits.max_decoded_bytes as u64;
                return Err(FileError::too_large(TRIE, record.offset, "bytes of stacks", limit));
            }
            let stack = std::str::from_utf8(&prefix)
                .map_err(|_| FileError::malformed(TRIE, record.offset, "a stack in UTF-8", "other bytes"))?;
            sink.add_owned_stack(stack, record.value, record.offset)?;
        }
        if record.children > 0 {
            open.push((prefix.len(), record.children));
        }
        while open.last().is_some_and(|(_, remaining)| *remaining == 0) {
            open.pop();
        }
    }
    records.finish()?;
    sink.finish()
}

/// Writes a tree as the query API gives it: a virtual root, then depth first, the last child first.
pub fn encode_tree(tree: &FlameTree) -> Vec<u8> {
    let mut out = Vec::new();
    let children = tree.children_by_name();
    let mut stack = vec![FlameTree::ROOT];
    while let Some(index) = stack.pop() {
        let node = &tree.nodes()[index];
        let name = tree.name(node.name);
        put_varint(&mut out, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
        // The format has no sign; a tree with negative values is a difference and has another form.
        put_varint(&mut out, node.self_value.max(0) as u64);
        put_varint(&mut out, children[index].len() as u64);
        stack.extend(&children[index]);
    }
    out
}
