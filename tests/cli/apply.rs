//! `overlay apply`, `status` and `verify`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;

use overlay_tests_support::{Need, Suite};

use crate::project::{KEPT_CACHE, Project, git, this_pin};
use crate::tool::{Run, Tool};

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    let with_git = || [Need::program("git", "git")];
    suite.test_needing("apply/lays-and-then-has-nothing-to-do", with_git(), lays_once);
    suite.test_needing("apply/a-new-contract-is-looked-at", with_git(), new_contract);
    suite.test_needing("apply/a-changed-patch-rewrites-one-file", with_git(), rewrites_one_file);
    suite.test_needing("apply/a-conflict-writes-nothing", with_git(), conflict_writes_nothing);
    suite.test_needing("apply/an-undeclared-removal-stops", with_git(), undeclared_removal);
    suite.test_needing("apply/a-hand-edit-stays-without-force", with_git(), hand_edit);
    suite.test_needing("apply/groups-are-laid-alone", with_git(), groups);
    suite.test_needing("apply/dry-run-writes-nothing", with_git(), dry_run);
    suite.test_needing("apply/a-place-that-is-not-ours", with_git(), foreign_place);
    suite.test_needing("apply/a-pinned-series-knows-its-places", with_git(), no_offset);
    suite.test_needing("apply/a-damaged-stamp-needs-a-person", with_git(), damaged_stamp);
    suite.test_needing("apply/our-own-files-are-no-patchs", with_git(), names_ours);
    suite.test_needing("apply/this-series-at-this-pin", [given(at_this_pin())], this_series);
    suite.test_needing("apply/cargo-alone-is-enough", [given(cargo_only())], with_cargo_alone);
    suite.test_needing("apply/this-series-on-v0.32.2", [given(at_release())], on_release);
}

/// A project with this repository's pin, and what `apply` said in it. Made
/// once, and not before a test needs it: it asks the registries.
type Applied = LazyLock<(Tool, Run)>;

/// The registries gave what was asked for.
fn given(applied: &'static Applied) -> Need {
    Need::asked(|| match &applied.1 {
        run if run.status() == Some(4) => {
            Err(format!("no registry gives the pin: {}", run.stderr()))
        }
        _ => Ok(()),
    })
}

fn at_this_pin() -> &'static Applied {
    static APPLIED: Applied = LazyLock::new(|| {
        let tool = this_pin();
        let variables = [("MLX_OVERLAY_CACHE", KEPT_CACHE)];
        let run = tool.run_with(&variables, ["apply", "--format", "json"]);
        (tool, run)
    });
    &APPLIED
}

fn cargo_only() -> &'static Applied {
    static APPLIED: Applied = LazyLock::new(|| {
        let tool = this_pin();
        let variables = [("PATH", &*cargo_alone(&tool)), ("CARGO_HOME", &*cargo_home())];
        let run = tool.run_with(&variables, ["apply", "--format", "json"]);
        (tool, run)
    });
    &APPLIED
}

fn at_release() -> &'static Applied {
    static APPLIED: Applied = LazyLock::new(|| {
        let tool = this_pin();
        let at = ["apply", "--at", "crate:mlxrs-sys@0.2.0:vendor/mlx", "--format", "json"];
        let run = tool.run_with(&[("MLX_OVERLAY_CACHE", KEPT_CACHE)], at);
        (tool, run)
    });
    &APPLIED
}

pub const A_TO_B: &str = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";

fn entry(name: &str, group: &str) -> String {
    format!(
        "[[entry]]\nname = \"{name}\"\npatch = \"{name}.patch\"\ngroup = \"{group}\"\n\
         reason = \"for the test\"\nforwarded = \"not-needed\"\n\n"
    )
}

/// Declares the lines that a patch of `a.txt` takes away.
fn note(entry: &str, patch: &str) -> String {
    let removed = patch.lines().filter(|l| l.starts_with('-') && !l.starts_with("---"));
    let removes: Vec<String> = removed.map(|l| format!("{:?}", &l[1..])).collect();
    if removes.is_empty() {
        return String::new();
    }
    let removes = removes.join(", ");
    format!(
        "[[note]]\nentry = \"{entry}\"\nfile = \"a.txt\"\nremoves = [{removes}]\n\
         reason = \"for the test\"\n\n"
    )
}

/// A project whose series holds these patches: name, group, text.
pub fn project(patches: &[(&str, &str, &str)]) -> Project {
    let project = Project::new();
    let folder = format!("patches/{}", &project.commit[..8]);
    let mut series = "schema = 1\n\n".to_string();
    for (name, group, text) in patches {
        series.push_str(&entry(name, group));
        series.push_str(&note(name, text));
        project.write(&format!("{folder}/{name}.patch"), text);
    }
    project.write(&format!("{folder}/series.toml"), &series);
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    project
}

fn text(tool: &Tool, name: &str) -> String {
    fs::read_to_string(tool.path("out").join(name)).expect("a published file")
}

fn mtime(path: &Path) -> (i64, i64) {
    let meta = fs::metadata(path).expect("a published file");
    (meta.mtime(), meta.mtime_nsec())
}

const APPLY: [&str; 3] = ["apply", "--out", "out"];

fn lays_once() {
    let project = project(&[("first", "metal", A_TO_B)]);
    let json = project.json(&APPLY);
    assert_eq!((&json["schema"], &json["holds"]), (&"mlx-overlay/apply".into(), &true.into()));
    assert_eq!(json["patches"][0]["hunks"][0]["class"], "exact");
    assert_eq!((json["action"].as_str(), &json["partial"]), (Some("create"), &().into()));
    assert_eq!(text(&project.tool, "a.txt"), "b\n");
    let before = mtime(&project.tool.path("out/a.txt"));
    let again = project.tool.run(APPLY);
    again.assert_status(0);
    assert!(again.stdout().starts_with("Nothing to do: "), "{}", again.shown());
    // A file written in the clock's tick of the stamp is hashed to be sure.
    assert!(again.stdout().contains("(2 files checked, "), "{}", again.shown());
    assert_eq!(mtime(&project.tool.path("out/a.txt")), before);
    project.tool.run(["verify", "out"]).assert_status(0);
}

/// A contract changes no file: that nothing is to be done does not say that it
/// holds.
fn new_contract() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.tool.run(APPLY).assert_status(0);
    let series = format!("patches/{}/series.toml", &project.commit[..8]);
    let was = fs::read_to_string(project.tool.path(&series)).expect("the series");
    let watch = |from: &str| {
        format!(
            "{was}\n[[watch]]\nfile = \"d/b.txt\"\nfrom = \"{from}\"\nto = \"{from}\"\nreason = \"x\"\n"
        )
    };
    project.write(&series, &watch("no_such_word"));
    let run = project.tool.run(APPLY);
    run.assert_status(1);
    assert!(run.stdout().contains("broken"), "{}", run.shown());
    project.write(&series, &was);
    project.tool.run(APPLY).assert_status(0);
}

fn rewrites_one_file() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.tool.run(APPLY).assert_status(0);
    let kept = mtime(&project.tool.path("out/d/b.txt"));
    let patch = format!("patches/{}/first.patch", &project.commit[..8]);
    project.tool.run(["status", "out"]).assert_status(0);
    project.write(&patch, &A_TO_B.replace("+b", "+c"));
    let status = project.tool.run(["status", "out"]);
    status.assert_status(1);
    assert!(status.stdout().contains("The series has changed since"), "{}", status.shown());
    let json = project.json(&APPLY);
    assert_eq!(json["plan"]["write"], serde_json::json!(["a.txt"]));
    assert_eq!(text(&project.tool, "a.txt"), "c\n");
    assert_eq!(mtime(&project.tool.path("out/d/b.txt")), kept, "an unchanged file keeps its time");
}

fn conflict_writes_nothing() {
    let broken = A_TO_B.replace("-a", "-x");
    let project = project(&[("good", "metal", A_TO_B), ("bad", "metal", &broken)]);
    let run = project.tool.run(APPLY);
    run.assert_status(1);
    assert!(
        run.stdout().contains("1 of 2 entries, 2 hunks, 2 of 2 contracts: not all hold."),
        "{}",
        run.shown()
    );
    assert!(!project.tool.path("out").exists(), "nothing is written unless all holds");
}

/// A `-` line that no note declares may be an upstream fix undone.
fn undeclared_removal() {
    let project = project(&[("first", "metal", A_TO_B)]);
    let series = format!("patches/{}/series.toml", &project.commit[..8]);
    project.write(&series, &format!("schema = 1\n\n{}", entry("first", "metal")));
    let run = project.tool.run(APPLY);
    run.assert_status(1);
    assert!(run.stdout().contains("1 removed line(s) that no note declares"), "{}", run.shown());
    assert!(!project.tool.path("out").exists());
}

fn hand_edit() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.tool.run(APPLY).assert_status(0);
    fs::write(project.tool.path("out/a.txt"), "mine\n").expect("written");
    let status = project.tool.run(["status", "out"]);
    status.assert_status(1);
    assert!(status.stdout().contains("`a.txt` modified"), "{}", status.shown());
    project.tool.run(["verify", "out"]).assert_status(1);
    let refused = project.tool.run(APPLY);
    refused.assert_status(1);
    assert!(refused.stderr().contains("`a.txt` modified"), "{}", refused.shown());
    assert_eq!(text(&project.tool, "a.txt"), "mine\n");
    let forced = project.tool.run(APPLY.iter().chain(&["--force"]));
    forced.assert_status(0);
    assert!(forced.stdout().contains("hand edit overwritten"), "{}", forced.shown());
    assert_eq!(text(&project.tool, "a.txt"), "b\n");

    // An edit that only its hash tells, and that `verify` sends here for.
    let path = project.tool.path("out/a.txt");
    let written = fs::metadata(&path).and_then(|m| m.modified()).expect("a time");
    fs::write(&path, "c\n").expect("written");
    let file = fs::File::options().write(true).open(&path).expect("opened");
    file.set_modified(written).expect("set");
    project.tool.run(["verify", "out"]).assert_status(1);
    project.tool.run(APPLY.iter().chain(&["--force"])).assert_status(0);
    assert_eq!(text(&project.tool, "a.txt"), "b\n");
}

fn groups() {
    // The second patch is made for the text that the first leaves; alone it is
    // mapped from there.
    let first = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,5 @@\n+1\n+2\n+3\n+4\n a\n";
    let second = "--- a/a.txt\n+++ b/a.txt\n@@ -5 +5,2 @@\n a\n+end\n";
    let project = project(&[("first", "cuda", first), ("second", "metal", second)]);
    let json = project.json(&["apply", "--out", "out", "--group", "metal"]);
    assert_eq!(json["patches"].as_array().map(Vec::len), Some(1), "{json:#}");
    assert_eq!(text(&project.tool, "a.txt"), "a\nend\n");
    let both = project.json(&APPLY);
    assert_eq!(both["action"], "update");
    let group = |names: &[&str]| {
        let names = names.iter().flat_map(|name| ["--group", name]);
        project.json(&APPLY.into_iter().chain(names).collect::<Vec<_>>())["action"].clone()
    };
    assert_eq!(group(&["metal", "cuda"]), "restamp");
    assert_eq!(group(&["cuda", "metal", "cuda"]), "nothing");
    assert_eq!(text(&project.tool, "a.txt"), "1\n2\n3\n4\na\nend\n");
    project.tool.run(["apply", "--out", "out", "--group", "rocm"]).assert_status(2);
}

fn dry_run() {
    let project = project(&[("first", "metal", A_TO_B)]);
    let json = project.json(&["apply", "--out", "out", "--dry-run"]);
    assert_eq!((&json["dry_run"], &json["holds"]), (&true.into(), &true.into()));
    assert!(!project.tool.path("out").exists());
}

fn foreign_place() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.write("out/mine.txt", "mine");
    project.tool.run(APPLY).assert_status(2);
    assert_eq!(text(&project.tool, "mine.txt"), "mine");
    assert!(!project.tool.path("out/a.txt").exists());
}

fn no_offset() {
    let off = A_TO_B.replace("-1 +1", "-7 +7");
    let project = project(&[("first", "metal", &off)]);
    let json = project.json(&APPLY);
    assert_eq!(json["patches"][0]["hunks"][0]["class"], "offset");
    assert_eq!(json["holds"], false);
    let told = project.tool.run(APPLY);
    told.assert_status(1);
    assert!(told.stdout().contains("a pinned series never rests on"), "{}", told.shown());
    assert!(!project.tool.path("out").exists());
}

/// Without its stamp nobody can tell what was edited in a tree by hand.
fn damaged_stamp() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.tool.run(APPLY).assert_status(0);
    fs::write(project.tool.path("out/d/b.txt"), "mine\n").expect("written");
    fs::write(project.tool.path("out/.overlay-stamp.json"), "{").expect("written");
    let dry = ["apply", "--out", "out", "--dry-run"];
    for args in [&["status", "out"][..], &["verify", "out"], &APPLY, &dry] {
        let run = project.tool.run(args);
        run.assert_status(1);
        let forced = "`overlay apply --out out --force`";
        for words in [".overlay-stamp.json` is damaged (", forced] {
            assert!(run.stderr().contains(words), "{words}: {}", run.shown());
        }
        assert_eq!(text(&project.tool, "d/b.txt"), "mine\n");
    }
    let forced = project.tool.run(APPLY.iter().chain(&["--force"]));
    forced.assert_status(0);
    assert!(forced.stdout().contains("`d/b.txt` modified"), "{}", forced.shown());
    assert_eq!(text(&project.tool, "d/b.txt"), "b\n");
    project.tool.run(["verify", "out"]).assert_status(0);
    // No file can be renamed over a folder.
    let stamp = project.tool.path("out/.overlay-stamp.json");
    fs::remove_file(&stamp).expect("removed");
    fs::create_dir(&stamp).expect("a folder");
    project.tool.run(APPLY.iter().chain(&["--force"])).assert_status(0);
    assert!(stamp.is_file());
    project.tool.run(["verify", "out"]).assert_status(0);
}

/// What a published tree keeps for itself is refused before anything is
/// written, and in a dry run too.
fn names_ours() {
    for name in [".overlay-stamp.json", ".overlay-edit/journal.json"] {
        let patch = format!("Subject: forge\n\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n");
        let project = project(&[("good", "cuda", A_TO_B), ("bad", "metal", &patch)]);
        let others = ["apply", "--out", "out", "--group", "cuda"];
        for args in [&APPLY[..], &["apply", "--out", "out", "--dry-run"], &others] {
            let run = project.tool.run(args.iter().chain(&["--format", "json"]));
            run.assert_status(3);
            let error = &run.json()["error"];
            assert_eq!(error["reason"], "reserved", "{error:#}");
            let file = error["place"]["file"].as_str().unwrap_or_default();
            assert!(file.ends_with("/bad.patch"), "{error:#}");
            assert_eq!(error["place"]["line"], 3, "{error:#}");
            assert!(run.stderr().contains("try: leave the file out"), "{}", run.shown());
            assert!(!project.tool.path("out").exists(), "{args:?}");
        }
    }
}

/// Every hunk of this repository's series stands exactly at its own pin, and a
/// tree of proven files says that it is partial.
fn this_series() {
    let (tool, run) = &**at_this_pin();
    run.assert_status(0);
    let json = run.json();
    let entries = json["patches"].as_array().expect("a list");
    assert!(entries.len() >= 8, "{} entries", entries.len());
    for hunk in entries.iter().flat_map(|e| e["hunks"].as_array().expect("a list")) {
        assert_eq!(hunk["class"], "exact", "{hunk:#}");
    }
    for contract in json["contracts"].as_array().expect("a list") {
        assert_eq!(contract["status"], "held", "{contract:#}");
    }
    assert!(json["contracts"].as_array().is_some_and(|c| c.len() > 20), "the series has contracts");
    assert_eq!(json["partial"]["of"], 933);
    assert!(json["partial"]["have"].as_u64().is_some_and(|n| n >= 870), "{}", json["partial"]);
    let tree = tool.path("target/overlay/9a795735");
    let kernels = fs::read_to_string(tree.join("mlx/backend/metal/kernels/quantized.h"));
    assert!(kernels.expect("published").contains("qmv_fast_streamed"));
    // One dispatch, one reading: two could be of two policies, another thread's
    // setting between them, and the kernel of neither.
    let dispatch = fs::read_to_string(tree.join("mlx/backend/metal/quantized.cpp"));
    assert_eq!(dispatch.expect("published").matches("qmv_policy(").count(), 1);
    // The bytes below the series are upstream's: git's id of an untouched file.
    let untouched = git(&tree, &["hash-object", "mlx/backend/metal/nojit_kernels.cpp"]);
    assert_eq!(untouched, "5da78db8a3b2e98ec50dcac60478423a371e0b51");
    let offline = tool.run_with(
        &[("MLX_OVERLAY_CACHE", KEPT_CACHE), ("PATH", "/usr/bin:/bin")],
        ["apply", "--offline"],
    );
    offline.assert_status(0);
    assert!(offline.stdout().starts_with("Nothing to do: "), "{}", offline.shown());
    assert!(offline.stdout().contains("partial: "), "{}", offline.shown());
}

/// A folder for PATH that holds cargo and nothing else.
fn cargo_alone(tool: &Tool) -> String {
    let bin = tool.path("bin");
    fs::create_dir(&bin).expect("a folder");
    let cargo = Path::new(env!("CARGO"));
    for program in ["cargo", "rustc"] {
        let real = cargo.with_file_name(program);
        std::os::unix::fs::symlink(real, bin.join(program)).expect("a link");
    }
    bin.display().to_string()
}

fn cargo_home() -> String {
    let home = std::env::var("CARGO_HOME").ok();
    home.unwrap_or_else(|| format!("{}/.cargo", std::env::var("HOME").unwrap_or_default()))
}

/// Without pip there is no wheel; the crates and the bridge hold all that the
/// series and its contracts need.
fn with_cargo_alone() {
    let (_, run) = &**cargo_only();
    run.assert_status(0);
    let json = run.json();
    let parts = json["source"]["coverage"]["parts"].as_array().expect("a list");
    let wheel = parts.iter().find(|p| p["source"].as_str().is_some_and(|s| s.starts_with("wheel")));
    assert!(wheel.is_some_and(|w| w["problem"].is_string()), "{parts:#?}");
    assert_eq!(json["holds"], true);
    assert_eq!(json["partial"]["have"], 866);
}

/// On the release that took the template arguments fix, that entry has landed
/// and the rest is placed by mapping.
fn on_release() {
    let (tool, run) = &**at_release();
    run.assert_status(0);
    let json = run.json();
    assert_eq!(json["trial"], "crate:mlxrs-sys@0.2.0:vendor/mlx");
    assert_eq!(json["partial"], serde_json::Value::Null);
    let fix = &json["patches"][0];
    assert_eq!(fix["applied_upstream"], "v0.32.2");
    for hunk in fix["hunks"].as_array().expect("a list") {
        assert_eq!(hunk["class"], "landed", "{hunk:#}");
    }
    let place = "target/overlay/9a795735-at-mlxrs-sys-0.2.0-vendor-mlx/CMakeLists.txt";
    assert!(tool.path(place).exists());
    assert!(!tool.path("target/overlay/9a795735").exists(), "the pin is unmoved");
}
