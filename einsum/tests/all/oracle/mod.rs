//! The definition of an einsum as loops, and random networks.
#![allow(dead_code)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use t4a_algebra::{Scalar, Semiring};
use t4a_tensor::Tensor;

macro_rules! semirings {
    ($($(#[$doc:meta])* $name:ident($t:ty): $zero:expr, $one:expr, $add:expr, $mul:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl Semiring<$t> for $name {
            const ZERO: $t = $zero;
            const ONE: $t = $one;
            fn add(a: $t, b: $t) -> $t {
                ($add)(a, b)
            }
            fn mul(a: $t, b: $t) -> $t {
                ($mul)(a, b)
            }
        }
    )*};
}
semirings! {
    /// (max, +).
    Tropical(f64): f64::NEG_INFINITY, 0.0, f64::max, |a, b| a + b;
    /// (min, +).
    MinPlus(f64): f64::INFINITY, 0.0, f64::min, |a, b| a + b;
    /// (max, ×) on numbers ≥ 0.
    MaxTimes(f64): 0.0, 1.0, f64::max, |a, b| a * b;
    /// (or, and).
    Or(bool): false, true, |a, b| a | b, |a, b| a & b;
}

/// Labels of the operands and of the result, and a size per label.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) inputs: Vec<Vec<usize>>,
    pub(crate) output: Vec<usize>,
    pub(crate) sizes: Vec<usize>,
    /// Axes (operand, axis) of size 1, independent of the size of the label.
    pub(crate) ones: Vec<Vec<bool>>,
}

impl Case {
    /// Shape of each operand; repeated labels never broadcast.
    pub(crate) fn shapes(&self) -> Vec<Vec<usize>> {
        let shape = |(labels, ones): (&Vec<usize>, &Vec<bool>)| {
            let once = |l: &usize| labels.iter().filter(|&x| x == l).count() == 1;
            let size = |(l, &one): (&usize, &bool)| if one && once(l) { 1 } else { self.sizes[*l] };
            labels.iter().zip(ones).map(size).collect()
        };
        self.inputs.iter().zip(&self.ones).map(shape).collect()
    }

    /// Sizes of labels that occur in the output only.
    pub(crate) fn given(&self) -> Vec<(usize, usize)> {
        let inside = |l: &usize| self.inputs.iter().any(|t| t.contains(l));
        self.output.iter().filter(|l| !inside(l)).map(|&l| (l, self.sizes[l])).collect()
    }

    /// Size of a label in the result.
    pub(crate) fn size(&self, label: usize) -> usize {
        let shapes = self.shapes();
        let axes = self.inputs.iter().zip(&shapes).flat_map(|(t, s)| t.iter().zip(s));
        let sizes: Vec<usize> = axes.filter(|(l, _)| **l == label).map(|(_, n)| *n).collect();
        let other = sizes.iter().copied().find(|&n| n != 1);
        other.or(sizes.first().copied()).unwrap_or(self.sizes[label])
    }
}

/// `⊕` over every assignment of the labels, one term at a time.
pub(crate) fn naive<S: Semiring<T>, T: Scalar>(
    case: &Case,
    operands: &[&Tensor<T>],
) -> (Vec<usize>, Vec<T>) {
    let mut labels: Vec<usize> =
        case.inputs.iter().flatten().chain(&case.output).copied().collect();
    labels.sort_unstable();
    labels.dedup();
    let sizes: Vec<usize> = labels.iter().map(|&l| case.size(l)).collect();
    let shape: Vec<usize> = case.output.iter().map(|&l| case.size(l)).collect();
    let mut out = vec![S::ZERO; shape.iter().product()];
    let total: usize = sizes.iter().product();
    for flat in 0..total {
        let mut rest = flat;
        let mut value = BTreeMap::new();
        for (&l, &n) in labels.iter().zip(&sizes).rev() {
            value.insert(l, rest % n);
            rest /= n;
        }
        let mut term = S::ONE;
        for (x, t) in operands.iter().zip(&case.inputs) {
            let at = |(l, &n): (&usize, &usize)| if n == 1 { 0 } else { value[l] };
            let index: Vec<usize> = t.iter().zip(x.shape()).map(at).collect();
            term = S::mul(term, x.get(&index).unwrap());
        }
        let at = case.output.iter().zip(&shape).fold(0, |at, (l, n)| at * n + value[l]);
        out[at] = S::add(out[at], term);
    }
    (shape, out)
}

/// Networks of up to five tensors with hyperedges, repeated labels, sizes 1, 2 and 3, and outputs with any labels, also
/// repeated ones.
pub(crate) fn networks() -> impl Strategy<Value = Case> {
    let term = prop::collection::vec(0usize..6, 0..4);
    (
        prop::collection::vec(term, 1..5),
        prop::collection::vec(0usize..6, 0..4),
        prop::collection::vec(1usize..4, 6),
        prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.1), 4), 5),
    )
        .prop_map(|(inputs, output, sizes, ones)| {
            let ones = inputs.iter().zip(ones).map(|(t, o)| o[..t.len()].to_vec()).collect();
            Case { inputs, output, sizes, ones }
        })
}

/// Small integers as elements, different for every operand.
pub(crate) fn tensor<T: Scalar>(
    shape: &[usize],
    seed: usize,
    value: impl Fn(i64) -> T,
) -> Tensor<T> {
    Tensor::from_fn(shape, |i| value(((i * 7919 + seed * 104_729 + 13) % 11) as i64 - 4)).unwrap()
}
