//! Commands that messages name, pasted into a shell: they do what they say, to
//! the place and with the choices that the message was about.

use std::fs;
use std::path::Path;
use std::process::Command;

use mlx_overlay_engine::publish::{Identity, Options, Partial, Source, publish};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, ObjectId, TreePath};
use overlay_tests_support::{Need, Suite};

use crate::apply::{A_TO_B, project};
use crate::project::Project;
use crate::tool::Tool;

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("remedies/of-a-hand-edit", git(), hand_edit);
    suite.test_needing("remedies/of-a-changed-series", git(), changed_series);
    suite.test_needing("remedies/of-a-damaged-stamp", git(), damaged_stamp);
    suite.test_needing("remedies/of-a-partial-tree", git(), partial);
    suite.test_needing("remedies/of-a-trial-tree-and-a-kept-pin", git(), of_what_it_is);
    suite.test_needing("remedies/of-a-tree-of-no-project-here", git(), elsewhere);
}

/// The commands of the program in backquotes.
fn commands(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.filter(|c| c.starts_with("overlay ")).map(str::to_owned).collect()
}

/// The one command that lays a tree, of those in the text.
fn apply_of(text: &str) -> String {
    let found: Vec<_> = commands(text).into_iter().filter(|c| c.contains(" apply")).collect();
    let [one] = &found[..] else { panic!("{found:?} in {text}") };
    one.clone()
}

/// Runs a command in a shell, in the tool's folder, and wants it to succeed.
fn paste(tool: &Tool, command: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_overlay")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(tool.path(""))
        .env("PATH", path)
        .env("MLX_OVERLAY_CACHE", tool.path(".cache"))
        .env_remove("MLX_OVERLAY_UPSTREAM")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

const OTHER: &str = "--- a/d/b.txt\n+++ b/d/b.txt\n@@ -1 +1,2 @@\n b\n+c\n";

/// Two groups, of which one is laid, at a place whose name a shell splits.
fn two_groups() -> Project {
    let project = project(&[("first", "metal", A_TO_B), ("second", "cuda", OTHER)]);
    let laid = project.tool.run(["apply", "--out", "my out", "--group", "metal"]);
    laid.assert_status(0);
    project
}

fn is_as_laid(project: &Project, out: &str) {
    let read = |name: &str| fs::read_to_string(project.tool.path(out).join(name)).unwrap();
    assert_eq!((read("a.txt"), read("d/b.txt")), ("b\n".into(), "b\n".into()));
    let status = project.tool.run(["status", out]);
    status.assert_status(0);
    assert!(status.stdout().contains("groups  metal"), "{}", status.shown());
    assert!(!project.tool.path("target/overlay").exists(), "another place was laid");
}

fn hand_edit() {
    let project = two_groups();
    let edit = || fs::write(project.tool.path("my out/a.txt"), "mine\n").unwrap();
    edit();
    let status = project.tool.run(["status", "my out"]);
    status.assert_status(1);
    let command = apply_of(status.stdout());
    assert_eq!(command, "overlay apply --out 'my out' --group metal --force");
    paste(&project.tool, &command);
    is_as_laid(&project, "my out");
    // And what `apply` says itself, with or without `--dry-run`.
    edit();
    for dry in [&["--dry-run"][..], &[]] {
        let apply = ["apply", "--out", "my out", "--group", "metal"];
        let refused = project.tool.run(apply.iter().chain(dry));
        refused.assert_status(1);
        assert_eq!(apply_of(refused.stderr()), command);
    }
    paste(&project.tool, &command);
    is_as_laid(&project, "my out");
    // From another folder, as JSON too.
    edit();
    let json = ["-C", "patches", "apply", "--out", "../my out", "--group", "metal"];
    let json = project.tool.run(json.iter().chain(&["--format", "json"])).json();
    let command = apply_of(json["error"]["remedies"][0].as_str().unwrap());
    assert_eq!(command, "overlay -C patches apply --out '../my out' --group metal --force");
    paste(&project.tool, &command);
    is_as_laid(&project, "my out");
}

fn changed_series() {
    let project = two_groups();
    let patch = format!("patches/{}/first.patch", &project.commit[..8]);
    project.write(&patch, &A_TO_B.replace("+b", "+c"));
    project.tool.run(["status", "my out"]).assert_status(1);
    project.write(&patch, &A_TO_B.replace("-a\n+b", "-a\n+b\n+b").replace("+1 @@", "+1,2 @@"));
    let status = project.tool.run(["-C", "patches", "status", "../my out"]);
    status.assert_status(1);
    let command = apply_of(status.stdout());
    assert_eq!(command, "overlay -C patches apply --out '../my out' --group metal");
    paste(&project.tool, &command);
    let laid = fs::read_to_string(project.tool.path("my out/a.txt")).unwrap();
    assert_eq!(laid, "b\nb\n");
    project.tool.run(["status", "my out"]).assert_status(0);
}

fn damaged_stamp() {
    let project = two_groups();
    let damage = |at: &str| {
        fs::write(project.tool.path(at).join(".overlay-stamp.json"), "{").unwrap();
    };
    damage("my out");
    for command in ["status", "verify", "env"] {
        let run = project.tool.run([command, "my out"]);
        run.assert_status(1);
        assert_eq!(apply_of(run.stderr()), "overlay apply --out 'my out' --force");
        let rest = "(and the --pin, --at and --group that it was laid with)";
        assert!(run.stderr().contains(rest), "{}", run.shown());
    }
    // Whoever names the group is told the whole command.
    let run = project.tool.run(["apply", "--out", "my out", "--group", "metal"]);
    run.assert_status(1);
    let command = apply_of(run.stderr());
    assert_eq!(command, "overlay apply --out 'my out' --group metal --force");
    paste(&project.tool, &command);
    is_as_laid(&project, "my out");
    // The usual place needs no name.
    project.tool.run(["apply"]).assert_status(0);
    damage(&format!("target/overlay/{}", &project.commit[..8]));
    let run = project.tool.run(["status"]);
    run.assert_status(1);
    assert_eq!(apply_of(run.stderr()), "overlay apply --force");
    paste(&project.tool, "overlay apply --force");
    project.tool.run(["status"]).assert_status(0);
    // The project is found from below.
    project.tool.run(["-C", "patches", "status"]).assert_status(0);
}

/// Publishes a tree of one file that says this of itself.
fn publish_as(project: &Project, place: &str, partial: Option<Partial>, trial: Option<&str>) {
    let path = TreePath::new("a.txt").unwrap();
    let tree = MemoryTree([(path, File::new(Mode::Regular, &b"old\n"[..]))].into());
    let identity = Identity {
        pin: project.commit.parse().unwrap(),
        source: Source::Git { tree: ObjectId::of_blob(b"tree") },
        series: "sha256:0".into(),
        contracts: String::new(),
        groups: Vec::new(),
        partial,
        trial: trial.map(str::to_owned),
    };
    publish(&project.tool.path(place), &tree, &identity, &Options::default()).unwrap();
}

fn partial() {
    let project = project(&[("first", "metal", A_TO_B)]);
    publish_as(&project, "out", Some(Partial { have: 1, of: 2 }), None);
    let run = project.tool.run(["env", "out"]);
    run.assert_status(4);
    let [whole, _] = &commands(run.stderr())[..] else { panic!("{}", run.shown()) };
    assert_eq!(whole, "overlay apply --out out --from <clone or URL>");
    paste(&project.tool, &whole.replace("<clone or URL>", "clone"));
    project.tool.run(["status", "out"]).assert_status(0);
}

fn of_what_it_is() {
    let project = project(&[("first", "metal", A_TO_B)]);
    let at = "crate:x@1.0.0:vendor/mlx";
    let usual = format!("target/overlay/{}-at-x-1.0.0-vendor-mlx", &project.commit[..8]);
    for (place, out) in [(&*usual, ""), ("mine", " --out mine")] {
        publish_as(&project, place, None, Some(at));
        fs::write(project.tool.path(place).join("a.txt"), "edit\n").unwrap();
        let run = project.tool.run(["status", place]);
        run.assert_status(1);
        let told = commands(run.stdout()).into_iter().filter(|c| c.contains(" apply"));
        let wanted = [
            format!("overlay apply --at {at}{out} --force"),
            format!("overlay apply --at {at}{out}"),
        ];
        assert_eq!(told.collect::<Vec<_>>(), wanted, "{}", run.shown());
    }
    // A tree of a pin that is no longer current.
    let old = project.commit[..8].to_owned();
    let clone = project.tool.path("clone");
    fs::write(clone.join("new.txt"), "new\n").unwrap();
    crate::project::git(&clone, &["add", "."]);
    crate::project::git(&clone, &["commit", "-q", "-m", "Second"]);
    let bump = ["rebase", "--to", "main", "--from", "clone"];
    project.tool.run(bump).assert_status(0);
    project.tool.run(["apply", "--pin", &old, "--out", "old"]).assert_status(0);
    fs::write(project.tool.path("old/a.txt"), "edit\n").unwrap();
    let command = apply_of(project.tool.run(["status", "old"]).stdout());
    assert_eq!(command, format!("overlay apply --pin {old} --out old --force"));
    paste(&project.tool, &command);
    assert!(!project.tool.path("old/new.txt").exists(), "the current pin was laid");
    project.tool.run(["status", "old"]).assert_status(0);
}

fn elsewhere() {
    let project = two_groups();
    fs::write(project.tool.path("my out/a.txt"), "mine\n").unwrap();
    let other = Tool::new();
    let out = project.tool.path("my out").canonicalize().unwrap();
    let run = other.run(["status".into(), out.display().to_string()]);
    run.assert_status(1);
    let wanted = format!("overlay apply --out '{}' --group metal --force", out.display());
    assert_eq!(apply_of(run.stdout()), wanted, "{}", run.shown());
    assert!(run.stdout().contains("in the project that it was laid from"), "{}", run.shown());
    paste(&project.tool, &wanted);
    is_as_laid(&project, "my out");
}
