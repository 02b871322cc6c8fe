//! A small git repository, made by git itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use mlx_overlay_engine::snapshot::ObjectId;
use tempfile::TempDir;

/// A repository of three commits on `main`, `release` tagged in the middle, and a
/// side branch merged last.
pub struct Repository {
    pub dir: TempDir,
}

impl Repository {
    pub fn new() -> Self {
        let repository = Self { dir: tempfile::tempdir().unwrap() };
        repository.git(&["init", "-q", "-b", "main", "."]);
        repository.write("a.txt", "one\n");
        repository.write("d/e/f.txt", "deep\n");
        repository.write("d/run.sh", "#!/bin/sh\n");
        repository.git(&["update-index", "--add", "--chmod=+x", "d/run.sh"]);
        repository.commit("First (#1)");
        repository.write("a.txt", "two\n");
        repository.commit("Second (#2)\n\nWith a body.");
        repository.git(&["tag", "-a", "-m", "a release", "release"]);
        repository.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
        repository.write("s.txt", "side\n");
        repository.commit("Aside");
        repository.git(&["checkout", "-q", "main"]);
        repository.git(&["merge", "-q", "--no-ff", "-m", "Merge side (#3)", "side"]);
        repository.write("d/e/f.txt", "deeper\n");
        repository.commit("Last (#4)");
        repository
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git(self.path(), arguments)
    }

    pub fn id(&self, rev: &str) -> ObjectId {
        self.git(&["rev-parse", rev]).parse().unwrap()
    }

    /// The file of an object that is in no pack.
    pub fn loose(&self, rev: &str) -> PathBuf {
        let id = self.git(&["rev-parse", rev]);
        self.path().join(".git/objects").join(&id[..2]).join(&id[2..])
    }

    /// Cuts the file of an object in the middle.
    pub fn halve(&self, rev: &str) {
        let file = self.loose(rev);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        let path: PathBuf = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }
}

/// Runs git with no configuration of a user and a fixed clock.
pub fn git(at: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(at)
        .args(["-c", "core.fileMode=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "C")
        .env("GIT_COMMITTER_EMAIL", "c@example.org")
        .env("GIT_AUTHOR_DATE", "2026-08-16T23:30:00-0200")
        .env("GIT_COMMITTER_DATE", "2026-08-18T12:00:00+0000")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
