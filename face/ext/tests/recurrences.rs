//! Recurrences in one kernel against the same scan step by step.

use burn_backend::FloatDType;

use super::arrays::{close, floats, random};
use super::ext::scan::fused::{
    self, AssociativeScan, Cell, FloatMonoid, Running, System, associative_scan,
};
use super::ext::scan::{Memory, Options, scan};
use super::{Tensor, device, numbers};

#[test]
fn recurrences_in_one_kernel_are_the_scan() {
    let [a, b] = [1, 2].map(|seed| random::<2>([9, 3], seed).require_grad());
    let h0 = random::<2>([1, 3], 3).require_grad();
    let h = fused::linear_recurrence(a.clone(), b.clone(), Some(h0.clone()), 0, false).unwrap();
    let step = |(): (), h: Tensor<1>, (a, b): (Tensor<1>, Tensor<1>)| {
        let h = a * h + b;
        (h.clone(), h)
    };
    let memory = Options::default().memory(Memory::StoreAll);
    let (_, want): (Tensor<1>, Tensor<2>) =
        scan(step, (), h0.clone().reshape([3]), (a.clone(), b.clone()), &memory).unwrap();
    close(&numbers(h.clone()), &numbers(want.clone()), 1e-14);
    let (own, want) = (h.powi_scalar(2).sum().backward(), want.powi_scalar(2).sum().backward());
    for x in [a, b, h0] {
        close(&numbers(x.grad(&own).unwrap()), &numbers(x.grad(&want).unwrap()), 1e-13);
    }
    // Gradient of the sum of running products that include a zero.
    let x = floats(&[2.0, 0.0, 3.0]).require_grad();
    let y = fused::cumulative(Running::Product, x.clone(), 0, false).unwrap();
    assert_eq!(numbers(x.grad(&y.sum().backward()).unwrap()), [1.0, 8.0, 0.0]);
}

/// Results and gradients of a layer, a filter and an associative scan, for comparison with another backend.
pub(crate) fn layers_and_filters() -> Vec<Vec<f64>> {
    let z = random::<3>([4, 2, 12], 1).require_grad();
    let w = random::<2>([3, 12], 2).require_grad();
    let first = vec![random::<2>([2, 3], 3), random::<2>([2, 3], 4)];
    let out = fused::recurrent(Cell::Lstm, z.clone(), w.clone(), None, first, false).unwrap();
    let layer = out[1].clone().powi_scalar(2).sum().backward();

    let unit = |n: usize| Tensor::<2>::eye(n, &device()).cast(FloatDType::F64);
    let noise = unit(2).require_grad();
    let system = System {
        transition: random::<2>([2, 2], 1),
        process_noise: noise.clone(),
        observation: random::<2>([1, 2], 2),
        observation_noise: unit(1),
    };
    let y = random::<3>([2, 5, 1], 3);
    let (mean, _, likelihood) =
        fused::kalman_filter(system, y, floats(&[0.1, 0.2]), unit(2)).unwrap();
    let filter = likelihood.clone().sum().backward();

    let [a, b] = [7, 8].map(|seed| random::<3>([5, 2, 2], seed).require_grad());
    let op = AssociativeScan::new(FloatMonoid::Affine, 0);
    let all = associative_scan(&op, vec![a.clone(), b]).unwrap();
    let affine = all[1].clone().sum().backward();
    vec![
        numbers(out[0].clone()),
        numbers(z.grad(&layer).unwrap()),
        numbers(w.grad(&layer).unwrap()),
        numbers(mean),
        numbers(likelihood),
        numbers(noise.grad(&filter).unwrap()),
        numbers(a.grad(&affine).unwrap()),
    ]
}
