//! Fixed points x = f(θ, x) against formulas and finite differences.

use super::ext::scan::{FixedPoint, Method, ScanError, fixed_point, root};
use super::*;

const EXACT: FixedPoint = FixedPoint { tolerance: 1e-14, steps: 400, method: Method::Iterate };

/// x = tanh(W x + b), for a W of small norm, and y = x/2 of another shape.
type State = (Tensor<2>, Tensor<1>);

fn layer((w, b): (Tensor<2>, Tensor<2>), (x, y): State) -> State {
    ((w.matmul(x.clone()) * 0.3 + b + y.sum().reshape([1, 1]) * 0.1).tanh(), x.reshape([3]) * 0.5)
}

fn inputs() -> (Tensor<2>, Tensor<2>) {
    (random([3, 3], 1), random([3, 1], 2))
}

fn begin() -> State {
    (random([3, 1], 3), random([3], 4))
}

fn loss(consts: (Tensor<2>, Tensor<2>)) -> Tensor<1> {
    let (x, y) = fixed_point(layer, consts, begin(), &EXACT).unwrap();
    x.powi_scalar(3).sum() + (y * floats(&[1.0, -2.0, 0.5])).sum()
}

#[test]
fn solutions_do_not_change() {
    let (x, y) = fixed_point(layer, inputs(), begin(), &EXACT).unwrap();
    let (u, v) = layer(inputs(), (x.clone(), y.clone()));
    close(&numbers(x.clone()), &numbers(u), 1e-13);
    close(&numbers(y), &numbers(v), 1e-13);
    let zeros = (x.clone().zeros_like(), x.clone().reshape([3]).zeros_like());
    let (other, _) = fixed_point(layer, inputs(), zeros, &EXACT).unwrap();
    close(&numbers(x), &numbers(other), 1e-12);
}

#[test]
fn gradients_are_those_of_the_solution() {
    let (w, b) = inputs();
    let (w, b) = (w.require_grad(), b.require_grad());
    let found = loss((w.clone(), b.clone())).backward();
    let got = [numbers(w.grad(&found).unwrap()), numbers(b.grad(&found).unwrap())].concat();
    let value = |k: usize, step: f64| {
        let (w, b) = inputs();
        let mut unit = [0.0; 12];
        unit[k] = step;
        let w = w + floats(&unit[..9]).reshape([3, 3]);
        numbers(loss((w, b + floats(&unit[9..]).reshape([3, 1]))))[0]
    };
    let want: Vec<f64> = (0..12).map(|k| (value(k, 1e-5) - value(k, -1e-5)) / 2e-5).collect();
    close(&got, &want, 1e-8);
}

#[test]
fn what_does_not_converge_is_an_error() {
    let grows = |a: Tensor<1>, x: Tensor<1>| a * x + 1.0;
    let run = |a: f64, x: f64| {
        fixed_point(
            grows,
            floats(&[a]),
            floats(&[x]),
            &FixedPoint { tolerance: 1e-10, steps: 50, ..EXACT },
        )
    };
    close(&numbers(run(0.5, 7.0).unwrap()), &[2.0], 1e-9);
    assert!(matches!(run(-1.0, 7.0), Err(ScanError::NotConverged { steps: 50, .. })));
    let nan = run(f64::NAN, 1.0);
    assert!(matches!(nan, Err(ScanError::NotConverged { change, .. }) if change.is_nan()));
    let widens = |(): (), x: Tensor<1>| Tensor::cat(vec![x.clone(), x], 0);
    let found = fixed_point(widens, (), floats(&[1.0]), &EXACT);
    assert!(matches!(found, Err(ScanError::Carry { .. })), "{:?}", found.err());
    let kept = floats(&[0.5]).require_grad();
    let captures = move |a: Tensor<1>, x: Tensor<1>| x * kept.clone() + a;
    let found = fixed_point(captures, floats(&[1.0]).require_grad(), floats(&[1.0]), &EXACT);
    assert!(matches!(found, Err(ScanError::Captured { .. })), "{:?}", found.err());
}

/// Broyden's method finds the same fixed point as the iteration, in fewer steps, with the same derivatives.
#[test]
fn methods_agree() {
    let broyden = FixedPoint { method: Method::Broyden(20), steps: 60, ..EXACT };
    for memory in [3, 20] {
        let method = Method::Broyden(memory);
        let (x, y) =
            fixed_point(layer, inputs(), begin(), &FixedPoint { method, ..EXACT }).unwrap();
        let (u, v) = fixed_point(layer, inputs(), begin(), &EXACT).unwrap();
        close(&numbers(x), &numbers(u), 1e-12);
        close(&numbers(y), &numbers(v), 1e-12);
    }
    let gradients = [EXACT, broyden].map(|settings| {
        let (w, b) = inputs();
        let (w, b) = (w.require_grad(), b.require_grad());
        let (x, _) = fixed_point(layer, (w.clone(), b.clone()), begin(), &settings).unwrap();
        let found = x.powi_scalar(3).sum().backward();
        [numbers(w.grad(&found).unwrap()), numbers(b.grad(&found).unwrap())].concat()
    });
    close(&gradients[1], &gradients[0], 1e-11);
    // Steps that diverge from the solution.
    let grows = |a: Tensor<1>, x: Tensor<1>| a * x + 1.0;
    let (a, x) = (floats(&[3.0, -4.0, 0.5]), floats(&[1.0, 1.0, 1.0]));
    let x = fixed_point(grows, a, x, &broyden).unwrap();
    close(&numbers(x), &[-0.5, 0.2, 2.0], 1e-13);
}

/// x³ + x = a and y + x y = b, with the derivatives of the implicit function theorem.
#[test]
fn roots_and_their_derivatives() {
    type Pair = (Tensor<1>, Tensor<1>);
    let equations = |(a, b): Pair, (x, y): Pair| {
        (x.clone().powi_scalar(3) + x.clone() - a, y.clone() + x * y - b)
    };
    for (a, b) in [(2.0, 3.0), (10.0, -4.0), (0.3, 0.7)] {
        let (of_a, of_b) = (floats(&[a]).require_grad(), floats(&[b]).require_grad());
        let settings = FixedPoint { tolerance: 1e-13, steps: 200, method: Method::Broyden(20) };
        let begin = (floats(&[0.5]), floats(&[0.5]));
        let (x, y) = root(equations, (of_a.clone(), of_b.clone()), begin, &settings).unwrap();
        let (px, py) = (numbers(x.clone())[0], numbers(y.clone())[0]);
        close(&[px.powi(3) + px, py + px * py], &[a, b], 1e-12);
        let found = y.sum().backward();
        let slope = 1.0 / (3.0 * px * px + 1.0);
        close(&numbers(of_a.grad(&found).unwrap()), &[-py / (1.0 + px) * slope], 1e-11);
        close(&numbers(of_b.grad(&found).unwrap()), &[1.0 / (1.0 + px)], 1e-11);
    }
    // x² + 1 has no real root.
    let none = |(): (), x: Tensor<1>| x.powi_scalar(2) + 1.0;
    let error = root(none, (), floats(&[0.5]), &FixedPoint::default()).err();
    assert!(matches!(error, Some(ScanError::NotConverged { .. })), "{error:?}");
}
