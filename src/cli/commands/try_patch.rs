//! `overlay try`: the engine on any folder and any patches.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mlx_overlay_engine::apply::Ground;
use mlx_overlay_engine::disk::DiskTree;
use mlx_overlay_engine::patch::{self, Patch, quilt};
use mlx_overlay_engine::publish::{self, Mended, Options, Pending};
use mlx_overlay_engine::report::PatchReport;
use mlx_overlay_engine::snapshot::{File, Snapshot, Tree, TreePath};

use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::render;
use crate::cli::ui::{Format, Ui};

/// Lay any patches on any folder
///
/// TREE is a folder; a PATCH is a unified diff (git's or plain, a mail or
/// several in one file), a quilt `series` file, or a folder that holds one.
/// The patches are laid in order, in memory; a hunk lands only where it is
/// proven to belong, no fuzz is ever applied, and nothing is written unless
/// all of it holds.
///
/// Without --out or --in-place nothing is written: the report alone is the
/// result.
///
/// An earlier --in-place that was killed is brought to its end before another
/// one begins. With --dry-run that is told and not done, and the report is of
/// the folder as it would be then.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlay try mlx fix.patch                       would it apply, and where?
  overlay try mlx debian/patches --out mlx-new    lay a quilt series into a new folder
  overlay try new fix.patch --base old            map places from the tree it was made for")]
pub struct Args {
    /// The folder to lay the patches on
    tree: PathBuf,
    /// Patch files, quilt `series` files or folders with one, in order
    #[arg(required = true, value_name = "PATCH")]
    patches: Vec<PathBuf>,
    /// The folder the patches were made for: places come from the diff
    /// between it and TREE
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Write the result to this folder, which must not exist or be empty
    #[arg(long, value_name = "DIR", conflicts_with = "in_place")]
    out: Option<PathBuf>,
    /// Write the result into TREE itself
    #[arg(long)]
    in_place: bool,
    /// Parts to strip from the names in a patch (a quilt series states its own)
    #[arg(short = 'p', long, value_name = "N", default_value_t = 1)]
    strip: usize,
    /// Write nothing, whatever else is asked for
    #[arg(long)]
    dry_run: bool,
}

/// A patch file, read and parsed.
struct Loaded {
    name: String,
    patch: Patch,
    strip: usize,
}

/// Runs `overlay try`.
///
/// # Errors
/// A patch is refused, a file cannot be read or written, or the result's
/// folder is in the way.
pub fn run(args: Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let Opened { tree, mended, pending } = open_tree(&args)?;
    if let Some(Mended(edit)) = &mended {
        ui.note(format!(
            "an earlier edit of this folder was broken off; it {} brought to its end first ({} \
             written, {} removed)",
            if args.dry_run { "would be" } else { "was" },
            render::count(edit.written.len(), "file"),
            edit.removed.len()
        ));
    }
    let mut ahead = Snapshot::new(&tree);
    for (path, file) in pending {
        match file {
            Some(file) => ahead.put(path, file),
            None => ahead.remove(path),
        }
    }
    let at: &dyn Tree = if ahead.edits().is_empty() { &tree } else { &ahead };
    let base = args.base.as_deref().map(open).transpose()?;
    let mut patches = Vec::new();
    for path in &args.patches {
        load(path, args.strip, &mut patches)?;
    }
    let mut ground = match &base {
        Some(base) => Ground::mapped(base, at),
        None => Ground::alone(at),
    };
    let mut reports = Vec::new();
    for Loaded { name, patch, strip } in &patches {
        let report = ground.apply(name, patch, *strip);
        reports.push(report.map_err(|e| CommandError::from_apply(e, name))?);
    }
    let holds = reports.iter().all(PatchReport::holds);
    if let Some(out) = args.out.as_ref().filter(|_| holds && args.dry_run) {
        publish::require_free(out)?;
    }
    let wrote = if holds && !args.dry_run { write(&args, &tree, &ground)? } else { None };
    print(ui, &reports, wrote, mended.as_ref(), holds);
    Ok(if holds { Outcome::Done } else { Outcome::NeedsPerson })
}

/// The folder to lay patches on.
struct Opened {
    tree: DiskTree,
    /// An earlier edit in place, broken off, that comes first.
    mended: Option<Mended>,
    /// What is left of it to do: under `--dry-run` it is not done.
    pending: BTreeMap<TreePath, Option<File>>,
}

fn open_tree(args: &Args) -> Result<Opened, CommandError> {
    let dir = &args.tree;
    require_folder(dir)?;
    if args.in_place
        && args.dry_run
        && let Some(Pending { mended, edits }) = publish::pending_edit(dir)?
    {
        let tree = DiskTree::open_amid_edit(dir)?;
        return Ok(Opened { tree, mended: Some(mended), pending: edits });
    }
    let mended = match args.in_place && !args.dry_run {
        true => publish::mend_edit(dir, &Options::default())?,
        false => None,
    };
    Ok(Opened { tree: DiskTree::open(dir)?, mended, pending: BTreeMap::new() })
}

fn open(dir: &Path) -> Result<DiskTree, CommandError> {
    require_folder(dir)?;
    Ok(DiskTree::open(dir)?)
}

fn require_folder(dir: &Path) -> Result<(), CommandError> {
    match dir.is_dir() {
        true => Ok(()),
        false => Err(CommandError::usage(format!("`{}` is no folder", dir.display()))),
    }
}

/// Reads a patch, or every patch of a quilt series.
fn load(path: &Path, strip: usize, into: &mut Vec<Loaded>) -> Result<(), CommandError> {
    let series = if path.is_dir() { path.join("series") } else { path.to_path_buf() };
    if !path.is_dir() && path.file_name().is_none_or(|n| n != "series") {
        into.push(load_patch(path, path.display().to_string(), strip, Empty::Refused)?);
        return Ok(());
    }
    let text = read(&series).map_err(|error| match path.is_dir() {
        true => {
            error.hint("a folder is read as quilt's, by its `series` file; or name the patches")
        }
        false => error,
    })?;
    let entries = quilt::parse_series(&text)
        .map_err(|refusal| CommandError::from_refusal(refusal, series.display()))?;
    let folder = series.parent().unwrap_or(Path::new("."));
    for entry in entries {
        let path = folder.join(entry.name.as_str());
        let there = match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
            other => other,
        };
        if let Err(error) = there {
            let what = format!("the patch `{}` cannot be read", entry.name);
            let error = anyhow::Error::new(error).context(what);
            return Err(CommandError::new(ErrorKind::Refused, error)
                .reason("no-patch")
                .at(series.display(), Some(entry.line), None)
                .hint("put the patch there, or take its line out of the series"));
        }
        into.push(load_patch(&path, entry.name.to_string(), entry.strip, Empty::Allowed)?);
    }
    Ok(())
}

/// Whether a patch file may hold no change: in a quilt series it may.
enum Empty {
    Allowed,
    Refused,
}

fn load_patch(
    path: &Path,
    name: String,
    strip: usize,
    empty: Empty,
) -> Result<Loaded, CommandError> {
    let bytes = read(path)?;
    let refused = |refusal| CommandError::from_refusal(refusal, path.display());
    let patch = patch::parse(&bytes).map_err(refused)?;
    if let Empty::Refused = empty {
        patch.require_files().map_err(refused)?;
    }
    Ok(Loaded { name, patch, strip })
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::Usage,
            std::io::ErrorKind::IsADirectory => ErrorKind::Refused,
            _ => ErrorKind::Failed,
        };
        let error = anyhow::Error::new(error).context("cannot be read");
        CommandError::new(kind, error).at(path.display(), None, None)
    })
}

fn write<'a>(
    args: &'a Args,
    tree: &DiskTree,
    ground: &Ground,
) -> Result<Option<&'a Path>, CommandError> {
    if let Some(out) = &args.out {
        publish::write_new(out, &ground.target, &Options::default())?;
        return Ok(Some(out));
    }
    if args.in_place {
        publish::edit_in_place(tree, ground.target.edits(), &Options::default())?;
        return Ok(Some(&args.tree));
    }
    Ok(None)
}

fn print(
    ui: &mut Ui,
    reports: &[PatchReport],
    wrote: Option<&Path>,
    mended: Option<&Mended>,
    holds: bool,
) {
    if ui.format() == Format::Json {
        let wrote = wrote.map(|w| w.display().to_string());
        let json = serde_json::json!({
            "holds": holds, "wrote": wrote, "mended": mended, "patches": reports,
        });
        ui.json("try", 1, &json);
        return;
    }
    reports.iter().for_each(|r| render::patch(ui, r));
    let hunks = reports.iter().map(|r| r.hunks.len()).sum();
    let held = reports.iter().flat_map(|r| &r.hunks).filter(|h| h.class.holds()).count();
    let patches = render::count(reports.len(), "patch").replace("patchs", "patches");
    let counts = match hunks {
        // What makes, renames or removes files alone.
        0 => format!("{patches} without a hunk"),
        _ => format!("{patches}, {held} of {} hold", render::count(hunks, "hunk")),
    };
    ui.line(match (holds, wrote) {
        (true, Some(to)) => format!("{counts}. Wrote {}.", to.display()),
        (true, None) => format!("{counts}. Nothing was written (--out DIR or --in-place writes)."),
        (false, _) => format!("{counts}. Nothing was written: all must hold."),
    });
}
