//! The probe that the runtime ships, on kernels known to differ and known not
//! to: its comparison is pure over whatever multiplies.

use std::ops::Range;

use mlx_overlay::exactness::{
    self, Compared, Comparison, Dispatches, Family as Counted, Kernels as Multiplies, compare,
};
use mlx_overlay_fake_device::FakeDeviceError;
use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::device::{Counts, Device, FamilyCounts};
use mlx_overlay_fake_device::product::{Number, Packing, Policy, Product};
use overlay_tests_support::Suite;

use crate::support::{device, laid_kernels, needs};

pub fn add(suite: &mut Suite) {
    suite.test_needing("the runtime's probe tells the kernels apart", needs(), tells_apart);
}

/// A block that MLX multiplies on the fake device.
struct OnFakeDevice {
    device: Device,
    product: Product,
    width: u32,
}

impl Multiplies for OnFakeDevice {
    type Error = FakeDeviceError;

    fn element_size(&self) -> usize {
        self.product.number.bytes()
    }

    fn product(&mut self, vectors: Range<usize>) -> Result<exactness::Product, FakeDeviceError> {
        self.device.take_counts()?;
        let rows = self.device.rows(&self.product, self.width, 11, vectors)?;
        let dispatched = Some(dispatches(self.device.take_counts()?));
        Ok(exactness::Product { vectors: rows, dispatched })
    }
}

fn dispatches(counts: Counts) -> Dispatches {
    let by_family = |c: FamilyCounts| [c.quad, c.single, c.narrow, c.wide, c.streamed];
    Dispatches::counted([by_family(counts.affine), by_family(counts.fp)])
}

fn probed(generation: u32, policy: Policy, k: u32, n: u32) -> Comparison {
    let mut device = device(Kernels::ByName, generation, 's');
    device.use_library(laid_kernels()).expect("the harness's kernels");
    device.set_policy(None, Some(policy)).expect("a policy");
    let packing = Packing::affine(4, 64);
    let product = Product { packing, number: Number::Float32, k, n, batch: 1 };
    compare(&mut OnFakeDevice { device, product, width: 5 }, 5).expect("a comparison")
}

fn tells_apart() {
    for (k, n) in [(1024, 24), (1088, 21)] {
        let wide = probed(15, Policy::Wide, k, n);
        assert!(!wide.is_exact(), "{wide:?}");
        assert_eq!(wide.elements, 5 * n as usize);
        assert_eq!(wide.compared(), Compared::Families);

        let streamed = probed(15, Policy::Streamed, k, n);
        assert!(streamed.is_exact(), "{streamed:?}");
        assert_eq!(streamed.compared(), Compared::Families);
        assert_eq!(streamed.block.map(|d| d.families()), Some(vec![Counted::Streamed]));
        assert_eq!(streamed.chain.map(|d| d.count(Counted::Single)), Some(5));

        // One kernel on both sides: equal, and no comparison of two.
        for narrow in [probed(15, Policy::Narrow, k, n), probed(13, Policy::Wide, k, n)] {
            assert!(narrow.is_exact(), "{narrow:?}");
            assert_eq!(narrow.compared(), Compared::OneFamily(Counted::Narrow));
        }
    }
}
