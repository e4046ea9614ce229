//! The derivative of every array operation: duals against finite differences, and duals of duals against finite
//! differences of duals.

use super::*;
use crate::check::{array, elements, noise};

type BinaryFunction<A> = fn(&A, &A) -> A;

/// Functions of x and y `[3, 4]`, where x is above ½.
fn functions<A: Array>() -> Vec<(&'static str, BinaryFunction<A>)> {
    vec![
        ("add", |x, y| x.add(y)),
        ("add by a row", |x, y| x.add(&y.narrow(0, 1, 1))),
        ("sub", |x, y| x.narrow(1, 2, 1).sub(y)),
        ("mul", |x, y| x.mul(y)),
        ("mul by a column", |x, y| x.mul(&y.narrow(1, 1, 1))),
        ("div", |x, y| y.div(x)),
        ("div by a row", |x, y| y.div(&x.narrow(0, 0, 1))),
        ("shift", |x, y| x.shift(2.0).mul(y)),
        ("scale", |x, y| x.scale(-3.0).add(y)),
        ("neg", |x, y| x.neg().mul(y)),
        ("recip", |x, _| x.recip()),
        ("exp", |_, y| y.exp()),
        ("ln", |x, _| x.ln()),
        ("sqrt", |x, _| x.sqrt()),
        ("pow", |x, _| x.pow(1.7)),
        ("tanh", |_, y| y.tanh()),
        ("ln_1p", |_, y| y.ln_1p()),
        ("sin", |_, y| y.sin()),
        ("cos", |_, y| y.cos()),
        ("erf", |_, y| y.erf()),
        ("abs", |x, y| y.abs().mul(x)),
        ("sign", |x, y| y.sign().mul(x)),
        ("detach", |x, y| x.mul(&y.detach())),
        ("indicator", |x, y| x.mul(&x.indicator(&y.greater(&x.full(&[1, 1], 0.1))))),
        ("replace", |x, y| x.replace(&y.greater(&x.full(&[3, 4], 0.0)), &y.mul(y))),
        ("fill", |x, y| x.mul(y).fill(&y.greater(&x.full(&[3, 4], 0.0)), 5.0)),
        ("reshape", |x, y| x.reshape(&[4, 3]).mul(&y.reshape(&[4, 3]))),
        ("permute", |x, y| x.permute(&[1, 0]).mul(&y.permute(&[1, 0]))),
        ("transpose", |x, y| x.transpose().mul(&y.transpose())),
        ("expand", |x, y| x.narrow(0, 2, 1).expand(&[3, 4]).mul(y)),
        ("cat", |x, y| A::cat(&[x.clone(), y.mul(x)], 1)),
        ("cat with a constant", |x, y| A::cat(&[x.full(&[1, 4], 1.0), y.mul(x)], 0)),
        ("flip", |x, y| x.flip(&[0]).mul(y)),
        ("sum", |x, y| x.mul(y).sum(1)),
        ("mean", |x, y| x.mul(y).mean(0)),
        ("max", |x, y| x.mul(y).max(1)),
        ("min", |x, y| x.mul(y).min(0)),
        ("argmin", |x, y| x.gather(1, &y.argmin(1))),
        ("slice", |x, y| x.mul(y).slice(1, 1, 2, 2)),
        ("embed", |x, y| x.mul(y).embed(1, 1, 3, 12)),
        ("cumsum", |x, y| x.mul(y).cumsum(1)),
        ("matmul", |x, y| x.matmul(&y.transpose())),
        ("sum_to", |x, y| x.mul(y).sum_to(&[1, 4])),
        ("gather", |x, y| {
            let rows = x.counting(3).reshape(&[3, 1]).expand(&[3, 4]);
            x.mul(y).transpose().gather(0, &rows.reshape(&[4, 3]))
        }),
        ("scatter_add", |x, y| {
            let index = y.argmax(1).reshape(&[3, 1]);
            x.mul(x).scatter_add(1, &index, &y.narrow(1, 0, 1).mul(&x.narrow(1, 3, 1)))
        }),
    ]
}

/// Operands, and directions for their tangents.
fn point() -> [Eager; 4] {
    let shape = array(&[3, 4], |_| 0.0);
    let n = |seed| noise(&shape, seed);
    [n(1).mul(&n(1)).shift(0.5), n(2), n(3), n(4)]
}

#[track_caller]
fn close(name: &str, got: &Eager, want: &Eager, limit: f64) {
    assert_eq!(got.shape(), want.shape(), "{name}");
    let (got, want) = (elements(got), elements(want));
    let size = want.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    for (x, y) in got.iter().zip(&want) {
        assert!((x - y).abs() <= limit * size, "{name}: {got:?}, wanted {want:?}");
    }
}

/// The central difference quotient of f along the directions.
fn quotient<A: Array>(f: impl Fn(f64) -> A) -> A {
    let h = f64::EPSILON.cbrt();
    f(h).sub(&f(-h)).scale(0.5 / h)
}

#[test]
fn duals_carry_the_derivative() {
    let [x, y, dx, dy] = point();
    let duals = functions::<Dual<Eager>>();
    for ((name, f), (_, dual)) in functions::<Eager>().into_iter().zip(duals) {
        let constant = name == "detach";
        let shifted = |c: f64| match constant {
            // Detached operands are not perturbed.
            true => f(&x.add(&dx.scale(c)), &y),
            false => f(&x.add(&dx.scale(c)), &y.add(&dy.scale(c))),
        };
        let (p, q) = (Dual::new(x.clone(), dx.clone()), Dual::new(y.clone(), dy.clone()));
        let out = dual(&p, &q);
        close(name, &out.value, &f(&x, &y), 1e-14);
        close(name, &out.into_tangent(), &quotient(shifted), 1e-8);
        // Tangent with respect to one operand only.
        let out = dual(&p, &Dual::constant(y.clone()));
        let alone = quotient(|c| f(&x.add(&dx.scale(c)), &y));
        close(name, &out.into_tangent(), &alone, 1e-8);
    }
}

#[test]
fn duals_of_duals_carry_the_second_derivative() {
    let [x, y, dx, dy] = point();
    let inner = functions::<Dual<Eager>>();
    for ((name, f), (_, second)) in inner.into_iter().zip(functions::<Dual<Dual<Eager>>>()) {
        let twice = |v: &Eager, t: &Eager| {
            let constant = Dual::constant;
            Dual::new(Dual::new(v.clone(), t.clone()), constant(t.clone()))
        };
        let out = second(&twice(&x, &dx), &twice(&y, &dy)).into_tangent().into_tangent();
        let along = |c: f64| {
            let y = if name == "detach" { y.clone() } else { y.add(&dy.scale(c)) };
            let (p, q) = (Dual::new(x.add(&dx.scale(c)), dx.clone()), Dual::new(y, dy.clone()));
            f(&p, &q).into_tangent()
        };
        close(name, &out, &quotient(along), 1e-7);
    }
}

#[test]
fn an_error_reaches_the_result() {
    let x = array(&[2, 3], |i| i as f64);
    let y = x.matmul(&x).exp().sum(0).add(&x);
    assert!(y.into_tensor().unwrap_err().to_string().contains("matmul"));
}

/// Indicators of comparisons of `[[0, 1], [2, 3]]`, of `i + 1` along rows and `j` along columns.
fn indicators<A: Array>(x: &A) -> [A; 7] {
    let line = x.counting(2).shift(1).reshape(&[2, 1]);
    let column = x.counting(2).reshape(&[1, 2]);
    let (same, zero) = (line.equal(&column), x.equals(0.0));
    assert_eq!((line.shape(), same.shape()), (vec![2, 1], vec![2, 2]));
    let all = [
        line.greater(&column),
        same.clone(),
        same.not(),
        same.not().and(&zero),
        same.or(&zero),
        same.any(0).expand(&[2, 2]).reshape(&[2, 2]),
        x.ln().sub(&x.ln()).is_nan(),
    ];
    all.map(|flags| x.indicator(&flags))
}

#[test]
fn integers_and_truth_values() {
    let all = indicators(&array(&[2, 2], |i| i as f64));
    let want = [
        [1.0, 0.0, 1.0, 1.0],
        [0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 1.0, 1.0],
        [1.0, 0.0, 0.0, 0.0],
        [1.0, 1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 1.0],
        [1.0, 0.0, 0.0, 0.0],
    ];
    for (got, want) in all.iter().zip(want) {
        assert_eq!(elements(got), want);
    }
}

/// The engine's own `x + c y` and `Σ x y` are those of the definitions, also where an operand has another owner.
#[test]
fn linear_combinations_and_inner_products() {
    let (x, y) = (array(&[5], |i| 1.0 + i as f64), array(&[5], |i| 0.25 * i as f64 - 0.5));
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let cast = |x: &Eager| Eager::from(x.tensor().unwrap().clone().cast(dtype).unwrap());
        let (x, y) = (cast(&x), cast(&y));
        for c in [0.0, 1.0, -0.5] {
            let sum = x.clone().plus_terms(&[(c, &y), (2.0, &x)]);
            let required = x.add(&y.scale(c)).add(&x.scale(2.0));
            assert_eq!(elements(&sum), elements(&required), "{dtype:?} {c}");
            assert_eq!(sum.dtype(), dtype);
        }
        assert_eq!(elements(&x), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(x.dots(&[&y, &x]).unwrap(), [2.5, 55.0], "{dtype:?}");
        assert_eq!(x.dots(&[]).unwrap(), [0.0; 0]);
        assert_eq!(elements(&x.clone().plus_terms(&[])), elements(&x));
        let infinite = y.scale(f64::INFINITY);
        assert_eq!(elements(&x.clone().plus_terms(&[(0.0, &infinite)])), elements(&x));
        // Arrays of dual numbers have the definitions.
        let (x, y) = (Dual::new(x.clone(), y.clone()), Dual::new(y, x));
        let sum = x.clone().plus_terms(&[(2.0, &y), (0.0, &x), (1.0, &x)]);
        let required = x.add(&y.scale(2.0)).add(&x);
        assert_eq!(elements(&sum.into_tangent()), elements(&required.into_tangent()));
        assert_eq!(x.dots(&[&y, &x]).unwrap(), [2.5, 55.0]);
    }
    let failed = Eager::<Reals>::from(Err(TensorError::Value { op: "test", message: "no".into() }));
    assert!(failed.dots(&[&x]).is_err() && x.dots(&[&x, &failed]).is_err());
    assert!(x.clone().plus_terms(&[(2.0, &failed)]).into_tensor().is_err());
    assert!(failed.plus_terms(&[(2.0, &x)]).into_tensor().is_err());
    assert!(x.dots(&[&array(&[4], |_| 1.0)]).is_err());
}
