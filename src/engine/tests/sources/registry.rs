//! Packages of registries on the loopback: what is damaged is fetched again.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::pin::Whole;
use mlx_overlay_engine::progress::{Event, Progress, Silent};
use mlx_overlay_engine::registry::{Network, Registry, RegistryError};
use mlx_overlay_engine::snapshot::{MemoryTree, ObjectId, TreePath};
use mlx_overlay_engine::source::SnapshotSource;
use overlay_tests_support::crates;
use overlay_tests_support::server::Files;
use overlay_tests_support::{Need, Suite};
use sha2::{Digest, Sha256};

pub fn add(suite: &mut Suite) {
    let cargo = || [Need::program("cargo", "Rust")];
    suite.test_needing("registry/a crate is fetched once", cargo(), crate_once);
    suite.test_needing("registry/a crate taken whole is what is stated", cargo(), whole_or_nothing);
    suite.test_needing("registry/a crate taken whole is its archive", cargo(), whole_by_archive);
    suite.test_needing("registry/a damaged unpacking is mended offline", cargo(), unpacking);
    suite.test_needing("registry/a crate is kept before cargo may clear it", cargo(), kept_first);
    suite.test_needing("registry/a crate is mended whose others are not", cargo(), others_fail);
    suite.test_needing("registry/a damaged archive is fetched again", cargo(), archive);
    suite.test_needing("registry/a damaged archive offline is left alone", cargo(), left_alone);
    suite.test_needing("registry/a damaged archive alone is fetched again", cargo(), archive_alone);
    suite.test_needing("registry/a crate that is nowhere", cargo(), no_crate);
    let pip = || [Need::program("python3", "python3 and pip"), has_pip()];
    suite.test_needing("registry/a wheel is fetched once", pip(), wheel_once);
    suite.test_needing("registry/a damaged wheel is fetched again", pip(), wheel_again);
    suite.test_needing("registry/a wheel of another sum is refused", pip(), wheel_refused);
}

pub fn has_pip() -> Need {
    static RUNS: LazyLock<bool> = LazyLock::new(|| {
        let runs = Command::new("python3").args(["-m", "pip", "--version"]).output();
        runs.is_ok_and(|o| o.status.success())
    });
    Need::asked(|| match *RUNS {
        true => Ok(()),
        false => Err("`python3 -m pip` does not run; install pip".into()),
    })
}

/// Registries, a user's home, and a cache.
struct Setting {
    files: Files,
    dir: tempfile::TempDir,
    cache: Cache,
}

const CRATE: &str = "crate:overlay-sample@1.2.3:vendor/mlx";
const WHEEL: &str = "wheel:overlay-sample@1.2:macosx_14_0_arm64:sample/include";
const WHEEL_FILE: &str = "overlay_sample-1.2-py3-none-macosx_14_0_arm64.whl";

impl Setting {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::start();
        let home = dir.path().join("cargo-home");
        crates::set_up(&home, &files);
        let page = format!("<a href=\"/wheels/{WHEEL_FILE}\">{WHEEL_FILE}</a>");
        files.put("/simple/overlay-sample/", page);
        let cache = Cache::at(dir.path().join("cache"));
        Self { files, dir, cache }
    }

    fn registry(&self, network: Network) -> Registry<'_> {
        let mut registry = Registry::new(&self.cache, network, &Silent);
        registry.environment = self.environment();
        registry.cargo_home = Some(self.dir.path().join("cargo-home"));
        registry
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let home = self.dir.path().join("cargo-home").into_os_string();
        let index = format!("{}/simple/", self.files.url);
        let pip = self.dir.path().join("pip-cache").into_os_string();
        [
            ("CARGO_HOME", home),
            ("PIP_CONFIG_FILE", "/dev/null".into()),
            ("PIP_INDEX_URL", index.into()),
            ("PIP_FIND_LINKS", "".into()),
            ("PIP_RETRIES", "0".into()),
            ("PIP_CACHE_DIR", pip),
        ]
        .map(|(name, value)| (name.into(), value))
        .into()
    }

    fn released(
        &self,
        network: Network,
        name: &str,
        whole: &Whole,
    ) -> Result<MemoryTree, RegistryError> {
        let source: SnapshotSource = name.parse().unwrap();
        let released = self.registry(network).released(&source, Some(whole))?;
        assert!(released.problem.is_none(), "{:?}", released.problem);
        Ok(released.files)
    }

    /// Makes a crate with cargo itself and lists it in the index.
    fn publish_crate(&self) -> Vec<u8> {
        let (made, home) = (self.dir.path().join("made"), self.dir.path().join("cargo-home"));
        let sources = [("vendor/mlx/a.h", "a\n"), ("vendor/mlx/d/b.h", "b\n")];
        crates::publish(&made, &home, &self.files, "1.2.3", &sources)
    }

    /// Makes a wheel. Its bytes are those of a zip, with a file in it.
    fn wheel(&self) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, text) in [
            ("sample/include/a.h", "a\n"),
            ("sample/lib.so", "l"),
            (
                "overlay_sample-1.2.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: overlay-sample\nVersion: 1.2\n",
            ),
            (
                "overlay_sample-1.2.dist-info/WHEEL",
                "Wheel-Version: 1.0\nTag: py3-none-macosx_14_0_arm64\n",
            ),
        ] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            std::io::Write::write_all(&mut zip, text.as_bytes()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn put_wheel(&self, bytes: impl Into<Vec<u8>>) {
        self.files.put(&format!("/wheels/{WHEEL_FILE}"), bytes);
    }

    fn find(&self, below: &str, name: &str) -> PathBuf {
        walkdir::WalkDir::new(self.dir.path().join(below))
            .into_iter()
            .map(|item| item.unwrap().into_path())
            .find(|path| path.ends_with(name))
            .unwrap()
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn names(tree: &MemoryTree) -> Vec<&str> {
    tree.0.keys().map(TreePath::as_str).collect()
}

/// The tree of `publish_crate`, from `git write-tree`.
fn crate_tree() -> Whole {
    Whole::Tree("c5262fe477c8c3ed4cae6fd5cf654d77a994965d".parse::<ObjectId>().unwrap())
}

fn crate_once() {
    let setting = Setting::new();
    let archive = setting.publish_crate();
    let none = setting.released(Network::OffLimits, CRATE, &crate_tree()).unwrap_err();
    assert!(matches!(none, RegistryError::Offline { .. }), "{none}");
    setting.files.put(&crates::archive("1.2.3"), archive);
    let tree = setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap();
    assert_eq!(names(&tree), ["a.h", "d/b.h"]);
    assert_eq!(setting.released(Network::OffLimits, CRATE, &crate_tree()).unwrap(), tree);
    let other = setting.released(Network::OffLimits, "crate:overlay-sample@1.2.3:x", &crate_tree());
    assert!(matches!(other, Err(RegistryError::NoFolder { .. })), "{other:?}");
}

/// A tree that no file of is proven by itself has to be what is stated, or what cargo
/// vendored.
fn whole_or_nothing() {
    let setting = Setting::new();
    let archive = setting.publish_crate();
    setting.files.put(&crates::archive("1.2.3"), archive.clone());
    let source: SnapshotSource = CRATE.parse().unwrap();
    let asked =
        |stated: &Whole| setting.registry(Network::Allowed).released_whole(&source, Some(stated));
    let whole = |stated: &Whole| asked(stated).map(|released| released.files);
    let tree = whole(&crate_tree()).unwrap();
    let other = whole(&Whole::Tree("1".repeat(40).parse().unwrap())).unwrap_err();
    assert!(matches!(other, RegistryError::OtherTree { .. }), "{other}");

    let (home, vendored) = (setting.dir.path().join("cargo-home"), setting.dir.path().join("v"));
    let unpacked = setting.find("cargo-home/registry/src", "overlay-sample-1.2.3");
    let package = crates::vendor(&home, &vendored, &unpacked, &archive);
    let same = asked(&crate_tree()).unwrap();
    assert_eq!((&same.files, same.problem.is_none()), (&tree, true));
    // cargo leaves files out when it vendors, so another tree is told and taken.
    let other = asked(&Whole::Tree("1".repeat(40).parse().unwrap())).unwrap();
    let told = other.problem.unwrap();
    assert!(matches!(told, RegistryError::Vendored { .. }), "{told}");
    assert_eq!(other.files, tree);
    fs::write(package.join("vendor/mlx/d/b.h"), "").unwrap();
    let damaged = whole(&crate_tree()).unwrap_err();
    let RegistryError::Damaged { path, .. } = &damaged else { panic!("{damaged}") };
    assert!(path.ends_with("vendor/mlx/d/b.h"), "{damaged}");
    fs::write(package.join("vendor/mlx/d/b.h"), "b\n").unwrap();
    fs::write(package.join("vendor/mlx/c.h"), "c\n").unwrap();
    let odd = whole(&crate_tree()).unwrap_err();
    let RegistryError::Damaged { path, .. } = &odd else { panic!("{odd}") };
    assert!(path.ends_with("vendor/mlx/c.h"), "{odd}");
}

/// Of a crate that no tree is stated of, the archive counts: its sum is the index's.
fn whole_by_archive() {
    let setting = Setting::new();
    setting.files.put(&crates::archive("1.2.3"), setting.publish_crate());
    let source: SnapshotSource = CRATE.parse().unwrap();
    let whole = |network| {
        setting.registry(network).released_whole(&source, None).map(|released| released.files)
    };
    let tree = whole(Network::Allowed).unwrap();
    assert_eq!(names(&tree), ["a.h", "d/b.h"]);
    let file = setting.find("cargo-home/registry/src", "vendor/mlx/a.h");
    fs::write(&file, "spoilt\n").unwrap();
    assert_eq!(whole(Network::OffLimits).unwrap(), tree);

    let archive = setting.find("cargo-home/registry/cache", "overlay-sample-1.2.3.crate");
    let marker = setting.find("cargo-home/registry/src", ".cargo-ok");
    let marked = fs::read(&marker).unwrap();
    cut_short(&archive);
    let damaged = whole(Network::OffLimits).unwrap_err();
    assert!(matches!(&damaged, RegistryError::Archive { path, .. } if *path == archive));
    fs::remove_file(&archive).unwrap();
    let none = whole(Network::OffLimits).unwrap_err();
    assert!(matches!(&none, RegistryError::Offline { .. }), "{none}");
    assert_eq!(fs::read(&marker).unwrap(), marked, "nothing is taken away offline");
    assert_eq!(whole(Network::Allowed).unwrap(), tree);
    cut_short(&archive);
    assert_eq!(whole(Network::Allowed).unwrap(), tree);
    assert_eq!(fs::read(&file).unwrap(), b"a\n", "it was unpacked again too");

    // Where nothing is to be had, what cargo has is left to it.
    let config = setting.dir.path().join("cargo-home/config.toml");
    let offline = fs::read_to_string(&config).unwrap().replace("[net]", "[net]\noffline = true");
    fs::write(&config, offline).unwrap();
    cut_short(&archive);
    let failed = whole(Network::Allowed).unwrap_err();
    assert!(matches!(failed, RegistryError::Tool { .. }), "{failed}");
    assert_eq!(fs::read(&marker).unwrap(), marked);
}

fn unpacking() {
    let setting = Setting::new();
    setting.files.put(&crates::archive("1.2.3"), setting.publish_crate());
    let tree = setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap();
    let file = setting.find("cargo-home/registry/src", "vendor/mlx/a.h");
    cut_short(&file);
    fs::write(file.with_file_name("stray.h"), "stray").unwrap();
    assert_eq!(setting.released(Network::OffLimits, CRATE, &crate_tree()).unwrap(), tree);
    assert_eq!(fs::read(&file).unwrap(), b"a\n");
}

/// Whoever is killed at the unpacking leaves a folder that the next cargo clears.
fn kept_first() {
    struct AtUnpacking<'s>(&'s Path, Cell<usize>);
    impl Progress for AtUnpacking<'_> {
        fn tell(&self, event: Event<'_>) {
            if let Event::Begin(what) = event
                && what.contains("unpacking")
            {
                let kept = self.0.with_extension("3.keeping").join("vendor/mlx/a.h");
                assert_eq!(fs::read(&kept).unwrap(), b"edited\n", "{}", kept.display());
                assert_eq!(fs::read(self.0.join(".cargo-ok")).unwrap(), b"damaged");
                self.1.set(self.1.get() + 1);
            }
        }
    }
    let setting = Setting::new();
    setting.files.put(&crates::archive("1.2.3"), setting.publish_crate());
    setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap();
    let unpacked = setting.find("cargo-home/registry/src", "overlay-sample-1.2.3");
    fs::write(unpacked.join("vendor/mlx/a.h"), "edited\n").unwrap();
    let at_unpacking = AtUnpacking(&unpacked, Cell::new(0));
    let mut registry = Registry::new(&setting.cache, Network::OffLimits, &at_unpacking);
    registry.environment = setting.environment();
    registry.cargo_home = Some(setting.dir.path().join("cargo-home"));
    registry.released(&CRATE.parse().unwrap(), Some(&crate_tree())).unwrap();
    assert_eq!(at_unpacking.1.get(), 1);
    let kept = unpacked.with_extension("3.kept").join("vendor/mlx/a.h");
    assert_eq!(fs::read(kept).unwrap(), b"edited\n");
}

/// What cargo unpacked counts, whatever it failed at then.
fn others_fail() {
    let setting = Setting::new();
    setting.files.put(&crates::archive("1.2.3"), setting.publish_crate());
    let tree = setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap();
    cut_short(&setting.find("cargo-home/registry/src", "vendor/mlx/a.h"));
    // As cargo does where an archive is gone that the crate depends on.
    let path = std::env::var_os("PATH").unwrap();
    let programs = setting.dir.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let script = format!(
        "#!/bin/sh\nPATH='{}'\ncargo \"$@\" || exit\n[ \"$1\" != fetch ]\n",
        path.to_str().unwrap()
    );
    fs::write(programs.join("cargo"), script).unwrap();
    fs::set_permissions(programs.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut registry = setting.registry(Network::OffLimits);
    let paths = [programs].into_iter().chain(std::env::split_paths(&path));
    registry.environment.push(("PATH".into(), std::env::join_paths(paths).unwrap()));
    let released = registry.released(&CRATE.parse().unwrap(), Some(&crate_tree())).unwrap();
    assert!(released.problem.is_none(), "{:?}", released.problem);
    assert_eq!(released.files, tree);
}

fn archive() {
    let setting = Setting::new();
    setting.files.put(&crates::archive("1.2.3"), setting.publish_crate());
    let tree = setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap();
    cut_short(&setting.find("cargo-home/registry/src", "vendor/mlx/a.h"));
    cut_short(&setting.find("cargo-home/registry/cache", "overlay-sample-1.2.3.crate"));
    assert_eq!(setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap(), tree);
}

/// What cargo has no whole archive of is not taken away from it.
fn left_alone() {
    let setting = Setting::new();
    setting.files.put(&crates::archive("1.2.3"), setting.publish_crate());
    setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap();
    let file = setting.find("cargo-home/registry/src", "vendor/mlx/a.h");
    let archive = setting.find("cargo-home/registry/cache", "overlay-sample-1.2.3.crate");
    let marker = setting.find("cargo-home/registry/src", ".cargo-ok");
    let marked = fs::read(&marker).unwrap();
    fs::write(&file, "edited\n").unwrap();
    cut_short(&archive);
    let source: SnapshotSource = CRATE.parse().unwrap();
    let registry = setting.registry(Network::OffLimits);
    // A file at a time is proven: the others are as good as they were.
    let found = registry.released(&source, Some(&crate_tree())).unwrap();
    assert_eq!(names(&found.files), ["a.h", "d/b.h"]);
    let told = found.problem.unwrap();
    assert!(matches!(&told, RegistryError::Archive { path, .. } if *path == archive), "{told}");
    let whole = registry.released_whole(&source, Some(&crate_tree())).unwrap_err();
    assert!(matches!(&whole, RegistryError::Archive { path, .. } if *path == archive), "{whole}");
    assert_eq!(fs::read(&marker).unwrap(), marked);
    assert_eq!(fs::read(&file).unwrap(), b"edited\n");
    assert!(file.with_file_name("d").join("b.h").is_file());
}

/// cargo takes an archive that is there for a whole one, and fails to unpack it
/// for ever.
fn archive_alone() {
    let setting = Setting::new();
    setting.files.put(&crates::archive("1.2.3"), setting.publish_crate());
    let tree = setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap();
    let archive = setting.find("cargo-home/registry/cache", "overlay-sample-1.2.3.crate");
    let unpacked = setting.find("cargo-home/registry/src", "overlay-sample-1.2.3");
    let damage = || {
        fs::remove_dir_all(&unpacked).unwrap();
        cut_short(&archive);
        fs::read(&archive).unwrap()
    };
    let cut = damage();
    let none = setting.released(Network::OffLimits, CRATE, &crate_tree()).unwrap_err();
    assert!(matches!(&none, RegistryError::Archive { path, .. } if *path == archive), "{none}");
    assert!(none.to_string().contains("without --offline"), "{none}");
    assert_eq!(fs::read(&archive).unwrap(), cut, "nothing is taken away offline");
    assert_eq!(setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap(), tree);

    // A set-up that fetches nothing, by a vendored or an offline source, is
    // left as it was.
    let config = setting.dir.path().join("cargo-home/config.toml");
    let offline = fs::read_to_string(&config).unwrap().replace("[net]", "[net]\noffline = true");
    fs::write(&config, offline).unwrap();
    let cut = damage();
    let failed = setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap_err();
    assert!(matches!(failed, RegistryError::Tool { .. }), "{failed}");
    assert_eq!(fs::read(&archive).unwrap(), cut);
    let beside = archive.parent().unwrap().read_dir().unwrap().count();
    assert_eq!(beside, 1, "nothing is left beside it");
}

fn cut_short(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

fn no_crate() {
    let setting = Setting::new();
    let none = setting.released(Network::Allowed, CRATE, &crate_tree()).unwrap_err();
    let RegistryError::Tool { command, said, .. } = &none else { panic!("{none}") };
    assert!(command.starts_with("cargo fetch"), "{command}");
    assert!(said.contains("overlay-sample"), "{said}");
}

fn wheel_once() {
    let setting = Setting::new();
    let wheel = setting.wheel();
    let whole = Whole::Sha256(hex(&wheel));
    let none = setting.released(Network::OffLimits, WHEEL, &whole).unwrap_err();
    assert!(matches!(none, RegistryError::Offline { .. }), "{none}");
    setting.put_wheel(wheel);
    let tree = setting.released(Network::Allowed, WHEEL, &whole).unwrap();
    assert_eq!(names(&tree), ["a.h"]);
    assert_eq!(setting.released(Network::OffLimits, WHEEL, &whole).unwrap(), tree);
    // Without a sum from the pin, that of the download counts.
    let source: SnapshotSource = WHEEL.parse().unwrap();
    assert_eq!(setting.registry(Network::OffLimits).released(&source, None).unwrap().files, tree);
}

fn wheel_again() {
    let setting = Setting::new();
    let wheel = setting.wheel();
    let whole = Whole::Sha256(hex(&wheel));
    // First another file of that name, which pip cannot know for wrong.
    setting.put_wheel(crc_fault(&wheel));
    setting.put_wheel(wheel.clone());
    let tree = setting.released(Network::Allowed, WHEEL, &whole).unwrap();
    let kept = setting.find("cache/wheels", WHEEL_FILE);
    assert_eq!(fs::read(&kept).unwrap(), wheel);
    cut_short(&kept);
    assert_eq!(setting.released(Network::Allowed, WHEEL, &whole).unwrap(), tree);
    cut_short(&kept);
    let none = setting.released(Network::OffLimits, WHEEL, &whole).unwrap_err();
    assert!(matches!(&none, RegistryError::KeptSum { path, .. } if *path == kept), "{none}");
    setting.released(Network::Allowed, WHEEL, &whole).unwrap();
    let other = "1".repeat(64);
    let none = setting.released(Network::OffLimits, WHEEL, &Whole::Sha256(other.clone()));
    let told = format!("has the SHA-256 {}, and {other} is stated", hex(&wheel));
    assert!(none.as_ref().unwrap_err().to_string().contains(&told), "{none:?}");
}

/// A zip that opens and lists, with a byte of its first file changed.
fn crc_fault(wheel: &[u8]) -> Vec<u8> {
    let mut bytes = wheel.to_vec();
    let at = bytes.windows(10).position(|w| w == b"include/a.").unwrap() + "include/a.h".len();
    bytes[at] ^= 1;
    bytes
}

fn wheel_refused() {
    let setting = Setting::new();
    setting.put_wheel(setting.wheel());
    let whole = Whole::Sha256("0".repeat(64));
    let refused = setting.released(Network::Allowed, WHEEL, &whole).unwrap_err();
    assert!(matches!(refused, RegistryError::Sum { .. }), "{refused}");
    let left = walkdir::WalkDir::new(setting.dir.path().join("cache/wheels"));
    assert!(left.into_iter().all(|item| item.unwrap().file_type().is_dir()));
}
