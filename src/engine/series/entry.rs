//! An entry of a series: one change, with its reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use super::SeriesError;
use crate::derive;
use crate::snapshot::TreePath;
use crate::stored::{Place, StoredError, Text};

/// One change of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, unique in the series.
    pub name: String,
    /// What it does.
    pub change: Change,
    /// The group it belongs to: `metal`, `cuda`, ….
    pub group: String,
    /// Why it is carried.
    pub reason: String,
    /// Whether it was sent upstream (DEP-3's `Forwarded`).
    pub forwarded: Forwarded,
    /// The release, commit or URL with which upstream has it (DEP-3's
    /// `Applied-Upstream`).
    pub applied_upstream: Option<String>,
    /// Where it stands.
    pub place: Place,
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It lays a patch.
    Patch {
        /// The patch's file.
        path: PathBuf,
        /// Its bytes, not yet parsed.
        bytes: Vec<u8>,
    },
    /// It derives a function from one that the tree holds.
    Derive(derive::Rule),
}

/// Whether a change was sent upstream, in DEP-3's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// `no`
    No,
    /// `not-needed`: it is of use here alone.
    NotNeeded,
    /// `yes`, without an address.
    Yes,
    /// The address it was sent to.
    To(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawEntry {
    name: Spanned<String>,
    patch: Option<Spanned<String>>,
    derive: Option<derive::Rule>,
    group: Spanned<String>,
    reason: Spanned<String>,
    forwarded: Spanned<String>,
    applied_upstream: Option<Spanned<String>>,
}

impl Entry {
    /// Adds to `hash` what decides what this entry does to a tree: its name,
    /// and its patch's bytes or its rule. Reasons and contracts do not count.
    pub fn digest(&self, hash: &mut Sha256) {
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(self.name.as_bytes());
        match &self.change {
            Change::Patch { bytes, .. } => {
                part(b"patch");
                part(bytes);
            }
            Change::Derive(rule) => {
                part(b"derive");
                let rule = derive::Rule { acknowledged: Vec::new(), ..rule.clone() };
                part(&serde_json::to_vec(&rule).expect("a rule is text alone"));
            }
        }
    }
}

/// The checked entry of a raw one. `patches` holds the names that entries before it lay,
/// with their lines.
pub(super) fn entry(
    folder: &Path,
    text: &Text,
    raw: &Spanned<RawEntry>,
    patches: &mut BTreeMap<String, usize>,
) -> Result<Entry, SeriesError> {
    let place = text.place(&raw.span());
    let raw = raw.get_ref();
    let name = text.said("name", &raw.name)?;
    let change = match (&raw.patch, &raw.derive) {
        (Some(patch), None) => {
            let file = text.said("patch", patch)?;
            let place = text.place(&patch.span());
            if TreePath::new(&file).is_err() || file.contains('/') || !is_patch(Path::new(&file)) {
                let what = format!(
                    "`patch` is `{file}`: a `*.patch` or `*.diff` in this folder is wanted"
                );
                return Err(text.fault(&patch.span(), what).into());
            }
            if let Some(first) = patches.insert(file.clone(), place.line) {
                return Err(SeriesError::SamePatch { place, patch: file, first });
            }
            let path = folder.join(&file);
            match std::fs::read(&path) {
                Ok(bytes) => Change::Patch { path, bytes },
                Err(source) => return Err(SeriesError::NoPatch { place, path, source }),
            }
        }
        (None, Some(rule)) => Change::Derive(rule.clone()),
        _ => {
            let what = format!("the entry `{name}` has to have one of `patch` and `derive`");
            return Err(text.fault(&raw.name.span(), what).into());
        }
    };
    let applied_upstream = match &raw.applied_upstream {
        Some(value) => Some(text.said("applied-upstream", value)?),
        None => None,
    };
    Ok(Entry {
        name,
        change,
        group: text.said("group", &raw.group)?,
        reason: text.said("reason", &raw.reason)?,
        forwarded: forwarded(text, &raw.forwarded)?,
        applied_upstream,
        place,
    })
}

fn forwarded(text: &Text, value: &Spanned<String>) -> Result<Forwarded, StoredError> {
    match value.get_ref().as_str() {
        "no" => Ok(Forwarded::No),
        "not-needed" => Ok(Forwarded::NotNeeded),
        "yes" => Ok(Forwarded::Yes),
        url if url.starts_with("https://") || url.starts_with("http://") => {
            Ok(Forwarded::To(url.to_owned()))
        }
        other => Err(text.fault(
            &value.span(),
            format!("`forwarded` is `{other}`: DEP-3 has `no`, `not-needed`, `yes` or a URL"),
        )),
    }
}

/// Whether an entry may name it.
fn is_patch(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "patch" || e == "diff")
}
