//! The tape of the engine against finite differences, and tensors on it against duals.

use t4a_diff::check::{array, elements, noise};
use t4a_diff::{Array, Eager};
use t4a_networks::tape::{Recorded, gradients, pullback};
use t4a_structured::{Direction, FluxOn, GradedTensor, Leg, Spec, Z2};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

/// Differences of a sum of squares of a function of two arrays, against its gradients.
fn check(name: &str, f: impl Fn(&Recorded, &Recorded) -> Recorded) {
    let values =
        [array(&[3, 4], |i| 0.3 + 0.1 * i as f64), array(&[3, 4], |i| 1.7 - 0.12 * i as f64)];
    let loss = |x: &Recorded, y: &Recorded| {
        let z = f(x, y);
        let n = z.shape().iter().product();
        let z = z.reshape(&[n]);
        let weights = z.constant(noise(z.value(), 3).into_tensor().unwrap());
        z.mul(&weights).sum(0)
    };
    let [x, y] = values.clone().map(Recorded::variable);
    let found = gradients(&loss(&x, &y), &[&x, &y]).unwrap();
    let at = |steps: [f64; 2]| {
        let moved =
            |k: usize| Recorded::fixed(values[k].add(&noise(&values[k], k as u64).scale(steps[k])));
        elements(loss(&moved(0), &moved(1)).value())[0]
    };
    let h = f64::EPSILON.cbrt();
    for k in 0..2 {
        let step = |h: f64| if k == 0 { [h, 0.0] } else { [0.0, h] };
        let want = (at(step(h)) - at(step(-h))) / (2.0 * h);
        let own = elements(&found[k].mul(&noise(&values[k], k as u64))).iter().sum::<f64>();
        assert!(
            (own - want).abs() < 1e-7 * want.abs().max(1.0),
            "{name}, operand {k}: {own}, {want}"
        );
    }
}

#[test]
fn rules_of_all_operations() {
    check("add", |x, y| x.add(&y.sum(0)));
    check("sub", |x, y| x.sum(1).sub(y));
    check("mul", |x, y| x.mul(y).mul(&y.sum(0)));
    check("div", |x, y| x.div(y).div(&y.sum(1)));
    check("scale", |x, y| x.scale(2.0).shift(0.5).mul(&y.recip()));
    check("exp", |x, y| x.exp().add(&y.ln()).mul(&x.sqrt()));
    check("pow", |x, y| x.pow(1.7).add(&y.tanh()).add(&y.ln_1p()));
    check("sin", |x, y| x.sin().mul(&y.cos()).add(&x.erf()).add(&y.neg().abs()));
    check("replace", |x, y| x.replace(&x.greater(y), &y.mul(y)));
    check("fill", |x, y| x.fill(&x.greater(y), 0.5).add(y));
    check("moves", |x, y| x.reshape(&[4, 3]).permute(&[1, 0]).add(&y.flip(&[1])));
    check("expand", |x, y| x.sum(0).expand(&[3, 4]).mul(y));
    check("slice", |x, y| x.slice(1, 1, 2, 2).mul(&y.narrow(1, 0, 2)));
    check("embed", |x, y| x.embed(0, 1, 2, 7).narrow(0, 1, 5).sum(0).add(y));
    check("cat", |x, y| Recorded::cat(&[x.clone(), y.mul(x), x.clone()], 1));
    check("cumsum", |x, y| x.cumsum(1).mul(y).cumsum(0));
    check("gather", |x, y| x.gather(0, &y.argmax(0)).add(&y.max(1).sum(0)));
    check("scatter", |x, y| x.scatter_add(0, &x.argmax(0), &y.narrow(0, 1, 1)).mul(x));
    check("matmul", |x, y| x.matmul(&y.transpose()).matmul(x));
    // A detached factor is a constant.
    let x = Recorded::variable(array(&[2], |i| 2.0 + i as f64));
    let g = gradients(&x.detach().mul(&x).sum(0), &[&x]).unwrap();
    assert_eq!(elements(&g[0]), [2.0, 3.0]);
}

#[test]
fn factors_of_graded_tensors() {
    let leg = Leg::new([(Z2::new(0), 3), (Z2::new(1), 2)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.clone(), leg.dual()], Z2::new(0), 2).unwrap();
    let x = GradedTensor::random(spec.clone(), DType::F64, false, &Generator::new(1)).unwrap();
    // Σ s³ of singular values, through factors: the same as from values alone.
    fn loss<A: Array>(x: &GradedTensor<Z2, A>) -> A {
        let svd = x.svd(2, FluxOn::Right).unwrap();
        let scaled = svd.u.scale_columns(&svd.s).unwrap().contract(&svd.vh, &[2], &[0]).unwrap();
        let s = svd.s.values();
        scaled.norm_squared().unwrap().reshape(&[1]).add(&s.mul(s).mul(s).sum(0))
    }
    let variable = Recorded::variable(x.re().clone());
    let tensor = GradedTensor::new(spec.clone(), variable.clone(), None).unwrap();
    let own = gradients(&loss(&tensor), &[&variable]).unwrap();
    let tangent = noise(x.re(), 2);
    let own = elements(&own[0].mul(&tangent)).iter().sum::<f64>();
    let at = |h: f64| {
        let moved = x.re().add(&tangent.scale(h));
        let value: Eager = loss(&GradedTensor::new(spec.clone(), moved, None).unwrap());
        elements(&value)[0]
    };
    let h = f64::EPSILON.cbrt();
    let want = (at(h) - at(-h)) / (2.0 * h);
    assert!((own - want).abs() < 1e-7 * want.abs(), "{own}, {want}");
}

#[test]
fn long_chains_are_freed() {
    let x = Recorded::variable(array(&[1], |_| 1.0));
    let mut y = x.clone();
    for _ in 0..200_000 {
        y = y.scale(1.0);
    }
    assert_eq!(elements(&gradients(&y, &[&x]).unwrap()[0]), [1.0]);
    let unused = Recorded::variable(array(&[2], |_| 1.0));
    assert_eq!(elements(&gradients(&y, &[&unused]).unwrap()[0]), [0.0, 0.0]);
}

#[test]
fn errors_of_cotangents_are_returned() {
    // An array that carries an error has no shape, so rules that sum over axes cannot be applied to it.
    let x = Recorded::variable(array(&[1], |_| 2.0));
    let cotangent = array(&[3], |i| i as f64);
    let failed = cotangent.reshape(&[7]);
    let e = pullback(&[(&x.expand(&[3]), failed)], &[&x]).unwrap_err();
    assert!(e.to_string().contains("reshape"), "{e}");
    let g = pullback(&[(&x.expand(&[3]), cotangent)], &[&x]).unwrap();
    assert_eq!(elements(&g[0]), [3.0]);
}
