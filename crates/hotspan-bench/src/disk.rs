//! How many bytes a store takes: on disk, and of that, in use.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::http::Client;
use crate::server::Server;

/// Bytes by table that queries read, as the server counts them. Files that compaction replaced stay on disk for some
/// minutes, so that running queries can end; they say nothing about how well data is stored. Empty if it can't be said.
pub(crate) fn bytes_by_table(server: &Server) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let Ok(answer) = Client::new(server.http).get("/api/v1/status") else {
        return sums;
    };
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    for row in status["store"]["tables"].as_array().map_or(&[][..], Vec::as_slice) {
        if let (Some(table), Some(bytes)) = (row["table"].as_str(), row["bytes"].as_u64()) {
            *sums.entry(table.to_owned()).or_default() += bytes;
        }
    }
    sums
}

/// Bytes in use, or all bytes on disk where the server does not tell them apart.
pub(crate) fn bytes_in_use(server: &Server, store: &Path) -> io::Result<u64> {
    match bytes_by_table(server).values().sum() {
        0 => bytes_below(store),
        bytes => Ok(bytes),
    }
}

/// Bytes of all files below a folder. A file that vanishes meanwhile, as compaction makes it, counts nothing.
pub(crate) fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(facts) if facts.is_dir() => folders.push(entry.path()),
                Ok(facts) => sum += facts.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(sum)
}
