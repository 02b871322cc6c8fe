//! Tests that need a laid tree: `MLX_OVERLAY_TREE`, or what `overlay apply`
//! left in target/overlay.

use std::fs;
use std::path::{Path, PathBuf};

use mlx_overlay_harness::air;
use mlx_overlay_harness::cells::{Cell, Draw};
use mlx_overlay_harness::kernels::{Family, Kernel, Number};
use mlx_overlay_harness::library::{Source, library};
use mlx_overlay_harness::metallib::{self, Network};
use mlx_overlay_harness::modes;
use mlx_overlay_harness::oracle;
use mlx_overlay_harness::parity::parity;
use mlx_overlay_harness::runner::Runner;
use mlx_overlay_harness::toolchain::Toolchain;
use mlx_overlay_harness::units::units;
use mlx_overlay_harness::workshop::{LinkKind, Mode, Workshop};
use overlay_tests_support::{Need, Suite};

use crate::{clang, llvm};

pub fn add(suite: &mut Suite) {
    let all = || [laid(), clang(), llvm(), Need::program("python3", "python3")];
    suite.test_needing("tree::qmv_wide_is_not_qmv", [laid(), clang()], qmv_wide_is_not_qmv);
    suite.test_needing(
        "tree::apple_s_own_qmv_wide_is_not_its_qmv",
        all(),
        apple_s_own_qmv_wide_is_not_its_qmv,
    );
    suite.test_needing(
        "tree::a_wrong_compile_mode_is_not_apple_s",
        all(),
        a_wrong_compile_mode_is_not_apple_s,
    );
    suite.test_needing(
        "tree::kept_denormals_are_not_apple_s",
        all(),
        kept_denormals_are_not_apple_s,
    );
    suite.test_needing(
        "tree::bitcode_of_another_wheel_is_not_taken",
        [laid(), clang(), Need::program("python3", "python3")],
        bitcode_of_another_wheel_is_not_taken,
    );
    suite.test_needing("tree::libraries_have_their_kernels", all(), libraries_have_their_kernels);
}

fn laid_tree() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("MLX_OVERLAY_TREE") {
        return Some(PathBuf::from(named));
    }
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/overlay");
    let trees = published.read_dir().ok()?.filter_map(Result::ok).map(|entry| entry.path());
    trees.filter(|tree| tree.join("mlx/backend/metal/kernels/quantized.metal").is_file()).max()
}

fn laid() -> Need {
    Need::met(laid_tree().is_some(), "run `overlay apply`, or set MLX_OVERLAY_TREE to a laid tree")
}

fn shop() -> Workshop {
    // Beside cargo's own: the objects are worth keeping between runs.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    Workshop::open(Toolchain::find().unwrap(), &laid_tree().unwrap(), &cache).unwrap()
}

fn cell(number: Number, seed: u64) -> Cell {
    Cell {
        number,
        bits: 4,
        group_size: 64,
        vectors: 4,
        m: 8,
        n: 32,
        k: 1024,
        batch: Vec::new(),
        draw: Draw::Plain,
        seed,
    }
}

fn start(shop: &Workshop, kernels: Vec<Kernel>, mode: Mode) -> Runner {
    let mut objects: Vec<_> =
        units(kernels, mode).iter().map(|unit| shop.compile(unit).unwrap()).collect();
    objects.extend(shop.runtime(mode, &["serve.cpp"]).unwrap());
    Runner::start(&shop.link(&objects, mode, LinkKind::Program).unwrap()).unwrap()
}

/// The broken promise the overlay is for; and so the numeric proof can fail.
fn qmv_wide_is_not_qmv() {
    let shop = shop();
    let cell = cell(Number::Half, 1);
    let kernels =
        [Family::Narrow(cell.order()), Family::Wide].map(|family| cell.kernel(family)).to_vec();
    let mut runner = start(&shop, kernels, Mode::Checked);
    let verdict = parity(&mut runner, &cell, Family::Wide).unwrap();
    assert_eq!(verdict.values, 256);
    assert!(verdict.differing > 20, "{verdict:?}");
}

fn apple_s_own_qmv_wide_is_not_its_qmv() {
    let shop = shop();
    let cell = cell(Number::Half, 1);
    let cells = [(cell.clone(), Family::Narrow(cell.order())), (cell.clone(), Family::Wide)];
    let mut apple = Runner::start(&oracle::program(&shop, &cells).unwrap()).unwrap();
    let verdict = parity(&mut apple, &cell, Family::Wide).unwrap();
    assert!(verdict.differing > 20, "{verdict:?}");
}

/// The oracle tells Apple's compile mode from its neighbours, and the run says so.
fn a_wrong_compile_mode_is_not_apple_s() {
    let shop = shop();
    let all: Vec<_> = [Number::Float, Number::Half]
        .into_iter()
        .flat_map(|number| [Draw::Plain, Draw::Tiny].map(|draw| modes::cells(number, draw)))
        .flatten()
        .collect();
    let apple = oracle::program(&shop, &all).unwrap();
    for right in [Mode::Apple, Mode::Checked] {
        let shim = modes::shim(&shop, right, &all).unwrap();
        assert_eq!(modes::differing(&shim, &apple, &all).unwrap(), 0, "{right:?}");
    }
    let right = modes::shim(&shop, Mode::Apple, &all).unwrap();
    let mutants = modes::run(&shop, &right, &apple);
    assert_eq!(mutants.len(), if cfg!(target_arch = "x86_64") { 4 } else { 3 });
    for mutant in &mutants {
        assert_eq!(mutant.caught_by, ["oracle"], "{mutant:?}");
    }
    // Were the right mode wrong, none of them would say anything.
    let wrong = modes::shim(&shop, Mode::ContractOff, &all).unwrap();
    let faults = modes::run(&shop, &wrong, &apple).into_iter().filter_map(|mutant| mutant.fault);
    assert!(faults.count() > 0);
}

/// Kept denormals show in inputs with denormals, and nowhere else.
fn kept_denormals_are_not_apple_s() {
    let shop = shop();
    let of = |draw| {
        let cells = modes::cells(Number::Float, draw);
        let apple = oracle::program(&shop, &cells).unwrap();
        let shim = modes::shim(&shop, Mode::KeepDenormals, &cells).unwrap();
        modes::differing(&shim, &apple, &cells).unwrap()
    };
    assert_eq!(of(Draw::Plain), 0);
    assert!(of(Draw::Tiny) > 0);
}

/// What another wheel, or an overlay that did not tell wheels apart, left.
fn bitcode_of_another_wheel_is_not_taken() {
    let shop = shop();
    let name = cell(Number::Half, 1).kernel(Family::Wide).host_name();
    let air = shop.store().join("air");
    for folder in [air.clone(), air.join("0".repeat(64))] {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.bc")), "of another wheel").unwrap();
    }
    let kept = air::bitcodes(&shop, std::slice::from_ref(&name), Network::Allowed).unwrap();
    assert_eq!(kept, [air.join(metallib::SHA256).join(format!("{name}.bc"))]);
    assert_ne!(fs::read(&kept[0]).unwrap(), b"of another wheel");
}

fn libraries_have_their_kernels() {
    let shop = shop();
    let name = cell(Number::Half, 1).kernel(Family::Wide).host_name();
    for source in [Source::Text, Source::Apple] {
        let library = library(&shop, source, std::slice::from_ref(&name)).unwrap();
        let bytes = fs::read(library).unwrap();
        for text in ["overlay_kernel_run", &name] {
            let found = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(found, "{source:?}: {text}");
        }
    }
    assert!(library(&shop, Source::Text, &["affine_qmm_t".into()]).is_err());
}
