//! Random structures, and dense reference tensors.

use t4a_diff::check;
use t4a_diff::{Array, Eager};
use t4a_einsum::Einsum;
use t4a_structured::{Direction, Forbidden, GradedTensor, Leg, Sector, Spec};
use t4a_tensor::random::Generator;
use t4a_tensor::{AnyTensor, DType};

/// Pseudo-random numbers.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
    pub(crate) fn direction(&mut self) -> Direction {
        if self.below(2) == 0 { Direction::Out } else { Direction::In }
    }
    /// Random leg with a subset of these sectors; often most of them, sometimes none.
    pub(crate) fn leg<S: Sector>(&mut self, sectors: &[S]) -> Leg<S> {
        let empty = self.below(24) == 0;
        let mut kept = Vec::new();
        for &sector in sectors {
            if !empty && self.below(3) > 0 {
                kept.push((sector, 1 + self.below(3)));
            }
        }
        let direction = self.direction();
        Leg::new(kept, direction).unwrap()
    }
    pub(crate) fn legs<S: Sector>(&mut self, n: usize, sectors: &[S]) -> Vec<Leg<S>> {
        (0..n).map(|_| self.leg(sectors)).collect()
    }
    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| axes.swap(i, self.below(i + 1)));
        axes
    }
    pub(crate) fn tensor<S: Sector>(
        &mut self,
        legs: Vec<Leg<S>>,
        flux: S,
        complex: bool,
    ) -> GradedTensor<S> {
        let rows = self.below(legs.len() + 1);
        let spec = Spec::new(legs, flux, rows).unwrap();
        let generator = Generator::new(self.below(1 << 30) as u64);
        GradedTensor::random(spec, DType::F64, complex, &generator).unwrap()
    }
}

/// Real parts, then imaginary parts, of the dense tensor.
pub(crate) fn dense<S: Sector>(x: &GradedTensor<S>) -> Vec<AnyTensor> {
    let (re, im) = x.to_dense().unwrap();
    [Some(re), im].into_iter().flatten().map(|x| x.into_tensor().unwrap()).collect()
}

pub(crate) fn numbers(x: &AnyTensor) -> Vec<f64> {
    check::elements(&Eager::from(x))
}

/// Dense einsum of real tensors.
pub(crate) fn einsum(subscripts: &str, operands: &[&AnyTensor]) -> AnyTensor {
    Einsum::new(subscripts).unwrap().contract_any(operands).unwrap()
}

#[track_caller]
pub(crate) fn close(a: &[f64], b: &[f64]) {
    close_to(a, b, 1e-11);
}

#[track_caller]
pub(crate) fn close_to(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * size, "element {i} is {a}, wanted {b}");
    }
}

/// Asserts that two tensors with equal legs are equal, for any number of row legs.
#[track_caller]
pub(crate) fn same<S: Sector>(a: &GradedTensor<S>, b: &GradedTensor<S>) {
    assert_eq!(a.spec().legs(), b.spec().legs());
    assert_eq!(a.spec().flux(), b.spec().flux());
    for (a, b) in dense(a).iter().zip(&dense(b)) {
        close(&numbers(a), &numbers(b));
    }
}

/// Checks that blocks tile the buffer, charges fuse to the flux, and the dense tensor is zero elsewhere.
#[track_caller]
pub(crate) fn invariant<S: Sector>(x: &GradedTensor<S>) {
    let spec = x.spec();
    let mut seen = vec![0; spec.len()];
    for block in spec.blocks() {
        let mut charge = S::TRIVIAL;
        for (leg, &place) in spec.legs().iter().zip(block.places()) {
            let sector = leg.sectors()[place as usize].0;
            let own = match leg.direction() {
                Direction::Out => sector,
                Direction::In => sector.dual().unwrap(),
            };
            charge = charge.fuse(own).unwrap();
        }
        assert_eq!(charge, spec.flux());
        let count: usize = block.shape().iter().product();
        for i in 0..count {
            let (mut rest, mut at) = (i, block.offset());
            for (size, stride) in block.shape().iter().zip(block.strides()).rev() {
                at += rest % size * stride;
                rest /= size;
            }
            seen[at] += 1;
        }
    }
    assert!(seen.iter().all(|&n| n == 1));
    let (re, im) = x.to_dense().unwrap();
    let back = GradedTensor::from_dense(spec, &re, im.as_ref(), Forbidden::Error(0.0)).unwrap();
    assert_eq!(check::elements(back.re()), check::elements(x.re()));
    assert_eq!(back.im().is_some(), x.im().is_some());
    assert_eq!(x.re().shape(), [spec.len()]);
}
