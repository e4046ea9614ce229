//! Fused groups are bitwise equal to their operations run one by one: every cheap instruction in every form, values
//! used more than once, per-row scalars, elements beyond the last full accumulator.

use burn::tensor::activation::{leaky_relu, relu, sigmoid};
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{Traced, compile};

type B = BurnT4a;
type M = Tensor<Traced<B>, 2>;

/// Accumulators have 64 or 128 elements of `f32`, and half as many of `f64`; rows of full accumulators and long rows
/// are chain executions of their own.
const SHAPES: [[usize; 2]; 9] =
    [[1, 1], [3, 5], [1, 127], [2, 128], [3, 129], [70, 100], [3, 515], [9, 640], [2, 4100]];

/// Calls after the first one, until all groups are machine code.
const CALLS: usize = 9;

pub(crate) fn noise(shape: [usize; 2], seed: usize, dtype: DType) -> Tensor<B, 2> {
    let value = |i: usize| match (i + seed) % 41 {
        0 => 0.0,
        7 => -0.0,
        13 => f64::INFINITY,
        21 => f64::NEG_INFINITY,
        34 => 1e-40,
        _ => ((i * 7919 + seed * 104_729 + 13) % 10_007) as f64 / 2500.0 - 2.0,
    };
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, dtype))
}

/// Bit pattern of a float; all NaN are mapped to one.
pub(crate) fn bits(x: Tensor<B, 2>) -> Vec<u64> {
    let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    x.into_data().iter::<f64>().map(bits).collect()
}

/// Checks a function of two matrices, a row and a column.
fn check(name: &str, f: impl Fn([M; 4]) -> Vec<M>) {
    for dtype in [DType::F32, DType::F64] {
        for [rows, n] in SHAPES {
            let shapes = [[rows, n], [rows, n], [1, n], [rows, 1]];
            let inputs = |seed: usize| {
                let mut seeds = seed..;
                shapes.map(|shape| noise(shape, seeds.next().unwrap_or(0), dtype))
            };
            let [fused, plain] = [true, false].map(|fused| {
                let compiled = compile(&f).fullgraph().fused(fused);
                // The first call records, the second one interprets small groups, the next ones generate machine code.
                for seed in 3..3 + CALLS {
                    compiled.call(inputs(seed)).unwrap();
                }
                let text = compiled.explain();
                (compiled.call(inputs(17)).unwrap(), text)
            });
            assert!(fused.1.contains("fused["), "{name}: {}", fused.1);
            for (k, (x, y)) in fused.0.into_iter().zip(plain.0).enumerate() {
                assert_eq!(bits(x), bits(y), "{name}: {k} of {rows} × {n}, {dtype:?}\n{}", fused.1);
            }
        }
    }
}

#[test]
fn two_operands_in_either_order() {
    let both = |f: fn(M, M) -> M| {
        move |[x, y, row, column]: [M; 4]| {
            let a = x.clone() + 1.5;
            let chained = f(a.clone(), y.clone());
            vec![
                f(x.clone() * 0.5, y.clone()),
                f(y.clone(), chained.clone() - 0.25),
                f(a.clone() * 2.0, row.clone()),
                f(row, a.clone() * 3.0),
                f(a.clone() * 2.5, column.clone()),
                f(column, a.clone() - x),
                f(a.clone(), a),
                chained + y,
            ]
        }
    };
    check("add", both(|x, y| x + y));
    check("sub", both(|x, y| x - y));
    check("mul", both(|x, y| x * y));
    check("div", both(|x, y| x / y));
    check("max", both(|x, y| x.max_pair(y)));
    check("min", both(|x, y| x.min_pair(y)));
}

#[test]
fn functions_of_one_operand() {
    check("light", |[x, y, _, _]| {
        let a = x.clone() * 1.25;
        let unary: [fn(M) -> M; 16] = [
            |x| x.neg(),
            |x| x.abs(),
            |x| x.sqrt(),
            |x| x.recip(),
            |x| x.powi_scalar(2),
            |x| x.powi_scalar(3),
            |x| x.powf_scalar(0.5),
            |x| x.floor(),
            |x| x.ceil(),
            |x| x.round(),
            |x| x.trunc(),
            |x| x.sign(),
            relu,
            |x| leaky_relu(x, 0.1),
            |x| x.clamp(-0.75, 1.0),
            |x| x.clamp_min(0.5) - 2.0,
        ];
        let mut all: Vec<M> = unary.iter().map(|f| f(a.clone()) + y.clone()).collect();
        all.push(unary.iter().fold(x, |x, f| f(x) * 0.5 + 0.125));
        all
    });
    check("light and heavy", |[x, y, _, _]| {
        let a = (x.clone() * 0.5).exp() + y.clone();
        let b = sigmoid(a.clone() - x.clone()) * a.clone();
        let mask = b.clone().greater(y.clone());
        vec![(b.clone() + 1.0).mask_where(mask, a - 2.0) * x, b.tanh() / 3.0]
    });
}

/// Values, outputs among them, that are used again after other instructions.
#[test]
fn values_that_are_used_again() {
    check("polynomials", |[x, y, row, column]| {
        let a = x.clone() * y.clone() + row;
        let b = a.clone() - x.clone();
        let c = (a.clone() + b.clone()) * (a.clone() - b.clone());
        let d = c.clone() / (b.clone() * b.clone() + column);
        let e = (d.clone() - c.clone()).abs() * a.clone() + (y - d.clone()) * c.clone();
        vec![a, e * d, b + c]
    });
    check("norm", |[x, y, row, _]| {
        let centred = x.clone().clamp(-2.0, 2.0) * 0.5 - y.clone().clamp(-2.0, 2.0).mean_dim(1);
        let square = (centred.clone() * centred.clone()).mean_dim(1);
        let scaled = centred.clone() / (square + 1e-5).sqrt() * row.clamp(-1.0, 1.0);
        let shift = (scaled.clone() * centred).sum_dim(1);
        vec![scaled.clone() - shift.clone() * 0.5, shift.clone() - scaled, shift]
    });
}

/// Sums over rows of any length, and over views, are bitwise equal in the first call and in later ones.
#[test]
fn first_and_later_sums_have_the_same_bits() {
    type Case = (&'static str, fn(M) -> M);
    let f: [Case; 3] = [
        ("row", |x| (x * 1.7 + 0.3).sum_dim(1) * 0.5),
        ("view", |x| (x.transpose() * 1.7 + 0.3).sum_dim(1) * 0.5),
        ("mean", |x| {
            let x = x.transpose() * 0.7;
            (x.clone() - x.mean_dim(1)).powi_scalar(2).mean_dim(1)
        }),
    ];
    let lengths = (15..40).chain(255..260).chain([511, 1000, 2048, 4096, 4097]);
    for n in lengths {
        for dtype in [DType::F32, DType::F64] {
            for (name, f) in f {
                let shape = if name == "row" { [3, n] } else { [n, 3] };
                let value = |i: usize| ((i * 7919 + 13) % 10_007) as f64 / 2500.0 - 2.0;
                let values: Vec<f64> = (0..3 * n).map(value).collect();
                let x =
                    Tensor::<B, 2>::from_data(TensorData::new(values, shape), (&T4aDevice, dtype));
                let compiled = compile(f).fullgraph();
                let first = bits(compiled.call(x.clone()).unwrap());
                for _ in 0..CALLS {
                    let later = bits(compiled.call(x.clone()).unwrap());
                    assert_eq!(first, later, "{name} of {n}, {dtype:?}");
                }
            }
        }
    }
}

/// Layouts inside a program differ from those in the function, but all calls have bitwise equal results, from the first
/// one on. Matrix-vector products and sums add in memory order.
#[test]
fn first_and_later_calls_have_the_same_bits_in_every_layout() {
    type Case = (fn((M, M)) -> Vec<M>, fn(usize, usize) -> [usize; 2]);
    fn constant(x: &M) -> M {
        M::ones(x.dims(), &x.device()).cast(x.dtype()) * 0.3
    }
    fn chain(x: M) -> M {
        (x.transpose() * 2.0).exp() + 0.1
    }
    let cases: [Case; 6] = [
        (|(x, v)| vec![chain(x).matmul(v)], |n, _| [n, 1]),
        (|(x, v)| vec![v.matmul(chain(x))], |_, m| [1, m]),
        (|(x, _)| vec![chain(x.clone()).sum_dim(1), chain(x).cumsum(1)], |_, _| [1, 1]),
        (|(x, v)| vec![constant(&x).matmul(v), x], |_, m| [m, 1]),
        (
            |(x, v)| vec![(constant(&x.clone().transpose()) * x.transpose() + 0.1).matmul(v)],
            |n, _| [n, 1],
        ),
        (|(x, _)| vec![(constant(&x) * x).transpose().sum_dim(0)], |_, _| [1, 1]),
    ];
    for (case, (f, of)) in cases.into_iter().enumerate() {
        for [n, m] in [[1, 17], [17, 1], [33, 17], [64, 64], [5, 300], [300, 5], [129, 65]] {
            for dtype in [DType::F32, DType::F64] {
                let [x, v] = [[n, m], of(n, m)].map(|shape| {
                    let value = |i: usize| ((i * 7919 + 13) % 10_007) as f64 / 5000.0 - 1.0;
                    let values: Vec<f64> = (0..shape[0] * shape[1]).map(value).collect();
                    Tensor::<B, 2>::from_data(TensorData::new(values, shape), (&T4aDevice, dtype))
                });
                let compiled = compile(f).fullgraph();
                let call = || compiled.call((x.clone(), v.clone())).unwrap().into_iter().map(bits);
                let first: Vec<_> = call().collect();
                for _ in 0..CALLS {
                    assert_eq!(first, call().collect::<Vec<_>>(), "{case}: {n} × {m}, {dtype:?}");
                }
                assert_eq!((compiled.counters().traces, compiled.counters().hits), (1, CALLS));
            }
        }
    }
}

/// Constants that repeat one element do not prevent fusion with sums, unless the summed value repeats elements too.
#[test]
fn sums_with_repeated_constants() {
    fn constant(x: &M) -> M {
        M::ones(x.dims(), &x.device()).cast(x.dtype()) * 0.7
    }
    check("summed product with a constant", |[x, y, row, _]| {
        let z = x.clone() * constant(&x) + y;
        vec![z.clone().sum_dim(1), (z * row).mean_dim(1)]
    });
    check("mean and its gradient", |[x, _, _, column]| {
        let spread = column.clone() * constant(&x);
        let z = spread.clone() * x.clone() - x;
        vec![z.clone().sum_dim(1) + column, z]
    });
    check("sum of a repeated column", |[x, _, _, column]| {
        let spread = (column * constant(&x)).exp();
        vec![spread.clone().sum_dim(1), spread + x]
    });
    check("sum of a repeated row outside of the group", |[x, _, row, _]| {
        let spread = row.exp() * constant(&x) + 1.0;
        vec![spread.clone().sum_dim(0), spread.sum_dim(1), x.clone().exp() + x]
    });
}
