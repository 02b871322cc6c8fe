//! The law of a trace: after every version each item is in the state that a
//! judgement of that version alone gives it.

use std::collections::BTreeMap;

use super::*;

const TEXT: &str = "int a() {\n  return 1;\n}\n\nint b() {\n  return 2;\n}\n";
const KERNELS: &str = "#include \"mac.h\"\n\ninst(add, float)\ninst(add, half)\n";
const MACROS: &str = "\
#define inst(name, type) kernel_of(#name \"_\" #type, name, type)
#define kernel_of(host, func, type) template [[host_name(host)]] [[kernel]] void func<type>();
";
const SPELLED_OTHERWISE: &str = "\
#define inst(name, type) kernel_of(#name \"-\" #type, name, type)
#define kernel_of(host, func, type) template [[host_name(host)]] [[kernel]] void func<type>();
";

const CHANGES: &str = "\
diff --git a/x.cpp b/x.cpp
--- a/x.cpp
+++ b/x.cpp
@@ -4,4 +4,5 @@
 
 int b() {
+  // ours
   return 2;
 }
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
";
const MAKES: &str = "\
diff --git a/new.h b/new.h
new file mode 100644
--- /dev/null
+++ b/new.h
@@ -0,0 +1,1 @@
+int ours();
";
const DELETES: &str = "\
diff --git a/old.h b/old.h
deleted file mode 100644
--- a/old.h
+++ /dev/null
@@ -1,3 +0,0 @@
-int c() {
-  return 3;
-}
";

/// Files by name; a text that begins with `#!` is that of a program.
fn tree_of(files: &[(&str, &str)]) -> MemoryTree {
    let file = |text: &str| {
        let mode = if text.starts_with("#!") { Mode::Executable } else { Mode::Regular };
        File::new(mode, text.trim_start_matches("#!").as_bytes())
    };
    MemoryTree(files.iter().map(|(name, text)| (path(name), file(text))).collect())
}

const PIN: [(&str, &str); 6] = [
    ("x.cpp", TEXT),
    ("run.sh", "run\n"),
    ("old.h", "int c() {\n  return 3;\n}\n"),
    ("k.metal", KERNELS),
    ("mac.h", MACROS),
    ("other.metal", "// none\n"),
];

fn pin() -> MemoryTree {
    tree_of(&PIN)
}

/// The pin with some files others, or gone where nothing is given.
fn with(changes: &[(&str, Option<&str>)]) -> MemoryTree {
    let mut files: BTreeMap<&str, &str> = PIN.into();
    for (name, text) in changes {
        match text {
            Some(text) => files.insert(name, text),
            None => files.remove(name),
        };
    }
    tree_of(&files.into_iter().collect::<Vec<_>>())
}

fn all() -> Series {
    let patch = |text: &str| Change::Patch { path: "a.patch".into(), bytes: text.into() };
    let watch = toml::from_str("file='x.cpp'\nfunction='a'\nreason='r'").expect("a watch");
    let cite = toml::from_str("at='x.cpp:6'\nsymbol='b'\nreason='r'").expect("a citation");
    let kernel = toml::from_str("name='add_{float,half}'\nfile='k.metal'\nreason='r'");
    let note = "entry='deletes'\nfile='old.h'\nremoves=['int c() {', 'return 3;', '}']\nreason='r'";
    let contracts = contract::Contracts {
        watch: vec![watch],
        kernel: vec![kernel.expect("a kernel")],
        cite: vec![cite],
        note: vec![toml::from_str(note).expect("a note")],
    };
    let entries = [("changes", CHANGES), ("makes", MAKES), ("deletes", DELETES)];
    let entries = entries.map(|(name, text)| entry(name, patch(text)));
    Series { folder: "patches/x".into(), entries: entries.into(), contracts }
}

/// Traces the versions, checks the law at each, and gives the steps: the number of
/// the version, the item and its new state.
fn traced(versions: &[MemoryTree]) -> Vec<String> {
    let (series, pin) = (all(), pin());
    let at_pin = judge(&series, &pin, &pin, "new").expect("memory is read");
    at_pin.require_pin().expect("it holds at its pin");
    let parts = Parts::new(&series, &pin, &at_pin).expect("memory is read");
    let files = PathSet::new(parts.files());
    let mut last = None;
    let numbered = (1_u8..).zip(versions).map(|(number, tree)| {
        let now = tree.at(&files)?;
        let touched = last.as_ref() != Some(&now);
        last = Some(now);
        let commit = ObjectId::from_raw([number; 20]);
        let cause = Cause::new(commit, &format!("change (#{number})"), "2026-09-01");
        Ok::<_, DriftError>(Version { cause, tree: Box::new(tree.clone()), touched })
    });
    let found = trace(parts, &pin, numbered, "new").expect("memory is read");
    let mut now: BTreeMap<Item, State> = at_pin.states().into_iter().collect();
    let mut shown = Vec::new();
    for (number, tree) in (1..).zip(versions) {
        let step = found.steps.iter().find(|s| s.commit.pull == Some(number));
        for change in step.into_iter().flat_map(|s| &s.changes) {
            let before = now.insert(change.item.clone(), change.to);
            assert_eq!(before, Some(change.from), "{} before {number}", change.item);
            shown.push(format!("{number} {}: {}", change.item, change.to));
        }
        let judged = judge(&series, &pin, tree, "new").expect("memory is read");
        for (item, state) in judged.states() {
            assert_eq!(now.get(&item), Some(&state), "{item} after {number}");
        }
        for finding in judged.findings(Some(&found)) {
            let last = usize::try_from(number).expect("few") == versions.len();
            assert!(!last || finding.cause.is_some(), "{} has no cause", finding.item);
        }
    }
    shown
}

#[test]
fn a_file_may_come_back_elsewhere_and_twice() {
    let gone = with(&[("x.cpp", None)]);
    let elsewhere = with(&[("x.cpp", None), ("lib/x.cpp", Some(TEXT))]);
    let changed = TEXT.replace("return 1", "return 9");
    let changed = with(&[("x.cpp", None), ("lib/x.cpp", Some(&changed))]);
    let twice = [("x.cpp", None), ("lib/x.cpp", Some(TEXT)), ("y.cpp", Some(TEXT))];
    let found = traced(&[gone.clone(), elsewhere.clone(), changed, elsewhere, with(&twice), gone]);
    let hunk: Vec<&String> = found.iter().filter(|s| s.contains("hunk 1: file")).collect();
    assert_eq!(
        hunk,
        [
            "1 changes, hunk 1: file-deleted",
            "2 changes, hunk 1: file-moved",
            "5 changes, hunk 1: file-deleted"
        ]
    );
    let watch: Vec<&String> = found.iter().filter(|s| s.contains("watch a")).collect();
    assert_eq!(
        watch,
        [
            "1 watch a: broken",
            "2 watch a: held",
            "3 watch a: changed",
            "4 watch a: held",
            "5 watch a: broken"
        ]
    );
}

#[test]
fn a_mode_is_a_change() {
    let run = with(&[("run.sh", Some("#!run\n"))]);
    assert_eq!(
        traced(&[pin(), run, pin()]),
        ["2 changes: run.sh: landed", "3 changes: run.sh: exact"]
    );
}

#[test]
fn kernels_are_followed_into_files_that_the_pin_does_not_read() {
    let include = KERNELS.replace("mac.h", "more.h");
    let header = |text| with(&[("k.metal", Some(&include)), ("more.h", Some(text))]);
    let kernel = "kernel add_{float,half}";
    let found = traced(&[header(MACROS), header(SPELLED_OTHERWISE), header(MACROS)]);
    assert_eq!(found, [format!("2 {kernel}: broken"), format!("3 {kernel}: held")]);
    let home = KERNELS.replace("inst(add, half)\n", "");
    let other = |text: &str| {
        let text = KERNELS.replace("inst(add, float)\n", text);
        with(&[("k.metal", Some(&home)), ("other.metal", Some(&text))])
    };
    let found = traced(&[other(""), other("#undef inst\n"), other("")]);
    assert_eq!(found, [format!("2 {kernel}: broken"), format!("3 {kernel}: held")]);
    let new = with(&[("k.metal", Some(&home)), ("new.metal", Some(KERNELS))]);
    let found = traced(&[with(&[("k.metal", Some(&home))]), new]);
    assert_eq!(found, [format!("1 {kernel}: broken"), format!("2 {kernel}: held")]);
}

/// A file that a patch has no hunks for is counted itself: a report is not empty.
#[test]
fn files_without_hunks_are_counted() {
    let mut series = all();
    series.contracts = contract::Contracts::default();
    let mode = CHANGES.split_inclusive('\n').skip(9).collect::<String>();
    let bytes = mode.into_bytes();
    series.entries = vec![entry("runs", Change::Patch { path: "a.patch".into(), bytes })];
    let end = || End { commit: None, name: "x".into(), date: None, subject: None };
    let judged = judge(&series, &pin(), &pin(), "new").expect("memory is read");
    let report = Report::new(end(), end(), judged, None);
    assert_eq!(report.counts, [("exact", 1)].into());
}

#[test]
fn a_folder_takes_a_name() {
    let found = traced(&[with(&[("new.h/x", Some("x\n"))]), pin()]);
    let file: Vec<&String> = found.iter().filter(|s| s.contains("makes: new.h")).collect();
    assert_eq!(file, ["1 makes: new.h: conflict", "2 makes: new.h: exact"]);
}

#[test]
fn a_file_to_delete_that_is_renamed_is_a_conflict() {
    let text = PIN[2].1;
    let renamed = with(&[("old.h", None), ("older.h", Some(text))]);
    let found = traced(&[with(&[("old.h", None)]), renamed.clone()]);
    assert!(found.contains(&"1 deletes: old.h: landed".into()), "{found:?}");
    assert!(found.contains(&"2 deletes: old.h: conflict".into()), "{found:?}");
    let judged = judge(&all(), &pin(), &renamed, "new").expect("memory is read");
    let why = judged.why(&Item::File { entry: "deletes".into(), path: path("old.h") });
    assert_eq!(why.as_deref(), Some("upstream renamed the file to `older.h`"));
    assert!(!judged.holds());
    // To another extension, and edited.
    let edited = text.replace("3", "4");
    let renamed = with(&[("old.h", None), ("old.metal", Some(&edited))]);
    let judged = judge(&all(), &pin(), &renamed, "new").expect("memory is read");
    let why = judged.why(&Item::File { entry: "deletes".into(), path: path("old.h") });
    assert_eq!(why.as_deref(), Some("upstream renamed the file to `old.metal`"));
}

proptest::proptest! {
    /// Any files in any order.
    #[test]
    fn every_state_on_the_way_is_a_judgements(
        versions in proptest::collection::vec(
            proptest::collection::vec((0_usize..10, 0_usize..8), 0..4), 1..7)
    ) {
        let names = [
            "x.cpp", "lib/x.cpp", "y.cpp", "run.sh", "old.h", "older.h", "new.h", "k.metal",
            "mac.h", "new.metal",
        ];
        let program = format!("#!{TEXT}");
        let include = KERNELS.replace("mac.h", "old.h");
        let texts = [
            None, Some(TEXT), Some(&*program), Some(KERNELS), Some(MACROS), Some(PIN[2].1),
            Some(&*include), Some("int ours();\n"),
        ];
        let trees: Vec<MemoryTree> = versions
            .iter()
            .map(|edits| with(&edits.iter().map(|(n, t)| (names[*n], texts[*t])).collect::<Vec<_>>()))
            .collect();
        traced(&trees);
    }
}
