//! Which row groups and pages of a file can matter, by their statistics.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{TimestampNanosecondType, UInt64Type};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection, RowSelector};

use super::{ReadOptions, RowRanges};
use crate::error::Result;

/// Leaves out the row groups and pages whose statistics show that they can't matter.
pub(super) fn prune(
    metadata: &ArrowReaderMetadata,
    options: &ReadOptions,
) -> Result<(Vec<usize>, Option<RowSelection>)> {
    let file = metadata.metadata();
    let mut groups: Vec<usize> = (0..file.num_row_groups()).collect();
    let mut first_rows = Vec::with_capacity(groups.len());
    let mut next_row = 0usize;
    for group in file.row_groups() {
        first_rows.push(next_row);
        next_row += group.num_rows() as usize;
    }
    if let Some(rows) = &options.rows {
        groups.retain(|group| {
            let start = first_rows[*group];
            let end = start + file.row_group(*group).num_rows() as usize;
            rows.iter().any(|range| range.start < end && range.end > start)
        });
    }
    let tests = page_tests(options);
    for test in &tests {
        let Ok(converter) = StatisticsConverter::try_new(test.column, metadata.schema(), metadata.parquet_schema())
        else {
            continue;
        };
        let picked = groups.iter().map(|group| file.row_group(*group)).collect::<Vec<_>>();
        let mins = converter.row_group_mins(picked.iter().copied())?;
        let maxes = converter.row_group_maxes(picked.iter().copied())?;
        let mut at = 0;
        groups.retain(|_| {
            at += 1;
            (test.may_hold)(mins.as_ref(), maxes.as_ref(), at - 1)
        });
    }
    let selection = page_selection(metadata, &groups, &first_rows, &tests, options.rows.as_ref())?;
    Ok((groups, selection))
}

/// Whether the part of a column whose least and greatest values stand at an index may hold a row that is asked for.
struct PageTest<'a> {
    column: &'a str,
    may_hold: Box<MayHold<'a>>,
}

/// Least values, greatest values, and which of them to look at.
type MayHold<'a> = dyn Fn(&dyn Array, &dyn Array, usize) -> bool + 'a;

fn page_tests(options: &ReadOptions) -> Vec<PageTest<'_>> {
    let mut tests = Vec::new();
    if let Some((column, from, until)) = &options.time {
        let may_hold = move |mins: &dyn Array, maxes: &dyn Array, at: usize| {
            let mins = mins.as_primitive_opt::<TimestampNanosecondType>();
            let maxes = maxes.as_primitive_opt::<TimestampNanosecondType>();
            let (Some(mins), Some(maxes)) = (mins, maxes) else { return true };
            (mins.is_null(at) || mins.value(at) < *until) && (maxes.is_null(at) || maxes.value(at) >= *from)
        };
        tests.push(PageTest { column, may_hold: Box::new(may_hold) });
    }
    if let Some((column, keys)) = &options.keys {
        let may_hold = move |mins: &dyn Array, maxes: &dyn Array, at: usize| {
            let (Some(mins), Some(maxes)) =
                (mins.as_primitive_opt::<UInt64Type>(), maxes.as_primitive_opt::<UInt64Type>())
            else {
                return true;
            };
            if mins.is_null(at) || maxes.is_null(at) {
                return true;
            }
            let first = keys.partition_point(|key| *key < mins.value(at));
            keys.get(first).is_some_and(|key| *key <= maxes.value(at))
        };
        tests.push(PageTest { column, may_hold: Box::new(may_hold) });
    }
    if let Some((column, least, greatest)) = &options.ids {
        let may_hold = move |mins: &dyn Array, maxes: &dyn Array, at: usize| {
            let (Some(mins), Some(maxes)) = (mins.as_fixed_size_binary_opt(), maxes.as_fixed_size_binary_opt()) else {
                return true;
            };
            (mins.is_null(at) || mins.value(at) <= greatest.as_slice())
                && (maxes.is_null(at) || maxes.value(at) >= least.as_slice())
        };
        tests.push(PageTest { column, may_hold: Box::new(may_hold) });
    }
    tests
}

/// The rows of the chosen row groups that lie in pages which may matter, and in the rows asked for.
fn page_selection(
    metadata: &ArrowReaderMetadata,
    groups: &[usize],
    first_rows: &[usize],
    tests: &[PageTest<'_>],
    rows: Option<&RowRanges>,
) -> Result<Option<RowSelection>> {
    let file = metadata.metadata();
    let (column_index, offset_index) = (file.column_index(), file.offset_index());
    let mut selection: Option<RowSelection> = None;
    if let (Some(column_index), Some(offset_index)) = (column_index, offset_index) {
        for test in tests {
            let Ok(converter) = StatisticsConverter::try_new(test.column, metadata.schema(), metadata.parquet_schema())
            else {
                continue;
            };
            let Some(leaf) = converter.parquet_column_index() else { continue };
            let mins = converter.data_page_mins(column_index, offset_index, groups)?;
            let maxes = converter.data_page_maxes(column_index, offset_index, groups)?;
            let mut selectors = Vec::new();
            let mut at = 0;
            for group in groups {
                let group_rows = file.row_group(*group).num_rows() as usize;
                let pages = offset_index[*group][leaf].page_locations();
                for (number, page) in pages.iter().enumerate() {
                    let start = page.first_row_index as usize;
                    let end = pages.get(number + 1).map_or(group_rows, |next| next.first_row_index as usize);
                    let keep = (test.may_hold)(mins.as_ref(), maxes.as_ref(), at);
                    selectors.push(RowSelector { row_count: end - start, skip: !keep });
                    at += 1;
                }
            }
            let picked = RowSelection::from(selectors);
            selection = Some(selection.map_or_else(|| picked.clone(), |other| other.intersection(&picked)));
        }
    }
    if let Some(rows) = rows {
        let mut selectors = Vec::new();
        for group in groups {
            let (start, count) = (first_rows[*group], file.row_group(*group).num_rows() as usize);
            let mut at = 0;
            for range in rows {
                let from = range.start.max(start).min(start + count) - start;
                let until = range.end.max(start).min(start + count) - start;
                if from >= until || until <= at {
                    continue;
                }
                let from = from.max(at);
                selectors.push(RowSelector::skip(from - at));
                selectors.push(RowSelector::select(until - from));
                at = until;
            }
            selectors.push(RowSelector::skip(count - at));
        }
        let picked = RowSelection::from(selectors);
        selection = Some(selection.map_or_else(|| picked.clone(), |other| other.intersection(&picked)));
    }
    Ok(selection)
}
