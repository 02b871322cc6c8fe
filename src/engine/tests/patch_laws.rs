//! Laws of the parser: what is parsed prints back, no input makes it panic,
//! and refusals point into the text.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mlx_overlay_engine::patch::names::{self, Prefixes};
use mlx_overlay_engine::patch::{Body, LineKind, parse, quilt};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A hunk's body: kinds and texts; a line break in none of them.
fn body() -> impl Strategy<Value = Vec<(char, String)>> {
    vec((select(vec![' ', '-', '+']), "[ -~\\t\u{e9}]{0,12}"), 1..12)
        .prop_filter("changes something", |lines| lines.iter().any(|(kind, _)| *kind != ' '))
}

/// A file patch with hunks in order, `gap` lines between them.
fn file_patch() -> impl Strategy<Value = (String, Vec<usize>)> {
    let hunks = vec((body(), 1..9_usize), 1..4);
    (hunks, "[a-z]{1,8}(/[a-z]{1,8})?", any::<bool>()).prop_map(|(hunks, name, git)| {
        let mut text = String::new();
        if git {
            text += &format!("diff --git a/{name} b/{name}\nindex 1..2 100644\n");
        }
        text += &format!("--- a/{name}\n+++ b/{name}\n");
        let (mut old, mut counts) = (0, Vec::new());
        for (body, gap) in hunks {
            let olds = body.iter().filter(|(kind, _)| *kind != '+').count();
            let news = body.iter().filter(|(kind, _)| *kind != '-').count();
            let start = old + gap + usize::from(olds > 0);
            text += &format!("@@ -{start},{olds} +{start},{news} @@\n");
            body.iter().for_each(|(kind, line)| text += &format!("{kind}{line}\n"));
            old += gap + olds;
            counts.push(body.len());
        }
        (text, counts)
    })
}

fn prose() -> impl Strategy<Value = String> {
    select(vec!["", "Why.\n", "From: a\nSubject: b\n\nText\n---\n f | 2 +-\n\n"])
        .prop_map(Into::into)
}

fn patch_text() -> impl Strategy<Value = (String, Vec<Vec<usize>>)> {
    vec((prose(), file_patch()), 1..4).prop_map(|files| {
        let text = files.iter().map(|(prose, (file, _))| format!("{prose}{file}")).collect();
        (text, files.into_iter().map(|(_, (_, counts))| counts).collect())
    })
}

/// A patch damaged in a few places.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = vec((any::<Index>(), 0..3_u8, any::<u8>()), 0..6);
    (patch_text(), damage).prop_map(|((text, _), damage)| {
        let mut bytes = text.into_bytes();
        for (at, how, byte) in damage {
            let at = at.index(bytes.len() + 1);
            match how {
                0 => bytes.insert(at, byte),
                1 => bytes.truncate(at.max(1)),
                _ if at < bytes.len() => {
                    bytes[at] = *b"+- @\n\r\\\"".get(usize::from(byte % 8)).expect("eight bytes")
                }
                _ => {}
            }
        }
        bytes
    })
}

/// Text out of the pieces patches are made of, in any order.
fn jumble() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "diff --git a/f b/f\n",
        "diff --git \"a/\\303\" \"b/\\303\"\n",
        "index 0000000..e69de29 100644\n",
        "new file mode 100644\n",
        "deleted file mode 120000\n",
        "old mode 100644\n",
        "new mode 160000\n",
        "rename from f\n",
        "rename to g\n",
        "copy from f\n",
        "--- a/f\n",
        "--- /dev/null\n",
        "+++ b/f\t1970-01-01 00:00:00 +0000\n",
        "+++ /dev/null\n",
        "@@ -1 +1 @@\n",
        "@@ -0,0 +1,2 @@\n",
        "@@ -999999999,999999999 +1 @@\n",
        " c\n",
        "-r\n",
        "+a\n",
        "\n",
        "\r\n",
        "\\ No newline at end of file\n",
        "GIT binary patch\n",
        "literal 1\n",
        "delta 0\n",
        "IcmZQz0000100001\n",
        "HcmV?d00001\n",
        "Binary files a/f and b/f differ\n",
        "-- \n",
        "boundary=x\n",
        "--x--\n",
        "Content-Transfer-Encoding: base64\n",
        "Property changes on: f\n",
    ]);
    vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Parsing never panics; what is parsed prints back; a refusal's line and byte
/// are one place of the text.
fn holds_to_its_word(bytes: &[u8]) {
    match parse(bytes) {
        Ok(patch) => {
            assert!(patch.to_bytes() == bytes);
            for file in &patch.files {
                for strip in 0..3 {
                    // Either answer will do: neither may panic.
                    let _ = names::resolve(file, strip, Prefixes::Unknown, &|_| false);
                }
            }
        }
        Err(refusal) => {
            assert!(!refusal.message.is_empty() && !refusal.remedy.is_empty());
            if let (Some(line), Some(byte)) = (refusal.line, refusal.byte) {
                let before = &bytes[..byte];
                assert_eq!(before.iter().filter(|b| **b == b'\n').count() + 1, line, "{refusal}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_generated_patch_parses_to_what_was_generated((text, files) in patch_text()) {
        let patch = parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        prop_assert_eq!(patch.to_bytes(), text.as_bytes());
        let counts: Vec<Vec<usize>> = patch.files.iter().map(|file| match &file.body {
            Body::Text(hunks) => hunks.iter().map(|hunk| hunk.lines.len()).collect(),
            _ => Vec::new(),
        }).collect();
        prop_assert_eq!(counts, files);
        for file in &patch.files {
            let Body::Text(hunks) = &file.body else { continue };
            for hunk in hunks {
                prop_assert_eq!(hunk.preimage().count(), hunk.old.len);
                prop_assert_eq!(hunk.postimage().count(), hunk.new.len);
                prop_assert!(hunk.lines.iter().any(|l| l.kind != LineKind::Context));
            }
        }
    }

    #[test]
    fn a_damaged_patch_prints_back_or_is_refused(bytes in damaged()) {
        holds_to_its_word(&bytes);
    }

    #[test]
    fn a_jumble_prints_back_or_is_refused(bytes in jumble()) {
        holds_to_its_word(&bytes);
    }

    #[test]
    fn any_bytes_print_back_or_are_refused(bytes in vec(any::<u8>(), 0..200)) {
        holds_to_its_word(&bytes);
        let _ = quilt::parse_series(&bytes);
    }

    /// A patch cut off at any byte is the part before a file patch, or refused:
    /// never a file patch less than whole.
    #[test]
    fn a_cut_patch_is_never_half_a_file_patch((text, _) in patch_text(), at in any::<Index>()) {
        let whole = parse(text.as_bytes()).unwrap();
        let cut = at.index(text.len());
        if let Ok(part) = parse(&text.as_bytes()[..cut]) {
            for (ours, theirs) in part.files.iter().zip(&whole.files) {
                let (Body::Text(ours), Body::Text(theirs)) = (&ours.body, &theirs.body) else {
                    panic!("text alone was generated");
                };
                prop_assert_eq!(ours.as_slice(), &theirs[..ours.len()]);
                prop_assert!(!ours.is_empty());
            }
        }
    }
}
