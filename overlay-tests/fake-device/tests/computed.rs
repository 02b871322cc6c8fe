//! The promise, computed: MLX's dispatch, and kernels that run on this host.

use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::executed::{
    REPRESENTATIVES, ROWS, Source, each, fp_products, products, promise,
};
use mlx_overlay_fake_device::measure::{compute, in_parallel};
use mlx_overlay_fake_device::product::{Number, Packing, Policy};
use mlx_overlay_fake_device::rule::{Family, expected};
use mlx_overlay_fake_device::table::Computed;
use mlx_overlay_harness::toolchain::LlvmTools;
use overlay_tests_support::{Need, Suite};

use crate::support::{build, device, kernels, laid_kernels, needs, whole};

pub fn add(suite: &mut Suite) {
    suite.test_needing("a block is its rows under streamed and narrow", needs(), orders_kept);
    suite.test_needing("wide breaks it where qmv_wide serves", needs(), wide_breaks_it);
    let tools = LlvmTools::find().err().map(|error| error.to_string());
    let llvm = Need::met(tools.is_none(), tools.unwrap_or_default());
    let needs_llvm = needs().into_iter().chain([llvm]);
    suite.test_needing("Apple's compiled kernels say the same", needs_llvm, apples_kernels);
    suite.test_needing("products are close to the CPU backend", needs(), close_to_cpu);
    suite.test_needing("a kernel that fails fails the product", needs(), failure_arrives);
}

fn under(policy: Policy) -> Vec<&'static Computed> {
    whole().table.computed.iter().filter(|computed| computed.policy == policy).collect()
}

fn orders_kept() {
    for policy in [Policy::Narrow, Policy::Streamed] {
        let computed = under(policy);
        assert!(computed.len() > 500, "{} products", computed.len());
        for computed in computed {
            let Computed { product, m, promise, .. } = computed;
            let wanted = match policy {
                _ if product.k <= 128 => Family::Quad,
                Policy::Streamed => Family::Streamed,
                _ => Family::Narrow,
            };
            assert_eq!(Family::of(&promise.block[0], *m), Some(wanted), "{computed:?}");
            // Two arms that ran one kernel would show nothing.
            let one_kernel = promise.chain[0] == promise.block[0];
            assert_eq!(one_kernel, wanted != Family::Streamed, "{computed:?}");
            assert!(promise.kept(), "{computed:?}");
        }
    }
}

/// On generation 13 and 14 `wide` is `qmv`. Elsewhere a float result shows the
/// other order in every product, a half one in some: its store rounds most
/// differences away.
fn wide_breaks_it() {
    breaks_exactly_where_wide_serves(&under(Policy::Wide));
}

/// Upstream's own kernels as Apple compiled them, fp modes included: `wide`
/// breaks it where `qmv_wide` serves, `narrow` nowhere.
fn apples_kernels() {
    let mut all = products();
    all.append(&mut fp_products());
    let library = kernels(Source::Apple, &all, &[Policy::Wide, Policy::Narrow]);
    // Affine is wide from generation 15 on, the fp modes everywhere.
    let [old, new] = [REPRESENTATIVES[0], REPRESENTATIVES[2]];
    let arms = [(old, Policy::Wide), (new, Policy::Wide), (new, Policy::Narrow)];
    let computed = in_parallel(&arms, |&(architecture, policy)| {
        compute(build(), &library, architecture, policy, &each(&all, &ROWS)).expect("products")
    });
    let (wide, narrow): (Vec<_>, Vec<_>) =
        computed.iter().flatten().partition(|computed| computed.policy == Policy::Wide);
    breaks_exactly_where_wide_serves(&wide);
    // What docs/routing.md says of a public measurement in half.
    let mxfp4 = |number| {
        let of = |c: &&&Computed| (c.product.packing, c.product.number) == (Packing::FP[0], number);
        let promises = wide.iter().filter(of).map(|computed| &computed.promise);
        promises.fold((0, 0), |(differ, all), one| (differ + one.differing, all + one.values))
    };
    let (differ, all) = mxfp4(Number::Float32);
    assert!(2 * differ > all && all > 1000, "{differ} of {all} floats");
    let (differ, all) = mxfp4(Number::Float16);
    assert!(1000 * differ < all && all > 1000, "{differ} of {all} halves");
    for computed in narrow {
        assert!(computed.promise.kept(), "{computed:?}");
    }
}

fn breaks_exactly_where_wide_serves(all: &[&Computed]) {
    let (mut halves, mut broken) = (0, 0);
    for computed in all {
        let Computed { architecture, policy, product, m, promise } = computed;
        let family = expected(*architecture, product, *m, *policy).family;
        assert_eq!(Family::of(&promise.block[0], *m), Some(family), "{computed:?}");
        let same_order = family.keeps_the_order_of_one_row();
        if same_order || product.number == Number::Float32 {
            assert_eq!(promise.kept(), same_order, "{computed:?}");
        } else {
            halves += 1;
            broken += usize::from(!promise.kept());
        }
    }
    assert!(halves > 0 && broken > 0, "{broken} of {halves} half products show the other order");
}

fn close_to_cpu() {
    for computed in &whole().table.computed {
        // A float sum of 1,088 terms; a half result, and the CPU backend's own
        // half accumulation.
        let most = if computed.product.number == Number::Float32 { 1e-5 } else { 2e-2 };
        assert!(computed.promise.distance < most, "{computed:?}");
    }
}

/// A matrix product is no kernel the harness runs: MLX says so, and nothing is
/// taken for a result.
fn failure_arrives() {
    let mut device = device(Kernels::ByName, 15, 's');
    device.use_library(laid_kernels()).expect("the harness's kernels");
    let error = promise(&mut device, &products()[0], 40, 1).expect_err("qmm is not in the library");
    assert!(error.to_string().contains("qmm_t"), "{error}");
}
