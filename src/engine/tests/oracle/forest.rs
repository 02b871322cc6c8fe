//! Random trees and random edits of them, from a seed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use mlx_overlay_engine::snapshot::Mode;

/// A tree as a test holds it.
pub type Forest = BTreeMap<String, (Mode, Vec<u8>)>;

/// SplitMix64: small, and the same everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

const NAMES: [&str; 15] = [
    "f.txt",
    "a/f.txt",
    "b/f.txt",
    "d/f.txt",
    "d/e/x.rs",
    "d/e/y z.rs",
    "hé/ü.c",
    "quo\"te.h",
    "back\\slash",
    "tab\there",
    " lead",
    "-- dash",
    "c/i w",
    "README b/README",
    "x and y differ",
];

/// Lines that look like parts of a patch, and plain ones that repeat.
const LINES: [&str; 20] = [
    "",
    "}",
    "    return x;",
    "int f(void)",
    "{",
    "fn main() {",
    "- ",
    "-- ",
    "-- a/f.txt",
    "++ b/f.txt",
    "@@ -1 +1 @@",
    "diff --git a/f b/f",
    "\\ No newline at end of file",
    "From 0123456789 Mon Sep 17 00:00:00 2001",
    "Index: f",
    "Binary files a and b differ",
    " indented",
    "\ttabbed ",
    "caf\u{e9}",
    "*** x",
];

/// Which kinds of file a tree may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// Text alone, no modes, no links: what `diff -r` can say.
    Plain,
    /// All git knows.
    All,
}

fn text(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    let end = if dice.roll(6) == 0 { "\r\n" } else { "\n" };
    for n in 0..dice.roll(40) {
        match dice.roll(3) {
            0 => bytes.extend_from_slice(format!("line {n}").as_bytes()),
            _ => bytes.extend_from_slice(dice.pick(&LINES).as_bytes()),
        }
        bytes.extend_from_slice(end.as_bytes());
    }
    if dice.roll(4) == 0 {
        bytes.truncate(bytes.trim_ascii_end().len());
    }
    bytes
}

fn content(dice: &mut Dice, kinds: Kinds) -> (Mode, Vec<u8>) {
    if kinds == Kinds::Plain {
        return (Mode::Regular, text(dice));
    }
    match dice.roll(10) {
        0 => (Mode::Symlink, dice.pick(&["f.txt", "d/x", "no such file"]).as_bytes().to_vec()),
        1 => (Mode::Regular, (0..dice.roll(3000)).map(|_| dice.roll(5) as u8).collect()),
        2 | 3 => (Mode::Executable, text(dice)),
        _ => (Mode::Regular, text(dice)),
    }
}

fn edit(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(lines.len() + 1);
        match dice.roll(4) {
            0 if at < lines.len() => {
                lines.remove(at);
            }
            1 if at < lines.len() => {
                let line = &mut lines[at];
                line.splice(..0, dice.pick(&LINES).bytes());
            }
            2 if at + 1 == lines.len() => {
                let line = &mut lines[at];
                match line.ends_with(b"\n") {
                    true => line.truncate(line.len() - 1),
                    false => line.push(b'\n'),
                }
            }
            _ if at < lines.len() => {
                let mut line = dice.pick(&LINES).as_bytes().to_vec();
                line.push(b'\n');
                lines.insert(at, line);
            }
            _ => {
                if let Some(last) = lines.last_mut().filter(|l| !l.ends_with(b"\n")) {
                    last.push(b'\n');
                }
                lines.push(b"at the end\n".to_vec());
            }
        }
    }
    lines.concat()
}

/// A tree of a few files; no name is a folder of another.
pub fn grow(dice: &mut Dice, kinds: Kinds) -> Forest {
    let mut forest = Forest::new();
    for name in NAMES {
        if dice.roll(2) == 0 {
            forest.insert(name.into(), content(dice, kinds));
        }
    }
    forest.entry("keep".into()).or_insert((Mode::Regular, b"k\n".to_vec()));
    forest
}

/// The tree after some edits: changed, created, deleted, moved, copied files.
pub fn change(dice: &mut Dice, forest: &Forest, kinds: Kinds) -> Forest {
    let mut new = forest.clone();
    for name in NAMES {
        let file = new.get(name).cloned();
        match (dice.roll(8), file) {
            (0, _) => {
                new.remove(name);
            }
            (1, None) => {
                new.insert(name.into(), content(dice, kinds));
            }
            (2, Some((mode, bytes))) if kinds == Kinds::All && mode != Mode::Symlink => {
                let mode = match mode {
                    Mode::Regular => Mode::Executable,
                    _ => Mode::Regular,
                };
                new.insert(name.into(), (mode, bytes));
            }
            (3, Some((mode, bytes))) => {
                let bytes = if dice.roll(2) == 0 { bytes } else { edit(dice, &bytes) };
                let to = format!("moved/{name}");
                if dice.roll(2) == 0 {
                    new.remove(name);
                }
                new.insert(to, (mode, bytes));
            }
            (4..=6, Some((mode, bytes))) if mode != Mode::Symlink => {
                new.insert(name.into(), (mode, edit(dice, &bytes)));
            }
            _ => {}
        }
    }
    new
}

/// Writes the tree into a folder, in place of what is there (`.git` stays).
pub fn plant(forest: &Forest, root: &Path) {
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for (name, (mode, bytes)) in forest {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match mode {
            Mode::Symlink => symlink(std::str::from_utf8(bytes).unwrap(), &path).unwrap(),
            _ => {
                fs::write(&path, bytes).unwrap();
                let bits = if *mode == Mode::Executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            }
        }
    }
}
