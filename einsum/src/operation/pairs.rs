//! Contractions of complex numbers over (+, ×).
//!
//! The engine either joins the parts and runs one complex product, or runs four real ones: both have the same number of
//! steps, and joined operands are written and read once more. Time of the former divided by that of the latter
//! (two-core AVX2 machine, one thread, alternating runs; bench `complex` compares the choice with four products):
//!
//! ```text
//!                         c64    c32                                   c64    c32
//! 4×4 · 4×4               0.26   0.26    1024×4 · 4×1024               0.82   0.80
//! 16×16 · 16×16           0.38   0.36    4096×64 vectors of 4 · 4×4    0.86   0.90
//! 64×64 · 64×64           0.90   0.87    1024×1024 · 1024×8            1.55   0.94
//! 128×128 · 128×128       1.01   1.00    1024×1024 · 1024×16           1.39   1.28
//! 512×512 · 512×512       0.94   1.16    1024×1024 · 1024×32           1.04   0.82
//! 1024×1024 · 1024×1024   1.11   1.00    1024×1024 · 1024              2.57   2.17
//! 32 of 64×64 · 64×64     0.87   0.92    100×100 · 100                 0.95   0.62
//! 1000 of 8×8 · 8×8       1.10   0.89    512×512, elementwise          1.15   1.31
//! mera_layer, d = 4       0.46   0.44    1024 · 1024, outer            0.71   0.70
//! ```

use t4a_diff::OnPairs;
use t4a_tensor::{DType, TensorError};

use super::{Contraction, Tag};
use crate::error::Result;
use crate::network::LabelId;
use crate::plan::Plan;
use crate::rules::Share;

/// Maximum number of elements of operands for which joining them costs less than three additional kernel calls.
const FEW: usize = 1 << 13;
/// Minimum number of steps per element of the operands for which the time to join them is negligible.
const STEPS: usize = 32;
/// Minimum m, n and k for which the blocking for two levels of cache, which only real products have, is faster.
const LARGE: usize = 768;

/// One operand is linear, two are bilinear, more are executed as steps.
pub(super) fn form<G: Tag>(op: &Contraction<G>) -> Result<OnPairs<Contraction<G>>> {
    if op.semiring.share() != Share::Linear {
        let (op, expected) = (op.semiring.name(), "real numbers");
        return Err(TensorError::DTypeUnsupported { op, dtype: DType::C64, expected }.into());
    }
    op.plan.check_unsliced()?;
    Ok(match op.plan.operands() {
        1 => OnPairs::Linear,
        2 => OnPairs::Bilinear { joined: is_joined(&op.plan), cotangent, in_place: false },
        _ => {
            let all = op.plan.steps()?;
            let joined = all.iter().all(|step| is_joined(&step.plan));
            let steps = all.iter().map(|step| (step.slots.to_vec(), op.step(&step.plan)));
            OnPairs::Steps { joined, steps: steps.collect() }
        }
    })
}

fn cotangent<G: Tag>(op: &Contraction<G>, i: usize) -> Result<Contraction<G>> {
    Ok(op.step(&op.plan.cotangent(i)?))
}

/// True if one complex product is not slower than four real ones.
fn is_joined(plan: &Plan) -> bool {
    let [step] = &plan.steps[..] else { return false };
    let product = |sizes: &mut dyn Iterator<Item = usize>| sizes.fold(1, usize::saturating_mul);
    let size =
        |ids: &[LabelId]| product(&mut ids.iter().map(|&id| plan.network.sizes[id as usize]));
    let [batch, m, n, k] = [&step.batch, &step.left, &step.right, &step.sum].map(|x| size(x));
    let shapes = plan.network.shapes.iter();
    let operands = shapes.map(|shape| product(&mut shape.iter().copied()));
    let operands = operands.fold(0, usize::saturating_add);
    let result = batch.saturating_mul(m).saturating_mul(n);
    m.min(n).min(k) < LARGE
        && (operands <= FEW
            // Joining the operands is cheaper than adding four results.
            || operands <= result.saturating_add(result / 2)
            || result.saturating_mul(k) / operands >= STEPS)
}
