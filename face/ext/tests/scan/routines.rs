//! Bodies with matrix products, factorisations, solves and sorts. Each is compared with a loop on the tape, values
//! and gradients, in both directions and under several memory policies.

use super::ext::linalg::{self, Triangle};
use super::ext::scan::fused::{self, System};
use super::*;

type Matrix = Tensor<2>;

/// Results and gradients of a loop over n steps, or of the scan.
fn results<F>(body: F, n: usize, options: Option<&Options>, reverse: bool) -> Vec<Vec<f64>>
where
    F: Fn(Matrix, Matrix, Matrix) -> (Matrix, Matrix) + Send + Sync + 'static,
{
    let (w, c, xs) = (
        random::<2>([3, 3], 1).require_grad(),
        random::<2>([3, 3], 2).require_grad(),
        random::<3>([n, 3, 3], 3).require_grad(),
    );
    let (last, ys): (Matrix, Tensor<3>) = match options {
        Some(options) => {
            let options = options.clone().reverse(reverse);
            scan(body, w.clone(), c.clone(), xs.clone(), &options).unwrap()
        }
        None => {
            let mut carry = c.clone();
            let mut ys = vec![None; n];
            for k in 0..n {
                let t = if reverse { n - 1 - k } else { k };
                let x = xs.clone().narrow(0, t, 1).reshape([3, 3]);
                let (next, y) = body(w.clone(), carry, x);
                (carry, ys[t]) = (next, Some(y.unsqueeze::<3>()));
            }
            (carry, Tensor::cat(ys.into_iter().flatten().collect(), 0))
        }
    };
    let loss = (last.clone() * random([3, 3], 4)).sum() + (ys.clone() * random([n, 3, 3], 5)).sum();
    let grads = loss.backward();
    let mut all = vec![numbers(last), numbers(ys)];
    for gradient in [w.grad(&grads), c.grad(&grads)] {
        // An input that the body does not use has no gradient in the loop and a zero gradient in the scan.
        all.push(gradient.map_or(vec![0.0; 9], numbers));
    }
    all.push(numbers(xs.grad(&grads).unwrap()));
    all
}

fn is_the_loop(
    body: impl Fn(Matrix, Matrix, Matrix) -> (Matrix, Matrix) + Clone + Send + Sync + 'static,
) {
    for reverse in [false, true] {
        let want = results(body.clone(), 5, None, reverse);
        for memory in [Policy::Sqrt, Policy::Segment(2), Policy::Revolve(2)] {
            let options = Options::default().memory(Memory::Bounded(memory));
            let own = results(body.clone(), 5, Some(&options), reverse);
            for (own, want) in own.iter().zip(&want) {
                close(own, want, 1e-12);
            }
        }
    }
}

fn unit() -> Matrix {
    Tensor::<2>::eye(3, &device()).cast(FloatDType::F64)
}

/// A positive definite matrix.
fn gram(x: Matrix) -> Matrix {
    x.clone().matmul(x.transpose()) + unit()
}

#[test]
fn matmul_in_body() {
    is_the_loop(|w, c, x| {
        let next = c.matmul(w) + x;
        (next.clone() * 0.5, next)
    });
}

#[test]
fn cholesky_in_body() {
    is_the_loop(|w, c, x| {
        let l = linalg::cholesky(gram(c.matmul(w)) + gram(x)).unwrap();
        (l.clone() * 0.4, l)
    });
}

#[test]
fn cholesky_and_downstream_elementwise_operations() {
    is_the_loop(|w, c, x| {
        let l = linalg::cholesky(gram(c + x)).unwrap();
        let y = (l.clone() * w).tanh() + l.clone().exp() * 0.1;
        (y.clone() * 0.5, y * l)
    });
}

#[test]
fn triangular_solve_in_body() {
    is_the_loop(|w, c, x| {
        let y = linalg::solve_triangular(gram(w).tril(0), c + x, Triangle::LOWER).unwrap();
        (y.clone(), y)
    });
}

#[test]
fn lu_in_body() {
    is_the_loop(|w, c, x| {
        let factors = linalg::lu(gram(c) + w + x).unwrap();
        (factors.u * 0.1, factors.l)
    });
}

#[test]
fn solve_mixed_with_elementwise_operations_in_body() {
    is_the_loop(|w, c, x| {
        let y = linalg::solve(gram(w), c.clone() + x.clone().sin()).unwrap();
        ((y.clone() * c).tanh(), y.exp() - x)
    });
}

#[test]
fn sort_in_body_with_passthrough_carry() {
    is_the_loop(|w, c, x| (c.clone(), (x * w).sort(1) + c));
}

#[test]
fn argsort_in_body() {
    is_the_loop(|w, c, x| {
        let order = (c.clone() + x.clone()).argsort(1);
        let sorted = x.gather(1, order);
        (c * 0.5 + sorted.clone(), sorted * w)
    });
}

/// The Kalman filter as a body, against the same filter in one kernel.
#[test]
fn kalman_filter_in_body() {
    let n = 12;
    let f = || random::<2>([3, 3], 1) * 0.5 + unit() * 0.5;
    let h = || random::<2>([2, 3], 2);
    let two = || Tensor::<2>::eye(2, &device()).cast(FloatDType::F64);
    type Params = (Matrix, Matrix, Matrix);
    type Belief = (Matrix, Matrix);
    let step = move |(f, q, h): Params, (x, p): Belief, y: Tensor<1>| {
        let x = f.clone().matmul(x);
        let p = f.clone().matmul(p).matmul(f.transpose()) + q;
        let s = h.clone().matmul(p.clone()).matmul(h.clone().transpose()) + two();
        let gain = linalg::solve(s, h.clone().matmul(p.clone())).unwrap().transpose();
        let v = y.reshape([2, 1]) - h.clone().matmul(x.clone());
        let x = x + gain.clone().matmul(v);
        let p = p.clone() - gain.matmul(h).matmul(p);
        ((x.clone(), p), x)
    };
    let q = unit().require_grad();
    let ys = random::<3>([1, n, 2], 3).require_grad();
    let xs = ys.clone().reshape([n, 2]);
    let init = (Tensor::<2>::zeros([3, 1], &device()).cast(FloatDType::F64), unit());
    let (_, means): (Belief, Tensor<3>) =
        scan(step, (f(), q.clone(), h()), init, xs, &Options::default()).unwrap();
    let system = System {
        transition: f(),
        process_noise: q.clone(),
        observation: h(),
        observation_noise: two(),
    };
    let (own, _, _) = fused::kalman_filter(system, ys.clone(), floats(&[0.0; 3]), unit()).unwrap();
    close(&numbers(own.clone()), &numbers(means.clone()), 1e-12);
    let (a, b) = (own.powi_scalar(2).sum().backward(), means.powi_scalar(2).sum().backward());
    // For a symmetric matrix the gradient may be split differently between an entry and its mirror image.
    let [own, want] = [q.grad(&a), q.grad(&b)].map(|x| {
        let x = x.unwrap();
        numbers(x.clone() + x.transpose())
    });
    close(&own, &want, 1e-12);
    close(&numbers(ys.grad(&a).unwrap()), &numbers(ys.grad(&b).unwrap()), 1e-12);
}
