//! State that stays on the devices between calls: results are those of the function without a mesh.

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_t4a::T4aDevice;
use burn_t4a::ext::linalg;
use burn_t4a_shard::{Mesh, PartitionSpec, Processes, ShardError, shard_map};

use crate::processes::together;
use crate::{B, Matrix, T, equal, line, meshes, noise};

/// Weights, and the number of steps.
type Model<A> = (Tensor<A, 2>, Tensor<A, 1, Int>);

fn descend<A: Backend>(((w, n), x): (Model<A>, Tensor<A, 2>)) -> (Model<A>, Tensor<A, 2>) {
    let y = x.clone().matmul(w.clone()).tanh();
    let w = w - x.transpose().matmul(y.clone()) * 0.01;
    ((w, n + 1), y)
}

fn model() -> Model<B> {
    (noise([8, 16], 1), Tensor::from_data(TensorData::from([3i64]), (&T4aDevice, DType::I64)))
}

/// Values of three steps and the final state, without a mesh.
fn plain() -> (Vec<TensorData>, Model<B>) {
    let (mut state, mut all) = (model(), Vec::new());
    for seed in 0..3 {
        let (next, y) = descend((state, noise([4, 8], seed)));
        state = next;
        all.push(y.into_data());
    }
    (all, state)
}

/// Specs of weights, the counter and x, and of the results.
fn specs(w: [&str; 2], x: [&str; 2], y: [&str; 2]) -> [[PartitionSpec; 3]; 2] {
    [x, y].map(|other| {
        [PartitionSpec::split(w), PartitionSpec::replicated(), PartitionSpec::split(other)]
    })
}

#[test]
fn steps_are_those_of_the_function() {
    let (want, (weights, count)) = plain();
    let cases = [
        // Columns of the weights; no sum is split.
        ((["", "a b"], ["", ""], ["", "b"]), true),
        ((["a", ""], ["", "a"], ["", ""]), false),
        ((["", "b"], ["", "a"], ["", ""]), false),
    ];
    for ((w, x, y), exact) in cases {
        for mesh in meshes() {
            let [inputs, outputs] = specs(w, x, y);
            let step = shard_map(descend::<T>, &mesh, inputs, outputs);
            let mut state = step.place(model()).unwrap();
            for (seed, want) in want.iter().enumerate() {
                let y = step.step(&mut state, noise([4, 8], seed)).unwrap();
                equal(y.into_data(), want.clone(), exact);
            }
            let (w, n) = step.gather(&state).unwrap();
            equal(w.into_data(), weights.to_data(), exact);
            equal(n.into_data(), count.to_data(), true);
        }
    }
}

/// The parts of the state do not move between processes, and messages are those of the plan.
#[test]
fn states_stay_in_their_processes() {
    let (want, (weights, count)) = plain();
    let mesh = Mesh::new([("a", 2), ("b", 2)]).unwrap();
    let run = |processes: Processes| {
        let [inputs, outputs] = specs(["", "a b"], ["", ""], ["", "b"]);
        let step = shard_map(descend::<T>, &mesh, inputs, outputs).across(&processes).unwrap();
        let mut state = step.place(model()).unwrap();
        let x = || noise([4, 8], 0);
        let whole = step.plan((model(), x())).unwrap();
        for (seed, want) in want.iter().enumerate() {
            let before = processes.sent();
            let y = step.step(&mut state, noise([4, 8], seed)).unwrap();
            equal(y.into_data(), want.clone(), true);
            let plan = step.step_plan(&state, x()).unwrap();
            // The first step records the function, for which the state is gathered.
            if seed > 0 {
                let sent = processes.sent() - before;
                assert_eq!(sent, plan.sent_by(processes.rank()) as u64, "{plan}");
            }
            // Each process has two of four parts of 8 × 4 numbers.
            let saved = whole.sent_by(processes.rank()) - plan.sent_by(processes.rank());
            assert!(saved >= 2 * 8 * 4 * 8, "{whole}\n{plan}");
        }
        let (w, n) = step.gather(&state).unwrap();
        equal(w.into_data(), weights.to_data(), true);
        equal(n.into_data(), count.to_data(), true);
    };
    together(2, run);
}

#[test]
fn other_forms_are_errors() {
    let rows = || PartitionSpec::split(["d"]);
    let what = |error: ShardError| match error {
        ShardError::State { what } => what,
        other => panic!("{other}"),
    };
    let x = || noise([4, 2], 2);
    // Another shape, another dtype.
    let f = |(w, x): (Matrix, Matrix)| (w.sum_dim(0), x);
    let f = shard_map(f, &line(2), [rows()], [PartitionSpec::replicated()]);
    let mut state = f.place(x()).unwrap();
    let error = what(f.step(&mut state, x()).unwrap_err());
    assert!(error.contains("[4, 2]") && error.contains("[1, 2]"), "{error}");
    // Another spec.
    let f = |(w, x): (Matrix, Matrix)| (w, x);
    let turned = [PartitionSpec::split(["", "d"]), rows()];
    let f = shard_map(f, &line(2), [rows()], turned);
    let mut state = f.place(x()).unwrap();
    let error = what(f.step(&mut state, x()).unwrap_err());
    assert!(error.contains("(d, ·)") && error.contains("(·, d)"), "{error}");
    // Another mesh; other specs of the arguments.
    let other = shard_map(|(w, x): (Matrix, Matrix)| (w, x), &line(4), [rows()], [rows()]);
    assert!(what(other.step(&mut state, x()).unwrap_err()).contains("mesh"));
    assert!(what(other.gather(&state).unwrap_err()).contains("mesh"));
    let columns = || [PartitionSpec::split(["", "d"])];
    let other = shard_map(|(w, x): (Matrix, Matrix)| (w, x), &line(2), columns(), columns());
    let error = what(other.step(&mut state, x()).unwrap_err());
    assert!(error.contains("(d, ·)") && error.contains("(·, d)"), "{error}");
    // Another number of tensors.
    type Rows<A> = Vec<Tensor<A, 2>>;
    let f = |(w, x): (Rows<T>, Matrix)| (vec![w[0].clone()], x);
    let f = shard_map(f, &line(2), [rows()], [rows()]);
    let mut state = f.place(vec![x(), x()]).unwrap();
    assert!(what(f.step(&mut state, x()).unwrap_err()).contains("another tree"));
    // Too few specs.
    let two = [rows(), rows()];
    let f = shard_map(|(w, x): (Rows<T>, Matrix)| (w, x), &line(2), two, [rows()]);
    let error = f.place(vec![x(), x(), x()]).map(|_| ()).unwrap_err();
    assert_eq!(error, ShardError::Specs { what: "arguments", required: 3, given: 2 });
}

#[test]
fn a_step_that_fails_leaves_the_state() {
    let f = |(w, at): (Matrix, Tensor<T, 1, Int>)| (w.clone() + 1.0, w.select(0, at));
    let specs = || [PartitionSpec::split(["d"]), PartitionSpec::replicated()];
    let f = shard_map(f, &line(4), specs(), specs());
    let row = |at: i64| Tensor::<B, 1, Int>::from_data(TensorData::from([at]), &T4aDevice);
    let x = || noise([8, 2], 1);
    let mut state = f.place(x()).unwrap();
    let y = f.step(&mut state, row(7)).unwrap();
    equal(y.into_data(), x().narrow(0, 7, 1).into_data(), true);
    let error = f.step(&mut state, row(8)).unwrap_err();
    assert!(matches!(error, ShardError::Device { .. }), "{error}");
    equal(f.gather(&state).unwrap().into_data(), (x() + 1.0).into_data(), true);
    f.step(&mut state, row(0)).unwrap();
    equal(f.gather(&state).unwrap().into_data(), (x() + 2.0).into_data(), true);
}

/// A recording evaluates the function, so it needs the elements of the state.
#[test]
fn states_are_recorded_with_their_elements() {
    let f = |(w, x): (Matrix, Matrix)| {
        let l = linalg::cholesky(w.clone()).unwrap();
        (w * 2.0, l.matmul(x))
    };
    let rows = PartitionSpec::split(["d"]);
    let f = shard_map(f, &line(2), [rows.clone()], [rows]);
    let unit = || Tensor::<B, 2>::eye(2, &T4aDevice).cast(DType::F64);
    let mut state = f.place(unit() * 4.0).unwrap();
    for (width, scale) in [(2, 2.0), (4, 8f64.sqrt()), (2, 4.0)] {
        let x = || noise([2, width], 1);
        let y = f.step(&mut state, x()).unwrap();
        equal(y.into_data(), (x() * scale).into_data(), false);
    }
}
