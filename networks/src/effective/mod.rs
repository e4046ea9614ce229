//! Effective operators: an operator between environments, as a map of the tensors of a bond, one site or two sites.
//!
//! ```text
//! mod       maps as sums of contractions
//! channels  which part of an operator acts on which side of a bond
//! ```
//!
//! A bond in the middle divides the operator: H = H_left ⊗ 1 + 1 ⊗ H_right + terms that cross the bond. H_left acts on the
//! left bond and the left site. As one matrix it costs a product of `(d D)² · d D` instead of one of `D² · d² D` for each
//! state of the operator's bond, and no product at all where environments are the identity. For terms between neighbours
//! nothing else remains but an operator of the two sites: 16 instead of 40 units of D³ for the spin-½ Heisenberg chain.

mod channels;

use t4a_algebra::{c64, parallel};
use t4a_linalg::krylov::Vector;
use t4a_structured::{GradedTensor, Sector, einsum};

pub(crate) use channels::Channels;

use crate::error::{NetworksError, Result};

/// The operators on one side of the bond in the middle, with the labels of their legs.
///
/// ```text
///                    left  right
/// bond of the ket      k     m
/// bond of the bra      b     n
/// site, ket            p     q
/// site, bra            s     t
/// operator's bond      a     d      c in the middle
/// ```
#[derive(Clone, Debug)]
struct Half<S> {
    operands: Vec<(&'static str, GradedTensor<S>)>,
    /// Labels of the result.
    output: &'static str,
    /// Size of its products with a tensor of the ket, divided by that of a product with an environment of one state.
    cost: usize,
}

/// A side of the bond in the middle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChainSide {
    Left,
    Right,
}

/// Subscripts of a contraction, its operands, and the number of those before the tensor of the ket.
type EffectiveTerm<S> = (String, Vec<GradedTensor<S>>, usize);

/// A sum of contractions with a tensor of the ket. The result has the same structure.
pub(crate) struct EffectiveMap<S> {
    terms: Vec<EffectiveTerm<S>>,
    cost: usize,
}

impl<S: Sector> EffectiveMap<S> {
    /// The sum of the products of two halves; `input` has the labels of the ket.
    fn new(input: &str, products: impl IntoIterator<Item = [Half<S>; 2]>) -> Self {
        let (mut terms, mut cost) = (Vec::new(), 0);
        for [left, right] in products {
            let labels = left.operands.iter().map(|&(labels, _)| labels);
            let labels =
                labels.chain([input]).chain(right.operands.iter().map(|&(labels, _)| labels));
            let labels: Vec<&str> = labels.collect();
            let subscripts = format!("{}->{}{}", labels.join(","), left.output, right.output);
            let before = left.operands.len();
            let operands = left.operands.into_iter().chain(right.operands);
            terms.push((subscripts, operands.map(|(_, x)| x).collect(), before));
            cost += left.cost + right.cost;
        }
        Self { terms, cost }
    }

    /// The effective operator of no site, on a matrix `[left, right]` of a bond.
    pub(crate) fn bond([left, right]: [&GradedTensor<S>; 2]) -> Self {
        let halves = [Half::environment("kcb", left, "b"), Half::environment("mcn", right, "n")];
        Self::new("km", [halves])
    }

    /// The effective operator of one site, on `[left, site, right]`.
    pub(crate) fn site([left, right]: [&GradedTensor<S>; 2], w: &GradedTensor<S>) -> Self {
        let halves =
            [Half::whole(("kab", left), ("aspc", w), "bs"), Half::environment("mcn", right, "n")];
        Self::new("kpm", [halves])
    }

    /// The effective operator of two sites, on `[left, site, site, right]`.
    pub(crate) fn pair(
        [left, right]: [&GradedTensor<S>; 2],
        [v, w]: [&GradedTensor<S>; 2],
    ) -> Self {
        let right = Half::whole(("mdn", right), ("ctqd", w), "tn");
        Self::new("kpqm", [[Half::whole(("kab", left), ("aspc", v), "bs"), right]])
    }

    /// The one of lower cost.
    fn or_cheaper(self, other: Self) -> Self {
        if self.cost <= other.cost { self } else { other }
    }

    /// The image of a tensor of the ket.
    pub(crate) fn apply(&self, x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
        let real =
            self.terms.iter().all(|(_, operands, _)| operands.iter().all(|x| x.im().is_none()));
        if real && x.im().is_some() {
            let [re, im] = [x.real_part(), x.imaginary_part()];
            return Ok(GradedTensor::from_real_imaginary(&self.apply(&re)?, &self.apply(&im)?)?);
        }
        let image = |(subscripts, operands, before): &EffectiveTerm<S>| {
            let mut all: Vec<&GradedTensor<S>> = operands.iter().collect();
            all.insert(*before, x);
            Ok::<_, NetworksError>(einsum(subscripts, &all)?.repartition(x.spec().rows())?)
        };
        let images = concurrently(&self.terms, x.spec().len(), image)?;
        Ok(sum(images)?.unwrap_or_else(|| x.zeros_of(x.spec())))
    }
}

impl<S: Sector> Half<S> {
    /// Nothing acts: `output` has the labels of the ket.
    fn idle(output: &'static str) -> Self {
        Self { operands: Vec::new(), output, cost: 0 }
    }

    /// An environment alone.
    fn environment(labels: &'static str, x: &GradedTensor<S>, output: &'static str) -> Self {
        let cost = x.spec().legs()[1].dim();
        Self { operands: vec![(labels, x.clone())], output, cost }
    }

    /// An environment and the operator of a site.
    fn whole(
        (labels, x): (&'static str, &GradedTensor<S>),
        (site, w): (&'static str, &GradedTensor<S>),
        output: &'static str,
    ) -> Self {
        let mut half = Self::environment(labels, x, output);
        half.operands.push((site, w.clone()));
        half
    }
}

/// The sum of tensors of one structure; `None` of no tensor.
fn sum<S: Sector>(mut terms: Vec<GradedTensor<S>>) -> Result<Option<GradedTensor<S>>> {
    if terms.is_empty() {
        return Ok(None);
    }
    let rest = terms.split_off(1);
    let first = terms.swap_remove(0);
    Ok(Some(first.add_terms(&vec![c64::ONE; rest.len()], &rest)?))
}

/// Values of a function in the order of its arguments, concurrently if it multiplies matrices of this many entries.
fn concurrently<T: Sync, R: Send>(
    items: &[T],
    entries: usize,
    f: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let steps = entries.saturating_mul(entries.isqrt());
    let mut values: Vec<Option<Result<R>>> = items.iter().map(|_| None).collect();
    parallel::for_each_mut(&mut values, parallel::worthwhile_steps(steps), |i, value| {
        *value = Some(f(&items[i]));
    });
    values.into_iter().flatten().collect()
}
