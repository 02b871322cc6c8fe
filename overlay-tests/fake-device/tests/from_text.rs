//! Kernels from text, as `MLX_METAL_JIT` builds get them.

use std::collections::BTreeMap;

use mlx_overlay_fake_device::architecture::Architecture;
use mlx_overlay_fake_device::build::Kernels;
use mlx_overlay_fake_device::device::Route;
use mlx_overlay_fake_device::product::Policy;
use mlx_overlay_fake_device::routing;
use mlx_overlay_fake_device::rule::{Expected, expected};
use mlx_overlay_fake_device::templates;
use overlay_tests_support::Suite;

use crate::support::{device, needs, none_wrong};

pub fn add(suite: &mut Suite) {
    suite.test_needing("every template argument list fits its kernel", needs(), lists_fit);
}

/// One architecture for each way the rule goes; every product and policy; an M
/// for each tile, and one above every limit.
fn lists_fit() {
    let rows = [1, 2, 3, 4, 5, 40];
    let mut wrong = Vec::new();
    for (generation, size) in [(13, 'g'), (15, 'd'), (17, 's')] {
        let architecture = Architecture { generation, size };
        let mut device = device(Kernels::FromText, generation, size);
        // Each list once, with the number of the text it is for.
        let mut lists = BTreeMap::new();
        for policy in Policy::ALL {
            device.set_policy(None, Some(policy)).expect("a policy");
            for product in routing::products() {
                let routes = device.route(&product, 0, &rows).expect("routes");
                for (&m, route) in rows.iter().zip(routes) {
                    let dispatches = match route {
                        Route::Dispatched(dispatches) => dispatches,
                        Route::Refused { refused } => {
                            wrong.push(refused);
                            continue;
                        }
                    };
                    let Expected { exactly, .. } = expected(architecture, &product, m, policy);
                    if let Some((name, grid, _)) = exactly
                        && (dispatches[0].kernel != name || dispatches[0].grid != grid)
                    {
                        wrong.push(format!("{:?} where {name} is expected", dispatches[0]));
                    }
                    for dispatch in dispatches.iter().filter(|d| !d.definition.is_empty()) {
                        lists.insert(dispatch.definition.clone(), dispatch.source);
                    }
                }
            }
        }
        assert!(lists.len() > 100, "only {} lists on {architecture}", lists.len());
        let mut sources = BTreeMap::new();
        for (definition, number) in lists {
            let source =
                sources.entry(number).or_insert_with(|| device.source(number).expect("the text"));
            if let Err(why) = templates::fits(&definition, source) {
                wrong.push(format!("{architecture}: {why}"));
            }
        }
    }
    none_wrong(&wrong);
}
