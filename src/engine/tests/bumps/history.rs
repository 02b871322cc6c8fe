//! This repository's series over upstream's history, with plain git as the
//! oracle for where lines went.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::drift::{Judgement, judge, line, trace_line};
use mlx_overlay_engine::git::History;
use mlx_overlay_engine::rebase::{Decisions, Names, Outcome, plan};
use mlx_overlay_engine::series::Series;
use overlay_tests_support::{Need, Suite};

use super::{git, this_pin};

pub fn add(suite: &mut Suite) {
    let needs = || [Need::upstream(), Need::program("git", "git")];
    suite.test_needing("history/every-commit-after-the-pin", needs(), after);
    suite.test_needing("history/older-pins", needs(), before);
    suite.test_needing("history/a-trace-agrees-with-each-judgement", needs(), traced);
    suite.test_needing("history/what-landed-is-dropped-with-its-commit", needs(), landed);
}

pub fn upstream() -> PathBuf {
    std::env::var_os("MLX_OVERLAY_UPSTREAM").expect("the need is met").into()
}

/// git's word on where an old line stands: its line plus what the hunks above
/// it add, or nothing where a hunk touches it.
struct Oracle(Vec<(usize, usize, usize)>);

impl Oracle {
    fn new(repository: &Path, old: &str, new: &str, file: &str) -> Self {
        let text = git(repository, &["diff", "-U0", "--no-renames", old, new, "--", file]);
        let hunk = |l: &str| {
            let mut words = l.strip_prefix("@@ -")?.split(' ');
            let part = |w: &str| -> Option<(usize, usize)> {
                let (start, len) = w.split_once(',').unwrap_or((w, "1"));
                Some((start.parse().ok()?, len.parse().ok()?))
            };
            let (start, old) = part(words.next()?)?;
            let (_, new) = part(words.next()?.strip_prefix('+')?)?;
            Some((start, old, new))
        };
        Self(text.lines().filter_map(hunk).collect())
    }

    /// How far the lines `first..=last` moved, if no hunk touches them.
    fn shift(&self, first: usize, last: usize) -> Option<isize> {
        let mut shift = 0;
        for &(start, old, new) in &self.0 {
            let (begin, end) = if old == 0 { (start + 1, start) } else { (start, start + old - 1) };
            if end < first || (old == 0 && begin <= first) {
                shift += new.cast_signed() - old.cast_signed();
            } else if begin <= last {
                return None;
            }
        }
        Some(shift)
    }
}

/// Judges the series at a commit and compares every hunk with the oracle; gives
/// how many hunks were compared, and whether all hold.
fn compared(
    series: &Series,
    history: &History,
    (pin, at_pin): (&str, &Judgement),
    target: &str,
) -> (usize, bool) {
    let (old, new) = (history.resolve(pin).unwrap(), history.resolve(target).unwrap());
    let found =
        judge(series, &history.tree(old).unwrap(), &history.tree(new).unwrap(), target).unwrap();
    // Lines that earlier entries add above a hunk move it at both ends alike.
    let mut compared = 0;
    for (entry, was) in found.entries.iter().zip(&at_pin.entries) {
        for (hunk, was) in entry.patch.hunks.iter().zip(&was.patch.hunks) {
            let (Some(line), Some(old_line)) = (hunk.line, was.line) else { continue };
            // Where in the pin's own file the hunk's first context line is.
            let Some(own) = own_line(series, was.file.as_str(), &entry.name, was.number, at_pin)
            else {
                continue;
            };
            let oracle = Oracle::new(&upstream(), pin, target, hunk.file.as_str());
            if let Some(shift) = oracle.shift(own, own) {
                let moved = line.cast_signed() - old_line.cast_signed();
                assert_eq!(moved, shift, "{} hunk {} at {target}", entry.name, hunk.number);
                compared += 1;
            }
        }
    }
    (compared, found.holds())
}

/// The line of the pin's file that a hunk begins at: what earlier entries add
/// above it, taken off. Nothing where it begins in lines they added.
fn own_line(
    series: &Series,
    file: &str,
    entry: &str,
    number: usize,
    at_pin: &Judgement,
) -> Option<usize> {
    let mut shift = 0_isize;
    let mut line = None;
    for (report, _) in at_pin.entries.iter().zip(&series.entries) {
        let hunks = report.patch.hunks.iter().filter(|h| h.file.as_str() == file);
        if report.name == entry {
            line = hunks.clone().find(|h| h.number == number).and_then(|h| h.line);
            break;
        }
        if report
            .derived
            .as_ref()
            .and_then(|d| d.made.as_ref())
            .is_some_and(|m| m.file.as_str() == file)
        {
            // A derived function is put in somewhere above or below: its lines
            // are counted by the report of the entry itself.
            let made = report.derived.as_ref().and_then(|d| d.made.as_ref())?;
            let here = at_pin.entries.iter().find(|e| e.name == entry)?;
            let hunk = here.patch.hunks.iter().find(|h| h.number == number)?.line?;
            if made.lines.0 <= hunk {
                shift += (made.lines.1 - made.lines.0 + 2).cast_signed();
            }
        }
    }
    let line = line?;
    for report in &at_pin.entries {
        if report.name == entry {
            break;
        }
        for hunk in report.patch.hunks.iter().filter(|h| h.file.as_str() == file) {
            let begin = hunk.new_line?;
            if begin + hunk.added + 6 <= line {
                shift += hunk.added.cast_signed() - hunk.removed.cast_signed();
            } else if begin <= line {
                return None;
            }
        }
    }
    line.checked_add_signed(-shift)
}

fn at_pin(series: &Series, history: &History, pin: &str) -> Judgement {
    let tree = history.tree(pin.parse().unwrap()).unwrap();
    judge(series, &tree, &tree, "").unwrap()
}

pub fn series() -> (Series, String) {
    let (_, pin) = this_pin();
    (Series::load(&pin).unwrap(), pin.commit.to_string())
}

/// Of the commits after the pin only one touches a file of the series near it:
/// "Use a 32-row block in qmm_t_nax" (#4171) adds a line to quantized.cpp above
/// `dispatch_qmv`. So every commit holds.
fn after() {
    let (series, pin) = series();
    let history = History::open(&upstream()).unwrap();
    let head = history.resolve("HEAD").unwrap();
    let commits = line(&history, pin.parse().unwrap(), head).unwrap().after;
    assert!(commits.len() >= 32, "{}", commits.len());
    let own = at_pin(&series, &history, &pin);
    let mut total = 0;
    for commit in commits.iter().take(32) {
        let (compared, holds) = compared(&series, &history, (&pin, &own), &commit.id.to_string());
        assert!(holds, "{} {}", commit.id, commit.subject);
        total += compared;
    }
    assert!(total > 200, "{total} places compared with git's");
}

/// Back to where it stops holding, and then to what stops it next. Of the commits
/// before the pin that touch the two files, "Optimize large NVFP4 QMV on M5 Max"
/// (#3961) puts lines between the predicate `fast` and the kernel's name: without
/// it the watch over them is another. Down to "Raise qmv batch limit for large
/// matrices on M5-class GPUs" (#3791) all else is left alone; the one before it
/// has the old limits in `get_qmv_batch_limit`.
fn before() {
    let (series, pin) = series();
    let history = History::open(&upstream()).unwrap();
    let files = ["mlx/backend/metal/quantized.cpp", "mlx/backend/metal/kernels/quantized.h"];
    let mut arguments = vec!["log", "--first-parent", "--format=%H", "-n", "40", &pin, "--"];
    arguments.extend(files);
    let text = git(&upstream(), &arguments);
    let own = at_pin(&series, &history, &pin);
    let old = history.tree(history.resolve(&pin).unwrap()).unwrap();
    let mut stops: Vec<(&str, Vec<String>)> = Vec::new();
    for commit in text.lines() {
        let (_, holds) = compared(&series, &history, (&pin, &own), commit);
        if holds {
            assert!(stops.is_empty(), "{commit} holds again");
            continue;
        }
        let new = history.tree(history.resolve(commit).unwrap()).unwrap();
        let found = judge(&series, &old, &new, "").unwrap().findings(None);
        let open = found.into_iter().filter(|f| f.needs_person);
        let open: Vec<String> = open.map(|f| f.item.to_string()).collect();
        if stops.last().is_none_or(|(_, before)| *before != open) {
            stops.push((&commit[..9], open));
        }
        if stops.len() == 2 {
            break;
        }
    }
    let (limit, fast) = ("watch get_qmv_batch_limit".to_owned(), "watch qmv".to_owned());
    let expected = [("8d6662986", vec![fast.clone()]), ("8056817bd", vec![limit, fast])];
    assert_eq!(stops, expected);
}

fn traced() {
    let (series, pin) = series();
    let history = History::open(&upstream()).unwrap();
    let head = history.resolve("HEAD").unwrap();
    let line = line(&history, pin.parse().unwrap(), head).unwrap();
    let tree = history.tree(pin.parse().unwrap()).unwrap();
    let id = head.to_string();
    let at_pin = judge(&series, &tree, &tree, &id).unwrap();
    let found = trace_line(&series, &tree, &at_pin, &history, &line, &id).unwrap();
    let mut now: std::collections::BTreeMap<_, _> =
        judge(&series, &tree, &tree, &id).unwrap().states().into_iter().collect();
    for commit in &line.after {
        for step in found.steps.iter().filter(|s| s.commit.commit == commit.id) {
            for change in &step.changes {
                now.insert(change.item.clone(), change.to);
            }
        }
        let whole = judge(&series, &tree, &history.tree(commit.id).unwrap(), &id).unwrap();
        for (item, state) in whole.states() {
            assert_eq!(now.get(&item), Some(&state), "{item} at {}", commit.id);
        }
    }
}

/// Upstream's fix is the text of our first entry: on a branch that takes it over
/// and goes on, the entry is dropped, and that commit is named.
fn landed() {
    let (series, pin) = series();
    let work = tempfile::tempdir().unwrap();
    let clone = upstream().display().to_string();
    git(work.path(), &["clone", "--quiet", "--shared", "--no-checkout", &clone, "."]);
    git(work.path(), &["checkout", "--quiet", "--detach", &pin]);
    let fix = series.folder.join("0001-qmv-template-arguments.patch");
    git(work.path(), &["apply", &fix.display().to_string()]);
    let commit = |subject: &str| {
        let author = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let rest = ["commit", "--quiet", "--all", "--allow-empty", "--message", subject];
        git(work.path(), &[&author[..], &rest[..]].concat());
        git(work.path(), &["rev-parse", "HEAD"]).trim().to_owned()
    };
    let fixed = commit("Take a sixth argument (#9999)");
    let target = commit("Something else (#10000)");
    let history = History::open(work.path()).unwrap();
    let (from, to) = (history.resolve(&pin).unwrap(), history.resolve(&target).unwrap());
    let (old, new) = (history.tree(from).unwrap(), history.tree(to).unwrap());
    let names = Names { pin: "pin", target: "fixed", id: &target };
    let mut found = plan(&series, &old, &new, names, &Decisions::default()).unwrap();
    assert!(found.is_whole(), "{:?}", found.stop);
    let at_pin = judge(&series, &old, &old, "").unwrap();
    let line = line(&history, from, to).unwrap();
    found.name_causes(&trace_line(&series, &old, &at_pin, &history, &line, &target).unwrap());
    for planned in &found.entries {
        let is_fix = planned.name == "qmv-template-arguments";
        assert_eq!(planned.outcome == Outcome::Landed, is_fix, "{}", planned.name);
        let by = planned.landed_by.as_ref().map(|c| (c.commit.to_string(), c.pull));
        assert_eq!(by, is_fix.then(|| (fixed.clone(), Some(9999))), "{}", planned.name);
    }
}
