//! Products of complex numbers as pairs, in one launch: against loops, and contractions against the engine.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor};
use burn_cubecl::tensor::CubeTensor;
use burn_t4a::BurnT4a;
use burn_t4a::ext::Complex;
use burn_t4a::ext::einsum::complex_einsum;
use burn_t4a::ext::operation::{Array, BlockProducts, Operations, PairParts};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::structured::{
    Direction, FermionNumber, GradedTensor, Leg, Spec, Structured, einsum,
};
use burn_t4a_gpu_tests::Runtime;
use burn_t4a_transforms::jvp::{Jvp, jvp};
use t4a_cube::{CubeError, Operand, OperandParts, Tile, complex_product};

use super::blocks::{by_loops, products};
use super::kernels::operand;
use super::{Card, Engine, Fused, Gpu, Tested, assert_close, noise, numbers, tensor};

/// Parts of an operand: both, or only one.
const PARTS: [[bool; 2]; 3] = [[true, true], [true, false], [false, true]];

/// The product of two parts is added to this part of a complex product, with this sign.
fn rule([p, q]: [usize; 2], conj: [bool; 2]) -> (usize, f64) {
    let sign = |part: usize, conj: bool| if part == 1 && conj { -1.0 } else { 1.0 };
    let square = if p + q == 2 { -1.0 } else { 1.0 };
    ((p + q) % 2, square * sign(p, conj[0]) * sign(q, conj[1]))
}

/// `[β, m, k] · [β, k, n]` with f64 sums of the products of given parts.
fn expected(
    [a, b]: [&[Vec<f32>; 2]; 2],
    [batch, m, k, n]: [usize; 4],
    given: [[bool; 2]; 2],
    conj: [bool; 2],
) -> [Vec<f32>; 2] {
    let mut c = [0, 1].map(|_| vec![0.0f64; batch * m * n]);
    for [p, q] in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        if !given[0][p] || !given[1][q] {
            continue;
        }
        let (part, sign) = rule([p, q], conj);
        for (at, c) in c[part].iter_mut().enumerate() {
            let (beta, i, j) = (at / (m * n), at / n % m, at % n);
            let term = |l: usize| {
                let (x, y) = (a[p][(beta * m + i) * k + l], b[q][(beta * k + l) * n + j]);
                f64::from(x) * f64::from(y)
            };
            *c += sign * (0..k).map(term).sum::<f64>();
        }
    }
    c.map(|c| c.into_iter().map(|x| x as f32).collect())
}

/// Both parts of a batch of matrices, which are stored transposed if `turned`.
fn matrices(shape: [usize; 3], turned: bool, seed: usize, dtype: DType) -> [Tensor<Card, 3>; 2] {
    let [batch, m, n] = shape;
    [seed, seed + 1].map(|seed| {
        // Numbers that are exact in `f16`.
        let x: Vec<f32> =
            noise(batch * m * n, seed).iter().map(|x| (x * 64.0).round() / 64.0).collect();
        let x = tensor::<Card, 3>(&x, shape).cast(dtype);
        if turned { tensor_of(x.swap_dims(1, 2)).swap_dims(1, 2) } else { x }
    })
}

/// The same elements in row-major memory.
fn tensor_of(x: Tensor<Card, 3>) -> Tensor<Card, 3> {
    let (shape, dtype) = (x.dims(), x.dtype());
    tensor::<Card, 3>(&numbers(x), shape).cast(dtype)
}

fn chosen(parts: &[Tensor<Card, 3>; 2], given: [bool; 2]) -> OperandParts {
    [0, 1].map(|i| given[i].then(|| operand(parts[i].clone())))
}

fn beside(x: &Tensor<Card, 3>) -> CubeTensor<Runtime> {
    x.clone().into_primitive().tensor()
}

/// Every tile, operands in both orientations, in whole vectors and not, with conjugation, and with missing parts.
#[test]
fn products_by_all_tiles() {
    let mut case = 0;
    for sizes in [[2, 70, 37, 131], [1, 132, 72, 132], [3, 5, 3, 4]] {
        let [batch, m, k, n] = sizes;
        for orientation in 0..4 {
            for tile in [Tile::COMPLEX_WIDE, Tile::COMPLEX_LARGE, Tile::SMALL] {
                case += 1;
                let dtype = if case % 5 == 0 { DType::F16 } else { DType::F32 };
                let a = matrices([batch, m, k], orientation % 2 == 1, case, dtype);
                let b = matrices([batch, k, n], orientation >= 2, case + 100, dtype);
                let given = match case % 3 {
                    0 => [PARTS[0], PARTS[case / 3 % 3]],
                    _ => [PARTS[case % 3 - 1 + case / 12 % 2], PARTS[0]],
                };
                let conj = [case % 2 == 1, case / 2 % 2 == 1];
                let beside = beside(&a[0]);
                let operands = [chosen(&a, given[0]), chosen(&b, given[1])];
                let found = complex_product(&beside.client, operands, conj, Some(tile));
                let found = match found {
                    // Software Vulkan has 32 KiB of shared memory.
                    Err(CubeError::Tile { .. }) if !cfg!(feature = "cuda") => {
                        assert_eq!(tile, Tile::COMPLEX_WIDE);
                        continue;
                    }
                    found => found.unwrap(),
                };
                let (a, b) = (a.map(numbers), b.map(numbers));
                let expected = expected([&a, &b], sizes, given, conj);
                let tolerance = if dtype == DType::F16 { 2e-3 } else { 1e-5 };
                for (i, (found, expected)) in found.into_iter().zip(&expected).enumerate() {
                    let shape = [batch, m, n];
                    assert_eq!(found.shape, shape);
                    let memory = CubeTensor::new_contiguous(
                        beside.client.clone(),
                        beside.device.clone(),
                        shape.into_iter().collect(),
                        found.handle,
                        dtype,
                    );
                    let name = format!("{tile:?} {sizes:?} {orientation} {given:?} {conj:?} {i}");
                    let primitive = burn::tensor::TensorPrimitive::Float(memory);
                    let found = numbers(Tensor::<Card, 3>::from_primitive(primitive));
                    assert_close(&found, expected, tolerance, &name);
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_a_launch() {
    let x = tensor::<Card, 3>(&noise(24, 1), [2, 3, 4]);
    let client = beside(&x).client;
    let given = operand(x.clone());
    let both = |x: &Operand| [Some(x.clone()), Some(x.clone())];
    let turned = both(&operand(x.clone().swap_dims(1, 2)));
    let run = |a: OperandParts, b: OperandParts, tile| {
        complex_product(&client, [a, b], [false; 2], tile).map(|_| ())
    };
    assert_eq!(run(both(&given), turned.clone(), None), Ok(()));
    assert!(matches!(run(both(&given), both(&given), None), Err(CubeError::Sizes { .. })));
    // Without parts, without both parts of an operand, with parts of other shapes, strides and types.
    let none = || [None, None];
    let [re, im] = turned.clone();
    assert!(matches!(run(none(), turned.clone(), None), Err(CubeError::Sizes { .. })));
    let one = [Some(given.clone()), None];
    assert!(matches!(run(one, [re, None], None), Err(CubeError::Sizes { .. })));
    assert!(matches!(run([Some(given.clone()), im], none(), None), Err(CubeError::Sizes { .. })));
    let strides = Operand { strides: vec![12, 1, 3], ..given.clone() };
    let mixed = [Some(given.clone()), Some(strides)];
    assert!(matches!(run(mixed, turned.clone(), None), Err(CubeError::Sizes { .. })));
    let mixed = [Some(given.clone()), Some(operand(x.cast(DType::F16)))];
    assert!(matches!(run(mixed, turned.clone(), None), Err(CubeError::DType { .. })));
    let tile = Tile { sizes: [512, 512, 64], unit: [16, 16] };
    assert!(matches!(run(both(&given), turned, Some(tile)), Err(CubeError::Tile { .. })));
}

/// An operand of an einsum: real and imaginary part.
type Given<const D: usize> = ([Vec<f32>; 2], [usize; D]);

fn given<const D: usize>(shape: [usize; D], seed: usize) -> Given<D> {
    let n = shape.iter().product();
    ([noise(n, seed), noise(n, seed + 1)], shape)
}

/// The einsum, and the gradients of `Σ w y²` of both parts of the result, the real ones or the imaginary ones, where the
/// second operand is conjugated.
fn differentiated<B: Tested + AutodiffBackend, const D: usize, const N: usize>(
    text: &str,
    operands: &[Given<D>; N],
    parts: [bool; 2],
) -> Vec<Vec<f32>> {
    let leaves = operands
        .each_ref()
        .map(|(parts, shape)| parts.each_ref().map(|x| tensor::<B, D>(x, *shape).require_grad()));
    let numbers_of = |i: usize| {
        let [re, im] = leaves[i].clone();
        let z = Complex::new(re, im).unwrap();
        if i == 1 { z.conj() } else { z }
    };
    let z: Vec<Complex<B, D>> = (0..N).map(numbers_of).collect();
    let y: Complex<B, D> = complex_einsum(text, z.iter().collect::<Vec<_>>()).unwrap();
    let values = [y.re(), y.im()].map(|x| numbers(x.inner()));
    let weighted = |y: Tensor<B, D>| {
        let weights: Vec<f32> = (0..y.shape().num_elements()).map(|i| (i % 3 + 1) as f32).collect();
        (y.clone() * tensor::<B, D>(&weights, y.dims()) * y).sum()
    };
    let losses = [y.re(), y.im()].into_iter().zip(parts).filter(|(_, used)| *used);
    let loss = losses.map(|(y, _)| weighted(y)).reduce(|a, b| a + b).unwrap();
    let grads = loss.backward();
    let gradients = leaves.iter().flatten().map(|x| numbers(x.grad(&grads).unwrap()));
    values.into_iter().chain(gradients).collect()
}

fn as_on_the_engine<const D: usize, const N: usize>(text: &str, operands: &[Given<D>; N]) {
    for parts in PARTS {
        let found = differentiated::<Gpu, D, N>(text, operands, parts);
        let expected = differentiated::<Engine, D, N>(text, operands, parts);
        assert_eq!(found.len(), 2 + 2 * N);
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_close(found, expected, 1e-5, &format!("{text} {parts:?} {i}"));
        }
    }
}

/// Sizes below and above those of tiles, batches, axes in any order, labels of one operand, several operands.
#[test]
fn contractions_and_their_gradients() {
    for [m, k, n] in [[1, 1, 1], [1, 40, 1], [16, 17, 15], [70, 20, 34]] {
        as_on_the_engine("ij,jk->ik", &[given([m, k], 1), given([k, n], 3)]);
        as_on_the_engine("ji,kj->ki", &[given([k, m], 1), given([n, k], 3)]);
    }
    let a = given([3, 5, 4], 1);
    as_on_the_engine("bij,bjk->bik", &[a.clone(), given([3, 4, 6], 3)]);
    as_on_the_engine("bij,bjk->kbi", &[a.clone(), given([3, 4, 6], 3)]);
    as_on_the_engine("bij,jkb->ikb", &[a.clone(), given([4, 6, 3], 3)]);
    as_on_the_engine("bij,jkc->ikb", &[a.clone(), given([4, 6, 2], 3)]);
    as_on_the_engine("bij,bij->bij", &[a.clone(), given([3, 5, 4], 3)]);
    as_on_the_engine("bii,bij->bij", &[given([3, 4, 4], 1), given([3, 4, 6], 3)]);
    as_on_the_engine("ij,jk,kl->il", &[given([5, 7], 1), given([7, 3], 3), given([3, 6], 5)]);
}

/// Sums without terms are zero.
#[test]
fn contractions_of_empty_tensors() {
    let of = |shape: [usize; 2]| {
        let x = tensor::<Card, 2>(&[], shape);
        Complex::new(x.clone(), x).unwrap()
    };
    let y: Complex<Card, 2> = complex_einsum("ij,jk->ik", [&of([3, 0]), &of([0, 2])]).unwrap();
    assert_eq!([y.re(), y.im()].map(numbers), [vec![0.0; 6], vec![0.0; 6]]);
}

/// Infinities and NaN in one element: the elements of the result without it are finite, and the others those of the
/// definition. The engine's complex products may have NaN instead of infinities.
#[test]
fn infinities_and_nan() {
    let [m, k, n] = [20, 18, 19];
    for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        for part in 0..2 {
            let (mut a, b) = (given([m, k], 1).0, given([k, n], 3).0);
            a[part][3 * k + 7] = special;
            let of = |[re, im]: &[Vec<f32>; 2], shape| {
                Complex::new(tensor::<Card, 2>(re, shape), tensor(im, shape)).unwrap()
            };
            let (z, w) = (of(&a, [m, k]), of(&b, [k, n]));
            let y: Complex<Card, 2> = complex_einsum("ij,jk->ik", [&z, &w]).unwrap();
            let expected = expected([&a, &b], [1, m, k, n], [PARTS[0]; 2], [false; 2]);
            for (found, expected) in [y.re(), y.im()].map(numbers).iter().zip(&expected) {
                assert_close(found, expected, 1e-5, &format!("{special} {part}"));
                assert_eq!(found.iter().filter(|x| !x.is_finite()).count(), n);
            }
        }
    }
}

/// Parts with different strides, and parts that are views of one tensor.
fn of_views<B: Tested>() -> Vec<Vec<f32>> {
    let x = tensor::<B, 2>(&noise(30 * 30, 1), [30, 30]);
    let y = tensor::<B, 3>(&noise(2 * 30 * 20, 2), [30, 20, 2]);
    let part = |i: usize| y.clone().slice([0..30, 0..20, i..i + 1]).squeeze_dim::<2>(2);
    let a = Complex::new(x.clone(), x.transpose()).unwrap();
    let b = Complex::new(part(0), part(1)).unwrap();
    let c: Complex<B, 2> = complex_einsum("ij,jk->ik", [&a, &b]).unwrap();
    let d: Complex<B, 2> = complex_einsum("ji,jk->ki", [&a, &b]).unwrap();
    [c.re(), c.im(), d.re(), d.im()].map(numbers).into()
}

#[test]
fn parts_in_any_layout() {
    let expected = of_views::<BurnT4a>();
    for found in [of_views::<Card>(), of_views::<Fused>()] {
        super::programs::assert_parts(&found, &expected, 1e-5);
    }
}

#[test]
fn gradients_on_the_fused_backend() {
    let operands = [given([6, 5], 1), given([5, 4], 3)];
    for parts in PARTS {
        let found = differentiated::<Autodiff<Fused>, 2, 2>("ij,jk->ik", &operands, parts);
        let expected = differentiated::<Engine, 2, 2>("ij,jk->ik", &operands, parts);
        super::programs::assert_parts(&found, &expected, 1e-5);
    }
}

/// `z w` with a real, then an imaginary tangent.
fn tangents<B: Operations>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    let one = x.ones_like();
    let w = Complex::new(one.clone() * 0.5, one.clone() * -2.0).unwrap();
    let re = Complex::new(x.clone(), one.clone()).unwrap();
    let im = Complex::new(one, x).unwrap();
    let y: Complex<B, 2> = complex_einsum("ij,jk->ik", [&re, &w]).unwrap();
    let z: Complex<B, 2> = complex_einsum("ij,jk->ik", [&w, &im]).unwrap();
    y.re() - y.im() * 2.0 + z.re() * 3.0 + z.im() * 5.0
}

#[test]
fn tangents_of_one_part() {
    fn run<B: Tested>() -> Vec<Vec<f32>> {
        let [x, dx] = [1, 2].map(|seed| tensor::<B, 2>(&noise(25, seed), [5, 5]));
        let (y, dy): (Tensor<B, 2>, Tensor<B, 2>) = jvp(tangents::<Jvp<B>>, x, dx).unwrap();
        vec![numbers(y), numbers(dy)]
    }
    super::programs::assert_parts(&run::<Card>(), &run::<BurnT4a>(), 1e-5);
}

/// Nested tapes, on which products are recorded as real ones.
#[test]
fn second_derivatives() {
    fn second<B: Tested + AutodiffBackend>() -> Vec<f32>
    where
        B::InnerBackend: Tested + AutodiffBackend,
    {
        let x = tensor::<B::InnerBackend, 2>(&noise(20, 1), [4, 5]).require_grad();
        let a = Tensor::<B, 2>::from_inner(x.clone()).require_grad();
        let b = |seed| tensor::<B, 2>(&noise(15, seed), [5, 3]);
        let z = Complex::new(a.clone(), a.clone() * a.clone()).unwrap();
        let w = Complex::new(b(2), b(3)).unwrap();
        let y: Complex<B, 2> = complex_einsum("ij,jk->ik", [&z, &w]).unwrap();
        let slope = a.grad(&y.abs_squared().sum().backward()).unwrap();
        numbers(x.grad(&slope.powi_scalar(2).sum().backward()).unwrap())
    }
    let found = second::<Autodiff<Gpu>>();
    assert_close(&found, &second::<Autodiff<Engine>>(), 1e-4, "second derivative");
}

fn block_parts(parts: &[Floats<Card>; 2], given: [bool; 2]) -> PairParts<'_, Floats<Card>> {
    [0, 1].map(|i| given[i].then_some(&parts[i]))
}

/// Products of blocks in one launch, with conjugation and missing parts.
#[test]
fn block_products_are_those_of_loops() {
    let small: &[[usize; 2]] = &[[3, 2], [1, 1], [16, 17], [0, 4], [5, 31], [2, 16]];
    // Large tiles, with edges; the other matrices have one tile each.
    let large: &[[usize; 2]] = &[[4, 4], [70, 130], [64, 64], [1, 90]];
    let check = |of: &BlockProducts, [m, n]: [usize; 2], given: [[bool; 2]; 2], conj: [bool; 2]| {
        let parts = |n: usize, seed| [seed, seed + 1].map(|seed| noise(n.max(1), seed));
        let (a, b) = (parts(m, 1), parts(n, 3));
        let mut expected = [0, 1].map(|_| vec![0.0f32; of.len]);
        for [p, q] in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            if given[0][p] && given[1][q] {
                let (part, sign) = rule([p, q], conj);
                let terms = by_loops(&a[p], &b[q], of);
                expected[part].iter_mut().zip(terms).for_each(|(x, y)| *x += sign as f32 * y);
            }
        }
        let floats = |x: [Vec<f32>; 2]| -> [Floats<Card>; 2] {
            x.map(|x| tensor::<Card, 1>(&x, [x.len()]).into())
        };
        let (a, b) = (floats(a), floats(b));
        assert!(a[0].has_complex_products());
        let (a, b) = (block_parts(&a, given[0]), block_parts(&b, given[1]));
        let found = Floats::complex_block_products(a, b, conj, of).unwrap();
        for (found, expected) in found.into_iter().zip(expected) {
            let found = numbers(found.tensor::<1>().unwrap());
            assert_close(&found, &expected, 1e-5, &format!("{given:?} {conj:?}"));
        }
    };
    for sizes in [small, large] {
        let (of, lens) = products(sizes);
        for conj in [[false, false], [false, true], [true, false], [true, true]] {
            check(&of, lens, [PARTS[0]; 2], conj);
        }
        for parts in &PARTS[1..] {
            check(&of, lens, [*parts, PARTS[0]], [true, false]);
            check(&of, lens, [PARTS[0], *parts], [true, true]);
        }
    }
}

/// Contractions of complex fermionic tensors, with rearrangements and signs, and the gradients of both operands.
fn fermions<B: Tested + AutodiffBackend<InnerBackend: Operations>>() -> Vec<Vec<f32>> {
    let leg = |dims: &[usize]| {
        let sectors = (-1..).map(FermionNumber).zip(dims.iter().copied());
        Leg::new(sectors, Direction::Out).unwrap()
    };
    let (bond, site) = (leg(&[6, 20, 3]), leg(&[2, 1, 1]));
    let of = |legs: &[&Leg<FermionNumber>], rows, seed| -> GradedTensor<B, FermionNumber> {
        let legs = legs.iter().map(|&leg| leg.clone()).collect();
        let spec = Spec::new(legs, FermionNumber(0), rows).unwrap();
        let part = |seed| tensor::<B, 1>(&noise(spec.len(), seed), [spec.len()]);
        let numbers = Complex::new(part(seed), part(seed + 1)).unwrap();
        Structured::from_complex(&spec, numbers).unwrap()
    };
    let state = of(&[&bond, &site, &bond.dual()], 2, 1).require_grad();
    let other = of(&[&bond, &site.dual(), &bond.dual()], 1, 3).require_grad();
    let product = einsum("asb,btc->atsc", &[&state, &other]).unwrap();
    let [re, im] = [product.complex_flat().re(), product.complex_flat().im()];
    let loss = re.clone().powi_scalar(2).sum() + (re.clone() * im.clone()).sum();
    let gradients = loss.backward();
    let of = |x: &GradedTensor<B, FermionNumber>| {
        let (re, im) = x.grad(&gradients).unwrap().complex_flat().into_parts();
        [numbers(re), numbers(im)]
    };
    let values = [numbers(re.inner()), numbers(im.inner())];
    [values, of(&state), of(&other)].concat()
}

#[test]
fn contractions_of_graded_tensors() {
    let expected = fermions::<Engine>();
    super::programs::assert_parts(&fermions::<Gpu>(), &expected, 1e-5);
    super::programs::assert_parts(&fermions::<Autodiff<Fused>>(), &expected, 1e-5);
}
