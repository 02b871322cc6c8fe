//! What the engine's errors are at the command line: their kind, their place,
//! and what to do next.

use std::path::Path;

use anyhow::Error;
use mlx_overlay_engine::acquire::{AcquireError, UPSTREAM_VARIABLE};
use mlx_overlay_engine::cache::{Cache, CacheError};
use mlx_overlay_engine::disk::DiskError;
use mlx_overlay_engine::git::GitError;
use mlx_overlay_engine::lay::LayError;
use mlx_overlay_engine::listing::ListingError;
use mlx_overlay_engine::pin::PinError;
use mlx_overlay_engine::publish::{EDIT_FOLDER, PublishError};
use mlx_overlay_engine::registry::RegistryError;
use mlx_overlay_engine::series::SeriesError;
use mlx_overlay_engine::snapshot::ReadError;
use mlx_overlay_engine::stored::{Place, StoredError, message};

use super::error::{CommandError, DAMAGED, ErrorKind};
use super::remedy::word;

/// The words of an error without the place that they begin with, and its cause.
fn told(error: &dyn std::error::Error, place: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    let words = text.strip_prefix(&format!("{place}: ")).unwrap_or(&text).to_owned();
    match error.source() {
        Some(cause) => Error::msg(message(cause)).context(words),
        None => Error::msg(words),
    }
}

/// A fault of a stored file; the place is told apart from the words.
fn form(error: &dyn std::error::Error, place: &Place) -> CommandError {
    let (file, line) = (place.file.display(), Some(place.line));
    CommandError::new(ErrorKind::Refused, told(error, place)).at(file, line, None)
}

/// A fault of a file as a whole.
fn of_file(error: &dyn std::error::Error, file: &Path) -> CommandError {
    let told = told(error, file.display());
    CommandError::new(ErrorKind::Refused, told).at(file.display(), None, None)
}

impl From<StoredError> for CommandError {
    fn from(error: StoredError) -> Self {
        match &error {
            StoredError::Form { place, .. } => form(&error, place).reason("form"),
            StoredError::Read { file, .. } => of_file(&error, file).reason("read"),
        }
    }
}

impl From<ListingError> for CommandError {
    fn from(error: ListingError) -> Self {
        let fault = match &error {
            ListingError::Line { place, .. }
            | ListingError::Order { place, .. }
            | ListingError::Clash { place, .. } => form(&error, place),
            ListingError::Read { file, .. } | ListingError::WrongTree { file, .. } => {
                of_file(&error, file)
            }
        };
        fault.reason("listing").hint("restore the listing from version control")
    }
}

impl From<PinError> for CommandError {
    fn from(error: PinError) -> Self {
        match error {
            PinError::Stored(error) => error.into(),
            PinError::Listing(error) => error.into(),
            PinError::NoFolder { ref place, .. } => form(&error, place)
                .reason("no-folder")
                .hint("restore the folder from version control"),
            usage => Self::new(ErrorKind::Usage, usage).reason("pin"),
        }
    }
}

impl From<SeriesError> for CommandError {
    fn from(error: SeriesError) -> Self {
        match error {
            SeriesError::Stored(error) => error.into(),
            SeriesError::SameName { ref place, .. }
            | SeriesError::SamePatch { ref place, .. }
            | SeriesError::SameContract { ref place, .. } => form(&error, place).reason("twice"),
            SeriesError::NoPatch { ref place, .. } => form(&error, place)
                .reason("no-patch")
                .hint("put the patch there, or take its entry out of the series"),
            SeriesError::Unlisted { ref path, .. } => of_file(&error, path).reason("unlisted"),
            error @ SeriesError::NoGroup { .. } => {
                Self::new(ErrorKind::Usage, error).reason("no-group")
            }
        }
    }
}

impl From<CacheError> for CommandError {
    fn from(error: CacheError) -> Self {
        let kind = match error {
            CacheError::Relative { .. } => ErrorKind::Usage,
            CacheError::NoPlace => ErrorKind::Missing,
            _ => ErrorKind::Failed,
        };
        Self::new(kind, error).reason("cache")
    }
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Cache(error) => error.into(),
            error @ (GitError::WrongTree { .. } | GitError::Name { .. }) => {
                Self::new(ErrorKind::Refused, error).reason("wrong-tree")
            }
            GitError::NoRevision { ref path, .. } => {
                let all = format!("git -C {} for-each-ref", word(&path.display().to_string()));
                Self::new(ErrorKind::Usage, error).reason("no-revision").hint(format!(
                    "name it by its id, a tag or a branch: `{all}` lists those that are here"
                ))
            }
            GitError::Ambiguous { ref commits, .. } => {
                let some = commits.iter().take(8).map(ToString::to_string);
                let more = if commits.len() > 8 { ", …" } else { "" };
                let ids = format!("{}{more}", some.collect::<Vec<_>>().join(", "));
                Self::new(ErrorKind::Usage, error)
                    .reason("no-revision")
                    .hint(format!("give more digits: {ids}"))
            }
            GitError::Damaged { ref path, .. } => {
                let (kind, hint) = of_damage(path);
                Self::new(kind, error).reason(DAMAGED).hint(hint)
            }
            error => Self::new(ErrorKind::Missing, error).reason("no-source"),
        }
    }
}

/// What a damaged repository is, and what to do: a clone is a source that is not to be
/// had, and the cache is ours.
fn of_damage(path: &Path) -> (ErrorKind, String) {
    let shown = word(path.display().to_string().trim_end_matches('/'));
    if !Cache::of_user().is_ok_and(|cache| cache.holds(path)) {
        let fsck = format!("`git -C {shown} fsck` names what is damaged; a new clone is whole");
        return (ErrorKind::Missing, fsck);
    }
    let mend = match shown.ends_with(".history.git") {
        true => format!("`rm -rf {shown}`: it is fetched again"),
        false => "`overlay fetch` finds what is damaged in the cache and mends it".to_owned(),
    };
    (ErrorKind::Failed, mend)
}

impl From<RegistryError> for CommandError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Cache(error) => error.into(),
            error @ RegistryError::Name { .. } => {
                Self::new(ErrorKind::Refused, error).reason("name")
            }
            error @ RegistryError::Read { .. } => Self::new(ErrorKind::Failed, error),
            error => Self::new(ErrorKind::Missing, error).reason("no-source"),
        }
    }
}

impl From<AcquireError> for CommandError {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Listing(error) => error.into(),
            AcquireError::Cache(error) => error.into(),
            error @ AcquireError::WrongPin { .. } => {
                Self::new(ErrorKind::Refused, error).reason("wrong-pin")
            }
            AcquireError::Named(named) => {
                let error = match named {
                    damaged @ GitError::Damaged { .. } => damaged.into(),
                    named => Self::new(ErrorKind::Missing, AcquireError::Named(named))
                        .reason("no-source"),
                };
                error.hint(
                    "name a clone of upstream, or leave --from out: the other sources are asked then",
                )
            }
            error @ AcquireError::OffLimits { .. } => Self::new(ErrorKind::Missing, error)
                .reason("no-source")
                .hint("leave --offline out, or name a clone on this machine: --from DIR"),
            error @ AcquireError::Nowhere { .. } => Self::new(ErrorKind::Missing, error)
                .reason("no-source")
                .hint(format!("name a clone of upstream: --from DIR, or set {UPSTREAM_VARIABLE}"))
                .hint("`overlay doctor` says what this machine lacks"),
        }
    }
}

impl From<ReadError> for CommandError {
    fn from(error: ReadError) -> Self {
        // A pin's file that nothing at hand proves is a source that is missing.
        match error.source.kind() {
            std::io::ErrorKind::NotFound => Self::new(ErrorKind::Missing, error),
            std::io::ErrorKind::InvalidData => {
                let git = error.source.get_ref().and_then(|e| e.downcast_ref::<GitError>());
                let (kind, hint) = match git {
                    Some(GitError::Damaged { path, .. }) => {
                        let (kind, hint) = of_damage(path);
                        (kind, Some(hint))
                    }
                    _ => (ErrorKind::Failed, None),
                };
                let error = Self::new(kind, error).reason(DAMAGED);
                hint.into_iter().fold(error, Self::hint)
            }
            _ => Self::new(ErrorKind::Failed, error),
        }
    }
}

impl From<LayError> for CommandError {
    fn from(error: LayError) -> Self {
        match error {
            LayError::Series(error) => error.into(),
            LayError::Refused { path, refusal } => Self::from_refusal(refusal, path.display()),
            LayError::Read(error) => error.into(),
        }
    }
}

impl From<DiskError> for CommandError {
    fn from(error: DiskError) -> Self {
        let kind = match error {
            DiskError::Name { .. } | DiskError::Reserved { .. } | DiskError::Special { .. } => {
                ErrorKind::Refused
            }
            DiskError::Unfinished { ref path } => {
                let try_again = format!(
                    "`overlay try {} PATCH… --in-place` brings it to its end first",
                    word(&path.display().to_string())
                );
                return Self::new(ErrorKind::NeedsPerson, error)
                    .reason("unfinished")
                    .hint(try_again);
            }
            DiskError::Edit(error) => return error.into(),
            _ => ErrorKind::Failed,
        };
        Self::new(kind, error)
    }
}

impl From<PublishError> for CommandError {
    fn from(error: PublishError) -> Self {
        use PublishError::{
            Foreign, HandEdited, Journal, Nameless, NotAFolder, NotFree, NotOurs, Read, Reserved,
            Stamp, Tangled,
        };
        let kind = match error {
            Read(error) => return error.into(),
            Stamp(ref error) if error.is_lost() => ErrorKind::NeedsPerson,
            Journal { ref folder } => {
                let work = folder.join(EDIT_FOLDER);
                let files = format!(
                    "compare `{0}/old` (files as they were) and `{0}/new` (what was to come) with \
                     what stands there; put it right, then remove `{0}`",
                    work.display()
                );
                return Self::new(ErrorKind::NeedsPerson, error).reason("journal").hint(files);
            }
            Foreign { ref folder, .. } => {
                let away = format!(
                    "move `{}` elsewhere, or remove it where nothing in it is yours",
                    folder.display()
                );
                return Self::new(ErrorKind::Usage, error).reason("foreign").hint(away);
            }
            HandEdited { .. } | Tangled { .. } => ErrorKind::NeedsPerson,
            Reserved { .. } => ErrorKind::Refused,
            Nameless { .. } | NotAFolder { .. } | NotOurs { .. } | NotFree { .. } => {
                ErrorKind::Usage
            }
            _ => ErrorKind::Failed,
        };
        Self::new(kind, error)
    }
}
