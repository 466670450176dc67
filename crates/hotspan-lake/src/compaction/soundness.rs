//! Whether what a job reads is what was written. Without this, bytes that changed on the disk would get a new checksum in the
//! output, and nobody could tell any more.

use std::sync::Arc;

use crate::Lake;
use crate::error::{LakeError, Result};
use crate::segment::Segment;
use crate::store::checksum;

/// Reads a segment and fails if it is not what the catalog says. Rows that are still in memory are not read from the disk.
pub(super) async fn check_sound(lake: &Lake, segment: &Segment) -> Result<()> {
    if segment.resident.is_some() {
        return Ok(());
    }
    let found = checksum(lake.store().as_ref(), &segment.path, segment.range.clone()).await?;
    if found == segment.checksum {
        return Ok(());
    }
    let reason = format!("checksum {found:016x}, the catalog says {:016x}", segment.checksum);
    Err(LakeError::Damaged { path: segment.path.clone(), reason })
}

/// Those of some segments that are not what was written, or can't be read.
pub(crate) async fn unsound(lake: &Lake, segments: &[Arc<Segment>]) -> Vec<(Arc<Segment>, LakeError)> {
    let mut found: Vec<(Arc<Segment>, LakeError)> = Vec::new();
    for segment in segments {
        if let Err(error) = check_sound(lake, segment).await {
            found.push((Arc::clone(segment), error));
        }
    }
    found
}
