//! Lowering of one instruction to a kernel, a movement or a routine.

use burn_backend::{Backend, FloatDType, TensorData};
use t4a_tensor::Element;

use super::super::kernel::{ArenaInst, KernelKind, each, gather, small, sum};
use super::super::products::Sizes;
use super::{
    BuildResult, Operand, ResultTarget, Routine, ScanBuilder, ScanInstruction, ValueLocation, count,
};
use crate::fuse::kernel::FusedFloat;
use crate::fuse::{Elementwise, ReduceOp};
use crate::recording::{Frame, Instruction};
use crate::tensor::AnyPrimitive;

/// Methods that only move elements. The source of each element is found by applying the method to the indices.
const MOVES: [&str; 15] = [
    "float_reshape",
    "float_transpose",
    "float_swap_dims",
    "float_permute",
    "float_slice",
    "float_slice_assign",
    "float_expand",
    "float_flip",
    "float_repeat_dim",
    "float_unfold",
    "float_cat",
    "float_detach",
    "float_set_require_grad",
    "float_select",
    "float_gather",
];

impl<T: FusedFloat + Element, B: Backend> ScanBuilder<'_, T, B> {
    /// Operand and index of the source of each element of a movement; `None` for other instructions and for movements of
    /// other dtypes.
    fn movement(&self, one: &Instruction<B>) -> Option<Vec<(usize, usize)>> {
        if !MOVES.contains(&one.name) || one.results != 1 {
            return None;
        }
        let (mut frame, mut first) = (Vec::new(), Vec::new());
        let mut next = 0;
        for &v in &one.operands {
            first.push(next);
            frame.push(Some(match &self.place[v] {
                ValueLocation::Outside(x) => x.clone(),
                _ if self.metas[v].dtype == self.dtype => {
                    let n = self.numel(v);
                    let numbers: Vec<f64> = (next..next + n).map(|i| i as f64).collect();
                    next += n;
                    let data = TensorData::new(numbers, self.metas[v].shape.clone());
                    let x = B::float_from_data(data, &self.device);
                    AnyPrimitive::Float(B::float_cast(x, FloatDType::F64))
                }
                _ => return None,
            }));
        }
        let mut out = Vec::new();
        one.step.run(&mut Frame(frame), &mut out).ok()?;
        let data = out.pop()?.data().ok()?;
        let from = |x: f64| {
            let x = x as usize;
            let k = first.partition_point(|&start| start <= x).checked_sub(1)?;
            Some((k, x - first[k]))
        };
        data.iter::<f64>().map(from).collect()
    }

    /// True if the movement is the identity on the elements of its first operand, such as a reshape.
    fn is_same(table: &[(usize, usize)], n: usize) -> bool {
        table.len() == n && table.iter().enumerate().all(|(i, &at)| at == (0, i))
    }

    /// Assigns the slot of the operand to the result of an identity movement. Called for all instructions before the first
    /// one is lowered, because lifetimes of slots depend on it.
    pub(super) fn share(&mut self, one: &Instruction<B>) {
        if let (Some(table), Some(&v)) = (self.movement(one), one.operands.first())
            && Self::is_same(&table, self.numel(v))
        {
            self.root[one.first] = self.root[v];
        }
    }

    pub(super) fn instruction(&mut self, one: &Instruction<B>) -> BuildResult<()> {
        self.line(one)?;
        for (at, n) in std::mem::take(&mut self.scratch) {
            self.arena.release(at, n);
        }
        Ok(())
    }

    fn line(&mut self, one: &Instruction<B>) -> BuildResult<()> {
        if let Some(table) = self.movement(one) {
            return self.moved(one, &table);
        }
        let metas = self.metas;
        let shape = |k: usize| &metas[one.operands[k]].shape[..];
        match (one.name, one.elementwise) {
            (_, Some(Elementwise::Reduce(f, axis))) => {
                let (n, of) = (shape(0)[axis], shape(0)[axis + 1..].iter().product());
                self.sum(one, of, if f == ReduceOp::Mean { n } else { 1 })
            }
            (_, Some(what)) => self.each(one, what),
            ("float_sum", _) => self.sum(one, 1, 1),
            ("float_mean", _) => self.sum(one, 1, count(shape(0))),
            ("float_matmul" | "linear", _) => self.matmul(one),
            _ => self.routine(one),
        }
    }

    fn moved(&mut self, one: &Instruction<B>, table: &[(usize, usize)]) -> BuildResult<()> {
        if let Some(&v) = one.operands.first()
            && Self::is_same(table, self.numel(v))
        {
            self.root[one.first] = self.root[v];
            self.place[one.first] = self.place[v].clone();
            return Ok(());
        }
        let from: Vec<usize> =
            one.operands.iter().map(|&v| self.arena_of(v).unwrap_or(0)).collect();
        let out = self.slot(one.first, false)?;
        let mut inst = ArenaInst::new((gather, KernelKind::Gather), [0; 3], out, table.len());
        inst.table = table.iter().map(|&(k, i)| from[k] + i).collect();
        self.lines.push(ScanInstruction::Kernel(inst));
        Ok(())
    }

    fn each(&mut self, one: &Instruction<B>, what: Elementwise) -> BuildResult<()> {
        let n = self.numel(one.first);
        let mut places = Vec::new();
        for (k, &v) in one.operands.iter().enumerate() {
            match self.place[v] {
                ValueLocation::Arena { at, flag } if flag == what.takes_flag(k) => places.push(at),
                _ => return Err("op_unsupported"),
            }
        }
        let out = self.slot(one.first, what.gives_flag())?;
        let size = |k: usize| one.operands.get(k).map_or(n, |&v| self.numel(v));
        if let Some((run, scalar)) = small::<T>(what, n, [size(0), size(1)]) {
            let [a, b] = [places[0], places.get(1).copied().unwrap_or(0)];
            let mut inst = ArenaInst::new(run, [a, b, 0], out, n);
            (inst.scalar, inst.what) = (scalar, Some(what));
            self.lines.push(ScanInstruction::Kernel(inst));
            return Ok(());
        }
        let shape = &self.metas[one.first].shape;
        for (k, &v) in one.operands.iter().enumerate() {
            if self.numel(v) != n {
                let table = spread(&self.metas[v].shape, shape, places[k]);
                let to = self.temporary(n);
                let mut inst = ArenaInst::new((gather, KernelKind::Gather), [0; 3], to, n);
                inst.table = table.into();
                self.lines.push(ScanInstruction::Kernel(inst));
                places[k] = to;
            }
        }
        places.resize(3, 0);
        let mut inst = ArenaInst::new(
            (each, KernelKind::Each([false; 2])),
            [places[0], places[1], places[2]],
            out,
            n,
        );
        inst.what = Some(what);
        self.lines.push(ScanInstruction::Kernel(inst));
        Ok(())
    }

    /// Sum along an axis, divided by `over`; `inner` is the size of the axes behind it.
    fn sum(&mut self, one: &Instruction<B>, inner: usize, over: usize) -> BuildResult<()> {
        let a = self.arena_of(one.operands[0])?;
        let (k, n) = (self.numel(one.operands[0]), self.numel(one.first));
        let out = self.slot(one.first, false)?;
        let mut inst = ArenaInst::new((sum, KernelKind::Sum), [a, 0, 0], out, n);
        (inst.k, inst.inner, inst.scalar) = (k, inner, T::from_f64(over as f64));
        self.lines.push(ScanInstruction::Kernel(inst));
        Ok(())
    }

    fn matmul(&mut self, one: &Instruction<B>) -> BuildResult<()> {
        let Some(sizes) = self.sizes(one) else { return self.routine(one) };
        let (a, b) = (self.arena_of(one.operands[0])?, self.arena_of(one.operands[1])?);
        let (operands, sizes) = match self.turned.get(&one.operands[0]) {
            Some(&turned) if sizes.transposed => ([b, turned, 0], sizes.turned()),
            _ if sizes.transposed => ([b, a, 0], sizes),
            _ => ([a, b, 0], sizes),
        };
        let out = self.slot(one.first, false)?;
        let mut inst = ArenaInst::new(
            (sizes.kernel::<T>(), KernelKind::Product),
            operands,
            out,
            self.numel(one.first),
        );
        inst.sizes = sizes;
        self.lines.push(ScanInstruction::Kernel(inst));
        Ok(())
    }

    fn sizes(&self, one: &Instruction<B>) -> Option<Sizes> {
        let &[a, b] = &one.operands[..] else { return None };
        let stays = !self.moving[a] && self.moving[b];
        Some(Sizes::new(&self.metas[a].shape, &self.metas[b].shape)?.merged(stays))
    }

    /// Stores the transpose of a loop-invariant matrix that is multiplied by a column in each step.
    pub(super) fn turn(&mut self, one: &Instruction<B>) -> BuildResult<()> {
        let sizes = if one.name == "float_matmul" { self.sizes(one) } else { None };
        let Some(&a) = one.operands.first() else { return Ok(()) };
        let Some(Sizes { k, n: m, transposed: true, .. }) = sizes else { return Ok(()) };
        if self.moving[a] || self.turned.contains_key(&a) {
            return Ok(());
        }
        let (from, out) = (self.arena_of(a)?, self.arena.place(m * k));
        let mut inst = ArenaInst::new((gather, KernelKind::Gather), [0; 3], out, m * k);
        inst.table = (0..k).flat_map(|l| (0..m).map(move |i| from + i * k + l)).collect();
        self.lines.push(ScanInstruction::Kernel(inst));
        self.turned.insert(a, out);
        Ok(())
    }

    fn routine(&mut self, one: &Instruction<B>) -> BuildResult<()> {
        let operand = |&v: &usize| match &self.place[v] {
            ValueLocation::Arena { at, flag: false } => {
                Ok(Operand::Arena(*at, self.metas[v].shape.clone()))
            }
            ValueLocation::Outside(x) => Ok(Operand::Constant(x.clone())),
            ValueLocation::Kept(at) => Ok(Operand::Kept(*at)),
            _ => Err("op_unsupported"),
        };
        let operands = one.operands.iter().map(operand).collect::<BuildResult<_>>()?;
        let mut results = Vec::new();
        for v in one.first..one.first + one.results {
            results.push(if self.numel(v) == 0 {
                ResultTarget::Nowhere
            } else if self.metas[v].dtype == self.dtype {
                ResultTarget::Arena(self.slot(v, false)?, self.numel(v))
            } else {
                self.place[v] = ValueLocation::Kept(self.kept);
                self.kept += 1;
                ResultTarget::Kept(self.kept - 1)
            });
        }
        self.lines.push(ScanInstruction::Routine(Routine {
            step: one.step.clone(),
            operands,
            results,
        }));
        Ok(())
    }
}

/// Offset of the source of each element of a result of shape `to`, for an operand of shape `from` at offset `at` that is
/// broadcast along its axes of size 1.
fn spread(from: &[usize], to: &[usize], at: usize) -> Vec<usize> {
    let mut strides = vec![0; to.len()];
    let mut stride = 1;
    for axis in (0..from.len()).rev() {
        if from[axis] > 1 {
            strides[axis] = stride;
        }
        stride *= from[axis];
    }
    let one = |i: usize| {
        let (mut rest, mut from) = (i, at);
        for axis in (0..to.len()).rev() {
            from += rest % to[axis] * strides[axis];
            rest /= to[axis];
        }
        from
    };
    (0..count(to)).map(one).collect()
}
