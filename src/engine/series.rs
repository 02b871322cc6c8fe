//! The series: `series.toml` and the patches beside it.
//!
//! The order of its entries is the order of the file. Patches are read here
//! as bytes and parsed by whoever applies them.

mod entry;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use walkdir::WalkDir;

pub use self::entry::{Change, Entry, Forwarded};
use self::entry::{RawEntry, entry};
use crate::contract::{self, Contracts};
use crate::pin::Pin;
use crate::stored::{Place, StoredError, Text};

/// The name of the file that holds the series, in the pin's folder.
pub const SERIES_FILE: &str = "series.toml";
const SCHEMA: u32 = 1;

/// An ordered set of changes, made for one pin.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The folder that holds it.
    pub folder: PathBuf,
    /// The entries, in the order they are laid.
    pub entries: Vec<Entry>,
    /// What the series relies on and does not touch.
    pub contracts: Contracts,
}

/// Why a series cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The file cannot be read or has another form.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// Two entries have one name.
    #[error("{place}: the name `{name}` is taken by the entry at line {first}")]
    SameName {
        /// Where the second one stands.
        place: Place,
        /// The name.
        name: String,
        /// The line of the first one.
        first: usize,
    },
    /// Two contracts of a kind have one name.
    #[error(
        "{place}: a contract of this kind is called `{name}` already, at line {first}; give the \
         function with its namespace or class, or a part of it by `from`"
    )]
    SameContract {
        /// Where the second one stands.
        place: Place,
        /// The name.
        name: String,
        /// The line of the first one.
        first: usize,
    },
    /// Two entries lay one patch.
    #[error("{place}: the patch `{patch}` is laid by the entry at line {first} already")]
    SamePatch {
        /// Where the second one stands.
        place: Place,
        /// The patch's name.
        patch: String,
        /// The line of the first one.
        first: usize,
    },
    /// An entry's patch cannot be read.
    #[error("{place}: the patch {} cannot be read", path.display())]
    NoPatch {
        /// Where the series names it.
        place: Place,
        /// The file it was to be.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A patch lies in the folder and no entry lays it.
    #[error("{}: nobody lists this patch; give it an entry in {} (beside which it must lie) or take it away", path.display(), series.display())]
    Unlisted {
        /// The patch.
        path: PathBuf,
        /// The series that does not list it.
        series: PathBuf,
    },
    /// A group was asked for that no entry has.
    #[error("no entry is of the group `{group}`; there are: {}", groups.join(", "))]
    NoGroup {
        /// What was asked for.
        group: String,
        /// The groups of the series.
        groups: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSeries {
    schema: Spanned<u32>,
    #[serde(default, rename = "entry")]
    entries: Vec<Spanned<RawEntry>>,
    #[serde(default)]
    watch: Vec<Spanned<contract::Watch>>,
    #[serde(default)]
    kernel: Vec<Spanned<contract::Kernel>>,
    #[serde(default)]
    cite: Vec<Spanned<contract::Cite>>,
    #[serde(default)]
    note: Vec<contract::Note>,
}

impl Series {
    /// Reads the series made for `pin`. A patch of the folder that no entry
    /// lays is an error, but for the bridges that the pin names.
    ///
    /// # Errors
    /// `series.toml` cannot be read or has another form; a patch is missing,
    /// laid twice, or lies there unlisted; two entries have one name.
    pub fn load(pin: &Pin) -> Result<Self, SeriesError> {
        let bridges: Vec<&Path> =
            pin.snapshots.iter().filter_map(|s| s.bridge.as_deref()).collect();
        Self::load_folder(&pin.folder, &bridges)
    }

    /// As [`Series::load`], from a folder; the patches in `others` need no entry.
    ///
    /// # Errors
    /// Those of [`Series::load`].
    pub fn load_folder(folder: &Path, others: &[&Path]) -> Result<Self, SeriesError> {
        let text = Text::read(&folder.join(SERIES_FILE))?;
        let raw: RawSeries = text.parse()?;
        text.schema(&raw.schema, SCHEMA)?;
        let mut names = BTreeMap::new();
        let mut patches = BTreeMap::new();
        let mut entries = Vec::new();
        for raw in &raw.entries {
            let entry = entry(folder, &text, raw, &mut patches)?;
            if let Some(first) = names.insert(entry.name.clone(), entry.place.line) {
                return Err(SeriesError::SameName { place: entry.place, name: entry.name, first });
            }
            entries.push(entry);
        }
        let listed: BTreeSet<PathBuf> = patches
            .keys()
            .map(|name| folder.join(name))
            .chain(others.iter().map(|p| p.to_path_buf()))
            .collect();
        if let Some(path) = patch_files(folder)?.into_iter().find(|p| !listed.contains(p)) {
            return Err(SeriesError::Unlisted { path, series: text.file });
        }
        let contracts = Contracts {
            watch: named(&text, raw.watch, contract::Watch::title)?,
            kernel: named(&text, raw.kernel, |kernel| kernel.name.clone())?,
            cite: named(&text, raw.cite, |cite| cite.at.to_string())?,
            note: raw.note,
        };
        Ok(Self { folder: folder.to_path_buf(), entries, contracts })
    }

    /// The groups that the entries have, sorted.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        let groups: BTreeSet<&String> = self.entries.iter().map(|e| &e.group).collect();
        groups.into_iter().cloned().collect()
    }

    /// The entries of these groups, in order; all of them where none is given.
    ///
    /// # Errors
    /// A group is given that no entry has.
    pub fn select(&self, groups: &[String]) -> Result<Vec<&Entry>, SeriesError> {
        let known = self.groups();
        if let Some(group) = groups.iter().find(|g| !known.contains(g)) {
            return Err(SeriesError::NoGroup { group: group.clone(), groups: known });
        }
        let chosen = |e: &&Entry| groups.is_empty() || groups.contains(&e.group);
        Ok(self.entries.iter().filter(chosen).collect())
    }
}

/// Contracts of a kind, each with a name of its own: a verdict, and what a person
/// accepts, are told by it.
fn named<T>(
    text: &Text,
    contracts: Vec<Spanned<T>>,
    name: impl Fn(&T) -> String,
) -> Result<Vec<T>, SeriesError> {
    let mut names = BTreeMap::new();
    for contract in &contracts {
        let (place, name) = (text.place(&contract.span()), name(contract.get_ref()));
        if let Some(first) = names.insert(name.clone(), place.line) {
            return Err(SeriesError::SameContract { place, name, first });
        }
    }
    Ok(contracts.into_iter().map(Spanned::into_inner).collect())
}

/// Whether somebody may have meant it for a patch of the series: a patch under
/// any case of its name, or a mail.
fn is_like_patch(file: &Path) -> bool {
    let is = |e: &std::ffi::OsStr| {
        ["patch", "diff", "mbox", "eml"].iter().any(|known| e.eq_ignore_ascii_case(known))
    };
    file.extension().is_some_and(is)
}

/// What may be a patch in a folder and below it, sorted.
fn patch_files(folder: &Path) -> Result<Vec<PathBuf>, StoredError> {
    let mut files = Vec::new();
    for item in WalkDir::new(folder).sort_by_file_name() {
        let item = item.map_err(|e| StoredError::Read {
            file: e.path().unwrap_or(folder).to_path_buf(),
            source: e.into(),
        })?;
        if !item.file_type().is_dir() && is_like_patch(item.path()) {
            files.push(item.into_path());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    const TWO: &str = r#"schema = 1

[[entry]]
name = "first"
patch = "0001-first.patch"
group = "metal"
reason = "it must"
forwarded = "no"
applied-upstream = "v0.32.2"

[[entry]]
name = "second"
derive = { file = "mlx/q.h", function = "qdot", name = "qdot_reg", replace = [
  { from = "device", to = "thread" },
], place = "after" }
group = "cuda"
reason = "it follows"
forwarded = "https://host/pull/1"

[[watch]]
file = "mlx/q.h"
function = "qdot"
reason = "the copy repeats it"
"#;

    fn load(text: &str, patches: &[&str], others: &[&str]) -> Result<Series, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(SERIES_FILE), text).unwrap();
        patches.iter().for_each(|p| std::fs::write(dir.path().join(p), "x").unwrap());
        let others: Vec<PathBuf> = others.iter().map(|p| dir.path().join(p)).collect();
        let others: Vec<&Path> = others.iter().map(PathBuf::as_path).collect();
        Series::load_folder(dir.path(), &others).map_err(|e| e.to_string())
    }

    #[test]
    fn a_series_is_read_in_its_order() {
        let patches = ["0001-first.patch", "bridge.patch"];
        let series = load(TWO, &patches, &["bridge.patch"]).unwrap();
        let [first, second] = &series.entries[..] else { panic!("{series:?}") };
        assert!(matches!(&first.change, Change::Patch { bytes, .. } if bytes == b"x"));
        assert_eq!(first.applied_upstream.as_deref(), Some("v0.32.2"));
        assert_eq!((first.place.line, second.place.line), (3, 11));
        let Change::Derive(rule) = &second.change else { panic!("{second:?}") };
        assert_eq!((&*rule.name, &*rule.replace[0].to), ("qdot_reg", "thread"));
        assert_eq!(second.forwarded, Forwarded::To("https://host/pull/1".into()));
        assert_eq!(series.contracts.watch[0].title(), "qdot");
        assert_eq!(series.groups(), ["cuda", "metal"]);
        let chosen = series.select(&["cuda".into()]).unwrap();
        assert_eq!(chosen, [second]);
        let unknown = series.select(&["rocm".into()]).unwrap_err().to_string();
        assert_eq!(unknown, "no entry is of the group `rocm`; there are: cuda, metal");
    }

    #[test]
    fn each_fault_has_its_line() {
        for (from, to, error) in [
            (
                "\"second\"",
                "\"first\"",
                "series.toml:11: the name `first` is taken by the entry at line 3",
            ),
            ("0001-first", "0002-first", "series.toml:5: the patch "),
            ("0001-first", "../first", "series.toml:5: `patch` is `../first.patch`"),
            ("\"no\"", "\"never\"", "series.toml:8: `forwarded` is `never`: DEP-3 has"),
            ("v0.32.2", "", "series.toml:9: `applied-upstream` says nothing"),
            (
                "applied-upstream",
                "applied_upstream",
                "series.toml:9: unknown field `applied_upstream`",
            ),
            ("reason = \"it must\"\n", "", "series.toml:3: missing field `reason`"),
            (
                "patch = \"0001-first.patch\"\n",
                "",
                "series.toml:4: the entry `first` has to have one",
            ),
            ("mlx/q.h", "/q.h", "series.toml:13: `/q.h`: the name is absolute"),
            (
                "place = \"after\"",
                "place = \"near\"",
                "series.toml:15: `place` is `\"after\"`, `\"before\"`, `\"end\"` or `{ after = ",
            ),
            ("schema = 1", "schema = 7", "series.toml:1: schema 7"),
            ("[[watch]]", "[[watches]]", "series.toml:20: unknown field `watches`"),
            ("\"the copy repeats it\"", "\" \"", "series.toml:23: `reason` says nothing"),
            (
                "reason = \"the copy",
                "acknowledged = [\n  { target = \"9a795735\", reason = \"x\" },\n]\nreason = \"the copy",
                "series.toml:24: `target` is `9a795735`: a whole commit id",
            ),
            (
                "place = \"after\" }",
                "acknowledged = [{ target = \"crate:a@1\", reason = \"\" }] }",
                "series.toml:15: `reason` says nothing",
            ),
            (
                "[[watch]]",
                "[[watch]]\nfile = \"a.h\"\nfunction = \"qdot\"\nreason = \"x\"\n\n[[watch]]",
                "series.toml:25: a contract of this kind is called `qdot` already, at line 20",
            ),
        ] {
            let changed = TWO.replacen(from, to, 1);
            assert_ne!(changed, TWO);
            let refusal = load(&changed, &["0001-first.patch"], &[]).unwrap_err();
            assert!(refusal.contains(error), "{refusal}\nwanted {error}");
        }
    }

    #[test]
    fn a_patch_nobody_lists_is_named() {
        for stray in ["0002-stray.diff", "x.PATCH", "x.Diff", "all.mbox", "mail.EML"] {
            let refusal = load(TWO, &["0001-first.patch", stray], &[]).unwrap_err();
            assert!(refusal.contains(&format!("{stray}: nobody lists this patch")), "{refusal}");
        }
        load(TWO, &["0001-first.patch", "README.md", "patch"], &[]).unwrap();
    }

    #[test]
    fn a_patch_in_a_folder_below_is_not_overlooked() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(SERIES_FILE, "schema = 1\n");
        std::fs::create_dir(dir.path().join("old")).unwrap();
        write("old/0001-stray.patch", "x");
        let refusal = Series::load_folder(dir.path(), &[]).unwrap_err().to_string();
        assert!(refusal.contains("old/0001-stray.patch: nobody lists this patch"), "{refusal}");
        let named = dir.path().join("old/0001-stray.patch");
        assert!(Series::load_folder(dir.path(), &[&named]).is_ok());
    }

    #[test]
    fn one_patch_is_laid_once() {
        let twice = TWO
            .replace("derive = { file", "patch = \"0001-first.patch\" #")
            .replace("  { from = \"device\", to = \"thread\" },\n], place = \"after\" }\n", "");
        let refusal = load(&twice, &["0001-first.patch"], &[]).unwrap_err();
        assert!(
            refusal.contains("series.toml:13: the patch `0001-first.patch` is laid"),
            "{refusal}"
        );
    }

    #[test]
    fn the_digest_is_of_what_an_entry_does() {
        let digest = |text: &str| {
            let series = load(text, &["0001-first.patch"], &[]).unwrap();
            let mut hash = Sha256::new();
            series.entries.iter().for_each(|e| e.digest(&mut hash));
            hash.finalize()
        };
        assert_eq!(digest(TWO), digest(&TWO.replace("it must", "it should")));
        assert_ne!(digest(TWO), digest(&TWO.replace("\"thread\"", "\"constant\"")));
    }
}
