//! Mends a damaged store as far as it can be: an id index is built again from the rows that it leads to; what is no longer what was
//! written is taken out of the catalog, so that questions are answered from the rest, and kept beside the data.
//!
//! Nobody but a person decides that rows are lost, so a server never does this by itself.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use hotspan_model::TenantId;
use serde::Serialize;

use crate::Lake;
use crate::check::{Damage, Progress, check, rebuilt_index};
use crate::compaction::unsound;
use crate::error::{LakeError, Result};
use crate::segment::Segment;

/// Where, in a store's folder, what was taken out lies from then on, under the paths that it had.
pub const KEPT_IN: &str = "damaged";

/// What a repair did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Indexes that were built again; nothing is lost with them.
    pub rebuilt: Vec<String>,
    /// What was taken out.
    pub removed: Vec<Removed>,
    /// What stays as it is.
    pub left: Vec<Damage>,
}

/// A segment that was taken out, with the rows that are lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Its path inside the store's data folder.
    pub path: String,
    /// Whose it was.
    pub tenant: String,
    /// The table.
    pub table: String,
    /// How many rows it had.
    pub rows: u64,
    /// The earliest time in it.
    pub min_time: i64,
    /// The latest.
    pub max_time: i64,
    /// What was wrong with it.
    pub reason: String,
}

/// Checks the store in a folder and mends what it finds. A damaged catalog is refused: what counts is in nothing else.
pub async fn repair(folder: &Path, progress: impl FnMut(Progress)) -> Result<RepairReport> {
    let found = check(folder, progress).await?.damage;
    let mut report = RepairReport::default();
    if found.is_empty() {
        return Ok(report);
    }
    if let Some(catalog) = found.iter().find(|damage| damage.path == CATALOG) {
        let reason = format!("{}; put a copy of it back: nothing was changed", catalog.reason);
        return Err(LakeError::Damaged { path: catalog.path.clone(), reason });
    }
    let lake = Lake::open(folder).await?;
    let damaged: HashSet<String> = found.iter().map(|damage| damage.path.clone()).collect();
    let (mut removed, mut mended) = (HashMap::<TenantId, Vec<i64>>::new(), HashSet::<String>::new());
    for segment in lake.catalog().snapshot().all_segments() {
        let index = segment.index.as_ref().filter(|(path, _)| damaged.contains(path));
        if index.is_none() && !damaged.contains(&segment.path) {
            continue;
        }
        if let Some((_, error)) = unsound(&lake, std::slice::from_ref(segment)).await.pop() {
            keep(folder, segment)?;
            mended.insert(segment.path.clone());
            mended.extend(index.map(|(path, _)| path.clone()));
            removed.entry(segment.tenant.clone()).or_default().push(segment.id);
            report.removed.push(Removed::of(segment, &error));
        } else if let Some((path, size)) = index
            && let Some(rebuilt) = rebuild(&lake, segment, *size).await?
        {
            lake.store().put(path, rebuilt).await?;
            mended.insert(path.clone());
            report.rebuilt.push(path.clone());
        }
    }
    for (tenant, ids) in removed {
        lake.catalog().replace(&tenant, Vec::new(), &ids, None).await?;
    }
    lake.catalog().close().await;
    report.left = found.into_iter().filter(|damage| !mended.contains(&damage.path)).collect();
    Ok(report)
}

/// What a check calls the catalog.
const CATALOG: &str = "../catalog.sqlite";

impl Removed {
    fn of(segment: &Segment, error: &LakeError) -> Self {
        Self {
            path: segment.path.clone(),
            tenant: segment.tenant.to_string(),
            table: segment.table.name().to_owned(),
            rows: segment.rows,
            min_time: segment.min_time,
            max_time: segment.max_time,
            reason: match error {
                LakeError::Damaged { reason, .. } => reason.clone(),
                LakeError::Storage { source, .. } => source.to_string(),
                other => other.to_string(),
            },
        }
    }
}

/// The index of a sound segment, if it has the size that the catalog says: otherwise the catalog is what is wrong.
async fn rebuild(lake: &Lake, segment: &Arc<Segment>, size: u64) -> Result<Option<Bytes>> {
    let index = rebuilt_index(lake.reader(), segment).await?;
    Ok((index.len() as u64 == size).then_some(index))
}

/// Copies what is left of a segment's object to where nothing deletes it.
fn keep(folder: &Path, segment: &Segment) -> Result<()> {
    let (from, to) = (folder.join("data").join(&segment.path), folder.join(KEPT_IN).join(&segment.path));
    let failed = |source| LakeError::Storage { action: "keeping a copy at", path: to.display().to_string(), source };
    if !from.is_file() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::copy(&from, &to).map_err(failed)?;
    Ok(())
}
