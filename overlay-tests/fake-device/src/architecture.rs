//! The names Apple's GPUs give themselves.

use std::fmt;

/// The size classes, from phone to Ultra: the last letter of the name.
pub const SIZES: [char; 5] = ['p', 'g', 's', 'c', 'd'];
/// The generations the routing table covers.
pub const GENERATIONS: [u32; 5] = [13, 14, 15, 16, 17];

/// `applegpu_g<generation><size>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Architecture {
    /// The two digits.
    pub generation: u32,
    /// The size class.
    pub size: char,
}

impl Architecture {
    /// Every generation in every size.
    pub fn all() -> impl Iterator<Item = Self> {
        GENERATIONS.into_iter().flat_map(|generation| SIZES.map(|size| Self { generation, size }))
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "applegpu_g{}{}", self.generation, self.size)
    }
}
