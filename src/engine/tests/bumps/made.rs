//! A series made for a test: small edits of a tree, as patches.

use std::fs;

use mlx_overlay_engine::contract::Contracts;
use mlx_overlay_engine::series::Series;
use mlx_overlay_engine::snapshot::{Tree, TreePath};

use super::git;

/// An edit of a file: what is replaced by what. The first must stand once.
pub struct Edit {
    /// The entry's name.
    pub name: &'static str,
    pub file: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

/// The series of these edits, each an entry of its own with its patch.
pub fn series(tree: &dyn Tree, edits: &[Edit], contracts: &str) -> Series {
    let folder = tempfile::tempdir().unwrap();
    let mut text = format!("schema = 1\n\n{contracts}\n");
    for Edit { name, file, from, to } in edits {
        let path = TreePath::new(file).unwrap();
        let before = tree.file(&path).unwrap().unwrap_or_else(|| panic!("no {file}"));
        let before = String::from_utf8(before.bytes.to_vec()).unwrap();
        assert_eq!(before.matches(from).count(), 1, "{name}: `{from}` in {file}");
        let work = tempfile::tempdir().unwrap();
        for (side, text) in [("a", before.clone()), ("b", before.replace(from, to))] {
            let path = work.path().join(side).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let old = format!("a/{file}");
        let new = format!("b/{file}");
        let patch = git(work.path(), &["diff", "--no-index", "--no-prefix", &old, &new]);
        let patch_file = format!("{name}.patch");
        fs::write(folder.path().join(&patch_file), patch).unwrap();
        text.push_str(&format!(
            "[[entry]]\nname = \"{name}\"\npatch = \"{patch_file}\"\ngroup = \"test\"\n\
             reason = \"a test\"\nforwarded = \"not-needed\"\n\n"
        ));
        let gone: Vec<&str> = from.lines().filter(|l| !to.lines().any(|t| t == *l)).collect();
        let gone: Vec<String> = gone
            .iter()
            .map(|l| l.trim())
            .filter(|l| !l.is_empty())
            .map(|l| format!("{l:?}"))
            .collect();
        if !gone.is_empty() {
            text.push_str(&format!(
                "[[note]]\nentry = \"{name}\"\nfile = \"{file}\"\nremoves = [{}]\nreason = \"a test\"\n\n",
                gone.join(", ")
            ));
        }
    }
    fs::write(folder.path().join("series.toml"), text).unwrap();
    let series = Series::load_folder(folder.path(), &[]).unwrap();
    assert_ne!(series.contracts, Contracts::default());
    series
}
