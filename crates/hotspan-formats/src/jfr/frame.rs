//! What a frame of a stack trace is called, and what kind of code it is.

use std::borrow::Cow;

use hotspan_model::{Frame, FrameKind};

use super::chunk::Chunk;
use super::constants::{Pool, Pools, StackFrame};
use super::layout::SkipBudget;
use crate::file_error::Result;

/// Resolves a frame of a stack trace.
pub(super) fn read_frame(
    chunk: &Chunk<'_>,
    pools: &Pools,
    frame: StackFrame,
    budget: &mut SkipBudget,
) -> Result<Frame<'static>> {
    let (class, method) = pools.method(chunk, frame.method, budget)?;
    let kind = pools.name(chunk, Pool::FrameType, frame.kind, budget)?;
    // How the virtual machine ran a method changes from minute to minute: it is no part of a path's identity.
    let kind = match kind.as_ref() {
        "Native" | "C++" => FrameKind::Native,
        "Kernel" => FrameKind::Kernel,
        "" => FrameKind::Unknown,
        _ => FrameKind::Managed,
    };
    // async-profiler puts the library of a native frame where others have their class. The JDK calls Java's own
    // native methods by the same frame type, and their classes have a package.
    let native = matches!(kind, FrameKind::Native | FrameKind::Kernel) && !class.contains('/');
    let (mapping, class) = if native { (class, Cow::Borrowed("")) } else { (Cow::Borrowed(""), class) };
    let function = match (class.as_ref(), method.as_ref()) {
        ("", "") => "[unknown]".to_owned(),
        ("", method) => method.to_owned(),
        (class, "") => class.to_owned(),
        (class, method) => format!("{class}.{method}"),
    };
    let mapping = Cow::Owned(mapping.into_owned());
    Ok(Frame { function: Cow::Owned(function), mapping, line: frame.line, kind, ..Frame::default() })
}
