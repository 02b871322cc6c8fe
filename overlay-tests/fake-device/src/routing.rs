//! The routing of one architecture, measured and held against the rule.

use crate::FakeDeviceError;
use crate::architecture::Architecture;
use crate::device::{Counts, Device, FamilyCounts, Route};
use crate::product::{BITS, Mode, Number, Packing, Policy, Product};
use crate::rule::{self, Family};

/// The largest M of the table.
pub const MOST_ROWS: u32 = 40;

/// K and N on both sides of everything the rule looks at: rows of 64 and 128
/// (quad), the fast step (768 is one of 256 and none of 512) and multiples of 8
/// (12 is one of 4), and the sides of 2048 and 4096 that move the limit (and, for
/// nvfp4, the slim kernel).
pub const SHAPES: [(u32, u32); 13] = [
    (64, 512),
    (128, 512),
    (192, 512),
    (512, 8),
    (512, 12),
    (768, 8),
    (2048, 2048),
    (2112, 2048),
    (2048, 2056),
    (4096, 4096),
    (4160, 4096),
    (4096, 4104),
    (5120, 17408),
];

/// Every packing at every shape in half, and a few of the rest: other groups,
/// other types, a batch.
#[must_use]
pub fn products() -> Vec<Product> {
    let half = |packing, (k, n)| Product { packing, number: Number::Float16, k, n, batch: 1 };
    let packings = BITS.map(|bits| Packing::affine(bits, 64)).into_iter().chain(Packing::FP);
    let mut products: Vec<Product> =
        packings.flat_map(|packing| SHAPES.map(|shape| half(packing, shape))).collect();
    for bits in BITS {
        for group in [32, 128] {
            products.push(half(Packing::affine(bits, group), (2048, 2048)));
        }
    }
    let others = [Packing::affine(4, 64), Packing::affine(8, 64)].into_iter().chain(Packing::FP);
    for packing in others {
        let batch = Product { batch: 3, ..half(packing, (512, 512)) };
        products.push(batch);
        for number in [Number::Float32, Number::Bfloat16] {
            products.push(Product { number, ..half(packing, (2048, 2048)) });
            products.push(Product { number, n: 511, ..batch });
        }
    }
    products
}

/// Every packing with every type, of one matrix and of a batch, at shapes that
/// take it to each kernel there is for it: a quad of either length (at widths
/// that have none, the generic kernel), the generic one and the fast one, for
/// nvfp4 the slim one too; matrix products with N whole and not, in one part (N
/// above 8192 are tiles enough) and in several. Every kernel so gets every value
/// of each of its parameters beside every value of the others.
#[must_use]
pub fn combinations() -> Vec<Product> {
    let groups = [32, 64, 128].into_iter();
    let affine = groups.flat_map(|group| BITS.map(|bits| Packing::affine(bits, group)));
    let mut products = Vec::new();
    for packing in affine.chain(Packing::FP) {
        let shapes = [(packing.group.max(64), 8224), (128, 8204), (512, 12), (512, 512)];
        let slim = (packing.mode == Mode::Nvfp4).then_some((512, 4096));
        for (k, n) in shapes.into_iter().chain(slim) {
            for number in Number::ALL {
                for batch in [1, 3] {
                    products.push(Product { packing, number, k, n, batch });
                }
            }
        }
    }
    products
}

/// Rows for [`combinations`]: one, every tile, and more than any limit.
pub const TILES: [u32; 6] = [1, 2, 3, 4, 5, MOST_ROWS];

/// Where a product went, for each M.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The device.
    pub architecture: Architecture,
    /// The product.
    pub product: Product,
    /// The policy it was asked under.
    pub policy: Policy,
    /// The family for each M.
    pub families: Vec<Family>,
}

/// What was measured, and where it is not what the rule says.
#[derive(Debug, Default)]
pub struct Measured {
    /// One entry a product and policy.
    pub routed: Vec<Routed>,
    /// In plain words.
    pub wrong: Vec<String>,
}

/// Routes the products on a device under each policy in turn, set for the
/// process. A tree without policies is measured once, as `wide`.
///
/// # Errors
/// The device ended, or MLX threw at a request.
pub fn measure(
    device: &mut Device,
    architecture: Architecture,
    products: &[Product],
    rows: &[u32],
) -> Result<Measured, FakeDeviceError> {
    let has_policies = device.has_policies()?;
    let policies = if has_policies { &Policy::ALL[..] } else { &[Policy::Wide] };
    let mut measured = Measured::default();
    for product in products {
        let mut under_wide = Vec::new();
        for &policy in policies {
            if has_policies {
                device.set_policy(None, Some(policy))?;
                device.take_counts()?;
            }
            let routes = match with_arguments(product) {
                true => device.route_with_arguments(product, 0, rows)?,
                false => device.route(product, 0, rows)?,
            };
            let mut check = Check { architecture, product, policy, wrong: &mut measured.wrong };
            let families = check.routes(rows, &routes);
            if policy == Policy::Wide {
                under_wide = routes;
            } else {
                check.only_small_batches_differ(rows, &families, &routes, &under_wide);
            }
            if has_policies {
                check.counts(&families, device.take_counts()?);
            }
            measured.routed.push(Routed { architecture, product: *product, policy, families });
        }
    }
    Ok(measured)
}

/// Products whose arguments are compared too: a batch, and of each packing one
/// with a fast kernel and one without.
fn with_arguments(product: &Product) -> bool {
    product.batch > 1 || [(512, 12), (2048, 2048)].contains(&(product.k, product.n))
}

struct Check<'a> {
    architecture: Architecture,
    product: &'a Product,
    policy: Policy,
    wrong: &'a mut Vec<String>,
}

impl Check<'_> {
    fn wrong(&mut self, m: u32, why: impl std::fmt::Display) {
        let Self { architecture, product, policy, .. } = self;
        self.wrong.push(format!("{architecture}, {policy:?}, M = {m}, {product:?}: {why}"));
    }

    fn routes(&mut self, rows: &[u32], routes: &[Route]) -> Vec<Family> {
        if rows.len() != routes.len() {
            self.wrong(0, format!("{} answers for {} rows", routes.len(), rows.len()));
        }
        let pairs = rows.iter().zip(routes);
        pairs.filter_map(|(&m, route)| self.route(m, route)).collect()
    }

    fn route(&mut self, m: u32, route: &Route) -> Option<Family> {
        let expected = rule::expected(self.architecture, self.product, m, self.policy);
        let dispatches = match route {
            Route::Dispatched(dispatches) => dispatches,
            Route::Refused { refused } => {
                self.wrong(m, refused);
                return None;
            }
        };
        if let Some(complaint) = expected.complaint(dispatches) {
            self.wrong(m, complaint);
        }
        dispatches.first().and_then(|first| Family::of(&first.kernel, m))
    }

    /// M = 1 and M at or above the limit are what `wide` gives, argument for
    /// argument where arguments were asked for. Buffer lengths and places may differ: MLX reuses buffers.
    fn only_small_batches_differ(
        &mut self,
        rows: &[u32],
        families: &[Family],
        routes: &[Route],
        under_wide: &[Route],
    ) {
        for (((&m, family), route), wide) in rows.iter().zip(families).zip(routes).zip(under_wide) {
            let upstreams =
                self.product.packing.mode != Mode::Affine && self.policy == Policy::Streamed;
            let untouched =
                upstreams || matches!(family, Family::Quad | Family::Single | Family::Matrix);
            if untouched && without_buffers(route) != without_buffers(wide) {
                self.wrong(m, format!("{route:?} where `wide` gives {wide:?}"));
            }
        }
    }

    fn counts(&mut self, families: &[Family], counts: Counts) {
        let of = |family| families.iter().filter(|f| **f == family).count() as u64;
        let asked = FamilyCounts {
            quad: of(Family::Quad),
            single: of(Family::Single),
            narrow: of(Family::Narrow),
            wide: of(Family::Wide),
            streamed: of(Family::Streamed),
        };
        let none = FamilyCounts::default();
        let expected = match self.product.packing.mode {
            Mode::Affine => Counts { affine: asked, fp: none },
            _ => Counts { affine: none, fp: asked },
        };
        if counts != expected {
            self.wrong(0, format!("counted {counts:?}, asked for {expected:?}"));
        }
    }
}

fn without_buffers(route: &Route) -> Route {
    use crate::device::Argument;
    let mut route = route.clone();
    if let Route::Dispatched(dispatches) = &mut route {
        for argument in dispatches.iter_mut().flat_map(|d| d.arguments.values_mut()) {
            if let Argument::Buffer { buffer, .. } = argument {
                *buffer = 0;
            }
        }
    }
    route
}
