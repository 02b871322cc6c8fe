//! What a run of a program costs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

use crate::Failure;

/// The cost of a run, with that of every program it ran in turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// From the start to the end.
    pub wall: Duration,
    /// User and system time, all threads and processes.
    pub cpu: Duration,
    /// The largest resident set of any one process, in bytes. The kernel counts
    /// what this program itself held when it started the other, so it stays small.
    pub peak: u64,
}

impl Spent {
    /// As if it had been done so many times.
    pub fn times(self, n: f64) -> Self {
        Self { wall: self.wall.mul_f64(n), cpu: self.cpu.mul_f64(n), peak: self.peak }
    }

    /// The sum of two runs, one after the other.
    pub fn and(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
            peak: self.peak.max(other.peak),
        }
    }
}

/// Runs a program to its end; what it prints is dropped.
///
/// # Errors
/// It cannot be run, or does not end well.
pub fn run(command: &mut Command) -> Result<Spent, Failure> {
    run_to(command, &[0])
}

/// As [`run`], where it may end with one of these codes.
///
/// # Errors
/// It cannot be run, or ends otherwise.
pub fn run_to(command: &mut Command, codes: &[i32]) -> Result<Spent, Failure> {
    let begun = Instant::now();
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?.wait4()?;
    let wall = begun.elapsed();
    if !done.status.code().is_some_and(|code| codes.contains(&code)) {
        return Err(format!("{command:?}: {}", done.status).into());
    }
    Ok(Spent { wall, cpu: done.rusage.utime + done.rusage.stime, peak: done.rusage.maxrss })
}

/// Runs `left | right`.
///
/// # Errors
/// As [`run`].
pub fn pipe(left: &mut Command, right: &mut Command) -> Result<Spent, Failure> {
    let begun = Instant::now();
    let mut first = left.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let between = first.stdout.take().ok_or("no pipe")?;
    let mut second = right.stdin(between).stdout(Stdio::null()).spawn()?;
    let (first, second) = (first.wait4()?, second.wait4()?);
    let wall = begun.elapsed();
    for (command, done) in [(left, &first), (right, &second)] {
        if !done.status.success() {
            return Err(format!("{command:?}: {}", done.status).into());
        }
    }
    let cpu = [&first, &second].iter().map(|d| d.rusage.utime + d.rusage.stime).sum();
    Ok(Spent { wall, cpu, peak: first.rusage.maxrss.max(second.rusage.maxrss) })
}

/// Git with nothing of the user's set-up.
pub fn git(at: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(at);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "bench"),
        ("GIT_AUTHOR_EMAIL", "bench@example.invalid"),
        ("GIT_COMMITTER_NAME", "bench"),
        ("GIT_COMMITTER_EMAIL", "bench@example.invalid"),
    ] {
        git.env(name, value);
    }
    git
}

/// What git prints.
///
/// # Errors
/// It does not end well.
pub fn ask_git(at: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let out = git(at).args(arguments).stderr(Stdio::inherit()).output()?;
    if !out.status.success() {
        return Err(format!("git {arguments:?}: {}", out.status).into());
    }
    Ok(String::from_utf8(out.stdout)?.trim_end().to_owned())
}

/// Rounds of one task for several contenders in turn, so that a busy machine
/// is busy for all of them alike.
#[derive(Default)]
pub struct Rounds(Vec<(&'static str, Vec<Spent>)>);

/// Which cost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Wall,
    Cpu,
}

impl Rounds {
    /// Notes a run of a contender.
    pub fn note(&mut self, who: &'static str, spent: Spent) {
        match self.0.iter_mut().find(|(name, _)| *name == who) {
            Some((_, runs)) => runs.push(spent),
            None => self.0.push((who, vec![spent])),
        }
    }

    /// The contenders, as they came.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    fn runs(&self, who: &str) -> &[Spent] {
        self.0.iter().find(|(name, _)| *name == who).map_or(&[], |(_, runs)| runs)
    }

    /// The median of a contender's runs.
    pub fn median(&self, who: &str, cost: Cost) -> Duration {
        let mut times: Vec<_> = self.runs(who).iter().map(|s| time(s, cost)).collect();
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    /// The median, over the rounds, of one contender's cost by another's.
    pub fn ratio(&self, who: &str, whose: &str, cost: Cost) -> f64 {
        let pairs = self.runs(who).iter().zip(self.runs(whose));
        let ratio = |(a, b)| time(a, cost).as_secs_f64() / time(b, cost).as_secs_f64();
        let mut ratios: Vec<f64> = pairs.map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The largest resident set of a contender, in bytes.
    pub fn peak(&self, who: &str) -> u64 {
        self.runs(who).iter().map(|s| s.peak).max().unwrap_or_default()
    }
}

fn time(spent: &Spent, cost: Cost) -> Duration {
    match cost {
        Cost::Wall => spent.wall,
        Cost::Cpu => spent.cpu,
    }
}
