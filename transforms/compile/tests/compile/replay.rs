//! Replays against recorded calls: every family of methods, on inputs that were not recorded.

use burn::backend::Autodiff;
use burn::nn::{LayerNormConfig, LinearConfig, loss::CrossEntropyLossConfig};
use burn::tensor::activation::{gelu, log_softmax, relu, sigmoid, softmax};
use burn::tensor::module::{avg_pool2d, conv2d, embedding, interpolate, max_pool2d};
use burn::tensor::ops::{ConvOptions, InterpolateMode, InterpolateOptions};
use burn::tensor::{
    Bool, DType, Distribution, IndexingUpdateOp, Int, Tensor, TensorData, Tolerance,
};
use burn_t4a::ext::einsum::{LogSumExp, semiring_einsum};
use burn_t4a::ext::linalg::svd;
use burn_t4a::ext::scan::{
    Branch, FixedPoint, Method, Options, ScanBackend, cond, fixed_point, root, scan, switch,
    while_loop,
};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{CompileError, ExportError, Traced, compile, stablehlo};

type B = BurnT4a;
type T = Traced<B>;
type Matrix = Tensor<T, 2>;

/// Numbers around 0 without ties, of the given dtype.
fn noise<const D: usize>(shape: [usize; D], seed: usize, dtype: DType) -> Tensor<B, D> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f64 / 5003.0 - 1.0;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, dtype))
}

fn flat<const D: usize>(x: Tensor<T, D>) -> Tensor<T, 1> {
    x.flatten(0, D - 1)
}

fn ints<const D: usize>(x: Tensor<T, D, Int>) -> Tensor<T, 1> {
    flat(x.float())
}

fn truths<const D: usize>(x: Tensor<T, D, Bool>) -> Tensor<T, 1> {
    flat(x.float())
}

fn all(parts: Vec<Tensor<T, 1>>) -> Tensor<T, 1> {
    Tensor::cat(parts.into_iter().map(|x| x.cast(DType::F64)).collect(), 0)
}

/// Checks a function of two matrices: recorded on one pair and replayed on another, it equals a new recording on the
/// latter, fused or not. Summation orders may differ: a result may reuse the buffer, and so the layout, of an operand
/// that is kept alive during a recording.
fn replays(name: &str, f: impl Fn(Matrix, Matrix) -> Tensor<T, 1>) {
    for dtype in [DType::F32, DType::F64] {
        let pair = |seed| (noise([4, 6], seed, dtype), noise([4, 6], seed + 1, dtype));
        let data = |x: Tensor<B, 1>| x.into_data();
        let g = |(x, y): (Matrix, Matrix)| f(x, y);
        let fresh = compile(g).fullgraph();
        let expected = [1, 2].map(|seed| {
            // A separate recording.
            data(compile(g).fullgraph().call(pair(10 * seed)).unwrap())
        });
        let plain = compile(g).fullgraph().fused(false);
        for compiled in [&fresh, &plain] {
            compiled.call(pair(0)).unwrap();
            // The later ones of these calls run machine code.
            for (seed, want) in [1, 2].into_iter().zip(&expected).cycle().take(10) {
                let got = data(compiled.call(pair(10 * seed)).unwrap());
                let near = if dtype == DType::F32 { 1e-4 } else { 1e-11 };
                let tolerance = Tolerance::<f64>::rel_abs(near, near);
                got.assert_approx_eq(want, tolerance);
            }
            let counters = compiled.counters();
            assert_eq!((counters.traces, counters.hits), (1, 10), "{name}: {}", compiled.explain());
        }
        exported(name, g, pair(10), &expected[0]);
    }
}

/// Methods that StableHLO has no operation for, and that are not expanded into others.
const WITHOUT_EXPANSION: [&str; 2] = ["interpolate", "svd"];

/// Exports the function. With the environment variable `T4A_STABLEHLO` the module, its arguments and its results are written
/// to that folder, for `tests/stablehlo.py`.
fn exported(
    name: &str,
    g: impl Fn((Matrix, Matrix)) -> Tensor<T, 1>,
    pair: (Tensor<B, 2>, Tensor<B, 2>),
    results: &TensorData,
) {
    let text = match stablehlo(g, pair.clone()) {
        Ok(text) => text,
        Err(ExportError::Instruction { name: method, .. }) => {
            assert!(WITHOUT_EXPANSION.contains(&method), "{name}: {method}");
            return;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let Some(folder) = std::env::var_os("T4A_STABLEHLO") else { return };
    let dtype = pair.0.dtype().name();
    let path = std::path::Path::new(&folder).join(format!("{}-{dtype}", name.replace(' ', "-")));
    std::fs::write(path.with_extension("mlir"), text).unwrap();
    for (k, x) in [pair.0, pair.1].into_iter().enumerate() {
        std::fs::write(path.with_extension(format!("in{k}")), x.into_data().as_bytes()).unwrap();
    }
    let results = results.clone().convert::<f64>();
    std::fs::write(path.with_extension("out"), results.as_bytes()).unwrap();
}

/// Recurrences in both directions, with two carries, and their gradients: each scan is one loop of the exported module.
#[test]
fn scans() {
    fn states<C: ScanBackend>(x: Tensor<C, 2>, y: Tensor<C, 2>, options: &Options) -> Tensor<C, 1> {
        let w = y.clone().matmul(y.clone().transpose());
        let step = |w: Tensor<C, 2>, (h, total): (Tensor<C, 2>, Tensor<C, 1>), x: Tensor<C, 1>| {
            let h = (w.clone().matmul(h) * 0.3 + x.clone().unsqueeze()).tanh();
            let total = total + h.clone().sum() * x.sum();
            ((h.clone(), total.clone()), (h.sum_dim(0), total))
        };
        let init = (y, x.clone().narrow(0, 0, 1).flatten::<1>(0, 1).sum());
        let ((h, total), (sums, totals)): (_, (Tensor<C, 3>, Tensor<C, 2>)) =
            scan(step, w, init, x, options).unwrap();
        let parts = vec![h.flatten(0, 1), total, sums.flatten(0, 2), totals.flatten(0, 1)];
        Tensor::cat(parts, 0)
    }
    let reverse = Options::default().reverse(true);
    replays("scan", |x, y| states(x, y, &Options::default()).cast(DType::F64));
    replays("scan reverse", |x, y| states(x, y, &reverse).cast(DType::F64));
    replays("scan gradient", |x, y| {
        let [x, y] = [x, y].map(|x| Tensor::<Autodiff<T>, 2>::from_inner(x).require_grad());
        let loss = states(x.clone(), y.clone(), &Options::default()).powi_scalar(2).sum();
        let gradients = loss.backward();
        all(vec![flat(x.grad(&gradients).unwrap()), flat(y.grad(&gradients).unwrap())])
    });
}

/// Modules of a recurrence, of a loop with a branch, and of a fixed point that three steps do not reach, as text;
/// `tests/stablehlo.py` runs such modules by XLA.
#[test]
fn loops_and_branches_as_text() {
    type V = Tensor<T, 1>;
    let running = |x: V| -> V {
        let init = V::zeros([1], &T4aDevice);
        let step = |(): (), h: V, x: V| (h.clone() + x.clone(), h * x);
        let (last, products): (V, Tensor<T, 2>) =
            scan(step, (), init, x, &Options::default()).unwrap();
        Tensor::cat(vec![last, products.flatten(0, 1)], 0)
    };
    let collatz = |x: V| -> V {
        let step = |(): (), x: V| -> V {
            let odd = x.clone().remainder_scalar(2.0).equal_elem(1.0);
            cond(odd, |x: V| x * 3.0 + 1.0, |x: V| x / 2.0, x).unwrap()
        };
        let more = |(): (), x: V| x.greater_elem(1.0);
        while_loop(more, step, (), x, &Options::default()).unwrap()
    };
    let far = |x: V| -> V {
        let settings = FixedPoint { steps: 3, ..FixedPoint::default() };
        fixed_point(|a: V, x: V| x.cos() * a, x.clone(), x, &settings).unwrap()
    };
    let of = |x: &[f32]| Tensor::<B, 1>::from_floats(x, &T4aDevice);
    assert_eq!(stablehlo(running, of(&[1.0, 2.0, 3.0])).unwrap(), include_str!("scan.mlir"));
    assert_eq!(stablehlo(collatz, of(&[1.0])).unwrap(), include_str!("collatz.mlir"));
    // Recorded where one step suffices.
    assert_eq!(stablehlo(far, of(&[0.0])).unwrap(), include_str!("fixed_point.mlir"));
}

/// Loops that end by a test, with captured values and a branch in each step, and branches by an index in and out of range.
#[test]
fn loops_and_branches() {
    fn doubled(x: Matrix, y: Matrix, limit: f64) -> (Matrix, Tensor<T, 1, Int>) {
        let below = move |w: Matrix, (x, _): (Matrix, Tensor<T, 1, Int>)| {
            (x * w).abs().max().lower_elem(limit)
        };
        let (w, shift) = (y.clone(), y.sum());
        let step = move |_: Matrix, (x, n): (Matrix, Tensor<T, 1, Int>)| {
            let odd = n.clone().remainder_scalar(2).equal_elem(1);
            let x: Matrix = cond(odd, |x: Matrix| x * 3.0, |x: Matrix| x * 1.5 + 0.1, x).unwrap();
            (x + shift.clone().reshape([1, 1]) * 0.01, n + 1)
        };
        let init = (x, Tensor::<T, 1, Int>::zeros([1], &T4aDevice));
        while_loop(below, step, w, init, &Options::default()).unwrap()
    }
    replays("while loop", |x, y| {
        let (x, n) = doubled(x, y, 100.0);
        all(vec![flat(x), ints(n)])
    });
    replays("while loop without steps", |x, y| flat(doubled(x, y, 0.0).0).cast(DType::F64));
    replays("switch", |x, y| {
        let sum = y.clone().sum();
        let (_, n) = doubled(x.clone(), y.clone(), 10.0);
        let results = [-4, -1, 0, 1].map(|shift| {
            let (one, two) = (sum.clone(), y.clone());
            let branches: Vec<Branch<(Matrix, Matrix), Matrix>> = vec![
                Box::new(|(x, y)| x.exp() * y),
                Box::new(move |(x, _)| x * one.clone().reshape([1, 1])),
                Box::new(move |(x, y)| (x - y) / (two.clone().abs() + 1.0)),
            ];
            let y: Matrix = switch(n.clone() + shift, branches, (x.clone(), y.clone())).unwrap();
            flat(y)
        });
        all(results.into_iter().collect())
    });
    replays("switch gradient", |x, y| {
        let [x, y] = [x, y].map(|x| Tensor::<Autodiff<T>, 2>::from_inner(x).require_grad());
        let index = x.clone().sum().greater_elem(0.0);
        type Pair = (Tensor<Autodiff<T>, 2>, Tensor<Autodiff<T>, 2>);
        let z: Tensor<Autodiff<T>, 2> = cond(
            index,
            |(x, y): Pair| x.sin() * y,
            |(x, y): Pair| x * y.exp(),
            (x.clone(), y.clone()),
        )
        .unwrap();
        let gradients = z.powi_scalar(2).sum().backward();
        all(vec![flat(x.grad(&gradients).unwrap()), flat(y.grad(&gradients).unwrap())])
    });
}

/// Fixed points of contractions, and their gradients; one that is not reached is NaN.
#[test]
fn fixed_points() {
    fn solution<C: ScanBackend>(x: Tensor<C, 2>, y: Tensor<C, 2>, steps: usize) -> Tensor<C, 2> {
        let w = y.clone().matmul(y.transpose()) * 0.1;
        let settings = FixedPoint { tolerance: 1e-6, steps, ..FixedPoint::default() };
        let step =
            |(w, x): (Tensor<C, 2>, Tensor<C, 2>), z: Tensor<C, 2>| (w.matmul(z) * 0.5 + x).tanh();
        fixed_point(step, (w, x.clone()), x.zeros_like(), &settings).unwrap()
    }
    replays("fixed point", |x, y| flat(solution(x, y, 100)).cast(DType::F64));
    replays("fixed point gradient", |x, y| {
        let [x, y] = [x, y].map(|x| Tensor::<Autodiff<T>, 2>::from_inner(x).require_grad());
        let gradients = solution(x.clone(), y.clone(), 100).powi_scalar(2).sum().backward();
        all(vec![flat(x.grad(&gradients).unwrap()), flat(y.grad(&gradients).unwrap())])
    });
}

/// The reverse pass of a while loop keeps a number of carries that is not known, and Broyden's method has no expansion.
#[test]
fn loops_without_an_expansion_are_named() {
    let error = |f: &dyn Fn(Tensor<T, 1>) -> Tensor<T, 1>| {
        let x = Tensor::<B, 1>::from_floats([1.5], &T4aDevice);
        match stablehlo(f, x).unwrap_err() {
            ExportError::Instruction { name, .. } => name,
            error => panic!("{error}"),
        }
    };
    type D = Autodiff<T>;
    let gradient = |x: Tensor<T, 1>| {
        let x = Tensor::<D, 1>::from_inner(x).require_grad();
        let step = |(): (), x: Tensor<D, 1>| x.clone() * x;
        let below = |(): (), x: Tensor<D, 1>| x.lower_elem(100.0);
        let y: Tensor<D, 1> = while_loop(below, step, (), x.clone(), &Options::default()).unwrap();
        x.grad(&y.sum().backward()).unwrap()
    };
    assert_eq!(error(&gradient), "while_loop");
    let settings = FixedPoint { method: Method::Broyden(5), ..FixedPoint::default() };
    let square = move |a: Tensor<T, 1>| -> Tensor<T, 1> {
        root(|a: Tensor<T, 1>, x: Tensor<T, 1>| x.powi_scalar(2) - a, a.clone(), a, &settings)
            .unwrap()
    };
    assert_eq!(error(&square), "fixed_point");
}

#[test]
fn functions_of_elements() {
    replays("unary", |x, y| {
        let positive = x.clone().abs() + 0.5;
        let parts = vec![
            x.clone().exp(),
            positive.clone().log(),
            positive.clone().log1p(),
            positive.clone().sqrt(),
            positive.clone().recip(),
            x.clone().neg(),
            x.clone().abs(),
            x.clone().sin(),
            x.clone().cos(),
            x.clone().tan(),
            x.clone().sinh(),
            x.clone().cosh(),
            x.clone().tanh(),
            x.clone().erf(),
            x.clone().floor(),
            x.clone().ceil(),
            x.clone().round(),
            x.clone().trunc(),
            x.clone().sign(),
            x.clone().clamp(-0.3, 0.4),
            x.clone().clamp_min(0.1),
            x.clone().clamp_max(0.1),
            x.clone().powi_scalar(3),
            positive.clone().powf_scalar(1.7),
            positive.powf(y.clone()),
            relu(x.clone()),
            gelu(x.clone()),
            sigmoid(x),
        ];
        all(parts.into_iter().map(flat).collect())
    });
    replays("binary", |x, y| {
        let row = y.clone().narrow(0, 1, 1);
        let column = x.clone().narrow(1, 2, 1);
        let parts = vec![
            x.clone() + y.clone(),
            x.clone() - row.clone(),
            x.clone() * column.clone(),
            x.clone() / (y.clone().abs() + 1.0),
            column * row,
            x.clone() + 2.0,
            x.clone() - 0.5,
            x.clone() * 3.0,
            x.clone() / 7.0,
            x.clone().max_pair(y.clone()),
            x.min_pair(y),
        ];
        all(parts.into_iter().map(flat).collect())
    });
    replays("a chain that is used twice", |x, y| {
        let a = (x.clone() * 2.0 + y.clone()).tanh();
        let b = (a.clone() - x).exp();
        all(vec![flat(a.clone() * b.clone()), flat(b.sum_dim(1)), flat((a + y).mean_dim(1))])
    });
    replays("a chain in views", |x, y| {
        let t = (x.transpose() * 2.0).exp();
        flat(t + y.transpose() * 0.5)
    });
}

/// Random programs with dependency paths that leave elementwise chains and return to them.
#[test]
fn ways_around_are_kept_apart() {
    for seed in 0..200u64 {
        replays(&format!("program {seed}"), |x, y| {
            let mut state = seed;
            let mut next = |n: usize| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % n
            };
            let mut values = vec![x.narrow(1, 0, 4), y.narrow(1, 2, 4)];
            for _ in 0..30 {
                let [a, b] = [0; 2].map(|_| values[next(values.len())].clone());
                values.push(match next(10) {
                    0 => a + b,
                    1 => a * b * 0.5,
                    2 => a.tanh(),
                    3 => a.matmul(b).tanh(),
                    4 => a.transpose(),
                    5 => a.clone() - a.mean_dim(1),
                    6 => a.clone().mask_where(a.greater(b.clone()), b),
                    7 => a.sum_dim(1).tanh() * b,
                    8 => a.cumsum(0).tanh(),
                    _ => a.abs().sum_dim(0).tanh() - b,
                });
            }
            all(values.split_off(values.len() - 6).into_iter().map(flat).collect())
        });
    }
}

#[test]
fn comparisons_and_masks() {
    replays("comparisons", |x, y| {
        let mask = x.clone().greater(y.clone());
        let near = x.clone().lower_equal_elem(0.2);
        let both = mask.clone().bool_and(near.clone());
        all(vec![
            truths(mask.clone()),
            truths(near.clone().bool_not()),
            truths(x.clone().equal(x.clone())),
            truths(both.any_dim(1)),
            flat(x.clone().mask_where(mask, y.clone())),
            flat(y.clone().mask_fill(near, 0.25)),
            truths(x.is_nan()),
            truths(y.greater_elem(0.0).all()),
        ])
    });
}

#[test]
fn movement() {
    replays("movement", |x, y| {
        all(vec![
            flat(x.clone().reshape([3, 8])),
            flat(x.clone().transpose()),
            flat(x.clone().slice([1..3, 2..5])),
            flat(x.clone().flip([1])),
            flat(x.clone().narrow(1, 0, 2).repeat_dim(1, 3)),
            flat(Tensor::cat(vec![x.clone(), y.clone()], 1)),
            flat(x.clone().unsqueeze::<3>().expand([2, 4, 6])),
            flat(x.clone().slice_assign([0..2, 0..3], y.clone().narrow(0, 0, 2).narrow(1, 0, 3))),
            flat(Tensor::stack::<3>(vec![x.clone(), y], 1)),
            flat(x.roll(&[1, 2], &[0, 1])),
        ])
    });
}

#[test]
fn indices_and_order() {
    replays("indices", |x, y| {
        let order = y.clone().argsort(1);
        let some = Tensor::<T, 1, Int>::from_ints([2, 0, 2], &T4aDevice);
        let (sorted, places) = x.clone().sort_with_indices(0);
        let (most, at) = x.clone().max_dim_with_indices(1);
        all(vec![
            flat(x.clone().gather(1, order.clone())),
            ints(order.clone()),
            flat(sorted),
            ints(places),
            flat(most),
            ints(at),
            flat(x.clone().select(0, some.clone())),
            flat(x.clone().topk(2, 1)),
            flat(x.clone().scatter(1, order, y.clone(), IndexingUpdateOp::Add)),
            flat(x.clone().select_assign(0, some, y.narrow(0, 0, 3), IndexingUpdateOp::Add)),
            ints(x.clone().argmax(0)),
            flat(x.cumsum(1)),
        ])
    });
    replays("integers", |x, y| {
        let (a, b) = ((x * 10.0).int(), (y * 5.0).int() + 7);
        all(vec![
            ints(a.clone() + b.clone()),
            ints(a.clone() * 3),
            ints(a.clone().abs() / (b.clone().abs() + 1)),
            truths(a.clone().greater(b.clone())),
            ints(a.clone().sum_dim(0)),
            ints(a.max_pair(b).clamp(-3, 4)),
        ])
    });
}

#[test]
fn reductions_and_products() {
    replays("reductions", |x, y| {
        all(vec![
            x.clone().sum(),
            x.clone().mean(),
            flat(x.clone().sum_dim(0)),
            flat(x.clone().mean_dim(1)),
            flat(x.clone().prod_dim(1)),
            x.clone().max(),
            x.clone().min(),
            flat(x.clone().max_dim(0)),
            flat(x.clone().var(1)),
            flat(softmax(x.clone(), 1)),
            flat(log_softmax(y.clone(), 0)),
            flat(x.clone().matmul(y.transpose())),
            flat(x.clone().cast(DType::F16).cast(DType::F32)) * 0.5,
        ]
        .into_iter()
        .map(|x| x.cast(DType::F64))
        .collect())
    });
}

#[test]
fn images() {
    replays("images", |x, y| {
        let image = Tensor::cat(vec![x.clone(), y], 0).reshape([1, 2, 4, 6]);
        let weight = x.narrow(0, 0, 3).narrow(1, 0, 6).reshape([1, 2, 3, 3]);
        let up = InterpolateOptions::new(InterpolateMode::Bilinear);
        let conv = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        all(vec![
            flat(conv2d(image.clone(), weight.clone(), None, conv)),
            flat(max_pool2d(image.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false)),
            flat(avg_pool2d(image.clone(), [2, 2], [1, 1], [0, 0], true, false)),
            flat(interpolate(image, [5, 9], up)),
            flat(embedding(weight.reshape([9, 2]), Tensor::from_ints([[3, 1, 8]], &T4aDevice))),
        ])
    });
}

#[test]
fn operations_as_values() {
    replays("operations", |x, y| {
        let s = svd(x.clone()).unwrap();
        let log: Tensor<T, 2> = semiring_einsum::<LogSumExp, _, _>("ij,kj->ik", (&x, &y)).unwrap();
        all(vec![flat(s.s), flat(s.u.abs()), flat(log), flat(burn_t4a::ext::nn::softmax(y, 1))])
    });
}

/// One step of gradient descent on a network of Burn's modules, forward and backward in one program.
#[test]
fn a_training_step_is_one_program() {
    type A = Autodiff<T>;
    let classes = || Tensor::<T, 1, Int>::from_ints([0, 2, 1, 1], &T4aDevice);
    let step = |(w, b, g, x): (Matrix, Tensor<T, 1>, Tensor<T, 1>, Matrix)| {
        let mut linear = LinearConfig::new(6, 3).init::<A>(&T4aDevice);
        let mut norm = LayerNormConfig::new(3).init::<A>(&T4aDevice);
        let on_tape = |x: Tensor<T, 1>| Tensor::<A, 1>::from_inner(x).require_grad();
        linear.weight = linear.weight.map(|_| Tensor::from_inner(w.clone()).require_grad());
        linear.bias = linear.bias.map(|bias| bias.map(|_| on_tape(b.clone())));
        norm.gamma = norm.gamma.map(|_| on_tape(g.clone()));
        let scores = norm.forward(linear.forward(Tensor::from_inner(x)).tanh());
        let loss = CrossEntropyLossConfig::new().init(&T4aDevice);
        let loss = loss.forward(scores, Tensor::from_inner(classes()));
        let gradients = loss.backward();
        let of = "every parameter has a gradient";
        let dw = linear.weight.val().grad(&gradients).expect(of);
        let db = linear.bias.as_ref().map(|x| x.val().grad(&gradients).expect(of)).expect(of);
        let dg = norm.gamma.val().grad(&gradients).expect(of);
        (w - dw * 0.1, b - db * 0.1, g - dg * 0.1, loss.inner())
    };
    let start = || {
        let one = |n| Tensor::<B, 1>::ones([n], &T4aDevice);
        (noise([6, 3], 1, DType::F32), one(3) * 0.0, one(3))
    };
    let x = |i: usize| noise([4, 6], 100 + i, DType::F32);
    let compiled = compile(step).fullgraph();
    let (mut w, mut b, mut g) = start();
    let (mut u, mut c, mut h) = start();
    for i in 0..5 {
        let (loss, eager);
        (w, b, g, loss) = compiled.call((w, b, g, x(i))).unwrap();
        (u, c, h, eager) = compile(step).fullgraph().call((u, c, h, x(i))).unwrap();
        loss.into_data()
            .assert_approx_eq(&eager.into_data(), Tolerance::<f32>::rel_abs(1e-5, 1e-6));
        w.to_data().assert_approx_eq(&u.to_data(), Tolerance::<f32>::rel_abs(1e-5, 1e-6));
    }
    assert_eq!((compiled.counters().traces, compiled.counters().hits), (1, 4));
}

#[test]
fn inputs_and_captured_tensors_stay_as_they_are() {
    let captured = noise([3, 4], 5, DType::F32);
    let kept = captured.to_data();
    let shared = Tensor::<T, 2>::from_data(kept.clone(), &T4aDevice);
    let compiled = compile(|x: Matrix| ((x + shared.clone()) * 2.0).exp() + shared.clone());
    let x = noise([3, 4], 6, DType::F32);
    let before = x.to_data();
    let first = compiled.call(x.clone()).unwrap().into_data();
    for _ in 0..3 {
        let again = compiled.call(x.clone()).unwrap().into_data();
        again.assert_approx_eq(&first, Tolerance::<f32>::rel_abs(1e-6, 1e-6));
        assert_eq!(x.to_data(), before);
        assert_eq!(shared.to_data(), kept);
    }
    // An input that is returned unchanged, twice.
    let twice = compile(|x: Matrix| (x.clone(), x.clone(), x * 0.0));
    for _ in 0..2 {
        let (a, b, zero) = twice.call(x.clone()).unwrap();
        assert_eq!((a.into_data(), b.into_data()), (before.clone(), before.clone()));
        assert!(zero.into_data().iter::<f32>().all(|x| x == 0.0));
    }
}

#[test]
fn random_numbers_are_drawn_anew() {
    let compiled =
        compile(|x: Matrix| x + Matrix::random([3, 4], Distribution::Default, &T4aDevice));
    let x = noise([3, 4], 1, DType::F32);
    let all: Vec<TensorData> =
        (0..3).map(|_| compiled.call(x.clone()).unwrap().into_data()).collect();
    assert!(all[0] != all[1] && all[1] != all[2]);
}

#[test]
fn calls_from_several_threads() {
    let compiled = compile(|x: Matrix| (x.clone() * x).sum_dim(1).exp()).fullgraph();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let compiled = &compiled;
            scope.spawn(move || {
                for i in 0..20 {
                    let x = noise([5, 3], thread * 100 + i, DType::F64);
                    let want = (x.clone() * x.clone()).sum_dim(1).exp().into_data();
                    let got = compiled.call(x).unwrap().into_data();
                    got.assert_approx_eq(&want, Tolerance::<f64>::rel_abs(1e-12, 1e-12));
                }
            });
        }
    });
    assert_eq!(compiled.counters().hits + compiled.counters().traces, 80);
}

#[test]
fn every_shape_has_a_program_and_the_oldest_goes() {
    let compiled = compile(|x: Matrix| x.exp()).capacity(2).fullgraph();
    for rows in [2, 3, 2, 4, 3] {
        compiled.call(noise([rows, 2], 0, DType::F32)).unwrap();
    }
    let counters = compiled.counters();
    // 2 and 3 are recorded, 2 is a hit, 4 evicts 3, and 3 evicts 2.
    assert_eq!((counters.traces, counters.hits, counters.evictions), (4, 1, 2));
    let text = compiled.explain();
    assert!(text.contains("leaf . is float f32[3, 2], was float f32["), "{text}");
    compiled.call(noise([3, 2], 0, DType::F64)).unwrap();
    assert!(compiled.explain().contains("float f64[3, 2]"), "{}", compiled.explain());
}

#[test]
fn what_reads_is_an_error_or_runs_eagerly() {
    let f = |x: Matrix| {
        let scale = x.clone().abs().max().into_scalar();
        x / scale
    };
    let x = noise([3, 4], 1, DType::F32);
    let error = compile(f).fullgraph().call(x.clone()).unwrap_err();
    assert!(
        matches!(error, CompileError::ReadsData { operation: "float_into_data", .. }),
        "{error}"
    );
    let compiled = compile(f);
    for seed in [1, 2] {
        let x = noise([3, 4], seed, DType::F32);
        let largest = x.clone().abs().max().into_scalar();
        let want = (x.clone() / largest).into_data();
        assert_eq!(compiled.call(x).unwrap().into_data(), want);
    }
    assert_eq!((compiled.counters().traces, compiled.counters().fallbacks), (0, 2));
    assert!(compiled.explain().contains("eager"), "{}", compiled.explain());
}

#[test]
fn no_elements_and_single_ones() {
    for shape in [[0, 3], [3, 0], [1, 1]] {
        let f = |x: Matrix| ((x.clone() * 2.0).exp() + x.clone()).sum_dim(1) + x.sum().unsqueeze();
        let compiled = compile(f).fullgraph();
        let x = noise(shape, 0, DType::F32);
        let first = compiled.call(x.clone()).unwrap().into_data();
        assert_eq!(compiled.call(x).unwrap().into_data(), first);
    }
}

/// Two leaves of equal value have separate gradients.
#[test]
fn two_leaves_of_one_value_stay_two() {
    type TA = Traced<Autodiff<B>>;
    let f = compile(|x: Tensor<TA, 1>| {
        let (a, b) = (x.clone().detach().require_grad(), x.detach().require_grad());
        ((a.clone() * 2.0 + b.clone() * 3.0).sum(), a, b)
    });
    let x = Tensor::<Autodiff<B>, 1>::from_floats([1.0], &T4aDevice);
    for _ in 0..3 {
        let (loss, a, b) = f.call(x.clone()).unwrap();
        let gradients = loss.backward();
        let of = |x: &Tensor<Autodiff<B>, 1>| x.grad(&gradients).unwrap().into_scalar();
        assert_eq!([of(&a), of(&b)], [2.0, 3.0]);
    }
}

/// A function of 16 000 operations compiles and replays in acceptable time; a single scalar is not treated as a per-row
/// scalar.
#[test]
fn long_functions_and_single_numbers() {
    let f = compile(|(x, rate): (Tensor<T, 1>, Tensor<T, 1>)| {
        (0..4000).fold(x.clone(), |y, _| (y * 0.99).tanh() + x.clone() * rate.clone())
    });
    let x = noise([3000], 1, DType::F32);
    let rate = Tensor::<B, 1>::from_floats([0.5], &T4aDevice);
    let first = f.call((x.clone(), rate.clone())).unwrap();
    let begin = std::time::Instant::now();
    let again = f.call((x, rate)).unwrap();
    again.into_data().assert_approx_eq::<f32>(&first.into_data(), Tolerance::absolute(1e-5));
    assert!(begin.elapsed().as_secs() < 20);
}
