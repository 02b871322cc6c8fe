//! `overlay` against the programs that do a part of its work.
//!
//! `cargo bench --bench peers` prints times, ratios and peak memory of one run,
//! and whether the goals of docs/performance.md are met; `-- try`, `-- apply`
//! and `-- drift` do a part of it. Contenders take turns, each figure is a median over the rounds, each ratio the median of the
//! rounds' ratios. A contender that is not installed is named with its package,
//! and at the end stands what was not measured for it.
//!
//! Where `MLX_OVERLAY_UPSTREAM` names a clone of upstream on this machine, the
//! tree is the pin's; else one is made that looks like it.

mod history;
mod measure;
mod trees;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use measure::{Cost, Rounds, Spent, git, pipe, run};
use trees::Project;

/// Why nothing could be measured.
pub type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 7;
const UPSTREAM: &str = "MLX_OVERLAY_UPSTREAM";
/// What can be asked for by name; all of it without a name.
const PARTS: [&str; 3] = ["try", "apply", "drift"];
const PEERS: [(&str, &str); 3] = [("git", "git"), ("tar", "tar"), ("quilt", "quilt")];
const MIB: f64 = 1024.0 * 1024.0;

fn main() -> Result<ExitCode, Failure> {
    // Cargo itself passes `--bench`.
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if let Some(unknown) = asked.iter().find(|a| !PARTS.contains(&a.as_str())) {
        return Err(format!("`{unknown}` is no part; there are {}", PARTS.join(", ")).into());
    }
    let dir = tempfile::tempdir()?;
    let mut bench = Bench::new(dir.path())?;
    println!("{ROUNDS} rounds in turn; {}; load {}", bench.ground.describe(), load());
    for part in PARTS {
        match part {
            _ if !asked.is_empty() && !asked.iter().any(|a| a == part) => {
                bench.not_measured.push(format!("{part}: not asked for"));
            }
            "try" => bench.series()?,
            "apply" => bench.project()?,
            _ => bench.history()?,
        }
    }
    println!("\nload at the end {}", load());
    Ok(bench.finish())
}

/// What the programs work on.
enum Ground {
    /// The pin, from this repository of upstream.
    Pin(PathBuf),
    /// A tree like it.
    Made,
}

impl Ground {
    fn describe(&self) -> String {
        match self {
            Self::Pin(from) => format!("the pin's own tree, from {}", from.display()),
            Self::Made => format!("a made tree ({UPSTREAM} names no clone of upstream)"),
        }
    }
}

struct Bench {
    dir: PathBuf,
    ground: Ground,
    missing: Vec<&'static str>,
    not_measured: Vec<String>,
    missed: usize,
    peak: u64,
}

impl Bench {
    fn new(dir: &Path) -> Result<Self, Failure> {
        let mut missing = Vec::new();
        for (program, package) in PEERS {
            let mut version = Command::new(program);
            version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            if !version.status().is_ok_and(|s| s.success()) {
                println!("missing: {program} (package {package})");
                missing.push(program);
            }
        }
        let named = std::env::var_os(UPSTREAM).map(PathBuf::from);
        let unpacks = ["git", "tar"].iter().all(|program| !missing.contains(program));
        let ground = match named.filter(|p| p.is_dir() && unpacks) {
            Some(clone) => Ground::Pin(clone.canonicalize()?),
            None => Ground::Made,
        };
        let dir = dir.canonicalize()?;
        Ok(Self { dir, ground, missing, not_measured: Vec::new(), missed: 0, peak: 0 })
    }

    fn has(&self, program: &str) -> bool {
        !self.missing.contains(&program)
    }

    /// The tool, with a cache of its own and nothing of the user's set-up.
    fn overlay(&self) -> Command {
        let mut overlay = Command::new(env!("CARGO_BIN_EXE_overlay"));
        overlay.args(["--offline", "--quiet"]);
        overlay.env("MLX_OVERLAY_CACHE", self.dir.join("cache")).env_remove(UPSTREAM);
        overlay
    }

    /// A series laid on a folder.
    fn series(&mut self) -> Result<(), Failure> {
        let (tree, patches, names) = self.tree_and_series()?;
        let work = self.dir.join("work");
        let mut rounds = Rounds::default();
        let mut digests = Vec::new();
        for round in 0..ROUNDS {
            for who in [TRY_IN_PLACE, TRY, GIT_APPLY, QUILT] {
                let program = who.split(' ').next().unwrap_or_default();
                if !self.has(program) {
                    continue;
                }
                trees::copy(&tree, &work)?;
                let spent = match who {
                    QUILT => run(Command::new("quilt")
                        .args(["--quiltrc", "-", "push", "-a", "-q"])
                        .current_dir(&work)
                        .env("QUILT_PATCHES", &patches))?,
                    GIT_APPLY => {
                        let mut all = Spent::default();
                        for name in &names {
                            let mut apply = git(&work);
                            apply.env("GIT_CEILING_DIRECTORIES", &self.dir);
                            apply.args(["apply", "--whitespace=nowarn"]).arg(patches.join(name));
                            all = all.and(run(&mut apply)?);
                        }
                        all
                    }
                    _ => {
                        let mut overlay = self.overlay();
                        overlay.arg("try").arg(&work).arg(&patches);
                        overlay.args((who == TRY_IN_PLACE).then_some("--in-place"));
                        run(&mut overlay)?
                    }
                };
                if round == 0 && who != TRY {
                    digests.push((who, trees::digest(&work)?));
                }
                rounds.note(who, spent);
                fs::remove_dir_all(&work)?;
            }
        }
        if let Some((who, _)) = digests.iter().find(|(_, d)| *d != digests[0].1) {
            return Err(format!("`{who}` leaves another tree than `{TRY_IN_PLACE}`").into());
        }
        println!("\na quilt series of {} patches", names.len());
        self.table(&rounds, &[TRY_IN_PLACE, TRY]);
        self.goal(&rounds, TRY_IN_PLACE, GIT_APPLY, 1.0);
        self.goal(&rounds, TRY, GIT_APPLY, 1.0);
        self.goal(&rounds, TRY_IN_PLACE, QUILT, 1.0 / 8.0);
        self.goal(&rounds, TRY, QUILT, 1.0 / 8.0);
        Ok(())
    }

    /// The tree and a quilt series over it, with the patches' names in order.
    fn tree_and_series(&self) -> Result<(PathBuf, PathBuf, Vec<String>), Failure> {
        let (tree, patches) = (self.dir.join("tree"), self.dir.join("quilt"));
        match &self.ground {
            _ if tree.exists() => {}
            Ground::Pin(from) => {
                Project::real(&self.dir.join("unpacked"), from)?.unpack(&tree)?;
            }
            Ground::Made => trees::make_tree(&tree)?,
        }
        let names = trees::make_series(&tree, &patches)?;
        Ok((tree, patches, names))
    }

    /// A pinned tree published from the object cache, and again.
    fn project(&mut self) -> Result<(), Failure> {
        if !(self.has("git") && self.has("tar")) {
            for what in ["a fresh tree from the object cache", "nothing to do"] {
                self.not_measured.push(format!("{what}: needs git and tar"));
            }
            return Ok(());
        }
        let root = self.dir.join("project");
        let project = match &self.ground {
            Ground::Pin(from) => Project::real(&root, from)?,
            Ground::Made => {
                let (tree, patches, _) = self.tree_and_series()?;
                Project::made(&root, &tree, &patches)?
            }
        };
        run(self.overlay().current_dir(&root).arg("fetch").arg("--from").arg(&project.repository))?;
        let stores = fs::read_dir(self.dir.join("cache/git"))?.collect::<Result<Vec<_>, _>>()?;
        let store = stores.iter().map(fs::DirEntry::path).find(|p| p.is_dir());
        let store = store.ok_or("the object cache is empty")?;
        // What git has of the same commit, in a pack of its own making.
        let packed = self.dir.join("packed.git");
        project.fetch(&packed)?;

        let mut rounds = Rounds::default();
        // No tree is removed before all are made: a file system may let the next
        // that makes files pay for those that go.
        for round in 0..ROUNDS {
            let ours = self.dir.join(format!("ours-{round}"));
            let mut apply = self.overlay();
            apply.current_dir(&root).arg("apply").arg("--out").arg(&ours);
            rounds.note(APPLY, run(&mut apply)?);
            for (who, from) in [(ARCHIVE, &packed), (ARCHIVE_PLAIN, &store)] {
                let from_cache = who == ARCHIVE_PLAIN;
                let theirs = self.dir.join(format!("theirs-{round}-{from_cache}"));
                fs::create_dir(&theirs)?;
                let mut tar = Command::new("tar");
                let mut archive = git(from);
                archive.args(["archive", &project.commit]);
                rounds.note(who, pipe(&mut archive, tar.arg("-xC").arg(&theirs))?);
            }
            rounds.note(AGAIN, run(&mut apply)?);
        }
        println!("\na fresh tree from the object cache, series laid and stamped; then again");
        self.table(&rounds, &[APPLY, AGAIN]);
        self.goal(&rounds, APPLY, ARCHIVE, 1.0);
        let cpu = rounds.median(AGAIN, Cost::Cpu).as_secs_f64() * 1e3;
        self.verdict(cpu < 10.0, &format!("{AGAIN}: {cpu:.1} ms of CPU, goal under 10"));
        Ok(())
    }

    fn table(&mut self, rounds: &Rounds, ours: &[&str]) {
        println!("  {:32} {:>9} {:>9} {:>9}", "", "wall ms", "CPU ms", "peak MiB");
        for who in rounds.names() {
            let ms = |cost| rounds.median(who, cost).as_secs_f64() * 1e3;
            let (wall, cpu, peak) = (ms(Cost::Wall), ms(Cost::Cpu), mib(rounds.peak(who)));
            println!("  {who:32} {wall:9.1} {cpu:9.1} {peak:9.1}");
        }
        self.peak = ours.iter().map(|who| rounds.peak(who)).fold(self.peak, u64::max);
    }

    /// The ratio of two contenders' times, which is to be `most` at most. That of
    /// their CPU, which work on several cores does not lessen, is told with it.
    fn goal(&mut self, rounds: &Rounds, who: &str, whose: &str, most: f64) {
        if !rounds.names().any(|name| name == whose) {
            self.not_measured.push(format!("{who} against {whose}"));
            return;
        }
        let [wall, cpu] = [Cost::Wall, Cost::Cpu].map(|cost| rounds.ratio(who, whose, cost));
        let what = format!(
            "{who} takes {wall:.3} of the time of {whose}, goal {most:.3} ({cpu:.3} of its CPU)"
        );
        self.verdict(wall <= most, &what);
    }

    fn verdict(&mut self, met: bool, what: &str) {
        self.missed += usize::from(!met);
        println!("  {} {what}", if met { "met:   " } else { "MISSED:" });
    }

    fn finish(mut self) -> ExitCode {
        // Drift has a goal of its own.
        if self.peak > 0 {
            let peak = mib(self.peak);
            self.verdict(peak < 100.0, &format!("peak memory {peak:.1} MiB, goal under 100"));
        }
        if let Ground::Made = self.ground {
            self.not_measured.push(format!("the real pin: set {UPSTREAM} to a clone of upstream"));
        }
        println!("{} goals missed, {} not measured", self.missed, self.not_measured.len());
        self.not_measured.iter().for_each(|what| println!("  not measured: {what}"));
        ExitCode::from(u8::from(self.missed > 0))
    }
}

const TRY_IN_PLACE: &str = "overlay try --in-place";
const TRY: &str = "overlay try";
const GIT_APPLY: &str = "git apply, once a patch";
const QUILT: &str = "quilt push -a";
const APPLY: &str = "overlay apply";
const AGAIN: &str = "overlay apply, nothing to do";
const ARCHIVE: &str = "git archive | tar x";
const ARCHIVE_PLAIN: &str = "the same, from overlay's cache";

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

/// How busy the machine is, where it tells.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|t| !t.is_empty()).unwrap_or("unknown").to_owned()
}
