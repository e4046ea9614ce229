//! Products and copies of parts of flat arrays in one launch: against loops, and structured tensors against the engine.

use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor};
use burn_t4a::ext::operation::{
    BlockCopies, BlockCopy, BlockProducts, BlockSum, BlockTerm, FlatMatrix, Operations,
};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::structured::{
    Direction, FermionNumber, GradedTensor, Leg, Spec, Structured, einsum,
};

use t4a_cube::{CopyTable, CubeError, Operand, ProductTable, block_copies, block_products};

use super::{Card, Engine, Gpu, Tested, assert_close, noise, numbers, tensor};

fn floats(values: &[f32], dtype: DType) -> Floats<Card> {
    Tensor::<Card, 1>::cast(tensor(values, [values.len()]), dtype).into()
}

fn read(x: Floats<Card>) -> Vec<f32> {
    numbers(x.tensor::<1>().unwrap())
}

/// Matrices one behind the other, in turns row-major and column-major.
fn matrices(sizes: &[[usize; 2]]) -> (Vec<FlatMatrix>, usize) {
    let mut offset = 0;
    let matrix = |(i, &[m, n]): (usize, &[usize; 2])| {
        let strides = if i % 2 == 0 { [n, 1] } else { [1, m] };
        let matrix = FlatMatrix { offset, strides };
        offset += m * n;
        matrix
    };
    (sizes.iter().enumerate().map(matrix).collect(), offset)
}

/// Results of these sizes, the matrix of index i with i terms of other sizes.
pub(super) fn products(sizes: &[[usize; 2]]) -> (BlockProducts, [usize; 2]) {
    let steps = |i: usize, term: usize| [7, 16, 1, 40, 0][(i + term) % 5];
    let terms = |i: usize| (0..i).map(move |term| steps(i, term));
    let all = |of: fn([usize; 2], usize) -> [usize; 2]| -> Vec<[usize; 2]> {
        let own = |(i, &size): (usize, &[usize; 2])| terms(i).map(move |k| of(size, k));
        sizes.iter().enumerate().flat_map(own).collect()
    };
    let (a, a_len) = matrices(&all(|[m, _], k| [m, k]));
    let (b, b_len) = matrices(&all(|[_, n], k| [k, n]));
    let (c, len) = matrices(sizes);
    let mut factors = a.into_iter().zip(b).map(|(a, b)| [a, b]);
    let sum = |(i, &sizes): (usize, &[usize; 2])| {
        let term = |steps| BlockTerm { factors: factors.next().unwrap(), steps };
        BlockSum { to: c[i], sizes, terms: terms(i).map(term).collect() }
    };
    let sums = sizes.iter().enumerate().map(sum).collect();
    (BlockProducts { len, sums, tables: Default::default() }, [a_len, b_len])
}

pub(super) fn by_loops(a: &[f32], b: &[f32], of: &BlockProducts) -> Vec<f32> {
    let mut c = vec![f32::NAN; of.len];
    let at = |x: FlatMatrix, i, j| x.offset + i * x.strides[0] + j * x.strides[1];
    for BlockSum { to, sizes: [m, n], terms } in &of.sums {
        for (i, j) in (0..*m).flat_map(|i| (0..*n).map(move |j| (i, j))) {
            let product = |&BlockTerm { factors: [x, y], steps }: &BlockTerm| -> f64 {
                (0..steps).map(|k| f64::from(a[at(x, i, k)]) * f64::from(b[at(y, k, j)])).sum()
            };
            c[at(*to, i, j)] = terms.iter().map(product).sum::<f64>() as f32;
        }
    }
    c
}

#[test]
fn products_are_those_of_loops() {
    let small: &[[usize; 2]] = &[[3, 2], [1, 1], [16, 17], [0, 4], [5, 31], [2, 16]];
    // Large tiles, with edges; the other matrices have one tile each.
    let large: &[[usize; 2]] = &[[4, 4], [70, 130], [64, 64], [1, 90]];
    for (sizes, seed) in [(small, 1), (large, 2), (&[], 3), (&[[0, 0]], 4)] {
        let (of, [m, n]) = products(sizes);
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 2e-3)] {
            let [a, b] = [(m, seed), (n, seed + 10)].map(|(n, seed)| {
                // Numbers that are exact in `f16`.
                noise(n.max(1), seed).iter().map(|x| (x * 64.0).round() / 64.0).collect::<Vec<_>>()
            });
            let expected = by_loops(&a, &b, &of);
            let [x, y] = [floats(&a, dtype), floats(&b, dtype)];
            // The second call uses the table of the first.
            for _ in 0..2 {
                let c = read(Card::array_block_products(&x, &y, &of).unwrap());
                assert_close(&c, &expected, tolerance, &format!("{sizes:?} {dtype:?}"));
            }
        }
    }
}

#[test]
fn copies_are_those_of_loops() {
    let copy = |offsets, negative, axes: &[[usize; 3]]| BlockCopy {
        offsets,
        negative,
        axes: axes.to_vec(),
    };
    let copies = vec![
        // A transposed 3×4 block, a negated run, a single element, nothing, and three axes.
        copy([2, 0], false, &[[4, 1, 3], [3, 4, 1]]),
        copy([0, 20], true, &[[7, 1, 1]]),
        copy([5, 12], true, &[]),
        copy([0, 0], false, &[[0, 1, 1], [3, 1, 1]]),
        copy([1, 40], false, &[[2, 30, 150], [5, 2, 30], [29, 10, 1]]),
        // Transposed in tiles: at edges, with other axes before, between and behind, negated.
        copy([3, 400], false, &[[37, 1, 70], [70, 37, 1]]),
        copy([0, 3000], true, &[[2, 3, 1600], [16, 100, 1], [1, 7, 9], [100, 1, 16]]),
        copy([5, 6300], false, &[[33, 1, 96], [3, 33, 32], [32, 99, 1]]),
    ];
    let len = 9600;
    let x = noise(len, 9);
    let mut expected = vec![0.0f32; len];
    for BlockCopy { offsets: [from, to], negative, axes } in &copies {
        let count: usize = axes.iter().map(|axis| axis[0]).product();
        for i in 0..count {
            let (mut rest, mut from, mut to) = (i, *from, *to);
            for [size, of_x, of_y] in axes.iter().rev() {
                (from, to) = (from + rest % size * of_x, to + rest % size * of_y);
                rest /= size;
            }
            expected[to] = if *negative { -x[from] } else { x[from] };
        }
    }
    for dtype in [DType::F32, DType::F16] {
        let rounded = read(floats(&expected, dtype));
        let tables = Default::default();
        let of = BlockCopies { len, is_full: false, copies: copies.clone(), tables };
        let y = Card::array_block_copies(&floats(&x, dtype), &of).unwrap();
        assert_eq!(read(y), rounded, "{dtype:?}");
    }
}

#[test]
fn tables_outside_of_their_arrays_are_refused() {
    let x = tensor::<Card, 1>(&noise(12, 1), [12]).into_primitive().tensor();
    let client = x.client.clone();
    let of = |n: usize| Operand {
        handle: x.handle.clone(),
        shape: vec![n],
        strides: vec![1],
        dtype: x.dtype.into(),
    };
    let matrix = |offset| FlatMatrix { offset, strides: [2, 1] };
    let products = |to, from, len| {
        let terms = vec![BlockTerm { factors: [matrix(from), matrix(0)], steps: 2 }];
        let sums = vec![BlockSum { to: matrix(to), sizes: [2, 2], terms }];
        BlockProducts { len, sums, tables: Default::default() }
    };
    let table = |of: &BlockProducts| ProductTable::new(&client, of);
    assert!(matches!(table(&products(1, 0, 4)), Err(CubeError::Sizes { .. })));
    assert!(matches!(table(&products(0, 1 << 31, 4)), Err(CubeError::TooLarge { .. })));
    let own = table(&products(0, 1, 4)).unwrap();
    let run = |a, c| block_products(&client, [of(a), of(12)], &own, of(c)).map(|_| ());
    assert!(matches!(run(4, 4), Err(CubeError::Sizes { .. })));
    assert!(matches!(run(5, 3), Err(CubeError::Sizes { .. })));
    assert_eq!(run(5, 4), Ok(()));

    let copy = |from| BlockCopy { offsets: [from, 0], negative: false, axes: vec![[3, 1, 1]] };
    assert!(matches!(CopyTable::new(&client, &[copy(1 << 31)]), Err(CubeError::TooLarge { .. })));
    let own = CopyTable::new(&client, &[copy(2)]).unwrap();
    let run = |x, y| block_copies(&client, of(x), &own, of(y)).map(|_| ());
    assert!(matches!(run(4, 3), Err(CubeError::Sizes { .. })));
    assert!(matches!(run(5, 2), Err(CubeError::Sizes { .. })));
    assert_eq!(run(5, 3), Ok(()));
    let half = Operand { dtype: DType::F16.into(), ..of(3) };
    assert!(matches!(block_copies(&client, of(5), &own, half), Err(CubeError::DType { .. })));
}

/// Fermions with signs: contractions with several sectors and sums over some, permutations, dense arrays with zeros,
/// traces, and the gradient of all of them.
fn fermions<B: Tested + AutodiffBackend<InnerBackend: Operations>>() -> Vec<Vec<f32>> {
    let leg = |dims: &[usize]| {
        let sectors = (-1..).map(FermionNumber).zip(dims.iter().copied());
        Leg::new(sectors, Direction::Out).unwrap()
    };
    let (bond, site) = (leg(&[40, 70, 3]), leg(&[2, 1, 1]));
    let of = |legs: &[&Leg<FermionNumber>], rows, seed| -> GradedTensor<B, FermionNumber> {
        let legs = legs.iter().map(|&leg| leg.clone()).collect();
        let spec = Spec::new(legs, FermionNumber(0), rows).unwrap();
        let flat = tensor(&noise(spec.len(), seed), [spec.len()]);
        Structured::from_flat(&spec, flat).unwrap()
    };
    let state = of(&[&bond, &site, &bond.dual()], 2, 1).require_grad();
    let other = of(&[&bond, &site.dual(), &bond.dual()], 1, 2);
    let product = einsum("asb,btc->atsc", &[&state, &other]).unwrap();
    let moved = product.permute(&[3, 1, 0, 2], 2).unwrap();
    let dense: Tensor<B, 4> = moved.to_tensor().unwrap();
    let traced = product.trace(&[(0, 3)]).unwrap();
    let loss = dense.clone().powi_scalar(2).sum() + traced.flat().powi_scalar(2).sum();
    let gradient = state.grad(&loss.backward()).unwrap();
    vec![numbers(dense.inner()), numbers(traced.flat().inner()), numbers(gradient.flat())]
}

#[test]
fn fermionic_tensors() {
    let [given, expected] = [fermions::<Gpu>(), fermions::<Engine>()];
    for (given, expected) in given.iter().zip(&expected) {
        assert_close(given, expected, 1e-5, "fermions");
    }
}
