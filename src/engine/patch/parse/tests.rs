//! What the parser takes, what it refuses, and where.

use super::*;
use crate::patch::LineKind;

fn read(text: &str) -> Patch {
    let patch = parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(String::from_utf8_lossy(&patch.to_bytes()), text);
    patch
}

/// The reason and the line of the refusal; its byte must be that line's.
fn refused(text: &str) -> (Reason, usize) {
    let refusal = parse(text.as_bytes()).expect_err(text);
    let (line, byte) = (refusal.line.unwrap(), refusal.byte.unwrap());
    assert_eq!(text[..byte].matches('\n').count() + 1, line, "{refusal}\n{text}");
    assert!(!refusal.remedy.is_empty());
    (refusal.reason, line)
}

const F: &str = "--- a/f\n+++ b/f\n";
const G: &str = "diff --git a/f b/f\n";
const HUNK: &str = "@@ -1,2 +1,2 @@ fn x()\n a\n-b\n+c\n";

#[test]
fn one_hunk_and_what_stands_around_it() {
    let text = format!("From: me\n\nWhy.\n---\n f | 2 +-\n\n{F}{HUNK}-- \n2.47.3\n\n");
    let patch = read(&text);
    let [file] = patch.files.as_slice() else { panic!("{patch:?}") };
    assert_eq!((file.line, file.byte), (7, 30));
    assert_eq!(patch.trailer, b"-- \n2.47.3\n\n");
    let Body::Text(hunks) = &file.body else { panic!("{file:?}") };
    assert_eq!(hunks[0].line, 9);
    assert_eq!(hunks[0].preimage().collect::<Vec<_>>(), [b"a\n", b"b\n"]);
    assert_eq!(hunks[0].postimage().collect::<Vec<_>>(), [b"a\n", b"c\n"]);
}

#[test]
fn git_headers_tell_the_operation() {
    for (header, operation, old, new) in [
        ("new file mode 100644\n", Operation::Create, None, Some("b/f")),
        ("new file mode 100755\nindex 0000000..e69de29\n", Operation::Create, None, Some("b/f")),
        ("deleted file mode 100644\n", Operation::Delete, Some("a/f"), None),
        ("old mode 100644\nnew mode 100755\n", Operation::Modify, Some("a/f"), Some("b/f")),
    ] {
        let patch = read(&format!("{G}{header}"));
        let file = &patch.files[0];
        let text = |name: &Option<Vec<u8>>| name.clone().map(|n| String::from_utf8(n).unwrap());
        assert_eq!(file.operation, operation);
        assert_eq!(text(&file.old_name).as_deref(), old);
        assert_eq!(text(&file.new_name).as_deref(), new);
    }
    let text = "diff --git a/x y b/z\nsimilarity index 100%\ncopy from x y\ncopy to z\n";
    let file = &read(text).files[0];
    assert_eq!(file.operation, Operation::Copy);
    assert_eq!(file.names.moved, Some((b"x y".to_vec(), b"z".to_vec())));
    assert_eq!(file.names.old.as_deref(), Some(&b"a/x y"[..]));
}

#[test]
fn a_plain_file_dated_at_the_epoch_is_new_if_the_hunk_says_so_too() {
    let epoch = "1970-01-01 01:00:00.000000000 +0100";
    let new = format!("--- a/f\t{epoch}\n+++ b/f\t2024-01-01 00:00:00 +0000\n");
    assert_eq!(read(&format!("{new}@@ -0,0 +1 @@\n+x\n")).files[0].operation, Operation::Create);
    assert_eq!(read(&format!("{new}{HUNK}")).files[0].operation, Operation::Modify);
    let gone = format!("--- a/f\t2024-01-01 00:00:00 +0000\n+++ b/f\t{epoch}\n");
    let patch = read(&format!("{gone}@@ -1 +0,0 @@\n-x\n"));
    assert_eq!(patch.files[0].operation, Operation::Delete);
    assert_eq!(patch.files[0].new_name, None);
    let svn = "--- f\t(revision 3)\n+++ f\t(nonexistent)\n@@ -1 +0,0 @@\n-x\n";
    assert_eq!(read(svn).files[0].operation, Operation::Delete);
}

#[test]
fn line_ends_stay_the_files() {
    let crlf = format!("{F}@@ -1,3 +1,3 @@\n \r\n-a\r\n+b\r\n\r\n");
    let patch = read(&crlf);
    let Body::Text(hunks) = &patch.files[0].body else { panic!() };
    let lines: Vec<_> = hunks[0].lines.iter().map(|l| (l.kind, &l.text[..])).collect();
    assert_eq!(
        lines,
        [
            (LineKind::Context, &b"\r\n"[..]),
            (LineKind::Removed, b"a\r\n"),
            (LineKind::Added, b"b\r\n"),
            (LineKind::Context, b"\r\n"),
        ]
    );
    let marker = |end: &str| {
        let text = format!("{F}@@ -1 +1 @@{end}-a\r\n\\ No newline at end of file{end}+b\n");
        let Body::Text(hunks) = read(&text).files.remove(0).body else { panic!() };
        hunks[0].lines[0].text.clone()
    };
    assert_eq!(marker("\n"), b"a\r", "the file ends in a CR");
    assert_eq!(marker("\r\n"), b"a", "the whole patch was converted");
}

#[test]
fn mails_with_parts_end_a_part_after_a_hunk() {
    let text = format!(
        "From: me\nContent-Type: multipart/mixed; boundary=\"=_x\"\n\n--=_x\nContent-Type: \
         text/plain\n\n{F}{HUNK}--=_x\n\n{G}{F}{HUNK}\n--=_x--\n"
    );
    assert_eq!(read(&text).files.len(), 2);
    let packed = "Content-Transfer-Encoding: quoted-printable\n\n";
    assert_eq!(refused(&format!("{packed}{F}{HUNK}")), (Reason::Encoded, 1));
    assert_eq!(
        refused("Subject: x\nContent-transfer-encoding: BASE64\n\nLS0t\n"),
        (Reason::Encoded, 2)
    );
    read(&format!("Content-Transfer-Encoding: 8bit\n\n{F}{HUNK}"));
}

#[test]
fn subversions_noise() {
    let text = format!(
        "Index: f\n====\n{F}{HUNK}\nProperty changes on: f\n____\nAdded: svn:eol-style\n## \
         -0,0 +1 ##\n+native\n\\ No newline at end of property\n"
    );
    assert_eq!(read(&text).files.len(), 1);
    let only = format!("Index: f\n====\n{F}\nProperty changes on: f\n____\n");
    assert_eq!(read(&only).files[0].body, Body::Text(vec![]));
}

#[test]
fn malformed_patches_are_refused_at_their_place() {
    let two = |first: &str, second: &str| format!("{F}{first}{second}");
    for (text, line) in [
        // Counts.
        (format!("{F}@@ -1,3 +1,2 @@\n a\n-b\n+c\n"), 7),
        (format!("{F}@@ -1,1 +1,2 @@\n a\n-b\n+c\n"), 5),
        (format!("{F}@@ -1,2 +1,1 @@\n a\n-b\n+c\n"), 6),
        (format!("{F}@@ -1 +1 @@\n-b\n+c\n d\n"), 6),
        (format!("{F}@@ -1 +1 @@\n-b\n+c\n\n+d\n"), 7),
        (format!("{F}@@ -1 +1 @@\n-b\n+c\n-- \n-d\n"), 7),
        (format!("{F}@@ -1,2 +1,2 @@\n a\n-b\nfoo\n"), 6),
        (format!("{F}@@ -1 +1,2 @@\n-b\n+c\n\n"), 6),
        (format!("{F}@@ -0 +1 @@\n-b\n+c\n"), 3),
        (format!("{F}@@ -1,9999999999 +1 @@\n-b\n+c\n"), 3),
        (format!("{F}@@ -1 +1\n-b\n+c\n"), 3),
        (format!("{F}@@ -1 +1 @@\n a\n"), 3),
        // Cut off.
        (F.into(), 1),
        ("--- a/f\n".into(), 1),
        (G.into(), 1),
        (format!("{G}index 1..2 100644\n"), 1),
        (format!("{G}index 1..2 100644\n--- a/f\n"), 4),
        (format!("{G}new file mode 100644\nindex 0000000..7898192\n"), 1),
        (format!("{F}@@ -1 +1 @@\n-b\n+c"), 5),
        // Strays.
        (format!("{F}{HUNK}\n{HUNK}"), 8),
        (format!("prose\n{HUNK}"), 2),
        (format!("+++ b/f\n{HUNK}"), 1),
        (format!("--- a/f\n{HUNK}"), 1),
        (format!("{G}old mode 100644\nnew mode 100755\n{HUNK}"), 4),
        (format!("{F}{HUNK}\\ No newline at end of file\n\\ No newline\n"), 8),
        (format!("{F}@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n"), 4),
        (format!("{F}@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+b\n"), 5),
        (format!("diff --cc f\n{HUNK}"), 1),
        ("*** a/f\n--- b/f\n***************\n".into(), 1),
        ("GIT binary patch\nliteral 0\n\n".into(), 1),
        // Several hunks.
        (two("@@ -9 +9 @@\n-a\n+b\n", "@@ -3 +3 @@\n-a\n+b\n"), 6),
        (two("@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "@@ -2,2 +2,2 @@\n b\n-c\n+d\n"), 7),
        (two("@@ -1,2 +1,3 @@\n a\n+x\n b\n", "@@ -2,2 +3,1 @@\n-b\n c\n"), 7),
        (two("@@ -1,2 +1,3 @@\n+x\n a\n b\n", "@@ -2,2 +3,3 @@\n B\n+x\n c\n"), 7),
        (two("@@ -6,0 +7 @@\n+x\n", "@@ -6,0 +8 @@\n+x\n"), 5),
        (two("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", "@@ -3,0 +3 @@\n+x\n"), 7),
        // Headers that contradict themselves.
        (format!("{G}new file mode 100644\n{F}{HUNK}"), 3),
        (format!("{G}new file mode 100644\n--- /dev/null\n+++ b/f\n{HUNK}"), 5),
        (format!("{G}rename from f\n"), 2),
        (format!("{G}similarity index 100%\nrename from f\nrename to \"g\n"), 4),
        (format!("{G}rename from f\nrename to g\n"), 1),
        (format!("{G}new file mode 100644\ndeleted file mode 100644\n"), 3),
        (format!("{G}rename from f\nrename to g\nnew file mode 100644\n"), 4),
        (format!("{G}new file mode 100644\nnew file mode 100644\n"), 3),
        (format!("{G}old mode 100644\nnew mode 120000\n"), 3),
        (format!("{G}old mode 100644\nnew mode 99\n"), 3),
        (format!("{G}old mode 99\nnew mode 100644\n"), 2),
        (format!("{G}old mode 100644\nnew mode 100755\nindex 1...2\n{F}{HUNK}"), 4),
        (format!("{G}index 1..2 99\n{F}{HUNK}"), 2),
        (format!("{G}index 1..2 100644\n--- /dev/null\n+++ /dev/null\n{HUNK}"), 3),
        (format!("diff --git a/f b/g\n{F}{HUNK}"), 1),
        (format!("--- /dev/null\n+++ /dev/null\n{HUNK}"), 1),
        (format!("--- \n+++ b/f\n{HUNK}"), 1),
    ] {
        assert_eq!(refused(&text), (Reason::Malformed, line), "{text}");
    }
}

#[test]
fn hunks_may_share_context() {
    let text = format!("{F}@@ -1,2 +1,3 @@\n+x\n a\n b\n@@ -2,2 +3,3 @@\n b\n c\n+y\n");
    assert_eq!(read(&text).files.len(), 1);
}

#[test]
fn text_without_a_change_and_packed_text() {
    assert!(read("").files.is_empty());
    assert!(read("\n \n").files.is_empty());
    assert!(read("").require_files().is_err());
    assert_eq!(parse(b"only words\n").unwrap_err().reason, Reason::NoPatch);
    assert_eq!(parse(b"1c1\n< a\n---\n> b\n").unwrap_err().reason, Reason::NoPatch);
    for packed in [&b"\xff\xfed\0"[..], b"\x1f\x8b\x08", b"BZh9"] {
        assert_eq!(parse(packed).unwrap_err().reason, Reason::Encoded);
    }
    let bom = format!("\u{feff}{F}{HUNK}");
    assert_eq!(read(&bom).files[0].prose, "\u{feff}".as_bytes());
}

#[test]
fn notices_of_binary_change_are_kept_for_refusal() {
    let notice = "Binary files a/b.bin and b/b.bin differ\n";
    for text in [format!("{G}index 1..2 100644\n{notice}"), format!("diff -r a b\n{notice}")] {
        let patch = read(&text);
        assert!(matches!(patch.files[0].body, Body::BinaryWithoutData(_)));
    }
}
