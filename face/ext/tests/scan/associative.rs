//! Associative scans against scans step by step.

use super::ext::scan::fused::{self, AssociativeScan, FloatMonoid, associative_scan};
use super::*;

#[test]
fn associative_scans_of_every_axis_are_the_scan() {
    let x = random::<2>([9, 5], 1).require_grad();
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
    let x = vec![floats(&[2.0, 3.0, 5.0]), floats(&[1.0, 4.0, 2.0])];
    let y = associative_scan(&AssociativeScan::new(FloatMonoid::Affine, 0), x).unwrap();
    assert_eq!(numbers(y[0].clone()), [2.0, 6.0, 30.0]);
    assert_eq!(numbers(y[1].clone()), [1.0, 7.0, 37.0]);
    let x = random::<1>([5], 1).require_grad();
    let sum =
        associative_scan(&AssociativeScan::new(FloatMonoid::Sum, 0), vec![x.clone()]).unwrap();
    let gradient = x.grad(&sum[0].clone().sum().backward()).unwrap();
    assert_eq!(numbers(gradient), [5.0, 4.0, 3.0, 2.0, 1.0]);
}

/// One part of each element is not on the tape.
#[test]
fn associative_scan_with_constant_elements() {
    let a = random::<1>([9], 1);
    let b = || random::<1>([9], 2).require_grad();
    let (x, z) = (b(), b());
    let affine = AssociativeScan::new(FloatMonoid::Affine, 0);
    let own = associative_scan(&affine, vec![a.clone(), x.clone()]).unwrap().swap_remove(1);
    let want = fused::linear_recurrence(a, z.clone(), None, 0, false).unwrap();
    close(&numbers(own.clone()), &numbers(want.clone()), 1e-14);
    let own = x.grad(&own.powi_scalar(2).sum().backward()).unwrap();
    let want = z.grad(&want.powi_scalar(2).sum().backward()).unwrap();
    close(&numbers(own), &numbers(want), 1e-13);
}
