//! Policies set while work is in flight.

use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::product::{Number, Packing, Policy, Product};
use mlx_overlay_fake_device::rule::Family;
use overlay_tests_support::Suite;

use crate::support::{device, needs};

pub fn add(suite: &mut Suite) {
    suite.test_needing("another thread's setting reaches the next dispatch", needs(), in_flight);
    suite.test_needing("a setting of the process reaches every stream", needs(), of_the_process);
}

fn square() -> Product {
    let packing = Packing::affine(4, 64);
    Product { packing, number: Number::Float32, k: 512, n: 512, batch: 1 }
}

/// The same for the process: from the next dispatch on every stream follows
/// that has no policy of its own.
fn of_the_process() {
    let mut device = device(Kernels::ByName, 16, 's');
    let (follows, keeps) = (0, device.make_stream().expect("a stream"));
    device.set_policy(Some(keeps), Some(Policy::Narrow)).expect("a policy");
    let (length, change_at) = (8, 7);
    let change = (None, Some(Policy::Streamed));
    let dispatches = device
        .flight(&square(), 4, &[follows, keeps], length, change_at, change)
        .expect("a flight");
    assert_eq!(dispatches.len(), 2 * length as usize);
    let mut followed = 0;
    for (number, dispatch) in dispatches.iter().enumerate() {
        let expected = match dispatch.stream == follows {
            true if number > change_at as usize => Family::Streamed,
            true => Family::Wide,
            false => Family::Narrow,
        };
        assert_eq!(Family::of(&dispatch.kernel, 4), Some(expected), "{number}: {dispatch:?}");
        followed += usize::from(expected == Family::Streamed);
    }
    assert!(followed > 0, "no dispatch of stream {follows} came after the change");
}

/// One graph, evaluated lazily, with two streams in turn. While the device
/// still holds earlier work another thread sets one stream's policy: its next
/// dispatch follows, the other stream's never does.
fn in_flight() {
    let mut device = device(Kernels::ByName, 16, 's');
    let other = device.make_stream().expect("a stream");
    device.set_policy(None, Some(Policy::Narrow)).expect("a policy");
    let (length, change_at) = (8, 7);
    for (changed, unchanged) in [(other, 0), (0, other)] {
        let change = (Some(changed), Some(Policy::Streamed));
        let dispatches =
            device.flight(&square(), 4, &[0, other], length, change_at, change).expect("a flight");
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
