//! Quantics: grids, ranks of known functions, operators against dense matrices and the FFT.

use std::f64::consts::TAU;

use t4a_algebra::{Numeric, Real, c64};
use t4a_linalg::LinalgScalar;
use t4a_networks::cross::{CrossOptions, Function};
use t4a_networks::quantics::{
    Boundary, Frequencies, Grid, GridBuilder, Layout, affine, derivative, flip, fourier,
    interpolate, shift, stencil,
};
use t4a_networks::train::{Compression, TensorTrain, TrainError, TrainOperator};
use t4a_tensor::random::Generator;

const LAYOUTS: [Layout; 3] = [Layout::Interleaved, Layout::Fused, Layout::Grouped];

fn random<T: LinalgScalar>(sizes: &[usize]) -> TensorTrain<T>
where
    T::R: t4a_tensor::random::Sample,
{
    TensorTrain::random(&Generator::new(7), sizes, 3).unwrap()
}

fn dense<T: LinalgScalar>(train: &TensorTrain<T>) -> Vec<T> {
    train.to_dense().unwrap().to_vec().unwrap()
}

#[track_caller]
fn close<T: LinalgScalar>(a: &[T], b: &[T], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (&x, &y)) in a.iter().zip(b).enumerate() {
        let off = Numeric::sub(x, y).modulus().to_f64();
        assert!(off <= tolerance, "element {i}: {x:?} and {y:?} differ by {off}");
    }
}

#[test]
fn indices_digits_and_coordinates() {
    for base in [2, 3] {
        for layout in LAYOUTS {
            for endpoint in [false, true] {
                let grid = GridBuilder::new()
                    .variable(0.0, 3.0, 2)
                    .variable(-1.0, 1.0, 3)
                    .base(base)
                    .layout(layout)
                    .endpoint(endpoint)
                    .build()
                    .unwrap();
                let points = grid.points();
                assert_eq!(points, [base.pow(2), base.pow(3)]);
                let mut seen = std::collections::HashSet::new();
                for (i, j) in (0..points[0]).flat_map(|i| (0..points[1]).map(move |j| (i, j))) {
                    let sites = grid.to_sites(&[i, j]).unwrap();
                    assert_eq!(grid.to_indices(&sites).unwrap(), [i, j]);
                    let x = grid.coordinates(&sites).unwrap();
                    let parts = [points[0], points[1]].map(|n| (n - usize::from(endpoint)) as f64);
                    assert!((x[0] - 3.0 * i as f64 / parts[0]).abs() < 1e-15);
                    assert!((x[1] + 1.0 - 2.0 * j as f64 / parts[1]).abs() < 1e-15);
                    assert_eq!(grid.nearest(&x).unwrap(), [i, j]);
                    assert!(seen.insert(sites));
                }
                assert_eq!(grid.nearest(&[-9.0, 9.0]).unwrap(), [0, points[1] - 1]);
                let last = grid.to_sites(&[points[0] - 1, points[1] - 1]).unwrap();
                assert!(!endpoint || grid.coordinates(&last).unwrap() == [3.0, 1.0]);
            }
        }
    }
    let grid = |layout| {
        GridBuilder::new().variable(0., 1., 2).variable(0., 1., 2).layout(layout).build().unwrap()
    };
    // Indices 2 = 10 and 1 = 01.
    assert_eq!(grid(Layout::Interleaved).to_sites(&[2, 1]).unwrap(), [1, 0, 0, 1]);
    assert_eq!(grid(Layout::Fused).to_sites(&[2, 1]).unwrap(), [2, 1]);
    assert_eq!(grid(Layout::Grouped).to_sites(&[2, 1]).unwrap(), [1, 0, 0, 1]);
    assert_eq!(grid(Layout::Grouped).to_sites(&[1, 3]).unwrap(), [0, 1, 1, 1]);
}

#[test]
fn cosines_and_polynomials_have_known_ranks() {
    let options = CrossOptions::new().tolerance(1e-12);
    let grid = Grid::new(&[(0.0, 1.0)], 40).unwrap();
    let (train, report) = interpolate(&grid, |x| (123.0 * x[0] + 0.3).cos(), &options).unwrap();
    assert!(report.converged() && train.bonds().iter().all(|&bond| bond <= 2));
    assert_eq!(train.max_bond(), 2);
    let (train, _) = interpolate(&grid, |x| (-3.0 * x[0]).exp(), &options).unwrap();
    assert_eq!(train.max_bond(), 1);
    for p in 1..=4 {
        let f = |x: &[f64]| (0..=p).fold(0.0, |sum, k| sum * x[0] + 1.0 + f64::from(k));
        let (train, _) = interpolate(&grid, f, &options).unwrap();
        let (train, _) = train.compress(&Compression::new().tolerance(1e-12)).unwrap();
        assert!(train.max_bond() <= p as usize + 1, "{p} {:?}", train.bonds());
        assert!(p > 2 || train.max_bond() == p as usize + 1, "{p} {:?}", train.bonds());
        let sites = grid.to_sites(&[987_654_321_012]).unwrap();
        let x = grid.coordinates(&sites).unwrap();
        assert!((train.eval(&sites).unwrap() - f(&x)).abs() < 1e-9);
    }
    // A plane wave in two variables and base 3.
    let grid =
        GridBuilder::new().variable(0., 1., 12).variable(0., 2., 12).base(3).layout(Layout::Fused);
    let grid = grid.build().unwrap();
    let wave = |x: &[f64]| c64::new(0.0, 20.0 * x[0] - 7.0 * x[1]).exp();
    let (train, _) = interpolate(&grid, wave, &options).unwrap();
    assert_eq!(train.max_bond(), 1);
}

#[test]
fn integrals() {
    let options = CrossOptions::new().tolerance(1e-13);
    // Periodic: exact. I₀(2) = Σ 1/k!² (M. Abramowitz, I. Stegun 9.6.12).
    let grid = Grid::new(&[(0.0, TAU)], 8).unwrap();
    let (train, _) = interpolate(&grid, |x| (2.0 * x[0].cos()).exp(), &options).unwrap();
    let bessel = (1..30)
        .scan(1.0, |term, k| {
            *term /= f64::from(k * k);
            Some(*term)
        })
        .sum::<f64>()
        + 1.0;
    assert!((grid.integrate(&train).unwrap() - TAU * bessel).abs() < 1e-10);
    for layout in LAYOUTS {
        let build = |digits| {
            let grid = GridBuilder::new().variable(0.0, 1.0, digits).variable(0.0, 2.0, digits);
            grid.layout(layout).endpoint(true).build().unwrap()
        };
        // The trapezoidal rule is exact for functions that are linear in each variable.
        let grid = build(3);
        let (train, _) = interpolate(&grid, |x| 1.0 + x[0] + 3.0 * x[0] * x[1], &options).unwrap();
        assert!((grid.integrate(&train).unwrap() - 6.0).abs() < 1e-11, "{layout:?}");
        let grid = build(20);
        let (train, _) = interpolate(&grid, |x| (x[0] - x[1]).exp(), &options).unwrap();
        let want = (1f64.exp() - 1.0) * (1.0 - (-2f64).exp());
        assert!((grid.integrate(&train).unwrap() - want).abs() < 1e-10);
    }
    let other = TensorTrain::constant(&[2; 3], 1.0).unwrap();
    assert!(matches!(
        Grid::new(&[(0., 1.)], 4).unwrap().integrate(&other),
        Err(TrainError::Sizes { .. })
    ));
}

/// `f(g(x))` of a dense vector, 0 outside.
fn substituted(f: &[f64], g: impl Fn(i64) -> Option<i64>) -> Vec<f64> {
    let value = |i: usize| {
        let at = g(i as i64).and_then(|at| usize::try_from(at).ok()).filter(|&at| at < f.len());
        at.map_or(0.0, |at| f[at])
    };
    (0..f.len()).map(value).collect()
}

#[test]
fn shifts_flips_and_dilations() {
    for (base, digits) in [(2, 4), (3, 3)] {
        let n = (base as i64).pow(digits as u32);
        let f = random::<f64>(&vec![base; digits]);
        let x = dense(&f);
        for k in [0, 1, -1, 5, -7, n - 1, n, -2 * n - 3] {
            let open = shift::<f64>(base, digits, k, Boundary::Open).unwrap();
            close(&dense(&open.apply(&f).unwrap()), &substituted(&x, |i| Some(i + k)), 0.0);
            let periodic = shift::<f64>(base, digits, k, Boundary::Periodic).unwrap();
            let want = substituted(&x, |i| Some((i + k).rem_euclid(n)));
            close(&dense(&periodic.apply(&f).unwrap()), &want, 0.0);
            assert!(open.max_bond() <= 2 && periodic.max_bond() <= 2);
        }
        let flip = flip::<f64>(base, digits).unwrap();
        close(&dense(&flip.apply(&f).unwrap()), &substituted(&x, |i| Some(n - 1 - i)), 0.0);
        assert_eq!(flip.max_bond(), 1);
        let negative =
            affine::<f64>(base, digits, &[vec![-1]], &[0], 1, Boundary::Periodic).unwrap();
        let want = substituted(&x, |i| Some((-i).rem_euclid(n)));
        close(&dense(&negative.apply(&f).unwrap()), &want, 0.0);
        for (a, b, s) in [(3, -4, 1), (1, 1, 2), (2, 5, 3), (-5, 3, -2), (1, 0, 6)] {
            let exact = |i: i64| (i * a + b).rem_euclid(s).eq(&0).then(|| (i * a + b) / s);
            let open = affine::<f64>(base, digits, &[vec![a]], &[b], s, Boundary::Open).unwrap();
            let got = dense(&open.apply(&f).unwrap());
            close(&got, &substituted(&x, exact), 0.0);
            let around =
                affine::<f64>(base, digits, &[vec![a]], &[b], s, Boundary::Periodic).unwrap();
            let want = substituted(&x, |i| exact(i).map(|at| at.rem_euclid(n)));
            close(&dense(&around.apply(&f).unwrap()), &want, 0.0);
        }
    }
    // A shift out of the grid is the zero map.
    let out = shift::<f64>(2, 3, 8, Boundary::Open).unwrap();
    assert_eq!(out.apply(&random(&[2; 3])).unwrap().norm().unwrap(), 0.0);
}

#[test]
fn affine_maps_of_several_variables_on_every_layout() {
    let (digits, n) = (3, 8i64);
    let matrix = [vec![1, 1], vec![1, -2]];
    let (offset, build) = ([3, -1], |layout| {
        let grid = GridBuilder::new().variable(0., 1., digits).variable(0., 1., digits);
        grid.layout(layout).build().unwrap()
    });
    for boundary in [Boundary::Open, Boundary::Periodic] {
        let map = affine::<f64>(2, digits, &matrix, &offset, 1, boundary).unwrap();
        for layout in [Layout::Fused, Layout::Interleaved] {
            let grid = build(layout);
            let placed = grid.place(&map, &[0, 1]).unwrap();
            let f = random::<f64>(&grid.sizes());
            let g = placed.apply(&f).unwrap();
            for (x, y) in (0..n).flat_map(|x| (0..n).map(move |y| (x, y))) {
                let mut to = [x + y + offset[0], x - 2 * y + offset[1]];
                if boundary == Boundary::Periodic {
                    to = to.map(|t| t.rem_euclid(n));
                }
                let inside = to.iter().all(|t| (0..n).contains(t));
                let want = if inside {
                    f.eval(&grid.to_sites(&to.map(|t| t as usize)).unwrap()).unwrap()
                } else {
                    0.0
                };
                let got = g.eval(&grid.to_sites(&[x as usize, y as usize]).unwrap()).unwrap();
                assert!((got - want).abs() < 1e-12, "{layout:?} {boundary:?} {x} {y}");
            }
        }
        assert!(matches!(
            build(Layout::Grouped).place(&map, &[0, 1]),
            Err(TrainError::Value { .. })
        ));
    }
    // One variable of three, on every layout.
    for layout in LAYOUTS {
        let grid = GridBuilder::new().variable(0., 1., 2).variable(0., 1., 3).variable(0., 1., 2);
        let grid = grid.layout(layout).build().unwrap();
        let placed = grid.place(&shift::<f64>(2, 3, 3, Boundary::Periodic).unwrap(), &[1]).unwrap();
        let f = random::<f64>(&grid.sizes());
        let g = placed.apply(&f).unwrap();
        for (x, y, z) in [(0, 0, 0), (1, 4, 2), (3, 7, 1), (2, 5, 3)] {
            let want = f.eval(&grid.to_sites(&[x, (y + 3) % 8, z]).unwrap()).unwrap();
            let got = g.eval(&grid.to_sites(&[x, y, z]).unwrap()).unwrap();
            assert!((got - want).abs() < 1e-13, "{layout:?}");
        }
        let map = shift::<f64>(2, 3, 1, Boundary::Open).unwrap();
        assert!(matches!(grid.place(&map, &[0]), Err(TrainError::Sizes { .. })));
        assert!(matches!(grid.place(&map, &[3]), Err(TrainError::Value { .. })));
        assert!(matches!(grid.place(&map, &[1, 0]), Err(TrainError::Value { .. })));
    }
}

#[test]
fn finite_differences() {
    let (base, digits) = (2, 5);
    let f = random::<f64>(&[2; 5]);
    let x = dense(&f);
    let terms = [(-2, 0.5), (0, 3.0), (1, -1.0), (7, 2.0)];
    for boundary in [Boundary::Open, Boundary::Periodic] {
        let operator = stencil(base, digits, &terms, boundary).unwrap();
        let term = |(k, c): &(i64, f64)| {
            let at =
                |i: i64| if boundary == Boundary::Open { i + k } else { (i + k).rem_euclid(32) };
            substituted(&x, |i| Some(at(i))).iter().map(|x| c * x).collect::<Vec<_>>()
        };
        let mut want = vec![0.0; 32];
        terms.iter().for_each(|t| want.iter_mut().zip(term(t)).for_each(|(w, v)| *w += v));
        close(&dense(&operator.apply(&f).unwrap()), &want, 1e-13);
    }
    // Derivatives of sin on a circle: the error falls with the order of accuracy.
    let grid = Grid::new(&[(0.0, TAU)], 7).unwrap();
    let step = grid.steps()[0];
    let options = CrossOptions::new().tolerance(1e-14);
    let (sine, _) = interpolate(&grid, |x| x[0].sin(), &options).unwrap();
    let exact = [f64::cos, |x: f64| -x.sin(), |x: f64| -x.cos(), f64::sin];
    for (order, exact) in exact.into_iter().enumerate() {
        for accuracy in [2, 4, 6] {
            let operator =
                derivative::<f64>(2, 7, order + 1, accuracy, step, Boundary::Periodic).unwrap();
            assert!(operator.max_bond() <= 5);
            let slope = dense(&operator.apply(&sine).unwrap());
            let error = |(i, s): (usize, &f64)| (s - exact(i as f64 * step)).abs();
            let error = slope.iter().enumerate().map(error).fold(0.0, f64::max);
            let rounding = 1e-13 / step.powi(order as i32 + 1);
            assert!(
                error < 0.5 * step.powi(accuracy as i32) + rounding,
                "{order} {accuracy} {error}"
            );
            assert!(error > 0.001 * step.powi(accuracy as i32) || error < 10.0 * rounding);
        }
    }
    let bad =
        |order, accuracy, step| derivative::<f64>(2, 4, order, accuracy, step, Boundary::Open);
    for (order, accuracy, step) in
        [(0, 2, 1.0), (1, 3, 1.0), (1, 0, 1.0), (1, 2, 0.0), (9, 12, 1.0)]
    {
        assert!(matches!(bad(order, accuracy, step), Err(TrainError::Value { .. })));
    }
}

/// Index with the digits in reverse order.
fn reversed(mut index: usize, base: usize, digits: usize) -> usize {
    let mut out = 0;
    for _ in 0..digits {
        (out, index) = (out * base + index % base, index / base);
    }
    out
}

#[test]
fn fourier_transforms_agree_with_the_fft() {
    for (base, digits) in [(2usize, 1usize), (2, 6), (3, 4), (5, 2)] {
        let n = base.pow(digits as u32);
        let f = random::<c64>(&vec![base; digits]);
        let x = dense(&f);
        let parts = [|x: &c64| x.re, |x: &c64| x.im]
            .map(|part| t4a_tensor::Tensor::from_vec(x.iter().map(part).collect(), &[n]).unwrap());
        let (re, im) = t4a_tensor::fft::fft(&parts[0], &parts[1], 0, None).unwrap();
        let (re, im) = (re.to_vec().unwrap(), im.to_vec().unwrap());
        let want: Vec<c64> = re.iter().zip(&im).map(|(&re, &im)| c64::new(re, im)).collect();
        let size = want.iter().map(|x| x.norm()).fold(0.0, f64::max);
        let transform = fourier::<c64>(base, digits, Frequencies::Forward, 1e-14).unwrap();
        let got = transform.apply(&f).unwrap();
        close(&dense(&got.reverse().unwrap()), &want, 1e-12 * size);
        let all = dense(&got);
        assert!((all[reversed(n - 2, base, digits)] - want[n - 2]).norm() < 1e-12 * size);
        // The transpose takes the digits in reverse order: the matrix is symmetric.
        let other = transform.transpose().unwrap().apply(&f.reverse().unwrap()).unwrap();
        close(&dense(&other), &want, 1e-12 * size);
        let back = fourier::<c64>(base, digits, Frequencies::Inverse, 1e-14).unwrap();
        let again = back.apply(&got.reverse().unwrap()).unwrap().reverse().unwrap();
        close(&dense(&again), &x, 1e-12 * size);
    }
    let real = fourier::<f64>(2, 4, Frequencies::Forward, 1e-10);
    assert!(matches!(real, Err(TrainError::Value { op: "fourier", .. })));
    assert!(fourier::<c64>(1, 4, Frequencies::Forward, 1e-10).is_err());
    assert!(fourier::<c64>(2, 4, Frequencies::Forward, f64::NAN).is_err());
}

#[test]
fn fourier_transform_of_a_large_grid() {
    let digits = 30;
    let transform = fourier::<c64>(2, digits, Frequencies::Forward, 1e-12).unwrap();
    assert!(transform.max_bond() < 14, "{}", transform.max_bond());
    // A Gaussian of 2³⁰ points: its transform is a Gaussian.
    let grid = Grid::new(&[(-20.0, 20.0)], digits).unwrap();
    let f = |x: &[f64]| c64::new((-x[0] * x[0] / 2.0).exp(), 0.0);
    let middle = grid.to_sites(&[1 << 29]).unwrap();
    let options = CrossOptions::new().tolerance(1e-12).initial_pivots(&[middle]);
    let (train, _) = interpolate(&grid, f, &options).unwrap();
    let compression = Compression::new().tolerance(1e-13);
    let spectrum = transform.apply_compressed(&train, &compression).unwrap().0.reverse().unwrap();
    let h = grid.steps()[0];
    for k in [0usize, 1, 5, 20] {
        let q = TAU * k as f64 / 40.0;
        let got = spectrum.eval(&grid.to_sites(&[k]).unwrap()).unwrap() * h;
        // The grid begins at −20: a phase e^{20 i q}.
        let want = c64::new(0.0, 20.0 * q).exp() * (TAU.sqrt() * (-q * q / 2.0).exp());
        assert!((got - want).norm() < 1e-9, "{k} {got} {want}");
    }
}

#[test]
fn products_and_placed_derivatives_solve_an_identity() {
    // ∂ₓ (u v) = u ∂ₓ v + v ∂ₓ u for plane waves, by central differences of order 6.
    let grid = GridBuilder::new().variable(0., TAU, 8).variable(0., TAU, 8).layout(Layout::Fused);
    let grid = grid.build().unwrap();
    let options = CrossOptions::new().tolerance(1e-13);
    let wave = |a: f64, b: f64| interpolate(&grid, move |x| (a * x[0] + b * x[1]).sin(), &options);
    let (u, v) = (wave(1.0, 2.0).unwrap().0, wave(2.0, -1.0).unwrap().0);
    let slope = derivative(2, 8, 1, 6, grid.steps()[0], Boundary::Periodic).unwrap();
    let slope: TrainOperator<f64> = grid.place(&slope, &[0]).unwrap();
    let left = slope.apply(&u.hadamard(&v).unwrap()).unwrap();
    let right = u.hadamard(&slope.apply(&v).unwrap()).unwrap();
    let right = right.add(&v.hadamard(&slope.apply(&u).unwrap()).unwrap()).unwrap();
    let (error, size) = (left.distance(&right).unwrap(), left.norm().unwrap());
    assert!(error < 1e-7 * size && size > 100.0, "{error} {size}");
}

#[test]
fn grids_are_checked() {
    let build = |low, high, digits, base| {
        GridBuilder::new().variable(low, high, digits).base(base).build().unwrap_err()
    };
    assert!(matches!(GridBuilder::new().build(), Err(TrainError::Sites { .. })));
    for (low, high, digits, base) in [
        (0., 1., 0, 2),
        (0., 1., 63, 2),
        (0., 1., 4, 1),
        (1., 1., 4, 2),
        (0., f64::NAN, 4, 2),
        (0., f64::INFINITY, 4, 2),
    ] {
        assert!(matches!(build(low, high, digits, base), TrainError::Value { .. }));
    }
    let grid = Grid::new(&[(0., 1.), (0., 1.)], 3).unwrap();
    assert!(matches!(grid.to_sites(&[8, 0]), Err(TrainError::Index { site: 0, .. })));
    assert!(matches!(grid.to_sites(&[0]), Err(TrainError::Length { .. })));
    assert!(matches!(grid.to_indices(&[2; 6]), Err(TrainError::Index { .. })));
    assert!(matches!(grid.nearest(&[0.0, f64::NAN]), Err(TrainError::Value { .. })));
    let nan = interpolate(&grid, |x| if x[0] > 0.4 { f64::NAN } else { 1.0 }, &CrossOptions::new());
    match nan.map(|_| ()) {
        Err(TrainError::NonFinite { point, .. }) => {
            assert!(grid.coordinates(&point).unwrap()[0] > 0.4);
        }
        other => panic!("{other:?}"),
    }
    assert!(affine::<f64>(2, 3, &[], &[], 1, Boundary::Open).is_err());
    assert!(affine::<f64>(2, 3, &[vec![1]], &[1, 2], 1, Boundary::Open).is_err());
    assert!(affine::<f64>(2, 3, &[vec![1]], &[1], 0, Boundary::Open).is_err());
    assert!(affine::<f64>(2, 0, &[vec![1]], &[1], 1, Boundary::Open).is_err());
    assert!(stencil::<f64>(2, 3, &[], Boundary::Open).is_err());
    let _: Function<'_, f64> = grid.function(|x| x[0]);
}
