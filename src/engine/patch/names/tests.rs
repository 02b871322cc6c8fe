//! Names under prefixes and strip levels; links.

use super::*;
use crate::patch::parse;
use crate::snapshot::MemoryTree;

fn tree(paths: &[&str]) -> MemoryTree {
    let file = || File::new(Mode::Regular, *b"x\n");
    MemoryTree(paths.iter().map(|p| (p.parse().unwrap(), file())).collect())
}

/// The paths of the last file patch of `text` in a tree of these files.
fn paths(text: &str, strip: usize, there: &[&str]) -> Result<(String, Operation), Reason> {
    let patch = parse(text.as_bytes()).unwrap();
    let tree = tree(there);
    let exists = |path: &TreePath| tree.mode(path).is_some();
    let style = prefixes(&patch, &exists);
    let names = resolve(patch.files.last().unwrap(), strip, style, &exists);
    let names = names.map_err(|e| {
        assert!(e.line.is_some() && e.byte.is_some(), "{e:?}");
        e.reason
    })?;
    let show = |p: &Option<TreePath>| p.as_ref().map_or("-".into(), TreePath::to_string);
    Ok((format!("{} {}", show(&names.old), show(&names.new)), names.operation))
}

fn edit(old: &str, new: &str) -> String {
    format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n")
}

fn git(name: &str) -> String {
    format!("diff --git {name} {name}\n") + &edit(name, name)
}

fn modified(name: &str) -> Result<(String, Operation), Reason> {
    Ok((format!("{name} {name}"), Operation::Modify))
}

#[test]
fn known_prefixes_are_cut_whatever_is_there() {
    for (old, new) in
        [("a", "b"), ("b", "a"), ("i", "w"), ("c", "i"), ("c", "w"), ("o", "w"), ("x.orig", "x")]
    {
        let text = edit(&format!("{old}/d/f"), &format!("{new}/d/f"));
        assert_eq!(paths(&text, 1, &["d/f", &format!("{new}/d/f")]), modified("d/f"));
        assert_eq!(paths(&text, 1, &[]), modified("d/f"), "missing, and still its name");
    }
}

#[test]
fn a_name_without_prefix_needs_to_have_one_reading() {
    assert_eq!(paths(&git("d/f"), 1, &["d/f"]), modified("d/f"));
    assert_eq!(paths(&git("d/f"), 1, &["f"]), modified("f"));
    assert_eq!(paths(&git("d/f"), 1, &["f", "d/f"]), Err(Reason::Prefix));
    assert_eq!(paths(&git("d/f"), 1, &[]), Err(Reason::Prefix));
    assert_eq!(paths(&git("f"), 1, &[]), modified("f"), "there is nothing to cut");
    assert_eq!(paths(&git("a/f"), 1, &["f", "a/f"]), Err(Reason::Prefix), "no pair");
    assert_eq!(paths(&edit("./f", "./f"), 1, &["f"]), modified("f"));
    assert_eq!(paths(&edit("a//f", "b//f"), 1, &["f"]), modified("f"));
}

#[test]
fn the_other_files_of_the_patch_tell() {
    let create = "diff --git d/n d/n\nnew file mode 100644\n";
    let created = |name: &str| Ok((format!("- {name}"), Operation::Create));
    assert_eq!(paths(create, 1, &["d/f"]), Err(Reason::Prefix));
    assert_eq!(paths(&(git("d/f") + create), 1, &["d/f"]), created("d/n"));
    assert_eq!(paths(&(git("d/f") + create), 1, &["f"]), created("n"));
    let contradicting = git("d/f") + &git("d/g") + create;
    assert_eq!(paths(&contradicting, 1, &["d/f", "g"]), Err(Reason::Prefix));
    assert_eq!(paths(&(git("d/g") + &git("d/f")), 1, &["f", "d/f", "d/g"]), modified("d/f"));
}

#[test]
fn another_strip_level_is_followed_to_the_letter() {
    let text = edit("a/d/f", "b/d/f");
    assert_eq!(paths(&text, 2, &[]), modified("f"));
    assert_eq!(paths(&text, 3, &[]), Err(Reason::Prefix));
    assert_eq!(paths(&git("d/f"), 0, &["f"]), modified("d/f"));
    assert_eq!(paths(&text, 0, &[]), Err(Reason::Prefix), "a/d/f and b/d/f are two files");
}

#[test]
fn moves_prove_their_prefix() {
    let moved = |old: &str, new: &str, from: &str, to: &str| {
        format!("diff --git {old} {new}\nrename from {from}\nrename to {to}\n")
    };
    let renamed = |names: &str| Ok((names.to_owned(), Operation::Rename));
    assert_eq!(paths(&moved("a/d/f", "b/g", "d/f", "g"), 1, &[]), renamed("d/f g"));
    assert_eq!(paths(&moved("a/f", "a/g", "a/f", "a/g"), 1, &["f"]), renamed("a/f a/g"));
    assert_eq!(
        paths(&moved("x/y/f", "x/y/g", "f", "g"), 1, &["f"]),
        Err(Reason::Prefix),
        "two parts to cut"
    );
    assert_eq!(paths(&moved("x/y/f", "x/y/g", "f", "g"), 2, &["f"]), renamed("f g"));
}

#[test]
fn lone_and_backup_names() {
    let create = |name: &str| format!("--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n");
    let created = |name: &str| Ok((format!("- {name}"), Operation::Create));
    assert_eq!(paths(&create("b/d/n"), 1, &[]), created("d/n"));
    assert_eq!(paths(&create("n"), 1, &[]), created("n"));
    assert_eq!(paths(&create("d/n"), 1, &[]), Err(Reason::Prefix));
    assert_eq!(paths(&create("d/n"), 0, &[]), created("d/n"));
    let delete = "--- c/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    let deleted = Ok(("f -".to_owned(), Operation::Delete));
    assert_eq!(paths(delete, 1, &["f"]), deleted);
    assert_eq!(paths(delete, 1, &["f", "c/f"]), Err(Reason::Prefix));
    assert_eq!(paths(&edit("f.orig", "f"), 1, &["f"]), modified("f"));
    assert_eq!(paths(&edit("f", "f~"), 1, &["f"]), modified("f"));
    assert_eq!(paths(&edit("d/f.orig", "d/f"), 1, &["d/f"]), modified("d/f"));
    assert_eq!(paths(&edit("a/f.orig", "b/f"), 1, &["f"]), modified("f"));
    assert_eq!(paths(&edit("a/f", "b/g"), 1, &["f", "g"]), Err(Reason::Prefix));
}

#[test]
fn no_old_lines_in_a_plain_diff_create_a_file_that_is_not_there() {
    let text = "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(paths(text, 1, &["f"]), modified("f"));
    assert_eq!(paths(text, 1, &[]), Ok(("- f".into(), Operation::Create)));
}

#[test]
fn unsafe_names_are_refused_at_every_level() {
    for (name, reason) in [
        ("a/../f", Reason::PathEscape),
        ("../f", Reason::PathEscape),
        ("/etc/f", Reason::PathEscape),
        ("a/.git/config", Reason::PathEscape),
        (".GIT/config", Reason::PathEscape),
        ("git~1/config", Reason::PathEscape),
        ("a/.git /config", Reason::PathEscape),
        ("\"a/h\\351\"", Reason::PathEncoding),
        ("\"a/x\\ny\"", Reason::PathEncoding),
    ] {
        for strip in [0, 1, 2] {
            let result = paths(&edit(name, name), strip, &["f"]);
            if strip_parts(name.as_bytes(), strip).is_some() {
                assert_eq!(result, Err(reason), "{name} at {strip}");
            }
        }
    }
}

#[test]
fn links_that_leave_the_tree() {
    let link = |path: &str, target: &str| {
        let file = File::new(Mode::Symlink, target.as_bytes());
        check_link_target(&path.parse().unwrap(), &file).map_err(|e| e.reason)
    };
    for (path, target) in [("l", "f"), ("d/l", "../f"), ("d/e/l", "../../x/y"), ("l", "..f")] {
        assert_eq!(link(path, target), Ok(()), "{path} -> {target}");
    }
    for (path, target) in [
        ("l", "../f"),
        ("d/l", "../../f"),
        ("l", "/etc/passwd"),
        ("l", ""),
        ("l", "d/../f"),
        ("l", "..\\f"),
        ("l", "c:\\f"),
        ("l", ".git/config"),
        ("l", "GIT~1/config"),
    ] {
        assert_eq!(link(path, target), Err(Reason::Symlink), "{path} -> {target}");
    }
    let odd = File::new(Mode::Symlink, *b"f\nerror: \xc3\xbc");
    let told = check_link_target(&"l".parse().unwrap(), &odd).unwrap_err().message;
    let one_line = r#"leads to `"f\nerror: \303\274"`, which is no path"#;
    assert!(told.ends_with(one_line), "{told}");
    let mut tree = tree(&["d/f"]);
    tree.0.insert("d/l".parse().unwrap(), File::new(Mode::Symlink, *b"f"));
    let above = |path: &str| check_no_link_above(&tree, &path.parse().unwrap());
    assert_eq!(above("d/f"), Ok(()));
    assert_eq!(above("d/l"), Ok(()), "the link itself is a file of the tree");
    assert_eq!(above("d/l/x/y").map_err(|e| e.reason), Err(Reason::Symlink));
}
