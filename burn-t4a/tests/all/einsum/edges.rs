//! Edge cases of semirings in second derivatives and on nested tapes; first derivatives are tested in
//! `face/ext/tests/edges.rs`.

use burn_autodiff::Autodiff;
use burn_backend::AutodiffBackend;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{
    ArraySemiring, Einsum, EinsumError, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, Operand,
    Subscripts, complex_einsum, einsum, semiring_einsum,
};
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::{Complex, ExtError};
use burn_tensor::{Tensor, s};

use super::cases::{Vector, close, f64s, numbers};

const LOW: f64 = f64::NEG_INFINITY;

/// Number of labels. Scores are given for neighbouring labels and for single positions.
const LABELS: usize = 3;
const LENGTH: usize = 5;

/// A conditional random field: `a,ab,b,bc,c…->` over scores, with some transitions forbidden.
struct Field {
    moves: Vec<f64>,
    places: Vec<f64>,
}

impl Field {
    fn new() -> Self {
        let mut moves = numbers((LENGTH - 1) * LABELS * LABELS, 4);
        // The transition from 0 to 2 is always forbidden, that from 1 to 0 in the first step only.
        (0..LENGTH - 1).for_each(|t| moves[t * 9 + 2] = LOW);
        moves[3] = LOW;
        let mut places = numbers(LENGTH * LABELS, 5);
        // Label 1 is impossible at position 2, so some rows have only terms of −∞.
        places[2 * LABELS + 1] = LOW;
        Self { moves, places }
    }

    /// Indices of the scores of a sequence, transitions first.
    fn features(sequence: &[usize]) -> Vec<usize> {
        let moves =
            (1..LENGTH).map(|t| (t - 1) * LABELS * LABELS + sequence[t - 1] * LABELS + sequence[t]);
        let offset = (LENGTH - 1) * LABELS * LABELS;
        moves.chain((0..LENGTH).map(|t| offset + t * LABELS + sequence[t])).collect()
    }

    /// All sequences with their probabilities.
    fn sequences(&self) -> Vec<(Vec<usize>, f64)> {
        let scores = [&self.moves[..], &self.places].concat();
        let sequence = |n: usize| -> Vec<usize> {
            (0..LENGTH).map(|t| n / LABELS.pow(t as u32) % LABELS).collect()
        };
        let weigh = |sequence: Vec<usize>| {
            let features = Self::features(&sequence);
            let weight = features.iter().map(|&f| scores[f]).sum::<f64>().exp();
            (features, weight)
        };
        let all: Vec<_> = (0..LABELS.pow(LENGTH as u32)).map(sequence).map(weigh).collect();
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        all.into_iter().map(|(features, weight)| (features, weight / total)).collect()
    }

    /// Probability of every score, and its covariance with the sum of scores in a direction.
    fn moments(&self, direction: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let count = self.moves.len() + self.places.len();
        let (mut mean, mut product, mut along) = (vec![0.0; count], vec![0.0; count], 0.0);
        for (features, p) in self.sequences() {
            let slope: f64 = features.iter().map(|&f| direction[f]).sum();
            along += p * slope;
            for f in features {
                mean[f] += p;
                product[f] += p * slope;
            }
        }
        let covariance = product.iter().zip(&mean).map(|(xy, x)| xy - x * along).collect();
        (mean, covariance)
    }
}

/// The logarithm of the partition function.
fn partition<B: Operations>(moves: &Tensor<B, 3>, places: &Tensor<B, 2>) -> Vector<B> {
    let mut labels: Vec<Vec<usize>> = (0..LENGTH).map(|t| vec![t]).collect();
    let mut operands: Vec<Operand<B>> = (0..LENGTH)
        .map(|t| Operand::from(places.clone().slice(s![t..t + 1]).reshape([LABELS])))
        .collect();
    for t in 1..LENGTH {
        labels.push(vec![t - 1, t]);
        operands.push(moves.clone().slice(s![t - 1..t]).reshape([LABELS, LABELS]).into());
    }
    semiring_einsum::<LogSumExp, _, _>(Subscripts::new(labels, []), operands).unwrap()
}

fn numbers_of<B: burn_backend::Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter().collect()
}

/// Marginals on one tape and covariances on nested tapes, against enumeration.
fn random_field<B: Operations>()
where
    Autodiff<B>: Operations + AutodiffBackend<InnerBackend = B>,
    Autodiff<Autodiff<B>>: Operations + AutodiffBackend<InnerBackend = Autodiff<B>>,
{
    type Outer<B, const D: usize> = Tensor<Autodiff<Autodiff<B>>, D>;
    let field = Field::new();
    let m = field.moves.len();
    let moves =
        || f64s::<Autodiff<B>, 3>(&field.moves, [LENGTH - 1, LABELS, LABELS]).require_grad();
    let places = || f64s::<Autodiff<B>, 2>(&field.places, [LENGTH, LABELS]).require_grad();
    let mut directions = vec![numbers(m + field.places.len(), 7)];
    // One score of each kind: allowed, forbidden, impossible.
    for feature in [0, 2, 3, 12, m + 1, m + 2 * LABELS + 1] {
        directions.push((0..m + field.places.len()).map(|f| f64::from(f == feature)).collect());
    }
    for direction in directions {
        let (mean, covariance) = field.moments(&direction);
        let (x, y) = (moves(), places());
        let grads = partition(&x, &y).backward();
        let first = [numbers_of(x.grad(&grads).unwrap()), numbers_of(y.grad(&grads).unwrap())];
        close(&first.concat(), &mean, 1e-12, "marginals");

        let (x, y) = (moves(), places());
        let outer_x = Outer::<B, 3>::from_inner(x.clone()).require_grad();
        let outer_y = Outer::<B, 2>::from_inner(y.clone()).require_grad();
        let grads = partition(&outer_x, &outer_y).backward();
        let (gx, gy) = (outer_x.grad(&grads).unwrap(), outer_y.grad(&grads).unwrap());
        let again = [numbers_of(gx.clone().inner()), numbers_of(gy.clone().inner())];
        close(&again.concat(), &mean, 1e-12, "marginals on the outer tape");
        let vx = f64s::<Autodiff<B>, 3>(&direction[..m], [LENGTH - 1, LABELS, LABELS]);
        let vy = f64s::<Autodiff<B>, 2>(&direction[m..], [LENGTH, LABELS]);
        let grads = ((gx * vx).sum() + (gy * vy).sum()).backward();
        let second = [numbers_of(x.grad(&grads).unwrap()), numbers_of(y.grad(&grads).unwrap())];
        close(&second.concat(), &covariance, 1e-11, "covariances");
    }
}

#[test]
fn covariances_of_a_field_with_forbidden_transitions() {
    random_field::<BurnT4a>();
    random_field::<Flex>();
}

/// Finite differences of the engine's gradients along allowed scores, with forbidden scores unchanged.
#[test]
fn covariances_from_gradients_of_the_engine() {
    type AD = Autodiff<BurnT4a>;
    let field = Field::new();
    let (m, h) = (field.moves.len(), 1e-5);
    let direction = numbers(m + field.places.len(), 8);
    let gradient = |by: f64| -> Vec<f64> {
        let scores = field.moves.iter().chain(&field.places);
        let moved: Vec<f64> = scores.zip(&direction).map(|(x, v)| x + by * v).collect();
        let x = f64s::<AD, 3>(&moved[..m], [LENGTH - 1, LABELS, LABELS]).require_grad();
        let y = f64s::<AD, 2>(&moved[m..], [LENGTH, LABELS]).require_grad();
        let grads = partition(&x, &y).backward();
        [numbers_of(x.grad(&grads).unwrap()), numbers_of(y.grad(&grads).unwrap())].concat()
    };
    let slope = gradient(h).into_iter().zip(gradient(-h)).map(|(a, b)| (a - b) / (2.0 * h));
    close(&slope.collect::<Vec<_>>(), &field.moments(&direction).1, 1e-9, "covariances");
}

/// Hessian of a sum over `"i,i->"` along a direction, by nested tapes.
fn hessian<S: ArraySemiring, B: Operations>(x: [&[f64]; 2], v: [&[f64]; 2]) -> Vec<f64>
where
    Autodiff<B>: Operations + AutodiffBackend<InnerBackend = B>,
    Autodiff<Autodiff<B>>: Operations + AutodiffBackend<InnerBackend = Autodiff<B>>,
{
    let n = x[0].len();
    let inner = x.map(|x| f64s::<Autodiff<B>, 1>(x, [n]).require_grad());
    let outer = inner
        .each_ref()
        .map(|x| Tensor::<Autodiff<Autodiff<B>>, 1>::from_inner(x.clone()).require_grad());
    let y: Vector<Autodiff<Autodiff<B>>> =
        semiring_einsum::<S, _, _>("i,i->", [&outer[0], &outer[1]]).unwrap();
    let grads = y.backward();
    let along = |i: usize| outer[i].grad(&grads).unwrap() * f64s::<Autodiff<B>, 1>(v[i], [n]);
    let grads = (along(0) + along(1)).sum().backward();
    // A constant argmax: the gradient does not depend on the operand.
    let second = |x: &Tensor<Autodiff<B>, 1>| x.grad(&grads).map_or(vec![0.0; n], numbers_of);
    inner.iter().flat_map(second).collect()
}

fn everywhere<S: ArraySemiring>(x: [&[f64]; 2], v: [&[f64]; 2], want: &[f64]) {
    for (backend, got) in
        [("engine", hessian::<S, BurnT4a>(x, v)), ("portable", hessian::<S, Flex>(x, v))]
    {
        close(&got, want, 1e-12, &format!("{} {backend} {x:?}", std::any::type_name::<S>()));
    }
}

#[test]
fn second_order_at_infinities_is_finite() {
    let ones: [&[f64]; 2] = [&[1.0, -1.0], &[0.5, 2.0]];
    // A single finite term has probability 1 and variance 0.
    everywhere::<LogSumExp>([&[0.0, LOW], &[1.0, 2.0]], ones, &[0.0; 4]);
    everywhere::<LogSumExp>([&[0.0, LOW], &[0.0, LOW]], ones, &[0.0; 4]);
    // No finite term.
    everywhere::<LogSumExp>([&[LOW, LOW], &[1.0, LOW]], ones, &[0.0; 4]);
    // Terms of +∞ have equal weights, independent of the others.
    everywhere::<LogSumExp>([&[0.0, f64::INFINITY], &[1.0, 2.0]], ones, &[0.0; 4]);
    everywhere::<LogSumExp>([&[f64::INFINITY, 1.0], &[LOW, 2.0]], ones, &[0.0; 4]);
    // p (1 − p) times the difference of the directions, as without a third term.
    let p = 1.0 / (1.0 + 0.5f64.exp());
    let slope = p * (1.0 - p) * ((1.0 + 0.5) - (-1.0 + 2.0));
    everywhere::<LogSumExp>(
        [&[0.5, 1.0, LOW], &[0.0, 0.0, 3.0]],
        [&[1.0, -1.0, 4.0], &[0.5, 2.0, 5.0]],
        &[slope, -slope, 0.0, slope, -slope, 0.0],
    );
    // x y of the argmax has the Hessian [[0, 1], [1, 0]] there; 0 · ∞ beside it produces no NaN.
    everywhere::<MaxMul>(
        [&[2.0, 0.0], &[3.0, f64::INFINITY]],
        [&[1.0, 7.0], &[4.0, 7.0]],
        &[4.0, 0.0, 1.0, 0.0],
    );
    everywhere::<MinMul>(
        [&[2.0, 0.0], &[3.0, f64::INFINITY]],
        [&[1.0, 7.0], &[4.0, 7.0]],
        &[4.0, 0.0, 1.0, 0.0],
    );
    everywhere::<MaxPlus>([&[2.0, LOW], &[3.0, f64::INFINITY]], ones, &[0.0; 4]);
    everywhere::<MaxMin>([&[2.0, LOW], &[3.0, f64::INFINITY]], ones, &[0.0; 4]);
}

/// Evaluation step by step rejects a plan that meets its memory limit only by slices, for any number of operands:
/// on other backends, on nested tapes, for complex numbers.
#[test]
fn budgets_bind_everywhere() {
    fn refused<B: Operations, const D: usize>(tight: &Einsum, x: &[&Tensor<B, 2>]) {
        let of = |error| {
            assert!(matches!(error, ExtError::Einsum(EinsumError::NotSliced { .. })), "{error}")
        };
        of(einsum::<_, D>(tight, x.to_vec()).unwrap_err());
        of(semiring_einsum::<LogSumExp, _, D>(tight, x.to_vec()).unwrap_err());
    }
    fn check<const D: usize>(text: &str) {
        let whole = Einsum::new(text).unwrap();
        let count = whole.subscripts().operands();
        let shapes = vec![&[64usize, 64][..]; count];
        let needed = whole.plan(&shapes, 8).unwrap().cost().bytes(8) as usize;
        let tight = whole.memory(needed - 64);
        assert!(!tight.plan(&shapes, 8).unwrap().sliced().is_empty(), "{text}");
        let data = numbers(64 * 64, 1);
        let x = f64s::<Autodiff<Autodiff<BurnT4a>>, 2>(&data, [64, 64]).require_grad();
        refused::<_, D>(&tight, &vec![&x; count]);
        // One tape over the engine runs the slices.
        let x = f64s::<Autodiff<BurnT4a>, 2>(&data, [64, 64]).require_grad();
        assert!(einsum::<_, D>(&tight, vec![&x; count]).is_ok());
        assert!(semiring_einsum::<LogSumExp, _, D>(&tight, vec![&x; count]).is_ok());
        let x = f64s::<Flex, 2>(&data, [64, 64]);
        refused::<_, D>(&tight, &vec![&x; count]);
        let x = f64s::<Autodiff<Flex>, 2>(&data, [64, 64]).require_grad();
        refused::<_, D>(&tight, &vec![&x; count]);
        let x = f64s::<BurnT4a, 2>(&data, [64, 64]);
        let z = Complex::new(x.clone(), x).unwrap();
        let error = complex_einsum::<_, D>(&tight, vec![&z; count]).unwrap_err();
        assert!(matches!(error, ExtError::Einsum(EinsumError::NotSliced { .. })), "{error}");
    }
    check::<2>("ij,kj->ik");
    check::<1>("ij,ij->i");
    check::<2>("ij,jk,kl->il");
}
