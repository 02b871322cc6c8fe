//! `docs/routing.md`: what was measured, as a page.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::architecture::Architecture;
use crate::executed::Promise;
use crate::product::{BITS, Number, Packing, Policy, Product};
use crate::routing::{MOST_ROWS, Routed};
use crate::rule::Family;
use crate::statements::STATEMENTS;

/// How large a matrix is to the rule that limits M.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// K and N up to 2048.
    Small,
    /// K and N up to 4096, one of them above 2048.
    Middle,
    /// One of them above 4096.
    Large,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Middle, Self::Large];

    fn words(self) -> &'static str {
        match self {
            Self::Small => "K, N ≤ 2048",
            Self::Middle => "K, N ≤ 4096",
            Self::Large => "larger",
        }
    }

    /// A shape of the sweep that stands for the class.
    fn shape(self) -> (u32, u32) {
        match self {
            Self::Small => (2048, 2048),
            Self::Middle => (4096, 4096),
            Self::Large => (5120, 17408),
        }
    }
}

/// A product computed under a policy.
#[derive(Clone, Debug)]
pub struct Computed {
    /// The device.
    pub architecture: Architecture,
    /// The policy.
    pub policy: Policy,
    /// The product.
    pub product: Product,
    /// Its rows.
    pub m: u32,
    /// What came of it.
    pub promise: Promise,
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Table {
    /// Of every architecture.
    pub routed: Vec<Routed>,
    /// Of a few.
    pub computed: Vec<Computed>,
}

impl Table {
    /// The families a packing took on an architecture, M from 1.
    #[must_use]
    pub fn families(
        &self,
        architecture: Architecture,
        packing: Packing,
        class: Class,
        policy: Policy,
    ) -> Option<&[Family]> {
        let (k, n) = class.shape();
        let product = Product { packing, number: Number::Float16, k, n, batch: 1 };
        let routed = self.routed.iter().find(|routed| {
            routed.architecture == architecture
                && routed.policy == policy
                && routed.product == product
        })?;
        Some(&routed.families)
    }

    /// The measured limit: the first M that is a matrix product.
    #[must_use]
    pub fn limit(&self, architecture: Architecture, class: Class) -> Option<u32> {
        let families = self.families(architecture, Packing::affine(4, 64), class, Policy::Wide)?;
        let at = families.iter().position(|family| *family == Family::Matrix)?;
        u32::try_from(at + 1).ok()
    }

    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = String::from(HEAD);
        page +=
            "\n## Affine modes\n\nEvery width (2, 3, 4, 5, 6 and 8 bits) goes the same way.\n\n";
        page += &self.routes(&BITS.map(|bits| Packing::affine(bits, 64)));
        page += "\n## mxfp4, mxfp8, nvfp4\n\n\
                 They have no streamed kernels yet: `streamed` is upstream's rule here. `narrow` is \
                 `qmv` in every mode, as the switch that it replaces was.\n\n";
        page += &self.routes(&Packing::FP);
        page += "\n## The promise, computed\n\n";
        page += COMPUTED;
        page += &self.promises();
        page += "\n## Three machines\n\n";
        page += &self.machines();
        page += "\n## Public statements about the limits\n\n";
        page += &self.statements();
        page
    }

    /// One row for the architectures that agree, a shape class and a way.
    fn routes(&self, packings: &[Packing]) -> String {
        let mut rows: BTreeMap<(Class, Vec<[String; 3]>), Vec<Architecture>> = BTreeMap::new();
        for class in Class::ALL {
            for architecture in Architecture::all() {
                let mut ways: Vec<[String; 3]> = packings
                    .iter()
                    .map(|&packing| {
                        Policy::ALL.map(|policy| {
                            let families = self.families(architecture, packing, class, policy);
                            families.map_or_else(|| "not measured".into(), ranges)
                        })
                    })
                    .collect();
                ways.dedup();
                rows.entry((class, ways)).or_default().push(architecture);
            }
        }
        let mut text = "| matrix | architectures | wide | narrow | streamed |\n\
                        |---|---|---|---|---|\n"
            .to_string();
        for ((class, ways), architectures) in rows {
            for [wide, narrow, streamed] in ways {
                let names = names(&architectures);
                let words = class.words();
                let _ = writeln!(text, "| {words} | {names} | {wide} | {narrow} | {streamed} |");
            }
        }
        text
    }

    fn promises(&self) -> String {
        type Cells<'a> = BTreeMap<(Policy, Family, Number, Architecture), Vec<&'a Computed>>;
        let mut cells = Cells::new();
        for computed in &self.computed {
            let Computed { architecture, policy, product, m, promise } = computed;
            // No family: a kernel of another kind, which the tests refuse.
            let block = promise.block.first().and_then(|kernel| Family::of(kernel, *m));
            let Some(family) = block else { continue };
            let key = (*policy, family, product.number, *architecture);
            cells.entry(key).or_default().push(computed);
        }
        // Architectures that agree share a row.
        let mut rows: BTreeMap<(Policy, Family, Number, usize, &str), Vec<Architecture>> =
            BTreeMap::new();
        for ((policy, family, number, architecture), cells) in cells {
            let kept = cells.iter().filter(|computed| computed.promise.kept()).count();
            // How many half products agree by chance is the draw's business.
            let verdict = match kept {
                0 => "none",
                kept if kept == cells.len() => "all",
                _ => "not all",
            };
            let row = (policy, family, number, cells.len(), verdict);
            rows.entry(row).or_default().push(architecture);
        }
        let mut text =
            "| policy | kernel of the block | type | architectures | products on each | \
                        identical to single rows |\n|---|---|---|---|---|---|\n"
                .to_string();
        for ((policy, family, number, products, verdict), architectures) in rows {
            let (policy, number) = (format!("{policy:?}"), format!("{number:?}"));
            let _ = writeln!(
                text,
                "| {} | {family} | {} | {} | {products} | {verdict} |",
                policy.to_lowercase(),
                number.to_lowercase(),
                names(&architectures),
            );
        }
        text
    }

    fn machines(&self) -> String {
        let mut text = "| machine | architecture | limits, K and N ≤ 2048 / ≤ 4096 / larger | \
                        two rows, affine, `wide` | two rows, mxfp4 |\n|---|---|---|---|---|\n"
            .to_string();
        for (machine, generation, size) in
            [("M1 Ultra", 13, 'd'), ("M3 Ultra", 15, 'd'), ("M5 Max", 17, 's')]
        {
            let architecture = Architecture { generation, size };
            let limits = Class::ALL.map(|class| {
                self.limit(architecture, class).map_or_else(|| "?".into(), |m| m.to_string())
            });
            let two = |packing| {
                self.families(architecture, packing, Class::Large, Policy::Wide)
                    .and_then(|families| families.get(1))
                    .map_or_else(|| "?".into(), ToString::to_string)
            };
            let _ = writeln!(
                text,
                "| {machine} | `{architecture}` | {} | {} | {} |",
                limits.join(" / "),
                two(Packing::affine(4, 64)),
                two(Packing::FP[0])
            );
        }
        text + "\nThe limit belongs to a projection, not to a model: a model's is the smallest of \
                its projections'.\n"
    }

    fn statements(&self) -> String {
        let mut text = "| statement | where | at this pin |\n|---|---|---|\n".to_string();
        for statement in STATEMENTS {
            let verdict = statement.verdict(self);
            let _ = writeln!(text, "| {} | {} | {verdict} |", statement.says, statement.place);
        }
        text
    }
}

/// `1 qmv, 2–12 wide, 13– qmm`.
fn ranges(families: &[Family]) -> String {
    let mut parts: Vec<(usize, usize, String)> = Vec::new();
    for (index, family) in families.iter().enumerate() {
        let m = index + 1;
        match parts.last_mut() {
            Some((_, last, name)) if *name == family.to_string() => *last = m,
            _ => parts.push((m, m, family.to_string())),
        }
    }
    let words = parts.iter().map(|(first, last, name)| {
        if *last == MOST_ROWS as usize {
            format!("{first}– {name}")
        } else if first == last {
            format!("{first} {name}")
        } else {
            format!("{first}–{last} {name}")
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `g13 p g s c d, g14 p g`.
fn names(architectures: &[Architecture]) -> String {
    let mut generations: BTreeMap<u32, String> = BTreeMap::new();
    for architecture in architectures {
        let sizes = generations.entry(architecture.generation).or_default();
        sizes.push(' ');
        sizes.push(architecture.size);
    }
    let parts = generations.iter().map(|(generation, sizes)| format!("g{generation}{sizes}"));
    parts.collect::<Vec<_>>().join(", ")
}

const HEAD: &str = "\
<!-- Made by `cargo run -p mlx-overlay-fake-device --bin routing-table`; a test holds it. -->
# Which kernel a quantized product takes

Measured on a **fake device on x86-64 Linux**: MLX's own Metal host code of the laid tree at pin
9a795735, its graph API in front, a stand-in for Apple's GPU behind, which reports any
`applegpu_g<NN><size>` and records what it is asked for. **Nothing here ran on Apple hardware**, and
nothing here says how fast anything is.

Left out of the build: the NAX kernels, which need Apple's newest SDK. They change what a
generation-17 GPU (18 for phones) does at and above the limit (`qmm` here), and nothing below it.

- M is the number of rows of x; the product is transposed, x [M, K] by w [N, K]. Rows of 64 or 128
  with 2, 4 or 8 bits go to `qmv_quad` below the limit, whatever the policy; the tables show larger K.
- `qmv` is one vector a threadgroup, `wide` is upstream's tile of vectors in an order of its own,
  `streamed` is the overlay's tile in `qmv`'s order, `qmm` is a matrix product.
- The policy is a stream's, else the process's, else the environment's, else `wide`. Types and group
  sizes change names, not ways.
- A batch of matrices, x [B, T, K] by w [B, N, K], goes the way of M = T. By one w [N, K], as in a layer, x
  is M = B·T rows and so reaches the limit sooner; M stays T only where each matrix of x has
  its rows side by side and x as a whole has not: matrices that lie apart, are permuted or broadcast.
- `streamed` stands here without the runtime's guard: with it, what was not certified runs `narrow`
  ([runtime.md](runtime.md)).
";

const COMPUTED: &str = "\
The device runs what it is asked for: the laid tree's kernels, compiled for this host in Apple's mode
(see the harness). Each product of M rows (M = 2, 3, 4, 5, 7, 9, 12; 3, 4 and 8 bits; fast and generic
shapes; rows of 64 and 128 in 4 bits, which go to `qmv_quad`; one batch) is compared with its rows computed one by
one, bit for bit, through MLX's own API. That is on one architecture for each way the rule goes below the limit;
on the others 4 bits and M = 2, 5, 7. Upstream's own kernels, as Apple compiled them for the released wheel, say
the same in a test; so do the fp modes' there: `wide` breaks the promise on every generation, `narrow` keeps
it (the order within a four-wide dot product is Apple's business, and assumed).

Not computed: matrix products, and so nothing at or above the limit; the copies that MLX makes first of an x
that is not contiguous, or under `streamed` does not start at a multiple of four values, which are only routed.

";
