//! A contraction of one or two operands in array operations, and its vjp.
//!
//! Over (+, ×) it is one batched matrix product. Over other semirings all its terms are materialised:
//!
//! ```text
//! t[β, m, k, n] = a[β, m, k] ⊗ b[β, k, n]          c = ⊕ₖ t
//! ```
//!
//! so its memory is that of all multiply-adds, unless the array type has a kernel. For selective sums the memory of the
//! reverse pass is that of the results: cotangents are scattered to the argmax terms. Otherwise it materialises the
//! terms again,
//! ```text
//! ā = Σₙ c̄ · ∂c/∂t · ∂t/∂a                         b̄ = Σₘ c̄ · ∂c/∂t · ∂t/∂b
//! ```

use t4a_diff::array::PairParts;
use t4a_diff::{Array, Integers};

use super::axes::Pairing;
use super::semiring::scaled;
use super::tag::Tag;
use crate::plan::Plan;
use crate::rules::Share;

/// Sizes of a batch of matrices, or of one with a last axis of lone labels.
fn sizes<A: Array, const N: usize>(x: &A) -> [usize; N] {
    x.shape().try_into().unwrap_or_else(|shape| unreachable!("{N} axes, given {shape:?}"))
}

/// `[β, m, n, lone]` summed over lone labels.
fn matrix<G: Tag, A: Array>(semiring: &G, x: &A) -> A {
    let [b, m, n, lone] = sizes(x);
    let x = if lone > 1 { semiring.sum(x, 3) } else { x.clone() };
    x.reshape(&[b, m, n])
}

/// Both operands broadcast to rank 4, `[β, m, k, n]`, with axes of size 1.
fn outer<A: Array>(a: &A, b: &A) -> [A; 2] {
    let ([batch, m, k], [_, _, n]) = (sizes(a), sizes(b));
    [a.reshape(&[batch, m, k, 1]), b.reshape(&[batch, 1, k, n])]
}

/// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]`, k > 0, and the argmax if wanted: the number of terms where the sum has
/// none.
fn multiply<G: Tag, A: Array>(
    semiring: &G,
    a: &A,
    b: &A,
    places: bool,
) -> (A, Option<A::Integers>) {
    if semiring.share() == Share::Linear {
        return (a.matmul(b), None);
    }
    if let Some(over) = semiring.kernel()
        && let Some(product) = a.semiring_matmul(b, over, places)
    {
        return product;
    }
    let ([batch, m, k], [_, _, n]) = (sizes(a), sizes(b));
    let [a, b] = outer(a, b);
    let terms = semiring.product(&a, &b);
    let c = if k > 1 { semiring.sum(&terms, 2) } else { terms.clone() };
    let places = places.then(|| {
        let (at, none) = semiring.argmax(&terms, 2);
        at.fill(&none, k as i64).reshape(&[batch, m, n])
    });
    (c.reshape(&[batch, m, n]), places)
}

/// The contraction, and its argmax if `wanted` and defined.
pub(super) fn contract<G: Tag, A: Array>(
    semiring: &G,
    plan: &Plan,
    operands: &[&A],
    wanted: bool,
) -> (A, Option<A::Integers>) {
    if plan.is_empty() {
        return (operands[0].full(&plan.shape(), semiring.zero()), None);
    }
    let step = Pairing::new(plan);
    let enter = |(i, x): (usize, &&A)| matrix(semiring, &step.enter(i, *x));
    let matrices: Vec<A> = operands.iter().enumerate().map(enter).collect();
    let (c, places) = match &matrices[..] {
        [a, b] => multiply(semiring, a, b, wanted && step.sums()),
        _ => (matrices[0].clone(), None),
    };
    (step.leave(&c, semiring.zero()), places)
}

/// The contraction of two complex operands over (+, ×), if the device has a kernel for complex numbers.
pub(super) fn contract_pairs<G: Tag, A: Array>(
    semiring: &G,
    plan: &Plan,
    operands: [PairParts<'_, A>; 2],
    conj: [bool; 2],
) -> Option<[A; 2]> {
    let step = Pairing::new(plan);
    let enter = |i: usize| operands[i].map(|x| Some(matrix(semiring, &step.enter(i, x?))));
    let [a, b] = [enter(0), enter(1)];
    let [a, b] = [&a, &b].map(|parts| parts.each_ref().map(Option::as_ref));
    let parts = A::complex_matmul(a, b, conj)?;
    Some(parts.map(|c| step.leave(&c, semiring.zero())))
}

/// Cotangents of the operands over a semiring other than (+, ×).
pub(super) fn vjp<G: Tag, A: Array>(
    semiring: &G,
    plan: &Plan,
    operands: &[&A],
    places: Option<&A::Integers>,
    g: &A,
) -> Vec<A> {
    let step = Pairing::new(plan);
    let g = step.enter_cotangent(g);
    let entered: Vec<A> = operands.iter().enumerate().map(|(i, x)| step.enter(i, *x)).collect();
    let cotangents = match &entered[..] {
        [x, y] => {
            let (a, b) = (matrix(semiring, x), matrix(semiring, y));
            match places {
                Some(places) => scattered(semiring, &a, &b, places, &g),
                None => shared(semiring, &a, &b, &g),
            }
        }
        _ => vec![g],
    };
    // A copied operand has derivative 0 at zeros of the semiring, even without a sum.
    let alone = entered.len() == 1;
    let leave = |(i, (x, g)): (usize, (&A, A))| {
        let [b, m, n, lone] = sizes(x);
        let mut g = g.reshape(&[b, m, n, 1]);
        if lone > 1 || alone {
            g = scaled(&semiring.weights(x, 3), &g);
        }
        step.leave_operand(i, &g)
    };
    entered.iter().zip(cotangents).enumerate().map(leave).collect()
}

/// Cotangents of the matrices of [`multiply`] for selective sums.
fn scattered<G: Tag, A: Array>(semiring: &G, a: &A, b: &A, places: &A::Integers, g: &A) -> Vec<A> {
    let [_, _, k] = sizes(a);
    let none = places.at_least(k as i64);
    let (at, g) = (places.fill(&none, 0), g.fill(&none, 0.0));
    let [ga, gb] = semiring.factors(&a.gather(2, &at), &b.gather(1, &at), &g);
    let zeros = |x: &A| x.full(&x.shape(), 0.0);
    vec![zeros(a).scatter_add(2, &at, &ga), zeros(b).scatter_add(1, &at, &gb)]
}

/// Cotangents of the matrices of [`multiply`] for sums with nonzero weights of all terms.
fn shared<G: Tag, A: Array>(semiring: &G, a: &A, b: &A, g: &A) -> Vec<A> {
    if let Some(over) = semiring.kernel()
        && let Some(cotangents) = a.semiring_cotangents(b, over, g)
    {
        return cotangents.into();
    }
    let ([batch, m, k], [_, _, n]) = (sizes(a), sizes(b));
    let [a, b] = outer(a, b);
    let weights = semiring.weights(&semiring.product(&a, &b), 2);
    let g = scaled(&weights, &g.reshape(&[batch, m, 1, n]));
    let [ga, gb] = semiring.factors(&a, &b, &g);
    vec![ga.sum(3).reshape(&[batch, m, k]), gb.sum(1).reshape(&[batch, k, n])]
}
