//! Upstream's own commits, laid on older ones: many kinds of files and of changes, with
//! `git merge-file` as the oracle.

use std::collections::BTreeMap;

use mlx_overlay_engine::apply::Ground;
use mlx_overlay_engine::git::History;
use mlx_overlay_engine::patch::{self, Operation};
use overlay_tests_support::{Need, Suite};

use super::history::upstream;
use super::strict::{Git, hunks, said};
use super::{git, this_pin};

pub fn add(suite: &mut Suite) {
    let needs = [Need::upstream(), Need::program("git", "git")];
    suite.test_needing("history/a-commit-laid-on-an-older-one-merges-as-in-git", needs, picked);
}

/// How many commits one is laid back.
const BACK: usize = 40;

/// Hunks that are placed where git sees a conflict, by the first digits of their commit:
/// each puts something in before a line that upstream has twice, and git's diff lets it
/// slide over that line, to where upstream took something away.
const SLIDES: [(&str, &str); 2] =
    [("8cd377b7", "python/src/ops.cpp"), ("4912cc47", "mlx/backend/cuda/quantized/fp_quantize.cu")];

/// Every eighth of the 1200 commits before the pin. No hunk stands where git sees a
/// conflict, and none that git merges is turned down, unless upstream changed a line
/// next to it.
fn picked() {
    let (_, pin) = this_pin();
    let pin = pin.commit.to_string();
    let history = History::open(&upstream()).unwrap();
    let log = ["log", "--first-parent", "--no-merges", "--format=%H", "-n", "1200", &pin];
    let log = git(&upstream(), &log);
    let commits: Vec<&str> = log.lines().collect();
    let mut counts: BTreeMap<(bool, Git), usize> = BTreeMap::new();
    for at in (0..commits.len() - BACK).step_by(8) {
        let [made, base, older] = [at, at + 1, at + BACK].map(|at| commits[at]);
        let text = git(&upstream(), &["diff", "-M", base, made]);
        let tree = |commit| history.tree(history.resolve(commit).unwrap()).unwrap();
        let (base, target) = (tree(base), tree(older));
        let mut ground = Ground::mapped(&base, &target);
        let (old, theirs) = (ground.base.clone().unwrap(), ground.target.clone());
        let report = ground.apply(made, &patch::parse(text.as_bytes()).unwrap(), 1).unwrap();
        for (hunk, alone) in report.hunks.iter().zip(hunks(text.as_bytes())) {
            if alone.files[0].operation != Operation::Modify {
                continue;
            }
            let (holds, git) = (hunk.class.holds(), said(&alone, (&old, &theirs), &hunk.file));
            let slides = |(commit, file): &(&str, &str)| {
                made.starts_with(commit) && hunk.file.as_str() == *file
            };
            assert!(
                holds == (git != Git::Conflict)
                    || git == Git::Meet
                    || holds && SLIDES.iter().any(slides),
                "{made} on {older}, {} hunk {}: {:?}, git: {git:?}; {:?}",
                hunk.file,
                hunk.number,
                hunk.class,
                hunk.why
            );
            *counts.entry((holds, git)).or_default() += 1;
        }
    }
    let counted = |holds, git| counts.get(&(holds, git)).copied().unwrap_or_default();
    assert!(counted(true, Git::Apart) > 900, "{counts:?}");
    assert!(counted(false, Git::Conflict) > 150, "{counts:?}");
}
