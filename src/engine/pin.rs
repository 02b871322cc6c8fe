//! The pin: which upstream commit the series is made for.
//!
//! `mlx-pin.toml` holds the facts of the current pin. A pin that is no longer
//! current keeps its facts, the same bytes, in `patches/<pin8>.toml`, beside
//! its folder, so that `apply --pin OLD` goes on working after a bump. Every
//! path in either file is relative to the folder of `mlx-pin.toml`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toml::value::Datetime;

use crate::listing::{Listing, ListingError};
use crate::snapshot::{ObjectId, TreePath};
use crate::source::{SnapshotSource, SpecError};
use crate::stored::{Place, StoredError, Text};

/// The name of the file that holds the current pin.
pub const PIN_FILE: &str = "mlx-pin.toml";
/// The folder of the pins' folders, beside [`PIN_FILE`].
pub const PATCHES: &str = "patches";
/// The number of digits of a commit that name its folder.
pub const PIN_DIGITS: usize = 8;
const SCHEMA: u32 = 1;
const FEWEST_DIGITS: usize = 7;

/// A project that carries an overlay: its pins, the current one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The folder of [`PIN_FILE`].
    pub root: PathBuf,
    /// The current pin.
    pub current: Pin,
    /// The pins that were current once.
    pub kept: Vec<Pin>,
}

/// The facts of a pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The file that holds these facts.
    pub file: PathBuf,
    /// The full id of the upstream commit.
    pub commit: ObjectId,
    /// The id of its root tree.
    pub tree: ObjectId,
    /// The version that the commit's version header states.
    pub version: String,
    /// The day of the commit, `YYYY-MM-DD`.
    pub date: String,
    /// The URL of the upstream repository.
    pub upstream: String,
    /// The folder of the series made for this pin.
    pub folder: PathBuf,
    /// The file of the listing.
    pub listing: PathBuf,
    /// Released trees that hold files of this commit, in the order to ask them.
    pub snapshots: Vec<PinSnapshot>,
}

/// A released tree that holds files of the pin's commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinSnapshot {
    /// Which tree of which package.
    pub source: SnapshotSource,
    /// What proves that the download is whole.
    pub whole: Whole,
    /// A patch that turns some of its files into the pin's.
    pub bridge: Option<PathBuf>,
}

/// What proves that a downloaded package is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The id of the tree that git makes of a crate's folder, no file
    /// executable (a crate keeps no such bit).
    Tree(ObjectId),
    /// The SHA-256 of a wheel, 64 hexadecimal digits.
    Sha256(String),
}

/// Why there is no pin.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// No folder from here up holds a pin.
    #[error("no {PIN_FILE} in {} or a folder above it; `-C DIR` names the project to work on", from.display())]
    NoProject {
        /// Where the search began.
        from: PathBuf,
    },
    /// A pin file cannot be read or has another form.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// The folder of a pin is not there.
    #[error("{place}: the pin's folder {} is missing", folder.display())]
    NoFolder {
        /// The line that names the commit.
        place: Place,
        /// The folder that is missing.
        folder: PathBuf,
    },
    /// A name that is not the beginning of a commit id.
    #[error("`{name}` names no pin: give at least {FEWEST_DIGITS} hexadecimal digits of a commit")]
    NoName {
        /// What was given.
        name: String,
    },
    /// No pin of this project begins so.
    #[error("no pin `{name}` here; there are: {}", list(pins))]
    Unknown {
        /// What was given.
        name: String,
        /// The pins that are here.
        pins: Vec<ObjectId>,
    },
    /// Several pins begin so.
    #[error("`{name}` is the beginning of several pins: {}", list(pins))]
    SeveralPins {
        /// What was given.
        name: String,
        /// Those pins.
        pins: Vec<ObjectId>,
    },
    /// The listing is not that of the pin.
    #[error(transparent)]
    Listing(#[from] ListingError),
}

fn list(pins: &[ObjectId]) -> String {
    pins.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPin {
    schema: Spanned<u32>,
    commit: Spanned<String>,
    tree: Spanned<String>,
    version: Spanned<String>,
    date: Spanned<Datetime>,
    upstream: Spanned<String>,
    listing: Spanned<String>,
    #[serde(default, rename = "snapshot")]
    snapshots: Vec<RawSnapshot>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSnapshot {
    source: Spanned<String>,
    tree: Option<Spanned<String>>,
    sha256: Option<Spanned<String>>,
    bridge: Option<Spanned<String>>,
}

impl Project {
    /// Finds the project that `from` is in: the nearest folder, from there
    /// up, that holds a pin.
    ///
    /// # Errors
    /// There is none, or its pins cannot be read.
    pub fn find(from: &Path) -> Result<Self, PinError> {
        match from.ancestors().find(|folder| folder.join(PIN_FILE).is_file()) {
            Some(root) => Self::load(root),
            None => Err(PinError::NoProject { from: from.to_path_buf() }),
        }
    }

    /// Reads the pins of the project at `root`.
    ///
    /// # Errors
    /// A pin's facts cannot be read or have another form; a pin's folder, or
    /// a folder's facts, are missing.
    pub fn load(root: &Path) -> Result<Self, PinError> {
        let current = Pin::load(root, &root.join(PIN_FILE))?;
        let mut kept = Vec::new();
        for facts in pin_items(root)?.iter().filter(|p| p.is_file()) {
            let pin = Pin::load(root, facts)?;
            if pin.commit != current.commit {
                kept.push(pin);
            }
        }
        Ok(Self { root: root.to_path_buf(), current, kept })
    }

    /// Folders named as a pin's are whose pin is not known: left by a hand, or
    /// by a bump that was stopped.
    ///
    /// # Errors
    /// The folder of patches cannot be read.
    pub fn strays(&self) -> Result<Vec<PathBuf>, PinError> {
        let mut folders = pin_items(&self.root)?;
        let known = |f: &PathBuf| self.pins().any(|p| p.folder == *f);
        folders.retain(|f| f.is_dir() && !known(f));
        Ok(folders)
    }

    /// Every pin, the current one first.
    pub fn pins(&self) -> impl Iterator<Item = &Pin> {
        std::iter::once(&self.current).chain(&self.kept)
    }

    /// The pin that `name` begins, or the current one where none is named.
    ///
    /// # Errors
    /// `name` is too short or no hexadecimal number, or names no pin of the
    /// project, or several.
    pub fn select(&self, name: Option<&str>) -> Result<&Pin, PinError> {
        let Some(name) = name else { return Ok(&self.current) };
        let lower = name.to_ascii_lowercase();
        if lower.len() < FEWEST_DIGITS || !lower.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(PinError::NoName { name: name.to_owned() });
        }
        let begins = |p: &&Pin| p.commit.to_string().starts_with(&lower);
        let found: Vec<&Pin> = self.pins().filter(begins).collect();
        let ids = |pins: Vec<&Pin>| pins.iter().map(|p| p.commit).collect();
        match found[..] {
            [pin] => Ok(pin),
            [] => {
                Err(PinError::Unknown { name: name.to_owned(), pins: ids(self.pins().collect()) })
            }
            _ => Err(PinError::SeveralPins { name: name.to_owned(), pins: ids(found) }),
        }
    }
}

impl Pin {
    /// Reads a pin's facts from `file`; its paths are relative to `root`.
    ///
    /// # Errors
    /// The file cannot be read or has another form, or the pin's folder or a
    /// bridge is missing.
    pub fn load(root: &Path, file: &Path) -> Result<Self, PinError> {
        let text = Text::read(file)?;
        let raw: RawPin = text.parse()?;
        text.schema(&raw.schema, SCHEMA)?;
        let commit = object_id(&text, "commit", &raw.commit)?;
        let pin = Self {
            file: file.to_path_buf(),
            commit,
            tree: object_id(&text, "tree", &raw.tree)?,
            version: text.said("version", &raw.version)?,
            date: day(&text, &raw.date)?,
            upstream: text.said("upstream", &raw.upstream)?,
            folder: folder(root, commit),
            listing: root.join(relative(&text, "listing", &raw.listing)?),
            snapshots: raw
                .snapshots
                .iter()
                .map(|s| snapshot(root, &text, s))
                .collect::<Result<_, _>>()?,
        };
        if !pin.folder.is_dir() {
            let place = text.place(&raw.commit.span());
            return Err(PinError::NoFolder { place, folder: pin.folder });
        }
        for (raw, snapshot) in raw.snapshots.iter().zip(&pin.snapshots) {
            if let (Some(said), Some(bridge)) = (&raw.bridge, &snapshot.bridge)
                && !bridge.is_file()
            {
                let what = format!("the bridge {} is not there", bridge.display());
                return Err(text.fault(&said.span(), what).into());
            }
        }
        Ok(pin)
    }

    /// The first digits of the commit, as folders are named by them.
    #[must_use]
    pub fn short(&self) -> String {
        short(self.commit)
    }

    /// The pin's listing, proven by the pin's tree id.
    ///
    /// # Errors
    /// It cannot be read, is no listing, or is that of another tree.
    pub fn load_listing(&self) -> Result<Listing, ListingError> {
        Listing::load(&self.listing, self.tree)
    }
}

/// The folder of the series made for `commit`.
#[must_use]
pub fn folder(root: &Path, commit: ObjectId) -> PathBuf {
    root.join(PATCHES).join(short(commit))
}

/// Where the facts of a pin are kept once it is no longer current.
#[must_use]
pub fn kept_file(root: &Path, commit: ObjectId) -> PathBuf {
    root.join(PATCHES).join(format!("{}.toml", short(commit)))
}

fn short(commit: ObjectId) -> String {
    let mut id = commit.to_string();
    id.truncate(PIN_DIGITS);
    id
}

/// What stands in the folder of patches under a pin's name, sorted: kept facts
/// (`<pin8>.toml`) and folders (`<pin8>`).
fn pin_items(root: &Path) -> Result<Vec<PathBuf>, PinError> {
    let patches = root.join(PATCHES);
    let failed = |source| StoredError::Read { file: patches.clone(), source };
    let mut items = Vec::new();
    for item in std::fs::read_dir(&patches).map_err(failed)? {
        let path = item.map_err(failed)?.path();
        let name = path.file_name().and_then(|s| s.to_str()).unwrap_or_default();
        let digits = match path.is_dir() {
            true => Some(name),
            false => name.strip_suffix(".toml"),
        };
        if digits.is_some_and(is_short) {
            items.push(path);
        }
    }
    items.sort();
    Ok(items)
}

fn is_short(name: &str) -> bool {
    name.len() == PIN_DIGITS && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn object_id(text: &Text, key: &str, value: &Spanned<String>) -> Result<ObjectId, StoredError> {
    value.get_ref().parse().map_err(|_| {
        let found = value.get_ref();
        text.fault(
            &value.span(),
            format!(
                "`{key}` is `{found}`: 40 hexadecimal digits are wanted; a short id is never stored"
            ),
        )
    })
}

fn day(text: &Text, value: &Spanned<Datetime>) -> Result<String, StoredError> {
    match value.get_ref() {
        Datetime { date: Some(date), time: None, offset: None } => Ok(date.to_string()),
        other => Err(text.fault(
            &value.span(),
            format!("`date` is `{other}`: a day is wanted, as 2026-08-17, without quotes"),
        )),
    }
}

fn relative(text: &Text, key: &str, value: &Spanned<String>) -> Result<PathBuf, StoredError> {
    match TreePath::new(value.get_ref()) {
        Ok(path) => Ok(path.as_str().into()),
        Err(e) => Err(text.fault(
            &value.span(),
            format!("`{key}` is no path below the folder of {PIN_FILE}: {e}"),
        )),
    }
}

fn snapshot(root: &Path, text: &Text, raw: &RawSnapshot) -> Result<PinSnapshot, StoredError> {
    let source: SnapshotSource = raw
        .source
        .get_ref()
        .parse()
        .map_err(|e: SpecError| text.fault(&raw.source.span(), e.to_string()))?;
    let whole = match (&source, &raw.tree, &raw.sha256) {
        (SnapshotSource::Crate(_), Some(tree), None) => Whole::Tree(object_id(text, "tree", tree)?),
        (SnapshotSource::Wheel(_), None, Some(sum)) => {
            let digits = sum.get_ref();
            if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(text.fault(
                    &sum.span(),
                    format!("`sha256` is `{digits}`: 64 hexadecimal digits are wanted"),
                ));
            }
            Whole::Sha256(digits.to_ascii_lowercase())
        }
        (SnapshotSource::Crate(_), ..) => {
            return Err(text.fault(&raw.source.span(), "a crate has a `tree`, and no `sha256`"));
        }
        (SnapshotSource::Wheel(_), ..) => {
            return Err(text.fault(&raw.source.span(), "a wheel has a `sha256`, and no `tree`"));
        }
    };
    let bridge = match &raw.bridge {
        Some(bridge) => Some(root.join(relative(text, "bridge", bridge)?)),
        None => None,
    };
    Ok(PinSnapshot { source, whole, bridge })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "9a795735ad9a42664e08f42361b405ed570bcf1a";
    const OTHER: &str = "9a795734ad9a42664e08f42361b405ed570bcf1a";

    fn facts(commit: &str) -> String {
        let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        format!(
            "schema = 1\ncommit = \"{commit}\"\ntree = \"{tree}\"\nversion = \"0.32.1\"\n\
             date = 2026-08-17\nupstream = \"https://host/x\"\nlisting = \"patches/l\"\n"
        )
    }

    fn project(current: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("patches/9a795735")).unwrap();
        std::fs::write(dir.path().join(PIN_FILE), current).unwrap();
        std::fs::write(dir.path().join("patches/l"), "").unwrap();
        dir
    }

    fn refusal(current: &str) -> String {
        Project::load(project(current).path()).unwrap_err().to_string()
    }

    #[test]
    fn a_pin_is_read_and_its_listing_proven() {
        let dir = project(&facts(COMMIT));
        let below = dir.path().join("patches/9a795735");
        let project = Project::find(&below).unwrap();
        assert_eq!(project.root, dir.path());
        assert_eq!(project.current.short(), "9a795735");
        assert_eq!(project.current.date, "2026-08-17");
        assert_eq!(project.current.folder, below);
        assert!(project.current.load_listing().unwrap().is_empty());
    }

    #[test]
    fn each_fault_has_its_line() {
        for (from, to, error) in [
            (COMMIT, "9a795735", "mlx-pin.toml:2: `commit` is `9a795735`: 40"),
            ("4b825dc642", "4b", "mlx-pin.toml:3: `tree` is "),
            ("2026-08-17", "\"2026-08-17\"", "mlx-pin.toml:5: "),
            ("2026-08-17", "2026-08-17T00:00:00Z", "mlx-pin.toml:5: `date` is "),
            ("0.32.1", " ", "mlx-pin.toml:4: `version` says nothing"),
            ("patches/l", "../l", "mlx-pin.toml:7: `listing` is no path"),
            ("listing", "lists", "mlx-pin.toml:7: unknown field `lists`"),
            ("schema = 1", "schema = 2", "mlx-pin.toml:1: schema 2"),
        ] {
            let refusal = refusal(&facts(COMMIT).replacen(from, to, 1));
            assert!(refusal.contains(error), "{refusal}");
        }
        let short = refusal(&facts(&COMMIT.replacen('9', "8", 1)));
        assert!(short.contains("mlx-pin.toml:2: the pin's folder"), "{short}");
    }

    #[test]
    fn a_snapshot_states_what_proves_it_whole() {
        let with = |lines: &str| format!("{}[[snapshot]]\n{lines}\n", facts(COMMIT));
        let sum = "0".repeat(64);
        let wheel = format!("source = \"wheel:mlx-cpu@0.32.1\"\nsha256 = \"{sum}\"");
        let dir = project(&with(&wheel));
        let pin = Project::load(dir.path()).unwrap().current;
        assert_eq!(pin.snapshots[0].whole, Whole::Sha256(sum));
        for (lines, error) in [
            ("source = \"crate:a@1.0.0:b\"", "mlx-pin.toml:9: a crate has a `tree`"),
            ("source = \"wheel:a@1\"", "mlx-pin.toml:9: a wheel has a `sha256`"),
            ("source = \"wheel:a@1\"\nsha256 = \"00\"", "mlx-pin.toml:10: `sha256` is `00`"),
            ("source = \"gem:a@1\"", "mlx-pin.toml:9: `gem:a@1`"),
        ] {
            let refusal = refusal(&with(lines));
            assert!(refusal.contains(error), "{refusal}");
        }
    }

    #[test]
    fn a_short_id_selects_where_it_is_one_pins() {
        let dir = project(&facts(COMMIT));
        let patches = dir.path().join(PATCHES);
        std::fs::create_dir_all(patches.join("9a795734")).unwrap();
        std::fs::create_dir_all(patches.join("00000000")).unwrap();
        std::fs::write(patches.join("9a795734.toml"), facts(OTHER)).unwrap();
        // A bump back to a pin that was kept: mlx-pin.toml is what counts.
        std::fs::write(patches.join("9a795735.toml"), facts(COMMIT)).unwrap();
        let project = Project::load(dir.path()).unwrap();
        let id = |name| project.select(name).map(|p| p.commit.to_string());
        assert_eq!(project.kept.len(), 1);
        assert_eq!(id(None).unwrap(), COMMIT);
        assert_eq!(id(Some("9A795735")).unwrap(), COMMIT);
        assert_eq!(id(Some("9a795734")).unwrap(), OTHER);
        assert!(matches!(id(Some("9a7957")), Err(PinError::NoName { .. })));
        assert!(
            matches!(id(Some("9a79573")), Err(PinError::SeveralPins { pins, .. }) if pins.len() == 2)
        );
        assert!(matches!(id(Some("0000000")), Err(PinError::Unknown { .. })));
        assert_eq!(project.strays().unwrap(), [patches.join("00000000")]);
    }

    #[test]
    fn the_pin_of_this_repository_holds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let project = Project::load(&root).unwrap();
        for pin in project.pins() {
            let listing = pin.load_listing().unwrap();
            assert!(!listing.is_empty());
            assert!(pin.snapshots.iter().all(|s| s.bridge.as_ref().is_none_or(|b| b.is_file())));
        }
        assert!(project.strays().unwrap().is_empty());
    }
}
