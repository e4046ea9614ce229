//! Factorisations of small matrices by kernels, against identities and the engine.

use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Int, Tensor};
use burn_t4a::BurnT4a;
use burn_t4a::ext::linalg::{
    Triangle, TriangleOp, cholesky, eigh, eigvalsh, lu, qr, solve, solve_triangular, svd, svdvals,
};

use super::{Card, Engine, Gpu, Tested, assert_close, noise, numbers, tensor, times};

type Batch<B> = Tensor<B, 3>;

/// Two or more matrices; `turned` gives the strides of a transpose.
fn random<B: Tested>(batch: usize, m: usize, n: usize, turned: bool) -> Batch<B> {
    let x = noise(batch * m * n, m * 100 + n);
    match turned {
        true => tensor::<B, 3>(&x, [batch, n, m]).swap_dims(1, 2),
        false => tensor(&x, [batch, m, n]),
    }
}

fn positive<B: Tested>(batch: usize, n: usize, turned: bool) -> Batch<B> {
    let a = random::<B>(batch, n, n, turned);
    let b = a.clone().swap_dims(1, 2);
    let eye = Tensor::<B, 2>::eye(n, &B::place()).unsqueeze_dim::<3>(0);
    times(a, b) + eye * (n as f32)
}

fn host<const D: usize>(x: Tensor<Card, D>) -> Vec<f32> {
    numbers(x)
}

/// `Qᵀ Q = 1`.
fn orthonormal(q: Batch<Card>, of: &str) {
    let [batch, _, k] = q.dims();
    let eye = Tensor::<Card, 2>::eye(k, &Card::place()).unsqueeze_dim::<3>(0);
    let eye = eye.repeat_dim(0, batch);
    assert_close(&host(times(q.clone().swap_dims(1, 2), q)), &host(eye), 1e-5, of);
}

#[test]
fn cholesky_factors() {
    for (batch, n) in [(3, 1), (2, 7), (5, 16), (2, 33), (1, 64)] {
        for turned in [false, true] {
            let given = cholesky(positive::<Card>(batch, n, turned)).unwrap();
            let expected = cholesky(positive::<BurnT4a>(batch, n, turned)).unwrap();
            assert_close(&host(given), &numbers(expected), 1e-5, &format!("{batch} {n} {turned}"));
        }
    }
}

/// A nonnegative diagonal makes the factors unique.
#[test]
fn qr_factors() {
    for (m, n) in [(1, 1), (8, 8), (20, 5), (5, 20), (33, 40), (64, 17)] {
        for turned in [false, true] {
            let given = qr(random::<Card>(3, m, n, turned)).unwrap();
            let expected = qr(random::<BurnT4a>(3, m, n, turned)).unwrap();
            let of = format!("{m} {n} {turned}");
            assert_close(&host(given.q.clone()), &numbers(expected.q), 1e-4, &of);
            assert_close(&host(given.r), &numbers(expected.r), 1e-4, &of);
            orthonormal(given.q, &of);
        }
    }
    // Rank-deficient matrices: zeros, and equal columns.
    for a in
        [Batch::<Card>::zeros([1, 6, 4], &Card::place()), Batch::ones([1, 6, 4], &Card::place())]
    {
        let found = qr(a.clone()).unwrap();
        orthonormal(found.q.clone(), "without rank");
        assert_close(&host(times(found.q, found.r)), &host(a), 1e-5, "without rank");
    }
}

#[test]
fn lu_factors() {
    for (m, n) in [(1, 1), (9, 9), (20, 6), (6, 20), (40, 33)] {
        let a = random::<Card>(2, m, n, n % 2 == 0);
        let found = lu(a.clone()).unwrap();
        let rows: Tensor<Card, 2, Int> = found.rows;
        let index = rows.unsqueeze_dim::<3>(2).repeat_dim(2, n);
        let of = format!("{m} {n}");
        let below: f32 = host(found.l.clone()).into_iter().fold(0.0, |m, x| m.max(x.abs()));
        assert!(below <= 1.0, "{of}: {below}");
        assert_close(&host(times(found.l, found.u)), &host(a.gather(1, index)), 1e-5, &of);
    }
}

#[test]
fn systems() {
    for (n, r) in [(1, 1), (8, 3), (17, 70), (40, 5)] {
        fn run<B: Tested>(n: usize, r: usize) -> Vec<f32> {
            let a = positive::<B>(3, n, false) + random::<B>(3, n, n, true);
            numbers(solve::<_, _, Batch<B>>(a, random::<B>(3, n, r, n == 8)).unwrap())
        }
        assert_close(&run::<Card>(n, r), &run::<BurnT4a>(n, r), 1e-4, &format!("{n} {r}"));
    }
}

#[test]
fn triangular_systems() {
    fn run<B: Tested>(n: usize, r: usize, triangle: Triangle) -> Vec<f32> {
        let t = random::<B>(3, n, n, false) / (n as f32);
        let eye = Tensor::<B, 2>::eye(n, &B::place()).unsqueeze_dim::<3>(0);
        let b = random::<B>(3, n, r, r == 3);
        numbers(solve_triangular::<_, _, Batch<B>>(t + eye * 2.0, b, triangle).unwrap())
    }
    for (n, r) in [(1, 1), (7, 3), (33, 70)] {
        for upper in [false, true] {
            for unit in [false, true] {
                for op in [TriangleOp::None, TriangleOp::Transpose] {
                    let triangle = Triangle { upper, unit, op };
                    let of = format!("{n} {r} {triangle:?}");
                    let expected = run::<BurnT4a>(n, r, triangle);
                    assert_close(&run::<Card>(n, r, triangle), &expected, 1e-5, &of);
                }
            }
        }
    }
}

#[test]
fn eigenvalues_and_eigenvectors() {
    for (batch, n) in [(2, 1), (3, 2), (2, 7), (2, 16), (2, 31), (1, 32)] {
        let a = random::<Card>(batch, n, n, false);
        let found = eigh(a.clone()).unwrap();
        let expected = eigh(random::<BurnT4a>(batch, n, n, false)).unwrap();
        let of = format!("{batch} {n}");
        let values: Tensor<Card, 2> = found.values;
        let expected: Tensor<BurnT4a, 2> = expected.values;
        assert_close(&host(values.clone()), &numbers(expected), 1e-5, &of);
        assert_close(&host(eigvalsh(a.clone()).unwrap()), &host(values.clone()), 0.0, &of);
        let v: Batch<Card> = found.vectors;
        orthonormal(v.clone(), &of);
        let back = times(v.clone() * values.unsqueeze_dim::<3>(1), v.swap_dims(1, 2));
        let symmetric = (a.clone() + a.swap_dims(1, 2)) / 2.0;
        assert_close(&host(back), &host(symmetric), 1e-5, &of);
    }
    // Every eigenvalue is degenerate.
    let eye = Tensor::<Card, 2>::eye(9, &Card::place()).unsqueeze_dim::<3>(0);
    let found = eigh(eye * 3.0).unwrap();
    assert_eq!(host(found.values), vec![3.0; 9]);
    orthonormal(found.vectors, "ties");
}

#[test]
fn singular_values_and_vectors() {
    let check = |a: Batch<Card>, of: &str| {
        let found = svd(a.clone()).unwrap();
        let (u, s): (Batch<Card>, Tensor<Card, 2>) = (found.u, found.s);
        let vh: Batch<Card> = found.vh;
        orthonormal(u.clone(), of);
        orthonormal(vh.clone().swap_dims(1, 2), of);
        let back = times(u * s.clone().unsqueeze_dim::<3>(1), vh);
        assert_close(&host(back), &host(a.clone()), 1e-5, of);
        assert_close(&host(svdvals(a).unwrap()), &host(s.clone()), 0.0, of);
        host(s)
    };
    for (m, n) in [(1, 1), (2, 2), (8, 8), (20, 5), (5, 20), (31, 17), (32, 32)] {
        let of = format!("{m} {n}");
        let s = check(random::<Card>(2, m, n, m == 20), &of);
        let expected = svdvals(random::<BurnT4a>(2, m, n, m == 20)).unwrap();
        assert_close(&s, &numbers(expected), 1e-5, &of);
    }
    // Rank 2 and 0; numbers whose squares overflow or underflow.
    let low = times(random::<Card>(2, 12, 2, false), random::<Card>(2, 2, 9, false));
    let s = check(low, "rank 2");
    assert!(s[2..9].iter().all(|&x| x < 1e-5), "{s:?}");
    assert_eq!(check(Batch::zeros([1, 6, 4], &Card::place()), "zeros"), [0.0; 4]);
    check(random::<Card>(2, 7, 5, false) * 1e30, "large");
    check(random::<Card>(2, 7, 5, false) * 1e-30, "small");
}

/// Derivative rules with the factors of kernels.
#[test]
fn gradients_as_on_the_engine() {
    fn gradients<B: Tested + AutodiffBackend>() -> Vec<Vec<f32>> {
        let losses: [fn(Batch<B>) -> Tensor<B, 1>; 6] = [
            |x| {
                let eye = Tensor::<B, 2>::eye(6, &B::place()).unsqueeze_dim::<3>(0);
                cholesky(times(x.clone(), x.swap_dims(1, 2)) + eye * 4.0).unwrap().sin().sum()
            },
            |x| qr(x).unwrap().r.sin().sum(),
            |x| eigvalsh(x).unwrap().sin().sum(),
            |x| svdvals(x).unwrap().sin().sum(),
            |x| {
                let found = svd(x).unwrap();
                let (u, s): (Batch<B>, Tensor<B, 2>) = (found.u, found.s);
                let weights = tensor::<B, 3>(&noise(36, 9), [1, 6, 6]);
                (u.powi_scalar(2) * weights).sum() + s.sum()
            },
            |x| {
                let b = tensor::<B, 3>(&noise(24, 5), [2, 6, 2]);
                let eye = Tensor::<B, 2>::eye(6, &B::place()).unsqueeze_dim::<3>(0);
                solve::<_, _, Batch<B>>(x + eye * 4.0, b).unwrap().sin().sum()
            },
        ];
        let gradient = |loss: &fn(Batch<B>) -> Tensor<B, 1>| {
            let x = tensor::<B, 3>(&noise(72, 3), [2, 6, 6]).require_grad();
            numbers(x.grad(&loss(x.clone()).backward()).unwrap())
        };
        losses.iter().map(gradient).collect()
    }
    let (given, expected) = (gradients::<Gpu>(), gradients::<Engine>());
    for (i, (g, e)) in given.iter().zip(&expected).enumerate() {
        assert_close(g, e, 1e-4, &format!("loss {i}"));
    }
}

/// Matrices that kernels do not support are computed in the engine, with its errors.
#[test]
fn errors_are_those_of_the_engine() {
    fn errors<B: Tested>() -> Vec<String> {
        let mut singular = vec![0.0; 18];
        singular[0] = 1.0;
        let singular = tensor::<B, 3>(&singular, [2, 3, 3]);
        let mut odd = noise(18, 1);
        odd[14] = f32::NAN;
        let odd = tensor::<B, 3>(&odd, [2, 3, 3]);
        let b = tensor::<B, 3>(&noise(6, 1), [2, 3, 1]);
        let rhs = || b.clone();
        vec![
            cholesky(singular.clone()).unwrap_err().to_string(),
            cholesky(odd.clone()).unwrap_err().to_string(),
            qr(odd.clone()).map(|_| ()).unwrap_err().to_string(),
            eigh(odd.clone()).map(|_| ()).unwrap_err().to_string(),
            svd(odd.clone()).map(|_| ()).unwrap_err().to_string(),
            solve::<_, _, Batch<B>>(singular.clone(), rhs()).unwrap_err().to_string(),
            solve_triangular::<_, _, Batch<B>>(singular, rhs(), Triangle::UPPER)
                .unwrap_err()
                .to_string(),
        ]
    }
    assert_eq!(errors::<Card>(), errors::<BurnT4a>());
}
