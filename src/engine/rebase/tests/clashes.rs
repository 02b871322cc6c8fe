//! A file on one side where the other has a folder.

use super::*;

/// A patch that makes a file.
fn new(name: &str, text: &str) -> String {
    let names = format!("diff --git a/{name} b/{name}\nnew file mode 100644\n");
    format!("{names}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{text}\n")
}

/// One that is in nobody's way.
fn beside() -> String {
    new("m", "m")
}

fn m() -> (String, Mode, String) {
    found("m", Mode::Regular, "m\n")
}

fn plain(name: &str, text: &str) -> (String, Mode, String) {
    found(name, Mode::Regular, text)
}

fn put(work: &Path, name: &str, text: &str) {
    let path = work.join(name);
    fs::create_dir_all(path.parent().expect("it has one")).expect("made");
    fs::write(path, text).expect("written");
}

#[test]
fn a_folder_of_upstream_s_in_the_place_of_a_new_file_is_chosen() {
    let patch = format!("{}{}", new("n", "ours"), beside());
    let target = [text("n/u", "theirs\n"), text("n/v", "theirs too\n")];
    let finish = |edit: &dyn Fn(&Path)| finished((&[], &target), &patch, edit);
    let theirs = || [plain("n/u", "theirs\n"), plain("n/v", "theirs too\n")];
    let with_m = |files: &[(String, Mode, String)]| Ok([&[m()], files].concat());
    let open = finish(&|work| {
        let there: Vec<_> = fs::read_dir(work).expect("a folder").flatten().collect();
        assert_eq!(there.len(), 1, "{there:?}");
        let side = |name: &str| fs::read_to_string(work.with_file_name("sides").join(name));
        assert_eq!(side("upstream/n/u").expect("there"), "theirs\n");
        assert_eq!(side("entry/n").expect("there"), "ours\n");
    });
    assert!(matches!(open, Err(Unresolved::Clash { .. })), "{open:?}");
    // Upstream's, whole or a file of it: nothing of it is lost.
    let whole = |work: &Path| {
        put(work, "n/u", "theirs\n");
        put(work, "n/v", "theirs too\n");
    };
    assert_eq!(finish(&whole), with_m(&theirs()));
    assert_eq!(finish(&|work| put(work, "n/u", "theirs\n")), with_m(&theirs()));
    let both = [plain("n/u", "both\n"), plain("n/v", "theirs too\n")];
    assert_eq!(finish(&|work| put(work, "n/u", "both\n")), with_m(&both));
    // The entry's: upstream's goes.
    assert_eq!(finish(&|work| put(work, "n", "ours\n")), with_m(&[plain("n", "ours\n")]));
    // Both, the entry's elsewhere; also within upstream's folder.
    for (name, at) in [("n2", 2), ("n/w", 2)] {
        let mut files = theirs().to_vec();
        files.insert(at, plain(name, "ours\n"));
        assert_eq!(finish(&|work| put(work, name, "ours\n")), with_m(&files), "{name}");
        let kept = finish(&|work| {
            whole(work);
            put(work, name, "ours\n");
        });
        assert_eq!(kept, with_m(&files), "{name}");
    }
    // What is one too many would be lost, or is nobody knows what.
    for strays in [&["n", "n2"][..], &["n2", "n3"]] {
        let left = finish(&|work| strays.iter().for_each(|name| put(work, name, "?\n")));
        assert!(matches!(left, Err(Unresolved::Unlisted { .. })), "{left:?}");
    }
    let left = finish(&|work| put(work, "n2", ">>>>>>> e\n"));
    assert!(matches!(left, Err(Unresolved::Marker { .. })), "{left:?}");
    let left = finish(&|work| fs::create_dir(work.join("n")).expect("made"));
    assert!(matches!(left, Err(Unresolved::Clash { .. })), "{left:?}");
    // Alone it leaves nothing.
    let none = finished((&[], &target), &new("n", "ours"), |work| put(work, "n/u", "theirs\n"));
    assert_eq!(none, Err(Unresolved::Nothing));
}

#[test]
fn of_two_files_in_the_way_each_is_settled() {
    let patch = [new("k", "ours"), new("n", "ours"), beside()].concat();
    let target = [text("k/u", "theirs\n"), text("n/u", "theirs\n")];
    let left = finished((&[], &target), &patch, |work| put(work, "k2", "ours\n"));
    assert!(
        matches!(&left, Err(Unresolved::Clash { path, .. }) if path.ends_with("n")),
        "{left:?}"
    );
    let files = finished((&[], &target), &patch, |work| {
        put(work, "k2", "ours\n");
        put(work, "n", "ours\n");
    });
    let expected =
        [plain("k/u", "theirs\n"), plain("k2", "ours\n"), m(), plain("n", "ours\n")].to_vec();
    assert_eq!(files, Ok(expected));
}

#[test]
fn a_file_or_a_link_of_upstream_s_in_the_place_of_a_new_folder_is_chosen() {
    let patch = beside() + &new("n/x", "ours");
    for (mode, of_upstream) in [(Mode::Regular, "theirs\n"), (Mode::Symlink, "/etc")] {
        let target = [("n", mode, of_upstream)];
        let finish = |edit: &dyn Fn(&Path)| finished((&[], &target), &patch, edit);
        let theirs = || found("n", mode, of_upstream);
        let take = |work: &Path| match mode {
            Mode::Symlink => std::os::unix::fs::symlink(of_upstream, work.join("n")).expect("made"),
            _ => put(work, "n", of_upstream),
        };
        let open = finish(&|_| {});
        assert!(matches!(open, Err(Unresolved::Clash { .. })), "{open:?}");
        assert_eq!(finish(&take), Ok(vec![m(), theirs()]));
        let ours = finish(&|work| put(work, "n/x", "ours\n"));
        assert_eq!(ours, Ok(vec![m(), plain("n/x", "ours\n")]));
        let both = Ok(vec![m(), theirs(), plain("o/x", "ours\n")]);
        assert_eq!(finish(&|work| put(work, "o/x", "ours\n")), both);
        let kept = finish(&|work| {
            take(work);
            put(work, "o/x", "ours\n");
        });
        assert_eq!(kept, both);
    }
}

#[test]
fn a_folder_in_the_place_of_a_file_that_the_entry_changes_is_chosen() {
    let patch = format!("{}diff --git a/z.cpp b/z.cpp\n{EDIT}", beside());
    let (pin, target) = ([text("z.cpp", "one\ntwo\nthree\n")], [text("z.cpp/u", "theirs\n")]);
    let finish = |edit: &dyn Fn(&Path)| finished((&pin, &target), &patch, edit);
    let theirs = || plain("z.cpp/u", "theirs\n");
    let open = finish(&|_| {});
    assert!(matches!(open, Err(Unresolved::Clash { .. })), "{open:?}");
    let kept = finish(&|work| put(work, "z.cpp/u", "theirs\n"));
    assert_eq!(kept, Ok(vec![m(), theirs()]));
    let ours = finish(&|work| put(work, "z.cpp", "ours\n"));
    assert_eq!(ours, Ok(vec![m(), plain("z.cpp", "ours\n")]));
    let both = finish(&|work| put(work, "y.cpp", "ours\n"));
    assert_eq!(both, Ok(vec![m(), plain("y.cpp", "ours\n"), theirs()]));
}

#[test]
fn a_new_name_in_a_folder_of_upstream_s_takes_the_old_one_along() {
    let patch = beside() + RENAME;
    let pin = [text("a.cpp", LINES)];
    let target = [text("a.cpp", LINES), text("b.cpp/u", "theirs\n")];
    let finish = |edit: &dyn Fn(&Path)| finished((&pin, &target), &patch, edit);
    let (a, theirs) = (|| plain("a.cpp", LINES), || plain("b.cpp/u", "theirs\n"));
    let kept = finish(&|work| put(work, "b.cpp/u", "theirs\n"));
    assert_eq!(kept, Ok(vec![a(), theirs(), m()]));
    let ours = finish(&|work| put(work, "b.cpp", "ours\n"));
    assert_eq!(ours, Ok(vec![plain("b.cpp", "ours\n"), m()]));
    let both = finish(&|work| put(work, "c.cpp", "ours\n"));
    assert_eq!(both, Ok(vec![theirs(), plain("c.cpp", "ours\n"), m()]));
}
