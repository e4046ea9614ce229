//! Functions with user-defined derivative rules at every level. The rules are wrong on purpose, by a factor, so that they cannot be
//! confused with derivatives of the functions.

use burn_autodiff::Autodiff;
use burn_t4a::BurnT4a;
use burn_t4a::ext::custom::{
    CustomBackend, CustomError, CustomJvp, CustomVjp, custom_jvp, custom_vjp,
};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::{grad, vjp};
use burn_t4a_transforms::jvp::{Jvp, jvp};
use burn_t4a_transforms::vmap::{Vmap, vmap};
use burn_tensor::backend::Backend;
use burn_tensor::{DType, Int, Tensor, TensorData};

type B = BurnT4a;

/// `(a b², i)` of vectors a, b and integers i, with ten times the cotangents of a and b.
#[derive(Clone)]
struct Pulled;

impl CustomVjp for Pulled {
    type Arguments<A: CustomBackend> = ((Tensor<A, 1>, Tensor<A, 1>), Tensor<A, 1, Int>);
    type Results<A: CustomBackend> = (Tensor<A, 1>, Tensor<A, 1, Int>);
    type Residuals<A: CustomBackend> = (Tensor<A, 1>, Tensor<A, 1>);

    fn forward<A: CustomBackend>(
        &self,
        ((a, b), i): Self::Arguments<A>,
    ) -> (Self::Results<A>, Self::Residuals<A>) {
        ((a.clone() * b.clone() * b.clone(), i), (a, b))
    }

    fn backward<A: CustomBackend>(
        &self,
        (a, b): Self::Residuals<A>,
        (y, i): Self::Results<A>,
    ) -> Self::Arguments<A> {
        let of_a = y.clone() * b.clone() * b.clone() * 10.0;
        ((of_a, y * a * b * 20.0), i)
    }
}

/// `a b²`, with ten times its tangent.
#[derive(Clone)]
struct Pushed;

impl CustomJvp for Pushed {
    type Arguments<A: CustomBackend> = (Tensor<A, 1>, Tensor<A, 1>);
    type Results<A: CustomBackend> = Tensor<A, 1>;

    fn jvp<A: CustomBackend>(
        &self,
        (a, b): Self::Arguments<A>,
        (da, db): Self::Arguments<A>,
    ) -> (Tensor<A, 1>, Tensor<A, 1>) {
        let y = a.clone() * b.clone() * b.clone();
        let tangent = da * b.clone() * b.clone() + a * b * db * 2.0;
        (y, tangent * 10.0)
    }
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    Reverse,
    Forward,
}

const MODES: [Mode; 2] = [Mode::Reverse, Mode::Forward];

/// `f = a b²` by either rule.
fn f<A: CustomBackend>(mode: Mode, a: Tensor<A, 1>, b: Tensor<A, 1>) -> Tensor<A, 1> {
    match mode {
        Mode::Reverse => {
            let i = Tensor::<A, 1, Int>::arange(0..3, &a.device());
            custom_vjp(Pulled, ((a, b), i)).unwrap().0
        }
        Mode::Forward => custom_jvp(Pushed, (a, b)).unwrap(),
    }
}

fn of<A: Backend, const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<A, D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (&A::Device::default(), DType::F64))
}

fn vector<A: Backend>(values: &[f64]) -> Tensor<A, 1> {
    of(values, [values.len()])
}

fn numbers<A: Backend, const D: usize>(x: Tensor<A, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

const X: [f64; 2] = [3.0, 0.5];
const Y: [f64; 2] = [2.0, -4.0];

fn each(of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    X.iter().zip(Y).map(|(&a, b)| of(a, b)).collect()
}

#[test]
fn values_and_gradients() {
    for mode in MODES {
        assert_eq!(numbers(f::<B>(mode, vector(&X), vector(&Y))), each(|a, b| a * b * b));
        let loss = |(a, b)| f::<Autodiff<B>>(mode, a, b).sum();
        let (of_a, of_b) = grad(loss, (vector(&X), vector(&Y))).unwrap();
        assert_eq!(numbers(of_a), each(|_, b| 10.0 * b * b), "{mode:?}");
        assert_eq!(numbers(of_b), each(|a, b| 20.0 * a * b), "{mode:?}");
        // One argument is a constant.
        let loss = |b| f::<Autodiff<B>>(mode, vector(&X), b).sum();
        assert_eq!(numbers(grad(loss, vector(&Y)).unwrap()), each(|a, b| 20.0 * a * b));
    }
}

/// The rule is differentiated: d(20 a b)/da = 20 b, and d(20 a b)/db = 20 a.
#[test]
fn second_derivatives_are_those_of_the_rule() {
    type A = Autodiff<B>;
    for mode in MODES {
        let slope = |a: Tensor<A, 1>, b: Tensor<A, 1>| {
            let loss = |b| f::<Autodiff<A>>(mode, Tensor::from_inner(a), b).sum();
            grad(loss, b).unwrap().sum()
        };
        let (of_a, of_b) = grad(|(a, b)| slope(a, b), (vector(&X), vector(&Y))).unwrap();
        assert_eq!(numbers(of_a), each(|_, b| 20.0 * b), "{mode:?}");
        assert_eq!(numbers(of_b), each(|a, _| 20.0 * a), "{mode:?}");
        // The value of the outer function is differentiated by the rule, too.
        let value = |b: Tensor<A, 1>| {
            let (y, _) = vjp(|b| f::<Autodiff<A>>(mode, vector(&X), b), b).unwrap();
            y.sum()
        };
        assert_eq!(numbers(grad(value, vector(&Y)).unwrap()), each(|a, b| 20.0 * a * b));
    }
}

#[test]
fn tangents() {
    for mode in MODES {
        let g = |(a, b)| f::<Jvp<B>>(mode, a, b);
        let (y, tangent): (Tensor<B, 1>, Tensor<B, 1>) =
            jvp(g, (vector(&X), vector(&Y)), (vector(&[1.0, 0.0]), vector(&[0.5, 2.0]))).unwrap();
        assert_eq!(numbers(y), each(|a, b| a * b * b));
        let want = [10.0 * 4.0 + 20.0 * 6.0 * 0.5, 20.0 * -2.0 * 2.0];
        assert_eq!(numbers(tangent), want, "{mode:?}");
        // No tangent at all.
        let g = |_: Tensor<Jvp<B>, 1>| f::<Jvp<B>>(mode, vector(&X), vector(&Y));
        let (_, tangent): (Tensor<B, 1>, Tensor<B, 1>) =
            jvp(g, vector(&X), vector(&[1.0, 1.0])).unwrap();
        assert_eq!(numbers(tangent), [0.0, 0.0]);
    }
}

/// Forward over reverse mode and reverse over forward mode.
#[test]
fn mixed_second_derivatives() {
    for mode in MODES {
        let slope = |b| grad(|b| f::<Autodiff<Jvp<B>>>(mode, vector(&X), b).sum(), b).unwrap();
        let (_, second): (Tensor<B, 1>, Tensor<B, 1>) =
            jvp(slope, vector(&Y), vector(&[1.0, 1.0])).unwrap();
        assert_eq!(numbers(second), each(|a, _| 20.0 * a), "{mode:?}");
        let along = |b: Tensor<Autodiff<B>, 1>| {
            let ones = b.ones_like();
            let g = |b| f::<Jvp<Autodiff<B>>>(mode, vector(&X), b);
            let (_, tangent): (_, Tensor<Autodiff<B>, 1>) = jvp(g, b, ones).unwrap();
            tangent.sum()
        };
        assert_eq!(numbers(grad(along, vector(&Y)).unwrap()), each(|a, _| 20.0 * a), "{mode:?}");
    }
}

/// A batch of a with a shared b: per-example gradients inside, and the gradient of a batch outside.
#[test]
fn batches() {
    type V = Vmap<B>;
    let a = || of::<B, 2>(&[3.0, 0.5, 1.0, -1.0, 2.0, 6.0], [3, 2]);
    let b = || vector::<B>(&Y);
    for mode in MODES {
        let each = |(a, b): (Tensor<V, 1>, Tensor<V, 1>)| {
            grad(|(a, b)| f::<Autodiff<V>>(mode, a, b).sum(), (a, b)).unwrap()
        };
        let (of_a, of_b): (Tensor<B, 2>, Tensor<B, 2>) =
            vmap(each).in_axes((0, None)).call((a(), b())).unwrap();
        assert_eq!(numbers(of_a), [40.0, 160.0, 40.0, 160.0, 40.0, 160.0], "{mode:?}");
        assert_eq!(numbers(of_b), [120.0, -40.0, 40.0, 80.0, 80.0, -480.0], "{mode:?}");
        type W = Vmap<Autodiff<B>>;
        let loss = |(a, b): (Tensor<Autodiff<B>, 2>, Tensor<Autodiff<B>, 1>)| {
            let each = |(a, b): (Tensor<W, 1>, Tensor<W, 1>)| f(mode, a, b);
            let y: Tensor<Autodiff<B>, 2> = vmap(each).in_axes((0, None)).call((a, b)).unwrap();
            y.sum()
        };
        let (of_a, of_b) = grad(loss, (a(), b())).unwrap();
        assert_eq!(numbers(of_a), [40.0, 160.0, 40.0, 160.0, 40.0, 160.0], "{mode:?}");
        assert_eq!(numbers(of_b), [240.0, -440.0], "{mode:?}");
    }
}

/// A cotangent that is the same for all examples counts once for each of them.
#[test]
fn shared_cotangents_are_summed() {
    /// `a + b`, with the cotangent 1 of b whatever that of the result is.
    #[derive(Clone)]
    struct Fixed;
    impl CustomVjp for Fixed {
        type Arguments<A: CustomBackend> = (Tensor<A, 1>, Tensor<A, 1>);
        type Results<A: CustomBackend> = Tensor<A, 1>;
        type Residuals<A: CustomBackend> = Tensor<A, 1>;
        fn forward<A: CustomBackend>(
            &self,
            (a, b): Self::Arguments<A>,
        ) -> (Tensor<A, 1>, Tensor<A, 1>) {
            (a + b.clone(), b)
        }
        fn backward<A: CustomBackend>(
            &self,
            b: Tensor<A, 1>,
            y: Tensor<A, 1>,
        ) -> Self::Arguments<A> {
            (y, b.ones_like())
        }
    }
    type W = Vmap<Autodiff<B>>;
    let loss = |b: Tensor<Autodiff<B>, 1>| {
        let a = of(&[1.0; 10], [5, 2]);
        let each = |(a, b): (Tensor<W, 1>, Tensor<W, 1>)| custom_vjp(Fixed, (a, b)).unwrap();
        let y: Tensor<Autodiff<B>, 2> = vmap(each).in_axes((0, None)).call((a, b)).unwrap();
        y.sum()
    };
    assert_eq!(numbers(grad(loss, vector(&Y)).unwrap()), [5.0, 5.0]);
}

#[test]
fn compiled_functions_contain_the_rule() {
    for mode in MODES {
        let g = move |(a, b): (Tensor<Traced<B>, 1>, Tensor<Traced<B>, 1>)| {
            grad(|(a, b)| f::<Autodiff<Traced<B>>>(mode, a, b).sum(), (a, b)).unwrap()
        };
        let compiled = compile(g);
        for _ in 0..2 {
            let (of_a, of_b): (Tensor<B, 1>, Tensor<B, 1>) =
                compiled.call((vector(&X), vector(&Y))).unwrap();
            assert_eq!(numbers(of_a), each(|_, b| 10.0 * b * b), "{mode:?}");
            assert_eq!(numbers(of_b), each(|a, b| 20.0 * a * b), "{mode:?}");
        }
        // On a tape, where the compiled function does not know of it.
        type T = Traced<Autodiff<B>>;
        let compiled = compile(move |(a, b): (Tensor<T, 1>, Tensor<T, 1>)| f(mode, a, b));
        for _ in 0..2 {
            let loss = |(a, b)| compiled.call((a, b)).unwrap().sum();
            let (of_a, of_b) = grad(loss, (vector(&X), vector(&Y))).unwrap();
            assert_eq!(numbers(of_a), each(|_, b| 10.0 * b * b), "{mode:?}");
            assert_eq!(numbers(of_b), each(|a, b| 20.0 * a * b), "{mode:?}");
        }
    }
}

/// Seven arguments and six results, of which the loss uses some.
#[test]
fn many_arguments_and_results() {
    /// `y_i = x_i x_6`, with the right rule.
    #[derive(Clone)]
    struct Scaled;
    impl CustomVjp for Scaled {
        type Arguments<A: CustomBackend> = Vec<Tensor<A, 1>>;
        type Results<A: CustomBackend> = Vec<Tensor<A, 1>>;
        type Residuals<A: CustomBackend> = Vec<Tensor<A, 1>>;
        fn forward<A: CustomBackend>(
            &self,
            x: Vec<Tensor<A, 1>>,
        ) -> (Vec<Tensor<A, 1>>, Vec<Tensor<A, 1>>) {
            (x[..6].iter().map(|y| y.clone() * x[6].clone()).collect(), x)
        }
        fn backward<A: CustomBackend>(
            &self,
            x: Vec<Tensor<A, 1>>,
            y: Vec<Tensor<A, 1>>,
        ) -> Vec<Tensor<A, 1>> {
            let last = y.iter().zip(&x).map(|(y, x)| y.clone() * x.clone());
            let last = last.reduce(|a, b| a + b).unwrap();
            let first = y.iter().map(|y| y.clone() * x[6].clone());
            first.chain([last]).collect()
        }
    }
    let loss = |x: Vec<Tensor<Autodiff<B>, 1>>| {
        let y = custom_vjp(Scaled, x).unwrap();
        (y[1].clone() * 2.0 + y[4].clone() * 3.0).sum()
    };
    let x: Vec<_> = (0..7).map(|i| vector::<B>(&[i as f64 + 1.0])).collect();
    let found: Vec<f64> = grad(loss, x).unwrap().into_iter().flat_map(numbers).collect();
    assert_eq!(found, [0.0, 14.0, 0.0, 0.0, 21.0, 0.0, 2.0 * 2.0 + 3.0 * 5.0]);
}

/// A tangent that is not finite at zero does not reach the value.
#[test]
fn infinite_slopes_leave_values_alone() {
    #[derive(Clone)]
    struct Root;
    impl CustomJvp for Root {
        type Arguments<A: CustomBackend> = Tensor<A, 1>;
        type Results<A: CustomBackend> = Tensor<A, 1>;
        fn jvp<A: CustomBackend>(
            &self,
            x: Tensor<A, 1>,
            v: Tensor<A, 1>,
        ) -> (Tensor<A, 1>, Tensor<A, 1>) {
            let y = x.sqrt();
            (y.clone(), v * 0.5 / y)
        }
    }
    let value = |x| vjp(|x| custom_jvp::<Autodiff<B>, _>(Root, x).unwrap(), x).unwrap();
    let (y, pullback) = value(vector::<B>(&[0.0, 4.0]));
    assert_eq!(numbers(y), [0.0, 2.0]);
    let slopes = numbers(pullback.call(vector(&[1.0, 1.0])).unwrap());
    assert_eq!(slopes, [f64::INFINITY, 0.25]);
}

#[test]
fn trees_that_do_not_fit_are_named() {
    /// Returns a tangent, or a cotangent, of a wrong shape.
    #[derive(Clone)]
    struct Wrong;
    impl CustomJvp for Wrong {
        type Arguments<A: CustomBackend> = Tensor<A, 1>;
        type Results<A: CustomBackend> = Tensor<A, 1>;
        fn jvp<A: CustomBackend>(
            &self,
            x: Tensor<A, 1>,
            v: Tensor<A, 1>,
        ) -> (Tensor<A, 1>, Tensor<A, 1>) {
            (x, v.narrow(0, 0, 1))
        }
    }
    impl CustomVjp for Wrong {
        type Arguments<A: CustomBackend> = Vec<Tensor<A, 1>>;
        type Results<A: CustomBackend> = Tensor<A, 1>;
        type Residuals<A: CustomBackend> = ();
        fn forward<A: CustomBackend>(&self, x: Vec<Tensor<A, 1>>) -> (Tensor<A, 1>, ()) {
            (x[0].clone(), ())
        }
        fn backward<A: CustomBackend>(&self, (): (), y: Tensor<A, 1>) -> Vec<Tensor<A, 1>> {
            vec![y]
        }
    }
    let error = custom_jvp::<B, _>(Wrong, vector(&X)).unwrap_err();
    let CustomError::Tensors { tensors, .. } = &error else { panic!("{error}") };
    assert_eq!((tensors.len(), tensors[0].given.0.to_vec()), (1, vec![1]));
    assert!(error.to_string().contains(". is f64[1] instead of f64[2]"), "{error}");
    assert!(error.to_string().contains("Wrong"), "{error}");
    let loss = |x: Vec<Tensor<Autodiff<B>, 1>>| custom_vjp(Wrong, x).unwrap().sum();
    let pass = std::thread::spawn(move || grad(loss, vec![vector::<B>(&X), vector(&Y)]));
    let panic = pass.join().unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("the cotangents of the arguments have the structure (*), required is (*, *)"),
        "{text}"
    );
}
