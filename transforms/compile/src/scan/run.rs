//! The steps.

use burn_backend::Backend;
use burn_t4a::T4aTensor;
use t4a_tensor::{AnyTensor, Element, Result, Tensor, TensorError};

use super::build::{Line, Loop, Operand, Put, Routine};
use crate::fuse::kernel::Lane;
use crate::fuse::{engine, same};
use crate::recording::Frame;
use crate::tensor::Any;

fn tensor<T: Element, B: Backend>(x: Tensor<T>) -> Result<Any<B>> {
    Ok(Any::Float(same(T4aTensor::from_any(AnyTensor::from(x))?)))
}

fn contiguous<T: Element, B: Backend>(x: Any<B>) -> Result<Tensor<T>> {
    engine(x).to_contiguous()?.into_typed::<T>()
}

impl<B: Backend> Routine<B> {
    fn run<T: Lane>(&self, arena: &mut [T], kept: &mut [Option<Any<B>>]) -> Result<()> {
        let operand = |x: &Operand<B>| match x {
            Operand::Arena(at, shape) => {
                let n: usize = shape.iter().product();
                Ok(Some(tensor(Tensor::from_slice(&arena[*at..][..n], shape)?)?))
            }
            Operand::Constant(x) => Ok(Some(x.clone())),
            Operand::Kept(at) => Ok(kept[*at].clone()),
        };
        let operands = self.operands.iter().map(operand).collect::<Result<_>>()?;
        let mut results = Vec::new();
        let failed = |message| TensorError::value("scan", message);
        self.step.run(&mut Frame(operands), &mut results).map_err(failed)?;
        for (x, to) in results.into_iter().zip(&self.results) {
            match to {
                Put::Arena(at, n) => {
                    let x = contiguous::<T, B>(x)?;
                    arena[*at..][..*n].copy_from_slice(x.as_slice().unwrap_or_default());
                }
                Put::Kept(at) => kept[*at] = Some(x),
                Put::Nowhere => {}
            }
        }
        Ok(())
    }
}

fn lines<T: Lane, B: Backend>(
    lines: &[Line<T, B>],
    arena: &mut [T],
    kept: &mut [Option<Any<B>>],
) -> Result<()> {
    for line in lines {
        match line {
            // SAFETY: that all ranges of the instruction are in the arena was checked when it was made
            // (`Inst::fits`), and its result has a slot of its own while its operands are in use.
            Line::Kernel(inst) => unsafe { (inst.run)(arena.as_mut_ptr(), inst) },
            Line::Routine(routine) => routine.run(arena, kept)?,
        }
    }
    Ok(())
}

/// Copies few elements.
#[inline(always)]
fn put<T: Copy>(to: &mut [T], from: &[T]) {
    match (to, from) {
        ([to], [from]) => *to = *from,
        (to, from) => to.copy_from_slice(from),
    }
}

impl<T: Lane, B: Backend> Loop<T, B> {
    /// The last carry, then the ys.
    pub(super) fn run(&self, operands: Vec<Any<B>>) -> Result<Vec<Any<B>>> {
        let [consts, carries, xs] = self.counts;
        let operands: Vec<Tensor<T>> =
            operands.into_iter().map(contiguous::<T, B>).collect::<Result<_>>()?;
        let slices: Vec<&[T]> = operands.iter().map(|x| x.as_slice().unwrap_or_default()).collect();
        let mut arena = vec![T::ZERO; self.arena];
        for (at, x) in &self.constants {
            arena[*at..][..x.len()].copy_from_slice(x);
        }
        let scanned = consts + carries..consts + carries + xs;
        for (k, (input, x)) in self.inputs.iter().zip(&slices).enumerate() {
            if !scanned.contains(&k) {
                arena[input.at..][..input.n].copy_from_slice(&x[..input.n]);
            }
        }
        let mut kept = vec![None; self.kept];
        lines(&self.before, &mut arena, &mut kept)?;
        let mut ys: Vec<Vec<T>> =
            self.ys.iter().map(|y| vec![T::ZERO; y.n * self.length]).collect();
        for k in 0..self.length {
            let t = if self.reverse { self.length - 1 - k } else { k };
            for (input, x) in self.inputs[scanned.clone()].iter().zip(&slices[scanned.clone()]) {
                put(&mut arena[input.at..][..input.n], &x[t * input.n..][..input.n]);
            }
            lines(&self.step, &mut arena, &mut kept)?;
            for (y, all) in self.ys.iter().zip(&mut ys) {
                put(&mut all[t * y.n..][..y.n], &arena[y.at..][..y.n]);
            }
            for &(from, to, n) in &self.moves {
                arena.copy_within(from..from + n, to);
            }
        }
        let carry = self.inputs[consts..consts + carries]
            .iter()
            .map(|x| tensor(Tensor::from_slice(&arena[x.at..][..x.n], &x.shape)?));
        let ys = self.ys.iter().zip(ys).map(|(y, all)| {
            let shape: Vec<usize> =
                [self.length].into_iter().chain(y.shape.iter().copied()).collect();
            tensor(Tensor::from_vec(all, &shape)?)
        });
        carry.chain(ys).collect()
    }
}
