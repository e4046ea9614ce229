//! Operations outside of Burn's traits: contractions, linear algebra, scans along an axis, and their derivatives.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::einsum::{
    ArraySemiring, FloatSemiring, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard,
    complex_einsum, semiring_einsum,
};
use burn_t4a::ext::nn;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::fused::{
    AssociativeScan, Cell, FloatMonoid, Running, associative_scan, cumulative, linear_recurrence,
    recurrent,
};
use burn_t4a::ext::{Complex, linalg};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::Traced;
use burn_t4a_shard::{Mesh, PartitionSpec, shard_map};
use burn_t4a_transforms::derivatives::{grad, hvp};
use burn_t4a_transforms::jvp::{Jvp, jvp};

use crate::{B, Cube, T, equal, line, noise};

type Stack<A> = Tensor<A, 3>;

/// A tensor that is not traced.
fn constant(x: Stack<B>) -> Cube {
    Cube::from_data(x.into_data(), (&T4aDevice, DType::F64))
}

/// Compares a sharded function with the plain function; returns the plan and the number of bytes that a device sends.
#[track_caller]
fn law(
    f: impl Fn(Vec<Cube>) -> Cube,
    inputs: &[Stack<B>],
    mesh: &Mesh,
    specs: &[[&str; 3]],
    exact: bool,
) -> (String, usize) {
    let want = f(inputs.iter().cloned().map(constant).collect()).into_data();
    let (out, specs) = specs.split_last().unwrap();
    let specs: Vec<_> = specs.iter().map(|&axes| PartitionSpec::split(axes)).collect();
    let sharded = shard_map(f, mesh, specs, [PartitionSpec::split(*out)]);
    equal(sharded.call(inputs.to_vec()).unwrap().into_data(), want, exact);
    let plan = sharded.plan(inputs.to_vec()).unwrap();
    (plan.to_string(), plan.bytes())
}

fn einsum<S: ArraySemiring, A: Operations>(subscripts: &str, x: Vec<Stack<A>>) -> Stack<A> {
    semiring_einsum::<S, A, 3>(subscripts, x).unwrap()
}

/// Positive numbers, for the semirings with products.
fn positive(shape: [usize; 3], seed: usize) -> Stack<B> {
    noise(shape, seed) + 1.5
}

#[test]
fn labels_of_a_contraction_stay_split() {
    let mesh = line(2);
    let f = |x: Vec<Cube>| einsum::<Standard, T>("bij,bjk->bik", x);
    let [whole, batch, rows, columns] = [["", "", ""], ["d", "", ""], ["", "d", ""], ["", "", "d"]];
    // Shapes [b, i, j] and [b, j, k], specs, the only collective and the bytes of it.
    let (row, column) = ([2, 4, 6], [2, 6, 8]);
    for (x, y, specs, collective, bytes) in [
        (row, column, [batch, batch, batch], "", 0),
        // The other operand is sliced.
        (row, column, [batch, whole, batch], "", 0),
        (row, column, [rows, whole, rows], "", 0),
        (row, column, [whole, columns, columns], "", 0),
        // The sum has 2 · 2 · 2 numbers, of which a device sends 2 (d − 1)/d.
        ([2, 2, 16], [2, 16, 2], [columns, rows, whole], "all-reduce (sum) %2", 64),
        ([2, 2, 16], [2, 16, 2], [columns, whole, whole], "all-reduce (sum) %2", 64),
        // An outer product of 16 · 16 numbers: the operands are smaller.
        ([1, 16, 2], [1, 2, 16], [columns, rows, whole], "all-gather", 256),
        // Rows and columns compete for the devices: the smaller operand is gathered.
        ([1, 2, 4], [1, 4, 16], [rows, columns, columns], "all-gather %0", 32),
        ([1, 16, 4], [1, 4, 2], [rows, columns, rows], "all-gather %1", 32),
    ] {
        let inputs = [noise(x, 1), noise(y, 2)];
        let exact = !collective.contains("all-reduce");
        let (plan, sent) = law(f, &inputs, &mesh, &specs, exact);
        assert_eq!(sent, bytes, "{plan}");
        assert!(plan.contains(collective) && !plan.contains("no rule"), "{plan}");
        let collectives = plan.matches("all-").count();
        assert_eq!(collectives, if bytes == 256 { 2 } else { usize::from(bytes > 0) }, "{plan}");
    }
}

#[test]
fn contractions_on_two_mesh_axes() {
    let two = Mesh::new([("a", 2), ("b", 2)]).unwrap();
    let f = |x: Vec<Cube>| einsum::<Standard, T>("bij,bjk->bik", x);
    let inputs = [noise([4, 4, 16], 1), noise([4, 16, 4], 2)];
    // 2 · 4 · 4 numbers of a shard.
    let specs = [["a", "", "b"], ["a", "b", ""], ["a", "", ""]];
    let (plan, sent) = law(f, &inputs, &two, &specs, false);
    assert!(plan.contains("all-reduce (sum) %2 over b: 256 bytes") && sent == 256, "{plan}");
    let (plan, sent) =
        law(f, &inputs, &two, &[["a", "b", ""], ["a", "", ""], ["a", "b", ""]], true);
    assert_eq!(sent, 0, "{plan}");
    let (plan, sent) =
        law(f, &inputs, &two, &[["a b", "", ""], ["a b", "", ""], ["a b", "", ""]], true);
    assert_eq!(sent, 0, "{plan}");
    // Three operands; a batch axis of size 1, which is repeated; a diagonal, which is not split.
    let f = |x: Vec<Cube>| einsum::<Standard, T>("bij,bjk,bkl->bil", x);
    let inputs = [noise([4, 2, 8], 1), noise([4, 8, 8], 2), noise([1, 8, 2], 3)];
    let specs = [["a", "", "b"], ["a", "b", ""], ["", "", ""], ["a", "", ""]];
    let (plan, _) = law(f, &inputs, &two, &specs, false);
    assert!(plan.contains("all-reduce (sum) %3 over b") && !plan.contains("all-gather"), "{plan}");
    let f = |x: Vec<Cube>| einsum::<Standard, T>("bii,bij->bij", x);
    let inputs = [noise([4, 4, 4], 1), noise([4, 4, 4], 2)];
    let (plan, _) = law(f, &inputs, &two, &[["a", "b", ""], ["a", "", "b"], ["a", "", "b"]], true);
    assert!(plan.contains("all-gather %0 along axis 1 over b"), "{plan}");
    assert_eq!(plan.matches("all-").count(), 1, "{plan}");
}

/// Extrema of a split sum are extrema over devices; other sums are gathered.
#[test]
fn contractions_over_semirings() {
    fn of<S: ArraySemiring>(reduction: &str) {
        let f = |x: Vec<Cube>| einsum::<S, T>("bij,bjk->bik", x);
        let inputs = [positive([2, 2, 16], 1), positive([2, 16, 2], 2)];
        let exact = !matches!(reduction, "sum" | "");
        let (columns, rows) = (["", "", "d"], ["", "d", ""]);
        let (plan, _) = law(f, &inputs, &line(2), &[columns, rows, ["", "", ""]], exact);
        match reduction {
            "" => assert!(plan.contains("all-gather") && !plan.contains("all-reduce"), "{plan}"),
            _ => assert!(plan.contains(&format!("all-reduce ({reduction}) %2")), "{plan}"),
        }
        let (plan, sent) =
            law(f, &inputs, &line(2), &[["d", "", ""], ["d", "", ""], ["d", "", ""]], true);
        assert_eq!(sent, 0, "{plan}");
    }
    of::<Standard>("sum");
    of::<MaxPlus>("max");
    of::<MaxMul>("max");
    of::<MaxMin>("max");
    of::<MinPlus>("min");
    of::<MinMul>("min");
    of::<LogSumExp>("");
}

#[test]
fn complex_contractions() {
    let f = |x: Vec<Cube>| {
        let [a, b, c, d] = x.try_into().unwrap();
        let (x, y) = (Complex::new(a, b).unwrap(), Complex::new(c, d).unwrap());
        let z: Complex<T, 3> = complex_einsum("bij,bjk->bik", (&x, &y)).unwrap();
        let (re, im) = z.into_parts();
        Tensor::cat(vec![re, im], 1)
    };
    let shapes = [[2, 2, 16], [2, 2, 16], [2, 16, 2], [2, 16, 2]];
    let inputs: Vec<_> = shapes.iter().zip(1..).map(|(&shape, seed)| noise(shape, seed)).collect();
    let (x, y) = (["", "", "d"], ["", "d", ""]);
    let (plan, _) = law(f, &inputs, &line(2), &[x, x, y, y, ["", "", ""]], false);
    assert_eq!(plan.matches("all-reduce (sum)").count(), 2, "{plan}");
    assert!(!plan.contains("all-gather"), "{plan}");
    let (plan, sent) = law(f, &inputs, &line(2), &[["d", "", ""]; 5], true);
    assert_eq!(sent, 0, "{plan}");
}

/// Gradients by a tape inside of the function and by a tape outside, over semirings with different rules.
#[test]
fn gradients_of_contractions() {
    fn loss<S: ArraySemiring, A: Operations>(x: Stack<A>, y: Stack<A>) -> Tensor<A, 1> {
        einsum::<S, A>("bij,bjk->bik", vec![x, y]).powi_scalar(2).sum()
    }
    fn of<S: ArraySemiring>([i, j]: [usize; 2], specs: [[&str; 3]; 2], collectives: &[&str]) {
        type A = Autodiff<B>;
        let inputs = || vec![positive([4, i, j], 1), positive([4, j, 2], 2)];
        let inside = |x: Vec<Cube>| {
            let g = grad(|x: Vec<Stack<_>>| loss::<S, _>(x[0].clone(), x[1].clone()), x).unwrap();
            Tensor::cat(vec![g[0].clone(), g[1].clone().swap_dims(1, 2)], 1)
        };
        let specs = || specs.map(PartitionSpec::split).to_vec();
        let want = inside(inputs().into_iter().map(constant).collect()).into_data();
        let mesh = Mesh::new([("a", 2), ("b", 2)]).unwrap();
        let sharded = shard_map(inside, &mesh, specs(), [PartitionSpec::replicated()]);
        equal(sharded.call(inputs()).unwrap().into_data(), want.clone(), false);
        let plan = sharded.plan(inputs()).unwrap().to_string();
        assert!(!plan.contains("no rule"), "{plan}");
        for part in collectives {
            assert!(plan.contains(part), "{part} is missing in\n{plan}");
        }
        let f = |x: Vec<Stack<Traced<A>>>| loss::<S, _>(x[0].clone(), x[1].clone());
        let sharded = shard_map(f, &mesh, specs(), [PartitionSpec::replicated()]);
        let x: Vec<Stack<A>> =
            inputs().into_iter().map(|x| Tensor::from_inner(x).require_grad()).collect();
        let gradients = sharded.call(x.clone()).unwrap().backward();
        let [a, b] = [0, 1].map(|k| x[k].grad(&gradients).unwrap());
        equal(Tensor::cat(vec![a, b.swap_dims(1, 2)], 1).into_data(), want, false);
    }
    let batches = [["a", "", ""], ["a", "", ""]];
    let sums = [["a", "", "b"], ["a", "b", ""]];
    // The gradient of the second operand is a sum over rows.
    let rows = [["a", "b", ""], ["a", "", ""]];
    of::<Standard>([2, 16], batches, &[]);
    of::<Standard>([2, 16], sums, &["all-reduce (sum)"]);
    of::<Standard>([16, 2], rows, &["all-reduce (sum)"]);
    for specs in [batches, sums, rows] {
        for sizes in [[2, 16], [16, 2]] {
            of::<MaxPlus>(sizes, specs, &[]);
            of::<MinMul>(sizes, specs, &[]);
            of::<LogSumExp>(sizes, specs, &[]);
        }
    }
}

/// The argmax that a tape keeps has merged axes: labels behind the first of each group are gathered.
#[test]
fn argmax_of_several_labels() {
    fn f(x: Vec<Cube>) -> Cube {
        grad(|x: Vec<Stack<_>>| einsum::<MaxPlus, _>("bij,cij->bic", x).powi_scalar(2).sum(), x)
            .unwrap()
            .swap_remove(0)
    }
    let inputs = [noise([4, 4, 6], 1), noise([4, 4, 6], 2)];
    for spec in [["d", "", ""], ["", "d", ""], ["", "", "d"]] {
        law(f, &inputs, &line(2), &[spec, ["", "", ""], spec], false);
    }
    fn g(x: Vec<Cube>) -> Cube {
        let f = |x: Vec<Stack<Autodiff<T>>>| {
            let y: Tensor<_, 2> = semiring_einsum::<MinPlus, _, 2>("bcj,bcj->bc", x).unwrap();
            y.powi_scalar(2).sum()
        };
        grad(f, x).unwrap().swap_remove(0)
    }
    for (spec, gathers) in [(["d", "", ""], false), (["", "d", ""], true), (["", "", "d"], true)] {
        let (plan, _) = law(g, &inputs, &line(2), &[spec, spec, spec], false);
        assert_eq!(plan.contains("all-gather"), gathers, "{plan}");
    }
}

const FACTORISATIONS: [&str; 13] = [
    "solve", "cholesky", "qr", "svd", "svdvals", "eigh", "eigvalsh", "inv", "det", "slogdet",
    "expm", "lu", "pinv",
];

/// A function of matrices that are close to a diagonal, with one result of rank 3.
fn factorised<A: Operations>(case: &str, x: Stack<A>) -> Stack<A> {
    let [_, n, _] = x.dims();
    let diagonal: Vec<f64> =
        (0..n * n).map(|i| if i % (n + 1) == 0 { 3.0 + i as f64 } else { 0.0 }).collect();
    let diagonal = TensorData::new(diagonal, [1, n, n]);
    let a = x.clone() + Tensor::from_data(diagonal, (&A::Device::default(), DType::F64));
    let symmetric = a.clone() + a.clone().swap_dims(1, 2);
    match case {
        "solve" => linalg::solve(a, x).unwrap(),
        "cholesky" => linalg::cholesky(symmetric).unwrap(),
        "qr" => {
            let linalg::Qr { q, r } = linalg::qr(a).unwrap();
            q * 2.0 + r
        }
        "svd" => {
            let linalg::Svd { u, s, vh } = linalg::svd(a).unwrap();
            u.powi_scalar(2) + vh.powi_scalar(2) + s.unsqueeze_dim(1)
        }
        "svdvals" => linalg::svdvals(a).unwrap().unsqueeze_dim(1),
        "eigh" => {
            let linalg::Eigh { values, vectors } = linalg::eigh(symmetric).unwrap();
            vectors.powi_scalar(2) + values.unsqueeze_dim(1)
        }
        "eigvalsh" => linalg::eigvalsh(symmetric).unwrap().unsqueeze_dim(1),
        "inv" => linalg::inv(a).unwrap(),
        "det" => linalg::det(a).unwrap().unsqueeze_dims(&[1, 2]),
        "slogdet" => {
            let (sign, logarithm): (Tensor<A, 1>, _) = linalg::slogdet(a).unwrap();
            (sign + logarithm).unsqueeze_dims(&[1, 2])
        }
        "expm" => linalg::expm(x).unwrap(),
        "lu" => {
            let linalg::Lu { l, u, .. } = linalg::lu(a).unwrap();
            l + u
        }
        "pinv" => linalg::pinv(a, None).unwrap(),
        _ => unreachable!("no such case"),
    }
}

/// Values, tangents, gradients, and second derivatives, which are operations of the table.
#[test]
fn linear_algebra_on_batches() {
    fn loss<A: Operations>(case: &str, x: Stack<A>) -> Tensor<A, 1> {
        factorised(case, x).powi_scalar(2).sum()
    }
    fn derivatives(case: &str, x: Cube) -> Cube {
        let v = x.clone().cos();
        let value = factorised(case, x.clone());
        let (_, tangent) =
            jvp(|x: Stack<Jvp<T>>| factorised(case, x), x.clone(), v.clone()).unwrap();
        let (gradient, product) =
            hvp(|x: Stack<Autodiff<Jvp<T>>>| loss(case, x), x.clone(), v).unwrap();
        let again = grad(|x: Stack<Autodiff<T>>| loss(case, x), x).unwrap();
        let both: Stack<T> = value + tangent;
        gradient + product + again + both
    }
    for case in FACTORISATIONS {
        for (derivative, exact) in [(false, true), (true, false)] {
            let f = |x: Vec<Cube>| match derivative {
                true => derivatives(case, x[0].clone()),
                false => factorised(case, x[0].clone()),
            };
            let inputs = [noise([4, 4, 4], 1) * 0.5];
            let batch = [["d", "", ""]; 2];
            for mesh in [line(2), line(4)] {
                let (plan, sent) = law(f, &inputs, &mesh, &batch, exact);
                // The loss of a gradient is not computed, since no result needs it.
                assert!(sent == 0 && !plan.contains("no rule"), "{case}: {plan}");
            }
            // Matrices are gathered.
            let mesh = Mesh::new([("a", 2), ("b", 2)]).unwrap();
            let (plan, _) = law(f, &inputs, &mesh, &[["a", "b", ""], ["a", "", ""]], exact);
            assert!(plan.contains("along axis 1 over b"), "{case}: {plan}");
            assert!(!plan.contains("along axis 0") && !plan.contains("no rule"), "{case}: {plan}");
        }
    }
}

/// Scans along an axis, and norms and softmax, stay split along the other axes, and so do their gradients.
#[test]
fn scans_along_an_axis() {
    fn scanned<A: Operations>(case: &str, x: Vec<Stack<A>>) -> Stack<A> {
        let [x, y] = x.try_into().unwrap();
        match case {
            "sum" => cumulative(Running::Sum, x, 1, true).unwrap(),
            "max" => cumulative(Running::Max, x, 1, false).unwrap(),
            "log_sum_exp" => cumulative(Running::LogSumExp, x, 1, false).unwrap(),
            "linear" => linear_recurrence(x, y.clone(), Some(y.narrow(1, 0, 1)), 1, false).unwrap(),
            "monoid" => {
                let op = AssociativeScan::new(FloatMonoid::LogAddExp, 1);
                associative_scan(&op, vec![x]).unwrap().swap_remove(0)
            }
            "softmax" => nn::softmax(x, 1),
            _ => unreachable!("no such case"),
        }
    }
    let mesh = Mesh::new([("a", 2), ("b", 2)]).unwrap();
    for case in ["sum", "max", "log_sum_exp", "linear", "monoid", "softmax"] {
        let value = |x: Vec<Cube>| scanned(case, x);
        // Exponentials of a vector and of single numbers differ in the last bit.
        let exact = matches!(case, "sum" | "max" | "linear");
        let inputs = [noise([4, 8, 2], 1), noise([4, 8, 2], 2)];
        let gradient = |x: Vec<Cube>| {
            let loss = |x: Vec<Stack<Autodiff<T>>>| scanned(case, x).powi_scalar(2).sum();
            grad(loss, x).unwrap().swap_remove(0)
        };
        let split = [["a", "", "b"]; 3];
        let (plan, sent) = law(value, &inputs, &mesh, &split, exact);
        assert!(sent == 0 && !plan.contains("no rule"), "{case}: {plan}");
        let (plan, sent) = law(gradient, &inputs, &mesh, &split, exact);
        assert!(sent == 0 && !plan.contains("no rule"), "{case}: {plan}");
        // Along the axis of the scan the operands are gathered.
        let (plan, _) = law(value, &inputs, &mesh, &[["a", "b", ""]; 3], exact);
        assert!(plan.contains("along axis 1 over b"), "{case}: {plan}");
        assert!(!plan.contains("over a:"), "{case}: {plan}");
    }
}

/// Matrices of an associative scan and the weights of a recurrent layer are not split; the cotangents of weights are sums.
#[test]
fn scans_of_matrices_and_recurrent_layers() {
    type Four<A> = Tensor<A, 4>;
    let mesh = line(2);
    let f = |x: Vec<Cube>| {
        let x: Four<T> = x[0].clone().reshape([4, 5, 2, 2]);
        let op = AssociativeScan::new(FloatMonoid::Matrix(FloatSemiring::MaxPlus), 1);
        let y: Four<T> = associative_scan(&op, vec![x]).unwrap().swap_remove(0);
        y.reshape([4, 5, 4])
    };
    let (plan, sent) = law(f, &[noise([4, 5, 4], 1)], &mesh, &[["d", "", ""]; 2], true);
    assert!(sent == 0 && !plan.contains("no rule"), "{plan}");
    let (plan, _) = law(f, &[noise([4, 5, 4], 1)], &mesh, &[["", "", "d"]; 2], true);
    assert!(plan.contains("along axis 2 over d") && !plan.contains("no rule"), "{plan}");

    fn layer<A: Operations>(x: Vec<Stack<A>>) -> Stack<A> {
        let [z, weight] = x.try_into().unwrap();
        recurrent(Cell::Lstm, z, weight.squeeze_dim(0), None, Vec::new(), false)
            .unwrap()
            .swap_remove(0)
    }
    let inputs = [noise([5, 4, 8], 1), noise([1, 2, 8], 2)];
    let specs = [["", "d", ""], ["", "", ""], ["", "d", ""]];
    let (plan, sent) = law(layer::<T>, &inputs, &mesh, &specs, true);
    assert!(sent == 0 && !plan.contains("no rule"), "{plan}");
    let gradient = |x: Vec<Cube>| {
        let loss = |x: Vec<Stack<Autodiff<T>>>| layer(x).powi_scalar(2).sum();
        grad(loss, x).unwrap().swap_remove(1)
    };
    let specs = [["", "d", ""], ["", "", ""], ["", "", ""]];
    let (plan, sent) = law(gradient, &inputs, &mesh, &specs, false);
    // The cotangent of the weight, [2, 8]. The loss, which no result needs, is not computed.
    assert!(sent == 128 && !plan.contains("no rule"), "{plan}");
}

/// Labels of scalars, and shapes that a mesh does not divide.
#[test]
fn sizes_that_do_not_divide() {
    let f = |(x, y): (Tensor<T, 1>, Tensor<T, 1>)| -> Tensor<T, 1> {
        semiring_einsum::<Standard, _, 1>("i,i->", (&x, &y)).unwrap()
    };
    let split = || PartitionSpec::split(["d"]);
    let inputs = |n: usize| (noise([n], 1), noise([n], 2));
    let sharded = shard_map(f, &line(2), [split(), split()], [PartitionSpec::replicated()]);
    let (x, y) = inputs(6);
    equal(sharded.call(inputs(6)).unwrap().into_data(), (x * y).sum().into_data(), false);
    assert_eq!(sharded.plan(inputs(6)).unwrap().bytes(), 8);
    assert!(sharded.call(inputs(5)).is_err());
    // 6 rows over 4 devices after a reshape: gathered.
    let f = |x: Vec<Cube>| {
        let [a, b, c] = x[0].dims();
        let x: Cube = x[0].clone().reshape([b * a / 4, 4, c]);
        let y = einsum::<Standard, T>("bij,bkj->bik", vec![x.clone(), x.clone()]);
        linalg::inv(y.narrow(1, 0, 1).narrow(2, 0, 1) + 3.0).unwrap() + x.sum_dim(1).sum_dim(2)
    };
    let specs = [["d", "", ""], ["", "", ""]];
    let (plan, _) = law(f, &[noise([4, 6, 2], 1)], &line(4), &specs, false);
    assert!(!plan.contains("no rule"), "{plan}");
}

/// Bytes between processes are those of the plan, and results are bitwise those of one process.
#[test]
fn contractions_across_processes() {
    let program = |x: Vec<Stack<Traced<BurnT4a>>>| {
        let y = einsum::<Standard, T>("bij,bjk->bik", x.clone());
        let z = einsum::<MaxPlus, T>("bij,bjk->bik", x);
        linalg::inv(y + z).unwrap()
    };
    let inputs = || vec![noise([2, 2, 8], 1), noise([2, 8, 2], 2)];
    let specs = || [PartitionSpec::split(["", "", "d"]), PartitionSpec::split(["", "d", ""])];
    let out = || [PartitionSpec::split(["d"])];
    let want = shard_map(program, &line(2), specs(), out()).call(inputs()).unwrap().into_data();
    let all = crate::processes::together(2, |processes| {
        let sharded = shard_map(program, &line(2), specs(), out()).across(&processes).unwrap();
        let plan = sharded.plan(inputs()).unwrap();
        let before = processes.sent();
        let y = sharded.call(inputs()).unwrap().into_data();
        assert_eq!(processes.sent() - before, plan.sent_by(processes.rank()) as u64, "{plan}");
        y
    });
    all.into_iter().for_each(|y| equal(y, want.clone(), true));
}
