//! Tensor trains against dense arrays.

use t4a_algebra::{Field, Numeric, Real, c64};
use t4a_linalg::LinalgScalar;
use t4a_networks::train::{
    Compression, Evaluator, Factorisation, RankRevealingLu, TensorTrain, TrainError, TrainOperator,
};
use t4a_tensor::Tensor;
use t4a_tensor::random::Generator;

const SIZES: [usize; 5] = [2, 3, 4, 2, 3];

fn points(sizes: &[usize]) -> Vec<Vec<usize>> {
    let total = sizes.iter().product();
    let point = |mut i: usize| {
        let mut point = vec![0; sizes.len()];
        for (p, d) in point.iter_mut().zip(sizes).rev() {
            (*p, i) = (i % d, i / d);
        }
        point
    };
    (0..total).map(point).collect()
}

fn dense<T: LinalgScalar>(train: &TensorTrain<T>) -> Vec<T> {
    train.to_dense().unwrap().to_vec().unwrap()
}

#[track_caller]
fn close<T: LinalgScalar>(a: &[T], b: &[T], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        let off = Numeric::sub(*x, *y).modulus().to_f64();
        assert!(off <= tolerance, "element {i}: {x:?} and {y:?} differ by {off}");
    }
}

fn norm<T: LinalgScalar>(a: &[T]) -> f64 {
    a.iter().map(|x| x.abs_sq().to_f64()).sum::<f64>().sqrt()
}

fn minus<T: LinalgScalar>(a: &[T], b: &[T]) -> Vec<T> {
    a.iter().zip(b).map(|(&x, &y)| Numeric::sub(x, y)).collect()
}

fn pair() -> [TensorTrain<c64>; 2] {
    let generator = Generator::new(1);
    [3, 4].map(|bond| TensorTrain::random(&generator, &SIZES, bond).unwrap())
}

#[test]
fn values_sums_and_weights() {
    let [f, _] = pair();
    let all = dense(&f);
    let points = points(&SIZES);
    let each: Vec<c64> = points.iter().map(|p| f.eval(p).unwrap()).collect();
    close(&each, &all, 1e-13);
    let shuffled: Vec<usize> = (0..points.len()).map(|i| i * 59 % points.len()).collect();
    let flat: Vec<usize> = shuffled.iter().flat_map(|&i| points[i].clone()).collect();
    let many = f.eval_many(&flat).unwrap();
    close(&many, &shuffled.iter().map(|&i| all[i]).collect::<Vec<_>>(), 1e-13);
    let mut evaluator = Evaluator::new(&f);
    for &i in &shuffled {
        close(&[evaluator.at(&points[i]).unwrap()], &[all[i]], 1e-13);
    }
    close(&[f.sum().unwrap()], &[all.iter().sum()], 1e-11);
    let weights: Vec<Vec<c64>> = SIZES
        .iter()
        .map(|&d| (0..d).map(|s| c64::new(s as f64 + 0.5, 1.0 - s as f64)).collect())
        .collect();
    let weight = |p: &[usize], of: &[usize]| of.iter().map(|&k| weights[k][p[k]]).product::<c64>();
    let whole = points.iter().zip(&all).map(|(p, x)| weight(p, &[0, 1, 2, 3, 4]) * x).sum::<c64>();
    close(&[f.weighted_sum(&weights).unwrap()], &[whole], 1e-10);
    // Sites 0, 2 and 3 are summed.
    let some = [true, false, true, true, false];
    let some = some.iter().zip(&weights).map(|(&on, w)| on.then(|| w.clone())).collect::<Vec<_>>();
    let rest = f.contract_sites(&some).unwrap();
    let mut want = vec![c64::new(0.0, 0.0); 9];
    points.iter().zip(&all).for_each(|(p, x)| want[p[1] * 3 + p[4]] += weight(p, &[0, 2, 3]) * x);
    close(&dense(&rest), &want, 1e-10);
}

#[test]
fn arithmetic() {
    let [f, g] = pair();
    let (x, y) = (dense(&f), dense(&g));
    let each =
        |op: fn(c64, c64) -> c64| x.iter().zip(&y).map(|(&a, &b)| op(a, b)).collect::<Vec<_>>();
    close(&dense(&f.add(&g).unwrap()), &each(|a, b| a + b), 1e-12);
    close(&dense(&f.sub(&g).unwrap()), &each(|a, b| a - b), 1e-12);
    close(&dense(&f.hadamard(&g).unwrap()), &each(|a, b| a * b), 1e-12);
    let a = c64::new(0.5, -2.0);
    close(&dense(&f.scale(a).unwrap()), &x.iter().map(|x| a * x).collect::<Vec<_>>(), 1e-12);
    close(&dense(&f.conj().unwrap()), &x.iter().map(|x| x.conj()).collect::<Vec<_>>(), 1e-13);
    let inner = x.iter().zip(&y).map(|(a, b)| a.conj() * b).sum::<c64>();
    close(&[f.inner(&g).unwrap()], &[inner], 1e-11);
    assert!((f.norm().unwrap() - norm(&x)).abs() < 1e-12 * norm(&x));
    assert!((f.distance(&g).unwrap() - norm(&minus(&x, &y))).abs() < 1e-11);
    assert!(f.distance(&f).unwrap() < 1e-13 * norm(&x));
    let reverse = f.reverse().unwrap();
    let values = [reverse.eval(&[2, 1, 3, 0, 1]).unwrap(), f.eval(&[1, 0, 3, 1, 2]).unwrap()];
    close(&values[..1], &values[1..], 1e-13);
    assert_eq!(TensorTrain::<f64>::unit(&[2, 3], &[1, 2]).unwrap().sum().unwrap(), 1.0);
    let real = TensorTrain::constant(&[2, 2], 3.0f32).unwrap();
    assert_eq!(real.to_complex().unwrap().sum().unwrap().re, 12.0);
}

#[test]
fn canonical_form_is_orthonormal() {
    let [f, _] = pair();
    let x = dense(&f);
    for centre in 0..SIZES.len() {
        let canonical = f.canonical(centre).unwrap();
        close(&dense(&canonical), &x, 1e-12);
        for (k, core) in canonical.cores().iter().enumerate() {
            let (&[l, d, r], a) = (core.shape(), core.to_vec().unwrap()) else { unreachable!() };
            let at = |i: usize, s: usize, j: usize| a[(i * d + s) * r + j];
            let (size, left) = if k < centre { (r, true) } else { (l, false) };
            for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                let product: c64 = match left {
                    true => (0..l * d).map(|p| a[p * r + i].conj() * a[p * r + j]).sum(),
                    false => (0..d)
                        .flat_map(|s| (0..r).map(move |p| (s, p)))
                        .map(|(s, p)| at(i, s, p) * at(j, s, p).conj())
                        .sum(),
                };
                let want = c64::new(f64::from(i == j), 0.0);
                assert!(k == centre || (product - want).norm() < 1e-13, "core {k}");
            }
        }
    }
}

#[test]
fn compression_recovers_bonds_and_reports_its_error() {
    let [f, g] = pair();
    let x = dense(&f);
    let double = f.add(&f).unwrap();
    for factorisation in [Factorisation::Svd, Factorisation::Lu, Factorisation::Cross] {
        let exact = Compression::new().factorisation(factorisation).tolerance(1e-12);
        let (same, error) = double.compress(&exact).unwrap();
        assert_eq!(same.bonds(), f.bonds());
        close(&dense(&same), &x.iter().map(|x| x + x).collect::<Vec<_>>(), 1e-11);
        assert!(error < 1e-10);
        let (from, _) = TensorTrain::from_dense(&f.to_dense().unwrap(), &exact).unwrap();
        assert_eq!(from.bonds(), f.bonds());
        close(&dense(&from), &x, 1e-11);
        // A cut of bonds, and its error.
        let cut = Compression::new().factorisation(factorisation).max_bond(2);
        let (low, error) = g.compress(&cut).unwrap();
        assert_eq!(low.max_bond(), 2);
        let true_error = low.distance(&g).unwrap();
        if factorisation == Factorisation::Svd {
            assert!(true_error <= error * (1.0 + 1e-12) && error < 3.0 * true_error);
        } else {
            let off = minus(&dense(&low), &dense(&g)).iter().map(|x| x.norm()).fold(0.0, f64::max);
            assert!(error > 0.0 && off > 0.02 * error && off < 50.0 * error, "{off} {error}");
        }
    }
    // A tolerance is kept: a small perturbation is removed, a larger one stays.
    let small = f.add(&g.scale(c64::new(1e-6, 0.0)).unwrap()).unwrap();
    let cut = |t: f64| small.compress(&Compression::new().tolerance(t)).unwrap().0;
    assert_eq!(cut(1e-4).bonds(), f.bonds());
    assert!(cut(1e-9).max_bond() > f.max_bond());
    assert!(cut(1e-4).distance(&small).unwrap() < 1e-4 * norm(&x));
    let zero = TensorTrain::constant(&SIZES, 0.0).unwrap();
    for factorisation in [Factorisation::Svd, Factorisation::Cross] {
        let compression = Compression::new().factorisation(factorisation).tolerance(1e-3);
        let (zero, error) = zero.compress(&compression).unwrap();
        assert_eq!((zero.max_bond(), zero.sum().unwrap(), error), (1, 0.0, 0.0));
    }
}

#[test]
fn operators() {
    let generator = Generator::new(2);
    let (outputs, inputs) = ([2, 3, 1], [3, 2, 2]);
    let pairs: Vec<usize> = outputs.iter().zip(&inputs).map(|(o, i)| o * i).collect();
    let [a, b] = [2, 3].map(|bond| {
        let train = TensorTrain::<c64>::random(&generator, &pairs, bond).unwrap();
        TrainOperator::from_train(&train, &outputs, &inputs).unwrap()
    });
    let f = TensorTrain::<c64>::random(&generator, &inputs, 2).unwrap();
    let (m, x) = (a.to_dense().unwrap().to_vec().unwrap(), dense(&f));
    assert_eq!((a.outputs(), a.inputs()), (outputs.to_vec(), inputs.to_vec()));
    let product = |m: &[c64], x: &[c64]| {
        m.chunks(x.len())
            .map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum())
            .collect::<Vec<c64>>()
    };
    close(&dense(&a.apply(&f).unwrap()), &product(&m, &x), 1e-12);
    let compression = Compression::new().tolerance(1e-13);
    close(&dense(&a.apply_compressed(&f, &compression).unwrap().0), &product(&m, &x), 1e-11);
    for factorisation in [Factorisation::Svd, Factorisation::Lu, Factorisation::Cross] {
        let compression = compression.factorisation(factorisation);
        let (zipped, _) = a.apply_zip_up(&f, &compression).unwrap();
        close(&dense(&zipped), &product(&m, &x), 1e-10);
    }
    let adjoint = a.adjoint().unwrap().to_dense().unwrap().to_vec().unwrap();
    for (i, j) in (0..6).flat_map(|i| (0..12).map(move |j| (i, j))) {
        assert_eq!(adjoint[j * 6 + i], m[i * 12 + j].conj());
    }
    // ⟨A g, B f⟩ = ⟨g, Aᴴ B f⟩
    let normal = a.adjoint().unwrap().compose(&b).unwrap();
    let left = a.apply(&f).unwrap().inner(&b.apply(&f).unwrap()).unwrap();
    let right = f.inner(&normal.apply(&f).unwrap()).unwrap();
    assert!((left - right).norm() < 1e-11 * left.norm());
    let sum = a.add(&b.scale(c64::new(0.0, 2.0)).unwrap()).unwrap().apply(&f).unwrap();
    let want = a.apply(&f).unwrap().add(&b.apply(&f).unwrap().scale(c64::new(0.0, 2.0)).unwrap());
    close(&dense(&sum), &dense(&want.unwrap()), 1e-12);
    let double = a.add(&a).unwrap().compress(&compression).unwrap().0;
    assert_eq!(double.max_bond(), a.max_bond());
    let reverse = a.reverse().unwrap().apply(&f.reverse().unwrap()).unwrap();
    close(&dense(&reverse.reverse().unwrap()), &product(&m, &x), 1e-12);
    let g = TensorTrain::<c64>::random(&generator, &inputs, 3).unwrap();
    let diagonal = TrainOperator::diagonal(&g).unwrap();
    close(&dense(&diagonal.apply(&f).unwrap()), &dense(&g.hadamard(&f).unwrap()), 1e-12);
    let identity = TrainOperator::identity(&inputs).unwrap();
    close(&dense(&identity.apply(&f).unwrap()), &x, 0.0);
    // For the identity the zip-up truncates as the compression does.
    let [f, _] = pair();
    let (identity, cut) =
        (TrainOperator::identity(&SIZES).unwrap(), Compression::new().max_bond(2));
    let (zipped, want) = (identity.apply_zip_up(&f, &cut).unwrap().0, f.compress(&cut).unwrap().0);
    assert_eq!(zipped.bonds(), want.bonds());
    close(&dense(&zipped), &dense(&want), 1e-11);
}

#[test]
fn lu_reveals_rank_and_error() {
    let generator = Generator::new(3);
    let matrix = |m: usize, n: usize, r: usize| {
        TensorTrain::<c64>::random(&generator, &[m, n], r).unwrap().to_dense().unwrap()
    };
    for (m, n, r) in [(7, 5, 3), (4, 9, 4), (6, 6, 1)] {
        let a = matrix(m, n, r);
        let lu = RankRevealingLu::new(&a, 1e-12, usize::MAX).unwrap();
        assert_eq!(lu.rank(), r);
        let data = a.to_vec().unwrap();
        let product = |l: Tensor<c64>, u: Tensor<c64>| {
            t4a_tensor::matmul::matmul::<t4a_algebra::Standard, _>(&l, &u)
                .unwrap()
                .to_vec()
                .unwrap()
        };
        close(&product(lu.lower().unwrap(), lu.upper().unwrap()), &data, 1e-12);
        // C P⁻¹ R with the rows and columns of the pivots.
        let rows: Vec<c64> =
            lu.rows().iter().flat_map(|&i| data[i * n..(i + 1) * n].to_vec()).collect();
        let rows = Tensor::from_vec(rows, &[r, n]).unwrap();
        close(&product(lu.left_interpolation().unwrap(), rows), &data, 1e-11);
        let cols =
            (0..m).flat_map(|i| lu.cols().iter().map(|&j| data[i * n + j]).collect::<Vec<_>>());
        let cols = Tensor::from_vec(cols.collect(), &[m, r]).unwrap();
        close(&product(cols, lu.right_interpolation().unwrap()), &data, 1e-11);
        // The error of a truncation is the largest element of the rest.
        let low = RankRevealingLu::new(&a, 0.0, r - 1).unwrap();
        let rest = minus(&data, &product(low.lower().unwrap(), low.upper().unwrap()));
        let size = |x: &c64| x.re.abs().max(x.im.abs());
        let largest = rest.iter().max_by(|a, b| size(a).total_cmp(&size(b))).unwrap().norm();
        assert!((low.error() - largest).abs() < 1e-12 && lu.pivots()[0] >= lu.pivots()[r - 1]);
    }
    let zero = RankRevealingLu::new(&Tensor::<f64>::zeros(&[3, 2]).unwrap(), 0.0, 9).unwrap();
    assert_eq!((zero.rank(), zero.error()), (0, 0.0));
}

#[test]
fn operands_are_checked() {
    let f = TensorTrain::constant(&[2, 3], 1.0).unwrap();
    let g = TensorTrain::constant(&[3, 2], 1.0).unwrap();
    let core = |shape: &[usize]| Tensor::<f64>::ones(shape).unwrap();
    assert!(matches!(TensorTrain::<f64>::new(vec![]), Err(TrainError::Sites { given: 0, .. })));
    for bad in [[1, 2, 3], [2, 2, 1], [1, 0, 1]] {
        let cores = TensorTrain::new(vec![core(&[1, 2, 1]), core(&bad)]);
        assert!(matches!(cores, Err(TrainError::Core { site: 1, .. })), "{bad:?}");
    }
    assert!(matches!(f.add(&g), Err(TrainError::Sizes { op: "add", .. })));
    assert!(matches!(f.hadamard(&g), Err(TrainError::Sizes { .. })));
    assert!(matches!(f.inner(&g), Err(TrainError::Sizes { .. })));
    assert!(matches!(f.eval(&[0]), Err(TrainError::Length { required: 2, given: 1, .. })));
    assert!(matches!(f.eval(&[0, 3]), Err(TrainError::Index { site: 1, index: 3, size: 3, .. })));
    assert!(matches!(f.eval_many(&[0, 1, 1]), Err(TrainError::Length { .. })));
    assert!(matches!(f.weighted_sum(&[vec![1.0; 2]]), Err(TrainError::Length { .. })));
    assert!(matches!(f.weighted_sum(&[vec![1.0; 2], vec![]]), Err(TrainError::Length { .. })));
    let all = [Some(vec![1.0; 2]), Some(vec![1.0; 3])];
    assert!(matches!(f.contract_sites(&all), Err(TrainError::Sites { .. })));
    assert!(matches!(f.canonical(2), Err(TrainError::Index { .. })));
    for bad in [
        Compression::new().tolerance(f64::NAN),
        Compression::new().tolerance(-1.0),
        Compression::new().max_bond(0),
    ] {
        assert!(matches!(f.compress(&bad), Err(TrainError::Value { op: "compress", .. })));
        let dense = TensorTrain::from_dense(&core(&[2, 2]), &bad);
        assert!(matches!(dense, Err(TrainError::Value { op: "from_dense", .. })));
    }
    let nan = TensorTrain::constant(&[2, 3], f64::NAN).unwrap();
    assert!(matches!(nan.compress(&Compression::new()), Err(TrainError::Linalg(_))));
    let nan = Tensor::from_vec(vec![1.0, 2.0, f64::NAN, 3.0], &[2, 2]).unwrap();
    let error = RankRevealingLu::new(&nan, 0.0, 2).unwrap_err();
    assert!(matches!(error, TrainError::NonFinite { point, .. } if point == [1, 0]));
    let op = TrainOperator::<f64>::identity(&[2, 3]).unwrap();
    assert!(matches!(op.apply(&g), Err(TrainError::Sizes { op: "apply", .. })));
    assert!(matches!(
        TrainOperator::from_train(&f, &[2, 2], &[1, 1]),
        Err(TrainError::Core { site: 1, .. })
    ));
    let scalar = Tensor::from_vec(vec![1.0], &[]).unwrap();
    assert!(TensorTrain::from_dense(&scalar, &Compression::new()).is_err());
    assert!(TensorTrain::<f64>::random(&Generator::new(0), &[2, 2], 0).is_err());
}
