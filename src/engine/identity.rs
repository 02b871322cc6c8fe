//! What makes a published tree the one that is wanted: the pin, the files
//! below the series, the series, the groups.

use sha2::{Digest, Sha256};

use crate::contract::Contracts;
use crate::listing::Listing;
use crate::pin::Pin;
use crate::publish::{Identity, Partial, Source};
use crate::series::Entry;

/// A digest of what the entries do to a tree, in their order; reasons and
/// contracts do not count.
#[must_use]
pub fn of_series(entries: &[&Entry]) -> String {
    let mut hash = Sha256::new();
    entries.iter().for_each(|entry| entry.digest(&mut hash));
    text(hash)
}

/// A digest of what a series relies on: it decides whether the series holds,
/// not what is in a tree.
#[must_use]
pub fn of_contracts(contracts: &Contracts) -> String {
    let Contracts { watch, kernel, cite, note } = contracts;
    let bytes = serde_json::to_vec(&(watch, kernel, cite, note)).expect("contracts are text alone");
    text(Sha256::new().chain_update(bytes))
}

/// A digest of a listing: paths, modes and blob ids.
#[must_use]
pub fn of_listing(listing: &Listing) -> String {
    text(Sha256::new().chain_update(listing.to_text()))
}

fn text(hash: Sha256) -> String {
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().fold("sha256:".to_string(), |text, byte| text + &format!("{byte:02x}"))
}

/// The identity of the pin's whole tree with these entries on it.
#[must_use]
pub fn whole(pin: &Pin, entries: &[&Entry], groups: &[String]) -> Identity {
    Identity {
        pin: pin.commit,
        source: Source::Git { tree: pin.tree },
        series: of_series(entries),
        contracts: String::new(),
        groups: groups.to_vec(),
        partial: None,
        trial: None,
    }
}

/// The identity of those files of the pin that released packages (`from`)
/// have, with these entries on them; `have` lists the files, `of` is how many
/// the pin has.
#[must_use]
pub fn proven(
    pin: &Pin,
    entries: &[&Entry],
    groups: &[String],
    have: &Listing,
    of: usize,
    from: Vec<String>,
) -> Identity {
    let partial = Partial { have: have.len(), of };
    Identity {
        source: Source::Snapshot { digest: of_listing(have), from },
        partial: (partial.have < of).then_some(partial),
        ..whole(pin, entries, groups)
    }
}

/// The identity of a released tree, taken as it is, with these entries on it.
#[must_use]
pub fn trial(
    pin: &Pin,
    entries: &[&Entry],
    groups: &[String],
    release: &Listing,
    name: &str,
) -> Identity {
    Identity {
        source: Source::Release { digest: of_listing(release) },
        trial: Some(name.to_string()),
        ..whole(pin, entries, groups)
    }
}

/// Whether two trees are the same but for what their files below the series
/// came from: what can be told before any file is fetched.
#[must_use]
pub fn same_wish(one: &Identity, other: &Identity) -> bool {
    one.pin == other.pin
        && one.series == other.series
        && one.groups == other.groups
        && one.trial == other.trial
}
