//! Einsum on Burn: every semiring on the engine, on the portable path and on the tape.
//!
//! The oracle for values is a loop over all labels, for gradients central differences of it in
//! `f64`, and the portable path on Flex.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{AutodiffBackend, Backend};
use burn_flex::Flex;
use burn_t4a::ext::einsum::{
    Einsum, EinsumError, EinsumOps, HostOperand, LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus,
    Operand, Path, Standard, Subscripts, TensorSemiring, bool_einsum, complex_einsum,
    counting_einsum, einsum, int_einsum, k_best_einsum, semiring_einsum,
};
use burn_t4a::ext::{Complex, ExtError};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::{Bool, DType, Int, Tensor, TensorData, TensorPrimitive};
use t4a_algebra::Semiring;

/// Terms by letters, shapes of the operands, sizes of labels that only the output has.
struct Case {
    text: &'static str,
    shapes: &'static [&'static [usize]],
    given: &'static [(char, usize)],
}

const fn case(text: &'static str, shapes: &'static [&'static [usize]]) -> Case {
    Case { text, shapes, given: &[] }
}

/// Products, batches, chains, stars, diagonals read and written, lone labels, broadcasting,
/// scalars, one operand, labels of the output only, nothing summed.
const CASES: &[Case] = &[
    case("ij,jk->ik", &[&[2, 3], &[3, 4]]),
    case("bij,bjk->bik", &[&[2, 3, 2], &[2, 2, 3]]),
    case("ij,jk,kl->il", &[&[2, 3], &[3, 2], &[2, 3]]),
    case("ai,bi,ci->abc", &[&[2, 3], &[3, 3], &[2, 3]]),
    case("ii->i", &[&[3, 3]]),
    case("iij,jk->ik", &[&[2, 2, 3], &[3, 2]]),
    case("ij,j->jij", &[&[2, 3], &[3]]),
    case("ijk,k->i", &[&[2, 3, 2], &[2]]),
    case("ij,kl->", &[&[2, 2], &[2, 3]]),
    case("ij,jk->ik", &[&[2, 1], &[3, 2]]),
    case("...ij,jk->...ik", &[&[2, 2, 3], &[3, 2]]),
    case(",i->i", &[&[1], &[3]]),
    case("i,j->ij", &[&[2], &[3]]),
    case("ij->ji", &[&[2, 3]]),
    Case { text: "i->ni", shapes: &[&[3]], given: &[('n', 2)] },
    Case { text: "ij,j->niin", shapes: &[&[2, 3], &[3]], given: &[('n', 2)] },
];

/// Numbers without ties, between 0.1 and 2.1.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        0.1 + (state >> 33) as f64 / (1u64 << 30) as f64
    };
    (0..count).map(next).collect()
}

fn data(case: &Case, seed: u64) -> Vec<Vec<f64>> {
    let sized = case.shapes.iter().enumerate();
    sized.map(|(i, shape)| numbers(shape.iter().product(), 7 * seed + i as u64)).collect()
}

/// The sum by a loop over all labels.
fn naive<S: Semiring<f64>>(case: &Case, data: &[Vec<f64>]) -> (Vec<f64>, Vec<usize>) {
    let (inputs, output) = case.text.split_once("->").unwrap();
    let term = |text: &str| text.replace("...", "Z").chars().collect::<Vec<char>>();
    let inputs: Vec<Vec<char>> = inputs.split(',').map(term).collect();
    let output = term(output);
    let mut sizes: Vec<(char, usize)> = case.given.to_vec();
    for (term, shape) in inputs.iter().zip(case.shapes) {
        for (&label, &n) in term.iter().zip(*shape) {
            match sizes.iter_mut().find(|(known, _)| *known == label) {
                Some((_, size)) => *size = (*size).max(n),
                None => sizes.push((label, n)),
            }
        }
    }
    let size = |label: char| sizes.iter().find(|(known, _)| *known == label).unwrap().1;
    let shape: Vec<usize> = output.iter().map(|&l| size(l)).collect();
    let mut out = vec![S::ZERO; shape.iter().product()];
    for mut number in 0..sizes.iter().map(|(_, n)| n).product::<usize>() {
        let mut value = vec![0; sizes.len()];
        for (v, (_, n)) in value.iter_mut().zip(&sizes) {
            (*v, number) = (number % n, number / n);
        }
        let of = |label: char| value[sizes.iter().position(|(l, _)| *l == label).unwrap()];
        let at = |term: &[char], shape: &[usize]| {
            term.iter().zip(shape).fold(0, |at, (&l, &n)| at * n + of(l) % n)
        };
        let factors = inputs.iter().zip(case.shapes).zip(data);
        let term =
            factors.fold(S::ONE, |x, ((term, shape), data)| S::mul(x, data[at(term, shape)]));
        let to = at(&output, &shape);
        out[to] = S::add(out[to], term);
    }
    (out, shape)
}

fn tensor<B: Backend>(values: &[f64], shape: &[usize]) -> B::FloatTensorPrimitive {
    B::float_from_data(TensorData::new(values.to_vec(), shape.to_vec()), &Default::default())
}

fn values<B: Backend>(x: B::FloatTensorPrimitive) -> Vec<f64> {
    // Of any rank: the flattened tensor.
    let count = burn_backend::TensorMetadata::shape(&x).num_elements();
    let flat = B::float_reshape(x, [count].into());
    Tensor::<B, 1>::from_primitive(TensorPrimitive::Float(flat)).into_data().iter().collect()
}

fn plan_of(case: &Case) -> Einsum {
    let einsum = Einsum::new(case.text).unwrap();
    case.given.iter().fold(einsum, |einsum, &(label, n)| einsum.size(label, n))
}

/// The plan, with scalars of shape `[1]` read as such.
fn compiled(case: &Case) -> std::sync::Arc<burn_t4a::ext::einsum::Plan> {
    let einsum = plan_of(case);
    let shapes: Vec<&[usize]> = case
        .shapes
        .iter()
        .enumerate()
        .map(|(i, shape)| if einsum.subscripts().rank(i) == Some(0) { &[] } else { *shape })
        .collect();
    einsum.plan(&shapes, 8).unwrap()
}

fn run<S: TensorSemiring, B: EinsumOps>(case: &Case, data: &[Vec<f64>]) -> Vec<f64> {
    let operands = data.iter().zip(case.shapes).map(|(x, shape)| tensor::<B>(x, shape)).collect();
    values::<B>(B::einsum::<S>(&compiled(case), operands).unwrap())
}

/// Gradients of ⟨u, einsum⟩ for fixed numbers u.
fn gradients<S: TensorSemiring, B: AutodiffBackend + EinsumOps>(
    case: &Case,
    data: &[Vec<f64>],
    u: &[f64],
) -> Vec<Vec<f64>> {
    let leaf =
        |(x, shape): (&Vec<f64>, &&[usize])| B::float_set_require_grad(tensor::<B>(x, shape), true);
    let leaves: Vec<_> = data.iter().zip(case.shapes).map(leaf).collect();
    let out = B::einsum::<S>(&compiled(case), leaves.clone()).unwrap();
    let out = B::float_reshape(out, [u.len()].into());
    let loss = B::float_sum(B::float_mul(out, tensor::<B>(u, &[u.len()])));
    let grads = B::backward(loss);
    leaves.iter().map(|x| values::<B::InnerBackend>(B::grad(x, &grads).unwrap())).collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        let near = a == b || (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(near, "{what}: {a}, expected {b}");
    }
}

fn check<S: TensorSemiring>() {
    for (seed, case) in CASES.iter().enumerate() {
        let name = std::any::type_name::<S>();
        let what = |part: &str| format!("{name} {} {part}", case.text);
        let data = data(case, seed as u64);
        let (expected, _) = naive::<S>(case, &data);
        close(&run::<S, BurnT4a>(case, &data), &expected, 1e-12, &what("on the engine"));
        close(&run::<S, Flex>(case, &data), &expected, 1e-12, &what("portable"));
        close(&run::<S, Autodiff<Flex>>(case, &data), &expected, 1e-12, &what("untracked"));

        let u = numbers(expected.len(), 99);
        let loss = |data: &[Vec<f64>]| -> f64 {
            let terms = naive::<S>(case, data).0.into_iter().zip(&u);
            // Off a diagonal that is written stands 0 of the semiring, a constant.
            terms.filter(|(x, _)| x.is_finite()).map(|(x, u)| x * u).sum()
        };
        let ours = gradients::<S, Autodiff<BurnT4a>>(case, &data, &u);
        let theirs = gradients::<S, Autodiff<Flex>>(case, &data, &u);
        let kept = gradients::<S, Autodiff<BurnT4a, BalancedCheckpointing>>(case, &data, &u);
        for (i, grad) in ours.iter().enumerate() {
            close(grad, &theirs[i], 1e-11, &what("engine against portable gradient"));
            close(grad, &kept[i], 1e-14, &what("balanced checkpointing"));
            for (e, &g) in grad.iter().enumerate() {
                let h = 1e-6;
                let mut moved = data.clone();
                let mut at = |x: f64| {
                    moved[i][e] = x;
                    loss(&moved)
                };
                let difference = (at(data[i][e] + h) - at(data[i][e] - h)) / (2.0 * h);
                close(&[g], &[difference], 1e-7, &what("gradient"));
            }
        }
    }
}

#[test]
fn sums_of_products() {
    check::<Standard>();
}

#[test]
fn winners() {
    check::<MaxPlus>();
    check::<MinPlus>();
    check::<MaxMul>();
    check::<MaxMin>();
}

#[test]
fn marginals() {
    check::<LogSumExp>();
}

/// The Hessian of the loss applied to a direction, by differentiating the gradient, against
/// central differences of the gradient.
fn second_order<S: TensorSemiring, B: EinsumOps>(case: &Case)
where
    Autodiff<B>: EinsumOps + AutodiffBackend<InnerBackend = B>,
{
    type AA<B> = Autodiff<Autodiff<B>>;
    let data = data(case, 5);
    let (expected, _) = naive::<S>(case, &data);
    let u = numbers(expected.len(), 98);
    let directions: Vec<Vec<f64>> =
        data.iter().enumerate().map(|(i, x)| numbers(x.len(), 50 + i as u64)).collect();
    let leaf = |(x, shape): (&Vec<f64>, &&[usize])| {
        Autodiff::<B>::float_set_require_grad(tensor::<Autodiff<B>>(x, shape), true)
    };
    let inner: Vec<_> = data.iter().zip(case.shapes).map(leaf).collect();
    let outer: Vec<_> = inner
        .iter()
        .map(|x| AA::<B>::float_set_require_grad(AA::<B>::from_inner(x.clone()), true))
        .collect();
    let out = AA::<B>::einsum::<S>(&compiled(case), outer.clone()).unwrap();
    // Squared, so that even a bilinear form has a Hessian in each operand.
    let out = AA::<B>::float_reshape(out, [u.len()].into());
    let out = AA::<B>::float_mul(out.clone(), out);
    let grads = AA::<B>::backward(AA::<B>::float_sum(AA::<B>::float_mul(
        out,
        tensor::<AA<B>>(&u, &[u.len()]),
    )));
    let along = |(x, v): (&_, &Vec<f64>)| {
        let g = AA::<B>::grad(x, &grads).unwrap();
        let flat = Autodiff::<B>::float_reshape(g, [v.len()].into());
        let v = tensor::<Autodiff<B>>(v, &[v.len()]);
        Autodiff::<B>::float_sum(Autodiff::<B>::float_mul(flat, v))
    };
    let slope = outer.iter().zip(&directions).map(along).reduce(Autodiff::<B>::float_add);
    let grads = Autodiff::<B>::backward(slope.unwrap());
    // The gradient of Σ u y² is that of Σ (2 u y) y at fixed weights.
    let gradient = |data: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let (y, _) = naive::<S>(case, data);
        let w: Vec<f64> = y.iter().zip(&u).map(|(y, u)| 2.0 * u * y).collect();
        gradients::<S, Autodiff<B>>(case, data, &w)
    };
    let shifted = |h: f64| -> Vec<Vec<f64>> {
        let step = |(x, v): (&Vec<f64>, &Vec<f64>)| {
            x.iter().zip(v).map(|(x, v)| x + h * v).collect::<Vec<f64>>()
        };
        gradient(&data.iter().zip(&directions).map(step).collect::<Vec<_>>())
    };
    let h = 1e-6;
    let (up, down) = (shifted(h), shifted(-h));
    for (i, x) in inner.iter().enumerate() {
        let ours = values::<B>(Autodiff::<B>::grad(x, &grads).unwrap());
        let differences: Vec<f64> =
            up[i].iter().zip(&down[i]).map(|(a, b)| (a - b) / (2.0 * h)).collect();
        close(&ours, &differences, 1e-6, &format!("Hessian of {}", case.text));
    }
}

#[test]
fn second_derivatives() {
    for case in CASES {
        second_order::<Standard, BurnT4a>(case);
        second_order::<LogSumExp, BurnT4a>(case);
        second_order::<MaxMul, BurnT4a>(case);
        second_order::<MaxPlus, BurnT4a>(case);
    }
    second_order::<LogSumExp, Flex>(&CASES[2]);
    second_order::<Standard, Flex>(&CASES[5]);
}

type Vector<B> = Tensor<B, 1>;

fn f64s<B: Backend, const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<B, D> {
    let data = TensorData::new(values.to_vec(), shape);
    Tensor::from_data(data, (&Default::default(), DType::F64))
}

/// f(y) ≥ f(x) + ⟨g, y − x⟩ at points with many ties, and one unit of cotangent per element goes
/// to one element of each operand.
#[test]
fn gradients_at_ties_are_subgradients() {
    type AD = Autodiff<BurnT4a>;
    let ties = |seed: u64| numbers(9, seed).iter().map(|x| x.round()).collect::<Vec<f64>>();
    let f = |a: &[f64], b: &[f64]| -> (f64, Vec<f64>, Vec<f64>) {
        let (a, b) =
            (f64s::<AD, 2>(a, [3, 3]).require_grad(), f64s::<AD, 2>(b, [3, 3]).require_grad());
        let y: Vector<AD> = semiring_einsum::<MaxPlus, _, _>("ij,jk->", [&a, &b]).unwrap();
        let grads = y.backward();
        let grad = |x: &Tensor<AD, 2>| x.grad(&grads).unwrap().into_data().iter().collect();
        (y.into_data().iter::<f64>().sum(), grad(&a), grad(&b))
    };
    for seed in 0..20 {
        let (a, b) = (ties(seed), ties(seed + 100));
        let (fx, ga, gb) = f(&a, &b);
        assert_eq!((ga.iter().sum::<f64>(), gb.iter().sum::<f64>()), (1.0, 1.0));
        let (c, d) = (numbers(9, seed + 200), numbers(9, seed + 300));
        let slope = |g: &[f64], x: &[f64], y: &[f64]| -> f64 {
            g.iter().zip(x.iter().zip(y)).map(|(g, (x, y))| g * (y - x)).sum()
        };
        assert!(f(&c, &d).0 >= fx + slope(&ga, &a, &c) + slope(&gb, &b, &d) - 1e-12);
    }
}

/// Rows without a candidate: −∞ comes out, and no gradient, not NaN; on both paths.
#[test]
fn dead_ends_pass_nothing_on() {
    fn run<S: TensorSemiring, B: AutodiffBackend + EinsumOps>(dead: f64) {
        let a = f64s::<B, 2>(&[dead, dead, 0.5, dead], [2, 2]).require_grad();
        let b = f64s::<B, 2>(&[0.25, dead, -dead, 1.0], [2, 2]).require_grad();
        let y: Tensor<B, 2> = semiring_einsum::<S, _, _>("ij,jk->ik", [&a, &b]).unwrap();
        let out: Vec<f64> = y.clone().into_data().iter().collect();
        assert_eq!(out, [dead, dead, 0.75, dead]);
        let grads = y.sum().backward();
        let of = |x: &Tensor<B, 2>| x.grad(&grads).unwrap().into_data().iter::<f64>().collect();
        let (ga, gb): (Vec<f64>, Vec<f64>) = (of(&a), of(&b));
        assert_eq!(ga, [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(gb, [1.0, 0.0, 0.0, 0.0]);
    }
    run::<MaxPlus, Autodiff<BurnT4a>>(f64::NEG_INFINITY);
    run::<MaxPlus, Autodiff<Flex>>(f64::NEG_INFINITY);
    run::<MinPlus, Autodiff<BurnT4a>>(f64::INFINITY);
    run::<MinPlus, Autodiff<Flex>>(f64::INFINITY);
    run::<LogSumExp, Autodiff<BurnT4a>>(f64::NEG_INFINITY);
    run::<LogSumExp, Autodiff<Flex>>(f64::NEG_INFINITY);
}

/// The rules of the engine and those in the operations of any backend, where it is delicate: ties,
/// zeros of the semiring, infinities, in every float dtype.
#[test]
fn engine_and_portable_gradients_agree_at_ties_and_infinities() {
    fn run<S: TensorSemiring, B: AutodiffBackend + EinsumOps>(
        seed: u64,
        dtype: DType,
        values: &[f64],
    ) -> Vec<Vec<f64>> {
        let draw = |seed: u64, count: usize| -> Vec<f64> {
            let pick = |x: f64| values[(x * 1e6) as usize % values.len()];
            numbers(count, seed).into_iter().map(pick).collect()
        };
        let leaf = |seed: u64, shape: [usize; 3]| {
            let x = f64s::<B, 3>(&draw(seed, shape.iter().product()), shape);
            x.cast(dtype).require_grad()
        };
        let (a, b) = (leaf(seed, [2, 5, 7]), leaf(seed + 50, [2, 7, 4]));
        let y: Tensor<B, 3> = semiring_einsum::<S, _, _>("bij,bjk->bki", [&a, &b]).unwrap();
        let u: Vec<f64> = numbers(40, seed).iter().map(|x| x.round()).collect();
        let u = f64s::<B, 3>(&u, [2, 4, 5]);
        let loss = y.mul(u.cast(dtype)).sum();
        let grads = loss.backward();
        let of = |x: &Tensor<B, 3>| x.grad(&grads).unwrap().into_data().iter().collect();
        vec![of(&a), of(&b)]
    }
    fn check<S: TensorSemiring>(values: &[f64]) {
        for (dtype, tolerance) in
            [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::F16, 4e-3), (DType::BF16, 3e-2)]
        {
            for seed in 0..12 {
                let ours = run::<S, Autodiff<BurnT4a>>(seed, dtype, values);
                let theirs = run::<S, Autodiff<Flex>>(seed, dtype, values);
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    let what = format!("{} {dtype:?}", std::any::type_name::<S>());
                    close(ours, theirs, tolerance, &what);
                }
            }
        }
    }
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    check::<MaxPlus>(&[0.0, 1.0, 2.0, low, low]);
    check::<MinPlus>(&[0.0, 1.0, 2.0, high, high]);
    check::<MaxMul>(&[0.0, 0.0, 1.0, 2.0, 0.5]);
    check::<MaxMin>(&[0.0, 1.0, 2.0, low, high]);
    check::<LogSumExp>(&[0.0, 1.0, -2.0, low, low]);
    check::<LogSumExp>(&[0.0, 1.0, low, high]);
}

/// Three gigabytes of terms if they were laid out.
#[test]
fn large_products_have_gradients_on_the_engine() {
    type AD = Autodiff<BurnT4a>;
    const N: usize = 720;
    let matrix = |seed: u64| {
        Tensor::<AD, 2>::from_data(TensorData::new(numbers(N * N, seed), [N, N]), &T4aDevice)
            .require_grad()
    };
    fn check<S: TensorSemiring>(a: &Tensor<AD, 2>, b: &Tensor<AD, 2>) {
        let y: Tensor<AD, 2> = semiring_einsum::<S, _, _>("ij,jk->ik", [a, b]).unwrap();
        let grads = y.sum().backward();
        for x in [a, b] {
            let sum: f32 = x.grad(&grads).unwrap().sum().into_scalar();
            // One unit of cotangent per element of the result.
            assert!((sum / (N * N) as f32 - 1.0).abs() < 1e-4, "{sum}");
        }
    }
    let (a, b) = (matrix(1), matrix(2));
    check::<MaxPlus>(&a, &b);
    check::<MinPlus>(&a, &b);
    check::<LogSumExp>(&a, &b);
}

/// Booleans, integers, counts and lists against the loop, on two backends.
#[test]
fn semirings_without_derivatives() {
    fn run<B: EinsumOps>()
    where
        Autodiff<B>: EinsumOps,
    {
        let device = B::Device::default();
        for (seed, case) in CASES.iter().enumerate().filter(|(_, case)| case.given.is_empty()) {
            let data: Vec<Vec<f64>> = data(case, seed as u64)
                .into_iter()
                .map(|x| x.into_iter().map(|x| (2.0 * x).floor()).collect())
                .collect();
            let ints = |i: usize| {
                let x: Vec<i32> = data[i].iter().map(|&x| x as i32).collect();
                TensorData::new(x, case.shapes[i].to_vec())
            };
            let bools = |i: usize| {
                let x: Vec<bool> = data[i].iter().map(|&x| x > 1.0).collect();
                TensorData::new(x, case.shapes[i].to_vec())
            };
            let of = |x: TensorData| -> Vec<f64> { x.iter().collect() };
            let zeroed: Vec<Vec<f64>> =
                data.iter().map(|x| x.iter().map(|&x| f64::from(x > 1.0)).collect()).collect();
            // Operands of ranks 1 to 3 by hand: the kind is in the type, the rank is not.
            macro_rules! operands {
                ($kind:ty, $data:expr, $options:expr) => {
                    (0..data.len())
                        .map(|i| {
                            let x = $data(i);
                            match case.shapes[i].len() {
                                1 => {
                                    HostOperand::from(Tensor::<B, 1, $kind>::from_data(x, $options))
                                }
                                2 => {
                                    HostOperand::from(Tensor::<B, 2, $kind>::from_data(x, $options))
                                }
                                _ => {
                                    HostOperand::from(Tensor::<B, 3, $kind>::from_data(x, $options))
                                }
                            }
                        })
                        .collect::<Vec<HostOperand<B, $kind>>>()
                };
            }
            macro_rules! by_rank {
                ($rank:expr, $d:ident => $body:expr) => {
                    match $rank {
                        0 | 1 => {
                            const $d: usize = 1;
                            $body
                        }
                        2 => {
                            const $d: usize = 2;
                            $body
                        }
                        3 => {
                            const $d: usize = 3;
                            $body
                        }
                        _ => {
                            const $d: usize = 4;
                            $body
                        }
                    }
                };
            }
            let (expected, shape) = naive::<MaxPlus>(case, &data);
            let i32s = || operands!(Int, ints, (&device, DType::I32));
            let got = by_rank!(shape.len(), D => {
                let y: Tensor<B, D, Int> = int_einsum::<MaxPlus, _, _>(case.text, i32s()).unwrap();
                of(y.into_data())
            });
            // −∞ is the least integer.
            let expected: Vec<f64> = expected
                .iter()
                .map(|&x| if x.is_finite() { x } else { f64::from(i32::MIN) })
                .collect();
            assert_eq!(got, expected, "{}", case.text);

            let (expected, _) = naive::<MaxMul>(case, &zeroed);
            let got = by_rank!(shape.len(), D => {
                let y: Tensor<B, D, Bool> =
                    bool_einsum(case.text, operands!(Bool, bools, &device)).unwrap();
                of(y.into_data())
            });
            assert_eq!(got, expected, "{}", case.text);
        }
        // All pairs: the sorted sums, and how often the largest occurs.
        let (a, b) = ([1.0, 3.0, 2.0, 3.0], [0.0, 2.0, 2.0, 1.0]);
        let (x, y) = (f64s::<B, 1>(&a, [4]), f64s::<B, 1>(&b, [4]));
        let mut sums: Vec<f64> = a.iter().flat_map(|a| b.map(|b| a + b)).collect();
        sums.sort_by(|a, b| b.total_cmp(a));
        let best: Vector<B> = k_best_einsum::<MaxPlus, 6, _, _>("i,j->", (&x, &y)).unwrap();
        assert_eq!(best.into_data().iter::<f64>().collect::<Vec<_>>(), sums[..6]);
        let best: Tensor<B, 2> = k_best_einsum::<MinPlus, 2, _, _>("i,i->i", (&x, &y)).unwrap();
        let rows: Vec<f64> = best.into_data().iter().collect();
        assert_eq!(
            rows,
            [1.0, f64::INFINITY, 5.0, f64::INFINITY, 4.0, f64::INFINITY, 4.0, f64::INFINITY]
        );
        let (most, ways) = counting_einsum::<MaxPlus, _, 1>("i,j->", (&x, &y)).unwrap();
        assert_eq!(most.into_data().iter::<f64>().next(), Some(5.0));
        assert_eq!(ways.into_data().iter::<i64>().next(), Some(4));
        // On the tape: the values have their gradient.
        let inner = Tensor::<Autodiff<B>, 1>::from_inner(x).require_grad();
        let other = Tensor::<Autodiff<B>, 1>::from_inner(y);
        let (most, ways) = counting_einsum::<MaxPlus, _, 1>("i,j->", (&inner, &other)).unwrap();
        assert_eq!(ways.into_data().iter::<i64>().next(), Some(4));
        let g: Vec<f64> = inner.grad(&most.backward()).unwrap().into_data().iter().collect();
        assert_eq!(g, [0.0, 1.0, 0.0, 0.0]);
    }
    run::<BurnT4a>();
    run::<Flex>();
}

#[test]
fn mistakes_without_derivatives_are_typed_errors() {
    type B = BurnT4a;
    let ints = |dtype| Tensor::<B, 1, Int>::from_data([1, 2], (&T4aDevice, dtype));
    let unsigned = int_einsum::<MinPlus, B, 1>("i,i->i", [ints(DType::U8), ints(DType::U8)]);
    assert!(matches!(unsigned, Err(ExtError::Tensor(_))));
    let mixed = int_einsum::<MinPlus, B, 1>("i,i->i", [ints(DType::I32), ints(DType::I64)]);
    assert!(matches!(mixed, Err(ExtError::DTypeMismatch { argument: 1, .. })));
    let rank = int_einsum::<MinPlus, B, 2>("i,i->i", [ints(DType::I32), ints(DType::I32)]);
    assert!(matches!(rank, Err(ExtError::ResultRank { required: 1, given: 2, .. })));
    // 2⁶⁴ ways to choose nothing.
    let free = Tensor::<B, 1>::zeros([2], &T4aDevice);
    let text = (b'a'..=b'z').chain(b'A'..=b'Z').map(|c| (c as char).to_string());
    let text: Vec<String> = text.take(52).collect();
    let many = format!("{}->", text.join(","));
    let few = counting_einsum::<MaxPlus, B, 1>(&*many, vec![free.clone(); 52]).unwrap();
    assert_eq!(few.1.into_data().iter::<i64>().next(), Some(1 << 52));
    let more: Vec<usize> = (0..64).collect();
    let labels = Subscripts::new(more.iter().map(|&l| vec![l]), Vec::<usize>::new());
    let over = counting_einsum::<MaxPlus, B, 1>(labels, vec![free; 64]).unwrap_err();
    assert_eq!(over, ExtError::CountOverflow);
}

#[test]
fn one_tensor_twice_and_constants_beside_it() {
    type AD = Autodiff<BurnT4a>;
    let a = f64s::<AD, 2>(&[1.0, 2.0, 3.0, 4.0], [2, 2]).require_grad();
    let c = f64s::<AD, 1>(&[1.0, 10.0], [2]);
    let y: Vector<AD> = einsum("ij,jk,k->", (&a, &a, &c)).unwrap();
    let grads = y.backward();
    // L = 1ᵀ A A c: ∂L/∂A = 1 (A c)ᵀ + (Aᵀ 1) cᵀ
    let g: Vec<f64> = a.grad(&grads).unwrap().into_data().iter().collect();
    assert_eq!(g, [21.0 + 4.0, 43.0 + 40.0, 21.0 + 6.0, 43.0 + 60.0]);
}

#[test]
fn empty_axes() {
    type AD = Autodiff<BurnT4a>;
    let a = f64s::<AD, 2>(&[], [2, 0]).require_grad();
    let b = f64s::<AD, 2>(&[], [0, 3]).require_grad();
    let y: Tensor<AD, 2> = einsum("ij,jk->ik", [&a, &b]).unwrap();
    assert_eq!(y.to_data(), TensorData::zeros::<f64, _>([2, 3]));
    let grads = y.sum().backward();
    assert_eq!(a.grad(&grads).unwrap().dims(), [2, 0]);
    let y: Tensor<AD, 2> = semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&a, &b]).unwrap();
    assert!(y.clone().into_data().iter::<f64>().all(|x| x == f64::NEG_INFINITY));
    let grads = y.sum().backward();
    assert_eq!(b.grad(&grads).unwrap().dims(), [0, 3]);
}

#[test]
fn half_precision_runs_on_the_engine() {
    let a = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
    for dtype in [DType::F16, DType::BF16] {
        let a = a.clone().cast(dtype);
        let y: Tensor<BurnT4a, 2> =
            semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&a, &a]).unwrap();
        assert_eq!(y.dtype(), dtype);
        assert_eq!(y.into_data().iter::<f32>().collect::<Vec<_>>(), [5.0, 6.0, 7.0, 8.0]);
    }
}

#[test]
fn expressions_of_every_kind() {
    let a = f64s::<BurnT4a, 2>(&numbers(6, 1), [2, 3]);
    let b = f64s::<BurnT4a, 2>(&numbers(6, 2), [3, 2]);
    let v = f64s::<BurnT4a, 1>(&numbers(2, 3), [2]);
    let expected: Vector<BurnT4a> =
        a.clone().matmul(b.clone()).matmul(v.clone().reshape([2, 1])).squeeze_dim(1);
    let same = |y: Vector<BurnT4a>| {
        let (y, e) = (y.into_data(), expected.to_data());
        y.assert_approx_eq::<f64>(&e, burn_tensor::Tolerance::relative(1e-12));
    };
    same(einsum("ij,jk,k", (&a, &b, &v)).unwrap());
    let labels = Subscripts::new([vec![10, 20], vec![20, 30], vec![30]], [10]);
    same(einsum(labels, (a.clone(), &b, &v)).unwrap());
    let guided = Einsum::new("ij,jk,k->i").unwrap().path(Path::from([[1, 2], [0, 1]]));
    same(einsum(&guided, vec![Operand::from(&a), (&b).into(), (&v).into()]).unwrap());
    // A budget that forces slices.
    let peak = guided.plan(&[&[2, 3], &[3, 2], &[2]], 8).unwrap().cost().bytes(8) as usize;
    same(einsum(guided.memory(peak - 1), (&a, &b, &v)).unwrap());
}

#[test]
fn mistakes_are_typed_errors() {
    type B = BurnT4a;
    let a = f64s::<B, 2>(&numbers(6, 1), [2, 3]);
    let v = f64s::<B, 1>(&numbers(2, 1), [2]);
    let of = |text: &str| einsum::<B, 2>(text, [&a, &a]).unwrap_err();
    let wrong = |text: &str| match of(text) {
        ExtError::Einsum(error) => error,
        other => panic!("{other}"),
    };
    assert!(matches!(wrong("ij,jk->ik"), EinsumError::SizeConflict { .. }));
    assert!(matches!(wrong("ij,j;->ik"), EinsumError::UnexpectedCharacter { position: 4, .. }));
    assert!(matches!(wrong("ij,ij->iq"), EinsumError::UnknownOutputLabel { .. }));
    assert!(matches!(wrong("ijk,ij->ij"), EinsumError::Rank { operand: 0, .. }));
    assert!(matches!(wrong("ij->ij"), EinsumError::OperandCount { expected: 1, given: 2 }));
    assert_eq!(of("ij,ij->i"), ExtError::ResultRank { op: "einsum", required: 1, given: 2 });
    assert_eq!(of("ij,ij->"), ExtError::ResultRank { op: "einsum", required: 1, given: 2 });
    let none = einsum::<B, 1>("i->i", Vec::<Operand<B>>::new()).unwrap_err();
    assert!(matches!(none, ExtError::Einsum(EinsumError::OperandCount { expected: 1, given: 0 })));
    let mixed = einsum::<B, 1>("ij,i->j", (&a, v.clone().cast(DType::F32))).unwrap_err();
    let expected =
        ExtError::DTypeMismatch { op: "einsum", first: DType::F64, argument: 1, dtype: DType::F32 };
    assert_eq!(mixed, expected);
    // Where every step is a node, all intermediates are kept: no slices.
    type Twice = Autodiff<Autodiff<B>>;
    let x = f64s::<Twice, 2>(&numbers(64, 1), [8, 8]).require_grad();
    let sliced = einsum::<_, 2>(tight_chain(), [&x, &x, &x]);
    assert!(matches!(sliced, Err(ExtError::NotSliced { .. })));
    let inner = x.inner();
    assert!(einsum::<_, 2>(tight_chain(), [&inner, &inner, &inner]).is_ok());
}

/// A chain of three 8×8 matrices that fits its budget in slices only.
fn tight_chain() -> Einsum {
    let chain = Einsum::new("ij,jk,kl->il").unwrap();
    let peak = chain.plan(&[&[8usize, 8][..]; 3], 8).unwrap().cost().bytes(8) as usize;
    let tight = chain.memory(peak - 1);
    assert!(!tight.plan(&[&[8usize, 8][..]; 3], 8).unwrap().sliced().is_empty());
    tight
}

#[test]
fn sliced_plans_have_the_gradients_of_whole_ones() {
    type AD = Autodiff<BurnT4a>;
    fn check<S: TensorSemiring>() {
        let gradients = |chain: Einsum| {
            let x: Vec<Tensor<AD, 2>> = (0..3)
                .map(|seed| f64s::<AD, 2>(&numbers(64, seed), [8, 8]).require_grad())
                .collect();
            let weights = f64s::<AD, 2>(&numbers(64, 9), [8, 8]);
            let y: Tensor<AD, 2> =
                semiring_einsum::<S, _, _>(chain, [&x[0], &x[1], &x[2]]).unwrap();
            let gradients = (y.clone() * weights).sum().backward();
            let of = |x: &Tensor<AD, 2>| x.grad(&gradients).unwrap().into_data();
            (y.into_data(), x.iter().map(of).collect::<Vec<_>>())
        };
        let (whole, expected) = gradients(Einsum::new("ij,jk,kl->il").unwrap());
        let (sliced, given) = gradients(tight_chain());
        let close = burn_tensor::Tolerance::relative(1e-12);
        sliced.assert_approx_eq::<f64>(&whole, close);
        given.iter().zip(&expected).for_each(|(g, e)| g.assert_approx_eq::<f64>(e, close));
    }
    check::<Standard>();
    check::<MaxPlus>();
    check::<LogSumExp>();
}

#[test]
fn complex_numbers_and_their_gradients() {
    type AD = Autodiff<BurnT4a>;
    let part = |seed: u64, shape: [usize; 2]| {
        f64s::<AD, 2>(&numbers(shape[0] * shape[1], seed), shape).require_grad()
    };
    let (ar, ai, br, bi) = (part(1, [2, 3]), part(2, [2, 3]), part(3, [3, 2]), part(4, [3, 2]));
    let a = Complex::new(ar.clone(), ai.clone()).unwrap();
    let b = Complex::new(br.clone(), bi.clone()).unwrap();
    let close = |a: &Tensor<AD, 2>, b: &Tensor<AD, 2>| {
        a.to_data().assert_approx_eq::<f64>(&b.to_data(), burn_tensor::Tolerance::relative(1e-12));
    };
    let product: Complex<AD, 2> = complex_einsum("ij,jk->ik", (&a, &b)).unwrap();
    let expected = a.clone().matmul(b.clone());
    close(&product.re(), &expected.re());
    close(&product.im(), &expected.im());
    // L = Σ |A B Ā|²; gradients against those of the real network.
    let loss = |abc: Complex<AD, 2>| abc.abs_squared().sum();
    let ours: Complex<AD, 2> = complex_einsum("ij,jk,kl->il", [&a, &b, &a.clone().conj()]).unwrap();
    let theirs = expected.matmul(a.conj());
    let (ours, theirs) = (loss(ours).backward(), loss(theirs).backward());
    for x in [ar, ai, br, bi] {
        let (g, e) = (x.grad(&ours).unwrap().into_data(), x.grad(&theirs).unwrap().into_data());
        g.assert_approx_eq::<f64>(&e, burn_tensor::Tolerance::relative(1e-10));
    }
}

#[test]
fn threads_share_plans_and_tapes() {
    type AD = Autodiff<BurnT4a>;
    let gradient = || -> Vec<f64> {
        let a = f64s::<AD, 2>(&numbers(12, 1), [3, 4]).require_grad();
        let b = f64s::<AD, 2>(&numbers(12, 2), [4, 3]);
        let y: Vector<AD> = semiring_einsum::<LogSumExp, _, _>("ij,jk,il->", [&a, &b, &a]).unwrap();
        let grads = y.backward();
        a.grad(&grads).unwrap().into_data().iter().collect()
    };
    let expected = gradient();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..25).map(|_| gradient()).collect::<Vec<_>>()))
            .collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|g| *g == expected));
        }
    });
}
