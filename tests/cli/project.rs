//! Projects to run in: one made for a test, and this repository's own pin.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tool::Tool;

/// A cache that outlives the test run, so that packages are fetched once.
pub const KEPT_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cli-cache");

/// A project of its own, and a clone that has its pin's commit.
pub struct Project {
    /// The folder to run in.
    pub tool: Tool,
    /// The commit of the pin.
    pub commit: String,
}

impl Project {
    pub fn new() -> Self {
        let tool = Tool::new();
        let clone = tool.path("clone");
        fs::create_dir_all(clone.join("d")).unwrap();
        fs::write(clone.join("a.txt"), "a\n").unwrap();
        fs::write(clone.join("d/b.txt"), "b\n").unwrap();
        git(&clone, &["init", "-q", "-b", "main", "."]);
        git(&clone, &["add", "."]);
        git(&clone, &["commit", "-q", "-m", "First"]);
        let commit = git(&clone, &["rev-parse", "HEAD"]);
        let listing = git(&clone, &["ls-tree", "-r", "HEAD"]);
        let listing = listing.replace(" blob ", " ").replace('\t', " ");
        let project = Self { tool, commit };
        project.write("patches/listing", &format!("{listing}\n"));
        project.write_pin(&git(&clone, &["rev-parse", "HEAD^{tree}"]));
        let folder = format!("patches/{}", &project.commit[..8]);
        project.write(&format!("{folder}/series.toml"), "schema = 1\n");
        project
    }

    pub fn write_pin(&self, tree: &str) {
        let commit = &self.commit;
        // Nobody listens at port 9.
        let facts = format!(
            "schema = 1\ncommit = \"{commit}\"\ntree = \"{tree}\"\nversion = \"1.0\"\n\
             date = 2026-08-16\nupstream = \"http://127.0.0.1:9/x\"\nlisting = \"patches/listing\"\n"
        );
        self.write("mlx-pin.toml", &facts);
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.tool.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        self.tool.run(arguments.iter().chain(&["--format", "json"])).json()
    }
}

/// Runs git in a folder, with nothing of the user's set-up.
pub fn git(at: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(at)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// This repository's pin and series, with an upstream that nobody reaches: the
/// files come from released packages, as where no git host is reached.
pub fn this_pin() -> Tool {
    let tool = Tool::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pin = fs::read_to_string(root.join("mlx-pin.toml")).unwrap();
    let upstream = pin.lines().find(|l| l.starts_with("upstream = ")).unwrap();
    let nobody = pin.replace(upstream, "upstream = \"http://127.0.0.1:9/x\"");
    fs::write(tool.path("mlx-pin.toml"), nobody).unwrap();
    let folder = tool.path("patches/9a795735");
    fs::create_dir_all(&folder).unwrap();
    for item in fs::read_dir(root.join("patches/9a795735")).unwrap() {
        let item = item.unwrap();
        fs::copy(item.path(), folder.join(item.file_name())).unwrap();
    }
    tool
}
