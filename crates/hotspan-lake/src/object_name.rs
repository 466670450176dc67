//! How objects are called: `TENANT/l0/NAME.seg`, `TENANT/TABLE/PARTITION/NAME.parquet` and its `.ids`. A name begins with the
//! time at which it was made, so that a file says how old it is wherever it was copied to.

use hotspan_model::TenantId;

use crate::table::Table;

/// The folder of what was received and is not sorted yet.
pub(crate) const YOUNG: &str = "l0";

const INDEX_ENDING: &str = ".ids";

/// A path that no object had before, if each `number` is given once by a process.
pub(crate) fn object_path(
    tenant: &TenantId,
    kind: &str,
    partition: Option<i64>,
    (created_at, number): (i64, u64),
    ending: &str,
) -> String {
    let name = format!("{created_at:016x}-{:x}-{number:x}.{ending}", std::process::id());
    match partition {
        Some(partition) => format!("{tenant}/{kind}/{}/{name}", partition.div_euclid(1_000_000_000)),
        None => format!("{tenant}/{kind}/{name}"),
    }
}

/// The path of the id index that belongs to a file.
pub(crate) fn index_path(path: &str) -> String {
    format!("{path}{INDEX_ENDING}")
}

/// What the path of an object says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectName<'p> {
    pub(crate) tenant: &'p str,
    /// None for an object of level 0, which holds several.
    pub(crate) table: Option<Table>,
    /// Start of its partition, in nanoseconds.
    pub(crate) partition: Option<i64>,
    pub(crate) created_at: i64,
}

impl<'p> ObjectName<'p> {
    /// Reads a path; none if it is not one that [`object_path`] makes. Whoever keeps files of his own beside ours keeps them.
    pub(crate) fn of(path: &'p str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let (tenant, table, partition, name) = match parts.as_slice() {
            [tenant, YOUNG, name] => (tenant, None, None, name.strip_suffix(".seg")?),
            [tenant, table, partition, name] => {
                let seconds: i64 = partition.parse().ok()?;
                let name = name.strip_suffix(INDEX_ENDING).unwrap_or(name).strip_suffix(".parquet")?;
                (tenant, Some(table.parse().ok()?), Some(seconds.checked_mul(1_000_000_000)?), name)
            }
            _ => return None,
        };
        let [created_at, process, number] = <[&str; 3]>::try_from(name.split('-').collect::<Vec<_>>()).ok()?;
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if created_at.len() != 16 || ![created_at, process, number].into_iter().all(is_hex) {
            return None;
        }
        Some(Self { tenant, table, partition, created_at: i64::from_str_radix(created_at, 16).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: paths as they are made, and names that other programs give to files.
    /// Guarantee: the first are read back, the others are none of ours.
    #[test]
    fn only_our_own_names_are_read() {
        let (tenant, hour) = (TenantId::anonymous(), 3_600_000_000_000);
        let path = object_path(&tenant, "spans", Some(hour), (77, 5), "parquet");
        let expected =
            ObjectName { tenant: "anonymous", table: Some(Table::Spans), partition: Some(hour), created_at: 77 };
        assert_eq!(ObjectName::of(&path), Some(expected));
        assert_eq!(ObjectName::of(&format!("{path}.ids")), Some(expected));
        let young = object_path(&tenant, YOUNG, None, (77, 5), "seg");
        assert_eq!(ObjectName::of(&young), Some(ObjectName { table: None, partition: None, ..expected }));
        for other in [
            "sales/2024-01-01.csv",
            "anonymous/l0/2024-01-01.seg",
            "anonymous/l0/000000000000004d-1.seg",
            "anonymous/l0/000000000000004d-1-2.csv",
            "anonymous/spans/0/a-b-c.parquet",
            "anonymous/sales/0/000000000000004d-1-2.parquet",
            "anonymous/spans/x/000000000000004d-1-2.parquet",
            "anonymous/spans/000000000000004d-1-2.parquet",
            "000000000000004d-1-2.parquet",
            "",
        ] {
            assert_eq!(ObjectName::of(other), None, "{other}");
        }
    }
}
