//! Recorded scans on shards.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor};
use burn_t4a::T4aDevice;
use burn_t4a::ext::linalg;
use burn_t4a::ext::scan::{Options, ScanBackend, scan};
use burn_t4a_compile::Traced;
use burn_t4a_shard::{Mesh, PartitionSpec, shard_map};
use burn_t4a_transforms::derivatives::grad;
use burn_t4a_transforms::jvp::{Jvp, jvp};

use crate::{B, T, equal, line, noise};

type Matrix<A> = Tensor<A, 2>;
type Cube<A> = Tensor<A, 3>;
/// Weights, the first state, and the sequence.
type Inputs<A> = (Matrix<A>, Matrix<A>, Cube<A>);
type States<A> = (Matrix<A>, Cube<A>);

/// A recurrent layer: the batch is axis 0 of states, features are axis 1.
fn layer<A: ScanBackend>((w, h, x): Inputs<A>) -> States<A> {
    let body = |w: Matrix<A>, h: Matrix<A>, x: Matrix<A>| {
        let h = (h.matmul(w) + x).tanh();
        let y = h.clone() * 2.0;
        (h, y)
    };
    scan(body, w, h, x, &Options::default()).unwrap()
}

fn inputs() -> Inputs<B> {
    (noise([4, 4], 1), noise([8, 4], 2), noise([5, 8, 4], 3))
}

fn traced<A: ScanBackend>((w, h, x): Inputs<B>) -> Inputs<A> {
    let device = A::Device::default();
    let float = (&device, DType::F64);
    (
        Tensor::from_data(w.into_data(), float),
        Tensor::from_data(h.into_data(), float),
        Tensor::from_data(x.into_data(), float),
    )
}

/// Compares the final states and ys of a sharded function with those of the function; returns the plan.
#[track_caller]
fn law(
    f: impl Fn(Inputs<T>) -> States<T>,
    inputs: &Inputs<B>,
    mesh: &Mesh,
    specs: [&[&str]; 5],
) -> (String, usize) {
    let (h, y) = f(traced(inputs.clone()));
    let [w, first, x, last, ys] = specs.map(|axes| PartitionSpec::split(axes.iter().copied()));
    let sharded = shard_map(f, mesh, [w, first, x], [last, ys]);
    let got = sharded.call(inputs.clone()).unwrap();
    equal(got.0.into_data(), h.into_data(), false);
    equal(got.1.into_data(), y.into_data(), false);
    let plan = sharded.plan(inputs.clone()).unwrap();
    (plan.to_string(), plan.bytes())
}

#[test]
fn a_batch_stays_split_through_a_scan() {
    let batch: [&[&str]; 5] = [&[], &["d"], &["", "d"], &["d"], &["", "d"]];
    for mesh in [line(2), line(4), line(8)] {
        let (plan, sent) = law(layer, &inputs(), &mesh, batch);
        assert!(sent == 0 && !plan.contains("no rule"), "{plan}");
        // A first state on all devices, and then a sequence, are sliced before the loop.
        for specs in
            [[&[][..], &[], &["", "d"], &["d"], &["", "d"]], [&[], &["d"], &[], &["d"], &["", "d"]]]
        {
            let (plan, sent) = law(layer, &inputs(), &mesh, specs);
            assert!(sent == 0 && !plan.contains("no rule"), "{plan}");
        }
    }
    // Weights that are split over another mesh axis are gathered once, before the loop, and so is a split of steps.
    let two = Mesh::new([("a", 2), ("b", 2)]).unwrap();
    let specs: [&[&str]; 5] = [&["b"], &["a"], &["", "a"], &["a"], &["", "a"]];
    let (plan, sent) = law(layer, &inputs(), &two, specs);
    assert!(plan.contains("all-gather %0 along axis 0 over b: 64 bytes") && sent == 64, "{plan}");
    let mut long = inputs();
    long.2 = noise([6, 8, 4], 3);
    let specs: [&[&str]; 5] = [&[], &["a"], &["b", "a"], &["a"], &["", "a"]];
    let (plan, _) = law(layer, &long, &two, specs);
    assert!(plan.contains("all-gather %2 along axis 0 over b"), "{plan}");
    assert!(!plan.contains("over a:"), "{plan}");
}

/// Features are mixed by the product: every step would communicate, so that the operands are gathered.
#[test]
fn a_body_that_communicates_is_gathered() {
    let features: [&[&str]; 5] = [&[], &["", "d"], &["", "", "d"], &["", "d"], &["", "", "d"]];
    let (plan, _) = law(layer, &inputs(), &line(2), features);
    assert!(plan.contains("no rule") && plan.contains("all-gather"), "{plan}");
    // A mean over the batch in a result.
    let f = |(_, h, x): Inputs<T>| {
        let body = |(): (), h: Matrix<T>, x: Matrix<T>| (h.clone() + x, h.clone() - h.mean_dim(0));
        scan(body, (), h, x, &Options::default()).unwrap()
    };
    let batch: [&[&str]; 5] = [&[], &["d"], &["", "d"], &["d"], &["", "d"]];
    let (plan, _) = law(f, &inputs(), &line(2), batch);
    assert!(plan.contains("no rule"), "{plan}");
}

/// Constants of a body, movements, nested scans, and operations of the table in a body.
#[test]
fn bodies_with_constants_and_operations() {
    let f = |(w, h, x): Inputs<T>| {
        let body = |w: Matrix<T>, (h, n): (Matrix<T>, Matrix<T>), x: Matrix<T>| {
            let ones = Matrix::<T>::ones([8, 4], &T4aDevice).cast(DType::F64);
            let square: Cube<T> = x.clone().reshape([8, 2, 2]);
            let square: Matrix<T> = linalg::expm(square * 0.1).unwrap().reshape([8, 4]);
            let inner = |(): (), a: Matrix<T>, b: Tensor<T, 1>| (a * 0.5 + b.sum().unsqueeze(), ());
            let steps = Tensor::<T, 1>::from_data([0.5, 0.25], (&T4aDevice, DType::F64));
            let (n, ()) = scan(inner, (), n + x, steps, &Options::default()).unwrap();
            let h = (h.matmul(w) + square).tanh() + ones;
            let y = h.clone() + n.clone();
            ((h, n), y)
        };
        // The second state begins with equal numbers.
        let n = Matrix::<T>::zeros([8, 4], &T4aDevice).cast(DType::F64);
        let ((h, n), y) = scan(body, w, (h, n), x, &Options::default()).unwrap();
        (h + n, y)
    };
    let batch: [&[&str]; 5] = [&[], &["d"], &["", "d"], &["d"], &["", "d"]];
    for mesh in [line(2), line(4)] {
        let (plan, sent) = law(f, &inputs(), &mesh, batch);
        assert!(sent == 0 && !plan.contains("no rule"), "{plan}");
    }
}

/// A constant of a body with different numbers has no part that all devices could use.
#[test]
fn constants_of_a_body_are_not_split() {
    let f = |(w, h, x): Inputs<T>| {
        let body = |w: Matrix<T>, h: Matrix<T>, x: Matrix<T>| {
            let constant = noise([8, 4], 9).into_data();
            let constant = Matrix::<T>::from_data(constant, (&T4aDevice, DType::F64));
            let h = (h.matmul(w) + x).tanh() + constant;
            (h.clone(), h)
        };
        scan(body, w, h, x, &Options::default()).unwrap()
    };
    let batch: [&[&str]; 5] = [&[], &["d"], &["", "d"], &["d"], &["", "d"]];
    let (plan, _) = law(f, &inputs(), &line(2), batch);
    assert!(plan.contains("no rule"), "{plan}");
}

/// A sum over the batch that no step reads is added up over devices after the loop.
#[test]
fn sums_over_devices_follow_the_loop() {
    let batch: [&[&str]; 5] = [&[], &["d"], &["", "d"], &[], &[]];
    let f = |(w, h, x): Inputs<T>| {
        let body = |h: Matrix<T>, sum: Matrix<T>, x: Matrix<T>| {
            let product = (x.clone() * h.clone()).transpose().matmul(h);
            (sum - product * 0.5, x.sum_dim(0))
        };
        let (w, y) = scan(body, h, w, x, &Options::default()).unwrap();
        (w, y)
    };
    // Sums of [4, 4] and of [5, 1, 4] numbers.
    let (plan, sent) = law(f, &inputs(), &line(2), batch);
    assert!(sent == 128 + 160 && !plan.contains("no rule"), "{plan}");
    // A step that reads the sum needs it from all devices.
    let f = |(w, h, x): Inputs<T>| {
        let body = |h: Matrix<T>, sum: Matrix<T>, x: Matrix<T>| (sum + x.transpose().matmul(h), ());
        let read = |h: Matrix<T>, sum: Matrix<T>, x: Matrix<T>| {
            (sum.tanh() + x.clone().transpose().matmul(h), x)
        };
        let (w, ()) = scan(body, h.clone(), w, x.clone(), &Options::default()).unwrap();
        scan(read, h, w, x, &Options::default()).unwrap()
    };
    let (plan, _) = law(f, &inputs(), &line(2), batch);
    assert_eq!(plan.matches("no rule").count(), 1, "{plan}");
}

/// Tangents inside of the function; a tape inside, whose reverse pass is a scan with a sum behind it; a tape outside, whose gradient of the weights is a sum over devices.
#[test]
fn derivatives_of_a_scan() {
    let mesh = line(2);
    let batch: [&[&str]; 5] = [&[], &["d"], &["", "d"], &["d"], &["", "d"]];
    let f = |(w, h, x): Inputs<T>| {
        let v = (w.clone().cos(), h.clone().sin(), x.clone().cos());
        let along = |x: Inputs<Jvp<T>>| layer(x);
        let (_, tangent): (States<T>, States<T>) = jvp(along, (w, h, x), v).unwrap();
        tangent
    };
    let (plan, sent) = law(f, &inputs(), &mesh, batch);
    assert!(sent == 0 && !plan.contains("no rule"), "{plan}");
    type Inner = Autodiff<T>;
    let f = |(w, h, x): Inputs<T>| {
        let (first, sequence) = (h.clone(), x.clone());
        let loss = |w: Matrix<Inner>| {
            let body = |w: Matrix<Inner>, h: Matrix<Inner>, x: Matrix<Inner>| {
                ((h.matmul(w) + x).tanh(), ())
            };
            let (h, x) = (Matrix::from_inner(first), Cube::from_inner(sequence));
            let (h, ()): (Matrix<Inner>, ()) = scan(body, w, h, x, &Options::default()).unwrap();
            h.powi_scalar(2).sum()
        };
        (grad(loss, w).unwrap(), x)
    };
    let (plan, sent) = law(f, &inputs(), &mesh, [&[], &["d"], &["", "d"], &[], &["", "d"]]);
    // The cotangent of the weights.
    assert!(sent == 128 && plan.matches("= scan").count() == 2, "{plan}");

    type A = Autodiff<B>;
    fn loss<C: ScanBackend>(x: Inputs<C>) -> Tensor<C, 1> {
        let (h, y) = layer(x);
        h.powi_scalar(2).sum() + y.powi_scalar(3).sum()
    }
    let tracked = || {
        let (w, h, x) = inputs();
        (
            Matrix::<A>::from_inner(w).require_grad(),
            Matrix::<A>::from_inner(h).require_grad(),
            Cube::<A>::from_inner(x).require_grad(),
        )
    };
    let (w, h, x) = tracked();
    let want = loss((w.clone(), h.clone(), x.clone())).backward();
    let [input, first, weights] = [
        x.grad(&want).unwrap().into_data(),
        h.grad(&want).unwrap().into_data(),
        w.grad(&want).unwrap().into_data(),
    ];
    let specs =
        [&batch[0], &batch[1], &batch[2]].map(|axes| PartitionSpec::split(axes.iter().copied()));
    let sharded =
        shard_map(|x: Inputs<Traced<A>>| loss(x), &mesh, specs, [PartitionSpec::replicated()]);
    let (w, h, x) = tracked();
    let got = sharded.call((w.clone(), h.clone(), x.clone())).unwrap().backward();
    equal(x.grad(&got).unwrap().into_data(), input, false);
    equal(h.grad(&got).unwrap().into_data(), first, false);
    equal(w.grad(&got).unwrap().into_data(), weights, false);
}
