//! `fetch`: the sources of a pin.

use std::fs;
use std::sync::LazyLock;

use overlay_tests_support::{Need, Suite};

use crate::project::{KEPT_CACHE, Project, git, this_pin};
use crate::tool::Run;

pub fn add(suite: &mut Suite) {
    let git_there = || [Need::program("git", "git")];
    suite.test_needing("fetch/from a clone, then from the cache", git_there(), from_clone);
    suite.test_needing("fetch/no source is exit 4 and names them all", git_there(), nowhere);
    suite.test_needing("fetch/a repository that is named and none", git_there(), mistyped);
    suite.test_needing("fetch/the login of a URL is not shown", git_there(), logins);
    suite.test_needing("fetch/the variable set to nothing", git_there(), empty_variable);
    suite.test_needing(
        "fetch/a pin that contradicts its commit is refused",
        git_there(),
        wrong_pin,
    );
    let given = Need::asked(|| match fetched() {
        run if run.status() == Some(4) => {
            Err(format!("no registry gives the pin: {}", run.stderr()))
        }
        _ => Ok(()),
    });
    suite.test_needing("fetch/released trees are told as partial", [given], partial);
}

/// What `fetch` says in a project with the pin of this repository, and no
/// upstream that answers. Asked once, and not before a test needs it.
fn fetched() -> &'static Run {
    static FETCHED: LazyLock<Run> =
        LazyLock::new(|| this_pin().run_with(&[("MLX_OVERLAY_CACHE", KEPT_CACHE)], ["fetch"]));
    &FETCHED
}

fn from_clone() {
    let project = Project::new();
    let first = project.tool.run(["fetch", "--from", "clone"]);
    first.assert_status(0);
    let told = first.stdout();
    assert!(told.starts_with(&format!("{} MLX 1.0 of 2026-08-16", &project.commit[..8])), "{told}");
    assert!(told.contains("not from the object cache: has not fetched it yet"), "{told}");
    assert!(told.contains("  from clone\n") && told.contains("whole all 2 files"), "{told}");
    let second = project.json(&["fetch", "--pin", &project.commit[..7], "--offline"]);
    assert_eq!(second["schema"], "mlx-overlay/fetch");
    assert_eq!(second["source"]["kind"], "object-cache");
    assert_eq!((&second["whole"], &second["files"]), (&true.into(), &2.into()));
    assert_eq!(second["pin"], project.commit);
    // A file URL does what its folder does.
    let full = project.tool.path("clone").display().to_string();
    for url in [
        format!("file://{full}"),
        format!("file://localhost{full}"),
        format!("file:{full}"),
        format!("file://{}", full.replace("clone", "%63lone")),
    ] {
        let other = project.tool.path("other").display().to_string();
        let run =
            project.tool.run_with(&[("MLX_OVERLAY_CACHE", &other)], ["fetch", "--from", &url]);
        run.assert_status(0);
        assert!(run.stdout().contains(&format!("from {url}\n")), "{}", run.shown());
        fs::remove_dir_all(other).unwrap();
    }
    // The variable does what --from does.
    let other = Project::new();
    let clone = other.tool.path("clone").display().to_string();
    let run = other.tool.run_with(&[("MLX_OVERLAY_UPSTREAM", &clone)], ["fetch"]);
    run.assert_status(0);
    assert!(run.stdout().contains(&format!("from {clone}")), "{}", run.shown());
}

fn nowhere() {
    let project = Project::new();
    let standing = [("MLX_OVERLAY_UPSTREAM", "no-clone")];
    let run = project.tool.run_with(&standing, ["fetch"]);
    run.assert_status(4);
    for words in
        ["the object cache: ", "no-clone: ", "http://127.0.0.1:9/x: ", "try: ", "--from DIR"]
    {
        assert!(run.stderr().contains(words), "{words:?} in {}", run.shown());
    }
    let offline = project.tool.run(["fetch", "--offline", "--format", "json"]);
    offline.assert_status(4);
    assert_eq!(offline.json()["error"]["kind"], "missing");
    assert!(offline.stderr().contains("the network is off limits"), "{}", offline.shown());
}

/// One that is named for a run is not passed over for less; one that lacks the
/// commit has answered.
fn mistyped() {
    let project = Project::new();
    fs::create_dir(project.tool.path("folder")).unwrap();
    let urls = ["http://127.0.0.1:9/y", "ssh://host/x"];
    for from in ["no-clone", "folder"].into_iter().chain(urls) {
        for command in ["fetch", "apply"] {
            let run = project.tool.run([command, "--from", from]);
            run.assert_status(4);
            let told =
                format!("error: the repository that was named cannot be used\n  because: {from}: ");
            assert!(run.stderr().starts_with(&told), "{}", run.shown());
            assert!(
                run.stderr().contains("try: name a clone of upstream, or leave --from out"),
                "{}",
                run.shown()
            );
            assert!(run.stdout().is_empty(), "{}", run.shown());
        }
    }
    for command in ["fetch", "apply"] {
        let run = project.tool.run([command, "--offline", "--from", urls[0]]);
        run.assert_status(4);
        let told = format!("{} is no folder of this machine, and the network is off", urls[0]);
        assert!(run.stderr().contains(&told), "{}", run.shown());
        assert!(run.stderr().contains("try: leave --offline out"), "{}", run.shown());
    }
    let empty = project.tool.run(["fetch", "--from", "", "--format", "json"]);
    empty.assert_status(2);
    let error = &empty.json()["error"];
    assert!(error["reason"].is_null() && error["place"] == serde_json::json!({}), "{error:#}");
    let clone = project.tool.path("clone");
    git(&clone, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", clone.display());
    let part = ["clone", "-q", "--no-checkout", "--filter", "blob:none", &url, "../part"];
    git(&clone, &part);
    let run = project.tool.run(["fetch", "--from", "part"]);
    run.assert_status(4);
    let told = "part: a partial clone, which has not all objects";
    assert!(run.stderr().contains(told), "{}", run.shown());
    // Of one without trees it is told by the same folder, whatever is read there.
    let bare = ["clone", "-q", "--no-checkout", "--filter", "tree:0", &url, "../bare/part"];
    git(&clone, &bare);
    let run = project.tool.run(["drift", "--to", "main", "--from", "bare/part"]);
    run.assert_status(4);
    assert!(run.stderr().contains(told) && !run.stderr().contains(".git"), "{}", run.shown());
    let other = project.tool.path("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    let run = project.tool.run(["fetch", "--from", "other"]);
    run.assert_status(4);
    assert!(run.stderr().contains("other: has no commit"), "{}", run.shown());
    assert!(run.stderr().contains("http://127.0.0.1:9/x: "), "{}", run.shown());
}

/// The login of a URL is nobody's to read: in a log, in a report.
fn logins() {
    let project = Project::new();
    let pin = fs::read_to_string(project.tool.path("mlx-pin.toml")).unwrap();
    project.write("mlx-pin.toml", &pin.replace("http://", "http://me:secret@"));
    let shown = "http://***@127.0.0.1:9/";
    let named = [("MLX_OVERLAY_UPSTREAM", "http://token:secret@127.0.0.1:9/y")];
    let from = ["--from", "http://token:secret@127.0.0.1:9/y"];
    let scheme = ["--from", "ftp://token:secret@127.0.0.1:9/y"];
    let scp = ["--from", "token:secret@127.0.0.1:y"];
    let file = ["--from", "file://token:secret@127.0.0.1/y"];
    let history = ["drift", "--to", "main"];
    for (variables, arguments) in [
        (&[][..], &["pin"][..]),
        (&[], &["doctor"]),
        (&named, &["doctor"]),
        (&named, &["doctor", "--offline"]),
        (&[], &["fetch"]),
        (&named, &["fetch"]),
        (&named, &["fetch", "--offline"]),
        (&named, &["apply", "--format", "json"]),
        (&[], &[&["fetch"], &from[..]].concat()),
        (&[], &[&["apply"], &scheme[..]].concat()),
        (&[], &[&["apply", "--format", "json"], &scp[..]].concat()),
        (&[], &[&["fetch", "--offline"], &scp[..]].concat()),
        (&[("MLX_OVERLAY_UPSTREAM", scp[1])], &["doctor"]),
        (&[("MLX_OVERLAY_UPSTREAM", scp[1])], &["fetch"]),
        (&[("MLX_OVERLAY_UPSTREAM", file[1])], &["doctor", "--offline"]),
        (&[], &[&["fetch"], &file[..]].concat()),
        (&[], &[&["fetch", "--offline"], &file[..]].concat()),
        (&[], &[&history, &scp[..]].concat()),
        (&[], &[&history, &file[..]].concat()),
        (&[], &history),
        (&[], &[&history, &from[..]].concat()),
    ] {
        let run = project.tool.run_with(variables, arguments);
        let told = run.stdout().to_owned() + run.stderr();
        assert!(!told.contains("secret") && !told.contains("token"), "{}", run.shown());
        let hidden = [shown, "ftp://***@", "file://***@", "***@127.0.0.1:y"];
        assert!(hidden.iter().any(|shown| told.contains(shown)), "{}", run.shown());
    }
    let json = project.json(&["pin"]);
    assert_eq!(json["upstream"], format!("{shown}x"));
    // Nor is it in what is kept.
    project.tool.run(["apply", "--from", "clone", "--out", "out"]).assert_status(0);
    let stamp = fs::read_to_string(project.tool.path("out/.overlay-stamp.json")).unwrap();
    assert!(!stamp.contains("secret"), "{stamp}");
}

/// Set to nothing it is as unset.
fn empty_variable() {
    let project = Project::new();
    let empty = [("MLX_OVERLAY_UPSTREAM", "")];
    let none = project.tool.run_with(&empty, ["fetch"]);
    none.assert_status(4);
    assert!(!none.stderr().contains("\n  : "), "{}", none.shown());
    assert!(none.stderr().contains("http://127.0.0.1:9/x: "), "{}", none.shown());
    let doctor = project.tool.run_with(&empty, ["doctor", "--offline"]);
    assert!(doctor.stdout().contains("http://127.0.0.1:9/x was not asked"), "{}", doctor.shown());
    project.tool.run_with(&empty, ["fetch", "--from", "clone"]).assert_status(0);
}

fn wrong_pin() {
    let project = Project::new();
    project.write_pin("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    let run = project.tool.run(["fetch", "--from", "clone"]);
    run.assert_status(3);
    assert!(run.stderr().contains("the pin says 4b825dc642"), "{}", run.shown());
}

fn partial() {
    let run = fetched();
    run.assert_status(0);
    let told = run.stdout();
    assert!(
        told.contains(
            "partial 876 of 933 files are here and all of them are proven; for the other 57 "
        ),
        "{}",
        run.shown()
    );
    assert!(told.contains("crate:mlxrs-sys@0.2.0:vendor/mlx: 820, and 9 by its bridge"), "{told}");
    assert!(!told.contains("whole"), "{told}");
}
