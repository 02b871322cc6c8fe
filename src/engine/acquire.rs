//! Getting the files of a pin: the sources in their order, the first that
//! has them, and why those before it had not.

use std::path::PathBuf;

use serde::Serialize;

use crate::cache::{Cache, CacheError};
use crate::git::{GitError, GitTree, Limits, Mirror, Store, folder_of};
use crate::listing::ListingError;
use crate::pin::Pin;
use crate::progress::{Event, Progress};
use crate::registry::{Coverage, Network, ProvenTree, Registry};
use crate::secret::hidden;
use crate::snapshot::{Entry, File, Mode, ObjectId, ReadError, Tree, TreePath};
use crate::stored::message;

/// The variable that names a git repository of upstream: a folder or a URL.
pub const UPSTREAM_VARIABLE: &str = "MLX_OVERLAY_UPSTREAM";

/// What to get, and from where.
pub struct Request<'a> {
    /// The pin.
    pub pin: &'a Pin,
    /// A git repository to ask before the pin's upstream.
    pub from: Option<&'a Named>,
    /// Why the object cache is not to be used, where that was found.
    pub damaged: Option<&'a str>,
    /// Whether the network may be used.
    pub network: Network,
    /// How long a fetch may wait.
    pub limits: Limits,
    /// Where objects and packages are kept.
    pub cache: &'a Cache,
    /// cargo's home; see [`Registry::cargo_home`].
    pub cargo_home: Option<PathBuf>,
    /// Is told what takes long.
    pub progress: &'a dyn Progress,
}

/// A git repository that a user named: a folder or a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// For this run alone: one that cannot be used is not passed over.
    Here(String),
    /// For every run, by a variable: one source among others.
    Standing(String),
}

impl Named {
    /// The folder or URL.
    #[must_use]
    pub fn address(&self) -> &str {
        let (Self::Here(address) | Self::Standing(address)) = self;
        address
    }
}

/// The files of a pin, and where they came from.
pub struct Acquired {
    /// The files.
    pub tree: PinTree,
    /// What answered.
    pub source: Answer,
    /// The sources before it, in the order they were asked.
    pub tried: Vec<Tried>,
    /// The object cache was found damaged. Where git objects answered, they have
    /// taken its place; where none did, it is as it was.
    pub damaged: bool,
}

/// The files of a pin: all of them, or those that are proven.
pub enum PinTree {
    /// All, from git objects.
    Whole(GitTree),
    /// Those that released trees hold.
    Proven(ProvenTree),
}

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Answer {
    /// The object cache had it.
    ObjectCache {
        /// Its folder.
        path: PathBuf,
    },
    /// The git repository that was named.
    Repository {
        /// The folder or URL.
        from: String,
    },
    /// The upstream of `mlx-pin.toml`.
    Upstream {
        /// Its URL.
        url: String,
    },
    /// Released trees.
    Snapshots {
        /// What they hold.
        coverage: Coverage,
    },
}

/// A source that had not what was wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The source.
    pub source: String,
    /// Why not.
    pub why: String,
}

/// Why there are no files of the pin.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The pin contradicts the commit it names.
    #[error("{}: the pin is wrong", file.display())]
    WrongPin {
        /// The pin's file.
        file: PathBuf,
        /// How.
        #[source]
        source: GitError,
    },
    /// The listing is missing or is not the pin's.
    #[error(transparent)]
    Listing(#[from] ListingError),
    /// The repository that was named for this run is none, or does not answer.
    #[error("the repository that was named cannot be used")]
    Named(#[source] GitError),
    /// The repository that was named for this run is asked over the network, which
    /// may not be used.
    #[error(
        "the repository that was named cannot be used: {from} is no folder of this machine, and the network is off limits"
    )]
    OffLimits {
        /// Its URL.
        from: String,
    },
    /// The cache cannot be used, and every source but it writes there.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// No source had it.
    #[error("no source has {commit}:{}", told(tried))]
    Nowhere {
        /// The commit.
        commit: crate::snapshot::ObjectId,
        /// All that were asked.
        tried: Vec<Tried>,
        /// The object cache was found damaged, and is as it was.
        damaged: bool,
    },
}

fn told(tried: &[Tried]) -> String {
    tried.iter().map(|t| format!("\n  {}: {}", t.source, t.why)).collect()
}

/// Gets the files of a pin from the first source that has them: the object
/// cache; the repository that `from` names; the pin's upstream; released
/// trees, file by file.
///
/// # Errors
/// No source has any, or the pin contradicts itself, or the repository that was
/// named for this run cannot be used: that is never passed over for another source.
pub fn acquire(request: &Request<'_>) -> Result<Acquired, AcquireError> {
    let Request { pin, from, damaged, network, limits, cache, progress, .. } = *request;
    let store = Store::new(cache, &pin.upstream);
    let mut tried = Vec::new();
    let wrong = |source| AcquireError::WrongPin { file: pin.file.clone(), source };

    let cached = "the object cache".to_owned();
    let in_cache = match damaged {
        Some(why) => Err(why.to_owned()),
        None => match store.tree(pin.commit, pin.tree) {
            Err(e @ GitError::WrongTree { .. }) => return Err(wrong(e)),
            Err(GitError::Cache(e)) => return Err(e.into()),
            read => read.map_err(|e| message(&e)),
        },
    };
    let damaged = in_cache.is_err();
    let why = match in_cache {
        Ok(Some(tree)) => {
            let source = Answer::ObjectCache { path: store.path().to_path_buf() };
            return Ok(Acquired { tree: PinTree::Whole(tree), source, tried, damaged });
        }
        Ok(None) => "has not fetched it yet".into(),
        Err(why) => why,
    };
    tried.push(Tried { source: cached, why });

    cache.try_writing()?;
    // What a drift or a rebase fetched holds the commits of its history too.
    let mirror = Mirror::new(cache, &pin.upstream);
    let fetched = mirror.has(pin.commit).then(|| {
        let path = mirror.path().to_path_buf();
        (path.display().to_string(), Answer::ObjectCache { path })
    });
    let named = from.map(Named::address);
    let named =
        named.map(|from| (from.to_owned(), Answer::Repository { from: hidden(from).into() }));
    let is_for_this_run = |source: &Answer| {
        matches!((source, from), (Answer::Repository { .. }, Some(Named::Here(_))))
    };
    // A mistyped name must not end in a part of the tree from somewhere else.
    let misses = |source: &Answer, error: &GitError| {
        let named = is_for_this_run(source);
        let ours = match error {
            GitError::Open { path, .. } | GitError::Damaged { path, .. } => path == store.path(),
            _ => false,
        };
        named && !ours && error.is_unusable()
    };
    let upstream = (pin.upstream.clone(), Answer::Upstream { url: hidden(&pin.upstream).into() });
    for (address, source) in fetched.into_iter().chain(named).chain([upstream]) {
        let shown = hidden(&address);
        if network == Network::OffLimits && folder_of(&address).is_none() {
            if is_for_this_run(&source) {
                return Err(AcquireError::OffLimits { from: shown.into() });
            }
            tried.push(Tried { source: shown.into(), why: "the network is off limits".into() });
            continue;
        }
        let imported = store
            .import(pin.commit, pin.tree, &address, limits, progress)
            .and_then(|_| store.tree(pin.commit, pin.tree));
        progress.tell(Event::End);
        match imported {
            Ok(Some(tree)) => {
                return Ok(Acquired { tree: PinTree::Whole(tree), source, tried, damaged });
            }
            Ok(None) => tried.push(Tried {
                source: shown.into(),
                why: "its objects were taken out of the cache again".into(),
            }),
            Err(e @ GitError::WrongTree { .. }) => return Err(wrong(e)),
            Err(e) if misses(&source, &e) => return Err(AcquireError::Named(e)),
            // It has what is wanted, and there is no place for it.
            Err(GitError::Cache(e)) if is_for_this_run(&source) => return Err(e.into()),
            Err(e) => {
                let why = message(&e);
                let why = why.strip_prefix(&format!("{shown}: ")).unwrap_or(&why).to_owned();
                tried.push(Tried { source: shown.into(), why });
            }
        }
    }

    let mut registry = Registry::new(cache, network, progress);
    registry.cargo_home.clone_from(&request.cargo_home);
    let tree = ProvenTree::gather(pin.load_listing()?, &pin.snapshots, &registry);
    progress.tell(Event::End);
    let coverage = tree.coverage().clone();
    if coverage.proven == 0 {
        let parts = coverage.parts.into_iter();
        tried.extend(parts.map(|part| {
            let why = part.problem.unwrap_or_else(|| "none of its files is the pin's".into());
            let why = why.strip_prefix(&format!("{}: ", part.source)).unwrap_or(&why).to_owned();
            Tried { source: part.source, why }
        }));
        return Err(AcquireError::Nowhere { commit: pin.commit, tried, damaged });
    }
    let source = Answer::Snapshots { coverage };
    Ok(Acquired { tree: PinTree::Proven(tree), source, tried, damaged })
}

impl Answer {
    /// The source in a few words, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::ObjectCache { path } => format!("the object cache ({})", path.display()),
            Self::Repository { from } => from.clone(),
            Self::Upstream { url } => url.clone(),
            Self::Snapshots { coverage } => coverage.describe(),
        }
    }

    /// What released trees hold, where they are the source.
    #[must_use]
    pub fn coverage(&self) -> Option<&Coverage> {
        match self {
            Self::Snapshots { coverage } => Some(coverage),
            _ => None,
        }
    }
}

impl PinTree {
    fn inner(&self) -> &dyn Tree {
        match self {
            Self::Whole(tree) => tree,
            Self::Proven(tree) => tree,
        }
    }
}

impl Tree for PinTree {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        self.inner().file(path)
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.inner().mode(path)
    }

    fn id(&self, path: &TreePath) -> Option<ObjectId> {
        self.inner().id(path)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.inner().paths()
    }

    fn entries(&self) -> Vec<Entry> {
        self.inner().entries()
    }
}
