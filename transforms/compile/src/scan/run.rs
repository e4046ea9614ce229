//! Execution of a scan program: its steps, by kernels or by machine code, and matrix products that join several steps.

use burn_backend::Backend;
use burn_t4a::T4aTensor;
use t4a_algebra::Standard;
use t4a_algebra::gemm::{MatMut, MatRef, Parallelism, Product};
use t4a_tensor::{AnyTensor, Element, Result, Tensor, TensorError};

use std::ops::Range;

use super::build::{
    Added, Operand, ResultTarget, Routine, ScanInstruction, ScanProgram, WithMatrix, Y,
};
use super::products::Sizes;
use crate::fuse::kernel::FusedFloat;
use crate::fuse::{engine, same};
use crate::recording::Frame;
use crate::tensor::AnyPrimitive;

fn tensor<T: Element, B: Backend>(x: Tensor<T>) -> Result<AnyPrimitive<B>> {
    Ok(AnyPrimitive::Float(same(T4aTensor::from_any(AnyTensor::from(x))?)))
}

fn contiguous<T: Element, B: Backend>(x: AnyPrimitive<B>) -> Result<Tensor<T>> {
    engine(x).to_contiguous()?.into_typed::<T>()
}

impl<B: Backend> Routine<B> {
    fn run<T: FusedFloat>(
        &self,
        arena: &mut [T],
        kept: &mut [Option<AnyPrimitive<B>>],
    ) -> Result<()> {
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
                ResultTarget::Arena(at, n) => {
                    let x = contiguous::<T, B>(x)?;
                    arena[*at..][..*n].copy_from_slice(x.as_slice().unwrap_or_default());
                }
                ResultTarget::Kept(at) => kept[*at] = Some(x),
                ResultTarget::Nowhere => {}
            }
        }
        Ok(())
    }
}

fn lines<T: FusedFloat, B: Backend>(
    lines: &[ScanInstruction<T, B>],
    arena: &mut [T],
    kept: &mut [Option<AnyPrimitive<B>>],
) -> Result<()> {
    for line in lines {
        match line {
            // SAFETY: `ArenaInst::fits` has checked that all ranges of the instruction are inside the arena; the slot of
            // the result is disjoint from those of the operands.
            ScanInstruction::Kernel(inst) => unsafe { (inst.run)(arena.as_mut_ptr(), inst) },
            ScanInstruction::Routine(routine) => routine.run(arena, kept)?,
        }
    }
    Ok(())
}

/// Copies a slice; a single element without a call of `memcpy`.
#[inline(always)]
fn put<T: Copy>(to: &mut [T], from: &[T]) {
    match (to, from) {
        ([to], [from]) => *to = *from,
        (to, from) => to.copy_from_slice(from),
    }
}

/// `[rows, k] · [k, n]`, row-major.
fn product<T: FusedFloat>(x: &[T], matrix: &[T], [rows, k, n]: [usize; 3], out: &mut [T]) {
    let operands = (MatRef::row_major(x, rows, k), MatRef::row_major(matrix, k, n));
    let (Ok(x), Ok(matrix)) = operands else { unreachable!("operands have these sizes") };
    let Ok(out) = MatMut::row_major(out, rows, n) else { unreachable!("a result for all rows") };
    run_product(x, matrix, out, false);
}

fn run_product<T: FusedFloat>(a: MatRef<'_, T>, b: MatRef<'_, T>, c: MatMut<'_, T>, add: bool) {
    let Ok(product) = Product::new(a, b, c) else { unreachable!("sizes agree") };
    product.accumulate(add).parallelism(Parallelism::Threads(0)).run::<Standard>();
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Maximum number of elements of a buffer for products of several steps, if it holds more than one step.
const BUFFER: usize = 1 << 16;

/// Operands and results of products of several steps.
struct Buffers<T> {
    /// Number of steps per block.
    size: usize,
    /// Results of [`ScanProgram::given`].
    given: Vec<Vec<T>>,
    /// Left operand of each y that is a product; empty for the others.
    ys: Vec<Vec<T>>,
    /// Operands of [`ScanProgram::sums`].
    sums: Vec<[Vec<T>; 2]>,
}

impl<T: FusedFloat, B: Backend> ScanProgram<T, B> {
    fn buffers(&self) -> Buffers<T> {
        let of = |sizes: &Sizes| sizes.m * sizes.k.max(sizes.n);
        let given = self.given.iter().map(|(_, _, with)| of(&with.sizes));
        let ys = self.ys.iter().filter_map(|y| y.product.as_ref()).map(|with| of(&with.sizes));
        let sums = self.sums.iter().map(|sum| sum.k * sum.m.max(sum.n));
        let widest = given.chain(ys).chain(sums).max();
        let size = widest.map_or(self.length, |n| (BUFFER / n).clamp(1, self.length.max(1)));
        let zeros = |n: usize| vec![T::ZERO; n * size];
        Buffers {
            size,
            given: self
                .given
                .iter()
                .map(|(_, _, with)| zeros(with.sizes.m * with.sizes.n))
                .collect(),
            ys: self
                .ys
                .iter()
                .map(|y| zeros(if y.product.is_some() { y.range.n } else { 0 }))
                .collect(),
            sums: self
                .sums
                .iter()
                .map(|sum| [zeros(sum.k * sum.m), zeros(sum.k * sum.n)])
                .collect(),
        }
    }

    /// Runs the scan and returns the final carry, then the ys.
    pub(super) fn run(&self, operands: Vec<AnyPrimitive<B>>) -> Result<Vec<AnyPrimitive<B>>> {
        let [consts, carries, xs] = self.counts;
        let operands: Vec<Tensor<T>> =
            operands.into_iter().map(contiguous::<T, B>).collect::<Result<_>>()?;
        let slices: Vec<&[T]> = operands.iter().map(|x| x.as_slice().unwrap_or_default()).collect();
        // Slots are aligned to cache lines: a vector that crosses one costs twice as much.
        let mut memory = vec![T::ZERO; self.arena + LINE];
        let first = memory.as_ptr().align_offset(LINE).min(LINE);
        let arena = &mut memory[first..][..self.arena];
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
        lines(&self.before, arena, &mut kept)?;
        let count = |y: &Y| y.range.shape.iter().product::<usize>();
        let mut ys: Vec<Vec<T>> =
            self.ys.iter().map(|y| vec![T::ZERO; count(y) * self.length]).collect();
        let mut buffers = self.buffers();
        for from in (0..self.length).step_by(buffers.size) {
            let steps = from..(from + buffers.size).min(self.length);
            // First index of the block along the leading axis of xs and ys.
            let low = if self.reverse { self.length - steps.end } else { from };
            for (x, all) in self.given.iter().zip(&mut buffers.given) {
                let (x, _, WithMatrix { matrix, sizes: Sizes { m, k, n, .. } }) = x;
                let (rows, x) = (m * steps.len(), slices[scanned.start + x]);
                let matrix = &arena[*matrix..][..k * n];
                product(
                    &x[low * m * k..][..rows * k],
                    matrix,
                    [rows, *k, *n],
                    &mut all[..rows * n],
                );
            }
            self.steps(
                steps.clone(),
                low,
                (arena, &mut kept),
                &slices[scanned.clone()],
                &mut ys,
                &mut buffers,
            )?;
            for (y, (all, buffer)) in self.ys.iter().zip(ys.iter_mut().zip(&buffers.ys)) {
                let Some(WithMatrix { matrix, sizes: Sizes { m, k, n, .. } }) = y.product else {
                    continue;
                };
                let rows = m * steps.len();
                let out = &mut all[low * m * n..][..rows * n];
                product(&buffer[..rows * k], &arena[matrix..][..k * n], [rows, k, n], out);
            }
            for (sum, [a, b]) in self.sums.iter().zip(&buffers.sums) {
                sum.add(arena, [a, b], steps.len());
            }
        }
        let carry = self.inputs[consts..consts + carries]
            .iter()
            .map(|x| tensor(Tensor::from_slice(&arena[x.at..][..x.n], &x.shape)?));
        let ys = self.ys.iter().zip(ys).map(|(y, all)| {
            let shape: Vec<usize> =
                [self.length].into_iter().chain(y.range.shape.iter().copied()).collect();
            tensor(Tensor::from_vec(all, &shape)?)
        });
        carry.chain(ys).collect()
    }

    /// Runs one block of steps. Index 0 of the buffers is index `low` along the leading axes of xs and ys.
    fn steps(
        &self,
        steps: Range<usize>,
        low: usize,
        (arena, kept): (&mut [T], &mut [Option<AnyPrimitive<B>>]),
        xs: &[&[T]],
        ys: &mut [Vec<T>],
        buffers: &mut Buffers<T>,
    ) -> Result<()> {
        #[cfg(feature = "jit")]
        if let Some(machine) = &self.machine {
            return self.coded(&machine.code, steps.len(), low, arena, xs, ys, buffers);
        }
        let [consts, carries, _] = self.counts;
        let inputs = &self.inputs[consts + carries..][..xs.len()];
        for k in steps {
            let t = if self.reverse { self.length - 1 - k } else { k };
            for (input, x) in inputs.iter().zip(xs) {
                put(&mut arena[input.at..][..input.n], &x[t * input.n..][..input.n]);
            }
            for ((_, at, with), all) in self.given.iter().zip(&buffers.given) {
                let n = with.sizes.m * with.sizes.n;
                put(&mut arena[*at..][..n], &all[(t - low) * n..][..n]);
            }
            lines(&self.step, arena, kept)?;
            for (y, (all, buffer)) in self.ys.iter().zip(ys.iter_mut().zip(&mut buffers.ys)) {
                let (at, n) = (y.range.at, y.range.n);
                let all = if y.product.is_some() {
                    &mut buffer[(t - low) * n..]
                } else {
                    &mut all[t * n..]
                };
                put(&mut all[..n], &arena[at..][..n]);
            }
            for (sum, [a, b]) in self.sums.iter().zip(&mut buffers.sums) {
                let &Added { a: from_a, b: from_b, m, k, n, .. } = sum;
                put(&mut a[(t - low) * k * m..][..k * m], &arena[from_a..][..k * m]);
                put(&mut b[(t - low) * k * n..][..k * n], &arena[from_b..][..k * n]);
            }
            for &(from, to, n) in &self.moves {
                arena.copy_within(from..from + n, to);
            }
        }
        Ok(())
    }

    /// [`Self::steps`] by machine code.
    #[cfg(feature = "jit")]
    fn coded(
        &self,
        code: &t4a_jit::MachineCode<T>,
        steps: usize,
        low: usize,
        arena: &mut [T],
        xs: &[&[T]],
        ys: &mut [Vec<T>],
        buffers: &mut Buffers<T>,
    ) -> Result<()> {
        let [consts, carries, _] = self.counts;
        let of = &self.inputs[consts + carries..][..xs.len()];
        let xs = of.iter().zip(xs).map(|(x, all)| &all[low * x.n..][..steps * x.n]);
        let given = self.given.iter().zip(&buffers.given).map(|((_, _, with), all)| {
            let n = with.sizes.m * with.sizes.n;
            &all[..steps * n]
        });
        let inputs: Vec<&[T]> = xs.chain(given).collect();
        let ys =
            self.ys.iter().zip(ys.iter_mut().zip(&mut buffers.ys)).map(|(y, (all, buffer))| {
                let n = y.range.n;
                if y.product.is_some() {
                    &mut buffer[..steps * n]
                } else {
                    &mut all[low * n..][..steps * n]
                }
            });
        let sums = self.sums.iter().zip(&mut buffers.sums).flat_map(|(sum, [a, b])| {
            [&mut a[..steps * sum.k * sum.m], &mut b[..steps * sum.k * sum.n]]
        });
        let mut outputs: Vec<&mut [T]> = ys.chain(sums).collect();
        let failed = |error: t4a_jit::JitError| TensorError::value("scan", error.to_string());
        code.run(arena, &inputs, &mut outputs, steps).map_err(failed)
    }
}

impl Added {
    /// Adds the products of one block of steps to the carry.
    fn add<T: FusedFloat>(&self, arena: &mut [T], [a, b]: [&[T]; 2], steps: usize) {
        let Self { to, m, k, n, .. } = *self;
        let a = MatRef::strided(a, 0, (m, steps * k), (1, m as isize));
        let b = MatRef::row_major(b, steps * k, n);
        let (Ok(a), Ok(b)) = (a, b) else { unreachable!("buffers have these sizes") };
        let Ok(c) = MatMut::row_major(&mut arena[to..][..m * n], m, n) else {
            unreachable!("a carry has this size")
        };
        run_product(a, b, c, true);
    }
}
