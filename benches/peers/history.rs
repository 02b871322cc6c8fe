//! A series followed through the history of upstream.

use std::path::Path;
use std::process::Command;

use crate::measure::{Cost, Rounds, Spent, ask_git, git, run, run_to};
use crate::trees::{self, Project};
use crate::{Bench, Failure, Ground, UPSTREAM, mib};

/// Commits of history that the series is judged on.
const COMMITS: usize = 500;
/// Commits of them that are checked out one by one; the rest is reckoned.
const CHECKED_OUT: usize = 20;
const ROUNDS: usize = 3;

const DRIFT: &str = "overlay drift --history";
const LOG: &str = "git log --raw, same paths";
const CHECKOUT: &str = "git checkout, git apply --check";
const BUMP: &str = "overlay drift, one bump";

impl Bench {
    /// Verdicts over the last commits of upstream, and over one bump.
    pub fn history(&mut self) -> Result<(), Failure> {
        let Ground::Pin(clone) = &self.ground else {
            let what = format!("drift over history: set {UPSTREAM} to a clone of upstream");
            self.not_measured.push(what);
            return Ok(());
        };
        let clone = clone.clone();
        let commits = ask_git(&clone, &["rev-list", "--first-parent", "--reverse", "HEAD"])?;
        let commits: Vec<&str> = commits.lines().collect();
        let Some(first) = commits.len().checked_sub(COMMITS + 1) else {
            self.not_measured.push(format!("drift: {} has no {COMMITS} commits", clone.display()));
            return Ok(());
        };
        let (pin, commits) = (commits[first], &commits[first + 1..]);

        // The series is made for the oldest of them.
        let (tree, patches) = (self.dir.join("old-tree"), self.dir.join("old-quilt"));
        let root = self.dir.join("old");
        let whole = Project { root: root.clone(), repository: clone.clone(), commit: pin.into() };
        whole.unpack(&tree)?;
        let names = trees::make_series(&tree, &patches)?;
        let project = Project::at(&root, &clone, pin, &patches)?;
        let paths = touched(&patches, &names)?;
        run(self.overlay().current_dir(&root).arg("fetch").arg("--from").arg(&clone))?;
        let work = self.dir.join("checkout");
        run(Command::new("git")
            .args(["clone", "--quiet", "--shared", "--no-checkout"])
            .arg(&clone)
            .arg(&work))?;
        run(git(&work).args(["checkout", "--quiet", "--detach", pin]))?;

        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            let mut drift = self.overlay();
            drift.current_dir(&project.root).args(["drift", "--history", "--to"]);
            drift.arg(commits[COMMITS - 1]).arg("--from").arg(&clone);
            // 1: some of it does not hold any more, and it says what.
            rounds.note(DRIFT, run_to(&mut drift, &[0, 1])?);

            let mut log = git(&clone);
            log.args(["log", "--raw", "--format=%H", &format!("{pin}..HEAD"), "--"]).args(&paths);
            rounds.note(LOG, run(&mut log)?);

            let mut spent = Spent::default();
            for commit in &commits[..CHECKED_OUT] {
                spent = spent.and(run(git(&work).args(["checkout", "--quiet", commit]))?);
                let mut check = git(&work);
                check.args(["apply", "--check"]).args(names.iter().map(|n| patches.join(n)));
                check.stderr(std::process::Stdio::null());
                spent = spent.and(run_to(&mut check, &[0, 1])?);
            }
            run(git(&work).args(["checkout", "--quiet", pin]))?;
            rounds.note(CHECKOUT, spent.times(COMMITS as f64 / CHECKED_OUT as f64));
        }
        println!(
            "\na series of {} patches over {COMMITS} upstream commits ({CHECKED_OUT} of them \
             checked out, times {})",
            names.len(),
            COMMITS / CHECKED_OUT
        );
        self.table(&rounds, &[]);
        self.goal(&rounds, DRIFT, LOG, 3.0);
        self.goal(&rounds, DRIFT, CHECKOUT, 1.0 / 30.0);

        let real = Project::real(&self.dir.join("bump"), &clone)?;
        let mut bump = Rounds::default();
        for _ in 0..ROUNDS {
            let mut drift = self.overlay();
            drift.current_dir(&real.root).args(["drift", "--to", "HEAD"]);
            bump.note(BUMP, run_to(drift.arg("--from").arg(&clone), &[0, 1])?);
        }
        println!("\nthis project's own series, from its pin to the newest commit");
        self.table(&bump, &[]);
        let cpu = bump.median(BUMP, Cost::Cpu).as_secs_f64();
        self.verdict(cpu < 0.3, &format!("{BUMP}: {cpu:.3} s of CPU, goal under 0.3"));
        let peak = mib(rounds.peak(DRIFT).max(bump.peak(BUMP)));
        self.verdict(peak < 200.0, &format!("drift: peak memory {peak:.1} MiB, goal under 200"));
        Ok(())
    }
}

/// The files that the patches change.
fn touched(patches: &Path, names: &[String]) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(patches.join(name))?;
        let new = text.lines().filter_map(|l| l.strip_prefix("+++ b/"));
        paths.extend(new.map(str::to_owned));
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
