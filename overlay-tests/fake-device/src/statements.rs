//! What has been said in public about MLX's limits, and whether it holds here.

use crate::architecture::Architecture;
use crate::product::{Packing, Policy};
use crate::rule::Family;
use crate::table::{Class, Table};

/// A statement somebody published.
pub struct Statement {
    /// It, in our words.
    pub says: &'static str,
    /// Where it stands.
    pub place: &'static str,
    claims: &'static [Claim],
}

/// What it says, so that it can be looked up.
enum Claim {
    /// From this M on it is a matrix product.
    Limit(Architecture, Class, u32),
    /// Two rows of this packing take this family under upstream's rule.
    TwoRows(Architecture, Packing, Family),
    /// A few rows of this packing are, under upstream's rule, the single rows.
    Identical(Architecture, Packing),
}

const M1_ULTRA: Architecture = Architecture { generation: 13, size: 'd' };
const M3_MAX: Architecture = Architecture { generation: 15, size: 's' };
const M3_ULTRA: Architecture = Architecture { generation: 15, size: 'd' };
const M5_MAX: Architecture = Architecture { generation: 17, size: 's' };
const FOUR_BITS: Packing = Packing::affine(4, 64);
const MXFP4: Packing = Packing::FP[0];

/// All of them.
pub const STATEMENTS: &[Statement] = &[
    Statement {
        says: "M1 Ultra: block and single rows agree up to T = 11 and part at 12, the batch limit, \
               at 5120 → 17408",
        place: "lablup/mlxcel #1182",
        claims: &[
            Claim::Limit(M1_ULTRA, Class::Large, 12),
            Claim::TwoRows(M1_ULTRA, FOUR_BITS, Family::Narrow),
        ],
    },
    Statement {
        says: "M3 Ultra is `applegpu_g15d`: wide as generation 15, limits 32 / 18 / 12 as an Ultra of \
               generation 13",
        place: "lablup/mlxcel #1261",
        claims: &[
            Claim::TwoRows(M3_ULTRA, FOUR_BITS, Family::Wide),
            Claim::Limit(M3_ULTRA, Class::Small, 32),
            Claim::Limit(M3_ULTRA, Class::Middle, 18),
            Claim::Limit(M3_ULTRA, Class::Large, 12),
        ],
    },
    Statement {
        says: "M5 Max: the limit is 10 at 5376 → 5376",
        place: "lablup/mlxcel #1186",
        claims: &[Claim::Limit(M5_MAX, Class::Large, 10)],
    },
    Statement {
        says: "M5 Max: the limit of large matrices becomes 16",
        place: "ml-explore/mlx #3791, its description",
        claims: &[Claim::Limit(M5_MAX, Class::Large, 16)],
    },
    Statement {
        says: "M3 Max: the limit is 10 at 5120 → 17408",
        place: "ml-explore/mlx #3863",
        claims: &[Claim::Limit(M3_MAX, Class::Large, 10)],
    },
    Statement {
        says: "M3 Max: the limit of large matrices is better at 13",
        place: "ml-explore/mlx #3987",
        claims: &[Claim::Limit(M3_MAX, Class::Large, 13)],
    },
    Statement {
        says: "M3 Max: the best limits are 17 at 2048², 16 at 2048 × 4096, 13 at 4096²",
        place: "ml-explore/mlx #3987, its table",
        claims: &[
            Claim::Limit(M3_MAX, Class::Small, 17),
            Claim::Limit(M3_MAX, Class::Middle, 16),
            Claim::Limit(M3_MAX, Class::Middle, 13),
        ],
    },
    Statement {
        says: "mxfp4 takes the wide kernel on every generation, M1 Ultra included",
        place: "lablup/mlxcel #1186",
        claims: &[
            Claim::TwoRows(M1_ULTRA, MXFP4, Family::Wide),
            Claim::TwoRows(M3_ULTRA, MXFP4, Family::Wide),
            Claim::TwoRows(M5_MAX, MXFP4, Family::Wide),
        ],
    },
    Statement {
        says: "M5 Max: an mxfp4 block is its single rows, measured up to T = 4 at 5120 → 5120",
        place: "lablup/mlxcel #1186, a comment",
        claims: &[Claim::Identical(M5_MAX, MXFP4)],
    },
];

impl Statement {
    /// `holds`, or what is so instead.
    #[must_use]
    pub fn verdict(&self, table: &Table) -> String {
        let wrong: Vec<String> =
            self.claims.iter().filter_map(|claim| claim.wrong(table)).collect();
        if wrong.is_empty() {
            "holds".into()
        } else {
            format!("does not hold: {}", wrong.join("; "))
        }
    }
}

impl Claim {
    fn wrong(&self, table: &Table) -> Option<String> {
        match *self {
            Self::Limit(architecture, class, limit) => match table.limit(architecture, class) {
                Some(measured) if measured == limit => None,
                Some(measured) => Some(format!("the limit is {measured}")),
                None => Some("not measured".into()),
            },
            Self::TwoRows(architecture, packing, family) => {
                let families = table.families(architecture, packing, Class::Large, Policy::Wide);
                match families.and_then(|families| families.get(1)) {
                    Some(measured) if *measured == family => None,
                    Some(measured) => Some(format!("two rows go to {measured}")),
                    None => Some("not measured".into()),
                }
            }
            Self::Identical(architecture, packing) => {
                let families = table.families(architecture, packing, Class::Large, Policy::Wide);
                match families.and_then(|families| families.get(1)) {
                    Some(measured) if measured.keeps_the_order_of_one_row() => None,
                    Some(measured) => Some(format!(
                        "two rows go to {measured}, in another order; with Apple's compiled \
                         kernels at K of 1024 and 1088 most float32 results differ and fewer than \
                         one half in a thousand does, so half cannot tell"
                    )),
                    None => Some("not measured".into()),
                }
            }
        }
    }
}
