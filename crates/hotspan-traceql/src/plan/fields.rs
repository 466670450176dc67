//! The fields a query reads, numbered.

use crate::ast::{Field, Intrinsic};

/// The number of a field within one query; numbers are dense from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub u32);

impl FieldId {
    /// The number as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The fields a source must be able to answer for one query.
///
/// Fields that follow from the shape of the trace (`nestedSetLeft`, `trace:rootName`, `parent.…`) are not among them:
/// they are computed from what [`TraceSource`](crate::TraceSource) tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldTable {
    fields: Vec<Field>,
}

impl FieldTable {
    /// The field of a number.
    pub fn get(&self, id: FieldId) -> Option<&Field> {
        self.fields.get(id.index())
    }

    /// All fields in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (FieldId, &Field)> {
        self.fields.iter().enumerate().map(|(at, field)| (FieldId(at as u32), field))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the query reads no fields at all.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The number of a field, given a new one if it has none.
    pub(crate) fn intern(&mut self, field: Field) -> FieldId {
        let at = self.fields.iter().position(|known| *known == field).unwrap_or_else(|| {
            self.fields.push(field);
            self.fields.len() - 1
        });
        FieldId(at as u32)
    }
}

/// Whether the evaluator computes the intrinsic itself from the shape of the trace.
pub(crate) fn is_derived(intrinsic: Intrinsic) -> bool {
    matches!(
        intrinsic,
        Intrinsic::ChildCount
            | Intrinsic::Parent
            | Intrinsic::NestedSetLeft
            | Intrinsic::NestedSetRight
            | Intrinsic::NestedSetParent
            | Intrinsic::TraceDuration
            | Intrinsic::RootName
            | Intrinsic::RootService
    )
}
