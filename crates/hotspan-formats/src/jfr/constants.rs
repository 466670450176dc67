//! Constant pools: names, methods, stack traces and threads, read when they are first needed.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::chunk::{CONSTANT_POOL, Chunk};
use super::cursor::{Cursor, JfrString};
use super::layout::{FieldLayout, Shape, SkipBudget};
use crate::file_error::{FileError, Result};

/// Types whose constants are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pool {
    Text,
    Symbol,
    Class,
    Method,
    StackTrace,
    Thread,
    FrameType,
    ThreadState,
    OldObject,
}

impl Pool {
    fn of(class: &str) -> Option<Self> {
        Some(match class {
            "java.lang.String" => Self::Text,
            "jdk.types.Symbol" => Self::Symbol,
            "java.lang.Class" => Self::Class,
            "jdk.types.Method" => Self::Method,
            "jdk.types.StackTrace" => Self::StackTrace,
            "java.lang.Thread" => Self::Thread,
            "jdk.types.FrameType" => Self::FrameType,
            "jdk.types.ThreadState" => Self::ThreadState,
            "jdk.types.OldObject" => Self::OldObject,
            _ => return None,
        })
    }
}

/// Where each constant lies in the chunk.
#[derive(Debug, Default)]
pub(super) struct Pools {
    places: HashMap<(Pool, u64), u32>,
    classes: HashMap<Pool, u64>,
}

/// A frame of a stack trace, by its constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct StackFrame {
    pub(super) method: u64,
    pub(super) line: u32,
    pub(super) kind: u64,
}

/// A thread, as Java and the system know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ThreadConstant {
    pub(super) os_name: String,
    pub(super) os_id: i64,
    pub(super) java_name: String,
    pub(super) java_id: i64,
}

impl Pools {
    /// Finds the constants of a chunk.
    pub(super) fn scan(chunk: &Chunk<'_>, max_constants: usize, budget: &mut SkipBudget) -> Result<Self> {
        let mut pools = Self::default();
        for (id, class) in chunk.layouts.iter() {
            if let Some(pool) = Pool::of(&class.name) {
                pools.classes.insert(pool, id);
            }
        }
        for event in chunk.events() {
            let event = event?;
            if event.class == CONSTANT_POOL {
                pools.scan_event(chunk, event.content, max_constants, budget)?;
            }
        }
        Ok(pools)
    }

    fn scan_event(
        &mut self,
        chunk: &Chunk<'_>,
        mut cursor: Cursor<'_>,
        max_constants: usize,
        budget: &mut SkipBudget,
    ) -> Result<()> {
        cursor.long()?;
        cursor.long()?;
        cursor.long()?;
        cursor.byte()?;
        for _ in 0..cursor.count()? {
            let class_id = cursor.long()?;
            let class = chunk.layouts.class(class_id);
            let pool = class.and_then(|class| Pool::of(&class.name));
            for _ in 0..cursor.count()? {
                let key = cursor.long()?;
                if let Some(pool) = pool {
                    if self.places.len() == max_constants {
                        let at = cursor.offset();
                        return Err(FileError::too_large(
                            super::FORMAT,
                            at,
                            "constants in a chunk",
                            max_constants as u64,
                        ));
                    }
                    self.places.insert((pool, key), cursor.at as u32);
                }
                chunk.layouts.skip_value(class_id, &mut cursor, budget)?;
            }
        }
        Ok(())
    }

    /// Walks the fields of a constant; `each` reads a field and says so, or leaves it to be skipped.
    fn walk<'c>(
        &self,
        chunk: &Chunk<'c>,
        (pool, key): (Pool, u64),
        budget: &mut SkipBudget,
        mut each: impl FnMut(&FieldLayout, &mut Cursor<'c>, &mut SkipBudget) -> Result<bool>,
    ) -> Result<bool> {
        let (Some(at), Some(class)) = (self.places.get(&(pool, key)), self.classes.get(&pool)) else {
            return Ok(false);
        };
        let mut cursor = chunk.cursor(*at as usize);
        let Some(class) = chunk.layouts.class(*class) else { return Ok(false) };
        for field in &class.fields {
            if !each(field, &mut cursor, budget)? {
                chunk.layouts.skip_field(field, &mut cursor, budget)?;
            }
        }
        Ok(true)
    }

    /// The text of a string that stands in an event.
    pub(super) fn text<'c>(&self, chunk: &Chunk<'c>, string: JfrString<'c>) -> Result<Cow<'c, str>> {
        match string {
            JfrString::Null => Ok(Cow::Borrowed("")),
            JfrString::Text(text) => Ok(text),
            JfrString::Constant(key) => match self.places.get(&(Pool::Text, key)) {
                // A constant that refers to a constant is read no further: it would be a way round in circles.
                Some(at) => match chunk.cursor(*at as usize).string()? {
                    JfrString::Text(text) => Ok(text),
                    _ => Ok(Cow::Borrowed("")),
                },
                None => Ok(Cow::Borrowed("")),
            },
        }
    }

    /// The only text field of a small constant: a symbol, a frame type, a thread state.
    pub(super) fn name<'c>(
        &self,
        chunk: &Chunk<'c>,
        pool: Pool,
        key: u64,
        budget: &mut SkipBudget,
    ) -> Result<Cow<'c, str>> {
        let mut name = Cow::Borrowed("");
        self.walk(chunk, (pool, key), budget, |field, cursor, _| {
            if field.array || field.constant || !matches!(field.name.as_str(), "string" | "description" | "name") {
                return Ok(false);
            }
            let string = cursor.string()?;
            name = self.text(chunk, string)?;
            Ok(true)
        })?;
        Ok(name)
    }

    /// Class and name of a method.
    pub(super) fn method<'c>(
        &self,
        chunk: &Chunk<'c>,
        key: u64,
        budget: &mut SkipBudget,
    ) -> Result<(Cow<'c, str>, Cow<'c, str>)> {
        let (mut class, mut name) = (0, 0);
        self.walk(chunk, (Pool::Method, key), budget, |field, cursor, _| {
            let slot = match (field.name.as_str(), field.constant, field.array) {
                ("type", true, false) => &mut class,
                ("name", true, false) => &mut name,
                _ => return Ok(false),
            };
            *slot = cursor.long()?;
            Ok(true)
        })?;
        let class_name = self.class_name(chunk, class, budget)?;
        Ok((class_name, self.name(chunk, Pool::Symbol, name, budget)?))
    }

    /// The name of a class, with slashes as in the file.
    pub(super) fn class_name<'c>(&self, chunk: &Chunk<'c>, key: u64, budget: &mut SkipBudget) -> Result<Cow<'c, str>> {
        let mut symbol = 0;
        self.walk(chunk, (Pool::Class, key), budget, |field, cursor, _| {
            if field.name == "name" && field.constant && !field.array {
                symbol = cursor.long()?;
                return Ok(true);
            }
            Ok(false)
        })?;
        self.name(chunk, Pool::Symbol, symbol, budget)
    }

    /// The class of an object that stayed alive; 0 if it is not said.
    pub(super) fn object_class(&self, chunk: &Chunk<'_>, key: u64, budget: &mut SkipBudget) -> Result<u64> {
        let mut class = 0;
        self.walk(chunk, (Pool::OldObject, key), budget, |field, cursor, _| {
            if field.name == "type" && field.constant && !field.array {
                class = cursor.long()?;
                return Ok(true);
            }
            Ok(false)
        })?;
        Ok(class)
    }

    /// Fills `frames` with a stack trace, the leaf first, up to a depth. Says how many frames were cut, and whether the profiler
    /// had cut some itself.
    pub(super) fn stack_trace(
        &self,
        chunk: &Chunk<'_>,
        key: u64,
        (frames, depth): (&mut Vec<StackFrame>, usize),
        budget: &mut SkipBudget,
    ) -> Result<(u64, bool)> {
        frames.clear();
        let (mut cut, mut was_cut) = (0, false);
        self.walk(chunk, (Pool::StackTrace, key), budget, |field, cursor, budget| {
            let Some(layout) = chunk.layouts.class(field.class) else { return Ok(false) };
            match (field.name.as_str(), field.array, field.constant) {
                ("frames", true, false) => {}
                ("truncated", false, false) if layout.shape == Shape::Fixed(1) => {
                    was_cut = cursor.byte()? != 0;
                    return Ok(true);
                }
                _ => return Ok(false),
            }
            for _ in 0..cursor.count()? {
                let mut frame = StackFrame::default();
                for part in &layout.fields {
                    match (part.name.as_str(), part.constant, part.array) {
                        ("method", true, false) => frame.method = cursor.long()?,
                        ("type", true, false) => frame.kind = cursor.long()?,
                        ("lineNumber", false, false) => frame.line = u32::try_from(cursor.int()?).unwrap_or(0),
                        _ => chunk.layouts.skip_field(part, cursor, budget)?,
                    }
                }
                if frames.len() < depth {
                    frames.push(frame);
                } else {
                    cut += 1;
                }
            }
            Ok(true)
        })?;
        Ok((cut, was_cut))
    }

    /// A thread.
    pub(super) fn thread(&self, chunk: &Chunk<'_>, key: u64, budget: &mut SkipBudget) -> Result<ThreadConstant> {
        let mut thread = ThreadConstant::default();
        self.walk(chunk, (Pool::Thread, key), budget, |field, cursor, _| {
            if field.array || field.constant {
                return Ok(false);
            }
            match field.name.as_str() {
                "osName" => thread.os_name = self.text(chunk, cursor.string()?)?.into_owned(),
                "javaName" => thread.java_name = self.text(chunk, cursor.string()?)?.into_owned(),
                "osThreadId" => thread.os_id = cursor.long()? as i64,
                "javaThreadId" => thread.java_id = cursor.long()? as i64,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(thread)
    }
}
