//! What the engine leaves to others, looked for in its own sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that no source of the engine's holds, and whose they are.
const OTHERS: [(&str, &str); 9] = [
    ("println!", "the cli prints"),
    ("print!", "the cli prints"),
    ("dbg!", "the cli prints"),
    ("io::stdout", "the cli prints"),
    ("io::stderr", "the cli prints"),
    ("terminal()", "the cli knows whether there is a terminal"),
    ("NO_COLOR", "the cli knows about colours"),
    ("CARGO_", "cargo's variables are the build script's, which passes them on"),
    ("process::exit", "the cli turns outcomes into exit codes"),
];

/// Crates that speak to a terminal, or read a command line.
const CRATES: [&str; 8] =
    ["anstream", "anstyle", "anyhow", "clap", "console", "crossterm", "indicatif", "termcolor"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // Tests print; `buildscript` is the face that build scripts see.
        if path.is_dir() && !matches!(name, "tests" | "buildscript" | "target") {
            sources(&path, found);
        } else if name.ends_with(".rs") && !matches!(name, "boundary.rs" | "buildscript.rs") {
            found.push(path);
        }
    }
}

#[test]
fn what_is_others_is_left_to_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(root, &mut found);
    assert!(found.len() > 80, "{} sources", found.len());
    let mut wrong = Vec::new();
    for path in found {
        let text = fs::read_to_string(&path).unwrap();
        for (n, line) in text.lines().enumerate() {
            // The package's own version and folder are no setting of a build's.
            let line = line.replace("env!(\"CARGO_PKG_VERSION\")", "");
            let line = line.replace("env!(\"CARGO_MANIFEST_DIR\")", "");
            let words = OTHERS.iter().filter(|(word, _)| line.contains(word));
            wrong.extend(
                words.map(|(w, why)| format!("{}:{}: `{w}`: {why}", path.display(), n + 1)),
            );
        }
    }
    assert_eq!(wrong, [""; 0]);
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for name in CRATES {
        let named = manifest.lines().find(|l| l.starts_with(name));
        assert_eq!(named, None, "a crate of the cli's");
    }
}
