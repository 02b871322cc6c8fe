//! Patches that hold and are made again: their prose, their mails, their names.

use super::*;

/// What becomes of the patch, and its new text.
fn remade((pin, target): (&[Given<'_>], &[Given<'_>]), patch: &str) -> (Outcome, String) {
    let (pin, target) = (tree(pin), tree(target));
    let series = series(Path::new(""), patch);
    let names = Names { pin: "pin", target: "to", id: "to" };
    let plan = plan(&series, &pin, &target, names, &Decisions::default()).expect("planned");
    assert!(!matches!(plan.stop, Some(Stop::Entry { .. })), "{plan:?}");
    let made = plan.entries[0].patch.clone().unwrap_or_default();
    (plan.entries[0].outcome, String::from_utf8(made).expect("text"))
}

/// The lines 1 to 20, of which some are others.
fn lines(changed: &[(usize, &str)]) -> String {
    let other = |n: usize| changed.iter().find(|(at, _)| *at == n);
    let line = |n| other(n).map_or_else(|| n.to_string(), |(_, text)| (*text).to_owned());
    (1..21).map(|n| line(n) + "\n").collect()
}

/// A mail that changes a line of `z.cpp`, `shift` lines below its number.
fn mail_of(subject: &str, (at, from, to): (usize, &str, &str), shift: usize) -> String {
    let context = |from: usize| format!(" {from}\n {}\n {}\n", from + 1, from + 2);
    let (first, above, below) = (at - 3 + shift, context(at - 3), context(at + 1));
    let hunk = format!("@@ -{first},7 +{first},7 @@\n{above}-{from}\n+{to}\n{below}");
    format!("{}--- a/z.cpp\n+++ b/z.cpp\n{hunk}{SIGNATURE}", mail(subject))
}

const SIGNATURE: &str = "-- \n2.40.0\n\n";

#[test]
fn mails_over_one_file_keep_their_prose_and_each_its_own_change() {
    let mails = |shift| {
        [
            mail_of("one", (8, "8", "8 of ours"), shift),
            mail_of("two", (8, "8 of ours", "8 at last"), shift),
            mail_of("three", (16, "16", "16 of ours"), shift),
        ]
        .concat()
    };
    let theirs = format!("0\n{}", lines(&[]));
    let made = remade((&[text("z.cpp", &lines(&[]))], &[text("z.cpp", &theirs)]), &mails(0));
    assert_eq!(made, (Outcome::Refreshed, mails(1)));
}

#[test]
fn a_mail_that_landed_goes_with_its_signature_and_no_other_does() {
    let pin_z = lines(&[]);
    let pin = [text("a", "1\n"), text("b", "1\n"), text("z.cpp", &pin_z)];
    let edit = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-1\n+2\n");
    let one = format!("{}{}{SIGNATURE}", mail("one"), edit("a"));
    // The first file of the second mail landed, and its head is the mail's.
    let z = |shift| mail_of("two", (8, "8", "8 of ours"), shift).replacen(&mail("two"), "", 1);
    let patch = format!("{one}{}{}{}", mail("two"), edit("b"), z(0));
    let theirs = format!("0\n{}", lines(&[]));
    let made =
        remade((&pin, &[text("a", "2\n"), text("b", "2\n"), text("z.cpp", &theirs)]), &patch);
    assert_eq!(made, (Outcome::Refreshed, format!("{}{}", mail("two"), z(1))));
    // The last one landed.
    let three = mail_of("three", (16, "16", "16 of ours"), 0);
    let patch = format!("{}{three}", mail_of("two", (8, "8", "8 of ours"), 0));
    let theirs = format!("0\n{}", lines(&[(16, "16 of ours")]));
    let made = remade((&pin[2..], &[text("z.cpp", &theirs)]), &patch);
    assert_eq!(made, (Outcome::Refreshed, mail_of("two", (8, "8", "8 of ours"), 1)));
}

#[test]
fn a_mail_whose_diff_went_into_another_ends_with_its_message() {
    let stat = " z.cpp | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n\n";
    let mails = [
        mail_of("one", (8, "8", "8 of ours"), 0),
        mail_of("two", (9, "9", "9 of ours"), 0).replacen(" 8\n", " 8 of ours\n", 1),
        mail_of("three", (16, "16", "16 of ours"), 0),
    ];
    let patch = mails.concat().replace("\n---\n", &format!("\n---\n{stat}"));
    let (pin, target) = (lines(&[]), lines(&[(8, "8 of theirs")]));
    let both = lines(&[(8, "8 of both"), (9, "9 of ours"), (16, "16 of ours")]);
    let ends = (&[text("z.cpp", &pin)][..], &[text("z.cpp", &target)][..]);
    let (made, _) = decided(ends, &patch, |work| write(work, "z.cpp", &both)).expect("taken");
    let message = |subject: &str| mail(subject).replace("---\n", "");
    let (first, rest) = made.split_at(made.find(SIGNATURE).expect("one") + SIGNATURE.len());
    assert!(first.starts_with(&format!("{}{stat}", mail("one"))), "{made}");
    assert_eq!(rest, [message("two"), message("three")].concat(), "{made}");
    // So it stays, in the next bump too.
    let (pin, target) = (target, format!("0\n{}", lines(&[(8, "8 of theirs")])));
    let (outcome, again) = remade((&[text("z.cpp", &pin)], &[text("z.cpp", &target)]), &made);
    assert_eq!(outcome, Outcome::Refreshed);
    assert!(again.ends_with(rest) && again.starts_with(&mail("one")), "{again}");
}

#[test]
fn beside_a_file_that_stops_each_mail_keeps_its_own_change_of_one_that_holds() {
    let mails = |shift, edit: &str| {
        let two = mail_of("two", (9, "9", "9 of ours"), shift).replacen(" 8\n", " 8 of ours\n", 1);
        let two = two.replacen("--- a/z", &format!("{edit}--- a/z"), 1);
        [mail_of("one", (8, "8", "8 of ours"), shift), two].concat()
    };
    let edit = EDIT.replace("z.cpp", "a.cpp");
    let (pin, moved) = (lines(&[]), format!("0\n{}", lines(&[])));
    let pin = [text("a.cpp", "one\ntwo\nthree\n"), text("z.cpp", &pin)];
    let target = [text("a.cpp", "one\n2\nthree\n"), text("z.cpp", &moved)];
    let settle = |work: &Path| write(work, "a.cpp", "one\nboth\nthree\n");
    let (made, files) = decided((&pin, &target), &mails(0, &edit), settle).expect("taken");
    let settled = edit.replace("-two\n+two of ours\n", "-2\n+both\n");
    let at = made.find("diff --git").expect("what was settled");
    let own = made.replacen(&made[at..made.find("--- a/a").expect("its header")], "", 1);
    assert_eq!(own, mails(1, &settled), "{made}");
    let both = format!("0\n{}", lines(&[(8, "8 of ours"), (9, "9 of ours")]));
    assert_eq!(files[1], found("z.cpp", Mode::Regular, &both));
    // What a person changed of it is one change.
    let other = both.replace("16", "16 by hand");
    let (made, files) = decided((&pin, &target), &mails(0, &edit), |work| {
        settle(work);
        write(work, "z.cpp", &other);
    })
    .expect("taken");
    assert_eq!(made.matches("+++ b/z.cpp").count(), 1, "{made}");
    assert_eq!(files[1], found("z.cpp", Mode::Regular, &other));
}

#[test]
fn names_that_need_quotes_are_written_as_git_writes_them() {
    let name = "d/t\tq\"b\\é.cpp";
    let quoted = r#"d/t\tq\"b\\\303\251.cpp"#;
    let patch = format!(
        "diff --git \"a/{quoted}\" \"b/{quoted}\"\n--- \"a/{quoted}\"\n+++ \"b/{quoted}\"\n\
         @@ -1,3 +1,3 @@\n one\n-two\n+two of ours\n three\n"
    );
    let (pin, target) = ([text(name, "one\ntwo\nthree\n")], [text(name, "one\n2\nthree\n")]);
    let (made, files) = decided((&pin, &target), &patch, |work| {
        write(work, name, "one\nboth\nthree\n");
    })
    .expect("taken");
    assert_eq!(files, [found(name, Mode::Regular, "one\nboth\nthree\n")]);
    let head = format!("diff --git \"a/{quoted}\" \"b/{quoted}\"\nindex ");
    assert!(made.starts_with(&head), "{made}");
    let names = format!(" 100644\n--- \"a/{quoted}\"\n+++ \"b/{quoted}\"\n@@ ");
    assert!(made.contains(&names), "{made}");
    // A blank needs none, and ends the name with a tab in these lines alone.
    let moved = ("d/e f.cpp", "d/t\tq.cpp");
    let edit = EDIT.replace("z.cpp", "a.cpp");
    let pin = [text("a.cpp", "one\ntwo\nthree\n")];
    for (to, [git, old, new]) in [
        (moved.0, ["a/d/e f.cpp b/d/e f.cpp", "a/d/e f.cpp\t", "b/d/e f.cpp\t"]),
        (moved.1, [r#""a/d/t\tq.cpp" "b/d/t\tq.cpp""#, r#""a/d/t\tq.cpp""#, r#""b/d/t\tq.cpp""#]),
    ] {
        let target = [text(to, "one\ntwo\nthree\n")];
        let (outcome, made) =
            remade((&pin, &target), &format!("diff --git a/a.cpp b/a.cpp\n{edit}"));
        assert_eq!(outcome, Outcome::Refreshed);
        let head = format!("diff --git {git}\n--- {old}\n+++ {new}\n");
        assert!(made.starts_with(&head), "{made}");
    }
}

#[test]
fn a_file_that_became_a_link_on_both_sides_has_landed() {
    let patch = "diff --git a/l b/l\ndeleted file mode 100644\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n\
                 diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+z.cpp\n\
                 \\ No newline at end of file\n";
    let pin = [text("l", "one\n"), text("z.cpp", "z\n")];
    let link = |to| [("l", Mode::Symlink, to), text("z.cpp", "z\n")];
    assert_eq!(remade((&pin, &link("z.cpp")), patch), (Outcome::Landed, String::new()));
    // One that leads elsewhere is open, and so is a file that changed.
    for target in [link("y.cpp"), [text("l", "two\n"), text("z.cpp", "z\n")]] {
        let left = finished((&pin, &target), patch, |_| {});
        assert!(left.is_err(), "{left:?}");
    }
}
