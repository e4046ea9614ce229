//! Associative scans against scans step by step.

use burn_tensor::Int;

use super::ext::scan::fused::{self, AssociativeScan, FloatMonoid, associative_scan};
use super::ext::scan::{ScanError, associative_scan_with};
use super::kinds::{ints, read};
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

/// Products of 2 × 2 matrices, which do not commute, of all lengths, both ways, on every axis, against products one by one.
#[test]
fn associative_scan_by_a_function() {
    for n in 1..12 {
        for reverse in [false, true] {
            // Burn's `cat` may lose the gradient of a leaf that an earlier pass has reached, if another thread runs a pass.
            let x = random::<4>([2, n, 2, 2], n as u64).require_grad();
            let product = |a: Tensor<4>, b: Tensor<4>| a.matmul(b);
            let y = associative_scan_with(product, x.clone(), 1, reverse).unwrap();
            let at = |x: &Tensor<4>, t| x.clone().narrow(1, t, 1);
            let mut order: Vec<usize> = (0..n).collect();
            if reverse {
                order.reverse();
            }
            let mut one_by_one = vec![at(&x, order[0])];
            for &t in &order[1..] {
                let before = one_by_one[one_by_one.len() - 1].clone();
                one_by_one.push(before.matmul(at(&x, t)));
            }
            if reverse {
                one_by_one.reverse();
            }
            let want = Tensor::<4>::cat(one_by_one, 1);
            let gradient =
                |y: &Tensor<4>| x.grad(&y.clone().powi_scalar(2).sum().backward()).unwrap();
            close(&numbers(gradient(&y)), &numbers(gradient(&want)), 1e-12);
            close(&numbers(y), &numbers(want), 1e-13);
        }
    }
}

/// Integers and floats in one element, on the last axis.
#[test]
fn associative_scan_of_several_kinds() {
    let (x, labels) = (floats(&[3.0, 1.0, 2.0, 5.0, 4.0]), ints(&[0, 1, 2, 3, 4]));
    let larger = |(a, i): (Tensor<1>, Tensor<1, Int>), (b, j): (Tensor<1>, Tensor<1, Int>)| {
        let is_larger = b.clone().greater(a.clone());
        (a.mask_where(is_larger.clone(), b), i.mask_where(is_larger, j))
    };
    let (largest, place) = associative_scan_with(larger, (x, labels), 0, false).unwrap();
    assert_eq!(numbers(largest), [3.0, 3.0, 3.0, 5.0, 5.0]);
    assert_eq!(read(place), [0, 0, 0, 3, 3]);
}

#[test]
fn associative_scan_refuses_what_does_not_fit() {
    let first = |a: (Tensor<1>, Tensor<1>), _| a;
    let error = associative_scan_with(first, (floats(&[1.0, 2.0]), floats(&[1.0])), 0, false);
    assert!(
        matches!(error.unwrap_err(), ScanError::LengthMismatch { leading, .. } if leading == [2, 1])
    );
    let error =
        associative_scan_with(|a: Tensor<1>, _| a, floats(&[1.0, 2.0]), 1, false).unwrap_err();
    assert!(error.to_string().contains("axis 1 of a tensor of shape [2]"), "{error}");
    let shorter = |a: Tensor<1>, b| Tensor::<1>::cat(vec![a, b], 0);
    let error = associative_scan_with(shorter, floats(&[1.0, 2.0]), 0, false).unwrap_err();
    assert!(error.to_string().contains("combine maps"), "{error}");
}
