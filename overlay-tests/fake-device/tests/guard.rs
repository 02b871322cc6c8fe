//! The guard of `streamed`: what nobody certified runs as `narrow`.

use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::device::{Cell, Counts, Device, FamilyCounts, Route};
use mlx_overlay_fake_device::product::{Number, Packing, Policy, Product};
use mlx_overlay_fake_device::rule::Family;
use overlay_tests_support::Suite;

use crate::support::{device, needs};

pub fn add(suite: &mut Suite) {
    suite.test_needing("what nobody certified runs narrow", needs(), refused);
}

const FAST: Product =
    Product { packing: Packing::affine(4, 64), number: Number::Float16, k: 512, n: 512, batch: 1 };
const GENERIC: Product = Product { n: 508, ..FAST };

fn went_to(device: &mut Device, product: &Product, m: u32, stream: u64) -> Family {
    let routes = device.route(product, stream, &[m]).expect("a route");
    let Route::Dispatched(dispatches) = &routes[0] else { panic!("{routes:?}") };
    assert_eq!(dispatches.len(), 1, "{dispatches:?}");
    Family::of(&dispatches[0].kernel, m).expect("a quantized product")
}

fn refused() {
    // Narrow on every generation: under the guard `wide` is no way out.
    for generation in [13, 15] {
        let mut device = device(Kernels::ByName, generation, 's');
        device.set_policy(None, Some(Policy::Streamed)).expect("a policy");
        assert_eq!(went_to(&mut device, &FAST, 4, 0), Family::Streamed, "the guard is off");
        device.set_guard(true).expect("the guard");
        device.take_counts().expect("counts");
        assert_eq!(went_to(&mut device, &FAST, 4, 0), Family::Narrow);
        assert_eq!(went_to(&mut device, &FAST, 4, 0), Family::Narrow);
        // What was dispatched is what is counted.
        let counts = device.take_counts().expect("counts");
        let affine = FamilyCounts { narrow: 2, ..FamilyCounts::default() };
        assert_eq!(counts, Counts { affine, ..Counts::default() });

        // A certificate is for one kernel: not for another tile or order.
        let said = device.certify(&FAST, (4, true), true).expect("a verdict");
        let cell = Cell {
            number: "float16".into(),
            bits: 4,
            group: 64,
            vectors: 4,
            fast: true,
            batched: false,
        };
        assert_eq!((said.refused, said.cells), (2, vec![cell]));
        assert_eq!(went_to(&mut device, &FAST, 4, 0), Family::Streamed);
        assert_eq!(went_to(&mut device, &FAST, 8, 0), Family::Streamed, "two tiles of four");
        assert_eq!(went_to(&mut device, &FAST, 5, 0), Family::Narrow, "a tile of five");
        assert_eq!(went_to(&mut device, &GENERIC, 4, 0), Family::Narrow, "the generic order");
        assert_eq!(went_to(&mut device, &Product { batch: 2, ..FAST }, 4, 0), Family::Narrow);
        assert_eq!(went_to(&mut device, &FAST, 1, 0), Family::Single);

        // The stream that certifies is streamed; the others are not.
        let trial = device.make_stream().expect("a stream");
        let said = device.set_trial_stream(Some(trial)).expect("a stream");
        assert_eq!((said.refused, said.cells.len()), (5, 3));
        assert_eq!(went_to(&mut device, &GENERIC, 4, trial), Family::Streamed);
        assert_eq!(went_to(&mut device, &GENERIC, 4, 0), Family::Narrow);
        device.set_trial_stream(None).expect("none");
        assert_eq!(went_to(&mut device, &GENERIC, 4, trial), Family::Narrow);

        // A verdict can be taken back, and the guard is streamed's alone.
        device.certify(&FAST, (4, true), false).expect("a verdict");
        assert_eq!(went_to(&mut device, &FAST, 4, 0), Family::Narrow);
        let mxfp4 = Product { packing: Packing::FP[0], ..FAST };
        assert_eq!(went_to(&mut device, &mxfp4, 4, 0), Family::Wide);
        device.set_policy(None, Some(Policy::Wide)).expect("a policy");
        let upstreams = if generation == 15 { Family::Wide } else { Family::Narrow };
        assert_eq!(went_to(&mut device, &FAST, 4, 0), upstreams);
        device.set_policy(None, Some(Policy::Streamed)).expect("a policy");
        device.set_guard(false).expect("the guard");
        assert_eq!(went_to(&mut device, &GENERIC, 4, 0), Family::Streamed);
    }
}
