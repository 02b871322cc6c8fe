//! `overlay rebase` once something was decided: what is left out, accepted, given up.

use std::fs;

use serde_json::Value;

use crate::bump::{ACCEPT, Bump, SERIES, stop, stopped};
use crate::tool::Run;

const STATE: &str = ".overlay-rebase/state.json";

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    test("rebase/an-entry-can-be-left-out", rebase_skip);
    test("rebase/a-reason-is-kept-in-the-new-series", rebase_reasons);
    test("rebase/a-reason-beside-a-refused-answer-is-refused-too", rebase_reason_refused);
    test("rebase/a-broken-contract-is-left-out-once-accepted", rebase_broken);
    test("rebase/status-tells-programs-too", rebase_in_status);
    test("rebase/given-up-all-is-as-it-was", rebase_abort);
    test("rebase/what-it-did-not-put-there-is-not-given-up", rebase_strangers);
    test("rebase/a-series-edited-on-the-way-is-refused", rebase_edited);
    test("rebase/a-moved-pin-can-still-be-given-up", rebase_abort_moved);
    test("rebase/the-target-keeps-its-name", rebase_named);
}

fn rebase_skip() {
    let bump = stopped();
    bump.run(&["rebase", "--skip", "other"]).assert_status(2);
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
    let series = bump.read(&format!("{}/series.toml", bump.folder(4)));
    assert!(!series.contains("\"ours\"") && series.contains("\"other\""), "{series}");
    assert_eq!(bump.drift(4).0, Some(0));
}

fn rebase_reasons() {
    let bump = Bump::new();
    let derive = "derive helper_copy from helper=the copy may follow";
    bump.branch("side", 2, "Change helper (#40)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::write(clone.join("q.h"), text.replace("a + 1", "a + 2")).unwrap();
    });
    bump.run(&["rebase", "--to", "side", "--accept", ACCEPT, "--accept", derive]).assert_status(0);
    let (_, series) = bump.series();
    let commit = bump.commit_of("side");
    let given = |reason: &str| {
        format!("acknowledged = [{{ target = \"{commit}\", reason = \"{reason}\" }}]")
    };
    let watch = format!("reason = \"ours repeats it\"\n{}\n", given("ours sums the same"));
    assert!(series.contains(&watch), "{series}");
    let rule = series.lines().find(|l| l.starts_with("derive = ")).unwrap();
    assert!(rule.contains(&given("the copy may follow")), "{rule}");
    // It is said of this bump alone: the next asks again.
    bump.commit("side", "Split it again (#41)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::write(clone.join("q.h"), text.replace("i += 2", "i += 4")).unwrap();
    });
    let run = bump.run(&["rebase", "--to", "side"]);
    run.assert_status(1);
    let again = "watch impl=still the same";
    bump.run(&["rebase", "--continue", "--accept", again]).assert_status(0);
    let (_, series) = bump.series();
    assert!(!series.contains("ours sums the same") && !series.contains("may follow"), "{series}");
    assert!(series.contains("still the same"), "{series}");
}

fn rebase_reason_refused() {
    let bump = stopped();
    let before = bump.read(".overlay-rebase/state.json");
    // The markers are still there.
    bump.run(&["rebase", "--continue", "--accept", ACCEPT]).assert_status(1);
    assert_eq!(bump.read(".overlay-rebase/state.json"), before);
}

/// What the new pin has not, nothing can be compared with there.
fn rebase_broken() {
    let bump = Bump::new();
    let series = format!("{}/series.toml", bump.folder(0));
    let more =
        "\n# What we lean on.\n\n# The sum.\n[[watch]]\nfile = \"q.h\"\nfunction = \"impl\"\n";
    let text = SERIES.replace("\n[[watch]]\nfile = \"q.h\"\nfunction = \"impl\"\n", more)
        + "\n[[watch]]\nfile = \"q.h\"\nfunction = \"fixed\"\nreason = \"we call it\"\n";
    bump.write(&series, &text);
    bump.branch("side", 0, "Rename impl (#61)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::write(clone.join("q.h"), text.replace("impl", "sum_of")).unwrap();
    });
    let cite = "cite q.h:8=the docs were changed";
    let accept = ["--accept", ACCEPT, "--accept", cite];
    let dry = [&["rebase", "--dry-run", "--to", "side"], &accept[..]].concat();
    let run = bump.run(&dry);
    run.assert_status(0);
    assert!(run.stdout().contains("left out   watch impl\n"), "{}", run.shown());
    let run = bump.run(&[&dry[..], &["--format", "markdown"]].concat());
    assert!(
        run.stdout().contains("- **left out** cite q.h:8: `impl` is gone; "),
        "{}",
        run.shown()
    );
    let json = bump.run(&[&dry[..], &["--format", "json"]].concat()).json();
    let impl_at = &json["plan"]["contracts"][0];
    assert_eq!((&impl_at["status"], &impl_at["found"]), (&"acknowledged".into(), &"broken".into()));
    let run = bump.run(&[&["rebase", "--to", "side"], &accept[..]].concat());
    run.assert_status(0);
    assert!(run.stdout().contains("left out   cite q.h:8\n"), "{}", run.shown());
    assert!(run.stdout().contains("accepted: ours sums the same"), "{}", run.shown());
    let (_, new) = bump.series();
    assert!(!new.contains("impl") && !new.contains("[[cite]]"), "{new}");
    let heading = "\n# What we lean on.\n\n[[watch]]\nfile = \"q.h\"\nfunction = \"fixed\"\n";
    assert!(new.contains(heading) && !new.contains("# The sum."), "{new}");
    // All is held at its own pin, and the next bump is none the wiser.
    let run = bump.run(&["drift", "--to", "side", "--format", "json"]);
    run.assert_status(0);
    assert_eq!(run.json()["findings"], serde_json::json!([]), "{}", run.shown());
    bump.commit("side", "Say so (#62)", |clone| {
        fs::write(clone.join("more.txt"), "more\n").unwrap();
    });
    bump.run(&["rebase", "--to", "side"]).assert_status(0);
    // A series that has one all the same, accepted by hand.
    let (folder, new) = bump.series();
    let pin = bump.commit_of("side");
    let broken = format!(
        "\n[[watch]]\nfile = \"q.h\"\nfunction = \"impl\"\nreason = \"r\"\n\
         acknowledged = [{{ target = \"{pin}\", reason = \"gone\" }}]\n"
    );
    bump.write(&format!("{folder}/series.toml"), &(new + &broken));
    bump.commit("side", "Say more (#63)", |clone| {
        fs::write(clone.join("more.txt"), "more\nand more\n").unwrap();
    });
    for args in [&["drift", "--to", "side"][..], &["rebase", "--to", "side"]] {
        let run = bump.run(args);
        assert_ne!(run.status(), Some(0), "{}", run.shown());
        assert!(run.stderr().contains("watch impl is broken there already"), "{}", run.shown());
        assert!(!run.shown().contains("(#6"), "nobody upstream is to blame: {}", run.shown());
    }
}

fn rebase_in_status() {
    let bump = stopped();
    let run = bump.run(&["status", "--format", "json"]);
    run.assert_status(1);
    let json = run.json();
    let (rebase, to) = (&json["rebase"], &bump.commits[4]);
    assert_eq!((&rebase["to"], &rebase["stopped"]), (&to.as_str().into(), &"ours".into()));
    assert_eq!(json["tree"], serde_json::Value::Null, "nothing is published yet");
    bump.run(&["apply"]).assert_status(0);
    let json = bump.run(&["status", "--format", "json"]).json();
    assert_eq!((&json["rebase"]["stopped"], &json["whole"]), (&"ours".into(), &true.into()));
    bump.run(&["rebase", "--abort"]).assert_status(0);
    let json = bump.run(&["status", "--format", "json"]).json();
    assert_eq!((&json["rebase"], &json["whole"]), (&serde_json::Value::Null, &true.into()));
}

fn rebase_abort() {
    let bump = Bump::new();
    let before = bump.files();
    let bump = stop(bump);
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.files(), before, "nothing is left of it");
    bump.run(&["rebase", "--abort"]).assert_status(2);
    bump.run(&["drift", "--to", &bump.commits[1]]).assert_status(0);
}

/// What ends a stop takes the work folder away, and no file of somebody else's with it.
fn rebase_strangers() {
    let places = ["todo.txt", "work/sub/notes.txt", "work/q.h.orig", "sides/mine.txt"];
    for (end, steps) in
        [("--abort", &["rebase", "--abort"][..]), ("--skip", &["rebase", "--skip", "ours"])]
    {
        let bump = stopped();
        for place in places {
            let mine = format!(".overlay-rebase/{place}");
            bump.write(&mine, "mine\n");
            let before = bump.files();
            let run = bump.run(steps);
            run.assert_status(3);
            assert!(run.stderr().contains(&format!("{place}: ")), "{}", run.shown());
            assert!(run.stderr().contains("it would be lost; move it away"), "{}", run.shown());
            let mut after = bump.files();
            after.insert(".overlay-rebase/lock".into(), before[".overlay-rebase/lock"].clone());
            assert_eq!(after, before, "{end} with {place}");
            fs::remove_file(bump.tool.path(&mine)).unwrap();
        }
        // Both are named where there are two.
        bump.write(".overlay-rebase/todo.txt", "mine\n");
        bump.write(".overlay-rebase/work/notes.txt", "mine\n");
        let run = bump.run(steps);
        assert!(
            run.stderr().contains("and so ") && run.stderr().contains("work/notes.txt"),
            "{}",
            run.shown()
        );
        fs::remove_file(bump.tool.path(".overlay-rebase/todo.txt")).unwrap();
        fs::remove_file(bump.tool.path(".overlay-rebase/work/notes.txt")).unwrap();
        bump.run(steps).assert_status(0);
        assert!(!bump.tool.path(".overlay-rebase").exists());
    }
}

fn rebase_edited() {
    let bump = stopped();
    let series = format!("{}/series.toml", bump.folder(0));
    bump.write(&series, &SERIES.replace("we need it", "we do not"));
    let run = bump.run(&["rebase", "--skip", "ours"]);
    run.assert_status(3);
    assert!(run.stderr().contains("the series was changed since"), "{}", run.shown());
    bump.write(&series, SERIES);
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
}

fn rebase_abort_moved() {
    let bump = Bump::new();
    let before = bump.files();
    bump.run(&["rebase", "--to", &bump.commits[1]]).assert_status(0);
    // As a kill right after the pin moved leaves it.
    bump.write(".overlay-rebase/state.json", &bump.moved_state(1));
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.files(), before);
}

/// A branch may lead elsewhere by the time the rebase goes on; its name is said all the same.
fn rebase_named() {
    let bump = stopped();
    let head = |run: &Run| run.stdout().lines().next().unwrap_or_default().to_owned();
    let begun = format!("{} (main, ", &bump.commits[4][..8]);
    bump.commit("main", "Later (#15)", |clone| fs::write(clone.join("more.txt"), "x").unwrap());
    let run = bump.run(&["rebase", "--skip", "ours"]);
    run.assert_status(0);
    assert!(head(&run).contains(&begun), "{}", run.shown());
    let bump = Bump::new();
    bump.run(&["rebase", "--to", "main~2"]).assert_status(1);
    // As an older version wrote it.
    let mut state: Value = serde_json::from_str(&bump.read(STATE)).unwrap();
    assert!(state.as_object_mut().unwrap().remove("contracts").is_some());
    bump.write(STATE, &state.to_string());
    let told = bump.run(&["status"]).stderr().to_owned();
    assert!(told.contains("that do not hold; `"), "{told}");
    let standing = bump.run(&["rebase"]);
    assert!(standing.stdout().contains("rebase --continue\n"), "{}", standing.shown());
    let run = bump.run(&["rebase", "--continue", "--accept", ACCEPT, "--format", "json"]);
    assert_eq!(run.json()["target"]["name"], "main~2", "{}", run.shown());
}
