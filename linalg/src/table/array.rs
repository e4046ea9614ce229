//! Operations on matrices as operations on arrays.
//!
//! ```text
//! arrays of floats ── read ──► matrices ── MatrixOp ──► matrices ── write ──► arrays
//!   Eager                        Batched<T>               the engine, one dtype
//!   any other                    RealMatrix, ComplexMatrix   rules in the vocabulary
//! ```
//!
//! For arrays of other devices a factorisation still runs on the host; its rule runs on the arrays.

use smallvec::SmallVec;
use t4a_algebra::{c32, c64};
use t4a_diff::array::{Integers, Kernel};
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Kept, Meta, OnBatch, Operation, Outcome as ArrayOutcome,
    Reverse, Value,
};
use t4a_tensor::{AnyTensor, DType, Tensor, TensorError};

use super::MatrixOp;
use crate::error::{LinalgError, Result};
use crate::operation::{MatrixSizes, Outcome, Over, Part, PartKind, given};
use crate::permutation::Permutation;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, ComplexMatrix, RealMatrix};

/// Matrix operation on arrays: real matrices `[…, m, n]`, or pairs `re`, `im` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Linalg {
    /// The operation.
    pub op: MatrixOp,
    /// True if the operands are pairs of arrays.
    pub complex: bool,
}

/// Evaluates an expression with `T` as the element type of the engine.
macro_rules! on_engine {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {
        match ($dtype, $op.complex) {
            (DType::F32, false) => {
                type $t = f32;
                $body
            }
            (DType::F64, false) => {
                type $t = f64;
                $body
            }
            (DType::F32, true) => {
                type $t = c32;
                $body
            }
            (DType::F64, true) => {
                type $t = c64;
                $body
            }
            (dtype, _) => Err(unsupported($op.op.name(), dtype)),
        }
    };
}

fn unsupported(op: &'static str, dtype: DType) -> LinalgError {
    TensorError::DTypeUnsupported { op, dtype, expected: "f32 or f64" }.into()
}

/// Float arrays among these values.
fn floats<A: Array>(values: &[Value<A>]) -> impl Iterator<Item = A> + '_ {
    values.iter().map(|x| x.float().clone())
}

/// Reads parts of these kinds, as many as there are arrays for.
fn parts<A: Array, M: Over<A>>(
    kinds: &[PartKind],
    arrays: &mut impl Iterator<Item = A>,
) -> Result<Vec<Part<M>>> {
    kinds.iter().map(|&kind| M::read(kind, arrays)).collect()
}

/// Cotangents of these kinds; a missing half of a pair is zero.
fn cotangents<A: Array, M: Over<A>>(
    kinds: &[PartKind],
    all: &mut impl Iterator<Item = Option<A>>,
) -> Result<Vec<Option<Part<M>>>> {
    let one =
        |&kind: &PartKind| given(kind, all.by_ref().take(kind.arrays(M::IS_COMPLEX)).collect());
    kinds.iter().map(one).collect()
}

fn write<A: Array, M: Over<A>>(parts: Vec<Part<M>>) -> Result<Vec<A>> {
    let mut arrays = Vec::new();
    parts.into_iter().try_for_each(|part| M::write(part, &mut arrays))?;
    Ok(arrays)
}

impl Linalg {
    /// Operands, and the outcome of the forward pass.
    fn outcome<A: Array, M: Over<A>>(
        &self,
        operands: &mut impl Iterator<Item = A>,
        results: impl IntoIterator<Item = A>,
        hidden: &[A],
        extra: &[Value<A>],
    ) -> Result<(Vec<M>, Outcome<M>)> {
        let read = |_| Ok(M::read(PartKind::Full, operands)?.into_full());
        let operands: Vec<M> = (0..self.op.operands().count()).map(read).collect::<Result<_>>()?;
        let mut out = Outcome::new(parts(self.op.results(), &mut results.into_iter())?);
        let permutation = |x: &Value<A>| Permutation::read(x.integers());
        out.permutations = extra.iter().map(permutation).collect::<Result<_>>()?;
        if !hidden.is_empty() {
            let mut arrays = hidden.iter().cloned();
            out.hidden = parts(self.op.hidden(), &mut arrays)?;
            let size = [operands[0].rows(), operands[0].cols()];
            if let Some(by) = self.op.saves(size, !extra.is_empty()) {
                out.saved = Some((by, parts(MatrixOp::from(by).results(), &mut arrays)?));
            }
        }
        Ok((operands, out))
    }

    fn vjp_on<A: Array, M: Over<A>>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let Kept { hidden, extra, .. } = reverse.kept;
        let (operands, out) = self.outcome::<A, M>(
            &mut (0..reverse.wanted.len()).map(|i| reverse.kept.float(i).clone()),
            (0..self.count(self.op.results())).map(|i| reverse.kept.result(i).clone()),
            hidden,
            extra,
        )?;
        let mut all = cotangents(self.op.results(), &mut reverse.cotangents.iter().cloned())?;
        let mut behind = reverse.hidden.iter().cloned();
        let mut saved = Vec::new();
        if !reverse.hidden.is_empty() {
            all.extend(cotangents(self.op.hidden(), &mut behind)?);
            if let Some((by, _)) = out.saved {
                saved = cotangents(MatrixOp::from(by).results(), &mut behind)?;
            }
        }
        let all = self.op.pullback(&operands, &out, &all, &saved)?;
        Ok(write(all.into_iter().map(Part::Full).collect())?.into_iter().map(Some).collect())
    }

    fn jvp_on<A: Array, M: Over<A>>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<ArrayOutcome<Dual<A>>> {
        let values: Vec<Value<A>> = inputs.iter().map(|x| x.clone().below()).collect();
        let found = A::apply(self, &values, &vec![true; values.len()])?;
        let results = found.results.iter().cloned();
        let (operands, out) =
            self.outcome::<A, M>(&mut floats(&values), results, &found.hidden, &found.extra)?;
        let mut moving = inputs.iter().map(|x| x.float().tangent.clone());
        let tangents = cotangents(&vec![PartKind::Full; operands.len()], &mut moving)?;
        let tangents: Vec<Option<M>> =
            tangents.into_iter().map(|x| x.map(Part::into_full)).collect();
        let again = tracked.contains(&true);
        let (mut moving, saved) = self.op.pushforward(&operands, &out, &tangents, again)?;
        let hidden = moving.split_off(self.op.results().len());
        let join = |values: Vec<A>, tangents: Vec<Part<M>>| -> Result<Vec<Dual<A>>> {
            let pairs = values.into_iter().zip(write(tangents)?);
            Ok(pairs.map(|(value, tangent)| Dual::new(value, tangent)).collect())
        };
        Ok(ArrayOutcome {
            results: join(found.results, moving)?,
            hidden: match again {
                true => join(found.hidden, hidden.into_iter().chain(saved).collect())?,
                false => Vec::new(),
            },
            extra: found.extra.into_iter().map(|x| x.dual(None)).collect(),
        })
    }

    fn forward_on<T: LinalgScalar>(
        &self,
        inputs: &[Value<Eager>],
        tracked: bool,
    ) -> Result<ArrayOutcome<Eager>> {
        let operands = self.tensors::<T>(inputs)?;
        let mut out = self.op.forward(&operands.iter().collect::<Vec<_>>(), tracked)?;
        let mut hidden = Vec::new();
        if !tracked && out.saved.is_some() {
            // These belong to saved factors, which are not needed for the status.
            out.permutations.clear();
        }
        if tracked {
            hidden = write(out.hidden)?;
            if let Some((_, factors)) = out.saved {
                hidden.extend(write(factors)?);
            }
        }
        let index = |p: Permutation| Value::Integers(AnyTensor::from(p.index().clone()).into());
        Ok(ArrayOutcome {
            results: write(out.results)?,
            hidden,
            extra: out.permutations.into_iter().map(index).collect(),
        })
    }

    fn tensors<T: LinalgScalar>(&self, inputs: &[Value<Eager>]) -> Result<Vec<Tensor<T>>> {
        let mut arrays = floats(inputs);
        let read = |_| {
            <Batched<T> as Over<Eager>>::read(PartKind::Full, &mut arrays)?
                .into_full()
                .into_tensor()
        };
        (0..self.op.operands().count()).map(read).collect()
    }

    /// Checks the operands; returns the batch and the sizes of their matrices.
    pub(crate) fn check<'a>(&self, inputs: &'a [Meta]) -> Result<(&'a [usize], MatrixSizes)> {
        let (name, operands) = (self.op.name(), self.op.operands());
        let each = 1 + usize::from(self.complex);
        if inputs.len() != each * operands.count() {
            let required = each * operands.count();
            let message = format!("{required} arrays are required, given {}", inputs.len());
            return Err(TensorError::value(name, message).into());
        }
        let dtype = inputs[0].dtype;
        for pair in inputs.chunks_exact(each) {
            if pair[0].shape != pair[each - 1].shape {
                let (re, im) = (&pair[0].shape, &pair[each - 1].shape);
                let required = "real and imaginary parts of one shape";
                return Err(TensorError::shapes(name, re, im, required).into());
            }
        }
        if let Some(other) = inputs.iter().find(|x| x.dtype != dtype) {
            let (lhs, rhs) = (dtype, other.dtype);
            return Err(TensorError::DTypeMismatch { op: name, lhs, rhs }.into());
        }
        if !matches!(dtype, DType::F32 | DType::F64) {
            return Err(unsupported(name, dtype));
        }
        let shapes: SmallVec<[&[usize]; 2]> =
            inputs.iter().step_by(each).map(|x| &x.shape[..]).collect();
        operands.check(name, &shapes)
    }

    /// Number of arrays of parts of these kinds.
    fn count(&self, kinds: &[PartKind]) -> usize {
        kinds.iter().map(|kind| kind.arrays(self.complex)).sum()
    }

    /// Status of each matrix, in the shape of the batch: [`info`](crate::operation::MatrixOperation::info).
    ///
    /// # Errors
    /// Errors that do not concern a single matrix: shapes, dtypes, a transfer.
    pub fn info<A: Array>(&self, inputs: &[A]) -> Result<Tensor<i32>> {
        let inputs: Vec<Value<Eager>> = inputs.iter().map(host).collect::<Result<_>>()?;
        self.check(&inputs.iter().map(meta).collect::<Vec<_>>())?;
        on_engine!(self, inputs[0].float().dtype(), T => {
            let operands = self.tensors::<T>(&inputs)?;
            self.op.info(&operands.iter().collect::<Vec<_>>())
        })
    }
}

fn meta(x: &Value<Eager>) -> Meta {
    Meta { shape: x.float().shape(), dtype: x.float().dtype() }
}

/// Copies the elements to the engine.
fn host<A: Array>(x: &A) -> Result<Value<Eager>> {
    Ok(Value::Float(x.elements()?.into()))
}

impl Operation for Linalg {
    type Error = LinalgError;

    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn arity(&self) -> Option<[usize; 2]> {
        let operands = self.op.operands().count() * (1 + usize::from(self.complex));
        Some([operands, self.count(self.op.results())])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let (batch, sizes) = self.check(inputs)?;
        let dtype = inputs[0].dtype;
        let results = self.op.results().iter().zip(self.op.sizes(&sizes));
        let metas = results.flat_map(|(kind, [m, n])| {
            let shape: Vec<usize> = batch.iter().copied().chain([m, n]).collect();
            vec![Meta { shape, dtype }; kind.arrays(self.complex)]
        });
        Ok(metas.collect())
    }

    fn indices(&self, inputs: &[Meta]) -> Vec<Vec<usize>> {
        let Some([batch @ .., m, n]) = inputs.first().map(|x| &x.shape[..]) else {
            return Vec::new();
        };
        let lens = self.op.permutations([*m, *n]).into_iter();
        lens.map(|len| batch.iter().copied().chain([len]).collect()).collect()
    }

    fn keep(&self, _tracked: &[bool]) -> Keep {
        // At most five arrays: two complex results and a real one.
        Keep::default().all_inputs().results(&[0, 1, 2, 3, 4])
    }

    fn kernels(&self, inputs: &[Meta]) -> Vec<Kernel> {
        let Some([.., m, n]) = inputs.first().map(|x| &x.shape[..]) else { return Vec::new() };
        let size = [*m, *n];
        self.kernel(size).map(|kernel| Kernel::Matrix(kernel, size)).into_iter().collect()
    }

    fn is_on_host(&self) -> bool {
        true
    }

    /// By kernels of the device if it has them; otherwise on the host, with results that are constants of the array
    /// type.
    fn portable<A: Array>(&self, inputs: &[Value<A>], tracked: &[bool]) -> Result<ArrayOutcome<A>> {
        let like = inputs[0].float();
        if let Some(outcome) = self.on_device(inputs, tracked.contains(&true))? {
            return Ok(outcome);
        }
        let inputs = inputs.iter().map(|x| host(x.float())).collect::<Result<Vec<_>>>()?;
        self.forward(&inputs, tracked)?.try_map(
            |x| match x {
                Value::Integers(x) => Ok(Value::Integers(like.indices(x.elements()?))),
                _ => unreachable!("only permutations have no derivative"),
            },
            |x| Ok(like.constant(x.elements()?)),
        )
    }

    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<ArrayOutcome<Eager>> {
        let tracked = tracked.contains(&true);
        on_engine!(self, inputs[0].float().dtype(), T => self.forward_on::<T>(inputs, tracked))
    }

    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        (!differ.contains(&false)).then_some(OnBatch::front(*self))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        match self.complex {
            true => self.vjp_on::<A, ComplexMatrix<A>>(reverse),
            false => self.vjp_on::<A, RealMatrix<A>>(reverse),
        }
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let dtype = reverse.kept.float(0).dtype();
        on_engine!(self, dtype, T => self.vjp_on::<Eager, Batched<T>>(reverse))
    }

    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<ArrayOutcome<Dual<A>>> {
        match self.complex {
            true => self.jvp_on::<A, ComplexMatrix<A>>(inputs, tracked),
            false => self.jvp_on::<A, RealMatrix<A>>(inputs, tracked),
        }
    }

    fn fused_jvp(
        &self,
        inputs: &[Value<Dual<Eager>>],
        tracked: &[bool],
    ) -> Result<ArrayOutcome<Dual<Eager>>> {
        let dtype = inputs[0].float().dtype();
        on_engine!(self, dtype, T => self.jvp_on::<Eager, Batched<T>>(inputs, tracked))
    }
}
