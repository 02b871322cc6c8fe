//! The laid tree that MLX is built from.

use std::path::{Path, PathBuf};

use super::{BuildError, DIR_VARIABLE, Inputs, Variables};
use crate::apply::Ground;
use crate::cache::Cache;
use crate::git::Store as ObjectStore;
use crate::identity::{same_wish, whole};
use crate::lay::lay;
use crate::pin::{Pin, Project};
use crate::publish::{Depth, Identity, STAMP, Source, StampError, survey};
use crate::series::Series;

/// The variable that names a laid tree to take as it is.
pub const TREE_VARIABLE: &str = "MLX_OVERLAY_TREE";
/// Where `overlay apply` publishes, below the project.
const PUBLISHED: &str = "target/overlay";

/// A laid tree, and what it is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidTree {
    /// The files that MLX is built from.
    pub inputs: Inputs,
    /// Its folder; nothing where it was laid in memory.
    pub folder: Option<PathBuf>,
    /// The commit its series was made for, or `none` where nothing tells.
    pub pin: String,
    /// Where its files come from, so that two sources never share a build.
    pub source: String,
    /// A change in one of these is a reason to look again.
    pub watch: Vec<PathBuf>,
}

/// How to come by a tree that can be built.
fn whole_trees() -> [String; 2] {
    [
        "overlay apply --from <a clone of MLX>, for the whole tree of the pin".into(),
        format!(
            "or, where no git host is reached, overlay apply --at crate:NAME@VERSION:folder --out DIR, \
             for one of another release, and {TREE_VARIABLE}=DIR"
        ),
    ]
}

impl LaidTree {
    /// Finds the tree that the variables ask for: the one that
    /// `MLX_OVERLAY_TREE` names; else the one that `overlay apply` published in
    /// the project of `MLX_OVERLAY_DIR`, or of this crate, where it is what pin
    /// and series say; else the series laid in memory on the commit in the
    /// object cache. The network is not touched.
    ///
    /// # Errors
    /// There is none of these, or it does not hold the whole of MLX, or it was
    /// edited by hand, or the series does not hold.
    pub fn find(variables: &Variables, cache: &Cache) -> Result<Self, BuildError> {
        if let Some(folder) = variables.path(TREE_VARIABLE)? {
            return Self::named(&folder);
        }
        let root = match variables.path(DIR_VARIABLE)? {
            Some(folder) => folder,
            None => PathBuf::from(variables.cargos("CARGO_MANIFEST_DIR")?),
        };
        let again = |what: &str| format!("overlay -C '{}' {what}", root.display());
        let none = |why: String, what| BuildError::NoTree { why, remedies: vec![again(what)] };
        let project = Project::load(&root).map_err(|e| none(e.to_string(), "pin"))?;
        let pin = &project.current;
        let series = Series::load(pin).map_err(|e| none(e.to_string(), "status"))?;
        let of_project = vec![pin.file.clone(), pin.folder.clone()];

        let place = root.join(PUBLISHED).join(pin.short());
        let lay = again("apply --force");
        let published = match Self::published(&place, Some((pin, &series)), &lay)? {
            Published::Fresh(mut tree) => {
                tree.watch.extend(of_project);
                return Ok(*tree);
            }
            Published::Unfit(why) => why,
        };
        match Self::laid(pin, &series, cache, &again("apply"))? {
            Some(mut tree) => {
                tree.watch = of_project;
                Ok(tree)
            }
            None => Err(BuildError::NoTree {
                why: format!(
                    "{published}; and the object cache does not hold commit {}",
                    pin.commit
                ),
                remedies: [again("fetch"), again("apply")]
                    .into_iter()
                    .chain(whole_trees())
                    .collect(),
            }),
        }
    }

    /// A folder that the user names: as its stamp says, or as it is where it
    /// has none.
    fn named(folder: &Path) -> Result<Self, BuildError> {
        let folder = folder.canonicalize().map_err(|e| BuildError::NoTree {
            why: format!("{TREE_VARIABLE} names `{}`: {e}", folder.display()),
            remedies: whole_trees().into(),
        })?;
        if folder.join(STAMP).exists() {
            let lay = format!(
                "in the project that laid it: overlay apply --out '{}' --force",
                folder.display()
            );
            return match Self::published(&folder, None, &lay)? {
                Published::Fresh(tree) => Ok(*tree),
                Published::Unfit(why) => {
                    Err(BuildError::NoTree { why, remedies: whole_trees().into() })
                }
            };
        }
        Ok(Self {
            inputs: Inputs::read(&folder)?,
            pin: "none".into(),
            source: format!("folder {}", folder.display()),
            watch: Inputs::parts(&folder),
            folder: Some(folder),
        })
    }

    /// The published tree at `place`, if it is whole and, where a pin and its
    /// series are given, theirs. `lay` is how it is laid again.
    fn published(
        place: &Path,
        wanted: Option<(&Pin, &Series)>,
        lay: &str,
    ) -> Result<Published, BuildError> {
        let at = place.display();
        let survey = match survey(place, Depth::Stat) {
            Ok(survey) => survey,
            Err(crate::publish::PublishError::Stamp(StampError::Missing { .. })) => {
                return Ok(Published::Unfit(format!("nothing is published at `{at}`")));
            }
            Err(error) => return Ok(Published::Unfit(error.to_string())),
        };
        let identity = &survey.stamp.identity;
        if let Some((pin, series)) = wanted
            && !same_wish(identity, &whole(pin, &series.entries.iter().collect::<Vec<_>>(), &[]))
        {
            let why = format!("what is published at `{at}` is not what pin and series say");
            return Ok(Published::Unfit(why));
        }
        if let Some(partial) = identity.partial {
            return Ok(Published::Unfit(format!(
                "what is published at `{at}` holds {} of MLX's {} files: it can be read, not built",
                partial.have, partial.of
            )));
        }
        let changes: Vec<String> =
            survey.findings.iter().filter(|f| f.is_change()).map(ToString::to_string).collect();
        if !changes.is_empty() {
            return Err(BuildError::NoTree {
                why: format!("`{at}` was edited by hand: {}", changes.join(", ")),
                remedies: vec![
                    format!("{lay}, to lay it again"),
                    format!("or copy it, without {STAMP}, and name the copy in {TREE_VARIABLE}"),
                ],
            });
        }
        let mut watch = Inputs::parts(place);
        watch.push(place.join(STAMP));
        Ok(Published::Fresh(Box::new(Self {
            inputs: Inputs::read(place)?,
            folder: Some(place.to_path_buf()),
            pin: identity.pin.to_string(),
            source: source_name(identity),
            watch,
        })))
    }

    /// The series laid in memory on the pin's commit, where the object cache
    /// holds it.
    fn laid(
        pin: &Pin,
        series: &Series,
        cache: &Cache,
        apply: &str,
    ) -> Result<Option<Self>, BuildError> {
        let failed = |why: String| BuildError::NoTree {
            why,
            remedies: vec![format!("{apply}, which says hunk by hunk what does not hold")],
        };
        let store = ObjectStore::new(cache, &pin.upstream);
        let tree = store.tree(pin.commit, pin.tree).map_err(|e| failed(e.to_string()))?;
        let Some(tree) = tree else { return Ok(None) };
        let mut ground = Ground::mapped(&tree, &tree);
        let reports = lay(series, &[], &mut ground).map_err(|e| failed(e.to_string()))?;
        let broken: Vec<&str> =
            reports.iter().filter(|r| !r.holds()).map(|r| r.name.as_str()).collect();
        if !broken.is_empty() {
            return Err(failed(format!("the series does not hold: {}", broken.join(", "))));
        }
        Ok(Some(Self {
            inputs: Inputs::of_tree(&ground.target)?,
            folder: None,
            pin: pin.commit.to_string(),
            source: format!("git {}", pin.tree),
            watch: vec![],
        }))
    }
}

/// What stands at the place of a published tree.
enum Published {
    /// The tree that is wanted.
    Fresh(Box<LaidTree>),
    /// Nothing, or another tree; why it will not do.
    Unfit(String),
}

fn source_name(identity: &Identity) -> String {
    match &identity.source {
        Source::Git { tree } => format!("git {tree}"),
        Source::Snapshot { digest, .. } => format!("snapshot {digest}"),
        Source::Release { digest } => format!("release {digest}"),
    }
}
