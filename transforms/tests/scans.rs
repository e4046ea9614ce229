//! Transformations of scans inside of compiled functions stay loops: one instruction for each pass, however many steps there
//! are. Against the same transformations run eagerly.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::{FixedPoint, Options, ScanBackend, fixed_point, scan};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::{grad, hvp};
use burn_t4a_transforms::jvp::{Jvp, constant, jvp};
use burn_t4a_transforms::vmap::{Vmap, vmap};

type B = BurnT4a;
type T = Traced<B>;

const STEPS: usize = 12;

fn noise<A: ScanBackend, const D: usize>(shape: [usize; D], seed: usize) -> Tensor<A, D> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f64 / 5003.0 - 1.0;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&A::Device::default(), DType::F64))
}

/// A filter whose covariance does not depend on what is observed: for a batch of series it is computed once. A
/// third carry begins as a constant.
fn filter<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 1>, reverse: bool) -> Tensor<A, 1> {
    let step = |w: Tensor<A, 2>,
                (x, p, c): (Tensor<A, 2>, Tensor<A, 2>, Tensor<A, 1>),
                z: Tensor<A, 1>| {
        let p = w.clone().matmul(p).matmul(w.clone().transpose()) * 0.5
            + Tensor::<A, 2>::eye(3, &A::Device::default()).cast(DType::F64);
        let gain = p.clone().narrow(1, 0, 1) / (p.clone().narrow(0, 0, 1).narrow(1, 0, 1) + 1.0);
        let x = w.matmul(x);
        let error = z.clone() - x.clone().narrow(0, 0, 1).reshape([1]);
        let x = x + gain * error.clone().reshape([1, 1]);
        let c = c * 0.5 + x.clone().sum();
        ((x.clone(), p, c), (error, x.tanh()))
    };
    let device = A::Device::default();
    let zero = Tensor::<A, 2>::zeros([3, 1], (&device, DType::F64));
    let unit = Tensor::<A, 2>::eye(3, &device).cast(DType::F64);
    let one = Tensor::<A, 1>::ones([1], (&device, DType::F64));
    let options = Options::default().reverse(reverse);
    let ((x, p, c), (errors, xs)): (_, (Tensor<A, 2>, Tensor<A, 3>)) =
        scan(step, w, (zero, unit, one), zs, &options).unwrap();
    let (x, p, c): (Tensor<A, 2>, Tensor<A, 2>, Tensor<A, 1>) = (x, p, c);
    errors.powi_scalar(2).sum() + xs.sum() + x.sum() + p.sum() * 0.1 + c
}

fn of_batch<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 2>, reverse: bool) -> Tensor<A, 2> {
    let of = |(w, zs): (Tensor<Vmap<A>, 2>, Tensor<Vmap<A>, 1>)| filter(w, zs, reverse);
    vmap(of).in_axes((None, Some(0))).call((w, zs)).unwrap()
}

fn gradients_of_batch<A: ScanBackend>(
    w: Tensor<A, 2>,
    zs: Tensor<A, 2>,
    reverse: bool,
) -> (Tensor<A, 3>, Tensor<A, 2>) {
    let of = |(w, zs): (Tensor<Vmap<A>, 2>, Tensor<Vmap<A>, 1>)| {
        type Tape<A> = Autodiff<Vmap<A>>;
        let loss = |(w, zs): (Tensor<Tape<A>, 2>, Tensor<Tape<A>, 1>)| filter(w, zs, reverse);
        grad(loss, (w, zs)).unwrap()
    };
    vmap(of).in_axes((None, Some(0))).call((w, zs)).unwrap()
}

/// Along a direction of w: the constants of the loop move, and with them carries that begin as constants.
fn tangents<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 2>, reverse: bool) -> [Tensor<A, 1>; 2] {
    let zs: Tensor<A, 1> = zs.narrow(0, 0, 1).reshape([STEPS]);
    let along = w.clone() * 0.5 + 0.25;
    let of = |w: Tensor<Jvp<A>, 2>| {
        let zs: Tensor<Jvp<A>, 1> = constant::<A, Tensor<A, 1>>(zs.clone()).unwrap();
        filter(w, zs, reverse)
    };
    let (y, dy) = jvp(of, w, along).unwrap();
    [y, dy]
}

/// A gradient, and its derivative along a direction.
fn second<A: ScanBackend>(
    w: Tensor<A, 2>,
    zs: Tensor<A, 2>,
    reverse: bool,
) -> [(Tensor<A, 2>, Tensor<A, 1>); 2] {
    let zs: Tensor<A, 1> = zs.narrow(0, 0, 1).reshape([STEPS]);
    type Twice<A> = Autodiff<Jvp<A>>;
    let loss = |(w, zs): (Tensor<Twice<A>, 2>, Tensor<Twice<A>, 1>)| filter(w, zs, reverse);
    let along = (w.clone() * 0.5 + 0.25, zs.clone() * 0.1);
    let (g, hv) = hvp(loss, (w, zs), along).unwrap();
    [g, hv]
}

/// A function compiled and run eagerly, its results as lists of numbers, and the number of loops that it is.
macro_rules! compiled {
    ($f:ident, $loops:literal, $flat:expr) => {
        for reverse in [false, true] {
            let f = compile(move |(w, zs): (Tensor<T, 2>, Tensor<T, 2>)| $f::<T>(w, zs, reverse));
            let f = f.fullgraph();
            for seed in [1, 5] {
                let (w, zs) =
                    (noise::<B, 2>([3, 3], seed) * 0.5, noise::<B, 2>([4, STEPS], seed + 1));
                let flat = $flat;
                let got: Vec<TensorData> = flat(f.call((w.clone(), zs.clone())).unwrap());
                let want: Vec<TensorData> = flat($f::<B>(w, zs, reverse));
                for (got, want) in got.iter().zip(&want) {
                    assert_eq!(got.shape, want.shape);
                    for (a, b) in got.iter::<f64>().zip(want.iter::<f64>()) {
                        assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()), "{a} and {b}");
                    }
                }
            }
            let text = f.explain();
            assert_eq!(text.matches("= scan of").count(), $loops, "{text}");
            assert!(text.lines().count() < 140, "{text}");
        }
    };
}

#[test]
fn batches() {
    compiled!(of_batch, 1, |y: Tensor<B, 2>| vec![y.into_data()]);
}

#[test]
fn gradients_of_batches() {
    compiled!(gradients_of_batch, 2, |(w, zs): (Tensor<B, 3>, Tensor<B, 2>)| {
        vec![w.into_data(), zs.into_data()]
    });
}

#[test]
fn tangents_of_loops() {
    compiled!(tangents, 1, |all: [Tensor<B, 1>; 2]| all.map(Tensor::into_data).to_vec());
}

#[test]
fn second_derivatives() {
    compiled!(second, 2, |all: [(Tensor<B, 2>, Tensor<B, 1>); 2]| {
        all.into_iter().flat_map(|(w, zs)| [w.into_data(), zs.into_data()]).collect::<Vec<_>>()
    });
}

/// Solutions of x = f(θ, x) under transformations, against their formula: x = (x + a/x)/2 is the root of a.
#[test]
fn fixed_points() {
    fn root<A: ScanBackend>(a: Tensor<A, 1>) -> Tensor<A, 1> {
        let mean = |a: Tensor<A, 1>, x: Tensor<A, 1>| (x.clone() + a / x) * 0.5;
        let settings = FixedPoint { tolerance: 1e-14, steps: 100 };
        let one = a.ones_like().detach();
        fixed_point(mean, a, one, &settings).unwrap()
    }
    let a = || {
        Tensor::<B, 1>::from_data(
            TensorData::from([4.0f64, 9.0, 0.25]),
            (&Default::default(), DType::F64),
        )
    };
    let near = |got: TensorData, want: [f64; 3]| {
        for (a, b) in got.iter::<f64>().zip(want) {
            assert!((a - b).abs() <= 1e-12, "{a} and {b}");
        }
    };
    near(root(a()).into_data(), [2.0, 3.0, 0.5]);
    let slope = [0.25, 1.0 / 6.0, 1.0];
    let (_, dy): (Tensor<B, 1>, Tensor<B, 1>) = jvp(root::<Jvp<B>>, a(), a().ones_like()).unwrap();
    near(dy.into_data(), slope);
    near(grad(|a| root::<Autodiff<B>>(a).sum(), a()).unwrap().into_data(), slope);
    let batch = a().reshape([3, 1]);
    let all: Tensor<B, 2> = vmap(root::<Vmap<B>>).call(batch.clone()).unwrap();
    near(all.into_data(), [2.0, 3.0, 0.5]);
    let of = |a: Tensor<Vmap<B>, 1>| grad(|a| root::<Autodiff<Vmap<B>>>(a).sum(), a).unwrap();
    let all: Tensor<B, 2> = vmap(of).call(batch).unwrap();
    near(all.into_data(), slope);
    // −1/4 a^(−3/2).
    let (_, second) = hvp(|a| root::<Autodiff<Jvp<B>>>(a).sum(), a(), a().ones_like()).unwrap();
    near(second.into_data(), [-1.0 / 32.0, -1.0 / 108.0, -2.0]);
    let twice = grad(
        |a| {
            let slope = grad(|a| root::<Autodiff<Autodiff<B>>>(a).sum(), a).unwrap();
            slope.sum()
        },
        a(),
    );
    near(twice.unwrap().into_data(), [-1.0 / 32.0, -1.0 / 108.0, -2.0]);
}
