//! `git diff` in its variants, and `git format-patch`.

use std::path::Path;
use std::process::Command;

use mlx_overlay_engine::apply::Ground;
use mlx_overlay_engine::patch::{Body, Patch, Reason};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode};

use crate::forest::{self, Dice, Forest, Kinds};
use crate::lay::{lay, read};

/// One way to call `git diff`.
pub struct Variant {
    pub name: &'static str,
    config: &'static str,
    options: &'static [&'static str],
    strip: usize,
}

const fn variant(name: &'static str, options: &'static [&'static str]) -> Variant {
    Variant { name, config: "core.quotePath=true", options, strip: 1 }
}

pub const VARIANTS: &[Variant] = &[
    variant("alone", &[]),
    variant("--binary", &["--binary"]),
    variant("--binary --no-renames", &["--binary", "--no-renames"]),
    variant("--binary -M10%", &["--binary", "-M10%"]),
    variant("--binary -C --find-copies-harder", &["--binary", "-C10%", "--find-copies-harder"]),
    variant("--binary -B", &["--binary", "-B1%/1%"]),
    variant("--binary -U0", &["--binary", "-U0"]),
    variant("--binary -U1 --inter-hunk-context=2", &["--binary", "-U1", "--inter-hunk-context=2"]),
    variant("--binary -R", &["--binary", "-R"]),
    variant("--binary --patience -W", &["--binary", "--patience", "-W"]),
    Variant {
        name: "--binary --no-prefix (strip 0)",
        config: "core.quotePath=true",
        options: &["--binary", "--no-prefix", "-C10%"],
        strip: 0,
    },
    Variant {
        name: "--binary with mnemonic prefixes",
        config: "diff.mnemonicPrefix=true",
        options: &["--binary", "-C10%"],
        strip: 1,
    },
    Variant {
        name: "--binary with names unquoted",
        config: "core.quotePath=false",
        options: &["--binary", "-M10%"],
        strip: 1,
    },
    Variant {
        name: "--binary with bare empty context",
        config: "diff.suppressBlankEmpty=true",
        options: &["--binary"],
        strip: 1,
    },
    Variant {
        name: "--binary with folders as prefixes",
        config: "core.quotePath=true",
        options: &["--binary", "--src-prefix=one.orig/two/", "--dst-prefix=one/two/"],
        strip: 2,
    },
];

/// Runs git in `root`, away from the user's settings.
pub fn git(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = hermetic(root);
    let output = command.args(arguments).output().expect("git was found");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// A git that sees no settings but its own, with a fixed author and clock.
pub fn hermetic(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(root).env("LC_ALL", "C.UTF-8").env("HOME", root);
    for scope in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        command.env(scope, "/dev/null");
    }
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "A").env(format!("GIT_{role}_EMAIL"), "a@b");
        command.env(format!("GIT_{role}_DATE"), "2024-01-01T00:00:00Z");
    }
    command
}

fn commit(root: &Path, forest: &Forest, message: &str) {
    forest::plant(forest, root);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "--allow-empty", "-m", message]);
}

/// What git holds: a tree with the executable bit and links, so the same.
fn repository() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    git(root.path(), &["init", "-q"]);
    git(root.path(), &["config", "core.autocrlf", "false"]);
    root
}

pub fn diffs(variant: &Variant) {
    let root = repository();
    let mut with_change = 0;
    for seed in 0..12 {
        let mut dice = Dice::new(seed);
        let old = forest::grow(&mut dice, Kinds::All);
        let new = forest::change(&mut dice, &old, Kinds::All);
        commit(root.path(), &old, "old");
        forest::plant(&new, root.path());
        git(root.path(), &["add", "-A"]);
        let mut arguments = vec!["-c", variant.config, "diff", "--cached"];
        arguments.extend(variant.options);
        let text = git(root.path(), &arguments);
        let patch = read(&text);
        with_change += patch.files.len();
        let (from, to) = if variant.options.contains(&"-R") { (&new, &old) } else { (&old, &new) };
        let silent = silent_binaries(&patch);
        match lay(&patch, variant.strip, from) {
            Ok(_) if silent > 0 => panic!("seed {seed}: laid {silent} changes without data"),
            Ok(laid) => {
                assert!(laid == *to, "seed {seed}: {}", differences(&laid, to));
                let applied = apply(&patch, variant.strip, from);
                assert!(applied == *to, "seed {seed}: {}", differences(&applied, to));
            }
            Err(e) if silent > 0 => assert_eq!(e.reason, Reason::Binary, "seed {seed}"),
            Err(e) => panic!("seed {seed}: {e}\n{}", String::from_utf8_lossy(&text)),
        }
    }
    assert!(with_change > 40, "{with_change} file patches prove little");
}

/// The tree after the engine applied the patch: all of it must hold, and none
/// of it be inferred.
fn apply(patch: &Patch, strip: usize, from: &Forest) -> Forest {
    let file = |(path, (mode, bytes)): (&String, &(Mode, Vec<u8>))| {
        (path.parse().expect("a path"), File::new(*mode, bytes.as_slice()))
    };
    let tree = MemoryTree(from.iter().map(file).collect());
    let mut ground = Ground::alone(&tree);
    let report = ground.apply("the diff", patch, strip).unwrap_or_else(|e| panic!("{e}"));
    let odd = report.hunks.iter().filter(|h| !h.class.holds() || h.inferred);
    let odd: Vec<_> = odd.map(|h| format!("{h:#?}")).collect();
    let files: Vec<_> = report.files.iter().filter(|f| !f.class.holds()).collect();
    assert!(odd.is_empty() && files.is_empty(), "{files:#?}\n{}", odd.join("\n"));
    let mut new = from.clone();
    for (path, file) in ground.target.edits() {
        match file {
            Some(file) => new.insert(path.to_string(), (file.mode, file.bytes.to_vec())),
            None => new.remove(path.as_str()),
        };
    }
    new
}

fn silent_binaries(patch: &Patch) -> usize {
    patch.files.iter().filter(|f| matches!(f.body, Body::BinaryWithoutData(_))).count()
}

pub fn differences(ours: &Forest, theirs: &Forest) -> String {
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let show = |file: Option<&(Mode, Vec<u8>)>| match file {
        Some((mode, bytes)) => {
            format!("{} {:?}", mode.as_str(), String::from_utf8_lossy(bytes))
        }
        None => "nothing".into(),
    };
    names
        .into_iter()
        .filter(|name| ours.get(*name) != theirs.get(*name))
        .map(|name| format!("{name}: {} for {}\n", show(ours.get(name)), show(theirs.get(name))))
        .collect()
}

/// At strip level 1 a file's diff without prefixes, alone, is laid right or
/// refused.
pub fn no_prefix_at_one() {
    let root = repository();
    let (mut laid, mut refused) = (0, 0);
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let old = forest::grow(&mut dice, Kinds::All);
        let new = forest::change(&mut dice, &old, Kinds::All);
        commit(root.path(), &old, "old");
        forest::plant(&new, root.path());
        git(root.path(), &["add", "-A"]);
        let options = ["diff", "--cached", "--binary", "--no-prefix", "--no-renames"];
        for file in read(&git(root.path(), &options)).files {
            let meant = file.names.new.clone().expect("git names both sides");
            let meant = String::from_utf8(meant).expect("the forest's names are UTF-8");
            let alone = Patch { files: vec![file], trailer: Vec::new() };
            let mut wanted = old.clone();
            match new.get(&meant) {
                Some(file) => wanted.insert(meant, file.clone()),
                None => wanted.remove(&meant),
            };
            match lay(&alone, 1, &old) {
                Ok(tree) => {
                    assert!(tree == wanted, "seed {seed}: {}", differences(&tree, &wanted));
                    laid += 1;
                }
                Err(e) => {
                    assert_eq!(e.reason, Reason::Prefix, "seed {seed}: {e}");
                    refused += 1;
                }
            }
        }
    }
    assert!(laid > 20 && refused > 5, "{laid} laid, {refused} refused: one side is untried");
}

/// Several mails in one file: each is laid over the tree the one before left.
pub fn mailboxes() {
    const MESSAGES: [&str; 3] = [
        "Subject\n\nA body, with\n--- dashes ---\nand a list:\n- one\n+ two\n",
        "Fix `@@` handling\n\n    @@ -1 +1 @@ indented\n\nIndex: no diff\n",
        "Ünïcode — subject\n\nFrom me to you\n",
    ];
    let root = repository();
    for seed in 0..8 {
        let mut dice = Dice::new(1000 + seed);
        let mut forest = forest::grow(&mut dice, Kinds::All);
        commit(root.path(), &forest, "base");
        let base = forest.clone();
        let mut steps = Vec::new();
        for message in MESSAGES {
            let next = forest::change(&mut dice, &forest, Kinds::All);
            if next != forest {
                commit(root.path(), &next, message);
                steps.push(next.clone());
                forest = next;
            }
        }
        let range = format!("-{}", steps.len());
        let text = git(root.path(), &["format-patch", "--stdout", "--binary", "--no-base", &range]);
        let whole = read(&text);
        let applied = apply(&whole, 1, &base);
        assert!(applied == forest, "seed {seed}: {}", differences(&applied, &forest));
        let mut at = base;
        let mut files = 0;
        for (mail, step) in mails(&text).iter().zip(&steps) {
            let patch = read(mail);
            files += patch.files.len();
            at = lay(&patch, 1, &at).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert!(at == *step, "seed {seed}: {}", differences(&at, step));
        }
        assert_eq!(whole.files.len(), files, "seed {seed}: the whole has what its mails have");
    }
}

/// The mails of an mbox: `From ` and a commit id begin each.
fn mails(text: &[u8]) -> Vec<Vec<u8>> {
    let mut mails: Vec<Vec<u8>> = Vec::new();
    for line in text.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b"From ") && line.ends_with(b" Mon Sep 17 00:00:00 2001\n") {
            mails.push(Vec::new());
        }
        mails.last_mut().expect("begins with From").extend_from_slice(line);
    }
    mails
}
