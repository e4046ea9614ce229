//! Contract of programs: named sizes, static arguments, serialisation, derivatives of programs, and programs of
//! derivatives.

use burn::backend::Autodiff;
use burn::tensor::module::avg_pool1d;
use burn::tensor::{Distribution, Int, Tensor, TensorData, Tolerance};
use burn_t4a::ext::tree::Static;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{CompileError, Traced, compile};

type B = BurnT4a;
type T = Traced<B>;
type Matrix = Tensor<T, 2>;

fn noise<const D: usize>(shape: [usize; D], seed: usize) -> Tensor<B, D> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f32 / 5003.0 - 1.0;
    let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), &T4aDevice)
}

fn near<const D: usize>(a: Tensor<B, D>, b: Tensor<B, D>) {
    a.into_data().assert_approx_eq(&b.into_data(), Tolerance::<f32>::rel_abs(1e-5, 1e-6));
}

/// Mean loss over a batch with its gradient: divisions by the batch size, and constants of its shape.
fn step((w, x): (Matrix, Matrix)) -> (Matrix, Tensor<T, 1>) {
    let w = Tensor::<Autodiff<T>, 2>::from_inner(w).require_grad();
    let batch = x.dims()[0];
    let y = Tensor::from_inner(x).matmul(w.clone()).tanh();
    let target = Tensor::ones([batch, 3], &T4aDevice);
    let loss = (y.clone() - target).powi_scalar(2).mean() + y.sum_dim(0).sum() / batch as f32;
    let gradients = loss.backward();
    (w.grad(&gradients).unwrap(), loss.inner())
}

#[test]
fn sizes_of_an_axis_are_recorded_once() {
    let w = noise([4, 3], 1);
    let f = compile(step).dynamic(1, 0, "batch").fullgraph();
    for (i, batch) in [8, 1, 2, 9, 64, 8].into_iter().enumerate() {
        let x = noise([batch, 4], i);
        let (gradient, loss) = f.call((w.clone(), x.clone())).unwrap();
        let (wanted, of) = compile(step).fullgraph().call((w.clone(), x)).unwrap();
        near(gradient, wanted);
        near(loss, of);
    }
    let counters = f.counters();
    assert_eq!((counters.traces, counters.hits), (5, 1), "{}", f.explain());
    assert!(f.explain().contains("batch = 64"), "{}", f.explain());
}

#[test]
fn several_names_and_what_belongs_to_one() {
    let f = |(x, y): (Matrix, Matrix)| {
        let [n, m] = x.dims();
        x.matmul(y.transpose()).sum_dim(1) / (m as f32) + n as f32
    };
    let compiled = compile(f)
        .dynamic(0, 0, "rows")
        .dynamic(0, 1, "columns")
        .dynamic(1, 1, "columns")
        .fullgraph();
    for (n, m) in [(4, 6), (2, 3), (7, 7), (1, 5)] {
        let pair = || (noise([n, m], n), noise([3, m], m));
        let got = compiled.call(pair()).unwrap();
        near(got, compile(f).fullgraph().call(pair()).unwrap());
    }
    assert_eq!(compiled.counters().traces, 4, "{}", compiled.explain());
    let error = compiled.call((noise([4, 6], 0), noise([3, 5], 0))).unwrap_err();
    let CompileError::Sizes { name, sizes } = error else { panic!("{error}") };
    assert_eq!(name, "columns");
    assert_eq!(sizes, [(".0".to_owned(), 1, 6), (".1".to_owned(), 1, 5)]);
    let missing = compile(f).dynamic(2, 0, "rows").call((noise([4, 6], 0), noise([3, 6], 0)));
    assert!(matches!(missing, Err(CompileError::Axis { leaf: 2, .. })));
    let missing = compile(f).dynamic(1, 2, "rows").call((noise([4, 6], 0), noise([3, 6], 0)));
    assert!(matches!(missing, Err(CompileError::Axis { axis: 2, .. })));
}

/// A function may depend on a size in any way: the result is correct at every size.
#[test]
fn functions_of_a_size_are_right_at_every_size() {
    fn mean(x: &Matrix) -> Matrix {
        x.clone().mean_dim(0)
    }
    type Case = (&'static str, fn(Matrix) -> Matrix);
    let functions: [Case; 9] = [
        ("one", |x| if x.dims()[0] == 1 { x } else { x.clone() - mean(&x) }),
        ("ceil", |x| x.clone() * x.dims()[0].div_ceil(8) as f32),
        ("max", |x| x.clone() * x.dims()[0].max(2) as f32 + 1.0),
        ("ninths", |x| x.clone().narrow(0, 0, (x.dims()[0] * 9 / 10).max(1)) * 2.0 + 1.0),
        ("branch", |x| if x.dims()[0] >= 100 { x * 2.0 + 1.0 } else { x + 1.0 }),
        ("steps", |x| (0..x.dims()[0] % 7).fold(x, |x, _| x * 0.5)),
        ("square", |x| x.clone() * (x.dims()[0] * x.dims()[0]) as f32 + 1.0),
        ("order", |x| {
            let n = x.dims()[0];
            let order = Tensor::<T, 1, Int>::arange(0..n as i64, &T4aDevice);
            x + order.float().reshape([n, 1])
        }),
        ("mean", |x| x.clone() / x.dims()[0] as f32 - mean(&x)),
    ];
    for (name, f) in functions {
        let compiled = compile(f).dynamic(0, 0, "n").fullgraph();
        for n in [40, 1, 2, 3, 4, 5, 7, 9, 99, 100, 200, 40, 1, 200] {
            let x = noise([n, 3], n);
            let eager = f(Matrix::from_data(x.to_data(), &T4aDevice)).into_data();
            let got = compiled.call(x).unwrap().into_data();
            assert_eq!(got, eager, "{name} of {n}: {}", compiled.explain());
        }
        assert_eq!((compiled.counters().traces, compiled.counters().hits), (11, 3), "{name}");
    }
}

/// A library operation rounds the size internally.
#[test]
fn sizes_that_a_library_operation_rounds() {
    let f = |x: Tensor<T, 3>| avg_pool1d(x, 2, 64, 0, true, false) * 2.0 + 1.0;
    let compiled = compile(f).dynamic(0, 2, "n").fullgraph();
    let ramp = |n: usize| {
        let x: Vec<f32> = (1..=n).map(|i| i as f32).collect();
        Tensor::<B, 3>::from_data(TensorData::new(x, [1, 1, n]), &T4aDevice)
    };
    for _ in 0..2 {
        for (n, wanted) in [(40, vec![4.0f32]), (200, vec![4.0, 132.0, 260.0, 388.0])] {
            let y = compiled.call(ramp(n)).unwrap().into_data();
            assert_eq!(y.to_vec::<f32>().unwrap(), wanted, "{}", compiled.explain());
        }
    }
    assert_eq!((compiled.counters().traces, compiled.counters().hits), (2, 2));
}

/// The cache keeps as many sizes as its capacity, without evicting other shapes.
#[test]
fn sizes_have_places_of_their_own() {
    let f = compile(|x: Matrix| x * 2.0).dynamic(0, 0, "n").capacity(3).fullgraph();
    f.call(noise([2, 5], 0)).unwrap();
    for n in 1..=10 {
        f.call(noise([n, 3], n)).unwrap();
    }
    f.call(noise([2, 5], 0)).unwrap();
    for n in 8..=10 {
        f.call(noise([n, 3], n)).unwrap();
    }
    let counters = f.counters();
    assert_eq!((counters.traces, counters.hits, counters.evictions), (11, 4, 7), "{}", f.explain());
    f.call(noise([1, 3], 1)).unwrap();
    assert!(f.explain().contains("recorded, since n = 1 is new"), "{}", f.explain());
}

#[test]
fn values_that_are_no_tensors_are_kept_and_compared() {
    let f = |(x, Static(power), Static(name)): (Matrix, Static<i32>, Static<&'static str>)| {
        let shape = x.dims();
        (
            x.powi_scalar(power),
            Static((shape, format!("{name} to the {power}"))),
            vec![Static(power)],
        )
    };
    let compiled = compile(f).fullgraph();
    let call =
        |power, name| compiled.call((noise([2, 3], 1), Static(power), Static(name))).unwrap();
    for _ in 0..2 {
        let (x, Static((shape, text)), powers) = call(2, "x");
        assert_eq!((shape, text.as_str(), powers), ([2, 3], "x to the 2", vec![Static(2)]));
        near(x, noise([2, 3], 1).powi_scalar(2));
    }
    let (x, Static((_, text)), _) = call(3, "y");
    assert_eq!(text, "y to the 3");
    near(x, noise([2, 3], 1).powi_scalar(3));
    assert_eq!((compiled.counters().traces, compiled.counters().hits), (2, 1));
    let text = compiled.explain();
    assert!(text.contains(".1 of the tree is 3, was 2"), "{text}");
    call(3, "y");
    assert!(compiled.explain().contains("last: hit"), "{}", compiled.explain());
}

#[test]
fn programs_are_bytes_and_run_elsewhere() {
    let constant = Tensor::<T, 2>::from_data(noise([4, 3], 9).into_data(), &T4aDevice);
    let f = |(w, x): (Matrix, Matrix)| {
        let (gradient, loss) = step((w + constant.clone(), x.clone()));
        let order = x.clone().argsort(1).narrow(1, 0, 2);
        (gradient, loss, x.gather(1, order.clone()), order)
    };
    let first = compile(f).fullgraph();
    let pair = |seed| (noise([4, 3], seed), noise([5, 4], seed + 1));
    first.call(pair(0)).unwrap();
    let bytes = first.save().unwrap();
    // The function is never called: the loaded program runs.
    let silent = |_: (Matrix, Matrix)| -> (Matrix, Tensor<T, 1>, Matrix, Tensor<T, 2, Int>) {
        unreachable!("programs are there")
    };
    let second = compile(silent).fullgraph();
    assert_eq!(second.load(&bytes).unwrap(), 1);
    let (a, b) = (first.call(pair(5)).unwrap(), second.call(pair(5)).unwrap());
    assert_eq!(a.0.into_data(), b.0.into_data());
    assert_eq!(a.1.into_data(), b.1.into_data());
    assert_eq!(a.2.into_data(), b.2.into_data());
    assert_eq!(a.3.into_data(), b.3.into_data());
    assert_eq!((second.counters().hits, second.counters().traces), (1, 0));

    // Corruption at any position is an error.
    for at in [0, 4, 7, 20, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 16;
        assert!(matches!(second.load(&damaged), Err(CompileError::Load { .. })), "{at}");
    }
    for len in [0, 3, 12, bytes.len() - 1] {
        assert!(matches!(second.load(&bytes[..len]), Err(CompileError::Load { .. })), "{len}");
    }
    // Operations without a serialised form are reported.
    let svd = compile(|x: Matrix| burn_t4a::ext::linalg::svd(x).unwrap().s).fullgraph();
    svd.call(noise([3, 3], 1)).unwrap();
    let Err(CompileError::Save { what }) = svd.save() else { panic!("an operation was saved") };
    assert!(what.contains("svd"), "{what}");
    let random = compile(|x: Matrix| x + Matrix::random([2, 2], Distribution::Default, &T4aDevice));
    random.call(noise([2, 2], 1)).unwrap();
    let again = compile(|x: Matrix| x);
    again.load(&random.save().unwrap()).unwrap();
    let numbers = [0; 2].map(|_| again.call(noise([2, 2], 1)).unwrap().into_data());
    assert!(numbers[0] != numbers[1]);
}

/// The gradient of a program, and the program of a gradient.
#[test]
fn programs_of_gradients_and_gradients_of_programs() {
    type A = Autodiff<B>;
    let wanted = |x: Tensor<B, 2>| x.clone() * x.clone().cos() + x.sin();
    // d/dx Σ x sin x
    let inside = compile(|x: Tensor<Traced<A>, 2>| (x.clone() * x.sin()).sum()).fullgraph();
    let outside = compile(|x: Matrix| {
        let x = Tensor::<Autodiff<T>, 2>::from_inner(x).require_grad();
        let gradients = (x.clone() * x.clone().sin()).sum().backward();
        x.grad(&gradients).unwrap()
    })
    .fullgraph();
    for seed in 0..3 {
        let x = noise([3, 4], seed);
        let tracked = Tensor::<A, 2>::from_inner(x.clone()).require_grad();
        let gradients = inside.call(tracked.clone()).unwrap().backward();
        near(tracked.grad(&gradients).unwrap(), wanted(x.clone()));
        near(outside.call(x.clone()).unwrap(), wanted(x));
    }
    assert_eq!((inside.counters().hits, outside.counters().hits), (2, 2));
}

#[test]
fn the_place_of_a_read_is_told() {
    let f = |x: Matrix| x.clone() / x.max().into_scalar();
    let error = compile(f).fullgraph().call(noise([2, 2], 1)).unwrap_err();
    let CompileError::ReadsData { place, .. } = &error else { panic!("{error}") };
    assert!(place.contains("the_place_of_a_read_is_told"), "{place}");
    assert!(error.to_string().contains(place.as_str()), "{error}");
    // The method of Burn that reads, if it is not the user's call.
    let classes = compile(|x: Tensor<T, 1, Int>| x.one_hot::<2>(3)).fullgraph();
    let classes = classes.call(Tensor::<B, 1, Int>::from_ints([2, 0], &T4aDevice));
    let error = classes.err().unwrap();
    assert!(error.to_string().contains("by Tensor::one_hot"), "{error}");
}

/// An index that is out of range in a later call is an error with the name of the method.
#[test]
fn operations_that_fail_on_later_values_are_errors() {
    let rows = |(x, at): (Matrix, Tensor<T, 1, Int>)| x.select(0, at);
    let f = compile(rows).fullgraph();
    let at = |i: i64| Tensor::<B, 1, Int>::from_ints([i], &T4aDevice);
    near(f.call((noise([4, 3], 1), at(2))).unwrap(), noise([4, 3], 1).narrow(0, 2, 1));
    match f.call((noise([4, 3], 1), at(4))) {
        Err(CompileError::Operation { operation, message }) => {
            assert_eq!(operation, "float_select");
            assert!(message.contains('4'), "{message}");
        }
        other => panic!("{:?}", other.map(|x| x.into_data())),
    }
    near(f.call((noise([4, 3], 1), at(3))).unwrap(), noise([4, 3], 1).narrow(0, 3, 1));
}
