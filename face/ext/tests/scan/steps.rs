//! Values: both directions, with and without xs and ys, zero steps, views.

use super::ext::scan::ScanError;
use super::ext::scan::fused::{self, Running};
use super::*;

#[test]
fn computes_factorial_like_recurrence() {
    let step = |(): (), c: Tensor<1>, x: Tensor<1>| {
        let c = c * x;
        (c.clone(), c)
    };
    let xs = floats(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    let (last, ys): (Tensor<1>, Tensor<2>) =
        scan(step, (), floats(&[1.0]), xs, &Options::default()).unwrap();
    assert_eq!((numbers(last), numbers(ys)), (vec![120.0], vec![1.0, 2.0, 6.0, 24.0, 120.0]));
}

#[test]
fn larger_iteration_count_with_constants_and_a_reduction() {
    // c ← c + ⟨w, x⟩, y = |x| over 2000 steps.
    let n = 2000;
    let step = |w: Tensor<1>, c: Tensor<1>, x: Tensor<1>| (c + (w * x.clone()).sum(), x.abs());
    let (w, xs) = (random::<1>([3], 1), random::<2>([n, 3], 2));
    let (last, ys): (Tensor<1>, Tensor<2>) =
        scan(step, w.clone(), floats(&[0.5]), xs.clone(), &Options::default()).unwrap();
    let want = numbers((xs.clone() * w.reshape([1, 3])).sum() + 0.5);
    close(&numbers(last), &want, 1e-13);
    assert_eq!(numbers(ys), numbers(xs.abs()));
}

/// Iterations of z² + c until |z| > 2: several carries, comparisons and masks.
#[test]
fn several_outputs_mandelbrot() {
    let points = [(-0.5, 0.0), (0.3, 0.5), (1.0, 1.0), (-2.1, 0.0), (-0.75, 0.2)];
    let of = |f: fn(&(f64, f64)) -> f64| floats(&points.iter().map(f).collect::<Vec<_>>());
    type Plane = (Tensor<1>, Tensor<1>);
    let step = |(a, b): Plane, (x, y, count): (Tensor<1>, Tensor<1>, Tensor<1>), (): ()| {
        let inside = (x.clone() * x.clone() + y.clone() * y.clone()).lower_equal_elem(4.0);
        let count = count.clone().mask_where(inside.clone(), count + 1.0);
        let next = x.clone() * x.clone() - y.clone() * y.clone() + a;
        let b = x.clone() * y.clone() * 2.0 + b;
        let (x, y) = (x.mask_where(inside.clone(), next), y.mask_where(inside, b));
        ((x.clone(), y, count), x)
    };
    let zeros = || floats(&[0.0; 5]);
    type Out = ((Tensor<1>, Tensor<1>, Tensor<1>), Tensor<2>);
    let ((_, _, count), xs): Out = scan(
        step,
        (of(|p| p.0), of(|p| p.1)),
        (zeros(), zeros(), zeros()),
        (),
        &Options::default().length(30),
    )
    .unwrap();
    let want = |&(a, b): &(f64, f64)| {
        let (mut x, mut y, mut count) = (0.0f64, 0.0f64, 0);
        while x * x + y * y <= 4.0 && count < 30 {
            (x, y, count) = (x * x - y * y + a, x * y * 2.0 + b, count + 1);
        }
        count as f64
    };
    assert_eq!(numbers(count), points.iter().map(want).collect::<Vec<_>>());
    assert_eq!(xs.dims(), [30, 5]);
}

#[test]
fn views_as_xs() {
    let xs = random::<2>([6, 4], 1);
    for xs in [
        xs.clone().narrow(0, 1, 4),
        xs.clone().transpose(),
        xs.clone().reshape([8, 3]),
        xs.flip([0]),
    ] {
        let want = numbers(fused::cumulative(Running::Sum, xs.clone(), 0, false).unwrap());
        close(&numbers(sums(xs, &Options::default()).1), &want, 1e-15);
    }
}

#[test]
fn without_xs() {
    // Fibonacci numbers: two carries, one y.
    let fibonacci =
        |(): (), (a, b): (Tensor<1>, Tensor<1>), (): ()| ((b.clone(), a.clone() + b), a);
    let init = || (floats(&[0.0]), floats(&[1.0]));
    let options = Options::default().length(6);
    type Out = ((Tensor<1>, Tensor<1>), Tensor<2>);
    let (_, ys): Out = scan(fibonacci, (), init(), (), &options).unwrap();
    assert_eq!(numbers(ys), [0.0, 1.0, 1.0, 2.0, 3.0, 5.0]);
    let (_, ys): Out = scan(fibonacci, (), init(), (), &options.reverse(true)).unwrap();
    assert_eq!(numbers(ys), [5.0, 3.0, 2.0, 1.0, 1.0, 0.0]);
    let scanned: Scanned<(Tensor<1>, Tensor<1>), Tensor<2>> =
        scan(fibonacci, (), init(), (), &Options::default());
    assert_eq!(scanned.err(), Some(ScanError::LengthRequired));
}

#[test]
fn without_ys() {
    let step = |(): (), c: Tensor<1>, x: Tensor<1>| (c + x, ());
    let (last, ()): (Tensor<1>, ()) =
        scan(step, (), floats(&[1.0]), floats(&[2.0, 3.0]), &Options::default()).unwrap();
    assert_eq!(numbers(last), [6.0]);
}

#[test]
fn without_ys_in_reverse_and_without_xs() {
    // c ← 2 c + x from the end: Horner's rule.
    let step = |(): (), c: Tensor<1>, x: Tensor<1>| (c * 2.0 + x, ());
    let options = Options::default().reverse(true);
    let (last, ()): (Tensor<1>, ()) =
        scan(step, (), floats(&[0.0]), floats(&[1.0, 2.0, 3.0]), &options).unwrap();
    assert_eq!(numbers(last), [1.0 + 2.0 * 2.0 + 4.0 * 3.0]);
    let step = |(): (), (a, b): (Tensor<1>, Tensor<1>), (): ()| ((b, a), ());
    let init = (floats(&[1.0]), floats(&[2.0]));
    let ((a, b), ()): ((Tensor<1>, Tensor<1>), ()) =
        scan(step, (), init, (), &options.length(5)).unwrap();
    assert_eq!((numbers(a), numbers(b)), (vec![2.0], vec![1.0]));
}

#[test]
fn length_0_without_xs_and_without_ys() {
    let options = Options::default().length(0);
    let step = |(): (), c: Tensor<1>, (): ()| (c.clone() * 2.0, (c.clone(), c.reshape([1, 1])));
    type Out = (Tensor<1>, (Tensor<2>, Tensor<3>));
    let (last, (y, z)): Out = scan(step, (), floats(&[3.0]), (), &options).unwrap();
    assert_eq!((numbers(last), y.dims(), z.dims()), (vec![3.0], [0, 1], [0, 1, 1]));
    let step = |(): (), c: Tensor<1>, (): ()| (c, ());
    let (last, ()): (Tensor<1>, ()) = scan(step, (), floats(&[3.0]), (), &options).unwrap();
    assert_eq!(numbers(last), [3.0]);
}

#[test]
fn ys_unlike_the_carry_in_both_directions() {
    // The carry is a scalar and y a matrix; two carries, one y.
    type Carry = (Tensor<1>, Tensor<1>);
    let step = |(): (), (sum, count): Carry, x: Tensor<1>| {
        let (sum, count) = (sum + x.clone().sum(), count + 1.0);
        let y = x.reshape([2, 1]) * (sum.clone() / count.clone()).reshape([1, 1]);
        ((sum, count), y)
    };
    let xs = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    for reverse in [false, true] {
        let x = floats(&xs.concat()).reshape([3, 2]);
        let ((sum, count), ys): (Carry, Tensor<3>) = scan(
            step,
            (),
            (floats(&[0.0]), floats(&[0.0])),
            x,
            &Options::default().reverse(reverse),
        )
        .unwrap();
        assert_eq!((numbers(sum), numbers(count)), (vec![21.0], vec![3.0]));
        let (mut want, mut sum) = ([[0.0; 2]; 3], 0.0);
        for k in 0..3 {
            let t = if reverse { 2 - k } else { k };
            sum += xs[t][0] + xs[t][1];
            want[t] = xs[t].map(|x| x * sum / (k + 1) as f64);
        }
        close(&numbers(ys), &want.concat(), 1e-15);
    }
}

/// A forward filter whose ys are flipped and scanned backwards: smoothing.
#[test]
fn two_passes_forward_and_reverse() {
    let step = |(): (), c: Tensor<1>, x: Tensor<1>| {
        let c = c * 0.5 + x;
        (c.clone(), (c, Tensor::ones_like(&floats(&[0.0]))))
    };
    let init = || floats(&[0.0]);
    type Out = (Tensor<1>, (Tensor<2>, Tensor<2>));
    let xs = floats(&[1.0, 2.0, 4.0]);
    let (_, (filtered, ones)): Out = scan(step, (), init(), xs, &Options::default()).unwrap();
    assert_eq!(numbers(ones), [1.0; 3]);
    let back = |xs: Tensor<2>, reverse| -> Vec<f64> {
        let xs = xs.reshape([3]);
        let (_, (ys, _)): Out =
            scan(step, (), init(), xs, &Options::default().reverse(reverse)).unwrap();
        numbers(ys)
    };
    let reversed = back(filtered.clone(), true);
    let mut flipped = back(filtered.flip([0]), false);
    flipped.reverse();
    assert_eq!(reversed, flipped);
    assert_eq!(reversed, [1.0 + 1.25 + 1.3125, 2.5 + 2.625, 5.25]);
}
