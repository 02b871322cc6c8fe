//! Kernels from text, as `MLX_METAL_JIT` builds get them.

use std::collections::{BTreeMap, BTreeSet};

use mlx_overlay_fake_device::architecture::Architecture;
use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::cache;
use mlx_overlay_fake_device::device::{Dispatch, Route};
use mlx_overlay_fake_device::instantiations::{self, Compiled};
use mlx_overlay_fake_device::measure::in_parallel;
use mlx_overlay_fake_device::product::{Number, Packing, Policy, Product};
use mlx_overlay_fake_device::routing;
use mlx_overlay_fake_device::rule::{Expected, Family, expected};
use mlx_overlay_fake_device::templates;
use mlx_overlay_harness::HarnessError;
use overlay_tests_support::Suite;

use crate::support::{build, device, needs, none_wrong, tree};

pub fn add(suite: &mut Suite) {
    suite.test_needing("every template argument list fits its kernel", needs(), lists_fit);
    suite.test_needing("a list that does not fit is refused", needs(), misfits);
    suite.test_needing("a list of other weights is refused", needs(), other_weights);
}

fn compiled(definitions: &BTreeSet<String>) -> Result<Compiled, HarnessError> {
    instantiations::compile(&tree(), &cache::folder().expect("a cache folder"), definitions)
}

/// One architecture for each way the rule goes, with every product of the sweep
/// and every M of up to three tiles, the largest below any limit, and one above
/// them all; then every combination with every tile. MLX writes a list once for a
/// host name in a process, so that on two of the architectures the largest M comes
/// first. Each list is held against its host name and the text that MLX hands to
/// Metal's compiler, and compiled as far as this host can.
fn lists_fit() {
    let up: Vec<u32> = (1..=12).chain([32, 40]).collect();
    let down: Vec<u32> = up.iter().rev().copied().collect();
    let swept = routing::products();
    let combined = routing::combinations();
    let passes: [(u32, char, &[Product], &[u32]); 4] = [
        (13, 'g', &swept, &down),
        (15, 'd', &swept, &up),
        (17, 's', &swept, &down),
        (17, 's', &combined, &routing::TILES),
    ];
    let asked = in_parallel(&passes, |&(generation, size, products, rows)| {
        ask(Architecture { generation, size }, products, rows)
    });
    let (mut all, mut wrong) = (BTreeSet::new(), Vec::new());
    for (lists, complaints) in asked {
        all.extend(lists);
        wrong.extend(complaints);
    }
    none_wrong(&wrong);
    let compiled = compiled(&all).unwrap_or_else(|error| panic!("{error}"));
    let Compiled { bodies, signatures, others } = compiled;
    eprintln!(
        "template argument lists: {bodies} compiled with the kernel's body; of {signatures} matrix \
         products the signature alone; {others} of other headers held against the text alone"
    );
    let never = never_asked(&all);
    assert!(never.is_empty(), "{} were never asked for: {never:?}", never.len());
    assert!(bodies > 1700 && signatures > 350, "{compiled:?}");
}

/// Kernels of the rule's families that builds without JIT instantiate and no list
/// is for. Nothing leads to a quad of 3, 5 or 6 bits, or of 64 in groups of 128;
/// kernels with a global scale (`_hgs`) serve other operations.
fn never_asked(lists: &BTreeSet<String>) -> Vec<String> {
    let host_name = |list: &String| Some(list.split('"').nth(1)?.to_string());
    let asked: BTreeSet<String> = lists.iter().filter_map(host_name).collect();
    let of_no_product = |name: &str| {
        let has = |part: &str| name.contains(part);
        let width = has("_b_3_") || has("_b_5_") || has("_b_6_");
        has("_qmv_quad_") && (width || has("_gs_128_") && has("_d_64_")) || name.ends_with("_hgs")
    };
    let library = build().library(Kernels::ByName);
    let all = std::fs::read_to_string(library).expect("the library");
    let names = all.lines().filter(|name| Family::of(name, 1).is_some() && !of_no_product(name));
    names.filter(|name| !asked.contains(*name)).map(str::to_string).collect()
}

/// The lists of the products under each policy, and what is wrong with them.
fn ask(
    architecture: Architecture,
    products: &[Product],
    rows: &[u32],
) -> (BTreeSet<String>, Vec<String>) {
    let mut device = device(Kernels::FromText, architecture.generation, architecture.size);
    let mut wrong = Vec::new();
    // Each list once, with the number of the text it is for.
    let mut lists = BTreeMap::new();
    for policy in Policy::ALL {
        device.set_policy(None, Some(policy)).expect("a policy");
        for product in products {
            let routes = device.route(product, 0, rows).expect("routes");
            for (&m, route) in rows.iter().zip(routes) {
                let dispatches = match route {
                    Route::Dispatched(dispatches) => dispatches,
                    Route::Refused { refused } => {
                        wrong.push(refused);
                        continue;
                    }
                };
                let expected = expected(architecture, product, m, policy);
                wrong.extend(refused(&expected, &dispatches));
                for dispatch in dispatches.into_iter().filter(|d| !d.definition.is_empty()) {
                    lists.insert(dispatch.definition, dispatch.source);
                }
            }
        }
    }
    assert!(lists.len() > 100, "only {} lists on {architecture}", lists.len());
    let mut sources = BTreeMap::new();
    for (definition, number) in &lists {
        let source =
            sources.entry(number).or_insert_with(|| device.source(*number).expect("the text"));
        if let Err(why) = templates::fits(definition, source) {
            wrong.push(format!("{architecture}: {why}"));
        }
    }
    (lists.into_keys().collect(), wrong)
}

/// What is wrong with dispatches, or with the list that came with the first.
fn refused(expected: &Expected, dispatches: &[Dispatch]) -> Option<String> {
    expected.complaint(dispatches).or_else(|| {
        let (given, wanted) = (&dispatches.first()?.definition, named(&expected.kernel));
        let fits = instantiations::kernel(given) == Some(wanted.as_str());
        (!fits).then(|| format!("{given} where {wanted} is expected"))
    })
}

/// The kernel, with its arguments, that a host name of the `qmv` families or of a
/// transposed matrix product names.
fn named(host_name: &str) -> String {
    let parts = host_name.split_once('_').zip(host_name.split_once("_gs_"));
    let ((mode, _), (head, tail)) = parts.expect("a mode and a group size");
    let number = ["_float16_t", "_bfloat16_t", "_float"].into_iter().find(|n| head.ends_with(n));
    let number = number.expect("a type");
    let family = &head[mode.len() + 1..head.len() - number.len()];
    let mode = if mode == "affine" { mode } else { "fp" };
    // A matrix product in parts has no batch.
    let (tail, batched) = tail.rsplit_once("_batch_").unwrap_or((tail, ""));
    let (tail, rows) = tail.split_once("_r_").unwrap_or((tail, "4"));
    // Group size, bits, and what else stands between: tile, lanes, K, or whether
    // N is whole.
    let mut values: Vec<&str> = tail.split('_').step_by(2).collect();
    for value in &mut values {
        *value = match *value {
            "true" => "1",
            "false" => "0",
            value => value,
        };
    }
    values.extend(Some(batched).filter(|batched| !batched.is_empty()));
    if matches!(family, "qmv" | "qmv_fast") {
        values.extend(["0", rows]);
    }
    format!("{mode}_{family}<{}, {}>", &number[1..], values.join(", "))
}

/// Name and list that agree with one another, and not with the product: each
/// fits its kernel, and would be run with 8-bit weights taken for others.
fn other_weights() {
    let architecture = Architecture { generation: 15, size: 's' };
    let mut device = device(Kernels::FromText, architecture.generation, architecture.size);
    let packing = Packing::affine(8, 64);
    let product = Product { packing, number: Number::Float16, k: 512, n: 512, batch: 1 };
    for product in [product, Product { batch: 3, ..product }] {
        let rows = [1, 4, 40];
        let routes = device.route(&product, 0, &rows).expect("routes");
        for (m, route) in rows.into_iter().zip(routes) {
            let Route::Dispatched(dispatches) = route else { panic!("{route:?}") };
            let expected = expected(architecture, &product, m, Policy::Wide);
            assert_eq!(refused(&expected, &dispatches), None);
            for (name, list) in [
                (("_b_8", "_b_4"), (", 64, 8", ", 64, 4")),
                (("_gs_64", "_gs_32"), (", 64,", ", 32,")),
            ] {
                let mut seeded = dispatches.clone();
                seeded[0].kernel = seeded[0].kernel.replace(name.0, name.1);
                seeded[0].definition = seeded[0].definition.replace(list.0, list.1);
                let given = instantiations::kernel(&seeded[0].definition);
                assert_eq!(given, Some(named(&seeded[0].kernel).as_str()), "they agree");
                assert!(refused(&expected, &seeded).is_some(), "{seeded:?}");
                // The list alone.
                seeded[0].kernel.clone_from(&dispatches[0].kernel);
                assert!(refused(&expected, &seeded).is_some(), "{seeded:?}");
            }
        }
    }
}

/// clang judges counts, kinds and what a body makes of the arguments.
fn misfits() {
    let judged = |kernel: &str| {
        let definition =
            format!("template [[host_name(\"a\")]] [[kernel]] decltype({kernel}) {kernel};");
        compiled(&BTreeSet::from([definition])).map(|compiled| compiled.bodies)
    };
    for (kernel, bodies) in [
        ("affine_qmv<float16_t, 64, 4, 0, 0, 4>", 1),
        ("affine_qmv_quad<float, 64, 4, 64, 0>", 1),
        ("fp_qmv_wide<bfloat16_t, 32, 4, 4, 16, 0>", 1),
        ("affine_qmm_t<float16_t, 64, 4, true, false>", 0),
    ] {
        let judged = judged(kernel).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(judged, bodies, "{kernel}");
    }
    for (kernel, said) in [
        ("affine_qmv<float16_t, 64, 4, 0, 0, 4, 1>", "affine_qmv"),
        ("affine_qmv_fast_streamed<float16_t, 64, 4>", "affine_qmv_fast_streamed"),
        ("affine_qmv_streamed<64, float16_t, 4, 2, 0>", "affine_qmv_streamed"),
        ("affine_qmv<float16_t, 64, 7, 0, 0, 4>", "Template undefined for bits"),
        ("affine_qmm_t<float16_t, 64, 4, true>", "affine_qmm_t"),
    ] {
        let error = judged(kernel).expect_err(kernel);
        assert!(error.to_string().contains(said), "{kernel}: {error}");
    }
}
