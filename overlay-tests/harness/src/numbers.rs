//! Half and bfloat as bytes. Rust has no stable type for either.

use crate::kernels::Number;

impl Number {
    /// Half the distance from 1 to the next value: the relative error of one
    /// rounding to this type.
    #[must_use]
    pub fn rounding(self) -> f64 {
        match self {
            Self::Float | Self::Probe => f64::from(f32::EPSILON) / 2.0,
            Self::Half => 2f64.powi(-11),
            Self::Bfloat => 2f64.powi(-8),
        }
    }

    /// The relative error of one sum of two x in this type.
    #[must_use]
    pub fn sum_rounding(self) -> f64 {
        if self == Self::Probe { Self::Half.rounding() } else { self.rounding() }
    }

    /// Appends the nearest value of this type, in memory order. A probe is
    /// drawn from the halves, so that its sums are exact inputs of half sums.
    pub fn encode(self, value: f32, into: &mut Vec<u8>) {
        match self {
            Self::Float => into.extend(value.to_le_bytes()),
            Self::Half => into.extend(half_bits(value).to_le_bytes()),
            Self::Bfloat => into.extend(bfloat_bits(value).to_le_bytes()),
            Self::Probe => into.extend(half_value(half_bits(value)).to_le_bytes()),
        }
    }

    /// Reads all values of a buffer.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Vec<f64> {
        let word = |c: &[u8]| u16::from_le_bytes([c[0], c[1]]);
        match self {
            Self::Float | Self::Probe => bytes
                .chunks_exact(4)
                .map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]])))
                .collect(),
            Self::Half => bytes.chunks_exact(2).map(|c| f64::from(half_value(word(c)))).collect(),
            Self::Bfloat => bytes
                .chunks_exact(2)
                .map(|c| f64::from(f32::from_bits(u32::from(word(c)) << 16)))
                .collect(),
        }
    }
}

fn half_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | ((magnitude >> 13) & 0x1ff) as u16;
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    // Below 2^-14 the unit is fixed at 2^-24: adding 2^-1 in f32 rounds there.
    if magnitude < 0x3880_0000 {
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | (rounded.to_bits() - 0x3f00_0000) as u16;
    }
    let odd = (magnitude >> 13) & 1;
    sign | ((magnitude - 0x3800_0000 + 0xfff + odd) >> 13) as u16
}

fn half_value(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let value = match magnitude {
        0..=0x3ff => (magnitude as f32 * 2f32.powi(-24)).to_bits(),
        0x7c00.. => 0x7f80_0000 | ((magnitude & 0x3ff) << 13),
        _ => (magnitude << 13) + 0x3800_0000,
    };
    f32::from_bits(sign | value)
}

fn bfloat_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return ((bits >> 16) | 0x40) as u16;
    }
    (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_a_round_trip() {
        for bits in 0..=u16::MAX {
            let value = half_value(bits);
            if value.is_nan() {
                assert!(half_value(half_bits(value)).is_nan());
            } else {
                assert_eq!(half_bits(value), bits, "{bits:#06x} is {value}");
            }
        }
    }

    #[test]
    fn halves_round_to_even() {
        assert_eq!(half_bits(1.0 + 2f32.powi(-11)), 0x3c00);
        assert_eq!(half_bits(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02);
        assert_eq!(half_bits(65_519.0), 0x7bff);
        assert_eq!(half_bits(65_520.0), 0x7c00);
        assert_eq!(half_bits(2f32.powi(-25)), 0);
        assert_eq!(half_bits(1.5 * 2f32.powi(-24)), 2);
    }

    #[test]
    fn bfloats_round_to_even() {
        assert_eq!(bfloat_bits(1.0 + 2f32.powi(-8)), 0x3f80);
        assert_eq!(bfloat_bits(1.0 + 3.0 * 2f32.powi(-8)), 0x3f82);
        assert_eq!(bfloat_bits(f32::MAX), 0x7f80);
    }
}
