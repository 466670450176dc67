//! Fields of a span and expressions over them.

use super::Literal;
use crate::error::SourceRange;

/// Where an attribute is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `.x`: the first of span, resource, event, link, instrumentation that has it.
    Unscoped,
    /// `span.x`.
    Span,
    /// `resource.x`.
    Resource,
    /// `event.x`: one value for each event that has it.
    Event,
    /// `link.x`: one value for each link that has it.
    Link,
    /// `instrumentation.x`.
    Instrumentation,
}

/// A field with a fixed meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intrinsic {
    /// `span:duration`.
    Duration,
    /// `span:name`.
    Name,
    /// `span:status`.
    Status,
    /// `span:statusMessage`.
    StatusMessage,
    /// `span:kind`.
    Kind,
    /// `span:id`, as 16 hexadecimal digits.
    SpanId,
    /// `span:parentID`, as 16 hexadecimal digits; empty for a root.
    ParentId,
    /// `span:childCount`.
    ChildCount,
    /// `parent`: only good for asking whether there is one.
    Parent,
    /// `nestedSetLeft`: number of the span when entered, walking the tree from 1.
    NestedSetLeft,
    /// `nestedSetRight`: number of the span when left.
    NestedSetRight,
    /// `nestedSetParent`: the parent's left number, -1 for a root.
    NestedSetParent,
    /// `trace:duration`.
    TraceDuration,
    /// `trace:rootName`.
    RootName,
    /// `trace:rootService`.
    RootService,
    /// `trace:id`, as 32 hexadecimal digits.
    TraceId,
    /// `event:name`.
    EventName,
    /// `event:timeSinceStart`.
    EventTimeSinceStart,
    /// `link:traceID`.
    LinkTraceId,
    /// `link:spanID`.
    LinkSpanId,
    /// `instrumentation:name`.
    InstrumentationName,
    /// `instrumentation:version`.
    InstrumentationVersion,
    /// `profile.cpu`: CPU time sampled in the span.
    ProfileCpu,
    /// `profile.wall`: wall-clock time sampled in the span.
    ProfileWall,
    /// `profile.samples`: number of samples in the span.
    ProfileSamples,
    /// `profile.function`: every function seen in the span's samples.
    ProfileFunction,
    /// `profile.file`: every file seen in the span's samples.
    ProfileFile,
}

/// What a query can ask of a span.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// A field with a fixed meaning.
    Intrinsic(Intrinsic),
    /// A named attribute.
    Attribute {
        /// Whether the parent span is asked instead of the span.
        of_parent: bool,
        /// Where it is looked for.
        scope: Scope,
        /// Its name.
        name: String,
    },
}

impl Field {
    /// An attribute of the span itself.
    pub fn attribute(scope: Scope, name: impl Into<String>) -> Self {
        Self::Attribute { of_parent: false, scope, name: name.into() }
    }

    /// The name without its scope: the key under which a search result shows it.
    pub fn unscoped_name(&self) -> String {
        match self {
            Self::Intrinsic(_) => self.to_string(),
            Self::Attribute { name, .. } => name.clone(),
        }
    }

    /// Whether a span has a value of it for each of its events or links.
    pub fn is_repeated(&self) -> bool {
        match self {
            Self::Intrinsic(intrinsic) => matches!(
                intrinsic,
                Intrinsic::EventName | Intrinsic::EventTimeSinceStart | Intrinsic::LinkTraceId | Intrinsic::LinkSpanId
            ),
            Self::Attribute { scope, .. } => matches!(scope, Scope::Event | Scope::Link),
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `!=`
    NotEq,
    /// `<`
    Less,
    /// `<=`
    LessEq,
    /// `>`
    Greater,
    /// `>=`
    GreaterEq,
    /// `=~`
    Match,
    /// `!~`
    NotMatch,
}

impl CompareOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::NotEq => "!=",
            Self::Less => "<",
            Self::LessEq => "<=",
            Self::Greater => ">",
            Self::GreaterEq => ">=",
            Self::Match => "=~",
            Self::NotMatch => "!~",
        }
    }

    /// The operator that holds with the sides exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEq => Self::GreaterEq,
            Self::Greater => Self::Less,
            Self::GreaterEq => Self::LessEq,
            same => same,
        }
    }

    /// Whether it is `=~` or `!~`.
    pub fn is_regex(self) -> bool {
        matches!(self, Self::Match | Self::NotMatch)
    }

    /// Whether of several values all must satisfy it (the negative ones) rather than any.
    pub fn is_negative(self) -> bool {
        matches!(self, Self::NotEq | Self::NotMatch)
    }
}

/// A calculation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `^`
    Pow,
}

impl ArithmeticOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Pow => "^",
        }
    }
}

/// `&&` or `||`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogicalOp {
    /// `&&`
    And,
    /// `||`
    Or,
}

impl LogicalOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::And => "&&",
            Self::Or => "||",
        }
    }
}

/// An expression over the fields of one span.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldExpr {
    /// What it says.
    pub kind: FieldExprKind,
    /// Where it stands.
    pub range: SourceRange,
}

impl FieldExpr {
    /// Whether it is a field that spans have a set of values for.
    pub fn is_set(&self) -> bool {
        matches!(&self.kind, FieldExprKind::Field(Field::Intrinsic(intrinsic)) if intrinsic.is_set())
    }
}

/// What a field expression says.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldExprKind {
    /// A constant.
    Literal(Literal),
    /// A field's value.
    Field(Field),
    /// `!expr`
    Not(Box<FieldExpr>),
    /// `-expr`
    Negate(Box<FieldExpr>),
    /// A chain `a && b && c` of one operator. Kept flat, because generated queries chain thousands of terms; the first
    /// operand is never a chain of the same operator.
    Logical {
        /// Which.
        op: LogicalOp,
        /// At least two.
        operands: Vec<FieldExpr>,
    },
    /// A comparison.
    Compare {
        /// Which.
        op: CompareOp,
        /// Where the operator stands.
        op_range: SourceRange,
        /// Left side.
        lhs: Box<FieldExpr>,
        /// Right side.
        rhs: Box<FieldExpr>,
    },
    /// A calculation.
    Arithmetic {
        /// Which.
        op: ArithmeticOp,
        /// Where the operator stands.
        op_range: SourceRange,
        /// Left side.
        lhs: Box<FieldExpr>,
        /// Right side.
        rhs: Box<FieldExpr>,
    },
}

impl FieldExpr {
    /// The literal, if it is one.
    pub fn as_literal(&self) -> Option<&Literal> {
        match &self.kind {
            FieldExprKind::Literal(literal) => Some(literal),
            _ => None,
        }
    }
}
