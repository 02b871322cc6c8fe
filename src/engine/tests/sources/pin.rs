//! The pin of this repository, from the real registries and, where there is
//! one, from a clone of upstream; and the order in which sources are asked.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mlx_overlay_engine::acquire::{
    AcquireError, Acquired, Answer, Named, PinTree, Request, acquire,
};
use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::git::Limits;
use mlx_overlay_engine::pin::{PIN_FILE, Pin, Project};
use mlx_overlay_engine::progress::Silent;
use mlx_overlay_engine::registry::{Coverage, Network, ProvenTree, Registry};
use mlx_overlay_engine::snapshot::{ObjectId, Tree, TreePath};
use overlay_tests_support::server::{Fault, Server};
use overlay_tests_support::{Need, Suite};

use crate::registry::has_pip;
use crate::repository::Repository;

pub fn add(suite: &mut Suite) {
    let needs = || [Need::program("cargo", "Rust"), has_pip(), registries()];
    suite.test_needing("pin/released trees hold 876 of the 933 files", needs(), coverage);
    suite.test_needing("pin/what the series touches is proven", needs(), touched);
    suite.test_needing("pin/the first crate and its bridge are enough", needs(), one_crate);
    suite.test_needing("pin/a trial tree is whole", needs(), trial);
    let upstream = [Need::program("git", "git"), Need::upstream()];
    suite.test_needing("pin/upstream: all 933 files", upstream, whole);
    let git = || [Need::program("git", "git")];
    suite.test_needing("acquire/sources are asked in their order", git(), order);
    suite.test_needing("acquire/offline asks no server", git(), offline);
    suite.test_needing("acquire/a pin that contradicts its commit stops it", git(), wrong_pin);
    suite.test_needing("acquire/nowhere names every source", git(), nowhere);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Kept between runs, so that packages are downloaded once.
fn kept_cache() -> Cache {
    Cache::at(Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources-cache"))
}

fn pin() -> Pin {
    let project = Project::load(&root()).unwrap();
    project.select(Some("9a795735")).unwrap().clone()
}

fn gather(snapshots: usize) -> ProvenTree {
    let (pin, cache) = (pin(), kept_cache());
    let registry = Registry::new(&cache, Network::Allowed, &Silent);
    ProvenTree::gather(pin.load_listing().unwrap(), &pin.snapshots[..snapshots], &registry)
}

/// All that the pin names, asked once.
fn gathered() -> &'static ProvenTree {
    static GATHERED: OnceLock<ProvenTree> = OnceLock::new();
    GATHERED.get_or_init(|| gather(pin().snapshots.len()))
}

/// Whether the registries give what the pin names; without them the tests
/// that need them cannot say anything.
fn registries() -> Need {
    Need::asked(|| {
        let mut problems = gathered().coverage().parts.iter().filter_map(|p| p.problem.clone());
        // A bridge that does not come out is no matter of the network.
        problems.find(|p| !p.contains("bridge")).map_or(Ok(()), Err)
    })
}

fn coverage() {
    let Coverage { listed, proven, parts, missing } = gathered().coverage();
    assert_eq!((*listed, *proven, missing.len()), (933, 876, 57));
    // Of the wheel's 20 headers the bridge made three already.
    let gave: Vec<_> = parts.iter().map(|p| (p.files, p.bridged, p.problem.as_deref())).collect();
    assert_eq!(gave, [(820, 9, None), (17, 0, None), (30, 0, None)]);
    let tree = gathered();
    assert_eq!(tree.paths().len(), 876);
    // A file of the pin that is not here is an error, and no absence.
    let gone = tree.file(&missing[0]).unwrap_err();
    assert_eq!(gone.source.kind(), std::io::ErrorKind::NotFound);
    assert!(tree.mode(&missing[0]).is_some());
    let none = TreePath::new("no/such/file").unwrap();
    assert_eq!((tree.file(&none).unwrap(), tree.mode(&none)), (None, None));
}

/// The files and blob ids of docs: what a series of quantized kernels touches
/// or watches.
const TOUCHED: [(&str, &str); 9] = [
    ("quantized.cpp", "5db3893226bd8617e6dbaaf75e6be5f4ebca829e"),
    ("device.cpp", "65df5c108cffddcb46cf3b822a18f3f5402db42f"),
    ("jit_kernels.cpp", "c7900ecdf8f7b821c013be44fbc455d7a55ab067"),
    ("nojit_kernels.cpp", "5da78db8a3b2e98ec50dcac60478423a371e0b51"),
    ("kernels/quantized.h", "f628c0561227b709e455d91dc0a0f5885368f26a"),
    ("kernels/quantized.metal", "069482cbaf0b67c24411afd3f80d7498a9a4d301"),
    ("kernels/quantized_utils.h", "38253f8fe9354f8980c01bbd5eab9de766e8efb8"),
    ("kernels/fp_quantized.h", "8c963030f263b2679d8f504a76a58100218d582e"),
    ("kernels/fp_quantized.metal", "d8d462288adf65b09230bb3e4584a90fad4e8d1a"),
];

fn check_touched(tree: &dyn Tree) {
    for (name, id) in TOUCHED {
        let path = TreePath::new(&format!("mlx/backend/metal/{name}")).unwrap();
        let file = tree.file(&path).unwrap().expect("the pin has it");
        assert_eq!(ObjectId::of_blob(&file.bytes).to_string(), id, "{path}");
    }
}

fn touched() {
    check_touched(gathered());
}

fn one_crate() {
    let tree = gather(1);
    assert_eq!(tree.coverage().proven, 829);
    check_touched(&tree);
}

fn trial() {
    let cache = kept_cache();
    let registry = Registry::new(&cache, Network::OffLimits, &Silent);
    let source = "crate:mlxrs-sys@0.2.0:vendor/mlx".parse().unwrap();
    let tree = registry.released(&source, None).unwrap().files;
    assert_eq!(tree.0.len(), 943);
}

fn whole() {
    let from = std::env::var("MLX_OVERLAY_UPSTREAM").unwrap();
    let (pin, dir) = (pin(), tempfile::tempdir().unwrap());
    let acquired = ask(&pin, Some(&from), Network::OffLimits, &Cache::at(dir.path())).unwrap();
    let PinTree::Whole(tree) = &acquired.tree else { panic!("git objects are whole") };
    assert_eq!(tree.listing(), &pin.load_listing().unwrap());
    assert_eq!(tree.listing().len(), 933);
    check_touched(tree);
    for path in tree.paths() {
        let file = tree.file(&path).unwrap().unwrap();
        assert_eq!(ObjectId::of_blob(&file.bytes), tree.listing().get(&path).unwrap().id);
    }
}

fn ask(
    pin: &Pin,
    from: Option<&str>,
    network: Network,
    cache: &Cache,
) -> Result<Acquired, AcquireError> {
    let from = from.map(|from| Named::Standing(from.to_owned()));
    acquire(&Request {
        pin,
        from: from.as_ref(),
        damaged: None,
        network,
        limits: Limits::default(),
        cache,
        cargo_home: None,
        progress: &Silent,
    })
}

/// A project whose pin is the last commit of a small upstream.
struct Setting {
    upstream: Repository,
    server: Server,
    dir: tempfile::TempDir,
}

impl Setting {
    fn new() -> Self {
        let upstream = Repository::new();
        let server = Server::start(upstream.path(), Fault::None);
        let setting = Self { upstream, server, dir: tempfile::tempdir().unwrap() };
        setting.write_pin(&setting.upstream.git(&["rev-parse", "main^{tree}"]), "/.git");
        setting
    }

    fn write_pin(&self, tree: &str, below: &str) {
        let commit = self.upstream.id("main").to_string();
        let root = self.dir.path();
        std::fs::create_dir_all(root.join("patches").join(&commit[..8])).unwrap();
        let lines = self.upstream.git(&["ls-tree", "-r", "main"]);
        let listing = lines.replace(" blob ", " ").replace('\t', " ");
        std::fs::write(root.join("patches/listing"), format!("{listing}\n")).unwrap();
        let facts = format!(
            "schema = 1\ncommit = \"{commit}\"\ntree = \"{tree}\"\nversion = \"1\"\n\
             date = 2026-08-16\nupstream = \"{}{below}\"\nlisting = \"patches/listing\"\n",
            self.server.url
        );
        std::fs::write(root.join(PIN_FILE), facts).unwrap();
    }

    fn ask(&self, from: Option<&str>, network: Network) -> Result<Acquired, AcquireError> {
        let pin = Project::load(self.dir.path()).unwrap().current;
        ask(&pin, from, network, &self.cache())
    }

    fn cache(&self) -> Cache {
        Cache::at(self.dir.path().join("cache"))
    }
}

fn order() {
    let setting = Setting::new();
    let bad = setting.dir.path().join("no-clone").display().to_string();
    let first = setting.ask(Some(&bad), Network::Allowed).unwrap();
    let asked: Vec<&str> = first.tried.iter().map(|t| t.source.as_str()).collect();
    assert_eq!(asked, ["the object cache", &bad]);
    assert!(first.tried[1].why.contains("no git repository"), "{:?}", first.tried);
    assert!(matches!(&first.source, Answer::Upstream { url } if url.ends_with("/.git")));
    let files = setting.upstream.git(&["ls-tree", "-r", "--name-only", "main"]);
    let paths: Vec<String> = first.tree.paths().iter().map(ToString::to_string).collect();
    assert_eq!(paths.join("\n"), files);
    let again = setting.ask(Some(&bad), Network::Allowed).unwrap();
    assert!(matches!(again.source, Answer::ObjectCache { .. }));
    assert!(again.tried.is_empty());
    // A clone that is named is asked before the server.
    let other = Setting::new();
    let clone = other.upstream.path().display().to_string();
    let named = other.ask(Some(&clone), Network::Allowed).unwrap();
    assert_eq!(named.source, Answer::Repository { from: clone });
    assert!(other.server.requests.lock().unwrap().is_empty());
}

fn offline() {
    let setting = Setting::new();
    let refused = setting.ask(Some(&setting.server.url), Network::OffLimits).map(drop);
    let Err(AcquireError::Nowhere { tried, .. }) = refused else { panic!("{refused:?}") };
    let off = tried.iter().filter(|t| t.why == "the network is off limits").count();
    assert_eq!((tried.len(), off), (3, 2), "{tried:?}");
    assert!(setting.server.requests.lock().unwrap().is_empty());
    // A clone on this machine is no network.
    let clone = setting.upstream.path().display().to_string();
    assert!(setting.ask(Some(&clone), Network::OffLimits).is_ok());
    assert!(setting.ask(None, Network::OffLimits).is_ok());
}

fn wrong_pin() {
    let setting = Setting::new();
    setting.write_pin(&ObjectId::of_blob(b"").to_string(), "/.git");
    let clone = setting.upstream.path().display().to_string();
    let wrong = setting.ask(Some(&clone), Network::Allowed).map(drop).unwrap_err();
    assert!(matches!(wrong, AcquireError::WrongPin { .. }), "{wrong}");
    assert!(setting.server.requests.lock().unwrap().is_empty());
}

fn nowhere() {
    let setting = Setting::new();
    setting.write_pin(&setting.upstream.git(&["rev-parse", "main^{tree}"]), "/none");
    let nowhere = setting.ask(None, Network::Allowed).map(drop).unwrap_err().to_string();
    let lines: Vec<&str> = nowhere.lines().collect();
    assert_eq!(lines.len(), 3, "{nowhere}");
    assert_eq!(lines[1], "  the object cache: has not fetched it yet");
    assert!(lines[2].contains("404"), "{nowhere}");
}
