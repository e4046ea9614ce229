//! Serialised structured tensors with a few modified bytes: rejected, or tensors that can be used.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use t4a_diff::check;
use t4a_einsum::FloatSemiring;
use t4a_structured::{
    BlockSparseTensor, DiagTensor, Direction, FermionNumber, FermionParity, GradedTensor, Leg,
    Pattern, Product, Sector, Spec, U1, Zn,
};

use crate::input::Input;

/// Maximum number of elements of the dense tensors that are built.
const MOST_ELEMENTS: usize = 1 << 16;

/// Operations executed on a deserialised tensor.
trait Usable: Serialize + DeserializeOwned + Display {
    /// Shape of the dense tensor.
    fn sizes(&self) -> Vec<usize>;

    fn run(&self);
}

impl<S: Sector + Serialize + DeserializeOwned> Usable for GradedTensor<S> {
    fn sizes(&self) -> Vec<usize> {
        self.spec().shape()
    }

    fn run(&self) {
        let rank = self.spec().legs().len();
        let axes: Vec<usize> = (0..rank).rev().collect();
        if let Ok(turned) = self.permute(&axes, rank / 2) {
            drop(turned.to_dense());
        }
        if let Ok(other) = self.conj() {
            let all: Vec<usize> = (0..rank).collect();
            drop(other.contract(self, &all, &all));
        }
        drop(self.repartition(rank));
        (0..rank).for_each(|axis| drop(self.split(axis)));
        drop(self.to_dense());
    }
}

impl Usable for BlockSparseTensor {
    fn sizes(&self) -> Vec<usize> {
        self.pattern().shape()
    }

    fn run(&self) {
        let axes: Vec<usize> = (0..self.pattern().legs().len()).collect();
        drop(self.contract(self, &axes, &axes, FloatSemiring::MaxPlus));
        drop(self.contract(self, &[], &[], FloatSemiring::Standard));
        drop(self.to_dense());
    }
}

impl Usable for DiagTensor {
    fn sizes(&self) -> Vec<usize> {
        self.classes().iter().map(|&class| self.sizes()[class]).collect()
    }

    fn run(&self) {
        drop(self.mul(self));
        drop(self.inner(self));
        drop(self.to_dense(FloatSemiring::Standard));
    }
}

/// Serialised data with a few modified bytes.
fn changed(input: &mut Input<'_>, mut bytes: Vec<u8>, is_text: bool) -> Vec<u8> {
    for _ in 0..=input.below(3) {
        let at = (input.word() % bytes.len() as u64) as usize;
        match input.below(8) {
            0 => bytes[at] ^= 1 << input.below(8),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, bytes[at]),
            3 => {
                let end = (at + input.below(12)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            4 if is_text => bytes[at] = input.pick(b"[]{},-:"),
            4 => bytes[at] = input.pick(&[0xc0, 0xcb, 0xcc, 0xcf, 0xd0, 0xd3, 0x90, 0xdd]),
            _ if is_text => {
                // Replaces the next digit, if there is one.
                let digit = bytes[at..].iter().position(u8::is_ascii_digit);
                if let Some(next) = digit {
                    bytes[at + next] = b'0' + input.below(10) as u8;
                }
            }
            _ => bytes[at] = input.below(9) as u8,
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

fn check<T: Usable>(input: &mut Input<'_>, tensor: &T) {
    let is_text = input.once_in(2);
    let read = match is_text {
        true => {
            let bytes = serde_json::to_vec(tensor).expect("a small tensor");
            serde_json::from_slice::<T>(&changed(input, bytes, true)).ok()
        }
        false => {
            let bytes = match input.once_in(2) {
                true => rmp_serde::to_vec_named(tensor),
                false => rmp_serde::to_vec(tensor),
            };
            let bytes = changed(input, bytes.expect("a small tensor"), false);
            rmp_serde::from_slice::<T>(&bytes).ok()
        }
    };
    let Some(read) = read else { return };
    let count = read.sizes().iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    if count.is_some_and(|count| count <= MOST_ELEMENTS) {
        read.run();
        drop(read.to_string());
    }
    let again = rmp_serde::to_vec(&read).expect("what was read can be stored");
    assert!(rmp_serde::from_slice::<T>(&again).is_ok(), "what was stored can be read");
}

/// A tensor with up to four legs; the first two are occasionally fused.
fn graded<S: Sector + Serialize + DeserializeOwned>(input: &mut Input<'_>, sectors: &[S]) {
    let direction = |input: &mut Input<'_>| input.pick(&[Direction::Out, Direction::In]);
    let mut leg = || {
        let mut kept: Vec<(S, usize)> = Vec::new();
        for &sector in sectors {
            if !input.once_in(3) {
                kept.push((sector, 1 + input.below(2)));
            }
        }
        Leg::new(kept, direction(input)).expect("sectors once each")
    };
    let mut legs: Vec<Leg<S>> = (0..4).map(|_| leg()).collect();
    legs.truncate(1 + input.below(4));
    if legs.len() > 1 && input.once_in(2) {
        let rest = legs.split_off(2);
        let fused = Leg::fused(&legs, direction(input)).expect("small charges");
        legs = std::iter::once(fused).chain(rest).collect();
    }
    let rows = input.below(legs.len() + 1);
    let Ok(spec) = Spec::new(legs, S::TRIVIAL, rows) else { return };
    let part = || check::array(&[spec.len()], |i| i as f64 - 1.5);
    let im = input.once_in(3).then(part);
    let tensor = GradedTensor::new(spec.clone(), part(), im).expect("parts of its length");
    check(input, &tensor);
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let input = &mut input;
    match input.below(6) {
        0 => graded(input, &[-1, 0, 1, 2].map(U1)),
        1 => graded(input, &[0, 1, 2].map(Zn::<3>::new)),
        2 => graded(input, &[false, true].map(FermionParity)),
        3 => graded(input, &[-1, 0, 2].map(|n| Product(FermionNumber(n), U1(n)))),
        4 => {
            let blocks = vec![vec![0, 0, 0], vec![0, 1, 1], vec![1, 0, 1], vec![1, 2, 0]];
            let legs = vec![vec![2, 1], vec![1, 2, 1], vec![2, 2]];
            let pattern = Pattern::new(legs, blocks).expect("sorted blocks");
            let data = check::array(&[pattern.len()], |i| i as f64);
            let tensor = BlockSparseTensor::new(pattern.into(), data).expect("its elements");
            check(input, &tensor);
        }
        _ => {
            let payload = check::array(&[3, 2], |i| i as f64);
            let classes = input.pick(&[&[0usize, 1][..], &[0, 1, 0], &[0, 0, 1, 1]]).to_vec();
            let tensor = DiagTensor::new(payload, classes).expect("classes in order");
            check(input, &tensor);
        }
    }
}
