//! Drift against the git programs that do a part of it.
//!
//! `MLX_OVERLAY_UPSTREAM=<clone> cargo bench -p mlx-overlay-engine --bench drift`
//! prints, from one run: verdicts over the last 500 first-parent commits beside
//! `git log --raw` over the same paths and beside a loop of `git checkout` and
//! `git apply --check` (a sample, scaled up); the CPU of one bump; the peak
//! memory. It needs `git` and a clone of upstream with its history.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mlx_overlay_engine::drift::{Line, deciding_files, judge, line, trace_line};
use mlx_overlay_engine::git::{CommitInfo, History};
use mlx_overlay_engine::pin::Project;
use mlx_overlay_engine::series::{Change, Series};

type Failure = Box<dyn std::error::Error>;

const COMMITS: usize = 500;
const SAMPLE: usize = 10;

fn main() -> Result<(), Failure> {
    let Some(upstream) = std::env::var_os("MLX_OVERLAY_UPSTREAM").map(PathBuf::from) else {
        println!(
            "nothing was measured: set MLX_OVERLAY_UPSTREAM to a clone of MLX with its history"
        );
        return Ok(());
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let project = Project::load(&root)?;
    let pin = &project.current;
    let series = Series::load(pin)?;
    let history = History::open(&upstream)?;
    let head = history.resolve("HEAD")?;

    let begun = (Instant::now(), cpu()?);
    let tree = history.tree(pin.commit)?;
    let target = history.tree(head)?;
    judge(&series, &tree, &target, &head.to_string())?;
    if let Line::After(commits) = line(&history, pin.commit, head)? {
        trace_line(&series, &tree, &history, &commits, &head.to_string())?;
        println!("one bump over {} commits, causes and contracts included:", commits.len());
    }
    println!(
        "  {:?} CPU, {:?} in all (wanted: under 300 ms of CPU)",
        cpu()? - begun.1,
        begun.0.elapsed()
    );

    let commits = last_commits(&upstream, &history)?;
    let begun = (Instant::now(), cpu()?);
    let found = trace_line(&series, &tree, &history, &commits, &head.to_string())?;
    let ours = begun.0.elapsed();
    println!(
        "verdicts over {} commits, {} touching, {} changing a state:\n  {ours:?}, {:?} CPU",
        found.commits,
        found.touching,
        found.steps.len(),
        cpu()? - begun.1
    );

    let mut arguments = vec!["log", "--raw", "--first-parent", "-n", "500", "HEAD", "--"];
    let files: Vec<String> =
        deciding_files(&series, &tree)?.iter().map(ToString::to_string).collect();
    arguments.extend(files.iter().map(String::as_str));
    // `-n` counts the commits shown, so the walk is bounded by its oldest one.
    let range = format!("{}..HEAD", commits[0].parents[0]);
    arguments.splice(3..6, [range.as_str()]);
    let log = timed(&upstream, &arguments)?;
    println!(
        "  git log --raw over the same paths: {log:?}; ratio {:.2} (wanted: at most 3)",
        ratio(ours, log)
    );

    let naive = checkout_and_apply(&upstream, &series, &commits)?;
    println!(
        "  git checkout and git apply --check, {SAMPLE} commits scaled to {}: {naive:?}; {:.0} times \
         faster (wanted: at least 30)",
        commits.len(),
        ratio(naive, ours)
    );
    println!("peak memory: {} MiB (wanted: under 200)", peak_mib()?);
    Ok(())
}

fn last_commits(upstream: &Path, history: &History) -> Result<Vec<CommitInfo>, Failure> {
    let output = Command::new("git")
        .arg("-C")
        .arg(upstream)
        .args(["rev-list", "--first-parent", "-n", &COMMITS.to_string(), "HEAD"])
        .output()?;
    let mut commits = Vec::new();
    for id in String::from_utf8(output.stdout)?.lines().rev() {
        commits.push(history.commit(id.parse()?)?);
    }
    Ok(commits)
}

fn timed(upstream: &Path, arguments: &[&str]) -> Result<Duration, Failure> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        let status = Command::new("git")
            .arg("-C")
            .arg(upstream)
            .args(arguments)
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(format!("git {arguments:?} failed").into());
        }
        best = best.min(begun.elapsed());
    }
    Ok(best)
}

/// The way without the tool: check out each commit, try each patch.
fn checkout_and_apply(
    upstream: &Path,
    series: &Series,
    commits: &[CommitInfo],
) -> Result<Duration, Failure> {
    let work = tempfile::tempdir()?;
    let clone = work.path().join("clone");
    let git = |at: &Path, arguments: &[&str]| {
        Command::new("git")
            .arg("-C")
            .arg(at)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    };
    let (from, to) = (upstream.display().to_string(), clone.display().to_string());
    git(work.path(), &["clone", "-q", "--shared", "--no-checkout", &from, &to])?;
    let mut patches = Vec::new();
    for (i, entry) in series.entries.iter().enumerate() {
        if let Change::Patch { bytes, .. } = &entry.change {
            let path = work.path().join(format!("{i}.patch"));
            fs::write(&path, bytes)?;
            patches.push(path.display().to_string());
        }
    }
    let step = (commits.len() / SAMPLE).max(1);
    git(&clone, &["checkout", "-q", "--detach", &commits[0].id.to_string()])?;
    let begun = Instant::now();
    let mut tried = 0_u32;
    for commit in commits.iter().skip(step / 2).step_by(step).take(SAMPLE) {
        git(&clone, &["checkout", "-q", "--detach", &commit.id.to_string()])?;
        for patch in &patches {
            git(&clone, &["apply", "--check", patch])?;
        }
        tried += 1;
    }
    Ok(begun.elapsed() * u32::try_from(commits.len())? / tried.max(1))
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// The CPU time of this process.
fn cpu() -> Result<Duration, Failure> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(now.tv_sec.try_into()?, now.tv_nsec.try_into()?))
}

fn peak_mib() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1024)
}
