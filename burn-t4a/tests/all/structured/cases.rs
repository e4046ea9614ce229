//! Table of operations over any array type, and operands for them.

use burn_backend::{Backend, DType};
use burn_t4a::ext::operation::{Array, Operations};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::structured::*;
use burn_tensor::{Tensor, TensorData};
use t4a_structured::GradedTensor;

pub(crate) type S = FermionNumber;

/// Pseudo-random numbers.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
    /// Between −1 and 1.
    pub(crate) fn number(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub(crate) fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.number()).collect()
    }
    /// A leg with irregular sizes; some of its sectors match none of the partner.
    pub(crate) fn leg(&mut self) -> Leg<S> {
        let mut sectors = vec![(FermionNumber(0), 1 + self.next() as usize % 3)];
        for charge in [-1, 1, 2, 5] {
            if !self.next().is_multiple_of(3) {
                sectors.push((FermionNumber(charge), 1 + self.next() as usize % 2));
            }
        }
        let direction = if self.next().is_multiple_of(2) { Direction::Out } else { Direction::In };
        Leg::new(sectors, direction).unwrap()
    }
}

/// Structures of the operands of a case, and whether they are complex.
pub(crate) struct Operands {
    pub(crate) specs: Vec<Spec<S>>,
    pub(crate) complex: bool,
}

impl Operands {
    pub(crate) fn new(name: &str, complex: bool, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let [a, b, c, d] = std::array::from_fn(|_| rng.leg());
        let spec = |legs: &[&Leg<S>], flux, rows| {
            let legs = legs.iter().map(|&leg| leg.clone()).collect();
            Spec::new(legs, FermionNumber(flux), rows).unwrap()
        };
        let (ad, bd, cd) = (a.dual(), b.dual(), c.dual());
        let fused = Leg::fused(&[a.clone(), b.clone()], Direction::In).unwrap();
        let specs = match name {
            "contract" => vec![spec(&[&a, &b, &c], 2, 1), spec(&[&cd, &d, &bd], 0, 2)],
            "outer" => vec![spec(&[&a], 0, 1), spec(&[&b, &c], 0, 1)],
            "einsum" => {
                vec![spec(&[&a, &d, &b], 0, 2), spec(&[&bd, &c], 0, 1), spec(&[&cd, &ad, &d], 2, 1)]
            }
            "alias" | "exp" | "eigh" | "eigh function" => vec![spec(&[&a, &b, &ad, &bd], 0, 2)],
            "trace" => vec![spec(&[&a, &b, &ad, &c], 0, 2)],
            "split" => vec![spec(&[&fused, &c], 0, 1)],
            "sums" | "inner" => vec![spec(&[&a, &b, &c], 0, 1); 2],
            _ => vec![spec(&[&a, &b, &c], 2, 1)],
        };
        Self { specs, complex }
    }

    /// Total number of elements of all operands.
    pub(crate) fn len(&self) -> usize {
        (1 + usize::from(self.complex)) * self.specs.iter().map(Spec::len).sum::<usize>()
    }

    /// Operands with these flat arrays.
    pub(crate) fn tensors<A: Array>(
        &self,
        mut next: impl FnMut(usize) -> A,
    ) -> Vec<GradedTensor<S, A>> {
        let one = |spec: &Spec<S>| {
            let re = next(spec.len());
            let im = self.complex.then(|| next(spec.len()));
            GradedTensor::new(spec.clone(), re, im).unwrap()
        };
        self.specs.iter().map(one).collect()
    }
}

/// Operations whose results are smooth and independent of a gauge.
pub(crate) const CASES: [&str; 21] = [
    "permute",
    "repartition",
    "fuse",
    "split",
    "trace",
    "conj",
    "dagger",
    "flip",
    "twist",
    "contract",
    "outer",
    "alias",
    "einsum",
    "sums",
    "inner",
    "norm",
    "exp",
    "to_dense",
    "from_dense",
    "svd",
    "qr",
];

/// Results of a case as flat arrays.
pub(crate) fn run<A: Array>(name: &str, x: &[GradedTensor<S, A>]) -> Result<Vec<A>> {
    let flat = |x: GradedTensor<S, A>| {
        let (_, re, im) = x.into_parts();
        [Some(re), im].into_iter().flatten().collect::<Vec<A>>()
    };
    let pair = |(re, im): (A, Option<A>)| [Some(re), im].into_iter().flatten().collect::<Vec<A>>();
    let x0 = &x[0];
    Ok(match name {
        "permute" => flat(x0.permute(&[2, 0, 1], 1)?),
        "repartition" => flat(x0.repartition(2)?),
        "fuse" => flat(x0.fuse(1..3, Direction::In)?),
        "split" => flat(x0.split(0)?),
        "trace" => flat(x0.trace(&[(0, 2)])?),
        "conj" => flat(x0.conj()?),
        "dagger" => flat(x0.dagger()?),
        "flip" => flat(x0.flip(1)?),
        "twist" => flat(x0.twist(&[0, 2])?),
        "contract" => flat(x0.contract(&x[1], &[1, 2], &[2, 0])?),
        "outer" => flat(x0.contract(&x[1], &[], &[])?),
        "alias" => flat(x0.contract(x0, &[2, 3], &[0, 1])?),
        "einsum" => flat(einsum("adb,bc,cae->ed", &[x0, &x[1], &x[2]])?),
        "sums" => flat(x0.add(&x[1].scale(-2.0))?.sub(&x0.scale(0.5))?),
        "inner" => pair(x0.inner(&x[1])?),
        "norm" => vec![x0.norm()?],
        "exp" => flat(x0.scale(0.4).exp()?),
        "to_dense" => pair(x0.to_dense()?)
            .into_iter()
            .map(|x| x.reshape(&[x.shape().iter().product()]))
            .collect(),
        "from_dense" => {
            let (re, im) = x0.to_dense()?;
            let (re, im) = (re.shift(0.5), im.map(|im| im.shift(-0.5)));
            flat(GradedTensor::from_dense(x0.spec(), &re, im.as_ref(), Forbidden::Project)?)
        }
        // Singular values, and U S Vᴴ, which is independent of the gauge.
        "svd" => {
            let svd = x0.svd(2, FluxOn::Left)?;
            let product = svd.u.scale_columns(&svd.s)?.contract(&svd.vh, &[2], &[0])?;
            [flat(product), vec![svd.s.values().clone()]].concat()
        }
        // Q R, and Rᴴ R.
        "qr" => {
            let qr = x0.qr(1, FluxOn::Right)?;
            let product = qr.q.contract(&qr.r, &[1], &[0])?;
            let square = qr.r.dagger()?.contract(&qr.r, &[2], &[0])?;
            [flat(product), flat(square)].concat()
        }
        _ => panic!("no case {name}"),
    })
}

/// A flat array on a backend.
pub(crate) fn array<B: Operations>(x: &[f64]) -> Tensor<B, 1> {
    let device = B::Device::default();
    Tensor::from_data(TensorData::new(x.to_vec(), [x.len()]), (&device, DType::F64))
}

pub(crate) fn numbers<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

/// Operands on a backend, from the concatenated arrays `x`.
pub(crate) fn on<B: Operations>(of: &Operands, x: &[f64]) -> Vec<GradedTensor<S, Floats<B>>> {
    let mut rest = x;
    of.tensors(|n| {
        let (own, others) = rest.split_at(n);
        rest = others;
        Floats::from(array::<B>(own))
    })
}

/// Concatenated results of a case on a backend.
pub(crate) fn values<B: Operations>(name: &str, of: &Operands, x: &[f64]) -> Vec<f64> {
    let all = run(name, &on::<B>(of, x)).unwrap_or_else(|error| panic!("{name}: {error}"));
    all.into_iter().flat_map(|y| numbers(y.tensor::<1>().unwrap())).collect()
}

#[track_caller]
pub(crate) fn close(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len(), "{what}");
    let size = b.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * size, "{what}: element {i} is {a}, wanted {b}");
    }
}
