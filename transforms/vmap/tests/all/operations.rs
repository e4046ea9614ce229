//! Operations outside of Burn's traits on batches, with per-example gradients, against a loop over examples.

use burn_autodiff::Autodiff;
use burn_backend::ops::AttentionModuleOptions;
use burn_t4a::ext::einsum::{Einsum, LogSumExp, MaxPlus, einsum, semiring_einsum};
use burn_t4a::ext::linalg;
use burn_t4a::ext::nn;
use burn_t4a::ext::operation::{
    Array, Cotangents, Meta, Operation, Operations, Outcome, Reverse, Value, call, call_jvp, float,
};
use burn_t4a::ext::scan::fused::{
    AssociativeScan, Cell, FloatMonoid, Running, System, associative_scan, cumulative,
    kalman_filter, linear_recurrence, recurrent,
};
use burn_t4a::ext::scan::{Options, scan};
use burn_tensor::{Bool, Int, Tensor};
use t4a_tensor::TensorError;

use crate::rows::{self, rows};

type Ad<B> = Autodiff<B>;

/// Gradient of `Σ sin f(x)`.
fn grad<B: Operations, const D: usize, const E: usize>(
    x: Tensor<B, D>,
    f: impl Fn(Tensor<Ad<B>, D>) -> Tensor<Ad<B>, E>,
) -> Tensor<B, D> {
    let x = Tensor::<Ad<B>, D>::from_inner(x).require_grad();
    let gradients = f(x.clone()).sin().sum().backward();
    x.grad(&gradients).unwrap()
}

/// Gradients of `Σ sin f(x, y)` with respect to both arguments.
fn grads<B: Operations, const D: usize, const E: usize, const O: usize>(
    (x, y): (Tensor<B, D>, Tensor<B, E>),
    f: impl Fn(Tensor<Ad<B>, D>, Tensor<Ad<B>, E>) -> Tensor<Ad<B>, O>,
) -> (Tensor<B, D>, Tensor<B, E>) {
    let x = Tensor::<Ad<B>, D>::from_inner(x).require_grad();
    let y = Tensor::<Ad<B>, E>::from_inner(y).require_grad();
    let gradients = f(x.clone(), y.clone()).sin().sum().backward();
    (x.grad(&gradients).unwrap(), y.grad(&gradients).unwrap())
}

/// Gradient of `Σ sin` of the gradient.
fn second<B: Operations, const D: usize, const E: usize>(
    x: Tensor<B, D>,
    f: impl Fn(Tensor<Ad<Ad<B>>, D>) -> Tensor<Ad<Ad<B>>, E>,
) -> Tensor<B, D> {
    grad(x, |x| grad(x, &f))
}

/// `a aᵀ + I`.
fn definite<B: Operations>(a: Tensor<B, 2>) -> Tensor<B, 2> {
    let n = a.dims()[0];
    let device = a.device();
    a.clone().matmul(a.transpose()) + Tensor::eye(n, &device)
}

/// `U sin(S) Vᴴ`, which does not depend on the phases of the singular vectors.
fn through_svd<B: Operations>(a: Tensor<B, 2>) -> Tensor<B, 2> {
    let linalg::Svd { u, s, vh } = linalg::svd(a).unwrap();
    (u * s.sin().unsqueeze::<2>()).matmul(vh)
}

/// `V sin(Λ) Vᴴ`.
fn through_eigh<B: Operations>(a: Tensor<B, 2>) -> Tensor<B, 2> {
    let linalg::Eigh { values, vectors } = linalg::eigh(definite(a)).unwrap();
    (vectors.clone() * values.sin().unsqueeze::<2>()).matmul(vectors.transpose())
}

rows! { on Operations:
    factors(a: Tensor<B, 2> = [3, 2]) -> (Vec<Tensor<B, 2>>, Tensor<B, 1>) {
        let linalg::Qr { q, r } = linalg::qr(a.clone()).unwrap();
        (vec![through_svd(a.clone()), q.matmul(r)], linalg::svdvals(a).unwrap())
    }
    of_svd(a: Tensor<B, 2> = [3, 2]) -> (Tensor<B, 2>, Tensor<B, 2>) {
        (grad(a.clone(), |a| linalg::svdvals(a).unwrap()), grad(a, through_svd))
    }
    of_singular_values_twice(a: Tensor<B, 2> = [3, 2]) -> Tensor<B, 2> {
        second(a, |a| linalg::svdvals(a).unwrap())
    }
    of_inverses_twice(a: Tensor<B, 2> = [2, 2]) -> Tensor<B, 2> {
        second(a, |a| linalg::inv(definite(a)).unwrap())
    }
    of_eigh(a: Tensor<B, 2> = [2, 2]) -> (Tensor<B, 2>, Tensor<B, 2>) {
        (through_eigh(a.clone()), grad(a, through_eigh))
    }
    of_matrices(a: Tensor<B, 2> = [2, 2]) -> (Vec<Tensor<B, 2>>, Tensor<B, 1>) {
        let m = definite(a.clone());
        let all = vec![
            linalg::inv(m.clone()).unwrap(), linalg::cholesky(m.clone()).unwrap(),
            grad(a.clone(), |a| linalg::inv(definite(a)).unwrap()),
            grad(a.clone(), |a| linalg::cholesky(definite(a)).unwrap()),
            linalg::expm(a.clone()).unwrap(),
        ];
        (all, linalg::det(m).unwrap())
    }
    of_systems(a: Tensor<B, 2> = [2, 2], b: Tensor<B, 2> = [2, 3]) -> (Tensor<B, 2>, (Tensor<B, 2>, Tensor<B, 2>)) {
        let x = linalg::solve(definite(a.clone()), b.clone()).unwrap();
        (x, grads((a, b), |a, b| linalg::solve(definite(a), b).unwrap()))
    }
    tangents_of_svd(a: Tensor<B, 2> = [3, 2], da: Tensor<B, 2> = [3, 2]) -> (Tensor<B, 1>, Tensor<B, 1>) {
        linalg::jvp(linalg::op::SvdvalsOp, a, da).unwrap()
    }
    contracted(a: Tensor<B, 2> = [2, 3], b: Tensor<B, 2> = [3, 4]) -> (Tensor<B, 2>, (Tensor<B, 2>, Tensor<B, 2>)) {
        let c = einsum("ij,jk->ki", (&a, &b)).unwrap();
        (c, grads((a, b), |a, b| einsum::<_, 2>("ij,jk->ki", (&a, &b)).unwrap()))
    }
    contracted_to_numbers(a: Tensor<B, 1> = [3], b: Tensor<B, 1> = [3]) -> (Tensor<B, 1>, (Tensor<B, 1>, Tensor<B, 1>)) {
        let c = einsum("i,i->", (&a, &b)).unwrap();
        (c, grads((a, b), |a, b| einsum::<_, 1>("i,i->", (&a, &b)).unwrap()))
    }
    numbers_contracted(a: Tensor<B, 1> = [1], b: Tensor<B, 1> = [3]) -> (Tensor<B, 1>, (Tensor<B, 1>, Tensor<B, 1>)) {
        let c = einsum(",i->i", (&a, &b)).unwrap();
        (c, grads((a, b), |a, b| einsum::<_, 1>(",i->i", (&a, &b)).unwrap()))
    }
    diagonals(a: Tensor<B, 2> = [3, 3], b: Tensor<B, 1> = [3]) -> (Tensor<B, 2>, Tensor<B, 1>, Tensor<B, 2>) {
        let repeated = einsum(Einsum::new("i->in").unwrap().size('n', 2), (&b,)).unwrap();
        (einsum("i->ii", (&b,)).unwrap(), einsum("ii,i->i", (&a, &b)).unwrap(), repeated)
    }
    networks(
        a: Tensor<B, 2> = [2, 3], b: Tensor<B, 2> = [3, 2], c: Tensor<B, 2> = [2, 3]
    ) -> (Tensor<B, 2>, Tensor<B, 2>, Tensor<B, 2>) {
        let standard = einsum("ij,jk,kl->il", (&a, &b, &c)).unwrap();
        let tropical = semiring_einsum::<MaxPlus, _, 2>("ij,jk,kl->il", (&a, &b, &c)).unwrap();
        let logarithms = semiring_einsum::<LogSumExp, _, 2>("ij,jk,kl->il", (&a, &b, &c)).unwrap();
        (standard, tropical, logarithms)
    }
    tropical_gradients(a: Tensor<B, 2> = [2, 3], b: Tensor<B, 2> = [3, 2]) -> Vec<(Tensor<B, 2>, Tensor<B, 2>)> {
        let both = || (a.clone(), b.clone());
        vec![
            grads(both(), |a, b| semiring_einsum::<MaxPlus, _, 2>("ij,jk->ik", (&a, &b)).unwrap()),
            grads(both(), |a, b| semiring_einsum::<LogSumExp, _, 2>("ij,jk->ik", (&a, &b)).unwrap()),
        ]
    }
    tropical_second(a: Tensor<B, 2> = [2, 3]) -> Tensor<B, 2> {
        second(a, |a| semiring_einsum::<LogSumExp, _, 2>("ij,kj->ik", (&a, &a)).unwrap())
    }
    softmaxes(x: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        vec![
            nn::softmax(x.clone(), 0), nn::log_softmax(x.clone(), 1), grad(x.clone(), |x| nn::softmax(x, 1)),
            grad(x.clone(), |x| nn::log_softmax(x, 0)), second(x, |x| nn::softmax(x, 1)),
        ]
    }
    norms(x: Tensor<B, 3> = [2, 3, 4], g: Tensor<B, 1> = [4]) -> (Vec<Tensor<B, 3>>, Vec<(Tensor<B, 3>, Tensor<B, 1>)>) {
        let both = || (x.clone(), g.clone());
        let all = vec![
            nn::layer_norm(x.clone(), g.clone(), Some(g.clone()), 1e-5), nn::rms_norm(x.clone(), g.clone(), 1e-5),
        ];
        let back = vec![
            grads(both(), |x, g| nn::layer_norm(x, g, None, 1e-5)), grads(both(), |x, g| nn::rms_norm(x, g, 1e-5)),
        ];
        (all, back)
    }
    attended(
        q: Tensor<B, 4> = [2, 1, 3, 2], k: Tensor<B, 4> = [2, 1, 3, 2], m: Tensor<B, 4, Bool> = [1, 1, 3, 3]
    ) -> (Tensor<B, 4>, (Tensor<B, 4>, Tensor<B, 4>), Tensor<B, 4>) {
        let options = AttentionModuleOptions::default();
        let y = nn::attention(q.clone(), k.clone(), q.clone(), Some(m.clone()), None, options);
        let mask = |m: &Tensor<B, 4, Bool>| Tensor::<Ad<B>, 4, Bool>::from_inner(m.clone());
        let back = grads((q.clone(), k.clone()), |q, k| {
            nn::attention(q, k.clone(), k, Some(mask(&m)), None, options)
        });
        let biased = nn::attention(q.clone(), k.clone(), k, None, Some(q.sum_dim(3)), options);
        (y, back, biased)
    }
    cross_entropies(x: Tensor<B, 2> = [4, 3], i: Tensor<B, 1, Int> = [4]) -> (Tensor<B, 1>, Tensor<B, 2>) {
        let targets = || Tensor::<Ad<B>, 1, Int>::from_inner(i.clone());
        (nn::cross_entropies(x.clone(), i.clone()), grad(x, |x| nn::cross_entropies(x, targets())))
    }
    running(x: Tensor<B, 2> = [3, 4]) -> (Vec<Tensor<B, 2>>, Vec<Tensor<B, 2>>) {
        let kinds = [Running::Sum, Running::Product, Running::Max, Running::Min, Running::LogSumExp];
        let of = |kind: &Running| cumulative(*kind, x.clone(), 1, true).unwrap();
        let back = |kind: &Running| grad(x.clone(), |x| cumulative(*kind, x, 0, false).unwrap());
        (kinds.iter().map(of).collect(), kinds.iter().map(back).collect())
    }
    recurrences(a: Tensor<B, 2> = [3, 4], b: Tensor<B, 2> = [3, 4]) -> (Tensor<B, 2>, (Tensor<B, 2>, Tensor<B, 2>)) {
        let y = linear_recurrence(a.clone(), b.clone(), None, 1, false).unwrap();
        (y, grads((a, b), |a, b| linear_recurrence(a, b, None, 0, true).unwrap()))
    }
    associative(x: Tensor<B, 2> = [5, 2], y: Tensor<B, 2> = [5, 2]) -> Vec<Tensor<B, 2>> {
        let affine = AssociativeScan::new(FloatMonoid::Affine, 0);
        let exclusive = AssociativeScan { exclusive: true, ..AssociativeScan::new(FloatMonoid::Affine, 0) };
        let mut all = associative_scan(&affine, vec![x.clone(), y.clone()]).unwrap();
        all.extend(associative_scan(&exclusive, vec![x.clone(), y.clone()]).unwrap());
        let (a, b) = grads((x, y), |x, y| associative_scan(&affine, vec![x, y]).unwrap().swap_remove(1));
        all.extend([a, b]);
        all
    }
    layers_over_sequences(
        z: Tensor<B, 3> = [3, 2, 8], u: Tensor<B, 2> = [2, 8]
    ) -> (Vec<Tensor<B, 3>>, (Tensor<B, 3>, Tensor<B, 2>), Tensor<B, 3>) {
        let y = recurrent(Cell::Lstm, z.clone(), u.clone(), None, vec![], false).unwrap();
        let last = |z, u| recurrent(Cell::Lstm, z, u, None, vec![], false).unwrap().swap_remove(0);
        let shared = Tensor::<Ad<B>, 2>::from_inner(u.clone());
        (y, grads((z.clone(), u), last), grad(z, |z| last(z, shared.clone())))
    }
    filters(y: Tensor<B, 3> = [2, 3, 1], x: Tensor<B, 1> = [2]) -> (Tensor<B, 3>, Tensor<B, 3>, Tensor<B, 2>, Tensor<B, 3>) {
        let device = y.device();
        let run = |y, x| {
            let eye = || Tensor::eye(2, &device);
            let system = System {
                transition: eye() * 0.9,
                process_noise: eye() * 0.1,
                observation: Tensor::ones([1, 2], &device),
                observation_noise: Tensor::ones([1, 1], &device),
            };
            kalman_filter(system, y, x, eye()).unwrap()
        };
        let (means, covariances, likelihoods) = run(y.clone(), x.clone());
        let of_y = {
            let device = y.device();
            grad(y, |y| {
                let eye = || Tensor::eye(2, &device);
                let system = System {
                    transition: eye() * 0.9,
                    process_noise: eye() * 0.1,
                    observation: Tensor::ones([1, 2], &device),
                    observation_noise: Tensor::ones([1, 1], &device),
                };
                kalman_filter(system, y, Tensor::from_inner(x.clone()), eye()).unwrap().2
            })
        };
        (means, covariances, likelihoods, of_y)
    }
    structured(x: Tensor<B, 1> = [6], y: Tensor<B, 1> = [6]) -> (Tensor<B, 1>, (Tensor<B, 1>, Tensor<B, 1>)) {
        (squared(x.clone(), y.clone()), grads((x, y), squared))
    }
    of_ones_own(x: Tensor<B, 2> = [2, 3], dx: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        let mut all = vec![call(&Softplus, &[float(x.clone())]).unwrap()];
        all.push(grad(x.clone(), |x| call::<_, _, 2>(&Softplus, &[float(x)]).unwrap()));
        let (y, dy) = call_jvp(&Softplus, &[float(x.clone())], &[Some(float(dx))]).unwrap();
        all.extend([y, dy]);
        all
    }
    that_read(x: Tensor<B, 2> = [2, 3], y: Tensor<B, 2> = [2, 3]) -> (Tensor<B, 2>, (Tensor<B, 2>, Tensor<B, 2>)) {
        let run = |x, y| call::<_, _, 2>(&Sorted, &[float(x), float(y)]).unwrap();
        (run(x.clone(), y.clone()), grads((x, y), |x, y| call::<_, _, 2>(&Sorted, &[float(x), float(y)]).unwrap()))
    }
}

/// `h g`, concatenated with the norm of h, for two maps that conserve the magnetisation of two spins.
fn squared<B: Operations>(x: Tensor<B, 1>, y: Tensor<B, 1>) -> Tensor<B, 1> {
    use burn_t4a::ext::structured::{Direction, GradedTensor, Leg, Spec, Structured, U1};
    let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out).unwrap();
    let legs = [spin.clone(), spin.clone(), spin.dual(), spin.dual()];
    let spec = Spec::new(legs.to_vec(), U1(0), 2).unwrap();
    let h = GradedTensor::from_flat(&spec, x).unwrap();
    let g = GradedTensor::from_flat(&spec, y).unwrap().permute(&[1, 0, 2, 3], 2).unwrap();
    let product = h.contract(&g, &[2, 3], &[0, 1]).unwrap().flat();
    let norm: Tensor<B, 1> = h.norm().unwrap().tensor().unwrap();
    Tensor::cat(vec![product, norm], 0)
}

/// `ln(1 + eˣ)`, with a definition and a derivative rule but no batching rule.
#[derive(Clone, Debug)]
struct Softplus;

impl Operation for Softplus {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "softplus"
    }
    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
        Ok(vec![inputs[0].clone()])
    }
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        _: &[bool],
    ) -> Result<Outcome<A>, TensorError> {
        Ok(inputs[0].float().exp().shift(1.0).ln().into())
    }
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
        let x = reverse.kept.float(0);
        Ok(vec![Some(reverse.cotangent().div(&x.neg().exp().shift(1.0)))])
    }
}

/// `x y max(x)`, whose definition and rule read elements.
#[derive(Clone, Debug)]
struct Sorted;

fn top<A: Array>(x: &A) -> Result<f64, TensorError> {
    let x = x.elements()?.cast(t4a_tensor::DType::F64)?;
    Ok(x.typed::<f64>()?.to_vec()?.into_iter().fold(f64::MIN, f64::max))
}

impl Operation for Sorted {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "sorted"
    }
    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
        Ok(vec![inputs[0].clone()])
    }
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        _: &[bool],
    ) -> Result<Outcome<A>, TensorError> {
        let (x, y) = (inputs[0].float(), inputs[1].float());
        Ok(x.mul(y).scale(top(x)?).into())
    }
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
        let (x, y) = (reverse.kept.float(0), reverse.kept.float(1));
        let g = reverse.cotangent().scale(top(x)?);
        Ok(vec![Some(g.mul(y)), Some(g.mul(x))])
    }
}

/// A mapped scan is one loop; each step computes all examples.
#[test]
fn a_scan_is_mapped() {
    use burn_t4a::{BurnT4a, T4aDevice};
    use burn_t4a_vmap::{Vmap, vmap};
    type B = BurnT4a;
    type V = Vmap<B>;
    fn decayed<B: burn_t4a::ext::scan::ScanBackend>(
        a: Tensor<B, 1>,
        xs: Tensor<B, 2>,
    ) -> Tensor<B, 2> {
        let zero = Tensor::<B, 1>::zeros([2], &xs.device());
        let body = |a: Tensor<B, 1>, h: Tensor<B, 1>, x: Tensor<B, 1>| {
            let h = h * a + x;
            (h.clone(), h.tanh())
        };
        let (_, ys) = scan(body, a, zero, xs, &Options::default()).unwrap();
        ys
    }
    let draw = |shape: [usize; 3], seed| {
        let data = burn_tensor::TensorData::new(rows::noise(shape.iter().product(), seed), shape);
        Tensor::<B, 3>::from_data(data, &T4aDevice)
    };
    let (a, xs) = (draw([4, 1, 2], 1).squeeze_dim::<2>(1), draw([4, 5, 2], 2));
    let f = |(a, xs): (Tensor<V, 1>, Tensor<V, 2>)| decayed(a, xs);
    let ys: Tensor<B, 3> = vmap(f).call((a.clone(), xs.clone())).unwrap();
    for i in 0..4 {
        let at = |x: &Tensor<B, 3>| x.clone().slice_dim(0, i..i + 1).squeeze_dim::<2>(0);
        let expected = decayed(a.clone().slice_dim(0, i..i + 1).squeeze_dim::<1>(0), at(&xs));
        at(&ys).into_data().assert_approx_eq::<f32>(&expected.into_data(), Default::default());
    }
}
