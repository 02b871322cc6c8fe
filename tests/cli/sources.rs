//! `fetch`, `pin` and `doctor`.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use overlay_tests_support::{Need, Suite};

use crate::project::{KEPT_CACHE, Project, git, this_pin};
use crate::tool::{Run, Tool};

pub fn add(suite: &mut Suite) {
    let git_there = || [Need::program("git", "git")];
    suite.test_needing("fetch/from a clone, then from the cache", git_there(), from_clone);
    suite.test_needing("fetch/damage in the cache is mended", git_there(), damage);
    suite.test_needing("fetch/folders where the cache has files", git_there(), folders);
    suite.test_needing("apply/damage in the cache is mended", git_there(), damage_when_laying);
    suite.test_needing("fetch/no source is exit 4 and names them all", git_there(), nowhere);
    suite.test_needing("fetch/a repository that is named and none", git_there(), mistyped);
    suite.test_needing("fetch/the login of a URL is not shown", git_there(), logins);
    suite.test_needing("fetch/the variable set to nothing", git_there(), empty_variable);
    suite.test_needing("fetch/a cache that cannot be written is named", git_there(), no_cache);
    suite.test_needing(
        "fetch/a cache that is no full path is refused",
        git_there(),
        relative_cache,
    );
    suite.test_needing(
        "fetch/a pin that contradicts its commit is refused",
        git_there(),
        wrong_pin,
    );
    suite.test_needing("pin/shows and checks", git_there(), pin);
    suite.test_needing("pin/faults have their exit status and place", git_there(), pin_faults);
    suite.test("pin/outside a project", no_project);
    suite.test_needing("doctor/says what is missing and what mends it", git_there(), doctor);
    suite.test_needing("doctor/reads the pin's objects", git_there(), doctor_of_objects);
    suite.test_needing("doctor/reads a clone of upstream", git_there(), doctor_of_clones);
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
    // The variable does what --from does.
    let other = Project::new();
    let clone = other.tool.path("clone").display().to_string();
    let run = other.tool.run_with(&[("MLX_OVERLAY_UPSTREAM", &clone)], ["fetch"]);
    run.assert_status(0);
    assert!(run.stdout().contains(&format!("from {clone}")), "{}", run.shown());
}

fn damage() {
    let project = Project::new();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    spoil_pack(&project, |length| length / 2);
    let mended = project.tool.run(["fetch", "--from", "clone"]);
    mended.assert_status(0);
    assert!(
        mended.stderr().contains("the repository is damaged; it is fetched again"),
        "{}",
        mended.shown()
    );
    assert!(mended.stdout().contains("whole all 2 files"), "{}", mended.shown());
}

/// A mark, a lock, a repository: whatever stands there is made anew.
fn folders() {
    let project = Project::new();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    let mut items = fs::read_dir(project.tool.path(".cache/git")).unwrap();
    let is_lock = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "lock");
    let lock = items.find_map(|item| Some(item.unwrap().path()).filter(is_lock)).unwrap();
    let store = lock.with_extension("git");
    let mark = store.join("refs/mlx-overlay/whole").join(&project.commit);
    for path in [&mark, &lock] {
        fs::remove_file(path).unwrap();
        fs::create_dir_all(path.join("below")).unwrap();
    }
    let again = |options: &[&str], from: &str| {
        let run = project.tool.run([&["fetch"], options].concat());
        run.assert_status(0);
        assert!(run.stdout().contains(from), "{}", run.shown());
    };
    again(&["--from", "clone"], "from clone");
    again(&["--offline"], "from the object cache");
    assert!(mark.is_file() && lock.is_file());
    fs::remove_dir_all(&store).unwrap();
    fs::write(&store, "").unwrap();
    again(&["--from", "clone"], "from clone");
}

/// What nobody read before is found damaged when the tree is laid.
fn damage_when_laying() {
    let project = Project::new();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    // The last object is a file's, and the pack's own checksum has 20 bytes.
    spoil_pack(&project, |length| length - 26);
    let refused = project.tool.run(["apply", "--offline"]);
    refused.assert_status(4);
    assert!(refused.stderr().contains("the object cache: "), "{}", refused.shown());
    assert!(refused.stderr().contains("is damaged"), "{}", refused.shown());
    assert!(
        refused.stderr().contains("without --offline it is fetched again"),
        "{}",
        refused.shown()
    );
    let place = format!("target/overlay/{}", &project.commit[..8]);
    assert!(!project.tool.path(&place).exists());
    let laid = project.tool.run(["apply", "--from", "clone"]);
    laid.assert_status(0);
    assert!(laid.stderr().contains("is damaged; it is fetched again"), "{}", laid.shown());
    assert!(laid.stdout().contains("from clone"), "{}", laid.shown());
}

pub fn spoil_pack(project: &Project, at: impl Fn(usize) -> usize) {
    let packs = walk(&project.tool.path(".cache"), "pack");
    let mut bytes = fs::read(&packs[0]).unwrap();
    let at = at(bytes.len());
    bytes[at..at + 4].fill(0xff);
    fs::remove_file(&packs[0]).unwrap();
    fs::write(&packs[0], bytes).unwrap();
}

fn walk(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
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
        (&[], &history),
        (&[], &[&history, &from[..]].concat()),
    ] {
        let run = project.tool.run_with(variables, arguments);
        let told = run.stdout().to_owned() + run.stderr();
        assert!(!told.contains("secret") && !told.contains("token"), "{}", run.shown());
        assert!(told.contains(shown) || told.contains("ftp://***@"), "{}", run.shown());
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

fn no_cache() {
    let project = Project::new();
    project.write("file", "");
    let below = project.tool.path("file/below").display().to_string();
    let variables = [("MLX_OVERLAY_CACHE", below.as_str())];
    for args in
        [&["fetch", "--from", "clone"][..], &["apply", "--from", "clone"], &["fetch", "--offline"]]
    {
        let run = project.tool.run_with(&variables, args);
        run.assert_status(5);
        let told = format!(
            "error: the cache folder `{below}` cannot be written; set MLX_OVERLAY_CACHE or \
             XDG_CACHE_HOME to a folder of yours\n  because: Not a directory"
        );
        assert!(run.stderr().starts_with(&told), "{}", run.shown());
    }
}

/// A relative one would be another folder for the tool and for a build script.
fn relative_cache() {
    let project = Project::new();
    let run = project.tool.run_with(
        &[("MLX_OVERLAY_CACHE", "near"), ("XDG_CACHE_HOME", "/nowhere")],
        ["fetch", "--from", "clone"],
    );
    run.assert_status(2);
    let told = "error: MLX_OVERLAY_CACHE is `near`: it must be a full path";
    assert!(run.stderr().starts_with(told), "{}", run.shown());
}

fn wrong_pin() {
    let project = Project::new();
    project.write_pin("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    let run = project.tool.run(["fetch", "--from", "clone"]);
    run.assert_status(3);
    assert!(run.stderr().contains("the pin says 4b825dc642"), "{}", run.shown());
}

fn pin() {
    let project = Project::new();
    let run = project.tool.run(["pin"]);
    run.assert_status(0);
    let told = run.stdout();
    assert!(told.starts_with(&format!("{} the current pin", project.commit)), "{told}");
    assert!(told.contains("patches/listing: 2 files, hashes to the tree"), "{told}");
    assert!(told.contains("cache     nothing yet"), "{told}");
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    let below = project.tool.path("patches").display().to_string();
    let json = project.json(&["-C", &below, "pin"]);
    assert_eq!((&json["cached"], &json["listed_files"]), (&true.into(), &2.into()));
    fs::create_dir(project.tool.path("patches/01234567")).unwrap();
    let stray = project.tool.run(["pin"]);
    stray.assert_status(1);
    assert!(stray.stdout().contains("patches/01234567: no pin belongs"), "{}", stray.shown());
}

fn pin_faults() {
    let place = |project: &Project, status: i32| {
        let run = project.tool.run(["pin", "--format", "json"]);
        run.assert_status(status);
        let error = run.json()["error"].clone();
        let file = error["place"]["file"].as_str().unwrap_or_default().to_owned();
        let name = file.rsplit('/').next().unwrap_or_default().to_owned();
        (name, error["place"]["line"].as_u64(), run)
    };
    let project = Project::new();
    let facts = fs::read_to_string(project.tool.path("mlx-pin.toml")).unwrap();
    project.write("mlx-pin.toml", &facts.replace("version", "vershun"));
    let (file, line, run) = place(&project, 3);
    assert_eq!((file.as_str(), line), ("mlx-pin.toml", Some(4)), "{}", run.shown());
    // A line is told once.
    assert_eq!(run.stderr().matches("mlx-pin.toml:4").count(), 1, "{}", run.shown());
    project.write("mlx-pin.toml", &facts);

    let series = format!("patches/{}/series.toml", &project.commit[..8]);
    let entry = "[[entry]]\nname = \"a\"\npatch = \"a.patch\"\ngroup = \"g\"\nreason = \"r\"\nforwarded = \"no\"\n";
    project.write(&series, &format!("schema = 1\n{entry}"));
    let (file, line, run) = place(&project, 3);
    assert_eq!((file.as_str(), line), ("series.toml", Some(4)), "{}", run.shown());
    assert!(run.stderr().contains("because: No such file"), "{}", run.shown());
    // A folder is no patch, and no other file of a project.
    let folder = |name: &str| {
        let path = project.tool.path(name);
        let file = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        fs::create_dir(&path).unwrap();
        let found = place(&project, 3);
        fs::remove_dir(&path).unwrap();
        file.into_iter().for_each(|bytes| fs::write(&path, bytes).unwrap());
        assert!(found.2.stderr().contains("because: Is a directory"), "{}", found.2.shown());
        (found.0, found.1)
    };
    assert_eq!(folder(&series.replace("series.toml", "a.patch")), ("series.toml".into(), Some(4)));
    assert_eq!(folder(&series), ("series.toml".into(), None));
    project.write(&series, "schema = 1\n");
    assert_eq!(folder("patches/listing"), ("listing".into(), None));
    project.write(&series, &format!("schema = 1\n{entry}"));
    // Every patch is parsed, and told as `apply` tells it.
    for (text, line) in
        [("", 1), ("garbage\n", 1), ("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n", 5)]
    {
        project.write(&series.replace("series.toml", "a.patch"), text);
        let (file, found, run) = place(&project, 3);
        assert_eq!((file.as_str(), found), ("a.patch", Some(line)), "{}", run.shown());
        let applied = project.json(&["apply", "--from", "clone"]);
        assert_eq!(applied["error"], run.json()["error"], "{applied:#}");
    }
    fs::remove_file(project.tool.path(series.replace("series.toml", "a.patch"))).unwrap();
    let bridge = "[[snapshot]]\nsource = \"crate:a@1.0.0\"\ntree = \"9a795735ad9a42664e08f42361b405ed570bcf1a\"\n\
                  bridge = \"patches/none.patch\"\n";
    project.write("mlx-pin.toml", &format!("{facts}{bridge}"));
    let (file, line, run) = place(&project, 3);
    assert_eq!((file.as_str(), line), ("mlx-pin.toml", Some(11)), "{}", run.shown());
    project.write("mlx-pin.toml", &facts);
    project.write(&series, "schema = 1\n");

    let listing = fs::read_to_string(project.tool.path("patches/listing")).unwrap();
    project.write("patches/listing", &listing.replace("a.txt", "e.txt"));
    let (file, line, run) = place(&project, 3);
    assert_eq!((file.as_str(), line), ("listing", Some(2)), "{}", run.shown());
    project.write("patches/listing", &listing.replace("a.txt", "b.txt"));
    let (file, line, run) = place(&project, 3);
    assert_eq!((file.as_str(), line), ("listing", None), "{}", run.shown());
    assert!(run.stderr().contains("listing: hashes to tree"), "{}", run.shown());
    project.write("patches/listing", &listing);
    project.tool.run(["pin", "--pin", "0123456"]).assert_status(2);
    for stray in ["x.PATCH", "all.mbox"] {
        let path = series.replace("series.toml", stray);
        project.write(&path, "x");
        let (file, _, run) = place(&project, 3);
        assert_eq!(file, stray);
        assert!(run.stderr().contains("nobody lists this patch"), "{}", run.shown());
        fs::remove_file(project.tool.path(path)).unwrap();
    }
    project.tool.run(["pin"]).assert_status(0);
    // A crate's version must be whole, for cargo takes any that fits.
    let run = project.tool.run(["apply", "--at", "crate:mlxrs-sys@0.2:vendor/mlx"]);
    run.assert_status(2);
    assert!(run.stderr().contains("a crate's has three numbers"), "{}", run.shown());
}

fn no_project() {
    let run = Tool::new().run(["pin"]);
    run.assert_status(2);
    assert!(run.stderr().contains("no mlx-pin.toml in"), "{}", run.shown());
}

fn doctor() {
    let project = Project::new();
    let clone = project.tool.path("clone").display().to_string();
    let with = |variables: &[(&str, &str)]| {
        let run = project.tool.run_with(variables, ["doctor", "--offline", "--format", "json"]);
        (run.status(), run.json())
    };
    let finding = |json: &serde_json::Value, name: &str| {
        let findings = json["findings"].as_array().unwrap();
        findings.iter().find(|f| f["name"] == name).unwrap().clone()
    };
    let (status, well) = with(&[("MLX_OVERLAY_UPSTREAM", &clone), ("PATH", "")]);
    assert_eq!((status, &well["well"]), (Some(0), &true.into()), "{well}");
    assert_eq!(finding(&well, "upstream")["found"], clone);
    assert!(finding(&well, "cmake")["mend"].as_str().unwrap().contains("install"));
    assert!(finding(&well, "cache folder")["found"].is_string());
    // Neither upstream nor cargo: there is no way to the pin.
    let (status, ill) = with(&[("PATH", "")]);
    assert_eq!((status, &ill["well"]), (Some(1), &false.into()), "{ill}");
    assert!(finding(&ill, "upstream")["why"].as_str().unwrap().contains("--offline"));
    let text = project.tool.run_with(&[("PATH", "")], ["doctor"]);
    text.assert_status(1);
    assert!(text.stdout().contains("missing upstream"), "{}", text.shown());
    assert!(text.stdout().contains("try: "), "{}", text.shown());
}

/// A clone is taken for one when all of the pin was read there.
fn doctor_of_clones() {
    let project = Project::new();
    let (clone, part) = (project.tool.path("clone"), project.tool.path("part"));
    git(&clone, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", clone.display());
    let options = ["clone", "-q", "--no-checkout", "--filter", "blob:none", &url, "../part"];
    git(&clone, &options);
    let run = |clone: &Path| {
        let named = clone.display().to_string();
        let variables = [("MLX_OVERLAY_UPSTREAM", &*named), ("PATH", "")];
        project.tool.run_with(&variables, ["doctor", "--offline"])
    };
    run(&clone).assert_status(0);
    let partial = run(&part);
    partial.assert_status(1);
    assert!(partial.stdout().contains("a partial clone, which has not all"), "{}", partial.shown());
    // A file's object that is another's.
    let blob = git(&clone, &["rev-parse", "HEAD:d/b.txt"]);
    let other = git(&clone, &["rev-parse", "HEAD:a.txt"]);
    let object = |id: &str| clone.join(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::remove_file(object(&blob)).unwrap();
    fs::copy(object(&other), object(&blob)).unwrap();
    let flipped = run(&clone);
    flipped.assert_status(1);
    assert!(flipped.stdout().contains("the repository is damaged"), "{}", flipped.shown());
}

/// What is in the cache is read; outside of a project there is nothing to look for.
fn doctor_of_objects() {
    let objects = |tool: &Tool| {
        let run = tool.run(["doctor", "--offline", "--format", "json"]);
        let json = run.json();
        let findings = json["findings"].as_array().unwrap();
        findings.iter().find(|f| f["name"] == "the pin's objects").unwrap().clone()
    };
    let outside = objects(&Tool::new());
    assert_eq!(outside["why"], "there is no pin here to look for");
    assert!(outside["mend"].as_str().unwrap().starts_with("cd "), "{outside}");
    Tool::new().run(["doctor", "--offline"]).assert_status(1);
    let project = Project::new();
    let none = objects(&project.tool);
    assert_eq!(
        (&none["why"], &none["mend"]),
        (&"not all in the cache yet".into(), &"overlay fetch".into())
    );
    let laid_here = || {
        let run = project.tool.run(["doctor", "--offline"]);
        run.stdout().contains("cannot be fetched and laid here")
    };
    let before = laid_here();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    let there = objects(&project.tool);
    let store = there["found"].as_str().unwrap().to_owned();
    assert!(
        store.ends_with(".git") && there.get("why").is_none() && there.get("mend").is_none(),
        "{there}"
    );
    // The mark stands, and a file's object is damaged.
    spoil_pack(&project, |length| length - 26);
    let damaged = objects(&project.tool);
    assert!(damaged["why"].as_str().unwrap().contains("the repository is damaged"), "{damaged}");
    assert_eq!(damaged["mend"], "overlay fetch");
    // What is damaged is worth as much as what is not there.
    assert_eq!(laid_here(), before);
    let missing = ["apply", "--offline", "--from", "nowhere"];
    project.tool.run(missing).assert_status(4);
    assert_eq!(objects(&project.tool), damaged, "nothing replaces it, so it stays");
    let outside = Tool::new();
    let at = project.tool.path("").display().to_string();
    let from_outside = outside.run_with(
        &[("MLX_OVERLAY_CACHE", &project.tool.path(".cache").display().to_string())],
        ["-C", &at, "doctor", "--offline"],
    );
    let mend = format!("try: overlay -C {at} fetch\n");
    assert!(from_outside.stdout().contains(&mend), "{}", from_outside.shown());
    // What a drift fetched of the history has them too.
    let mirror = format!("{}.history.git", store.strip_suffix(".git").unwrap());
    git(&project.tool.path("clone"), &["clone", "-q", "--bare", ".", &mirror]);
    assert_eq!(objects(&project.tool)["found"], mirror);
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
