//! The spelling of scopes and intrinsics, in one table for parser, display and completion.

use super::{Intrinsic, Scope};

/// Every intrinsic with the name it is displayed under and its other spelling, if it has two.
///
/// The short legacy name comes first where there is one, because that is what Tempo uses in result keys such as
/// `avg(duration)` and what Grafana looks for.
const INTRINSICS: [(Intrinsic, &str, Option<&str>); 27] = [
    (Intrinsic::Duration, "duration", Some("span:duration")),
    (Intrinsic::Name, "name", Some("span:name")),
    (Intrinsic::Status, "status", Some("span:status")),
    (Intrinsic::StatusMessage, "statusMessage", Some("span:statusMessage")),
    (Intrinsic::Kind, "kind", Some("span:kind")),
    (Intrinsic::SpanId, "span:id", None),
    (Intrinsic::ParentId, "span:parentID", None),
    (Intrinsic::ChildCount, "childCount", Some("span:childCount")),
    (Intrinsic::Parent, "parent", None),
    (Intrinsic::NestedSetLeft, "nestedSetLeft", None),
    (Intrinsic::NestedSetRight, "nestedSetRight", None),
    (Intrinsic::NestedSetParent, "nestedSetParent", None),
    (Intrinsic::TraceDuration, "traceDuration", Some("trace:duration")),
    (Intrinsic::RootName, "rootName", Some("trace:rootName")),
    (Intrinsic::RootService, "rootServiceName", Some("trace:rootService")),
    (Intrinsic::TraceId, "trace:id", None),
    (Intrinsic::EventName, "event:name", None),
    (Intrinsic::EventTimeSinceStart, "event:timeSinceStart", None),
    (Intrinsic::LinkTraceId, "link:traceID", None),
    (Intrinsic::LinkSpanId, "link:spanID", None),
    (Intrinsic::InstrumentationName, "instrumentation:name", None),
    (Intrinsic::InstrumentationVersion, "instrumentation:version", None),
    (Intrinsic::ProfileCpu, "profile.cpu", None),
    (Intrinsic::ProfileWall, "profile.wall", None),
    (Intrinsic::ProfileSamples, "profile.samples", None),
    (Intrinsic::ProfileFunction, "profile.function", None),
    (Intrinsic::ProfileFile, "profile.file", None),
];

/// The words that may stand before the dot of an attribute.
pub(crate) const SCOPE_NAMES: [&str; 7] = ["span", "resource", "event", "link", "instrumentation", "parent", "profile"];

/// The scope written before a dot; `parent` and `profile` are none, they need more than a scope.
pub(crate) fn scope_by_name(name: &str) -> Option<Scope> {
    Some(match name {
        "span" => Scope::Span,
        "resource" => Scope::Resource,
        "event" => Scope::Event,
        "link" => Scope::Link,
        "instrumentation" => Scope::Instrumentation,
        _ => return None,
    })
}

/// The intrinsic of a name in either spelling.
pub(crate) fn intrinsic_by_name(name: &str) -> Option<Intrinsic> {
    INTRINSICS.iter().find(|(_, first, second)| *first == name || *second == Some(name)).map(|(found, ..)| *found)
}

/// Both spellings of every intrinsic.
pub(crate) fn all_intrinsic_names() -> impl Iterator<Item = &'static str> {
    INTRINSICS.iter().flat_map(|(_, first, second)| std::iter::once(*first).chain(*second))
}

impl Intrinsic {
    /// Every intrinsic.
    pub fn all() -> impl Iterator<Item = Self> {
        INTRINSICS.iter().map(|(intrinsic, ..)| *intrinsic)
    }

    /// The canonical name.
    pub fn name(self) -> &'static str {
        INTRINSICS.iter().find(|(intrinsic, ..)| *intrinsic == self).map_or("", |(_, name, _)| name)
    }

    /// Whether every span has a value for it, so that asking for `nil` is a mistake.
    pub fn is_always_present(self) -> bool {
        !matches!(
            self,
            Self::Parent
                | Self::EventName
                | Self::EventTimeSinceStart
                | Self::LinkTraceId
                | Self::LinkSpanId
                | Self::ProfileCpu
                | Self::ProfileWall
                | Self::ProfileSamples
                | Self::ProfileFunction
                | Self::ProfileFile
        )
    }

    /// Whether a span has a set of values for it, of which each counts by itself: filters hold if any does, and a span
    /// stands in the group of each.
    pub fn is_set(self) -> bool {
        matches!(self, Self::ProfileFunction | Self::ProfileFile)
    }
}

impl Scope {
    /// What stands before the name, dot included.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Unscoped => ".",
            Self::Span => "span.",
            Self::Resource => "resource.",
            Self::Event => "event.",
            Self::Link => "link.",
            Self::Instrumentation => "instrumentation.",
        }
    }
}
