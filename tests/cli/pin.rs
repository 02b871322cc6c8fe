//! `pin`.

use std::fs;

use overlay_tests_support::{Need, Suite};

use crate::project::Project;
use crate::tool::Tool;

pub fn add(suite: &mut Suite) {
    let git_there = || [Need::program("git", "git")];
    suite.test_needing("pin/shows and checks", git_there(), pin);
    suite.test_needing("pin/faults have their exit status and place", git_there(), pin_faults);
    suite.test("pin/outside a project", no_project);
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
    // Who has git objects is told too.
    let applied = project.json(&["apply", "--from", "clone"]);
    assert_eq!(applied["error"], run.json()["error"], "{applied:#}");
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
