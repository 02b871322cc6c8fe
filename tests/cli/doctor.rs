//! `doctor`.

use std::fs;
use std::path::Path;

use overlay_tests_support::{Need, Suite};

use crate::cache::spoil_pack;
use crate::project::{Project, git};
use crate::tool::Tool;

pub fn add(suite: &mut Suite) {
    let git_there = || [Need::program("git", "git")];
    suite.test_needing("doctor/says what is missing and what mends it", git_there(), doctor);
    suite.test_needing("doctor/reads the pin's objects", git_there(), doctor_of_objects);
    suite.test_needing("doctor/reads a clone of upstream", git_there(), doctor_of_clones);
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
