//! Python with the packages that tests need, in a folder of their own that later runs find again.

use std::path::Path;
use std::process::Command;

/// A Python that has `requests` and `yaml`.
pub(crate) fn python() -> Command {
    python_with("common", &["requests", "pyyaml"])
}

/// A Python that has these packages, which are kept under a name.
pub(crate) fn python_with(name: &str, packages: &[&str]) -> Command {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{name}"));
    if !folder.is_dir() {
        // Made beside and renamed, so that tests that run at once see it whole or not at all.
        let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"];
        let done = Command::new("python3").args(install).arg(fresh.path()).args(packages).output();
        let done = done.expect("python3 is needed for this test");
        assert!(done.status.success(), "pip: {}", String::from_utf8_lossy(&done.stderr));
        if std::fs::rename(fresh.path(), &folder).is_err() {
            assert!(folder.is_dir(), "the packages can't be moved to {}", folder.display());
        }
    }
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", folder);
    python
}
