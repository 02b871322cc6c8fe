//! Kernels by host name: the routing table, its settings, its environment.

use std::path::Path;

use mlx_overlay_fake_device::architecture::Architecture;
use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::device::{Argument, Device, Route, View};
use mlx_overlay_fake_device::product::{Mode, Number, Packing, Policy, Product};
use mlx_overlay_fake_device::release::Release;
use mlx_overlay_fake_device::routing::{self, Routed};
use mlx_overlay_fake_device::rule::{Family, expected};
use overlay_tests_support::Suite;

use crate::support::{build, device, device_with, needs, none_wrong, tree, whole};

pub fn add(suite: &mut Suite) {
    suite.test_needing("every architecture routes as the rule says", needs(), whole_table);
    suite.test_needing("every combination routes as the rule says", needs(), combinations);
    suite.test_needing("no policy but wide changes the order", needs(), orders_below_the_limit);
    suite.test_needing("docs/routing.md is current", needs(), page_is_current);
    suite.test_needing("a recorded dispatch is the one of the facts page", needs(), facts_page);
    suite.test_needing("a view is copied where its kernel wants it", needs(), views);
    suite.test_needing("one w for all makes one product of a batch", needs(), one_w);
    suite.test_needing("a stream's policy is that stream's alone", needs(), nearest_wins);
    suite.test_needing("the environment sets the process policy once", needs(), environment);
    suite.test_needing("a kernel that does not exist is refused", needs(), unknown_kernel);
}

/// 25 architectures, every packing, shapes on both sides of every threshold,
/// M from 1 to 40, three policies. The library of the fake device holds the
/// tree's instantiations: a host name that is not among them is refused.
fn whole_table() {
    Release::of(&tree()).unwrap_or_else(|error| panic!("{error}"));
    let whole = whole();
    none_wrong(&whole.wrong);
    let routes: usize = whole.table.routed.iter().map(|routed| routed.families.len()).sum();
    assert_eq!(routes, 25 * routing::products().len() * 3 * 40, "routes looked at");
}

/// Every packing, type and batch at every kernel: on one architecture, since
/// none of the three has a part in where a product goes.
fn combinations() {
    let architecture = Architecture { generation: 17, size: 's' };
    let mut device = device(Kernels::ByName, architecture.generation, architecture.size);
    let products = routing::combinations();
    let measured = routing::measure(&mut device, architecture, &products, &routing::TILES);
    none_wrong(&measured.expect("routes").wrong);
}

/// What the policies promise, said without the rule: `narrow`, and for affine
/// weights `streamed`, never take another order below the limit, and leave the
/// limit where it is.
fn orders_below_the_limit() {
    let routed = &whole().table.routed;
    let matrices = |routed: &Routed| {
        routed.families.iter().map(|family| *family == Family::Matrix).collect::<Vec<_>>()
    };
    // Measured in the order of Policy::ALL.
    for policies in routed.chunks(Policy::ALL.len()) {
        let [wide, rest @ ..] = policies else { panic!("no policies") };
        assert_eq!(wide.policy, Policy::Wide);
        for routed in rest {
            assert_eq!((routed.architecture, routed.product), (wide.architecture, wide.product));
            assert_eq!(matrices(routed), matrices(wide), "{routed:?}");
            let exact =
                routed.policy == Policy::Narrow || routed.product.packing.mode == Mode::Affine;
            let another_order = routed.families.contains(&Family::Wide);
            assert!(!exact || !another_order, "{routed:?}");
        }
    }
}

/// The page in docs/ is the one this table makes, on either release: the rule
/// is the same on both.
fn page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/routing.md");
    let page = std::fs::read_to_string(&path).expect("docs/routing.md");
    assert_eq!(
        page,
        whole().table.page(),
        "docs/routing.md is not what {} gives; run `cargo run -p mlx-overlay-fake-device --bin \
         routing-table TREE docs/routing.md` on the pin's",
        Release::of(&tree()).expect("a known release")
    );
}

fn four_bits(k: u32, n: u32) -> Product {
    Product { packing: Packing::affine(4, 64), number: Number::Float16, k, n, batch: 1 }
}

fn facts_page() {
    let mut device = device(Kernels::ByName, 15, 'd');
    let routes =
        device.route_with_arguments(&four_bits(4096, 4096), 0, &[1, 4, 32]).expect("routes");
    let kernels: Vec<&str> = routes
        .iter()
        .map(|route| match route {
            Route::Dispatched(dispatches) => dispatches[0].kernel.as_str(),
            Route::Refused { refused } => refused.as_str(),
        })
        .collect();
    assert_eq!(kernels[0], "affine_qmv_fast_float16_t_gs_64_b_4_batch_0");
    assert_eq!(kernels[1], "affine_qmv_wide_float16_t_gs_64_b_4_nv_4_kl_8_batch_0");
    assert!(kernels[2].starts_with("affine_qmm_t_splitk"), "{}", kernels[2]);
    let Route::Dispatched(wide) = &routes[1] else { panic!("{:?}", routes[1]) };
    assert_eq!(wide[0].grid, [1, 512, 1]);
    assert_eq!(wide[0].group, [32, 2, 1]);
    assert_eq!(wide[0].arguments.keys().copied().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
}

/// Rows that lie apart are copied for every kernel, by upstream. The streamed
/// kernels read four values of x at a time: what does not start at a multiple of
/// four is copied for them, and for them alone.
fn views() {
    let architecture = Architecture { generation: 15, size: 's' };
    let mut device = device(Kernels::ByName, architecture.generation, architecture.size);
    for batch in [1, 3] {
        let product = Product { batch, ..four_bits(512, 512) };
        for policy in Policy::ALL {
            device.set_policy(None, Some(policy)).expect("a policy");
            let shifted = [View::Shifted, View::ShiftedByTwo, View::Apart];
            for view in shifted.into_iter().chain((batch > 1).then_some(View::MatricesApart)) {
                let routes = device.route_of_view(&product, view, &[1, 4]).expect("routes");
                for (m, route) in [1, 4].into_iter().zip(&routes) {
                    let Route::Dispatched(dispatches) = route else { panic!("{route:?}") };
                    let [copies @ .., last] = &dispatches[..] else { panic!("{route:?}") };
                    let expected = expected(architecture, &product, m, policy);
                    assert_eq!(expected.complaint(std::slice::from_ref(last)), None, "{view:?}");
                    let copied = view == View::Apart || expected.family == Family::Streamed;
                    assert_eq!(copies.len(), usize::from(copied), "{policy:?} {view:?} {m}");
                    assert!(copies.iter().all(|copy| copy.kernel.contains("copy")), "{copies:?}");
                    if copied && batch > 1 {
                        // The strides are the copy's, behind M where a kernel takes M.
                        let at = if m > 1 && policy != Policy::Narrow { 10 } else { 9 };
                        let strides = [i64::from(m) * 512, 512, 1];
                        let bytes = strides.into_iter().flat_map(i64::to_le_bytes).collect();
                        assert_eq!(last.arguments[&at], Argument::Bytes { bytes }, "{view:?}");
                    }
                }
            }
        }
    }
}

/// x [3, M, K] by w [N, K]: one product of 3·M rows, so that 3 times 5 is a matrix
/// product where 5 rows are not. Rows that lie apart are copied and then the same;
/// matrices that lie apart stay three products of M.
fn one_w() {
    let architecture = Architecture { generation: 15, size: 's' };
    let mut device = device(Kernels::ByName, architecture.generation, architecture.size);
    let three = Product { batch: 3, ..four_bits(512, 512) };
    let rows = [1, 4, 5];
    for policy in Policy::ALL {
        device.set_policy(None, Some(policy)).expect("a policy");
        for view in [None, Some(View::Apart), Some(View::MatricesApart)] {
            let routes = device.route_of_one_w(&three, view, &rows).expect("routes");
            for (m, route) in rows.into_iter().zip(&routes) {
                let (product, m) = match view {
                    Some(View::MatricesApart) => (three, m),
                    _ => (Product { batch: 1, ..three }, 3 * m),
                };
                let expected = expected(architecture, &product, m, policy);
                assert_eq!(expected.family == Family::Matrix, m == 15, "the limit is 13");
                let Route::Dispatched(dispatches) = route else { panic!("{route:?}") };
                let copied = view == Some(View::Apart)
                    || view.is_some() && expected.family == Family::Streamed;
                let (copies, rest) = dispatches.split_at(usize::from(copied));
                assert!(copies.iter().all(|copy| copy.kernel.contains("copy")), "{copies:?}");
                assert_eq!(expected.complaint(rest), None, "{view:?}");
            }
        }
    }
}

fn went_to(device: &mut Device, product: &Product, stream: u64) -> String {
    let routes = device.route(product, stream, &[4]).expect("a route");
    match &routes[0] {
        Route::Dispatched(dispatches) => {
            assert_eq!(dispatches[0].stream, stream);
            dispatches[0].kernel.clone()
        }
        Route::Refused { refused } => panic!("{refused}"),
    }
}

/// Every setting of process and stream, the unset ones included: a stream
/// follows its own, then the process, then the default.
fn nearest_wins() {
    let architecture = Architecture { generation: 15, size: 's' };
    let mut device = device(Kernels::ByName, architecture.generation, architecture.size);
    let (set, unset) = (device.make_stream().expect("one"), device.make_stream().expect("two"));
    // Settings are kept in blocks of 64 streams, then 128: one in each.
    let more = (0..200).map(|_| device.make_stream().expect("another")).collect::<Vec<_>>();
    let product = four_bits(512, 512);
    let settings = [None, Some(Policy::Wide), Some(Policy::Narrow), Some(Policy::Streamed)];
    for process in settings {
        for stream in settings {
            assert!(device.set_policy(None, process).expect("process"), "has effect");
            assert!(device.set_policy(Some(set), stream).expect("stream"), "has effect");
            let of_process = process.unwrap_or(Policy::Wide);
            let cases = [(set, stream.unwrap_or(of_process)), (unset, of_process), (0, of_process)];
            let more = more.iter().map(|&number| (number, of_process));
            for (number, policy) in cases.into_iter().chain(more) {
                let name = expected(architecture, &product, 4, policy).kernel;
                let got = went_to(&mut device, &product, number);
                assert_eq!(got, name, "process {process:?}, stream {stream:?}, on {number}");
            }
        }
    }
}

fn environment() {
    let cases: [(&[(&str, &str)], Family); 7] = [
        (&[], Family::Wide),
        (&[("MLX_OVERLAY_QMV", "narrow")], Family::Narrow),
        (&[("MLX_OVERLAY_QMV", "streamed")], Family::Streamed),
        (&[("MLXCEL_QMV_WIDE", "0")], Family::Narrow),
        (&[("MLXCEL_QMV_WIDE", "1")], Family::Wide),
        (&[("MLX_OVERLAY_QMV", "streamed"), ("MLXCEL_QMV_WIDE", "0")], Family::Streamed),
        (&[("MLX_OVERLAY_QMV", "wide"), ("MLXCEL_QMV_WIDE", "0")], Family::Narrow),
    ];
    let product = four_bits(512, 512);
    for (variables, family) in cases {
        let mut device = device_with(Kernels::ByName, 15, 'g', variables);
        let got = went_to(&mut device, &product, 0);
        assert_eq!(Family::of(&got, 4), Some(family), "{variables:?}");
        // What a person sets comes before what the environment says.
        device.set_policy(None, Some(Policy::Wide)).expect("a policy");
        assert_eq!(Family::of(&went_to(&mut device, &product, 0), 4), Some(Family::Wide));
    }
    // An off-switch, never an on-switch.
    let mut old = device_with(Kernels::ByName, 13, 'g', &[("MLXCEL_QMV_WIDE", "1")]);
    assert_eq!(Family::of(&went_to(&mut old, &product, 0), 4), Some(Family::Narrow));
    // A word without meaning is an error, not a default.
    let mut device = device_with(Kernels::ByName, 15, 'g', &[("MLX_OVERLAY_QMV", "fast")]);
    let routes = device.route(&product, 0, &[4]).expect("an answer");
    let Route::Refused { refused } = &routes[0] else { panic!("{:?}", routes[0]) };
    assert!(refused.contains("MLX_OVERLAY_QMV"), "{refused}");
}

/// The check of host names can fail: a packing nobody instantiates.
fn unknown_kernel() {
    let mut device = device(Kernels::ByName, 15, 'g');
    let names = std::fs::read_to_string(build().library(Kernels::ByName)).expect("the library");
    assert!(names.contains("affine_qmv_wide_float16_t_gs_64_b_4_nv_4_kl_8_batch_0\n"));
    let odd = Product { packing: Packing::affine(4, 16), ..four_bits(512, 512) };
    let answer = device.route(&odd, 0, &[4]);
    match answer {
        Ok(routes) => assert!(
            matches!(&routes[0], Route::Refused { refused } if refused.contains("gs_16")),
            "{:?}",
            routes[0]
        ),
        // MLX's own check of group sizes comes first.
        Err(error) => assert!(error.to_string().contains("group"), "{error}"),
    }
}
