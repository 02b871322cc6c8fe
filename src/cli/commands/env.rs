//! `overlay env`: what another build system needs to use the laid tree.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::buildscript::{Inputs, Library, Store};
use mlx_overlay_engine::cache::{Cache, CacheError};
use mlx_overlay_engine::pin::Project;
use mlx_overlay_engine::publish::{self, Depth, PublishError, StampError};
use serde_json::json;

use super::published::project;
use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::remedy::{Apply, default_place, quoted, word};
use crate::cli::ui::{Format, Ui};

/// Print what another build system needs to use the laid tree
///
/// For those who keep their own CMake: lines for a shell that name the laid
/// tree as CMake's FetchContent takes it, and the headers and archives of the
/// MLX that the feature `runtime` built from this very tree, once it did.
/// Several builds of one tree (flags, targets) are told apart by their keys; the
/// last one made is printed, or the one that --key names.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  eval \"$(overlay env)\"
  cmake -B build -D FETCHCONTENT_SOURCE_DIR_MLX=\"$FETCHCONTENT_SOURCE_DIR_MLX\"
  overlay env target/overlay/9a795735    a tree by its folder
  overlay env --format json              with every build of the tree")]
pub struct Args {
    /// The laid tree; without it the published one of the project's pin
    #[arg(value_name = "DIR")]
    tree: Option<PathBuf>,
    /// The beginning of the key of the build to name
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// Runs `overlay env`.
///
/// # Errors
/// There is no laid tree, it does not hold the whole of MLX, or no build has
/// the key asked for.
pub fn run(args: &Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let tree = tree(args)?;
    let inputs = Inputs::read(&tree).map_err(|e| CommandError::new(ErrorKind::Missing, e))?;
    let mut built = match Cache::of_user() {
        // Where there is no cache nothing was built.
        Err(CacheError::NoPlace) => Vec::new(),
        cache => Store::in_cache(cache?.root()).made_of(inputs.digest()),
    };
    if let Some(key) = &args.key {
        built.retain(|library| library.key().starts_with(key.as_str()));
        if built.is_empty() {
            let what = format!("no build of `{}` has a key that begins `{key}`", tree.display());
            return Err(CommandError::new(ErrorKind::Missing, anyhow::Error::msg(what)));
        }
    }
    built.sort_by_key(made);
    match ui.format() {
        Format::Json => print_json(ui, &tree, &built),
        _ => print_text(ui, &tree, built.last()),
    }
    Ok(Outcome::Done)
}

fn tree(args: &Args) -> Result<PathBuf, CommandError> {
    let missing = |error: anyhow::Error| CommandError::new(ErrorKind::Missing, error);
    let named = match &args.tree {
        Some(tree) => tree.clone(),
        None => {
            let project = Project::find(&std::env::current_dir()?)?;
            default_place(&project, &project.current, None)
        }
    };
    let project = project()?;
    let out = args.tree.iter().map(|t| format!(" --out {}", word(&t.display().to_string())));
    let publish = format!("`overlay apply{}` publishes a tree", out.collect::<String>());
    match publish::survey(&named, Depth::Stat) {
        Ok(survey) => match survey.stamp.identity.partial {
            None => Ok(survey.place),
            Some(partial) => Err(missing(anyhow::anyhow!(
                "`{}` holds {} of MLX's {} files: it can be read, not built",
                named.display(),
                partial.have,
                partial.of
            ))
            .hint(format!(
                "{} lays all of them",
                Apply::of_tree(project.as_ref(), &survey.stamp.identity, &named)
                    .with("--from <clone or URL>")
            ))
            .hint("`overlay apply --at crate:NAME@VERSION:folder` lays a whole tree of a release")),
        },
        // A tree that the user names may be a plain one.
        Err(PublishError::Stamp(StampError::Missing { .. })) if args.tree.is_some() => {
            named.canonicalize().map_err(|e| {
                let what = format!("`{}` cannot be found", named.display());
                missing(anyhow::Error::new(e).context(what)).hint(publish)
            })
        }
        Err(error @ PublishError::Stamp(StampError::Missing { .. })) => {
            Err(missing(anyhow::Error::new(error)).hint(publish))
        }
        Err(error) => Err(Apply::of_place(project.as_ref(), &named).mends(error)),
    }
}

/// When a library was stored.
fn made(library: &Library) -> Option<std::time::SystemTime> {
    std::fs::metadata(&library.folder).and_then(|m| m.modified()).ok()
}

fn print_text(ui: &mut Ui, tree: &Path, library: Option<&Library>) {
    let mut line = |name: &str, value: &Path| {
        ui.line(format!("export {name}={}", quoted(&value.display().to_string())));
    };
    line("FETCHCONTENT_SOURCE_DIR_MLX", tree);
    line("MLX_OVERLAY_TREE", tree);
    match library {
        Some(library) => {
            line("MLX_OVERLAY_INCLUDE", &library.include());
            line("MLX_OVERLAY_LIB", &library.lib());
        }
        None => ui.note(
            "No library was built from this tree yet: `cargo build` of a crate that depends on \
             mlx-overlay with feature `runtime` builds one.",
        ),
    }
}

fn print_json(ui: &mut Ui, tree: &Path, built: &[Library]) {
    let library = |l: &Library| {
        json!({
            "key": l.key(), "include": l.include(), "lib": l.lib(), "metallib": l.metallib(),
            "pin": l.fact("pin"), "target": l.fact("target"), "features": l.fact("features"),
        })
    };
    let built: Vec<_> = built.iter().map(library).collect();
    ui.json("env", 1, &json!({ "tree": tree, "libraries": built }));
}
