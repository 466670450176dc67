//! What the labels of a sample are about beside its span: the thread, the moment, or anything else.

/// What a label says. Spans and traces are [`crate::span_identity`]'s to recognise, and come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelRole {
    /// The number of the thread.
    ThreadId,
    /// The name of the thread.
    ThreadName,
    /// When the sample ended, in nanoseconds since 1970 (Datadog).
    EndTime,
    /// An ordinary label.
    Other,
}

/// The role of a label, by its key.
pub(crate) fn role_of(key: &str) -> LabelRole {
    match key {
        "thread_id" | "thread id" | "thread.id" | "threadId" | "tid" => LabelRole::ThreadId,
        "thread_name" | "thread name" | "thread.name" | "threadName" | "thread" => LabelRole::ThreadName,
        "end_timestamp_ns" => LabelRole::EndTime,
        _ => LabelRole::Other,
    }
}
