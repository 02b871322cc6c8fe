//! Publishing against the programs that do a part of it.
//!
//! `cargo bench -p mlx-overlay-engine --bench publish` prints, from one run,
//! how long a fresh tree takes beside `git archive | tar x` of the same commit,
//! and what CPU a publication with nothing to do costs. By default the commit is
//! made for the purpose, of as many files and folders as MLX has; a real one is
//! named by `OVERLAY_BENCH_REPO` (a git folder) and `OVERLAY_BENCH_COMMIT`.
//! It needs `git` and `tar`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mlx_overlay_engine::publish::{Identity, Options, Source, is_current, publish};
use mlx_overlay_engine::snapshot::{Entry, File, Mode, ObjectId, ReadError, Tree, TreePath};

type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 15;

fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let (repo, commit) =
        match (std::env::var("OVERLAY_BENCH_REPO"), std::env::var("OVERLAY_BENCH_COMMIT")) {
            (Ok(repo), Ok(commit)) => (PathBuf::from(repo), commit),
            _ => (make_repository(dir.path())?, "HEAD".into()),
        };
    let identity = Identity {
        pin: ObjectId::of_blob(b""),
        source: Source::Git { tree: ObjectId::of_blob(b"") },
        series: "none".into(),
        groups: Vec::new(),
        partial: None,
        trial: None,
    };

    // Turn about, so that a busy machine is busy for both. The repository is
    // opened anew each time, as a run of the tool would.
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    let (mut our_cpu, mut their_cpu) = (Duration::ZERO, Duration::ZERO);
    let rounds = u32::try_from(ROUNDS)?;
    let mut files = 0;
    for round in 0..ROUNDS {
        let dest = dir.path().join(format!("ours-{round}"));
        let (begun, cpu) = (Instant::now(), cpu_time(Usage::Own)?);
        let tree = GitTree::open(&repo, &commit)?;
        let published = publish(&dest, &tree, &identity, &Options::default())?;
        ours.push(begun.elapsed());
        our_cpu += (cpu_time(Usage::Own)? - cpu) / rounds;
        files = published.plan.write.len();

        let dest = dir.path().join(format!("theirs-{round}"));
        fs::create_dir(&dest)?;
        let (begun, cpu) = (Instant::now(), cpu_time(Usage::Children)?);
        archive(&repo, &commit, &dest)?;
        theirs.push(begun.elapsed());
        their_cpu += (cpu_time(Usage::Children)? - cpu) / rounds;
    }
    println!("fresh tree, {files} files, {ROUNDS} rounds in turn; ms   publish  git|tar  ratio");
    compare("  fastest", ours.iter().min(), theirs.iter().min());
    compare("  median", Some(&median(&mut ours)), Some(&median(&mut theirs)));
    compare("  CPU, all threads and processes, a round", Some(&our_cpu), Some(&their_cpu));

    let dest = dir.path().join("ours-0");
    let before = cpu_time(Usage::Own)?;
    for _ in 0..ROUNDS {
        if !is_current(&dest, &identity)? {
            return Err("the tree is not as it was published".into());
        }
    }
    let each = (cpu_time(Usage::Own)? - before) / rounds;
    println!("nothing to do: {:.1} ms of CPU a time", ms(each));
    if let Some(peak) = peak_memory() {
        println!("peak memory of all this: {peak}");
    }
    Ok(())
}

/// A commit's tree, read from a repository's objects.
struct GitTree {
    repo: git2::Repository,
    files: BTreeMap<TreePath, (Mode, git2::Oid)>,
}

impl GitTree {
    fn open(repo: &Path, commit: &str) -> Result<Self, Failure> {
        let repo = git2::Repository::open(repo)?;
        let mut files = BTreeMap::new();
        let mut bad = None;
        let tree = repo.revparse_single(commit)?.peel_to_tree()?;
        tree.walk(git2::TreeWalkMode::PreOrder, |root, entry| {
            let mode = u32::try_from(entry.filemode()).ok().and_then(Mode::from_bits);
            if let (Some(mode), false) = (mode, entry.kind() == Some(git2::ObjectType::Tree)) {
                let name = [root.as_bytes(), entry.name_bytes()].concat();
                match TreePath::from_bytes(&name) {
                    Ok(path) => drop(files.insert(path, (mode, entry.id()))),
                    Err(error) => bad = Some(error),
                }
            }
            git2::TreeWalkResult::Ok
        })?;
        drop(tree);
        bad.map_or(Ok(Self { repo, files }), |error| Err(error.into()))
    }
}

impl Tree for GitTree {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        let Some(&(mode, id)) = self.files.get(path) else { return Ok(None) };
        let blob = self.repo.find_blob(id).map_err(|error| ReadError {
            path: path.clone(),
            source: std::io::Error::other(error),
        })?;
        Ok(Some(File::new(mode, blob.content())))
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.files.get(path).map(|(mode, _)| *mode)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.files.keys().cloned().collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |(path, (mode, id)): (&TreePath, &(Mode, git2::Oid))| Entry {
            path: path.clone(),
            mode: *mode,
            id: id.as_bytes().try_into().ok().map(ObjectId::from_raw),
        };
        self.files.iter().map(entry).collect()
    }
}

/// A packed commit of 933 files in 90 folders, about 9 MB of what looks like
/// source.
fn make_repository(dir: &Path) -> Result<PathBuf, Failure> {
    let repo = dir.join("repository");
    let mut random = 1_u64;
    for n in 0..933_usize {
        let folder = repo.join(format!("mlx/part{}/sub{}", n % 9, n % 90));
        fs::create_dir_all(&folder)?;
        let mut text = String::new();
        for line in 0..(20 + (n * n) % 460) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            writeln!(text, "  auto v{line} = f{}(x, {}); // {n}", random >> 52, random >> 40)?;
        }
        fs::write(folder.join(format!("file{n}.cpp")), text)?;
    }
    let git = |args: &[&str]| -> Result<(), Failure> {
        let done = Command::new("git")
            .arg("-C")
            .arg(&repo)
            .args(["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"])
            .args(args)
            .status()?;
        if done.success() { Ok(()) } else { Err(format!("git {args:?}: {done}").into()) }
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "bench"])?;
    git(&["gc", "--quiet"])?;
    Ok(repo)
}

fn archive(repo: &Path, commit: &str, dest: &Path) -> Result<(), Failure> {
    let mut git = Command::new("git")
        .arg("-C")
        .arg(repo)
        .args(["archive", commit])
        .stdout(Stdio::piped())
        .spawn()?;
    let out = git.stdout.take().ok_or("git has no output")?;
    let tar = Command::new("tar").arg("-x").arg("-C").arg(dest).stdin(out).status()?;
    if git.wait()?.success() && tar.success() { Ok(()) } else { Err("git archive failed".into()) }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn compare(what: &str, ours: Option<&Duration>, theirs: Option<&Duration>) {
    if let (Some(&ours), Some(&theirs)) = (ours, theirs) {
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("{what:45} {:10.1} {:8.1} {ratio:6.2}", ms(ours), ms(theirs));
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Whose time.
enum Usage {
    Own,
    Children,
}

/// CPU time so far, user and system.
fn cpu_time(of: Usage) -> Result<Duration, Failure> {
    // Fields 14 to 17 of Linux's `stat`, in hundredths of a second, would be
    // too coarse for our own time.
    if let Usage::Own = of {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        return Ok(Duration::new(u64::try_from(time.tv_sec)?, u32::try_from(time.tv_nsec)?));
    }
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        stat.rsplit_once(')').ok_or("no such stat")?.1.split_whitespace().collect();
    let ticks = fields[13].parse::<u64>()? + fields[14].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// As Linux tells it.
fn peak_memory() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmHWM:")).map(|text| text.trim().to_owned())
}
