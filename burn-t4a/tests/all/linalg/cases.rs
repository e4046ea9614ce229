//! Losses over every differentiable function, for any backend, and their inputs.

use burn_backend::Backend;
use burn_t4a::ext::Complex;
use burn_t4a::ext::linalg::*;
use burn_t4a::ext::operation::Operations;
use burn_tensor::{Tensor, TensorData, TensorPrimitive};

/// Inputs of a loss: batches of two matrices in double precision.
pub(crate) type Inputs<B> = Vec<Tensor<B, 3>>;

pub(crate) struct Case<B: Operations> {
    pub(crate) name: &'static str,
    pub(crate) shapes: Vec<[usize; 3]>,
    pub(crate) kind: Kind,
    pub(crate) loss: fn(Inputs<B>) -> Tensor<B, 1>,
}

/// Kind of matrix of the first input.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Random.
    General,
    /// Symmetric positive definite, plus an antisymmetric part that the operation ignores.
    Positive,
    /// Well conditioned, eigenvalues in the right half plane.
    Regular,
}

/// Deterministic numbers in (−1, 1).
pub(crate) fn numbers(seed: usize, count: usize) -> Vec<f64> {
    let unit = |i: usize| {
        let hash = (i as u64 + 1 + 7919 * seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64
            / (1u64 << 53) as f64
    };
    (0..count).map(|i| 2.0 * unit(i) - 1.0).collect()
}

/// A tensor in double precision on any backend.
pub(crate) fn tensor<B: Operations, const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
) -> Tensor<B, D> {
    let data = B::float_from_data(TensorData::new(values, shape), &Default::default());
    Tensor::from_primitive(TensorPrimitive::Float(data))
}

pub(crate) fn values<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

/// The data of input `i` of a case.
pub(crate) fn data(case: usize, i: usize, [batch, m, n]: [usize; 3], kind: Kind) -> Vec<f64> {
    let x = numbers(10 * case + i, batch * m * n);
    let at = |b: usize, i: usize, j: usize| x[(b * m + i) * n + j];
    let mut out = x.clone();
    if i > 0 || m != n {
        return out;
    }
    for b in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let unit = if i == j { 1.0 } else { 0.0 };
                out[(b * m + i) * n + j] = match kind {
                    Kind::General => at(b, i, j),
                    Kind::Regular => 0.4 * at(b, i, j) + unit * (1.2 + 0.2 * i as f64),
                    Kind::Positive => {
                        let square: f64 = (0..m).map(|k| at(b, i, k) * at(b, j, k)).sum();
                        let skew = 0.1 * (at(b, i, j) - at(b, j, i));
                        0.4 * square + skew + unit * (0.5 + 0.3 * i as f64)
                    }
                };
            }
        }
    }
    out
}

/// `Σ w x` with fixed weights.
pub(crate) fn weigh<B: Operations, const D: usize>(x: Tensor<B, D>, seed: usize) -> Tensor<B, 1> {
    let shape: [usize; D] = x.dims();
    let w = tensor::<B, D>(numbers(900 + seed, shape.iter().product()), shape);
    let w = w.cast(x.dtype());
    (x * w).sum()
}

pub(crate) fn weigh_pair<B: Operations, const D: usize>(
    z: Complex<B, D>,
    seed: usize,
) -> Tensor<B, 1> {
    weigh(z.re(), seed) + weigh(z.im(), seed + 50)
}

pub(crate) fn one<B: Operations>(mut inputs: Inputs<B>) -> Tensor<B, 3> {
    inputs.swap_remove(0)
}

pub(crate) fn two<B: Operations>(inputs: Inputs<B>) -> (Tensor<B, 3>, Tensor<B, 3>) {
    let [a, b] = inputs.try_into().unwrap();
    (a, b)
}

pub(crate) fn complex<B: Operations>(inputs: Inputs<B>) -> Complex<B, 3> {
    let (re, im) = two(inputs);
    Complex::new(re, im).unwrap()
}

fn scaled<B: Operations>(u: Tensor<B, 3>, s: Tensor<B, 2>) -> Tensor<B, 3> {
    u * s.unsqueeze_dim(1)
}

fn svd_loss<B: Operations>(a: Tensor<B, 3>) -> Tensor<B, 1> {
    let Svd { u, s, vh } = svd(a).unwrap();
    let k = s.dims()[1];
    let both = weigh(scaled(u.clone(), s.clone() * s.clone()).matmul(vh.clone()), 1);
    // Only two of the vectors, so that their complement contributes.
    let p = k - 1;
    let part = u.narrow(2, 0, p).matmul(vh.narrow(1, 0, p));
    both + weigh(part, 2) + weigh(s.clone() * s, 3)
}

fn complex_svd_loss<B: Operations>(inputs: Inputs<B>) -> Tensor<B, 1> {
    let Svd { u, s, vh } = svd(complex(inputs)).unwrap();
    let p = s.dims()[1] - 1;
    let part = u.map(|x| x.narrow(2, 0, p)).matmul(vh.map(|x| x.narrow(1, 0, p)));
    weigh_pair(part, 1) + weigh(s.clone() * s, 3)
}

fn qr_loss<B: Operations>(a: Tensor<B, 3>) -> Tensor<B, 1> {
    let Qr { q, r } = qr(a).unwrap();
    weigh(q, 1) + weigh(r.clone() * r, 2)
}

fn pair_loss<B: Operations>((a, b): (Tensor<B, 3>, Tensor<B, 3>)) -> Tensor<B, 1> {
    weigh(a, 1) + weigh(b.clone() * b, 2)
}

fn eigh_loss<B: Operations>(a: Tensor<B, 3>) -> Tensor<B, 1> {
    let Eigh { values, vectors } = eigh(a).unwrap();
    let v = vectors.narrow(2, 1, 2);
    weigh(v.clone().matmul(v.transpose()), 1) + weigh(values.clone() * values, 2)
}

fn eig_loss<B: Operations>(values: Complex<B, 2>, vectors: Complex<B, 3>) -> Tensor<B, 1> {
    // Invariant under order and phases.
    let sizes = values.abs_squared();
    let columns = vectors.abs_squared();
    let n = sizes.dims()[1];
    let w = tensor::<B, 3>(numbers(77, n), [1, n, 1]).cast(columns.dtype());
    let columns = (columns * w).sum_dim(1).squeeze_dim::<2>(1);
    (sizes.clone() * sizes.clone() + sizes * columns).sum()
}

fn lu_loss<B: Operations>(a: Tensor<B, 3>) -> Tensor<B, 1> {
    let Lu { l, u, .. } = lu(a).unwrap();
    weigh(l, 1) + weigh(u.clone() * u, 2)
}

fn polar_loss<B: Operations>(a: Tensor<B, 3>, side: Side) -> Tensor<B, 1> {
    let Polar { u, p } = polar(a, side).unwrap();
    weigh(u, 1) + weigh(p.clone() * p, 2)
}

const B2: usize = 2;

/// Table of all functions.
#[rustfmt::skip]
pub(crate) fn cases<B: Operations>() -> Vec<Case<B>> {
    use Kind::{General, Positive, Regular};
    let square = [B2, 4, 4];
    let (tall, wide) = ([B2, 5, 3], [B2, 3, 5]);
    let mut cases: Vec<Case<B>> = Vec::new();
    let mut add = |name, shapes: &[[usize; 3]], kind, loss: fn(Inputs<B>) -> Tensor<B, 1>| {
        cases.push(Case { name, shapes: shapes.to_vec(), kind, loss });
    };
    add("svd square", &[square], General, |x| svd_loss(one(x)));
    add("svd tall", &[tall], General, |x| svd_loss(one(x)));
    add("svd wide", &[wide], General, |x| svd_loss(one(x)));
    add("svd_truncated", &[[B2, 5, 4]], General, |x| {
        let Svd { u, s, vh } = svd_truncated(one(x), &Truncation::new().max_dim(2)).unwrap().kept;
        weigh(scaled(u, s).matmul(vh), 1)
    });
    add("low_rank", &[tall], General, |x| weigh(low_rank(one(x), 2).unwrap(), 1));
    add("complex low_rank", &[wide, wide], General, |x| {
        weigh_pair(low_rank(complex(x), 2).unwrap(), 1)
    });
    add("svd_full", &[tall], General, |x| {
        let Svd { u, s, vh } = svd_full(one(x)).unwrap();
        let rest = u.narrow(2, 3, 2);
        weigh(rest.clone().matmul(rest.transpose()), 1) + weigh(s.clone() * s, 2)
            + weigh(vh.clone().transpose().matmul(vh), 3)
    });
    add("svd_left_dims", &[[B2, 4, 3]], General, |x| {
        let (u, s, vh): (Tensor<B, 3>, _, Tensor<B, 2>) = svd_left_dims(one(x), &[2, 0], None).unwrap();
        let half = u.reshape([6, 4]) * (s.clone() * s).unsqueeze_dim::<2>(0);
        weigh(half.matmul(vh), 1)
    });
    add("svdvals", &[tall], General, |x| weigh(svdvals(one(x)).unwrap().powf_scalar(3.0), 1));
    add("qr square", &[square], General, |x| qr_loss(one(x)));
    add("qr tall", &[tall], General, |x| qr_loss(one(x)));
    add("qr wide", &[wide], General, |x| qr_loss(one(x)));
    add("qr_complete", &[tall], General, |x| {
        let Qr { q, r } = qr_complete(one(x)).unwrap();
        let rest = q.clone().narrow(2, 3, 2);
        weigh(rest.clone().matmul(rest.transpose()), 1) + weigh(q.narrow(2, 0, 3), 2)
            + weigh(r.clone() * r, 3)
    });
    add("qr_pivoted", &[wide], General, |x| {
        let (Qr { q, r }, _) = qr_pivoted(one(x)).unwrap();
        weigh(q, 1) + weigh(r.clone() * r, 2)
    });
    add("qr_left_dims", &[[B2, 4, 3]], General, |x| {
        let (q, r): (Tensor<B, 3>, Tensor<B, 2>) = qr_left_dims(one(x), &[0, 2]).unwrap();
        weigh(q, 1) + weigh(r.clone() * r, 2)
    });
    add("lq", &[wide], General, |x| pair_loss(lq(one(x)).unwrap()));
    add("ql", &[tall], General, |x| pair_loss(ql(one(x)).unwrap()));
    add("rq", &[wide], General, |x| pair_loss(rq(one(x)).unwrap()));
    add("lu square", &[square], General, |x| lu_loss(one(x)));
    add("lu tall", &[tall], General, |x| lu_loss(one(x)));
    add("lu wide", &[wide], General, |x| lu_loss(one(x)));
    add("lu_full", &[tall], General, |x| {
        let (Lu { l, u, .. }, _) = lu_full(one(x)).unwrap();
        weigh(l, 1) + weigh(u.clone() * u, 2)
    });
    add("lu_factor", &[square], General, |x| weigh(lu_factor(one(x)).unwrap().packed, 1));
    add("lu_solve", &[square, [B2, 4, 2]], Regular, |x| {
        let (a, b) = two(x);
        let factors = lu_factor(a).unwrap();
        let x = lu_solve(&factors, b, TriangleOp::None).unwrap();
        weigh(x.clone(), 1) + weigh(lu_solve(&factors, x, TriangleOp::Transpose).unwrap(), 2)
    });
    add("cholesky", &[square], Positive, |x| {
        let l = cholesky(one(x)).unwrap();
        weigh(l.clone() * l, 1)
    });
    add("eigh", &[square], Positive, |x| eigh_loss(one(x)));
    add("eigh_left_dims", &[[2, 2, 4]], General, |x| {
        let (e, v): (_, Tensor<B, 3>) = eigh_left_dims(one(x), &[0, 1]).unwrap();
        let v = v.narrow(2, 1, 2).reshape([4, 2]);
        weigh(v.clone().matmul(v.transpose()), 1) + weigh(e.clone() * e, 2)
    });
    add("eigvalsh", &[square], Positive, |x| weigh(eigvalsh(one(x)).unwrap().powf_scalar(3.0), 1));
    add("eig", &[square], General, |x| {
        let Eig { values, vectors } = eig(one(x)).unwrap();
        eig_loss(values, vectors)
    });
    add("eigvals", &[square], General, |x| {
        let sizes = eigvals(one(x)).unwrap().abs_squared();
        (sizes.clone() * sizes).sum()
    });
    add("complex eigvals", &[square, square], General, |x| {
        let sizes = eigvals(complex(x)).unwrap().abs_squared();
        (sizes.clone() * sizes).sum()
    });
    add("polar right", &[tall], General, |x| polar_loss(one(x), Side::Right));
    add("polar left", &[wide], General, |x| polar_loss(one(x), Side::Left));
    add("polar_left_dims", &[[2, 2, 3]], General, |x| {
        let (u, p): (_, Tensor<B, 2>) = polar_left_dims(one(x), &[1, 0], Side::Right).unwrap();
        weigh(u, 1) + weigh(p.clone() * p, 2)
    });
    add("expm", &[square], General, |x| weigh(expm(one(x)).unwrap(), 1));
    add("sqrtm", &[square], Regular, |x| weigh(sqrtm(one(x)).unwrap(), 1));
    add("hermitian_function", &[square], Positive, |x| {
        weigh(hermitian_function(one(x), Elementary::Ln).unwrap(), 1)
    });
    add("svd_function", &[wide], General, |x| {
        weigh(svd_function(one(x), Elementary::Pow(0.5)).unwrap(), 1)
    });
    add("complex svd_function", &[tall, tall], General, |x| {
        weigh_pair(svd_function(complex(x), Elementary::Exp).unwrap(), 1)
    });
    add("inv", &[square], Regular, |x| weigh(inv(one(x)).unwrap(), 1));
    add("pinv tall", &[tall], General, |x| weigh(pinv(one(x), None).unwrap(), 1));
    add("pinv wide", &[wide], General, |x| weigh(pinv(one(x), None).unwrap(), 1));
    add("det", &[square], Regular, |x| weigh(det(one(x)).unwrap(), 1));
    add("slogdet", &[square], Regular, |x| weigh(slogdet(one(x)).unwrap().1, 1));
    add("solve", &[square, [B2, 4, 2]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve(a, b).unwrap(), 1)
    });
    add("solve_triangular", &[square, [B2, 4, 2]], Regular, |x| {
        let (a, b) = two(x);
        let lower = solve_triangular(a.clone(), b.clone(), Triangle::LOWER).unwrap();
        let upper = solve_triangular(a, b, Triangle::UPPER.unit().transpose()).unwrap();
        weigh(lower, 1) + weigh(upper, 2)
    });
    add("lyapunov", &[square, square], Regular, |x| {
        let (a, c) = two(x);
        weigh(lyapunov(a, c).unwrap(), 1)
    });
    add("lyapunov_positive", &[square, square], Positive, |x| {
        let (p, b) = two(x);
        weigh(lyapunov_positive(p, b).unwrap(), 1)
    });
    add("sylvester", &[square, square, square], Regular, |x| {
        let [a, b, c] = x.try_into().unwrap();
        weigh(sylvester(a, b * 0.2, c).unwrap(), 1)
    });
    add("lstsq tall", &[tall, [B2, 5, 2]], General, |x| {
        let (a, b) = two(x);
        weigh(lstsq(a, b).unwrap(), 1)
    });
    add("lstsq wide", &[wide, [B2, 3, 2]], General, |x| {
        let (a, b) = two(x);
        weigh(lstsq(a, b).unwrap(), 1)
    });
    add("lstsq_min_norm", &[tall, [B2, 5, 2]], General, |x| {
        let (a, b) = two(x);
        weigh(lstsq_min_norm(a, b, None).unwrap(), 1)
    });
    add("complex svd", &[[B2, 4, 3], [B2, 4, 3]], General, complex_svd_loss);
    add("complex qr", &[[B2, 3, 4], [B2, 3, 4]], General, |x| {
        let Qr { q, r } = qr(complex(x)).unwrap();
        weigh_pair(q, 1) + weigh_pair(r, 2)
    });
    add("complex cholesky", &[square, square], Positive, |x| {
        let (a, b) = two(x);
        // A small imaginary part keeps the matrix positive definite.
        let l = cholesky(Complex::new(a, b * 0.1).unwrap()).unwrap();
        weigh_pair(l, 1)
    });
    add("complex lu_solve", &[square, square], Regular, |x| {
        let a = complex(x);
        let b = a.clone().map(|part| part.narrow(2, 0, 2));
        let factors = lu_factor(a).unwrap();
        weigh_pair(lu_solve(&factors, b, TriangleOp::Adjoint).unwrap(), 1)
    });
    add("complex lstsq", &[tall, tall], General, |x| {
        let a = complex(x);
        let b = a.clone().map(|part| part.narrow(2, 0, 2).powi_scalar(2));
        weigh_pair(lstsq(a, b).unwrap(), 1)
    });
    add("complex det", &[square, square], Regular, |x| weigh_pair(det(complex(x)).unwrap(), 1));
    add("complex svd_left_dims", &[[B2, 4, 3], [B2, 4, 3]], General, |x| {
        let keep = Truncation::new().max_dim(2);
        let (u, _, vh): (Complex<B, 3>, _, Complex<B, 2>) =
            svd_left_dims(complex(x), &[2, 0], Some(&keep)).unwrap();
        weigh_pair(u.map(|x| x.reshape([6, 2])).matmul(vh), 1)
    });
    add("complex eigh", &[square, square], Positive, |x| {
        let Eigh { values, vectors } = eigh(complex(x)).unwrap();
        let v = vectors.map(|x| x.narrow(2, 1, 2));
        weigh_pair(v.clone().matmul(v.adjoint()), 1) + weigh(values.clone() * values, 2)
    });
    add("complex eig", &[square, square], General, |x| {
        let Eig { values, vectors } = eig(complex(x)).unwrap();
        eig_loss(values, vectors)
    });
    add("complex lu", &[square, square], General, |x| {
        let Lu { l, u, .. } = lu(complex(x)).unwrap();
        weigh_pair(l, 1) + weigh_pair(u, 2)
    });
    add("complex polar", &[tall, tall], General, |x| {
        let Polar { u, p } = polar(complex(x), Side::Right).unwrap();
        weigh_pair(u, 1) + weigh_pair(p, 2)
    });
    add("complex expm", &[square, square], General, |x| weigh_pair(expm(complex(x)).unwrap(), 1));
    add("complex slogdet", &[square, square], Regular, |x| {
        let (sign, log) = slogdet(complex(x)).unwrap();
        weigh_pair(sign, 1) + weigh(log, 2)
    });
    add("complex solve", &[square, square], Regular, |x| {
        let a = complex(x);
        let b = a.clone().matmul(a.clone()).map(|part| part.narrow(2, 0, 2));
        weigh_pair(solve(a, b).unwrap(), 1)
    });
    cases.extend(super::compositions::cases());
    cases
}
