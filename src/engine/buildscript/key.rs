//! The keys of build folders and finished libraries.

use std::fmt;

use sha2::{Digest, Sha256};

use super::inputs::hex;

/// Names a build folder: the digest of everything but the laid tree that
/// decides what comes out. Folders of one key may be built in one after
/// another, as only the tree's files differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuildKey {
    facts: Vec<(String, String)>,
}

/// Names a finished library: the build key's facts and the laid tree's digest.
/// 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryKey(String);

impl BuildKey {
    /// The key of these facts, each a name and a value.
    #[must_use]
    pub fn new(mut facts: Vec<(String, String)>) -> Self {
        facts.sort();
        Self { facts }
    }

    /// The facts, by name.
    #[must_use]
    pub fn facts(&self) -> &[(String, String)] {
        &self.facts
    }

    /// The key of the library that the tree of this digest makes.
    #[must_use]
    pub fn library(&self, tree_digest: &str) -> LibraryKey {
        LibraryKey(digest(&self.facts, Some(tree_digest))[..32].to_owned())
    }
}

impl fmt::Display for BuildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&digest(&self.facts, None)[..16])
    }
}

impl LibraryKey {
    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LibraryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn digest(facts: &[(String, String)], tree: Option<&str>) -> String {
    let mut hash = Sha256::new();
    let tree = tree.map(|t| ("laid-tree", t));
    let facts = facts.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    for (name, value) in facts.chain(tree) {
        for part in [name, value] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(facts: &[(&str, &str)]) -> BuildKey {
        BuildKey::new(facts.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn every_fact_and_the_tree_make_another_key() {
        let base = key(&[("pin", "9a"), ("source", "git"), ("flags", "-O2")]);
        assert_eq!(
            base.to_string(),
            key(&[("flags", "-O2"), ("source", "git"), ("pin", "9a")]).to_string()
        );
        for other in [
            key(&[("pin", "9b"), ("source", "git"), ("flags", "-O2")]),
            key(&[("pin", "9a"), ("source", "snapshot"), ("flags", "-O2")]),
            key(&[("pin", "9a"), ("source", "git"), ("flags", "-O2 -g")]),
        ] {
            assert_ne!(base.to_string(), other.to_string());
            assert_ne!(base.library("t"), other.library("t"));
        }
        assert_ne!(base.library("t"), base.library("u"));
        assert_eq!(base.library("t").as_str().len(), 32);
    }

    #[test]
    fn a_value_cannot_pass_for_the_next_fact() {
        assert_ne!(
            key(&[("a", "bc"), ("d", "")]).to_string(),
            key(&[("a", "b"), ("cd", "")]).to_string()
        );
    }
}
