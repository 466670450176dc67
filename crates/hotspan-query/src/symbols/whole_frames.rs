//! Frames with all that is stored of them, and the builds of their binaries: what other tools need to name code that has no
//! name here.
//!
//! Flame graphs are drawn from names and lines alone, and are asked for far more often. The rest is read when a file is
//! written, and not kept.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::table::HOUR;
use hotspan_lake::{ReadOptions, Snapshot, Table, arrays};
use hotspan_model::labels::service_id;
use hotspan_model::{BuildIds, Frame, FrameKind, TenantId};
use xxhash_rust::xxh3::xxh3_64;

use super::Symbols;
use crate::Engine;
use crate::error::Result;
use crate::side_by_side::side_by_side;

const COLUMNS: [&str; 12] = [
    "service_id",
    "id",
    "function",
    "system_name",
    "file",
    "line",
    "column",
    "start_line",
    "mapping",
    "build_id",
    "address",
    "kind",
];

impl Engine {
    /// The frames with these ids, of the services and the time that symbols are of. A frame without a function has no name.
    pub(crate) async fn whole_frames(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        symbols: &Symbols,
        wanted: &HashSet<u64>,
    ) -> Result<HashMap<u64, Frame<'static>>> {
        let services = Arc::new(symbols.service_ids());
        let (from, until) = symbols.range;
        let segments = snapshot.segments(tenant, Table::Frames);
        let segments = segments.iter().filter(|segment| segment.overlaps(from, until));
        let jobs = segments.flat_map(|segment| self.symbol_jobs(segment, &COLUMNS, &services)).collect();
        let mut frames = HashMap::with_capacity(wanted.len());
        side_by_side(jobs, &mut |(_, batch)| add_frames(&batch, wanted, &mut frames)).await?;
        Ok(frames)
    }

    /// The builds of binaries, as the profiles of the same services and time tell them.
    pub(crate) async fn build_ids(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        symbols: &Symbols,
    ) -> Result<BuildIds> {
        let services: HashSet<u64> = symbols.service_ids().into_iter().collect();
        // A profile is dated by its start; its samples may come later.
        let (from, until) = (symbols.range.0.saturating_sub(HOUR), symbols.range.1);
        let (mut builds, mut learned) = (BuildIds::default(), HashSet::new());
        for segment in snapshot.segments(tenant, Table::Profiles).iter().filter(|found| found.overlaps(from, until)) {
            let options = ReadOptions::columns(&["service", "mappings"]).within("time", from, until);
            let mut stream = self.lake().reader().stream(segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                let (names, mappings) = (arrays::texts(&batch, "service")?, arrays::texts(&batch, "mappings")?);
                for row in 0..batch.num_rows() {
                    let told = mappings.get(row);
                    // One process sends the same mappings with every profile.
                    if services.contains(&service_id(names.get(row))) && learned.insert(xxh3_64(told.as_bytes())) {
                        builds.learn(told);
                    }
                }
            }
        }
        Ok(builds)
    }
}

impl Symbols {
    fn service_ids(&self) -> Vec<u64> {
        self.services.iter().map(|(service, _)| *service).collect()
    }
}

/// Adds the frames of a batch that are wanted.
fn add_frames(batch: &RecordBatch, wanted: &HashSet<u64>, frames: &mut HashMap<u64, Frame<'static>>) -> Result<()> {
    let texts = |name: &str| arrays::texts(batch, name);
    let numbers = |name: &str| Ok::<_, crate::error::QueryError>(arrays::uint32s(batch, name)?.values());
    let (functions, system_names, files) = (texts("function")?, texts("system_name")?, texts("file")?);
    let (lines, columns, start_lines) = (numbers("line")?, numbers("column")?, numbers("start_line")?);
    let (mappings, build_ids) = (texts("mapping")?, texts("build_id")?);
    let addresses = arrays::uint64s(batch, "address")?.values();
    let kinds = arrays::uint8s(batch, "kind")?.values();
    for (row, id) in arrays::uint64s(batch, "id")?.values().iter().enumerate().filter(|(_, id)| wanted.contains(*id)) {
        frames.entry(*id).or_insert_with(|| {
            let frame = Frame {
                function: functions.get(row).into(),
                system_name: system_names.get(row).into(),
                file: files.get(row).into(),
                line: lines[row],
                column: columns[row],
                start_line: start_lines[row],
                mapping: mappings.get(row).into(),
                build_id: build_ids.get(row).into(),
                address: addresses[row],
                kind: FrameKind::from_number(kinds[row]),
                ..Frame::default()
            };
            frame.into_owned()
        });
    }
    Ok(())
}
