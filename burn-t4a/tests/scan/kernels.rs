//! Recurrences in one kernel, on several backends, beside the same scan step by step.

use super::*;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::fused::{
    self, AssociativeScan, Cell, FloatMonoid, Running, System, associative_scan,
};

#[test]
fn recurrences_in_one_kernel_are_the_scan() {
    fn on<B: AutodiffBackend + ScanBackend + Operations>() {
        let [a, b] = [1, 2].map(|seed| random::<B, 2>([9, 3], seed).require_grad());
        let h0 = random::<B, 2>([1, 3], 3).require_grad();
        let h = fused::linear_recurrence(a.clone(), b.clone(), Some(h0.clone()), 0, false).unwrap();
        let step = |(): (), h: Tensor<B, 1>, (a, b): (Tensor<B, 1>, Tensor<B, 1>)| {
            let h = a * h + b;
            (h.clone(), h)
        };
        let memory = Options::default().memory(Memory::StoreAll);
        let (_, want): (Tensor<B, 1>, Tensor<B, 2>) =
            scan(step, (), h0.clone().reshape([3]), (a.clone(), b.clone()), &memory).unwrap();
        close(&numbers(h.clone()), &numbers(want.clone()), 1e-14);
        let (own, want) = (h.powi_scalar(2).sum().backward(), want.powi_scalar(2).sum().backward());
        for x in [a, b, h0] {
            close(&numbers(x.grad(&own).unwrap()), &numbers(x.grad(&want).unwrap()), 1e-13);
        }
        // The gradient of the sum of running products through a zero.
        let x = floats::<B>(&[2.0, 0.0, 3.0]).require_grad();
        let y = fused::cumulative(Running::Product, x.clone(), 0, false).unwrap();
        assert_eq!(numbers(x.grad(&y.sum().backward()).unwrap()), [1.0, 8.0, 0.0]);
    }
    on::<AD>();
    on::<Autodiff<Flex>>();
    on::<Autodiff<BurnT4a, BalancedCheckpointing>>();
}

#[test]
fn layers_and_filters_agree_between_backends() {
    fn layer<B: AutodiffBackend + Operations>() -> Vec<Vec<f64>> {
        let z = random::<B, 3>([4, 2, 12], 1).require_grad();
        let w = random::<B, 2>([3, 12], 2).require_grad();
        let first = vec![random::<B, 2>([2, 3], 3), random::<B, 2>([2, 3], 4)];
        let out = fused::recurrent(Cell::Lstm, z.clone(), w.clone(), None, first, false).unwrap();
        let h = out[0].clone();
        let grads = out[1].clone().powi_scalar(2).sum().backward();
        vec![numbers(h), numbers(z.grad(&grads).unwrap()), numbers(w.grad(&grads).unwrap())]
    }
    fn filter<B: AutodiffBackend + Operations>() -> Vec<Vec<f64>> {
        let unit = |n: usize| Tensor::<B, 2>::eye(n, &Default::default()).cast(FloatDType::F64);
        let noise = unit(2).require_grad();
        let system = System {
            transition: random::<B, 2>([2, 2], 1),
            process_noise: noise.clone(),
            observation: random::<B, 2>([1, 2], 2),
            observation_noise: unit(1),
        };
        let y = random::<B, 3>([2, 5, 1], 3);
        let (mean, _, likelihood) =
            fused::kalman_filter(system, y, floats::<B>(&[0.1, 0.2]), unit(2)).unwrap();
        let grads = likelihood.clone().sum().backward();
        vec![numbers(mean), numbers(likelihood), numbers(noise.grad(&grads).unwrap())]
    }
    let pairs =
        [(layer::<AD>(), layer::<Autodiff<Flex>>()), (filter::<AD>(), filter::<Autodiff<Flex>>())];
    for (own, want) in pairs {
        for (own, want) in own.into_iter().zip(want) {
            close(&own, &want, 1e-12);
        }
    }
}

#[test]
fn associative_scans_of_every_axis_are_the_scan() {
    let x = random::<AD, 2>([9, 5], 1).require_grad();
    let of = |monoid, axis, reverse| {
        let op = AssociativeScan { reverse, ..AssociativeScan::new(monoid, axis) };
        associative_scan(&op, vec![x.clone()]).unwrap().swap_remove(0)
    };
    for reverse in [false, true] {
        let down = of(FloatMonoid::Sum, 0, reverse);
        let across = sums(x.clone().transpose(), &Options::default().reverse(reverse)).1;
        close(&numbers(of(FloatMonoid::Sum, 1, reverse)), &numbers(across.transpose()), 1e-14);
        let own = x.grad(&down.clone().powi_scalar(2).sum().backward()).unwrap();
        let want = sums(x.clone(), &Options::default().reverse(reverse)).1;
        close(&numbers(down), &numbers(want.clone()), 1e-14);
        let want = x.grad(&want.powi_scalar(2).sum().backward()).unwrap();
        close(&numbers(own), &numbers(want), 1e-12);
    }
    let largest = numbers(of(FloatMonoid::Max, 0, true).narrow(0, 0, 1));
    assert_eq!(largest, numbers(x.clone().max_dim(0)));
}

#[test]
fn associative_scan_of_affine_maps() {
    let x = vec![floats::<AD>(&[2.0, 3.0, 5.0]), floats(&[1.0, 4.0, 2.0])];
    let y = associative_scan(&AssociativeScan::new(FloatMonoid::Affine, 0), x).unwrap();
    assert_eq!(numbers(y[0].clone()), [2.0, 6.0, 30.0]);
    assert_eq!(numbers(y[1].clone()), [1.0, 7.0, 37.0]);
    let x = random::<AD, 1>([5], 1).require_grad();
    let sum =
        associative_scan(&AssociativeScan::new(FloatMonoid::Sum, 0), vec![x.clone()]).unwrap();
    let gradient = x.grad(&sum[0].clone().sum().backward()).unwrap();
    assert_eq!(numbers(gradient), [5.0, 4.0, 3.0, 2.0, 1.0]);
}
