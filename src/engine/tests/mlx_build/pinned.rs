//! A project with a pin and a series, and no published tree at first.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use mlx_overlay_engine::buildscript::{BuildError, Mlx, library};
use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::git::{Limits, Store};
use mlx_overlay_engine::identity;
use mlx_overlay_engine::listing::Listing;
use mlx_overlay_engine::pin::Project as Pinned;
use mlx_overlay_engine::progress::Silent;
use mlx_overlay_engine::publish::{Options, publish};
use mlx_overlay_engine::series::Series;
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, ObjectId, TreePath};

use super::project::{Project, objects};

const UPSTREAM: &str = "https://upstream.invalid/mlx";
const PATCH: &str = "diff --git a/mlx/own.h b/mlx/own.h\n\
    --- a/mlx/own.h\n+++ b/mlx/own.h\n@@ -1,2 +1,2 @@\n #pragma once\n\
    -inline int own() { return 1; }\n+inline int own() { return 3; }\n";

/// The project; `inner.tree` is a repository whose one commit is the pin.
struct Overlay {
    inner: Project,
    root: PathBuf,
}

impl Overlay {
    fn new() -> Self {
        let inner = Project::new();
        let git = |arguments: &[&str]| {
            let run = Command::new("git")
                .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false"])
                .args(arguments)
                .current_dir(&inner.tree)
                .output()
                .unwrap();
            assert!(run.status.success(), "{run:?}");
            String::from_utf8(run.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "-q"]);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "pin"]);
        let (commit, tree) = (git(&["rev-parse", "HEAD"]), git(&["rev-parse", "HEAD^{tree}"]));

        let root = inner.folder.path().canonicalize().unwrap().join("project");
        let folder = root.join("patches").join(&commit[..8]);
        fs::create_dir_all(&folder).unwrap();
        let listing = format!("patches/{}/listing", &commit[..8]);
        let pin = format!(
            "schema = 1\ncommit = \"{commit}\"\ntree = \"{tree}\"\nversion = \"0.0.0\"\n\
             date = 2026-01-01\nupstream = \"{UPSTREAM}\"\nlisting = \"{listing}\"\n"
        );
        fs::write(root.join("mlx-pin.toml"), pin).unwrap();
        fs::write(root.join(listing), Listing::of(&files()).unwrap().to_text()).unwrap();
        let series = "schema = 1\n[[entry]]\nname = \"own\"\npatch = \"0001.patch\"\n\
                      group = \"g\"\nreason = \"r\"\nforwarded = \"no\"\n";
        fs::write(folder.join("series.toml"), series).unwrap();
        fs::write(folder.join("0001.patch"), PATCH).unwrap();
        Self { inner, root }
    }

    fn pinned(&self) -> Pinned {
        Pinned::load(&self.root).unwrap()
    }

    /// Brings the pin's objects into the cache.
    fn fetch(&self) {
        let pin = self.pinned().current;
        let store = Store::new(&Cache::at(&self.inner.cache), UPSTREAM);
        let from = self.inner.tree.to_str().unwrap();
        store.import(pin.commit, pin.tree, from, Limits::default(), &Silent).unwrap();
    }

    /// Publishes where `overlay apply` does, with this text of `own.h`.
    fn publish(&self, own: &str) {
        let pin = self.pinned().current;
        let series = Series::load(&pin).unwrap();
        let entries: Vec<_> = series.entries.iter().collect();
        let mut tree = files();
        tree.0.insert(TreePath::new("mlx/own.h").unwrap(), file(own));
        let place = self.root.join("target/overlay").join(pin.short());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let identity = identity::whole(&pin, &entries, &[]);
        publish(&place, &tree, &identity, &Options::default()).unwrap();
    }

    fn build(&self) -> Result<Mlx, BuildError> {
        let root = self.root.to_str().unwrap();
        library(&self.inner.variables(&[("MLX_OVERLAY_TREE", ""), ("MLX_OVERLAY_DIR", root)]))
    }
}

fn file(text: &str) -> File {
    File::new(Mode::Regular, text.as_bytes())
}

fn files() -> MemoryTree {
    let entries = Project::files().map(|(name, text)| (TreePath::new(name).unwrap(), file(text)));
    MemoryTree(entries.collect::<BTreeMap<_, _>>())
}

/// The text of `own.h` that a library was made of.
fn own(mlx: &Mlx) -> String {
    fs::read_to_string(mlx.library.include().join("mlx/own.h")).unwrap()
}

pub fn nothing_at_hand() {
    let error = Overlay::new().build().unwrap_err();
    let remedies = error.remedies().join("\n");
    assert!(remedies.contains("overlay -C '") && remedies.contains("fetch"), "{remedies}");
    let said = error.to_string();
    assert!(said.contains("nothing is published at"), "{said}");
    assert!(said.contains("the object cache does not hold commit"), "{said}");
}

pub fn laid_in_memory() {
    let overlay = Overlay::new();
    overlay.fetch();
    let built = overlay.build().unwrap();
    assert_eq!((objects(&built), own(&built).contains("return 3")), (3, true));
    let pin = overlay.pinned().current;
    assert_eq!(built.library.fact("pin"), Some(&*pin.commit.to_string()));
    assert!(!overlay.root.join("target").exists(), "nothing is written into the project");

    // Published, it is the same tree from the same source.
    overlay.publish("#pragma once\ninline int own() { return 3; }\n");
    let published = overlay.build().unwrap();
    assert_eq!((published.built, published.library), (None, built.library));

    // A changed patch: what is published is stale, and passed over.
    let patch = pin.folder.join("0001.patch");
    fs::write(&patch, PATCH.replace("return 3", "return 4")).unwrap();
    let changed = overlay.build().unwrap();
    assert_eq!((objects(&changed), own(&changed).contains("return 4")), (1, true));
    assert!(changed.tree.watch.contains(&pin.folder));

    // A patch that does not hold is an error, and the old library stays.
    fs::write(&patch, PATCH.replace("return 1", "return 9")).unwrap();
    let error = overlay.build().unwrap_err().to_string();
    assert!(error.contains("the series does not hold: own"), "{error}");
    assert_eq!(overlay.inner.stored("libraries").len(), 2);
}

pub fn damaged_objects() {
    let overlay = Overlay::new();
    overlay.fetch();
    let pin_file = overlay.root.join("mlx-pin.toml");
    let wrong = ObjectId::from_raw([7; 20]).to_string();
    let text = fs::read_to_string(&pin_file).unwrap();
    let tree = overlay.pinned().current.tree.to_string();
    fs::write(&pin_file, text.replace(&tree, &wrong)).unwrap();
    let error = overlay.build().unwrap_err().to_string();
    assert!(error.contains(&wrong), "{error}");
}
