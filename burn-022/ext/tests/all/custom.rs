//! Functions with user-defined derivative rules. The rules are wrong on purpose, by a factor, so that they cannot be confused with
//! derivatives of the functions.

use burn_t4a_022_ext::custom::{CustomError, CustomJvp, CustomVjp, custom_jvp, custom_vjp};
use burn_tensor::{Device, Int, Tensor};

type Vector = Tensor<1>;

/// `(a b², c + a, i)` of vectors a, b, c and integers i, with ten times the cotangents.
#[derive(Clone)]
struct Pulled;

type Arguments = (Vector, (Vector, Tensor<1, Int>), Vec<Vector>);
type Results = (Vector, Vec<Vector>, Tensor<1, Int>);

impl CustomVjp for Pulled {
    type Arguments = Arguments;
    type Results = Results;
    type Residuals = (Vector, Vector);

    fn forward(&self, (a, (b, i), c): Arguments) -> (Results, (Vector, Vector)) {
        let y = a.clone() * b.clone() * b.clone();
        ((y, c.into_iter().map(|c| c + a.clone()).collect(), i), (a, b))
    }

    fn backward(&self, (a, b): (Vector, Vector), (y, c, i): Results) -> Arguments {
        let of_c: Vec<_> = c.into_iter().map(|c| c * 10.0).collect();
        let of_a = y.clone() * b.clone() * b.clone() * 10.0;
        let of_a = of_c.iter().fold(of_a, |sum, c| sum + c.clone());
        (of_a, (y * a * b * 20.0, i), of_c)
    }
}

/// `a b²`, with ten times its tangent.
#[derive(Clone)]
struct Pushed;

impl CustomJvp for Pushed {
    type Arguments = (Vector, Vector);
    type Results = Vector;

    fn jvp(&self, (a, b): (Vector, Vector), (da, db): (Vector, Vector)) -> (Vector, Vector) {
        let y = a.clone() * b.clone() * b.clone();
        let tangent = da * b.clone() * b.clone() + a * b * db * 2.0;
        (y, tangent * 10.0)
    }
}

fn devices() -> [Device; 2] {
    [Device::flex().autodiff(), Device::flex().autodiff().gradient_checkpointing()]
}

fn vector(x: [f32; 2], device: &Device) -> Vector {
    Vector::from_floats(x, device)
}

fn numbers(x: Vector) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

#[test]
fn cotangents_are_those_of_the_rule() {
    for device in devices() {
        let a = vector([2.0, 3.0], &device).require_grad();
        let b = vector([5.0, 7.0], &device).require_grad();
        // More arguments than a node has places for; the last one is a constant.
        let c: Vec<Vector> =
            (0..5).map(|k| vector([k as f32, 1.0], &device).require_grad()).collect();
        let constant = vector([1.0, 1.0], &device);
        let i = Tensor::<1, Int>::from_ints([4, 2], &device);
        let all = c.iter().cloned().chain([constant.clone()]).collect();
        let (y, z, j) = custom_vjp(Pulled, (a.clone(), (b.clone(), i), all)).unwrap();
        assert_eq!(numbers(y.clone().inner()), [50.0, 147.0]);
        assert_eq!(j.into_data().iter::<i64>().collect::<Vec<_>>(), [4, 2]);
        // The loss uses some of the results.
        let loss = y.sum() + z[1].clone().sum() * 3.0 + z[5].clone().sum();
        let found = loss.backward();
        assert_eq!(numbers(a.grad(&found).unwrap()), [250.0 + 40.0, 490.0 + 40.0]);
        assert_eq!(numbers(b.grad(&found).unwrap()), [200.0, 420.0]);
        assert_eq!(numbers(c[1].grad(&found).unwrap()), [30.0, 30.0]);
        assert_eq!(numbers(c[0].grad(&found).unwrap()), [0.0, 0.0]);
        assert!(constant.grad(&found).is_none());
    }
}

#[test]
fn cotangents_are_transposes_of_the_tangents_of_the_rule() {
    for device in devices() {
        let a = vector([2.0, 3.0], &device).require_grad();
        let b = vector([5.0, 7.0], &device);
        let y = custom_jvp(Pushed, (a.clone(), b.clone())).unwrap();
        assert_eq!(numbers(y.clone().inner()), [50.0, 147.0]);
        let found = (y.clone() * y).sum().backward();
        // 2 y · 10 b²
        assert_eq!(numbers(a.grad(&found).unwrap()), [100.0 * 250.0, 294.0 * 490.0]);
        assert!(b.grad(&found).is_none());
    }
}

#[test]
fn without_a_tape_the_function_is_called() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        let (a, b) = (vector([2.0, 3.0], &device), vector([5.0, 7.0], &device));
        let y = custom_jvp(Pushed, (a.clone(), b.clone())).unwrap();
        assert!(!y.is_tracked());
        assert_eq!(numbers(y), [50.0, 147.0]);
        let i = Tensor::<1, Int>::from_ints([4, 2], &device);
        let (y, ..) = custom_vjp(Pulled, (a, (b, i), Vec::new())).unwrap();
        assert!(!y.is_tracked());
        assert_eq!(numbers(y), [50.0, 147.0]);
    }
}

/// A rule whose trees do not fit.
#[derive(Clone)]
struct Misfit;

impl CustomVjp for Misfit {
    type Arguments = Vec<Vector>;
    type Results = Vector;
    type Residuals = ();

    fn forward(&self, x: Vec<Vector>) -> (Vector, ()) {
        (x[0].clone(), ())
    }
    fn backward(&self, (): (), y: Vector) -> Vec<Vector> {
        vec![y.repeat_dim(0, 2)]
    }
}

impl CustomJvp for Misfit {
    type Arguments = Vector;
    type Results = Vec<Vector>;

    fn jvp(&self, x: Vector, v: Vector) -> (Vec<Vector>, Vec<Vector>) {
        (vec![x.clone(), x], vec![v])
    }
}

#[test]
fn trees_that_do_not_fit_are_errors() {
    let x = vector([1.0, 2.0], &Device::flex().autodiff()).require_grad();
    let error = custom_jvp(Misfit, x.clone()).unwrap_err();
    assert!(matches!(error, CustomError::Structure { what: "the tangents of the results", .. }));
    let y = custom_vjp(Misfit, vec![x]).unwrap();
    let pass = std::panic::AssertUnwindSafe(|| y.sum().backward());
    let message = std::panic::catch_unwind(pass).err().unwrap();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(
        message.contains("float32[4] instead of float32[2]") || message.contains("[4]"),
        "{message}"
    );
}
