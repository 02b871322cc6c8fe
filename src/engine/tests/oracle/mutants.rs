//! What the parser takes, `git apply` takes, but for declared differences.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use mlx_overlay_engine::patch::{Body, Patch, parse};

use crate::forest::{self, Dice, Kinds};
use crate::git::{git, hermetic};

/// A patch the parser takes and git refuses, on purpose.
struct Divergence {
    why: &'static str,
    example: &'static str,
    holds: fn(&[u8], &Patch) -> bool,
}

const DIVERGENCES: &[Divergence] = &[
    Divergence {
        why: "an empty file is an empty patch: a quilt series may hold one",
        example: "",
        holds: |_, patch| patch.files.is_empty(),
    },
    Divergence {
        why: "an empty context line may end in CRLF, as the rest of a converted patch does",
        example: "--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,2 @@\r\n-a\r\n+b\r\n\r\n",
        holds: |_, patch| lines_of(patch).any(|raw| raw == b"\r\n"),
    },
    Divergence {
        why: "a patch converted to CRLF is read whole: git finds no name in a header without ---",
        example: "diff --git a/f b/f\r\nold mode 100644\r\nnew mode 100755\r\n",
        holds: |_, patch| {
            patch.files.iter().any(|f| {
                f.header.starts_with(b"diff --git")
                    && f.header.ends_with(b"\r\n")
                    && !matches!(&f.body, Body::Text(hunks) if !hunks.is_empty())
            })
        },
    },
    Divergence {
        why: "a file dated at the epoch is new only where the hunk holds no old line",
        example: "--- a/f\t1970-01-01 00:00:00.000000000 +0000\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
        holds: |text, _| String::from_utf8_lossy(text).contains("\t1970-01-01 00:00:00"),
    },
    Divergence {
        why: "Subversion's change of properties alone changes no bytes",
        example: "Index: f\n====\n--- f\n+++ f\n\nProperty changes on: f\n",
        holds: |text, _| String::from_utf8_lossy(text).contains("\nProperty changes on: "),
    },
    Divergence {
        why: "`diff -r`'s notice of a binary change is read, to be refused by its name",
        example: "Binary files a/f and b/f differ\n",
        holds: |_, patch| patch.files.iter().any(|f| matches!(f.body, Body::BinaryWithoutData(_))),
    },
    Divergence {
        why: "a binary change that lost its index line is read: git passes over its header",
        example: "diff --git a/f b/f\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n",
        holds: |_, patch| {
            patch.files.iter().any(|f| matches!(f.body, Body::Binary(_)) && f.index.is_none())
        },
    },
    Divergence {
        why: "a byte-order mark is no part of the first header",
        example: "\u{feff}--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
        holds: |text, _| text.starts_with("\u{feff}".as_bytes()),
    },
];

fn lines_of(patch: &Patch) -> impl Iterator<Item = &[u8]> {
    let hunks = patch.files.iter().flat_map(|file| match &file.body {
        Body::Text(hunks) => hunks.as_slice(),
        _ => &[],
    });
    hunks.flat_map(|hunk| hunk.lines.iter().map(|line| line.raw.as_slice()))
}

pub fn run() {
    let root = tempfile::tempdir().unwrap();
    git(root.path(), &["init", "-q"]);
    for known in DIVERGENCES {
        let text = known.example.as_bytes();
        let patch = parse(text).unwrap_or_else(|e| panic!("{}: {e}", known.why));
        assert!((known.holds)(text, &patch), "{}", known.why);
        assert!(git_reads(root.path(), text).is_err(), "git reads it too: {}", known.why);
    }
    let mut taken = 0;
    for seed in 0..12 {
        let mut dice = Dice::new(seed);
        let old = forest::grow(&mut dice, Kinds::All);
        let new = forest::change(&mut dice, &old, Kinds::All);
        forest::plant(&old, root.path());
        git(root.path(), &["add", "-A"]);
        git(root.path(), &["commit", "-q", "--allow-empty", "-m", "old"]);
        forest::plant(&new, root.path());
        git(root.path(), &["add", "-A"]);
        let text = git(root.path(), &["diff", "--cached", "--binary", "-C10%"]);
        for _ in 0..40 {
            let mutant = mutate(&mut dice, &text);
            let Ok(patch) = parse(&mutant) else { continue };
            assert!(patch.to_bytes() == mutant, "{}", String::from_utf8_lossy(&mutant));
            taken += 1;
            let why = match git_reads(root.path(), &mutant) {
                Ok(files) => {
                    // Git passes over a header of one line; the parser does not.
                    assert!(
                        files <= patch.files.len(),
                        "seed {seed}: git reads more:\n{}",
                        String::from_utf8_lossy(&mutant)
                    );
                    continue;
                }
                Err(why) => why,
            };
            assert!(
                DIVERGENCES.iter().any(|known| (known.holds)(&mutant, &patch)),
                "seed {seed}: git refuses: {why}\n{}",
                String::from_utf8_lossy(&mutant)
            );
        }
    }
    assert!(taken > 100, "{taken} mutants taken prove little");
}

/// How many file patches git reads, names stripped by one part or by none.
fn git_reads(root: &Path, patch: &[u8]) -> Result<usize, String> {
    let mut why = String::new();
    for strip in ["-p1", "-p0"] {
        let mut child = hermetic(root)
            .args(["apply", "--numstat", "-z", strip])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git was found");
        // Git may stop reading early; its answer counts, not the broken pipe.
        let _ = child.stdin.take().expect("piped").write_all(patch);
        let output = child.wait_with_output().expect("git ends");
        if output.status.success() {
            return Ok(output.stdout.iter().filter(|b| **b == 0).count());
        }
        why += &String::from_utf8_lossy(&output.stderr);
    }
    Err(why)
}

/// One small accident: what editors, mailers and people do to a patch.
fn mutate(dice: &mut Dice, text: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let at = dice.roll(lines.len());
    match dice.roll(9) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at].clone()),
        2 => lines.insert(at, b"\n".to_vec()),
        3 => lines.truncate(at),
        4 => {
            let byte = dice.roll(lines[at].len());
            lines[at][byte] = *dice.pick(b"+- @\\\n\r\t\"ab09");
        }
        5 => {
            lines[at].remove(0);
        }
        6 => {
            let other = dice.roll(lines.len());
            lines.swap(at, other);
        }
        7 => lines.iter_mut().for_each(|line| {
            if line.ends_with(b"\n") {
                line.insert(line.len() - 1, b'\r');
            }
        }),
        _ => lines.iter_mut().for_each(|line| {
            let end = line.trim_ascii_end().len();
            let broken = line.ends_with(b"\n");
            line.truncate(end);
            line.extend(broken.then_some(b'\n'));
        }),
    }
    lines.concat()
}
