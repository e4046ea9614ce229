//! Matrix exponential by scaling and squaring with Padé approximants.
//!
//! `e^A = (r(A/2ˢ))^(2ˢ)`, where `r` is the diagonal Padé approximant of degree 3, 5, 7, 9 or 13 that reaches machine
//! precision at the norm of `A/2ˢ`. For matrices far from normal the norms of powers determine `s`: overscaling costs
//! digits. For triangular matrices the diagonal and first superdiagonal are computed exactly.
//!
//! ```text
//! scaling      number of squarings from norms of powers
//! triangular   squaring of triangular matrices
//! ```
//!
//! The algorithm is generic over [`Matrices`]. Its Fréchet derivative `L(A, E)` is the same program on dual numbers,
//! at three times the cost; `dB = L(A, dA)` and `Ā = L(Aᴴ, B̄)`.
//!
//! Reference: N. Higham 2005, Table 2.3; A. Al-Mohy, N. Higham 2009 (a new scaling and squaring algorithm; the
//! Fréchet derivative); R. Mathias 1996.

mod op;
mod scaling;
#[cfg(test)]
mod tests;
mod triangular;

use t4a_tensor::Tensor;
use t4a_tensor::route::{Path, Route};

use crate::batch::{BatchShape, ResultBuffer, Views, is_finite};
use crate::error::{NON_FINITE, OVERFLOW, Result, SINGULAR, check};
use crate::scalar::{LinalgScalar, epsilon};
use crate::vocabulary::{Batched, DualMatrix, Matrices, RealMatrices};

use triangular::is_triangular;

pub use op::ExpmOp;

/// Degree of the approximant and number of squarings.
type ScalingPlan = (usize, i32);

const DEGREES: [usize; 5] = [3, 5, 7, 9, 13];
/// Norms up to which each degree reaches 2⁻⁵³.
const DOUBLE: [f64; 5] = [
    1.495585217958292e-2,
    2.53939833006323e-1,
    9.504178996162932e-1,
    2.097847961257068,
    5.371920351148152,
];
/// Norms up to which degrees 3, 5, 7 reach 2⁻²⁴.
const SINGLE: [f64; 3] = [4.258730016922831e-1, 1.880152677804762, 3.92572478313866];
/// The derivative needs a norm smaller by this factor (Al-Mohy, Higham 2009, Table 6.1).
const FRECHET: f64 = 0.7;
/// Number of squarings that cost less than the norms of powers that might reduce them.
const FEW: i32 = 3;

fn plan(norm: f64, epsilon: f64) -> ScalingPlan {
    let limits: &[f64] = if epsilon < 1e-10 { &DOUBLE } else { &SINGLE };
    match limits.iter().position(|&limit| norm <= limit) {
        Some(i) => (DEGREES[i], 0),
        None => {
            let last = limits.len() - 1;
            (DEGREES[last], (norm / limits[last]).log2().ceil() as i32)
        }
    }
}

/// Runs the algorithm with a degree and the number of squarings of each matrix.
fn exponential<M: Matrices>(a: &M, degree: usize, squarings: &[i32]) -> M {
    let most = squarings.iter().copied().max().unwrap_or(0);
    let each =
        |f: &dyn Fn(i32) -> f64| a.each(&squarings.iter().map(|&s| f(s)).collect::<Vec<_>>());
    let mut x = match most {
        0 => pade(a, degree),
        _ => pade(&times_powers(a, squarings.iter().map(|s| -s)), degree),
    };
    for left in (1..=most).rev() {
        let square = x.matmul(&x);
        // The last squarings apply to all matrices; selecting by multiplication with 0 would turn overflowed elements
        // into NaN.
        x = match squarings.iter().all(|&s| s >= left) {
            true => square,
            false => {
                let takes = each(&|s| f64::from(u8::from(s >= left)));
                let waits = each(&|s| f64::from(u8::from(s < left)));
                square.mul_real(&takes).add(&x.mul_real(&waits))
            }
        };
    }
    x
}

/// `2ᵉ A` with an exponent for each matrix, in two steps, since `2ᵉ` itself may overflow.
fn times_powers<M: Matrices>(a: &M, exponents: impl Iterator<Item = i32> + Clone) -> M {
    let power = |half: &dyn Fn(i32) -> i32| {
        a.each(&exponents.clone().map(|e| 2f64.powi(half(e))).collect::<Vec<_>>())
    };
    a.mul_real(&power(&|e| e / 2)).mul_real(&power(&|e| e - e / 2))
}

/// Diagonal Padé approximant of the exponential.
fn pade<M: Matrices>(a: &M, degree: usize) -> M {
    // Coefficients of the numerator: cⱼ = cⱼ₋₁ (m − j + 1)/((2m − j + 1) j).
    let mut c = vec![1.0];
    for j in 1..=degree {
        c.push(c[j - 1] * (degree - j + 1) as f64 / ((2 * degree - j + 1) * j) as f64);
    }
    let unit = a.identity(a.rows());
    let square = a.matmul(a);
    let mut powers = vec![unit, square.clone()];
    let (odd, even) = if degree == 13 {
        let fourth = square.matmul(&square);
        let sixth = square.matmul(&fourth);
        powers.extend([fourth, sixth.clone()]);
        let series = |first: usize, start: usize, count: usize| {
            combine(&powers[start..start + count], |i| c[first + 2 * i])
        };
        let high = |first: usize| sixth.matmul(&series(first, 1, 3));
        (high(9).add(&series(1, 0, 4)), high(8).add(&series(0, 0, 4)))
    } else {
        while powers.len() <= degree / 2 {
            powers.push(powers[powers.len() - 1].matmul(&square));
        }
        (combine(&powers, |i| c[2 * i + 1]), combine(&powers, |i| c[2 * i]))
    };
    let odd = a.matmul(&odd);
    even.sub(&odd).solve(&even.add(&odd))
}

/// `Σ c(i) xᵢ`.
fn combine<M: Matrices>(terms: &[M], c: impl Fn(usize) -> f64) -> M {
    let mut sum = terms[0].scale(c(0));
    for (i, term) in terms.iter().enumerate().skip(1) {
        sum = sum.add(&term.scale(c(i)));
    }
    sum
}

/// Degree required by the largest matrix of the batch, and the number of squarings of each matrix. The scaling of the
/// largest matrix would cost a small one accuracy.
fn plans<M: Matrices>(
    a: &M,
    factor: f64,
    sizes: impl Fn(&M) -> Result<Vec<f64>>,
) -> Result<(usize, Vec<i32>)> {
    // Matrices that are not finite are not scaled.
    let norms = sizes(a)?.into_iter().map(|norm| if norm.is_finite() { norm } else { 0.0 });
    let plans: Vec<ScalingPlan> =
        norms.map(|norm| plan((norm * factor).min(f64::MAX), a.epsilon())).collect();
    let degree = plans.iter().map(|plan| plan.0).max().unwrap_or(DEGREES[0]);
    let squarings: Vec<i32> = plans.into_iter().map(|plan| plan.1).collect();
    if squarings.iter().all(|&s| s <= FEW) {
        return Ok((degree, squarings));
    }
    let fewer = scaling::squarings(a, factor, sizes)?;
    Ok((degree, squarings.into_iter().zip(fewer).map(|(s, fewer)| s.min(fewer)).collect()))
}

/// `e^A` for any implementor of [`Matrices`], with the degree that the largest matrix of the batch requires.
///
/// # Errors
/// The first error of the operations that computed `a`.
pub fn exp<M: Matrices>(a: &M) -> Result<M> {
    let (degree, squarings) = plans(a, 1.0, M::norms)?;
    Ok(exponential(a, degree, &squarings))
}

/// `L(A, E)` for any implementor of [`Matrices`].
///
/// # Errors
/// As [`exp`].
pub fn jvp<M: Matrices>(a: &M, da: &M) -> Result<M> {
    // L(A, E) is linear in E, so E is scaled to the size of A.
    let (of_a, of_e) = (a.magnitude().power_of_two(), da.magnitude().power_of_two());
    let pair = DualMatrix::new(a.clone(), da.mul_real(&of_e.recip()).mul_real(&of_a));
    let (degree, squarings) = plans(&pair, 1.0 / FRECHET, scaling::of_block)?;
    let tangent = exponential(&pair, degree, &squarings).into_tangent();
    Ok(tangent.mul_real(&of_a.recip()).mul_real(&of_e))
}

/// `Ā = L(Aᴴ, B̄)` for any implementor of [`Matrices`].
///
/// # Errors
/// As [`exp`].
pub fn vjp<M: Matrices>(a: &M, b_cotangent: &M) -> Result<M> {
    jvp(&a.adjoint(), b_cotangent)
}

/// Matrix exponential `e^A`.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost about (7 + s) products and one system, `s` the number
/// of squarings, chosen for each matrix.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `Overflow` with the batch index.
pub fn expm<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let (out, info) = expm_ex(a)?;
    check("expm", &info, SINGULAR)?;
    Ok(out)
}

/// As [`expm`], with an info tensor of the batch's shape instead of an error: 0, or
/// [`NON_FINITE`], or [`OVERFLOW`] where the result exceeds the range of the type.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn expm_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<i32>)> {
    BatchShape::square("expm", a)?;
    by_plan("expm", a)
}

/// Exponentials of the matrices with a common plan, group by group: the scaling of the largest matrix of a batch
/// would cost a small one accuracy. Triangular matrices are computed one by one.
fn by_plan<T: LinalgScalar>(op: &'static str, a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<i32>)> {
    let shape = BatchShape::of(op, a)?;
    let n = shape.n;
    let views = Views::of(op, a)?;
    let norms = Batched::new(a).norms()?;
    let gather = |group: &[usize]| -> Result<Batched<T>> {
        let mut part = ResultBuffer::<T>::new(&[group.len()], n, n)?;
        for (mut slot, &index) in part.mats()?.into_iter().zip(group) {
            slot.copy_from(views.get(index));
        }
        Ok(Batched::new(&part.matrices(Route::native(Path::LoopIndex))?))
    };
    let mut plans: Vec<(ScalingPlan, Vec<usize>)> = Vec::new();
    let mut triangular = Vec::new();
    for (index, &norm) in norms.iter().enumerate().filter(|(_, norm)| norm.is_finite()) {
        if is_triangular(views.get(index)) {
            triangular.push(index);
            continue;
        }
        let mut plan = plan(norm, epsilon::<T>());
        if plan.1 > FEW {
            let (degree, squarings) = self::plans(&gather(&[index])?, 1.0, Batched::norms)?;
            plan = (degree, squarings[0]);
        }
        match plans.iter_mut().find(|(other, _)| *other == plan) {
            Some((_, group)) => group.push(index),
            None => plans.push((plan, vec![index])),
        }
    }
    let mut out = ResultBuffer::<T>::new(shape.batch, n, n)?;
    let mut targets = out.mats()?;
    let mut codes = vec![NON_FINITE; norms.len()];
    // Route of the last kernel of the first group.
    let mut route = None;
    let mut write = |group: &[usize], result: Tensor<T>| -> Result<()> {
        route.get_or_insert(result.route());
        let views = Views::of(op, &result)?;
        for (at, &index) in group.iter().enumerate() {
            targets[index].copy_from(views.get(at));
            codes[index] = if is_finite(views.get(at)) { 0 } else { OVERFLOW };
        }
        Ok(())
    };
    for ((degree, squarings), group) in plans {
        let all = vec![squarings; group.len()];
        write(&group, exponential(&gather(&group)?, degree, &all).into_tensor()?)?;
    }
    if !triangular.is_empty() {
        write(&triangular, triangular::exp(&gather(&triangular)?.into_tensor()?)?)?;
    }
    for (target, &code) in targets.iter_mut().zip(&codes) {
        if code != 0 {
            crate::batch::ResultSlot::spoil(target);
        }
    }
    drop(targets);
    let route = route.unwrap_or(Route::native(Path::Empty));
    Ok((out.matrices(route)?, Tensor::from_vec(codes, shape.batch)?))
}
