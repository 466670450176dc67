//! The words that requests are told in, each kept once: texts, operations, frames and stacks.
//!
//! Requests refer to them by number, so that a sample is a few numbers whatever it says, and equal things compare
//! as equal numbers.

use hashbrown::HashMap;
use hotspan_model::SpanKind;

use crate::own_code::{Ownership, ownership_of};

/// Number of a text.
pub type TextId = u32;
/// Number of an operation.
pub type OperationId = u32;
/// Number of a frame.
pub type FrameId = u32;
/// Number of a stack. The empty one is [`EMPTY_STACK`].
pub type StackId = u32;

/// The stack without frames.
pub const EMPTY_STACK: StackId = 0;

/// What a span does: the same service, name and role are the same operation. Calls are often named by their method
/// alone, so that calls of different services would look the same: who is called tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation {
    /// The service.
    pub service: TextId,
    /// The span's name.
    pub name: TextId,
    /// Its role in a call.
    pub role: SpanKind,
    /// The service that it calls, where that was seen; else the empty text.
    pub callee: TextId,
}

/// A place in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: TextId,
    /// Its file; the empty text if not known.
    pub file: TextId,
    /// The line; 0 if not known.
    pub line: u32,
}

/// A stack: the frame at its end, called from another one. Stacks that begin alike share what they share.
#[derive(Debug, Clone, Copy)]
struct Stack {
    caller: StackId,
    frame: FrameId,
}

/// All words of one question.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    texts: Vec<String>,
    text_index: HashMap<String, TextId>,
    operations: Vec<Operation>,
    operation_index: HashMap<Operation, OperationId>,
    frames: Vec<Frame>,
    ownership: Vec<Ownership>,
    frame_index: HashMap<Frame, FrameId>,
    stacks: Vec<Stack>,
    own_prefixes: Vec<String>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::with_own_code(Vec::new())
    }
}

impl Vocabulary {
    /// An empty vocabulary; functions that start with one of `own_prefixes` are own code whatever else speaks
    /// against it.
    pub fn with_own_code(own_prefixes: Vec<String>) -> Self {
        let mut vocabulary = Self {
            texts: Vec::new(),
            text_index: HashMap::new(),
            operations: Vec::new(),
            operation_index: HashMap::new(),
            frames: Vec::new(),
            ownership: Vec::new(),
            frame_index: HashMap::new(),
            stacks: vec![Stack { caller: EMPTY_STACK, frame: 0 }],
            own_prefixes,
        };
        vocabulary.text("");
        vocabulary
    }

    /// Number of a text; the empty one is 0.
    pub fn text(&mut self, text: &str) -> TextId {
        if let Some(id) = self.text_index.get(text) {
            return *id;
        }
        let id = self.texts.len() as TextId;
        self.texts.push(text.to_owned());
        self.text_index.insert(text.to_owned(), id);
        id
    }

    /// A text by its number.
    pub fn text_of(&self, id: TextId) -> &str {
        &self.texts[id as usize]
    }

    /// Number of an operation.
    pub fn operation(&mut self, service: &str, name: &str, role: SpanKind) -> OperationId {
        self.call(service, name, role, "")
    }

    /// Number of an operation that calls another service.
    pub fn call(&mut self, service: &str, name: &str, role: SpanKind, callee: &str) -> OperationId {
        let (service, name, callee) = (self.text(service), self.text(name), self.text(callee));
        let operation = Operation { service, name, role, callee };
        let next = self.operations.len() as OperationId;
        let operations = &mut self.operations;
        *self.operation_index.entry(operation).or_insert_with(|| {
            operations.push(operation);
            next
        })
    }

    /// An operation by its number.
    pub fn operation_of(&self, id: OperationId) -> Operation {
        self.operations[id as usize]
    }

    /// How many operations there are.
    pub fn operation_count(&self) -> usize {
        self.operations.len()
    }

    /// Number of a frame.
    pub fn frame(&mut self, function: &str, file: &str, line: u32) -> FrameId {
        let frame = Frame { function: self.text(function), file: self.text(file), line };
        if let Some(id) = self.frame_index.get(&frame) {
            return *id;
        }
        let id = self.frames.len() as FrameId;
        let is_named_own = self.own_prefixes.iter().any(|prefix| function.starts_with(prefix.as_str()));
        self.ownership.push(if is_named_own { Ownership::Own } else { ownership_of(function, file) });
        self.frames.push(frame);
        self.frame_index.insert(frame, id);
        id
    }

    /// A frame by its number.
    pub fn frame_of(&self, id: FrameId) -> Frame {
        self.frames[id as usize]
    }

    /// How many frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The function of a frame.
    pub fn function_of(&self, id: FrameId) -> &str {
        self.text_of(self.frames[id as usize].function)
    }

    /// Whose code a frame is.
    pub fn ownership_of(&self, id: FrameId) -> Ownership {
        self.ownership[id as usize]
    }

    /// Adds a stack of frames, the root first. Stacks are not compared: callers add each once.
    pub fn stack(&mut self, root_to_leaf: &[FrameId]) -> StackId {
        root_to_leaf.iter().fold(EMPTY_STACK, |caller, frame| self.stack_below(caller, *frame))
    }

    /// Adds the stack of a frame that is called from another stack.
    pub fn stack_below(&mut self, caller: StackId, frame: FrameId) -> StackId {
        self.stacks.push(Stack { caller, frame });
        (self.stacks.len() - 1) as StackId
    }

    /// How many stacks there are, the empty one among them. Callers have smaller numbers than what they call.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// The stack that the last frame of one was called from; the empty one is its own.
    pub fn caller_of(&self, id: StackId) -> StackId {
        self.stacks[id as usize].caller
    }

    /// The frame at the end of a stack; none of the empty one.
    pub fn leaf_of(&self, id: StackId) -> Option<FrameId> {
        (id != EMPTY_STACK).then(|| self.stacks[id as usize].frame)
    }

    /// The frames of a stack, the leaf first.
    pub fn frames_from_leaf(&self, id: StackId) -> impl Iterator<Item = FrameId> {
        let mut at = id;
        std::iter::from_fn(move || {
            let frame = self.leaf_of(at)?;
            at = self.caller_of(at);
            Some(frame)
        })
    }
}
