//! Laws of laying patches, on texts made at random.
//!
//! Lines are drawn from a small alphabet, so that look-alike places are the
//! rule and not the exception.

use mlx_overlay_engine::apply::Ground;
use mlx_overlay_engine::patch::parse;
use mlx_overlay_engine::report::{HunkClass, PatchReport};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, Tree, TreePath};
use proptest::prelude::*;
use similar::TextDiff;

fn path() -> TreePath {
    TreePath::new("f.txt").expect("a tree path")
}

fn tree(text: &str) -> MemoryTree {
    MemoryTree([(path(), File::new(Mode::Regular, text.as_bytes()))].into())
}

fn content(tree: &dyn Tree) -> String {
    let file = tree.file(&path()).expect("in memory").expect("there");
    String::from_utf8(file.bytes.to_vec()).expect("made of text")
}

/// The unified diff from `old` to `new`; nothing where they are equal.
fn diff(old: &str, new: &str, context: usize) -> Option<String> {
    let diff = TextDiff::from_lines(old, new);
    let text = diff.unified_diff().context_radius(context).header("a/f.txt", "b/f.txt").to_string();
    (!text.is_empty()).then_some(text)
}

fn lay(ground: &mut Ground, patch: &str) -> PatchReport {
    let patch = parse(patch.as_bytes()).expect("a made patch parses");
    ground.apply("made", &patch, 1).expect("a made patch is judged")
}

fn classes(report: &PatchReport) -> Vec<HunkClass> {
    report.hunks.iter().map(|h| h.class).collect()
}

/// Texts of up to 30 lines out of eight, with or without a final newline.
fn text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a", "b", "c", "}", "", "x = 1;", "fn f", "fn g"]);
    (prop::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, end)| {
        let mut text = lines.join("\n");
        if end && !text.is_empty() {
            text.push('\n');
        }
        text
    })
}

/// A text and an edit of it: up to three places changed.
fn edited() -> impl Strategy<Value = (String, String)> {
    (text(), edits()).prop_map(|(text, edits)| {
        let new = change(&text, &edits);
        (text, new)
    })
}

type Edits = Vec<(prop::sample::Index, usize, Vec<&'static str>)>;

fn edits() -> impl Strategy<Value = Edits> {
    let new = prop::sample::select(vec!["new 1", "new 2", "}", "a"]);
    let lines = prop::collection::vec(new, 0..3);
    prop::collection::vec((any::<prop::sample::Index>(), 0..3usize, lines), 1..4)
}

fn change(text: &str, edits: &Edits) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_string).collect();
    for (at, gone, come) in edits {
        let at = at.index(lines.len() + 1);
        let end = (at + gone).min(lines.len());
        // A line without a line end may only stand last.
        if at == lines.len() && lines.last().is_some_and(|l| !l.ends_with('\n')) {
            continue;
        }
        lines.splice(at..end, come.iter().map(|l| format!("{l}\n")));
    }
    lines.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// A patch laid on the text it was made for gives the text it was made to.
    #[test]
    fn a_patch_on_its_own_text_is_exact((old, new) in edited(), context in 0usize..4) {
        let Some(patch) = diff(&old, &new, context) else { return Ok(()) };
        let base = tree(&old);
        let mut ground = Ground::mapped(&base, &base);
        let report = lay(&mut ground, &patch);
        prop_assert!(classes(&report).iter().all(|c| *c == HunkClass::Exact), "{patch}\n{report:#?}");
        prop_assert_eq!(content(&ground.target), new);
    }

    /// Laid and laid back: the text is as it was.
    #[test]
    fn a_patch_and_its_reverse_undo_each_other((old, new) in edited(), context in 0usize..4) {
        let (Some(there), Some(back)) = (diff(&old, &new, context), diff(&new, &old, context)) else {
            return Ok(());
        };
        let base = tree(&old);
        let mut ground = Ground::mapped(&base, &base);
        lay(&mut ground, &there);
        lay(&mut ground, &back);
        prop_assert_eq!(content(&ground.target), old);
    }

    /// With nothing but the text, a patch lands as made or not at all.
    #[test]
    fn alone_a_patch_is_right_or_turned_down((old, new) in edited(), context in 1usize..4) {
        let Some(patch) = diff(&old, &new, context) else { return Ok(()) };
        let target = tree(&old);
        let mut ground = Ground::alone(&target);
        let report = lay(&mut ground, &patch);
        if report.holds() {
            prop_assert_eq!(content(&ground.target), new);
        }
    }

    /// A patch that is in the text already is never laid a second time.
    #[test]
    fn a_landed_patch_is_not_laid_twice((old, new) in edited(), context in 1usize..4) {
        let Some(patch) = diff(&old, &new, context) else { return Ok(()) };
        let (base, target) = (tree(&old), tree(&new));
        let mut ground = Ground::mapped(&base, &target);
        let report = lay(&mut ground, &patch);
        if report.holds() {
            prop_assert_eq!(content(&ground.target), new, "{}\n{:#?}", patch, report);
        }
    }
}
