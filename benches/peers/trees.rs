//! The trees, series and pins that the programs work on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::Failure;
use crate::measure::{ask_git, git, pipe, run};

const FILES: usize = 900;
const PATCHES: usize = 40;

/// Writes a tree of as many files as MLX has, in 90 folders, about 10 MB of
/// what looks like source; a dozen of them have 2,000 to 4,000 lines.
///
/// # Errors
/// It cannot be written.
pub fn make_tree(root: &Path) -> Result<(), Failure> {
    let mut random = Random(1);
    for n in 0..FILES {
        let folder = root.join(format!("mlx/part{}/sub{}", n % 9, n % 90));
        fs::create_dir_all(&folder)?;
        let lines = if n % 75 == 0 { 2_000 + 2 * n } else { 20 + (n * n) % 350 };
        let mut text = String::new();
        for line in 0..lines {
            writeln!(
                text,
                "  auto v{line} = f{}(x, {});",
                random.next(4096),
                random.next(1 << 20)
            )?;
        }
        fs::write(folder.join(format!("file{n}.cpp")), text)?;
    }
    Ok(())
}

/// Makes a quilt series over the tree in the folder `patches`: each patch
/// changes one of the dozen longest files and two others, in three places each.
/// Gives the patches' names, in order.
///
/// # Errors
/// The tree cannot be read, or the series not be written.
pub fn make_series(tree: &Path, patches: &Path) -> Result<Vec<String>, Failure> {
    let mut sources = Vec::new();
    for path in files(tree)? {
        let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if ["cpp", "h", "metal", "py", "cu", "cuh"].contains(&kind) {
            let size = fs::metadata(tree.join(&path))?.len();
            sources.push((std::cmp::Reverse(size), path));
        }
    }
    sources.sort();
    let sources: Vec<_> = sources.into_iter().map(|(_, path)| path).take(300).collect();
    if sources.len() < 100 {
        return Err(format!("{}: too few sources for a series", tree.display()).into());
    }
    fs::create_dir_all(patches)?;
    let mut random = Random(2);
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut names = Vec::new();
    for n in 0..PATCHES {
        let mut patch = format!("Change number {n} of the series\n\nMade for a measurement.\n\n");
        let long = &sources[n % 12];
        let others = (0..2).map(|_| &sources[12 + random.next(sources.len() - 12)]);
        let mut chosen: Vec<_> = others.chain([long]).collect();
        chosen.sort();
        chosen.dedup();
        for path in chosen {
            let old = match texts.remove(path) {
                Some(text) => text,
                None => fs::read_to_string(tree.join(path))?,
            };
            let new = edited(&old, n, &mut random);
            let (from, to) = (format!("a/{}", path.display()), format!("b/{}", path.display()));
            let diff = TextDiff::from_lines(&old, &new);
            write!(patch, "{}", diff.unified_diff().context_radius(3).header(&from, &to))?;
            texts.insert(path.clone(), new);
        }
        let name = format!("{:04}-change.patch", n + 1);
        fs::write(patches.join(&name), patch)?;
        names.push(name);
    }
    fs::write(patches.join("series"), names.join("\n") + "\n")?;
    Ok(names)
}

/// A line replaced, two put in, one taken out; brackets stay in pairs, as a person
/// would leave them.
fn edited(old: &str, n: usize, random: &mut Random) -> String {
    let mut lines: Vec<String> = old.split_inclusive('\n').map(str::to_owned).collect();
    let third = lines.len() / 3;
    let plain = |line: &String| !line.contains(['(', ')', '[', ']', '{', '}', '"', '\'', '/', '*']);
    let mut at = |part: usize| {
        let first = part * third + random.next(third.max(1));
        (first..lines.len()).find(|at| plain(&lines[*at])).unwrap_or(first)
    };
    let (first, second, last) = (at(0), at(1), at(2));
    if last + 1 < lines.len() {
        lines.remove(last);
    }
    lines.insert(second, format!("  // Put in by change {n},\n  // in two lines.\n"));
    lines[first] = format!("  // Replaced by change {n}.\n");
    lines.concat()
}

/// Every file below a folder but quilt's own, in order, relative to it.
fn files(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_name() == ".pc" {
                continue;
            }
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => {
                    found.push(entry.path().strip_prefix(root)?.to_path_buf());
                }
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A number for the names and bytes of all files of a tree.
///
/// # Errors
/// It cannot be read.
pub fn digest(root: &Path) -> Result<u64, Failure> {
    let mut hash = DefaultHasher::new();
    for path in files(root)? {
        fs::read(root.join(&path))?.hash(&mut hash);
        path.hash(&mut hash);
    }
    Ok(hash.finish())
}

/// Copies the files of a tree.
///
/// # Errors
/// One cannot be read or written.
pub fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    for path in files(from)? {
        let to = to.join(&path);
        fs::create_dir_all(to.parent().ok_or("a file has a folder")?)?;
        fs::copy(from.join(&path), to)?;
    }
    Ok(())
}

/// A project with a pin, and a repository that has the pin's commit.
pub struct Project {
    /// The folder with `mlx-pin.toml`.
    pub root: PathBuf,
    /// The repository.
    pub repository: PathBuf,
    /// The pin's commit.
    pub commit: String,
}

impl Project {
    /// This project's own pin and series, from a repository of upstream.
    ///
    /// # Errors
    /// The repository has not the pin's commit, or a file cannot be copied.
    pub fn real(root: &Path, repository: &Path) -> Result<Self, Failure> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let pin = fs::read_to_string(own.join("mlx-pin.toml"))?;
        let commit = pin.lines().find_map(|l| l.strip_prefix("commit = "));
        let commit = commit.ok_or("mlx-pin.toml has no commit")?.trim_matches('"').to_owned();
        ask_git(repository, &["cat-file", "-e", &format!("{commit}^{{tree}}")])?;
        fs::create_dir_all(root)?;
        fs::write(root.join("mlx-pin.toml"), pin)?;
        copy(&own.join("patches"), &root.join("patches"))?;
        Ok(Self { root: root.into(), repository: repository.into(), commit })
    }

    /// A pin of the tree's own commit, with the quilt series as its series.
    ///
    /// # Errors
    /// Git does not do as told, or a file cannot be written.
    pub fn made(root: &Path, tree: &Path, patches: &Path) -> Result<Self, Failure> {
        let repository = root.join("upstream");
        copy(tree, &repository)?;
        for arguments in [
            &["init", "--quiet", "."][..],
            &["add", "--all"],
            &["commit", "--quiet", "--message", "bench"],
            &["gc", "--quiet"],
        ] {
            ask_git(&repository, arguments)?;
        }
        let commit = ask_git(&repository, &["rev-parse", "HEAD"])?;
        let project = Self { root: root.into(), repository, commit };
        project.pin_at(&project.commit, patches)?;
        Ok(project)
    }

    /// A pin of any commit of a repository, with the quilt series as its series.
    ///
    /// # Errors
    /// The repository has no such commit, or a file cannot be written.
    pub fn at(
        root: &Path,
        repository: &Path,
        commit: &str,
        patches: &Path,
    ) -> Result<Self, Failure> {
        let project =
            Self { root: root.into(), repository: repository.into(), commit: commit.into() };
        project.pin_at(commit, patches)?;
        Ok(project)
    }

    fn pin_at(&self, commit: &str, patches: &Path) -> Result<(), Failure> {
        let tree = ask_git(&self.repository, &["rev-parse", &format!("{commit}^{{tree}}")])?;
        let listing = ask_git(&self.repository, &["ls-tree", "-r", commit])?;
        let listing = listing.replace(" blob ", " ").replace('\t', " ") + "\n";
        let folder = format!("patches/{}", &commit[..8]);
        copy(patches, &self.root.join(&folder))?;
        fs::remove_file(self.root.join(&folder).join("series"))?;
        fs::write(self.root.join(&folder).join("listing"), listing)?;
        let mut series = "schema = 1\n".to_owned();
        let mut notes = String::new();
        for name in fs::read_to_string(patches.join("series"))?.lines() {
            write!(
                series,
                "\n[[entry]]\nname = \"{name}\"\npatch = \"{name}\"\ngroup = \"common\"\n\
                 reason = \"made for a measurement\"\nforwarded = \"not-needed\"\n"
            )?;
            for (file, removes) in removals(&fs::read_to_string(patches.join(name))?) {
                let removes = toml::Value::from(removes);
                write!(
                    notes,
                    "\n[[note]]\nentry = \"{name}\"\nfile = \"{file}\"\nremoves = {removes}\n\
                     reason = \"made for a measurement\"\n"
                )?;
            }
        }
        series.push_str(&notes);
        fs::write(self.root.join(&folder).join("series.toml"), series)?;
        let pin = format!(
            "schema = 1\ncommit = \"{commit}\"\ntree = \"{tree}\"\nversion = \"1.0\"\n\
             date = 2026-08-17\nupstream = \"https://example.invalid/none\"\n\
             listing = \"{folder}/listing\"\n"
        );
        Ok(fs::write(self.root.join("mlx-pin.toml"), pin)?)
    }

    /// Fetches the commit alone into a new bare repository, with git.
    ///
    /// # Errors
    /// git fails.
    pub fn fetch(&self, into: &Path) -> Result<(), Failure> {
        fs::create_dir(into)?;
        let from = format!("file://{}", self.repository.canonicalize()?.display());
        run(git(into).args(["init", "--quiet", "--bare"]))?;
        let by_id = ["-c", "uploadpack.allowAnySHA1InWant=true", "fetch", "--quiet", "--depth=1"];
        run(git(into).args(by_id).args([&from, &self.commit]))?;
        Ok(())
    }

    /// Writes the commit's files to a folder.
    ///
    /// # Errors
    /// `git archive` or `tar` fails.
    pub fn unpack(&self, to: &Path) -> Result<(), Failure> {
        fs::create_dir_all(to)?;
        let mut tar = std::process::Command::new("tar");
        pipe(git(&self.repository).args(["archive", &self.commit]), tar.arg("-xC").arg(to))?;
        Ok(())
    }
}

/// The lines that a patch takes away, file by file: a series has to own up.
fn removals(patch: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in patch.lines().filter(|line| !line.starts_with("--- a/")) {
        if let Some(file) = line.strip_prefix("+++ b/") {
            found.push((file, Vec::new()));
        } else if let (Some(text), Some((_, gone))) = (line.strip_prefix('-'), found.last_mut())
            && !text.trim().is_empty()
        {
            gone.push(text.trim());
        }
    }
    found.retain(|(_, gone)| !gone.is_empty());
    found
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    /// The next, below `end`.
    fn next(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end
    }
}
