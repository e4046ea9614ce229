//! Factorisations of matrices of any size by cuSOLVER, in `f32` and `f64`, against identities and the engine; those of
//! small matrices by kernels in `f64`.

use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Int, Tensor};
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::einsum;
use burn_t4a::ext::linalg::{
    Triangle, TriangleOp, cholesky, eigh, eigvalsh, lu, qr, solve, solve_triangular, svd, svdvals,
};
use burn_t4a::ext::operation::{Kernel, MatrixKernel, Operations};
use cubecl::cuda::CudaRuntime;
use t4a_cube::{
    CubeError, Factorisation, Operand, factor_large, has_library, solve_triangular_large,
};

use super::{Card, Engine, Gpu, Tested, noise, tensor};

type Batch<B> = Tensor<B, 3>;

/// Element types, and the tolerance relative to the largest entry.
const TYPES: [(DType, f64); 2] = [(DType::F32, 2e-5), (DType::F64, 1e-12)];

/// Three matrices; `turned` gives the strides of a transpose.
fn random<B: Tested>(dtype: DType, m: usize, n: usize, turned: bool) -> Batch<B> {
    let x = noise(3 * m * n, m * 100 + n);
    match turned {
        true => tensor::<B, 3>(&x, [3, n, m]).cast(dtype).swap_dims(1, 2),
        false => tensor::<B, 3>(&x, [3, m, n]).cast(dtype),
    }
}

fn eye<B: Tested>(dtype: DType, n: usize) -> Batch<B> {
    let eye = Tensor::<B, 2>::eye(n, &B::place()).cast(dtype);
    eye.unsqueeze_dim::<3>(0).repeat_dim(0, 3)
}

/// `a b` in full precision, by a kernel that needs no tuning.
fn product<B: Tested>(a: &Batch<B>, b: &Batch<B>) -> Batch<B> {
    einsum("bij,bjk->bik", [a, b]).unwrap()
}

fn turned<B: Backend>(a: &Batch<B>) -> Batch<B> {
    a.clone().swap_dims(1, 2)
}

fn positive<B: Tested>(dtype: DType, n: usize, by_columns: bool) -> Batch<B> {
    let a = random::<B>(dtype, n, n, by_columns);
    product(&a, &turned(&a)) + eye(dtype, n) * (n as f32)
}

fn numbers<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().convert::<f64>().to_vec().unwrap()
}

fn assert_close(given: &[f64], expected: &[f64], tolerance: f64, of: &str) {
    assert_eq!(given.len(), expected.len(), "{of}");
    let scale = expected.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
    for (i, (g, e)) in given.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance * scale, "{of}: {g} at {i}, expected {e}");
    }
}

/// `a = b`.
fn assert_same(a: Batch<Card>, b: Batch<Card>, tolerance: f64, of: &str) {
    assert_close(&numbers(a), &numbers(b), tolerance, of);
}

/// `Qᵀ Q = 1`.
fn orthonormal(q: &Batch<Card>, tolerance: f64, of: &str) {
    let k = q.dims()[2];
    assert_same(product(&turned(q), q), eye(q.dtype(), k), 4.0 * tolerance, &format!("{of} QᵀQ"));
}

fn operand(x: &Batch<Card>) -> Operand {
    let x = x.clone().into_primitive().tensor();
    Operand {
        handle: x.handle.clone(),
        shape: x.meta.shape().to_vec(),
        strides: x.meta.strides().to_vec(),
        dtype: x.dtype.into(),
    }
}

fn status(x: &Batch<Card>, of: Factorisation) -> Result<Vec<i32>, CubeError> {
    let client = x.clone().into_primitive().tensor().client;
    let found = factor_large(&client, 0, of, operand(x))?;
    let bytes = client.read_one(found.status.handle).unwrap();
    Ok(bytes.chunks_exact(4).map(|x| i32::from_ne_bytes(x.try_into().unwrap())).collect())
}

const ALL: [(Factorisation, MatrixKernel); 5] = [
    (Factorisation::Cholesky, MatrixKernel::Cholesky),
    (Factorisation::Lu, MatrixKernel::Lu),
    (Factorisation::Qr, MatrixKernel::Qr),
    (Factorisation::Eigh, MatrixKernel::Eigh),
    (Factorisation::Svd, MatrixKernel::Svd),
];

/// The library computes these matrices, not the engine; the route policy agrees.
#[test]
fn statuses_of_the_library() {
    assert!(has_library::<CudaRuntime>());
    for (dtype, _) in TYPES {
        for (of, kernel) in ALL {
            let square = matches!(of, Factorisation::Cholesky | Factorisation::Eigh);
            for (m, n) in
                [(65, 65), (100, 70), (70, 100)].into_iter().filter(|(m, n)| !square || m == n)
            {
                assert!(Card::has_kernel(Kernel::Matrix(kernel, [m, n]), &[]));
                let a = match of {
                    Factorisation::Cholesky => positive::<Card>(dtype, n, false),
                    _ => random(dtype, m, n, false),
                };
                assert_eq!(status(&a, of), Ok(vec![0; 3]), "{of:?} {dtype:?} {m} {n}");
                // Out of range of squares, and not finite.
                let last = a.clone().slice([2..3, 0..m, 0..n]);
                for (factor, code) in [(f32::NAN, -2), (f32::INFINITY, -2), (1e-30, -2)] {
                    if dtype == DType::F64 && factor == 1e-30 {
                        continue;
                    }
                    let a = a.clone().slice_assign([2..3, 0..m, 0..n], last.clone() * factor);
                    assert_eq!(status(&a, of), Ok(vec![0, 0, code]), "{of:?} {dtype:?} {factor}");
                }
            }
        }
        let b = random::<Card>(dtype, 100, 3, false);
        let client = b.clone().into_primitive().tensor().client;
        let t = random::<Card>(dtype, 100, 100, false) + eye(dtype, 100) * 100.0;
        let triangle = t4a_cube::Triangle { upper: true, unit: false, transposed: false };
        let run = |t: &Batch<Card>, b: &Batch<Card>| {
            let operands = [operand(t), operand(b)];
            let (_, status) = solve_triangular_large(&client, 0, operands, triangle).unwrap();
            let bytes = client.read_one(status.handle).unwrap();
            let codes: Vec<i32> =
                bytes.chunks_exact(4).map(|x| i32::from_ne_bytes(x.try_into().unwrap())).collect();
            codes
        };
        assert_eq!(run(&t, &b), [0; 3]);
        // A zero on the diagonal, NaN inside and outside of the triangle, NaN on the right.
        let one = |x: f32| tensor::<Card, 3>(&[x], [1, 1, 1]).cast(dtype);
        let put = |x: &Batch<Card>, i: usize, j: usize, value| {
            x.clone().slice_assign([1..2, i..i + 1, j..j + 1], one(value))
        };
        assert_eq!(run(&put(&t, 6, 6, 0.0), &b), [0, 7, 0]);
        assert_eq!(run(&put(&t, 6, 9, f32::NAN), &b), [0, -2, 0]);
        assert_eq!(run(&put(&t, 9, 6, f32::NAN), &b), [0; 3]);
        assert_eq!(run(&t, &put(&b, 9, 2, f32::NAN)), [0, -2, 0]);
    }
}

#[test]
fn cholesky_factors() {
    for (dtype, tolerance) in TYPES {
        for (n, by_columns) in [(65, false), (100, true), (256, false)] {
            let of = format!("{dtype:?} {n}");
            let a = positive::<Card>(dtype, n, by_columns);
            let l = cholesky(a.clone()).unwrap();
            assert_same(product(&l, &turned(&l)), a, tolerance, &of);
            if n == 65 {
                let expected = cholesky(positive::<BurnT4a>(dtype, n, by_columns)).unwrap();
                assert_close(&numbers(l), &numbers(expected), tolerance, &of);
            }
        }
    }
}

#[test]
fn qr_factors() {
    for (dtype, tolerance) in TYPES {
        for (m, n) in [(65, 65), (100, 70), (70, 100), (256, 100), (100, 256)] {
            let of = format!("{dtype:?} {m} {n}");
            let a = random::<Card>(dtype, m, n, m == 100);
            let found = qr(a.clone()).unwrap();
            orthonormal(&found.q, tolerance, &of);
            assert_same(product(&found.q, &found.r), a, 4.0 * tolerance, &of);
            let k = m.min(n);
            for (e, x) in numbers(found.r).into_iter().enumerate() {
                let (i, j) = (e / n % k, e % n);
                assert!(if i > j { x == 0.0 } else { i < j || x >= 0.0 }, "{of}: {x} at {i} {j}");
            }
        }
        let found = qr(random::<Card>(dtype, 100, 70, true)).unwrap();
        let expected = qr(random::<BurnT4a>(dtype, 100, 70, true)).unwrap();
        assert_close(&numbers(found.q), &numbers(expected.q), 50.0 * tolerance, "q");
        assert_close(&numbers(found.r), &numbers(expected.r), 50.0 * tolerance, "r");
        // Without rank.
        let zeros = eye::<Card>(dtype, 70) * 0.0;
        let found = qr(zeros.clone()).unwrap();
        orthonormal(&found.q, tolerance, "zeros");
        assert_close(&numbers(found.r), &numbers(zeros), 0.0, "zeros");
    }
}

#[test]
fn lu_factors() {
    for (dtype, tolerance) in TYPES {
        for (m, n) in [(65, 65), (100, 70), (70, 100), (256, 256)] {
            let of = format!("{dtype:?} {m} {n}");
            let a = random::<Card>(dtype, m, n, m == 70);
            let found = lu(a.clone()).unwrap();
            let rows: Tensor<Card, 2, Int> = found.rows;
            let index = rows.clone().unsqueeze_dim::<3>(2).repeat_dim(2, n);
            let below = numbers(found.l.clone()).into_iter().fold(0.0f64, |m, x| m.max(x.abs()));
            assert!(below <= 1.0, "{of}: {below}");
            let back = product(&found.l, &found.u);
            assert_same(back, a.gather(1, index), 10.0 * tolerance, &of);
            if m == 100 {
                let expected = lu(random::<BurnT4a>(dtype, m, n, false)).unwrap();
                let expected: Tensor<BurnT4a, 2, Int> = expected.rows;
                let host =
                    |x: burn::tensor::TensorData| x.convert::<i64>().to_vec::<i64>().unwrap();
                assert_eq!(host(rows.into_data()), host(expected.into_data()), "{of}");
            }
        }
    }
}

#[test]
fn systems() {
    for (dtype, tolerance) in TYPES {
        for (n, r) in [(65, 1), (100, 70), (256, 3)] {
            let of = format!("{dtype:?} {n} {r}");
            let a = positive::<Card>(dtype, n, false) + random::<Card>(dtype, n, n, true);
            let b = random::<Card>(dtype, n, r, n == 100);
            let x = solve::<_, _, Batch<Card>>(a.clone(), b.clone()).unwrap();
            assert_same(product(&a, &x), b, 4.0 * tolerance, &of);
        }
    }
}

#[test]
fn triangular_systems() {
    fn run<B: Tested>(dtype: DType, by_columns: bool, triangle: Triangle) -> Vec<f64> {
        let t = random::<B>(dtype, 80, 80, by_columns) / 80.0 + eye(dtype, 80) * 2.0;
        let b = random::<B>(dtype, 80, 5, !by_columns);
        numbers(solve_triangular::<_, _, Batch<B>>(t, b, triangle).unwrap())
    }
    for (dtype, tolerance) in TYPES {
        for upper in [false, true] {
            for unit in [false, true] {
                for op in [TriangleOp::None, TriangleOp::Transpose] {
                    for by_columns in [false, true] {
                        let triangle = Triangle { upper, unit, op };
                        let of = format!("{dtype:?} {triangle:?} {by_columns}");
                        let expected = run::<BurnT4a>(dtype, by_columns, triangle);
                        let given = run::<Card>(dtype, by_columns, triangle);
                        assert_close(&given, &expected, tolerance, &of);
                    }
                }
            }
        }
    }
}

#[test]
fn eigenvalues_and_eigenvectors() {
    for (dtype, tolerance) in TYPES {
        for n in [65, 100, 256] {
            let of = format!("{dtype:?} {n}");
            let a = random::<Card>(dtype, n, n, n == 100);
            let found = eigh(a.clone()).unwrap();
            let values: Tensor<Card, 2> = found.values;
            let v: Batch<Card> = found.vectors;
            orthonormal(&v, tolerance, &of);
            let scaled = v.clone() * values.clone().unsqueeze_dim::<3>(1);
            let symmetric = (a.clone() + turned(&a)) / 2.0;
            // Relative to the largest eigenvalue.
            let scale = numbers(values.clone()).into_iter().fold(0.0f64, |m, x| m.max(x.abs()));
            assert_same(product(&scaled, &turned(&v)), symmetric, tolerance * scale, &of);
            assert!(numbers(values.clone()).chunks_exact(n).all(|w| w.is_sorted()), "{of}");
            if n == 65 {
                let expected = eigvalsh(random::<BurnT4a>(dtype, n, n, false)).unwrap();
                assert_close(&numbers(values), &numbers(expected), tolerance, &of);
            }
        }
        let found = eigh(eye::<Card>(dtype, 80) * 3.0).unwrap();
        let values: Tensor<Card, 2> = found.values;
        assert_close(&numbers(values), &[3.0; 240], tolerance, "ties");
        orthonormal(&found.vectors, tolerance, "ties");
    }
}

#[test]
fn singular_values_and_vectors() {
    let check = |a: Batch<Card>, tolerance: f64, of: &str| {
        let found = svd(a.clone()).unwrap();
        let (u, s): (Batch<Card>, Tensor<Card, 2>) = (found.u, found.s);
        let vh: Batch<Card> = found.vh;
        orthonormal(&u, tolerance, of);
        orthonormal(&turned(&vh), tolerance, of);
        let values = numbers(s.clone());
        let k = s.dims()[1];
        assert!(values.chunks_exact(k).all(|s| s.is_sorted_by(|a, b| a >= b)), "{of}");
        let back = product(&(u * s.unsqueeze_dim::<3>(1)), &vh);
        assert_same(back, a, tolerance * values[0].max(1.0), of);
        values
    };
    for (dtype, tolerance) in TYPES {
        for (m, n) in [(65, 65), (100, 70), (70, 100), (256, 100), (100, 256), (256, 256)] {
            let of = format!("{dtype:?} {m} {n}");
            let s = check(random::<Card>(dtype, m, n, m == 100), tolerance, &of);
            if m < 100 {
                let expected = svdvals(random::<BurnT4a>(dtype, m, n, false)).unwrap();
                assert_close(&s, &numbers(expected), tolerance, &of);
            }
        }
        // Rank 2, and 0: tall, wide.
        for (m, n) in [(100, 70), (70, 100)] {
            let of = format!("{dtype:?} {m} {n} rank 2");
            let [a, b] = [random::<Card>(dtype, m, 2, false), random::<Card>(dtype, 2, n, false)];
            let s = check(product(&a, &b), tolerance, &of);
            assert!(s[2..70].iter().all(|&x| x <= tolerance * s[0]), "{s:?}");
            check(product(&a, &b) * 0.0, tolerance, "zeros");
        }
    }
}

/// Derivative rules with the factors of the library.
#[test]
fn gradients_as_on_the_engine() {
    fn gradients<B: Tested + AutodiffBackend>() -> Vec<Vec<f64>> {
        const N: usize = 66;
        fn diagonal<B: Tested>() -> Batch<B> {
            Tensor::<B, 2>::eye(N, &B::place()).cast(DType::F64).unsqueeze_dim::<3>(0) * 20.0
        }
        let losses: [fn(Batch<B>) -> Tensor<B, 1>; 6] = [
            |x| {
                let b = product(&x, &turned(&x)) + diagonal();
                cholesky(b).unwrap().sin().sum()
            },
            |x| qr(x + diagonal()).unwrap().r.sin().sum(),
            |x| eigvalsh(x).unwrap().sin().sum(),
            |x| svdvals(x).unwrap().sin().sum(),
            |x| {
                let found = svd(x).unwrap();
                let (u, s): (Batch<B>, Tensor<B, 2>) = (found.u, found.s);
                let weights = tensor::<B, 3>(&noise(N * N, 9), [1, N, N]).cast(DType::F64);
                (u.powi_scalar(2) * weights).sum() + s.sum()
            },
            |x| {
                let b = tensor::<B, 3>(&noise(2 * N, 5), [1, N, 2]).cast(DType::F64);
                solve::<_, _, Batch<B>>(x + diagonal(), b).unwrap().sin().sum()
            },
        ];
        let gradient = |loss: &fn(Batch<B>) -> Tensor<B, 1>| {
            let x = tensor::<B, 3>(&noise(N * N, 3), [1, N, N]).cast(DType::F64).require_grad();
            numbers(x.grad(&loss(x.clone()).backward()).unwrap())
        };
        losses.iter().map(gradient).collect()
    }
    let (given, expected) = (gradients::<Gpu>(), gradients::<Engine>());
    for (i, (g, e)) in given.iter().zip(&expected).enumerate() {
        assert_close(g, e, 1e-7, &format!("loss {i}"));
    }
}

/// Matrices that the library does not support are computed in the engine, with its errors.
#[test]
fn errors_are_those_of_the_engine() {
    fn errors<B: Tested>(dtype: DType) -> Vec<String> {
        // The last matrix is singular, or has a NaN.
        let n = 70;
        let part = [2..3, 0..n, 0..n];
        let singular = eye::<B>(dtype, n);
        let ones = singular.clone().slice(part.clone()) * 0.0 + 1.0;
        let singular = singular.slice_assign(part, ones);
        let nan = tensor::<B, 3>(&[f32::NAN], [1, 1, 1]).cast(dtype);
        let odd = random::<B>(dtype, n, n, false).slice_assign([2..3, 5..6, 7..8], nan);
        let b = random::<B>(dtype, n, 2, false);
        let zero = eye::<B>(dtype, n) * 0.0;
        vec![
            cholesky(singular.clone()).unwrap_err().to_string(),
            cholesky(odd.clone()).unwrap_err().to_string(),
            qr(odd.clone()).map(|_| ()).unwrap_err().to_string(),
            eigh(odd.clone()).map(|_| ()).unwrap_err().to_string(),
            svd(odd.clone()).map(|_| ()).unwrap_err().to_string(),
            solve::<_, _, Batch<B>>(zero.clone(), b.clone()).unwrap_err().to_string(),
            solve_triangular::<_, _, Batch<B>>(zero, b, Triangle::UPPER).unwrap_err().to_string(),
        ]
    }
    for (dtype, _) in TYPES {
        assert_eq!(errors::<Card>(dtype), errors::<BurnT4a>(dtype));
    }
}

/// Each thread has a stream of CubeCL and handles of the library of its own.
#[test]
fn on_several_threads() {
    let run = |seed: usize| {
        let a = tensor::<Card, 3>(&noise(2 * 70 * 70, seed), [2, 70, 70]).cast(DType::F64);
        let squares = product(&a, &turned(&a)) + eye::<Card>(DType::F64, 70).slice([0..2]) * 70.0;
        let values: Tensor<Card, 2> = eigvalsh(squares.clone()).unwrap();
        let s: Tensor<Card, 2> = svdvals(a).unwrap();
        [numbers(cholesky(squares).unwrap()), numbers(values), numbers(s)].concat()
    };
    let alone: Vec<Vec<f64>> = (0..4).map(run).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|seed| scope.spawn(move || (0..3).map(|_| run(seed)).collect::<Vec<_>>()))
            .collect();
        for (thread, alone) in threads.into_iter().zip(&alone) {
            for given in thread.join().unwrap() {
                assert_close(&given, alone, 1e-12, "threads");
            }
        }
    });
}

/// Kernels of small matrices in `f64`, which software Vulkan computes incorrectly.
#[test]
fn small_matrices_in_double_precision() {
    fn results<B: Tested>() -> Vec<Vec<f64>> {
        let (a, wide) =
            (random::<B>(DType::F64, 20, 20, true), random::<B>(DType::F64, 9, 30, false));
        let b = random::<B>(DType::F64, 20, 4, false);
        let factors = qr(wide.clone()).unwrap();
        let values: Tensor<B, 2> = eigvalsh(a.clone()).unwrap();
        let [s, wide]: [Tensor<B, 2>; 2] = [svdvals(a.clone()).unwrap(), svdvals(wide).unwrap()];
        vec![
            numbers(cholesky(positive::<B>(DType::F64, 20, false)).unwrap()),
            numbers(factors.q),
            numbers(factors.r),
            numbers(values),
            numbers(s),
            numbers(wide),
            numbers(solve::<_, _, Batch<B>>(a + eye(DType::F64, 20) * 4.0, b).unwrap()),
        ]
    }
    for (i, (g, e)) in results::<Card>().iter().zip(&results::<BurnT4a>()).enumerate() {
        assert_close(g, e, 1e-10, &format!("result {i}"));
    }
}
