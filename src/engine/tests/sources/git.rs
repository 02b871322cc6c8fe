//! One commit into the object cache, from a folder and from a server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::git::{GitError, History, Limits, Mirror, Store};
use mlx_overlay_engine::progress::{Event, Progress, Silent};
use mlx_overlay_engine::snapshot::{Mode, ObjectId, Tree, TreePath};
use overlay_tests_support::server::{Fault, Server};
use overlay_tests_support::{Need, Suite};

use crate::repository::{Repository, git};

pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("git/a folder gives one commit, without its history", git(), folder);
    suite.test_needing("git/a server gives one commit, without its history", git(), server);
    suite.test_needing("git/a server that moved is followed", git(), moved);
    suite.test_needing("git/a server that gives nothing by id is asked for a ref", git(), by_ref);
    suite.test_needing("git/a commit that is nowhere is said to be", git(), no_commit);
    suite.test_needing("git/a wrong tree id stops everything", git(), wrong_tree);
    suite.test_needing("git/a silent server ends in its time", git(), silent);
    suite.test_needing("git/a pack cut short leaves nothing behind", git(), cut);
    suite.test_needing("git/a page for people is no git server", git(), page);
    suite.test_needing("git/a server that refuses is told in a line", git(), refused);
    suite.test_needing("git/a port nobody listens at is named", git(), nobody);
    suite.test_needing("git/a mirror has the history, and later what is new", git(), mirror);
    suite.test_needing("git/a mirror asks by id for what no branch has", git(), mirror_by_id);
    suite.test_needing("git/a mirror cut short is none the worse", git(), mirror_cut);
    suite.test_needing("git/a partial clone is called one", git(), partial_clone);
    suite.test_needing("git/a server of a shallow clone", git(), shallow_server);
    suite.test("git/a server of a shallow clone that speaks git itself", shallow_daemon);
    suite.test("git/an address of another kind is refused", other_scheme);
}

pub const QUICK: Limits = Limits {
    connect: Duration::from_secs(5),
    silence: Duration::from_secs(20),
    whole: Duration::from_secs(60),
};

/// A repository to serve, a cache, and the commit that is wanted.
pub struct Setting {
    pub upstream: Repository,
    pub cache: tempfile::TempDir,
    pub commit: ObjectId,
    pub tree: ObjectId,
}

impl Setting {
    /// The wanted commit is the tagged one, which no branch stands on.
    pub fn new() -> Self {
        let upstream = Repository::new();
        let (commit, tree) = (upstream.id("release^{commit}"), upstream.id("release^{tree}"));
        Self { upstream, cache: tempfile::tempdir().unwrap(), commit, tree }
    }

    pub fn by_id(self) -> Self {
        self.upstream.git(&["config", "uploadpack.allowReachableSHA1InWant", "true"]);
        self
    }

    pub fn store(&self) -> Store {
        Store::new(&Cache::at(self.cache.path()), "https://example.org/mlx")
    }

    pub fn serve(&self, fault: Fault) -> Server {
        Server::start(self.upstream.path(), fault)
    }

    pub fn import(&self, from: &str) -> Result<usize, GitError> {
        self.store().import(self.commit, self.tree, from, QUICK, &Silent)
    }

    pub fn check_whole(&self) {
        let tree = self.store().tree(self.commit, self.tree).unwrap().expect("it was imported");
        let names: Vec<String> = tree.paths().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a.txt", "d/e/f.txt", "d/run.sh"]);
        assert_eq!(tree.mode(&TreePath::new("d/run.sh").unwrap()), Some(Mode::Executable));
        let file = tree.file(&TreePath::new("a.txt").unwrap()).unwrap().unwrap();
        assert_eq!((file.mode, &file.bytes[..]), (Mode::Regular, &b"two\n"[..]));
        assert_eq!(tree.file(&TreePath::new("none").unwrap()).unwrap(), None);
        assert_eq!(tree.listing().tree_id(), self.tree);
        // git agrees that the store is a sound, shallow repository.
        let store = self.store();
        git(store.path(), &["fsck", "--strict"]);
        assert_eq!(git(store.path(), &["rev-list", "--count", &self.commit.to_string()]), "1");
    }

    pub fn check_nothing(&self) {
        assert!(self.store().tree(self.commit, self.tree).unwrap().is_none());
    }
}

/// The rights that a new file has.
fn rights_of_new(folder: &Path) -> u32 {
    let file = folder.join("new");
    std::fs::write(&file, "").unwrap();
    let mode = std::fs::metadata(&file).unwrap().mode();
    std::fs::remove_file(file).unwrap();
    mode
}

pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |e| e.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn folder() {
    let setting = Setting::new();
    let path = setting.upstream.path().display().to_string();
    assert_eq!(setting.import(&path).unwrap(), 3);
    setting.check_whole();
    let shallow = std::fs::metadata(setting.store().path().join("shallow")).unwrap();
    assert_eq!(shallow.mode(), rights_of_new(setting.cache.path()));
    // Again, and by its URL.
    assert_eq!(setting.import(&format!("file://{path}")).unwrap(), 3);
    setting.check_whole();
}

fn server() {
    struct Counted(Mutex<Vec<(u64, u64)>>);
    impl Progress for Counted {
        fn tell(&self, event: Event<'_>) {
            if let Event::At(done, total) = event {
                self.0.lock().unwrap().push((done, total));
            }
        }
    }
    let setting = Setting::new().by_id();
    setting.upstream.git(&["tag", "-d", "release"]);
    let server = setting.serve(Fault::None);
    let counted = Counted(Mutex::default());
    let from = format!("{}/.git", server.url);
    let files = setting.store().import(setting.commit, setting.tree, &from, QUICK, &counted);
    assert_eq!(files.unwrap(), 3);
    setting.check_whole();
    // The commit, three folders and three files: no other commit's objects.
    assert_eq!(counted.0.lock().unwrap().last(), Some(&(7, 7)));
    let asked = server.requests.lock().unwrap().clone();
    assert_eq!(asked[0], "GET /.git/info/refs");
}

fn moved() {
    let setting = Setting::new().by_id();
    let server = setting.serve(Fault::Moved);
    assert_eq!(setting.import(&format!("{}/.git", server.url)).unwrap(), 3);
    let asked = server.requests.lock().unwrap().clone();
    assert_eq!(asked[..2], ["GET /.git/info/refs", "GET /moved/.git/info/refs"]);
    assert!(asked[2..].iter().all(|r| r == "POST /moved/.git/git-upload-pack"), "{asked:?}");
}

fn by_ref() {
    let setting = Setting::new();
    let from = format!("{}/.git", setting.serve(Fault::None).url);
    let refused = setting.import(&from);
    // An annotated tag is peeled in the server's list, and can be asked for.
    match refused {
        Ok(files) => assert_eq!(files, 3),
        Err(e) => panic!("{}", chain(&e)),
    }
    setting.check_whole();
    let other = Setting::new();
    other.upstream.git(&["tag", "-d", "release"]);
    let refused = other.import(&format!("{}/.git", other.serve(Fault::None).url)).unwrap_err();
    assert!(matches!(refused, GitError::ById { .. }), "{}", chain(&refused));
    assert!(refused.to_string().contains("--from"));
    other.check_nothing();
}

fn no_commit() {
    let mut setting = Setting::new().by_id();
    setting.commit = ObjectId::of_blob(b"no commit");
    let here = setting.import(&setting.upstream.path().display().to_string()).unwrap_err();
    assert!(matches!(here, GitError::NoCommit { .. }), "{}", chain(&here));
    let there = setting.import(&format!("{}/.git", setting.serve(Fault::None).url)).unwrap_err();
    assert!(matches!(there, GitError::NoCommit { .. }), "{}", chain(&there));
    setting.check_nothing();
}

fn wrong_tree() {
    let mut setting = Setting::new().by_id();
    let right = setting.tree;
    setting.tree = ObjectId::of_blob(b"no tree");
    for from in [
        setting.upstream.path().display().to_string(),
        format!("{}/.git", setting.serve(Fault::None).url),
    ] {
        let wrong = setting.import(&from).unwrap_err();
        assert!(matches!(wrong, GitError::WrongTree { found, .. } if found == right));
        setting.check_nothing();
    }
}

fn silent() {
    let setting = Setting::new().by_id();
    let from = format!("{}/.git", setting.serve(Fault::Stall).url);
    let limits = Limits { silence: Duration::from_millis(400), ..QUICK };
    let begun = Instant::now();
    let error =
        setting.store().import(setting.commit, setting.tree, &from, limits, &Silent).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(chain(&error).contains("timeout"), "{}", chain(&error));
    setting.check_nothing();
    // And the store is none the worse for it.
    assert_eq!(setting.import(&format!("{}/.git", setting.serve(Fault::None).url)).unwrap(), 3);
    setting.check_whole();
}

fn cut() {
    let setting = Setting::new().by_id();
    let from = format!("{}/.git", setting.serve(Fault::Cut).url);
    let error = setting.import(&from).unwrap_err();
    assert!(matches!(error, GitError::Unreachable { .. }), "{}", chain(&error));
    setting.check_nothing();
    assert_eq!(setting.import(&format!("{}/.git", setting.serve(Fault::None).url)).unwrap(), 3);
    setting.check_whole();
}

fn page() {
    let setting = Setting::new();
    let error = setting.import(&format!("{}/x", setting.serve(Fault::Page).url)).unwrap_err();
    assert!(chain(&error).contains("does not speak git's smart protocol"), "{}", chain(&error));
}

fn refused() {
    let setting = Setting::new();
    let error = setting.import(&format!("{}/.git", setting.serve(Fault::Refuse).url)).unwrap_err();
    let told = chain(&error);
    assert!(told.contains("the server says: no pack for you ask the owner;"), "{told}");
    assert!(matches!(error, GitError::Unreachable { .. }) && !told.contains('\n'), "{told}");
    setting.check_nothing();
}

fn nobody() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let setting = Setting::new();
    for scheme in ["http", "git"] {
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        let error = setting.import(&url).unwrap_err();
        assert!(
            chain(&error).starts_with(&format!("{url}: cannot be fetched")),
            "{}",
            chain(&error)
        );
    }
}

impl Setting {
    pub fn mirror(&self) -> Mirror {
        Mirror::new(&Cache::at(self.cache.path()), "https://example.org/mlx")
    }

    fn update(&self, url: &str, rev: &str) -> Result<(), GitError> {
        self.mirror().update(&format!("{url}/.git"), rev, self.commit, QUICK, &Silent).map(drop)
    }
}

fn mirror() {
    let setting = Setting::new();
    let upstream = &setting.upstream;
    let url = setting.serve(Fault::None).url;
    let mirror = setting.mirror();
    assert!(!mirror.has(setting.commit) && !mirror.settles("release"));
    setting.update(&url, "main").unwrap();
    git(mirror.path(), &["fsck", "--strict"]);
    let log = |at: &Path, rev: &str| git(at, &["log", "--format=%H %P %s", rev]);
    assert_eq!(log(mirror.path(), "HEAD"), log(upstream.path(), "main"));
    assert!(mirror.settles("release") && mirror.has(setting.commit));
    let main = upstream.git(&["rev-parse", "main"]);
    assert!(mirror.settles(&main) && mirror.settles(&main[..8]));
    // A branch can move on, so that none is settled; one that was not asked for
    // is not there, and neither is what is no name of a commit.
    assert!(!mirror.settles("main") && !mirror.settles("side") && !mirror.settles("none"));
    assert!(History::open(mirror.path()).unwrap().resolve("side").is_err());

    upstream.git(&["commit", "-q", "--allow-empty", "-m", "Later (#5)"]);
    upstream.git(&["tag", "-d", "release"]);
    setting.update(&url, "side").unwrap();
    assert_eq!(log(mirror.path(), "HEAD"), log(upstream.path(), "main"));
    assert_eq!(log(mirror.path(), "side"), log(upstream.path(), "side"));
    assert!(!mirror.settles("release"), "the tag was taken back");
}

fn mirror_by_id() {
    for allowed in [true, false] {
        let setting = Setting::new();
        let upstream = &setting.upstream;
        upstream.git(&["config", "uploadpack.allowAnySHA1InWant", &allowed.to_string()]);
        upstream.git(&["checkout", "-q", "--detach"]);
        upstream.git(&["commit", "-q", "--allow-empty", "-m", "On no branch"]);
        let lost = upstream.git(&["rev-parse", "HEAD"]);
        upstream.git(&["checkout", "-q", "main"]);
        setting.update(&setting.serve(Fault::None).url, &lost).unwrap();
        assert_eq!(setting.mirror().settles(&lost), allowed);
        assert!(setting.mirror().has(setting.commit));
    }
}

fn mirror_cut() {
    let setting = Setting::new();
    for fault in [Fault::Cut, Fault::Page] {
        let error = setting.update(&setting.serve(fault).url, "main").unwrap_err();
        assert!(matches!(error, GitError::Unreachable { .. }), "{}", chain(&error));
        assert!(!setting.mirror().has(setting.commit));
    }
    setting.update(&setting.serve(Fault::None).url, "main").unwrap();
    git(setting.mirror().path(), &["fsck", "--strict"]);
}

/// A clone of `setting`'s upstream by git itself, from a server of it.
pub fn cloned(setting: &Setting, options: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for allowed in ["allowFilter", "allowAnySHA1InWant"] {
        setting.upstream.git(&["config", &format!("uploadpack.{allowed}"), "true"]);
    }
    let url = format!("file://{}", setting.upstream.path().display());
    git(dir.path(), &[&["clone", "-q"], options, &[&url, "."]].concat());
    dir
}

fn partial_clone() {
    let setting = Setting::new();
    for filter in ["blob:none", "tree:0"] {
        let clone = cloned(&setting, &["--no-checkout", "--filter", filter]);
        let error = setting.import(&clone.path().display().to_string()).unwrap_err();
        assert!(matches!(error, GitError::PartialClone { .. }), "{filter}: {}", chain(&error));
        let history = History::open(clone.path()).unwrap();
        let file = TreePath::new("a.txt").unwrap();
        let read = history.tree(setting.commit).map(|tree| tree.file(&file));
        let told = match read {
            Ok(file) => chain(&file.unwrap_err()),
            Err(e) => chain(&e),
        };
        assert!(told.contains("a partial clone"), "{filter}: {told}");
        // As it says.
        git(clone.path(), &["fetch", "-q", "--refetch", "--no-filter"]);
        assert_eq!(setting.import(&clone.path().display().to_string()).unwrap(), 3);
        std::fs::remove_dir_all(setting.store().path()).unwrap();
    }
}

fn shallow_server() {
    let setting = Setting::new();
    let clone = cloned(&setting, &["--bare", "--depth", "1", "--branch", "release"]);
    let server = Server::start(clone.path(), Fault::None);
    let error = setting.import(&format!("{}/", server.url)).unwrap_err();
    assert!(chain(&error).contains("is a shallow clone"), "{}", chain(&error));
    let error = setting.mirror().update(&server.url, "main", setting.commit, QUICK, &Silent);
    assert!(chain(&error.unwrap_err()).contains("is a shallow clone"));
    // As it says, either way.
    assert_eq!(setting.import(&clone.path().display().to_string()).unwrap(), 3);
    std::fs::remove_dir_all(setting.store().path()).unwrap();
    git(clone.path(), &["fetch", "-q", "--unshallow"]);
    assert_eq!(setting.import(&format!("{}/", server.url)).unwrap(), 3);
}

/// As `git daemon` answers: its refs, and where its history is cut off.
fn shallow_daemon() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4];
        stream.read_exact(&mut asked).unwrap();
        let id = "1".repeat(40);
        let lines = [format!("{id} HEAD\0shallow agent=git/2\n"), format!("shallow {id}\n")];
        for line in lines {
            write!(stream, "{:04x}{line}", line.len() + 4).unwrap();
        }
        stream.write_all(b"0000").unwrap();
        // Until the other side has heard enough.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(&Cache::at(dir.path()), "x");
    let id = ObjectId::of_blob(b"");
    let error = store.import(id, id, &format!("git://127.0.0.1:{port}/x"), QUICK, &Silent);
    let told = chain(&error.unwrap_err());
    assert!(told.contains("the repository there is a shallow clone"), "{told}");
    assert!(told.contains("git fetch --unshallow"), "{told}");
    serving.join().unwrap();
}

fn other_scheme() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(&Cache::at(dir.path()), "x");
    let id = ObjectId::of_blob(b"");
    for url in ["ssh://git@host/x", "git@host:owner/x", "ftp://host/x"] {
        let refused = store.import(id, id, url, QUICK, &Silent);
        assert!(matches!(refused, Err(GitError::Scheme { .. })), "{url}");
    }
}
