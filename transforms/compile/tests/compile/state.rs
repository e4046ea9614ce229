//! Tensors that a function computes and keeps after the call: replays would not update them.

use burn::backend::Autodiff;
use burn::nn::{BatchNormConfig, LinearConfig};
use burn::tensor::{Tensor, TensorData, Tolerance};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{CompileError, Traced, compile};

type B = BurnT4a;
type T = Traced<B>;
type Matrix = Tensor<T, 2>;

fn noise(shape: [usize; 2], seed: usize) -> Tensor<B, 2> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f32 / 5003.0 + 1.5;
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), &T4aDevice)
}

/// Burn initialises parameters at their first use, which is inside the function here.
#[test]
fn parameters_are_drawn_once() {
    let linear = LinearConfig::new(4, 3).init::<T>(&T4aDevice);
    let f = compile(|x: Matrix| linear.forward(x));
    let x = noise([5, 4], 1);
    let all: Vec<TensorData> = (0..4).map(|_| f.call(x.clone()).unwrap().into_data()).collect();
    assert!(all.iter().all(|y| *y == all[0]), "{}", f.explain());
    let weight = linear.weight.val().into_data();
    let of = |x: TensorData| Tensor::<B, 2>::from_data(x, &T4aDevice);
    let bias = of(linear.bias.as_ref().unwrap().val().unsqueeze::<2>().into_data());
    let wanted = (x.clone().matmul(of(weight)) + bias).into_data();
    all[0].assert_approx_eq(&wanted, Tolerance::<f32>::rel_abs(1e-5, 1e-5));
    assert!(f.explain().contains("parameters"), "{}", f.explain());

    let linear = LinearConfig::new(4, 3).init::<T>(&T4aDevice);
    let error = compile(|x: Matrix| linear.forward(x)).fullgraph().call(x.clone()).unwrap_err();
    assert_eq!(error, CompileError::Keeps);
    // Initialised outside of the function, they are constants.
    let linear = LinearConfig::new(4, 3).init::<T>(&T4aDevice);
    let _ = (linear.weight.val(), linear.bias.as_ref().unwrap().val());
    let f = compile(|x: Matrix| linear.forward(x)).fullgraph();
    let all: Vec<TensorData> = (0..3).map(|_| f.call(x.clone()).unwrap().into_data()).collect();
    assert!(all.iter().all(|y| *y == all[0]));
    assert_eq!((f.counters().traces, f.counters().hits), (1, 2));
}

#[test]
fn running_statistics_follow_every_call() {
    let x = |i: usize| noise([8, 3], i);
    let eager = BatchNormConfig::new(3).init::<Autodiff<B>>(&T4aDevice);
    let norm = BatchNormConfig::new(3).init::<Autodiff<T>>(&T4aDevice);
    // A clone of a module shares its running statistics.
    let other = norm.clone();
    let f = compile(|x: Matrix| norm.forward(Tensor::<Autodiff<T>, 2>::from_inner(x)).inner());
    for i in 0..20 {
        let wanted = eager.forward(Tensor::<Autodiff<B>, 2>::from_inner(x(i))).inner();
        let got = f.call(x(i)).unwrap();
        got.into_data()
            .assert_approx_eq(&wanted.into_data(), Tolerance::<f32>::rel_abs(1e-4, 1e-4));
    }
    let wanted = eager.running_mean.value_sync().into_data();
    let got = other.running_mean.value_sync().into_data();
    got.assert_approx_eq(&wanted, Tolerance::<f32>::rel_abs(1e-4, 1e-4));
    assert!(wanted.iter::<f32>().all(|x| x > 2.0), "{wanted}");

    let norm = BatchNormConfig::new(3).init::<Autodiff<T>>(&T4aDevice);
    let f = compile(|x: Matrix| norm.forward(Tensor::<Autodiff<T>, 2>::from_inner(x)).inner());
    assert_eq!(f.fullgraph().call(x(0)).unwrap_err(), CompileError::Keeps);
}

/// Values kept by a tape whose reverse pass never runs are not state of the function.
#[test]
fn a_tape_without_a_pass_is_recorded() {
    let f = compile(|x: Matrix| {
        let x = Tensor::<Autodiff<T>, 2>::from_inner(x).require_grad();
        (x.clone() * x).tanh().inner()
    })
    .fullgraph();
    for i in 0..3 {
        f.call(noise([3, 2], i)).unwrap();
    }
    assert_eq!((f.counters().traces, f.counters().hits), (1, 2));
}
