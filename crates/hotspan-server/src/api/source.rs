//! `/api/v1/source`: the lines around a frame, from the folder that `source` names.
//!
//! Frames carry the path that their compiler saw, which is seldom the path here. The longest end of it that names a file
//! below the folder is taken: `/build/7/shop/tax/tax.go` finds `tax/tax.go` in a checkout of `shop`. The path comes from
//! the network, so that only plain names are followed, links may not lead out, and only source code is shown.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::Given;
use super::known_parameters::{count_within, names_of, refuse_unknown};
use crate::app::App;

/// Larger files are made by machines.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Lines on each side of the one that is asked for.
const DEFAULT_CONTEXT: usize = 20;
const MAX_CONTEXT: usize = 1000;
/// A longer line is cut.
const MAX_LINE_CHARS: usize = 500;
/// Parts of a path that are looked at.
const MAX_PARTS: usize = 64;

/// A repository also holds keys and settings: those are not shown.
const CODE: &[&str] = &[
    "asm", "c", "cc", "clj", "cpp", "cr", "cs", "cu", "cxx", "d", "dart", "erl", "ex", "exs", "f90", "fs", "go",
    "groovy", "h", "hh", "hpp", "hrl", "hs", "inc", "java", "jl", "js", "jsx", "kt", "kts", "lua", "m", "mjs", "ml",
    "mm", "nim", "php", "pl", "pm", "proto", "py", "pyx", "r", "rb", "rs", "s", "scala", "sql", "svelte", "swift",
    "ts", "tsx", "vb", "vue", "zig",
];

#[derive(Debug, Deserialize)]
pub(crate) struct SourceParameters {
    file: String,
    line: Option<usize>,
    context: Option<usize>,
}

/// Answers `/api/v1/source`.
pub(crate) async fn source(
    State(app): State<Arc<App>>,
    Given(parameters): Given<SourceParameters>,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    refuse_unknown(&uri, &[names_of::<SourceParameters>()])?;
    let Some(folder) = app.settings.source.clone() else {
        return Err(not_here("no folder with source code is configured; start the server with --source DIR"));
    };
    let line = parameters.line.unwrap_or(1).max(1);
    let context = count_within("context", parameters.context, DEFAULT_CONTEXT, 0..=MAX_CONTEXT)?;
    let read = move || excerpt(&folder, &parameters.file, line, context);
    let found = tokio::task::spawn_blocking(read).await;
    let excerpt = found.map_err(|error| not_here(format!("reading failed: {error}")))??;
    Ok(Json(json!({ "file": excerpt.file, "first_line": excerpt.first_line, "lines": excerpt.lines })))
}

fn not_here(message: impl Into<String>) -> ApiError {
    ApiError { status: StatusCode::NOT_FOUND, message: message.into() }
}

#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    /// Relative to the folder.
    file: String,
    first_line: usize,
    lines: Vec<String>,
}

fn excerpt(folder: &Path, file: &str, line: usize, context: usize) -> Result<Excerpt, ApiError> {
    let root = folder
        .canonicalize()
        .map_err(|error| not_here(format!("the folder {} can't be read: {error}", folder.display())))?;
    let path = find(&root, file).ok_or_else(|| not_here(format!("{file:?} is not below {}", folder.display())))?;
    let unreadable = |error: std::io::Error| not_here(format!("{file:?} can't be read: {error}"));
    let mut bytes = Vec::new();
    File::open(&path).map_err(unreadable)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(not_here(format!("{file:?} is larger than {MAX_FILE_BYTES} bytes")));
    }
    let text = String::from_utf8_lossy(&bytes);
    let first_line = line.saturating_sub(context).max(1);
    let lines: Vec<String> = text
        .lines()
        .skip(first_line - 1)
        .take(line.saturating_add(context).saturating_sub(first_line).saturating_add(1))
        .map(|line| line.chars().take(MAX_LINE_CHARS).collect())
        .collect();
    if lines.is_empty() {
        return Err(ApiError::invalid(format!("{file:?} has no line {line}: it has changed since it was profiled")));
    }
    let relative = path.strip_prefix(&root).unwrap_or(&path);
    Ok(Excerpt { file: relative.display().to_string(), first_line, lines })
}

/// The longest end of a path that is a file of source code below the folder.
fn find(root: &Path, file: &str) -> Option<PathBuf> {
    let parts: Vec<&std::ffi::OsStr> = Path::new(file)
        .components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    let extension = Path::new(file).extension()?.to_str()?.to_ascii_lowercase();
    if !CODE.contains(&extension.as_str()) || parts.len() > MAX_PARTS {
        return None;
    }
    (0..parts.len()).map(|skipped| &parts[skipped..]).find_map(|kept| {
        if kept.iter().any(|name| is_hidden(name)) {
            return None;
        }
        let path = root.join(kept.iter().collect::<PathBuf>()).canonicalize().ok()?;
        // A link may lead anywhere; only what is really below counts.
        (path.starts_with(root) && path.is_file()).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("tax/.git")).unwrap();
        let lines: Vec<String> = (1..=100).map(|number| format!("line {number}")).collect();
        std::fs::write(folder.path().join("tax/tax.go"), lines.join("\n")).unwrap();
        std::fs::write(folder.path().join("tax/.git/hook.py"), "secret").unwrap();
        std::fs::write(folder.path().join("tax/settings.yaml"), "password: 1").unwrap();
        folder
    }

    /// Scenario: the path as a compiler elsewhere saw it, with a line in the middle, at the start and past the end.
    /// Guarantee: the file is found by its end, the lines are those around it, and a stale line is an error.
    #[test]
    fn lines_around_a_frame_are_found() {
        let folder = repository();
        let at = |file: &str, line, context| excerpt(folder.path(), file, line, context);
        let middle = at("/build/7/shop/tax/tax.go", 50, 2).unwrap();
        assert_eq!(middle.file, "tax/tax.go");
        assert_eq!((middle.first_line, middle.lines.first().unwrap().as_str()), (48, "line 48"));
        assert_eq!(middle.lines.last().unwrap(), "line 52");
        assert_eq!(at("tax/tax.go", 1, 3).unwrap().lines.len(), 4);
        assert_eq!(at("tax.go", 1, 3).unwrap_err().status, StatusCode::NOT_FOUND);
        assert_eq!(at("tax/tax.go", 500, 3).unwrap_err().status, StatusCode::BAD_REQUEST);
        assert_eq!(at("tax/tax.go", usize::MAX, usize::MAX).unwrap().first_line, 1);
    }

    /// Scenario: paths that climb out, follow a link out, name a hidden folder, or are no source code.
    /// Guarantee: none of them is shown.
    #[test]
    fn nothing_else_is_shown() {
        let folder = repository();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret.py"), "secret").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let secret = outside.path().join("secret.py");
        for file in [
            "../secret.py",
            "tax/../../secret.py",
            secret.to_str().unwrap(),
            "link/secret.py",
            "tax/.git/hook.py",
            "tax/settings.yaml",
            "tax",
            "",
        ] {
            assert!(excerpt(folder.path(), file, 1, 5).is_err(), "{file}");
        }
    }
}
