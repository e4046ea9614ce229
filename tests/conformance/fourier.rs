//! Fourier transforms, which are `ModuleOps` in Burn 0.21.

use burn_backend::DType;

use crate::conform;
use crate::material::*;

const SUM: Ulps = Ulps(4096.0);

/// Operands of the given shapes, the first in every layout.
fn floats(shapes: &[&[usize]]) -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        for lay in LAYS {
            let operand = |(i, shape): (usize, &&[usize])| {
                let lay = if i == 0 { lay } else { Lay::RowMajor };
                Operand::new(shape, dtype, Values::Plain, lay, i)
            };
            out.push(Case { operands: shapes.iter().enumerate().map(operand).collect(), dim: 0 });
        }
    }
    out
}

/// Flex computes 64-bit transforms in 32 bits; the engine's own tests compare them with the definition.
fn in_32_bits(case: &Case) -> bool {
    case.operands[0].data.dtype == DType::F64
}

conform! {
    float;
    rfft: floats(&[&[3, 8]]), SUM, except in_32_bits, |_c, x| B::rfft(x, 1, None);
    irfft: floats(&[&[3, 5], &[3, 5]]), SUM, except in_32_bits, |_c, re, im| B::irfft(re, im, 1, None);
}
