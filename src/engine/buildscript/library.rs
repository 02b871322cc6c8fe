//! The way from a build script's variables to a library to link.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::tree::LaidTree;
use super::{
    Backends, BuildError, BuildKey, Inputs, Library, Link, Platform, Recipe, Store, Variables,
    cmake,
};
use crate::cache::Cache;

/// MLX, ready to be linked.
#[derive(Clone, Debug)]
pub struct Mlx {
    /// The library.
    pub library: Library,
    /// The laid tree it was made of.
    pub tree: LaidTree,
    /// What is built for.
    pub platform: Platform,
    /// The backends it has.
    pub backends: Backends,
    /// What was compiled, or nothing where the library was in the store.
    pub built: Option<Built>,
    /// Features that were asked for and that this platform does not have.
    pub left_out: Vec<String>,
    asked: Vec<String>,
    /// What the user named by path.
    given: Vec<PathBuf>,
}

/// What a build compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// Files of the tree that differ from what the build folder held.
    pub changed: usize,
    /// Objects compiled.
    pub objects: usize,
    /// Objects that the library has.
    pub total: usize,
    /// How long it took.
    pub took: Duration,
}

/// A line that a build script tells cargo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Run again when this changes.
    RerunIfChanged(PathBuf),
    /// Run again when this variable changes.
    RerunIfEnvChanged(String),
    /// Look for libraries here.
    LinkSearch(PathBuf),
    /// Link this library: kind and name.
    LinkLib(String),
    /// A variable for the crate's own compilation.
    Env(&'static str, String),
    /// `DEP_MLX_…` for the build scripts of crates that depend on this one.
    Metadata(&'static str, String),
    /// A word to whoever builds.
    Warning(String),
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Directive::RerunIfChanged(path) => {
                write!(f, "cargo::rerun-if-changed={}", path.display())
            }
            Directive::RerunIfEnvChanged(name) => write!(f, "cargo::rerun-if-env-changed={name}"),
            Directive::LinkSearch(path) => {
                write!(f, "cargo::rustc-link-search=native={}", path.display())
            }
            Directive::LinkLib(lib) => write!(f, "cargo::rustc-link-lib={lib}"),
            Directive::Env(name, value) => write!(f, "cargo::rustc-env={name}={value}"),
            Directive::Metadata(name, value) => write!(f, "cargo::metadata={name}={value}"),
            Directive::Warning(text) => write!(f, "cargo::warning={text}"),
        }
    }
}

impl fmt::Display for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MLX: {} of {} objects compiled for {} changed files, in {:.1} s",
            self.objects,
            self.total,
            self.changed,
            self.took.as_secs_f64()
        )
    }
}

/// Gives the library that the variables ask for, building it where the store
/// has none. Waits while another process builds in the same folder.
///
/// # Errors
/// There is no laid tree, something is not installed, or MLX's build failed.
pub fn library(variables: &Variables) -> Result<Mlx, BuildError> {
    let recipe = Recipe::of(variables)?;
    let cache = Cache::named_by(|name| variables.get(name).map(Into::into))?;
    let store = Store::in_cache(cache.root());
    let tree = LaidTree::find(variables, &cache)?;
    let inputs = &tree.inputs;
    let key = recipe.key(variables, &tree.pin, &tree.source);
    let (library, built) = match store.find(&key.library(inputs.digest())) {
        Some(library) => (library, None),
        None => build(variables, &recipe, &store, &key, inputs)?,
    };
    let given = recipe.given().map(Path::to_path_buf).collect();
    Ok(Mlx {
        library,
        tree,
        platform: recipe.platform,
        backends: recipe.backends,
        built,
        left_out: recipe.left_out,
        asked: variables.asked(),
        given,
    })
}

fn build(
    variables: &Variables,
    recipe: &Recipe,
    store: &Store,
    key: &BuildKey,
    inputs: &Inputs,
) -> Result<(Library, Option<Built>), BuildError> {
    let (folder, lock) = store.build_folder(key)?;
    let library_key = key.library(inputs.digest());
    if let Some(library) = store.find(&library_key) {
        // Whoever held the lock made it.
        return Ok((library, None));
    }
    let start = Instant::now();
    let staged = inputs.stage(&folder.join("src"))?;
    let made = cmake::build(recipe, variables, &folder, &lock, &library_key)?;
    // It is read by CMake, minutes after it went into the key.
    recipe.require_given(variables)?;
    let metal_cpp = variables.path("FETCHCONTENT_SOURCE_DIR_METAL_CPP")?;
    let headers: Vec<PathBuf> = metal_cpp.filter(|_| recipe.backends.metal).into_iter().collect();
    let library = store.put(key, inputs, &made, &headers)?;
    let built = Built {
        changed: staged.written.len() + staged.removed.len(),
        objects: made.objects,
        total: made.total,
        took: start.elapsed(),
    };
    Ok((library, Some(built)))
}

/// Links the library at `path`, static or not as its name tells. Archives stay
/// out of the rlib, where one of hundreds of megabytes would be copied.
fn link_file(path: &Path) -> Vec<Directive> {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix("lib").unwrap_or(&name);
    let (name, kind) = match name.strip_suffix(".a") {
        Some(name) => (name, "static:-bundle"),
        None => (name.find(".so").or(name.find('.')).map_or(name, |at| &name[..at]), "dylib"),
    };
    vec![Directive::LinkSearch(folder), Directive::LinkLib(format!("{kind}={name}"))]
}

impl Mlx {
    /// The lines that tell cargo what to link and when to look again. The
    /// bridge, which uses MLX, must be linked before them.
    #[must_use]
    pub fn directives(&self) -> Vec<Directive> {
        let library = &self.library;
        let mut lines: Vec<Directive> = Vec::new();
        lines.extend(self.tree.watch.iter().cloned().map(Directive::RerunIfChanged));
        lines.extend(self.given.iter().cloned().map(Directive::RerunIfChanged));
        // A library that was removed from the cache must be made again.
        lines.extend(library.archives().map(Directive::RerunIfChanged));
        lines.extend(self.asked.iter().cloned().map(Directive::RerunIfEnvChanged));

        library.archives().for_each(|path| lines.extend(link_file(&path)));
        for link in library.links() {
            match link {
                Link::Dylib(name) => lines.push(Directive::LinkLib(format!("dylib={name}"))),
                Link::Framework(name) => {
                    lines.push(Directive::LinkLib(format!("framework={name}")))
                }
                Link::File(path) => lines.extend(link_file(path)),
            }
        }
        let standard = if self.platform.apple() { "c++" } else { "stdc++" };
        lines.push(Directive::LinkLib(format!("dylib={standard}")));

        let text = |path: &Path| path.display().to_string();
        lines.push(Directive::Env("MLX_OVERLAY_LIBRARY_KEY", library.key().to_owned()));
        lines.push(Directive::Env("MLX_OVERLAY_PIN", self.tree.pin.clone()));
        let metallib = library.metallib().map_or(String::new(), |m| text(&m));
        lines.push(Directive::Env("MLX_OVERLAY_METALLIB", metallib));
        lines.push(Directive::Metadata("root", text(&library.folder)));
        lines.push(Directive::Metadata("include", text(&library.include())));
        lines.push(Directive::Metadata("lib", text(&library.lib())));
        let folder = self.tree.folder.as_deref().map(text);
        lines.extend(folder.map(|f| Directive::Metadata("tree", f)));
        lines.push(Directive::Metadata("key", library.key().to_owned()));

        let note =
            |name: &String| format!("feature `{name}`: {} has no such thing", self.platform.os);
        lines.extend(self.left_out.iter().map(note).map(Directive::Warning));
        lines.extend(self.built.map(|b| Directive::Warning(b.to_string())));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_linked_by_its_name() {
        let linked = |p: &str| link_file(Path::new(p)).pop().map(|d| d.to_string());
        let line = |l: &str| Some(format!("cargo::rustc-link-lib={l}"));
        assert_eq!(linked("/a b/libmlx.a"), line("static:-bundle=mlx"));
        assert_eq!(linked("/usr/lib/libopenblas.so"), line("dylib=openblas"));
        assert_eq!(linked("/usr/lib/libopenblas.so.0"), line("dylib=openblas"));
        assert_eq!(linked("/opt/lib/libomp.dylib"), line("dylib=omp"));
    }
}
