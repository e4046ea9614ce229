//! Sharded functions against the plain functions: bitwise equal if no sum is split, else equal within rounding.

mod local;
mod loops;
mod operations;
mod processes;
mod state;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use burn::backend::Autodiff;
use burn::tensor::activation::{gelu, relu, softmax};
use burn::tensor::module::{conv2d, embedding, max_pool2d};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Distribution, Int, Tensor, TensorData, Tolerance, signal};
use burn_t4a::ext::operation::{
    Array, Cotangents, Meta, Operation, Outcome, Reverse, TensorError, Value, call, float,
};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{CompileError, Traced};
use burn_t4a_shard::{Mesh, PartitionSpec, ShardError, reshard, shard_map};

type B = BurnT4a;
type T = Traced<B>;
type Matrix = Tensor<T, 2>;
type Cube = Tensor<T, 3>;

fn noise<const D: usize>(shape: [usize; D], seed: usize) -> Tensor<B, D> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f64 / 5003.0 - 1.0;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, DType::F64))
}

/// A tensor that is not traced.
fn constant(x: Tensor<B, 2>) -> Matrix {
    Matrix::from_data(x.into_data(), (&T4aDevice, DType::F64))
}

fn line(devices: usize) -> Mesh {
    Mesh::new([("d", devices)]).unwrap()
}

/// Meshes of the tests, 1-D and 2-D, all with axes `a` and `b`; a 1-D mesh has size 1 along `b`.
fn meshes() -> Vec<Mesh> {
    let mut all: Vec<Mesh> =
        [1, 2, 4, 8].iter().map(|&n| Mesh::new([("a", n), ("b", 1)]).unwrap()).collect();
    for grid in [[2, 2], [4, 2], [2, 4], [1, 8]] {
        all.push(Mesh::new([("a", grid[0]), ("b", grid[1])]).unwrap());
    }
    all
}

#[track_caller]
fn equal(got: TensorData, want: TensorData, exact: bool) {
    if exact {
        assert_eq!(got, want);
    } else {
        got.assert_approx_eq(&want, Tolerance::<f64>::rel_abs(1e-12, 1e-12));
    }
}

/// Compares a sharded function of two matrices with the plain function, for these specs on all meshes.
#[track_caller]
fn law(
    f: impl Fn(Matrix, Matrix) -> Matrix + Copy,
    shapes: [[usize; 2]; 2],
    specs: [[&str; 2]; 3],
    exact: bool,
) {
    let pair = || (noise(shapes[0], 1), noise(shapes[1], 2));
    let (x, y) = pair();
    let want = f(constant(x), constant(y)).into_data();
    for mesh in meshes() {
        let [x, y, out] = specs.map(PartitionSpec::split);
        let sharded = shard_map(|(x, y): (Matrix, Matrix)| f(x, y), &mesh, [x, y], [out]);
        equal(sharded.call(pair()).unwrap().into_data(), want.clone(), exact);
    }
}

#[test]
fn elementwise_with_broadcasts() {
    let f = |x: Matrix, y: Matrix| {
        let row = y.clone().narrow(0, 0, 1);
        let mask = x.clone().greater(y.clone());
        (x.clone() * 2.0 + row).tanh().mask_where(mask, y.clone()) - gelu(x) / (y.abs() + 1.0)
    };
    for (a, b, out) in [
        (["a", "b"], ["a", "b"], ["a", "b"]),
        (["a", ""], ["", "b"], ["a", "b"]),
        (["a", ""], ["b", ""], ["", ""]),
        (["a b", ""], ["", "a b"], ["b a", ""]),
        (["", ""], ["", ""], ["", "b"]),
    ] {
        law(f, [[8, 16], [8, 16]], [a, b, out], true);
    }
}

#[test]
fn products() {
    let f = |x: Matrix, y: Matrix| x.matmul(y);
    // Split rows and columns: no sum is split.
    law(f, [[16, 8], [8, 16]], [["a", ""], ["", "b"], ["a", "b"]], true);
    law(f, [[16, 8], [8, 16]], [["a", ""], ["", "a"], ["", "a"]], true);
    // Split contraction.
    law(f, [[16, 8], [8, 16]], [["", "a"], ["a", ""], ["", ""]], false);
    law(f, [[16, 8], [8, 16]], [["b", "a"], ["a", "b"], ["a", "b"]], false);
    law(f, [[16, 8], [8, 16]], [["a", "b"], ["", ""], ["a", ""]], false);
}

#[test]
fn reductions() {
    let f = |x: Matrix, y: Matrix| {
        let parts = vec![
            x.clone().sum_dim(0),
            x.clone().mean_dim(0) * 3.0,
            y.clone().max_dim(0),
            y.clone().min_dim(0),
            y.clone() - y.clone().mean_dim(1),
            (x.clone() * y.clone()).sum().unsqueeze::<2>().expand([1, 16]),
            x.clone().max().unsqueeze::<2>().expand([1, 16]) + x.clone().mean().unsqueeze(),
            softmax(x.clone(), 1) + softmax(x.clone(), 0),
            y.clone().cumsum(1) + x.argmax(1).float().cast(DType::F64) * y.prod_dim(1),
        ];
        Tensor::cat(parts, 0)
    };
    for specs in [
        [["a", "b"], ["b", "a"], ["", ""]],
        [["a", ""], ["a", ""], ["", "b"]],
        [["", "a"], ["", ""], ["", ""]],
    ] {
        law(f, [[8, 16], [8, 16]], specs, false);
    }
    // Extrema and device-local operations are exact.
    let exact = |x: Matrix, y: Matrix| {
        let x = x.clone().max_dim(0) + x.min_dim(0);
        softmax(y.clone(), 1) + y.sum_dim(1) + x
    };
    law(exact, [[8, 16], [8, 16]], [["a", ""], ["a", ""], ["a", ""]], true);
}

#[test]
fn movement() {
    let f = |x: Matrix, y: Matrix| {
        let cube: Cube = x.clone().reshape([8, 4, 4]);
        let back: Matrix = cube.swap_dims(1, 2).permute([0, 2, 1]).reshape([8, 16]);
        let tail: Matrix =
            x.clone().reshape([32, 4]).slice([0..32, 1..3]).reshape([16, 4]).transpose();
        let parts = vec![
            back,
            y.clone().transpose().transpose().flip([1]),
            y.clone().slice([2..4, 0..16]).repeat_dim(0, 2),
            x.clone().slice([0..8, 3..11]).repeat_dim(1, 2),
            y.clone().slice_assign([0..8, 4..8], x.clone().narrow(1, 0, 4)),
            tail.repeat_dim(0, 2),
            x.clone().unsqueeze::<3>().expand([2, 8, 16]).reshape([16, 16]),
            x.clone().roll(&[1, 3], &[0, 1]),
            y.gather(1, x.clone().argsort(1)),
            x.select(0, Tensor::from_ints([3, 0, 3, 7], &T4aDevice)),
        ];
        Tensor::cat(parts, 0)
    };
    for specs in [
        [["a", "b"], ["a", "b"], ["", ""]],
        [["a", ""], ["", "a"], ["", "a"]],
        [["a b", ""], ["", ""], ["", "b"]],
    ] {
        law(f, [[8, 16], [8, 16]], specs, true);
    }
}

/// Methods that once had no rule, because lists of names did not have them, stay split along the axes that they keep.
#[test]
fn operations_along_an_axis() {
    let mesh = line(2);
    let f = |x: Matrix, y: Matrix| {
        let (re, im) = signal::rfft(x.clone(), 0, None);
        let back = signal::irfft(re.clone(), im.clone(), 0, None);
        let n = (x.clone() * 10.0).int();
        let (largest, at) = n.clone().max_dim_with_indices(0);
        let bits = n.clone().bitwise_and_scalar(5) + n.clone().bitwise_or_scalar(3);
        let ints = n.clone().cumprod(0) + n.cummax(0) + bits + largest.repeat_dim(0, 2);
        let at = at.float().cast(DType::F64).repeat_dim(0, 2);
        let top = Tensor::cat(vec![y.clone().slice([0..1, 0..6]), y.slice([1..2, 0..6])], 0);
        Tensor::cat(vec![re, im, back, top, at, ints.float().cast(DType::F64)], 0)
    };
    let inputs = || (noise([2, 6], 1), noise([2, 6], 2));
    let (x, y) = inputs();
    let want = f(constant(x), constant(y)).into_data();
    for (axes, is_split) in [(["", "d"], true), (["d", ""], false)] {
        let specs = [axes, axes].map(PartitionSpec::split);
        let g = |(x, y): (Matrix, Matrix)| f(x, y);
        let sharded = shard_map(g, &mesh, specs, [PartitionSpec::split(axes)]);
        equal(sharded.call(inputs()).unwrap().into_data(), want.clone(), true);
        let plan = sharded.plan(inputs()).unwrap().to_string();
        assert!(!plan.contains("no rule"), "{plan}");
        assert_eq!(plan.contains("all-gather"), !is_split, "{plan}");
    }
}

#[test]
fn layers_on_a_batch() {
    let f = |(x, w, words, table): (Tensor<T, 4>, Tensor<T, 4>, Tensor<T, 2, Int>, Matrix)| {
        let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        let y = max_pool2d(conv2d(x, w, None, options), [2, 2], [2, 2], [0, 0], [1, 1], false);
        let z = embedding(table, words);
        (relu(y), softmax(z.clone().matmul(z.swap_dims(1, 2)), 2))
    };
    let specs = || {
        ["a", "", "b", ""]
            .map(|axes| PartitionSpec::split([axes]))
            .into_iter()
            .enumerate()
            .map(|(i, x)| if i == 3 { PartitionSpec::split(["", "b"]) } else { x })
    };
    let inputs = || {
        let words: Vec<i64> = (0..40).map(|i| i * 7 % 6).collect();
        let words = Tensor::<B, 2, Int>::from_data(TensorData::new(words, [8, 5]), &T4aDevice);
        (noise([8, 2, 6, 6], 1), noise([4, 2, 3, 3], 2), words, noise([6, 8], 3))
    };
    let whole =
        shard_map(f, &line(1), [PartitionSpec::replicated()], [PartitionSpec::replicated()]);
    let (y, z) = whole.call(inputs()).unwrap();
    for mesh in meshes() {
        let sharded = shard_map(
            f,
            &mesh,
            specs(),
            [PartitionSpec::split(["a"]), PartitionSpec::replicated()],
        );
        let (a, b) = sharded.call(inputs()).unwrap();
        equal(a.into_data(), y.to_data(), false);
        equal(b.into_data(), z.to_data(), false);
    }
}

/// A gradient-descent step inside the function: cotangents of replicated parameters are summed over devices.
#[test]
fn gradients_inside_and_outside() {
    fn loss<A: burn::tensor::backend::Backend>(
        w: Tensor<A, 2>,
        v: Tensor<A, 2>,
        x: Tensor<A, 2>,
    ) -> Tensor<A, 1> {
        let h = burn::tensor::module::linear(x, w, None).tanh();
        h.matmul(v).powi_scalar(2).mean()
    }
    let step = |(w, v, x): (Matrix, Matrix, Matrix)| {
        let [w, v] = [w, v].map(|w| Tensor::<Autodiff<T>, 2>::from_inner(w).require_grad());
        let gradients = loss(w.clone(), v.clone(), Tensor::from_inner(x)).backward();
        (w.grad(&gradients).unwrap(), v.grad(&gradients).unwrap())
    };
    let inputs = || (noise([4, 8], 1), noise([8, 8], 2), noise([16, 4], 3));
    let specs = || {
        [
            PartitionSpec::split(["", "b"]),
            PartitionSpec::split(["b", ""]),
            PartitionSpec::split(["a", ""]),
        ]
    };
    let whole =
        shard_map(step, &line(1), [PartitionSpec::replicated()], [PartitionSpec::replicated()]);
    let (dw, dv) = whole.call(inputs()).unwrap();
    for mesh in meshes() {
        let out = [PartitionSpec::split(["", "b"]), PartitionSpec::split(["b", ""])];
        let sharded = shard_map(step, &mesh, specs(), out);
        let (a, b) = sharded.call(inputs()).unwrap();
        equal(a.into_data(), dw.to_data(), false);
        equal(b.into_data(), dv.to_data(), false);
        let plan = sharded.plan(inputs()).unwrap().to_string();
        assert!(mesh.axes()[0].1 == 1 || plan.contains("all-reduce (sum)"), "{plan}");

        // The opposite nesting: the tape is outside, and differentiates the collectives.
        type A = Autodiff<B>;
        type Above = Tensor<Traced<A>, 2>;
        let f = |(w, v, x): (Above, Above, Above)| loss(w, v, x);
        let sharded = shard_map(f, &mesh, specs(), [PartitionSpec::replicated()]);
        let (w, v, x) = inputs();
        let [w, v] = [w, v].map(|w| Tensor::<A, 2>::from_inner(w).require_grad());
        let value = sharded.call((w.clone(), v.clone(), Tensor::from_inner(x))).unwrap();
        let gradients = value.backward();
        equal(w.grad(&gradients).unwrap().into_data(), dw.to_data(), false);
        equal(v.grad(&gradients).unwrap().into_data(), dv.to_data(), false);
    }
}

#[test]
fn the_plan_tells_what_moves() {
    let mesh = Mesh::new([("data", 2), ("model", 2)]).unwrap();
    let f = |(x, w): (Matrix, Matrix)| {
        softmax(reshard(x.matmul(w), &PartitionSpec::split(["data", "model"])), 1)
    };
    let specs = [PartitionSpec::split(["data", "model"]), PartitionSpec::split(["model", ""])];
    let f = shard_map(f, &mesh, specs, [PartitionSpec::split(["data"])]);
    let inputs = || (noise([4, 8], 1), noise([8, 6], 2));
    let plan = f.plan(inputs()).unwrap();
    let text = plan.to_string();
    for part in [
        "mesh: data 2 × model 2",
        "%0 f64[4, 8] (data, model) = input",
        "%2 f64[4, 6] (data, ·) = float_matmul of %0, %1",
        // The local [2, 6] shard, counted twice times (d − 1)/d = 1/2.
        "all-reduce (sum) %2 over model: 96 bytes",
        "%3 f64[4, 6] (data, model) = reshard of %2",
        // Half of a [2, 6] shard.
        "all-gather %3 along axis 1 over model: 48 bytes",
        "output %4 f64[4, 6] (data, ·)",
        "each device sends 144 bytes",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert_eq!(plan.bytes(), 144);
    let whole = softmax(inputs().0.matmul(inputs().1), 1);
    equal(f.call(inputs()).unwrap().into_data(), whole.into_data(), false);
}

#[test]
fn random_numbers_are_drawn_once() {
    let f =
        |x: Matrix| x + Matrix::random([4, 4], Distribution::Default, &T4aDevice).cast(DType::F64);
    let f = shard_map(f, &line(4), [PartitionSpec::split(["d"])], [PartitionSpec::split(["d"])]);
    let [a, b] = [0; 2].map(|_| f.call(noise([4, 4], 1) * 0.0).unwrap().into_data());
    assert!(a != b);
    // The shards of the rows have different random numbers.
    let rows: Vec<f64> = a.iter::<f64>().collect();
    assert!(rows[..4] != rows[4..8]);
}

#[test]
fn bad_input_is_an_error() {
    let f = |x: Matrix| x * 2.0;
    let mesh = Mesh::new([("a", 2), ("b", 4)]).unwrap();
    let call = |input: PartitionSpec, output: PartitionSpec| {
        shard_map(f, &mesh, [input], [output]).call(noise([6, 8], 1)).unwrap_err()
    };
    let whole = PartitionSpec::replicated;
    let error = call(PartitionSpec::split(["", "c"]), whole());
    assert!(
        matches!(&error, ShardError::UnknownAxis { name, axes, .. }
        if name == "c" && *axes == ["a", "b"]),
        "{error}"
    );
    let error = call(PartitionSpec::split(["b"]), whole());
    assert!(
        matches!(&error, ShardError::Divide { axis: 0, size: 6, parts: 4, names, .. }
        if *names == ["b"]),
        "{error}"
    );
    let error = call(whole(), PartitionSpec::split(["a b"]));
    assert!(matches!(error, ShardError::Divide { axis: 0, size: 6, parts: 8, .. }), "{error}");
    let error = call(PartitionSpec::split(["a", "a"]), whole());
    assert!(matches!(error, ShardError::Twice { .. }), "{error}");
    let error = call(PartitionSpec::split(["a", "b", ""]), whole());
    assert!(matches!(error, ShardError::Rank { rank: 2, axes: 3, .. }), "{error}");
    let two = shard_map(f, &mesh, [whole(), whole()], [whole()]).call(noise([6, 8], 1));
    assert!(matches!(two, Err(ShardError::Specs { required: 1, given: 2, .. })));
    let reads = |x: Matrix| x.clone() / x.max().into_scalar();
    let reads = shard_map(reads, &mesh, [whole()], [whole()]).call(noise([6, 8], 1));
    assert!(matches!(reads, Err(ShardError::Compile(CompileError::ReadsData { .. }))));
}

static RUNS: AtomicUsize = AtomicUsize::new(0);

/// The identity, which panics or sleeps in one process at one run; runs are counted per process.
#[derive(Clone, Debug)]
struct Fails {
    /// `None` for the process that no test has started.
    rank: Option<usize>,
    run: usize,
    sleeps: bool,
}

impl Operation for Fails {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "fails"
    }
    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
        Ok(vec![inputs[0].clone()])
    }
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        _: &[bool],
    ) -> Result<Outcome<A>, TensorError> {
        if self.rank == processes::rank() && RUNS.fetch_add(1, Ordering::SeqCst) == self.run {
            assert!(self.sleeps, "out of order");
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok(inputs[0].float().shift(0.0).into())
    }
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
        Ok(vec![Some(reverse.cotangent().clone())])
    }
}

/// Each device runs an operation, then all devices synchronise in a sum.
fn fails(fails: Fails) -> impl Fn(Matrix) -> Matrix {
    move |x| call::<_, _, 2>(&fails, &[float(x.clone())]).unwrap() + x.sum_dim(0)
}

/// The other devices wait in the sum and receive the failure.
#[test]
fn a_device_that_fails_ends_the_call() {
    let f = fails(Fails { rank: None, run: 2, sleeps: false });
    let f = shard_map(f, &line(4), [PartitionSpec::split(["d"])], [PartitionSpec::split(["d"])]);
    let error = f.call(noise([8, 2], 1)).unwrap_err();
    let ShardError::Device { operation, message, .. } = &error else { panic!("{error}") };
    assert_eq!((operation.as_str(), message.contains("out of order")), ("fails", true), "{error}");
    // The next call succeeds.
    assert!(f.call(noise([8, 2], 1)).is_ok());
}
