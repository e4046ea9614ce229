//! Lowering of a recorded body to kernels over an arena.

mod lines;
mod whole;

use std::collections::HashMap;
use std::sync::Arc;

use burn_backend::{Backend, DType};
use burn_t4a::ext::operation::Operations;
use t4a_tensor::Element;

use super::arena::Arena;
use super::kernel::{ArenaInst, KernelKind, copy};
use super::products::Sizes;
use crate::fuse::kernel::FusedFloat;
use crate::program::{live, unique};
use crate::recording::{Execute, LoopBody};
use crate::tensor::{AnyPrimitive, TensorType};
use whole::Search;

/// Instruction of the scan program.
pub(super) enum ScanInstruction<T, B: Backend> {
    Kernel(ArenaInst<T>),
    /// Operation without a kernel, executed by the inner backend on tensors that are copied from the arena.
    Routine(Routine<B>),
}

pub(super) struct Routine<B: Backend> {
    pub(super) step: Arc<dyn Execute<B>>,
    pub(super) operands: Vec<Operand<B>>,
    pub(super) results: Vec<ResultTarget>,
}

pub(super) enum Operand<B: Backend> {
    Arena(usize, Vec<usize>),
    Constant(AnyPrimitive<B>),
    /// Result of another routine, by its index.
    Kept(usize),
}

/// Destination of a result of a routine.
pub(super) enum ResultTarget {
    /// Offset in the arena and number of elements.
    Arena(usize, usize),
    /// Tensor of another dtype (integers, booleans), stored for other routines under this index.
    Kept(usize),
    /// Dropped, because it has no elements.
    Nowhere,
}

/// Range of the arena that contains a tensor of this shape.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) at: usize,
    pub(super) n: usize,
    pub(super) shape: Vec<usize>,
}

/// Product of a value of each step with the loop-invariant matrix at this offset of the arena.
pub(super) struct WithMatrix {
    pub(super) matrix: usize,
    pub(super) sizes: Sizes,
}

/// Output of each step.
pub(super) struct Y {
    pub(super) range: Range,
    /// If given, y is this product, and the range contains its left operand.
    pub(super) product: Option<WithMatrix>,
}

/// Accumulation of `Aᵀ · B` of each step, with A `[k, m]` and B `[k, n]`, into the carry at offset `to`.
pub(super) struct Added {
    pub(super) to: usize,
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// Scan as a program over an arena.
pub(super) struct ScanProgram<T, B: Backend> {
    pub(super) arena: usize,
    /// Number of tensors that routines pass to each other.
    pub(super) kept: usize,
    pub(super) constants: Vec<(usize, Vec<T>)>,
    /// Ranges of consts, carries, xs and captured values.
    pub(super) inputs: Vec<Range>,
    pub(super) counts: [usize; 3],
    /// Loop-invariant instructions, executed once before the steps.
    pub(super) before: Vec<ScanInstruction<T, B>>,
    pub(super) step: Vec<ScanInstruction<T, B>>,
    /// Copies of new carries to their slots after a step: source, destination and number of elements.
    pub(super) moves: Vec<(usize, usize, usize)>,
    pub(super) ys: Vec<Y>,
    /// Products of an x with a matrix that are computed for several steps at once: index of the x, and the offset to which
    /// the result of a step is copied before the step.
    pub(super) given: Vec<(usize, usize, WithMatrix)>,
    pub(super) sums: Vec<Added>,
    pub(super) length: usize,
    pub(super) reverse: bool,
    #[cfg(feature = "jit")]
    pub(super) machine: Option<super::machine::Machine<T>>,
}

/// Location of a value.
#[derive(Clone)]
enum ValueLocation<B: Backend> {
    /// Not assigned yet.
    None,
    /// Elements in the arena; booleans (`flag`) as 1 and 0.
    Arena { at: usize, flag: bool },
    /// Constant of another dtype.
    Outside(AnyPrimitive<B>),
    /// Tensor of another dtype that is a result of a routine, by its index.
    Kept(usize),
}

struct ScanBuilder<'a, T, B: Backend> {
    metas: &'a [TensorType],
    dtype: DType,
    arena: Arena,
    place: Vec<ValueLocation<B>>,
    /// Value whose slot this value shares; itself if it has its own slot.
    root: Vec<usize>,
    lines: Vec<ScanInstruction<T, B>>,
    kept: usize,
    /// Temporary slots of the current instruction.
    scratch: Vec<(usize, usize)>,
    /// True for values that are not loop-invariant.
    moving: Vec<bool>,
    /// Offset of the stored transpose, by value.
    turned: HashMap<usize, usize>,
    /// Slot of the carry that this value becomes, if no later instruction reads the old carry.
    home: Vec<Option<usize>>,
    device: B::Device,
}

type BuildResult<T> = Result<T, &'static str>;

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

impl<T, B: Backend> ScanProgram<T, B> {
    /// True if steps run as machine code.
    pub(super) fn is_coded(&self) -> bool {
        #[cfg(feature = "jit")]
        return self.machine.is_some();
        #[cfg(not(feature = "jit"))]
        false
    }
}

impl<T: FusedFloat + Element, B: Operations> ScanProgram<T, B> {
    pub(super) fn new(body: &LoopBody<B>, dtype: DType) -> BuildResult<Self> {
        let source = &body.source;
        let values = source.metas.len();
        let mut outputs = source.outputs.clone();
        let instructions = live(source.instructions.clone(), &outputs, values);
        let instructions = unique(instructions, &mut outputs, values);
        let instructions = live(instructions, &outputs, values);
        let mut b = ScanBuilder::<T, B> {
            metas: &source.metas,
            dtype,
            arena: Arena::default(),
            place: vec![ValueLocation::None; values],
            root: (0..values).collect(),
            lines: Vec::new(),
            kept: 0,
            scratch: Vec::new(),
            moving: vec![false; values],
            turned: HashMap::new(),
            home: vec![None; values],
            device: B::Device::default(),
        };
        let mut inputs = Vec::new();
        for id in 0..source.inputs {
            let shape = source.metas[id].shape.clone();
            let at = b.slot(id, false)?;
            inputs.push(Range { at, n: count(&shape), shape });
        }
        let mut constants = Vec::new();
        for (id, x) in &source.constants {
            match x {
                AnyPrimitive::Float(_) if source.metas[*id].dtype == dtype => {
                    let data = x.clone().data().map_err(|_| "unreadable_constant")?;
                    let elements: Vec<T> = data.iter::<f64>().map(T::from_f64).collect();
                    constants.push((b.slot(*id, false)?, elements));
                }
                x => b.place[*id] = ValueLocation::Outside(x.clone()),
            }
        }
        // Loop-invariant values are computed once.
        let [consts, carries, xs] = body.counts;
        let changes = consts..consts + carries + xs;
        b.moving[changes].fill(true);
        let mut steps = Vec::new();
        for one in instructions {
            if one.operands.iter().any(|&v| b.moving[v]) {
                b.moving[one.first..one.first + one.results].fill(true);
                steps.push(one);
            } else {
                b.instruction(&one)?;
            }
        }
        let mut search = Search {
            metas: &source.metas,
            steps,
            outputs,
            carries: consts..consts + carries,
            xs: consts + carries..consts + carries + xs,
            moving: &b.moving,
        };
        let whole = search.run();
        let (steps, mut outputs) = (search.steps, search.outputs);
        let ends = carries..outputs.len();
        outputs.extend(whole.sums.iter().flat_map(|sum| [sum.a, sum.b]));
        let mut given = Vec::new();
        for whole::Product { x, matrix, out, sizes } in &whole.given {
            let with = WithMatrix { matrix: b.arena_of(*matrix)?, sizes: *sizes };
            given.push((x - consts - carries, b.slot(*out, false)?, with));
        }
        for one in &steps {
            b.turn(one)?;
        }
        let before = std::mem::take(&mut b.lines);
        // Index of the last instruction that uses the slot of a value.
        let end = steps.len();
        let mut last = vec![0; values];
        for (at, one) in steps.iter().enumerate() {
            b.share(one);
            one.operands.iter().for_each(|&v| last[b.root[v]] = at);
            for v in one.first..one.first + one.results {
                last[b.root[v]] = last[b.root[v]].max(at);
            }
        }
        outputs.iter().for_each(|&v| last[b.root[v]] = end);
        let slots: Vec<usize> = inputs[consts..consts + carries].iter().map(|x| x.at).collect();
        let mut waiting: Vec<usize> = (0..carries).collect();
        for (at, one) in steps.iter().enumerate() {
            let made = one.first..one.first + one.results;
            waiting.retain(|&k| {
                let v = b.root[outputs[k]];
                let free = made.contains(&v) && last[consts + k] < at && b.home[v].is_none();
                if free {
                    b.home[v] = Some(slots[k]);
                }
                !free
            });
            b.instruction(one)?;
            let mut ended: Vec<usize> =
                one.operands.iter().copied().chain(one.first..one.first + one.results).collect();
            ended.iter_mut().for_each(|v| *v = b.root[*v]);
            ended.sort_unstable();
            ended.dedup();
            // Slots of inputs and of loop-invariant values are not released.
            let is_step = |v: &usize| *v >= source.inputs && b.moving[*v];
            let ended: Vec<usize> =
                ended.into_iter().filter(is_step).filter(|v| last[*v] == at).collect();
            for v in ended {
                if let ValueLocation::Arena { at, .. } = b.place[v] {
                    b.arena.release(at, count(&source.metas[v].shape));
                }
            }
        }
        // A new carry that is in the slot of another carry is first copied to a temporary slot.
        let mut moves = Vec::new();
        for (k, &v) in outputs[..carries].iter().enumerate() {
            let (mut from, n) = (b.arena_of(v)?, count(&source.metas[v].shape));
            if from != slots[k] && slots.contains(&from) {
                let to = b.arena.place(n);
                b.lines.push(ScanInstruction::Kernel(ArenaInst::new(
                    (copy, KernelKind::Copy),
                    [from, 0, 0],
                    to,
                    n,
                )));
                from = to;
            }
            if from != slots[k] {
                moves.push((from, slots[k], n));
            }
        }
        let mut ys = Vec::new();
        for (k, &v) in outputs[ends].iter().enumerate() {
            let product = whole.results.iter().find(|(y, _)| *y == k).map(|(_, product)| product);
            let shape = source.metas[product.map_or(v, |product| product.out)].shape.clone();
            let range = Range { at: b.arena_of(v)?, n: count(&source.metas[v].shape), shape };
            let product = match product {
                Some(one) => Some(WithMatrix { matrix: b.arena_of(one.matrix)?, sizes: one.sizes }),
                None => None,
            };
            ys.push(Y { range, product });
        }
        let mut sums = Vec::new();
        for &whole::Sum { carry, a, b: right, m, k, n } in &whole.sums {
            sums.push(Added {
                to: slots[carry],
                a: b.arena_of(a)?,
                b: b.arena_of(right)?,
                m,
                k,
                n,
            });
        }
        let (step, kept) = (b.lines, b.kept);
        // Elementwise kernels read `n` elements of each operand slot, also of operands that they do not use.
        let kernels = || {
            before.iter().chain(&step).filter_map(|line| match line {
                ScanInstruction::Kernel(inst) => Some(inst),
                ScanInstruction::Routine(_) => None,
            })
        };
        let arena = b.arena.len() + kernels().map(|i| i.n).max().unwrap_or(0);
        if !kernels().all(|i| i.fits(arena)) {
            return Err("out_of_arena");
        }
        let (counts, length, reverse) = (body.counts, body.length, body.reverse);
        let made = Self {
            arena,
            kept,
            constants,
            inputs,
            counts,
            before,
            step,
            moves,
            ys,
            given,
            sums,
            length,
            reverse,
            #[cfg(feature = "jit")]
            machine: None,
        };
        #[cfg(feature = "jit")]
        let made = Self { machine: super::machine::Machine::new(&made), ..made };
        Ok(made)
    }
}

impl<T: FusedFloat + Element, B: Backend> ScanBuilder<'_, T, B> {
    fn slot(&mut self, value: usize, flag: bool) -> BuildResult<usize> {
        let TensorType { shape, dtype } = &self.metas[value];
        if !flag && *dtype != self.dtype {
            return Err("dtype_unsupported");
        }
        if count(shape) == 0 {
            return Err("no_elements");
        }
        let at = self.home[value].unwrap_or_else(|| self.arena.place(count(shape)));
        self.place[value] = ValueLocation::Arena { at, flag };
        Ok(at)
    }

    fn arena_of(&self, value: usize) -> BuildResult<usize> {
        match &self.place[value] {
            ValueLocation::Arena { at, flag: false } => Ok(*at),
            _ => Err("dtype_unsupported"),
        }
    }

    fn numel(&self, value: usize) -> usize {
        count(&self.metas[value].shape)
    }

    fn temporary(&mut self, n: usize) -> usize {
        let at = self.arena.place(n);
        self.scratch.push((at, n));
        at
    }
}
