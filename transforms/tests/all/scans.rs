//! Transformations of scans inside of compiled functions stay loops: one instruction for each pass, however many steps there
//! are. Against the same transformations run eagerly.

use burn::backend::Autodiff;
use burn::tensor::{Bool, DType, Int, Tensor, TensorData};
use burn_t4a::ext::scan::{
    Branch, FixedPoint, Options, ScanBackend, cond, fixed_point, scan, switch, while_loop,
};
use burn_t4a::{BurnT4a, T4aDevice};
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

/// A state machine beside a filter: the sign of z is a token, which picks a row of w and is counted while it is 1; ys are
/// integers, truth values and floats.
fn tokens<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 1>, reverse: bool) -> Tensor<A, 1> {
    type State<A> = (Tensor<A, 2>, Tensor<A, 1, Int>, Tensor<A, 1, Bool>);
    let step = |(w, limit): (Tensor<A, 2>, Tensor<A, 1, Int>),
                (x, count, late): State<A>,
                (z, place): (Tensor<A, 1>, Tensor<A, 1, Int>)| {
        let is_one = z.clone().greater_elem(0.0);
        let token = is_one.clone().int();
        let row = w.select(0, token.clone() + place.clone());
        let moved = (x.clone() * 0.7 + row * z.reshape([1, 1])).tanh();
        let x = x.mask_where(late.clone().bool_not().reshape([1, 1]).expand([1, 3]), moved);
        let count = count + token;
        let late = late.bool_or(count.clone().greater_equal(limit));
        ((x.clone(), count.clone(), late.clone()), (x, count, late))
    };
    let device = A::Device::default();
    let places: Vec<i64> = (0..STEPS as i64).map(|t| t % 2).collect();
    let places = Tensor::<A, 1, Int>::from_ints(&places[..], &device);
    let limit = Tensor::<A, 1, Int>::from_ints([4], &device);
    let init = (
        Tensor::<A, 2>::zeros([1, 3], (&device, DType::F64)),
        Tensor::<A, 1, Int>::zeros([1], &device),
        Tensor::<A, 1, Bool>::from_bool([false].into(), &device),
    );
    let options = Options::default().reverse(reverse);
    type Ys<A> = (Tensor<A, 3>, Tensor<A, 2, Int>, Tensor<A, 2, Bool>);
    let ((x, count, late), (xs, counts, of_late)): (State<A>, Ys<A>) =
        scan(step, (w, limit), init, (zs, places), &options).unwrap();
    let counts = counts.float().cast(DType::F64) * 0.25;
    let both = (count.float() + late.float()).cast(DType::F64);
    let weighted = (xs.clone() * xs).sum_dim(2).reshape([STEPS, 1]) * counts;
    weighted.sum() + x.sum() * both + of_late.float().cast(DType::F64).sum() * 0.125
}

/// A root by as many steps as it takes, which differs between series, and then one of three functions of it, by the number of
/// steps.
fn root<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 1>) -> Tensor<A, 1> {
    type State<A> = (Tensor<A, 1>, Tensor<A, 2>, Tensor<A, 1, Int>);
    type Consts<A> = (Tensor<A, 1>, Tensor<A, 2>);
    let far =
        |(a, _): Consts<A>, (x, ..): State<A>| (x.powi_scalar(2) - a).abs().greater_elem(1e-3);
    let step = |(a, w): Consts<A>, (x, v, n): State<A>| {
        let v = (v.matmul(w) + x.clone().reshape([1, 1])).tanh();
        ((x.clone() + a / x) * 0.5, v, n + 1)
    };
    let device = A::Device::default();
    let init = (
        Tensor::<A, 1>::ones([1], (&device, DType::F64)),
        Tensor::<A, 2>::zeros([1, 3], (&device, DType::F64)),
        Tensor::<A, 1, Int>::zeros([1], &device),
    );
    let a = (zs.clone().narrow(0, 0, 1) * 6.0).exp() + zs.powi_scalar(4).sum();
    let (x, v, n) = while_loop(far, step, (a, w.clone()), init, &Options::default()).unwrap();
    type Both<A> = (Tensor<A, 1>, Tensor<A, 2>);
    let branches: Vec<Branch<Both<A>, Tensor<A, 1>>> = vec![
        Box::new(|(x, w): Both<A>| x * w.sum()),
        Box::new(|(x, _): Both<A>| x.sin() * 3.0),
        Box::new(|(x, w): Both<A>| x.clone() * x + w.powi_scalar(2).sum()),
    ];
    let y: Tensor<A, 1> = switch(n.clone().remainder_scalar(3), branches, (x, w)).unwrap();
    y + v.sum() + n.float().cast(DType::F64)
}

#[derive(Clone, Copy, PartialEq)]
enum Model {
    Filter,
    Tokens,
    Root,
}

/// A model and the direction of its loop.
#[derive(Clone, Copy)]
struct Case {
    model: Model,
    reverse: bool,
}

fn loss<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 1>, case: Case) -> Tensor<A, 1> {
    match case.model {
        Model::Filter => filter(w, zs, case.reverse),
        Model::Tokens => tokens(w, zs, case.reverse),
        Model::Root => root(w, zs),
    }
}

fn of_batch<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 2>, case: Case) -> Tensor<A, 2> {
    let of = |(w, zs): (Tensor<Vmap<A>, 2>, Tensor<Vmap<A>, 1>)| loss(w, zs, case);
    vmap(of).in_axes((None, Some(0))).call((w, zs)).unwrap()
}

fn gradients_of_batch<A: ScanBackend>(
    w: Tensor<A, 2>,
    zs: Tensor<A, 2>,
    case: Case,
) -> (Tensor<A, 3>, Tensor<A, 2>) {
    let of = |(w, zs): (Tensor<Vmap<A>, 2>, Tensor<Vmap<A>, 1>)| {
        type Tape<A> = Autodiff<Vmap<A>>;
        let loss = |(w, zs): (Tensor<Tape<A>, 2>, Tensor<Tape<A>, 1>)| loss(w, zs, case);
        grad(loss, (w, zs)).unwrap()
    };
    vmap(of).in_axes((None, Some(0))).call((w, zs)).unwrap()
}

/// Along a direction of w: the constants of the loop move, and with them carries that begin as constants.
fn tangents<A: ScanBackend>(w: Tensor<A, 2>, zs: Tensor<A, 2>, case: Case) -> [Tensor<A, 1>; 2] {
    let zs: Tensor<A, 1> = zs.narrow(0, 0, 1).reshape([STEPS]);
    let along = w.clone() * 0.5 + 0.25;
    let of = |w: Tensor<Jvp<A>, 2>| {
        let zs: Tensor<Jvp<A>, 1> = constant::<A, Tensor<A, 1>>(zs.clone()).unwrap();
        loss(w, zs, case)
    };
    let (y, dy) = jvp(of, w, along).unwrap();
    [y, dy]
}

/// A gradient, and its derivative along a direction.
fn second<A: ScanBackend>(
    w: Tensor<A, 2>,
    zs: Tensor<A, 2>,
    case: Case,
) -> [(Tensor<A, 2>, Tensor<A, 1>); 2] {
    let zs: Tensor<A, 1> = zs.narrow(0, 0, 1).reshape([STEPS]);
    type Twice<A> = Autodiff<Jvp<A>>;
    let loss = |(w, zs): (Tensor<Twice<A>, 2>, Tensor<Twice<A>, 1>)| loss(w, zs, case);
    let along = (w.clone() * 0.5 + 0.25, zs.clone() * 0.1);
    let (g, hv) = hvp(loss, (w, zs), along).unwrap();
    [g, hv]
}

/// A function compiled and run eagerly, its results as lists of numbers, and the number of loops that it is.
macro_rules! compiled {
    ($f:ident, $loops:literal, $flat:expr) => {
        let models = [Model::Filter, Model::Tokens, Model::Root];
        for (model, reverse) in models.into_iter().flat_map(|m| [(m, false), (m, true)]) {
            let case = Case { model, reverse };
            let f = compile(move |(w, zs): (Tensor<T, 2>, Tensor<T, 2>)| $f::<T>(w, zs, case));
            let f = f.fullgraph();
            for seed in [1, 5] {
                let (w, zs) =
                    (noise::<B, 2>([3, 3], seed) * 0.5, noise::<B, 2>([4, STEPS], seed + 1));
                let flat = $flat;
                let got: Vec<TensorData> = flat(f.call((w.clone(), zs.clone())).unwrap());
                let want: Vec<TensorData> = flat($f::<B>(w, zs, case));
                for (got, want) in got.iter().zip(&want) {
                    assert_eq!(got.shape, want.shape);
                    for (a, b) in got.iter::<f64>().zip(want.iter::<f64>()) {
                        assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()), "{a} and {b}");
                    }
                }
            }
            let text = f.explain();
            let name = if model == Model::Root { "= while_loop of" } else { "= scan of" };
            assert_eq!(text.matches(name).count(), $loops, "{text}");
            assert!(text.lines().count() < 140, "{text}");
        }
    };
}

#[test]
fn batches() {
    compiled!(of_batch, 1, |y: Tensor<B, 2>| vec![y.into_data()]);
}

/// Values, gradients and tangents of a batch against those of its series one by one, without a batch.
#[test]
fn a_batch_is_its_series_one_by_one() {
    fn near(got: TensorData, want: TensorData) {
        for (a, b) in got.iter::<f64>().zip(want.iter::<f64>()) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} and {b}");
        }
    }
    for model in [Model::Filter, Model::Tokens, Model::Root] {
        let case = Case { model, reverse: model == Model::Tokens };
        let (w, zs) = (noise::<B, 2>([3, 3], 1) * 0.5, noise::<B, 2>([4, STEPS], 2));
        let values = of_batch::<B>(w.clone(), zs.clone(), case);
        let (of_w, of_zs) = gradients_of_batch::<B>(w.clone(), zs.clone(), case);
        for k in 0..4 {
            let z: Tensor<B, 1> = zs.clone().narrow(0, k, 1).reshape([STEPS]);
            let one = loss(w.clone(), z.clone(), case);
            near(values.clone().narrow(0, k, 1).into_data(), one.into_data());
            let on_tape =
                |(w, z): (Tensor<Autodiff<B>, 2>, Tensor<Autodiff<B>, 1>)| loss(w, z, case);
            let (gw, gz) = grad(on_tape, (w.clone(), z.clone())).unwrap();
            near(of_w.clone().narrow(0, k, 1).into_data(), gw.clone().into_data());
            near(of_zs.clone().narrow(0, k, 1).into_data(), gz.into_data());
            // Along a direction, by the gradient.
            let along = w.clone() * 0.5 + 0.25;
            let of = |w: Tensor<Jvp<B>, 2>| {
                loss(w, constant::<B, Tensor<B, 1>>(z.clone()).unwrap(), case)
            };
            let (_, dy): (_, Tensor<B, 1>) = jvp(of, w.clone(), along.clone()).unwrap();
            near(dy.into_data(), (gw * along).sum().into_data());
        }
    }
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
        let settings = FixedPoint { tolerance: 1e-14, steps: 100, ..FixedPoint::default() };
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
    let f = compile(|a: Tensor<T, 1>| grad(|a| root::<Autodiff<T>>(a).sum(), a).unwrap());
    let f = f.fullgraph();
    for _ in 0..2 {
        near(f.call(a()).unwrap().into_data(), slope);
    }
    assert_eq!(f.explain().matches("= fixed_point of").count(), 2, "{}", f.explain());
}

/// One recording serves every number of steps and every branch; a loop beyond its limit is an error of the call.
#[test]
fn compiled_loops_and_choices_read_their_tests_at_every_call() {
    let of = |x: f64| Tensor::<B, 1>::from_data([x], (&Default::default(), DType::F64));
    let number = |x: Tensor<B, 1>| x.into_data().iter::<f64>().next().unwrap();
    let f = compile(|x: Tensor<T, 1>| {
        let options = Options::default().limit(10);
        let below = |(), x: Tensor<T, 1>| x.lower_elem(100.0);
        let x = while_loop(below, |(), x: Tensor<T, 1>| x * 2.0, (), x, &options).unwrap();
        let odd = (x.clone() * 0.5).floor().equal(x.clone() * 0.5).bool_not();
        let y: Tensor<T, 1> =
            cond(odd, |x: Tensor<T, 1>| -x, |x: Tensor<T, 1>| x + 0.5, x).unwrap();
        y
    });
    let f = f.fullgraph();
    for (x, want) in [(3.0, 192.5), (60.0, 120.5), (101.0, -101.0), (100.0, 100.5), (0.1, 102.4)] {
        let got = number(f.call(of(x)).unwrap());
        assert!((got.abs() - f64::abs(want)).abs() < 1e-12, "{x}: {got}");
    }
    let error = f.call(of(1e-6)).unwrap_err().to_string();
    assert!(error.contains("while_loop") && error.contains("10 steps"), "{error}");
    assert_eq!(f.counters().traces, 1);
    // Branches that return other shapes are refused before they run.
    let g = compile(|x: Tensor<T, 1>| {
        let branches: Vec<Branch<Tensor<T, 1>, Tensor<T, 1>>> =
            vec![Box::new(|x: Tensor<T, 1>| x), Box::new(|x: Tensor<T, 1>| x.repeat_dim(0, 2))];
        let index = x.clone().int();
        let found: Result<Tensor<T, 1>, _> = switch(index, branches, x.clone());
        let error = found.unwrap_err().to_string();
        assert!(error.contains("branch 0 returns") && error.contains("branch 1"), "{error}");
        x
    });
    g.call(of(1.0)).unwrap();
}

/// A compiled function under a map: tests and branch indices differ between examples, also if it was recorded on operands
/// that examples share.
#[test]
fn compiled_loops_of_a_batch() {
    type V = Traced<Vmap<B>>;
    for model in [Model::Filter, Model::Tokens, Model::Root] {
        let case = Case { model, reverse: false };
        let f = compile(move |(w, zs): (Tensor<V, 2>, Tensor<V, 1>)| loss(w, zs, case)).fullgraph();
        let (w, zs) = (noise::<B, 2>([3, 3], 1) * 0.5, noise::<B, 2>([4, STEPS], 2));
        let map =
            || vmap(|all: (Tensor<Vmap<B>, 2>, Tensor<Vmap<B>, 1>)| f.call(all).unwrap()).size(4);
        let shared: Tensor<B, 1> = zs.clone().narrow(0, 3, 1).reshape([STEPS]);
        let _: Tensor<B, 2> = map().in_axes(None).call((w.clone(), shared)).unwrap();
        let got: Tensor<B, 2> =
            map().in_axes((None, Some(0))).call((w.clone(), zs.clone())).unwrap();
        let want = of_batch::<B>(w, zs, case).into_data();
        for (a, b) in got.into_data().iter::<f64>().zip(want.iter::<f64>()) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} and {b}");
        }
        assert_eq!(f.counters().traces, 1);
    }
}

/// A tape around a compiled function has the rule of a solution, and no records of its iterations.
#[test]
fn gradients_of_a_compiled_solution_on_a_tape() {
    // x³ + x + Σ x / 10 = a.
    fn solved<A: ScanBackend>(a: Tensor<A, 1>) -> Tensor<A, 1> {
        let f = |a: Tensor<A, 1>, x: Tensor<A, 1>| {
            x.clone().powi_scalar(3) + x.clone() + x.sum() * 0.1 - a
        };
        let settings = FixedPoint { tolerance: 1e-13, ..FixedPoint::default() };
        burn_t4a::ext::scan::root(f, a.clone(), a, &settings).unwrap().powi_scalar(2).sum()
    }
    let a = noise::<B, 1>([5], 3);
    let want = grad(solved::<Autodiff<B>>, a.clone()).unwrap().into_data();
    let f = compile(solved::<Traced<Autodiff<B>>>).fullgraph();
    let got = grad(|a: Tensor<Autodiff<B>, 1>| f.call(a).unwrap(), a).unwrap().into_data();
    for (a, b) in got.iter::<f64>().zip(want.iter::<f64>()) {
        assert!((a - b).abs() <= 1e-10, "{a} and {b}");
    }
}

/// The derivative of `¼ x⁴ + ½ x² − a x`, by a tape.
fn slope<A: ScanBackend>(a: Tensor<A, 1>, x: Tensor<A, 1>) -> Tensor<A, 1> {
    let energy = |x: Tensor<Autodiff<A>, 1>| {
        let quadratic = x.clone().powi_scalar(2) * 0.5 - Tensor::from_inner(a) * x.clone();
        (x.powi_scalar(4) * 0.25 + quadratic).sum()
    };
    grad(energy, x).unwrap()
}

/// The minimum, x³ + x = a, in four ways whose steps call `grad`.
fn minimum<A: ScanBackend>(way: usize, a: Tensor<A, 1>) -> Tensor<A, 1> {
    type Row<A> = Tensor<A, 1>;
    let descend = |a: Row<A>, x: Row<A>| x.clone() - slope(a, x) * 0.2;
    let settings = FixedPoint { tolerance: 1e-14, ..FixedPoint::default() };
    let start = a.clone() * 0.5;
    match way {
        0 => burn_t4a::ext::scan::root(slope, a, start, &settings).unwrap(),
        1 => fixed_point(descend, a, start, &settings).unwrap(),
        2 => {
            let far = |a: Row<A>, x: Row<A>| slope(a, x).abs().max().greater_elem(1e-14);
            while_loop(far, descend, a, start, &Options::default().limit(300)).unwrap()
        }
        _ => {
            let minimum = move |a: Row<A>| fixed_point(descend, a.clone(), a, &settings).unwrap();
            cond(a.clone().sum().greater_elem(0.0), minimum, |a: Row<A>| a, a).unwrap()
        }
    }
}

/// Derivatives of solutions and loops whose steps call `grad` themselves: dx/da = 1/(3 x² + 1).
#[test]
fn derivatives_of_what_calls_grad() {
    let row =
        |x: [f64; 3]| Tensor::<B, 1>::from_data(TensorData::from(x), (&T4aDevice, DType::F64));
    let near = |name: &str, got: Tensor<B, 1>, want: [f64; 3]| {
        for (got, want) in got.into_data().iter::<f64>().zip(want) {
            assert!((got - want).abs() < 1e-9, "{name}: {got} {want}");
        }
    };
    let loss = |way, a: Tensor<Autodiff<B>, 1>| minimum(way, a).sum();
    for x in [[1.0, 0.3, 0.5], [0.2, -0.4, 0.9]] {
        let a = || row(x.map(|x: f64| x.powi(3) + x));
        let want = x.map(|x| 1.0 / (3.0 * x * x + 1.0));
        for way in 0..4 {
            near(&format!("{way}: value"), minimum(way, a()), x);
            near(&format!("{way}: grad"), grad(|a: Tensor<_, 1>| loss(way, a), a()).unwrap(), want);
            let along = a().ones_like();
            let (_, t) = jvp(|a: Tensor<Jvp<B>, 1>| minimum(way, a), a(), along).unwrap();
            near(&format!("{way}: jvp"), t, want);
        }
    }
    for way in 0..4 {
        let f =
            |a: Tensor<T, 1>| grad(|a: Tensor<Autodiff<T>, 1>| minimum(way, a).sum(), a).unwrap();
        let f = compile(f);
        // Solutions are recorded; loops run eagerly.
        let f = if way < 2 { f.fullgraph() } else { f };
        for x in [[1.0, 0.3, 0.5], [0.2, -0.4, 0.9], [1.0, 0.3, 0.5]] {
            let got = f.call(row(x.map(|x: f64| x.powi(3) + x))).unwrap();
            near(&format!("{way}: compiled"), got, x.map(|x| 1.0 / (3.0 * x * x + 1.0)));
        }
        assert!(way > 1 || f.counters().traces == 1);
    }
}
