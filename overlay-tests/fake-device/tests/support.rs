//! The laid tree under test, built once for all tests.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mlx_overlay_fake_device::architecture::Architecture;
use mlx_overlay_fake_device::build::{Build, Kernels};
use mlx_overlay_fake_device::cache;
use mlx_overlay_fake_device::device::Device;
use mlx_overlay_fake_device::executed::{self, Source};
use mlx_overlay_fake_device::measure::{self, Whole};
use mlx_overlay_fake_device::product::{Policy, Product};
use mlx_overlay_fake_device::toolchain::Toolchain;
use overlay_tests_support::Need;

/// `$MLX_OVERLAY_TREE`, or where `overlay apply` publishes the tree.
pub fn tree() -> PathBuf {
    std::env::var_os("MLX_OVERLAY_TREE").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/overlay/9a795735")
    })
}

/// What every test needs. A whole tree only where one was named: those that the
/// registries carry are not the pin's.
pub fn needs() -> Vec<Need> {
    let tools = Toolchain::find().err().map(|error| error.to_string());
    let tree = tree();
    let whole = Need::met(
        tree.join("CMakeLists.txt").is_file(),
        format!(
            "{} is no whole tree; run `overlay apply --from <clone of MLX>`, or set MLX_OVERLAY_TREE \
             (.ci/fake-device does)",
            tree.display()
        ),
    );
    let named = std::env::var_os("MLX_OVERLAY_TREE").is_some();
    vec![
        Need::met(
            cfg!(all(target_os = "linux", target_arch = "x86_64")),
            "the fake device passes messages on by x86-64 Linux's rules; on other hosts it is \
             not built",
        ),
        if named { whole } else { whole.where_there_is_one() },
        Need::met(tools.is_none(), tools.unwrap_or_default()),
    ]
}

/// The laid tree's programs.
pub fn build() -> &'static Build {
    static BUILD: OnceLock<Build> = OnceLock::new();
    BUILD.get_or_init(|| {
        let cache = cache::folder().expect("a cache folder");
        Build::of(&tree(), &cache).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The kernels of the computed products: the laid tree's text, compiled for
/// this host.
pub fn laid_kernels() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| kernels(Source::Text, &executed::products(), &Policy::ALL))
}

/// A library of kernels.
pub fn kernels(source: Source, products: &[Product], policies: &[Policy]) -> PathBuf {
    let cache = cache::folder().expect("a cache folder");
    executed::kernel_library(&tree(), &cache, source, products, policies)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// MLX on a device.
pub fn device(kernels: Kernels, generation: u32, size: char) -> Device {
    device_with(kernels, generation, size, &[])
}

/// The same with variables set.
pub fn device_with(
    kernels: Kernels,
    generation: u32,
    size: char,
    environment: &[(&str, &str)],
) -> Device {
    let architecture = Architecture { generation, size };
    Device::start(build(), kernels, architecture, environment).expect("a device")
}

/// The whole table, measured once for all tests that look at it.
pub fn whole() -> &'static Whole {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    WHOLE.get_or_init(|| {
        measure::whole(build(), laid_kernels()).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Fails with the first few of a list of complaints.
pub fn none_wrong(wrong: &[String]) {
    let shown = wrong.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} wrong, among them:\n{shown}", wrong.len());
}
