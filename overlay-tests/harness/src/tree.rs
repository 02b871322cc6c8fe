//! The files of a laid tree that the harness reads, asked for before anything
//! is compiled.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::HarnessError;

/// Where in a tree the kernels are.
pub const KERNELS_DIR: &str = "mlx/backend/metal/kernels";
/// The file that instantiates them.
const KERNELS: &str = "mlx/backend/metal/kernels/quantized.metal";

/// Asks for `quantized.metal` and for every header that it includes, and those
/// include; `stands_in` says for which of them the host Metal has its own.
///
/// # Errors
/// One is missing, or cannot be read.
pub(crate) fn ask_for(tree: &Path, stands_in: impl Fn(&str) -> bool) -> Result<(), HarnessError> {
    let mut files = vec![PathBuf::from(KERNELS)];
    let mut asked = 0;
    while let Some(file) = files.get(asked).cloned() {
        asked += 1;
        let text = read(tree, &file)?;
        for name in includes(&text).filter(|name| !stands_in(name)) {
            let beside = file.with_file_name(name);
            let found = if tree.join(&beside).is_file() { beside } else { PathBuf::from(name) };
            if !files.contains(&found) {
                files.push(found);
            }
        }
    }
    Ok(())
}

/// The text of a file of a tree.
///
/// # Errors
/// It is missing, or cannot be read.
pub(crate) fn read(tree: &Path, file: &Path) -> Result<String, HarnessError> {
    let path = tree.join(file);
    fs::read_to_string(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            HarnessError::NotATree { tree: tree.to_path_buf(), missing: file.display().to_string() }
        }
        _ => HarnessError::io(&path)(error),
    })
}

/// What a text includes in quotes.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let directive = line.trim_start().strip_prefix('#')?.trim_start();
        let name = directive.strip_prefix("include")?.trim_start().strip_prefix('"')?;
        name.split_once('"').map(|(name, _)| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plant(tree: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let file = tree.join(KERNELS_DIR).join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    fn said(tree: &Path) -> String {
        ask_for(tree, |name| name == "host.h").map_or_else(|e| e.to_string(), |()| "all".into())
    }

    #[test]
    fn a_header_that_a_header_includes_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        assert!(said(tree).ends_with(&format!("not a whole MLX tree: {KERNELS} is missing")));
        let header = format!("{KERNELS_DIR}/a.h");
        let text = format!("#include \"host.h\"\n# include \"{header}\"\n");
        plant(tree, &[("quantized.metal", &text)]);
        assert!(said(tree).ends_with(&format!("{header} is missing")), "{}", said(tree));
        plant(tree, &[("a.h", "#include <metal_stdlib>\n#include \"sub/b.h\"\n")]);
        assert!(said(tree).ends_with("sub/b.h is missing"), "{}", said(tree));
        plant(tree, &[("sub/b.h", "#include \"b.h\"\n")]);
        assert_eq!(said(tree), "all");
    }

    #[test]
    fn what_cannot_be_read_is_not_called_missing() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        fs::create_dir_all(tree.join(KERNELS)).unwrap();
        assert!(matches!(ask_for(tree, |_| false), Err(HarnessError::Io { .. })), "{}", said(tree));
        fs::remove_dir(tree.join(KERNELS)).unwrap();
        fs::write(tree.join(KERNELS), b"\xff").unwrap();
        assert!(said(tree).contains("UTF-8"), "{}", said(tree));
    }
}
