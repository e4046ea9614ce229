//! Tests of derivative rules, in f64 on the engine: finite differences, adjointness, and the engine's forward against
//! the portable definition.

use t4a_tensor::{AnyTensor, DType, Tensor};

use crate::array::{Array, Dual, Eager};
use crate::operation::{Kept, Operation, Outcome, Reverse, Value};

/// Checks forward, vjp, jvp and second derivatives of an operation at a point where it is smooth.
///
/// Tangents and cotangents are fixed pseudo-random numbers of size 1. With a central difference of step
/// `h = ε^⅓` the error is of the order of `ε^⅔` times third derivatives: `tolerance` is relative to the
/// largest entry, 1e-7 a good start.
///
/// # Panics
/// If a comparison fails, with the name and the size of the difference.
pub fn operation<O: Operation>(op: &O, inputs: &[Value<Eager>], tolerance: f64) {
    let name = op.name();
    let floats: Vec<usize> =
        (0..inputs.len()).filter(|&i| matches!(inputs[i], Value::Float(_))).collect();
    let tracked: Vec<bool> = inputs.iter().map(|x| matches!(x, Value::Float(_))).collect();
    let direction = |i: usize| tracked[i].then(|| noise(inputs[i].float(), 17 + i as u64));
    let tangents: Vec<Option<Eager>> = (0..inputs.len()).map(direction).collect();

    let portable = accept(op.portable(inputs, &tracked));
    let out = accept(op.forward(inputs, &tracked));
    for (own, given) in out.results.iter().zip(&portable.results) {
        close(&format!("{name}: the engine and the portable definition"), own, given, tolerance);
    }
    let cotangents: Vec<Option<Eager>> =
        out.results.iter().enumerate().map(|(i, y)| Some(noise(y, 91 + i as u64))).collect();

    // Both jvps against finite differences.
    let step = f64::EPSILON.cbrt();
    let at = |c: f64| -> Vec<Value<Eager>> {
        let shifted = |(x, t): (&Value<Eager>, &Option<Eager>)| match t {
            Some(t) => Value::Float(x.float().add(&t.scale(c))),
            None => x.clone(),
        };
        inputs.iter().zip(&tangents).map(shifted).collect()
    };
    let difference = |above: &Eager, below: &Eager| {
        // Entries that are equal infinities on both sides have difference 0.
        let still = above.equal(below);
        above.sub(below).fill(&still, 0.0).scale(0.5 / step)
    };
    let run = |inputs: &[Value<Eager>]| accept(op.forward(inputs, &tracked));
    let (above, below) = (at(step), at(-step));
    let (y_above, y_below) = (run(&above), run(&below));
    let duals: Vec<_> =
        inputs.iter().zip(&tangents).map(|(x, t)| x.clone().dual(t.clone())).collect();
    let dual_out = accept(op.jvp(&duals, &tracked));
    let fused_out = accept(op.fused_jvp(&duals, &tracked));
    let mut along = 0.0;
    for (i, (y, fused)) in dual_out.results.iter().zip(&fused_out.results).enumerate() {
        let want = difference(&y_above.results[i], &y_below.results[i]);
        let tangent = y.clone().into_tangent();
        close(&format!("{name}: jvp of result {i} and differences"), &tangent, &want, tolerance);
        let fused = fused.clone().into_tangent();
        close(&format!("{name}: fused jvp of result {i} and jvp"), &fused, &tangent, tolerance);
        along += cotangents[i].as_ref().map_or(0.0, |cotangent| inner(cotangent, &tangent));
    }

    // ⟨ȳ, J t⟩ = ⟨Jᵀ ȳ, t⟩ for both vjps, and an elementwise comparison between them.
    let keep = op.keep(&tracked);
    let kept = Kept::new(keep, inputs, &out);
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &tracked };
    let (vjp, fused) = (accept(op.vjp(&reverse)), accept(op.fused_vjp(&reverse)));
    for (which, cotangents) in [("vjp", &vjp), ("fused vjp", &fused)] {
        let dot = |&i: &usize| match (&cotangents[i], &tangents[i]) {
            (Some(cotangent), Some(t)) => inner(cotangent, t),
            _ => 0.0,
        };
        let back: f64 = floats.iter().map(dot).sum();
        let size = along.abs().max(back.abs()).max(1.0);
        assert!(
            (back - along).abs() <= 10.0 * tolerance * size,
            "{name}: {which} is not the adjoint of jvp: {back} and {along}"
        );
    }
    for &i in &floats {
        if let (Some(a), Some(b)) = (&vjp[i], &fused[i]) {
            assert_eq!(a.shape(), inputs[i].float().shape(), "{name}: cotangent {i}");
            close(&format!("{name}: both vjps of operand {i}"), a, b, tolerance);
        }
    }

    // A rule may skip what is not wanted: each operand alone gets the same cotangent.
    for &i in &floats {
        let only: Vec<bool> = (0..inputs.len()).map(|k| k == i).collect();
        let out = accept(op.forward(inputs, &only));
        let kept = Kept::new(op.keep(&only), inputs, &out);
        let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &only };
        for alone in [accept(op.vjp(&reverse)), accept(op.fused_vjp(&reverse))] {
            if let (Some(a), Some(b)) = (&alone[i], &fused[i]) {
                close(&format!("{name}: cotangent of operand {i} alone"), a, b, tolerance);
            }
        }
    }

    // Second order: the vjp of duals against finite differences of the vjp.
    if op.check_second_order().is_err() {
        return;
    }
    let gradient = |inputs: &[Value<Eager>], out: &Outcome<Eager>| {
        let kept = Kept::new(keep, inputs, out);
        accept(op.vjp(&Reverse { kept: &kept, ..reverse }))
    };
    let (g_above, g_below) = (gradient(&above, &y_above), gradient(&below, &y_below));
    let kept = Kept::new(keep, &duals, &dual_out);
    let cotangents: Vec<_> = cotangents.into_iter().map(|x| x.map(Dual::constant)).collect();
    let second = accept(op.vjp(&Reverse {
        kept: &kept,
        cotangents: &cotangents,
        hidden: &[],
        wanted: &tracked,
    }));
    for &i in &floats {
        if let (Some(second), Some(above), Some(below)) = (&second[i], &g_above[i], &g_below[i]) {
            let (second, want) = (second.clone().into_tangent(), difference(above, below));
            let what = format!("{name}: second derivative of operand {i} and differences");
            close(&what, &second, &want, 10.0 * tolerance);
        }
    }
}

/// An f64 array on the engine.
pub fn array(shape: &[usize], f: impl FnMut(usize) -> f64) -> Eager {
    let data: Vec<f64> = (0..shape.iter().product()).map(f).collect();
    Eager::from(Tensor::from_vec(data, shape).map(AnyTensor::from))
}

/// Pseudo-random numbers between −1 and 1 in the shape of x.
pub fn noise(x: &Eager, seed: u64) -> Eager {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    array(&x.shape(), |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
}

/// The elements as f64.
pub fn elements(x: &Eager) -> Vec<f64> {
    let wide = accept(accept(x.tensor()).clone().cast(DType::F64));
    accept(accept(wide.typed::<f64>()).to_vec())
}

fn inner(x: &Eager, y: &Eager) -> f64 {
    elements(x).iter().zip(elements(y)).map(|(a, b)| a * b).sum()
}

#[track_caller]
fn close(what: &str, x: &Eager, y: &Eager, tolerance: f64) {
    assert_eq!(x.shape(), y.shape(), "{what}");
    let (x, y) = (elements(x), elements(y));
    let size = y.iter().fold(1.0f64, |size, y| size.max(y.abs()));
    for (i, (x, y)) in x.iter().zip(&y).enumerate() {
        let same = (x - y).abs() <= tolerance * size || (x.is_nan() && y.is_nan()) || x == y;
        assert!(same, "{what}: element {i} is {x}, wanted {y}");
    }
}

#[track_caller]
fn accept<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
