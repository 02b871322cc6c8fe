//! Policies set while work is in flight.

use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::product::{Number, Packing, Policy, Product};
use mlx_overlay_fake_device::rule::Family;
use overlay_tests_support::Suite;

use crate::support::{device, needs};

pub fn add(suite: &mut Suite) {
    suite.test_needing("another thread's setting reaches the next dispatch", needs(), in_flight);
}

/// One graph, evaluated lazily, with two streams in turn. While the device
/// still holds earlier work another thread sets one stream's policy: its next
/// dispatch follows, the other stream's never does.
fn in_flight() {
    let square = Product {
        packing: Packing::affine(4, 64),
        number: Number::Float32,
        k: 512,
        n: 512,
        batch: 1,
    };
    let mut device = device(Kernels::ByName, 16, 's');
    let other = device.make_stream().expect("a stream");
    device.set_policy(None, Some(Policy::Narrow)).expect("a policy");
    let (length, change_at) = (8, 7);
    for (changed, unchanged) in [(other, 0), (0, other)] {
        let change = (Some(changed), Some(Policy::Streamed));
        let dispatches =
            device.flight(&square, 4, &[0, other], length, change_at, change).expect("a flight");
        assert_eq!(dispatches.len(), 2 * length as usize);
        let mut followed = 0;
        for (number, dispatch) in dispatches.iter().enumerate() {
            let family = Family::of(&dispatch.kernel, 4);
            // The kernel of dispatch `change_at` was chosen before the change.
            if dispatch.stream == changed && number > change_at as usize {
                assert_eq!(family, Some(Family::Streamed), "dispatch {number}: {dispatch:?}");
                followed += 1;
            } else {
                assert_eq!(family, Some(Family::Narrow), "dispatch {number}: {dispatch:?}");
            }
        }
        assert!(followed > 0, "no dispatch of stream {changed} came after the change");
        let untouched = dispatches.iter().filter(|d| d.stream == unchanged).count();
        assert_eq!(untouched, length as usize);
        device.set_policy(Some(changed), None).expect("taken back");
    }
}
