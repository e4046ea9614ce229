//! Random networks over every semiring against the loops of the definition, and the properties of their derivatives.

#[path = "all/oracle/mod.rs"]
mod oracle;

use oracle::{Case, naive, networks, tensor};
use proptest::prelude::*;
use t4a_algebra::{
    Boolean, Counted, Counting, KBest, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Scalar,
    Selective, Semiring, Standard, f16,
};
use t4a_einsum::{Differentiable, Einsum, Path, Result, Share, Subscripts};
use t4a_tensor::Tensor;

fn einsum_of(case: &Case) -> Einsum {
    let subscripts = Subscripts::new(case.inputs.clone(), case.output.clone());
    case.given().into_iter().fold(subscripts.into(), |e: Einsum, (l, n)| e.size(l, n))
}

fn operands<T: Scalar>(case: &Case, value: impl Fn(i64) -> T) -> Vec<Tensor<T>> {
    case.shapes().iter().enumerate().map(|(i, s)| tensor(s, i, &value)).collect()
}

fn check<S: Semiring<T>, T: Scalar>(
    case: &Case,
    value: impl Fn(i64) -> T,
    same: impl Fn(&T, &T) -> bool,
) {
    let data = operands(case, value);
    let data: Vec<&Tensor<T>> = data.iter().collect();
    let (shape, want) = naive::<S, T>(case, &data);
    let left = Path::new(vec![vec![0, 1]; data.len() - 1]);
    for einsum in [einsum_of(case), einsum_of(case).path(left)] {
        let got = einsum.contract::<S, T>(&data).unwrap();
        assert_eq!(got.shape(), shape);
        let got = got.to_vec().unwrap();
        assert!(got.iter().zip(&want).all(|(a, b)| same(a, b)), "{got:?} {want:?}");
    }
}

fn equal<T: PartialEq>(a: &T, b: &T) -> bool {
    a == b
}

/// Numbers between 0.5 and 2 without ties, also between sums or products of a few.
fn generic(shape: &[usize], seed: usize) -> Tensor<f64> {
    Tensor::from_fn(shape, |i| 1.25 + 0.75 * ((i * 37 + seed * 1009 + 1) as f64 * 1.7).sin())
        .unwrap()
}

/// vjp and jvp are adjoint, and the jvp equals a finite difference of the definition.
fn check_derivatives<S: Differentiable<f64>>(case: &Case) {
    let shapes = case.shapes();
    let draw = |seed: usize| -> Vec<Tensor<f64>> {
        shapes.iter().enumerate().map(|(i, s)| generic(s, 10 * seed + i)).collect()
    };
    let (x, v) = (draw(1), draw(2));
    let (x, v): (Vec<_>, Vec<_>) = (x.iter().collect(), v.iter().collect());
    let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let plan = einsum_of(case).plan(&views, 8).unwrap();
    let u = generic(&plan.shape(), 7);
    let (_, slope) = plan.jvp::<S, f64>(&x, &v).unwrap();
    let slope = slope.to_vec().unwrap();
    let h = 1e-6;
    let moved = |h: f64| {
        let data: Vec<Tensor<f64>> = x
            .iter()
            .zip(&v)
            .map(|(x, v)| {
                let terms = x.to_vec().unwrap().into_iter().zip(v.to_vec().unwrap());
                Tensor::from_vec(terms.map(|(x, v)| x + h * v).collect(), x.shape()).unwrap()
            })
            .collect();
        naive::<S, f64>(case, &data.iter().collect::<Vec<_>>()).1
    };
    for ((up, down), slope) in moved(h).into_iter().zip(moved(-h)).zip(&slope) {
        // Elements off a written diagonal are the zero of the semiring, a constant.
        let difference = if up == down { 0.0 } else { (up - down) / (2.0 * h) };
        let near = (difference - slope).abs() <= 1e-6 * (1.0 + slope.abs());
        assert!(near, "{case:?}: {slope}, expected {difference}");
    }
    let inner = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let forward = inner(&slope, &u.to_vec().unwrap());
    let grads = plan.vjp::<S, f64>(&x, &u).unwrap();
    let pairs = grads.iter().zip(&v);
    let backward: f64 = pairs.map(|(g, v)| inner(&g.to_vec().unwrap(), &v.to_vec().unwrap())).sum();
    assert!((forward - backward).abs() <= 1e-9 * (1.0 + forward.abs()), "{case:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Lone labels, hyperedges, diagonals, broadcasts, scalars, in every differentiable semiring.
    #[test]
    fn derivatives_of_random_networks(case in networks()) {
        check_derivatives::<Standard>(&case);
        check_derivatives::<MaxPlus>(&case);
        check_derivatives::<MinPlus>(&case);
        check_derivatives::<MaxMul>(&case);
        check_derivatives::<MinMul>(&case);
        check_derivatives::<MaxMin>(&case);
        check_derivatives::<LogSumExp>(&case);
    }

    #[test]
    fn networks_equal_the_loops_in_every_semiring(case in networks()) {
        // Values −4 … 6; the smallest become the zero.
        check::<MaxPlus, f32>(&case, |v| if v < -2 { f32::NEG_INFINITY } else { v as f32 }, equal);
        check::<MaxPlus, i32>(&case, |v| if v < -2 { i32::MIN } else { v as i32 }, equal);
        check::<MinPlus, f64>(&case, |v| if v > 4 { f64::INFINITY } else { v as f64 }, equal);
        check::<MinPlus, u8>(&case, |v| if v > 4 { u8::MAX } else { (v + 4) as u8 }, equal);
        check::<MaxMul, f64>(&case, |v| v.max(0) as f64, equal);
        check::<MinMul, f64>(&case, |v| if v > 4 { f64::INFINITY } else { v.max(0) as f64 }, equal);
        check::<MinMul, u8>(&case, |v| if v > 4 { u8::MAX } else { v.max(0) as u8 }, equal);
        check::<MaxMin, i64>(&case, |v| if v < -2 { i64::MIN } else { v }, equal);
        check::<Boolean, bool>(&case, |v| v < 1, equal);
        check::<Counting, Counted<i32>>(&case, |v| Counted::new(v as i32 / 2, 1), equal);
        check::<KBest<3, MinPlus>, [i32; 3]>(
            &case,
            |v| KBest::<3, MinPlus>::of([v as i32, 7 - v as i32]),
            equal,
        );
        let log = |v: i64| if v < -2 { f64::NEG_INFINITY } else { v as f64 * 0.7 };
        check::<LogSumExp, f64>(&case, log, |a, b| a == b || (a - b).abs() < 1e-12);
    }

    /// The argmax computed by the product equals that found by a search.
    #[test]
    fn gradients_do_not_depend_on_how_the_argmax_is_found(case in networks()) {
        /// (max, +) without its own `select`.
        #[derive(Clone, Copy)]
        struct Searched;
        impl Semiring<f64> for Searched {
            const ZERO: f64 = f64::NEG_INFINITY;
            const ONE: f64 = 0.0;
            fn add(a: f64, b: f64) -> f64 {
                a.max(b)
            }
            fn mul(a: f64, b: f64) -> f64 {
                a + b
            }
        }
        impl Differentiable<f64> for Searched {
            const SHARE: Share = Share::Argmax;
            fn partials(_: f64, _: f64) -> (f64, f64) {
                (1.0, 1.0)
            }
        }
        let data = operands(&case, |v| if v < -2 { f64::NEG_INFINITY } else { (v / 2) as f64 });
        let data: Vec<&Tensor<f64>> = data.iter().collect();
        let shapes: Vec<&[usize]> = data.iter().map(|x| x.shape()).collect();
        let plan = einsum_of(&case).plan(&shapes, 8).unwrap();
        let g = tensor(&plan.shape(), 9, |v| v as f64);
        let found = plan.vjp::<MaxPlus, f64>(&data, &g).unwrap();
        let searched = plan.vjp::<Searched, f64>(&data, &g).unwrap();
        for (found, searched) in found.iter().zip(&searched) {
            assert_eq!(found.to_vec().unwrap(), searched.to_vec().unwrap());
        }
        let moved = operands(&case, |v| (v * v) as f64);
        let moved: Vec<&Tensor<f64>> = moved.iter().collect();
        let found = plan.jvp::<MaxPlus, f64>(&data, &moved).unwrap();
        let searched = plan.jvp::<Searched, f64>(&data, &moved).unwrap();
        assert_eq!(found.1.to_vec().unwrap(), searched.1.to_vec().unwrap());
    }
}

/// Counting semiring over values: its values equal the contraction over the base semiring, so its derivative does too.
#[test]
fn counting_contracts_its_values() -> Result<()> {
    let network = Einsum::new("ij,jk,kl->il")?;
    let ints = |seed| tensor(&[4, 4], seed, |v| v as i32 / 3);
    let values = [ints(1), ints(2), ints(3)];
    let paired: Vec<_> = values
        .iter()
        .map(|x| {
            let x = x.to_vec().unwrap();
            Tensor::from_fn(&[4, 4], |i| Counted::new(x[i], 1)).unwrap()
        })
        .collect();
    let pairs = network.contract::<Counting, _>(&paired.iter().collect::<Vec<_>>())?.to_vec()?;
    let plain = network.contract::<MaxPlus, _>(&values.iter().collect::<Vec<_>>())?.to_vec()?;
    assert_eq!(pairs.iter().map(|p| p.value).collect::<Vec<_>>(), plain);
    // The count of each value.
    let [a, b, c] = &values;
    for (at, pair) in pairs.iter().enumerate() {
        let (i, l) = (at / 4, at % 4);
        let term = |p: usize| {
            let (j, k) = (p / 4, p % 4);
            a.get(&[i, j]).unwrap() + b.get(&[j, k]).unwrap() + c.get(&[k, l]).unwrap()
        };
        let ties = (0..16).filter(|&p| term(p) == pair.value).count();
        assert_eq!(pair.count(), Some(ties as u64));
    }
    Ok(())
}

/// f(y) ≤ f(x) + ⟨g, y − x⟩ for the concave min-plus contraction, also at ties.
#[test]
fn min_plus_gradients_are_supergradients() -> Result<()> {
    let plan = Einsum::new("ij,jk,ki->")?.plan(&[&[3, 3], &[3, 3], &[3, 3]], 8)?;
    for seed in 0..40 {
        let draw = |s: usize| -> Vec<Tensor<f64>> {
            (0..3).map(|i| tensor(&[3, 3], s + i, |v| (v % 2) as f64)).collect()
        };
        let (x, y) = (draw(seed), draw(seed + 100));
        let (xs, ys): (Vec<_>, Vec<_>) = (x.iter().collect(), y.iter().collect());
        let grads = plan.vjp::<MinPlus, f64>(&xs, &Tensor::ones(&[])?)?;
        let mut bound = plan.contract::<MinPlus, f64>(&xs)?.to_vec()?[0];
        for ((g, x), y) in grads.iter().zip(&x).zip(&y) {
            let (g, x, y) = (g.to_vec()?, x.to_vec()?, y.to_vec()?);
            assert_eq!(g.iter().sum::<f64>(), 1.0);
            bound += (0..9).map(|i| g[i] * (y[i] - x[i])).sum::<f64>();
        }
        assert!(plan.contract::<MinPlus, f64>(&ys)?.to_vec()?[0] <= bound + 1e-12);
    }
    Ok(())
}

/// Large networks of the log semiring use matrix products of probabilities, and loops over terms where these underflow.
/// Both against exp(term − sum).
#[test]
fn log_gradients_survive_underflow() -> Result<()> {
    let (m, k, n) = (5, 6, 4);
    for far in [0.0, 200.0, 500.0, 2000.0] {
        // Rows favour even k, half of the columns odd k.
        let prefer = |even: bool, x: f64| if even { x } else { x - far };
        let a = Tensor::from_fn(&[m, k], |i| prefer(i % k % 2 == 0, (i * 7 % 5) as f64 * 0.3))?;
        let b = Tensor::from_fn(&[k, n], |i| {
            prefer((i / n) % 2 == i % n % 2, (i * 5 % 7) as f64 * 0.2)
        })?;
        let plan = Einsum::new("ij,jk->ik")?.plan(&[&[m, k], &[k, n]], 8)?;
        let g = Tensor::from_fn(&[m, n], |i| 1.0 + i as f64 * 0.1)?;
        let c = plan.contract::<LogSumExp, f64>(&[&a, &b])?;
        let grads = plan.vjp::<LogSumExp, f64>(&[&a, &b], &g)?;
        let (da, db) = (tensor(&[m, k], 5, |v| v as f64), tensor(&[k, n], 6, |v| v as f64));
        let (_, dc) = plan.jvp::<LogSumExp, f64>(&[&a, &b], &[&da, &db])?;
        let at = |x: &Tensor<f64>, i, j| x.get(&[i, j]).unwrap();
        let weight = |i, l, j| (at(&a, i, l) + at(&b, l, j) - at(&c, i, j)).exp();
        for (i, l) in (0..m).flat_map(|i| (0..k).map(move |l| (i, l))) {
            let want: f64 = (0..n).map(|j| at(&g, i, j) * weight(i, l, j)).sum();
            assert!((at(&grads[0], i, l) - want).abs() < 1e-11, "{far}");
        }
        for (l, j) in (0..k).flat_map(|l| (0..n).map(move |j| (l, j))) {
            let want: f64 = (0..m).map(|i| at(&g, i, j) * weight(i, l, j)).sum();
            assert!((at(&grads[1], l, j) - want).abs() < 1e-11, "{far}");
        }
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let want: f64 = (0..k).map(|l| weight(i, l, j) * (at(&da, i, l) + at(&db, l, j))).sum();
            assert!((at(&dc, i, j) - want).abs() < 1e-11, "{far}");
        }
    }
    Ok(())
}

/// Sums without a finite term: zero gradients, no NaN, in every semiring and both modes.
#[test]
fn dead_sums_pass_on_nothing() -> Result<()> {
    fn dead<S: Differentiable<f64>>() -> Result<()> {
        let zero = Tensor::full(&[3, 3], S::ZERO)?;
        let some = tensor(&[3, 3], 1, |v| v.abs() as f64);
        let plan = Einsum::new("ij,jk->ik")?.plan(&[&[3, 3], &[3, 3]], 8)?;
        let ones = Tensor::ones(&[3, 3])?;
        for operands in [[&zero, &some], [&some, &zero], [&zero, &zero]] {
            for g in plan.vjp::<S, f64>(&operands, &ones)? {
                assert_eq!(g.to_vec()?, [0.0; 9]);
            }
            let (_, dc) = plan.jvp::<S, f64>(&operands, &[&ones, &ones])?;
            assert_eq!(dc.to_vec()?, [0.0; 9]);
        }
        Ok(())
    }
    dead::<MaxPlus>()?;
    dead::<MinPlus>()?;
    dead::<MaxMul>()?;
    dead::<MinMul>()?;
    dead::<MaxMin>()?;
    dead::<LogSumExp>()
}

/// The tie rule is part of the contract: the smallest index in row-major order of the summed labels.
#[test]
fn ties_go_to_the_first_term() -> Result<()> {
    fn first<S: Selective<f32> + Differentiable<f32>>() -> Result<()> {
        let ones = Tensor::<f32>::ones(&[2, 3, 2])?;
        let plan = Einsum::new("ijk,ijk->")?.plan(&[&[2, 3, 2][..]; 2], 4)?;
        let [a, b] = &plan.vjp::<S, f32>(&[&ones, &ones], &Tensor::ones(&[])?)?[..] else {
            unreachable!()
        };
        let sum: Vec<f32> =
            a.to_vec()?.into_iter().zip(b.to_vec()?).map(|(a, b)| a.max(b)).collect();
        assert_eq!((sum[0], sum[1..].iter().sum::<f32>()), (1.0, 0.0));
        Ok(())
    }
    first::<MaxPlus>()?;
    first::<MinPlus>()?;
    first::<MaxMul>()?;
    first::<MinMul>()?;
    first::<MaxMin>()
}

/// Terms of +∞ have equal weights, with and without matrix products in the same contraction.
#[test]
fn infinite_terms_share_equally() -> Result<()> {
    let far = f64::INFINITY;
    let a = Tensor::from_vec(vec![far, 1.0, far, 0.0, 1.0, 2.0], &[2, 3])?;
    let b = Tensor::from_vec(vec![1.0, 0.5, 2.0, 0.0, 0.0, -far], &[3, 2])?;
    let plan = Einsum::new("ij,jk->ik")?.plan(&[&[2, 3], &[3, 2]], 8)?;
    let g = Tensor::from_vec(vec![1.0, 0.0, 0.0, 0.0], &[2, 2])?;
    let grads = plan.vjp::<LogSumExp, f64>(&[&a, &b], &g)?;
    assert_eq!(grads[0].to_vec()?, [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]);
    assert_eq!(grads[1].to_vec()?, [0.5, 0.0, 0.0, 0.0, 0.5, 0.0]);
    // −∞ absorbs ∞: one term remains.
    let g = Tensor::from_vec(vec![0.0, 1.0, 0.0, 0.0], &[2, 2])?;
    let grads = plan.vjp::<LogSumExp, f64>(&[&a, &b], &g)?;
    assert_eq!(grads[0].to_vec()?, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    Ok(())
}

/// Cotangents of 16-bit floats are accumulated in 32 bits.
#[test]
fn small_floats_do_not_stop_counting() -> Result<()> {
    let n = 5000;
    let plan = Einsum::new("ij,jk->k")?.plan(&[&[1, 2], &[2, n]], 2)?;
    let a = Tensor::from_vec(vec![f16::from_f64(1.0), f16::from_f64(0.0)], &[1, 2])?;
    let b = Tensor::<f16>::zeros(&[2, n])?;
    let g = Tensor::<f16>::ones(&[n])?;
    let grads = plan.vjp::<MaxPlus, f16>(&[&a, &b], &g)?;
    assert_eq!(grads[0].to_vec()?.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), [5000.0, 0.0]);
    Ok(())
}

/// Large cotangents do not overflow in the products of probabilities.
#[test]
fn large_cotangents_of_unlikely_elements() -> Result<()> {
    let a = Tensor::from_vec(vec![0.0, -320.0, -400.0, 0.0], &[2, 2])?;
    let b = Tensor::from_vec(vec![-320.0, 0.0, 0.0, -400.0], &[2, 2])?;
    let plan = Einsum::new("ij,jk->ik")?.plan(&[&[2, 2], &[2, 2]], 8)?;
    for size in [1.0, 1e200] {
        let g = Tensor::from_vec(vec![size, 0.0, 0.0, 0.0], &[2, 2])?;
        let grads = plan.vjp::<LogSumExp, f64>(&[&a, &b], &g)?;
        for grad in grads {
            let grad = grad.to_vec()?;
            assert!((grad.iter().sum::<f64>() / size - 1.0).abs() < 1e-12, "{grad:?}");
        }
    }
    Ok(())
}
