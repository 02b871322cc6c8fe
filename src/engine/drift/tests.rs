mod law;

use super::*;
use crate::contract::{Cite, Kernel, Watch};
use crate::derive;
use crate::git::{At, PathSet};
use crate::report::HunkClass;
use crate::series::{Entry, Forwarded};
use crate::snapshot::{File, MemoryTree, Mode, TreePath};

const HEADER: &str = "\
int one() {
  return 1;
}

int two() {
  int a = 2;
  int b = 3;
  return a * b;
}

int three() {
  int x = 0;
  x += 1;
  return x;
}
";

const PATCH: &str = "\
--- a/q.h
+++ b/q.h
@@ -2,3 +2,4 @@
   return 1;
 }
 
+// ours
 int two() {
@@ -10,3 +11,3 @@
 
 int three() {
-  int x = 0;
+  int x = 5;
   x += 1;
--- a/other.h
+++ b/other.h
@@ -1,2 +1,3 @@
 a
+ours
 b
";

impl Identified for MemoryTree {
    fn at(&self, paths: &PathSet) -> Result<Vec<Option<At>>, DriftError> {
        paths.paths().iter().map(|path| unit::at(self, path)).collect()
    }

    fn names(&self) -> Result<ObjectId, DriftError> {
        let names: Vec<String> = self.paths().iter().map(ToString::to_string).collect();
        Ok(ObjectId::of_blob(names.join("\n").as_bytes()))
    }
}

fn path(name: &str) -> TreePath {
    TreePath::new(name).expect("a plain path")
}

fn tree(header: &str) -> MemoryTree {
    let file = |text: &str| File::new(Mode::Regular, text.as_bytes());
    MemoryTree([(path("q.h"), file(header)), (path("other.h"), file("a\nb\n"))].into())
}

fn entry(name: &str, change: Change) -> Entry {
    Entry {
        name: name.into(),
        change,
        group: "metal".into(),
        reason: "it must".into(),
        forwarded: Forwarded::No,
        applied_upstream: None,
        place: crate::stored::Place { file: "series.toml".into(), line: 1 },
    }
}

fn series() -> Series {
    let bytes = PATCH.replace("@@ -2,3 +2,4", "@@ -2,4 +2,5").replace("-10,3 +11,3", "-10,4 +11,4");
    let rule: derive::Rule = toml::from_str(
        "file = 'q.h'\nfunction = 'three'\nname = 'three_reg'\nreplace = [{ from = 'x', to = 'y' }]",
    )
    .expect("a rule");
    let watch: Watch = toml::from_str("file='q.h'\nfunction='two'\nreason='r'").expect("a watch");
    let cite: Cite = toml::from_str("at='q.h:8'\nsymbol='two'\nreason='r'").expect("a citation");
    let note = toml::from_str("entry='ours'\nfile='q.h'\nremoves=['int x = 0;']\nreason='r'");
    let contracts = contract::Contracts {
        watch: vec![watch],
        kernel: Vec::<Kernel>::new(),
        cite: vec![cite],
        note: vec![note.expect("a note")],
    };
    let ours = Change::Patch { path: "0001-ours.patch".into(), bytes: bytes.into() };
    let entries = vec![entry("ours", ours), entry("copy", Change::Derive(rule))];
    Series { folder: "patches/x".into(), entries, contracts }
}

fn judged(header: &str) -> Judgement {
    judge(&series(), &tree(HEADER), &tree(header), "new").expect("memory is read")
}

fn states(header: &str) -> Vec<(String, String)> {
    let judged = judged(header);
    let shown = |(item, state): (Item, State)| (item.to_string(), state.to_string());
    judged.states().into_iter().map(shown).filter(|(_, s)| s != "exact" && s != "held").collect()
}

fn is(item: &str, state: &str) -> (String, String) {
    (item.into(), state.into())
}

#[test]
fn at_its_pin_all_is_exact() {
    assert_eq!(states(HEADER), []);
    let judged = judged(HEADER);
    assert!(judged.require_pin().is_ok() && judged.findings(None).is_empty());
    // Every item has exactly one state, and none is left out.
    let items: Vec<String> = judged.states().iter().map(|(i, _)| i.to_string()).collect();
    assert_eq!(
        items,
        [
            "ours: q.h",
            "ours: other.h",
            "ours, hunk 1",
            "ours, hunk 2",
            "ours, hunk 3",
            "copy (derived)",
            "watch two",
            "cite q.h:8",
            "derive three_reg from three",
            "note ours: q.h",
        ]
    );
}

#[test]
fn lines_above_move_what_is_below() {
    let header = HEADER.replace("int b = 3;", "int b =\n      3;");
    assert_eq!(states(&header), [is("ours, hunk 2", "moved"), is("copy (derived)", "moved")]);
    assert!(judged(&header).holds());
}

#[test]
fn a_change_that_applies_and_means_something_else_is_found() {
    let header = HEADER.replace("a * b", "a + b");
    assert_eq!(states(&header), [is("watch two", "changed"), is("cite q.h:8", "changed")]);
    assert!(!judged(&header).holds());
    let header = HEADER.replace("return x;", "return x * 2;");
    assert_eq!(states(&header), [is("derive three_reg from three", "changed")]);
    let judged = judged(&header);
    let derived = judged.contracts.iter().find(|v| v.kind == ContractKind::Derive);
    let diff = &derived.expect("there is one").diff;
    assert_eq!(diff[0], "@@ -12,5 +12,5 @@", "{diff:#?}");
    for line in ["-  return x;", "+  return x * 2;"] {
        assert!(diff.contains(&line.into()), "{line} in {diff:#?}");
    }
}

#[test]
fn a_landed_hunk_is_told_and_asks_nobody() {
    let header = HEADER.replace("int x = 0;", "int x = 5;");
    let found = states(&header);
    assert_eq!(found[0], is("ours, hunk 2", "landed"));
    let finding = &judged(&header).findings(None)[0];
    assert!(!finding.needs_person);
}

#[test]
fn what_is_gone_is_named() {
    let gone = HEADER.replace("int three", "int drei");
    let found = judged(&gone);
    let why = found.why(&Item::Derived { entry: "copy".into() });
    assert_eq!(why.as_deref(), Some("`q.h`: no definition of `three` is found"));
}

fn parts(series: &Series) -> Parts {
    let pin = tree(HEADER);
    let at_pin = judge(series, &pin, &pin, "new").expect("memory is read");
    Parts::new(series, &pin, &at_pin).expect("memory is read")
}

fn version<'t>(number: u8, tree: &'t MemoryTree) -> Result<Version<'t>, ReadError> {
    let commit = ObjectId::from_raw([number; 20]);
    let cause = Cause::new(commit, &format!("change (#{number})"), "2026-09-01");
    Ok(Version { cause, tree: Box::new(tree.clone()), touched: true })
}

#[test]
fn a_trace_says_when_each_item_moved_broke_and_healed() {
    let moved = HEADER.replace("  return 1;", "  return 1;\n  // more");
    let broken = moved.replace("x = 0", "x = 7").replace("a * b", "a + b");
    let healed = broken.replace("x = 7", "x = 0");
    let elsewhere = {
        let mut tree = tree(&healed);
        tree.0.insert(path("readme"), File::new(Mode::Regular, &b"x"[..]));
        tree
    };
    let trees = [tree(HEADER), tree(&moved), tree(&broken), tree(&healed), elsewhere];
    let versions = trees.iter().enumerate().map(|(i, t)| version(u8::try_from(i).expect("few"), t));
    let found = trace(parts(&series()), &tree(HEADER), versions, "new").expect("memory is read");
    assert_eq!((found.commits, found.touching), (5, 3));
    let shown: Vec<String> = found
        .steps
        .iter()
        .flat_map(|s| {
            s.changes.iter().map(move |c| {
                format!("{} {}: {} to {}", s.commit.pull.expect("a number"), c.item, c.from, c.to)
            })
        })
        .collect();
    assert_eq!(
        shown,
        [
            "1 ours, hunk 1: exact to moved",
            "1 ours, hunk 2: exact to moved",
            "1 copy (derived): exact to moved",
            "2 ours, hunk 2: moved to conflict",
            "2 watch two: held to changed",
            "2 cite q.h:8: held to changed",
            "2 derive three_reg from three: held to changed",
            "3 ours, hunk 2: conflict to moved",
            "3 derive three_reg from three: changed to held",
        ]
    );
    // The last version's judgement names the same causes.
    let last = judge(&series(), &tree(HEADER), &tree(&healed), "new").expect("memory is read");
    let causes: Vec<_> = last
        .findings(Some(&found))
        .into_iter()
        .map(|f| (f.item.to_string(), f.cause.and_then(|c| c.pull)))
        .collect();
    assert_eq!(causes, [("watch two".to_owned(), Some(2)), ("cite q.h:8".to_owned(), Some(2)),]);
}

#[test]
fn units_judge_as_the_whole_series_does() {
    let texts = [
        HEADER.replace("int x = 0;", "int x = 5;"),
        HEADER.replace("x += 1", "x += 2"),
        HEADER.replace("int two", "int zwei"),
        format!("// top\n{HEADER}"),
        String::new(),
    ];
    for text in &texts {
        let target = tree(text);
        let versions = [version(1, &target)];
        let found =
            trace(parts(&series()), &tree(HEADER), versions, "new").expect("memory is read");
        for (item, state) in judged(text).states() {
            let change = found.steps.iter().flat_map(|s| &s.changes).find(|c| c.item == item);
            match change {
                Some(change) => assert_eq!(change.to, state, "{item} in {text:?}"),
                None => assert!(
                    state == State::Class(HunkClass::Exact)
                        || state == State::Contract(Status::Held),
                    "{item} is {state} in {text:?}"
                ),
            }
        }
    }
}

#[test]
fn pull_requests_are_read_from_subjects() {
    assert_eq!(pull_request("Add builds (#3812)"), Some(3812));
    assert_eq!(pull_request("Merge pull request #12 from x/y"), Some(12));
    assert_eq!(pull_request("Revert (#12) again"), None);
    assert_eq!(pull_request(""), None);
}

proptest::proptest! {
    /// Patches that only change lines are judged another way in a trace; what
    /// is found must be the same, version after version.
    #[test]
    fn a_trace_of_changed_lines_is_each_judgement(
        edits in proptest::collection::vec(
            (0_usize..16, 0_usize..3, proptest::collection::vec(0_usize..6, 0..3)), 1..6)
    ) {
        let mut series = series();
        series.entries.truncate(1);
        let second = "--- a/q.h\n+++ b/q.h\n@@ -1,4 +1,5 @@\n int one() {\n   return 1;\n }\n+// two\n \n";
        let second = Change::Patch { path: "0002.patch".into(), bytes: second.as_bytes().into() };
        series.entries.push(entry("second", second));
        let words = ["}\n", "\n", "  x += 1;\n", "// ours\n", "  int x = 5;\n", "int two() {\n"];
        let mut text: Vec<&str> = HEADER.split_inclusive('\n').collect();
        let mut trees = Vec::new();
        for (at, gone, come) in edits {
            let at = at.min(text.len());
            let end = (at + gone).min(text.len());
            text.splice(at..end, come.iter().map(|w| words[*w]));
            trees.push(tree(&text.concat()));
        }
        let versions = trees.iter().map(|t| version(1, t));
        let found = trace(parts(&series), &tree(HEADER), versions, "new").expect("memory is read");
        let pin = tree(HEADER);
        let mut now: std::collections::BTreeMap<Item, State> =
            judge(&series, &pin, &pin, "new").expect("read").states().into_iter().collect();
        let mut steps = found.steps.iter();
        let last = trees.last().expect("one at least");
        for change in steps.by_ref().flat_map(|s| &s.changes) {
            now.insert(change.item.clone(), change.to);
        }
        for (item, state) in judge(&series, &pin, last, "new").expect("read").states() {
            proptest::prop_assert_eq!(now.get(&item), Some(&state), "{} in {}", item, text.concat());
        }
    }
}
