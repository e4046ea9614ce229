//! What programs are for: sizes with names, values that are no tensors, bytes, derivatives of programs, and
//! programs of derivatives.

use burn::backend::Autodiff;
use burn::tensor::{Distribution, Int, Tensor, TensorData, Tolerance};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{CompileError, Static, Traced, compile};

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

/// A mean of a loss over a batch, with its gradient: divisions by the size, constants of its shape.
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
fn one_recording_serves_all_sizes_of_an_axis() {
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
    assert_eq!((counters.traces, counters.hits, counters.instances), (1, 5, 5), "{}", f.explain());
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
    assert_eq!(compiled.counters().traces, 1, "{}", compiled.explain());
    let error = compiled.call((noise([4, 6], 0), noise([3, 5], 0))).unwrap_err();
    let CompileError::Sizes { name, sizes } = error else { panic!("{error}") };
    assert_eq!(name, "columns");
    assert_eq!(sizes, [(".0".to_owned(), 1, 6), (".1".to_owned(), 1, 5)]);
    let missing = compile(f).dynamic(2, 0, "rows").call((noise([4, 6], 0), noise([3, 6], 0)));
    assert!(matches!(missing, Err(CompileError::Axis { leaf: 2, .. })));
    let missing = compile(f).dynamic(1, 2, "rows").call((noise([4, 6], 0), noise([3, 6], 0)));
    assert!(matches!(missing, Err(CompileError::Axis { axis: 2, .. })));
}

/// What does not follow from the sizes has a recording for each, and is right.
#[test]
fn what_depends_on_a_size_in_another_way_is_noticed() {
    fn steps(x: Matrix) -> Matrix {
        (0..x.dims()[0]).fold(x, |x, _| x * 0.5)
    }
    fn squares(x: Matrix) -> Matrix {
        let n = x.dims()[0];
        x * (n * n) as f32 + n as f32
    }
    fn order(x: Matrix) -> Matrix {
        let n = x.dims()[0];
        let order = Tensor::<T, 1, Int>::arange(0..n as i64, &T4aDevice);
        x + order.float().reshape([n, 1])
    }
    fn insists(x: Matrix) -> Matrix {
        assert!(x.dims()[0].is_multiple_of(2), "pairs are required");
        x.clone() * 2.0 + x
    }
    for (f, why) in [
        (steps as fn(Matrix) -> Matrix, "other operations"),
        (squares, ""),
        (order, "a constant of shape [4, 1]"),
        (insists, "the function panics"),
    ] {
        let compiled = compile(f).dynamic(0, 0, "batch").fullgraph();
        for n in [4, 2, 6, 4] {
            let x = noise([n, 3], n);
            near(compiled.call(x.clone()).unwrap(), compile(f).fullgraph().call(x).unwrap());
        }
        let (counters, text) = (compiled.counters(), compiled.explain());
        if why.is_empty() {
            // n² is a product of powers of n.
            assert_eq!(counters.traces, 1, "{text}");
        } else {
            assert_eq!((counters.traces, counters.hits), (3, 1), "{text}");
            assert!(text.contains(why), "{text}");
        }
    }
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
    assert!(text.contains("a static argument is 3, was 2"), "{text}");
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
    // A function that is not called: what runs is what was loaded.
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

    // Damage anywhere is an error.
    for at in [0, 4, 7, 20, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 16;
        assert!(matches!(second.load(&damaged), Err(CompileError::Load { .. })), "{at}");
    }
    for len in [0, 3, 12, bytes.len() - 1] {
        assert!(matches!(second.load(&bytes[..len]), Err(CompileError::Load { .. })), "{len}");
    }
    // What has no form as bytes says so.
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

/// A gradient through a program, and the program of a gradient.
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
}
