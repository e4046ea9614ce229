//! Floats of at most eight bits.

use crate::loops::kernel::Unary;

/// A format of floats of at most eight bits: sign, exponent, mantissa, from the highest bit used to the lowest.
///
/// Source: OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2), OCP Microscaling Formats 1.0 (E2M1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minifloat {
    /// Four exponent bits, three mantissa bits: at most 448, no infinity, NaN is `S.1111.111`.
    E4M3,
    /// Five exponent bits, two mantissa bits: at most 57344, infinities and NaN as in IEEE 754.
    E5M2,
    /// Two exponent bits, one mantissa bit, in the low half of a byte: at most 6, no infinity and no NaN.
    E2M1,
}

impl Minifloat {
    /// The numbers of exponent and mantissa bits.
    const fn bits(self) -> (u32, u32) {
        match self {
            Self::E4M3 => (4, 3),
            Self::E5M2 => (5, 2),
            Self::E2M1 => (2, 1),
        }
    }

    /// The exponent of 1: `2^(bits − 1) − 1`.
    const fn bias(self) -> i32 {
        (1 << (self.bits().0 - 1)) - 1
    }

    /// The maximum finite value.
    pub const fn max(self) -> f32 {
        match self {
            Self::E4M3 => 448.0,
            Self::E5M2 => 57344.0,
            Self::E2M1 => 6.0,
        }
    }

    /// The code of the nearest value, halves to even. Magnitudes above [`Self::max`], infinities too, become
    /// it; NaN becomes NaN, and 0 in E2M1.
    #[inline(always)]
    pub fn encode(self, x: f32) -> u8 {
        let (exponent, mantissa) = self.bits();
        let least = 1 - self.bias();
        let sign = u8::from(x.is_sign_negative()) << (exponent + mantissa);
        if x.is_nan() {
            return if matches!(self, Self::E2M1) { 0 } else { sign | 0x7F };
        }
        let size = x.abs().min(self.max());
        // The binade of `size`; all below the least normal number share one.
        let binade = ((size.to_bits() >> 23) as i32 - 127).max(least);
        // A number of units in the last place. The product is exact: the unit is a power of two of a normal
        // exponent, and what underflows in it is nearer to 0 than half a unit.
        let units = (size * power(mantissa as i32 - binade)).round_ties_even() as i32;
        // A carry of the mantissa is the next exponent.
        let code = ((binade - least) << mantissa) + units;
        sign | code as u8
    }

    /// The value of a code. Bits above those of the format are ignored.
    #[inline(always)]
    pub fn decode(self, code: u8) -> f32 {
        let (exponent, mantissa) = self.bits();
        let magnitude = i32::from(code) & ((1 << (exponent + mantissa)) - 1);
        let (high, low) = (magnitude >> mantissa, magnitude & ((1 << mantissa) - 1));
        let size = match self {
            Self::E4M3 if magnitude == 0x7F => f32::NAN,
            Self::E5M2 if magnitude == 0x7C => f32::INFINITY,
            Self::E5M2 if magnitude > 0x7C => f32::NAN,
            _ => {
                // Subnormal numbers have the exponent of the smallest normal ones and no leading one.
                let leading = i32::from(high > 0) << mantissa;
                let unit = power(high.max(1) - self.bias() - mantissa as i32);
                (leading + low) as f32 * unit
            }
        };
        if code >> (exponent + mantissa) & 1 == 1 { -size } else { size }
    }
}

/// `2ᵏ` for the exponents of normal numbers.
#[inline(always)]
fn power(k: i32) -> f32 {
    f32::from_bits(((k + 127) as u32) << 23)
}

/// [`Minifloat::encode`] of every element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encode(pub Minifloat);

impl Unary<f32> for Encode {
    type Out = i8;
    const NAME: &'static str = "quantize";
    const COST: usize = 8;
    #[inline(always)]
    fn apply(self, x: f32) -> i8 {
        self.0.encode(x) as i8
    }
}

/// [`Minifloat::decode`] of every element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decode(pub Minifloat);

impl Unary<i8> for Decode {
    type Out = f32;
    const NAME: &'static str = "dequantize";
    const COST: usize = 8;
    #[inline(always)]
    fn apply(self, code: i8) -> f32 {
        self.0.decode(code as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Minifloat; 3] = [Minifloat::E4M3, Minifloat::E5M2, Minifloat::E2M1];

    /// The finite values that are not negative, ascending, with their codes.
    fn line(format: Minifloat) -> Vec<(f32, u8)> {
        let (exponent, mantissa) = format.bits();
        let codes = 0..1u8 << (exponent + mantissa);
        codes.map(|code| (format.decode(code), code)).filter(|(x, _)| x.is_finite()).collect()
    }

    #[test]
    fn published_values() {
        // The extremes of the tables of the two specifications.
        let values = |format: Minifloat, codes: [u8; 4]| codes.map(|code| format.decode(code));
        let e4m3 = values(Minifloat::E4M3, [0x7E, 0x08, 0x07, 0x01]);
        assert_eq!(e4m3, [448.0, 2f32.powi(-6), 0.875 * 2f32.powi(-6), 2f32.powi(-9)]);
        let e5m2 = values(Minifloat::E5M2, [0x7B, 0x04, 0x03, 0x01]);
        assert_eq!(e5m2, [57344.0, 2f32.powi(-14), 0.75 * 2f32.powi(-14), 2f32.powi(-16)]);
        let e2m1: Vec<f32> = line(Minifloat::E2M1).into_iter().map(|(x, _)| x).collect();
        assert_eq!(e2m1, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert!(Minifloat::E4M3.decode(0xFF).is_nan() && Minifloat::E5M2.decode(0x7D).is_nan());
        assert_eq!(Minifloat::E5M2.decode(0xFC), f32::NEG_INFINITY);
        assert_eq!(line(Minifloat::E4M3).len(), 127);
        assert_eq!(line(Minifloat::E5M2).len(), 124);
    }

    #[test]
    fn every_float_becomes_the_nearest_value() {
        for format in ALL {
            let line = line(format);
            assert!(line.windows(2).all(|w| w[0].0 < w[1].0));
            assert_eq!(line.last().unwrap().0, format.max());
            // Neighbours, the middle between them, and the floats beside it.
            for (i, w) in line.windows(2).enumerate() {
                let middle = 0.5 * (w[0].0 + w[1].0);
                let even = w[i % 2].1;
                let cases = [
                    (w[0].0, w[0].1),
                    (middle.next_down(), w[0].1),
                    (middle, even),
                    (middle.next_up(), w[1].1),
                    (w[1].0, w[1].1),
                ];
                for (x, code) in cases {
                    assert_eq!(format.encode(x), code, "{format:?} {x}");
                    assert_eq!(
                        format.decode(format.encode(-x)),
                        -format.decode(code),
                        "{format:?} {x}"
                    );
                }
            }
            for x in [format.max() * 1.01, f32::MAX, f32::INFINITY] {
                assert_eq!(format.decode(format.encode(x)), format.max());
                assert_eq!(format.decode(format.encode(-x)), -format.max());
            }
            for x in [f32::MIN_POSITIVE, 1e-45, -0.0] {
                assert_eq!(format.decode(format.encode(x)), 0.0);
            }
            let nan = format.decode(format.encode(f32::NAN));
            assert!(if format == Minifloat::E2M1 { nan == 0.0 } else { nan.is_nan() });
        }
    }
}
