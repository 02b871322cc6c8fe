//! A series made for a test: small edits of a tree, as patches.

use std::fs;
use std::path::Path;

use mlx_overlay_engine::contract::Contracts;
use mlx_overlay_engine::listing::Listing;
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

/// A project whose pin is a released tree, with the series of these edits. No
/// commit is known of such a tree: the id is made up.
pub fn project(root: &Path, id: char, tree: &dyn Tree, edits: &[Edit], contracts: &str) {
    let commit = id.to_string().repeat(40);
    let folder = root.join("patches").join(&commit[..8]);
    fs::create_dir_all(&folder).unwrap();
    write(&folder, tree, edits, contracts);
    let listing = Listing::of(tree).unwrap();
    fs::write(folder.join("listing"), listing.to_text()).unwrap();
    let facts = format!(
        "schema = 1\ncommit = \"{commit}\"\ntree = \"{}\"\nversion = \"1.0\"\ndate = 2026-06-15\n\
         upstream = \"http://127.0.0.1:9/x\"\nlisting = \"patches/{}/listing\"\n",
        listing.tree_id(),
        &commit[..8]
    );
    fs::write(root.join("mlx-pin.toml"), facts).unwrap();
}

/// The series of these edits, each an entry of its own with its patch.
pub fn series(tree: &dyn Tree, edits: &[Edit], contracts: &str) -> Series {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), tree, edits, contracts);
    let series = Series::load_folder(folder.path(), &[]).unwrap();
    assert_ne!(series.contracts, Contracts::default());
    series
}

fn write(folder: &Path, tree: &dyn Tree, edits: &[Edit], contracts: &str) {
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
        fs::write(folder.join(&patch_file), patch).unwrap();
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
    fs::write(folder.join("series.toml"), text).unwrap();
}
