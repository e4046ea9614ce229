//! Derivatives against finite differences, brute-force marginals and the subgradient inequality.

use crate::oracle::tensor;
use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard, c64};
use t4a_einsum::{Differentiable, Einsum, EinsumError, Plan, Result};
use t4a_tensor::Tensor;

/// Networks with every kind of label: batch, lone, hyperedge, diagonal, embedded, broadcast,
/// scalar, output only.
const NETWORKS: [(&str, &[&[usize]]); 10] = [
    ("bij,bjk->bik", &[&[2, 3, 4], &[2, 4, 2]]),
    ("ij,jk,kl->il", &[&[2, 3], &[3, 4], &[4, 2]]),
    ("ii->i", &[&[3, 3]]),
    ("iij,jk->ik", &[&[3, 3, 2], &[2, 4]]),
    ("ij,ij,ij->ij", &[&[2, 3], &[2, 3], &[2, 3]]),
    ("ia,ib,ic->abc", &[&[3, 2], &[3, 2], &[3, 2]]),
    ("ij,kl->k", &[&[2, 3], &[4, 2]]),
    ("i,j->iji", &[&[3], &[2]]),
    ("ij,jk->ik", &[&[2, 1], &[3, 4]]),
    ("ij->", &[&[3, 4]]),
];

fn floats(shape: &[usize], seed: usize) -> Tensor<f64> {
    Tensor::from_fn(shape, |i| {
        let x = ((i * 7919 + seed * 104_729 + 17) % 1009) as f64 / 1009.0;
        0.2 + 1.3 * x
    })
    .unwrap()
}

fn plan_of(text: &str, shapes: &[&[usize]]) -> std::sync::Arc<Plan> {
    Einsum::new(text).unwrap().plan(shapes, 8).unwrap()
}

fn dot(a: &Tensor<f64>, b: &Tensor<f64>) -> f64 {
    a.to_vec().unwrap().iter().zip(b.to_vec().unwrap()).map(|(a, b)| a * b).sum()
}

/// ⟨g, y⟩ over the finite elements; embedded zeros of the semiring are skipped.
fn seen(g: &Tensor<f64>, y: &Tensor<f64>) -> f64 {
    let terms = g.to_vec().unwrap().into_iter().zip(y.to_vec().unwrap());
    terms.filter(|(_, y)| y.is_finite()).map(|(g, y)| g * y).sum()
}

fn check<S: Differentiable<f64>>() {
    for (text, shapes) in NETWORKS {
        let plan = plan_of(text, shapes);
        let point: Vec<_> = shapes.iter().enumerate().map(|(i, s)| floats(s, i)).collect();
        let step: Vec<_> = shapes.iter().enumerate().map(|(i, s)| floats(s, i + 10)).collect();
        let g = floats(&plan.shape(), 99);
        let (x, dx): (Vec<_>, Vec<_>) = (point.iter().collect(), step.iter().collect());
        let grads = plan.vjp::<S, f64>(&x, &g).unwrap();
        for (grad, x) in grads.iter().zip(&x) {
            assert_eq!(grad.shape(), x.shape(), "{text}");
        }
        let h = 1e-6;
        let at = |t: f64| {
            let moved: Vec<Tensor<f64>> = point
                .iter()
                .zip(&step)
                .map(|(x, d)| {
                    let (x, d) = (x.to_vec().unwrap(), (d.to_vec().unwrap(), d.shape()));
                    Tensor::from_fn(d.1, |i| x[i] + t * d.0[i]).unwrap()
                })
                .collect();
            seen(&g, &plan.contract::<S, f64>(&moved.iter().collect::<Vec<_>>()).unwrap())
        };
        let want = (at(h) - at(-h)) / (2.0 * h);
        let got: f64 = grads.iter().zip(&dx).map(|(g, d)| dot(g, d)).sum();
        assert!((got - want).abs() < 1e-6 * (1.0 + want.abs()), "{text}: vjp {got}, fd {want}");
        let (y, dy) = plan.jvp::<S, f64>(&x, &dx).unwrap();
        assert_eq!(y.to_vec().unwrap(), plan.contract::<S, f64>(&x).unwrap().to_vec().unwrap());
        let forward = dot(&g, &dy);
        assert!(
            (forward - got).abs() < 1e-10 * (1.0 + got.abs()),
            "{text}: jvp {forward}, vjp {got}"
        );
    }
}

#[test]
fn linear_rules_match_finite_differences() {
    check::<Standard>();
}

#[test]
fn cotangents_over_numbers_are_contractions() {
    for (text, shapes) in NETWORKS {
        for step in plan_of(text, shapes).steps().unwrap() {
            let plan = &step.plan;
            let shape = |i| plan.operand_shape(i).unwrap();
            let x: Vec<_> = (0..plan.operands()).map(|i| floats(shape(i), i)).collect();
            let g = floats(&plan.shape(), 99);
            let all = plan.vjp::<Standard, f64>(&x.iter().collect::<Vec<_>>(), &g).unwrap();
            for (i, want) in all.iter().enumerate() {
                let mut operands = vec![&g];
                operands.extend(x.get(1 - i).filter(|_| x.len() == 2));
                let cotangent = plan.cotangent(i).unwrap();
                let got = cotangent.contract::<Standard, f64>(&operands).unwrap();
                assert_eq!(got.shape(), want.shape(), "{text}");
                for (a, b) in got.to_vec().unwrap().iter().zip(want.to_vec().unwrap()) {
                    assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{text}, operand {i}");
                }
            }
            assert!(plan.cotangent(plan.operands()).is_err());
        }
    }
}

#[test]
fn argmax_rules_match_finite_differences_away_from_ties() {
    check::<MaxPlus>();
    check::<MaxMul>();
    check::<MinPlus>();
    check::<MinMul>();
    check::<MaxMin>();
}

#[test]
fn marginals_match_finite_differences() {
    check::<LogSumExp>();
}

/// f(y) ≥ f(x) + ⟨g, y − x⟩ for a convex f, also at ties; and the cotangents of every factor sum to 1.
#[test]
fn max_plus_gradients_are_subgradients_at_ties() -> Result<()> {
    for seed in 0..40 {
        let plan = plan_of("ij,jk,kl->", &[&[2, 3], &[3, 3], &[3, 2]]);
        let shapes = [[2, 3], [3, 3], [3, 2]];
        let ints = |s: usize| -> Vec<Tensor<f64>> {
            (0..3).map(|i| tensor(&shapes[i], s + i, |v| (v % 2) as f64)).collect()
        };
        let (x, y) = (ints(seed), ints(seed + 100));
        let (xs, ys): (Vec<_>, Vec<_>) = (x.iter().collect(), y.iter().collect());
        let grads = plan.vjp::<MaxPlus, f64>(&xs, &Tensor::ones(&[])?)?;
        let value = |x: &[&Tensor<f64>]| {
            Ok::<_, EinsumError>(plan.contract::<MaxPlus, f64>(x)?.to_vec()?[0])
        };
        let mut bound = value(&xs)?;
        for ((g, x), y) in grads.iter().zip(&x).zip(&y) {
            bound += dot(g, y) - dot(g, x);
            assert_eq!(g.to_vec()?.iter().sum::<f64>(), 1.0);
        }
        assert!(value(&ys)? >= bound - 1e-12);
    }
    Ok(())
}

/// Elements equal to the zero of the semiring have zero gradient, not NaN.
#[test]
fn dead_elements_have_no_gradient() -> Result<()> {
    let dead = f64::NEG_INFINITY;
    let a = Tensor::from_vec(vec![dead, dead, 1.0, 2.0], &[2, 2])?;
    let b = Tensor::from_vec(vec![0.5, dead, dead, dead], &[2, 2])?;
    let plan = plan_of("ij,jk->ik", &[&[2, 2], &[2, 2]]);
    let g = Tensor::ones(&[2, 2])?;
    let [ga, gb] = &plan.vjp::<MaxPlus, f64>(&[&a, &b], &g)?[..] else { panic!() };
    assert_eq!(ga.to_vec()?, [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(gb.to_vec()?, [1.0, 0.0, 0.0, 0.0]);
    let [ga, gb] = &plan.vjp::<LogSumExp, f64>(&[&a, &b], &g)?[..] else { panic!() };
    assert_eq!(ga.to_vec()?, [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(gb.to_vec()?, [1.0, 0.0, 0.0, 0.0]);
    Ok(())
}

/// The gradient of the log semiring is the distribution of the summed labels.
#[test]
fn log_gradients_are_brute_force_marginals() -> Result<()> {
    let (a, b, c) = (floats(&[3, 2], 1), floats(&[2, 3], 2), floats(&[3], 3));
    let plan = plan_of("ij,jk,k->", &[&[3, 2], &[2, 3], &[3]]);
    let grads = plan.vjp::<LogSumExp, f64>(&[&a, &b, &c], &Tensor::ones(&[])?)?;
    let weight = |i: usize, j: usize, k: usize| {
        let at = |x: &Tensor<f64>, index: &[usize]| x.get(index).unwrap();
        (at(&a, &[i, j]) + at(&b, &[j, k]) + at(&c, &[k])).exp()
    };
    let all = || (0..18).map(|p| (p / 6, p / 3 % 2, p % 3));
    let total: f64 = all().map(|(i, j, k)| weight(i, j, k)).sum();
    for (x, y) in [(0, 0), (1, 1), (1, 2)] {
        let pair = all().filter(|&(_, j, k)| (j, k) == (x, y));
        let want = pair.map(|(i, j, k)| weight(i, j, k)).sum::<f64>() / total;
        assert!((grads[1].get(&[x, y]).unwrap() - want).abs() < 1e-12);
    }
    Ok(())
}

/// Complex cotangents: the derivative of |Σ a·b|² with respect to Re and Im of a.
#[test]
fn complex_rules_are_conjugate_wirtinger() -> Result<()> {
    let z = |shape: &[usize], seed: usize| {
        let (re, im) =
            (floats(shape, seed).to_vec().unwrap(), floats(shape, seed + 5).to_vec().unwrap());
        Tensor::from_fn(shape, |i| c64::new(re[i], im[i] - 0.8)).unwrap()
    };
    let (a, b) = (z(&[2, 3], 1), z(&[3, 2], 2));
    let plan = plan_of("ij,jk->ik", &[&[2, 3], &[3, 2]]);
    let loss = |a: &Tensor<c64>| -> f64 {
        let y = plan.contract::<Standard, c64>(&[a, &b]).unwrap();
        y.to_vec().unwrap().iter().map(|y| y.norm_sqr()).sum()
    };
    let y = plan.contract::<Standard, c64>(&[&a, &b])?.to_vec()?;
    let g = Tensor::from_fn(&[2, 2], |i| y[i] * 2.0)?;
    let grads = plan.vjp::<Standard, c64>(&[&a, &b], &g)?;
    let (data, grad) = (a.to_vec()?, grads[0].to_vec()?);
    for i in 0..6 {
        for (part, unit) in [(grad[i].re, c64::new(1e-6, 0.0)), (grad[i].im, c64::new(0.0, 1e-6))] {
            let moved = |by: c64| {
                let mut data = data.clone();
                data[i] += by;
                loss(&Tensor::from_vec(data, &[2, 3]).unwrap())
            };
            let want = (moved(unit) - moved(-unit)) / 2e-6;
            assert!((part - want).abs() < 1e-6, "{part} {want}");
        }
    }
    Ok(())
}

/// A tensor used as two operands: its derivative is the sum of both cotangents.
#[test]
fn a_tensor_used_twice_gets_both_cotangents() -> Result<()> {
    let a = floats(&[3, 3], 4);
    let plan = plan_of("ij,ji->", &[&[3, 3], &[3, 3]]);
    let grads = plan.vjp::<Standard, f64>(&[&a, &a], &Tensor::ones(&[])?)?;
    let at = |i, j| grads[0].get(&[i, j]).unwrap() + grads[1].get(&[i, j]).unwrap();
    for (i, j) in [(0, 0), (0, 2), (2, 1)] {
        assert!((at(i, j) - 2.0 * a.get(&[j, i]).unwrap()).abs() < 1e-14);
    }
    Ok(())
}

#[test]
fn shapes_of_derivatives_are_checked() -> Result<()> {
    let a = floats(&[2, 2], 0);
    let plan = plan_of("ij,jk->ik", &[&[2, 2], &[2, 2]]);
    let error = plan.vjp::<Standard, f64>(&[&a, &a], &floats(&[2, 3], 0)).unwrap_err();
    assert!(matches!(error, EinsumError::DerivativeShape { what: "the cotangent", .. }));
    assert!(plan.jvp::<Standard, f64>(&[&a, &a], &[&a]).is_err());
    Ok(())
}

/// Elements equal to the zero of the semiring have derivative 0 under every operation: copy, diagonal, repetition, sum
/// over an axis of size 1 or 2.
#[test]
fn zeros_pass_nothing_on_whatever_the_path() -> Result<()> {
    fn check<S: Differentiable<f64>>() -> Result<()> {
        for (text, shape) in
            [("ij->ij", [3, 1]), ("ij->i", [3, 1]), ("ij->i", [3, 2]), ("ij->iij", [3, 2])]
        {
            let data: Vec<f64> = (0..shape[0] * shape[1])
                .map(|at| if at / shape[1] == 1 { S::ZERO } else { 2.0 + at as f64 })
                .collect();
            let x = Tensor::from_vec(data, &shape)?;
            let plan = plan_of(text, &[&shape]);
            let ones = Tensor::ones(&plan.shape())?;
            let grads = plan.vjp::<S, f64>(&[&x], &ones)?[0].to_vec()?;
            let row = |i: usize| grads[i * shape[1]..][..shape[1]].iter().sum::<f64>();
            assert_eq!(row(1), 0.0, "{text} {shape:?}");
            assert!(row(0) >= 1.0 && row(2) >= 1.0, "{text} {shape:?}");
            let (_, tangent) = plan.jvp::<S, f64>(&[&x], &[&Tensor::ones(&shape)?])?;
            assert_eq!(tangent.to_vec()?.iter().sum::<f64>(), grads.iter().sum::<f64>());
        }
        Ok(())
    }
    check::<MaxPlus>()?;
    check::<MinPlus>()?;
    check::<MaxMul>()?;
    check::<MinMul>()?;
    check::<MaxMin>()?;
    check::<LogSumExp>()?;
    // Over (+, ×) the derivative at 0 is as at other numbers.
    let x = Tensor::zeros(&[2])?;
    let grads = plan_of("i->i", &[&[2]]).vjp::<Standard, f64>(&[&x], &Tensor::ones(&[2])?)?;
    assert_eq!(grads[0].to_vec()?, [1.0, 1.0]);
    Ok(())
}

/// A NaN factor has derivative 1 on either side, and the first NaN of a sum is its argmax.
#[test]
fn nan_wins_among_factors_and_terms() -> Result<()> {
    let plan = plan_of("i,i->", &[&[3], &[3]]);
    let one = Tensor::ones(&[])?;
    let (x, nan) = (Tensor::from_vec(vec![1.0, 2.0, 0.5], &[3])?, f64::NAN);
    let y = Tensor::from_vec(vec![3.0, nan, nan], &[3])?;
    for (a, b, which) in [(&x, &y, 1), (&y, &x, 0)] {
        let grads = plan.vjp::<MaxMin, f64>(&[a, b], &one)?;
        assert_eq!(grads[which].to_vec()?, [0.0, 1.0, 0.0]);
        assert_eq!(grads[1 - which].to_vec()?, [0.0; 3]);
        let (_, slope) =
            plan.jvp::<MaxMin, f64>(&[a, b], &[&Tensor::full(&[3], 5.0)?, &Tensor::zeros(&[3])?])?;
        assert_eq!(slope.to_vec()?, [if which == 0 { 5.0 } else { 0.0 }]);
    }
    Ok(())
}

/// 0 · ∞ is the zero of the semiring, and 0 in the derivative: for a factor 0, a cotangent 0 and a tangent 0.
#[test]
fn infinite_factors_make_no_nan() -> Result<()> {
    let plan = plan_of("i,i->i", &[&[3], &[3]]);
    let far = f64::INFINITY;
    let a = Tensor::from_vec(vec![0.0, 2.0, 3.0], &[3])?;
    let b = Tensor::from_vec(vec![far, far, 5.0], &[3])?;
    let g = Tensor::from_vec(vec![1.0, 0.0, 1.0], &[3])?;
    let grads = plan.vjp::<MaxMul, f64>(&[&a, &b], &g)?;
    assert_eq!(grads[0].to_vec()?, [0.0, 0.0, 5.0]);
    assert_eq!(grads[1].to_vec()?, [0.0, 0.0, 3.0]);
    let moves = Tensor::from_vec(vec![1.0, 0.0, 1.0], &[3])?;
    let still = Tensor::zeros(&[3])?;
    let (_, slope) = plan.jvp::<MaxMul, f64>(&[&a, &b], &[&moves, &still])?;
    assert_eq!(slope.to_vec()?, [0.0, 0.0, 5.0]);
    // The products with ∞ are the zero of (min, ×).
    let grads = plan.vjp::<MinMul, f64>(&[&a, &b], &g)?;
    assert_eq!(grads[0].to_vec()?, [0.0, 0.0, 5.0]);
    assert_eq!(grads[1].to_vec()?, [0.0, 0.0, 3.0]);
    let (product, slope) = plan.jvp::<MinMul, f64>(&[&a, &b], &[&moves, &still])?;
    assert_eq!(product.to_vec()?, [far, far, 15.0]);
    assert_eq!(slope.to_vec()?, [0.0, 0.0, 5.0]);
    Ok(())
}

/// Ties resolve to the first term: labels of earlier occurrence in the subscripts are slowest, independent of the
/// operand order of the path.
#[test]
fn ties_follow_the_subscripts() -> Result<()> {
    // Terms (0, 1) and (1, 0) tie.
    let x = Tensor::from_vec(vec![0.0, 1.0, 1.0, 0.0], &[2, 2])?;
    let (zeros, one) = (Tensor::zeros(&[2, 2])?, Tensor::ones(&[])?);
    for text in ["ab->", "ba->"] {
        let grads = plan_of(text, &[&[2, 2]]).vjp::<MaxPlus, f64>(&[&x], &one)?;
        assert_eq!(grads[0].to_vec()?, [0.0, 1.0, 0.0, 0.0], "{text}");
    }
    let scalar = Tensor::zeros(&[])?;
    for text in ["ab,ba,->", "ba,ab,->", "ab,ab,->"] {
        for path in [[[0, 1], [0, 1]], [[1, 0], [1, 0]], [[0, 2], [0, 1]], [[2, 1], [1, 0]]] {
            let plan = Einsum::new(text)?.path(t4a_einsum::Path::from(path));
            let plan = plan.plan(&[&[2, 2], &[2, 2], &[]], 8)?;
            let grads = plan.vjp::<MaxPlus, f64>(&[&x, &zeros, &scalar], &one)?;
            assert_eq!(grads[0].to_vec()?, [0.0, 1.0, 0.0, 0.0], "{text} {path:?}");
        }
    }
    Ok(())
}
