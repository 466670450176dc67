//! Where a job writes its objects, and which these are, so that they can be deleted if it fails.

use std::sync::{Arc, Mutex, PoisonError};

use hotspan_model::TenantId;

use crate::Lake;
use crate::error::Result;
use crate::object_name::index_path;
use crate::segment::Piece;
use crate::segment::parquet_file::{FilePlan, ParquetSegmentWriter};

/// The part of a store that a job writes to.
#[derive(Debug)]
pub(super) struct Destination {
    lake: Arc<Lake>,
    tenant: TenantId,
    begun: Mutex<Vec<String>>,
}

impl Destination {
    pub(super) fn new(lake: Arc<Lake>, tenant: TenantId) -> Self {
        Self { lake, tenant, begun: Mutex::default() }
    }

    /// Begins a file.
    pub(super) fn create(&self, plan: &FilePlan<'_>) -> Result<ParquetSegmentWriter> {
        let path = self.lake.new_object_path(&self.tenant, plan.table.name(), Some(plan.partition), "parquet");
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        ParquetSegmentWriter::create(self.lake.store().as_ref(), path, plan)
    }

    /// Makes a file durable.
    pub(super) fn finish(&self, file: ParquetSegmentWriter) -> Result<Piece> {
        file.finish(self.lake.store().as_ref())
    }

    /// All objects that were begun, with the indexes that belong to them.
    pub(super) fn begun(&self) -> Vec<String> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.iter().flat_map(|path| [index_path(path), path.clone()]).collect()
    }
}
