//! Derivatives of functions on trees against each other, against formulas, and nested.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData, activation};
use burn_t4a::ext::linalg;
use burn_t4a::ext::scan::{Memory, Options, Policy, ScanBackend, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::{
    DerivativeError, grad, hessian, hvp, jacfwd, jacrev, value_and_grad_with, vjp,
};
use burn_t4a_transforms::jvp::{Jvp, JvpError, constant, jvp, linearize};

type B = BurnT4a;
type A<B> = Autodiff<B>;

fn of<const N: usize>(x: [f64; N]) -> Tensor<B, 1> {
    Tensor::from_data(TensorData::from(x), (&T4aDevice, DType::F64))
}

fn read<const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().convert::<f64>().to_vec().unwrap()
}

#[track_caller]
fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} and {b}");
    }
}

/// The Rosenbrock function of n numbers, on any backend.
macro_rules! rosenbrock {
    ($x:expr) => {{
        let x = $x;
        let n = x.dims()[0];
        let (a, b) = (x.clone().slice([0..n - 1]), x.slice([1..n]));
        let valley = b - a.clone() * a.clone();
        (valley.clone() * valley * 100.0 + (-a + 1.0).powi_scalar(2)).sum()
    }};
}

/// By formula: the Hessian is tridiagonal.
fn rosenbrock_hessian(x: &[f64]) -> Vec<f64> {
    let n = x.len();
    let mut h = vec![0.0; n * n];
    for i in 0..n - 1 {
        h[i * n + i] += 1200.0 * x[i] * x[i] - 400.0 * x[i + 1] + 2.0;
        h[i * n + i + 1] -= 400.0 * x[i];
        h[(i + 1) * n + i] -= 400.0 * x[i];
        h[(i + 1) * n + i + 1] += 200.0;
    }
    h
}

#[test]
fn hessians_four_ways() {
    let x = [0.3, -0.7, 1.2, 0.5];
    let wanted = rosenbrock_hessian(&x);
    let h: Tensor<B, 2> = hessian(|x| rosenbrock!(x), of(x)).unwrap();
    close(&read(h), &wanted);
    // Forward over reverse, reverse over forward, reverse over reverse.
    let h: Tensor<B, 2> = jacfwd(|x| grad(|x| rosenbrock!(x), x).unwrap(), of(x)).unwrap();
    close(&read(h), &wanted);
    let h: Tensor<B, 2> = jacrev(
        |x: Tensor<A<B>, 1>| {
            let j: Tensor<A<B>, 2> = jacfwd(|x| rosenbrock!(x), x).unwrap();
            j.reshape([4])
        },
        of(x),
    )
    .unwrap();
    close(&read(h), &wanted);
    let h: Tensor<B, 2> = jacrev(|x| grad(|x| rosenbrock!(x), x).unwrap(), of(x)).unwrap();
    close(&read(h), &wanted);
}

#[test]
fn products_with_the_hessian_both_ways() {
    let (x, v) = ([0.3, -0.7, 1.2, 0.5], [1.0, -2.0, 0.5, 0.25]);
    let (g, hv) = hvp(|x| rosenbrock!(x), of(x), of(v)).unwrap();
    let h = rosenbrock_hessian(&x);
    let wanted: Vec<f64> =
        h.chunks(4).map(|row| row.iter().zip(&v).map(|(h, v)| h * v).sum()).collect();
    close(&read(hv), &wanted);
    close(&read(g), &read(grad(|x| rosenbrock!(x), of(x)).unwrap()));
    // The gradient of the derivative along v.
    let along = |x: Tensor<A<B>, 1>| {
        let v = Tensor::from_inner(of(v));
        jvp(|x| rosenbrock!(x), x, v).unwrap().1
    };
    close(&read(grad(along, of(x)).unwrap()), &wanted);
}

#[test]
fn jacobians_agree_and_have_the_shapes_of_both() {
    let x = Tensor::<B, 2>::from_data(
        TensorData::from([[0.3f64, -0.4, 0.5], [1.0, 0.2, -0.1]]),
        (&T4aDevice, DType::F64),
    );
    fn x_transposed<B: burn::tensor::backend::Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
        x.transpose()
    }
    let forward: Tensor<B, 4> = jacfwd(
        |x: Tensor<Jvp<B>, 2>| activation::softmax(x.clone(), 1).matmul(x_transposed(x)),
        x.clone(),
    )
    .unwrap();
    let backward: Tensor<B, 4> = jacrev(
        |x: Tensor<A<B>, 2>| activation::softmax(x.clone(), 1).matmul(x_transposed(x)),
        x.clone(),
    )
    .unwrap();
    assert_eq!(forward.dims(), [2, 2, 2, 3]);
    close(&read(forward), &read(backward));
    let wrong = jacfwd::<B, 2, 2, 3>(|x| x, x);
    assert!(matches!(wrong, Err(DerivativeError::Rank { required: 4, given: 3, .. })));
}

#[test]
fn values_and_more_beside_a_gradient() {
    let f = |(w, b): (Tensor<A<B>, 1>, [Tensor<A<B>, 1>; 1])| {
        let [b] = b;
        let y = w * 3.0 + b;
        ((y.clone() * y.clone()).sum(), (y, ()))
    };
    let (loss, (y, ()), (w, [b])) = value_and_grad_with(f, (of([1.0]), [of([2.0])])).unwrap();
    assert_eq!(
        (read(loss), read(y), read(w), read(b)),
        (vec![25.0], vec![5.0], vec![30.0], vec![10.0])
    );
}

#[test]
fn leaves_that_do_not_matter_have_zero_gradients() {
    let (a, b) =
        grad(|(a, _): (Tensor<A<B>, 1>, Tensor<A<B>, 1>)| a.sum(), (of([1.0]), of([2.0, 3.0])))
            .unwrap();
    assert_eq!((read(a), read(b)), (vec![1.0], vec![0.0, 0.0]));
    let g = grad(|_| Tensor::from_inner(of([1.0])), of([2.0])).unwrap();
    assert_eq!(read(g), [0.0]);
}

#[test]
fn bad_input_is_an_error() {
    let loss = grad(|x: Tensor<A<B>, 1>| x, of([1.0, 2.0]));
    assert!(matches!(loss, Err(DerivativeError::Loss { shape }) if shape.to_vec() == [2]));
    let (_, pullback) = vjp(|x: Tensor<A<B>, 1>| (x.clone(), vec![x]), of([1.0])).unwrap();
    let error = pullback.call((of([1.0, 2.0]), vec![of([1.0])])).unwrap_err();
    let DerivativeError::Cotangents { leaves } = error else { panic!("{error}") };
    assert_eq!(leaves.iter().map(|x| x.path.as_str()).collect::<Vec<_>>(), [".0"]);
    let (_, pullback) = vjp(|x: Tensor<A<B>, 1>| (x.clone(), vec![x]), of([1.0])).unwrap();
    let error = pullback.call((of([1.0]), vec![])).unwrap_err();
    assert!(matches!(error, DerivativeError::Structure { .. }), "{error}");
    let error = hvp(|x: Tensor<A<Jvp<B>>, 1>| x.sum(), of([1.0]), of([1.0, 2.0])).unwrap_err();
    assert!(matches!(error, DerivativeError::Jvp(JvpError::Leaves(_))), "{error}");
}

/// `d/dx (x · d/dy (x + y)) = 1`; with levels confused it were 2.
#[test]
fn perturbations_are_not_confused() {
    let one = || of([1.0]);
    // Forward over reverse.
    let f = |x: Tensor<Jvp<B>, 1>| {
        let slope = grad(|y| Tensor::from_inner(x.clone()) + y, x.clone()).unwrap();
        x * slope
    };
    assert_eq!(read(jvp(f, of([3.0]), one()).unwrap().1), [1.0]);
    // Forward over forward.
    let f = |x: Tensor<Jvp<B>, 1>| {
        let unit = constant(of([1.0])).unwrap();
        let (_, slope) = jvp(|y| constant(x.clone()).unwrap() + y, x.clone(), unit).unwrap();
        x * slope
    };
    assert_eq!(read(jvp(f, of([3.0]), one()).unwrap().1), [1.0]);
    // Reverse over forward.
    let f = |x: Tensor<A<B>, 1>| {
        let unit = Tensor::from_inner(of([1.0]));
        let (_, slope) = jvp(|y| constant(x.clone()).unwrap() + y, x.clone(), unit).unwrap();
        x * slope
    };
    assert_eq!(read(grad(f, of([3.0])).unwrap()), [1.0]);
    // Reverse over reverse.
    let f = |x: Tensor<A<B>, 1>| {
        let slope = grad(|y| Tensor::from_inner(x.clone()) + y, x.clone()).unwrap();
        x * slope
    };
    assert_eq!(read(grad(f, of([3.0])).unwrap()), [1.0]);
}

/// Levels in every order up to the fourth: x⁵ has the derivatives 5x⁴, 20x³, 60x², 120x.
/// Levels of one type in each other would share tangents, tapes and batches.
#[test]
fn levels_of_one_type_in_each_other_are_refused() {
    use burn_t4a_transforms::vmap::{Vmap, VmapError, vmap};
    let x = of([3.0]);
    // The inner tape would consume the outer one, and leave a gradient of 0.
    let mut inner = None;
    let outer = grad(
        |x: Tensor<A<B>, 1>| {
            let square = x.clone() * x.clone();
            inner = Some(grad(|y: Tensor<A<B>, 1>| (square.clone() * y).sum(), of([5.0])));
            square.sum()
        },
        x.clone(),
    );
    assert_eq!(inner.unwrap().unwrap_err(), DerivativeError::Nested);
    assert_eq!(read(outer.unwrap()), [6.0]);
    // The inner tangent would hold the outer one.
    let mut inner = None;
    let f = |x: Tensor<Jvp<B>, 1>| {
        let y = x.clone();
        inner = Some(jvp(|z: Tensor<Jvp<B>, 1>| y.clone() * z, of([5.0]), of([1.0])).map(drop));
        x
    };
    jvp(f, x.clone(), of([1.0])).unwrap();
    assert_eq!(inner.unwrap().unwrap_err(), JvpError::Nested);
    // Example by example of another batch.
    let found = std::cell::RefCell::new(None);
    let f = |x: Tensor<Vmap<B>, 1>| {
        let inner = vmap(|y: Tensor<Vmap<B>, 1>| x.clone() * y).call(of([1.0, 10.0]));
        *found.borrow_mut() = Some(inner.map(|_: Tensor<B, 1>| ()));
        x.clone()
    };
    let _: Tensor<B, 1> = vmap(f).call(of([2.0, 3.0])).unwrap();
    assert_eq!(found.into_inner().unwrap().unwrap_err(), VmapError::Nested);
    // After an error, and beside each other, they go on.
    assert_eq!(read(grad(|x: Tensor<A<B>, 1>| x.powi_scalar(2).sum(), x).unwrap()), [6.0]);
}

#[test]
fn four_levels() {
    let x = of([2.0]);
    let d4 = jvp(
        |x: Tensor<Jvp<B>, 1>| {
            grad(
                |x: Tensor<A<Jvp<B>>, 1>| {
                    let unit = Tensor::from_inner(constant(of([1.0])).unwrap());
                    let third = |x: Tensor<Jvp<A<Jvp<B>>>, 1>| {
                        grad(|x: Tensor<A<Jvp<A<Jvp<B>>>>, 1>| x.powi_scalar(5), x).unwrap()
                    };
                    jvp(third, x, unit).unwrap().1
                },
                x,
            )
            .unwrap()
        },
        x,
        of([1.0]),
    );
    close(&read(d4.unwrap().1), &[240.0]);
}

#[test]
fn operations_of_ours_are_differentiated_like_any_other() {
    let x = [3.0, 0.5, 0.2, 1.0];
    macro_rules! nuclear {
        ($x:expr) => {
            linalg::svd($x.reshape([2, 2])).unwrap().s.powi_scalar(3).sum()
        };
    }
    let h: Tensor<B, 2> = hessian(|x| nuclear!(x), of(x)).unwrap();
    let step = 1e-5;
    let mut wanted = vec![0.0; 16];
    for i in 0..4 {
        let at = |h: f64| {
            let mut x = x;
            x[i] += h;
            read(grad(|x| nuclear!(x), of(x)).unwrap())
        };
        for (j, (a, b)) in at(step).into_iter().zip(at(-step)).enumerate() {
            wanted[i * 4 + j] = (a - b) / (2.0 * step);
        }
    }
    for (a, b) in read(h).iter().zip(&wanted) {
        assert!((a - b).abs() < 1e-5, "{a} and {b}");
    }
    let (y, push) = linearize(|x: Tensor<Jvp<B>, 1>| nuclear!(x), of(x)).unwrap();
    let (value, pullback) = vjp(|x: Tensor<A<B>, 1>| nuclear!(x), of(x)).unwrap();
    close(&read(y), &read(value));
    let g = read(pullback.call(of([1.0])).unwrap());
    let v = [0.3, -1.0, 0.7, 0.1];
    close(&read(push(of(v)).unwrap()), &[g.iter().zip(&v).map(|(g, v)| g * v).sum()]);
}

/// The step of a pendulum under a push θ, and a measurement of it.
mod pendulum {
    use super::*;

    pub(super) fn moved<A: Backend>(theta: Tensor<A, 1>, x: Tensor<A, 1>) -> Tensor<A, 1> {
        let [angle, speed] = [0, 1].map(|i| x.clone().narrow(0, i, 1));
        let push = angle.clone().sin() * theta * 0.1;
        Tensor::cat(vec![angle + speed.clone() * 0.1, speed - push], 0)
    }

    pub(super) fn measured<A: Backend>(x: Tensor<A, 1>) -> Tensor<A, 1> {
        let [angle, speed] = [0, 1].map(|i| x.clone().narrow(0, i, 1));
        angle.clone() * angle + speed * 0.5
    }
}

/// A number of the filter, and its gradients in θ, the state and the measurements.
type Filtered = [Vec<f64>; 4];

const PUSH: f64 = 3.0;
const STATE: [f64; 2] = [0.8, -0.3];
const MEASURED: [f64; 7] = [0.5, 0.45, 0.1, -0.2, 0.3, 0.7, 0.4];

/// An extended Kalman filter that takes its Jacobians by `jacrev` in the body of a scan.
fn filter<A: Backend>(
    theta: Tensor<A, 1>,
    (x, p): (Tensor<A, 1>, Tensor<A, 2>),
    z: Tensor<A, 1>,
) -> ((Tensor<A, 1>, Tensor<A, 2>), Tensor<A, 1>) {
    let unit = Tensor::<A, 2>::eye(2, &x.device()).cast(x.dtype());
    let inner = Tensor::<Autodiff<A>, 1>::from_inner(theta.clone());
    let f: Tensor<A, 2> = jacrev(|x| pendulum::moved(inner.clone(), x), x.clone()).unwrap();
    let x = pendulum::moved(theta, x);
    let p = f.clone().matmul(p).matmul(f.transpose()) + unit * 0.01;
    let h: Tensor<A, 2> = jacrev(pendulum::measured, x.clone()).unwrap();
    let ph = p.clone().matmul(h.clone().transpose());
    let s = h.matmul(ph.clone()) + 0.1;
    let off = z - pendulum::measured(x.clone());
    let gain = ph.clone() / s.clone();
    let x = x + (gain.clone() * off.clone().reshape([1, 1])).reshape([2]);
    let s = s.reshape([1]);
    ((x, p - gain.matmul(ph.transpose())), off.clone() * off / s.clone() + s.log())
}

/// The same in a loop, with Jacobians by hand.
fn filter_by_hand(push: f64, mut x: [f64; 2], z: &[f64]) -> f64 {
    let (mut p, mut loss) = ([[0.5, 0.0], [0.0, 0.5]], 0.0);
    for z in z {
        let f = [[1.0, 0.1], [-0.1 * push * x[0].cos(), 1.0]];
        x = [x[0] + 0.1 * x[1], x[1] - 0.1 * push * x[0].sin()];
        let entry = |i: usize, j: usize| -> f64 {
            let terms = [0, 1].map(|k| [0, 1].map(|l| f[i][k] * p[k][l] * f[j][l]));
            terms.iter().flatten().sum::<f64>() + if i == j { 0.01 } else { 0.0 }
        };
        p = [0, 1].map(|i| [0, 1].map(|j| entry(i, j)));
        let h = [2.0 * x[0], 0.5];
        let ph = [0, 1].map(|i| p[i][0] * h[0] + p[i][1] * h[1]);
        let s = h[0] * ph[0] + h[1] * ph[1] + 0.1;
        let off = z - (x[0] * x[0] + 0.5 * x[1]);
        x = [0, 1].map(|i| x[i] + ph[i] / s * off);
        p = [0, 1].map(|i| [0, 1].map(|j| p[i][j] - ph[i] * ph[j] / s));
        loss += off * off / s + s.ln();
    }
    loss + x[0] - 2.0 * x[1]
}

/// [`filter_by_hand`] and its differences.
fn filtered_by_hand() -> Filtered {
    let all: Vec<f64> = [PUSH].into_iter().chain(STATE).chain(MEASURED).collect();
    let f = |all: &[f64]| filter_by_hand(all[0], [all[1], all[2]], &all[3..]);
    let slope = |i: usize| {
        let at = |d: f64| {
            let mut all = all.clone();
            all[i] += d;
            f(&all)
        };
        let h = 1e-3;
        (8.0 * (at(h) - at(-h)) - at(2.0 * h) + at(-2.0 * h)) / (12.0 * h)
    };
    let slopes: Vec<f64> = (0..all.len()).map(slope).collect();
    [vec![f(&all)], slopes[..1].to_vec(), slopes[1..3].to_vec(), slopes[3..].to_vec()]
}

fn filtered<A: ScanBackend>(
    [theta, x, z]: [Tensor<A, 1>; 3],
    options: &Options,
) -> [Tensor<A, 1>; 4]
where
    Autodiff<A>: ScanBackend,
{
    let [theta, x, z] =
        [theta, x, z].map(|x| Tensor::<Autodiff<A>, 1>::from_inner(x).require_grad());
    let p = Tensor::<Autodiff<A>, 2>::eye(2, &x.device()).cast(x.dtype()) * 0.5;
    let steps = z.clone().reshape([-1, 1]);
    type State<A> = (Tensor<Autodiff<A>, 1>, Tensor<Autodiff<A>, 2>);
    let ((last, _), losses): (State<A>, Tensor<Autodiff<A>, 2>) =
        scan(filter, theta.clone(), (x.clone(), p), steps, options).unwrap();
    let [angle, speed] = [0, 1].map(|i| last.clone().narrow(0, i, 1));
    let loss = losses.sum() + angle - speed * 2.0;
    let found = loss.backward();
    let of = |x: Tensor<Autodiff<A>, 1>| x.grad(&found).unwrap();
    [loss.inner(), of(theta), of(x), of(z)]
}

/// Values and gradients are those of the loop: under every policy, and recorded.
#[test]
fn a_kalman_filter_with_jacobians_in_a_scan() {
    let want = filtered_by_hand();
    let inputs = || [of([PUSH]), of(STATE), of(MEASURED)];
    let check = |got: [Tensor<B, 1>; 4]| {
        for (got, want) in got.into_iter().zip(&want) {
            close(&read(got), want);
        }
    };
    let bounded = [Policy::Sqrt, Policy::Carries, Policy::Segment(3), Policy::Revolve(1)];
    for memory in bounded.map(Memory::Bounded).into_iter().chain([Memory::StoreAll]) {
        check(filtered(inputs(), &Options::default().memory(memory)));
    }
    let record =
        |[theta, x, z]: [Tensor<Traced<B>, 1>; 3]| filtered([theta, x, z], &Options::default());
    let compiled = compile(record).fullgraph();
    check(compiled.call(inputs()).unwrap());
    check(compiled.call(inputs()).unwrap());
}
